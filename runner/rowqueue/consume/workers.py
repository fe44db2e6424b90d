"""Worker threads: which are idle, and how one handles a batch, finishes it and claims the next."""

import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..handlers import GoOn, Handled, Handler
from ..messages import Item
from .ahead import LONGEST_QUICK, QUICK, Ahead, Next
from .claims import Claims
from .leases import Batch, Leases
from .link import Link
from .options import Options
from .sources import Refused, Source
from .tally import Tally
from .watch import finish_part

log = logging.getLogger("rowqueue")

# The jobs of a worker thread: a batch to handle; under --transaction, the queues to take from first; at the end, None.
Inbox = queue.SimpleQueue[Batch | Sequence[str] | None]


class Pool:
    """The inboxes of the worker threads, and which threads are idle."""

    def __init__(self, size: int) -> None:
        self.inboxes = [Inbox() for _ in range(size)]
        self._idle = list(self.inboxes)
        self._changed = threading.Condition()

    def has_idle(self) -> bool:
        """Whether a worker thread is idle."""
        return bool(self._idle)

    def is_idle(self) -> bool:
        """Whether all worker threads are idle."""
        return len(self._idle) == len(self.inboxes)

    def next_idle(self) -> Inbox:
        """The inbox of an idle worker thread, which is then no longer idle."""
        with self._changed:
            return self._idle.pop()

    def await_idle(self, stop: threading.Event) -> bool:
        """Wait until a worker thread is idle; False after `stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or stop.is_set())
        return not stop.is_set()

    def put_back(self, inbox: Inbox) -> None:
        """Mark a worker thread as idle again."""
        with self._changed:
            self._idle.append(inbox)
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake all threads that wait here, to make them check whether to stop."""
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True)
class Tools:
    """Shared by all worker threads. `fail` is called with an exception that must end the process."""

    handler: Handler
    options: Options
    claims: Claims
    tally: Tally
    stop: threading.Event
    fail: Callable[[BaseException], None]


class Worker(ABC):
    """The work of a worker thread; one object serves all threads."""

    def __init__(self, tools: Tools) -> None:
        self._handler, self._options, self._claims = tools.handler, tools.options, tools.claims
        self._tally, self._stop, self._fail = tools.tally, tools.stop, tools.fail

    @abstractmethod
    def work(self, link: Link, job: Batch | Sequence[str]) -> bool:
        """Do a job and those that follow from it. Returns whether there was anything to do."""

    def close(self) -> None:  # noqa: B027  (most have nothing to end)
        """Called after the last job."""

    def _run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        """Run the handler and note its outcome, also when it raises."""
        type, handled.began = messages[0].type, time.monotonic()
        with self._tally.busy(type, messages):
            try:
                self._handler.run(messages, handled, go_on)
            except BaseException as error:
                unstarted = {message.id for message in handled.unstarted}
                handled.add_all([message for message in messages if message.id not in unstarted], error)
        if self._handler.aborted:
            threading.Event().wait()  # the process ends now, and how its killed children ended is no outcome
        handled.seconds = time.monotonic() - handled.began

    def _crashed(self, handled: Handled) -> bool:
        """Whether the handler's command cannot be started, which must end the process; if so, `fail` is called."""
        if handled.crash is not None:
            self._fail(handled.crash)
        return handled.crash is not None


