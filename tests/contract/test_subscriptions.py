"""Subscriptions: watched tables report changes in the writer's transaction, to the subscriptions of that moment."""

import json
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import servers
from rowqueue.databases import Database, Row, Session
from support.capabilities import Capabilities
from support.queues import Queue, call, refused, watch

Sql = Callable[..., list[Row]]


class Table:
    """A user's own table, which only one test uses. `name` and `columns` are as SQL has them, without quotes."""

    def __init__(self, name: str, session: Session, sql: Sql, can: Capabilities) -> None:
        self.name = name
        self.session = session
        self.can = can
        self.sql = sql

    def __str__(self) -> str:
        """As it stands in SQL."""
        return self.can.quote(self.name)

    @property
    def argument(self) -> str:
        """As an argument names it: every database takes double quotes there."""
        return '"' + self.name.replace('"', '""') + '"'

    def create(self, columns: str, key: str = "id") -> "Table":
        self.sql(f"CREATE TABLE {self} ({columns}, PRIMARY KEY ({key}))")
        for statement in self.can.before_watching(str(self)):
            self.sql(statement)
        return self

    def watch(self) -> "Table":
        watch(self.session, self.sql, self.argument)
        return self

    def unwatch(self) -> None:
        for row in call(self.session, "unwatch_table", self.argument):
            self.sql(row["statement"])

    def subscribe(self, q: Queue, action: str = "IUD") -> int:
        count: int = call(self.session, "subscribe", self.argument, action, q.name)[0]["affected"]
        return count

    def unsubscribe(self, action: str | None = None, q: Queue | None = None) -> int:
        count: int = call(self.session, "unsubscribe", self.argument, action, q and q.name)[0]["affected"]
        return count

    def subscriptions(self) -> list[tuple[Any, ...]]:
        """(table, action, type); those to topics are in test_topics.py."""
        rows = call(self.session, "list_subscriptions", self.argument)
        assert {row["topic"] for row in rows} == {None}
        return [(row["table_name"], row["action"], row["type"]) for row in rows]


@pytest.fixture
def make(session: Session, sql: Sql, can: Capabilities) -> Iterator[Callable[..., Table]]:
    """Makes tables: make("id INTEGER NOT NULL", "id"), with a name of their own that holds `like`."""
    made: list[Table] = []

    def table(columns: str, key: str = "id", like: str = "t") -> Table:
        made.append(Table(can.fold(f"{like}_{uuid.uuid4().hex[:8]}"), session, sql, can).create(columns, key))
        return made[-1]

    yield table
    for each in made:
        sql(f"DROP TABLE {each}")


@pytest.fixture
def table(make: Callable[..., Table]) -> Table:
    """A watched table with columns id and name and unreported rows 1 to 3."""
    table = make("id INTEGER NOT NULL, name VARCHAR(100)")
    for id in (1, 2, 3):
        table.sql(f"INSERT INTO {table} (id, name) VALUES ({id}, 'old')")
    return table.watch()


def events(q: Queue) -> list[tuple[Any, ...]]:
    """The contents of a queue's messages by id: action, key and, if any, old key, as lists of values."""
    found = []
    for row in q.rows("id, body"):
        event = json.loads(row["body"])
        keys = [list(event[name].values()) for name in ("key", "old_key") if name in event]
        assert set(event) <= {"table", "action", "key", "old_key"}
        found.append((event["action"], *keys))
    return found


def test_each_change_sends_a_message_to_each_subscription(
    q: Queue, table: Table, can: Capabilities, server: servers.Server
) -> None:
    """One trigger, many subscriptions: of other types and for other actions."""
    every, deletes = q.named(q.name + "a"), q.named(q.name + "b")
    assert table.subscribe(q, "I") == 1
    assert table.subscribe(every) == 3
    assert table.subscribe(deletes, "DU") == 2
    assert table.subscribe(every, "IU") == 0
    table.sql(f"INSERT INTO {table} (id, name) VALUES (4, 'new')")
    table.sql(f"UPDATE {table} SET name = 'newer' WHERE id = 4")
    table.sql(f"DELETE FROM {table} WHERE id = 4")
    assert events(q) == [("I", [4])]
    assert events(every) == [("I", [4]), ("U", [4]), ("D", [4])]
    assert events(deletes) == [("U", [4]), ("D", [4])]
    id = can.fold("id")
    assert [row["body"] for row in every.rows()] == [
        f'{{"table":"{table.name}","action":"{action}","key":{{"{id}":4}}}}' for action in "IUD"
    ]


