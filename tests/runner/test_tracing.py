"""OpenTelemetry spans and metrics of senders and handlers, and the cost without a provider."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import opentelemetry.metrics._internal as api_metrics
import opentelemetry.trace as api_trace
import psycopg
import pytest
import rowqueue
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from rowqueue import DeadLetter, Message, Retry, tracing
from rowqueue.databases import Database, Session
from rowqueue.handlers import Handled
from rowqueue.handlers.synchronous import OneByOne, WholeBatch
from rowqueue.tracing import injected

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[ReadableSpan]]:
    """A tracer provider that keeps what it gets; the API itself lets one be set only once in a process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(api_trace, "_TRACER_PROVIDER", provider)
    return lambda: list(exporter.get_finished_spans())


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], dict[str, list[Any]]]]:
    """A meter provider; gives the data points of each metric."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(api_metrics, "_METER_PROVIDER", provider)

    def read() -> dict[str, list[Any]]:
        data = reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}

    yield read
    provider.shutdown()


Spans = Callable[[], list[ReadableSpan]]
Metrics = Callable[[], dict[str, list[Any]]]


def message(id: int = 1, headers: str | None = None) -> Message:
    return Message(id, "email", "häuser", headers, 0, None, None, 1, None, None, "key", None, 25, None, None)  # type: ignore[arg-type]


def handle(handler: Any, *messages: Message) -> Handled:
    handled = Handled()
    handler.run(messages, handled, lambda _: True)
    return handled


# ---- headers ---------------------------------------------------------------------------------------------------------


def test_the_current_span_is_added_to_headers_that_are_an_object() -> None:
    with TracerProvider().get_tracer("test").start_as_current_span("send") as span:
        trace = format(span.get_span_context().trace_id, "032x")
        assert json.loads(injected(None) or "")["traceparent"].split("-")[1] == trace
        headers = json.loads(injected('{"mine": 1}') or "")
        assert headers["mine"] == 1
        assert headers["traceparent"].split("-")[1] == trace
        assert injected("not JSON") == "not JSON"
        assert injected("[1]") == "[1]"


def test_a_context_that_the_caller_has_put_in_stays() -> None:
    headers = json.dumps({"traceparent": PARENT})
    with TracerProvider().get_tracer("test").start_as_current_span("send"):
        assert injected(headers) == headers


def test_without_a_span_headers_stay_as_they_are() -> None:
    assert injected(None) is None
    assert injected('{"mine": 1}') == '{"mine": 1}'


# ---- no provider -----------------------------------------------------------------------------------------------------


def test_without_a_provider_nothing_is_made_for_a_message() -> None:
    nothing = tracing.consuming(message())
    assert tracing.consuming(message(2, '{"mine": 1}')) is nothing
    assert tracing.consuming(message(), message(2), is_batch=True) is nothing
    assert tracing.sending("send", ("email", "body"), {}) is nothing
    assert tracing.sending("claim", ("email",), {}) is nothing


def test_without_a_provider_the_context_still_reaches_messages_that_the_handler_sends() -> None:
    noted: list[str | None] = []
    handle(OneByOne(lambda _: noted.append(injected(None))), message(1, json.dumps({"traceparent": PARENT})), message())
    assert json.loads(noted[0] or "")["traceparent"] == PARENT
    assert noted[1] is None


def test_the_api_is_not_even_loaded_when_nobody_else_has() -> None:
    code = (
        "import sys; from rowqueue import tracing, Message; from rowqueue.handlers import of\n"
        "from rowqueue.handlers.base import Handled\n"
        "made = Message(1, 't', 'b', None, 0, None, None, 1, None, None, 'k', None, 25, None, None)\n"
        "of(lambda message: None, 1).run([made], Handled(), lambda _: True)\n"
        "print('opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


# ---- spans -----------------------------------------------------------------------------------------------------------


def test_a_provider_that_is_set_later_is_found(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = api_trace._TRACER_PROVIDER
    monkeypatch.setattr(api_trace, "_TRACER_PROVIDER", None)
    handler = OneByOne(lambda _: None)
    handle(handler, message())
    assert spans() == []
    monkeypatch.setattr(api_trace, "_TRACER_PROVIDER", provider)
    handle(handler, message())
    assert len(spans()) == 1


def test_a_message_that_is_handled_alone_is_a_child_of_its_sender(spans: Spans) -> None:
    handle(OneByOne(lambda _: None), message(7, json.dumps({"traceparent": PARENT})))
    [span] = spans()
    assert span.name == "process email"
    assert span.kind is SpanKind.CONSUMER
    assert dict(span.attributes or {}) == {
        "messaging.system": "rowqueue",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "email",
        "messaging.message.id": "7",
        "messaging.message.body.size": 7,
    }
    assert span.parent is not None
    assert format(span.parent.trace_id, "032x") == TRACE
    assert [format(link.context.trace_id, "032x") for link in span.links] == [TRACE]
    assert span.status.status_code is StatusCode.UNSET


def test_a_batch_is_linked_to_its_senders(spans: Spans) -> None:
    traced = message(2, json.dumps({"traceparent": PARENT}))
    handle(WholeBatch(lambda _: None), message(1), traced, message(3, '{"mine": 1}'))
    [span] = spans()
    attributes = dict(span.attributes or {})
    assert attributes["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in attributes
    assert span.parent is None
    [link] = span.links
    assert dict(link.attributes or {}) == {"messaging.message.id": "2"}


def test_the_span_of_a_failure_has_its_error_type(spans: Spans) -> None:
    def fail(failed: Message) -> None:
        raise {1: ValueError("no"), 2: Retry("later"), 3: DeadLetter("never")}[failed.id]

    handle(OneByOne(fail), message(1), message(2), message(3))
    found = [(span.status.status_code, (span.attributes or {})["error.type"]) for span in spans()]
    names = ["ValueError", "rowqueue.messages.Retry", "rowqueue.messages.DeadLetter"]
    assert found == [(StatusCode.ERROR, name) for name in names]


def test_the_span_of_a_batch_says_how_many_messages_failed(spans: Spans) -> None:
    handled = handle(WholeBatch(lambda batch: {batch[0].id: "no"}), message(1), message(2))
    assert len(handled.failures) == 1
    [span] = spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "1 of 2 messages failed"
    assert (span.attributes or {})["error.type"] == "_OTHER"


@pytest.mark.product("postgresql")
def test_sending_is_a_span_whose_context_the_message_carries(
    spans: Spans, metrics: Metrics, database: Database, session: Session, queue: str
) -> None:
    with psycopg.connect(database.url) as connection:
        sent = rowqueue.send(connection, queue, "body")
        rowqueue.send_batch(connection, type=queue, bodies=["a", "b"])
    with psycopg.connect(database.url) as connection, pytest.raises(rowqueue.QueueError):
        rowqueue.send(connection, queue, "body", priority=100_000)
    async_sent = asyncio.run(_send_async(database.url, queue))
    first, batch, failed, last = spans()
    assert (first.name, first.kind) == (f"send {queue}", SpanKind.PRODUCER)
    assert dict(first.attributes or {}) == {
        "messaging.system": "rowqueue",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": queue,
        "messaging.message.id": str(sent.id),
    }
    assert (batch.name, batch.kind) == (f"send_batch {queue}", SpanKind.CLIENT)
    assert (batch.attributes or {})["messaging.batch.message_count"] == 2
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "rowqueue.databases.base.QueueError"
    assert (last.attributes or {})["messaging.message.id"] == str(async_sent)
    rows = {row["id"]: row["headers"] for row in session.call("peek", queue, "N", 10)}
    for id, span in ((sent.id, first), (async_sent, last)):
        assert span.context is not None
        assert json.loads(rows[id])["traceparent"].split("-")[2] == format(span.context.span_id, "016x")
    points = metrics()["messaging.client.sent.messages"]
    counts = {
        (point.attributes["messaging.operation.name"], point.attributes.get("error.type")): point.value
        for point in points
    }
    error = "rowqueue.databases.base.QueueError"
    assert counts == {("send", None): 2, ("send_batch", None): 2, ("send", error): 1}
    assert sum(point.count for point in metrics()["messaging.client.operation.duration"]) == 4


@pytest.mark.product("postgresql")
def test_a_published_message_carries_the_context_to_each_queue(
    spans: Spans, metrics: Metrics, database: Database, session: Session, queue: str
) -> None:
    for name in (queue, f"{queue}.copy"):
        session.call("bind_topic", queue, name)
    with psycopg.connect(database.url) as connection:
        assert rowqueue.publish(connection, topic=queue, body="body") == 2
    [span] = spans()
    assert (span.name, span.kind) == (f"publish {queue}", SpanKind.PRODUCER)
    assert "messaging.batch.message_count" not in (span.attributes or {})
    assert span.context is not None
    for name in (queue, f"{queue}.copy"):
        [row] = session.call("peek", name)
        assert json.loads(row["headers"])["traceparent"].split("-")[2] == format(span.context.span_id, "016x")
    [point] = metrics()["messaging.client.sent.messages"]
    assert point.value == 1  # one message for any number of queues, as `runner topic publish` counts it


async def _send_async(url: str, queue: str) -> int:
    connection = await psycopg.AsyncConnection.connect(url)
    async with connection:
        sent = await rowqueue.aio.send(connection, queue, "body")
    return sent.id


# ---- metrics ---------------------------------------------------------------------------------------------------------


def test_handlers_are_measured_by_the_conventions(metrics: Metrics) -> None:
    def fail(_: Message) -> None:
        raise ValueError

    handle(OneByOne(lambda _: None), message(1), message(2))
    handle(OneByOne(fail), message(3))
    handle(WholeBatch(lambda _: None), message(4), message(5))
    found = metrics()
    assert found.keys() == {"messaging.process.duration", "messaging.client.consumed.messages"}
    common = {
        "messaging.system": "rowqueue",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "email",
    }
    consumed = {point.attributes.get("error.type"): point for point in found["messaging.client.consumed.messages"]}
    assert {error: point.value for error, point in consumed.items()} == {None: 4, "ValueError": 1}
    assert dict(consumed[None].attributes) == common
    durations = {point.attributes.get("error.type"): point for point in found["messaging.process.duration"]}
    assert {error: point.count for error, point in durations.items()} == {None: 3, "ValueError": 1}
    assert durations[None].explicit_bounds[:3] == (0.005, 0.01, 0.025)


def test_with_metrics_alone_the_context_is_still_passed_on(metrics: Metrics) -> None:
    noted: list[str | None] = []
    handle(OneByOne(lambda _: noted.append(injected(None))), message(1, json.dumps({"traceparent": PARENT})))
    assert json.loads(noted[0] or "")["traceparent"] == PARENT
    assert "messaging.process.duration" in metrics()


@pytest.mark.product("postgresql")
def test_a_consumer_continues_the_trace_of_the_sender(
    spans: Spans, metrics: Metrics, database: Database, queue: str
) -> None:
    with psycopg.connect(database.url) as connection:
        rowqueue.send(connection, queue, "body")
    rowqueue.Consumer(database.url, queue, lambda _: None, drain=True).run()
    sent, processed = spans()
    assert sent.context is not None
    assert processed.context is not None
    assert processed.parent is not None
    assert processed.name == f"process {queue}"
    assert processed.context.trace_id == sent.context.trace_id
    assert processed.parent.span_id == sent.context.span_id
    assert metrics()["messaging.client.consumed.messages"][0].value == 1
