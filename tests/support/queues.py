"""A test's queue or feed: calls with named arguments, and the only code that reads the queue's tables."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import QueueError, Row, Session
from rowqueue.install import contract

from support.capabilities import Capabilities
from support.outcomes import dead_letter

CONTRACT = contract.load()
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
NO_KEY = "00000000-0000-4000-8000-000000000000"


def in_time(**span: float) -> datetime:
    """A time after now, in whole milliseconds, which every database can store."""
    moment = datetime.now(UTC) + timedelta(**span)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def in_an_hour() -> datetime:
    """Not due while any test runs."""
    return in_time(hours=1)


def call(session: Session, procedure: str, *values: Any, **named: Any) -> list[Row]:
    """Call with arguments by position and by name; gaps are NULL, trailing arguments are left out.

    Options are named like arguments; they are passed as one JSON object.
    """
    entry = CONTRACT.procedures[procedure]
    names = [argument.name for argument in entry.arguments]
    options = {option.name: named.pop(option.name) for option in entry.options if option.name in named}
    arguments = dict(zip(names, values, strict=False)) | named
    if options:
        arguments[entry.object] = json.dumps(options, default=str)
    last = max((names.index(name) for name in arguments), default=-1)
    return session.call(procedure, *(arguments.get(name) for name in names[: last + 1]))


class Queue:
    """A queue of one test. `sql` reads with all rights; everything else is a procedure call."""

    def __init__(self, name: str, session: Session, sql: Callable[..., list[Row]], can: Capabilities) -> None:
        self.name = name
        self.session = session
        self.can = can
        self.is_big = False
        self.sql = sql

    def by(self, session: Session) -> "Queue":
        """The same queue, called over another connection."""
        return Queue(self.name, session, self.sql, self.can)

    def named(self, name: str) -> "Queue":
        """Another queue, over the same connection."""
        return Queue(name, self.session, self.sql, self.can)

    def call(self, procedure: str, *values: Any, **named: Any) -> list[Row]:
        """Call a procedure whose first argument is the type."""
        return call(self.session, procedure, self.name, *values, **named)

    def on(self, procedure: str, *values: Any, **named: Any) -> list[Row]:
        """Call a procedure that takes an id or a batch key, not the type."""
        return call(self.session, procedure, *values, **named)

    def one(self, procedure: str, *values: Any, **named: Any) -> Any:
        """The first value of the only row of a procedure that takes an id or a batch key."""
        [row] = self.on(procedure, *values, **named)
        return next(iter(row.values()))

    def count(self, procedure: str, *values: Any, **named: Any) -> int:
        """`count` of a procedure whose first argument is the type."""
        [row] = self.call(procedure, *values, **named)
        count: int = row["affected"]
        return count

    def send(self, body: str = "body", **options: Any) -> int:
        """send_message with options; returns the id."""
        [row] = self.call("send_message", body, **options)
        id: int = row["id"]
        return id

    def send_many(self, count: int) -> list[int]:
        """Send the bodies 0, 1, 2 …, up to 10,000 in a call; returns the ids in that order."""
        self.is_big = self.is_big or count > 1_000
        before = self.states().keys()
        for start in range(0, count, 10_000):
            bodies = range(start, min(start + 10_000, count))
            assert self.count("send_batch", "\n".join(map(str, bodies))) == len(bodies)
        return sorted(self.states().keys() - before)

    def empty(self) -> None:
        """Delete everything, to keep tests of the whole database fast."""
        self.call("rescue_expired")
        for state in "NEC":
            while self.count("purge", state, size=10_000) == 10_000:
                pass

    def claim(self, size: int = 1, **options: Any) -> list[Row]:
        return self.call("claim_batch", size, **options)

    def claim_key(self, size: int = 1, **options: Any) -> Any:
        """The batch key of a claim that must find something."""
        return self.claim(size, **options)[0]["batch_key"]

    def expire(self, key: Any = None) -> None:
        """End the lease of a batch, or of all: the shortest lease is a second."""
        table = re.sub(r"message$", "batch", self.can.own_table)
        those, values = ("", ()) if key is None else (" AND batch_key = %s", (str(key),))
        ended = self.can.instant.format(LONG_AGO)
        self.sql(f"UPDATE {table} SET lease_until = {ended} WHERE type = %s{those}", self.name, *values)

    def claim_expired(self, size: int = 1, **options: Any) -> list[Row]:
        """A claim whose lease has ended."""
        rows = self.claim(size, **options)
        if rows:
            self.expire(rows[0]["batch_key"])
        return rows

    def expired_key(self, size: int = 1, **options: Any) -> Any:
        """The batch key of a claim that must find something, and whose lease has ended."""
        return self.claim_expired(size, **options)[0]["batch_key"]

    def archived(self) -> "Queue":
        """The same queue, now with an archive."""
        self.call("set_queue", on_complete="archive")
        return self

    def ordered(self) -> "Queue":
        """The same queue, now ordered."""
        self.call("set_queue", ordered=1)
        return self

    def ring(self) -> "Queue":
        """The same queue, now declared a ring."""
        self.call("set_queue", ring=1)
        return self

    def fair(self) -> "Queue":
        """The same queue, now fair."""
        self.call("set_queue", fair=1)
        return self

    def rows(self, columns: str = "*") -> list[Row]:
        """Every message of the queue with its state, by id."""
        return self.sql(f"SELECT {columns} FROM {self.can.view} WHERE type = %s ORDER BY id", self.name)

    def row(self, id: int) -> Row:
        [row] = [row for row in self.rows() if row["id"] == id]
        return row

    def states(self) -> dict[int, str]:
        return {row["id"]: row["state"] for row in self.rows("id, state")}

    def attempts(self) -> dict[int, int]:
        return {row["id"]: row["attempts"] for row in self.rows("id, attempts")}

    def stats(self) -> Row:
        [row] = self.call("queue_stats")
        return row

    def content(self) -> tuple[list[Row], Row]:
        """All visible data of the queue, to compare before and after."""
        stats = self.stats()
        del stats["oldest_ready_seconds"]
        return self.rows(), stats

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.content()
        yield
        assert self.content() == before

    @contextmanager
    def refused(self, error: str, *told: str) -> Iterator[None]:
        """The block raises this error of the contract with these words, and changes nothing."""
        with self.unchanged(), refused(error, *told):
            yield


@contextmanager
def refused(error: str, *told: str) -> Iterator[None]:
    """The block raises this error of the contract, on one line with these words."""
    with pytest.raises(QueueError) as caught:
        yield
    message = str(caught.value)
    assert caught.value.number == CONTRACT.errors[error].number
    assert message.startswith(f"{error}: ") and "\n" not in message
    for word in told:  # some show an unquoted name in upper case
        assert word in message or word.upper() in message


@dataclass
class Feed:
    """A feed of a table of its own, by name and as SQL names it: id, v (a text) and sync."""

    name: str
    table: str
    q: Queue
    columns: tuple[str, str] = ("id", "sync")

    def by(self, session: Session) -> "Feed":
        """The same feed, called over another connection."""
        return Feed(self.name, self.table, self.q.by(session), self.columns)

    def call(self, procedure: str, *values: Any, **named: Any) -> list[Row]:
        return call(self.q.session, procedure, self.name, *values, **named)

    def sql(self, text: str, *parameters: Any) -> list[Row]:
        """Run a statement with all rights; {t} is the table."""
        return self.q.sql(text.replace("{t}", self.table), *parameters)

    def write(self, *ids: int, v: str = "v") -> None:
        for id in ids:
            self.sql("INSERT INTO {t} (id, v) VALUES (%s, %s)", id, v)

    def change(self, id: int, v: str) -> None:
        """The change and the republishing in one statement, as a writer does it."""
        self.sql("UPDATE {t} SET v = %s, sync = NULL WHERE id = %s", v, id)

    def publish(self, size: int | None = None) -> int:
        [row] = self.call("publish_feed", size)
        count: int = row["affected"]
        return count

    def fetch(self, consumer: str = "consumer", size: int | None = None) -> list[Row]:
        return self.call("fetch_feed", consumer, size)

    def values(self, consumer: str = "consumer", size: int | None = None) -> list[tuple[int, int, str]]:
        """What a fetch finds: (position, id, v)."""
        found = [(row["feed_position"], read(row["row_data"])) for row in self.fetch(consumer, size)]
        return [(position, row["id"], row["v"]) for position, row in found]

    def advance(self, position: int, consumer: str = "consumer") -> int:
        [row] = self.call("advance_feed", consumer, position)
        moved: int = row["feed_position"]
        return moved

    def numbers(self) -> dict[int, int | None]:
        return {row["id"]: row["sync"] for row in self.sql("SELECT id, sync FROM {t} ORDER BY id")}


def read(text: str) -> dict[str, Any]:
    """A JSON object with names in lower case: some databases store unquoted names in upper case."""
    return {name.lower(): value for name, value in json.loads(text).items()}


def make_table(q: Queue, columns: str = "") -> str:
    """A table fit for a feed, open to the queue and to every caller; returns its name."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    q.sql(f"CREATE TABLE {name} ({columns or f'id integer NOT NULL PRIMARY KEY, v {q.can.text}, sync bigint'})")
    q.sql(f"CREATE INDEX {name}_sync ON {name} (sync)")
    for statement in q.can.opens(name):
        q.sql(statement)
    return name


