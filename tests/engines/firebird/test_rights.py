"""Firebird: users with a role may call its procedures and reach none of the objects used by them."""

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database
from rowqueue.install import contract
from servers import Server
from servers.firebird import Client, driver

pytestmark = pytest.mark.product("firebird")

CONTRACT = contract.load()
PUBLISHED = set(CONTRACT.procedures)
ROLES = ["mq_producer", "mq_consumer", "mq_operator", "mq_viewer"]
Sql = Callable[..., list[dict[str, Any]]]


def names(sql: Sql, kind: str, column: str, where: str = "1 = 1") -> list[str]:
    rows = sql(
        f"SELECT TRIM(rdb${column}) AS name FROM rdb${kind}"
        f" WHERE (rdb${column} STARTING WITH 'MQ_' OR rdb${column} STARTING WITH 'IMQ_') AND {where}"
    )
    return [row["name"] for row in rows]


@pytest.fixture(params=[*ROLES, None])
def role(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


@pytest.fixture
def user(role: str | None, server: Server, database: Database) -> Iterator[Client]:
    """A user with one role, or none."""
    name = f"login_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, *([role] if role else [])) as url, server.client(url) as client:
        yield client


def assert_denied(client: Client, statement: str) -> None:
    with pytest.raises(driver().DatabaseError) as caught:
        client.execute(statement)
    assert re.search(r"(?i)\bno (\w+ )?(permission|privilege)", str(caught.value)), (statement, str(caught.value))


def test_no_role_changes_a_table_or_reaches_a_sequence_or_an_exception(
    user: Client, role: str | None, sql: Sql
) -> None:
    readable = {f"MQ_{name.upper()}" for name in CONTRACT.reads.get(role or "", ())}
    tables = names(sql, "relations", "relation_name")
    assert "MQ_MESSAGE" in tables and "MQ_MESSAGE_STATE" in tables and "MQ_TAKEN" in tables
    for table in tables:
        [column, *_] = sql(
            f"SELECT TRIM(rdb$field_name) AS name FROM rdb$relation_fields WHERE rdb$relation_name = '{table}'"
        )
        name = f'"{column["name"]}"'  # some are SQL keywords
        is_view = table in {"MQ_MESSAGE_STATE", "MQ_MESSAGE_OVERVIEW"}
        if table not in readable:
            assert_denied(user, f"SELECT * FROM {table}")
        assert_denied(user, f"DROP {'VIEW' if is_view else 'TABLE'} {table}")
        if is_view:
            continue  # read-only for everyone
        assert_denied(user, f"DELETE FROM {table}")
        assert_denied(user, f"UPDATE {table} SET {name} = {name}")
        assert_denied(user, f"INSERT INTO {table} ({name}) VALUES (NULL)")
    for sequence in names(sql, "generators", "generator_name"):
        assert_denied(user, f"SELECT NEXT VALUE FOR {sequence} FROM rdb$database")
        assert_denied(user, f"ALTER SEQUENCE {sequence} RESTART WITH 1")
    exceptions = names(sql, "exceptions", "exception_name")
    assert "MQ_50002" in exceptions
    for exception in exceptions:
        assert_denied(user, f"EXECUTE BLOCK AS BEGIN EXCEPTION {exception} 'mine'; END")


def test_no_role_calls_or_changes_an_internal_procedure(user: Client, sql: Sql) -> None:
    procedures = names(sql, "procedures", "procedure_name")
    internal = [name for name in procedures if name.startswith("IMQ_")]
    assert len(procedures) - len(internal) == len(PUBLISHED) and "IMQ_COMPLETE_MESSAGES" in internal
    for name in internal:
        rows = sql(
            "SELECT COUNT(*) AS n FROM rdb$procedure_parameters"
            " WHERE rdb$procedure_name = %s AND rdb$parameter_type = 0",
            name,
        )
        arguments = ", ".join(["NULL"] * rows[0]["n"])
        if name == "IMQ_INSTALLED_FILES":  # for the runner; it changes nothing
            continue
        assert_denied(user, f"EXECUTE PROCEDURE {name}{f' ({arguments})' if arguments else ''}")
    for name in procedures:
        assert_denied(user, f"DROP PROCEDURE {name}")
        assert_denied(user, f"GRANT EXECUTE ON PROCEDURE {name} TO PUBLIC")


def test_a_users_own_procedure_can_do_no_more_than_the_user(user: Client) -> None:
    assert_denied(user, "EXECUTE BLOCK RETURNS (n BIGINT) AS BEGIN SELECT COUNT(*) FROM mq_feed INTO n; SUSPEND; END")
    assert_denied(user, "CREATE PROCEDURE mine AS BEGIN DELETE FROM mq_ready; END")
    assert_denied(user, "CREATE OR ALTER PROCEDURE mq_send AS BEGIN END")


def test_nothing_is_granted_to_everybody_and_roles_may_only_execute_and_read(sql: Sql) -> None:
    rows = sql(
        "SELECT TRIM(p.rdb$user) AS who, TRIM(p.rdb$relation_name) AS name, TRIM(p.rdb$privilege) AS may,"
        " p.rdb$object_type AS kind, p.rdb$user_type AS holder, COALESCE(p.rdb$grant_option, 0) AS passed_on"
        " FROM rdb$user_privileges AS p WHERE p.rdb$relation_name STARTING WITH 'MQ_'"
        " OR p.rdb$relation_name STARTING WITH 'IMQ_'"
    )
    assert [row for row in rows if row["who"] == "PUBLIC"] == []
    given = [row for row in rows if row["holder"] == 13]
    assert {row["may"] for row in given} == {"X", "S"} and {row["passed_on"] for row in given} == {0}
    expected_reads = {(role.upper(), f"MQ_{name.upper()}") for role, names in CONTRACT.reads.items() for name in names}
    assert {(row["who"], row["name"]) for row in given if row["may"] == "S"} == expected_reads
    expected = {(role.upper(), f"MQ_{name.upper()}") for name, one in CONTRACT.procedures.items() for role in one.roles}
    expected |= {(role.upper(), "MQ_UTC_NOW") for role in ROLES}
    # A statement on a user's table has its caller's rights, and calls these: they read and write nothing.
    texts = ("IMQ_ESCAPE_JSON", "IMQ_NUMBER_TEXT", "IMQ_BASE64", "IMQ_UTF8_BYTES")
    expected |= {(role, name) for role in ("MQ_CONSUMER", "MQ_OPERATOR") for name in texts}
    expected |= {(role, "IMQ_INSTALLED_FILES") for role in ("MQ_CONSUMER", "MQ_OPERATOR", "MQ_VIEWER")}  # the runner
    assert {(row["who"], row["name"]) for row in given if row["may"] == "X"} == expected


def test_two_roles_are_had_one_at_a_time_or_from_4_0_on_both_by_default(
    server: Server, database: Database, sql: Sql, queue: str
) -> None:
    name = f"login_{uuid.uuid4().hex[:12]}"
    send, stats = f"SELECT id FROM mq_send('{queue}', 'x')", f"SELECT * FROM mq_peek('{queue}', 'N', 1)"
    with server.login(database.url, name, "mq_producer", "mq_operator") as url:
        bare = url.partition("?")[0]
        for role, may, may_not in (("mq_producer", send, stats), ("mq_operator", stats, send)):
            with server.client(f"{bare}?role={role}") as client:
                client.execute(may)
                assert_denied(client, may_not)
        with server.client(bare) as client:
            assert_denied(client, send)
        if server.version.startswith("3."):  # type: ignore[attr-defined]
            return
        for role in ("mq_producer", "mq_operator"):
            sql(f"GRANT DEFAULT {role} TO USER {name}")
        with server.client(bare) as client:
            client.execute(send)
            client.execute(stats)
            assert_denied(client, "SELECT * FROM mq_feed")
