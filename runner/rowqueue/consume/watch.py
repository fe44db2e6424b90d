"""The watch: finishes what is done of a claim, and gives back what has not begun, while a message of it takes long."""

import threading
import time
from contextlib import suppress

from ..handlers import Handled
from ..messages import Item
from .claims import Claims
from .leases import Batch, Leases
from .link import Link
from .resting import Rest
from .sources import Source
from .tally import Tally

SECONDS = 0.05  # between two looks at the batches
LONG = 0.04  # a claim brings about 0.02 seconds of work: if its handler has run this long, others can handle the rest


class Watch:
    """One thread for all worker threads. `gives_back` false: what has not begun stays in its batch."""

    def __init__(
        self, source: Source, leases: Leases, claims: Claims, tally: Tally, rest: Rest, gives_back: bool
    ) -> None:
        self._source, self._leases, self._claims = source, leases, claims
        self._tally, self._rest, self._gives_back = tally, rest, gives_back

    def watch(self, link: Link, ended: threading.Event) -> None:
        """Watch the batches until `ended` is set. Runs as a thread. `link` connects when the first part is finished."""
        while not ended.wait(SECONDS):
            for batch in self._leases.held(ended):
                handled = batch.handled
                if handled is not None and handled.began and time.monotonic() - handled.began > LONG:
                    self._look(link, batch)

    def _look(self, link: Link, batch: Batch) -> None:
        """Finish a part of a batch that takes long. Its worker thread waits for this before it finishes the rest."""
        with batch.lock:
            handled = batch.handled
            if handled is None or batch.lost or time.monotonic() > batch.expires:
                return
            # First what has ended. A message that has begun and is not among those stays: the batch does not end here.
            ended = [message for message in list(handled.ended) if message.id not in batch.settled]
            not_running = batch.settled.union(
                batch.waiting.copy(), (m.id for m in ended), (m.id for m in list(handled.unstarted))
            )
            if all(message.id in not_running for message in batch.messages):
                return
            part = handled.of(ended)
            part.unstarted = self._take_back(batch)
            if not part.ended and not part.unstarted:
                return
            finish_part(link, batch, part, self._source, self._tally)
            batch.settled.update(message.id for message in (*part.ended, *part.unstarted))
            if part.unstarted:
                self._claims.budget.give_back(len(part.unstarted))
                self._rest.end()

    def _take_back(self, batch: Batch) -> list[Item]:
        """Take the messages that have not begun from the handler."""
        taken: list[Item] = []
        with suppress(KeyError):
            while self._gives_back:
                taken.append(batch.waiting.popitem()[1])
        return taken


def finish_part(link: Link, batch: Batch, handled: Handled, source: Source, tally: Tally) -> None:
    """Finish what has ended of a batch, give back what was not started, and count both."""
    of_part = {message.id for message in source.finish_part(link, batch, handled)}
    finished = [message for message in handled.ended if message.id in of_part]
    released = sum(message.id in of_part for message in handled.unstarted)
    batch.lost = batch.lost or not of_part
    if lost := len(handled.ended) - len(finished):
        tally.lost(batch.type, lost)
        tally.count(batch.type, "lost", lost)
    tally.finished(batch.type, finished, handled)
    tally.count(batch.type, "released", released)
