"""The Prometheus metrics of queues: their names, and how the rows of procedures become samples.

The database counts per minute; here the counts become counters, which only grow. A gauge per minute could not be summed
over a range, and a missed scrape would lose its minutes. A restart resets the counters to zero; rate() and increase()
handle that.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ...databases import DatabaseError, Row
from ...install import contract
from . import MOST_CONSUMERS, Looking, by_minute, handled, incidents
from .counts import DRAIN_MINUTES, drain_seconds

log = logging.getLogger("rowqueue")

_VERDICTS = {"ok": 0.0, "warn": 1.0}  # any other is bad


@dataclass(frozen=True)
class Described:
    """One metric: its name, its help, and its labels after `database`. A name that ends in _total is a counter."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


_TYPE, _FEED, _CONSUMER, _TABLE = ("type",), ("feed",), ("feed", "consumer"), ("table",)
# How far back a minute's figures may still change and be counted. Attempts are counted in the minute of their report;
# messages in the minute in which they were sent, and only when they are claimed.
WINDOW = timedelta(minutes=10)
FORGET_SECONDS = 86_400.0  # a counter that has not grown for this long is removed

METRICS = (
    Described("rowqueue_up", "1 if the database answered, else 0."),
    Described("rowqueue_collect_duration_seconds", "How long the database took to answer."),
    Described("rowqueue_part_up", "1 if this part of the metrics was read, 0 after an error.", ("part",)),
    Described("rowqueue_left_out", "Names that are not reported because of --max-names.", ("kind",)),
    Described("rowqueue_ready_messages", "Messages that can be claimed now.", _TYPE),
    Described("rowqueue_delayed_messages", "Messages that are not due yet.", _TYPE),
    Described("rowqueue_active_messages", "Messages claimed, within their lease.", _TYPE),
    Described("rowqueue_expired_messages", "Messages claimed, after their lease, not rescued yet.", _TYPE),
    Described("rowqueue_dead_messages", "Dead letters.", _TYPE),
    Described("rowqueue_oldest_ready_seconds", "How long the first message in claim order has been due.", _TYPE),
    Described("rowqueue_counts_estimated", "1 if ready, delayed or dead is above 10,000, which is estimated.", _TYPE),
    Described("rowqueue_drain_seconds", "Until the ready messages are handled, at the rate of 5 minutes.", _TYPE),
    Described("rowqueue_paused", "1 if the queue is paused: claims return nothing.", _TYPE),
    Described("rowqueue_incidents", "What is wrong now, as `runner doctor` lists it.", ("kind",)),
    Described("rowqueue_health_verdict", "The verdict of a check of queue_health: 0 ok, 1 warn, 2 bad.", ("check",)),
    Described("rowqueue_health_value", "The value that a check of queue_health measured.", ("check", "unit")),
    Described("rowqueue_feed_last_position", "The last position that a feed assigned.", _FEED),
    Described("rowqueue_feed_behind_positions", "Positions between a consumer and the end of its feed.", _CONSUMER),
    Described("rowqueue_feed_moved_timestamp_seconds", "When the consumer's position last moved.", _CONSUMER),
    Described("rowqueue_table_active_rows", "Rows of a polling table that are claimed; counted up to 10,000.", _TABLE),
    Described("rowqueue_table_waiting_rows", "Rows that wait for a retry; counted up to 10,000.", _TABLE),
    Described("rowqueue_table_dead_rows", "Dead rows; counted up to 10,000.", _TABLE),
    Described(
        "rowqueue_consumers", "Consumers: working, silent (its report is overdue) or stopped.", ("type", "status")
    ),
    Described("rowqueue_messages_sent_total", "Messages sent, if they were claimed within ten minutes.", _TYPE),
    Described("rowqueue_messages_completed_total", "Messages completed.", _TYPE),
    Described("rowqueue_attempts_failed_total", "Failed attempts, including those that made a dead letter.", _TYPE),
    Described("rowqueue_messages_dead_lettered_total", "Messages that became dead letters.", _TYPE),
    Described("rowqueue_waited_seconds_total", "Time from sending to the first attempt, sum of all messages.", _TYPE),
    Described("rowqueue_busy_seconds_total", "Time in handlers, sum of all consumers.", _TYPE),
)


