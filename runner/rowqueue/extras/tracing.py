"""OpenTelemetry: spans, metrics, and a trace from the sender to the handler. `rowqueue.tracing` loads it.

Names follow the semantic conventions for messaging. A provider may be set at any time, so each batch checks for one.
Without a provider no span is made, and the cost is 0.2 microseconds per message.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace

from ..messages import Item, Snoozed
from ..tracing import NOTHING

SYSTEM = "rowqueue"
# The buckets that the conventions recommend.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
# The functions that send, and whether their messages carry the context of the span.
_SENDERS = {"send": True, "publish": True, "send_batch": False}


def _is_real(provider: object) -> bool:
    """Whether a provider is an SDK's. The API's own provider does nothing but forward to one that is set later."""
    return not type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


@dataclass(frozen=True)
class _Instruments:
    """The metrics of the conventions, created once per provider."""

    process: Any
    operation: Any
    consumed: Any
    sent: Any


@cache
def _made_tracer(provider: Any) -> Any:
    return provider.get_tracer(SYSTEM)


@cache
def _made_instruments(provider: Any) -> _Instruments:
    meter = provider.get_meter(SYSTEM)

    def duration(name: str, description: str) -> Any:
        return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_SECONDS)

    def messages(name: str, description: str) -> Any:
        return meter.create_counter(name, "{message}", description)

    return _Instruments(
        duration("messaging.process.duration", "Time in the handler."),
        duration("messaging.client.operation.duration", "Time to send."),
        messages("messaging.client.consumed.messages", "Messages that the handler received."),
        messages("messaging.client.sent.messages", "Messages sent, including those that failed to be sent."),
    )


def _tracer() -> Any:
    """The tracer that makes spans; None when no provider would record them."""
    provider = trace.get_tracer_provider()
    return _made_tracer(provider) if _is_real(provider) else None


def _instruments() -> _Instruments | None:
    provider = metrics.get_meter_provider()
    return _made_instruments(provider) if _is_real(provider) else None


def is_recording() -> bool:
    """Whether a provider records spans or metrics."""
    return _tracer() is not None or _instruments() is not None


# ---- sending -----------------------------------------------------------------------------------------------------


def injected(headers: str | None) -> str | None:
    """The headers of a message with the context of the current span added.

    They stay unchanged without a span, when they are not JSON, and when they already have a context.
    """
    if not trace.get_current_span().get_span_context().is_valid:
        return headers
    carrier = _carrier(headers)
    if carrier is None or not carrier.keys().isdisjoint(propagate.get_global_textmap().fields):
        return headers
    propagate.inject(carrier)
    return json.dumps(carrier, ensure_ascii=False)


@dataclass
class Sending:
    """The result of a call that sends: the id of the message, or how many messages."""

    id: int | None = None
    count: int | None = None


def sending(
    function: str, arguments: Sequence[Any], named: Mapping[str, Any]
) -> AbstractContextManager[Sending | None]:
    """A span around a call of one of the package's functions, if it sends and a provider records spans."""
    if function not in _SENDERS:
        return NOTHING
    tracer, instruments = _tracer(), _instruments()
    if tracer is None and instruments is None:
        return NOTHING
    destination = arguments[0] if arguments else named.get("type", named.get("topic"))
    return _sending(tracer, instruments, function, str(destination))


@contextmanager
def _sending(tracer: Any, instruments: _Instruments | None, function: str, destination: str) -> Iterator[Sending]:
    sent = Sending()
    attributes = _attributes("send", function, destination)
    kind = trace.SpanKind.PRODUCER if _SENDERS[function] else trace.SpanKind.CLIENT
    began = time.perf_counter()
    try:
        with _span(tracer, f"{function} {destination}", kind=kind, attributes=attributes) as span:
            yield sent
            if span is not None and sent.id is not None:
                span.set_attribute("messaging.message.id", str(sent.id))
            # A publish counts as one message, for any number of queues.
            if span is not None and sent.count is not None and function == "send_batch":
                span.set_attribute("messaging.batch.message_count", sent.count)
    except BaseException as error:
        attributes["error.type"] = _name(error)
        raise
    finally:
        if instruments is not None:
            instruments.operation.record(time.perf_counter() - began, attributes)
            instruments.sent.add((sent.count or 0) if function == "send_batch" else 1, attributes)


