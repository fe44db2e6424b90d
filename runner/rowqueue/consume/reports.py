"""What a consumer did: log lines, totals for the last of them, metrics, and reports to the database.

A report says every few seconds that the consumer is running, and what it did since the last one.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from ..databases import Conflict, DatabaseError, Disconnected, QueueError, Session
from ..databases.link import Link
from ..databases.values import options as as_object
from ..handlers import Handled
from ..messages import Item, Message
from .options import Options
from .source import Queues

log = logging.getLogger("rowqueue")

MOST_HANDLED = 50  # messages named in a report: those that run longest; report_consumer takes 4,000 characters
LAST_PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0)  # seconds before each try to send the last report
QUIET = 4  # queues without news that are reported per second: of more, each is reported less often
_MOST_SECONDS = 3_600
# The limits of report_consumer.
_MOST_BUSY_MS, _MOST_WAITED_MS = 10_000_000_000, 10_000_000_000_000


class Metrics:
    """What the health port serves. This one counts and serves nothing; rowqueue.extras.health has the other one."""

    def count(self, type: str, outcome: str, count: int) -> None:
        """Add messages to an outcome."""

    def ran(self, type: str, size: int, seconds: float) -> None:
        """Note that a handler has run for a batch."""

    def lost(self) -> None:
        """Note that a lease was lost."""

    def reconnected(self) -> None:
        """Note that a lost connection works again."""

    def served(self, active: Callable[[], int], is_ready: Callable[[], bool]) -> AbstractContextManager[None]:
        """Serve while the block runs. `active`: how many messages are claimed and not finished."""
        return nullcontext()


@dataclass
class Figures:
    """Counts of one queue's messages since the last report."""

    completed: int = 0
    failed: int = 0
    dead: int = 0
    busy: float = 0.0  # seconds in handlers
    first: int = 0  # first attempts
    began: float = 0.0  # sum of the times when they began, on this process's clock
    created: float = 0.0  # sum of the times when they were sent, on the server's clock
    sent: Counter[datetime] = field(default_factory=Counter)  # by the minute in which they were sent

    def add(self, other: "Figures") -> None:
        """Add figures that could not be reported."""
        for name in ("completed", "failed", "dead", "busy", "first", "began", "created"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sent.update(other.sent)

    def begin(self, messages: Sequence[Message], began: float, base: float) -> None:
        """Count the first attempts in a batch. `base` is subtracted from the times, to keep the sums exact."""
        times = [message.created_at for message in messages if message.attempt == 1]
        if not times:
            return
        self.first += len(times)
        self.began += began * len(times)
        first, last = min(times), max(times)
        # All messages that were sent in one call have the same time.
        created = len(times) * first.timestamp() if first == last else sum(map(datetime.timestamp, times))
        self.created += created - base * len(times)
        minute = _minute(first)
        if minute == _minute(last):  # true for nearly every batch
            self.sent[minute] += len(times)
        else:
            self.sent.update(map(_minute, times))


@dataclass(eq=False)
class _Busy:
    """A handler that runs, and since when its time has not been counted."""

    type: str
    since: float
    began: float
    messages: Sequence[Item]


class Reports:
    """What all worker threads did, by queue. Written to the log, to the metrics, and to the database.

    `every`: seconds between reports to the database; 0: none.
    """

    def __init__(self, queues: Queues, options: Options, every: int, metrics: Metrics) -> None:
        self._queues, self._options, self._every, self._metrics = queues, options, every, metrics
        self._reported: dict[str, float] = {}  # when each queue was last reported
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()
        self._figures: dict[str, Figures] = {}
        self._busy: set[_Busy] = set()
        self._base = time.time()
        # The server's clock minus `_base` minus the monotonic clock; until the first answer, as if its clock were ours.
        self._server_ahead = -time.monotonic()
        self._due = 0.0 if every else float("inf")

    def __str__(self) -> str:
        return ", ".join(f"{n} {outcome}" for outcome, n in self._totals.items())

    def count(self, type: str, outcome: str, count: int) -> None:
        """Add `count` messages to an outcome."""
        if count:
            self._metrics.count(type, outcome, count)
            with self._lock:
                self._totals[outcome] += count

    def ran(self, type: str, size: int, seconds: float) -> None:
        """Note that a handler has run for a batch."""
        self._metrics.ran(type, size, seconds)

    def lost(self, type: str, size: int) -> None:
        """Note that a lease was lost: other consumers may have claimed the messages."""
        self._metrics.lost()
        log.warning("%s: lost the lease of %d messages; other consumers may claim them", type, size)

    @contextmanager
    def busy(self, type: str, messages: Sequence[Item]) -> Iterator[None]:
        """Count the time of the block; each report has the part since the last one, and the messages while it runs."""
        now = time.monotonic()
        handler = _Busy(type, now, now, messages)
        with self._lock:
            self._busy.add(handler)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(handler)
                self._count_time(handler)

    def _count_time(self, handler: "_Busy") -> None:
        now = time.monotonic()
        self._figures.setdefault(handler.type, Figures()).busy += now - handler.since
        handler.since = now

    def finished(self, type: str, finished: Sequence[Item], handled: Handled, dead: int = 0, lost: int = 0) -> None:
        """Log the failures and count the messages that were finished.

        `dead`: how many are known dead letters. `lost`: how many more were handled and are no longer held.
        """
        if lost:
            self.lost(type, lost)
            self.count(type, "lost", lost)
        attempts = {message.id: message.attempt for message in finished} if handled.failures else {}
        cancelled = handled.cancelled & attempts.keys()
        failures = [f for f in handled.failures if f.id in attempts and f.id not in cancelled]
        for f in failures:
            log.warning("%s message %d failed (attempt %d): %s", type, f.id, attempts[f.id], f.error)
        discarded = sum(f.dead for f in failures)
        self.count(type, "completed", len(finished) - len(failures) - len(cancelled))
        self.count(type, "cancelled", len(cancelled))
        self.count(type, "failed", len(failures) - discarded)
        self.count(type, "discarded", discarded)
        if self._due == float("inf"):  # reports are off
            return
        with self._lock:
            figures = self._figures.setdefault(type, Figures())
            figures.completed += len(finished) - len(failures) - len(cancelled)
            figures.failed += len(failures)
            figures.dead += dead
            figures.begin(cast("Sequence[Message]", finished), handled.began, self._base)

    # ---- the reports to the database

    def send(self, link: Link, ended: threading.Event) -> None:
        """Report all queues again and again until `ended` is set, and a last time. Runs as a thread.

        An error of the database is logged; the consumer continues. The last report is tried for a few seconds.
        """
        while self._due < float("inf") and not ended.wait(max(self._due - time.monotonic(), 0)):
            self._due = time.monotonic() + self._every
            self._send(link, self._every)
        for pause in LAST_PAUSES:
            if self._due == float("inf"):
                return
            time.sleep(pause)
            if self._send(link, 0):
                return
        log.warning("the last report of this consumer was not sent: `runner consumers` shows it as silent")

    def _send(self, link: Link, next_seconds: int) -> bool:
        """Report all queues; False when the figures wait for the next report."""
        with self._lock:
            for handler in self._busy:
                self._count_time(handler)
            figures, self._figures = self._figures, {}
            running = sorted(self._busy, key=lambda handler: handler.began)

        asked_at = time.monotonic()
        due = self._reporting(figures, next_seconds)

        def report(session: Session) -> datetime:
            with session.transaction():
                for type, seconds in due.items():
                    handles = self._handling(handler for handler in running if handler.type == type)
                    now = self._report(session, type, figures.get(type, Figures()), seconds, handles)
            return now

        if not due:
            return True
        try:
            now = link.once(report)
        except (Disconnected, Conflict):  # the next report includes it
            with self._lock:
                for type, left in figures.items():
                    self._figures.setdefault(type, Figures()).add(left)
            return False
        except (DatabaseError, QueueError) as error:
            log.warning("this consumer no longer reports for `runner consumers`: %s", error)
            self._due = float("inf")
        else:
            self._reported.update(dict.fromkeys(due, asked_at))
            self._server_ahead = now.timestamp() - self._base - (asked_at + time.monotonic()) / 2
        return True

    def _reporting(self, figures: Mapping[str, Figures], next_seconds: int) -> dict[str, int]:
        """The queues that are reported now, and in how many seconds again at the latest.

        All of them, if they are few. Of many, those with news, and a part of the others in turn.
        """
        types = dict.fromkeys((*self._queues.known, *figures))
        turns = min(-(-len(types) // (QUIET * self._every)), _MOST_SECONDS // self._every - 1)
        if turns < 2 or not next_seconds:
            return dict.fromkeys(types, next_seconds)
        quiet = sorted((type for type in types if type not in figures), key=lambda type: self._reported.get(type, 0))
        part = quiet[: -(-len(types) // turns)]
        return dict.fromkeys((*figures, *part), (turns + 1) * self._every)

    def _handling(self, running: Iterable[_Busy]) -> str | None:
        """The messages that run longest, with times on the server's clock."""
        ahead = self._base + self._server_ahead
        return text_of(
            (message.id, datetime.fromtimestamp(ahead + handler.began, UTC))
            for handler in running
            for message in handler.messages[:MOST_HANDLED]
        )

    def _report(self, session: Session, type: str, of: Figures, next_seconds: int, handles: str | None) -> datetime:
        waited = of.began + self._server_ahead * of.first - of.created
        minutes = sorted(of.sent)
        last = minutes.pop() if minutes else None
        # Messages of a backlog were sent in earlier minutes: each minute needs its own call.
        for minute in minutes:
            self._call(session, type, dead=0, sent=of.sent[minute], sent_at=minute, next_seconds=next_seconds)
        return self._call(
            session,
            type,
            completed=of.completed,
            failed=of.failed,
            dead=of.dead if self._options.transaction else None,  # otherwise the database counts them
            busy_ms=_ms(of.busy, _MOST_BUSY_MS),
            waited_ms=_ms(waited, _MOST_WAITED_MS),
            sent=of.sent[last] if last else 0,
            sent_at=last,
            next_seconds=next_seconds,
            handling=handles,
        )

    def _call(self, session: Session, type: str, **figures: object) -> datetime:
        at: datetime = session.call("report_consumer", self._options.name, type, as_object(**figures))[0]["reported_at"]
        return at


def text_of(handling: Iterable[tuple[int, datetime]]) -> str | None:
    """One JSON object per line for each message and the time since when it is handled; None for no message."""
    longest = sorted(handling, key=lambda one: one[1])[:MOST_HANDLED]
    return "\n".join(f'{{"id": {id}, "since": "{stamp(since)}"}}' for id, since in longest) or None


def stamp(time: datetime) -> str:
    """A time as text, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


def _ms(seconds: float, most: int) -> int:
    return min(max(round(seconds * 1000), 0), most)
