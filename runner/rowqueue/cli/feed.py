"""`runner feed`: feeds, their publisher and their consumers."""

from typing import Annotated, Any

import typer

from ..consume import Options
from ..extras import feeds
from . import consuming, output
from .common import Failed, Json, Url, connected, group, listed, opened, say

app = group("Feeds: the changed rows of your own table, in commit order.")

Feed = Annotated[str, typer.Argument(metavar="FEED", help="The feed.")]
Consumer = Annotated[
    str, typer.Option("--consumer", metavar="NAME", help="The consumer. Each has its own position in the feed.")
]
_OPTIONS = ("once", "drain", "max_messages", "idle_timeout", "shutdown_timeout", "connect_timeout")
_FEED_STATS = ("feed", "table_name", "last_position", "unpublished", "consumer", "feed_position", "behind", "moved_at")


@app.command()
@consuming.with_options(["connect_timeout"])
def publish(
    feed: Feed,
    size: Annotated[int, typer.Option("--size", min=1, max=10_000, help="Rows per call.")] = 1_000,
    once: Annotated[bool, typer.Option("--once", help="End after one batch.")] = False,
    drain: Annotated[bool, typer.Option("--drain", help="End when nothing is left to publish.")] = False,
    log_level: consuming.Level = consuming.LogLevel.info,
    database: Url = None,
    json: Json = False,
    **options: Any,
) -> None:
    """Number the new and changed rows of a feed until stopped by SIGTERM or SIGINT."""
    consuming.log_to_stderr(log_level)
    with opened(database) as target:
        consuming.check_there(target, options["connect_timeout"], "feeds")
        publisher = feeds.Publisher(target, feed, size, once, drain, **options)
        publisher.run()
    say(f"{publisher.published} published", json, affected=publisher.published)


@app.command()
@consuming.with_options(_OPTIONS)
def consume(
    feed: Feed,
    consumer: Consumer,
    handler: consuming.HandlerPath = None,
    exec: consuming.Exec = None,
    worker: consuming.Worker = None,
    timeout: consuming.Timeout = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Rows per fetch.")] = feeds.BATCH,
    log_level: consuming.Level = consuming.LogLevel.info,
    database: Url = None,
    **options: Any,
) -> None:
    """Run a handler for each row of a feed, in order, until stopped.

    At SIGTERM or SIGINT, the running handler finishes.
    """
    consuming.log_to_stderr(log_level)
    chosen = Options((feed,), consumer=consumer, batch=batch, **options)
    loaded = consuming.handler_of(handler, exec, worker, timeout, in_order=True)
    with opened(database) as found:
        consuming.check_there(found, chosen.connect_timeout, "feeds")
        feeds.FeedConsumer(found, loaded, chosen).run()


@app.command("list")
def feed_list(
    feed: Annotated[str | None, typer.Argument(metavar="[FEED]", help="The feed. [all]")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show feeds, their consumers, and the position of each."""
    with connected(database) as session:
        output.rows(listed(session, "list_feeds", feed), _FEED_STATS, json)


@app.command("create")
def feed_create(
    feed: Feed,
    table: Annotated[
        str, typer.Option("--table", metavar="TABLE", help="The table, written as in SQL, such as shop.article.")
    ],
    key: Annotated[
        str, typer.Option("--key", metavar="COLUMNS", help="The columns that identify a row, separated by commas.")
    ],
    sync: Annotated[str, typer.Option("--sync", metavar="COLUMN", help="The bigint column that gets the numbers.")],
    database: Url = None,
    json: Json = False,
) -> None:
    """Create a feed of a table."""
    with connected(database) as session:
        row = session.call("create_feed", feed, table, key, sync)[0]
    say("created" if row["created"] else "already exists", json, **row)


@app.command("drop")
def feed_drop(feed: Feed, database: Url = None, json: Json = False) -> None:
    """Drop a feed and the positions of its consumers. The table is not changed."""
    with connected(database) as session:
        count = session.call("drop_feed", feed)[0]["affected"]
    if not count:
        raise Failed(f"there is no feed {feed!r}")
    say("1 dropped", json, affected=count)


@app.command("rewind")
def feed_rewind(
    feed: Feed,
    consumer: Consumer,
    position: Annotated[
        int, typer.Option("--position", min=0, help="Rows after this position are fetched again. 0: all rows.")
    ] = 0,
    database: Url = None,
    json: Json = False,
) -> None:
    """Move a consumer back, to fetch rows again."""
    with connected(database) as session:
        row = session.call("rewind_feed", feed, consumer, position)[0]
    say(f"at {row['feed_position']}", json, **row)
