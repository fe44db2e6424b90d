"""`runner demo` and `runner bench`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import output
from .common import Json, Url, group, opened

top = group()


@top.command()
def demo(
    maildir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the mails go: new, empty, or an earlier demo's.")
    ] = Path("demo-mail"),
    database: Url = None,
) -> int:
    """Send and deliver over 1,000 mails, on this machine only."""
    from .. import demo  # needs the extra `demo`

    with opened(database) as target:
        return demo.run(target, maildir, database is None)


@top.command()
def bench(
    messages: Annotated[int, typer.Option(min=1, max=10_000_000, help="Messages a test.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Messages a call.")] = 100,
    database: Url = None,
    json: Json = False,
) -> None:
    """Measure the queue on this database. What it makes is removed afterwards."""
    with opened(database) as target:
        from .. import bench as benchmark

        found = benchmark.run(target, messages, batch)
        output.rows(found, ["test", "messages", "seconds", "messages_per_second", "call_milliseconds"], json)
