"""`runner consumers` and `runner throughput`: the consumers, and how many messages they finished per minute."""

from datetime import timedelta
from typing import Annotated

import typer

from ..extras import handling
from . import output
from .common import Json, OptionalType, Size, Url, connected, group, listed
from .known import mention_unknown

top = group()

_CONSUMERS = (
    "type",
    "consumer",
    "status",
    "reported_at",
    "rate_per_minute",
    "busy",
    "completed",
    "failed",
    "dead",
    "handling",
)
_THROUGHPUT = ("type", "minute_at", "sent", "completed", "failed", "dead", "waited_ms", "busy_ms")


@top.command()
def consumers(type: OptionalType = None, size: Size = 20, database: Url = None, json: Json = False) -> None:
    """Show the consumers: how fast they work, what they handle now, and which are silent."""
    with connected(database) as session:
        rows = listed(session, "list_consumers", type, size)
        shown = rows if json else [row | {"handling": handling.summary(row["handling"])} for row in rows]
        output.rows(shown, _CONSUMERS, json)
        mention_unknown(session, type)


@top.command()
def throughput(
    type: OptionalType = None,
    minutes: Annotated[int, typer.Option(min=1, max=1440, help="Show this many minutes, up to now.")] = 15,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show how many messages per minute were sent, completed, failed and dead-lettered."""
    with connected(database) as session:
        since = session.now() - timedelta(minutes=minutes - 1)
        output.rows(listed(session, "throughput", type, since), _THROUGHPUT, json)
        mention_unknown(session, type)
