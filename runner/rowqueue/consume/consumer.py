"""A consumer in an application's own process: `runner consume`, started from code."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from ..databases import Conflict, Database, Disconnected, NotAllowed, SchemaMissing, how_to_add, open_database
from ..databases.link import NEVER, once_there, when_there
from ..handlers import Handler, load, of
from ..install import apply as install
from ..install import contract
from .loop import Loop
from .options import OPTIONS, BadOption, Options
from .reports import Metrics
from .source import QueueSource, Source

log = logging.getLogger("rowqueue")


class Consumer:
    """Runs a handler for each message of one or more queues: `runner consume` as an object.

    `database_url`: as for --database. `types`: a queue, or several; also patterns such as `mail.*`. `handler`: a
    function, or its name `module:function`. The other arguments have the names, units, limits and defaults of the
    command line's options; see `runner consume --help`. `signals`: SIGTERM and SIGINT stop the consumer, and
    `shutdown_timeout` applies; only for the main thread. Without it, no signal handler is changed.

    Raises ValueError for an option or a URL that is not allowed, HandlerError for a handler that cannot be used.
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
        consumer: str | None = None,
        once: bool = False,
        drain: bool = False,
        max_messages: int | None = None,
        idle_timeout: float | None = None,
        transaction: bool = False,
        keep_results: bool = False,
        shutdown_timeout: float = 30.0,
        health_port: int | None = None,
        connect_timeout: float | None = None,
        report: int = 10,
        signals: bool = False,
        exclude: str | Sequence[str] = (),
    ) -> None:
        chosen = {name: value for name, value in locals().items() if name in OPTIONS}
        self._options = Options.of_queues(
            [types] if isinstance(types, str) else types, [exclude] if isinstance(exclude, str) else exclude, **chosen
        )
        self._database = open_database(database_url)
        self._handler = load(handler, concurrency) if isinstance(handler, str) else of(handler, concurrency)
        try:
            self._options.check(self._handler)
        except ValueError:
            self._handler.close()
            raise
        self._signals = signals
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._began = False
        self._loop: Loop | None = None

    def run(self) -> None:
        """Consume until the consumer is done or `stop` is called. Blocks, so usually runs in a thread of its own.

        Connects again when a connection is lost, for at most `connect_timeout` seconds. Call it once per object; a
        second call raises RuntimeError. Raises BadOption when results are to be kept and a queue does not archive,
        SchemaMissing when the queue is not installed in this release, and DatabaseError, QueueError or HandlerError
        when one of these ended the consumer.
        """
        with self._lock:
            if self._began:
                raise RuntimeError("run() can be called once per Consumer; create another one")
            self._began = True
        try:
            consume(
                self._database, self._handler, self._options, QueueSource, self._signals, self._stopped, self._take_over
            )
        finally:
            self._handler.close()

    def _take_over(self, loop: Loop) -> None:
        with self._lock:
            self._loop = loop
            if self._stopped.is_set():
                loop.stop()

    def stop(self) -> None:
        """Stop claiming and start no further message. `run` returns when running handlers are done. Any thread."""
        with self._lock:
            self._stopped.set()
            if self._loop is not None:
                self._loop.stop()

    def is_ready(self) -> bool:
        """Whether no connection is lost, and a claim was answered within 30 seconds or all worker threads are busy."""
        return self._loop is not None and self._loop.is_ready()


def consume(
    database: Database,
    handler: Handler,
    options: Options,
    source: type[Source],
    signals: bool = True,
    stopped: threading.Event = NEVER,
    made: Callable[[Loop], None] = lambda _: None,
) -> None:
    """Wait for the database, check what is installed, and consume until done or stopped.

    `stopped`: ends the wait. `made` is called with the loop before it starts. The rest is as for Consumer.
    """

    def check() -> Options:
        check_installed(database, source.area)
        return fitted(database, options) if source.reports else options

    try:
        options = (when_there if signals else once_there)(check, options.connect_timeout, stopped)
    except (Disconnected, Conflict):
        if stopped.is_set():
            return
        raise
    metrics = Metrics() if options.health_port is None else _served(options.health_port)
    loop = Loop(database, handler, options, source(options), metrics)
    made(loop)
    loop.run(signals)


def _served(port: int) -> Metrics:
    """The metrics that a port serves. Raises BadOption without what they need: the core does not import extras."""
    try:
        served: Metrics = import_module("rowqueue.extras.health").Metrics(port)
    except ModuleNotFoundError as error:
        reason = f"needs {error.name}: pip install '.[metrics]' in the checkout of rowqueue"
        raise BadOption("health_port", reason) from None
    return served


def check_installed(database: Database, area: str = "queue") -> None:
    """Raise SchemaMissing unless the queue is installed as released, AreaMissing without this area.

    A later release of the same major version will do.
    """
    wrong = install.pending(database)
    if install.later_release(wrong):
        wrong = [file for file in wrong if file.state != "newer"]
    if wrong:
        states = ", ".join(sorted({file.state for file in wrong}))
        raise SchemaMissing(
            f"the queue is not installed as released ({len(wrong)} files: {states}): run `runner apply`"
        )
    if area not in contract.CORE:
        with closing(database.connect("runner")) as session:
            session.require(area)


def fitted(database: Database, options: Options) -> Options:
    """The options of a consumer of queues for the areas that are installed: without `consumers`, it does not report.

    Raises BadOption if results are wanted and the area `results` is not installed, or a queue keeps none. A user
    without the right to read policies learns it from a warning, when a message is finished.
    """
    if not options.report and not options.keep_results:
        return options
    with suppress(NotAllowed), closing(database.connect(options.name)) as session:
        areas = session.areas()
        if options.report and "consumers" not in areas:
            log.info("this consumer does not report: %s", how_to_add(["consumers"]))
            options = replace(options, report=0)
        if not options.keep_results:
            return options
        if "results" not in areas:
            raise BadOption("keep_results", how_to_add(["results"]))
        for type in options.types:
            if session.call("list_queues", type)[0]["on_complete"] != "archive":
                raise BadOption("keep_results", f"queue {type} keeps no results: set its on_complete to archive")
    return options
