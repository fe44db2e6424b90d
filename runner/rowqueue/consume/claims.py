"""Claims: how many messages are claimed at a time, how many may still be claimed, and from which queue."""

import threading
import time
from collections.abc import Iterable, Sequence

from ..databases import Conflict, Disconnected, Rows
from .leases import Batch
from .link import Link
from .options import Options
from .queues import Queues
from .sources import Source

SECONDS = 0.02  # of work that a claim brings
TURN = 0.1  # seconds in which a worker thread continues with the same queue, if others wait
GROWTH = 4  # at most by this factor from one claim to the next


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
        """Whether no further message may be claimed."""
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

    `least`: how many messages a thread starts at the same time; None: each claim asks for `options.batch`.
    """

    def __init__(
        self, source: Source, options: Options, queues: Queues, stop: threading.Event, least: int | None
    ) -> None:
        self._source, self._options, self.queues, self._stop = source, options, queues, stop
        self._least = least
        self._paces: dict[str, Pace] = {}
        self.budget = Budget(options.max_messages)
        self.last_claim = self.last_work = time.monotonic()  # a claim was answered; a claim found a message
        self.seconds = 0.0  # duration of the last claim

    def claim(self, link: Link, first: Iterable[str] = ()) -> Batch | None:
        """Claim a batch of the next queue that has messages, from `first` before others; None as from `claim_from`."""
        self.queues.refresh(link, self._stop)
        for types in self.queues.lists(first):
            if (batch := self.claim_from(link, types)) is not None:
                self.queues.had_turn(batch.type)
                return batch
        return None

    def claim_from(self, link: Link, types: Sequence[str]) -> Batch | None:
        """Claim a batch of the first queue that has messages, in one call.

        None when nothing is ready, the budget is used up, or `stop` is set.
        """
        size = self.budget.take(self._first_size(types))
        rows: Rows | None = None
        asked_at = time.monotonic()
        try:
            if size and not self._stop.is_set():
                rows = self._source.claim(link, self._stop, types, size)
                self.answered(asked_at)
        except (Disconnected, Conflict):  # only after `stop`
            pass
        finally:
            if rows is None:
                self.budget.give_back(size)
        return self.batch(rows, size, asked_at) if rows is not None else None

    def _first_size(self, types: Sequence[str]) -> int:
        # Of several queues, it is not known which one answers, and its handlers may be slow.
        return self.size(types[0] if len(types) == 1 else "")

    def size(self, type: str) -> int:
        """How many messages the next claim of a queue asks for."""
        if self._least is None:
            return self._options.batch
        pace = self._paces.get(type)
        return min(self._least, self._options.batch) if pace is None else pace.size

    def ran(self, type: str, count: int, seconds: float) -> None:
        """Note how long a handler has run for a batch."""
        if self._least is not None:
            self._paces.setdefault(type, Pace(self._least, self._options.batch)).ran(count, seconds)

    def stays(self, batch: Batch) -> bool:
        """Whether the next claim is of the batch's queue too: there is no other, or it has more and its turn lasts."""
        return self.queues.are_one or (batch.is_full and time.monotonic() < batch.turn_ends)

    def answered(self, asked_at: float) -> None:
        """Note that the claim sent at `asked_at` has been answered."""
        self.last_claim = time.monotonic()
        self.seconds = self.last_claim - asked_at

    def batch(self, rows: Rows, size: int, asked_at: float, before: Batch | None = None) -> Batch | None:
        """The batch that a claim of `size` messages returned; None when it is empty. `before`: of the same turn."""
        messages = self._source.items(rows())
        self.budget.give_back(size - len(messages))
        if not messages:
            return None
        self.last_work = time.monotonic()
        batch = Batch.leased(messages, size, self._options.lease, asked_at)
        batch.turn_ends = asked_at + TURN if before is None else before.turn_ends
        return batch
