"""Feeds on Firebird: rights, triggers, the types of 4.0, plans, and concurrent calls."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Database, Session, open_database
from servers import Server
from support.capabilities import BY_DATABASE
from support.queues import Feed, Queue, make_feed, refused

pytestmark = [pytest.mark.product("firebird")]

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def feed(queue: str, session: Session, sql: Sql) -> Feed:
    return make_feed(Queue(queue, session, sql, BY_DATABASE["firebird"]))


def test_a_trigger_that_keeps_rows_from_being_numbered_is_named(feed: Feed) -> None:
    feed.write(1, 2)
    feed.sql(f"CREATE TRIGGER {feed.table}_t FOR {{t}} BEFORE UPDATE AS BEGIN NEW.sync = NULL; END")
    with refused("unsuitable_table", "trigger", feed.table):
        feed.publish()
    feed.sql(f"DROP TRIGGER {feed.table}_t")
    assert feed.publish() == 2
    assert feed.numbers() == {1: 1, 2: 2}


def make_closed(sql: Sql) -> str:
    """A table for a feed on which no other user has a right."""
    table = f"t_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, v VARCHAR(20), sync BIGINT)")
    sql(f"CREATE INDEX {table}_sync ON {table} (sync)")
    return table


def test_creating_publishing_and_reading_a_feed_need_the_callers_own_rights(
    server: Server, database: Database, sql: Sql
) -> None:
    table = make_closed(sql)
    name = f"LOGIN_{uuid.uuid4().hex[:12]}".upper()
    arguments = (f"feed.{table}", table, "id", "sync")

    def by(url: str, procedure: str, *values: object) -> list[dict[str, object]]:
        session = open_database(url).connect("another")  # a session may cache rights
        try:
            return session.call(procedure, *values)
        finally:
            session.close()

    grant = f'ON "{table.upper()}" TO USER'
    with server.login(database.url, name, "mq_operator") as url:
        with refused("unsuitable_table", f"GRANT SELECT, UPDATE {grant} {name}"):
            by(url, "create_feed", *arguments)
        sql(f"GRANT SELECT, UPDATE (sync) ON {table} TO USER {name}")
        assert by(url, "create_feed", *arguments) == [{"created": 1}]
    sql(f"INSERT INTO {table} (id, v) VALUES (1, 'x')")
    name = f"login_{uuid.uuid4().hex[:12]}".upper()
    with server.login(database.url, name, "mq_consumer") as url:
        with refused("unsuitable_table", f"GRANT SELECT, UPDATE {grant} {name}"):
            by(url, "publish_feed", arguments[0])
        assert by(url, "list_feeds", arguments[0])[0]["unpublished"] is None
        sql(f"GRANT SELECT, UPDATE (sync) ON {table} TO USER {name}")
        assert by(url, "publish_feed", arguments[0]) == [{"affected": 1}]
        sql(f"REVOKE SELECT ON {table} FROM USER {name}")
        with refused("unsuitable_table", f"GRANT SELECT {grant} {name}"):
            by(url, "fetch_feed", arguments[0], "consumer")
        sql(f"GRANT SELECT ON {table} TO USER {name}")
        [row] = by(url, "fetch_feed", arguments[0], "consumer")
        assert json.loads(str(row["row_data"])) == {"ID": 1, "V": "x", "SYNC": 1}
        assert by(url, "list_feeds", arguments[0])[0]["unpublished"] is None  # counted for the owner only
    sql(f"DROP TABLE {table}")
    session = database.connect("test")
    with refused("not_found", table.upper()):
        session.call("publish_feed", arguments[0])
    assert session.call("list_feeds", arguments[0])[0]["unpublished"] is None
    session.call("drop_feed", arguments[0])
    session.close()


NEWER = {
    "int128": ("170141183460469231731687303715884105727", 170141183460469231731687303715884105727),
    "numeric(38,5)": ("-0.00001", -0.00001),
    "decfloat(34)": ("1.5e600", float("inf")),
    "decfloat(16)": ("'NaN'", "NaN"),
    "time WITH TIME ZONE": ("'12:34:56.789 +02:00'", "10:34:56.7890+00:00"),
    "timestamp WITH TIME ZONE": ("'2026-11-22 12:34:56.789 Europe/Berlin'", "2026-11-22T11:34:56.7890+00:00"),
    "varbinary(5)": ("x'00FF'", "AP8="),
}


def test_the_types_of_4_0_and_later_are_json_too(server: Server, sql: Sql, session: Session) -> None:
    if server.version.startswith("3."):  # type: ignore[attr-defined]
        return
    table = f"t_{uuid.uuid4().hex[:12]}"
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(NEWER))
    sql(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, {columns}, sync BIGINT)")
    sql(f"CREATE INDEX {table}_sync ON {table} (sync)")
    sql(f"INSERT INTO {table} VALUES (1, {', '.join(literal for literal, _ in NEWER.values())}, NULL)")
    session.call("create_feed", table, table, "id", "sync")
    session.call("publish_feed", table)
    [row] = session.call("fetch_feed", table, "consumer")
    found = json.loads(row["row_data"])
    assert [found[f"C{n}"] for n in range(len(NEWER))] == [expected for _, expected in NEWER.values()]
    session.call("drop_feed", table)


def test_rows_longer_than_a_varchar_are_whole(sql: Sql, session: Session) -> None:
    table = f"t_{uuid.uuid4().hex[:12]}"
    sql(
        f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, a VARCHAR(8191) CHARACTER SET UTF8,"
        " b VARCHAR(16000) CHARACTER SET ISO8859_1, c VARCHAR(8000) CHARACTER SET OCTETS, d BLOB SUB_TYPE TEXT"
        " CHARACTER SET UTF8, e BLOB SUB_TYPE TEXT CHARACTER SET NONE, sync BIGINT)"
    )
    sql(f"CREATE INDEX {table}_sync ON {table} (sync)")
    texts = {"A": 'ä"' * 4000, "B": "ü\\" * 4000, "D": '\n€"😀' * 100_000, "E": "é" * 9_001}
    sql(f"INSERT INTO {table} (id, a, b, d, e) VALUES (1, %s, %s, %s, %s)", *texts.values())
    session.call("create_feed", table, table, "id", "sync")
    session.call("publish_feed", table)
    [row] = session.call("fetch_feed", table, "consumer")
    assert json.loads(row["row_data"]) == {"ID": 1, "C": None, "SYNC": 1, **texts}
    session.call("drop_feed", table)


@pytest.mark.parametrize("number", [1.7976931348623157e308, 5e-324, 1e23, -2.2250738585072014e-308, 0.1 + 0.2, 1e-5])
def test_a_number_has_as_many_digits_as_read_back_the_same(sql: Sql, number: float) -> None:
    text = "SELECT CAST(imq_number_text(CAST(%s AS DOUBLE PRECISION), 0) AS VARCHAR(40)) AS t FROM rdb$database"
    [row] = sql(text, number)
    assert float(row["t"]) == json.loads(row["t"]) == number


def test_nothing_reads_the_whole_table(sql: Sql, session: Session) -> None:
    """5,000 rows, of which ten are published and fetched: each is read by the index."""
    table = f"t_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, sync BIGINT)")
    sql(f"CREATE INDEX {table}_sync ON {table} (sync)")
    sql(
        "EXECUTE BLOCK AS DECLARE n INTEGER = 0; BEGIN WHILE (n < 5000) DO BEGIN"
        f" INSERT INTO {table} VALUES (:n, IIF(:n < 4990, :n + 1, NULL)); n = n + 1; END END"
    )
    reads = (
        "SELECT r.mon$record_seq_reads AS n FROM mon$table_stats AS t JOIN mon$record_stats AS r"
        " ON r.mon$stat_id = t.mon$record_stat_id JOIN mon$attachments AS a ON a.mon$stat_id = t.mon$stat_id"
        f" WHERE TRIM(t.mon$table_name) = '{table.upper()}' AND a.mon$remote_process IS NOT NULL"
    )
    before = sum(row["n"] for row in sql(reads))
    session.call("create_feed", table, table, "id", "sync")
    assert session.call("publish_feed", table, 5) == [{"affected": 5}]
    assert session.call("publish_feed", table) == [{"affected": 5}]
    assert session.call("publish_feed", table) == [{"affected": 0}]
    assert session.call("advance_feed", table, "consumer", 4990) == [{"feed_position": 4990}]
    assert len(session.call("fetch_feed", table, "consumer")) == 10
    assert session.call("list_feeds", table)[0]["unpublished"] == 0
    assert sum(row["n"] for row in sql(reads)) - before == 0
    session.call("drop_feed", table)
