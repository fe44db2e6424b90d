"""Shared by `consume`, `feed consume` and `table consume`: options, handlers, and starting a consumer."""

import inspect
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..consume import BadOption, Options, Source
from ..consume.consumer import check_installed, consume
from ..consume.options import OPTIONS
from ..databases import Database
from ..databases.link import when_there
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
Level = Annotated[LogLevel, typer.Option("--log-level", help="Log lines of this severity and above to stderr.")]


def option(name: str) -> Any:
    """The annotation of a command's parameter for an option of a consumer."""
    one = OPTIONS[name]
    limits = {"min": one.metadata["least"], "max": one.metadata["most"]}
    return Annotated[one.type, typer.Option(f"--{name.replace('_', '-')}", help=one.metadata["help"], **limits)]


def with_options(names: Collection[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of a consumer with these names, in place of its `**options`: before `log_level`."""

    def changed(command: Callable[..., None]) -> Callable[..., None]:
        parameters = dict(inspect.signature(command).parameters)
        del parameters["options"]
        given = [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=OPTIONS[name].default,
                annotation=option(name),
            )
            for name in OPTIONS
            if name in names
        ]
        at = [*parameters].index("log_level")
        own = [*parameters.values()]
        command.__signature__ = inspect.Signature([*own[:at], *given, *own[at:]])  # type: ignore[attr-defined]
        return command

    return changed


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


def check_there(database: Database, connect_timeout: float | None, area: str) -> None:
    """Wait for the database. Raises as `check_installed`."""
    when_there(lambda: check_installed(database, area), connect_timeout)


def run(url: str | None, handler: Handler, options: Options, source: type[Source]) -> None:
    """Consume until done or stopped."""
    with bad_options():
        options.check(handler)
        with opened(url) as database:
            consume(database, handler, options, source)