def test_a_message_is_an_ordinary_one(q: Queue, table: Table, connect: Callable[..., Session]) -> None:
    """With the defaults of its type, ready at once, and from the writer."""
    table.subscribe(q)
    q.call("set_queue", max_attempts=1, on_complete="archive")
    before = datetime.now(UTC)
    with connect("the writer").transaction() as connection:
        connection.cursor().execute(f"UPDATE {table} SET name = 'new' WHERE id = 1")
    [row] = q.call("claim_batch", 10)
    assert (row["priority"], row["attempt"], row["headers"], row["group_key"], row["dedup_key"]) == (
        0,
        1,
        None,
        None,
        None,
    )
    assert row["source"].startswith("the writer")
    assert abs(row["created_at"] - before) < timedelta(seconds=60)
    assert q.one("fail", row["id"], row["batch_key"], "no", 0) == "E"


def test_subscribing_takes_effect_at_once_and_needs_no_ddl(
    q: Queue, table: Table, connect: Callable[..., Session]
) -> None:
    """Also inside a writer's open transaction, whose earlier statements were not reported."""
    first, second = q.named(q.name + "1"), q.named(q.name + "2")
    with connect("writer").transaction() as connection:
        cursor = connection.cursor()
        cursor.execute(f"UPDATE {table} SET name = 'a' WHERE id = 1")
        table.subscribe(first)
        cursor.execute(f"UPDATE {table} SET name = 'b' WHERE id = 2")
        table.subscribe(second)
        table.unsubscribe(q=first)
        cursor.execute(f"UPDATE {table} SET name = 'c' WHERE id = 3")
        table.unsubscribe("IUD")
        cursor.execute(f"UPDATE {table} SET name = 'd' WHERE id = 1")
    assert events(first) == [("U", [2])]
    assert events(second) == [("U", [3])]


def test_a_statement_reports_each_of_its_rows(q: Queue, table: Table, make: Callable[..., Table]) -> None:
    """A statement without rows reports nothing; a row that is set to its old values counts as updated."""
    table.subscribe(q)
    more = make("id INTEGER NOT NULL")
    for id in range(10, 30):
        more.sql(f"INSERT INTO {more} (id) VALUES ({id})")
    table.sql(f"INSERT INTO {table} (id, name) SELECT id, 'new' FROM {more}")
    assert sorted(events(q)) == [("I", [id]) for id in range(10, 30)]
    table.sql(f"UPDATE {table} SET name = name WHERE id > 24")
    assert sorted(events(q)[20:]) == [("U", [id]) for id in range(25, 30)]
    for text in ("UPDATE {} SET name = 'none' WHERE id > 99", "DELETE FROM {} WHERE id > 99"):
        table.sql(text.format(table))
    table.sql(f"INSERT INTO {table} (id, name) SELECT id, 'new' FROM {more} WHERE id > 99")
    assert len(events(q)) == 25
    table.sql(f"DELETE FROM {table}")
    assert sorted(events(q)[25:]) == [("D", [id]) for id in (1, 2, 3, *range(10, 30))]


def test_an_update_of_the_key_also_reports_the_old_one(q: Queue, table: Table) -> None:
    table.subscribe(q)
    table.sql(f"UPDATE {table} SET id = 4 WHERE id = 3")
    assert events(q) == [("U", [4], [3])]
    # All at once: some change, some do not, and a new key may be the old one of another row.
    table.sql(f"UPDATE {table} SET id = CASE id WHEN 1 THEN 1 ELSE id + 10 END")
    assert sorted(events(q)[1:]) == [("U", [1]), ("U", [12], [2]), ("U", [14], [4])]
    id = table.can.fold("id")
    table.sql(f"UPDATE {table} SET id = 7 WHERE id = 1")
    assert q.rows()[-1]["body"] == (
        f'{{"table":"{table.name}","action":"U","key":{{"{id}":7}},"old_key":{{"{id}":1}}}}'
    )


def test_a_rollback_takes_the_messages_with_it(q: Queue, other: Queue, table: Table, session: Session) -> None:
    """And they cannot be seen before the commit."""
    table.subscribe(q)
    with pytest.raises(ZeroDivisionError), session.transaction() as connection:
        connection.cursor().execute(f"DELETE FROM {table}")
        raise ZeroDivisionError
    assert events(q) == []
    with session.transaction() as connection:
        connection.cursor().execute(f"DELETE FROM {table}")
        assert other.claim(10) == []
    assert len(other.claim(10)) == 3


