"""rowqueue: a message queue in the database you already run.

The queue's logic is in stored procedures; the functions of this package call them.
"""

from typing import TYPE_CHECKING, Any

from .messages import Discard, Message, Record, Retry, RowMessage

if TYPE_CHECKING:
    from . import aio, testing
    from .calling import (
        claim,
        claim_any,
        complete,
        count_attempt,
        dead_letter,
        extend_lease,
        fail,
        finish,
        get_result,
        publish,
        send,
        send_batch,
        take,
    )
    from .databases import Conflict, DatabaseError, Disconnected, Forbidden, QueueError, ReadOnly, SchemaMissing
    from .requests import Result, Sent
    from .service import Consumer

__all__ = [
    "Conflict",
    "Consumer",
    "DatabaseError",
    "Discard",
    "Disconnected",
    "Forbidden",
    "Message",
    "QueueError",
    "ReadOnly",
    "Record",
    "Result",
    "Retry",
    "RowMessage",
    "SchemaMissing",
    "Sent",
    "aio",
    "claim",
    "claim_any",
    "complete",
    "count_attempt",
    "dead_letter",
    "extend_lease",
    "fail",
    "finish",
    "get_result",
    "publish",
    "send",
    "send_batch",
    "take",
    "testing",
]

# Imported on first use: a handler's module needs none of these, and no driver is loaded before the first call.
_MODULES = {
    "calling": (
        *("claim", "claim_any", "complete", "count_attempt", "dead_letter", "extend_lease", "fail", "finish"),
        *("get_result", "publish", "send", "send_batch", "take"),
    ),
    "databases": (
        *("Conflict", "DatabaseError", "Disconnected", "Forbidden", "QueueError", "ReadOnly", "SchemaMissing"),
    ),
    "requests": ("Result", "Sent"),
    "service": ("Consumer",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("aio", "testing"):
        return import_module(f"{__name__}.{name}")
    if name in _PLACES:
        found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
