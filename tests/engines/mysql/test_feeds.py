"""MySQL and MariaDB: the cost of feeds, rights of mq_owner, all kinds of sessions, automatic columns."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Database
from servers import Server
from support.queues import Feed, Queue, make_table, refused

from .test_cost import counters

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]


def test_a_call_reads_a_few_times_the_rows_it_returns_of_a_big_table(
    feed: Feed, server: Server, database: Database
) -> None:
    feed.sql("INSERT INTO {t} (id, v) WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900)"
        " SELECT a.n * 900 + b.n, 'v' FROM s AS a, s AS b WHERE a.n <= 40")  # fmt: skip
    feed.sql("UPDATE {t} SET sync = id WHERE id <= 30000")
    feed.sql("UPDATE mq_feed SET last_number = 36900 WHERE name = %s", feed.name)
    feed.sql("INSERT INTO mq_feed_consumer VALUES (%s, 'c', 20000, UTC_TIMESTAMP(6))", feed.name)
    with server.client(database.url) as connection:
        for call, values, most in (
            ("fetch_feed", ["c", 100], 1_000),
            ("publish_feed", [100], 2_000),
            ("advance_feed", ["c", 20001], 500),
        ):
            before = counters(connection, "SESSION", "Handler_read%")
            marks = ", ".join(["%s"] * (len(values) + 1))
            connection.execute(f"CALL mq_{call}({marks})", [feed.name, *values]).close()
            assert counters(connection, "SESSION", "Handler_read%") - before < most, call


def test_columns_that_an_update_sets_keep_what_the_writer_has_set(feed: Feed) -> None:
    feed.sql("ALTER TABLE {t} ADD changed_at datetime NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP")
    feed.write(1)
    assert feed.publish() == 1
    [row] = feed.sql("SELECT CAST(changed_at AS char) AS at FROM {t}")
    assert row["at"].startswith("2001-01-01")
    feed.change(1, "new")
    [row] = feed.sql("SELECT CAST(changed_at AS char) AS at FROM {t}")
    assert not row["at"].startswith("2001-01-01")


def test_a_trigger_may_republish_and_one_that_removes_the_numbers_is_named(feed: Feed) -> None:
    feed.sql(
        "CREATE TRIGGER x_{t} BEFORE UPDATE ON {t} FOR EACH ROW"
        " IF NEW.sync <=> OLD.sync THEN SET NEW.sync = NULL; END IF"
    )
    feed.write(1, 2)
    assert feed.publish() == 2
    feed.sql("UPDATE {t} SET v = 'new' WHERE id = 1")
    assert feed.publish() == 1
    assert feed.values() == [(2, 2, "v"), (3, 1, "new")]
    feed.sql("DROP TRIGGER x_{t}")
    feed.sql("CREATE TRIGGER x_{t} BEFORE UPDATE ON {t} FOR EACH ROW SET NEW.sync = NULL")
    feed.change(1, "newer")
    with refused("unsuitable_table", "trigger", feed.table):
        feed.publish()
    assert feed.call("list_feeds")[0]["last_position"] == 3


def test_a_session_of_any_kind_publishes_and_fetches_and_is_left_as_it_was(
    feed: Feed, server: Server, database: Database
) -> None:
    feed.sql("ALTER TABLE {t} ADD at timestamp NULL, ADD j varchar(9) DEFAULT '\\\\\"'")
    feed.sql("INSERT INTO {t} (id, at) VALUES (1, FROM_UNIXTIME(1795331096))")
    with server.client(database.url) as connection:
        connection.execute(
            "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT', time_zone = '-07:00',"
            " sql_safe_updates = 1, group_concat_max_len = 4, character_set_client = latin1, completion_type = 0"
        )
        assert connection.execute("CALL mq_publish_feed(%s, NULL)", [feed.name]).fetchall() == [{"affected": 1}]
        [row] = connection.execute("CALL mq_fetch_feed(%s, 'c', NULL)", [feed.name]).fetchall()
        [left] = connection.execute(
            "SELECT @mq_statement AS a, @mq_n AS b, @@time_zone AS c, @@sql_safe_updates AS d"
        ).fetchall()
    assert row["row_data"] == r'{"id":1,"v":null,"sync":1,"at":"2026-11-22T07:04:56+00:00","j":"\\\""}'
    assert left == {"a": None, "b": None, "c": "-07:00", "d": 1}


def test_publish_feed_in_a_transaction_needs_read_committed(feed: Feed, server: Server, database: Database) -> None:
    feed.write(1)
    with server.client(database.url) as connection:
        connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.begin()
        with pytest.raises(Exception, match="wrong_isolation"):
            connection.execute("CALL mq_publish_feed(%s, NULL)", [feed.name])
        connection.rollback()
        assert connection.execute("CALL mq_publish_feed(%s, NULL)", [feed.name]).fetchall() == [{"affected": 1}]


def test_a_feed_on_a_table_of_another_database_needs_no_right_of_the_queues_owner(q: Queue) -> None:
    """It is read and numbered with the caller's rights, and nothing is granted."""
    schema = f"d_{uuid.uuid4().hex[:12]}"
    q.sql(f"CREATE DATABASE {schema}")
    try:
        q.sql(f"CREATE TABLE {schema}.t (id integer NOT NULL PRIMARY KEY, v varchar(9), sync bigint, KEY (sync))")
        feed = Feed(f"feed.{schema}", f"{schema}.t", q)
        assert feed.call("create_feed", feed.table, "id", "sync") == [{"created": 1}]
        feed.write(1)
        assert feed.publish() == 1
        assert feed.values() == [(1, 1, "v")]
        assert feed.call("list_feeds")[0]["table_name"] == feed.table
        feed.call("drop_feed")
        for table in ("db", "tables_priv", "columns_priv"):
            assert q.sql(f"SELECT user FROM mysql.{table} WHERE db = %s", schema) == []
    finally:
        q.sql(f"DROP DATABASE {schema}")