def test_the_order_of_events_is_that_of_the_statements(q: Queue, table: Table, session: Session) -> None:
    """Within a transaction and from one to the next; run_at never goes back."""
    table.subscribe(q)
    expected = []
    for start in (100, 200):
        with session.transaction() as connection:
            cursor = connection.cursor()
            for id in range(start, start + 10):
                cursor.execute(f"INSERT INTO {table} (id) VALUES ({id})")
                cursor.execute(f"UPDATE {table} SET name = 'new' WHERE id = {id}")
                cursor.execute(f"DELETE FROM {table} WHERE id = {id}")
                expected += [("I", [id]), ("U", [id]), ("D", [id])]
    assert events(q) == expected
    rows = q.claim(100)
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert len(rows) == len(expected)


def test_an_ordered_queue_gets_its_events_strictly_one_after_the_other(q: Queue, table: Table) -> None:
    q.ordered()
    table.subscribe(q)
    table.sql(f"UPDATE {table} SET name = 'a' WHERE id = 2")
    table.sql(f"UPDATE {table} SET name = 'b' WHERE id = 1")
    table.sql(f"DELETE FROM {table} WHERE id = 2")
    told = []
    while rows := q.claim(10):
        [row] = rows
        assert q.claim(10) == []
        event = json.loads(row["body"])
        told.append((event["action"], list(event["key"].values())))
        q.on("complete_batch", row["batch_key"])
    assert told == [("U", [2]), ("U", [1]), ("D", [2])]


def test_a_write_wakes_waiting_consumers(q: Queue, table: Table, connect: Callable[..., Session]) -> None:
    table.subscribe(q)
    waiting = connect("waiting")
    if waiting.listen([q.name]):
        call(waiting, "wait_for_message", q.name)
        table.sql(f"UPDATE {table} SET name = 'new' WHERE id = 1")
        interrupt, never = os.pipe()
        try:
            assert waiting.wait(30, interrupt)
        finally:
            os.close(interrupt)
            os.close(never)
        return
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(call, waiting, "wait_for_message", q.name, 30)
        table.sql(f"UPDATE {table} SET name = 'new' WHERE id = 1")
        assert answer.result(30)[0]["ready"] == 1


def test_a_writer_needs_no_right_on_the_queue(
    q: Queue, table: Table, server: servers.Server, database: Database, can: Capabilities
) -> None:
    table.subscribe(q)
    name = f"login_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url:
        table.sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {can.user(name)}")
        try:
            with server.client(url) as connection:
                connection.execute(f"INSERT INTO {table} (id) VALUES (4)")
                connection.execute(f"UPDATE {table} SET id = 5 WHERE id = 4")
                connection.execute(f"DELETE FROM {table} WHERE id = 5")
        finally:
            table.sql(f"REVOKE SELECT, INSERT, UPDATE, DELETE ON {table} FROM {can.user(name)}")
    assert events(q) == [("I", [4]), ("U", [5], [4]), ("D", [5])]
    assert {row["source"].partition("/")[0] for row in q.rows()} != {None}


HOSTILE = {
    "quotes": 'it\'s "quoted"',
    "statement": "a; DROP TABLE x; --",
    "brackets": "[a] (b) {c}",
    "percent": "100%s :a @b ?",
    "letters": "Größe",
    "word": "select",
}


@pytest.mark.parametrize("like", HOSTILE.values(), ids=HOSTILE)
def test_any_name_of_a_table_and_a_column_will_do(
    q: Queue, make: Callable[..., Table], can: Capabilities, like: str
) -> None:
    column, other = can.quote(f"{like} 1"), can.quote(f"{like} 2")
    table = make(f"{column} INTEGER NOT NULL, {other} INTEGER NOT NULL, x INTEGER", f"{other}, {column}", like)
    table.watch()
    table.subscribe(q)
    table.sql(f"INSERT INTO {table} ({column}, {other}) VALUES (1, 2)")
    table.sql(f"UPDATE {table} SET x = 1")
    table.sql(f"UPDATE {table} SET {column} = 3")
    told = [json.loads(row["body"]) for row in q.rows()]
    key = {f"{like} 2": 2, f"{like} 1": 1}
    assert [list(event["key"]) for event in told] == [list(key)] * 3
    assert told == [
        {"table": table.name, "action": "I", "key": key},
        {"table": table.name, "action": "U", "key": key},
        {"table": table.name, "action": "U", "key": key | {f"{like} 1": 3}, "old_key": key},
    ]
    assert [name for name, _, _ in table.subscriptions()] == [table.name] * 3
    table.unwatch()
    table.sql(f"DELETE FROM {table}")
    assert len(q.rows()) == 3


