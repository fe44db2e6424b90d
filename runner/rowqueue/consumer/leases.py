"""Leases: which batches are held, and until when; one thread extends them while handlers run."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..databases import Conflict, Disconnected
from ..link import Link
from ..messages import Held
from .reports import Reports
from .tally import Tally

# A lease has 1 second at least. After this long a handler is worth the question how much of it is left.
FIRST_BEAT = 0.3
SHORTEST_BEAT = 0.2
LONGEST_BEAT = 5.0


@dataclass(eq=False, slots=True)
class Batch:
    """Claimed messages, and their next heartbeat and end of lease on this process's monotonic clock.

    `lease_until` is the end on the server's clock, until the heartbeat has asked how far off that is.
    """

    type: str
    key: Any
    messages: Sequence[Held]
    beat_every: float
    beat_at: float
    expires: float
    lease_until: datetime | None = None
    lost: bool = False
    begun: bool = False  # some message of it has been handed to the handler

    @classmethod
    def leased(cls, messages: Sequence[Held], lease: int | None, asked_at: float) -> "Batch":
        """A batch just claimed. Its lease runs from when it was asked for: too early is on the safe side.

        `lease` None: its length is the queue's. Its end is a time on the server's clock, and to compare it with ours
        would be to trust both.
        """
        type, key, lease_until = messages[0].type, messages[0].batch_key, messages[0].lease_until
        if lease is not None:
            return cls(type, key, messages, lease / 3, asked_at + lease / 3, asked_at + lease)
        return cls(type, key, messages, FIRST_BEAT, asked_at + FIRST_BEAT, float("inf"), lease_until)


class Leases:
    """The batches that are being handled. `procedure` extends one; `lease` is its length, None for the queue's own."""

    def __init__(self, procedure: str, lease: int | None, tally: Tally) -> None:
        self._procedure, self._lease, self._tally = procedure, lease, tally
        self._lock = threading.Lock()
        self._held: dict[Any, Batch] = {}

    def count(self) -> int:
        """How many messages are claimed and not finished."""
        return sum(len(batch.messages) for batch in list(self._held.values()))

    @contextmanager
    def kept(self, batch: Batch) -> Iterator[None]:
        """Extend the batch's lease meanwhile."""
        with self._lock:
            self._held[batch.key] = batch
        try:
            yield
        finally:
            with self._lock:
                del self._held[batch.key]

    def beat(self, link: Link, ended: threading.Event, reports: Reports) -> None:
        """Extend leases, and report what was done, until `ended` is set; the work of a thread."""
        reports.send_if_due(link)
        while not ended.wait(min(self._until_next_beat(), reports.seconds_left())):
            reports.send_if_due(link)
            now = time.monotonic()
            with self._lock:
                due = [batch for batch in self._held.values() if batch.beat_at <= now and not batch.lost]
            for batch in due:
                with suppress(Disconnected, Conflict):  # only at the very end
                    if batch.lease_until is not None:
                        self._measure(link, ended, batch, batch.lease_until)
                    else:
                        self._extend(link, ended, batch)

    def _until_next_beat(self) -> float:
        """Seconds to sleep; short enough for batches that are claimed meanwhile."""
        with self._lock:
            first = min((batch.beat_at for batch in self._held.values() if not batch.lost), default=float("inf"))
        longest = self._lease / 3 if self._lease is not None else FIRST_BEAT
        return min(max(first - time.monotonic(), 0.01), longest)

    def _measure(self, link: Link, ended: threading.Event, batch: Batch, lease_until: datetime) -> None:
        """Set the beat by what the lease has left, both times of which are the server's."""
        now = link.run(lambda session: session.now(), ended)
        left = (lease_until - now).total_seconds()
        batch.beat_every = min(max(left / 3, SHORTEST_BEAT), LONGEST_BEAT)
        batch.beat_at = time.monotonic() + (batch.beat_every if left > SHORTEST_BEAT else 0)
        batch.lease_until = None

    def _extend(self, link: Link, ended: threading.Event, batch: Batch) -> None:
        asked_at = time.monotonic()
        held = link.call(ended, self._procedure, batch.key, self._lease)[0]["count"]
        with self._lock:
            if held:
                batch.beat_at = asked_at + batch.beat_every
                batch.expires = asked_at + self._lease if self._lease is not None else batch.expires
            elif batch.key in self._held:  # else the worker has finished it in the meantime
                batch.lost = True
                self._tally.lost(batch.type, len(batch.messages))
