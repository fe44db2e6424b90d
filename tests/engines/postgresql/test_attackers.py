"""PostgreSQL: code that a table's owner defines never runs with the rights of the queue's owner.

Mallory has every role of the queue and her own schema. Her functions record the user that runs them.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import servers
from rowqueue.databases import Database
from support.outcomes import dead_letter, failure, joined

pytestmark = pytest.mark.product("postgresql")

Sql = Callable[..., list[dict[str, Any]]]
STATUS = (
    '{"key_columns": "id", "status_column": "status", "ready_value": "N", "active_value": "A", "done_value": "D",'
    ' "error_value": "E"}'
)


@dataclass
class Mallory:
    name: str
    connection: psycopg.Connection[Any]
    sql: Sql

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.replace("{m}", self.name).encode())
        return cursor.fetchall() if cursor.description else []

    def ran_as(self) -> set[str]:
        """The users that have run her functions since the last call."""
        rows = self.sql(f"DELETE FROM {self.name}.trace RETURNING who")
        return {row["who"] for row in rows}


@pytest.fixture
def mallory(server: servers.Server, database: Database, sql: Sql) -> Iterator[Mallory]:
    name = f"mallory_{uuid.uuid4().hex[:10]}"
    with server.login(database.url, name, "mq_producer", "mq_consumer", "mq_operator") as url:
        sql(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        sql(f"GRANT USAGE ON SCHEMA {name} TO PUBLIC")
        with psycopg.connect(url, autocommit=True) as connection:
            m = Mallory(name, connection, sql)
            m.run("CREATE TABLE {m}.trace (who name); GRANT INSERT ON {m}.trace TO PUBLIC")
            m.run(
                "CREATE FUNCTION {m}.evil() RETURNS void LANGUAGE plpgsql AS"
                " $$ BEGIN INSERT INTO {m}.trace VALUES (current_user); END $$"
            )
            m.run(
                "CREATE FUNCTION {m}.evil_text(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM {m}.evil(); RETURN $1; END $$"
            )
            m.run(
                "CREATE FUNCTION {m}.evil_check(text) RETURNS boolean LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM {m}.evil(); RETURN true; END $$"
            )
            m.run(
                "CREATE FUNCTION {m}.evil_trigger() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM {m}.evil(); RETURN NEW; END $$"
            )
            yield m
        for table in sql("SELECT name FROM mq.polled WHERE table_schema = %s", name):
            sql("SELECT mq.unadopt_table(%s)", table["name"])
        sql(f"DELETE FROM mq.feed WHERE table_schema = '{name}'")
        sql(f"DELETE FROM mq.watched WHERE label LIKE '{name}.%'")
        sql(f"DROP OWNED BY {name} CASCADE")


def test_checks_of_domains_triggers_and_expressions_run_as_the_caller(mallory: Mallory) -> None:
    m = mallory
    m.run("CREATE DOMAIN {m}.status AS text CHECK ({m}.evil_check(value))")
    m.run(
        "CREATE TABLE {m}.t (id int PRIMARY KEY, status {m}.status, v text CHECK ({m}.evil_check(v)),"
        " g text GENERATED ALWAYS AS ({m}.evil_text(v)) STORED)"
    )
    m.run("CREATE INDEX ON {m}.t (status, id); CREATE INDEX ON {m}.t ({m}.evil_text(v))")
    m.run("CREATE TRIGGER x BEFORE UPDATE ON {m}.t FOR EACH ROW EXECUTE FUNCTION {m}.evil_trigger()")
    m.run("INSERT INTO {m}.t (id, status, v) SELECT n, 'N', 'v' FROM generate_series(1, 4) AS n")
    m.ran_as()
    m.run(f"SELECT mq.adopt_table('{m.name}', '{m.name}.t', '{STATUS}')")
    rows = m.run(f"SELECT id, batch_key FROM mq.claim_rows('{m.name}', 3)")
    outcomes = joined(dead_letter(rows[0][0], "dead"), failure(rows[1][0], "again", 0))
    m.run(f"SELECT mq.finish_rows('{rows[0][1]}', '{outcomes}')")
    m.run(f"SELECT mq.redrive_rows('{m.name}')")
    rows = m.run(f"SELECT id, batch_key FROM mq.claim_rows('{m.name}', 3)")
    m.run(f"SELECT mq.release_rows('{rows[0][1]}')")
    m.run(f"SELECT * FROM mq.peek_rows('{m.name}')")
    m.run(f"SELECT mq.unadopt_table('{m.name}')")
    assert m.ran_as() == {m.name}


def test_casts_and_operators_of_key_types_are_not_called_by_anybody_else(mallory: Mallory, sql: Sql) -> None:
    m = mallory
    m.run("CREATE TYPE {m}.k AS ENUM ('a', 'b', 'c')")
    m.run(
        "CREATE FUNCTION {m}.kj({m}.k) RETURNS json LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM {m}.evil(); RETURN '\"x\"'; END $$; CREATE CAST ({m}.k AS json) WITH FUNCTION {m}.kj({m}.k)"
    )
    m.run(
        "CREATE FUNCTION {m}.keq({m}.k, {m}.k) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM {m}.evil(); RETURN true; END $$;"
        " CREATE OPERATOR {m}.= (LEFTARG = {m}.k, RIGHTARG = {m}.k, FUNCTION = {m}.keq)"
    )
    m.run("CREATE DOMAIN {m}.kd AS {m}.k CHECK ({m}.evil_check(value::text))")
    m.run("CREATE TABLE {m}.t (k {m}.kd PRIMARY KEY, d date NOT NULL DEFAULT '2026-01-02', sync bigint)")
    m.run("CREATE INDEX ON {m}.t (sync)")
    m.run(f"SELECT mq.watch_table('{m.name}.t'); SELECT mq.subscribe('{m.name}.t', 'IUD', '{m.name}')")
    # Also on another user's table: the writer must not gain anything.
    sql(f"INSERT INTO {m.name}.t (k) VALUES ('a')")
    m.ran_as()
    m.run(
        "INSERT INTO {m}.t (k) VALUES ('b'); UPDATE {m}.t SET k = 'c' WHERE k::text = 'b';"
        " DELETE FROM {m}.t WHERE k::text = 'c'"
    )
    assert m.ran_as() <= {m.name}
    bodies = [row["body"] for row in sql("SELECT body FROM mq.message WHERE type = %s ORDER BY id", m.name)]
    assert [body.partition('"key":')[2] for body in bodies] == [
        '{"k":"a"}}',
        '{"k":"b"}}',
        '{"k":"c"},"old_key":{"k":"b"}}',
        '{"k":"c"}}',
    ]
    m.run(f"SELECT mq.create_feed('{m.name}', '{m.name}.t', 'k', 'sync')")
    m.run("INSERT INTO {m}.t (k) VALUES ('b')")
    assert m.run(f"SELECT mq.publish_feed('{m.name}')") == [(2,)]
    assert len(m.run(f"SELECT * FROM mq.fetch_feed('{m.name}', 'c')")) == 2
    m.run("SELECT * FROM mq.list_feeds()")
    assert m.ran_as() <= {m.name}


@pytest.fixture
def secret(sql: Sql, mallory: Mallory) -> Iterator[str]:
    """A polling table with a dead row, on which Mallory has no right."""
    name = f"s{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id int PRIMARY KEY, status text, v text, sync bigint)")
    sql(f"CREATE INDEX ON {name} (status, id)")
    sql(f"CREATE INDEX ON {name} (sync)")
    sql(f"INSERT INTO {name} SELECT n, 'N', 'v' FROM generate_series(1, 3) AS n")
    sql(f"SELECT mq.adopt_table('{name}', '{name}', '{STATUS}')")
    sql(f"SELECT mq.create_feed('{name}', '{name}', 'id', 'sync')")
    [row] = sql(f"SELECT id, batch_key FROM mq.claim_rows('{name}')")
    sql(f"SELECT mq.finish_rows('{row['batch_key']}', '{dead_letter(row['id'], 'hunter2')}')")
    yield name
    sql(f"SELECT mq.unadopt_table('{name}'), mq.drop_feed('{name}')")
    sql(f"DROP TABLE {name}")


def test_internal_procedures_refuse_callers_without_a_pass(mallory: Mallory, secret: str, sql: Sql) -> None:
    """Every SECURITY DEFINER function that Mallory may call, with another table's pass, a forged one and none."""
    own = f"{mallory.name}.own"
    mallory.run(f"CREATE TABLE {own} (id int PRIMARY KEY, status text, sync bigint)")
    passes = [
        "NULL",
        "''",
        "'x'",
        f"(SELECT pass FROM mq.my_pass WHERE id = '{own}'::regclass AND need = 'write' LIMIT 1)",
    ]
    steps = sql(
        "SELECT p.oid::regproc::text AS name, proargnames[:pronargs] AS names,"
        " ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t) AS types"
        " FROM pg_proc AS p WHERE pronamespace = 'mq_internal'::regnamespace AND 'p_pass' = ANY (proargnames)"
        " AND prosecdef"
    )
    assert len(steps) >= 12
    before = (
        sql("SELECT * FROM mq.polled ORDER BY name"),
        sql("SELECT * FROM mq.polled_row"),
        sql("SELECT * FROM mq.feed"),
    )
    for step in steps:
        for word in passes:
            values = []
            for name, kind in zip(step["names"], step["types"], strict=True):
                if name in {"p_name", "p_feed", "p_label"}:
                    values.append(f"'{secret}'")
                elif name == "p_new":
                    column = "status_column" if kind == "mq.polled" else "sync_column"
                    row = f'{{"name":"x","table_schema":"public","table_name":"{secret}","{column}":"sync"}}'
                    values.append(f"jsonb_populate_record(NULL::{kind}, '{row}')")
                else:
                    values.append(word if name == "p_pass" else "'public'" if name == "p_schema" else f"NULL::{kind}")
            with pytest.raises(psycopg.Error) as caught:
                mallory.run(f"SELECT * FROM {step['name']}({', '.join(values)})")
            assert caught.value.sqlstate == "50006", (step["name"], str(caught.value))
    after = (
        sql("SELECT * FROM mq.polled ORDER BY name"),
        sql("SELECT * FROM mq.polled_row"),
        sql("SELECT * FROM mq.feed"),
    )
    assert after == before
    assert mallory.run(f"SELECT * FROM mq.my_polled_row WHERE name = '{secret}'") == []
    assert mallory.run(f"SELECT * FROM mq.my_pass WHERE id = '{secret}'::regclass") == []
    assert (mallory.run(f"SELECT place, place_hash FROM mq_internal.polled_settings('{secret}', NULL)")) == [
        (None, None)
    ]


