"""The consumer as a whole: starts its threads and ends them."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..databases import Database
from ..handlers import Handler
from ..shutdown import Shutdown, join
from .claims import Claims
from .leases import Leases
from .link import Link, Outage
from .options import Options
from .poller import Poller, TakePoller
from .queues import Queues
from .reports import Reports
from .resting import Rest
from .sources import Source
from .taking import TakeWorker
from .tally import Tally
from .watch import Watch
from .workers import BatchWorker, Inbox, Pool, Tools

if TYPE_CHECKING:
    from .health import Metrics

log = logging.getLogger("rowqueue")

SHARED_THREADS = 16  # each has a connection
READY_SECONDS = 30.0
LAST_REPORT_SECONDS = 5.0  # how long the end waits for the last report: others may hold its lock
_LATER = "; claimed messages are retried when their lease ends"


class Threads:
    """Consumes with one handler until done or stopped. Call `run` once."""

    def __init__(
        self,
        database: Database,
        handler: Handler,
        options: Options,
        source: Source,
        metrics: "Metrics | None" = None,
    ) -> None:
        self._database, self._handler, self._options = database, handler, options
        self._queues = Queues(options)
        self._stop = threading.Event()  # do not claim and do not start messages
        self._ended = threading.Event()  # all worker threads are done
        self._error: BaseException | None = None
        # Polling tables are not queues: their consumers are not listed.
        every = options.report if source.reports else 0
        self._reports = Reports(self._queues, options.consumer, every, counts_dead=options.transaction)
        self._tally = Tally(metrics, self._reports)
        awaits_writer = not (options.drain or options.once)
        self._outage = Outage(options.connect_timeout, awaits_writer, self._tally.reconnected)
        threads = _threads(handler, options)
        # Lists are as long as `batch` says, and so are the batches of --once.
        started = -(-options.concurrency // threads) if handler.limits_itself else 1
        least = None if handler.takes_list or options.once else started
        self._claims = Claims(source, options, self._queues, self._stop, least)
        self._leases = Leases(source.extend_procedure, options.lease, self._tally)
        self._pool = Pool(threads)
        self._rest = Rest(source.longest_blind_poll)
        tools = Tools(handler, options, self._claims, self._tally, self._stop, self._fail)
        self._worker = (
            TakeWorker(tools, source)
            if options.transaction
            else BatchWorker(tools, source, self._leases, len(self._pool.inboxes) == 1)
        )
        self._watch = Watch(source, self._leases, self._claims, self._tally, self._rest, gives_back=not options.once)
        poller = TakePoller if options.transaction else Poller
        self._poller = poller(source, options, self._claims, self._pool, self._rest, self._stop)
        self._shutdown = Shutdown(options.shutdown_timeout, self._end, handler.abort, _LATER)
        if metrics is not None:
            metrics.active.set_function(self._leases.count)

    def run(self, signals: bool = True) -> None:
        """Consume until done or stopped. Raises the DatabaseError, QueueError or HandlerError that ended it.

        `signals`: SIGTERM and SIGINT stop it; only for the main thread.
        """
        if signals:
            self._shutdown.listen()
        wanted = (*self._options.types, *self._options.patterns)
        log.info("consuming %s as %s", ", ".join(wanted), self._options.consumer)
        heartbeat = self._start(self._beat, "heartbeat")
        watch = self._start(self._watch_batches, "watch")
        reports = self._start(self._report, "reports", daemon=True)
        workers = [self._start(partial(self._work, inbox), "worker") for inbox in self._pool.inboxes]
        poller = self._start(self._poll, "poller")
        try:
            join(poller)
        except BaseException:  # such as KeyboardInterrupt without `signals`
            self.stop()
            join(poller)
            raise
        finally:
            self._end_workers(workers, heartbeat, watch)
            reports.join(LAST_REPORT_SECONDS)
            self._handler.close(self._shutdown.time_left())
        log.info("done: %s", str(self._tally) or "no messages")
        if self._error is not None:
            raise self._error
        self._handler.check()

    def stop(self) -> None:
        """Stop claiming and start no further message. `run` returns when running handlers are done. Any thread."""
        self._end()

    def _end_workers(self, workers: list[threading.Thread], *others: threading.Thread) -> None:
        for inbox in self._pool.inboxes:
            inbox.put(None)
        for worker in workers:
            join(worker)
        self._ended.set()
        self._leases.wake()
        for other in others:
            join(other)

    def is_ready(self) -> bool:
        """Whether no connection is lost, and a claim was answered within 30 seconds or all worker threads are busy."""
        recent = time.monotonic() - self._claims.last_claim < READY_SECONDS
        return not self._outage.is_on() and (recent or not self._pool.has_idle())

    # ---- the threads, each with its own connection ---------------------------------------------------

    def _start(self, target: Callable[[], None], name: str, daemon: bool = False) -> threading.Thread:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:
                self._fail(error)

        thread = threading.Thread(target=guarded, name=name, daemon=daemon)
        thread.start()
        return thread

    def _beat(self) -> None:
        link = self._link()
        try:
            self._leases.beat(link, self._ended)
        finally:
            link.close()

    def _watch_batches(self) -> None:
        # A connection of its own, opened when it is needed: a finish may wait for locks, and leases must be extended.
        link = self._link()
        try:
            self._watch.watch(link, self._ended)
        finally:
            link.close()

    def _report(self) -> None:
        # A connection of its own: others may hold the lock of a report, and leases must be extended meanwhile.
        link = self._link()
        try:
            self._reports.send(link, self._ended)
        finally:
            link.close()

    def _poll(self) -> None:
        consumer = self._options.consumer
        link = Link(self._database, consumer, self._outage, self._poller.is_idle_too_long)
        try:
            self._poller.poll(link)
        finally:
            link.close()

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

    def _link(self) -> Link:
        return Link(self._database, self._options.consumer, self._outage)

    # ---- the end -------------------------------------------------------------------------------------

    def _fail(self, error: BaseException) -> None:
        """Keep the first error and stop all threads."""
        self._error = self._error or error
        self._end()

    def _end(self) -> None:
        self._stop.set()
        self._pool.stop()
        self._rest.end()


def _threads(handler: Handler, options: Options) -> int:
    """The number of worker threads. Those of a handler that limits itself share its messages."""
    return min(options.concurrency, SHARED_THREADS) if handler.limits_itself else options.concurrency
