"""Claims: how many messages may still be had, and of which queue."""

import threading
import time

from ..databases import Conflict, Disconnected, Rows
from ..link import Link
from .leases import Batch
from .options import Options
from .sources import Source


class Budget:
    """How many messages may still be claimed; a claim takes its size first and gives back what it did not get."""

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
        """Return what a claim did not get."""
        if self._left is not None:
            with self._lock:
                self._left += count

    def is_used_up(self) -> bool:
        """No message may be claimed any more."""
        return self._left == 0


class Claims:
    """Claims for all threads, until `stop` is set. `last_claim` and `last_work` are times of the monotonic clock."""

    def __init__(self, source: Source, options: Options, stop: threading.Event) -> None:
        self._source, self._options, self._stop = source, options, stop
        self.budget = Budget(options.max_messages)
        self.last_claim = self.last_work = time.monotonic()  # the database answered; a message was there
        self.seconds = 0.0  # that the last claim took

    def claim(self, link: Link, type: str) -> Batch | None:
        """Claim a batch of one type; None when nothing is ready, the budget is used up, or we stop."""
        size = self.budget.take(self._options.batch)
        rows: Rows | None = None
        asked_at = time.monotonic()
        try:
            if size and not self._stop.is_set():
                rows = self._source.claim(link, self._stop, type, size)
                self.answered(asked_at)
        except (Disconnected, Conflict):  # only when we stop
            pass
        finally:
            if rows is None:
                self.budget.give_back(size)
        return self.batch(rows, size, asked_at) if rows is not None else None

    def answered(self, asked_at: float) -> None:
        """Note that a claim that was asked for at that time has been answered."""
        self.last_claim = time.monotonic()
        self.seconds = self.last_claim - asked_at

    def batch(self, rows: Rows, size: int, asked_at: float) -> Batch | None:
        """The batch of a claim of `size`."""
        messages = self._source.items(rows())
        self.budget.give_back(size - len(messages))
        if not messages:
            return None
        self.last_work = time.monotonic()
        return Batch.leased(messages, self._options.lease, asked_at)

    def after(self, link: Link, type: str) -> Batch | None:
        """A batch of the first type that has one: each has its turn, beginning with the one after `type`."""
        types = self._options.types
        start = types.index(type) + 1
        return next(filter(None, (self.claim(link, other) for other in types[start:] + types[:start])), None)
