"""Watched tables on PostgreSQL: transition tables, partitions, cascades, rights, dumps."""

import json
import random
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg.errors import InsufficientPrivilege
from rowqueue.databases import Database, DatabaseError, Session, open_database
from servers import Server
from servers.postgresql import programs
from support.queues import call

pytestmark = pytest.mark.product("postgresql")

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def schema(sql: Sql) -> Iterator[str]:
    """A schema for the tables of one test."""
    name = f"s_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE SCHEMA {name}")
    yield name
    sql(f"DROP SCHEMA {name} CASCADE")


def watch(session: Session, table: str, *types: str) -> None:
    assert session.call("watch_table", table) == []
    for type in types:
        session.call("subscribe", table, "IUD", type)


def events(sql: Sql, type: str) -> list[tuple[Any, ...]]:
    """Action, key and old key of the messages of a type, which are taken away."""
    rows = [json.loads(row["body"]) for row in sql("SELECT body FROM mq.message WHERE type = %s ORDER BY id", type)]
    sql("DELETE FROM mq.message WHERE type = %s", type)
    names = ("key", "old_key")
    return [(row["action"], *(tuple(row[name].values()) for name in names if name in row)) for row in rows]


def test_each_new_key_is_reported_with_its_own_old_key_when_many_rows_change_keys(
    sql: Sql, session: Session, schema: str, queue: str
) -> None:
    """PostgreSQL does not document that both transition tables have the same order; this test checks it."""
    table = f"{schema}.t"
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY DEFERRABLE, note text)")
    sql(f"INSERT INTO {table} SELECT n FROM generate_series(1, 3000) AS n ORDER BY random()")
    sql(f"UPDATE {table} SET note = 'moved' WHERE id % 3 = 0")  # rows in the order of the table no more
    watch(session, table, queue)
    sql(f"UPDATE {table} SET id = CASE WHEN id BETWEEN 501 AND 2500 THEN 3001 - id ELSE id END")
    moved = {("U", (3001 - n,), (n,)) for n in range(501, 2501)}
    assert set(found := events(sql, queue)) == moved | {("U", (n,)) for n in range(1, 3001) if not 501 <= n <= 2500}
    assert len(found) == 3000
    sql(
        f"MERGE INTO {table} USING (SELECT n FROM generate_series(2900, 3100) AS n ORDER BY random()) AS s ON id = n"
        " WHEN MATCHED THEN UPDATE SET id = id + 10000 WHEN NOT MATCHED THEN INSERT (id) VALUES (n)"
    )
    found = events(sql, queue)
    assert all(event[1][0] == event[2][0] + 10_000 for event in found if event[0] == "U")
    assert {event[0] for event in found} == {"I", "U"} and len(found) == 201


def test_upserts_copies_and_cascades_send_messages(sql: Sql, session: Session, schema: str, queue: str) -> None:
    parent, child = f"{schema}.parent", f"{schema}.child"
    sql(f"CREATE TABLE {parent} (id integer PRIMARY KEY)")
    cascade = f"REFERENCES {parent} ON DELETE CASCADE ON UPDATE CASCADE"
    sql(f"CREATE TABLE {child} (id integer PRIMARY KEY, p integer {cascade})")
    watch(session, child, queue)
    sql(f"INSERT INTO {parent} VALUES (1), (2)")
    with session.transaction() as connection, connection.cursor().copy(f"COPY {child} FROM STDIN") as copy:
        for id in range(5):
            copy.write_row((id, 1))
    assert events(sql, queue) == [("I", (id,)) for id in range(5)]
    sql(f"INSERT INTO {child} VALUES (4, 2), (5, 2) ON CONFLICT (id) DO UPDATE SET p = excluded.p")
    assert sorted(events(sql, queue)) == [("I", (5,)), ("U", (4,))]
    sql(f"UPDATE {parent} SET id = 3 WHERE id = 2")
    assert sorted(events(sql, queue)) == [("U", (4,)), ("U", (5,))]
    sql(f"DELETE FROM {parent} WHERE id = 3")
    assert sorted(events(sql, queue)) == [("D", (4,)), ("D", (5,))]
    sql(f"TRUNCATE {child}")
    assert events(sql, queue) == []


