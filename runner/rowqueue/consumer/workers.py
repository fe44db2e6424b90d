"""Worker threads: which are idle, and how one handles a batch, finishes it and takes on the next."""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..handlers import Handled, Handler
from ..link import Link
from .claims import Claims
from .leases import Batch, Leases
from .options import Options
from .sources import Source
from .tally import Tally

# What a worker is told: a batch to handle, under --transaction a queue to take from or LOOK, at the end None.
Inbox = queue.SimpleQueue[Batch | str | None]


class Pool:
    """The workers' inboxes, and which of them are idle."""

    def __init__(self, size: int) -> None:
        self.inboxes = [Inbox() for _ in range(size)]
        self._idle = list(self.inboxes)
        self._changed = threading.Condition()

    def has_idle(self) -> bool:
        """Some worker is idle."""
        return bool(self._idle)

    def is_idle(self) -> bool:
        """All workers are idle."""
        return len(self._idle) == len(self.inboxes)

    def next_idle(self) -> Inbox:
        """An idle worker, who no longer is."""
        with self._changed:
            return self._idle.pop()

    def await_idle(self, stop: threading.Event) -> bool:
        """Wait until some worker is idle; False when we stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or stop.is_set())
        return not stop.is_set()

    def put_back(self, inbox: Inbox) -> None:
        """A worker is idle again."""
        with self._changed:
            self._idle.append(inbox)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait who asks whether to stop."""
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True)
class Tools:
    """What all workers share. `fail` is told of an exception that must end the process."""

    handler: Handler
    options: Options
    claims: Claims
    tally: Tally
    stop: threading.Event
    fail: Callable[[BaseException], None]


class Worker(ABC):
    """What every worker thread does with a job; one object for all of them."""

    def __init__(self, tools: Tools) -> None:
        self._handler, self._options, self._claims = tools.handler, tools.options, tools.claims
        self._tally, self._stop, self._fail = tools.tally, tools.stop, tools.fail

    @abstractmethod
    def work(self, link: Link, job: Batch | str) -> bool:
        """Do a job, and what follows from it; whether there was anything to do."""

    def _crashed(self, handled: Handled) -> bool:
        """Whether the handler has raised what must end the process; then it will."""
        error = handled.ending()
        if error is not None:
            self._fail(error)
        return error is not None


class BatchWorker(Worker):
    """Handles batches that are claimed with a lease."""

    def __init__(self, tools: Tools, source: Source, leases: Leases) -> None:
        super().__init__(tools)
        options = tools.options
        self._source, self._leases = source, leases
        # Finishing claims on: possible when the next batch is of the same type and found the same way.
        self._chains = source.chains and len(options.types) == 1 and not options.ring and not options.once

    def work(self, link: Link, job: Batch | str) -> bool:
        """Handle a batch and those that follow it, until nothing is ready."""
        assert isinstance(job, Batch)
        batch: Batch | None = job
        while batch is not None:
            batch = self._handle(link, batch)
        return True

    def _handle(self, link: Link, batch: Batch) -> Batch | None:
        """Handle one batch, finish it, and return the next one."""
        handled = self._run_handler(batch)
        if batch.lost:
            self._tally.count(batch.type, "lost", len(batch.messages))
            return self._follow(link, batch)
        if handled.unstarted:
            self._finish_part(link, batch, handled)
            return self._follow(link, batch)
        budget = self._claims.budget
        size = budget.take(self._options.batch) if self._chains and not self._stop.is_set() else 0
        asked_at = time.monotonic()
        rows = self._source.finish(link, batch, handled, size)
        self._claims.last_claim = time.monotonic()
        if rows is None:
            budget.give_back(size)
            self._tally.lost(batch.type, len(batch.messages))
            self._tally.count(batch.type, "lost", len(batch.messages))
            return self._follow(link, batch)
        budget.give_back(size - len(rows))
        self._tally.finished(batch.type, batch.messages, handled)
        return self._claims.batch(rows, asked_at) if self._chains else self._follow(link, batch)

    def _run_handler(self, batch: Batch) -> Handled:
        handled = Handled(keeps_results=self._options.keep_results)
        handled.began = time.monotonic()
        with self._leases.kept(batch):
            self._handler.run(batch.messages, handled, partial(self._may_start, batch))
        handled.seconds = time.monotonic() - handled.began
        self._tally.ran(batch.type, len(batch.messages), handled.seconds)
        return handled

    def _may_start(self, batch: Batch) -> bool:
        """May one more message of the batch be handed to the handler?"""
        goes_on = not self._stop.is_set() or (batch.begun and self._source.keeps_whole)
        batch.begun = True
        return goes_on and not batch.lost and time.monotonic() <= batch.expires

    def _finish_part(self, link: Link, batch: Batch, handled: Handled) -> None:
        unstarted = {message.id for message in handled.unstarted}
        started = [message for message in batch.messages if message.id not in unstarted]
        self._source.finish_part(link, batch, started, handled)
        self._tally.finished(batch.type, started, handled)
        self._tally.count(batch.type, "released", len(handled.unstarted))
        self._crashed(handled)

    def _follow(self, link: Link, batch: Batch) -> Batch | None:
        """The next batch when finishing did not claim it."""
        return None if self._options.once else self._claims.after(link, batch.type)
