"""What a person can see in one database: functions over `Looking`, which calls procedures that only read.

Each call is a part of the answer: one that fails is noted in `failed`, and the others are shown. With 20,000 queues an
answer is a few calls, and shows those that need attention most.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ...databases import DatabaseError, Row
from ...databases.values import options
from .counts import DRAIN_MINUTES, drain_seconds
from .reading import MOST_CONSUMERS, OVERVIEW_SECONDS, Looking

MINUTES = 60  # of a sparkline and a chart
BODY_LENGTH = 300  # characters of each body in a list
WHOLE_BODY = 16_777_216
SIZE = 50
QUEUES = 100  # queues of an overview; a search finds the others
MOST_ROWS = 500  # of a list
MOST_OF_ONE = 10_000  # consumers of a queue: it cannot have more
MOST_STEPS = 20  # of a message
FEW_QUEUES = 10  # whose consumers are read queue by queue
# With more queues than this, an overview reads only the last minutes: the last hour of all would be a million rows.
WHOLE_HOUR = 1_000
STATES = {"N": "new", "A": "active", "E": "dead", "C": "archived"}
SEARCH_SECONDS = 3.0


class TooSlow(DatabaseError):
    """The request would take too long; the message says what to request instead."""


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
    """One queue in a list. If `estimated`, counts above 10,000 are estimates. `policy`: a row of list_queues, or None.

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
    estimated: bool
    paused: bool
    policy: Row | None
    minutes: tuple[Minute, ...]
    consumers: int

    @property
    def rate(self) -> int:
        return self.minutes[-2].completed

    @property
    def drain_seconds(self) -> float | None:
        """In how many seconds the ready messages are handled at the present rate; None: unknown."""
        return drain_seconds(self.ready, handled(self.minutes) if not self.paused else ())

    @property
    def ordered(self) -> bool:
        return bool(self.policy and self.policy["ordered"])


@dataclass(frozen=True)
class Overview:
    """Queues of a database by name, the consumers, and the health checks. `now`: the server's clock.

    `queues`: those that need attention most, if there are more than `matching` shown; `total`: all of the database.
    `consumers`: of the queues that were asked for, silent ones first, at most MOST_ROWS. `sums`: counts of all queues
    by state.
    """

    now: datetime
    queues: list[Queue]
    total: int
    matching: int
    sums: dict[str, int]
    estimated: bool
    consumers: list[Row]
    health: list[Row]
    left_out: list[str]
    absent: list[str]
    failed: dict[str, str]

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
    absent: list[str]
    failed: dict[str, str]


@dataclass(frozen=True)
class MessageDetail:
    """One message: its row of find_messages, None when it no longer exists, its row of get_result, or None, its steps.

    `steps`: those that were kept last, in their order.
    """

    now: datetime
    message: Row | None
    result: Row | None
    steps: list[Row]
    left_out: list[str]
    absent: list[str]
    failed: dict[str, str]

    @property
    def progress(self) -> str:
        """What set_progress has kept, such as "3 of 10 (30 %), page 3"; empty without it, and for another value."""
        for step in self.steps:
            if step["step"] == "progress":
                with suppress(ValueError, RecursionError, TypeError, KeyError, OverflowError):  # any text may be kept
                    value = json.loads(step["step_value"])
                    done, total, note = int(value["done"]), int(value.get("total") or 0), value.get("note")
                    of = f" of {total:,} ({100 * done // total} %)" if total else ""
                    return f"{done:,}{of}{f', {note}' if note else ''}"
        return ""


def recent_overview(looking: Looking, part: str = "", size: int = QUEUES) -> Overview:
    """As `overview`, but several viewers share an answer, which is read once per second, or less often if slow."""
    return looking.kept(("overview", part, size), OVERVIEW_SECONDS, lambda: overview(looking, True, part, size))