def test_a_partitioned_table_reports_changes_made_through_it(
    sql: Sql, session: Session, schema: str, queue: str
) -> None:
    """A row that moves to another partition counts as updated; writes to a partition by its name are not reported."""
    table = f"{schema}.t"
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY DEFERRABLE, note text) PARTITION BY RANGE (id)")
    for n in range(2):
        sql(f"CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES FROM ({n * 100}) TO ({n * 100 + 100})")
    watch(session, table, queue)
    sql(f"INSERT INTO {table} VALUES (1), (2), (101)")
    assert events(sql, queue) == [("I", (1,)), ("I", (2,)), ("I", (101,))]
    sql(f"UPDATE {table} SET id = (id + 100) % 200")
    assert sorted(events(sql, queue)) == [("U", (1,), (101,)), ("U", (101,), (1,)), ("U", (102,), (2,))]
    sql(f"UPDATE {table}_1 SET note = 'direct'")
    assert events(sql, queue) == []
    watch(session, f"{table}_1", queue)
    sql(f"UPDATE {table}_1 SET note = 'direct'")
    assert sorted(events(sql, queue)) == [("U", (101,)), ("U", (102,))]
    sql(f"UPDATE {table} SET note = 'once'")
    assert len(events(sql, queue)) == 3
    # A trigger of the table's own swallows rows on their way: fewer new ones than old ones.
    sql(
        f"CREATE FUNCTION {schema}.swallow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN CASE WHEN NEW.id <> 1 THEN NEW END; END $$"
    )
    sql(f"CREATE TRIGGER s BEFORE INSERT ON {table}_0 FOR EACH ROW EXECUTE FUNCTION {schema}.swallow()")
    sql(f"UPDATE {table} SET id = id - 100 WHERE id > 100")
    assert events(sql, queue) == [("U", (2,))]


def test_columns_that_change_under_a_watched_table_stop_no_writer(
    sql: Sql, session: Session, schema: str, queue: str
) -> None:
    table = f"{schema}.t"
    sql(f"CREATE TABLE {table} (a integer, b integer, PRIMARY KEY (b, a))")
    watch(session, table, queue)
    for change, key in (
        ("SELECT 1", {"b": 1, "a": 2}),
        (f'ALTER TABLE {table} RENAME b TO "B\'b"', {"B'b": 1, "a": 2}),
        (f"ALTER TABLE {table} ALTER a TYPE text", {"B'b": 1, "a": "2"}),
        (f"ALTER TABLE {table} DROP a", {}),
    ):
        sql(change)
        sql(f"INSERT INTO {table} VALUES (2, 1)" if key else f"INSERT INTO {table} VALUES (1)")
        [row] = sql("SELECT body FROM mq.message WHERE type = %s", queue)
        assert json.loads(row["body"])["key"] == key
        events(sql, queue)
        sql(f"TRUNCATE {table}")


def test_more_than_a_thousand_rows_are_reported_in_the_order_of_the_statement(
    sql: Sql, session: Session, schema: str, queue: str
) -> None:
    """Also when they are reported in parts."""
    table, ids = f"{schema}.t", random.Random(1).sample(range(100_000), 25_000)
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
    watch(session, table, queue)
    sql(f"INSERT INTO {table} SELECT unnest(%s::integer[])", ids)
    assert events(sql, queue) == [("I", (id,)) for id in ids]


@pytest.mark.parametrize("count", [9_999, 10_000, 10_001])
@pytest.mark.level(3)
def test_old_keys_are_reported_for_as_many_rows_as_fit_into_one_part(
    sql: Sql, session: Session, schema: str, queue: str, count: int
) -> None:
    """One row more makes two parts; each row is reported once, in the order of the statement, to each queue."""
    table, types = f"{schema}.t", (queue, f"{queue}2")
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY DEFERRABLE)")
    watch(session, table, *types)
    sql(f"INSERT INTO {table} SELECT generate_series(1, {count})")
    for type in types:
        assert events(sql, type) == [("I", (id,)) for id in range(1, count + 1)]
    sql(f"UPDATE {table} SET id = id + 1")
    for type in types:
        found = events(sql, type)
        assert len(found) == count
        assert set(found) == {("U", (id + 1,), (id,)) for id in range(1, count + 1)}
    sql(f"DELETE FROM {table}")
    assert len(set(events(sql, queue))) == count == len(set(events(sql, types[1])))


