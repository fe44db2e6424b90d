"""PostgreSQL: functions that run with their owner's rights give no other access."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import servers
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from support.contract import internals
from support.outcomes import failure

pytestmark = pytest.mark.product("postgresql")

PUBLISHED = set(contract.load().procedures)
# Two of them are views.
INTERNAL = internals("postgresql").keys() - {"my_pass", "my_polled_row"}
ROLES = ["mq_producer", "mq_consumer", "mq_operator", "mq_viewer"]

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def on_postgresql(database: Database) -> None:
    if database.name != "postgresql":
        pytest.skip("about PostgreSQL's own catalog")


def test_schema_mq_holds_the_functions_of_the_contract_and_no_other(sql: Sql) -> None:
    """Internal functions are in a schema of their own: a list of mq.* shows the public ones alone."""
    for schema, names in (("mq", PUBLISHED), ("mq_internal", INTERNAL)):
        rows = sql("SELECT DISTINCT proname AS name FROM pg_proc WHERE pronamespace = %s::regnamespace", schema)
        assert sorted(row["name"] for row in rows) == sorted(names)


# They use a user's table: they run with the caller's rights.
INVOKERS = {
    *("adopt_table", "claim_rows", "finish_rows", "release_rows", "redrive_row", "redrive_rows"),
    *("unadopt_table", "peek_rows"),
    *("create_feed", "drop_feed", "publish_feed", "fetch_feed", "advance_feed", "rewind_feed", "list_feeds"),
    *("watch_table", "unwatch_table", "subscribe", "unsubscribe"),
}
# These two show a role only what it may see of tables without the queue.
VIEWS = {"my_pass", "my_polled_row"}
# The roles may call such a function without a pass; it reveals and changes nothing of a user's table.
HARMLESS = {
    "polled_settings",
    "feed_settings",
    "feed_positions",
    "show_feeds",
    "is_watched",
    "report_changes",
    "installed_files",
}


def test_functions_that_touch_a_users_table_run_as_their_caller(sql: Sql) -> None:
    rows = sql(
        "SELECT proname AS name, prosecdef AS definer, coalesce(proconfig, '{}') AS settings,"
        " proargnames[:pronargs] AS arguments, has_function_privilege('mq_operator', oid, 'EXECUTE')"
        " OR has_function_privilege('mq_consumer', oid, 'EXECUTE') AS given"
        " FROM pg_proc WHERE pronamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace)"
    )
    for row in rows:
        name = row["name"]
        if name in PUBLISHED:
            assert row["definer"] == (name not in INVOKERS), name
        elif row["definer"]:
            # What the functions above do with the queue's own tables: for callers with a pass, or harmless.
            assert row["given"] and ("p_pass" in (row["arguments"] or []) or name in HARMLESS), name
        if row["definer"] or name in PUBLISHED:
            assert "search_path=mq, pg_temp" in row["settings"], name


@pytest.mark.parametrize("role", ["mq_producer", "public"])
def test_internal_functions_are_granted_only_to_consumers(sql: Sql, role: str) -> None:
    rows = sql(
        "SELECT oid::regprocedure::text AS name FROM pg_proc"
        " WHERE pronamespace = 'mq_internal'::regnamespace AND proname = ANY (%s)"
        " AND has_function_privilege(%s, oid, 'EXECUTE')",
        sorted(INTERNAL),
        role,
    )
    assert rows == []


@pytest.mark.parametrize("role", [*ROLES, "public"])
def test_the_roles_may_read_what_the_contract_says_and_change_nothing(sql: Sql, role: str) -> None:
    rights = "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER"
    rows = sql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'mq'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')"
        " AND (has_table_privilege(%s, oid, %s) OR has_any_column_privilege(%s, oid, 'SELECT, INSERT, UPDATE'))",
        role,
        rights,
        role,
    )
    readable = {*contract.load().reads.get(role, ())} - {"claimed"}
    readable |= VIEWS if role in {"mq_consumer", "mq_operator"} else set()
    assert {row["relname"] for row in rows} == readable
    for name in readable:
        [answer] = sql("SELECT has_table_privilege(%s, %s, %s) AS may", role, f"mq.{name}", rights.partition(" ")[2])
        assert not answer["may"]
    sequences = sql("SELECT oid, relname FROM pg_class WHERE relnamespace = 'mq'::regnamespace AND relkind = 'S'")
    assert sequences
    for row in sequences:
        [answer] = sql("SELECT has_sequence_privilege(%s, %s::oid, 'USAGE, SELECT, UPDATE') AS may", role, row["oid"])
        assert not answer["may"], row["relname"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_use_the_schema_and_create_nothing_in_it(sql: Sql, role: str) -> None:
    [row] = sql(
        "SELECT has_schema_privilege(%s, 'mq', 'USAGE') AS use, has_schema_privilege(%s, 'mq', 'CREATE') AS make",
        role,
        role,
    )
    assert (row["use"], row["make"]) == (True, False)


@pytest.fixture
def attacker(server: servers.Server, database: Database, sql: Sql) -> Iterator[psycopg.Connection[Any]]:
    """A user with all three roles, and their own schema first in the search path."""
    name = f"attacker_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, *ROLES) as url:
        sql(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {name}, pg_catalog, public")
            yield connection
            connection.execute("DISCARD TEMP")  # ending the session would remove them later
        sql(f"DROP SCHEMA {name} CASCADE")


TRAPS = [
    ("clock_timestamp", "", "timestamptz", "pg_catalog.clock_timestamp()"),
    ("char_length", "text", "integer", "1"),
    ("octet_length", "text", "integer", "1"),
    ("cardinality", "anyarray", "integer", "1"),
    ("make_interval", "secs double precision", "interval", "interval '1 second'"),
    ("md5", "text", "text", "'x'"),
    ("pg_notify", "text, text", "void", "NULL"),
    ("gen_random_uuid", "", "uuid", "pg_catalog.gen_random_uuid()"),
    ("policy", "text", "text", "'x'"),
    ("consumer_name", "text", "text", "'x'"),
    ("require_name", "text, text, boolean", "void", "NULL"),
    ("lower_mark", "text", "void", "NULL"),
]


def test_a_hostile_search_path_cannot_make_a_public_function_run_foreign_code(
    attacker: psycopg.Connection[Any],
) -> None:
    attacker.execute("CREATE TABLE trace (who name)")
    for name, arguments, result, value in TRAPS:
        attacker.execute(
            f"CREATE FUNCTION {name}({arguments}) RETURNS {result} LANGUAGE plpgsql AS"
            f" $$ BEGIN INSERT INTO trace VALUES (current_user); RETURN {value if result != 'void' else ''}; END $$"
        )
    attacker.execute(
        "CREATE FUNCTION trap(text, text) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO trace VALUES (current_user); RETURN true; END $$"
    )
    attacker.execute("CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, PROCEDURE = trap)")
    attacker.execute("CREATE OPERATOR <> (LEFTARG = text, RIGHTARG = text, PROCEDURE = trap)")
    attacker.execute("CREATE TABLE queue (LIKE trace)")
    attacker.execute("CREATE TEMPORARY TABLE message (id bigint, type text, body text)")
    attacker.execute("CREATE TEMPORARY TABLE ready (id bigint, type text)")
    # The traps work: without the function's own search_path they would run.
    attacker.execute("SELECT char_length('x'), 'a'::text = 'b'::text")
    assert attacker.execute("SELECT count(*) FROM trace").fetchone() == (2,)
    attacker.execute("TRUNCATE trace")

    kind = f"trap.{uuid.uuid4().hex[:12]}"
    for call in (
        "set_option(%s, 'ring', '1')",
        "send(%s, 'b')",
        "send_message(%s, 'b', NULL, 1, 'g', 'd', 2, '{}', 's')",
        "send_batch(%s, 'a')",
        "claim_batch(%s, 1, 'r', 60)",
        "claim_wraparound(%s, 1)",
        "take_batch(%s, 1)",
        "wait_for_message(%s, 0)",
        "rescue_expired(%s)",
        "queue_stats(%s)",
        "peek(%s, 'N')",
        "set_option(%s, 'notify', '1')",
        "pause(%s)",
        "resume(%s)",
        "redrive_all(%s)",
        "purge(%s, 'N')",
    ):
        attacker.execute(f"SELECT * FROM mq.{call}", [kind])
    [batch_key] = attacker.execute("SELECT batch_key FROM mq.peek(%s, 'A')", [kind]).fetchone() or [None]
    assert batch_key
    attacker.execute("SELECT * FROM mq.extend_lease(%s, 60)", [batch_key])
    attacker.execute("SELECT * FROM mq.finish_batch(%s, %s, 1)", [batch_key, failure(1, "x")])
    attacker.execute("SELECT * FROM mq.queue_health()")
    assert attacker.execute("SELECT count(*) FROM trace").fetchone() == (0,)


def test_a_published_function_gives_no_rights_to_code_of_its_caller(attacker: psycopg.Connection[Any]) -> None:
    """Arguments are values: SQL in them is not run."""
    kind = "x'); SELECT pg_sleep(10); --"
    attacker.execute("SELECT * FROM mq.send(%s, %s)", [kind, "'; DROP SCHEMA mq CASCADE; --"])
    attacker.execute("SELECT * FROM mq.purge(%s, 'N')", [kind])
    for statement in ("SELECT * FROM mq.feed", "INSERT INTO mq.queue VALUES ('x')", "DELETE FROM mq.ready"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            attacker.execute(statement)


def test_the_owner_of_a_database_installs_without_being_a_superuser(
    server: servers.Server, database: Database, sql: Sql
) -> None:
    """Roles exist already, or are skipped with a notice: the installer may not create them."""
    name = f"owner_{uuid.uuid4().hex[:12]}"
    url = server.create_database()
    path = url.rpartition("/")[2]
    with server.login(database.url, name) as login_url:
        try:
            sql(f"ALTER DATABASE {path} OWNER TO {name}")
            owned = open_database(f"{login_url.rpartition('/')[0]}/{path}")
            install.apply(owned)
            session = owned.connect("owner")
            session.call("send", "a", "b")
            assert session.call("take_batch", "a")[0]["body"] == "b"
            session.close()
        finally:
            server.drop_database(url)


def test_a_grant_on_all_tables_shows_no_secret(server: servers.Server, installed_database: Database) -> None:
    """A role that can read it can prove any right on any polling table, feed and watched table."""
    url = installed_database.url
    with server.login(url, "consumer", "mq_operator") as consumer:
        server.query(url, "GRANT SELECT ON ALL TABLES IN SCHEMA mq TO consumer")
        assert server.query(consumer, "SELECT count(*) AS n FROM mq.message") == [{"n": 0}]
        assert server.query(url, "SELECT to_regclass('mq.secret') AS secret") == [{"secret": None}]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.query(consumer, "SELECT * FROM mq_internal.secret")
        server.query(url, "GRANT USAGE ON SCHEMA mq_internal TO consumer")
        server.query(url, "GRANT SELECT ON ALL TABLES IN SCHEMA mq_internal TO consumer")
        problems = ["consumer may read mq_internal.secret", "consumer may use schema mq_internal"]
        assert sorted(installed_database.rights_problems()) == problems
        assert sorted(install.apply(installed_database).repaired) == problems
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.query(consumer, "SELECT * FROM mq_internal.secret")
        warned = "consumer, a member of pg_read_all_data, may read mq_internal.secret"
        assert not any(warned in line for line in installed_database.warnings_about_installation())
        server.query(url, "GRANT pg_read_all_data TO consumer")
        assert any(warned in line for line in installed_database.warnings_about_installation())
        server.query(url, "DROP OWNED BY consumer")
