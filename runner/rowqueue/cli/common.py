"""Shared by the commands: common options, opening the database, and printing a result."""

import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from ..databases import (
    AreaMissing,
    Database,
    Row,
    Session,
    how_to_add,
    open_database,
    open_embedded,
)
from ..errors import Error
from ..escaping import escaped_lines
from ..install import contract
from . import config, output
from .commands import Group

COMPLETION_SECONDS = 1.0  # the longest wait after the Tab key


def known_types(context: typer.Context) -> list[str]:
    """For completion: the queues in the database of a command line; [] when it does not answer in time.

    [] for the embedded database, which would have to be started. Names that a shell must quote are left out, because
    zsh evaluates completions.
    """
    found: list[str] = []

    def ask() -> None:
        with suppress(Exception):
            url = context.params.get("database") or config.read(Path.cwd())[1]["database"]
            with closing(open_database(url).connect("runner completion")) as session:
                found.extend(row["type"] for row in session.call("queue_stats"))

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(COMPLETION_SECONDS)
    return [type for type in found if re.fullmatch(r"[\w./@%+-]+", type)]


Url = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="RUNNER_DATABASE",
        metavar="URL",
        help="The database, such as scheme://user@host/name. Without one, an embedded database is started.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Type = Annotated[str, typer.Argument(metavar="TYPE", help="The queue.", autocompletion=known_types)]
OptionalType = Annotated[
    str | None, typer.Argument(metavar="[TYPE]", help="The queue. [all]", autocompletion=known_types)
]
GivenType = Annotated[str | None, typer.Argument(metavar="[TYPE]", help="The queue.", autocompletion=known_types)]
Size = Annotated[int, typer.Option("--size", min=1, max=10_000, help="The largest number of rows to show.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="The table, written as in SQL, such as shop.orders.")]


class Failed(Error):
    """A command failed; the message says why."""


def group(help: str = "") -> typer.Typer:
    """A group of commands."""
    return typer.Typer(cls=Group, help=help, rich_markup_mode=None, add_completion=False)


@contextmanager
def needs(command: str, extra: str) -> Iterator[None]:
    """Around the imports of a command that needs an extra of the package: without it, Failed says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise Failed(f"{command} needs {package}: pip install '.[{extra}]' in the checkout of rowqueue") from None


@contextmanager
def opened(url: str | None) -> Iterator[Database]:
    """The database of a command: the one that `url` names, else the embedded one."""
    if url is not None:
        try:
            database = open_database(url)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--database") from None
        yield database
        return
    with open_embedded() as database:
        print("runner: no database named; using the embedded one in your data directory", file=sys.stderr)
        yield database


@contextmanager
def connected(url: str | None) -> Iterator[Session]:
    """A session on the database of a command."""
    with opened(url) as database:
        session = database.connect("runner")
        try:
            yield session
        finally:
            session.close()


def listed(session: Session, procedure: str, *arguments: Any) -> list[Row]:
    """The rows of a call that lists; none if its area is not installed, and stderr then says how to add it."""
    try:
        return session.call(procedure, *arguments)
    except AreaMissing:
        print(f"runner: {how_to_add([contract.load().every[procedure].area])}", file=sys.stderr)
    return []


def say(text: str, as_json: bool, **values: Any) -> None:
    """Print the result of a command: `text`, or the values as JSON."""
    if as_json:
        output.rows([values], [], True)
    else:
        print(escaped_lines(text) if sys.stdout.isatty() else text)


def time_of(text: str | None, option: str) -> datetime | None:
    """The ISO 8601 time of an option; without a zone it is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an ISO 8601 time", param_hint=option) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
