"""Feeds: create_feed, drop_feed, publish_feed, fetch_feed, advance_feed, rewind_feed, list_feeds, advance_sequence."""

import base64
import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Session
from support.queues import CONTRACT, Feed, Queue, call, make_feed, make_table, read, refused
from test_hostile_input import TEXTS, skip_blank_endings


def run(connection: Any, text: str) -> None:
    """A statement of the caller's own in the caller's transaction."""
    connection.cursor().execute(text)


# ---- publish and fetch -------------------------------------------------------------------------------


def test_publish_feed_numbers_rows_in_key_order_and_fetch_feed_returns_them(feed: Feed) -> None:
    feed.write(3, 1, 2, v="a")
    assert feed.values() == []
    assert feed.publish() == 3
    assert feed.numbers() == {1: 1, 2: 2, 3: 3}
    rows = feed.fetch()
    assert [row["feed_position"] for row in rows] == [1, 2, 3]
    assert [read(row["row_key"]) for row in rows] == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert [read(row["row_data"]) for row in rows] == [{"id": n, "v": "a", "sync": n} for n in (1, 2, 3)]
    assert [list(read(row["row_data"])) for row in rows] == [["id", "v", "sync"]] * 3
    assert feed.fetch() == rows, "a fetch changes nothing"


def test_a_row_that_is_changed_after_it_was_read_is_read_again_after_all_others(feed: Feed) -> None:
    """What a consumer that reads rows above MAX(id) would miss: a change to the newest row after it was read."""
    feed.write(1, 2, 3)
    feed.publish()
    assert feed.advance(3) == 3
    feed.change(3, "new")
    feed.change(1, "newer")
    assert feed.values() == [], "not before it is published"
    assert feed.publish() == 2
    assert feed.values() == [(4, 1, "newer"), (5, 3, "new")]
    feed.change(1, "newest")
    feed.publish()
    assert feed.values() == [(5, 3, "new"), (6, 1, "newest")], "each row once, in its last version"


def test_publish_feed_numbers_at_most_size_rows_and_fetch_feed_returns_at_most_size(feed: Feed) -> None:
    feed.write(*range(1, 8))
    assert [feed.publish(3), feed.publish(3), feed.publish(3), feed.publish(3)] == [3, 3, 1, 0]
    assert sorted(n or 0 for n in feed.numbers().values()) == list(range(1, 8))
    assert [position for position, _, _ in feed.values(size=2)] == [1, 2]
    feed.advance(2)
    assert [position for position, _, _ in feed.values(size=2)] == [3, 4]
    assert len(feed.fetch()) == 5


def test_a_rolled_back_publish_feed_returns_its_numbers(feed: Feed, another: Feed) -> None:
    feed.write(1, 2)
    with pytest.raises(ZeroDivisionError), feed.q.session.transaction():
        assert feed.publish(1) == 1
        assert [position for position, _, _ in feed.values()] == [1], "the caller sees his own numbers"
        assert another.fetch() == [], "nobody else does, and nobody waits"
        raise ZeroDivisionError
    assert feed.numbers() == {1: None, 2: None}
    assert feed.publish() == 2
    assert feed.numbers() == {1: 1, 2: 2}


def test_publish_feed_skips_rows_that_a_writer_has_locked(feed: Feed, connect: Callable[..., Session]) -> None:
    feed.write(1, 2, 3)
    with connect("writer").transaction() as connection:
        run(connection, f"UPDATE {feed.table} SET v = 'late', sync = NULL WHERE id = 2")
        assert feed.publish() == 2
        assert feed.numbers() == {1: 1, 2: None, 3: 2}
    assert feed.publish() == 1
    assert feed.values() == [(1, 1, "v"), (2, 3, "v"), (3, 2, "late")]