@dataclass(frozen=True)
class Sample:
    """A value of one of METRICS, with the labels after `database`."""

    name: str
    labels: tuple[str, ...]
    value: float


class Limit:
    """Limits the number of label values. A name that is reported stays reported as long as it exists."""

    def __init__(self, database: str, kind: str, at_most: int) -> None:
        self._database, self._kind, self._at_most = database, kind, at_most
        self._kept: set[str] = set()
        self.left_out = 0

    def keep(self, names: Iterable[str]) -> set[str]:
        """The names to report, at most the limit."""
        found = set(names)
        kept = self._kept & found
        kept |= set(sorted(found - kept)[: self._at_most - len(kept)])
        left_out = len(found) - len(kept)
        if left_out and not self.left_out:
            log.warning(
                "%s: more than %d names of kind %s; the others are not reported: raise --max-names",
                self._database,
                self._at_most,
                self._kind,
            )
        self._kept, self.left_out = kept, left_out
        return kept


# ---- what each procedure says, as samples ----------------------------------------------------------------------

# What --max-names limits, and the part that it is in.
KINDS = {
    "queue": "queue_stats",
    "feed": "list_feeds",
    "feed consumer": "list_feeds",
    "table": "list_polling_tables",
    "consumer": "list_consumers",
    "throughput": "throughput",
}
Limits = dict[str, Limit]
_STATES = ("ready", "delayed", "active", "expired", "dead")
_FIGURES = {
    "sent": ("rowqueue_messages_sent_total", 1),
    "completed": ("rowqueue_messages_completed_total", 1),
    "failed": ("rowqueue_attempts_failed_total", 1),
    "dead": ("rowqueue_messages_dead_lettered_total", 1),
    "waited_ms": ("rowqueue_waited_seconds_total", 1_000),
    "busy_ms": ("rowqueue_busy_seconds_total", 1_000),
}


