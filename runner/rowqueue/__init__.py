"""rowqueue: a message queue in the database you already run.

The queue's logic is in stored procedures; the functions of this package call them.
"""

from typing import TYPE_CHECKING, Any

from .errors import Error
from .messages import DeadLetter, Message, Retry

if TYPE_CHECKING:
    from . import aio, testing
    from .calling import (
        cancel,
        claim_any,
        claim_batch,
        complete,
        complete_batch,
        count_attempt,
        dead_letter,
        extend_lease,
        fail,
        finish_batch,
        finish_messages,
        get_result,
        get_state,
        publish,
        release_batch,
        send,
        send_batch,
        take_batch,
    )
    from .consume.consumer import Consumer
    from .databases import (
        AreaMissing,
        Cancelled,
        Conflict,
        DatabaseError,
        Disconnected,
        LeaseLost,
        NotAllowed,
        QueueError,
        ReadOnly,
        SchemaMissing,
    )
    from .extras.rows import Record, RowMessage
    from .requests import Result, Sent

__all__ = [
    "AreaMissing",
    "Cancelled",
    "Conflict",
    "Consumer",
    "DatabaseError",
    "DeadLetter",
    "Disconnected",
    "Error",
    "LeaseLost",
    "Message",
    "NotAllowed",
    "QueueError",
    "ReadOnly",
    "Record",
    "Result",
    "Retry",
    "RowMessage",
    "SchemaMissing",
    "Sent",
    "aio",
    "cancel",
    "claim_any",
    "claim_batch",
    "complete",
    "complete_batch",
    "count_attempt",
    "dead_letter",
    "extend_lease",
    "fail",
    "finish_batch",
    "finish_messages",
    "get_result",
    "get_state",
    "publish",
    "release_batch",
    "send",
    "send_batch",
    "take_batch",
    "testing",
]

# Imported on first use: a handler's module needs none of these, and no driver is loaded before the first call.
_PLACES = {
    **dict.fromkeys(__all__, "calling"),
    **dict.fromkeys(("AreaMissing", "Cancelled", "Conflict", "DatabaseError", "Disconnected"), "databases"),
    **dict.fromkeys(("LeaseLost", "NotAllowed", "QueueError", "ReadOnly", "SchemaMissing"), "databases"),
    **dict.fromkeys(("Result", "Sent"), "requests"),
    **dict.fromkeys(("Record", "RowMessage"), "extras.rows"),
    "Consumer": "consume.consumer",
}


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
