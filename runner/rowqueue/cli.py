"""The command `runner`: each command opens the database, calls procedures, and prints what they return.

Exit codes: 0 done or drained, 1 failure, 2 usage, 3 schema missing, pending or drifted, 130 and 143 ended by signal.
"""

import io
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console
from rich.progress import Progress

from . import bench as benchmark
from . import config, consumer, feeds, install, link, metrics, output, polling, tracing
from .databases import (
    Database,
    DatabaseError,
    Disconnected,
    Forbidden,
    QueueError,
    Row,
    SchemaMissing,
    Session,
    open_database,
    open_embedded,
)
from .handlers import Command, Handler, HandlerError
from .handlers import load as load_handler

log = logging.getLogger("rowqueue")

app = typer.Typer(
    help="A message queue in the database you already run. Every command calls the procedures that SQL can call too.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
dead_app = typer.Typer(help="Dead letters: messages whose attempts are used up.", rich_markup_mode=None)
app.add_typer(dead_app, name="dead")
table_app = typer.Typer(help="Polling tables: rows of a table of yours, claimed as work.", rich_markup_mode=None)
app.add_typer(table_app, name="table")
feed_app = typer.Typer(help="Feeds: rows of a table of yours in the order of their publishing.", rich_markup_mode=None)
app.add_typer(feed_app, name="feed")
subscription_app = typer.Typer(help="Who is told of which changes of watched tables.", rich_markup_mode=None)
app.add_typer(subscription_app, name="subscription")

USAGE = 2
SCHEMA_MISSING = 3
LIST_LINES = 10_000  # at most so many bodies in one call of send_batch
LIST_BYTES = 8 << 20
LONGEST_LINE = 100 << 20  # a body of 16 MiB with every character escaped


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


class LogLevel(StrEnum):
    """How much goes to standard error."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


Url = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="RUNNER_DATABASE",
        metavar="URL",
        help="The database, such as scheme://user@host/name. Without one, an embedded database is started.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Type = Annotated[str, typer.Argument(metavar="TYPE", help="The queue.")]
OptionalType = Annotated[str | None, typer.Argument(metavar="[TYPE]", help="The queue; all when left out.")]
Size = Annotated[int, typer.Option("--size", min=1, max=10_000, help="At most so many.")]
ConnectTimeout = Annotated[
    float | None,
    typer.Option(
        "--connect-timeout",
        min=0,
        metavar="SECONDS",
        help="End with an error when the database is away, or takes no changes, for so long. [never]",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


class Failed(Exception):
    """A command that could not do its work; the message says why."""


@contextmanager
def _open(url: str | None) -> Iterator[Database]:
    if url is not None:
        try:
            database = open_database(url)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--database") from None
        yield database
        return
    with open_embedded() as database:
        print("runner: no database named; using the embedded one in your data directory", file=sys.stderr)
        yield database


@contextmanager
def _session(url: str | None) -> Iterator[Session]:
    with _open(url) as database:
        session = database.connect("runner")
        try:
            yield session
        finally:
            session.close()


def _say(text: str, as_json: bool, **values: Any) -> None:
    """Print the outcome of a command: a sentence, or its values as JSON."""
    if as_json:
        output.rows([values], [], True)
    else:
        print(text)


# ---- installing ----------------------------------------------------------------------------------


@app.command()
def apply(
    database: Url = None,
    break_lock: Annotated[bool, typer.Option(help="Remove the lock that a killed `yoyo apply` left behind.")] = False,
    connect_timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Wait so long for the database to be there.")
    ] = 0,
    json: Json = False,
) -> None:
    """Install the queue, or bring it to this release; a second run changes nothing."""
    with _open(database) as opened:
        applied = link.when_there(lambda: install.apply(opened, break_lock), connect_timeout)
    for notice in [*(f"was wrong: {problem}" for problem in applied.mended), *applied.notices]:
        print(f"runner: {notice}", file=sys.stderr)
    _say(
        f"applied {len(applied.migrations)} migrations and {len(applied.procedures)} procedure files"
        if applied.migrations or applied.procedures
        else "nothing to do: the queue is installed in this release",
        json,
        migrations=applied.migrations,
        procedures=applied.procedures,
        mended=applied.mended,
    )


@app.command()
def sql(
    engine: Annotated[str, typer.Option("--database", metavar="NAME", help="The kind of database, not a URL.")],
) -> None:
    """Print the whole installation as one script for the database's own client."""
    try:
        parts = install.script(engine)
    except (LookupError, ValueError) as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--database") from None
    for part in parts:
        print(part)


@app.command()
def uninstall(
    database: Url = None,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Leave adopted tables that cannot be released as they are.")
    ] = False,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop or break your views and other objects that use the queue's.")
    ] = False,
) -> None:
    """Release adopted tables, then remove the queue and all its messages from the database."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("needed when nobody can be asked: all messages will be lost", param_hint="--yes")
        typer.confirm("Remove the queue and all its messages?", abort=True, err=True)
    with _open(database) as opened:
        released = install.uninstall(opened, force, cascade)
    print(f"uninstalled; released first: {', '.join(released)}" if released else "uninstalled")


@app.command()
def doctor(database: Url = None, json: Json = False) -> int:
    """Check installation, rights and what hurts queues. Exit 3: `runner apply` is needed; 1: something is bad."""
    with _open(database) as opened:
        installation, wrong = _installation(opened)
        rights = _rights(opened) if installation["value"] else []
        cluster = _cluster(opened)
        health: list[Row] = []
        session = opened.connect("runner doctor")
        try:
            with suppress(SchemaMissing):
                health = session.call("queue_health")
        finally:
            session.close()
    found = [installation, *rights, *cluster, *health]
    if json:
        output.rows([*found, *wrong], [], True)
    else:
        output.rows(found, ["name", "verdict", "value", "unit", "detail"], False)
        if wrong and installation["value"]:  # with nothing installed the list says nothing
            print()
            output.rows(wrong, ["kind", "name", "state"], False)
    if wrong or any(row["verdict"] == "bad" for row in rights):
        return SCHEMA_MISSING
    return int(any(row["verdict"] == "bad" for row in health))


def _installation(database: Database) -> tuple[Row, list[Row]]:
    """The installation as a row like those of queue_health, and the files that are not as released."""
    name = "installation"
    try:
        files = install.status(database)
    except Forbidden as error:
        return _check(name, "warn", None, "", f"this role may not look: {error}"), []
    wrong = [{"kind": f.kind, "name": f.name, "state": f.state} for f in files if f.state != "ok"]
    unit = f"of {len(files)} files"
    if not wrong:
        return _check(name, "ok", len(files), unit, "every file is installed as released"), []
    missing = all(file.state == "missing" for file in files)
    detail = "the queue is not installed: runner apply" if missing else "runner apply puts it right"
    return _check(name, "bad", len(files) - len(wrong), unit, detail), wrong


def _rights(database: Database) -> list[Row]:
    """What is wrong with owners, definers and grants, a row each, and what the installer should know."""
    name = "rights"
    try:
        problems = install.rights_problems(database)
        warnings = database.warnings_about_installation()
    except Forbidden as error:
        return [_check(name, "warn", None, "", f"this role may not look: {error}")]
    found = [_check(name, "bad", None, "", f"{problem}: runner apply puts it right") for problem in problems]
    found = found or [_check(name, "ok", 0, "problems", "owners and grants are as released")]
    return found + [_check(name, "warn", None, "", warning) for warning in warnings]


def _cluster(database: Database) -> list[Row]:
    """What the server's cluster asks of those who use the queue; nothing on a server of its own."""
    cluster = database.cluster()
    if cluster is None:
        return []
    found = [_check("cluster", "ok", cluster.size, "nodes", cluster.detail)]
    return found + [_check("cluster", "warn", None, "", problem) for problem in cluster.problems]


