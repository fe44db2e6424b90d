"""The poller: one thread that finds work for idle workers."""

import random
import threading
import time
from contextlib import suppress
from datetime import datetime

from ..databases import Conflict, Disconnected
from ..link import Link
from .claims import Claims
from .options import Options
from .resting import Rest
from .sources import Source
from .taking import LOOK
from .workers import Pool


class Poller:
    """Claims batches for idle workers, until it is over or `stop` is set."""

    def __init__(
        self, source: Source, options: Options, claims: Claims, pool: Pool, rest: Rest, stop: threading.Event
    ) -> None:
        self._source, self._options, self._claims = source, options, claims
        self._pool, self._rest, self._stop = pool, rest, stop

    def poll(self, link: Link) -> None:
        """The work of a thread."""
        if self._options.once:
            for type in self._options.types:
                if self._pool.await_idle(self._stop):
                    self._hand_out(link, type)
        else:
            self._poll_on(link)

    def _poll_on(self, link: Link) -> None:
        barren = 0  # looks in a row that found nothing
        while self._pool.await_idle(self._stop):
            all_idle = self._pool.is_idle()
            found = self._look(link)
            barren = 0 if found else barren + 1
            if self._is_busy():
                continue
            ready, due = self._ask(link)
            if all_idle and not found and self._is_over(ready):
                return
            # Ready and yet not to be had: another one is about to take it. Look again once, then rest.
            if ready and self._looks_again(barren):
                continue
            self._rest.rest(link, due, self._time_left())

    def _look(self, link: Link) -> bool:
        """Give idle workers what is ready; True when something was found.

        Each type has its turn, and a full batch means that there may be more.
        """
        found = False
        for type in random.sample(self._options.types, len(self._options.types)):
            count = self._options.batch
            while count == self._options.batch and self._pool.has_idle():
                count = self._hand_out(link, type)
                found = found or count > 0
        return found

    def _hand_out(self, link: Link, type: str) -> int:
        """Claim a batch for an idle worker; how many messages it got."""
        batch = self._claims.claim(link, type)
        if batch is None:
            return 0
        self._pool.next_idle().put(batch)
        return len(batch.messages)

    def _is_busy(self) -> bool:
        """Nobody has time for what could be found."""
        return not self._pool.has_idle()

    def _looks_again(self, barren: int) -> bool:
        return barren < 2

    def _ask(self, link: Link) -> tuple[bool, datetime | None]:
        """Is anything ready, and when will the next message be? Asks senders to wake us, too."""
        ready, due = False, None
        for type in self._options.types:
            with suppress(Disconnected, Conflict):  # only when we stop
                if (answer := self._source.ask(link, self._stop, type)) is not None:
                    ready = ready or answer[0]
                    due = min(filter(None, (due, answer[1])), default=None)
                    self._claims.last_claim = time.monotonic()
        return ready, due

    def _is_over(self, ready: bool) -> bool:
        """With all workers idle: is this the end we were asked to reach?"""
        drained = self._options.drain and not ready
        return self._claims.budget.is_used_up() or drained or self.is_idle_too_long()

    def is_idle_too_long(self) -> bool:
        """Nobody has had anything to do for as long as was asked for."""
        timeout = self._options.idle_timeout
        return timeout is not None and self._pool.is_idle() and time.monotonic() - self._claims.last_work >= timeout

    def _time_left(self) -> float | None:
        """Seconds until all have been idle for too long; None when that is no matter now."""
        if self._options.idle_timeout is None or not self._pool.is_idle():
            return None
        return max(self._claims.last_work + self._options.idle_timeout - time.monotonic(), 0) + 0.001


class TakePoller(Poller):
    """Under --transaction: tells idle workers that something is ready, which they then take themselves."""

    def _look(self, link: Link) -> bool:
        """A hint tells nobody that something was found."""
        ready, _ = self._ask(link)
        while ready and self._pool.has_idle():
            self._pool.next_idle().put(LOOK)
        return False

    def _hand_out(self, link: Link, type: str) -> int:
        self._pool.next_idle().put(type)
        return 0

    def _is_busy(self) -> bool:
        return False

    def _looks_again(self, barren: int) -> bool:
        return False