def make_feed(q: Queue, *ids: int) -> Feed:
    """A feed of a new table that holds these ids."""
    table = make_table(q)
    feed = Feed(f"feed.{table}", table, q)
    feed.write(*ids)
    assert feed.call("create_feed", feed.table, "id", "sync") == [{"created": 1}]
    return feed


def watch(session: Session, sql: Callable[..., list[Row]], table: str) -> None:
    """watch_table, including the statements that it returns."""
    for row in call(session, "watch_table", table):
        sql(row["statement"])


def make_watched(q: Queue) -> str:
    """A watched table; returns its name."""
    table = make_table(q)
    for statement in q.can.before_watching(table):
        q.sql(statement)
    watch(q.session, q.sql, table)
    return table


def ids(rows: Sequence[Row]) -> list[int]:
    return [row["id"] for row in rows]


POLLING = {
    *("adopt_table", "unadopt_table", "claim_rows", "finish_rows", "extend_rows", "release_rows", "redrive_rows"),
    *("redrive_row", "peek_rows", "list_polling_tables"),
}


def required_of_polling(queue: Queue, procedure: str) -> dict[str, Any]:
    """The same for polling tables, with a table of its own; one row is claimed if needed."""
    from support.polling import SHAPES, Polled

    table = Polled(f"t{uuid.uuid4().hex[:20]}", queue.session, queue.sql, queue.can, SHAPES["e"])
    table.create().insert("1", "2")
    if procedure == "adopt_table":
        table.count("unadopt_table", table.name)
        return {"name": table.name, "table": table.name, "key_columns": "id", "on_complete": "delete"}
    if procedure in {"finish_rows", "extend_rows", "release_rows"}:
        return {"batch_key": table.claim()[0]["batch_key"]}
    if procedure in {"peek_rows", "redrive_row"}:
        [row] = table.claim()
        table.finish(row["batch_key"], dead_letter(row["id"], "broken"))
        return {"name": table.name} | ({"id": row["id"]} if procedure == "redrive_row" else {})
    return {"name": table.name}