def _check(name: str, verdict: str, value: int | None, unit: str, detail: str) -> Row:
    return {"name": name, "verdict": verdict, "value": value, "unit": unit, "detail": detail}


# ---- sending -------------------------------------------------------------------------------------


@app.command()
def send(
    type: Annotated[str, typer.Option("--type", metavar="TYPE", help="The queue.")],
    body: Annotated[
        str | None, typer.Argument(metavar="[BODY]", help="The message; - reads a list from stdin.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Send a list: one body a line, or a JSON string for a body that has a line feed, is empty or begins"
            " with a double quote; - is stdin.",
        ),
    ] = None,
    run_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not before: ISO 8601, UTC unless it says.")
    ] = None,
    delay: Annotated[float | None, typer.Option(min=0, max=315_360_000, help="Not before so many seconds.")] = None,
    priority: Annotated[int | None, typer.Option(min=-32768, max=32767, help="A smaller number goes first.")] = None,
    group_key: Annotated[str | None, typer.Option(help="On an ordered queue, the group that keeps its order.")] = None,
    dedup_key: Annotated[str | None, typer.Option(help="At most one live message of the type has it.")] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, max=1000, help="Attempts before it is dead.")] = None,
    headers: Annotated[str | None, typer.Option(help="Metadata beside the body, such as JSON.")] = None,
    source: Annotated[str | None, typer.Option(help="Who sends it.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send one message, or a list from a file or from stdin."""
    if body == "-" and file is None:
        body, file = None, "-"
    if (body is None) == (file is None):
        raise typer.BadParameter("give one of BODY, --file FILE and -", param_hint="BODY")
    if run_at is not None and delay is not None:
        raise typer.BadParameter("cannot be combined with --delay", param_hint="--run-at")
    options = (priority, group_key, dedup_key, max_attempts, headers, source)
    if file is not None:
        if any(option is not None for option in (run_at, delay, *options)):
            raise typer.BadParameter("a list is sent without options; send one body at a time", param_hint="--file")
        with _binary(file) as stream, _session(database) as session:
            count = _send_list(session, type, stream)
        _say(f"{count} sent", json, count=count)
        return
    due = _time(run_at)
    with _session(database) as session:
        if delay is not None:
            due = session.now() + timedelta(seconds=delay)
        row = session.call("send_message", type, body, due, *options[:4], tracing.injected(headers), source)[0]
    if not row["created"]:
        print(f"runner: not sent: message {row['id']} has this dedup key and is live", file=sys.stderr)
    _say(str(row["id"]), json, **row)


def _time(run_at: str | None) -> datetime | None:
    if run_at is None:
        return None
    try:
        time = datetime.fromisoformat(run_at)
    except ValueError:
        raise typer.BadParameter(f"{run_at!r} is not an ISO 8601 time", param_hint="--run-at") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _binary(file: str) -> BinaryIO:
    try:
        return sys.stdin.buffer if file == "-" else Path(file).open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="--file") from None


def _send_list(session: Session, type: str, stream: BinaryIO) -> int:
    """Send a list chunk by chunk and return how many. Raises Failed with the lines that were not sent."""
    sent = 0
    console = Console(stderr=True)
    size = os.fstat(stream.fileno()).st_size if stream.seekable() else None
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("sending", total=size or None)
        for first, lines in _chunks(stream):
            where = f"lines {first} to {first + len(lines) - 1}"
            try:
                text = b"\n".join(lines).decode("utf-8")
                sent += session.call("send_batch", type, text)[0]["count"]
            except UnicodeDecodeError as error:
                line = first + error.object.count(b"\n", 0, error.start)
                raise Failed(f"line {line} is not UTF-8; {where} were not sent, all before were") from None
            except Disconnected as error:
                raise Failed(f"{where} may not have been sent, all before were: {error}") from error
            except (QueueError, DatabaseError) as error:
                raise Failed(f"{where} were not sent, all before were; counting from line {first}: {error}") from error
            progress.advance(task, sum(map(len, lines)) + len(lines))
    return sent


def _chunks(stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """The number of the first line, and lines without their line feeds, as many as one call may carry."""
    first = 1
    lines: list[bytes] = []
    size = 0
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            number = first + len(lines)
            raise Failed(f"line {number} is longer than {LONGEST_LINE >> 20} MiB; lines from {first} on were not sent")
        if len(lines) == LIST_LINES or size + len(line) > LIST_BYTES:
            if size > len(lines):  # empty lines alone are no message
                yield first, lines
            first, lines, size = first + len(lines), [], 0
        lines.append(line.removesuffix(b"\n"))
        size += len(line)
    if size > len(lines):
        yield first, lines


# ---- consuming -----------------------------------------------------------------------------------


@app.command()
def consume(
    type: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="The queue; several take turns.")
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="An adopted table instead of a queue.")
    ] = None,
    feed: Annotated[
        str | None, typer.Option("--feed", metavar="FEED", help="A feed instead of a queue; with --consumer.")
    ] = None,
    as_consumer: Annotated[
        str | None, typer.Option("--consumer", metavar="NAME", help="Whose position in the feed to go on from.")
    ] = None,
    handler: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Called with a message, or a list[Message]; may be async."),
    ] = None,
    exec: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Run by sh for each message, which it reads as JSON on stdin. Exit status 0: done; 65: dead letter;"
            " else: try again, with the last line of its stderr as the error.",
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Claim so many; 10, 1 with --transaction, 100 of a feed.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1_000, help="Batches (async: messages) at the same time.")] = 1,
    lease: Annotated[
        int | None, typer.Option(min=1, max=315_360_000, help="Seconds, extended while handlers run. [the queue's]")
    ] = None,
    reader: Annotated[
        str | None, typer.Option(help="This process's name. [host and process number; --ring: host]")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Claim one batch a type, then end.")] = False,
    drain: Annotated[bool, typer.Option("--drain", help="End when nothing is ready.")] = False,
    max_messages: Annotated[int | None, typer.Option(min=1, help="End after so many messages.")] = None,
    idle_timeout: Annotated[float | None, typer.Option(min=0, help="End after so many seconds without one.")] = None,
    transaction: Annotated[
        bool,
        typer.Option("--transaction", help="Handle in the transaction that takes the message: effect exactly once."),
    ] = False,
    ring: Annotated[bool, typer.Option("--ring", help="Claim round the ring of ids; priority plays no part.")] = False,
    shutdown_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to finish in after SIGTERM or SIGINT.")
    ] = 30.0,
    health_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Serve /live, /ready and /metrics on 127.0.0.1; 0: any port.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="How much is logged to stderr.")] = LogLevel.info,
    connect_timeout: ConnectTimeout = None,
    database: Url = None,
) -> None:
    """Run a handler for each message until told to stop. SIGTERM and SIGINT finish what runs; a second one aborts."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    log.setLevel(log_level.upper())
    if transaction and ring:
        raise typer.BadParameter("cannot be combined with --transaction", param_hint="--ring")
    if bool(type) + (table is not None) + (feed is not None) != 1:
        raise typer.BadParameter("give one of --type, --table and --feed", param_hint="--type")
    if table is not None and (transaction or ring):
        raise typer.BadParameter("cannot be combined with --table", param_hint="--ring" if ring else "--transaction")
    if feed is not None:
        if as_consumer is None:
            raise typer.BadParameter(
                "needed with --feed: the name under which the position is kept", param_hint="--consumer"
            )
        given = {
            "--transaction": transaction,
            "--ring": ring,
            "--lease": lease,
            "--reader": reader,
            "--health-port": health_port,
        }
        for option, value in given.items():
            if value not in (None, False):
                raise typer.BadParameter("cannot be combined with --feed", param_hint=option)
        if concurrency > 1:
            raise typer.BadParameter("a feed is handled in order, one row at a time", param_hint="--concurrency")
        of_feed = feeds.Options(
            feed,
            as_consumer,
            batch or 100,
            once,
            drain,
            max_messages,
            idle_timeout,
            shutdown_timeout,
            connect_timeout,
        )
        record_handler = _handler(handler, exec, 1, False)
        with _open(database) as opened:
            _check_installed(opened, connect_timeout)
            feeds.Consumer(opened, record_handler, of_feed).run()
        return
    if as_consumer is not None:
        raise typer.BadParameter("belongs to --feed", param_hint="--consumer")
    host = socket.gethostname()
    options = consumer.Options(
        types=tuple(dict.fromkeys(type or [table or ""])),
        reader=reader if reader is not None else (host if ring else f"{host}:{os.getpid()}"),
        batch=batch or (1 if transaction else 10),
        concurrency=concurrency,
        lease=lease,
        once=once,
        drain=drain,
        max_messages=max_messages,
        idle_timeout=idle_timeout,
        transaction=transaction,
        ring=ring,
        shutdown_timeout=shutdown_timeout,
        connect_timeout=connect_timeout,
    )
    loaded = _handler(handler, exec, concurrency, transaction)
    with _open(database) as opened:
        _check_installed(opened, connect_timeout)
        consuming = (polling.TableConsumer if table is not None else consumer.Consumer)(opened, loaded, options)
        if health_port is None:
            consuming.run()
            return
        server = metrics.Server(health_port, consuming.metrics, consuming.is_ready)
        log.info("health: http://127.0.0.1:%d", server.port)
        try:
            consuming.run()
        finally:
            server.close()


def _handler(path: str | None, command: str | None, concurrency: int, transaction: bool) -> Handler:
    if (path is None) == (command is None):
        raise typer.BadParameter("give one of --handler and --exec", param_hint="--handler")
    if command is not None:
        return Command(command)
    assert path is not None
    sys.path.insert(0, str(Path.cwd()))
    try:
        handler = load_handler(path, concurrency)
    except HandlerError as error:
        raise typer.BadParameter(str(error), param_hint="--handler") from None
    if transaction and handler.is_async:
        raise typer.BadParameter(
            "an async handler cannot share the transaction's connection", param_hint="--transaction"
        )
    return handler


def _check_installed(database: Database, connect_timeout: float | None) -> None:
    """Wait for the database, and refuse one where the queue is not as released."""
    wrong = link.when_there(lambda: install.pending(database), connect_timeout)
    if wrong:
        states = ", ".join(sorted({file.state for file in wrong}))
        raise SchemaMissing(
            f"the queue is not installed as released ({len(wrong)} files: {states}): run `runner apply`"
        )


# ---- feeds ---------------------------------------------------------------------------------------

Feed = Annotated[str, typer.Argument(metavar="FEED", help="The feed.")]
_FEED_STATS = ("feed", "table", "last_position", "unpublished", "consumer", "position", "behind", "moved_at")


@app.command()
def publish(
    feed: Annotated[str, typer.Option("--feed", metavar="FEED", help="The feed.")],
    size: Annotated[int, typer.Option("--size", min=1, max=10_000, help="Rows a call.")] = 500,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left to publish.")] = False,
    log_level: Annotated[LogLevel, typer.Option(help="How much is logged to stderr.")] = LogLevel.info,
    connect_timeout: ConnectTimeout = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Number the rows of a feed as they come, until told to stop by SIGTERM or SIGINT."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    log.setLevel(log_level.upper())
    with _open(database) as opened:
        _check_installed(opened, connect_timeout)
        publisher = feeds.Publisher(opened, feed, size, once, connect_timeout)
        publisher.run()
    _say(f"{publisher.published} published", json, count=publisher.published)


@feed_app.command("list")
def feed_list(
    feed: Annotated[str | None, typer.Argument(metavar="[FEED]", help="The feed; all when left out.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show feeds, their consumers, and how far each is."""
    with _session(database) as session:
        output.rows(session.call("feed_stats", feed), _FEED_STATS, json)


