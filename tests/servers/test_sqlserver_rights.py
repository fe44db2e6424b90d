"""SQL Server: procedures that reach tables which their callers may not touch give nothing else away."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pymssql
import pytest
from rowqueue import contract, install
from rowqueue.databases import Database, Forbidden, SchemaMissing, open_database

from .sqlserver import Client, ExternalSQLServer

pytestmark = pytest.mark.product("sqlserver")

CONTRACT = contract.load()
PUBLISHED = set(CONTRACT.procedures)
ROLES = {"mq_producer", "mq_consumer", "mq_operator"}

Sql = Callable[..., list[dict[str, Any]]]


def test_the_schema_holds_the_objects_of_the_contract_and_no_other_program(sql: Sql) -> None:
    rows = sql(
        "SELECT name FROM sys.objects WHERE schema_id = SCHEMA_ID(N'mq')"
        " AND type IN ('P', 'FN', 'IF', 'TF', 'V', 'TR', 'PC', 'SN')"
    )
    assert {row["name"] for row in rows} == set(CONTRACT.objects("sqlserver"))


# What reads or changes tables of the users, in statements that it composes: such a statement has no rights but those of
# who runs it.
AS_OWNER = {
    *("publish_feed", "fetch_feed", "feed_stats", "highest_number"),
    *("claim_rows", "finish_rows", "release_rows", "retry_rows", "release_table", "owner_lacks"),
}


def test_all_objects_have_one_owner_and_few_run_as_anybody_but_their_caller(sql: Sql) -> None:
    """The tables are reached through that owner, and through nothing else."""
    rows = sql("SELECT name FROM sys.objects WHERE schema_id = SCHEMA_ID(N'mq') AND principal_id IS NOT NULL")
    assert rows == []
    rows = sql(
        "SELECT o.name, m.execute_as_principal_id AS who FROM sys.sql_modules AS m"
        " INNER JOIN sys.objects AS o ON o.object_id = m.object_id"
        " WHERE o.schema_id = SCHEMA_ID(N'mq') AND m.execute_as_principal_id IS NOT NULL"
    )
    assert {(row["name"], row["who"]) for row in rows} == {(name, -2) for name in AS_OWNER}  # -2: the owner


def test_each_procedure_is_granted_to_the_roles_of_the_contract_and_nothing_else_to_anybody(sql: Sql) -> None:
    rows = sql(
        "SELECT o.name, USER_NAME(p.grantee_principal_id) AS who, p.permission_name AS [right], p.state_desc AS state"
        " FROM sys.database_permissions AS p INNER JOIN sys.objects AS o ON o.object_id = p.major_id"
        " WHERE p.class = 1 AND o.schema_id = SCHEMA_ID(N'mq')"
    )
    assert {(row["right"], row["state"]) for row in rows} == {("EXECUTE", "GRANT")}
    wanted = {(name, role) for name, procedure in CONTRACT.procedures.items() for role in procedure.roles}
    assert {(row["name"], row["who"]) for row in rows} == wanted


def test_of_the_schema_the_roles_may_read_the_texts_alone(sql: Sql) -> None:
    rows = sql(
        "SELECT USER_NAME(grantee_principal_id) AS who, permission_name AS [right] FROM sys.database_permissions"
        " WHERE class = 3 AND major_id = SCHEMA_ID(N'mq')"
    )
    assert {(row["who"], row["right"]) for row in rows} == {(role, "VIEW DEFINITION") for role in ROLES}


def test_a_role_has_no_other_right_and_belongs_to_no_other_role(sql: Sql) -> None:
    rows = sql(
        "SELECT m.name FROM sys.database_role_members AS x"
        " INNER JOIN sys.database_principals AS m ON m.principal_id = x.member_principal_id"
        " WHERE m.name IN (N'mq_producer', N'mq_consumer', N'mq_operator')"
    )
    assert rows == []
    rows = sql(
        "SELECT class_desc, permission_name FROM sys.database_permissions WHERE class NOT IN (1, 3, 6)"
        " AND USER_NAME(grantee_principal_id) IN (N'mq_producer', N'mq_consumer', N'mq_operator')"
    )
    assert rows == []


@pytest.fixture
def attacker(server: ExternalSQLServer, database: Database, sql: Sql) -> Iterator[tuple[Client, str]]:
    """A user with all three roles and a schema of his own, which is his default one; and its name."""
    name = f"attacker_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, *sorted(ROLES)) as url:
        sql(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        sql(f"ALTER USER {name} WITH DEFAULT_SCHEMA = {name}")
        with server.client(url) as connection:
            yield connection, name
        for row in sql(
            "SELECT o.name, CASE o.type WHEN 'U' THEN 'TABLE' ELSE 'PROCEDURE' END AS kind"
            " FROM sys.objects AS o WHERE o.schema_id = SCHEMA_ID(%s) AND o.parent_object_id = 0",
            name,
        ):
            sql(f"DROP {row['kind']} {name}.{row['name']}")
        sql(f"DROP SCHEMA {name}")


def calls(type: str) -> list[str]:
    """Calls of a whole day of a producer, a consumer and an operator."""
    return [
        f"EXEC mq.send N'{type}', N'b'",
        f"EXEC mq.send_message N'{type}', N'b', NULL, 1, N'g', N'd', 2, N'{{}}', N's'",
        f"EXEC mq.send_batch N'{type}', N'a\nb\nc'",
        f"EXEC mq.claim_batch N'{type}', 1, N'r', 60",
        f"EXEC mq.get_message N'{type}'",
        f"EXEC mq.take_batch N'{type}', 1",
        f"EXEC mq.wait_for_message N'{type}', 0",
        f"EXEC mq.rescue_expired N'{type}'",
        "EXEC mq.queue_stats",
        f"EXEC mq.peek N'{type}', N'N', 10",
        f"EXEC mq.set_queue N'{type}', @lease_seconds = 1, @on_complete = N'archive'",
        f"EXEC mq.pause N'{type}'",
        f"EXEC mq.resume N'{type}'",
        f"EXEC mq.redrive N'{type}'",
        "EXEC mq.purge_archive '2001-01-01', 10",
        "EXEC mq.queue_health",
        "EXEC mq.installed_files",
    ]


def test_objects_of_the_same_name_in_the_callers_schema_are_not_used(attacker: tuple[Client, str], sql: Sql) -> None:
    connection, own = attacker
    sql(f"GRANT CREATE TABLE, CREATE PROCEDURE TO {own}")
    connection.execute(f"CREATE TABLE {own}.trace (who nvarchar(128))")
    internal = sql(
        "SELECT name, RTRIM(type) AS type FROM sys.objects WHERE schema_id = SCHEMA_ID(N'mq') AND type IN ('P', 'U')"
    )
    for row in internal:
        if row["type"] == "P" and row["name"] not in PUBLISHED:
            connection.execute(f"CREATE PROCEDURE {own}.{row['name']} AS INSERT INTO {own}.trace VALUES (USER_NAME())")
        elif row["type"] == "U":
            connection.execute(f"CREATE TABLE {own}.{row['name']} (id int)")
    kind = f"trap.{uuid.uuid4().hex[:12]}"
    for statement in calls(kind):
        connection.execute(statement)
    assert connection.execute(f"SELECT COUNT(*) AS n FROM {own}.trace").fetchone() == {"n": 0}
    rows = sql("SELECT state FROM mq.message_state WHERE type = %s", kind)
    assert sorted(row["state"] for row in rows) == ["A", "A", "N", "N"]


def test_temporary_tables_of_the_caller_are_not_used(attacker: tuple[Client, str], sql: Sql) -> None:
    connection, _ = attacker
    for table in ("queue", "message", "ready", "found", "done", "items"):
        connection.execute(f"CREATE TABLE #{table} (id int)")
    kind = f"temp.{uuid.uuid4().hex[:12]}"
    connection.execute("EXEC mq.send %s, N'b'", [kind])
    assert sql("SELECT state FROM mq.message_state WHERE type = %s", kind) == [{"state": "N"}]


SETTINGS = [
    "DATEFORMAT dmy",
    "DATEFIRST 3",
    "ROWCOUNT 1",
    "ANSI_NULLS OFF",
    "ANSI_WARNINGS OFF",
    "QUOTED_IDENTIFIER OFF",
    "ARITHABORT OFF",
    "CONCAT_NULL_YIELDS_NULL OFF",
    "NOCOUNT OFF",
    "XACT_ABORT OFF",
    "TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
]


def day(server: ExternalSQLServer, database: Database, sql: Sql, setting: str) -> None:
    """The calls of a whole day in a session with that setting, and what they have left."""
    kind = f"set.{uuid.uuid4().hex[:12]}"
    with server.client(database.url) as connection:
        connection.execute(f"SET {setting}")
        for statement in calls(kind):
            connection.execute(statement)
    rows = sql("SELECT state FROM mq.message_state WHERE type = %s", kind)
    assert sorted(row["state"] for row in rows) == ["A", "A", "N", "N"]
    [policy] = sql("SELECT lease_seconds, on_complete, paused FROM mq.queue WHERE type = %s", kind)
    assert (policy["lease_seconds"], policy["on_complete"], policy["paused"]) == (1, "archive", False)


@pytest.mark.parametrize("setting", SETTINGS)
def test_whatever_the_session_has_set_the_procedures_do_the_same(
    server: ExternalSQLServer, database: Database, sql: Sql, setting: str
) -> None:
    day(server, database, sql, setting)


@pytest.mark.parametrize("setting", ["LANGUAGE Japanese", "TRANSACTION ISOLATION LEVEL SERIALIZABLE"])
def test_the_language_and_the_level_of_the_session_change_nothing(
    server: ExternalSQLServer, database: Database, sql: Sql, setting: str
) -> None:
    day(server, database, sql, setting)


FORBIDDEN = [
    "SELECT * FROM mq.message",
    "SELECT * FROM mq.message_state",
    "SELECT * FROM mq.split_list(N'a')",
    "INSERT INTO mq.queue (type) VALUES (N'x')",
    "UPDATE mq.queue SET paused = 1",
    "DELETE FROM mq.ready",
    "TRUNCATE TABLE mq.ready",
    "DECLARE @n bigint; EXEC mq.erase_archived NULL, NULL, 1, @n OUTPUT",
    "EXEC mq.drop_batch '00000000-0000-4000-8000-000000000000'",
    "CREATE TABLE mq.mine (n int)",
    "CREATE PROCEDURE mq.mine AS SELECT 1",
    "DROP PROCEDURE mq.send",
    "ALTER TABLE mq.message ADD mine int",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_no_table_can_be_read_or_changed_and_nothing_internal_called(
    attacker: tuple[Client, str], statement: str
) -> None:
    with pytest.raises(pymssql.Error):
        attacker[0].execute(statement)


def test_arguments_are_values(attacker: tuple[Client, str], sql: Sql) -> None:
    kind = f"x'); DROP TABLE mq.ready; -- {uuid.uuid4().hex[:8]}"
    attacker[0].execute("EXEC mq.send %s, %s", [kind, "'; DROP TABLE mq.message; --"])
    assert [row["body"] for row in sql("SELECT body FROM mq.message_state WHERE type = %s", kind)] == [
        "'; DROP TABLE mq.message; --"
    ]
    attacker[0].execute("EXEC mq.purge %s, N'N'", [kind])
    assert sql("SELECT id FROM mq.message WHERE type = %s", kind) == []


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_may_call_what_the_contract_gives_it_and_nothing_else(
    server: ExternalSQLServer, database: Database, role: str
) -> None:
    """Who may call one is told what must not be NULL, or gets its rows."""
    name = f"one_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, role) as url, server.client(url) as connection:
        for called, procedure in CONTRACT.procedures.items():
            text = ""
            try:
                missing = ["NULL" for argument in procedure.arguments if not argument.optional]
                connection.execute(f"EXEC mq.{called} {', '.join(missing)}")
            except pymssql.Error as error:
                text = str(error).lower()
            assert ("permission" in text) == (role not in procedure.roles), (called, text)


def test_a_consumer_of_a_feed_needs_no_right_on_its_table_and_gains_none(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    name = f"reader_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, v int, sync bigint)")
    sql(f"CREATE INDEX {name}_sync ON dbo.{name} (sync)")
    sql(f"INSERT INTO dbo.{name} (id, v) VALUES (1, 2)")
    sql(f"EXEC mq.create_feed N'{name}', N'{name}', N'id', N'sync'")
    with server.login(database.url, name, "mq_consumer") as url, server.client(url) as connection:
        assert connection.execute(f"EXEC mq.publish_feed N'{name}'").fetchone() == {"count": 1}
        row = connection.execute(f"EXEC mq.fetch_feed N'{name}', N'c'").fetchone()
        assert row == {"position": 1, "key": '{"id":1}', "row": '{"id":1,"v":2,"sync":1}'}
        stats = connection.execute(f"EXEC mq.feed_stats N'{name}'").fetchone()
        assert stats is not None and stats["unpublished"] == 0
        for statement in (
            f"SELECT * FROM dbo.{name}",
            f"UPDATE dbo.{name} SET v = 3",
            f"DECLARE @n bigint, @g nvarchar(1000), @o int = OBJECT_ID(N'dbo.{name}');"
            " EXEC mq.highest_number @o, N'[sync]', 1, @n OUTPUT, @g OUTPUT",
        ):
            with pytest.raises(pymssql.Error, match="permission"):
                connection.execute(statement)
    sql(f"EXEC mq.drop_feed N'{name}'")


@pytest.mark.parametrize(("granted", "told"), [("", "not_found"), ("SELECT", "unsuitable_table")])
def test_who_may_not_change_a_table_makes_no_feed_of_it(
    server: ExternalSQLServer, database: Database, sql: Sql, granted: str, told: str
) -> None:
    name = f"maker_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, sync bigint)")
    sql(f"CREATE INDEX {name}_sync ON dbo.{name} (sync)")
    create = f"EXEC mq.create_feed N'{name}', N'{name}', N'id', N'sync'"
    with server.login(database.url, name, "mq_operator") as url, server.client(url) as connection:
        if granted:
            sql(f"GRANT {granted} ON dbo.{name} TO {name}")
        with pytest.raises(pymssql.Error, match=told):
            connection.execute(create)
        sql(f"GRANT SELECT, UPDATE ON dbo.{name} TO {name}")
        assert connection.execute(create).fetchone() == {"created": 1}
    sql(f"EXEC mq.drop_feed N'{name}'")


def test_a_user_without_a_role_may_call_nothing(server: ExternalSQLServer, database: Database) -> None:
    name = f"nobody_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url:
        with server.client(url) as connection:
            for statement in calls("x"):
                with pytest.raises(pymssql.Error):
                    connection.execute(statement)
        session = open_database(url).connect("nobody")
        try:
            with pytest.raises((Forbidden, SchemaMissing)):
                session.call("send", "x", "b")
        finally:
            session.close()


def test_the_installation_can_be_done_by_the_owner_of_a_database_who_is_no_administrator(
    server: ExternalSQLServer, empty_database: Database
) -> None:
    name = f"owner_{uuid.uuid4().hex[:12]}"
    with server.login(empty_database.url, name, "db_owner") as url:
        database = open_database(url)
        install.apply(database)
        session = database.connect("owner")
        try:
            assert session.call("send", "x", "b")[0]["id"]
            assert [row["body"] for row in session.call("claim_batch", "x", 10)] == ["b"]
        finally:
            session.close()
        database.uninstall()  # what he owns stands in the way of his own end