def test_a_table_that_knows_no_transactions_is_refused(q: Queue) -> None:
    table = make_table(q)
    q.sql(f"ALTER TABLE {table} ENGINE = MyISAM")
    with refused("unsuitable_table", "InnoDB"):
        q.on("create_feed", f"feed.{table}", table, "id", "sync")


KEYS = {
    "varchar of latin1": ("varchar(20) CHARACTER SET latin1", "'é\"\\\\'''", "'e'"),
    "text without case": ("varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "'Ab'", "'ac'"),
    "binary": ("binary(16)", "x'00ff00ff00ff00ff00ff00ff00ff00ff'", "x'2261'"),
    "decimal": ("decimal(38,9)", "12345678901234567890123456789.123456789", "-1"),
    "unsigned": ("bigint unsigned", "18446744073709551615", "18446744073709551614"),
    "float": ("float", "0.1", "0.3"),
    "double": ("double", "0.1", "1e300"),
    "datetime": ("datetime(6)", "'2026-11-22 12:34:56.789012'", "'2026-11-22 12:34:56.789013'"),
    "date": ("date", "'2026-11-22'", "'2026-11-23'"),
    "enum": ("enum('b', 'a')", "'b'", "'a'"),
    "bit": ("bit(9)", "b'101'", "b'111'"),
}


@pytest.mark.parametrize(("kind", "one", "two"), KEYS.values(), ids=KEYS)
def test_a_key_may_be_of_any_type_and_locked_rows_are_passed_over(
    q: Queue, server: Server, database: Database, kind: str, one: str, two: str
) -> None:
    table = make_table(q, f"id {kind} NOT NULL PRIMARY KEY, v integer, sync bigint")
    feed = Feed(f"feed.{table}", table, q)
    feed.sql(f"INSERT INTO {{t}} (id, v) VALUES ({one}, 1), ({two}, 2)")
    feed.call("create_feed", table, "id", "sync")
    with server.client(database.url) as writer:
        writer.begin()
        writer.execute(f"UPDATE {table} SET v = 3 WHERE v = 2")
        feed.publish(1)
        writer.rollback()
    assert feed.publish() >= 1
    assert sorted(row["sync"] for row in feed.sql("SELECT sync FROM {t}")) == [1, 2]
    feed.call("drop_feed")
