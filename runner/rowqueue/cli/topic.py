"""`runner topic`: bind queues to topics, and publish."""

from typing import Annotated

import typer

from .. import requests, tracing
from . import output
from .common import Failed, Json, Url, connected, group, known_types, listed, say

app = group("Topics: a message is sent to each queue that is bound to its topic.")

Pattern = Annotated[
    str, typer.Argument(metavar="PATTERN", help="Words separated by dots; * is one word, # any number of words.")
]
BoundType = Annotated[
    str, typer.Option("--type", metavar="TYPE", help="The queue that gets the messages.", autocompletion=known_types)
]


@app.command()
def bind(pattern: Pattern, type: BoundType, database: Url = None, json: Json = False) -> None:
    """Bind a queue to a pattern: it gets each message that is later published to a matching topic."""
    with connected(database) as session:
        created = session.call("bind_topic", pattern, type)[0]["created"]
    say("bound" if created else "already bound", json, created=created)


@app.command()
def unbind(
    pattern: Annotated[
        str | None,
        typer.Argument(metavar="[PATTERN]", help="The pattern, as it was bound. [with --type: all]"),
    ] = None,
    type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The queue. [all]", autocompletion=known_types),
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Remove bindings. Messages already sent stay."""
    if pattern is None and type is None:
        raise typer.BadParameter("give a PATTERN, a --type or both", param_hint="PATTERN")
    with connected(database) as session:
        count = session.call("unbind_topic", pattern, type)[0]["affected"]
    if not count:
        raise Failed("there is no such binding")
    say(f"{count} removed", json, affected=count)


@app.command("list")
def topic_list(
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Show the bindings that match this topic. [all]")
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show bindings."""
    with connected(database) as session:
        output.rows(listed(session, "list_bindings", topic), ["pattern", "type"], json)


@app.command()
def publish(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Words separated by dots.")],
    body: Annotated[str, typer.Argument(metavar="BODY", help="The body of the message.")],
    delay: Annotated[
        int | None, typer.Option(min=0, max=315_360_000, help="Do not claim it for this many seconds.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=-32768, max=32767, help="A smaller number is claimed first. [0]")
    ] = None,
    group_key: Annotated[str | None, typer.Option(help="The group, for ordered queues and limits per group.")] = None,
    dedup_key: Annotated[str | None, typer.Option(help="At most one live message of each queue has this key.")] = None,
    max_attempts: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Attempts until it becomes a dead letter. [the queue's]")
    ] = None,
    headers: Annotated[
        str | None, typer.Option(help="A JSON object stored with the body. The topic is added to it.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="The name of the sender.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send one message to each queue that is bound to the topic."""
    with connected(database) as session, tracing.sending("publish", (topic,), {}):
        asked = requests.publish(
            topic,
            body,
            delay_seconds=delay,
            priority=priority,
            group_key=group_key,
            dedup_key=dedup_key,
            max_attempts=max_attempts,
            headers=headers,
            source=source,
        )
        count = asked.read(session.call(asked.procedure, *asked.arguments))
    say(f"{count} sent", json, affected=count)
