"""The consumer: workers that handle batches, one poller that finds work for idle ones, one heartbeat for leases.

A worker finishes its batch and claims the next in one call, so a busy queue is worked off without the poller. The
poller looks only while some worker is idle: it asks to be woken, and polls as a floor. Each thread has its own
connection, which is made anew when it is lost; the calls are then tried again, as at-least-once allows.
"""

import logging
import os
import queue
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from .databases import Conflict, Database, DatabaseError, Disconnected, Row, SchemaMissing, Session
from .handlers import Handled, Handler, HandlerError, Message, failure
from .link import Link, Outage
from .metrics import Metrics

log = logging.getLogger("rowqueue")

SHORTEST_POLL = 0.1
LONGEST_POLL = 2.0
LONGEST_POLL_FOR_DUE = 1.0  # with a message that is due some time: when that is, only the server's clock knows
LONGEST_BLIND_POLL = 0.15  # where the database wakes nobody: on average a message waits for half of it
READY_SECONDS = 30.0
# A lease has 1 second at least. After this long a handler is worth the question how much of it is left.
FIRST_BEAT = 0.3
SHORTEST_BEAT = 0.2
LONGEST_BEAT = 5.0


@dataclass(frozen=True)
class Options:
    """What `runner consume` was asked for; seconds everywhere, None for no limit.

    `lease` None leaves the length of a lease to the queue's policy. `connect_timeout`: how long the database may be
    away.
    """

    types: tuple[str, ...]
    reader: str
    batch: int = 10
    concurrency: int = 1
    lease: int | None = None
    once: bool = False
    drain: bool = False
    max_messages: int | None = None
    idle_timeout: float | None = None
    transaction: bool = False
    ring: bool = False
    shutdown_timeout: float = 30.0
    connect_timeout: float | None = None


@dataclass(eq=False, slots=True)
class Batch:
    """Claimed messages, and their next heartbeat and end of lease on this process's monotonic clock.

    `lease_until` is the end on the server's clock, until the heartbeat has asked how far off that is.
    """

    type: str
    key: Any
    messages: list[Message]
    beat_every: float
    beat_at: float
    expires: float
    lease_until: datetime | None = None
    lost: bool = False
    begun: bool = False  # some message of it has been handed to the handler


