"""Reports: every few seconds the consumer writes to the database that it is running and what it did since the last."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from ..databases import Conflict, DatabaseError, Disconnected, QueueError, Session
from ..databases.values import options
from ..messages import Item, Message
from . import handling
from .link import Link
from .queues import Queues

log = logging.getLogger("rowqueue")

LAST_PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0)  # seconds before each try to send the last report
QUIET = 4  # queues without news that are reported per second: of more, each is reported less often
_MOST_SECONDS = 3_600
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


@dataclass(eq=False)
class _Busy:
    """A handler that runs, and since when its time has not been counted."""

    type: str
    since: float
    began: float
    messages: Sequence[Item]


class Reports:
    """The figures of all worker threads by queue, and their reports. `every`: seconds between reports; 0: none.

    `counts_dead`: the caller counts the messages that became dead letters; otherwise the database does.
    """

    def __init__(self, queues: Queues, consumer: str, every: int, counts_dead: bool) -> None:
        self._queues, self._consumer, self._every, self._counts_dead = queues, consumer, every, counts_dead
        self._reported: dict[str, float] = {}  # when each queue was last reported
        self._lock = threading.Lock()
        self._figures: dict[str, Figures] = {}
        self._busy: set[_Busy] = set()
        self._base = time.time()
        # The server's clock minus `_base` minus the monotonic clock; until the first answer, as if its clock were ours.
        self._server_ahead = -time.monotonic()
        self._due = 0.0 if every else float("inf")

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
                self._count(handler)

    def _count(self, handler: "_Busy") -> None:
        now = time.monotonic()
        self._figures.setdefault(handler.type, Figures()).busy += now - handler.since
        handler.since = now

    def finished(self, type: str, messages: Sequence[Item], began: float, failed: int, dead: int) -> None:
        """Count messages that were finished. `began`: when the handler did. `dead`: how many are known dead letters."""
        if self._due == float("inf"):  # reports are off
            return
        with self._lock:
            figures = self._figures.setdefault(type, Figures())
            figures.completed += len(messages) - failed
            figures.failed += failed
            figures.dead += dead
            figures.begin(cast("Sequence[Message]", messages), began, self._base)

    def send(self, link: Link, ended: threading.Event) -> None:
        """Report all queues again and again until `ended` is set, and a last time. Runs as a thread.

        An error of the database is logged; the consumer continues.
        """
        while self._due < float("inf") and not ended.wait(max(self._due - time.monotonic(), 0)):
            self._due = time.monotonic() + self._every
            self._send(link, self._every)
        if self._due < float("inf"):
            self._send_last(link)

    def _send_last(self, link: Link) -> None:
        """Send the last report: the consumer stops. Tries several times, for a few seconds."""
        for pause in LAST_PAUSES:
            time.sleep(pause)
            if self._send(link, 0):
                return
        log.warning("the last report of this consumer was not sent: `runner consumers` shows it as silent")

    def _send(self, link: Link, next_seconds: int) -> bool:
        """Report all queues; False when the figures wait for the next report."""
        with self._lock:
            for handler in self._busy:
                self._count(handler)
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
        return handling.text_of(
            (message.id, datetime.fromtimestamp(ahead + handler.began, UTC))
            for handler in running
            for message in handler.messages[: handling.MOST]
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
            dead=of.dead if self._counts_dead else None,
            busy_ms=_ms(of.busy, _MOST_BUSY_MS),
            waited_ms=_ms(waited, _MOST_WAITED_MS),
            sent=of.sent[last] if last else 0,
            sent_at=last,
            next_seconds=next_seconds,
            handling=handles,
        )

    def _call(self, session: Session, type: str, **figures: object) -> datetime:
        at: datetime = session.call("report_consumer", self._consumer, type, options(**figures))[0]["reported_at"]
        return at


def _minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


def _ms(seconds: float, most: int) -> int:
    return min(max(round(seconds * 1000), 0), most)
