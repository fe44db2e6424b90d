"""SQL Server: procedures that use tables without the caller's rights give no other access."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pymssql
import pytest
from rowqueue.databases import Database, NotAllowed, SchemaMissing, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers.sqlserver import Client, ExternalSQLServer

pytestmark = pytest.mark.product("sqlserver")

ADOPTED = (
    '{"key_columns": "id", "status_column": "status", "ready_value": "N", "active_value": "A", "done_value": "D",'
    ' "error_value": "E"}'
)
LIMITED = '{"lease_seconds": 1, "on_complete": "archive"}'
CONTRACT = contract.load()
PUBLISHED = set(CONTRACT.procedures)
ROLES = {"mq_producer", "mq_consumer", "mq_operator", "mq_viewer"}

Sql = Callable[..., list[dict[str, Any]]]


def test_the_schema_holds_the_objects_of_the_contract_and_no_other_program(sql: Sql) -> None:
    rows = sql(
        "SELECT name FROM sys.objects WHERE schema_id = SCHEMA_ID(N'mq')"
        " AND type IN ('P', 'FN', 'IF', 'TF', 'V', 'TR', 'PC', 'SN')"
    )
    assert {row["name"] for row in rows} == set(CONTRACT.files("sqlserver"))


# It only reads the catalog, which shows security policies to few users.
AS_OWNER = {"table_facts"}


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
        " WHERE p.class = 1 AND o.schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))"
    )
    assert {row["state"] for row in rows} == {"GRANT"}
    wanted = {(name, role, "EXECUTE") for name, procedure in CONTRACT.procedures.items() for role in procedure.roles}
    wanted |= {(name, role, "SELECT") for role, names in CONTRACT.reads.items() for name in names}
    wanted |= {("installed_files", role, "EXECUTE") for role in ("mq_consumer", "mq_operator", "mq_viewer")}
    wanted |= {("send_changes", "mq_reporter", "EXECUTE"), ("subscription", "mq_reporter", "SELECT")}
    assert {(row["name"], row["who"], row["right"]) for row in rows} == wanted


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
        " WHERE m.name IN (N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer')"
    )
    assert rows == []
    rows = sql(
        "SELECT class_desc, permission_name FROM sys.database_permissions WHERE class NOT IN (1, 3, 6)"
        " AND USER_NAME(grantee_principal_id) IN (N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer')"
    )
    assert rows == []


@pytest.fixture
def attacker(server: ExternalSQLServer, database: Database, sql: Sql) -> Iterator[tuple[Client, str]]:
    """A user with all three roles and their own default schema; and its name."""
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
    """The usual calls of a producer, a consumer and an operator."""
    return [
        f"EXEC mq.send N'{type}', N'b'",
        f"EXEC mq.send_message N'{type}', N'b', NULL, 1, N'g', N'd', 2, N'{{}}', N's'",
        f"EXEC mq.send_batch N'{type}', N'a\nb\nc'",
        f"EXEC mq.claim_batch N'{type}', 1, N'r', 60",
        f"EXEC mq.get_message N'{type}'",
        f"EXEC mq.take_batch N'{type}', 1",
        f"EXEC mq.wait_for_message N'{type}', 0",
        f"EXEC mq.wait_for_any N'{type}', 0",
        f"EXEC mq.claim_any N'{type}.none'",
        "EXEC mq.update_message 0, N'{\"priority\": 1}'",
        "EXEC mq.release_consumer N'nobody'",
        f"EXEC mq.rescue_expired N'{type}'",
        "EXEC mq.queue_stats",
        f"EXEC mq.peek N'{type}', N'N', 10",
        f"EXEC mq.set_queue N'{type}', N'{LIMITED}'",
        f"EXEC mq.pause N'{type}'",
        f"EXEC mq.resume N'{type}'",
        f"EXEC mq.redrive_all N'{type}'",
        f"EXEC mq.purge N'{type}', N'C', '2001-01-01', 10",
        "EXEC mq.queue_health",
        "EXEC mq_internal.installed_files",
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


def test_temporary_tables_of_the_caller_get_nothing_and_give_nothing(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    """Procedures that read a user's table: the caller has created objects with some of their names."""
    name = f"own_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id bigint NOT NULL PRIMARY KEY, status char(1) NOT NULL)")
    sql(f"CREATE INDEX {name}_claim ON dbo.{name} (status, id)")
    sql(f"INSERT INTO dbo.{name} (id, status) VALUES (1, 'N'), (2, 'N')")
    sql(f"EXEC mq.adopt_table N'{name}', N'{name}', N'{ADOPTED}'")
    sql("EXEC mq.send N'temporary', N'b'")
    [message] = sql("SELECT MAX(id) AS id FROM mq.message")
    with server.client(database.url) as connection:
        for table in ("#mq_entry", "#mq_row", "#mq_got", "#mq_due", "#mq_orphan", "#mq_found"):
            connection.execute(f"CREATE TABLE {table} (id bigint, forged int)")
            connection.execute(f"INSERT INTO {table} VALUES ({message['id']}, 1)")
        try:
            rows = connection.execute(f"EXEC mq.claim_rows N'{name}', 2").fetchall()
        except pymssql.Error:
            rows = []
    assert {row["row_key"] for row in rows} <= {'{"id":1}', '{"id":2}'}
    assert [row["body"] for row in sql("SELECT body FROM mq.message WHERE id = %s", message["id"])] == ["b"]
    entries = sql("SELECT key_json, hit FROM mq.polled_row WHERE name = %s", name)
    assert len(entries) == len(rows)