def test_a_row_that_commits_late_is_not_missed(feed: Feed, connect: Callable[..., Session]) -> None:
    with connect("writer").transaction() as connection:
        run(connection, f"INSERT INTO {feed.table} (id, v) VALUES (1, 'late')")
        feed.write(2, 3)
        assert feed.publish() == 2
        assert feed.advance(2) == 2
    assert feed.publish() == 1
    assert feed.values() == [(3, 1, "late")]


def test_feeds_do_not_wait_for_each_other_nor_consumers_for_a_publisher(feed: Feed, q: Queue, another: Feed) -> None:
    second = make_feed(q, 1).by(another.q.session)
    feed.write(1)
    with feed.q.session.transaction():
        assert feed.publish() == 1
        assert second.publish() == 1
        assert another.fetch() == []
        assert another.advance(0) == 0
    assert [len(another.fetch()), len(second.fetch())] == [1, 1]
    with feed.q.session.transaction():
        assert another.publish() == 0
        assert feed.publish() == 0, "an empty call takes no lock"
        another.write(2)
        assert another.publish() == 1
    second.call("drop_feed")


def test_consumers_have_each_a_position_of_their_own(feed: Feed) -> None:
    feed.write(1, 2, 3)
    feed.publish()
    assert feed.advance(2, "a") == 2
    assert [len(feed.fetch(name)) for name in ("a", "b")] == [1, 3]
    assert feed.advance(1, "a") == 2, "forward only"
    assert feed.advance(0, "b") == 0
    assert [len(feed.fetch(name)) for name in ("a", "b")] == [1, 3]


@pytest.mark.parametrize("position", [4, -1, 1 << 62])
def test_advance_feed_refuses_a_position_that_the_feed_has_not_reached(feed: Feed, position: int) -> None:
    """Rows that are numbered later would be lost."""
    feed.write(1, 2, 3)
    feed.publish()
    with refused("invalid_argument", "position", "3"):
        feed.advance(position)
    assert len(feed.fetch()) == 3
    assert feed.call("list_feeds")[0]["consumer"] is None


def test_rewind_feed_goes_back_and_never_forward(feed: Feed) -> None:
    feed.write(1, 2, 3)
    feed.publish()
    assert feed.call("rewind_feed", "consumer", 0) == [{"feed_position": 0}]
    feed.advance(3)
    assert feed.call("rewind_feed", "consumer", 1) == [{"feed_position": 1}]
    assert len(feed.fetch()) == 2
    for position in (2, -1, None):
        with refused("invalid_argument", "position", "1"):
            feed.call("rewind_feed", "consumer", position)
    assert feed.call("rewind_feed", "consumer", 0) == [{"feed_position": 0}]
    assert len(feed.fetch()) == 3
    with refused("invalid_argument", "position", "0"):
        feed.call("rewind_feed", "nobody", 1)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_names_and_texts_are_stored_unchanged(feed: Feed, text: str) -> None:
    skip_blank_endings(feed.q, text)
    hostile = Feed(f"{feed.name} {text}", make_table(feed.q), feed.q)
    assert hostile.call("create_feed", hostile.table, "id", "sync") == [{"created": 1}]
    hostile.write(1, v=text)
    hostile.publish()
    assert hostile.values(text) == [(1, 1, text)]
    hostile.advance(1, text)
    [row] = hostile.call("list_feeds")
    assert (row["feed"], row["consumer"], row["feed_position"]) == (hostile.name, text, 1)
    assert hostile.call("drop_feed") == [{"affected": 1}]


# ---- tables ------------------------------------------------------------------------------------------


