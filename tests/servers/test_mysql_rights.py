"""MySQL and MariaDB: procedures that run with their owner's rights give nothing else away."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
from rowqueue import contract
from rowqueue.databases import Database, Forbidden, open_database

from . import Server
from .mysql import Client

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_version]

CONTRACT = contract.load()
PUBLISHED = set(CONTRACT.procedures)
INTERNAL = set(CONTRACT.objects("mysql")) - PUBLISHED - {"message_state"}
ROLES = {"mq_producer", "mq_consumer", "mq_operator"}
OWNER = "mq_owner@localhost"

Sql = Callable[..., list[dict[str, Any]]]


def test_the_database_holds_the_procedures_of_the_contract_and_no_other_program(sql: Sql) -> None:
    rows = sql(
        "SELECT routine_name AS name, routine_type AS type, definer AS definer, security_type AS security"
        " FROM information_schema.routines WHERE routine_schema = DATABASE()"
    )
    assert {row["name"] for row in rows} == {f"mq_{name}" for name in PUBLISHED | INTERNAL}
    assert {(row["type"], row["definer"], row["security"]) for row in rows} == {("PROCEDURE", OWNER, "DEFINER")}
    assert sql("SELECT 1 FROM information_schema.events WHERE event_schema = DATABASE()") == []
    # Other tests' tables are watched.
    triggers = sql(
        "SELECT event_object_table AS name FROM information_schema.triggers WHERE trigger_schema = DATABASE()"
    )
    assert [row["name"] for row in triggers if row["name"].startswith("mq_")] == []


def granted(sql: Sql, name: str) -> set[str]:
    """Who may call a procedure, besides the account that installed it."""
    rows = sql(
        "SELECT user, host, proc_priv AS rights FROM mysql.procs_priv WHERE db = DATABASE() AND routine_name = %s"
        " AND CONCAT(user, '@', host) <> CURRENT_USER()",
        f"mq_{name}",
    )
    assert all(row["rights"].lower() == "execute" for row in rows)
    return {OWNER if row["user"] == "mq_owner" else row["user"] for row in rows}


def test_each_procedure_is_granted_to_its_owner_and_to_the_roles_of_the_contract(sql: Sql) -> None:
    for name, procedure in CONTRACT.procedures.items():
        assert granted(sql, name) == {OWNER, *procedure.roles}, name


def test_internal_procedures_are_granted_to_their_owner_and_to_nobody_else(sql: Sql) -> None:
    for name in INTERNAL:
        assert granted(sql, name) == {OWNER}, name


def test_no_table_is_granted_to_anybody_but_the_owner_and_he_has_no_right_to_change_any(sql: Sql) -> None:
    rows = sql("SELECT user, table_name AS name, table_priv AS rights FROM mysql.tables_priv WHERE db = DATABASE()")
    assert {row["user"] for row in rows} == {"mq_owner"}
    for row in rows:
        # The tables of users are granted for feeds, polling tables and triggers.
        least = {"insert", "show view"} if row["name"].startswith("mq_") else {"trigger"}
        assert set(row["rights"].lower().split(",")) <= {"select", "update", "delete", *least}, row
    tables = sql("SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()")
    own = {row["name"] for row in tables if row["name"].startswith("mq_")}
    assert {row["name"] for row in rows if row["name"].startswith("mq_")} == own
    assert sql("SELECT user FROM mysql.db WHERE db = DATABASE()") == []
    assert sql("SELECT user FROM mysql.columns_priv WHERE db = DATABASE()") == []


@pytest.mark.parametrize("account", ["mq_owner@localhost", *sorted(ROLES)])
def test_accounts_of_the_queue_have_no_right_on_the_whole_server(sql: Sql, account: str) -> None:
    lines = [str(*row.values()) for row in sql(f"SHOW GRANTS FOR {account}")]
    assert [line for line in lines if " ON *.* " in line and not line.startswith("GRANT USAGE ")] == []


def test_nobody_can_log_in_as_the_owner(server: Server, database: Database) -> None:
    host = database.url.rpartition("@")[2].partition("/")[0]
    for password in ("", "mq_owner"):
        with pytest.raises(pymysql.err.OperationalError):
            server.client(f"mysql://mq_owner:{password}@{host}/").close()


@pytest.fixture
def attacker(server: Server, database: Database, sql: Sql) -> Iterator[tuple[Client, str]]:
    """A user with all three roles and a database of his own, in which he may do everything; and that database."""
    name = f"attacker_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, *sorted(ROLES)) as url:
        sql(f"CREATE DATABASE {name}")
        sql(f"GRANT ALL ON {name}.* TO {name}@'%'")
        with server.client(url) as connection:
            yield connection, name
        server.drop_database(f"{url.rpartition('/')[0]}/{name}")


def calls(schema: str, type: str) -> list[str]:
    """Calls of a consumer's and an operator's whole day."""
    return [
        f"CALL {schema}.mq_send('{type}', 'b')",
        f"CALL {schema}.mq_send_message('{type}', 'b', NULL, 1, 'g', 'd', 2, '{{}}', 's')",
        f"CALL {schema}.mq_send_batch('{type}', 'a\nb\nc')",
        f"CALL {schema}.mq_claim_batch('{type}', 1, 'r', 60)",
        f"CALL {schema}.mq_claim_wraparound('{type}', 1, NULL, NULL, NULL)",
        f"CALL {schema}.mq_take_batch('{type}', 1)",
        f"CALL {schema}.mq_wait_for_message('{type}', 0)",
        f"CALL {schema}.mq_rescue_expired('{type}')",
        f"CALL {schema}.mq_queue_stats(NULL)",
        f"CALL {schema}.mq_peek('{type}', 'N', 10)",
        f"CALL {schema}.mq_set_queue('{type}', 1, NULL, NULL, NULL, 'archive', NULL, NULL)",
        f"CALL {schema}.mq_pause('{type}')",
        f"CALL {schema}.mq_resume('{type}')",
        f"CALL {schema}.mq_redrive('{type}', NULL)",
        f"CALL {schema}.mq_purge('{type}', 'N')",
        f"CALL {schema}.mq_purge_archive('2001-01-01', 10)",
        f"CALL {schema}.mq_queue_health()",
        f"CALL {schema}.mq_installed_files()",
    ]


def run(connection: Client, statement: str) -> None:
    cursor = connection.execute(statement)
    cursor.fetchall()
    cursor.close()


def test_objects_of_the_same_name_in_the_callers_database_are_not_used(attacker: tuple[Client, str], sql: Sql) -> None:
    connection, own = attacker
    [row] = sql("SELECT DATABASE() AS name")
    connection.execute(f"USE {own}")
    connection.execute("CREATE TABLE trace (who text)")
    for name in sorted(INTERNAL):
        connection.execute(f"CREATE PROCEDURE mq_{name}() INSERT INTO trace VALUES (CURRENT_USER())")
    for table in ("queue", "message", "ready", "delayed", "batch", "mark", "dead"):
        connection.execute(f"CREATE TABLE mq_{table} (id int)")
        connection.execute(f"CREATE TEMPORARY TABLE mq_{table} (id int)")
    kind = f"trap.{uuid.uuid4().hex[:12]}"
    for statement in calls(row["name"], kind):
        run(connection, statement)
    assert connection.execute("SELECT COUNT(*) AS n FROM trace").fetchone() == {"n": 0}
    assert {row["state"] for row in sql("SELECT state FROM mq_message_state WHERE type = %s", kind)} == {"A"}


def test_a_caller_can_hide_no_table_behind_a_temporary_one(attacker: tuple[Client, str]) -> None:
    connection, _ = attacker
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        connection.execute("CREATE TEMPORARY TABLE mq_message (id bigint)")


SETTINGS = [
    "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
    "sql_mode = ''",
    "sql_safe_updates = 1",
    "sql_select_limit = 1",
    "group_concat_max_len = 4",
    "time_zone = '-11:00'",
    "character_set_connection = latin1, collation_connection = latin1_german2_ci",
    "autocommit = 0",
    "completion_type = 'CHAIN'",
    "transaction_isolation = 'SERIALIZABLE'",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_whatever_the_session_has_set_the_procedures_do_the_same(
    server: Server, database: Database, sql: Sql, setting: str
) -> None:
    kind = f"set.{uuid.uuid4().hex[:12]}"
    with server.client(database.url) as connection:
        if "MariaDB" in connection.get_server_info():
            setting = setting.replace("transaction_isolation", "tx_isolation")
        if setting == "autocommit = 0":
            connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.execute(f"SET SESSION {setting}")
        for statement in calls("x", kind):
            run(connection, statement.replace("x.mq_", "mq_", 1))
        run(connection, "COMMIT")
    rows = sql("SELECT state, reader FROM mq_message_state WHERE type = %s ORDER BY id", kind)
    assert [row["state"] for row in rows] == ["A", "A"]
    [policy] = sql("SELECT * FROM mq_queue WHERE type = %s", kind)
    assert (policy["lease_seconds"], policy["on_complete"], policy["paused"]) == (1, "archive", 0)


def test_arguments_are_values_and_no_table_can_be_read_or_changed(attacker: tuple[Client, str]) -> None:
    connection, _ = attacker
    kind = f"x'); DROP TABLE mq_ready; -- {uuid.uuid4().hex[:8]}"
    run(connection, connection.cursor().mogrify("CALL mq_send(%s, %s)", [kind, "'; DROP TABLE mq_message; --"]))
    run(connection, connection.cursor().mogrify("CALL mq_purge(%s, 'N')", [kind]))
    for statement in (
        "SELECT * FROM mq_message",
        "SELECT * FROM mq_message_state",
        "INSERT INTO mq_queue (type) VALUES ('x')",
        "DELETE FROM mq_ready",
        "CALL mq_erase_archived(NULL, NULL, 1, @count)",
        "CREATE PROCEDURE mq_mine() SELECT 1",
        "DROP PROCEDURE mq_send",
        "ALTER TABLE mq_message COMMENT = 'mine'",
    ):
        with pytest.raises(pymysql.err.MySQLError, match="denied"):
            connection.execute(statement)


def test_a_user_without_a_role_may_call_nothing_from_another_database(server: Server, database: Database) -> None:
    name = f"nobody_{uuid.uuid4().hex[:12]}"
    schema = database.url.rpartition("/")[2]
    with server.login(database.url, name) as url, server.client(url.rpartition("/")[0] + "/") as connection:
        for statement in calls(schema, "x"):
            with pytest.raises(pymysql.err.OperationalError, match="denied"):
                connection.execute(statement)
        with pytest.raises(Forbidden):
            open_database(url).connect("nobody")


def test_queue_health_names_the_right_that_the_owner_lacks_and_does_without(database: Database, server: Server) -> None:
    session = database.connect("test")
    try:
        without = {row["name"]: row for row in session.call("queue_health")}
        with server.watching():
            given = {row["name"]: row for row in session.call("queue_health")}
    finally:
        session.close()
    assert without["oldest_transaction"]["verdict"] == "warn" and without["oldest_transaction"]["value"] is None
    assert "GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'" in without["oldest_transaction"]["detail"]
    assert given["oldest_transaction"]["verdict"] == "ok" and given["oldest_transaction"]["value"] >= 0
    assert given["history_length"]["value"] >= 0