def required(queue: Queue, procedure: str) -> dict[str, Any]:
    """Valid values for the required arguments; sends and claims a message if one is needed."""
    if procedure in POLLING:
        return required_of_polling(queue, procedure)
    if procedure == "set_result":
        queue.archived()
    names = [a.name for a in CONTRACT.procedures[procedure].arguments if not a.optional]
    values: dict[str, Any] = {"type": queue.name, "body": "b", "bodies": "b", "state": "N", "types": queue.name}
    values |= {"options": '{"priority":1}'} if procedure == "update_message" else {}
    values |= {"name": queue.name, "key_columns": "id", "sync_column": "sync", "consumer": "consumer", "position": 0}
    values |= {"group_key": "g", "dedup_key": "d"}
    values |= {
        "option": "max_attempts",
        "consumer": "me",
        "topic": "a.b",
        "pattern": f"a.{queue.name}.#",
        "result": "r",
        "step": "charge",
        "seconds": 60,
        "done": 3,
    }
    if procedure == "claim_wraparound":
        queue.ring()
    if procedure == "cancel_key":
        queue.send(dedup_key="d")
    if procedure == "release_consumer":
        queue.send()
        queue.claim(consumer=queue.name)
        return {"consumer": queue.name}
    if procedure == "subscribe":
        names.append("type")  # or a topic
    values["cron"] = "@yearly"
    if procedure in {"run_schedule", "drop_schedule"}:
        call(queue.session, "set_schedule", queue.name, queue.name, "@yearly", "b")
    if "action" in names or procedure in {"watch_table", "unwatch_table", "unsubscribe"}:
        values |= {"table": make_watched(queue), "action": "IUD"}
    elif "table" in names:
        table = make_table(queue)
        values |= {"feed": f"feed.{table}", "table": table}
    elif "feed" in names:
        values["feed"] = make_feed(queue).name
    if procedure == "find_messages":
        return {"type": queue.name, "filter": json.dumps({"id": queue.send()})}
    if procedure == "unbind_topic":
        names.append("pattern")  # or a type
    if procedure == "unsubscribe":
        names.append("action")  # or a type or a topic
    if "batch_key" in names:
        queue.send()
        [row] = queue.claim()
        values |= {"id": row["id"], "batch_key": row["batch_key"], "outcomes": json.dumps({"id": row["id"]})}
    elif "id" in names:
        values["id"] = queue.send()
    return {name: values[name] for name in names}