KEYS = {
    "smallint": "7",
    "bigint": "-9223372036854775808",
    "numeric(8, 4)": "12.34",
    "real": "0.1",
    "boolean": "true",
    "char(5)": "'x'",
    "text": "E'it''s \"q\" \\\\ \\n 100%s'",
    "uuid": "'6f0c0f3e-7f2c-4f53-9d3a-0d5a3a0a0a0a'",
    "bytea": "convert_to(repeat('long', 40), 'UTF8')",
    "interval": "'1 day 02:03'",
    "timestamptz": "'2026-01-02 03:04:05.678+02'",
    "integer[]": "'{1,2}'",
    "jsonb": """'{"a": [1, null]}'""",
    "int4range": "'[1,3)'",
}


@pytest.mark.parametrize("value", ["given", "NULL"])
def test_a_key_is_the_json_that_the_server_itself_makes(
    sql: Sql, session: Session, schema: str, queue: str, value: str
) -> None:
    """With columns of any type, and with NULL if the primary key was dropped later."""
    table = f"{schema}.t"
    names = [f'"{n} 100%s ""x"" it\'s"' for n in range(len(KEYS))]
    columns = ", ".join(f"{name} {type}" for name, type in zip(names, KEYS, strict=True))
    sql(f"CREATE TABLE {table} ({columns}, CONSTRAINT key PRIMARY KEY ({', '.join(names)}))")
    watch(session, table, queue)
    values = ", ".join(KEYS.values())
    if value == "NULL":
        sql(f"ALTER TABLE {table} DROP CONSTRAINT key")
        for name in names:
            sql(f"ALTER TABLE {table} ALTER {name} DROP NOT NULL")
        values = ", ".join(["NULL"] * len(KEYS))
    sql(f"INSERT INTO {table} VALUES ({values})")
    [row] = sql("SELECT body FROM mq.message WHERE type = %s", queue)
    sql("SET timezone = 'UTC'")
    sql("SET extra_float_digits = 1")
    as_text = f"translate(encode({names[8]}, 'base64'), E'\\n', '')"
    picked = ", ".join(f"{as_text} AS {name}" if n == 8 else name for n, name in enumerate(names))
    [made] = sql(f"SELECT row_to_json(r)::text AS made FROM (SELECT {picked} FROM {table}) AS r")
    assert row["body"] == f'{{"table":"{table}","action":"I","key":{made["made"]}}}'
    sql("RESET timezone")
    sql("RESET extra_float_digits")
    events(sql, queue)


def test_watching_a_table_needs_the_right_to_create_triggers_on_it(
    sql: Sql, server: Server, database: Database, schema: str, queue: str
) -> None:
    """Nor gets the rights of the queue's owner. Objects that only the owner may drop are reported and do nothing."""
    table, name = f"{schema}.t", f"login_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
    with server.login(database.url, name, "mq_operator") as url:
        session = open_database(url).connect("test")
        for right in (f"GRANT USAGE ON SCHEMA {schema} TO {name}", f"GRANT TRIGGER ON {table} TO {name}"):
            with pytest.raises(Exception, match=f"unsuitable_table.*{right}"):
                session.call("watch_table", table)
            sql(right)
        sql(f"GRANT SELECT ON {table} TO {name}")
        watch(session, table, queue)
        told = session.call("unwatch_table", table)
        assert [row["statement"] for row in told] == [
            f"DROP TRIGGER mq_{action} ON {schema}.t" for action in ("delete", "insert", "update")
        ]
        session.close()
        sql(f"REVOKE ALL ON {table} FROM {name}")
        sql(f"REVOKE ALL ON SCHEMA {schema} FROM {name}")