def test_a_trigger_that_forges_returned_rows_reaches_no_other_table(sql: Sql) -> None:
    """It sees the temporary tables of the call in which it runs."""
    own, other = (f"{kind}_{uuid.uuid4().hex[:12]}" for kind in ("eve", "bob"))
    for name in (own, other):
        sql(f"CREATE TABLE dbo.{name} (id bigint NOT NULL PRIMARY KEY, status char(1) NOT NULL)")
        sql(f"CREATE INDEX {name}_claim ON dbo.{name} (status, id)")
        sql(f"INSERT INTO dbo.{name} (id, status) VALUES (1, 'N')")
        sql(f"EXEC mq.adopt_table N'{name}', N'{name}', N'{ADOPTED}'")
    [held] = sql(f"EXEC mq.claim_rows N'{other}', 1")
    sql(
        f"CREATE TRIGGER dbo.{own}_forge ON dbo.{own} AFTER UPDATE AS"
        " IF OBJECT_ID(N'tempdb..#mq_entry') IS NOT NULL"
        " EXEC (N'UPDATE #mq_entry SET hit = 1, refused = 1, error = N''forged'';"
        " INSERT INTO #mq_entry (id, active, todo, hit, refused, ident_hash, ident)"
        f" SELECT {held['id']}, 1, ''D'', 1, 1, 0x, SPACE(0)"
        f" WHERE NOT EXISTS (SELECT * FROM #mq_entry WHERE id = {held['id']})')"
    )
    sql(f"EXEC mq.claim_rows N'{own}', 1")
    before = {"state": "A", "hit": 0, "refused": False, "error": None}
    entry = "SELECT state, hit, refused, error FROM mq.polled_row WHERE id = %s"
    assert sql(entry, held["id"]) == [before]
    assert sql(f"EXEC mq.finish_rows '{held['batch_key']}'") == [{"done": 1, "failed": 0, "dead": 0, "gone": 0}]


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
    "NUMERIC_ROUNDABORT ON",
    "ANSI_PADDING OFF",
    "ANSI_NULL_DFLT_ON OFF",
    "TEXTSIZE 10",
]

# Each one with its defaults: NULL must stay NULL and not become an empty text.
DEFAULTS = [
    "EXEC mq.set_queue N'{}'",
    "EXEC mq.peek N'{}'",
    "EXEC mq.claim_batch N'{}'",
    "EXEC mq.take_batch N'{}'",
    "EXEC mq.purge N'{}', N'N'",
    "EXEC mq.list_feeds",
    "EXEC mq.list_subscriptions",
]


def day(server: ExternalSQLServer, database: Database, sql: Sql, setting: str) -> None:
    """The usual calls in a session with that setting, and their results."""
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
def test_the_procedures_do_the_same_under_any_session_setting(
    server: ExternalSQLServer, database: Database, sql: Sql, setting: str
) -> None:
    day(server, database, sql, setting)


@pytest.mark.parametrize("setting", ["LANGUAGE Japanese", "TRANSACTION ISOLATION LEVEL SERIALIZABLE"])
def test_the_language_and_the_level_of_the_session_change_nothing(
    server: ExternalSQLServer, database: Database, sql: Sql, setting: str
) -> None:
    day(server, database, sql, setting)


