"""OpenTelemetry, where opentelemetry-api is installed: a trace goes on from the sender to the handler."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from .messages import Item


@cache
def _api() -> Any:
    """OpenTelemetry's package, loaded when first used; None when the extra `otel` is not installed."""
    try:
        import opentelemetry.propagate
        import opentelemetry.trace
    except ImportError:
        return None
    return opentelemetry


def injected(headers: str | None) -> str | None:
    """The headers of a message to send, with the current span in them; as they are without one or when not JSON."""
    # Whoever has begun a span has loaded it.
    api = _api() if "opentelemetry.trace" in sys.modules else None
    if api is None or not api.trace.get_current_span().get_span_context().is_valid:
        return headers
    carrier = _carrier(headers)
    if carrier is None:
        return headers
    api.propagate.inject(carrier)
    return json.dumps(carrier, ensure_ascii=False)


@contextmanager
def consuming(*messages: Item) -> Iterator[None]:
    """A consumer span around a handler: child of the one message's sender, or linked to all senders of a batch."""
    api = _api()
    if api is None or not messages:
        yield
        return
    carriers = [_carrier(message.headers) for message in messages if message.headers]
    contexts = [api.propagate.extract({k: v for k, v in c.items() if isinstance(v, str)}) for c in carriers if c]
    links = [api.trace.Link(api.trace.get_current_span(context).get_span_context()) for context in contexts]
    with api.trace.get_tracer("rowqueue").start_as_current_span(
        f"process {messages[0].type}",
        context=contexts[0] if contexts and len(messages) == 1 else None,
        kind=api.trace.SpanKind.CONSUMER,
        links=links if len(messages) > 1 else None,
        attributes={"messaging.system": "rowqueue", "messaging.batch.message_count": len(messages)},
    ):
        yield


def _carrier(headers: str | None) -> dict[str, Any] | None:
    """Headers as a JSON object; None when they are something else."""
    if not headers:
        return {}
    try:
        value = json.loads(headers)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
