"""`runner dead`: dead letters."""

from itertools import chain
from typing import Annotated

import typer

from . import output
from .common import Failed, GivenType, Json, OptionalType, Size, Type, Url, connected, group, say
from .known import mention_unknown
from .progress import until_none

app = group("Dead letters: messages that failed and are not retried.")


@app.command("list")
def dead_list(type: OptionalType = None, size: Size = 20, database: Url = None, json: Json = False) -> None:
    """Show dead letters with their errors, the newest first."""
    with connected(database) as session:
        types = [type] if type is not None else [row["type"] for row in session.call("queue_stats") if row["dead"]]
        found = chain.from_iterable(session.call("peek", name, "E", size) for name in types)
        output.rows(found, ["id", "type", "attempts", "changed_at", "error", "body"], json)
        mention_unknown(session, type)


@app.command("errors")
def dead_errors(type: Type, size: Size = 20, database: Url = None, json: Json = False) -> None:
    """Count the dead letters of a queue by error. Errors that differ only in numbers count as one."""
    with connected(database) as session:
        output.rows(
            session.call("list_errors", type, size), ["messages", "first_at", "last_at", "last_id", "error"], json
        )
        mention_unknown(session, type)


@app.command("redrive")
def dead_redrive(
    type: GivenType = None,
    id: Annotated[int | None, typer.Option("--id", help="The id of one message, instead of TYPE.")] = None,
    error: Annotated[str | None, typer.Option(help="Only those with this error, as `dead errors` shows it.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Retry the dead letters of a queue, or one of them. Their attempts start again at 0."""
    if (type is None) == (id is None) or (id is not None and error is not None):
        raise typer.BadParameter("give either a TYPE, with or without --error, or --id", param_hint="TYPE")
    with connected(database) as session:
        if id is not None:
            count = session.call("redrive", id)[0]["affected"]
        else:
            count = until_none(lambda: session.call("redrive_all", type, error, 10_000), "redriving", "redriven")
        if not count:
            mention_unknown(session, type)
    if id is not None and not count:
        raise Failed(f"message {id} is not a dead letter")
    say(f"{count} redriven", json, affected=count)
