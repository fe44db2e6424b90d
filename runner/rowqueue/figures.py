"""The figures of queues that Prometheus is told: their names, and how the rows of a procedure become samples.

What the database counts per minute becomes counters here, which only grow. A gauge per minute could not be summed or
averaged over a range, and a scrape that is missed would lose its minutes. A restart sets the counters back to zero,
which rate() and increase() take for what it is.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .databases import Row, Session

log = logging.getLogger("rowqueue")

_VERDICTS = {"ok": 0, "warn": 1, "bad": 2}


@dataclass(frozen=True)
class Described:
    """One metric: its name, its help, and its labels after `database`. What ends in _total is a counter."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


_TYPE, _FEED, _CONSUMER, _TABLE = ("type",), ("feed",), ("feed", "consumer"), ("table",)
# How far back a minute's figures may still change and be counted. Attempts are in the minute of their report; messages
# in the minute in which they were sent, which is told when they are claimed.
WINDOW = timedelta(minutes=10)
FORGET_SECONDS = 86_400.0  # a counter that nothing was added to for so long goes

METRICS = (
    Described("rowqueue_up", "1 when the database has answered, else 0."),
    Described("rowqueue_collect_duration_seconds", "How long the database took to answer."),
    Described("rowqueue_left_out", "Names above the limit of a kind, which are not reported.", ("kind",)),
    Described("rowqueue_ready_messages", "Messages that can be claimed now; counted up to 10,000.", _TYPE),
    Described("rowqueue_delayed_messages", "Messages that are not due yet; counted up to 10,000.", _TYPE),
    Described("rowqueue_active_messages", "Messages claimed, the lease running; counted up to 10,000.", _TYPE),
    Described("rowqueue_expired_messages", "Messages claimed, the lease over, not rescued yet.", _TYPE),
    Described("rowqueue_dead_messages", "Dead letters; counted up to 10,000.", _TYPE),
    Described("rowqueue_oldest_ready_seconds", "How long the first message in claim order has been due.", _TYPE),
    Described("rowqueue_counts_capped", "1 when a number of the queue is larger than told.", _TYPE),
    Described("rowqueue_paused", "1 when claims return nothing.", _TYPE),
    Described("rowqueue_health_verdict", "What queue_health says of a check: 0 ok, 1 warn, 2 bad.", ("check",)),
    Described("rowqueue_health_value", "What queue_health has measured, in its own unit.", ("check", "unit")),
    Described("rowqueue_feed_unpublished_rows", "Rows that wait for their number; counted up to 10,000.", _FEED),
    Described("rowqueue_feed_last_position", "The number that a feed gave last.", _FEED),
    Described("rowqueue_feed_behind_positions", "Numbers between a consumer and the end of its feed.", _CONSUMER),
    Described("rowqueue_feed_moved_timestamp_seconds", "When a consumer of a feed has moved last.", _CONSUMER),
    Described("rowqueue_table_active_rows", "Rows of a polling table that are claimed; counted up to 10,000.", _TABLE),
    Described("rowqueue_table_waiting_rows", "Rows that wait for another attempt; counted up to 10,000.", _TABLE),
    Described("rowqueue_table_dead_rows", "Rows that are dead; counted up to 10,000.", _TABLE),
    Described(
        "rowqueue_consumers", "Consumers: working, silent (its report is overdue) or stopped.", ("type", "status")
    ),
    Described("rowqueue_messages_sent_total", "Messages sent, of those claimed within ten minutes.", _TYPE),
    Described("rowqueue_messages_completed_total", "Messages completed.", _TYPE),
    Described("rowqueue_attempts_failed_total", "Attempts failed, those that made a dead letter included.", _TYPE),
    Described("rowqueue_messages_dead_lettered_total", "Messages that became dead letters.", _TYPE),
    Described("rowqueue_waited_seconds_total", "Time from sending to the first attempt, over all messages.", _TYPE),
    Described("rowqueue_busy_seconds_total", "Time in handlers, over all consumers.", _TYPE),
)


@dataclass(frozen=True)
class Sample:
    """A value of one of METRICS; the labels are those after `database`."""

    name: str
    labels: tuple[str, ...]
    value: float


class Limit:
    """Keeps the number of label values bounded. Names that are told stay told as long as they are there."""

    def __init__(self, database: str, kind: str, at_most: int) -> None:
        self._database, self._kind, self._at_most = database, kind, at_most
        self._kept: set[str] = set()
        self.left_out = 0

    def keep(self, names: Iterable[str]) -> set[str]:
        """These names, without those above the limit."""
        found = set(names)
        kept = self._kept & found
        kept |= set(sorted(found - kept)[: self._at_most - len(kept)])
        left_out = len(found) - len(kept)
        if left_out and not self.left_out:
            log.warning(
                "%s: more than %d names of kind %s; the others are not reported (--max-names)",
                self._database,
                self._at_most,
                self._kind,
            )
        self._kept, self.left_out = kept, left_out
        return kept


# ---- what each procedure says, as samples ----------------------------------------------------------------------