KEYS = [
    "plain",
    "it's",
    'a "quoted" one',
    "back\\slash \\n",
    "line\nfeed\ttab\x01",
    "Größe ß",
    "😀",
    " blank",
    "",
    "null",
    "{}",
]


def test_text_keys_report_every_value(q: Queue, make: Callable[..., Table], can: Capabilities) -> None:
    table = make(f"a {can.text} NOT NULL, n INTEGER NOT NULL", "a, n").watch()
    table.subscribe(q)
    for key in KEYS:
        table.sql(f"INSERT INTO {table} (a, n) VALUES (%s, 1)", key)
    table.sql(f"UPDATE {table} SET n = 2")
    table.sql(f"DELETE FROM {table}")
    told = events(q)
    assert told[: len(KEYS)] == [("I", [key, 1]) for key in KEYS]
    assert sorted(told[len(KEYS) : 2 * len(KEYS)]) == sorted(("U", [key, 2], [key, 1]) for key in KEYS)
    assert sorted(told[2 * len(KEYS) :]) == sorted(("D", [key, 2]) for key in KEYS)


def test_the_longest_key_is_sent_whole(q: Queue, make: Callable[..., Table], can: Capabilities) -> None:
    """As long as an index of the database takes."""
    table = make(f"a {can.text.replace('200', str(can.longest_key))} NOT NULL", "a").watch()
    table.subscribe(q)
    longest = "\\" * can.longest_key
    table.sql(f"INSERT INTO {table} (a) VALUES (%s)", longest)
    assert events(q) == [("I", [longest])]


def test_keys_that_are_uuids_numbers_and_times(q: Queue, make: Callable[..., Table], can: Capabilities) -> None:
    table = make(
        f"a {can.uuid} NOT NULL, b NUMERIC(18, 4) NOT NULL, c DATE NOT NULL, d BIGINT NOT NULL", "a, b, c, d"
    ).watch()
    table.subscribe(q)
    a = str(uuid.uuid4())
    values = f"{can.uuid_value(a)}, 12345678901234.5678, '2026-11-22', -9223372036854775808"
    table.sql(f"INSERT INTO {table} (a, b, c, d) VALUES ({values})")
    [row] = q.rows()
    assert json.loads(row["body"].lower(), parse_float=str, parse_int=str)["key"] == {
        "a": can.uuid_told(a),
        "b": "12345678901234.5678",
        "c": "2026-11-22",
        "d": "-9223372036854775808",
    }


def test_a_second_watch_repairs_the_triggers_and_no_change_is_reported_twice(q: Queue, table: Table) -> None:
    table.subscribe(q)
    table.watch()
    table.sql(f"UPDATE {table} SET name = 'new' WHERE id = 1")
    assert events(q) == [("U", [1])]
    table.can.spoil_watching(table.sql, table.name)
    table.sql(f"UPDATE {table} SET name = 'newer' WHERE id = 1")
    assert events(q) == [("U", [1])]
    table.watch()
    table.sql(f"UPDATE {table} SET name = 'newest' WHERE id = 1")
    assert events(q) == [("U", [1])] * 2
    assert len(table.subscriptions()) == 3


def test_unwatch_takes_triggers_and_subscriptions_away(q: Queue, table: Table) -> None:
    table.subscribe(q)
    table.unwatch()
    table.sql(f"DELETE FROM {table} WHERE id = 1")
    with refused("not_found", "table", "watch"):
        table.unwatch()
    table.watch()
    assert table.subscriptions() == [(table.name, None, None)]
    table.sql(f"DELETE FROM {table} WHERE id = 2")
    assert events(q) == []


def test_a_watched_table_that_was_dropped_is_unwatched_by_its_name(q: Queue, make: Callable[..., Table]) -> None:
    table = make("id INTEGER NOT NULL").watch()
    table.subscribe(q)
    table.sql(f"DROP TABLE {table}")
    try:
        with refused("not_found", table.name):
            call(table.session, "watch_table", table.argument)
        rows = call(table.session, "list_subscriptions")
        assert (table.name, "I", q.name, None) in [tuple(row.values()) for row in rows]
        assert call(table.session, "unsubscribe", table.name, "I")[0]["affected"] == 1
        assert call(table.session, "unwatch_table", table.name) == []
        with refused("not_found", table.name):
            call(table.session, "list_subscriptions", table.name)
    finally:
        table.create("id INTEGER NOT NULL")
    table.sql(f"INSERT INTO {table} (id) VALUES (1)")
    assert events(q) == []


