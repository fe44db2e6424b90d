"""Worker threads: one handles a batch, finishes it and claims the next in one call.

If the handler is fast, a second thread makes these calls while the worker thread already handles the next batch. The
worker threads of --transaction are in `taking`.
"""

import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from ..databases.link import Link
from ..handlers import GoOn, Handled, Handler
from ..messages import Item
from .claims import Claims, Leases
from .reports import Reports
from .source import Batch, Refused

log = logging.getLogger("rowqueue")

# Claim ahead when the handler needs less time per batch than this many claims, and fewer seconds than this.
QUICK = 10
LONGEST_QUICK = 0.05
# How long, in seconds, a batch waits for a handler that has become slow. The shortest lease is a second.
PATIENCE = 0.1

# The jobs of a worker thread: a batch to handle; under --transaction, the queues to take from first; at the end, None.
Inbox = queue.SimpleQueue[Batch | Sequence[str] | None]
Next = Callable[[], Batch | None]  # makes the next batch from the rows that the database sent


@dataclass(eq=False)
class Worker(ABC):
    """The work of a worker thread; one object serves all threads.

    `fail` is called with an exception that must end the process.
    """

    handler: Handler
    claims: Claims
    leases: Leases
    reports: Reports
    fail: Callable[[BaseException], None]

    def __post_init__(self) -> None:
        self._source, self._options, self._stop = self.claims.source, self.claims.options, self.claims.stop

    @abstractmethod
    def work(self, link: Link, job: Batch | Sequence[str]) -> bool:
        """Do a job and those that follow from it. Returns whether there was anything to do."""

    def close(self) -> None:  # noqa: B027  (most have nothing to end)
        """Called after the last job."""

    def _run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        """Run the handler and note its outcome, also when it raises."""
        type, handled.began = messages[0].type, time.monotonic()
        with self.reports.busy(type, messages):
            try:
                self.handler.run(messages, handled, go_on)
            except BaseException as error:
                unstarted = {message.id for message in handled.unstarted}
                handled.add_all([message for message in messages if message.id not in unstarted], error)
        if self.handler.aborted:
            threading.Event().wait()  # the process ends now, and how its killed children ended is no outcome
        handled.seconds = time.monotonic() - handled.began

    def _crashed(self, handled: Handled) -> bool:
        """Whether the handler's command cannot be started, which must end the process; if so, `fail` is called."""
        if handled.crash is not None:
            self.fail(handled.crash)
        return handled.crash is not None