def test_code_under_another_login_does_not_act_as_that_user(mallory: Mallory, secret: str, sql: Sql) -> None:
    """ANALYZE by a superuser, a wrapper with its owner's rights, a view, a rule: each runs with its usual rights."""
    m = mallory
    m.run("CREATE TABLE {m}.seen (n bigint); CREATE TABLE {m}.t (v text)")
    look = f"(SELECT count(*) FROM mq.my_polled_row WHERE name = '{secret}')"
    look += f" + (SELECT count(*) FROM mq.my_pass WHERE id = 'public.{secret}'::regclass)"
    m.run(
        "CREATE FUNCTION {m}.note(bigint) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS"
        " $$ BEGIN INSERT INTO {m}.seen VALUES ($1); END $$"
    )
    m.run(
        "CREATE FUNCTION {m}.peep(text) RETURNS text IMMUTABLE LANGUAGE plpgsql SET search_path = pg_catalog AS"
        f" $$ BEGIN PERFORM {{m}}.note({look}); RETURN $1; END $$"
    )
    m.run("CREATE INDEX ON {m}.t ({m}.peep(v)); INSERT INTO {m}.t VALUES ('a'), ('b')")
    sql(f"ANALYZE {m.name}.t")
    sql(f"VACUUM {m.name}.t")
    sql(f"REINDEX TABLE {m.name}.t")
    m.run(
        "CREATE FUNCTION {m}.wrapper() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS"
        f" $$ BEGIN INSERT INTO {{m}}.seen VALUES ({look}); RETURN 1; END $$"
    )
    sql(f"SELECT {m.name}.wrapper()")
    seen = m.run("SELECT DISTINCT n FROM {m}.seen")
    assert seen == [(0,)]
    # Code that runs as the superuser sees what a superuser may see; the queue adds nothing.
    assert sql(f"SELECT {look} AS n")[0]["n"] > 0
    sql(f"SET ROLE {m.name}")
    assert sql(f"SELECT {look} AS n")[0]["n"] == 0
    sql("RESET ROLE")