# ---- handling ----------------------------------------------------------------------------------------------------


def consuming(messages: Sequence[Item], is_batch: bool, failures: Sequence[object]) -> AbstractContextManager[object]:
    """As `rowqueue.tracing.consuming`.

    Without a provider, the context of a single message is still passed on to what its handler sends and calls.
    """
    is_batch = is_batch or len(messages) > 1
    tracer, instruments = _tracer(), _instruments()
    if tracer is not None or instruments is not None:
        return _processing(tracer, instruments, messages, is_batch, failures)
    context = None if is_batch else _extracted(messages[0].headers)
    return NOTHING if context is None else _within(context)


@contextmanager
def _within(context: Any) -> Iterator[None]:
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


@contextmanager
def _processing(
    tracer: Any,
    instruments: _Instruments | None,
    messages: Sequence[Item],
    is_batch: bool,
    failures: Sequence[object],
) -> Iterator[None]:
    attributes = _attributes("process", "process", messages[0].type)
    failed_before = len(failures)
    began = time.perf_counter()
    snoozed: Snoozed | None = None
    try:
        with _process_span(tracer, messages, is_batch, attributes) as span:
            try:
                yield
            except Snoozed as end:  # no error
                snoozed = end
            if failed := len(failures) - failed_before:
                attributes["error.type"] = "_OTHER"  # the handler gave a text, not an exception
                if span is not None:
                    span.set_attribute("error.type", "_OTHER")
                    text = f"{failed} of {len(messages)} messages failed"
                    span.set_status(trace.Status(trace.StatusCode.ERROR, text))
        if snoozed is not None:
            raise snoozed
    except BaseException as error:
        if error is not snoozed:
            attributes["error.type"] = _name(error)
        raise
    finally:
        if instruments is not None:
            instruments.process.record(time.perf_counter() - began, attributes)
            instruments.consumed.add(len(messages), attributes)


def _process_span(
    tracer: Any, messages: Sequence[Item], is_batch: bool, attributes: dict[str, Any]
) -> AbstractContextManager[Any]:
    if tracer is None:
        context = None if is_batch else _extracted(messages[0].headers)
        return NOTHING if context is None else _within(context)
    found = [(message, _extracted(message.headers)) for message in messages if message.headers]
    links = []
    for message, context in found:
        creator = trace.get_current_span(context).get_span_context() if context is not None else None
        if creator is not None and creator.is_valid:
            links.append(trace.Link(creator, {"messaging.message.id": str(message.id)} if is_batch else None))
    if is_batch:
        about: dict[str, Any] = {"messaging.batch.message_count": len(messages)}
    else:
        body = getattr(messages[0], "body", None)
        size = {} if body is None else {"messaging.message.body.size": len(body.encode("utf-8", "replace"))}
        about = {"messaging.message.id": str(messages[0].id), **size}
    return _span(
        tracer,
        f"process {messages[0].type}",
        context=found[0][1] if found and not is_batch else None,
        kind=trace.SpanKind.CONSUMER,
        links=links,
        attributes=attributes | about,
    )


@contextmanager
def _span(tracer: Any, name: str, **options: Any) -> Iterator[Any]:
    """A span that is current inside the block; None without a tracer."""
    if tracer is None:
        yield None
        return
    with tracer.start_as_current_span(name, **options) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", _name(error))
            raise


def _attributes(type: str, name: str, destination: str) -> dict[str, Any]:
    """The attributes that spans and metrics share."""
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.type": type,
        "messaging.operation.name": name,
        "messaging.destination.name": destination,
    }


def _name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _extracted(headers: str | None) -> Any:
    """The context in the headers of a message; None without one."""
    # Most headers have none: searching the text is faster than parsing it.
    if not headers or not any(field in headers for field in propagate.get_global_textmap().fields):
        return None
    carrier = _carrier(headers) or {}
    return propagate.extract({key: value for key, value in carrier.items() if isinstance(value, str)})


def _carrier(headers: str | None) -> dict[str, Any] | None:
    """Headers as a JSON object; None when they are something else."""
    if not headers:
        return {}
    try:
        value = json.loads(headers)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
