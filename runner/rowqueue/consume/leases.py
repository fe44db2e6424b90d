"""Leases: the batches that are held, and until when. One thread extends them while handlers run."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..databases import Conflict, Disconnected
from ..handlers import Handled
from ..messages import Held
from .link import Link
from .tally import Tally

# Seconds. When a handler has run this long, ask the server how much of the lease is left. The shortest lease is 1 s.
FIRST_BEAT = 0.3
SHORTEST_BEAT = 0.2
LONGEST_BEAT = 5.0


@dataclass(eq=False, slots=True)
class Batch:
    """Claimed messages, with the next heartbeat and the end of the lease on this process's monotonic clock.

    `lease_until`: the end on the server's clock; None once the heartbeat has asked how far off it is.
    `waiting`: the messages that the handler has not begun, by id; the thread that pops one has it. `handled`: what the
    handler has done so far. `settled`: the ids that were finished or given back before the handler's end. `lock`: of
    the thread that finishes some of it.
    """

    type: str
    key: Any
    messages: Sequence[Held]
    is_full: bool  # the claim returned as many as it asked for
    beat_every: float
    beat_at: float
    expires: float
    lease_until: datetime | None = None
    lost: bool = False
    waiting: dict[int, Held] = field(default_factory=dict)
    handled: Handled | None = None
    settled: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    turn_ends: float = 0.0  # until then, the next claim may be of this queue too

    @classmethod
    def leased(cls, messages: Sequence[Held], size: int, lease: int | None, asked_at: float) -> "Batch":
        """A batch just claimed with this size. Its lease is counted from when the claim was sent: too early is safe.

        `lease` None: the queue's. Its end is then known as a time of the server's clock, which may differ from ours.
        """
        type, key, lease_until = messages[0].type, messages[0].batch_key, messages[0].lease_until
        is_full = len(messages) == size
        if lease is not None:
            return cls(type, key, messages, is_full, lease / 3, asked_at + lease / 3, asked_at + lease)
        return cls(type, key, messages, is_full, FIRST_BEAT, asked_at + FIRST_BEAT, float("inf"), lease_until)


class Leases:
    """The batches that are being handled. `procedure` extends a lease to `lease` seconds; None: the queue's lease."""

    def __init__(self, procedure: str, lease: int | None, tally: Tally) -> None:
        self._procedure, self._lease, self._tally = procedure, lease, tally
        self._lock = threading.Lock()
        self._held: dict[Any, Batch] = {}
        self._is_busy = threading.Event()  # a batch was added since the last call of `held`, or `wake` was called

    def count(self) -> int:
        """How many messages are claimed and not finished."""
        return sum(len(batch.messages) - len(batch.settled) for batch in list(self._held.values()))

    def held(self, ended: threading.Event) -> list[Batch]:
        """The batches that are being handled. Waits while there are none, until `ended` is set and `wake` called."""
        self._is_busy.clear()
        if not self._held and not ended.is_set():
            self._is_busy.wait()
        return list(self._held.values())

    def wake(self) -> None:
        """End the wait of `held`."""
        self._is_busy.set()

    @contextmanager
    def kept(self, batch: Batch) -> Iterator[None]:
        """Extend the batch's lease while the block runs."""
        with self._lock:
            self._held[batch.key] = batch
        if not self._is_busy.is_set():
            self._is_busy.set()
        try:
            yield
        finally:
            with self._lock:
                del self._held[batch.key]

    def beat(self, link: Link, ended: threading.Event) -> None:
        """Extend leases until `ended` is set. Runs as a thread."""
        while not ended.wait(self._until_next_beat()):
            now = time.monotonic()
            with self._lock:
                due = [batch for batch in self._held.values() if batch.beat_at <= now and not batch.lost]
            for batch in due:
                with suppress(Disconnected, Conflict):  # only after `ended`
                    if batch.lease_until is not None:
                        self._measure(link, ended, batch, batch.lease_until)
                    else:
                        self._extend(link, ended, batch)

    def _until_next_beat(self) -> float:
        """Seconds to sleep; short enough for a batch that is claimed during the sleep."""
        with self._lock:
            first = min((batch.beat_at for batch in self._held.values() if not batch.lost), default=float("inf"))
        longest = self._lease / 3 if self._lease is not None else FIRST_BEAT
        return min(max(first - time.monotonic(), 0.01), longest)

    def _measure(self, link: Link, ended: threading.Event, batch: Batch, lease_until: datetime) -> None:
        """Set the heartbeat by the rest of the lease, as a difference of two times of the server's clock."""
        now = link.run(lambda session: session.now(), ended)
        left = (lease_until - now).total_seconds()
        batch.beat_every = min(max(left / 3, SHORTEST_BEAT), LONGEST_BEAT)
        batch.beat_at = time.monotonic() + (batch.beat_every if left > SHORTEST_BEAT else 0)
        batch.lease_until = None

    def _extend(self, link: Link, ended: threading.Event, batch: Batch) -> None:
        asked_at = time.monotonic()
        held = link.call(ended, self._procedure, batch.key, self._lease)[0]["affected"]
        with self._lock:
            if held:
                batch.beat_at = asked_at + batch.beat_every
                batch.expires = asked_at + self._lease if self._lease is not None else batch.expires
            elif batch.key in self._held:  # else the worker thread has finished it
                batch.lost = True
                self._tally.lost(batch.type, len(batch.messages))
