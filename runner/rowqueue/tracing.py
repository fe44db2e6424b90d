"""OpenTelemetry, if opentelemetry-api is installed: spans, metrics, and a trace from the sender to the handler.

Names follow the semantic conventions for messaging. A provider may be set at any time, so each batch checks for one.
Without a provider no span is made, and the cost is 0.2 microseconds per message.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from .messages import Item

SYSTEM = "rowqueue"
# The buckets that the conventions recommend.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_NOTHING: AbstractContextManager[Any] = nullcontext()
# If one of these environment variables is set, the API loads a provider.
_LOADS_PROVIDER = any(name in os.environ for name in ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER"))
# The functions that send, and whether their messages carry the context of the span.
_SENDERS = {"send": True, "publish": True, "send_batch": False}


@cache
def _api() -> Any:
    """OpenTelemetry's package, imported on first use; None when the extra `otel` is not installed."""
    try:
        import opentelemetry.context
        import opentelemetry.metrics
        import opentelemetry.propagate
        import opentelemetry.trace
    except ImportError:
        return None
    return opentelemetry


def _used_api() -> Any:
    """OpenTelemetry's package if other code has imported it; None otherwise: there are no providers or spans then."""
    is_loaded = "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
    return _api() if is_loaded or _LOADS_PROVIDER else None


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


def _tracer(api: Any) -> Any:
    """The tracer that makes spans; None when no provider would record them."""
    provider = api.trace.get_tracer_provider()
    return _made_tracer(provider) if _is_real(provider) else None


def _instruments(api: Any) -> _Instruments | None:
    provider = api.metrics.get_meter_provider()
    return _made_instruments(provider) if _is_real(provider) else None


# ---- sending -----------------------------------------------------------------------------------------------------


def injected(headers: str | None) -> str | None:
    """The headers of a message with the context of the current span added.

    They stay unchanged without a span, when they are not JSON, and when they already have a context.
    """
    api = _used_api()
    if api is None or not api.trace.get_current_span().get_span_context().is_valid:
        return headers
    carrier = _carrier(headers)
    if carrier is None or not carrier.keys().isdisjoint(api.propagate.get_global_textmap().fields):
        return headers
    api.propagate.inject(carrier)
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
    api = _used_api() if function in _SENDERS else None
    if api is None:
        return _NOTHING
    tracer, instruments = _tracer(api), _instruments(api)
    if tracer is None and instruments is None:
        return _NOTHING
    destination = arguments[0] if arguments else named.get("type", named.get("topic"))
    return _sending(api, tracer, instruments, function, str(destination))


@contextmanager
def _sending(
    api: Any, tracer: Any, instruments: _Instruments | None, function: str, destination: str
) -> Iterator[Sending]:
    sent = Sending()
    attributes = _attributes("send", function, destination)
    kind = api.trace.SpanKind.PRODUCER if _SENDERS[function] else api.trace.SpanKind.CLIENT
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


def consuming(
    *messages: Item, is_batch: bool = False, failures: Sequence[object] = ()
) -> AbstractContextManager[object]:
    """A span around a handler: the child of the message's sender, or linked to all senders of a batch.

    `failures`: a list to which each message that fails without an exception is added. Without a provider, the context
    of a single message is still passed on to what its handler sends and calls.
    """
    carries = any(message.headers for message in messages)
    api = _api() if carries else _used_api()
    if api is None or not messages:
        return _NOTHING
    tracer, instruments = _tracer(api), _instruments(api)
    if tracer is None and instruments is None:
        if not carries or is_batch or len(messages) > 1:
            return _NOTHING
        context = _extracted(api, messages[0].headers)
        return _NOTHING if context is None else _within(api, context)
    return _processing(api, tracer, instruments, messages, is_batch or len(messages) > 1, failures)


def for_each() -> Callable[[Item], AbstractContextManager[object]]:
    """The context manager around a handler for each message of a batch; checks for a provider once."""
    api = _used_api()
    is_told = api is not None and (_tracer(api) is not None or _instruments(api) is not None)
    return consuming if is_told else _carried


def _carried(message: Item) -> AbstractContextManager[object]:
    return consuming(message) if message.headers else _NOTHING


@contextmanager
def _within(api: Any, context: Any) -> Iterator[None]:
    token = api.context.attach(context)
    try:
        yield
    finally:
        api.context.detach(token)


@contextmanager
def _processing(
    api: Any,
    tracer: Any,
    instruments: _Instruments | None,
    messages: Sequence[Item],
    is_batch: bool,
    failures: Sequence[object],
) -> Iterator[None]:
    attributes = _attributes("process", "process", messages[0].type)
    failed_before = len(failures)
    began = time.perf_counter()
    try:
        with _process_span(api, tracer, messages, is_batch, attributes) as span:
            yield
            if failed := len(failures) - failed_before:
                attributes["error.type"] = "_OTHER"  # the handler gave a text, not an exception
                if span is not None:
                    span.set_attribute("error.type", "_OTHER")
                    text = f"{failed} of {len(messages)} messages failed"
                    span.set_status(api.trace.Status(api.trace.StatusCode.ERROR, text))
    except BaseException as error:
        attributes["error.type"] = _name(error)
        raise
    finally:
        if instruments is not None:
            instruments.process.record(time.perf_counter() - began, attributes)
            instruments.consumed.add(len(messages), attributes)


def _process_span(
    api: Any, tracer: Any, messages: Sequence[Item], is_batch: bool, attributes: dict[str, Any]
) -> AbstractContextManager[Any]:
    if tracer is None:
        context = None if is_batch else _extracted(api, messages[0].headers)
        return _NOTHING if context is None else _within(api, context)
    contexts = [(message, _extracted(api, message.headers)) for message in messages if message.headers]
    links = []
    for message, context in contexts:
        creator = api.trace.get_current_span(context).get_span_context() if context is not None else None
        if creator is not None and creator.is_valid:
            links.append(api.trace.Link(creator, {"messaging.message.id": str(message.id)} if is_batch else None))
    if is_batch:
        about: dict[str, Any] = {"messaging.batch.message_count": len(messages)}
    else:
        body = getattr(messages[0], "body", None)
        size = {} if body is None else {"messaging.message.body.size": len(body.encode("utf-8", "replace"))}
        about = {"messaging.message.id": str(messages[0].id), **size}
    return _span(
        tracer,
        f"process {messages[0].type}",
        context=contexts[0][1] if contexts and not is_batch else None,
        kind=api.trace.SpanKind.CONSUMER,
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


def _extracted(api: Any, headers: str | None) -> Any:
    """The context in the headers of a message; None without one."""
    # Most headers have none: searching the text is faster than parsing it.
    if not headers or not any(field in headers for field in api.propagate.get_global_textmap().fields):
        return None
    carrier = _carrier(headers) or {}
    return api.propagate.extract({key: value for key, value in carrier.items() if isinstance(value, str)})


def _carrier(headers: str | None) -> dict[str, Any] | None:
    """Headers as a JSON object; None when they are something else."""
    if not headers:
        return {}
    try:
        value = json.loads(headers)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
