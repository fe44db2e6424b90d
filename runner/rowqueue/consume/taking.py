"""Worker threads under --transaction: they take and handle messages in one transaction; its commit completes them."""

import logging
import random
import time
from collections import Counter
from collections.abc import Sequence, Set
from contextlib import suppress

from ..databases import Conflict, DatabaseError, Disconnected, QueueError, SchemaMissing, Session
from ..databases.link import Link
from ..handlers import Handled
from ..messages import Failure, Message
from .claims import TURN
from .source import Batch
from .workers import Worker

log = logging.getLogger("rowqueue")

# A message that is handled alone counts an attempt at this conflict. Where several nodes of a cluster write, a few
# conflicts of a message are nobody's fault.
CONFLICTS = 8
MOST_NOTED = 1_000  # messages whose conflicts are counted at a time


class _RollBack(Exception):
    """Leaves the transaction of a message that failed."""


class TakeWorker(Worker):
    """Takes batches and handles them in the transaction that takes them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._conflicts: Counter[int] = Counter()  # of messages that have no outcome yet

    def work(self, link: Link, job: Batch | Sequence[str]) -> bool:
        """Take from the queues in turn until all are empty, from those of `job` first; with --once, one batch of it."""
        assert not isinstance(job, Batch)
        if self._options.once:
            return self._take(link, job[0])
        worked = False
        locked: set[str] = set()  # queues from which nothing could be taken
        types = [*job]
        while not self._stop.is_set() and (type := types.pop(0) if types else self._next(link, locked)) is not None:
            turn_ends = time.monotonic() + TURN
            if not self._take(link, type):
                locked.add(type)
                continue
            worked = True
            locked.clear()
            self.claims.queues.had_turn(type)
            while (self.claims.queues.are_one or time.monotonic() < turn_ends) and not self._stop.is_set():
                if not self._take(link, type):
                    break
        return worked

    def _next(self, link: Link, but: Set[str]) -> str | None:
        """The next queue that has a ready message, except `but`."""
        self.claims.queues.refresh(link, self._stop)
        if self.claims.queues.are_one:
            return next(iter(set(self.claims.queues.known) - but), None)
        for types in self.claims.queues.lists():
            with suppress(Disconnected, Conflict):  # only after `stop`
                others = [type for type in types if type not in but]
                if others and (answer := self._source.ask(link, self._stop, others)) is not None and answer.ready:
                    return answer.type
        return None

    def _take(self, link: Link, type: str, is_alone: bool = False) -> bool:
        """Take a batch and handle it in one transaction; False when nothing was ready or the take failed.

        One failed message makes the whole transaction fail; so does a conflict or a lost connection. Then no attempt is
        counted, and its messages are handled in a transaction each (`is_alone`), where failures count, and lost
        connections and conflicts that are repeated.
        """
        claims, budget = self.claims, self.claims.budget
        size = budget.take(1 if is_alone else self.claims.most)
        messages: list[Message] = []
        handled = Handled()

        def work(session: Session) -> None:
            with session.transaction() as connection:
                messages.extend(Message(*row) for row in session.fetch("take_batch", type, size)())
                for message in messages:
                    message.connection = connection
                claims.last_claim = claims.last_work = time.monotonic()
                if messages:
                    self._run(messages, handled, lambda _: not handled.failures)
                if handled.failures or handled.crash:
                    raise _RollBack from handled.cause

        if size == 0 or self._stop.is_set():
            budget.give_back(size)
            return False
        passes = is_conflict = False  # the failure may be nobody's fault
        try:
            link.once(work)
        except _RollBack:
            pass
        except (DatabaseError, QueueError) as error:
            is_conflict = isinstance(error, Conflict)
            passes = is_conflict or isinstance(error, Disconnected)
            if not messages and passes:
                log.info("%s: nothing was taken: %s", type, error)
                budget.give_back(size)
                self._await_connection(link)
                return False
            if not messages or isinstance(error, SchemaMissing):
                raise
            # One of the handler's own statements, or the commit, for example for a deferred constraint.
            handled.failures = [Failure.of(message.id, error) for message in messages]
        if handled.failures and (len(messages) > 1 or (passes and not is_alone)) and not handled.crash:
            budget.give_back(size)
            reason = handled.failures[0].error
            log.info("%s: %d messages were rolled back and are handled one by one: %s", type, len(messages), reason)
            self._await_connection(link)
            # Other consumers may have taken some of them.
            all(self._take(link, type, is_alone=True) for _ in messages)
            return True
        if is_conflict and self._is_early(type, messages[0].id, handled.failures[0].error):
            budget.give_back(size)
            self._await_connection(link)
            return True
        budget.give_back(size - len(messages))
        self._settle(link, type, messages, handled)
        return bool(messages)

    def _is_early(self, type: str, id: int, error: str) -> bool:
        """Note a conflict of a message that was handled alone; whether too few have happened to count an attempt."""
        if len(self._conflicts) >= MOST_NOTED:  # others have finished most of these
            self._conflicts.clear()
        self._conflicts[id] += 1
        if (times := self._conflicts[id]) >= CONFLICTS:
            return False
        log.info("%s message %d was rolled back %d times: %s", type, id, times, error)
        self._stop.wait(random.uniform(0, 0.01 * 2**times))  # the others that conflict with it do not all wait as long
        return True

    def _await_connection(self, link: Link) -> None:
        with suppress(Disconnected):  # only after `stop`
            link.run(lambda _: None, self._stop)

    def _settle(self, link: Link, type: str, messages: list[Message], handled: Handled) -> None:
        """Count the failed attempts of a take that was rolled back, and nothing else."""

        def count(session: Session) -> dict[int, str | None]:
            found = {}
            with session.transaction():
                for f in failures:
                    delay = None if f.dead else f.retry_after
                    found[f.id] = session.call("count_attempt", f.id, f.error, delay, int(f.dead))[0]["state"]
            return found

        if self._conflicts:
            for message in messages:
                del self._conflicts[message.id]
        if self._crashed(handled):
            return
        failures = handled.failures
        states: dict[int, str | None] = {}
        if failures:
            with suppress(Disconnected, Conflict):
                link.once(lambda session: session.now())  # the handler may have closed the connection
            # Not repeated: if the connection is lost now, it was probably lost during the handler.
            with suppress(Disconnected, Conflict):
                states = link.once(count)
            for f in failures:
                # The connection is lost, the handler has committed, or others have taken the message.
                if not states.get(f.id):
                    log.warning("%s message %d failed, and the attempt is not counted: %s", type, f.id, f.error)
            messages = [message for message in messages if states.get(message.id)]
        self.reports.finished(type, messages, handled, dead=sum(state == "E" for state in states.values()))