def test_a_pass_is_good_for_one_session_and_transaction(
    server: servers.Server, database: Database, secret: str
) -> None:
    ask = f"SELECT pass FROM mq.my_pass WHERE id = '{secret}'::regclass AND need = 'write' AND written = 'status'"
    with psycopg.connect(database.url) as one, psycopg.connect(database.url) as two:
        [word] = one.execute(ask).fetchone() or [None]
        one.execute("SELECT mq_internal.lock_polled(%s, %s)", [secret, word])
        one.commit()
        for connection in (one, two):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("SELECT mq_internal.lock_polled(%s, %s)", [secret, word])
            assert caught.value.sqlstate == "50006"
            connection.rollback()


def test_a_table_that_replaces_an_adopted_one_inherits_nothing(mallory: Mallory, secret: str, sql: Sql) -> None:
    sql(f"ALTER TABLE {secret} RENAME TO {secret}_old")
    try:
        sql(f"CREATE TABLE {secret} (id int PRIMARY KEY, status text, v text)")
        sql(f"CREATE INDEX ON {secret} (status, id)")
        sql(f"ALTER TABLE {secret} OWNER TO {mallory.name}")
        for call in ("peek_rows('{}')", "claim_rows('{}')", "redrive_row('{}', 1)", "redrive_rows('{}')"):
            with pytest.raises(psycopg.Error, match="not the table that was adopted"):
                mallory.run(f"SELECT * FROM mq.{call.format(secret)}")
        assert mallory.run(f"SELECT * FROM mq.my_polled_row WHERE name = '{secret}'") == []
    finally:
        sql(f"DROP TABLE {secret}")
        sql(f"ALTER TABLE {secret}_old RENAME TO {secret}")


