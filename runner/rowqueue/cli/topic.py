"""`runner topic`: which queues get what is published, and publishing."""

from typing import Annotated

import typer

from .. import output, tracing
from .common import Failed, Json, Url, connected, group, known_types, say

app = group("Topics: a message is sent to each queue that is bound to its topic.")

Pattern = Annotated[
    str, typer.Argument(metavar="PATTERN", help="Words with dots between them; * is one word, # any number of words.")
]
BoundType = Annotated[
    str, typer.Option("--type", metavar="TYPE", help="The queue that gets the messages.", autocompletion=known_types)
]


@app.command()
def bind(pattern: Pattern, type: BoundType, database: Url = None, json: Json = False) -> None:
    """From now on, send what is published to a matching topic to this queue."""
    with connected(database) as session:
        created = session.call("bind_topic", pattern, type)[0]["created"]
    say("bound" if created else "was bound already", json, created=created)


@app.command()
def unbind(
    pattern: Annotated[
        str | None, typer.Argument(metavar="[PATTERN]", help="As it was bound; with --type all when left out.")
    ] = None,
    type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The queue; all when left out.", autocompletion=known_types),
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Take bindings away; messages that were sent stay."""
    if pattern is None and type is None:
        raise typer.BadParameter("give a PATTERN, a --type or both", param_hint="PATTERN")
    with connected(database) as session:
        count = session.call("unbind_topic", pattern, type)[0]["count"]
    if not count:
        raise Failed("there is no such binding")
    say(f"{count} removed", json, count=count)


@app.command("list")
def topic_list(
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Bindings that this topic matches; all when left out.")
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show bindings."""
    with connected(database) as session:
        output.rows(session.call("list_bindings", topic), ["pattern", "type"], json)


@app.command()
def publish(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Words with dots between them.")],
    body: Annotated[str, typer.Argument(metavar="BODY", help="The message.")],
    delay: Annotated[int | None, typer.Option(min=0, max=315_360_000, help="Not before so many seconds.")] = None,
    priority: Annotated[int | None, typer.Option(min=-32768, max=32767, help="A smaller number goes first.")] = None,
    group_key: Annotated[str | None, typer.Option(help="On an ordered queue, the group that keeps its order.")] = None,
    dedup_key: Annotated[str | None, typer.Option(help="At most one live message of each queue has it.")] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, max=1000, help="Attempts before it is dead.")] = None,
    headers: Annotated[
        str | None, typer.Option(help="A JSON object beside the body, to which the topic is added.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Who sends it.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send one message to each queue that is bound to the topic."""
    with connected(database) as session, tracing.sending("publish", (topic,), {}):
        options = (None, priority, group_key, dedup_key, max_attempts, tracing.injected(headers), source, delay)
        count = session.call("publish", topic, body, *options)[0]["count"]
    say(f"{count} sent", json, count=count)
