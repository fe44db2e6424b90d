"""The loop of a consumer: one thread claims for idle worker threads, others extend leases, watch and report.

A worker thread finishes its batch and claims the next one in one call, so a busy queue needs no poller. The poller
claims only while a worker thread is idle. It asks to be woken and also polls, in case no wake-up comes. Each thread has
its own connection and connects again when it is lost. Then it repeats the call: delivery is at least once.
"""

import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial

from ..databases import Conflict, Database, Disconnected
from ..databases.link import Link, Links, Outage
from ..handlers import Handler
from ..shutdown import Shutdown, join
from .claims import Claims, Leases
from .options import Options
from .reports import Metrics, Reports
from .source import Answer, Source
from .taking import TakeWorker
from .workers import BatchWorker, Inbox

log = logging.getLogger("rowqueue")

SHARED_THREADS = 16  # each has a connection
READY_SECONDS = 30.0
LAST_REPORT_SECONDS = 5.0  # how long the end waits for the last report: others may hold its lock
SHORTEST_POLL = 0.1
LONGEST_POLL = 2.0
LONGEST_POLL_FOR_DUE = 1.0  # while a delayed message waits: it is due by the server's clock, not by ours


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


class Rest:
    """The sleep of the poller, which any thread or a signal can end; longer each time it finds nothing.

    `longest_blind`: the limit without wake-ups.
    """

    def __init__(self, longest_blind: float) -> None:
        self._longest_blind = longest_blind
        self._interval = SHORTEST_POLL
        # `end` may come after `close`. On a closed socket it fails; the number of a closed pipe may be another file's.
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def end(self) -> None:
        """End the sleep; if the thread is not asleep, end its next one."""
        with suppress(OSError):
            self._writer.send(b"x")

    def close(self) -> None:
        """Called when nobody sleeps any more; `end` then does nothing."""
        self._reader.close()
        self._writer.close()

    def shorten(self) -> None:
        """Something was found: rest only briefly next, since more may follow."""
        self._interval = SHORTEST_POLL

    def rest(self, link: Link, due: datetime | None, at_most: float | None, calls: int) -> Collection[str] | None:
        """Sleep until woken, until the next message is due, or for the poll interval, which grows each time.

        `calls`: of each poll; without wake-ups, the interval grows with them. Returns the queues that a wake-up named;
        None: there was none.
        """
        pause = self._interval * random.uniform(0.75, 1)
        self._interval = min(self._interval * 1.5, LONGEST_POLL if link.is_woken else self._longest_blind * calls)
        if at_most is not None:
            pause = min(pause, at_most)
        if due is not None:
            pause = min(pause, LONGEST_POLL_FOR_DUE)
            if 0 < (until := (due - datetime.now(UTC)).total_seconds()) < pause:
                pause = until + 0.005  # better a little late than early; if clocks differ, the next poll finds it
                self.shorten()
        woken = link.wait(pause, self._reader.fileno())
        if woken is not None:
            self.shorten()
        with suppress(BlockingIOError):
            self._reader.recv(4096)
        return woken


