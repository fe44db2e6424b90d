"""`runner stats` and `runner queue`: show queues and operate them."""

from enum import StrEnum
from typing import Annotated

import typer

from ..databases import Row
from ..databases.values import options
from ..extras.monitor import Looking, handled, minutes
from ..extras.monitor.changes import PURGE_SIZE
from ..extras.monitor.counts import DRAIN_MINUTES, ESTIMATED, EXACT, count_of, drain_seconds
from . import output
from .common import Failed, GivenType, Json, OptionalType, Size, Type, Url, connected, group, say, time_of
from .known import mention_unknown, require_known
from .progress import until_none

top = group()
app = group("Queues: set policies, show messages, pause, delete messages.")

_SECONDS = 315_360_000
_LIMIT = 1_000_000
_DAY = 86_400

_STATS = ("type", "ready", "delayed", "active", "expired", "dead", "oldest_ready_seconds", "drain_seconds", "paused")
_MESSAGE = ("id", "state", "attempts", "priority", "created_at", "run_at", "consumer", "error", "body")
_POLICY = (
    "type",
    "lease_seconds",
    "max_attempts",
    "backoff_seconds",
    "on_complete",
    "ordered",
    "max_active",
    "rate",
    "paused",
    "ring",
    "fair",
    "dead_stops_group",
)


_NOT_CANCELLED = {None: "does not exist", "C": "is archived"}


class State(StrEnum):
    """The states of a message."""

    N = "N"
    A = "A"
    E = "E"
    C = "C"


class OnComplete(StrEnum):
    """What happens to a completed message."""

    delete = "delete"
    archive = "archive"


class Purgeable(StrEnum):
    """The states of messages that no consumer holds."""

    N = "N"
    E = "E"
    C = "C"


@top.command()
def stats(type: OptionalType = None, database: Url = None, json: Json = False) -> None:
    """Show how many messages each queue holds, and in how long it is drained. Above 10,000, numbers are estimates."""
    with connected(database) as session:
        found = session.call("queue_stats", type)
        looking = Looking(session)
        past = minutes(looking, type, session.now(), DRAIN_MINUTES + 1)
        mention_unknown(session, type)
    for row in found:
        known = () if row["paused"] else past.get(row["type"], ())
        row["drain_seconds"] = drain_seconds(row["ready"], handled(known))
    if not json:
        found = [_readable(row) for row in found]
    output.rows(found, [name for name in _STATS if name != "drain_seconds" or not looking.absent], json)


def _readable(row: Row) -> Row:
    estimates = {name: count_of(row, name) for name in ESTIMATED if row[name] > EXACT}
    drain = row["drain_seconds"]
    return (
        row
        | estimates
        | {
            "drain_seconds": "?" if drain is None else f"{drain:.0f}",
            "paused": "paused" if row["paused"] else "",
        }
    )


