"""The poller: one thread that claims batches for idle worker threads."""

import random
import threading
import time
from contextlib import suppress
from datetime import datetime

from ..databases import Conflict, Disconnected
from ..link import Link
from .claims import Claims
from .leases import Batch
from .options import Options
from .resting import Rest
from .sources import Source
from .taking import LOOK
from .workers import Pool


class Poller:
    """Claims batches for idle worker threads until the consumer is done or `stop` is set."""

    def __init__(
        self, source: Source, options: Options, claims: Claims, pool: Pool, rest: Rest, stop: threading.Event
    ) -> None:
        self._source, self._options, self._claims = source, options, claims
        self._pool, self._rest, self._stop = pool, rest, stop

    def poll(self, link: Link) -> None:
        """Poll until the consumer is done or stopped. Runs as a thread."""
        if self._options.once:
            for type in self._options.types:
                if self._pool.await_idle(self._stop):
                    self._hand_out(link, type)
        else:
            self._poll_on(link)

    def _poll_on(self, link: Link) -> None:
        barren = 0  # polls in a row that found nothing
        while self._pool.await_idle(self._stop):
            all_idle = self._pool.is_idle()
            found = self._look(link)
            barren = 0 if found else barren + 1
            if self._is_busy():
                continue
            ready, due = self._ask(link)
            if all_idle and not found and self._is_over(ready):
                return
            # Messages are ready but locked: another consumer is claiming them. Poll once more, then rest.
            if ready and self._looks_again(barren):
                continue
            self._rest.rest(link, due, self._time_left())

    def _look(self, link: Link) -> bool:
        """Claim from each queue in turn for idle worker threads; True when something was found.

        After a full batch, the same queue may have more.
        """
        found = False
        for type in random.sample(self._options.types, len(self._options.types)):
            is_full = True
            while is_full and self._pool.has_idle():
                batch = self._hand_out(link, type)
                found = found or batch is not None
                is_full = batch is not None and batch.is_full
        return found

    def _hand_out(self, link: Link, type: str) -> Batch | None:
        """Claim a batch for an idle worker thread, and return it."""
        batch = self._claims.claim(link, type)
        if batch is not None:
            self._pool.next_idle().put(batch)
        return batch

    def _is_busy(self) -> bool:
        """Whether no worker thread is free to handle a batch."""
        return not self._pool.has_idle()

    def _looks_again(self, barren: int) -> bool:
        return barren < 2

    def _ask(self, link: Link) -> tuple[bool, datetime | None]:
        """Whether anything is ready, and when the next message is due. Also asks to be woken by senders."""
        ready, due = False, None
        for type in self._options.types:
            with suppress(Disconnected, Conflict):  # only after `stop`
                if (answer := self._source.ask(link, self._stop, type)) is not None:
                    ready = ready or answer[0]
                    due = min(filter(None, (due, answer[1])), default=None)
                    self._claims.last_claim = time.monotonic()
        return ready, due

    def _is_over(self, ready: bool) -> bool:
        """Whether the options say to end now that all worker threads are idle."""
        drained = self._options.drain and not ready
        return self._claims.budget.is_used_up() or drained or self.is_idle_too_long()

    def is_idle_too_long(self) -> bool:
        """Whether all worker threads have been idle for `idle_timeout`."""
        timeout = self._options.idle_timeout
        return timeout is not None and self._pool.is_idle() and time.monotonic() - self._claims.last_work >= timeout

    def _time_left(self) -> float | None:
        """Seconds until `idle_timeout` ends the consumer; None when it does not apply now."""
        if self._options.idle_timeout is None or not self._pool.is_idle():
            return None
        return max(self._claims.last_work + self._options.idle_timeout - time.monotonic(), 0) + 0.001


class TakePoller(Poller):
    """Under --transaction: signals idle worker threads that something is ready; they take it themselves."""

    def _look(self, link: Link) -> bool:
        """Signal all idle worker threads. Returns False: whether they find something is not known here."""
        ready, _ = self._ask(link)
        while ready and self._pool.has_idle():
            self._pool.next_idle().put(LOOK)
        return False

    def _hand_out(self, link: Link, type: str) -> None:
        self._pool.next_idle().put(type)

    def _is_busy(self) -> bool:
        return False

    def _looks_again(self, barren: int) -> bool:
        return False