def overview(looking: Looking, with_health: bool = True, part: str = "", size: int = QUEUES) -> Overview:
    """The queues whose name contains `part`, with their last hour, the consumers, and the health checks.

    At most `size` queues: those that need attention most. Health may be slow, so it is read only if `with_health`.
    """
    looking.begin()
    now = looking.session.now()
    stats = looking.stats()
    since = MINUTES if len(stats) <= WHOLE_HOUR else 3
    history = minutes(looking, None, now, since)
    consumers = looking.consumers()
    looking.raise_if_nothing("queues", "throughput", "consumers")
    lines = {row["type"]: row for row in stats}
    lines |= {name: _empty(name, None) for name in history.keys() - lines.keys()}  # an empty queue has a history
    matching = [row for name, row in lines.items() if part.casefold() in name.casefold()]
    shown = sorted(sorted(matching, key=_need)[:size], key=lambda row: row["type"])
    if part:
        consumers = _consumers_of(looking, part, [row["type"] for row in shown], consumers)
    working = Counter(row["type"] for row in consumers if row["status"] == "working")
    queues = [_queue(row, None, history, working[row["type"]], now) for row in shown]
    states = ("ready", "delayed", "active", "expired", "dead")
    return Overview(
        now,
        queues,
        len(lines),
        len(matching),
        {state: sum(row[state] for row in stats) for state in states},
        any(row["estimated"] for row in stats),
        consumers[:MOST_ROWS],
        looking.health() if with_health else [],
        list(looking.left_out),
        list(looking.absent),
        looking.failed,
    )


def _consumers_of(looking: Looking, part: str, types: list[str], consumers: list[Row]) -> list[Row]:
    """The consumers of queues whose name contains `part`.

    Silent ones may fill the list of all: then those of a few queues are read queue by queue.
    """
    if len(consumers) >= MOST_CONSUMERS and len(types) <= FEW_QUEUES:
        consumers = [
            row
            for type in sorted({part[:200], *types})  # a queue without messages is not in `types`
            for row in looking.rows("consumers", "list_consumers", type, MOST_OF_ONE)
        ]
    return [row for row in consumers if part.casefold() in row["type"].casefold()]


def _need(row: Row) -> tuple[Any, ...]:
    """A sort key: queues with dead letters and lost leases first, then those with most messages."""
    is_stuck = bool(row["paused"] and row["ready"])
    signs = (row["dead"] > 0) + (row["expired"] > 0) + is_stuck + ((row["oldest_ready_seconds"] or 0) > 60)
    return -signs, -(row["ready"] + row["dead"] + row["active"] + row["delayed"]), row["type"]


def queue(
    looking: Looking,
    type: str,
    state: str = "N",
    size: int = SIZE,
    body_length: int = BODY_LENGTH,
    with_errors: bool = True,
) -> QueueDetail:
    """One queue; an unknown one is empty. `with_errors`: also count the dead letters by error.

    Raises QueueError for an invalid type or state.
    """
    looking.begin()
    now = looking.session.now()
    stats = looking.rows("queues", "queue_stats", type)
    policies = looking.rows("policies", "list_queues", type)
    history = minutes(looking, type, now)
    messages = looking.rows("messages", "peek", type, state, size, body_length)
    consumers = looking.rows("consumers", "list_consumers", type, MOST_OF_ONE)
    schedules = looking.rows("schedules", "list_schedules", type, 0)
    bindings = [row for row in looking.rows("bindings", "list_bindings") if row["type"] == type]
    policy = policies[0] if policies else None
    looking.raise_if_nothing("queues", "policies", "messages")
    working = sum(row["status"] == "working" for row in consumers)
    line = _queue(stats[0] if stats else _empty(type, policy), policy, history, working, now)
    errors = looking.errors(type, line.dead) if line.dead and with_errors else []
    parts = (consumers[:MOST_ROWS], schedules, bindings)
    left_out, absent = list(looking.left_out), list(looking.absent)
    return QueueDetail(now, line, state, messages, errors, *parts, left_out, absent, looking.failed)


def message(looking: Looking, id: int, body_length: int = WHOLE_BODY) -> MessageDetail:
    """One message in any state, with its whole body."""
    looking.begin()
    found = looking.rows("message", "find_messages", None, options(id=id), 1, body_length)
    looking.raise_if_nothing("message")
    result = looking.rows("result", "get_result", id)
    steps = looking.rows("steps", "list_steps", id, MOST_STEPS)[::-1]
    message, done = found[0] if found else None, result[0] if result else None
    left_out, absent = list(looking.left_out), list(looking.absent)
    return MessageDetail(looking.session.now(), message, done, steps, left_out, absent, looking.failed)


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
    looking.begin()
    types = [type]
    if type is None and id is None:
        types = [row["type"] for row in looking.stats()]
    deadline = time.monotonic() + SEARCH_SECONDS
    wanted = options(id=id, dedup_key=dedup_key, group_key=group_key)
    found: list[Row] = []
    for name in types:
        if time.monotonic() > deadline:
            raise TooSlow("there are too many queues to search all of them: name one")
        if len(found) < size:
            found += looking.rows("messages", "find_messages", name, wanted, size - len(found), body_length)
    return found


