"""How long the poller sleeps: longer each time it finds nothing."""

import os
import random
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime

from .link import Link

SHORTEST_POLL = 0.1
LONGEST_POLL = 2.0
LONGEST_POLL_FOR_DUE = 1.0  # while a delayed message waits: it is due by the server's clock, not by ours


class Rest:
    """The sleep of one thread, which any thread or a signal can end. `longest_blind`: the limit without wake-ups."""

    def __init__(self, longest_blind: float) -> None:
        self._longest_blind = longest_blind
        self._interval = SHORTEST_POLL
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def end(self) -> None:
        """End the sleep; if the thread is not asleep, end its next one."""
        with suppress(BlockingIOError):
            os.write(self._writer, b"x")

    def shorten(self) -> None:
        """Something was found: rest only briefly next, since more may follow."""
        self._interval = SHORTEST_POLL

    def rest(self, link: Link, due: datetime | None, at_most: float | None, calls: int) -> Collection[str] | None:
        """Sleep until woken, until the next message is due, or for the poll interval, which grows each time.

        `calls`: of each poll; without wake-ups, the interval grows with them. Returns the queues that a wake-up named;
        None: there was none.
        """
        pause = self._interval * random.uniform(0.75, 1)
        self._interval = min(self._interval * 1.5, LONGEST_POLL if link.is_woken else self._longest_blind * calls)
        if at_most is not None:
            pause = min(pause, at_most)
        if due is not None:
            pause = min(pause, LONGEST_POLL_FOR_DUE)
            if 0 < (until := (due - datetime.now(UTC)).total_seconds()) < pause:
                pause = until + 0.005  # better a little late than early; if clocks differ, the next poll finds it
                self.shorten()
        woken = link.wait(pause, self._reader)
        if woken is not None:
            self.shorten()
        with suppress(BlockingIOError):
            os.read(self._reader, 4096)
        return woken
