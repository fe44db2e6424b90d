"""What a person can see in one database: functions over `Looking`, which calls procedures that only read."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast

from .. import pages
from ..databases import DatabaseError, Forbidden, Row, Session

T = TypeVar("T")

MINUTES = 60  # of a sparkline and a chart
BODY_LENGTH = 300  # characters of each body in a list
WHOLE_BODY = 16_777_216
SIZE = 50
STATES = {"N": "new", "A": "active", "E": "dead", "C": "archived"}
FORBIDDEN_SECONDS = 60.0  # between calls of a forbidden procedure: each one is an error in the server's log
HEALTH_SECONDS = 10.0  # queue_health reads much: its answer is reused for this long
OVERVIEW_SECONDS = 1.0
ERRORS_SECONDS = 5.0  # and list_errors reads 10,000 dead letters
SEARCH_SECONDS = 3.0


class TooSlow(DatabaseError):
    """The request would take too long; the message says what to request instead."""


class Looking:
    """Calls that only read, over one session. `left_out`: what the user may not see, such as "errors"."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.left_out: list[str] = []
        self._kept: dict[Any, tuple[float, Any]] = {}
        self._forbidden_until: dict[str, float] = {}

    def rows(self, what: str, procedure: str, *arguments: Any) -> list[Row]:
        """The rows of a call. If it is forbidden: no rows, and `what` is added to left_out. Raises as Session.call."""
        now = time.monotonic()
        if now >= self._forbidden_until.get(procedure, now):
            try:
                return self.session.call(procedure, *arguments)
            except Forbidden:
                self._forbidden_until[procedure] = now + FORBIDDEN_SECONDS
        if what not in self.left_out:
            self.left_out.append(what)
        return []

    def kept(self, key: Any, seconds: float, work: Callable[[], T]) -> T:
        """The result of `work`, cached for `seconds`, or for four times its duration if that is longer."""
        now = time.monotonic()
        until, value = self._kept.get(key, (now, None))
        if now >= until:
            self._kept = {name: entry for name, entry in self._kept.items() if now < entry[0]}
            value = work()
            took = time.monotonic() - now
            self._kept[key] = (now + took + max(seconds, 4 * took), value)
        return cast(T, value)

    def forget(self) -> None:
        """Clear the cached answers, after a change."""
        self._kept = {}

    def health(self) -> list[Row]:
        """The rows of queue_health, at most some seconds old."""
        return self.kept("health", HEALTH_SECONDS, lambda: self.rows("health", "queue_health"))


@dataclass(frozen=True)
class Minute:
    """The counts of one queue in one minute; see the procedure `throughput`."""

    minute: datetime
    sent: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0
    waited_ms: int = 0
    busy_ms: int = 0


@dataclass(frozen=True)
class Queue:
    """One queue in a list. If `capped`, counts stop at 10,000. `policy`: a row of list_queues; None if not visible.

    `minutes`: the last hour, oldest first, without gaps; the last one is incomplete. `rate`: messages completed in the
    last whole minute. `consumers`: the number of working ones.
    """

    type: str
    ready: int
    delayed: int
    active: int
    expired: int
    dead: int
    oldest_ready_seconds: float | None
    capped: bool
    paused: bool
    policy: Row | None
    minutes: tuple[Minute, ...]
    consumers: int

    @property
    def rate(self) -> int:
        return self.minutes[-2].completed

    @property
    def ordered(self) -> bool:
        return bool(self.policy and self.policy["ordered"])


@dataclass(frozen=True)
class Overview:
    """All queues of a database by name, their consumers, and the health checks. `now`: the server's clock."""

    now: datetime
    queues: list[Queue]
    consumers: list[Row]
    health: list[Row]
    left_out: list[str]

    @property
    def hurts(self) -> list[Row]:
        """The health checks that are not ok, the worst first."""
        return sorted((row for row in self.health if row["verdict"] != "ok"), key=lambda row: row["verdict"] != "bad")


@dataclass(frozen=True)
class QueueDetail:
    """One queue, its messages in one state, and all that belongs to it. `errors`: rows of list_errors."""

    now: datetime
    queue: Queue
    state: str
    messages: list[Row]
    errors: list[Row]
    consumers: list[Row]
    schedules: list[Row]
    bindings: list[Row]
    left_out: list[str]


@dataclass(frozen=True)
class MessageDetail:
    """One message: its row of find_messages, None when it no longer exists, and its row of get_result, or None."""

    now: datetime
    message: Row | None
    result: Row | None
    left_out: list[str]


def recent_overview(looking: Looking) -> Overview:
    """As `overview`, but several viewers share an answer, which is read once per second, or less often if slow."""
    return looking.kept("overview", OVERVIEW_SECONDS, lambda: overview(looking))


def overview(looking: Looking, with_health: bool = True) -> Overview:
    """All queues with their last hour, the consumers, and the health checks if `with_health`: these may be slow."""
    looking.left_out.clear()
    now = looking.session.now()
    stats = looking.rows("queues", "queue_stats")
    policies = {row["type"]: row for row in looking.rows("policies", "list_queues")}
    history = minutes(looking, None, now)
    consumers = pages.consumers(partial(looking.rows, "consumers"))
    lines = {row["type"]: row for row in stats}
    for name in {*policies, *history} - lines.keys():  # an empty queue still has a policy and a history
        lines[name] = _empty(name, policies.get(name))
    queues = [_queue(row, policies.get(name), history, consumers, now) for name, row in sorted(lines.items())]
    health = looking.health() if with_health else []
    return Overview(now, queues, consumers, health, list(looking.left_out))


