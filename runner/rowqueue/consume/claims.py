"""Claims and their leases: how many messages a claim asks for, and the batches that are held until they are finished.

One thread extends the leases while handlers run. Another finishes what is done of a claim, and gives back what has not
begun, while one of its messages takes long.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from ..databases import Conflict, Disconnected, Rows
from ..databases.link import Link
from ..handlers import Handled
from ..messages import Item
from .options import Options
from .reports import Reports
from .source import FIRST_BEAT, LONGEST_BEAT, Batch, Queues, Source

SECONDS = 0.02  # of work that a claim brings
TURN = 0.1  # seconds in which a worker thread continues with the same queue, if others wait
GROWTH = 4  # at most by this factor from one claim to the next
# Seconds between two heartbeats at least.
SHORTEST_BEAT = 0.2
LOOK = 0.05  # seconds between two looks at the batches
LONG = 0.04  # a claim brings about 0.02 seconds of work: if its handler has run this long, others can handle the rest


class Budget:
    """How many messages may still be claimed. A claim reserves its size, then returns what it did not get."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self._lock = threading.Lock()

    def take(self, wish: int) -> int:
        """Reserve up to `wish` messages; 0 when none are left."""
        if self._left is None:
            return wish
        with self._lock:
            size = min(wish, self._left)
            self._left -= size
            return size

    def give_back(self, count: int) -> None:
        """Return the unused part of a reservation."""
        if self._left is not None:
            with self._lock:
                self._left += count

    def is_used_up(self) -> bool:
        return self._left == 0


class Pace:
    """How many messages a claim asks for: what a thread handles in SECONDS; from `least` to `most`.

    A slow handler then holds back nothing that others could handle, and what is done is finished soon.
    """

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = min(least, most), most
        self._seconds = 0.0  # that a message takes
        self.size = self._least

    def ran(self, count: int, seconds: float) -> None:
        """Note how long a thread has handled `count` messages. Slower ones count at once, faster ones by and by."""
        each = seconds / count
        self._seconds = max(each, (self._seconds + each) / 2)
        fits = int(SECONDS / self._seconds) if self._seconds else self._most
        self.size = max(self._least, min(fits, GROWTH * self.size, self._most))


class Claims:
    """Claims for all threads, until `stop` is set. `last_claim` and `last_work` are times of the monotonic clock.

    `most`: messages per claim. `least`: how many messages a thread starts at the same time; None: each claim asks for
    `most`.
    """

    def __init__(self, source: Source, options: Options, most: int, least: int | None) -> None:
        self.source, self.options, self.most, self._least = source, options, most, least
        self.queues = Queues(options)
        self.stop = threading.Event()  # do not claim and do not start messages
        self.budget = Budget(options.max_messages)
        self._paces: dict[str, Pace] = {}
        self.last_claim = self.last_work = time.monotonic()  # a claim was answered; a claim found a message
        self.seconds = 0.0  # duration of the last claim

    def claim(self, link: Link, first: Iterable[str] = ()) -> Batch | None:
        """Claim a batch of the next queue that has messages, from `first` before others; None as from `claim_from`."""
        self.queues.refresh(link, self.stop)
        for types in self.queues.lists(first):
            if (batch := self.claim_from(link, types)) is not None:
                self.queues.had_turn(batch.type)
                return batch
        return None

    def claim_from(self, link: Link, types: Sequence[str]) -> Batch | None:
        """Claim a batch of the first queue that has messages, in one call.

        None when nothing is ready, the budget is used up, or `stop` is set.
        """
        # Of several queues, it is not known which one answers, and its handlers may be slow.
        size = self.budget.take(self.size(types[0] if len(types) == 1 else ""))
        rows: Rows | None = None
        asked_at = time.monotonic()
        try:
            if size and not self.stop.is_set():
                rows = self.source.claim(link, self.stop, types, size)
                self.answered(asked_at)
        except (Disconnected, Conflict):  # only after `stop`
            pass
        finally:
            if rows is None:
                self.budget.give_back(size)
        return self.batch(rows, size, asked_at) if rows is not None else None

    def size(self, type: str) -> int:
        """How many messages the next claim of a queue asks for."""
        if self._least is None:
            return self.most
        pace = self._paces.get(type)
        return min(self._least, self.most) if pace is None else pace.size

    def ran(self, type: str, count: int, seconds: float) -> None:
        """Note how long a handler has run for a batch."""
        if self._least is not None:
            self._paces.setdefault(type, Pace(self._least, self.most)).ran(count, seconds)

    def stays(self, batch: Batch) -> bool:
        """Whether the next claim is of the batch's queue too: there is no other, or it has more and its turn lasts."""
        return self.queues.are_one or (batch.is_full and time.monotonic() < batch.turn_ends)

    def answered(self, asked_at: float) -> None:
        """Note that the claim sent at `asked_at` has been answered."""
        self.last_claim = time.monotonic()
        self.seconds = self.last_claim - asked_at

    def batch(self, rows: Rows, size: int, asked_at: float, before: Batch | None = None) -> Batch | None:
        """The batch that a claim of `size` messages returned; None when it is empty. `before`: of the same turn."""
        messages = self.source.items(rows())
        self.budget.give_back(size - len(messages))
        if not messages:
            return None
        self.last_work = time.monotonic()
        batch = Batch.leased(messages, size, self.options.lease, asked_at)
        batch.turn_ends = asked_at + TURN if before is None else before.turn_ends
        return batch