KINDS = ("queue", "feed", "feed consumer", "table", "consumer", "throughput")
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
    """Counters made of the figures that the database has per minute: each look adds what a minute has gained."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[str, datetime], list[int]] = {}  # the figures, when last looked at
        self._sums: dict[str, list[int]] = {}
        self._moved: dict[str, float] = {}  # when something was added
        self._has_looked = False
        self.since: datetime | None = None  # from when on to look; None: as far as the procedure does by itself

    def add(self, rows: Sequence[Row]) -> dict[str, list[int]]:
        """The sums of each queue after these rows. What was there at the first look counts as nothing."""
        now = time.monotonic()
        minutes: dict[tuple[str, datetime], list[int]] = {}
        for row in rows:
            type, key = row["type"], (row["type"], row["minute"])
            minutes[key] = figures = [int(row[name] or 0) for name in _FIGURES]
            before = self._minutes.get(key, [0] * len(figures)) if self._has_looked else figures
            gained = [max(0, figure - old) for figure, old in zip(figures, before, strict=True)]
            self._sums[type] = [a + b for a, b in zip(self._sums.get(type, [0] * len(figures)), gained, strict=True)]
            if any(gained) or type not in self._moved:
                self._moved[type] = now
            if self.since is None or row["minute"] - WINDOW > self.since:
                self.since = row["minute"] - WINDOW
        self._minutes, self._has_looked = minutes, True
        for type in [type for type, moved in self._moved.items() if now - moved > FORGET_SECONDS]:
            del self._sums[type], self._moved[type]
        return self._sums


def _queues(session: Session, limits: Limits, _: Totals) -> Iterator[Sample]:
    rows = session.call("queue_stats")
    kept = limits["queue"].keep(row["type"] for row in rows)
    for row in rows:
        if row["type"] in kept:
            labels = (row["type"],)
            for state in _STATES:
                yield Sample(f"rowqueue_{state}_messages", labels, float(row[state]))
            yield Sample("rowqueue_oldest_ready_seconds", labels, float(row["oldest_ready_seconds"] or 0))
            yield Sample("rowqueue_counts_capped", labels, float(row["capped"]))
            yield Sample("rowqueue_paused", labels, float(row["paused"]))


def _health(session: Session, _: Limits, __: Totals) -> Iterator[Sample]:
    for row in session.call("queue_health"):
        yield Sample("rowqueue_health_verdict", (row["name"],), float(_VERDICTS[row["verdict"]]))
        if row["value"] is not None:
            yield Sample("rowqueue_health_value", (row["name"], row["unit"] or ""), float(row["value"]))


def _feeds(session: Session, limits: Limits, _: Totals) -> Iterator[Sample]:
    rows = session.call("feed_stats")
    kept = limits["feed"].keep(row["feed"] for row in rows)
    for row in {row["feed"]: row for row in rows if row["feed"] in kept}.values():
        yield Sample("rowqueue_feed_unpublished_rows", (row["feed"],), float(row["unpublished"]))
        yield Sample("rowqueue_feed_last_position", (row["feed"],), float(row["last_position"]))
    pairs = {(row["feed"], row["consumer"]): row for row in rows if row["feed"] in kept and row["consumer"] is not None}
    read_by = limits["feed consumer"].keep("\0".join(pair) for pair in pairs)
    for labels, row in pairs.items():
        if "\0".join(labels) in read_by:
            yield Sample("rowqueue_feed_behind_positions", labels, float(row["behind"]))
            if row["moved_at"] is not None:
                yield Sample("rowqueue_feed_moved_timestamp_seconds", labels, row["moved_at"].timestamp())


def _tables(session: Session, limits: Limits, _: Totals) -> Iterator[Sample]:
    rows = session.call("list_tables")
    kept = limits["table"].keep(row["name"] for row in rows)
    for row in rows:
        if row["name"] in kept:
            for state in ("active", "waiting", "dead"):
                yield Sample(f"rowqueue_table_{state}_rows", (row["name"],), float(row[state]))


def _consumers(session: Session, limits: Limits, _: Totals) -> Iterator[Sample]:
    found = Counter((row["type"], row["status"]) for row in session.call("list_consumers"))
    for type in sorted(limits["consumer"].keep(type for type, _ in found)):
        for status in ("working", "silent", "stopped"):
            yield Sample("rowqueue_consumers", (type, status), float(found[type, status]))


def _throughput(session: Session, limits: Limits, totals: Totals) -> Iterator[Sample]:
    sums = totals.add(session.call("throughput", None, totals.since))
    for type in sorted(limits["throughput"].keep(sums)):
        for (name, divisor), total in zip(_FIGURES.values(), sums[type], strict=True):
            yield Sample(name, (type,), total / divisor)


PARTS: dict[str, Callable[[Session, Limits, Totals], Iterable[Sample]]] = {
    "queue_stats": _queues,
    "queue_health": _health,
    "feed_stats": _feeds,
    "list_tables": _tables,
    "list_consumers": _consumers,
    "throughput": _throughput,
}