@feed_app.command("create")
def feed_create(
    feed: Feed,
    table: Annotated[str, typer.Option("--table", metavar="TABLE", help="The table, as its SQL names it.")],
    key: Annotated[str, typer.Option("--key", metavar="COLUMNS", help="What tells its rows apart: names with commas.")],
    sync: Annotated[str, typer.Option("--sync", metavar="COLUMN", help="The column that takes the numbers.")],
    database: Url = None,
    json: Json = False,
) -> None:
    """Make a feed of a table."""
    with _session(database) as session:
        row = session.call("create_feed", feed, table, key, sync)[0]
    _say("created" if row["created"] else "was there already", json, **row)


@feed_app.command("drop")
def feed_drop(feed: Feed, database: Url = None, json: Json = False) -> None:
    """Forget a feed and where its consumers are; the table stays as it is."""
    with _session(database) as session:
        count = session.call("drop_feed", feed)[0]["count"]
    if not count:
        raise Failed(f"there is no feed {feed!r}")
    _say("1 dropped", json, count=count)


@feed_app.command("rewind")
def feed_rewind(
    feed: Feed,
    as_consumer: Annotated[str, typer.Option("--consumer", metavar="NAME", help="Whose position.")],
    position: Annotated[int, typer.Option("--position", min=0, help="Rows behind it come again; 0: all of them.")] = 0,
    database: Url = None,
    json: Json = False,
) -> None:
    """Move a consumer back on purpose."""
    with _session(database) as session:
        row = session.call("rewind_feed", feed, as_consumer, position)[0]
    _say(f"at {row['position']}", json, **row)


