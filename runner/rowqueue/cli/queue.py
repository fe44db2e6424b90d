"""`runner stats` and `runner queue`: look at queues, and operate them."""

from enum import StrEnum
from typing import Annotated

import typer

from .. import output
from ..databases import Row
from .common import Failed, Json, OptionalType, Size, Type, Url, connected, group, say, until_none

top = group()
app = group("One queue: look at its messages, pause it, delete from it.")

_STATS = ("type", "ready", "delayed", "active", "expired", "dead", "oldest_ready_seconds", "paused")
_COUNTS = ("ready", "delayed", "active", "expired", "dead")
_CAP = 10_000


class State(StrEnum):
    """The states a message can be in."""

    N = "N"
    A = "A"
    E = "E"
    C = "C"


class Purgeable(StrEnum):
    """The states whose messages nobody holds."""

    N = "N"
    E = "E"
    C = "C"


@top.command()
def stats(type: OptionalType = None, database: Url = None, json: Json = False) -> None:
    """What each queue holds; numbers above 10,000 are not counted further."""
    with connected(database) as session:
        found = session.call("queue_stats", type)
    if not json:
        found = [_readable(row) for row in found]
    output.rows(found, _STATS, json)


def _readable(row: Row) -> Row:
    capped = {name: f"{_CAP}+" for name in _COUNTS if row["capped"] and row[name] >= _CAP}
    return row | capped | {"paused": "paused" if row["paused"] else ""}


@app.command()
def peek(
    type: Type,
    state: Annotated[State, typer.Option(help="N new, A active, E dead, C archived.")] = State.N,
    size: Size = 10,
    database: Url = None,
    json: Json = False,
) -> None:
    """Look at messages without claiming them."""
    with connected(database) as session:
        found = session.call("peek", type, state.value, size)
    columns = ["id", "state", "attempts", "priority", "created_at", "run_at", "reader", "error", "body"]
    output.rows(found, columns, json)


@app.command()
def pause(type: Type, database: Url = None, json: Json = False) -> None:
    """Let claims return nothing until resume; sending and finishing go on."""
    with connected(database) as session:
        count = session.call("pause", type)[0]["count"]
    say("paused" if count else "was paused already", json, count=count)


@app.command()
def resume(type: Type, database: Url = None, json: Json = False) -> None:
    """Let claims go on after a pause."""
    with connected(database) as session:
        count = session.call("resume", type)[0]["count"]
    say("resumed" if count else "was running already", json, count=count)


@app.command()
def cancel(
    id: Annotated[int, typer.Argument(metavar="ID", help="The message.")], database: Url = None, json: Json = False
) -> None:
    """Remove one message that nobody holds: new or dead."""
    with connected(database) as session:
        count = session.call("cancel", id)[0]["count"]
    if not count:
        raise Failed(f"message {id} is active or does not exist")
    say("1 cancelled", json, count=count)


@app.command()
def purge(
    type: Type,
    state: Annotated[Purgeable, typer.Option(help="N new, E dead, C archived.")],
    database: Url = None,
    json: Json = False,
) -> None:
    """Delete all messages of one queue and state."""
    with connected(database) as session:
        count = until_none(lambda: session.call("purge", type, state.value))
    say(f"{count} purged", json, count=count)