class Totals:
    """Counters from the figures that the database has per minute: each call adds the growth of each minute."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[str, datetime], list[int]] = {}  # the figures of the last call
        self._sums: dict[str, list[int]] = {}
        self._moved: dict[str, float] = {}  # when a counter last grew
        self._has_looked = False
        self.since: datetime | None = None  # the first minute to ask for; None: the procedure's default
        self.ready: dict[str, int] = {}  # the ready messages of the queues that are not paused, just read

    @property
    def types(self) -> set[str]:
        """The queues that have a counter."""
        return {*self._sums}

    def add(self, rows: Sequence[Row]) -> dict[str, list[int]]:
        """Add these rows and return the sums of each queue. The figures of the first call count as zero."""
        now = time.monotonic()
        minutes: dict[tuple[str, datetime], list[int]] = {}
        for row in rows:
            type, key = row["type"], (row["type"], row["minute_at"])
            minutes[key] = figures = [int(row[name] or 0) for name in _FIGURES]
            before = self._minutes.get(key, [0] * len(figures)) if self._has_looked else figures
            gained = [max(0, figure - old) for figure, old in zip(figures, before, strict=True)]
            self._sums[type] = [a + b for a, b in zip(self._sums.get(type, [0] * len(figures)), gained, strict=True)]
            if any(gained) or type not in self._moved:
                self._moved[type] = now
            if self.since is None or row["minute_at"] - WINDOW > self.since:
                self.since = row["minute_at"] - WINDOW
        self._minutes, self._has_looked = minutes, True
        for type in [type for type, moved in self._moved.items() if now - moved > FORGET_SECONDS]:
            del self._sums[type], self._moved[type]
        return self._sums


def _known(name: str, labels: tuple[str, ...], value: Any) -> Iterator[Sample]:
    """The sample of a value, or none for NULL: this user may not see it."""
    if value is not None:
        yield Sample(name, labels, float(value))


def _queues(looking: Looking, limits: Limits, totals: Totals) -> Iterator[Sample]:
    rows = looking.session.call("queue_stats")
    kept = limits["queue"].keep(row["type"] for row in rows)
    for row in rows:
        if row["type"] in kept:
            labels = (row["type"],)
            for state in _STATES:
                yield Sample(f"rowqueue_{state}_messages", labels, float(row[state]))
            yield Sample("rowqueue_oldest_ready_seconds", labels, float(row["oldest_ready_seconds"] or 0))
            yield Sample("rowqueue_counts_estimated", labels, float(row["estimated"]))
            yield Sample("rowqueue_paused", labels, float(row["paused"]))
    totals.ready = {row["type"]: row["ready"] for row in rows if row["type"] in kept and not row["paused"]}


def _health(looking: Looking, _: Limits, __: Totals) -> Iterator[Sample]:
    for row in looking.session.call("queue_health"):
        yield Sample("rowqueue_health_verdict", (row["name"],), _VERDICTS.get(row["verdict"], 2.0))
        if row["measured"] is not None:
            yield Sample("rowqueue_health_value", (row["name"], row["unit"] or ""), float(row["measured"]))


def _feeds(looking: Looking, limits: Limits, _: Totals) -> Iterator[Sample]:
    rows = looking.session.call("list_feeds")
    kept = limits["feed"].keep(row["feed"] for row in rows)
    for row in {row["feed"]: row for row in rows if row["feed"] in kept}.values():
        yield from _known("rowqueue_feed_last_position", (row["feed"],), row["last_position"])
    pairs = {(row["feed"], row["consumer"]): row for row in rows if row["feed"] in kept and row["consumer"] is not None}
    read_by = limits["feed consumer"].keep("\0".join(pair) for pair in pairs)
    for labels, row in pairs.items():
        if "\0".join(labels) in read_by:
            yield from _known("rowqueue_feed_behind_positions", labels, row["behind"])
            if row["moved_at"] is not None:
                yield Sample("rowqueue_feed_moved_timestamp_seconds", labels, row["moved_at"].timestamp())


def _tables(looking: Looking, limits: Limits, _: Totals) -> Iterator[Sample]:
    rows = looking.session.call("list_polling_tables")
    kept = limits["table"].keep(row["name"] for row in rows)
    for row in rows:
        if row["name"] in kept:
            for state in ("active", "waiting", "dead"):
                yield from _known(f"rowqueue_table_{state}_rows", (row["name"],), row[state])


def _consumers(looking: Looking, limits: Limits, _: Totals) -> Iterator[Sample]:
    rows = looking.session.call("list_consumers", None, MOST_CONSUMERS)
    found = Counter((row["type"], row["status"]) for row in rows)
    for type in sorted(limits["consumer"].keep(type for type, _ in found)):
        for status in ("working", "silent", "stopped"):
            yield Sample("rowqueue_consumers", (type, status), float(found[type, status]))


def _throughput(looking: Looking, limits: Limits, totals: Totals) -> Iterator[Sample]:
    rows = looking.session.call("throughput", None, totals.since)
    minutes = by_minute(rows, looking.session.now(), DRAIN_MINUTES + 1)
    ready, totals.ready = totals.ready, {}
    for type, count in ready.items():
        seconds = drain_seconds(count, handled(minutes.get(type, ())))
        if seconds is not None:
            yield Sample("rowqueue_drain_seconds", (type,), seconds)
    kept = limits["throughput"].keep({row["type"] for row in rows} | totals.types)
    sums = totals.add([row for row in rows if row["type"] in kept])
    for type in sorted(kept & sums.keys()):
        for (name, divisor), total in zip(_FIGURES.values(), sums[type], strict=True):
            yield Sample(name, (type,), total / divisor)


def _incidents(looking: Looking, _: Limits, __: Totals) -> Iterator[Sample]:
    looking.begin()
    found = Counter(incident.kind for incident in incidents.incidents(looking))
    if looking.failed:  # a count would be too low
        raise DatabaseError("; ".join(f"{name}: {reason}" for name, reason in looking.failed.items()))
    kinds = [kind for kind in incidents.KINDS if incidents.NEEDS.get(kind) not in looking.absent]
    return (Sample("rowqueue_incidents", (kind,), float(found[kind])) for kind in kinds)


PARTS: dict[str, Callable[[Looking, Limits, Totals], Iterable[Sample]]] = {
    "queue_stats": _queues,
    "queue_health": _health,
    "list_feeds": _feeds,
    "list_polling_tables": _tables,
    "list_consumers": _consumers,
    "throughput": _throughput,
    "incidents": _incidents,
}


def area_of(part: str) -> str:
    """The area of a part: its metrics are left out when the area is not installed."""
    procedure = contract.load().every.get(part)
    return "queue" if procedure is None else procedure.area
