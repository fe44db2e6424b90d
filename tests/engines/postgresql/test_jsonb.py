"""send, send_message and publish take jsonb too, and what has no type stays a text: with every driver."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb
from rowqueue.databases import Database
from rowqueue.install import contract

pytestmark = pytest.mark.product("postgresql")

# As jsonb it would lose the blanks, the order and the first "b".
TEXT = '{"b": 1,  "a":2, "b":3}'
JSONB = '{"a": 2, "b": 3}'
TAKES = [name for name, entry in contract.load().procedures.items() if any(a.jsonb for a in entry.arguments)]

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def bodies(sql: Sql) -> Iterator[Callable[[], list[str]]]:
    """The bodies that were sent since the last call."""
    sql("SELECT mq.bind_topic('jsonb.*', 'jsonb')")

    def sent() -> list[str]:
        found = [row["body"] for row in sql("SELECT body FROM mq.message WHERE type = 'jsonb' ORDER BY id")]
        sql("SELECT id FROM mq.take_batch('jsonb', 1000)")
        return found

    yield sent
    sql("SELECT mq.unbind_topic('jsonb.*', 'jsonb')")


def test_three_procedures_take_jsonb() -> None:
    assert TAKES == ["send", "send_message", "publish"]


@pytest.mark.parametrize("name", TAKES)
def test_jsonb_and_texts_in_sql(sql: Sql, bodies: Callable[[], list[str]], name: str) -> None:
    first = "p_topic => 'jsonb.x'" if name == "publish" else "p_type => 'jsonb'"
    where = first.partition(" => ")[2]
    calls = {
        f"SELECT mq.{name}({where}, '{TEXT}')": TEXT,
        f"SELECT mq.{name}({where}, '{TEXT}'::jsonb)": JSONB,
        f"SELECT mq.{name}({where}, jsonb_build_object('a', 2, 'b', 3))": JSONB,
        f"SELECT mq.{name}({where}, to_jsonb(5))": "5",
        f"SELECT mq.{name}({first}, p_body => '{TEXT}')": TEXT,
        f"SELECT mq.{name}({first}, p_body => '{TEXT}'::jsonb)": JSONB,
        f"SELECT mq.{name}(p_body => '{TEXT}', {first})": TEXT,
        f"SELECT mq.{name}({where}, '{TEXT}'::varchar)": TEXT,
        f"SELECT mq.{name}({where}, '{TEXT}'::char(30))": TEXT,
        f"SELECT mq.{name}({where}, '{TEXT}' || '')": TEXT,
        f"SELECT mq.{name}({where}, concat('{TEXT}'))": TEXT,
        f"SELECT mq.{name}({where}, '{TEXT}'::json::text)": TEXT,
        f"SELECT mq.{name}({where}, body) FROM (VALUES ('{TEXT}')) AS v (body)": TEXT,
        f"SELECT mq.{name}({where}, (SELECT '{TEXT}'))": TEXT,
        f"SELECT mq.{name}({where}, coalesce(NULL, '{TEXT}'))": TEXT,
    }
    for call, body in calls.items():
        sql(call)
        assert bodies() == [body], call


@pytest.mark.parametrize("name", TAKES)
def test_a_prepared_statement_without_types_takes_a_text(sql: Sql, bodies: Callable[[], list[str]], name: str) -> None:
    sql(f"PREPARE untyped AS SELECT mq.{name}($1, $2)")
    [row] = sql("SELECT parameter_types::text AS types FROM pg_prepared_statements WHERE name = 'untyped'")
    assert row["types"] == "{text,text}"
    sql(f"EXECUTE untyped ('{'jsonb.x' if name == 'publish' else 'jsonb'}', '{TEXT}')")
    assert bodies() == [TEXT]
    sql("DEALLOCATE untyped")


def test_send_message_with_untyped_options(sql: Sql, bodies: Callable[[], list[str]]) -> None:
    sql(f"SELECT * FROM mq.send_message('jsonb', '{TEXT}', NULL, NULL, 'g', NULL, 3, NULL, 'me', NULL, 'keep')")
    sql("SELECT * FROM mq.send_message('jsonb', '{}'::jsonb, NULL, NULL, 'g', NULL, 3, NULL, 'me', NULL, 'keep')")
    sql("SELECT * FROM mq.send_message('jsonb', '{}'::jsonb, p_priority => 2, p_max_attempts => 3)")
    rows = sql("SELECT max_attempts, group_key, source FROM mq.message WHERE type = 'jsonb' ORDER BY id")
    assert [tuple(row.values())[:2] for row in rows] == [(3, "g"), (3, "g"), (3, None)]
    assert bodies() == [TEXT, "{}", "{}"]


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("null", ["NULL", "NULL::jsonb", "NULL::text"])
def test_null_is_no_body(sql: Sql, name: str, null: str) -> None:
    where = "'jsonb.x'" if name == "publish" else "'jsonb'"
    with pytest.raises(psycopg.Error, match="invalid_argument: body: must be a text of up to 16 MiB"):
        sql(f"SELECT mq.{name}({where}, {null})")


@pytest.mark.parametrize("name", TAKES)
def test_json_is_cast_by_the_caller(sql: Sql, name: str) -> None:
    """The server converts json to neither text nor jsonb by itself."""
    with pytest.raises(psycopg.errors.UndefinedFunction):
        sql(f"SELECT mq.{name}('jsonb.x', json_build_object('a', 1))")


def test_variables_of_plpgsql(sql: Sql, bodies: Callable[[], list[str]]) -> None:
    kinds = {"text": TEXT, "varchar": TEXT, "varchar(50)": TEXT, "jsonb": JSONB}
    for kind, body in kinds.items():
        sql(f"DO $$ DECLARE v {kind} := '{TEXT}'; BEGIN PERFORM mq.send('jsonb', v); END $$")
        assert bodies() == [body], kind
    sql(f"DO $$ BEGIN EXECUTE 'SELECT mq.send($1, $2)' USING 'jsonb', '{TEXT}'; END $$")
    sql(f"DO $$ DECLARE r record; BEGIN SELECT '{TEXT}' AS body INTO r; PERFORM mq.send('jsonb', r.body); END $$")
    assert bodies() == [TEXT, TEXT]


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
@pytest.mark.parametrize("prepare", [None, True])
def test_psycopg(database: Database, bodies: Callable[[], list[str]], cursor: Any, prepare: bool | None) -> None:
    place = "$1" if cursor is psycopg.RawCursor else "%s"
    with psycopg.connect(database.url, autocommit=True, cursor_factory=cursor) as connection:
        for format in ("", *([] if cursor is psycopg.RawCursor else ["t", "b"])):
            call = f"SELECT mq.send('jsonb', {place.replace('s', format or 's')})"
            connection.execute(call, [TEXT], prepare=prepare)
            assert bodies() == [TEXT]
            connection.execute(call, [Jsonb({"b": 3, "a": 2})], prepare=prepare)
            assert bodies() == [JSONB]
            with pytest.raises(psycopg.errors.UndefinedFunction):
                connection.execute(call, [Json({"a": 1})], prepare=prepare)


def test_psycopg2(database: Database, bodies: Callable[[], list[str]]) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    from psycopg2.extras import Json

    connection = psycopg2.connect(database.url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT mq.send(%s, %s)", ["jsonb", TEXT])
            cursor.execute("SELECT mq.send('jsonb', %s)", [Json({"b": 3})])
    finally:
        connection.close()
    assert bodies() == [TEXT, '{"b": 3}']


def test_asyncpg(database: Database, bodies: Callable[[], list[str]]) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def send() -> None:
        connection = await asyncpg.connect(database.url)
        await connection.fetchval("SELECT mq.send($1, $2)", "jsonb", TEXT)
        await connection.fetchval("SELECT mq.send($1, $2::jsonb)", "jsonb", TEXT)
        await connection.fetchrow("SELECT * FROM mq.send_message($1, $2, p_priority => $3)", "jsonb", TEXT, 5)
        await connection.close()

    asyncio.run(send())
    assert bodies() == [TEXT, JSONB, TEXT]


def test_pg8000(database: Database, bodies: Callable[[], list[str]]) -> None:
    native = pytest.importorskip("pg8000.native")
    at = urlsplit(database.url)
    connection = native.Connection(
        at.username, host=at.hostname, port=at.port, database=at.path[1:], password=at.password
    )
    try:
        connection.run("SELECT mq.send(:type, :body)", type="jsonb", body=TEXT)
        connection.run("SELECT mq.send(:type, CAST(:body AS jsonb))", type="jsonb", body=TEXT)
        prepared = connection.prepare("SELECT mq.send(:type, :body)")
        prepared.run(type="jsonb", body=TEXT)
    finally:
        connection.close()
    assert bodies() == [TEXT, JSONB, TEXT]


def test_the_runner_sends_texts(session: Any, bodies: Callable[[], list[str]]) -> None:
    session.call("send", "jsonb", TEXT)
    assert bodies() == [TEXT]


def test_the_roles_and_the_catalog_know_both(sql: Sql) -> None:
    rows = sql(
        "SELECT p.oid::regprocedure::text AS name, obj_description(p.oid, 'pg_proc') AS comment,"
        " has_function_privilege('mq_producer', p.oid, 'EXECUTE') AS sends,"
        " has_function_privilege('mq_consumer', p.oid, 'EXECUTE') AS others"
        " FROM pg_proc AS p WHERE p.pronamespace = 'mq'::regnamespace AND p.proname = ANY (%s)",
        TAKES,
    )
    assert len(rows) == 2 * len(TAKES)
    assert all(row["comment"].startswith("Send one message") and row["sends"] and not row["others"] for row in rows)


def test_a_changed_second_function_is_reported(sql: Sql) -> None:
    query = "SELECT changed FROM mq_internal.installed_files() WHERE name = 'send'"
    sql("BEGIN")
    assert sql(query)[0]["changed"] == 0
    sql("ALTER FUNCTION mq.send(text, jsonb) SET work_mem = '1MB'")
    assert sql(query)[0]["changed"] == 1
    sql("ROLLBACK")


def test_large_jsonb_is_refused_as_a_text_is(sql: Sql) -> None:
    with pytest.raises(psycopg.Error, match="body: must be a text of up to 16 MiB"):
        sql("SELECT mq.send('jsonb', to_jsonb(repeat('x', 16777215)))")