@app.command("set")
def queue_set(
    type: Type,
    lease_seconds: Annotated[
        int | None, typer.Option(min=1, max=86_400, help="The lease of a claim, in seconds. New queues: 60.")
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help="Attempts until a message becomes a dead letter. New queues: 25."),
    ] = None,
    backoff_seconds: Annotated[
        int | None,
        typer.Option(
            min=0, max=_SECONDS, help="Seconds until the first retry, doubled after each failure. New queues: 5."
        ),
    ] = None,
    backoff_max_seconds: Annotated[
        int | None,
        typer.Option(min=0, max=_SECONDS, help="The longest delay of a retry, in seconds. New queues: 3600."),
    ] = None,
    on_complete: Annotated[
        OnComplete | None, typer.Option(help="Delete or archive completed messages. New queues: delete.")
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option(
            "--ordered/--no-ordered", help="Handle each group key's messages in order, one at a time. New queues: no."
        ),
    ] = None,
    notify: Annotated[
        bool | None,
        typer.Option("--notify/--no-notify", help="Whether senders wake waiting consumers. New queues: yes."),
    ] = None,
    max_active: Annotated[
        int | None,
        typer.Option(min=0, max=_LIMIT, help="Most messages active at a time, in all consumers. 0: no limit."),
    ] = None,
    rate: Annotated[
        int | None, typer.Option(min=0, max=_LIMIT, help="Most messages claimed per --rate-seconds. 0: no limit.")
    ] = None,
    rate_seconds: Annotated[
        int | None, typer.Option(min=1, max=_DAY, help="The period of --rate, in seconds. New queues: 1.")
    ] = None,
    group_max_active: Annotated[
        int | None, typer.Option(min=0, max=_LIMIT, help="As --max-active, but for each group key. 0: no limit.")
    ] = None,
    group_rate: Annotated[
        int | None, typer.Option(min=0, max=_LIMIT, help="As --rate, but for each group key. 0: no limit.")
    ] = None,
    group_rate_seconds: Annotated[
        int | None, typer.Option(min=1, max=_DAY, help="The period of --group-rate, in seconds. New queues: 1.")
    ] = None,
    ring: Annotated[
        bool | None,
        typer.Option("--ring/--no-ring", help="Consumers claim round-robin, in the order of ids. New queues: no."),
    ] = None,
    fair: Annotated[
        bool | None,
        typer.Option("--fair/--no-fair", help="The groups of a priority take turns. New queues: no."),
    ] = None,
    dead_stops_group: Annotated[
        bool | None,
        typer.Option(
            "--dead-stops-group/--no-dead-stops-group",
            help="In an ordered queue, a dead letter stops its group until it is redriven or deleted. New queues: no.",
        ),
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Set a queue's policy and show all of it. Options that are left out keep their value."""
    chosen = options(
        lease_seconds=lease_seconds,
        max_attempts=max_attempts,
        backoff_seconds=backoff_seconds,
        backoff_max_seconds=backoff_max_seconds,
        on_complete=on_complete and on_complete.value,
        ordered=ordered,
        notify=notify,
        max_active=max_active,
        rate=rate,
        rate_seconds=rate_seconds,
        group_max_active=group_max_active,
        group_rate=group_rate,
        group_rate_seconds=group_rate_seconds,
        ring=ring,
        fair=fair,
        dead_stops_group=dead_stops_group,
    )
    with connected(database) as session:
        mention_unknown(session, type)
        [row] = session.call("set_queue", type, chosen)
    found = [row] if json else [{"setting": name, "value": str(value)} for name, value in row.items()]
    output.rows(found, ("setting", "value"), json)


@app.command("drop")
def queue_drop(type: Type, database: Url = None, json: Json = False) -> None:
    """Remove the settings of a queue that holds no messages. Archived messages stay."""
    with connected(database) as session:
        mention_unknown(session, type)
        [row] = session.call("drop_queue", type)
    say("dropped", json, **row)


@app.command("set-group")
def queue_set_group(
    type: Type,
    group_key: Annotated[str, typer.Argument(metavar="GROUP_KEY", help="The group.")],
    weight: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help="How many messages the group gets per turn of a fair queue. [1]"),
    ] = None,
    max_active: Annotated[
        int | None,
        typer.Option(min=0, max=_LIMIT, help="Most messages of the group active at a time. 0: no limit. [the queue's]"),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            min=0, max=_LIMIT, help="Most messages of the group claimed per --rate-seconds. 0: no limit. [the queue's]"
        ),
    ] = None,
    rate_seconds: Annotated[
        int | None, typer.Option(min=1, max=_DAY, help="The period of --rate, in seconds. [the queue's]")
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Set one group's own share and limits, in place of those before. Options that are left out are the queue's."""
    settings = (weight, max_active, rate, rate_seconds)
    with connected(database) as session:
        mention_unknown(session, type)
        [row] = session.call("set_group", type, group_key, *settings)
    own = any(setting is not None for setting in settings)
    say("set" if own else "as the queue", json, type=type, group_key=group_key, set=int(own), **row)


@app.command()
def peek(
    type: Type,
    state: Annotated[State, typer.Option(help="N new, A active, E dead letter, C archived.")] = State.N,
    size: Size = 20,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show messages without claiming them."""
    with connected(database) as session:
        found = session.call("peek", type, state.value, size)
        mention_unknown(session, type)
    output.rows(found, _MESSAGE, json)


@app.command("find")
def queue_find(
    type: OptionalType = None,
    id: Annotated[int | None, typer.Option("--id", help="The id of a message.")] = None,
    dedup_key: Annotated[str | None, typer.Option(help="The dedup key it was sent with.")] = None,
    group_key: Annotated[str | None, typer.Option(help="The group key it was sent with.")] = None,
    size: Size = 20,
    database: Url = None,
    json: Json = False,
) -> None:
    """Find messages in any state by id, dedup key or group key. Without a queue, by id only."""
    with connected(database) as session:
        found = session.call("find_messages", type, options(id=id, dedup_key=dedup_key, group_key=group_key), size)
        mention_unknown(session, type)
    output.rows(found, ["type", *_MESSAGE], json)


@app.command("list")
def queue_list(type: OptionalType = None, database: Url = None, json: Json = False) -> None:
    """Show the policies of queues."""
    with connected(database) as session:
        output.rows(session.call("list_queues", type), _POLICY, json)
        mention_unknown(session, type)


@app.command()
def pause(
    type: GivenType = None,
    new: Annotated[bool, typer.Option("--new", help="Also pause a queue that nothing has the name of yet.")] = False,
    all: Annotated[bool, typer.Option("--all", help="All queues, also those that are first used later.")] = False,
    database: Url = None,
    json: Json = False,
) -> None:
    """Pause a queue, or all: claims return nothing until resume. Sending and finishing still work."""
    _one_or_all(type, all)
    with connected(database) as session:
        if type is not None and not new:
            require_known(session, type)
        [row] = session.call("pause_all") if type is None else session.call("pause", type)
    say("paused" if row.get("affected", row.get("changed")) else "already paused", json, **row)


@app.command()
def resume(
    type: GivenType = None,
    all: Annotated[bool, typer.Option("--all", help="All queues.")] = False,
    database: Url = None,
    json: Json = False,
) -> None:
    """Resume a paused queue, or all."""
    _one_or_all(type, all)
    with connected(database) as session:
        [row] = session.call("resume_all") if type is None else session.call("resume", type)
        mention_unknown(session, type)
    say("resumed" if row.get("affected", row.get("changed")) else "already running", json, **row)


def _one_or_all(type: str | None, all: bool) -> None:
    if (type is None) != all:
        raise typer.BadParameter("give either a TYPE or --all", param_hint="TYPE")


@app.command()
def cancel(
    id: Annotated[int, typer.Argument(metavar="ID", help="The id of the message.")],
    database: Url = None,
    json: Json = False,
) -> None:
    """Delete one message. One that a consumer holds is deleted when its attempt ends; its handler can end it early."""
    with connected(database) as session:
        [row] = session.call("cancel", id)
    if not row["affected"]:
        raise Failed(f"message {id} {_NOT_CANCELLED.get(row['state'], 'is being claimed or changed at this moment')}")
    later = "; it is deleted when its attempt ends" if row["state"] == "A" else ""
    say(f"1 cancelled{later}", json, **row)


@app.command()
def purge(
    type: Type,
    state: Annotated[Purgeable, typer.Option(help="N new, E dead letter, C archived.")],
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what died (E) or was completed (C) before this ISO 8601 time."),
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Delete all messages of a queue in one state."""
    moment = time_of(before, "--before")
    if moment is not None and state is Purgeable.N:
        raise typer.BadParameter("cannot be combined with --state N", param_hint="--before")
    with connected(database) as session:
        count = until_none(lambda: session.call("purge", type, state.value, moment, PURGE_SIZE), "purging", "purged")
        if not count:
            mention_unknown(session, type)
    say(f"{count} purged", json, affected=count)