def test_list_subscriptions_names_each_action_and_type(q: Queue, table: Table) -> None:
    second = q.named(q.name + "2")
    assert table.subscriptions() == [(table.name, None, None)]
    table.subscribe(second, "DI")
    table.subscribe(q)
    assert table.subscriptions() == [
        (table.name, action, name)
        for action, name in (("I", q.name), ("I", second.name), ("U", q.name), ("D", q.name), ("D", second.name))
    ]
    assert table.unsubscribe("UD", second) == 1
    assert table.unsubscribe("D") == 1
    assert table.unsubscribe(q=second) == 1
    assert table.unsubscribe("D") == 0
    left = [(table.name, "I", q.name), (table.name, "U", q.name)]
    assert table.subscriptions() == left
    with refused("invalid_argument", "action: ", "IUD"):
        table.unsubscribe()
    assert table.subscriptions() == left
    assert table.unsubscribe("IUD") == 2


def test_a_name_is_read_as_sql_reads_it(q: Queue, table: Table) -> None:
    """Without quotes in any case, where the database folds it; blanks around it do not count."""
    plain = table.name
    assert call(table.session, "subscribe", f" {plain} ", "I", q.name)[0]["affected"] == 1
    assert call(table.session, "subscribe", plain, "IU", q.name)[0]["affected"] == 1
    for wrong in ("", " ", '"', '"a', "a b", "a;", "a'", "a.b.c.d", ".", "a.", "x" * 201, '""'):
        with refused("invalid_argument", "table: "):
            call(table.session, "watch_table", wrong)
    with refused("not_found", "table: ", table.can.fold("nowhere")):
        call(table.session, "watch_table", "nowhere")


def test_a_table_that_cannot_be_watched_is_refused(
    q: Queue, make: Callable[..., Table], can: Capabilities, sql: Sql
) -> None:
    keyless, view = (
        Table(can.fold(f"k_{uuid.uuid4().hex[:12]}"), q.session, sql, can),
        can.fold(f"v_{uuid.uuid4().hex[:12]}"),
    )
    table = make("id INTEGER NOT NULL")
    sql(f"CREATE TABLE {keyless} (id INTEGER NOT NULL UNIQUE)")
    sql(f"CREATE VIEW {view} AS SELECT id FROM {table}")
    try:
        for statement in (*can.before_watching(str(keyless)), *can.before_watching(view)):
            sql(statement)
        with refused("unsuitable_table", keyless.name, "primary key"):
            call(q.session, "watch_table", keyless.argument)
        with refused("unsuitable_table", view):
            call(q.session, "watch_table", view)
        dotted = make("id INTEGER NOT NULL", like="shop.pay")
        with refused("unsuitable_table", dotted.name, "dot"):
            dotted.watch()
        with refused("unsuitable_table"):
            call(q.session, "watch_table", can.own_table)
        with refused("not_found", table.name, "watch"):
            table.subscribe(q)
        with refused("not_found", table.name, "watch"):
            table.unsubscribe("I")
    finally:
        sql(f"DROP VIEW {view}")
        sql(f"DROP TABLE {keyless}")


@pytest.mark.level(3)
def test_uninstalling_leaves_the_watched_tables_to_their_writers(
    installed_database: Database, server: servers.Server, can: Capabilities
) -> None:
    with server.client(installed_database.url) as connection:
        connection.execute("CREATE TABLE stock (id INTEGER NOT NULL PRIMARY KEY)")
        for statement in can.before_watching("stock"):
            connection.execute(statement)
        session = installed_database.connect("test")
        watch(session, connection.execute, "stock")
        call(session, "subscribe", "stock", "IUD", "stock")
        connection.execute("INSERT INTO stock (id) VALUES (1)")
        assert len(call(session, "claim_batch", "stock")) == 1
        session.close()
    installed_database.uninstall()
    with server.client(installed_database.url) as connection:
        connection.execute("UPDATE stock SET id = 2")
        connection.execute("DELETE FROM stock")


@pytest.mark.parametrize("action", ["", "i", "X", "IX", "II", "IUDI", "I,U", " I"])
def test_an_action_is_one_or_more_of_three_letters(q: Queue, table: Table, action: str) -> None:
    with refused("invalid_argument", "action: "):
        table.subscribe(q, action)
    with refused("invalid_argument", "action: "):
        table.unsubscribe(action)