# Lists that are one call each, by the names of their pages, with the arguments of the call.
LISTS: dict[str, tuple[Any, ...]] = {
    "consumers": ("list_consumers", None, MOST_ROWS + 1),
    "schedules": ("list_schedules", None, BODY_LENGTH),
    "bindings": ("list_bindings",),
    "feeds": ("list_feeds",),
    "subscriptions": ("list_subscriptions",),
    "tables": ("list_polling_tables",),
    "limits": ("list_queues",),
    "health": ("queue_health",),
}


def listed(looking: Looking, name: str, body_length: int = BODY_LENGTH) -> list[Row]:
    """At most MOST_ROWS + 1 rows of one of LISTS; for `limits`, only queues that have one."""
    looking.begin()
    if name == "health":
        return looking.health()
    procedure, *arguments = LISTS[name]
    if name == "schedules":
        arguments = [None, body_length]
    rows = looking.rows(name, procedure, *arguments)
    looking.raise_if_nothing(name)
    return [row for row in rows if name != "limits" or has_limits(row)][: MOST_ROWS + 1]


def table_rows(looking: Looking, name: str, state: str = "E", size: int = SIZE) -> list[Row]:
    """Rows of a polling table in a state: A claimed, N waiting for a retry, E dead."""
    looking.begin()
    rows = looking.rows("rows", "peek_rows", name, state, size)
    looking.raise_if_nothing("rows")
    return rows


def has_limits(policy: Row) -> bool:
    """Whether a policy limits claims."""
    return any(policy[name] for name in ("max_active", "rate", "group_max_active", "group_rate"))


def handled(minutes: Sequence[Minute]) -> list[int]:
    """How many messages were completed or dead-lettered in each of the last whole minutes, for drain_seconds."""
    return [minute.completed + minute.dead for minute in minutes[-1 - DRAIN_MINUTES : -1]]


def minutes(looking: Looking, type: str | None, now: datetime, count: int = MINUTES) -> dict[str, list[Minute]]:
    """The last minutes of each queue for which a consumer has reported, without gaps, oldest first."""
    return by_minute(looking.rows("throughput", "throughput", type, _first(now, count)), now, count)


def by_minute(rows: Iterable[Row], now: datetime, count: int) -> dict[str, list[Minute]]:
    """As `minutes`, from rows of `throughput` since that time or earlier."""
    found: dict[str, dict[datetime, Minute]] = {}
    for row in rows:
        values = {name: value or 0 for name, value in row.items() if name not in ("type", "minute_at")}
        found.setdefault(row["type"], {})[row["minute_at"]] = Minute(row["minute_at"], **values)
    times = [_first(now, count) + timedelta(minutes=number) for number in range(count)]
    return {name: [known.get(at, Minute(at)) for at in times] for name, known in found.items()}


def _first(now: datetime, count: int) -> datetime:
    return now.replace(second=0, microsecond=0) - timedelta(minutes=count - 1)


def _empty(type: str, policy: Row | None) -> Row:
    counts = dict.fromkeys(("ready", "delayed", "active", "expired", "dead", "estimated"), 0)
    return {"type": type, **counts, "oldest_ready_seconds": None, "paused": policy["paused"] if policy else 0}


def _queue(stats: Row, policy: Row | None, history: dict[str, list[Minute]], working: int, now: datetime) -> Queue:
    name = stats["type"]
    known = history.get(name, [])
    past = [
        *(Minute(_first(now, MINUTES) + timedelta(minutes=number)) for number in range(MINUTES - len(known))),
        *known,
    ]
    flags = {flag: bool(stats[flag]) for flag in ("estimated", "paused")}
    return Queue(**(stats | flags), policy=policy, minutes=tuple(past), consumers=working)