def test_a_key_may_have_several_columns_of_text_and_number(q: Queue) -> None:
    table = make_table(
        q, "region varchar(20) NOT NULL, n decimal(9,2) NOT NULL, x integer, sync bigint, PRIMARY KEY (n, region)"
    )
    feed = Feed(f"feed.{table}", table, q)
    feed.call("create_feed", table, "region, n", "sync")
    for region, n in (("west", "2.50"), ("east", "10.00"), ("east", "2.50")):
        feed.sql(f"INSERT INTO {{t}} (region, n) VALUES ('{region}', {n})")
    assert feed.publish() == 3
    keys = [json.loads(row["row_key"], parse_float=str) for row in feed.fetch()]
    assert [[(name.lower(), value) for name, value in key.items()] for key in keys] == [
        [("region", "east"), ("n", "2.50")],
        [("region", "east"), ("n", "10.00")],
        [("region", "west"), ("n", "2.50")],
    ]
    feed.call("drop_feed")


HOSTILE = {
    "reserved words": ("order", "select", "from"),
    "blanks and case": ("My Table", "My Key", "Sync Number"),
    "quotes": ('it\'s a "t"', "k\"'`", "s`'\""),
    "brackets and dots": ("a.b [c] ]", "x.y", "[z]]"),
    "statement": ("x; DROP TABLE y; --", "a, b", "c) --"),
    "unicode": ("täble", "ключ", "번호"),
    "backslashes": ("a\\b\\", "c\\'", "\\"),
    "placeholders": ("100%s ?", ":a {0}", "@b $1"),
}


@pytest.mark.parametrize("names", HOSTILE.values(), ids=HOSTILE)
def test_names_that_need_quotes_are_taken_exactly(q: Queue, names: tuple[str, str, str]) -> None:
    suffix = uuid.uuid4().hex[:8]
    plain, quote = (names[0] + suffix, *names[1:]), q.can.quote
    table, key, sync = map(quote, plain)
    q.sql(f"CREATE TABLE {table} ({key} integer NOT NULL PRIMARY KEY, {sync} bigint)")
    q.sql(f"CREATE INDEX i{suffix} ON {table} ({sync})")
    for statement in q.can.opens(table):
        q.sql(statement)
    feed = Feed(f"feed.{suffix}", table, q)
    assert feed.call("create_feed", f" {table} ", f"{key} ", f" {sync}") == [{"created": 1}]
    in_quotes = ['"' + name.replace('"', '""') + '"' for name in plain]
    assert feed.call("create_feed", *in_quotes) == [{"created": 0}]
    q.sql(f"INSERT INTO {table} ({key}) VALUES (7)")
    assert feed.publish() == 1
    [row] = feed.fetch()
    assert json.loads(row["row_key"]) == {plain[1]: 7}
    assert json.loads(row["row_data"]) == {plain[1]: 7, plain[2]: 1}
    [stats] = feed.call("list_feeds")
    assert (stats["table_name"], stats["unpublished"]) == (plain[0], 0)
    feed.call("drop_feed")


MALFORMED = ["", " ", '"', '""', "a.b.c.d", ".a", "a.", "a b", "a;b", 'a"b"', '"a"b', "'a'", "a--", "x" * 201, None]


@pytest.mark.parametrize("argument", ["table", "key_columns", "sync_column"])
def test_create_feed_refuses_a_malformed_name(q: Queue, argument: str) -> None:
    table = make_table(q)
    values = {"feed": f"feed.{table}", "table": table, "key_columns": "id", "sync_column": "sync"}
    lists = [] if argument == "table" else ["id,", ",id", "id,,v", "id v", "id;v", "id.v"]
    for name in (*MALFORMED, *lists):
        with refused("invalid_argument", f"{argument}: "):
            call(q.session, "create_feed", **values | {argument: name})
    assert call(q.session, "list_feeds", values["feed"]) == []


def test_create_feed_refuses_what_is_no_table_of_a_users(q: Queue, feed: Feed) -> None:
    def create(table: str) -> None:
        call(q.session, "create_feed", "feed.x", table, "id", "sync")

    with refused("not_found", "table", "nowhere"):
        create("nowhere")
    q.sql(f"CREATE VIEW v{feed.table} AS SELECT id, sync FROM {feed.table}")
    for statement in q.can.opens(f"v{feed.table}"):
        q.sql(statement)
    with refused("unsuitable_table"):
        create(f"v{feed.table}")
    with refused("unsuitable_table"):
        create(q.can.view.replace("message_state", "queue"))
    assert call(q.session, "list_feeds", "feed.x") == []


