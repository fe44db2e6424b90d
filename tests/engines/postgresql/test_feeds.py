"""PostgreSQL: the cost of feeds, and tables with triggers, partitions, child tables and other owners."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from servers import Server
from support.queues import Feed, Queue, make_feed, make_table, read, refused

pytestmark = pytest.mark.product("postgresql")

Sql = Callable[..., list[dict[str, Any]]]


def fetched(sql: Sql, table: str) -> tuple[int, int]:
    """Rows of a table read in this transaction by index or ctid, and by scans."""
    [row] = sql(
        "SELECT coalesce(idx_tup_fetch, 0)::integer AS found, seq_tup_read::integer AS scanned"
        " FROM pg_stat_xact_user_tables WHERE relid = %s::regclass",
        table,
    )
    return row["found"], row["scanned"]


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_call_reads_as_many_rows_as_it_returns_of_a_big_table(q: Queue, sql: Sql, analyzed: bool) -> None:
    feed = make_feed(q)
    sql("BEGIN")
    sql(f"INSERT INTO {feed.table} (id, v, sync) SELECT n, 'v', n FROM generate_series(1, 50000) AS n")
    sql(f"INSERT INTO {feed.table} (id, v) SELECT n, 'v' FROM generate_series(50001, 80000) AS n")
    sql("UPDATE mq.feed SET last_number = 50000 WHERE name = %s", feed.name)
    sql("INSERT INTO mq.feed_consumer VALUES (%s, 'c', 40000, now())", feed.name)
    if analyzed:
        sql(f"ANALYZE {feed.table}")
    for call, values, most in (
        ("fetch_feed", ["c", 100], 100),
        ("publish_feed", [100], 3 * 100),
        ("list_feeds", [], 10_000),
        ("advance_feed", ["c", 40001], 0),
    ):
        before = fetched(sql, feed.table)
        marks = ", ".join(["%s"] * (len(values) + 1))
        sql(f"SELECT * FROM mq.{call}({marks})", feed.name, *values)
        after = fetched(sql, feed.table)
        assert after[1] == before[1], f"{call} scans the table"
        assert after[0] - before[0] <= most + 5, call
    sql("ROLLBACK")
    feed.call("drop_feed")


def test_a_trigger_can_read_other_tables_and_publish_again(feed: Feed, sql: Sql) -> None:
    """The trigger that sets sync = NULL for writers, from the reference."""
    log = f"log_{feed.table}"
    sql(f"CREATE TABLE {log} (id integer)")
    sql(
        f"CREATE FUNCTION f_{log}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" INSERT INTO {log} VALUES (NEW.id);"
        " IF NEW.sync IS NOT DISTINCT FROM OLD.sync THEN NEW.sync := NULL; END IF; RETURN NEW; END $$"
    )
    sql(f"CREATE TRIGGER x BEFORE UPDATE ON {feed.table} FOR EACH ROW EXECUTE FUNCTION f_{log}()")
    feed.write(1, 2)
    assert feed.publish() == 2
    sql(f"UPDATE {feed.table} SET v = 'new' WHERE id = 1")
    assert feed.publish() == 1
    assert feed.values() == [(2, 2, "v"), (3, 1, "new")]
    assert len(sql(f"SELECT * FROM {log}")) == 4


def test_a_trigger_that_removes_the_numbers_is_named(feed: Feed, sql: Sql) -> None:
    sql(
        f"CREATE FUNCTION f_{feed.table}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.sync := NULL; RETURN NEW; END $$"
    )
    sql(f"CREATE TRIGGER x BEFORE UPDATE ON {feed.table} FOR EACH ROW EXECUTE FUNCTION f_{feed.table}()")
    feed.write(1)
    with refused("unsuitable_table", "trigger", feed.table):
        feed.publish()
    assert feed.call("list_feeds")[0]["last_position"] == 0


def test_a_row_that_another_table_is_just_pointing_at_is_published(feed: Feed, connect: Callable[..., Session]) -> None:
    feed.write(1)
    feed.sql("CREATE TABLE c_{t} (id integer REFERENCES {t})")
    with connect("other").transaction() as connection:
        connection.execute(f"INSERT INTO c_{feed.table} VALUES (1)")
        assert feed.publish() == 1


def test_a_partitioned_table_is_one_feed_and_heirs_of_a_table_are_no_part_of_it(q: Queue, sql: Sql) -> None:
    table = f"p_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY, v text, sync bigint) PARTITION BY RANGE (id)")
    sql(f"CREATE TABLE {table}_1 PARTITION OF {table} FOR VALUES FROM (0) TO (10)")
    sql(f"CREATE TABLE {table}_2 PARTITION OF {table} FOR VALUES FROM (10) TO (20)")
    sql(f"CREATE INDEX ON {table} (sync)")
    feed = Feed(f"feed.{table}", table, q)
    feed.call("create_feed", table, "id", "sync")
    feed.write(11, 2, 12, 1)
    assert [feed.publish(3), feed.publish()] == [3, 1]
    assert sorted(id for _, id, _ in feed.values()) == [1, 2, 11, 12]
    assert [position for position, _, _ in feed.values()] == [1, 2, 3, 4]
    feed.call("drop_feed")

    parent = make_feed(q, 1)
    sql(f"CREATE TABLE h_{table} () INHERITS ({parent.table})")
    sql(f"INSERT INTO h_{table} (id, v) VALUES (1, 'heir')")
    assert parent.publish() == 1
    assert parent.values() == [(1, 1, "v")]
    parent.call("drop_feed")


def test_a_table_of_another_schema_is_shown_with_its_schema(q: Queue, sql: Sql) -> None:
    schema = f"s_{uuid.uuid4().hex[:12]}"
    sql(f'CREATE SCHEMA {schema} CREATE TABLE "T.1" (id integer PRIMARY KEY, v text, sync bigint)')
    sql(f'CREATE INDEX ON {schema}."T.1" (sync)')
    feed = Feed(f"feed.{schema}", f'{schema}."T.1"', q)
    assert feed.call("create_feed", f'{schema.upper()} . "T.1"', "ID", "sync") == [{"created": 1}]
    feed.write(1)
    assert feed.publish() == 1
    assert [row["table_name"] for row in feed.call("list_feeds")] == [f"{schema}.T.1"]
    with refused("not_found", "T.1"):
        feed.call("create_feed", '"T.1"', "id", "sync")
    feed.call("drop_feed")


def test_the_callers_settings_change_nothing_in_a_row(feed: Feed, server: Server, database: Database) -> None:
    feed.sql("ALTER TABLE {t} ADD f double precision, ADD at timestamptz, ADD i interval, ADD b bytea[]")
    feed.sql("INSERT INTO {t} VALUES (1, 'v', NULL, 1::float8 / 3, '2026-11-22 12:00+00', '1 day 2 hours', '{ab}')")
    feed.publish()
    with server.client(database.url) as connection:
        connection.execute("SET timezone = 'Asia/Kolkata'; SET extra_float_digits = -9; SET intervalstyle = iso_8601")
        connection.execute("SET search_path = pg_temp; SET datestyle = german")
        row = connection.execute("SELECT * FROM mq.fetch_feed(%s, 'c')", [feed.name]).fetchone()["row_data"]
    assert read(row) == {
        **{"id": 1, "v": "v", "sync": 1, "f": 1 / 3, "at": "2026-11-22T12:00:00+00:00", "i": "1 day 02:00:00"},
        "b": ["\\x6162"],
    }
    assert json.loads(row)["f"] == 1 / 3


def test_a_feed_needs_the_rights_of_its_caller_and_none_of_the_queues_owner(
    server: Server, empty_database: Database
) -> None:
    """An owner who is not a superuser and may not read the table, and an operator who at first may not either."""
    name = uuid.uuid4().hex[:12]
    with server.client(empty_database.url) as admin, server.login(empty_database.url, f"owner_{name}") as url:
        admin.execute(f"GRANT CREATE ON SCHEMA public TO owner_{name}")
        admin.execute(
            f"GRANT CREATE ON DATABASE {empty_database.url.rpartition('/')[2].partition('?')[0]} TO owner_{name}"
        )
        install.apply(open_database(url))
        admin.execute("CREATE TABLE t (id integer PRIMARY KEY, sync bigint); CREATE INDEX ON t (sync)")
        with server.login(empty_database.url, f"duty_{name}", "mq_operator", "mq_consumer") as of_duty:
            duty = open_database(of_duty).connect("duty")
            with refused("unsuitable_table", f"GRANT SELECT, UPDATE ON public.t TO duty_{name}"):
                duty.call("create_feed", "f", "t", "id", "sync")
            admin.execute(f"GRANT SELECT, UPDATE ON public.t TO duty_{name}")
            assert duty.call("create_feed", "f", "t", "id", "sync") == [{"created": 1}]
            admin.execute("INSERT INTO t VALUES (1)")
            assert duty.call("publish_feed", "f") == [{"affected": 1}]
            admin.execute(f"REVOKE ALL ON t FROM duty_{name}")
            assert duty.call("list_feeds")[0]["unpublished"] is None
            for call, values in (("publish_feed", ["f"]), ("fetch_feed", ["f", "c"])):
                with refused("unsuitable_table", f"TO duty_{name}"):
                    duty.call(call, *values)
            duty.close()
        # Roles are server-wide; the owner's objects must be dropped before the owner.
        admin.execute(f"DROP SCHEMA mq CASCADE; DROP OWNED BY owner_{name} CASCADE")


def test_create_feed_makes_no_feed_of_a_temporary_or_foreign_thing(q: Queue, sql: Sql) -> None:
    table = make_table(q)
    sql(f"CREATE MATERIALIZED VIEW m_{table} AS SELECT * FROM {table}")
    for name in (f"m_{table}", f"{table}_pkey", "pg_catalog.pg_class", "information_schema.tables", "mq.feed"):
        with refused("unsuitable_table"):
            q.on("create_feed", f"feed.{table}", name, "id", "sync")
    sql(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD UNIQUE (id) DEFERRABLE")
    with refused("unsuitable_table", "key_columns"):
        q.on("create_feed", f"feed.{table}", table, "id", "sync")
