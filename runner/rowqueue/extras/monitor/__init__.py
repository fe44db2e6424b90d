"""What a person can see and change in one database: shared by `runner top` and `runner web`.

Functions over `Looking` read. `Looking` calls procedures, and notes what the user may not call. A `Change` is data: a
screen asks its question before making it. `Watched` is one database with its connection in a thread of its own: one
that is unreachable does not delay the others.
"""

from . import changes, incidents
from .changes import Change, counted, perform
from .incidents import Incident, recent_incidents
from .looking import (
    BODY_LENGTH,
    LISTS,
    MINUTES,
    MOST_ROWS,
    QUEUES,
    SIZE,
    STATES,
    WHOLE_BODY,
    MessageDetail,
    Minute,
    Overview,
    Queue,
    QueueDetail,
    by_minute,
    handled,
    has_limits,
    listed,
    message,
    minutes,
    overview,
    queue,
    recent_overview,
    search,
    table_rows,
)
from .reading import MOST_CONSUMERS, Looking
from .watched import ANSWER_SECONDS, Away, Watched

__all__ = [
    "ANSWER_SECONDS",
    "BODY_LENGTH",
    "LISTS",
    "MINUTES",
    "MOST_CONSUMERS",
    "MOST_ROWS",
    "QUEUES",
    "SIZE",
    "STATES",
    "WHOLE_BODY",
    "Away",
    "Change",
    "Incident",
    "Looking",
    "MessageDetail",
    "Minute",
    "Overview",
    "Queue",
    "QueueDetail",
    "Watched",
    "by_minute",
    "changes",
    "counted",
    "handled",
    "has_limits",
    "incidents",
    "listed",
    "message",
    "minutes",
    "overview",
    "perform",
    "queue",
    "recent_incidents",
    "recent_overview",
    "search",
    "table_rows",
]
