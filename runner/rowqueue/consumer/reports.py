"""Reports: every few seconds the consumer writes to the database that it is running and what it did since the last."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from ..databases import Conflict, DatabaseError, Disconnected, QueueError, Session
from ..handlers import Handled
from ..link import Link
from ..messages import Item, Message

log = logging.getLogger("rowqueue")

# The limits of report_consumer.
_MOST_BUSY_MS, _MOST_WAITED_MS = 10_000_000_000, 10_000_000_000_000


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


class Reports:
    """The figures of all worker threads by queue, and their reports. `every`: seconds between reports; 0: none.

    `counts_dead`: the caller counts the messages that became dead letters; otherwise the database does.
    """

    def __init__(self, types: Sequence[str], reader: str, every: int, counts_dead: bool) -> None:
        self._types, self._reader, self._every, self._counts_dead = types, reader, every, counts_dead
        self._lock = threading.Lock()
        self._figures: dict[str, Figures] = {}
        self._base = time.time()
        self._server_ahead = 0.0  # the server's clock minus `_base` minus the monotonic clock
        self._due = 0.0 if every else float("inf")

    def finished(self, type: str, messages: Sequence[Item], handled: Handled, dead: int) -> None:
        """Count the started messages of a batch. `dead`: how many are known to be dead letters."""
        if self._due == float("inf"):  # reports are off
            return
        with self._lock:
            figures = self._figures.setdefault(type, Figures())
            figures.completed += len(messages) - len(handled.failures)
            figures.failed += len(handled.failures)
            figures.dead += dead
            figures.busy += handled.seconds
            figures.begin(cast("Sequence[Message]", messages), handled.began, self._base)

    def seconds_left(self) -> float:
        """Seconds until the next report is due."""
        return self._due - time.monotonic()

    def send_if_due(self, link: Link) -> None:
        """Report all queues if a report is due. An error of the database is logged; the consumer continues."""
        if self.seconds_left() <= 0:
            self._due = time.monotonic() + self._every
            self._send(link, self._every)

    def send_last(self, link: Link) -> None:
        """Send the last report: the consumer stops."""
        if self._due < float("inf"):
            self._send(link, 0)

    def _send(self, link: Link, next_seconds: int) -> None:
        with self._lock:
            figures, self._figures = self._figures, {}

        def report(session: Session) -> datetime:
            with session.transaction():
                for type in self._types:
                    now = self._report(session, type, figures.get(type, Figures()), next_seconds)
            return now

        asked_at = time.monotonic()
        try:
            now = link.once(report)
        except (Disconnected, Conflict):  # the next report includes it
            with self._lock:
                for type, left in figures.items():
                    self._figures.setdefault(type, Figures()).add(left)
        except (DatabaseError, QueueError) as error:
            log.warning("this consumer no longer reports for `runner consumers`: %s", error)
            self._due = float("inf")
        else:
            self._server_ahead = now.timestamp() - self._base - (asked_at + time.monotonic()) / 2

    def _report(self, session: Session, type: str, of: Figures, next_seconds: int) -> datetime:
        waited = of.began + self._server_ahead * of.first - of.created
        minutes = sorted(of.sent)
        last = minutes.pop() if minutes else None
        # Messages of a backlog were sent in earlier minutes: each minute needs its own call.
        for minute in minutes:
            self._call(session, type, 0, 0, 0, 0, 0, of.sent[minute], minute, next_seconds)
        dead = of.dead if self._counts_dead else None
        sent = of.sent[last] if last else 0
        figures = (of.completed, of.failed, dead, _ms(of.busy, _MOST_BUSY_MS), _ms(waited, _MOST_WAITED_MS), sent)
        return self._call(session, type, *figures, last, next_seconds)

    def _call(self, session: Session, type: str, *figures: object) -> datetime:
        at: datetime = session.call("report_consumer", self._reader, type, *figures)[0]["reported_at"]
        return at


def _minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


def _ms(seconds: float, most: int) -> int:
    return min(max(round(seconds * 1000), 0), most)