def test_triggers_cannot_be_made_by_strangers(sql: Sql, server: Server, database: Database) -> None:
    """The trigger's function would send the keys of any table to any subscription of that name."""
    name = f"login_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url, server.client(url) as connection:
        connection.execute("CREATE TEMPORARY TABLE t (id integer PRIMARY KEY)")
        with pytest.raises(InsufficientPrivilege):
            connection.execute(
                "CREATE TRIGGER t AFTER INSERT ON t REFERENCING NEW TABLE AS new_rows"
                " FOR EACH STATEMENT EXECUTE FUNCTION mq_internal.report_changes('t')"
            )
        connection.execute("DROP TABLE t")  # the server would drop it a moment after the login's role


@pytest.fixture
def mallory(sql: Sql, server: Server, database: Database) -> Iterator[tuple[str, Any]]:
    """An operator, and a connection of it; it has a schema of its own with the same name."""
    name = f"mall_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, "mq_operator") as url, server.client(url) as connection:
        sql(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        yield name, connection
        sql(f"DROP OWNED BY {name} CASCADE")


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON {} {} FOR EACH STATEMENT EXECUTE FUNCTION mq_internal.report_changes('{}')"
NEW_ROWS = "REFERENCING NEW TABLE AS new_rows"


def test_a_trigger_reports_only_the_table_that_it_fires_on(
    sql: Sql, session: Session, schema: str, queue: str, mallory: tuple[str, Any]
) -> None:
    """Its argument does not matter. Any operator can create one on its own table."""
    table, (name, connection) = f"{schema}.t", mallory
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
    watch(session, table, queue)
    own = (f"{name}.t", f'{name}."{table}"')
    for n, other in enumerate(own):
        connection.execute(f"CREATE TABLE {other} (id integer PRIMARY KEY)")
        connection.execute(TRIGGER.format(other, NEW_ROWS, table))
        connection.execute(f"INSERT INTO {other} VALUES ({n})")
    # In the schema public this table would have the other's name in messages.
    sql(f'CREATE TABLE "{table}" (id integer PRIMARY KEY)')
    sql(TRIGGER.format(f'"{table}"', NEW_ROWS, table))
    sql(f'INSERT INTO "{table}" VALUES (7)')
    assert events(sql, queue) == []
    sql(f'DROP TABLE "{table}"')
    sql(f"INSERT INTO {table} VALUES (1)")
    assert events(sql, queue) == [("I", (1,))]


def test_a_renamed_table_reports_nothing_until_it_is_watched_again(
    sql: Sql, session: Session, schema: str, queue: str
) -> None:
    sql(f"CREATE TABLE {schema}.t (id integer PRIMARY KEY)")
    watch(session, f"{schema}.t", queue)
    sql(f"ALTER TABLE {schema}.t RENAME TO u; INSERT INTO {schema}.u VALUES (1)")
    assert events(sql, queue) == []
    watch(session, f"{schema}.u", queue)
    sql(f"INSERT INTO {schema}.u VALUES (2)")
    assert events(sql, queue) == [("I", (2,))]


def test_a_trigger_without_its_transition_tables_reads_no_temporary_view(
    sql: Sql, queue: str, mallory: tuple[str, Any]
) -> None:
    """Its functions would run with the rights of the queue's owner."""
    name, connection = mallory
    connection.execute(f"CREATE TABLE {name}.t (id integer PRIMARY KEY)")
    connection.execute("SELECT mq.watch_table(%s)", [f"{name}.t"])
    connection.execute("SELECT mq.subscribe(%s, 'IUD', %s)", [f"{name}.t", queue])
    connection.execute(f"CREATE SEQUENCE {name}.ran; GRANT ALL ON SCHEMA {name} TO PUBLIC")
    connection.execute(
        f"CREATE FUNCTION {name}.evil() RETURNS integer LANGUAGE plpgsql AS"
        f" $$ BEGIN IF current_user <> '{name}' THEN PERFORM nextval('{name}.ran'); END IF; RETURN 1; END $$"
    )
    connection.execute(f"GRANT ALL ON {name}.ran TO PUBLIC; GRANT EXECUTE ON FUNCTION {name}.evil() TO PUBLIC")
    for rows in ("new_rows", "old_rows"):
        connection.execute(f"CREATE TEMPORARY VIEW {rows} AS SELECT {name}.evil() AS id")
        connection.execute(f"GRANT SELECT ON {rows} TO PUBLIC")
    connection.execute(f"INSERT INTO {name}.t VALUES (1); UPDATE {name}.t SET id = 2; DELETE FROM {name}.t")
    assert len(events(sql, queue)) == 3
    for n, action in enumerate(("insert", "update", "delete")):
        connection.execute(f"DROP TRIGGER mq_{action} ON {name}.t")
        connection.execute(
            f"CREATE TRIGGER t{n} AFTER {action} ON {name}.t FOR EACH STATEMENT"
            f" EXECUTE FUNCTION mq_internal.report_changes('{name}.t')"
        )
    connection.execute(f"INSERT INTO {name}.t VALUES (1); UPDATE {name}.t SET id = 2; DELETE FROM {name}.t")
    assert sql(f"SELECT last_value FROM {name}.ran WHERE is_called") == []
    assert events(sql, queue) == []


def test_a_view_in_the_place_of_a_table_needs_the_rights_too(
    sql: Sql, session: Session, schema: str, queue: str, mallory: tuple[str, Any]
) -> None:
    """To clean up what belongs to a table that was dropped, the role is enough. A view keeps the name in use."""
    table, (name, connection) = f"{schema}.t", mallory
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY, sync bigint); CREATE INDEX ON {table} (sync)")
    watch(session, table, queue)
    session.call("create_feed", queue, table, "id", "sync")
    sql(f"ALTER TABLE {table} RENAME TO base; CREATE VIEW {table} AS SELECT * FROM {schema}.base")
    calls = {
        "unsubscribe": f"SELECT mq.unsubscribe('{table}', 'IUD')",
        "drop_feed": f"SELECT mq.drop_feed('{queue}')",
        "unwatch_table": f"SELECT * FROM mq.unwatch_table('{table}')",
    }
    for statement in (
        *calls.values(),
        f"SELECT mq_internal.drop_subscriptions('{table}', NULL, NULL, NULL, NULL)",
        f"SELECT mq_internal.delete_feed('{queue}', NULL)",
        f"SELECT mq_internal.drop_watched('{table}', NULL)",
    ):
        with pytest.raises(Exception, match="unsuitable_table"):
            connection.execute(statement)
    assert len(sql("SELECT 1 FROM mq.subscription WHERE label = %s", table)) == 3
    assert len(sql("SELECT 1 FROM mq.feed WHERE name = %s", queue)) == 1
    sql(f"GRANT USAGE ON SCHEMA {schema} TO {name}; GRANT SELECT, UPDATE, TRIGGER ON {table} TO {name}")
    for statement in calls.values():
        connection.execute(statement)
    for place in ("subscription", "watched"):
        assert sql(f"SELECT 1 FROM mq.{place} WHERE label = %s", table) == []
    assert sql("SELECT 1 FROM mq.feed WHERE name = %s", queue) == []