def test_row_security_holds(mallory: Mallory, secret: str, sql: Sql) -> None:
    m = mallory
    sql(f"UPDATE {secret} SET v = '{m.name}' WHERE id = 2")
    sql(f"ALTER TABLE {secret} ENABLE ROW LEVEL SECURITY")
    sql(f"CREATE POLICY p ON {secret} USING (v = current_user)")
    sql(f"GRANT SELECT, UPDATE ON {secret} TO {m.name}")
    for call in (
        "claim_rows('{}')",
        "peek_rows('{}')",
        "redrive_row('{}', 1)",
        "redrive_rows('{}')",
        "unadopt_table('{}')",
    ):
        with pytest.raises(psycopg.Error, match="row security"):
            m.run(f"SELECT * FROM mq.{call.format(secret)}")
    assert m.run(f"SELECT mq.publish_feed('{secret}')") == [(1,)]
    sql(f"SELECT mq.publish_feed('{secret}')")
    assert len(m.run(f"SELECT * FROM mq.fetch_feed('{secret}', 'c')")) == 1
    assert len(sql(f"SELECT * FROM mq.fetch_feed('{secret}', 'c')")) == 3
    with pytest.raises(psycopg.Error, match="row security"):
        m.run(f"SELECT mq.create_feed('{secret}2', '{secret}', 'id', 'sync')")
    sql(f"REVOKE ALL ON {secret} FROM {m.name}")


def test_no_stranger_stalls_a_group(server: servers.Server, database: Database, sql: Sql, queue: str) -> None:
    """Locks of claims are rows that only the queue can lock."""
    name = f"login_{uuid.uuid4().hex[:12]}"
    sql("SELECT mq.set_option(%s, 'ordered', '1')", queue)
    sql("SELECT mq.send_message(%s, 'b', p_group_key => 'vip')", queue)
    with server.login(database.url, name) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [f"{queue}\nvip"])
        assert len(sql("SELECT * FROM mq.claim_batch(%s)", queue)) == 1


@pytest.mark.parametrize("known", [False, True], ids=["first-time", "again"])
def test_no_stranger_keeps_consumers_from_being_woken(
    server: servers.Server, database: Database, sql: Sql, queue: str, known: bool
) -> None:
    """Waiting consumers are recorded despite another user's locks, and wake-ups use this record."""
    if known:
        sql("SELECT mq.wait_for_message(%s)", queue)
        sql("UPDATE mq.waiter SET wait_until = now() WHERE type = %s", queue)
    name = f"login_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url, psycopg.connect(url, autocommit=True) as stranger:
        stranger.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [f"waiter\n{queue}"])
        # A wait that an attacker ends checks again and continues to wait.
        stranger.execute(
            "SELECT pg_notify(%s, 'x')", [f"mq_{hashlib.md5(queue.encode(), usedforsecurity=False).hexdigest()}"]
        )
        assert sql("SELECT ready FROM mq.wait_for_message(%s, 0)", queue) == [{"ready": 0}]
        assert sql("SELECT 1 AS n FROM mq.waiter WHERE type = %s AND wait_until > now()", queue) == [{"n": 1}]
        assert sql("SELECT ready FROM mq.wait_for_message(%s, 1)", queue) == [{"ready": 0}]


def test_a_waiter_in_an_open_transaction_does_not_block_others(
    server: servers.Server, database: Database, sql: Sql, queue: str
) -> None:
    with server.client(database.url) as one, server.client(database.url) as other:
        other.execute("SET lock_timeout = '5s'")
        for n in range(2):
            with one.transaction():
                one.execute("SELECT mq.wait_for_message(%s)", [queue])
                assert other.execute("SELECT ready FROM mq.wait_for_message(%s)", [queue]).fetchall() == [{"ready": 0}]
            assert len(sql("SELECT 1 AS n FROM mq.waiter WHERE type = %s AND wait_until > now()", queue)) == 1, n
            sql("UPDATE mq.waiter SET wait_until = now() WHERE type = %s", queue)