# ---- subscriptions -------------------------------------------------------------------------------

Table = Annotated[str, typer.Argument(metavar="TABLE", help="The table, as its SQL names it.")]


@app.command()
def watch(table: Table, database: Url = None, json: Json = False) -> None:
    """Make the triggers that tell subscriptions of a table's changes, or put them right."""
    count = _execute(database, "watch_table", table)
    _say("watched", json, statements=count)


@app.command()
def unwatch(table: Table, database: Url = None, json: Json = False) -> None:
    """Take a table's triggers and subscriptions away."""
    count = _execute(database, "unwatch_table", table)
    _say("no longer watched", json, statements=count)


def _execute(database: str | None, procedure: str, table: str) -> int:
    """Call it and execute the statements that it leaves to its caller; returns how many."""
    with _session(database) as session:
        rows = session.call(procedure, table)
        for row in rows:
            session.execute(row["statement"])
    return len(rows)


@subscription_app.command("list")
def subscription_list(
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="The table; all when left out.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show watched tables and their subscriptions."""
    with _session(database) as session:
        output.rows(session.call("list_subscriptions", table), ["table", "action", "type"], json)


@subscription_app.command("add")
def subscription_add(
    table: Table,
    type: Annotated[str, typer.Option("--type", metavar="TYPE", help="The queue that gets the messages.")],
    action: Annotated[str, typer.Option("--action", metavar="LETTERS", help="Of I, U, D: insert, update, delete.")],
    database: Url = None,
    json: Json = False,
) -> None:
    """From now on, each such change of a row sends a message."""
    with _session(database) as session:
        count = session.call("subscribe", table, action, type)[0]["count"]
    _say(f"{count} added" if count else "was there already", json, count=count)


@subscription_app.command("remove")
def subscription_remove(
    table: Table,
    type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="The queue; all when left out.")] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="LETTERS", help="Of I, U, D; all when left out.")
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send no more such messages; those that were sent stay."""
    with _session(database) as session:
        count = session.call("unsubscribe", table, action, type)[0]["count"]
    if not count:
        raise Failed(f"there is no such subscription of {table}")
    _say(f"{count} removed", json, count=count)


# ---- watching ------------------------------------------------------------------------------------

_STATS = ("type", "ready", "delayed", "active", "expired", "dead", "oldest_ready_seconds", "paused")
_COUNTS = ("ready", "delayed", "active", "expired", "dead")
_CAP = 10_000


@app.command()
def stats(type: OptionalType = None, database: Url = None, json: Json = False) -> None:
    """What each queue holds; numbers above 10,000 are not counted further."""
    with _session(database) as session:
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
    with _session(database) as session:
        found = session.call("peek", type, state.value, size)
    columns = ["id", "state", "attempts", "priority", "created_at", "run_at", "reader", "error", "body"]
    output.rows(found, columns, json)


@dead_app.command("list")
def dead_list(type: OptionalType = None, size: Size = 100, database: Url = None, json: Json = False) -> None:
    """Show dead letters with their errors, the newest first; of all queues when no type is given."""
    with _session(database) as session:
        types = [type] if type is not None else [row["type"] for row in session.call("queue_stats") if row["dead"]]
        found = chain.from_iterable(session.call("peek", name, "E", size) for name in types)
        output.rows(found, ["id", "type", "attempts", "changed_at", "error", "body"], json)


# ---- operating -----------------------------------------------------------------------------------


@dead_app.command("redrive")
def dead_redrive(
    type: Type,
    id: Annotated[int | None, typer.Option("--id", help="One message; all when left out.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send dead letters round again, with their attempts set back to 0."""
    with _session(database) as session:
        count = _until_none(lambda: session.call("redrive", type, id))
    if id is not None and not count:
        raise Failed(f"message {id} is not a dead letter of {type!r}")
    _say(f"{count} redriven", json, count=count)


