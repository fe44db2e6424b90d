"""`runner top`: a live screen."""

from typing import Annotated

import typer

from .common import Failed, Url, group, opened

top = group()


@top.command("top")
def show(
    interval: Annotated[
        float, typer.Option(min=0.5, max=3_600, metavar="SECONDS", help="How often the screen is refreshed.")
    ] = 2.0,
    database: Url = None,
) -> int:
    """Watch queues, consumers and messages on a live screen, and operate them."""
    try:
        from ..extras.top import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise Failed("textual is not installed: pip install '.[top]' in the checkout of rowqueue") from None
    with opened(database) as target:
        return app.run(target, interval)
