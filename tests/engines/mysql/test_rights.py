"""MySQL and MariaDB: procedures that run with their owner's rights give no other access."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
from rowqueue.databases import Database, NotAllowed, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from servers.mysql import Client
from support.contract import internals, procedures_of
from support.queues import refused

pytestmark = pytest.mark.product("mysql", "mariadb")

LIMITED = '{"lease_seconds": 1, "on_complete": "archive", "max_active": 5, "rate": 6, "rate_seconds": 7}'
ADOPTED = '{"key_columns": "id", "status_column": "status", "ready_value": "N", "done_value": "D", "error_value": "E"}'
DELETED = '{"key_columns": "id", "on_complete": "delete"}'
CONTRACT = contract.load()
QUOTED = "'mq_owner'@'localhost'"
PUBLISHED = set(procedures_of("mysql"))
VIEWS = {"message_state", "message_overview"}
INTERNAL = set(internals("mysql"))
ROLES = {"mq_producer", "mq_consumer", "mq_operator", "mq_viewer"}
OWNER = "mq_owner@localhost"
# What touches a user's table, and what that calls.
AS_THE_CALLER = {
    *("adopt_table", "claim_rows", "finish_rows", "release_rows", "redrive_row", "redrive_rows", "unadopt_table"),
    "redrive_polled",
    *("create_feed", "publish_feed", "fetch_feed", "list_feeds", "watch_table"),
    *(
        "run",
        "grant_to",
        "grant_owner",
        "find_table",
        "find_columns",
        "find_one_column",
        "find_feed",
        "feed_columns",
        "read_columns",
        "row_json",
        "require_status",
        "require_rights",
        "require_index",
        "require_distinct_rows",
        "require_order",
        "column_without_equality",
    ),
    *(
        "polled_shape",
        "key_literals",
        "row_condition",
        "run_template",
        "list_rows",
        "take_due",
        "pick_rows",
        "pick_lost",
        "write_rows",
    ),
    *("fail_rows", "missing_index"),
}
CALLED_BY_CALLERS = (AS_THE_CALLER & INTERNAL) | {
    *("require_name", "require_range", "require_key", "require_read_committed", "raise_error", "consumer_name"),
    *("installed_files", "begin_call", "end_call", "undo_call", "read_outcomes", "read_options", "split_names"),
    *(
        "open_claim",
        "hold_due",
        "free_rows",
        "held_copies",
        "add_claims",
        "settled_place",
        "count_active",
        "claimed_rows",
        "seal_claim",
    ),
    *("drop_polled_batch", "settle_rows", "add_polled", "open_retry", "revive_rows", "open_release", "drop_polled"),
    *("feed_settings", "lock_feed", "move_feed", "add_feed", "show_feeds", "add_watched"),
}

Sql = Callable[..., list[dict[str, Any]]]


def test_the_database_holds_the_procedures_of_the_contract_and_no_other_program(sql: Sql) -> None:
    rows = sql(
        "SELECT routine_name AS name, routine_type AS type, definer AS definer, security_type AS security"
        " FROM information_schema.routines WHERE routine_schema = DATABASE()"
    )
    assert {row["name"] for row in rows} == {*map(CONTRACT.prefixed, PUBLISHED | INTERNAL)}
    assert {(row["type"], row["definer"]) for row in rows} == {("PROCEDURE", OWNER)}
    assert {row["name"].partition("_")[2] for row in rows if row["security"] == "INVOKER"} == AS_THE_CALLER
    assert sql("SELECT 1 FROM information_schema.events WHERE event_schema = DATABASE()") == []
    # Other tests' tables are watched.
    triggers = sql(
        "SELECT event_object_table AS name FROM information_schema.triggers WHERE trigger_schema = DATABASE()"
    )
    assert [row["name"] for row in triggers if row["name"].startswith("mq_")] == []


def granted(sql: Sql, name: str) -> set[str]:
    """The accounts that may call a procedure, without the one that installed it."""
    rows = sql(
        "SELECT user, host, proc_priv AS rights FROM mysql.procs_priv WHERE db = DATABASE() AND routine_name = %s"
        " AND CONCAT(user, '@', host) <> CURRENT_USER()",
        CONTRACT.prefixed(name),
    )
    assert all(row["rights"].lower() == "execute" for row in rows)
    return {OWNER if row["user"] == "mq_owner" else row["user"] for row in rows}


def test_each_procedure_is_granted_to_its_owner_and_to_the_roles_of_the_contract(sql: Sql) -> None:
    for name, procedure in procedures_of("mysql").items():
        assert granted(sql, name) == {OWNER, *procedure.roles}, name


def test_internal_procedures_are_granted_where_a_procedure_with_the_callers_rights_calls_them(sql: Sql) -> None:
    for name in INTERNAL - CALLED_BY_CALLERS:
        assert granted(sql, name) == {OWNER}, name
    for name in CALLED_BY_CALLERS:
        assert granted(sql, name) - {OWNER} <= {"mq_consumer", "mq_operator", "mq_viewer"}, name


def test_code_that_runs_as_the_owner_executes_no_text(sql: Sql) -> None:
    rows = sql(
        "SELECT routine_name AS name, routine_definition AS body FROM information_schema.routines"
        " WHERE routine_schema = DATABASE() AND security_type = 'DEFINER'"
    )
    assert [row["name"] for row in rows if re.search(r"(?i)\bPREPARE\b|\bmq_run\b|\bEXECUTE\b", row["body"])] == []


def test_tables_are_changed_only_by_the_owner_who_may_not_alter_them_and_read_as_the_contract_says(sql: Sql) -> None:
    rows = sql("SELECT user, table_name AS name, table_priv AS rights FROM mysql.tables_priv WHERE db = DATABASE()")
    rows = [row for row in rows if row["name"].startswith("mq_") or row["user"] == "mq_owner"]
    given = [row for row in rows if row["user"] != "mq_owner" and row["rights"]]
    assert {(row["user"], row["name"]) for row in given} == {
        (role, f"mq_{name}") for role, names in CONTRACT.reads.items() for name in {*names} - {"claimed"}
    }
    assert {row["rights"].lower() for row in given} == {"select"}
    rows = [row for row in rows if row["user"] == "mq_owner"]
    assert {row["user"] for row in rows} == {"mq_owner"}
    for row in rows:
        # The triggers of watched tables run in the writer's transaction, as the owner.
        own = {"select", "insert", "update", "delete", "show view"}
        assert set(row["rights"].lower().split(",")) <= (
            own if row["name"].startswith("mq_") else {"select", "trigger"}
        )
    tables = sql("SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()")
    own = {row["name"] for row in tables if row["name"].startswith("mq_")}
    assert {row["name"] for row in rows if row["name"].startswith("mq_")} == own
    assert sql("SELECT user FROM mysql.db WHERE db = DATABASE()") == []
    columns = sql(
        "SELECT user, column_name AS name, column_priv AS rights FROM mysql.columns_priv WHERE db = DATABASE()"
    )
    assert {(row["user"], row["rights"].lower()) for row in columns} == {("mq_viewer", "select")}
    assert not {"body", "headers", "result", "batch_key"} & {row["name"] for row in columns}


@pytest.mark.parametrize("account", ["mq_owner@localhost", *sorted(ROLES)])
def test_accounts_of_the_queue_have_no_right_on_the_whole_server(sql: Sql, account: str) -> None:
    """Except that MariaDB's owner needs PROCESS to see the isolation level of a transaction."""
    [version] = sql("SELECT VERSION() AS version")
    own = ("USAGE", "PROCESS") if "owner" in account and "MariaDB" in version["version"] else ("USAGE",)
    lines = [str(*row.values()) for row in sql(f"SHOW GRANTS FOR {account}")]
    assert [
        line for line in lines if " ON *.* " in line and line.split(" ON ")[0] not in {f"GRANT {r}" for r in own}
    ] == []