class BatchWorker(Worker):
    """Handles batches that are claimed with a lease."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # One call finishes and claims: possible when the next batch is claimed from the same queue.
        self._chains = self._source.chains and not self._options.once
        # Several worker threads keep the database and the handler busy without it.
        self._may_go_ahead = self._options.concurrency == 1 and not self._options.once
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
                self._ahead.call(link, partial(self._finish, link, batch, handled))
                if self._ahead.count == 1:
                    self._ahead.call(link, partial(self._claim, link))
                batch = self._ahead.next()
            else:
                # The batch claimed ahead is the next one. Its call used this thread's connection until now.
                waiting = self._ahead.next() if self._ahead.count else None
                stays = self.claims.stays(batch)
                batch = self._finish(link, batch, handled, goes_on=waiting is None)() or waiting
                if batch is None and stays and self._chains and not self.claims.queues.are_one:
                    batch = self.claims.claim(link)
        return True

    def close(self) -> None:
        self._ahead.close()

    def _run_handler(self, batch: Batch) -> Handled:
        handled = Handled(keeps_results=self._options.keep_results)
        if not self.handler.takes_list:
            batch.waiting = {message.id: message for message in batch.messages}
            batch.handled = handled
        with self.leases.kept(batch):
            self._run(batch.messages, handled, self._go_on(batch))
        with batch.lock:  # a part of it may be just being finished
            batch.handled = None
            batch.settled.update(message.id for message in handled.left)
        self.reports.count(batch.type, "snoozed", len(handled.left))
        if started := len(batch.messages) - len(handled.unstarted):
            self.reports.ran(batch.type, started, handled.seconds)
            self.claims.ran(batch.type, started, handled.seconds)
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

    def _goes_ahead(self, batch: Batch, handled: Handled) -> bool:
        """Whether to handle another batch while this one is finished and the next one is claimed.

        Only when many messages are ready and the handler is about as fast as a claim. Otherwise messages would wait
        here that another process could handle.
        """
        is_quick = handled.seconds < min(QUICK * self.claims.seconds, LONGEST_QUICK)
        is_whole = batch.is_full and not (batch.lost or batch.settled or handled.unstarted)
        return self._may_go_ahead and is_quick and is_whole and not self._stop.is_set()

    def _finish(self, link: Link, batch: Batch, handled: Handled, goes_on: bool = True) -> Next:
        """Finish a batch and, if `goes_on`, claim the next one; returns the function that makes it from its rows."""
        if batch.lost or not batch.messages:
            self.reports.count(batch.type, "lost", len(batch.messages))
            return self._claim(link, goes_on)
        if handled.unstarted:
            self._finish_part(link, batch, handled)
            return self._claim(link, goes_on)
        budget = self.claims.budget
        chains = self._chains and goes_on and self.claims.stays(batch)
        size = budget.take(self.claims.size(batch.type)) if chains and not self._stop.is_set() else 0
        asked_at = time.monotonic()
        try:
            rows = self._source.finish(link, batch, handled, size)
        except Refused as error:
            budget.give_back(size)
            log.warning("%s: the messages of a batch are finished one by one: %s", batch.type, error)
            self._finish_part(link, batch, handled)
            return self._claim(link, goes_on)
        self.claims.answered(asked_at)
        if rows is None:
            budget.give_back(size)
            ended = self._source.ended_by_handler(link, batch, handled) if time.monotonic() <= batch.expires else []
            self.reports.finished(batch.type, ended, handled, lost=len(batch.messages) - len(ended))
            return self._claim(link, goes_on)

        def next() -> Batch | None:
            self.reports.finished(batch.type, batch.messages, handled)
            return self.claims.batch(rows, size, asked_at, before=batch)

        if chains:
            return next
        next()
        return self._claim(link, goes_on)

    def _claim(self, link: Link, goes_on: bool = True) -> Next:
        """The next batch, when finishing did not claim one."""
        batch = self.claims.claim(link) if goes_on and not self._options.once else None
        return lambda: batch

    def _finish_part(self, link: Link, batch: Batch, handled: Handled) -> None:
        unstarted = {message.id for message in handled.unstarted}
        handled.ended = [message for message in batch.messages if message.id not in unstarted]
        with self.leases.kept(batch):  # it may take many calls
            self.leases.finish_part(link, batch, handled)
        self._crashed(handled)

    def _give_back(self, link: Link, batch: Batch) -> None:
        """Give back a batch that has waited too long: other consumers may handle it."""
        self.leases.finish_part(link, batch, Handled(unstarted=[*batch.messages]))
        self.claims.budget.give_back(len(batch.messages))


class Ahead:
    """Makes one worker thread's calls in order, on its connection; meanwhile the worker thread itself makes none.

    Results are returned in the order of the calls. A batch that is not fetched for `PATIENCE` seconds is passed to
    `give_back`; its result is then None.
    """

    def __init__(self, give_back: Callable[[Link, Batch], None]) -> None:
        self._give_back = give_back
        self._calls = queue.SimpleQueue[tuple[Link, Callable[[], Next]] | None]()
        self._answers = queue.SimpleQueue[Next]()
        self._thread: threading.Thread | None = None
        self.count = 0  # calls whose results have not been fetched

    def call(self, link: Link, work: Callable[[], Next]) -> None:
        """Queue a call; it is made after the earlier ones have been answered."""
        if self._thread is None:
            # A daemon: when a worker thread ends with an error, its calls are not awaited.
            self._thread = threading.Thread(target=self._serve, name="ahead", daemon=True)
            self._thread.start()
        self.count += 1
        self._calls.put((link, work))

    def next(self) -> Batch | None:
        """Wait for the oldest call and return its batch. Raises what the call raised."""
        self.count -= 1
        return self._answers.get()()

    def close(self) -> None:
        """End the thread, after all calls have been answered."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        link: Link | None = None
        while True:
            try:
                # Only this thread puts answers there.
                job = self._calls.get(timeout=None if self._answers.empty() else PATIENCE)
            except queue.Empty:
                assert link is not None
                self._clear(link)
                continue
            if job is None:
                return
            link, work = job
            try:
                answer = work()
            except BaseException as error:
                answer = partial(_fail, error)
            # The worker thread converts the rows; this thread makes the next call first.
            self._answers.put(answer)

    def _clear(self, link: Link) -> None:
        """Give back a batch that has waited too long."""
        waiting = []
        while not self._answers.empty():
            try:
                waiting.append(self._answers.get_nowait())
            except queue.Empty:  # the worker thread has just fetched it
                break
        for answer in waiting:
            left: Next = _nothing
            try:
                batch = answer()
                if batch is not None:
                    self._give_back(link, batch)
            except BaseException as error:
                left = partial(_fail, error)
            self._answers.put(left)


def _nothing() -> None:
    return None


def _fail(error: BaseException) -> NoReturn:
    raise error
