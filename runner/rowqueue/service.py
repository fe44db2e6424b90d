"""A consumer in an application's own process: what `runner consume` does, started from code."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from . import install, link
from .consumer import Consumer as Threads
from .consumer import Options, QueueSource, Source
from .databases import Conflict, Database, Disconnected, SchemaMissing, open_database
from .handlers import Handler, load, of

log = logging.getLogger("rowqueue")


class Consumer:
    """Runs a handler for each message of some queues: `runner consume` as an object.

    `handler` is a function, or its name `module:function`. The options are those of the command line, with its names,
    limits and defaults; see `runner consume --help`. `run` blocks until the consumer is done or `stop` is called from
    another thread, so an application calls it in a thread of its own. It changes no signal handlers unless `signals` is
    true, which only the main thread may ask for; then SIGTERM and SIGINT stop it, and `shutdown_timeout` applies.
    Raises ValueError for an option or a URL that cannot be used, HandlerError for a handler.
    """

    def __init__(
        self,
        database_url: str,
        types: str | Sequence[str],
        handler: Callable[..., Any] | str,
        *,
        batch: int | None = None,
        concurrency: int = 1,
        lease: int | None = None,
        reader: str | None = None,
        once: bool = False,
        drain: bool = False,
        max_messages: int | None = None,
        idle_timeout: float | None = None,
        transaction: bool = False,
        ring: bool = False,
        keep_results: bool = False,
        shutdown_timeout: float = 30.0,
        health_port: int | None = None,
        connect_timeout: float | None = None,
        report: int = 10,
        signals: bool = False,
    ) -> None:
        self._options = Options.of_queues(
            [types] if isinstance(types, str) else types,
            batch,
            reader,
            concurrency=concurrency,
            lease=lease,
            once=once,
            drain=drain,
            max_messages=max_messages,
            idle_timeout=idle_timeout,
            transaction=transaction,
            ring=ring,
            keep_results=keep_results,
            shutdown_timeout=shutdown_timeout,
            connect_timeout=connect_timeout,
            report=report,
        )
        self._database = open_database(database_url)
        self._handler = load(handler, concurrency) if isinstance(handler, str) else of(handler, concurrency)
        try:
            self._options.check(self._handler)
        except ValueError:
            self._handler.close()
            raise
        self._health_port, self._signals = health_port, signals
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._began = False
        self._threads: Threads | None = None

    def run(self) -> None:
        """Consume until done or stopped; once only. A lost connection is made anew, as long as `connect_timeout` says.

        Raises SchemaMissing where the queue is not installed as released, and DatabaseError, QueueError or HandlerError
        for what ended it.
        """
        with self._lock:
            if self._began:
                raise RuntimeError("a Consumer runs once: make another one")
            self._began = True
        try:
            self._run()
        finally:
            self._handler.close()

    def _run(self) -> None:
        def check() -> None:
            check_installed(self._database)

        try:
            if self._signals:
                link.when_there(check, self._options.connect_timeout)
            else:
                link.once_there(check, self._options.connect_timeout, self._stopped)
        except (Disconnected, Conflict):
            if self._stopped.is_set():
                return
            raise
        source = QueueSource(self._options)
        consume(self._database, self._handler, self._options, source, self._health_port, self._signals, self._take_over)

    def _take_over(self, threads: Threads) -> None:
        with self._lock:
            self._threads = threads
            if self._stopped.is_set():
                threads.stop()

    def stop(self) -> None:
        """Claim nothing more and start nothing more; `run` returns when what runs is done. From any thread."""
        with self._lock:
            self._stopped.set()
            if self._threads is not None:
                self._threads.stop()

    def is_ready(self) -> bool:
        """The database answers, and a claim did within the last 30 seconds or every worker thread is busy."""
        return self._threads is not None and self._threads.is_ready()


def check_installed(database: Database) -> None:
    """Refuse a database where the queue is not as released. Raises SchemaMissing."""
    if wrong := install.pending(database):
        states = ", ".join(sorted({file.state for file in wrong}))
        raise SchemaMissing(
            f"the queue is not installed as released ({len(wrong)} files: {states}): run `runner apply`"
        )


def consume(
    database: Database,
    handler: Handler,
    options: Options,
    source: Source,
    health_port: int | None,
    signals: bool = True,
    made: Callable[[Threads], None] = lambda _: None,
) -> None:
    """Consume until done or stopped, and tell of it on the health port. `made` gets what can be stopped."""
    if health_port is None:
        threads = Threads(database, handler, options, source)
        made(threads)
        threads.run(signals)
        return
    from .metrics import Metrics, Server

    metrics = Metrics()
    threads = Threads(database, handler, options, source, metrics)
    made(threads)
    server = Server(health_port, metrics.registry, threads.is_ready)
    log.info("health: http://127.0.0.1:%d", server.port)
    try:
        threads.run(signals)
    finally:
        server.close()