class Budget:
    """How many messages may still be claimed; a claim takes its size first and gives back what it did not get."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self._lock = threading.Lock()

    def take(self, wish: int) -> int:
        """Reserve up to `wish` messages; 0 when none are left."""
        if self._left is None:
            return wish
        with self._lock:
            size = min(wish, self._left)
            self._left -= size
            return size

    def give_back(self, count: int) -> None:
        """Return what a claim did not get."""
        if self._left is not None:
            with self._lock:
                self._left += count

    def is_used_up(self) -> bool:
        """No message may be claimed any more."""
        return self._left == 0


class _RollBack(Exception):
    """Leaves a transaction whose message failed."""


Inbox = queue.SimpleQueue["Batch | str | None"]
LOOK = "look"  # told to a worker under --transaction: something is ready, take it


class Consumer:
    """Consumes with one handler until told to stop; `run` is called once, from the main thread."""

    extend_procedure = "extend_lease"
    chains = True  # finishing a batch claims the next one
    longest_blind_poll = LONGEST_BLIND_POLL

    def __init__(self, database: Database, handler: Handler, options: Options) -> None:
        self._database = database
        self._handler = handler
        self._options = options
        self.metrics = Metrics()
        self.totals: Counter[str] = Counter()
        self._outage = Outage(self.metrics, options.connect_timeout, not (options.drain or options.once))
        self._budget = Budget(options.max_messages)
        # finish_batch claims on: possible when the next batch is of the same type and found the same way.
        self._chains = self.chains and len(options.types) == 1 and not options.ring and not options.once
        ends = (options.drain, options.max_messages is not None, options.idle_timeout is not None)
        self._may_end = any(ends)  # of itself
        self._stop = threading.Event()  # claim nothing more and start nothing more
        self._ended = threading.Event()  # all workers are done
        self._never = threading.Event()
        self._signal = 0
        self._error: BaseException | None = None
        self._state = threading.Condition()  # guards the fields below
        self._active: dict[Any, Batch] = {}
        workers = options.concurrency
        if handler.limits_itself:  # then a worker is a batch: enough of them, and one to claim while the others run
            workers = min(workers, -(-workers // options.batch) + 1)
        self._inboxes = [Inbox() for _ in range(workers)]
        self._idle = list(self._inboxes)
        self._last_claim = self._last_work = time.monotonic()
        self._interval = SHORTEST_POLL
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self.metrics.active.set_function(lambda: sum(len(batch.messages) for batch in list(self._active.values())))

    # ---- the whole ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Consume until done or stopped. Raises what ended it: DatabaseError, QueueError or HandlerError."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        log.info("consuming %s as %s", ", ".join(self._options.types), self._options.reader)
        heartbeat = self._start(self._beat, "heartbeat")
        workers = [self._start(partial(self._work, inbox), "worker") for inbox in self._inboxes]
        self._start(self._poll, "poller").join()
        for inbox in self._inboxes:
            inbox.put(None)
        for worker in workers:
            worker.join()
        self._ended.set()
        heartbeat.join()
        log.info("done: %s", ", ".join(f"{n} {outcome}" for outcome, n in self.totals.items()) or "no messages")
        if self._error is not None:
            raise self._error

    def is_ready(self) -> bool:
        """The database answers, and a claim did within the last 30 seconds or every worker is busy."""
        recent = time.monotonic() - self._last_claim < READY_SECONDS
        return not self._outage.is_on() and (recent or not self._idle)

    def _start(self, target: Callable[[], None], name: str) -> threading.Thread:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:
                self._fail(error)

        thread = threading.Thread(target=guarded, name=name)
        thread.start()
        return thread

    def _fail(self, error: BaseException) -> None:
        """Remember the first error and stop everything."""
        self._error = self._error or error
        self._end()

    def _end(self) -> None:
        self._stop.set()
        with self._state:
            self._state.notify_all()
        self._wake()

    def _on_signal(self, number: int, _frame: object) -> None:
        name = signal.Signals(number).name
        if self._signal:
            self._abort(number, f"{name} again: aborting; what is claimed comes back when its lease runs out")
        self._signal = number
        timeout = self._options.shutdown_timeout
        log.info("%s: finishing what runs, for at most %g s", name, timeout)
        late = f"still busy after {timeout:g} s: aborting; what is claimed comes back when its lease runs out"
        timer = threading.Timer(timeout, self._abort, (number, late))
        timer.daemon = True
        timer.start()
        self._end()

    def _abort(self, number: int, reason: str) -> None:
        """Leave at once: handlers in threads cannot be ended in any other way."""
        log.error(reason)
        self._handler.abort()
        os._exit(128 + number)

    def _wake(self) -> None:
        """End the poller's sleep."""
        with suppress(BlockingIOError):
            os.write(self._wake_writer, b"x")

    def _link(self, listen_to: Sequence[str] = (), is_over: Callable[[], bool] = lambda: False) -> Link:
        return Link(self._database, self._options.reader, self._outage, listen_to, is_over)

    # ---- claiming -----------------------------------------------------------------------------------

    def _claim(self, link: Link, type: str) -> Batch | None:
        """Claim a batch of one type; None when nothing is ready, the budget is used up, or we stop."""
        options = self._options
        size = self._budget.take(options.batch)
        rows: list[Row] = []
        asked_at = time.monotonic()
        try:
            if size and not self._stop.is_set():
                rows = self._claim_rows(link, type, size)
                self._last_claim = time.monotonic()
        except (Disconnected, Conflict):  # only when we stop
            pass
        finally:
            self._budget.give_back(size - len(rows))
        return self._batch(rows, asked_at)

    def _claim_rows(self, link: Link, type: str, size: int) -> list[Row]:
        options = self._options
        procedure = "claim_wraparound" if options.ring else "claim_batch"
        return link.call(self._stop, procedure, type, size, options.reader, options.lease)

    def _message(self, row: Row) -> Message:
        return Message(**row)

    def _batch(self, rows: list[Row], asked_at: float) -> Batch | None:
        """The batch of a claim's rows. Its lease runs from when it was asked for: too early is on the safe side."""
        if not rows:
            return None
        self._last_work = time.monotonic()
        messages = [self._message(row) for row in rows]
        claimed = partial(Batch, messages[0].type, rows[0]["batch_key"], messages)
        lease = self._options.lease
        if lease is not None:
            return claimed(lease / 3, asked_at + lease / 3, asked_at + lease)
        # The queue's own: its end is a time on the server's clock, and to compare it with ours would be to trust both.
        return claimed(FIRST_BEAT, asked_at + FIRST_BEAT, float("inf"), rows[0]["lease_until"])

    def _types_after(self, type: str | None) -> Sequence[str]:
        """All types, beginning behind `type`: each has its turn."""
        types = self._options.types
        start = types.index(type) + 1 if type is not None else 0
        return types[start:] + types[:start]

    # ---- the poller ---------------------------------------------------------------------------------

    def _poll(self) -> None:
        link = self._link(self._options.types, self._is_idle_too_long)
        try:
            if self._options.once:
                self._poll_once(link)
            else:
                self._poll_on(link)
        finally:
            link.close()

    def _poll_once(self, link: Link) -> None:
        for type in self._options.types:
            if self._await_idle():
                self._hand_out(link, type)

    def _poll_on(self, link: Link) -> None:
        barren = 0  # looks in a row that found nothing
        while self._await_idle():
            all_idle = len(self._idle) == len(self._inboxes)
            found = self._look(link)
            barren = 0 if found else barren + 1
            if not self._idle and not self._options.transaction:
                continue
            ready, due = self._ask(link)
            if all_idle and not found and self._is_over(ready):
                return
            # Ready and yet not to be had: another one is about to take it. Look again once, then rest.
            if ready and barren < 2 and not self._options.transaction:
                continue
            self._rest(link, due)

    def _await_idle(self) -> bool:
        """Wait until some worker is idle; False when we stop."""
        with self._state:
            self._state.wait_for(lambda: self._idle or self._stop.is_set())
        return not self._stop.is_set()

    def _look(self, link: Link) -> bool:
        """Give idle workers what is ready; True when something was found, which a mere hint does not tell.

        Each type has its turn, and a full batch means that there may be more.
        """
        if self._options.transaction:
            ready, _ = self._ask(link)
            while ready and self._idle:
                self._next_idle().put(LOOK)
            return False
        found = False
        for type in random.sample(self._options.types, len(self._options.types)):
            count = self._options.batch
            while count == self._options.batch and self._idle:
                count = self._hand_out(link, type)
                found = found or count > 0
        return found

    def _hand_out(self, link: Link, type: str) -> int:
        """Claim a batch for an idle worker; how many messages it got."""
        if self._options.transaction:
            self._next_idle().put(type)
            return 0
        batch = self._claim(link, type)
        if batch is None:
            return 0
        self._next_idle().put(batch)
        return len(batch.messages)

    def _next_idle(self) -> Inbox:
        with self._state:
            return self._idle.pop()

    def _ask(self, link: Link) -> tuple[bool, datetime | None]:
        """Is anything ready, and when will the next message be? Asks senders to wake us, too."""
        ready, due = False, None
        for type in self._options.types:
            with suppress(Disconnected, Conflict):  # only when we stop
                row = link.call(self._stop, "wait_for_message", type, 0)[0]
                ready = ready or bool(row["ready"])
                due = min(filter(None, (due, row["next_run_at"])), default=None)
                self._last_claim = time.monotonic()
        return ready, due

    def _is_over(self, ready: bool) -> bool:
        """With all workers idle: is this the end we were asked to reach?"""
        return self._budget.is_used_up() or (self._options.drain and not ready) or self._is_idle_too_long()

    def _is_idle_too_long(self) -> bool:
        timeout = self._options.idle_timeout
        all_idle = len(self._idle) == len(self._inboxes)
        return timeout is not None and all_idle and time.monotonic() - self._last_work >= timeout

    def _rest(self, link: Link, due: datetime | None) -> None:
        """Sleep until woken, the next message is due, or the poll interval is over; the interval grows while idle."""
        pause = self._interval * random.uniform(0.5, 1)
        self._interval = min(self._interval * 1.5, LONGEST_POLL if link.is_woken else self.longest_blind_poll)
        if self._options.idle_timeout is not None and len(self._idle) == len(self._inboxes):
            left = self._last_work + self._options.idle_timeout - time.monotonic()
            pause = min(pause, max(left, 0) + 0.001)
        if due is not None:
            pause = min(pause, LONGEST_POLL_FOR_DUE)
            if 0 < (until := (due - datetime.now(UTC)).total_seconds()) < pause:
                pause = until + 0.005  # a little late rather than early; where clocks differ, polls are soon enough
                self._interval = SHORTEST_POLL
        if link.wait(pause, self._wake_reader):
            self._interval = SHORTEST_POLL
        with suppress(BlockingIOError):
            os.read(self._wake_reader, 4096)

    # ---- the workers --------------------------------------------------------------------------------

    def _work(self, inbox: Inbox) -> None:
        link = self._link()
        while (job := inbox.get()) is not None:
            worked = self._take_on(link, job) if isinstance(job, str) else self._handle_on(link, job)
            self._go_idle(inbox, worked)
        link.close()

    def _go_idle(self, inbox: Inbox, worked: bool) -> None:
        with self._state:
            self._idle.append(inbox)
            self._state.notify_all()
        self._interval = SHORTEST_POLL if worked else self._interval
        # The last one tells the poller, which may find that all is done.
        if worked and len(self._idle) == len(self._inboxes):
            self._last_work = time.monotonic()
            if self._may_end:
                self._wake()

    def _handle_on(self, link: Link, first: Batch) -> bool:
        """Handle a batch and those that follow it, until nothing is ready."""
        batch: Batch | None = first
        while batch is not None:
            batch = self._handle(link, batch)
        return True

    def _handle(self, link: Link, batch: Batch) -> Batch | None:
        """Handle one batch, finish it, and return the next one."""
        handled = self._run_handler(batch)
        if batch.lost:
            self._count(batch.type, "lost", len(batch.messages))
            return self._follow(link, batch)
        if handled.unstarted:
            self._finish_part(link, batch, handled)
            return self._follow(link, batch)
        size = self._budget.take(self._options.batch) if self._chains and not self._stop.is_set() else 0
        lines = "\n".join(f.line() for f in handled.failures) or None
        asked_at = time.monotonic()
        rows = self._finish(link, batch, lines, size)
        self._last_claim = time.monotonic()
        self._budget.give_back(size - len(rows))
        self._report(batch.type, batch.messages, handled)
        return self._batch(rows, asked_at) if self._chains else self._follow(link, batch)

    def _finish(self, link: Link, batch: Batch, failures: str | None, size: int) -> list[Row]:
        """Finish a batch; the rows of the next one, when finishing claims it."""
        return link.call(self._never, "finish_batch", batch.key, failures, size)

    def _run_handler(self, batch: Batch) -> Handled:
        handled = Handled()
        started = time.monotonic()
        with self._state:
            self._active[batch.key] = batch
        try:
            self._handler.run(batch.messages, handled, lambda: self._may_start(batch))
        finally:
            with self._state:
                del self._active[batch.key]
        self.metrics.seconds.labels(batch.type).observe(time.monotonic() - started)
        self.metrics.sizes.labels(batch.type).observe(len(batch.messages))
        return handled

    def _may_start(self, batch: Batch) -> bool:
        return not (self._stop.is_set() or batch.lost or time.monotonic() > batch.expires)

    def _follow(self, link: Link, batch: Batch) -> Batch | None:
        """The next batch when finish_batch did not claim it: of the first type that has one, in turn."""
        if self._options.once:
            return None
        claims = (self._claim(link, type) for type in self._types_after(batch.type))
        return next(filter(None, claims), None)

    def _finish_part(self, link: Link, batch: Batch, handled: Handled) -> None:
        """Finish what was started, and give the rest back without costing it an attempt."""
        unstarted = {message.id for message in handled.unstarted}
        failures = {f.id: f for f in handled.failures}
        started = [message for message in batch.messages if message.id not in unstarted]

        def settle(session: Session) -> None:
            with session.transaction():
                for message in started:
                    if f := failures.get(message.id):
                        session.call("fail", f.id, batch.key, f.error, f.retry_after)
                    else:
                        session.call("complete", message.id, batch.key)
                session.call("release_batch", batch.key)

        link.run(settle, self._never)
        self._note_part(batch, started, handled)

    def _note_part(self, batch: Batch, started: Sequence[Message], handled: Handled) -> None:
        self._report(batch.type, started, handled)
        self._count(batch.type, "released", len(handled.unstarted))
        if handled.crash is not None:
            self._fail(_ended_by(handled.crash))

    def _report(self, type: str, started: Sequence[Message], handled: Handled) -> None:
        """Log the failures and count the messages of a finished batch."""
        if handled.failures:
            attempts = {message.id: message.attempt for message in started}
            for f in handled.failures:
                log.warning("%s message %d failed (attempt %d): %s", type, f.id, attempts[f.id], f.error)
        discarded = sum(f.retry_after == -1 for f in handled.failures)
        self._count(type, "completed", len(started) - len(handled.failures))
        self._count(type, "failed", len(handled.failures) - discarded)
        self._count(type, "discarded", discarded)

    def _count(self, type: str, outcome: str, count: int) -> None:
        if count:
            self.metrics.messages.labels(type, outcome).inc(count)
            with self._state:
                self.totals[outcome] += count

    # ---- workers under --transaction ----------------------------------------------------------------

    def _take_on(self, link: Link, job: str) -> bool:
        """Take batches of all types in turn until none has any; with --once, one batch of the one type `job`."""
        if job != LOOK:
            return self._take(link, job)
        worked = False
        types = random.sample(self._options.types, len(self._options.types))
        while not self._stop.is_set() and any([self._take(link, type) for type in types]):
            worked = True
        return worked

    def _take(self, link: Link, type: str) -> bool:
        """Take a batch and handle it in one transaction; False when there was nothing or no connection."""
        size = self._budget.take(self._options.batch)
        messages: list[Message] = []
        handled = Handled()

        def work(session: Session) -> None:
            with session.transaction() as connection:
                rows = session.call("take_batch", type, size)
                messages.extend(Message(**{**row, "connection": connection}) for row in rows)
                self._last_claim = self._last_work = time.monotonic()
                self._handler.run(messages, handled, lambda: not handled.failures)
                if handled.failures or handled.crash:
                    raise _RollBack

        if size == 0 or self._stop.is_set():
            self._budget.give_back(size)
            return False
        try:
            link.once(work)
        except _RollBack:
            pass
        except (Disconnected, Conflict) as error:
            log.info("%s: rolled back, to be taken again: %s", type, error)
            self._budget.give_back(size)
            with suppress(Disconnected):  # only when we stop
                link.run(lambda _: None, self._stop)
            return False
        except DatabaseError as error:
            if not messages or isinstance(error, SchemaMissing):
                raise
            # The commit was refused: that is the handler's work.
            handled.failures = [failure(message, error) for message in messages]
        self._budget.give_back(size - len(messages))
        self._settle_take(link, type, messages, handled)
        return bool(messages)

    def _settle_take(self, link: Link, type: str, messages: list[Message], handled: Handled) -> None:
        """Count the failed attempts of a take that was rolled back, and those only."""

        def count(session: Session) -> None:
            with session.transaction():
                for f in handled.failures:
                    session.call("fail", f.id, None, f.error, f.retry_after)

        if handled.crash is not None:
            self._fail(_ended_by(handled.crash))
            return
        if handled.failures:
            failed = {f.id for f in handled.failures}
            messages = [message for message in messages if message.id in failed]
            # Not tried again: when the connection is lost, it was probably lost to the handler as well.
            with suppress(Disconnected, Conflict):
                link.once(count)
        self._report(type, messages, handled)

    # ---- the heartbeat ------------------------------------------------------------------------------

    def _beat(self) -> None:
        link = self._link()
        while not self._ended.wait(self._until_next_beat()):
            now = time.monotonic()
            with self._state:
                due = [batch for batch in self._active.values() if batch.beat_at <= now and not batch.lost]
            for batch in due:
                with suppress(Disconnected, Conflict):  # only at the very end
                    if batch.lease_until is not None:
                        self._measure(link, batch, batch.lease_until)
                    else:
                        self._extend(link, batch)
        link.close()

    def _measure(self, link: Link, batch: Batch, lease_until: datetime) -> None:
        """Set the beat by what the lease has left, both times of which are the server's."""
        now = link.run(lambda session: session.now(), self._ended)
        left = (lease_until - now).total_seconds()
        batch.beat_every = min(max(left / 3, SHORTEST_BEAT), LONGEST_BEAT)
        batch.beat_at = time.monotonic() + (batch.beat_every if left > SHORTEST_BEAT else 0)
        batch.lease_until = None

    def _until_next_beat(self) -> float:
        """Seconds to sleep; short enough for batches that are claimed meanwhile."""
        with self._state:
            first = min((batch.beat_at for batch in self._active.values() if not batch.lost), default=float("inf"))
        longest = self._options.lease / 3 if self._options.lease is not None else FIRST_BEAT
        return min(max(first - time.monotonic(), 0.01), longest)

    def _extend(self, link: Link, batch: Batch) -> None:
        asked_at = time.monotonic()
        lease = self._options.lease
        held = link.call(self._ended, self.extend_procedure, batch.key, lease)[0]["count"]
        with self._state:
            if held:
                batch.beat_at = asked_at + batch.beat_every
                batch.expires = asked_at + lease if lease is not None else batch.expires
            elif batch.key in self._active:  # else the worker has finished it in the meantime
                batch.lost = True
                self.metrics.lost.inc()
                log.warning("%s: lost the lease of %d messages; others may take them", batch.type, len(batch.messages))


def _ended_by(error: BaseException) -> HandlerError:
    return HandlerError(f"the handler ended the process: {type(error).__name__}: {error}")