def test_no_user_can_log_in_as_the_owner(server: Server, database: Database) -> None:
    host = database.url.rpartition("@")[2].partition("/")[0]
    for password in ("", "mq_owner"):
        with pytest.raises(pymysql.OperationalError):
            server.client(f"mysql://mq_owner:{password}@{host}/").close()


@pytest.fixture
def attacker(server: Server, database: Database, sql: Sql) -> Iterator[tuple[Client, str]]:
    """A user with all three roles and all rights on their own database; and that database."""
    name = f"attacker_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, *sorted(ROLES)) as url:
        sql(f"CREATE DATABASE {name}")
        sql(f"GRANT ALL ON {name}.* TO {name}@'%'")
        with server.client(url) as connection:
            yield connection, name
        server.drop_database(f"{url.rpartition('/')[0]}/{name}")


def calls(schema: str, type: str) -> list[str]:
    """The usual calls of a consumer and an operator."""
    return [
        f"CALL {schema}.mq_send('{type}', 'b')",
        f"CALL {schema}.mq_send_message('{type}', 'b', NULL, 1, 'g', 'd', 2, '{{}}', 's', NULL, NULL)",
        f"CALL {schema}.mq_send_batch('{type}', 'a\nb\nc', NULL)",
        f"CALL {schema}.mq_claim_batch('{type}', 1, 'r', 60)",
        f"CALL {schema}.mq_set_option('{type}.ring', 'ring', '1')",
        f"CALL {schema}.mq_claim_wraparound('{type}.ring', 1, NULL, NULL, NULL)",
        f"CALL {schema}.mq_claim_batch('{type}.ring', 1, NULL, NULL)",
        f"CALL {schema}.mq_get_message('{type}')",
        f"CALL {schema}.mq_take_batch('{type}', 1)",
        f"CALL {schema}.mq_wait_for_message('{type}', 0)",
        f"CALL {schema}.mq_rescue_expired('{type}')",
        f"CALL {schema}.mq_queue_stats(NULL)",
        f"CALL {schema}.mq_peek('{type}', 'N', 10, NULL)",
        f"CALL {schema}.mq_set_queue('{type}', '{LIMITED}')",
        f"CALL {schema}.mq_pause('{type}')",
        f"CALL {schema}.mq_resume('{type}')",
        f"CALL {schema}.mq_redrive_all('{type}', NULL, NULL)",
        f"CALL {schema}.mq_purge('{type}', 'N', NULL, NULL)",
        f"CALL {schema}.mq_purge('{type}', 'C', '2001-01-01', 10)",
        f"CALL {schema}.mq_queue_health()",
        f"CALL {schema}.imq_installed_files()",
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


def test_a_temporary_table_of_the_caller_cannot_hide_a_table(attacker: tuple[Client, str]) -> None:
    connection, _ = attacker
    with pytest.raises(pymysql.OperationalError, match="denied"):
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
def test_the_procedures_do_the_same_under_any_session_setting(
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
            run(connection, statement.replace("CALL x.", "CALL ", 1))
        run(connection, "COMMIT")
    rows = sql("SELECT state, consumer FROM mq_message_state WHERE type = %s ORDER BY id", kind)
    assert [row["state"] for row in rows] == ["A", "A"]
    [policy] = sql("SELECT * FROM mq_queue WHERE type = %s", kind)
    assert (policy["lease_seconds"], policy["on_complete"], policy["paused"]) == (1, "archive", 0)


def test_arguments_are_values_and_no_table_can_be_read_or_changed(attacker: tuple[Client, str]) -> None:
    connection, _ = attacker
    kind = f"x'); DROP TABLE mq_ready; -- {uuid.uuid4().hex[:8]}"
    run(connection, connection.cursor().mogrify("CALL mq_send(%s, %s)", [kind, "'; DROP TABLE mq_message; --"]))
    run(connection, connection.cursor().mogrify("CALL mq_purge(%s, 'N', NULL, NULL)", [kind]))
    for statement in (
        "SELECT * FROM mq_feed",
        "UPDATE mq_message SET body = ''",
        "INSERT INTO mq_queue (type) VALUES ('x')",
        "DELETE FROM mq_ready",
        "CALL imq_put_back(NULL, NULL)",
        "CREATE PROCEDURE mq_mine() SELECT 1",
        "DROP PROCEDURE mq_send",
        "ALTER TABLE mq_message COMMENT = 'mine'",
    ):
        with pytest.raises(pymysql.MySQLError, match="denied"):
            connection.execute(statement)


def test_a_user_without_a_role_may_call_nothing_from_another_database(server: Server, database: Database) -> None:
    name = f"nobody_{uuid.uuid4().hex[:12]}"
    schema = database.url.rpartition("/")[2]
    with server.login(database.url, name) as url, server.client(url.rpartition("/")[0] + "/") as connection:
        for statement in calls(schema, "x"):
            with pytest.raises(pymysql.OperationalError, match="denied"):
                connection.execute(statement)
        with pytest.raises(NotAllowed):
            open_database(url).connect("nobody")


@pytest.mark.level(3)
def test_queue_health_names_the_right_that_the_owner_lacks_and_does_without(
    installed_database: Database, server: Server
) -> None:
    session = installed_database.connect("test")
    lines = server.query(installed_database.url, f"SHOW GRANTS FOR {QUOTED}")
    granted = any("GRANT PROCESS ON *.*" in str(line) for line in lines)
    try:
        if granted:
            server.query(installed_database.url, f"REVOKE PROCESS ON *.* FROM {QUOTED}")
        without = {row["name"]: row for row in session.call("queue_health")}
        with server.watching():
            given = {row["name"]: row for row in session.call("queue_health")}
    finally:
        session.close()
        if granted:
            server.query(installed_database.url, f"GRANT PROCESS ON *.* TO {QUOTED}")
    assert without["oldest_transaction"]["verdict"] == "warn" and without["oldest_transaction"]["measured"] is None
    assert "GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'" in without["oldest_transaction"]["detail"]
    assert given["oldest_transaction"]["verdict"] == "ok" and given["oldest_transaction"]["measured"] >= 0
    assert given["history_length"]["measured"] >= 0


# ---- tables of users -------------------------------------------------------------------------------------------------


def test_the_text_of_a_check_is_not_executed(attacker: tuple[Client, str], sql: Sql, database: Database) -> None:
    connection, own = attacker
    queue = database.url.rpartition("/")[2]
    sql(f"CALL {queue}.mq_send('loot', 'the secret')")
    connection.execute(
        f"CREATE TABLE {own}.t2 (id bigint PRIMARY KEY, status varchar(10) NOT NULL DEFAULT 'N', KEY (status, id),"
        " CHECK (status <> 'x'' AND 1)), (SELECT GROUP_CONCAT(body) FROM "
        + queue
        + ".mq_message) INTO @mq_found, @loot FROM (SELECT 0x4e AS `status`) AS t -- '))"
    )
    run(
        connection,
        f"CALL {queue}.mq_adopt_table('e{own}', '{own}.t2', '{ADOPTED}')",
    )
    assert connection.execute("SELECT @loot AS loot").fetchone() == {"loot": None}
    run(connection, f"CALL {queue}.mq_claim_rows('e{own}', 10, NULL, NULL)")


@pytest.mark.level(3)
@pytest.mark.parametrize(
    "table", ["mq_message", "mq_polled", pytest.param("mq_subscription", marks=pytest.mark.level(4))]
)
def test_the_tables_of_another_databases_queue_are_refused_and_out_of_reach(
    attacker: tuple[Client, str], server: Server, database: Database, sql: Sql, table: str
) -> None:
    connection, own = attacker
    queue, other = database.url.rpartition("/")[2], server.create_database()
    install.apply(open_database(other))
    schema = other.rpartition("/")[2]
    for session in (connection, server.client(database.url)):
        with pytest.raises(pymysql.MySQLError, match=r"unsuitable_table|not_found"):
            run(
                session,
                f"CALL {queue}.mq_adopt_table('s{own}', '{schema}.{table}', '{DELETED}')",
            )
    # Past the checks of adopt_table, by the procedure that it calls.
    settings = (
        f'{{"name":"s{own}","schema":"{schema}","table":"{table}","ident_columns":"[]","deletes":1,"equal":0,"max":1}}'
    )
    with pytest.raises(pymysql.MySQLError, match="unsuitable_table"):
        connection.execute(f"CALL {queue}.imq_add_polled('{settings}', @created)")
    assert sql("SELECT COUNT(*) AS n FROM mq_polled WHERE name = %s", f"s{own}") == [{"n": 0}]
    server.drop_database(other)


def test_text_stored_by_another_user_is_never_executed_as_the_caller(
    attacker: tuple[Client, str], server: Server, database: Database, sql: Sql
) -> None:
    """An attacker who may claim from a table writes into the entries what a consumer with more rights then reads."""
    connection, own = attacker
    queue = database.url.rpartition("/")[2]
    sql(f"CREATE TABLE v{own} (id varchar(20) PRIMARY KEY, status char(1), KEY (status, id))")
    sql(f"GRANT SELECT, UPDATE ON v{own} TO {own}@'%'")
    sql(f"CREATE TABLE x{own} (n int)")
    for evil in (
        f"'); INSERT INTO {queue}.x{own} VALUES (1); -- ",
        f"27') OR (SELECT COUNT(*) FROM {queue}.mq_message) > 0 OR id IN (x'",
        "\\",
        "4E' /*",
        "1 -- ",
    ):
        name = f"e{uuid.uuid4().hex[:8]}"
        with server.client(database.url) as session:
            run(
                session,
                f"CALL mq_adopt_table('{name}', 'v{own}', '{ADOPTED}')",
            )
            connection.execute("BEGIN")
            connection.execute(f"CALL {queue}.imq_open_claim('{name}', 10, 'r', 0, @key, @table, @due)")
            connection.execute(
                f"CALL {queue}.imq_add_claims(@key, 1, JSON_ARRAY(JSON_ARRAY(%s, '{{}}', %s, '{{}}', 1)), NULL, 1,"
                " @a, @b)",
                [evil, evil],
            )
            connection.execute("COMMIT")
            for _ in range(2):
                rows = session.execute(f"CALL mq_claim_rows('{name}', 10, NULL, 1)").fetchall()
                assert list(rows) == []
            session.execute(f"CALL mq_unadopt_table('{name}')").fetchall()
    assert sql(f"SELECT COUNT(*) AS n FROM x{own}") == [{"n": 0}]


def test_a_batch_key_cannot_be_guessed_from_another(server: Server, database: Database, sql: Sql) -> None:
    name = f"k{uuid.uuid4().hex[:10]}"
    sql(f"CREATE TABLE {name} (id int PRIMARY KEY, status char(1), KEY (status, id))")
    sql(f"INSERT INTO {name} VALUES (1, 'N'), (2, 'N')")
    session = database.connect("test")
    session.call(
        "adopt_table",
        name,
        name,
        json.dumps(
            {
                "key_columns": "id",
                "status_column": "status",
                "ready_value": "N",
                "active_value": "A",
                "done_value": "D",
                "error_value": "E",
            }
        ),
    )
    one, two = (session.call("claim_rows", name, 1)[0]["batch_key"] for _ in range(2))
    session.close()
    assert all(a != b for a, b in zip(one.split("-"), two.split("-"), strict=True))


@pytest.mark.level(4)
def test_where_the_owner_may_not_read_the_rights_only_the_maker_is_let_in(private_server: Server) -> None:
    server = private_server
    database = open_database(server.create_database())
    install.apply(database)
    server.query(database.url, "CREATE TABLE t (id int PRIMARY KEY, status char(1), KEY (status, id))")
    server.query(database.url, "INSERT INTO t VALUES (1, 'N'), (2, 'N'), (3, 'N')")
    roles = ("mq_consumer", "mq_operator")
    with server.login(database.url, "maker", *roles) as one, server.login(database.url, "other", *roles) as two:
        for user in ("maker", "other"):
            server.query(database.url, f"GRANT SELECT, UPDATE ON t TO {user}@'%'")
        maker, other = (open_database(url).connect("test") for url in (one, two))
        maker.call(
            "adopt_table",
            "t",
            "t",
            json.dumps(
                {
                    "key_columns": "id",
                    "status_column": "status",
                    "ready_value": "N",
                    "active_value": "A",
                    "done_value": "D",
                    "error_value": "E",
                }
            ),
        )
        assert len(other.call("claim_rows", "t", 1)) == 1
        rows = server.query(
            database.url,
            "SELECT DISTINCT table_name AS t, privilege_type AS p, GROUP_CONCAT(column_name) AS c"
            " FROM information_schema.column_privileges"
            " WHERE table_schema = 'mysql' AND grantee LIKE '%mq\\_owner%' GROUP BY table_name, privilege_type",
        )
        assert {row["t"] for row in rows} >= {"user", "db", "tables_priv"}
        for row in rows:
            server.query(database.url, f"REVOKE {row['p']} ({row['c']}) ON mysql.{row['t']} FROM mq_owner@localhost")
        server.query(database.url, "DELETE FROM mq_allowed" if database.url.startswith("mariadb") else "DO 0")
        assert len(maker.call("claim_rows", "t", 1)) == 1
        with refused("unsuitable_table", "only for user maker", "mq_owner may not read the rights of others"):
            other.call("claim_rows", "t", 1)
        with refused("unsuitable_table", "only for user maker"):
            other.call("peek_rows", "t")
        [warning] = [text for text in database.warnings_about_installation() if "may not read" in text]
        assert "only the user who created it" in warning
        # The server itself still looks at the maker's rights.
        server.query(database.url, "REVOKE UPDATE ON t FROM maker@'%'")
        with pytest.raises(NotAllowed, match="denied to user 'maker'"):
            maker.call("claim_rows", "t", 1)
        server.query(database.url, "DROP PROCEDURE mq_purge")
        install.apply(database)
        assert len(other.call("claim_rows", "t", 1)) == 1
        maker.close()
        other.close()
