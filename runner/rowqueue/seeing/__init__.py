"""What a person wants to see of one database, and may change there: for `runner top`, `runner web` and their like.

Looking is plain functions over `Looking`, which calls the contract and leaves out, and notes, what the role may not
call. A change is data, a `Change`, so that a screen can ask its question first. `Watched` is one database with its
connection in a thread of its own: one that is away never keeps the others waiting.
"""

from . import changes
from .changes import Change, perform
from .looking import (
    BODY_LENGTH,
    LISTS,
    MINUTES,
    SIZE,
    STATES,
    WHOLE_BODY,
    Looking,
    MessageDetail,
    Minute,
    Overview,
    Queue,
    QueueDetail,
    has_limits,
    listed,
    message,
    overview,
    queue,
    recent_overview,
    search,
    table_rows,
)
from .watched import ANSWER_SECONDS, Away, Watched

__all__ = [
    "ANSWER_SECONDS",
    "BODY_LENGTH",
    "LISTS",
    "MINUTES",
    "SIZE",
    "STATES",
    "WHOLE_BODY",
    "Away",
    "Change",
    "Looking",
    "MessageDetail",
    "Minute",
    "Overview",
    "Queue",
    "QueueDetail",
    "Watched",
    "changes",
    "has_limits",
    "listed",
    "message",
    "overview",
    "perform",
    "queue",
    "recent_overview",
    "search",
    "table_rows",
]
