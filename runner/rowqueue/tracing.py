"""The hook for OpenTelemetry: rowqueue.extras.tracing makes spans and metrics, and passes a trace on in headers.

It is loaded when other code has imported opentelemetry-api: without that there are no providers and no spans. A message
with headers loads it too, if it is installed: what its handler sends and calls continues the sender's trace.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

from .messages import Item

NOTHING: AbstractContextManager[Any] = nullcontext()
# If one of these environment variables is set, the API loads a provider.
_LOADS_PROVIDER = any(name in os.environ for name in ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER"))


@cache
def _extra() -> Any:
    """The module rowqueue.extras.tracing; None when opentelemetry-api is not installed."""
    try:
        return import_module("rowqueue.extras.tracing")
    except ImportError:
        return None


def _used() -> Any:
    """As `_extra`, but None while nobody uses OpenTelemetry."""
    is_loaded = "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules
    return _extra() if is_loaded or _LOADS_PROVIDER else None


def injected(headers: str | None) -> str | None:
    """The headers of a message with the context of the current span, if there is one."""
    found = _used()
    return headers if found is None else found.injected(headers)


def sending(function: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """A span around a call of one of the package's functions, if it sends and a provider records spans."""
    found = _used()
    return NOTHING if found is None else found.sending(function, arguments, named)


def consuming(*messages: Item, is_batch: bool = False, failures: Sequence[object] = ()) -> AbstractContextManager[Any]:
    """A span around a handler: the child of the message's sender, or linked to all senders of a batch.

    `failures`: a list to which each message that fails without an exception is added.
    """
    found = _extra() if any(message.headers for message in messages) else _used()
    return NOTHING if found is None or not messages else found.consuming(messages, is_batch, failures)


def for_each() -> Callable[[Item], AbstractContextManager[Any]]:
    """The context manager around a handler for each message of a batch; checks for a provider once."""
    found = _used()
    return consuming if found is not None and found.is_recording() else _carried


def _carried(message: Item) -> AbstractContextManager[Any]:
    return consuming(message) if message.headers else NOTHING