def test_a_replica_and_a_disabled_trigger_report_nothing(sql: Sql, session: Session, schema: str, queue: str) -> None:
    table = f"{schema}.t"
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
    watch(session, table, queue)
    sql("SET session_replication_role = replica")
    sql(f"INSERT INTO {table} VALUES (1)")
    sql("RESET session_replication_role")
    sql(f"ALTER TABLE {table} DISABLE TRIGGER mq_insert")
    sql(f"INSERT INTO {table} VALUES (2)")
    assert events(sql, queue) == []
    watch(session, table)
    sql(f"INSERT INTO {table} VALUES (3)")
    assert events(sql, queue) == [("I", (3,))]


def test_a_restored_dump_is_watched_as_before(server: Server, installed_database: Database, queue: str) -> None:
    """The restore itself reports nothing."""
    session = installed_database.connect("test")
    server.query(installed_database.url, "CREATE TABLE stock (gone text, id integer PRIMARY KEY, at timestamptz)")
    server.query(installed_database.url, "ALTER TABLE stock DROP gone")
    server.query(installed_database.url, "INSERT INTO stock VALUES (1)")
    watch(session, "stock", queue)
    session.close()
    dump = [str(programs(18) / "pg_dump"), f"--dbname={installed_database.url}"]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    url = server.create_database()
    load = [str(programs(18) / "psql"), "--no-psqlrc", "--quiet", f"--dbname={url}"]
    subprocess.run(load, input=text, check=True, capture_output=True, text=True)
    assert server.query(url, "SELECT count(*) AS n FROM mq.message") == [{"n": 0}]
    server.query(url, "UPDATE stock SET id = 2")
    [row] = server.query(url, "SELECT body FROM mq.message")
    assert row["body"] == '{"table":"stock","action":"U","key":{"id":2},"old_key":{"id":1}}'
    server.drop_database(url)


