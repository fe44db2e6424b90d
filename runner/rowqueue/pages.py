"""Lists that the database returns page by page, read to their end."""

from collections.abc import Callable
from datetime import datetime

from .databases import Row

# A procedure's call: Session.call, or another function with these arguments.
Call = Callable[..., list[Row]]

SIZE = 10_000


def consumers(call: Call, type: str | None = None) -> list[Row]:
    """All rows of list_consumers."""
    rows = page = call("list_consumers", type, SIZE)
    while len(page) == SIZE:
        page = call("list_consumers", type, SIZE, page[-1]["type"], page[-1]["reader"])
        rows += page
    return rows


def throughput(call: Call, type: str | None = None, since: datetime | None = None) -> list[Row]:
    """All rows of throughput, in the order of their minutes."""
    rows = page = call("throughput", type, since, SIZE)
    while len(page) == SIZE:
        page = call("throughput", type, since, SIZE, page[-1]["minute"], page[-1]["type"])
        rows += page
    return rows