class Loop:
    """Consumes with one handler until done or stopped. Call `run` once."""

    def __init__(
        self, database: Database, handler: Handler, options: Options, source: Source, metrics: Metrics
    ) -> None:
        self._database, self._handler, self._options, self._source = database, handler, options, source
        # The threads of a handler that limits itself share its messages.
        threads = min(options.concurrency, SHARED_THREADS) if handler.limits_itself else options.concurrency
        # Lists are as long as `batch` says, and so are the batches of --once.
        least = None if handler.takes_list or options.once else -(-options.concurrency // threads)
        self._claims = Claims(source, options, options.most(handler), least)
        self._queues, self._stop = self._claims.queues, self._claims.stop
        # Polling tables are not queues: their consumers are not listed.
        self._reports = Reports(self._queues, options, options.report if source.reports else 0, metrics)
        awaits_writer = not (options.drain or options.once)
        self._outage = Outage(options.connect_timeout, awaits_writer, metrics.reconnected)
        source.links = self._links = Links(self._link)
        self._pool, self._rest = Pool(threads), Rest(source.longest_blind_poll)
        self._leases = Leases(self._claims, self._reports, self._rest.end)
        worker = TakeWorker if options.transaction else BatchWorker
        self._worker = worker(handler, self._claims, self._leases, self._reports, self._fail)
        remark = "; claimed messages are retried when their lease ends"
        self._shutdown = Shutdown(options.shutdown_timeout, self.stop, handler.abort, remark)
        self._metrics = metrics
        self._ended = threading.Event()  # all worker threads are done
        self._error: BaseException | None = None

    def run(self, signals: bool) -> None:
        """Consume until done or stopped. Raises the DatabaseError, QueueError or HandlerError that ended it.

        `signals`: SIGTERM and SIGINT stop it; only for the main thread.
        """
        with self._metrics.served(self._leases.count, self.is_ready):
            if signals:
                self._shutdown.listen()
            wanted = (*self._options.types, *self._options.patterns)
            log.info("consuming %s as %s", ", ".join(wanted), self._options.name)
            self._run()
        log.info("done: %s", str(self._reports) or "no messages")
        if self._error is not None:
            raise self._error
        self._handler.check()

    def stop(self) -> None:
        """Stop claiming and start no further message. `run` returns when running handlers are done. Any thread."""
        self._stop.set()
        self._pool.stop()
        self._rest.end()

    def is_ready(self) -> bool:
        """Whether no connection is lost, and a claim was answered within 30 seconds or all worker threads are busy."""
        recent = time.monotonic() - self._claims.last_claim < READY_SECONDS
        return not self._outage.is_on() and (recent or not self._pool.has_idle())

    # ---- the threads, each with its own connection ---------------------------------------------------

    def _run(self) -> None:
        heartbeat = self._start("heartbeat", partial(self._linked, self._leases.beat))
        # A finish may wait for locks, and the locks of a report may be held by others; leases must be extended.
        watch = self._start("watch", partial(self._linked, self._leases.watch))
        reports = self._start("reports", partial(self._linked, self._reports.send), daemon=True)
        workers = [self._start("worker", partial(self._work, inbox)) for inbox in self._pool.inboxes]
        poller = self._start("poller", self._poll)
        try:
            join(poller)
        except BaseException:  # such as KeyboardInterrupt without `signals`
            self.stop()
            join(poller)
            raise
        finally:
            for inbox in self._pool.inboxes:
                inbox.put(None)
            for worker in workers:
                join(worker)
            self._ended.set()
            self._leases.wake()
            for thread in (heartbeat, watch):
                join(thread)
            self._rest.close()
            reports.join(LAST_REPORT_SECONDS)
            self._handler.close(self._shutdown.time_left())
            self._links.close()

    def _start(self, name: str, target: Callable[[], None], daemon: bool = False) -> threading.Thread:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:
                self._fail(error)

        thread = threading.Thread(target=guarded, name=name, daemon=daemon)
        thread.start()
        return thread

    def _fail(self, error: BaseException) -> None:
        """Keep the first error and stop all threads."""
        self._error = self._error or error
        self.stop()

    def _link(self) -> Link:
        return Link(self._database, self._options.name, self._outage)

    def _linked(self, work: Callable[[Link, threading.Event], None]) -> None:
        with closing(self._link()) as link:
            work(link, self._ended)

    def _work(self, inbox: Inbox) -> None:
        link = self._link()
        while (job := inbox.get()) is not None:
            worked = self._worker.work(link, job)
            self._pool.put_back(inbox)
            if worked:
                self._rest.shorten()
                # The last one wakes the poller, which checks whether all is done.
                if self._pool.is_idle():
                    self._claims.last_work = time.monotonic()
                    if self._options.may_end:
                        self._rest.end()
        self._worker.close()
        link.close()

    # ---- the poller ----------------------------------------------------------------------------------

    def _poll(self) -> None:
        with closing(Link(self._database, self._options.name, self._outage, self._is_idle_too_long)) as link:
            if not self._options.once:
                self._poll_on(link)
                return
            self._queues.refresh(link, self._stop)
            for type in self._queues.known:
                if self._pool.await_idle(self._stop):
                    job = [type] if self._options.transaction else self._claims.claim_from(link, [type])
                    if job is not None:
                        self._pool.next_idle().put(job)

    def _poll_on(self, link: Link) -> None:
        takes = self._options.transaction
        looks = True  # claim, or ask first
        woken: Collection[str] = ()  # queues that probably have messages
        barren = 0  # looks in a row that found nothing
        while self._pool.await_idle(self._stop):
            all_idle = self._pool.is_idle()
            found = looks and (self._signal(link, woken) if takes else self._look(link, woken))
            if looks:
                barren = 0 if found else barren + 1
            if not takes and not self._pool.has_idle():
                # A worker thread is idle again when its own claim has found nothing.
                looks, woken = not self._source.answers, ()
                continue
            answer = self._ask(link)
            if all_idle and not found and self._is_over(answer.ready):
                return
            if answer.ready:
                woken = (answer.type,) if answer.type is not None else ()
                # Ready, but locked after a look: another consumer is claiming it. Look once more, then rest.
                if not looks or (not takes and barren < 2):
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

    def _signal(self, link: Link, first: Collection[str]) -> bool:
        """Under --transaction: signal all idle worker threads that something is ready; they take it themselves.

        Returns False: whether they find something is not known here.
        """
        if not first:
            answer = self._ask(link)
            if not answer.ready:
                return False
            first = (answer.type,) if answer.type is not None else ()
        while self._pool.has_idle():
            self._pool.next_idle().put([*first])
        return False

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
        return self._claims.budget.is_used_up() or drained or self._is_idle_too_long()

    def _is_idle_too_long(self) -> bool:
        """Whether all worker threads have been idle for `idle_timeout`."""
        timeout = self._options.idle_timeout
        return timeout is not None and self._pool.is_idle() and time.monotonic() - self._claims.last_work >= timeout

    def _time_left(self) -> float | None:
        """Seconds until the next list of queues, or until `idle_timeout` ends the consumer; None for neither."""
        times = [self._queues.until_list()]
        if self._options.idle_timeout is not None and self._pool.is_idle():
            times.append(max(self._claims.last_work + self._options.idle_timeout - time.monotonic(), 0) + 0.001)
        return min((time for time in times if time is not None), default=None)