@pytest.mark.level(3)
def test_a_change_can_be_prepared_for_two_phase_commit_if_its_queue_does_not_notify(
    sql: Sql, session: Session, schema: str, queue: str
) -> None:
    """While a consumer waits. PREPARE TRANSACTION fails after a NOTIFY."""
    table = f"{schema}.t"
    sql(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
    watch(session, table, queue)
    call(session, "set_queue", queue, notify=0)
    sql("INSERT INTO mq.waiter VALUES (%s, clock_timestamp() + interval '1 hour')", queue)
    for n, change in enumerate(("INSERT INTO {} VALUES (1)", "UPDATE {} SET id = 2", "DELETE FROM {}")):
        with pytest.raises(DatabaseError, match="ended it"), session.transaction() as connection:
            connection.execute(change.format(table))
            connection.execute(f"PREPARE TRANSACTION '{schema}'")
        assert sql("SELECT count(*) AS n FROM mq.message WHERE type = %s", queue) == [{"n": n}]
        sql(f"COMMIT PREPARED '{schema}'")
    assert events(sql, queue) == [("I", (1,)), ("U", (2,), (1,)), ("D", (2,))]


def test_keys_do_not_follow_the_writers_settings(sql: Sql, session: Session, schema: str, queue: str) -> None:
    table = f"{schema}.t"
    sql(f"CREATE TABLE {table} (at timestamptz, f float8, PRIMARY KEY (at, f))")
    watch(session, table, queue)
    for setting in ("timezone = 'Asia/Tokyo'", "datestyle = 'German'", "extra_float_digits = -15"):
        sql(f"SET {setting}")
    sql(f"INSERT INTO {table} VALUES ('2026-11-22 12:00:00+00', 0.1::float8 + 0.2)")
    assert events(sql, queue) == [("I", ("2026-11-22T12:00:00+00:00", 0.30000000000000004))]
    assert sql("SHOW timezone")[0]["TimeZone"] == "Asia/Tokyo"


def test_a_write_without_subscription_reads_one_index_entry(sql: Sql, session: Session, schema: str) -> None:
    """For any number of subscriptions of other tables."""
    table, other = f"{schema}.t", f"{schema}.u"
    for name in (table, other):
        sql(f"CREATE TABLE {name} (id integer PRIMARY KEY)")
        watch(session, name)
    sql("INSERT INTO mq.subscription SELECT %s, 'I', 'many.' || n, '' FROM generate_series(1, 5000) AS n", other)
    sql("ANALYZE mq.subscription")
    [row] = sql(f"EXPLAIN (FORMAT JSON) SELECT FROM mq.subscription WHERE label = '{table}' AND action = 'I'")
    assert "Seq Scan" not in json.dumps(row)
    with session.transaction() as connection:
        cursor = connection.cursor()
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        cursor.execute(
            "SELECT seq_scan, idx_scan, idx_tup_fetch FROM pg_stat_xact_user_tables"
            " WHERE relid = 'mq.subscription'::regclass"
        )
        found = cursor.fetchone()
        assert tuple(found.values() if isinstance(found, dict) else found) == (0, 1, 0)
    session.call("unwatch_table", other)