@app.command()
def purge(
    type: Type,
    state: Annotated[Purgeable, typer.Option(help="N new, E dead, C archived.")],
    database: Url = None,
    json: Json = False,
) -> None:
    """Delete all messages of one queue and state."""
    with _session(database) as session:
        count = _until_none(lambda: session.call("purge", type, state.value))
    _say(f"{count} purged", json, count=count)


def _until_none(call: Callable[[], list[Row]]) -> int:
    """Repeat a bounded call until it finds nothing; the sum of its counts."""
    total = 0
    while count := call()[0]["count"]:
        total += count
    return total


@app.command()
def cancel(
    id: Annotated[int, typer.Argument(metavar="ID", help="The message.")], database: Url = None, json: Json = False
) -> None:
    """Remove one message that nobody holds: new or dead."""
    with _session(database) as session:
        count = session.call("cancel", id)[0]["count"]
    if not count:
        raise Failed(f"message {id} is active or does not exist")
    _say("1 cancelled", json, count=count)


@app.command()
def pause(type: Type, database: Url = None, json: Json = False) -> None:
    """Let claims return nothing until resume; sending and finishing go on."""
    with _session(database) as session:
        count = session.call("pause", type)[0]["count"]
    _say("paused" if count else "was paused already", json, count=count)


@app.command()
def resume(type: Type, database: Url = None, json: Json = False) -> None:
    """Let claims go on after a pause."""
    with _session(database) as session:
        count = session.call("resume", type)[0]["count"]
    _say("resumed" if count else "was running already", json, count=count)