class BatchWorker(Worker):
    """Handles batches that are claimed with a lease."""

    def __init__(self, tools: Tools, source: Source, leases: Leases, is_alone: bool) -> None:
        super().__init__(tools)
        options = tools.options
        self._source, self._leases = source, leases
        # One call finishes and claims: possible when the next batch is claimed from the same queue.
        self._chains = source.chains and not options.once
        # Several worker threads keep the database and the handler busy without it.
        self._may_go_ahead = is_alone and not options.once
        self._ahead = Ahead(self._give_back)

    def work(self, link: Link, job: Batch | Sequence[str]) -> bool:
        """Handle a batch and the following ones until nothing is ready."""
        assert isinstance(job, Batch)
        batch: Batch | None = job
        while batch is not None or self._ahead.count:
            if batch is None:
                batch = self._ahead.next()
                continue
            handled = self._run_handler(batch)
            if self._goes_ahead(batch, handled):
                self._ahead.call(link, partial(self._end, link, batch, handled))
                if self._ahead.count == 1:
                    self._ahead.call(link, partial(self._claim, link))
                batch = self._ahead.next()
            else:
                # The batch claimed ahead is the next one. Its call used this thread's connection until now.
                waiting = self._ahead.next() if self._ahead.count else None
                stays = self._claims.stays(batch)
                batch = self._end(link, batch, handled, goes_on=waiting is None)() or waiting
                if batch is None and stays and self._chains and not self._claims.queues.are_one:
                    batch = self._claims.claim(link)
        return True

    def close(self) -> None:
        self._ahead.close()

    def _goes_ahead(self, batch: Batch, handled: Handled) -> bool:
        """Whether to handle another batch while this one is finished and the next one is claimed.

        Only when many messages are ready and the handler is about as fast as a claim. Otherwise messages would wait
        here that another process could handle.
        """
        is_quick = handled.seconds < min(QUICK * self._claims.seconds, LONGEST_QUICK)
        is_whole = batch.is_full and not (batch.lost or batch.settled or handled.unstarted)
        return self._may_go_ahead and is_quick and is_whole and not self._stop.is_set()

    def _claim(self, link: Link) -> Next:
        batch = self._claims.claim(link)
        return lambda: batch

    def _end(self, link: Link, batch: Batch, handled: Handled, goes_on: bool = True) -> Next:
        """Finish a batch and, if `goes_on`, claim the next one; returns the function that makes it from its rows."""
        if batch.lost:
            self._tally.count(batch.type, "lost", len(batch.messages))
            return self._follow(link, goes_on)
        if handled.unstarted:
            self._finish_part(link, batch, handled)
            return self._follow(link, goes_on)
        budget = self._claims.budget
        chains = self._chains and goes_on and self._claims.stays(batch)
        size = budget.take(self._claims.size(batch.type)) if chains and not self._stop.is_set() else 0
        asked_at = time.monotonic()
        try:
            rows = self._source.finish(link, batch, handled, size)
        except Refused as error:
            budget.give_back(size)
            log.warning("%s: the messages of a batch are finished one by one: %s", batch.type, error)
            self._finish_part(link, batch, handled)
            return self._follow(link, goes_on)
        self._claims.answered(asked_at)
        if rows is None:
            budget.give_back(size)
            ended = self._source.ended_by_handler(link, batch, handled) if time.monotonic() <= batch.expires else []
            self._tally.finished(batch.type, ended, handled)
            if lost := len(batch.messages) - len(ended):
                self._tally.lost(batch.type, lost)
                self._tally.count(batch.type, "lost", lost)
            return self._follow(link, goes_on)

        def next() -> Batch | None:
            self._tally.finished(batch.type, batch.messages, handled)
            return self._claims.batch(rows, size, asked_at, before=batch)

        if chains:
            return next
        next()
        return self._follow(link, goes_on)

    def _run_handler(self, batch: Batch) -> Handled:
        handled = Handled(keeps_results=self._options.keep_results)
        if not self._handler.takes_list:
            batch.waiting = {message.id: message for message in batch.messages}
            batch.handled = handled
        with self._leases.kept(batch):
            self._run(batch.messages, handled, self._go_on(batch))
        with batch.lock:  # a part of it may be just being finished
            batch.handled = None
        if started := len(batch.messages) - len(handled.unstarted):
            self._tally.ran(batch.type, started, handled.seconds)
            self._claims.ran(batch.type, started, handled.seconds)
        if batch.settled:
            batch.messages = [message for message in batch.messages if message.id not in batch.settled]
            handled = handled.of(batch.messages)
        return handled

    def _go_on(self, batch: Batch) -> GoOn:
        """The function that says whether the handler may begin a message of the batch."""
        # Called for each message: local names are faster.
        is_stopped, now, take, is_list = self._stop.is_set, time.monotonic, batch.waiting.pop, batch.handled is None

        def go_on(message: Item | None) -> bool:
            if is_stopped() or batch.lost or now() > batch.expires:
                return False
            return is_list or message is None or take(message.id, None) is not None

        return go_on

    def _finish_part(self, link: Link, batch: Batch, handled: Handled) -> None:
        unstarted = {message.id for message in handled.unstarted}
        handled.ended = [message for message in batch.messages if message.id not in unstarted]
        with self._leases.kept(batch):  # it may take many calls
            finish_part(link, batch, handled, self._source, self._tally)
        self._crashed(handled)

    def _follow(self, link: Link, goes_on: bool) -> Next:
        """The next batch, when finishing did not claim one."""
        batch_after = self._claims.claim(link) if goes_on and not self._options.once else None
        return lambda: batch_after

    def _give_back(self, link: Link, batch: Batch) -> None:
        """Give back a batch that has waited too long: other consumers may handle it."""
        finish_part(link, batch, Handled(unstarted=[*batch.messages]), self._source, self._tally)
        self._claims.budget.give_back(len(batch.messages))
