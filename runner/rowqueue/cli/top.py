"""`runner top`: a live screen."""

from typing import Annotated

import typer

from .common import Url, group, needs, opened

top = group()


@top.command("top")
def show(
    interval: Annotated[
        float, typer.Option(min=0.5, max=3_600, metavar="SECONDS", help="How often the screen is refreshed.")
    ] = 2.0,
    database: Url = None,
) -> int:
    """Watch queues, consumers and messages on a live screen, and operate them."""
    with needs("runner top", "top"):
        from ..extras.top import app
    with opened(database) as target:
        return app.run(target, interval)
