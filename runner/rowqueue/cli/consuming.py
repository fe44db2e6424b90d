"""Shared by `consume`, `feed consume` and `table consume`: options, handlers, and starting a consumer."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..consume import LIMITS, BadOption, Options, Source, link
from ..consume import consumer as service
from ..databases import Database
from ..handlers import Handler, HandlerError
from ..handlers import load as load_handler
from .common import opened

log = logging.getLogger("rowqueue")


class LogLevel(StrEnum):
    """The least severe messages that are logged to standard error."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def limits(option: str) -> dict[str, Any]:
    """The limits of an option as Typer's arguments."""
    least, greatest = LIMITS[option]
    return {"min": least, "max": greatest}


HandlerPath = Annotated[
    str | None,
    typer.Option(
        "--handler",
        metavar="MODULE:FUNCTION",
        help="A Python function, sync or async. It gets a message, or a list if it asks for one.",
    ),
]
Exec = Annotated[
    str | None,
    typer.Option(
        "--exec",
        metavar="COMMAND",
        help="A shell command, run once per message, with the message as JSON on stdin. Exit status 0: done; 65: dead"
        " letter; 126 or 127: the runner ends; any other: retry. The last line of stderr is the error.",
    ),
]
Worker = Annotated[
    str | None,
    typer.Option(
        "--worker",
        metavar="COMMAND",
        help="A process that reads messages and writes answers, one line of JSON each. --concurrency of them run.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        metavar="SECONDS",
        help="With --worker or --exec: end a process that has not answered after this time. [never]",
    ),
]
Concurrency = Annotated[
    int,
    typer.Option(**limits("concurrency"), help="Messages handled at a time; lists, for a handler of lists."),
]
BATCH = "The messages in a list; for a handler of one message, the most per claim. [10; 100; with --transaction: 1]"
Lease = Annotated[
    int | None,
    typer.Option(**limits("lease"), help="How long a claim holds; extended while handlers run. [the queue's]"),
]
Consumer = Annotated[str | None, typer.Option(help="This consumer's name. [host and process number]")]
Once = Annotated[bool, typer.Option("--once", help="End after one batch per queue.")]
Drain = Annotated[bool, typer.Option("--drain", help="End when nothing is ready.")]
MaxMessages = Annotated[int | None, typer.Option(**limits("max_messages"), help="End after this many messages.")]
IdleTimeout = Annotated[
    float | None, typer.Option(**limits("idle_timeout"), help="End after this long without a message. [never]")
]
ShutdownTimeout = Annotated[
    float,
    typer.Option(**limits("shutdown_timeout"), help="After SIGTERM or SIGINT, how long running handlers may take."),
]
HealthPort = Annotated[
    int | None,
    typer.Option(
        min=0, max=65_535, help="Serve /live, /ready and /metrics on this port of 127.0.0.1. 0: any free port. [off]"
    ),
]
Level = Annotated[LogLevel, typer.Option("--log-level", help="Log lines of this severity and above to stderr.")]
ConnectTimeout = Annotated[
    float | None,
    typer.Option(
        **limits("connect_timeout"),
        metavar="SECONDS",
        help="End with an error when the database is unreachable or read-only for this long. [never]",
    ),
]

Report = Annotated[
    int,
    typer.Option(
        **limits("report"),
        metavar="SECONDS",
        help="The interval of this consumer's reports, which `runner consumers` shows. 0: none.",
    ),
]

SHUTDOWN = 30.0
REPORT = 10


def log_to_stderr(level: LogLevel) -> None:
    """Log this package's lines of `level` and above, and warnings of other packages."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    log.setLevel(level.upper())


@contextmanager
def bad_options() -> Iterator[None]:
    """Turn BadOption into an error of usage."""
    try:
        yield
    except BadOption as error:
        raise typer.BadParameter(
            re.sub(r"(?<=with )(\w+)$", r"--\1", error.reason), param_hint=f"--{error.option.replace('_', '-')}"
        ) from None


def handler_of(
    path: str | None,
    exec: str | None,
    worker: str | None,
    timeout: float | None,
    concurrency: int = 1,
    in_order: bool = False,
) -> Handler:
    """The handler that --handler, --exec or --worker names. `in_order`: hand over each row after the one before it."""
    if sum(option is not None for option in (path, exec, worker)) != 1:
        raise typer.BadParameter("give exactly one of --handler, --exec and --worker", param_hint="--handler")
    if timeout is not None and path is not None:
        raise typer.BadParameter("needs --exec or --worker; a function cannot be ended", param_hint="--timeout")
    if exec is not None:
        from ..extras.processes.command import Command

        return Command(exec, timeout)
    try:
        if worker is not None:
            from ..extras.processes.worker import Workers

            return Workers(worker, timeout, in_order)
        assert path is not None
        sys.path.insert(0, str(Path.cwd()))
        return load_handler(path, concurrency)
    except HandlerError as error:
        raise typer.BadParameter(str(error), param_hint="--handler" if worker is None else "--worker") from None


def check_installed(database: Database, connect_timeout: float | None, area: str = "queue") -> None:
    """Wait for the database. Raises as service.check_installed."""
    link.when_there(lambda: service.check_installed(database, area), connect_timeout)


def run(url: str | None, handler: Handler, options: Options, source: type[Source], health_port: int | None) -> None:
    """Consume until done or stopped, and serve the health port if one is given."""
    with opened(url) as database:
        check_installed(database, options.connect_timeout, source.area)
        if source.reports:
            with bad_options():
                options = link.when_there(partial(service.fitted, database, options), options.connect_timeout)
        service.consume(database, handler, options, source(options), health_port)