def queue(
    looking: Looking,
    type: str,
    state: str = "N",
    size: int = SIZE,
    body_length: int = BODY_LENGTH,
    with_errors: bool = True,
) -> QueueDetail:
    """One queue; an unknown one is empty. `with_errors`: also group the newest 10,000 dead letters by error.

    Raises QueueError for an invalid type or state.
    """
    looking.left_out.clear()
    now = looking.session.now()
    stats = looking.rows("queues", "queue_stats", type)
    policies = looking.rows("policies", "list_queues", type)
    history = minutes(looking, type, now)
    messages = looking.rows("messages", "peek", type, state, size, body_length)
    consumers = pages.consumers(partial(looking.rows, "consumers"), type)
    schedules = looking.rows("schedules", "list_schedules", type)
    bindings = [row for row in looking.rows("bindings", "list_bindings") if row["type"] == type]
    policy = policies[0] if policies else None
    line = _queue(stats[0] if stats else _empty(type, policy), policy, history, consumers, now)
    errors: list[Row] = []
    if line.dead and with_errors:
        key = ("errors", type, line.dead)
        errors = looking.kept(key, ERRORS_SECONDS, lambda: looking.rows("errors", "list_errors", type, 100))
    return QueueDetail(now, line, state, messages, errors, consumers, schedules, bindings, list(looking.left_out))


def message(looking: Looking, id: int, body_length: int = WHOLE_BODY) -> MessageDetail:
    """One message in any state, with its whole body."""
    looking.left_out.clear()
    found = looking.rows("message", "find_messages", None, id, None, None, 1, body_length)
    result = looking.rows("result", "get_result", id)
    return MessageDetail(
        looking.session.now(), found[0] if found else None, result[0] if result else None, list(looking.left_out)
    )


def search(
    looking: Looking,
    type: str | None = None,
    id: int | None = None,
    dedup_key: str | None = None,
    group_key: str | None = None,
    size: int = SIZE,
    body_length: int = BODY_LENGTH,
) -> list[Row]:
    """Find messages by id, dedup_key or group_key. By a key without a type, all queues are searched in turn.

    Raises TooSlow when that takes more than SEARCH_SECONDS.
    """
    looking.left_out.clear()
    types = [type]
    if type is None and id is None:
        types = [row["type"] for row in looking.rows("queues", "queue_stats")]
    deadline = time.monotonic() + SEARCH_SECONDS
    found: list[Row] = []
    for name in types:
        if time.monotonic() > deadline:
            raise TooSlow("there are too many queues to search all of them: name one")
        if len(found) < size:
            keys = (name, id, dedup_key, group_key)
            found += looking.rows("messages", "find_messages", *keys, size - len(found), body_length)
    return found


# Lists that are one call each, by the names of their pages.
LISTS: dict[str, str] = {
    "consumers": "list_consumers",
    "schedules": "list_schedules",
    "bindings": "list_bindings",
    "feeds": "feed_stats",
    "subscriptions": "list_subscriptions",
    "tables": "list_tables",
    "limits": "list_queues",
    "health": "queue_health",
}


def listed(looking: Looking, name: str) -> list[Row]:
    """The rows of one of LISTS; for `limits`, only queues that have one. Forbidden lists are in looking.left_out."""
    looking.left_out.clear()
    if name == "health":
        return looking.health()
    if name == "consumers":
        return pages.consumers(partial(looking.rows, name))
    rows = looking.rows(name, LISTS[name])
    return [row for row in rows if has_limits(row)] if name == "limits" else rows


def table_rows(looking: Looking, name: str, state: str = "E", size: int = SIZE) -> list[Row]:
    """Rows of a polling table in a state: A claimed, N waiting for a retry, E dead."""
    looking.left_out.clear()
    return looking.rows("rows", "peek_rows", name, state, size)


def has_limits(policy: Row) -> bool:
    """Whether a policy limits claims."""
    return any(policy[name] for name in ("max_active", "rate", "group_max_active", "group_rate"))


def minutes(looking: Looking, type: str | None, now: datetime, count: int = MINUTES) -> dict[str, list[Minute]]:
    """The last minutes of each queue for which a consumer has reported, without gaps, oldest first."""
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=count - 1)
    found: dict[str, dict[datetime, Minute]] = {}
    for row in pages.throughput(partial(looking.rows, "throughput"), type, first):
        values = {name: value or 0 for name, value in row.items() if name not in ("type", "minute")}
        found.setdefault(row["type"], {})[row["minute"]] = Minute(row["minute"], **values)
    times = [first + timedelta(minutes=number) for number in range(count)]
    return {name: [known.get(at, Minute(at)) for at in times] for name, known in found.items()}


def _empty(type: str, policy: Row | None) -> Row:
    counts = dict.fromkeys(("ready", "delayed", "active", "expired", "dead", "capped"), 0)
    return {"type": type, **counts, "oldest_ready_seconds": None, "paused": policy["paused"] if policy else 0}


def _queue(
    stats: Row, policy: Row | None, history: dict[str, list[Minute]], consumers: Iterable[Row], now: datetime
) -> Queue:
    name = stats["type"]
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1)
    past = history.get(name) or [Minute(first + timedelta(minutes=number)) for number in range(MINUTES)]
    flags = {flag: bool(stats[flag]) for flag in ("capped", "paused")}
    at_work = sum(row["type"] == name and row["status"] == "working" for row in consumers)
    return Queue(**(stats | flags), policy=policy, minutes=tuple(past), consumers=at_work)