def test_null_stays_null_in_a_session_that_turns_it_into_an_empty_text(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    name = f"nulls_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, v varchar(9), status char(1), sync bigint)")
    sql(f"CREATE INDEX {name}_sync ON dbo.{name} (sync)")
    sql(f"CREATE INDEX {name}_claim ON dbo.{name} (status, id)")
    with server.client(database.url) as connection:
        connection.execute("SET CONCAT_NULL_YIELDS_NULL OFF")
        for statement in DEFAULTS:
            connection.execute(statement.format(name))
        connection.execute(f"EXEC mq.watch_table N'{name}'")
        connection.execute(f"EXEC mq.subscribe N'{name}', N'IUD', N'{name}'")
        connection.execute(f"INSERT INTO dbo.{name} (id, status) VALUES (1, 'N')")
        connection.execute(f"EXEC mq.create_feed N'{name}', N'{name}', N'id', N'sync'")
        connection.execute(f"EXEC mq.publish_feed N'{name}'")
        fetched = connection.execute(f"EXEC mq.fetch_feed N'{name}', N'c'").fetchone()
        connection.execute(f"EXEC mq.adopt_table N'{name}', N'{name}', N'{ADOPTED}'")
        claimed = connection.execute(f"EXEC mq.claim_rows N'{name}'").fetchone()
        connection.execute(f"EXEC mq.peek_rows N'{name}'")
    assert fetched is not None and fetched["row_data"] == '{"id":1,"v":null,"status":"N","sync":1}'
    assert claimed is not None and claimed["row_data"] == fetched["row_data"]
    bodies = [row["body"] for row in sql("SELECT body FROM mq.message WHERE type = %s ORDER BY id", name)]
    assert bodies[0] == f'{{"table":"{name}","action":"I","key":{{"id":1}}}}'
    sql(f"EXEC mq.unadopt_table N'{name}'")
    sql(f"EXEC mq.drop_feed N'{name}'")
    sql(f"EXEC mq.unwatch_table N'{name}'")


