"""The poller: one thread that claims batches for idle worker threads."""

import threading
import time
from collections.abc import Collection
from contextlib import suppress

from ..databases import Conflict, Disconnected
from .claims import Claims
from .link import Link
from .options import Options
from .resting import Rest
from .sources import Answer, Source
from .workers import Pool


class Poller:
    """Claims batches for idle worker threads until the consumer is done or `stop` is set."""

    def __init__(
        self, source: Source, options: Options, claims: Claims, pool: Pool, rest: Rest, stop: threading.Event
    ) -> None:
        self._source, self._options, self._claims = source, options, claims
        self._queues, self._pool, self._rest, self._stop = claims.queues, pool, rest, stop

    def poll(self, link: Link) -> None:
        """Poll until the consumer is done or stopped. Runs as a thread."""
        if self._options.once:
            self._queues.refresh(link, self._stop)
            for type in self._queues.known:
                if self._pool.await_idle(self._stop):
                    self._hand_out_once(link, type)
        else:
            self._poll_on(link)

    def _poll_on(self, link: Link) -> None:
        looks = True  # claim, or ask first
        woken: Collection[str] = ()  # queues that probably have messages
        barren = 0  # looks in a row that found nothing
        while self._pool.await_idle(self._stop):
            all_idle = self._pool.is_idle()
            found = looks and self._look(link, woken)
            if looks:
                barren = 0 if found else barren + 1
            if self._is_busy():
                # A worker thread is idle again when its own claim has found nothing.
                looks, woken = not self._source.answers, ()
                continue
            answer = self._ask(link)
            if all_idle and not found and self._is_over(answer.ready):
                return
            if answer.ready:
                woken = (answer.type,) if answer.type is not None else ()
                # Ready, but locked after a look: another consumer is claiming it. Look once more, then rest.
                if not looks or self._looks_again(barren):
                    looks = True
                    continue
            named = self._rest.rest(link, answer.due, self._time_left(), self._queues.calls)
            looks, woken = named is not None or not self._source.answers, named or ()

    def _look(self, link: Link, first: Collection[str]) -> bool:
        """Claim for idle worker threads, from `first` before other queues; True when something was found."""
        found = False
        while self._pool.has_idle() and (batch := self._claims.claim(link, first)) is not None:
            self._pool.next_idle().put(batch)
            found, first = True, ()
            if self._queues.are_one and not batch.is_full:
                break
        return found

    def _hand_out_once(self, link: Link, type: str) -> None:
        """Claim a batch of this queue for an idle worker thread."""
        if (batch := self._claims.claim_from(link, [type])) is not None:
            self._pool.next_idle().put(batch)

    def _is_busy(self) -> bool:
        """Whether no worker thread is free to handle a batch."""
        return not self._pool.has_idle()

    def _looks_again(self, barren: int) -> bool:
        return barren < 2

    def _ask(self, link: Link) -> Answer:
        """Whether anything is ready, and when the next message is due. Also asks to be woken by senders."""
        if self._queues.refresh(link, self._stop):
            self._claims.last_claim = time.monotonic()  # if there is no queue yet, nothing else is asked
        if self._source.wakes:
            link.listen(self._queues.known)
        due = None
        for types in self._queues.questions():
            with suppress(Disconnected, Conflict):  # only after `stop`
                if (answer := self._source.ask(link, self._stop, types)) is not None:
                    self._claims.last_claim = time.monotonic()
                    if answer.ready:
                        return answer
                    due = min(filter(None, (due, answer.due)), default=None)
        return Answer(None, False, due)

    def _is_over(self, ready: bool) -> bool:
        """Whether the options say to end now that all worker threads are idle."""
        drained = self._options.drain and not ready
        return self._claims.budget.is_used_up() or drained or self.is_idle_too_long()

    def is_idle_too_long(self) -> bool:
        """Whether all worker threads have been idle for `idle_timeout`."""
        timeout = self._options.idle_timeout
        return timeout is not None and self._pool.is_idle() and time.monotonic() - self._claims.last_work >= timeout

    def _time_left(self) -> float | None:
        """Seconds until the next list of queues, or until `idle_timeout` ends the consumer; None for neither."""
        times = [self._queues.until_list()]
        if self._options.idle_timeout is not None and self._pool.is_idle():
            times.append(max(self._claims.last_work + self._options.idle_timeout - time.monotonic(), 0) + 0.001)
        return min((time for time in times if time is not None), default=None)


class TakePoller(Poller):
    """Under --transaction: signals idle worker threads that something is ready; they take it themselves."""

    def _look(self, link: Link, first: Collection[str]) -> bool:
        """Signal all idle worker threads. Returns False: whether they find something is not known here."""
        if not first:
            answer = self._ask(link)
            if not answer.ready:
                return False
            first = (answer.type,) if answer.type is not None else ()
        while self._pool.has_idle():
            self._pool.next_idle().put([*first])
        return False

    def _hand_out_once(self, link: Link, type: str) -> None:
        self._pool.next_idle().put([type])

    def _is_busy(self) -> bool:
        return False

    def _looks_again(self, barren: int) -> bool:
        return False