UNSUITABLE = {
    "no unique key": ("id integer NOT NULL, sync bigint", "id", "unsuitable_table"),
    "a part of the key": (
        "id integer NOT NULL, b integer NOT NULL, sync bigint, PRIMARY KEY (id, b)",
        "id",
        "unsuitable_table",
    ),
    "sync is no bigint": ("id integer NOT NULL PRIMARY KEY, sync integer", "id", "unsuitable_table"),
    "sync cannot be NULL": ("id integer NOT NULL PRIMARY KEY, sync bigint NOT NULL", "id", "unsuitable_table"),
    "no such column": ("id integer NOT NULL PRIMARY KEY, sync bigint", "nowhere", "invalid_argument"),
    "a column twice": ("id integer NOT NULL PRIMARY KEY, sync bigint", "id, id", "invalid_argument"),
    "sync in the key": ("id integer NOT NULL PRIMARY KEY, sync bigint", "id, sync", "invalid_argument"),
}


@pytest.mark.parametrize(("columns", "keys", "error"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_create_feed_refuses_columns_that_will_not_do(q: Queue, columns: str, keys: str, error: str) -> None:
    table = make_table(q, columns)
    with refused(error):
        call(q.session, "create_feed", f"feed.{table}", table, keys, "sync")
    assert call(q.session, "list_feeds", f"feed.{table}") == []


def test_the_error_of_create_feed_has_the_statement_that_creates_the_index(q: Queue) -> None:
    table = f"t_{uuid.uuid4().hex[:12]}"
    q.sql(f"CREATE TABLE {table} (id integer NOT NULL PRIMARY KEY, a integer, sync bigint)")
    q.sql(f"CREATE INDEX {table}_other ON {table} (a, sync)")
    for statement in q.can.opens(table):
        q.sql(statement)
    with refused("unsuitable_table", "CREATE INDEX", table):
        call(q.session, "create_feed", f"feed.{table}", table, "id", "sync")
    q.sql(f"CREATE INDEX {table}_sync ON {table} (sync, a)")
    assert call(q.session, "create_feed", f"feed.{table}", table, "id", "sync") == [{"created": 1}]


def test_create_feed_takes_a_unique_index_of_columns_that_are_not_null(q: Queue) -> None:
    table = make_table(q, "a integer NOT NULL, b integer, v integer, sync bigint")
    q.sql(f"CREATE UNIQUE INDEX {table}_b ON {table} (b)")
    with refused("unsuitable_table"):
        call(q.session, "create_feed", f"feed.{table}", table, "b", "sync")
    q.sql(f"CREATE UNIQUE INDEX {table}_a ON {table} (a)")
    assert call(q.session, "create_feed", f"feed.{table}", table, "b, a", "sync") == [{"created": 1}]


def test_create_feed_again_is_the_same_feed_and_other_settings_are_refused(feed: Feed) -> None:
    assert feed.call("create_feed", feed.table, "id", "sync") == [{"created": 0}]
    assert feed.call("create_feed", feed.table, " id ", "sync") == [{"created": 0}]
    other = make_table(feed.q)
    with refused("already_exists", "feed"):
        feed.call("create_feed", other, "id", "sync")
    with refused("already_exists", "feed"):
        feed.call("create_feed", feed.table, "id, v", "sync")
    with refused("unsuitable_table", feed.name):
        call(feed.q.session, "create_feed", "feed.second", feed.table, "id", "sync")


def test_a_recreated_feed_continues_above_its_old_numbers_without_its_old_consumers(feed: Feed) -> None:
    feed.write(1, 2)
    feed.publish()
    feed.advance(2)
    assert feed.call("drop_feed") == [{"affected": 1}]
    assert feed.call("drop_feed") == [{"affected": 0}]
    for procedure in ("publish_feed", "fetch_feed", "advance_feed", "rewind_feed"):
        named = {argument.name for argument in CONTRACT.procedures[procedure].arguments}
        values = {"consumer": "consumer", "position": 0}
        with refused("not_found", feed.name):
            feed.call(procedure, **{name: value for name, value in values.items() if name in named})
    assert feed.numbers() == {1: 1, 2: 2}
    feed.call("create_feed", feed.table, "id", "sync")
    feed.write(3)
    assert feed.publish() == 1
    assert [position for position, _, _ in feed.values()] == [1, 2, 3]


def test_a_sync_column_that_the_server_computes_is_refused_at_first_and_later(q: Queue) -> None:
    feed = make_feed(q)
    feed.sql("DROP TABLE {t}")
    feed.sql(f"CREATE TABLE {{t}} (id bigint NOT NULL PRIMARY KEY, {q.can.computed.format('sync', 'id * 2')})")
    for procedure, more in (("publish_feed", {}), ("fetch_feed", {"consumer": "c"})):
        with refused("unsuitable_table", "computed"):
            feed.call(procedure, **more)
    assert feed.call("list_feeds")[0]["unpublished"] is None
    assert feed.call("drop_feed") == [{"affected": 1}]
    with refused("unsuitable_table", "sync_column"):
        feed.call("create_feed", feed.table, "id", "sync")


def test_the_error_names_a_table_that_was_dropped(q: Queue) -> None:
    feed = make_feed(q)
    feed.sql("DROP TABLE {t}")
    calls: dict[str, dict[str, Any]] = {"publish_feed": {}, "fetch_feed": {"consumer": "consumer"}}
    if q.can.sees_drops:
        calls |= {
            "advance_feed": {"consumer": "consumer", "position": 0},
            "rewind_feed": {"consumer": "consumer", "position": 0},
        }
    for procedure, more in calls.items():
        with refused("not_found", feed.table):
            feed.call(procedure, **more)
    [stats] = feed.call("list_feeds")
    assert stats["table_name"].lower() == feed.table
    assert stats["unpublished"] is None
    assert feed.call("drop_feed") == [{"affected": 1}]


# ---- what the row holds ------------------------------------------------------------------------------


def test_a_row_is_json_with_every_common_type(q: Queue) -> None:
    columns = [f"c{n} {kind}" for n, (kind, _, _) in enumerate(q.can.values)]
    table = make_table(q, ", ".join(["id integer NOT NULL PRIMARY KEY", *columns, "sync bigint"]))
    feed = Feed(f"feed.{table}", table, q)
    names = [f"c{n}" for n in range(len(columns))]
    literals = ", ".join(literal for _, literal, _ in q.can.values)
    feed.sql(f"INSERT INTO {{t}} (id, {', '.join(names)}) VALUES (1, {literals})")
    feed.sql("INSERT INTO {t} (id) VALUES (2)")
    feed.call("create_feed", table, "id", "sync")
    feed.publish()
    full, empty = (row["row_data"] for row in feed.fetch())
    found = read(full)
    exact = {name.lower(): value for name, value in json.loads(full, parse_float=str, parse_int=str).items()}
    for name, (kind, _, expected) in zip(names, q.can.values, strict=True):
        value = found[name]
        if isinstance(expected, bytes):
            value = base64.b64decode(value, validate=True)
        elif isinstance(expected, str) and isinstance(value, int | float):
            assert Decimal(exact[name]) == Decimal(expected), kind
            value = expected
        assert (type(value), value) == (type(expected), expected), kind
    assert read(empty) == {"id": 2, **dict.fromkeys(names), "sync": 2}
    feed.call("drop_feed")


def test_a_column_that_is_added_is_in_the_row_and_one_that_is_dropped_is_not(feed: Feed) -> None:
    feed.write(1)
    feed.publish()
    assert list(read(feed.fetch()[0]["row_data"])) == ["id", "v", "sync"]
    feed.sql("ALTER TABLE {t} ADD w integer")
    assert read(feed.fetch()[0]["row_data"]) == {"id": 1, "v": "v", "sync": 1, "w": None}


# ---- what can be seen --------------------------------------------------------------------------------


def test_list_feeds_shows_the_position_of_each_consumer(feed: Feed) -> None:
    empty = {"consumer": None, "feed_position": None, "behind": None, "moved_at": None}
    feed.write(1, 2, 3, 4)
    [row] = feed.call("list_feeds")
    assert row["table_name"].lower() == feed.table
    assert row == {"feed": feed.name, "table_name": row["table_name"], "last_position": 0, "unpublished": 4, **empty}
    feed.publish(3)
    before = datetime.now(UTC) - timedelta(seconds=5)
    feed.advance(2, "b")
    feed.advance(3, "a")
    rows = feed.call("list_feeds")
    assert [(row["consumer"], row["feed_position"], row["behind"]) for row in rows] == [("a", 3, 0), ("b", 2, 1)]
    assert [(row["last_position"], row["unpublished"]) for row in rows] == [(3, 1)] * 2
    moved = [row["moved_at"] for row in rows]
    assert all(before < at < before + timedelta(seconds=60) for at in moved)
    feed.advance(1, "a")
    assert [row["moved_at"] for row in feed.call("list_feeds")] == moved
    # A list of all feeds reads no user's table.
    listed = [row | {"unpublished": None} for row in rows]
    assert [row for row in call(feed.q.session, "list_feeds") if row["feed"] == feed.name] == listed
    assert call(feed.q.session, "list_feeds", "nowhere") == []


# ---- counters ----------------------------------------------------------------------------------------


def test_advance_sequence_counts_without_gaps(q: Queue) -> None:
    assert q.call("advance_sequence") == [{"first_number": 1, "last_number": 1}]
    assert q.call("advance_sequence", 10) == [{"first_number": 2, "last_number": 11}]
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert q.call("advance_sequence", 5) == [{"first_number": 12, "last_number": 16}]
        raise ZeroDivisionError
    assert q.call("advance_sequence", 1_000_000_000) == [{"first_number": 12, "last_number": 1_000_000_011}]
    assert q.named(q.name + "x").call("advance_sequence") == [{"first_number": 1, "last_number": 1}]


def test_counters_do_not_wait_for_each_other(q: Queue, other: Queue) -> None:
    q.call("advance_sequence")
    second = other.named(q.name + "x")
    second.call("advance_sequence")
    with q.session.transaction():
        assert q.call("advance_sequence") == [{"first_number": 2, "last_number": 2}]
        assert second.call("advance_sequence") == [{"first_number": 2, "last_number": 2}]


@pytest.mark.product("postgresql", "mysql", "mariadb")
def test_the_trigger_of_the_guide_republishes_what_writers_forget(feed: Feed) -> None:
    """docs/operate/feeds.md shows it."""
    page = Path(__file__).parents[2].joinpath("docs/operate/feeds.md").read_text("utf-8")
    blocks = re.findall(r"^```sql\n(CREATE [^`]*? article_republish\b[^`]*)^```", page, re.M)
    [block] = [block for block in blocks if ("plpgsql" in block) == (feed.q.can.view == "mq.message_state")]
    feed.sql(re.sub(r"\barticle\b", feed.table, block).replace("article_republish", f"{feed.table}_republish"))
    feed.write(1, 2)
    assert feed.publish() == 2
    feed.sql("UPDATE {t} SET v = 'forgotten' WHERE id = 1")
    feed.change(2, "as it should be")
    assert feed.numbers() == {1: None, 2: None}
    assert feed.publish() == 2
    assert feed.publish() == 0
    assert feed.numbers() == {1: 3, 2: 4}