# ---- polling tables ------------------------------------------------------------------------------

Adopted = Annotated[str, typer.Argument(metavar="NAME", help="What the table is adopted as.")]


class RowState(StrEnum):
    """The states a row of an adopted table can be in, beside those that nobody has claimed."""

    A = "A"
    N = "N"
    E = "E"


@table_app.command("adopt")
def table_adopt(
    name: Adopted,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, as its SQL names it.")],
    key_columns: Annotated[str | None, typer.Option(help="What tells its rows apart, with commas between.")] = None,
    order_column: Annotated[str | None, typer.Option(help="Rows are claimed in its order. [the key's]")] = None,
    status_column: Annotated[str | None, typer.Option(help="What tells which rows are to be done.")] = None,
    ready_value: Annotated[str | None, typer.Option(help="The status of a row to be claimed. [NULL]")] = None,
    active_value: Annotated[str | None, typer.Option(help="The status while claimed. [the ready value]")] = None,
    done_value: Annotated[str | None, typer.Option(help="The status of a row that is done.")] = None,
    error_value: Annotated[str | None, typer.Option(help="The status of a row that is dead.")] = None,
    on_complete: Annotated[str | None, typer.Option(help="keep or delete. [keep]")] = None,
    late_seconds: Annotated[int | None, typer.Option(help="How late a row may come in the order.")] = None,
    equal_rows: Annotated[bool, typer.Option("--equal-rows", help="Without a key: equal rows are accepted.")] = False,
    max_attempts: Annotated[int | None, typer.Option(help="[10]")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Let the rows of a table of yours be claimed as work, as the table is."""
    values = [key_columns, order_column, status_column, ready_value, active_value, done_value, error_value, on_complete]
    with _session(database) as session:
        created = session.call(
            "adopt_table", name, table, *values, late_seconds, 1 if equal_rows else None, max_attempts
        )[0]["created"]
    _say("adopted" if created else "was adopted so already", json, created=created)


@table_app.command("release")
def table_release(name: Adopted, database: Url = None, json: Json = False) -> None:
    """Forget an adopted table: what is claimed is given back, and nothing of it is claimed any more."""
    with _session(database) as session:
        count = session.call("release_table", name)[0]["count"]
    if not count:
        raise Failed(f"no table is adopted as {name!r}")
    _say("released", json, count=count)


@table_app.command("retry")
def table_retry(
    name: Adopted,
    id: Annotated[int | None, typer.Option("--id", help="One row's claim; all when left out.")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send dead rows round again, with all their attempts."""
    with _session(database) as session:
        count = _until_none(lambda: session.call("retry_rows", name, id))
    _say(f"{count} to be tried again", json, count=count)


@table_app.command("peek")
def table_peek(
    name: Adopted,
    state: Annotated[RowState | None, typer.Option(help="A claimed, N waits, E dead.")] = None,
    size: Size = 100,
    database: Url = None,
    json: Json = False,
) -> None:
    """Look at rows that are claimed, wait for another attempt, or are dead."""
    with _session(database) as session:
        found = session.call("peek_rows", name, state.value if state else None, size)
        output.rows(found, ["id", "state", "attempts", "run_at", "reader", "key", "error"], json)


# ---- trying it out -------------------------------------------------------------------------------


@app.command()
def bench(
    messages: Annotated[int, typer.Option(min=1, max=10_000_000, help="Messages a test.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Messages a call.")] = 100,
    database: Url = None,
    json: Json = False,
) -> None:
    """Measure the queue on this database, in a queue of its own that is removed afterwards."""
    with _open(database) as opened:
        found = benchmark.run(opened, messages, batch)
        output.rows(found, ["test", "messages", "seconds", "messages_per_second", "call_milliseconds"], json)


@app.command()
def demo(
    maildir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the mails go: new, empty, or an earlier demo's.")
    ] = Path("demo-mail"),
    database: Url = None,
) -> int:
    """Send and deliver over a thousand mails, on this machine only."""
    run = import_module("rowqueue.demo").run  # needs the extra `demo`
    with _open(database) as opened:
        return int(run(opened, maildir, database is None))


# ---- the whole -----------------------------------------------------------------------------------


def _options(command: Any) -> Any:
    """The option names of a command, or of each command of a group."""
    if hasattr(command, "commands"):
        return {name: _options(child) for name, child in command.commands.items()}
    return {parameter.name for parameter in command.params}


@app.callback()
def _defaults(context: typer.Context) -> None:
    name, settings = config.read(Path.cwd())
    if name:
        context.default_map = config.defaults(name, settings, _options(context.command))


def main() -> None:
    """Run the command line and leave with its exit code; what can be expected to go wrong is told in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="runner", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except (typer.TyperException, *_EXPECTED) as error:
        code = _exit_code(error)
        print(f"runner: {_line(error)}", file=sys.stderr)
    sys.exit(code)


_EXPECTED = (QueueError, DatabaseError, HandlerError, install.InstallError, config.ConfigError, Failed, OSError)


def _exit_code(error: Exception) -> int:
    if isinstance(error, SchemaMissing):
        return SCHEMA_MISSING
    if isinstance(error, config.ConfigError):
        return USAGE
    return int(getattr(error, "exit_code", 1))  # Typer's errors know theirs


def _line(error: Exception) -> str:
    """An error on one line; Typer's name the argument when asked for their formatted message."""
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    return " ".join(text.split()) or ("aborted" if isinstance(error, typer.Abort) else type(error).__name__)


if __name__ == "__main__":
    main()
