"""`runner subscription`: watched tables, and the queues that get messages about their changes."""

from typing import Annotated

import typer

from . import output
from .common import Failed, Json, Table, Url, connected, group, known_types, listed, say

app = group("Subscriptions: messages to queues when a table changes.")


@app.command()
def watch(table: Table, database: Url = None, json: Json = False) -> None:
    """Create or repair the triggers that send messages when a table changes."""
    count = _execute(database, "watch_table", table)
    say("watched", json, statements=count)


@app.command()
def unwatch(table: Table, database: Url = None, json: Json = False) -> None:
    """Drop a table's triggers and subscriptions."""
    count = _execute(database, "unwatch_table", table)
    say("no longer watched", json, statements=count)


def _execute(database: str | None, procedure: str, table: str) -> int:
    """Call `procedure` and execute the statements that it returns; returns how many."""
    with connected(database) as session:
        rows = session.call(procedure, table)
        for row in rows:
            session.execute(row["statement"])
    return len(rows)


@app.command("list")
def subscription_list(
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="The table. [all]")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show watched tables and their subscriptions."""
    with connected(database) as session:
        output.rows(listed(session, "list_subscriptions", table), ["table_name", "action", "type", "topic"], json)


@app.command("add")
def subscription_add(
    table: Table,
    action: Annotated[
        str, typer.Option("--action", metavar="LETTERS", help="One or more of I (insert), U (update), D (delete).")
    ],
    type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="The queue that gets the messages. Give this or --topic.",
            autocompletion=known_types,
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="The topic that the messages are published to.")
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send a message for each later change of a row."""
    if (type is None) == (topic is None):
        raise typer.BadParameter("give either --type or --topic", param_hint="--type")
    with connected(database) as session:
        count = session.call("subscribe", table, action, type, topic)[0]["affected"]
    say(f"{count} added" if count else "already exists", json, affected=count)


@app.command("remove")
def subscription_remove(
    table: Table,
    type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The queue. [all]", autocompletion=known_types),
    ] = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="The topic. [all]")] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="LETTERS", help="One or more of I, U, D. [all]")
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Stop sending messages. Messages already sent stay."""
    if type is None and topic is None and action is None:
        raise typer.BadParameter("give a --type, a --topic or --action; --action IUD removes all", param_hint="--type")
    if type is not None and topic is not None:
        raise typer.BadParameter("give either --type or --topic", param_hint="--type")
    with connected(database) as session:
        count = session.call("unsubscribe", table, action, type, topic)[0]["affected"]
    if not count:
        raise Failed(f"there is no such subscription on {table}")
    say(f"{count} removed", json, affected=count)