class Leases:
    """The batches that are being handled. `freed`: called when messages were given back, for others to claim."""

    def __init__(self, claims: Claims, reports: Reports, freed: Callable[[], None]) -> None:
        self._claims, self._reports, self._freed = claims, reports, freed
        self._source, self._lease = claims.source, claims.options.lease
        self._lock = threading.Lock()
        self._held: dict[Any, Batch] = {}
        self._is_busy = threading.Event()  # a batch was added since the last look, or `wake` was called

    def count(self) -> int:
        """How many messages are claimed and not finished."""
        return sum(len(batch.messages) - len(batch.settled) for batch in list(self._held.values()))

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

    def finish_part(self, link: Link, batch: Batch, handled: Handled) -> None:
        """Finish what has ended of a batch, give back what was not started, and count both."""
        of_part = {message.id for message in self._source.finish_part(link, batch, handled)}
        finished = [message for message in handled.ended if message.id in of_part]
        released = sum(message.id in of_part for message in handled.unstarted)
        batch.lost = batch.lost or not of_part
        self._reports.finished(batch.type, finished, handled, lost=len(handled.ended) - len(finished))
        self._reports.count(batch.type, "released", released)

    # ---- the heartbeat

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
        longest = min(self._lease / 3, LONGEST_BEAT) if self._lease is not None else FIRST_BEAT
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
        held = link.call(ended, self._source.extend_procedure, batch.key, self._lease)[0]["affected"]
        with self._lock:
            if held:
                batch.beat_at = asked_at + batch.beat_every
                batch.expires = asked_at + self._lease if self._lease is not None else batch.expires
            elif batch.key in self._held:  # else the worker thread has finished it
                batch.lost = True
                self._reports.lost(batch.type, len(batch.messages))
        if held:
            handled = batch.handled
            for message in self._source.cancelled(link, ended, batch):
                message.cancelled = True
                # One that has not begun is now not begun; it is deleted when it is given back.
                if batch.waiting.pop(message.id, None) is None and handled is not None and handled.cancel is not None:
                    handled.cancel(message)

    # ---- the watch

    def watch(self, link: Link, ended: threading.Event) -> None:
        """Finish parts of slow batches until `ended` is set and `wake` is called. Runs as a thread."""
        while not ended.wait(LOOK):
            self._is_busy.clear()
            if not self._held and not ended.is_set():
                self._is_busy.wait()
            for batch in list(self._held.values()):
                handled = batch.handled
                if handled is not None and handled.began and time.monotonic() - handled.began > LONG:
                    self._look(link, batch)

    def wake(self) -> None:
        """End the wait of `watch`."""
        self._is_busy.set()

    def _look(self, link: Link, batch: Batch) -> None:
        """Finish a part of a batch that takes long. Its worker thread waits for this before it finishes the rest."""
        with batch.lock:
            handled = batch.handled
            if handled is None or batch.lost or time.monotonic() > batch.expires:
                return
            # First what has ended. A message that has begun and is not among those stays: the batch does not end here.
            batch.settled.update(message.id for message in list(handled.left))
            ended = [message for message in list(handled.ended) if message.id not in batch.settled]
            not_running = batch.settled.union(
                batch.waiting.copy(), (m.id for m in ended), (m.id for m in list(handled.unstarted))
            )
            if all(message.id in not_running for message in batch.messages):
                return
            part = handled.of(ended)
            part.unstarted = [] if self._claims.options.once else _taken_back(batch)
            if not part.ended and not part.unstarted:
                return
            self.finish_part(link, batch, part)
            batch.settled.update(message.id for message in (*part.ended, *part.unstarted))
            if part.unstarted:
                self._claims.budget.give_back(len(part.unstarted))
                self._freed()


def _taken_back(batch: Batch) -> list[Item]:
    """The messages that have not begun, taken from the handler."""
    taken: list[Item] = []
    with suppress(KeyError):
        while True:
            taken.append(batch.waiting.popitem()[1])
    return taken
