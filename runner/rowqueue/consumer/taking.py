"""Worker threads under --transaction: they take and handle messages in one transaction; its commit completes them."""

import logging
import random
import time
from contextlib import suppress

from ..databases import Conflict, DatabaseError, Disconnected, SchemaMissing, Session
from ..handlers import Handled
from ..link import Link
from ..messages import Failure, Message
from .leases import Batch
from .workers import Worker

log = logging.getLogger("rowqueue")

LOOK = "look"  # a job for a worker thread: something is ready, take it


class _RollBack(Exception):
    """Leaves the transaction of a message that failed."""


class TakeWorker(Worker):
    """Takes batches and handles them in the transaction that takes them."""

    def work(self, link: Link, job: Batch | str) -> bool:
        """Take batches from all queues in turn until all are empty; with --once, one batch from the queue `job`."""
        assert isinstance(job, str)
        if job is not LOOK:
            return self._take(link, job)
        worked = False
        types = random.sample(self._options.types, len(self._options.types))
        while not self._stop.is_set() and any([self._take(link, type) for type in types]):
            worked = True
        return worked

    def _take(self, link: Link, type: str, at_most: int | None = None) -> bool:
        """Take a batch and handle it in one transaction; False when nothing was ready or the connection was lost.

        One failed message makes the whole transaction fail. So after a failed batch no attempt is counted, and its
        messages are handled in a transaction each. `at_most`: None for the batch size.
        """
        claims, budget = self._claims, self._claims.budget
        size = budget.take(at_most or self._options.batch)
        messages: list[Message] = []
        handled = Handled()

        def work(session: Session) -> None:
            with session.transaction() as connection:
                messages.extend(Message(*row) for row in session.fetch("take_batch", type, size)())
                for message in messages:
                    message.connection = connection
                handled.began = claims.last_claim = claims.last_work = time.monotonic()
                self._handler.run(messages, handled, lambda: not handled.failures)
                handled.seconds = time.monotonic() - handled.began
                if handled.failures or handled.crash:
                    raise _RollBack from handled.cause

        if size == 0 or self._stop.is_set():
            budget.give_back(size)
            return False
        try:
            link.once(work)
        except _RollBack:
            pass
        except (Disconnected, Conflict) as error:  # perhaps of one of the handler's own statements
            log.info("%s: rolled back; the messages will be taken again: %s", type, error)
            budget.give_back(size)
            with suppress(Disconnected):  # only after `stop`
                link.run(lambda _: None, self._stop)
            return False
        except DatabaseError as error:
            if not messages or isinstance(error, SchemaMissing):
                raise
            # The commit was refused, for example by a deferred constraint on the handler's changes.
            handled.failures = [Failure.of(message, error) for message in messages]
        if handled.failures and len(messages) > 1 and not handled.crash:
            budget.give_back(size)
            log.info("%s: a batch of %d messages was rolled back; they are handled one by one", type, len(messages))
            # Other consumers may have taken some of them.
            all(self._take(link, type, 1) for _ in messages)
            return True
        budget.give_back(size - len(messages))
        self._settle(link, type, messages, handled)
        return bool(messages)

    def _settle(self, link: Link, type: str, messages: list[Message], handled: Handled) -> None:
        """Count the failed attempts of a take that was rolled back, and nothing else."""

        def count(session: Session) -> int:
            with session.transaction():
                calls = [session.call("fail", f.id, None, f.error, f.retry_after) for f in handled.failures]
            return sum(row["state"] == "E" for rows in calls for row in rows)

        dead = 0
        if self._crashed(handled):
            return
        if handled.failures:
            failed = {f.id for f in handled.failures}
            messages = [message for message in messages if message.id in failed]
            # Not repeated: if the connection is lost now, it was probably lost during the handler.
            with suppress(Disconnected, Conflict):
                dead = link.once(count)
        self._tally.finished(type, messages, handled, dead)
