"""`runner demo` and `runner bench`."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ..databases.url import shown
from . import output
from .common import Json, Url, group, needs, opened

top = group()


def _option(context: typer.Context, url: str | None) -> str:
    """The --database option of this command line, to print; not a URL with a password or options."""
    source = context.get_parameter_source("database")
    if url is None or source is None or source.name != "COMMANDLINE":
        return ""
    return f" --database {quote(url) if shown(url) == url else 'URL'}"


@top.command()
def demo(
    context: typer.Context,
    maildir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder for the mails: new, empty, or from an earlier demo.")
    ] = Path("demo-mail"),
    database: Url = None,
) -> int:
    """Send and deliver over 1,000 mails, on this machine only."""
    with needs("runner demo", "demo"):
        from ..extras import demo

    with opened(database) as target:
        return demo.run(target, maildir, _option(context, database), lambda row: output.rows([row], list(row), False))


@top.command()
def bench(
    messages: Annotated[int, typer.Option(min=1, max=10_000_000, help="Messages per test.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Messages per call.")] = 100,
    database: Url = None,
    json: Json = False,
) -> None:
    """Measure the speed of the queue on this database. Everything that it creates is removed."""
    with opened(database) as target:
        from ..extras import bench as benchmark

        found = benchmark.run(target, messages, batch)
        output.rows(found, ["test", "messages", "seconds", "messages_per_second", "call_milliseconds"], json)