def test_with_implicit_transactions_a_call_commits_nothing_by_itself(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    """BEGIN TRANSACTION then makes @@TRANCOUNT 2; the session has to end the transaction."""
    kind = f"implicit.{uuid.uuid4().hex[:12]}"
    with server.client(database.url) as connection:
        connection.execute("SET IMPLICIT_TRANSACTIONS ON")
        connection.execute("EXEC mq.send %s, N'b'", [kind])
        connection.execute("ROLLBACK TRANSACTION")
        assert sql("SELECT id FROM mq.message WHERE type = %s", kind) == []
        connection.execute("EXEC mq.send %s, N'b'", [kind])
        connection.execute("WHILE @@TRANCOUNT > 0 COMMIT TRANSACTION")
    assert len(sql("SELECT id FROM mq.message WHERE type = %s", kind)) == 1


NOT_ALLOWED = [
    "SELECT * FROM mq.feed",
    "SELECT * FROM mq_internal.split_list(N'a')",
    "INSERT INTO mq.queue (type) VALUES (N'x')",
    "UPDATE mq.queue SET paused = 1",
    "DELETE FROM mq.ready",
    "TRUNCATE TABLE mq.ready",
    "DECLARE @n bigint; EXEC mq_internal.erase_archived NULL, NULL, 1, @n OUTPUT",
    "EXEC mq_internal.drop_batch '00000000-0000-4000-8000-000000000000'",
    "CREATE TABLE mq.mine (n int)",
    "CREATE PROCEDURE mq.mine AS SELECT 1",
    "DROP PROCEDURE mq.send",
    "ALTER TABLE mq.message ADD mine int",
]


@pytest.mark.parametrize("statement", NOT_ALLOWED)
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
    """A user who may call one gets invalid_argument for NULL, or its rows."""
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


def test_a_consumer_of_a_feed_needs_its_own_rights_and_loses_it_with_them(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    name = f"consumer_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, v int, sync bigint)")
    sql(f"CREATE INDEX {name}_sync ON dbo.{name} (sync)")
    sql(f"INSERT INTO dbo.{name} (id, v) VALUES (1, 2)")
    sql(f"EXEC mq.create_feed N'{name}', N'{name}', N'id', N'sync'")
    publish, fetch = f"EXEC mq.publish_feed N'{name}'", f"EXEC mq.fetch_feed N'{name}', N'c'"
    with server.login(database.url, name, "mq_consumer") as url, server.client(url) as connection:
        for statement in (publish, fetch):
            with pytest.raises(pymssql.Error, match=r"unsuitable_table.*GRANT SELECT"):
                connection.execute(statement)
        stats = connection.execute(f"EXEC mq.list_feeds N'{name}'").fetchone()
        assert stats is not None and stats["unpublished"] is None
        sql(f"GRANT SELECT ON dbo.{name} TO {name}")
        with pytest.raises(pymssql.Error, match=r"unsuitable_table.*GRANT SELECT, UPDATE"):
            connection.execute(publish)
        sql(f"GRANT UPDATE ON dbo.{name} TO {name}")
        assert connection.execute(publish).fetchone() == {"affected": 1}
        row = connection.execute(fetch).fetchone()
        assert row == {"feed_position": 1, "row_key": '{"id":1}', "row_data": '{"id":1,"v":2,"sync":1}'}
        stats = connection.execute(f"EXEC mq.list_feeds N'{name}'").fetchone()
        assert stats is not None and stats["unpublished"] is None  # counted for the owner only
        with pytest.raises(pymssql.Error, match="permission"):
            connection.execute(f"EXEC mq_internal.use_feed N'{name}', 1")
        sql(f"REVOKE SELECT, UPDATE ON dbo.{name} FROM {name}")
        with pytest.raises(pymssql.Error, match="unsuitable_table"):
            connection.execute(fetch)
    sql(f"EXEC mq.drop_feed N'{name}'")


def test_a_table_with_a_security_policy_is_no_polling_table_and_a_feed_of_what_is_seen(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    name = f"policy_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, owner sysname, status char(1), sync bigint)")
    sql(f"CREATE INDEX {name}_sync ON dbo.{name} (sync)")
    sql(f"CREATE INDEX {name}_claim ON dbo.{name} (status, id)")
    sql(f"EXEC mq.adopt_table N'{name}.before', N'{name}', N'{ADOPTED}'")
    sql(f"EXEC mq.create_feed N'{name}', N'{name}', N'id', N'sync'")
    sql(f"INSERT INTO dbo.{name} (id, owner, status) VALUES (1, N'{name}', 'N'), (2, N'somebody', 'N')")
    sql(
        f"CREATE FUNCTION dbo.{name}_sees (@owner sysname) RETURNS TABLE WITH SCHEMABINDING AS RETURN"
        " SELECT 1 AS sees WHERE @owner = USER_NAME()"
    )
    sql(f"CREATE SECURITY POLICY dbo.{name}_own ADD FILTER PREDICATE dbo.{name}_sees(owner) ON dbo.{name}")
    with server.login(database.url, name, "mq_consumer", "mq_operator") as url, server.client(url) as connection:
        sql(f"GRANT SELECT, UPDATE ON dbo.{name} TO {name}")
        other = ADOPTED.replace('"N"', '"X"')
        for statement in (
            f"EXEC mq.claim_rows N'{name}.before'",
            f"EXEC mq.adopt_table N'{name}', N'{name}', N'{other}'",
        ):
            with pytest.raises(pymssql.Error, match=r"unsuitable_table.*security policy"):
                connection.execute(statement)
        assert connection.execute(f"EXEC mq.publish_feed N'{name}'").fetchone() == {"affected": 1}
        rows = connection.execute(f"EXEC mq.fetch_feed N'{name}', N'c'").fetchall()
        assert [row["row_key"] for row in rows] == ['{"id":1}']
    sql(f"DROP SECURITY POLICY dbo.{name}_own")


def test_the_trigger_of_a_table_of_another_owner_may_send_and_nothing_else(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url:
        sql(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        sql(f"CREATE TABLE {name}.stock (id int NOT NULL PRIMARY KEY)")
        sql(f"EXEC mq.watch_table N'{name}.stock'")
        sql(f"EXEC mq.subscribe N'{name}.stock', N'I', N'{name}'")
        [made] = sql(
            "SELECT USER_NAME(m.execute_as_principal_id) AS who FROM sys.sql_modules AS m"
            " INNER JOIN sys.triggers AS t ON t.object_id = m.object_id WHERE t.parent_id = OBJECT_ID(%s)",
            f"{name}.stock",
        )
        assert made["who"] == "mq_reporter"
        with server.client(url) as connection:
            connection.execute(f"INSERT INTO {name}.stock VALUES (1)")
            with pytest.raises(pymssql.Error):
                connection.execute("EXECUTE AS USER = 'mq_reporter'")
        assert len(sql("SELECT id FROM mq.message WHERE type = %s", name)) == 1
        sql(f"EXEC mq.unwatch_table N'{name}.stock'")
        sql(f"DROP TABLE {name}.stock")
        sql(f"DROP SCHEMA {name}")


@pytest.mark.parametrize(("granted", "told"), [("", "not_found"), ("SELECT", "unsuitable_table")])
def test_creating_a_feed_needs_the_right_to_change_the_table(
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
            with pytest.raises((NotAllowed, SchemaMissing)):
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
        database.uninstall()  # a user that owns objects cannot be dropped
