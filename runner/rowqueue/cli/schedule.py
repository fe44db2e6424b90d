"""`runner schedule`: messages at the times of a cron expression."""

from typing import Annotated

import typer

from ..databases.values import options
from ..messages import plain
from . import output
from .common import Failed, Json, OptionalType, Url, connected, group, known_types, listed, say

app = group("Schedules: messages at the times of a cron expression.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule.")]
Cron = Annotated[
    str, typer.Argument(metavar="CRON", help="Five fields in quotes, @daily and the like, or '@every SECONDS'.")
]
Zone = Annotated[
    str | None,
    typer.Option("--time-zone", metavar="ZONE", help="The time zone of the expression, such as Europe/Paris. [UTC]"),
]
_COLUMNS = ("name", "type", "cron", "time_zone", "next_at", "last_at", "last_id", "body")


@app.command("set")
def schedule_set(
    name: Name,
    cron: Cron,
    type: Annotated[
        str,
        typer.Option("--type", metavar="TYPE", help="The queue that gets the messages.", autocompletion=known_types),
    ],
    body: Annotated[str, typer.Option("--body", metavar="BODY", help="The body of each message.")] = "",
    time_zone: Zone = None,
    headers: Annotated[str | None, typer.Option(help="Metadata stored with the body, usually JSON.")] = None,
    priority: Annotated[
        int | None, typer.Option(min=-32768, max=32767, help="A smaller number is claimed first. [0]")
    ] = None,
    group_key: Annotated[str | None, typer.Option(help="The group, for ordered queues and limits per group.")] = None,
    overlap: Annotated[
        bool,
        typer.Option("--overlap/--no-overlap", help="Whether to send while the last message is still being handled."),
    ] = True,
    database: Url = None,
    json: Json = False,
) -> None:
    """Create a schedule, or change it."""
    chosen = options(time_zone=time_zone, headers=headers, priority=priority, group_key=group_key, overlap=overlap)
    with connected(database) as session:
        row = session.call("set_schedule", name, type, cron, body, chosen)[0]
    say(f"{'set' if row['created'] else 'changed'}, next at {plain(row['next_at'])}", json, **row)


@app.command("list")
def schedule_list(type: OptionalType = None, database: Url = None, json: Json = False) -> None:
    """Show schedules with their last and next times."""
    with connected(database) as session:
        output.rows(listed(session, "list_schedules", type), _COLUMNS, json)


@app.command("drop")
def schedule_drop(name: Name, database: Url = None, json: Json = False) -> None:
    """Drop a schedule. Messages that it sent stay."""
    with connected(database) as session:
        count = session.call("drop_schedule", name)[0]["affected"]
    if not count:
        raise Failed(f"there is no schedule {name!r}")
    say("1 dropped", json, affected=count)


@app.command("run")
def schedule_run(name: Name, database: Url = None, json: Json = False) -> None:
    """Send a schedule's message now, in addition to its times."""
    with connected(database) as session:
        row = session.call("run_schedule", name)[0]
    say(str(row["id"]), json, **row)


@app.command("next")
def schedule_next(
    cron: Cron,
    time_zone: Zone = None,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="How many times to show.")] = 5,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show the next times of a cron expression, in UTC."""
    rows = []
    with connected(database) as session:
        after = None
        for _ in range(count):
            row = session.call("next_occurrence", cron, after, time_zone)[0]
            after = row["next_at"]
            if after is None:
                break
            rows.append(row)
    output.rows(rows, ["next_at"], json)
