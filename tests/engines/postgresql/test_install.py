"""PostgreSQL: dumps restored elsewhere, search paths, a DBA's settings, and uninstalling."""

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
import servers
from rowqueue.databases import (
    Conflict,
    Database,
    DatabaseError,
    NotAllowed,
    ReadOnly,
    SchemaMissing,
    Session,
    open_database,
)
from rowqueue.install import apply as install
from servers.postgresql import programs
from support.outcomes import dead_letter, failure, joined
from support.queues import call, refused

pytestmark = pytest.mark.product("postgresql")

Sql = Callable[..., list[dict[str, Any]]]
STATUS = {"key_columns": "id", "status_column": "status", "ready_value": "N", "active_value": "A", "done_value": "D"}
STATUS["error_value"] = "E"
TEXT = "\u2192 \u20ac"  # LATIN1 has none of these characters


@pytest.fixture
def run(request: pytest.FixtureRequest, server: servers.Server) -> Callable[..., list[dict[str, Any]]]:
    """Runs SQL in the database of the test."""
    name = "installed_database" if "installed_database" in request.fixturenames else "empty_database"
    database: Database = request.getfixturevalue(name)
    return lambda text, *values: server.query(database.url, text, *values)


def fill(session: Session, run: Sql) -> None:
    """Messages in all states, a feed, a subscription and a polling table with a claimed, a waiting and a dead row."""
    run("CREATE TABLE orders (id int PRIMARY KEY, status text, sync bigint)")
    run("CREATE INDEX ON orders (status, id)")
    run("CREATE INDEX ON orders (sync)")
    call(session, "watch_table", "orders")
    call(session, "subscribe", "orders", "I", "told")
    run("INSERT INTO orders SELECT n, 'N' FROM generate_series(1, 5) AS n")
    call(session, "set_queue", "q", on_complete="archive")
    for n in range(4):
        session.call("send", "q", str(n))
    call(session, "send_message", "q", "later", run_at=datetime(2035, 1, 1, tzinfo=UTC))
    rows = session.call("claim_batch", "q", 3)
    session.call("dead_letter", rows[0]["id"], rows[0]["batch_key"], "no")
    session.call("complete", rows[1]["id"], rows[1]["batch_key"])
    call(session, "create_feed", "f", "orders", "id", "sync")
    session.call("publish_feed", "f", 2)
    session.call("advance_feed", "f", "c", 1)
    call(session, "adopt_table", "orders", "orders", **STATUS)
    rows = session.call("claim_rows", "orders", 3)
    session.call(
        "finish_rows",
        rows[0]["batch_key"],
        joined(failure(rows[0]["id"], "again", 0), dead_letter(rows[1]["id"], "dead")),
    )
    session.call("claim_rows", "orders", 1, None, 1)
    time.sleep(1.1)  # until the lease ends


def works(session: Session, run: Sql) -> None:
    assert run("SELECT state, count(*) AS n FROM mq.message_state WHERE type = 'q' GROUP BY 1 ORDER BY 1") == [
        {"state": "A", "n": 1},
        {"state": "C", "n": 1},
        {"state": "E", "n": 1},
        {"state": "N", "n": 2},
    ]
    assert len(session.call("claim_batch", "q", 9)) == 1
    assert [row["feed_position"] for row in session.call("fetch_feed", "f", "c")] == [2]
    assert session.call("publish_feed", "f") == [{"affected": 3}]
    run("INSERT INTO orders VALUES (6, 'N')")
    assert len(session.call("take_batch", "told", 10)) == 6
    rows = session.call("claim_rows", "orders", 10)
    assert [row["attempt"] for row in rows] == [3, 1, 1, 1]
    assert call(session, "finish_rows", rows[0]["batch_key"])[0]["done"] == 4
    assert session.call("redrive_rows", "orders") == [{"affected": 1}]
    assert session.call("unadopt_table", "orders") == [{"affected": 1}]


@pytest.mark.level(3)
@pytest.mark.parametrize("options", [[], ["--no-owner", "--no-acl"]], ids=["as it is", "no owner, no acl"])
@pytest.mark.parametrize("roles", [True, False], ids=["roles", "no roles"])
def test_a_restored_queue_is_put_right_by_apply(
    server: servers.Server, installed_database: Database, run: Sql, options: list[str], roles: bool
) -> None:
    session = installed_database.connect("before")
    fill(session, run)
    session.close()
    command = [str(programs(18) / "pg_dump"), *options, f"--dbname={installed_database.url}"]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with elsewhere(server, None if roles else "postgresql-18") as (there, url):
        # Lines about missing roles fail and the rest continues, as for a DBA.
        subprocess.run([str(programs(18) / "psql"), "-q", url], input=dump, capture_output=True, text=True, check=True)
        restored = open_database(url)
        if options or not roles:
            wrong = restored.rights_problems()
            assert any("mq" in line for line in wrong)
            if options:
                assert "PUBLIC may execute mq.send(text,text)" in wrong
                told = install.rights_problems(restored)
                assert len(wrong) > 100 > 10 > sum("PUBLIC may execute" in line for line in told) > 0
        install.apply(restored)
        assert restored.rights_problems() == []
        assert install.apply(restored) == install.Applied()
        with there.login(url, f"stranger_{uuid.uuid4().hex[:8]}") as stranger_url:
            stranger = open_database(stranger_url).connect("stranger")
            for procedure, *values in (("send", "q", "x"), ("queue_stats",), ("peek_rows", "orders")):
                with pytest.raises(NotAllowed):
                    call(stranger, procedure, *values)
            stranger.close()
        session = restored.connect("after")
        works(session, lambda text, *values: there.query(url, text, *values))
        session.close()


@pytest.mark.level(3)
@pytest.mark.parametrize("owner", ["same", "other"])
@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(15, 15, marks=pytest.mark.level(4)), (18, 18), pytest.param(15, 18, marks=pytest.mark.level(4))],
)
def test_a_restored_database_has_the_same_objects_and_the_script_can_be_run_again(
    old: int, new: int, owner: str, server_name: str
) -> None:
    if server_name != "postgresql-18":
        pytest.skip("starts the servers that it needs")
    with elsewhere(None, f"postgresql-{old}") as (here, url), elsewhere(None, f"postgresql-{new}") as (there, other):
        install.apply(open_database(url))
        session = open_database(url).connect("before")
        fill(session, lambda text, *values: here.query(url, text, *values))
        session.close()
        before = definitions(here, url)
        dump = [str(programs(new) / "pg_dump"), "-Fc", f"--dbname={url}"]
        dumped = subprocess.run(dump, check=True, capture_output=True).stdout
        there.query(
            there.url,
            "CREATE ROLE mq_producer; CREATE ROLE mq_consumer; CREATE ROLE mq_operator; CREATE ROLE mq_viewer",
        )
        there.query(there.url, "CREATE ROLE owner LOGIN PASSWORD 'owner'")
        there.query(other, f"ALTER DATABASE {other.rpartition('/')[2]} OWNER TO owner")
        if owner == "other":
            other, options = other.replace("postgres@", "owner:owner@"), ["--no-owner", "--no-acl"]
        else:
            options = []
        restore = [str(programs(new) / "pg_restore"), *options, f"--dbname={other}"]
        done = subprocess.run(restore, input=dumped, capture_output=True)
        assert done.returncode == 0 or owner == "other", done.stderr
        restored = open_database(other)
        assert definitions(there, other) == before
        assert install.pending(restored) == []
        assert restored.rights_problems(), "polling tables are known by their names only"
        script = "\n".join(install.script("postgresql"))
        psql = [str(programs(new) / "psql"), "-X", "-q", other]
        scripted = subprocess.run(psql, input=script, capture_output=True, text=True)
        assert (scripted.returncode, scripted.stdout, scripted.stderr) == (0, "", "")
        assert install.apply(restored) == install.Applied()
        session = restored.connect("after")
        assert [row for row in session.call("queue_health") if row["verdict"] == "bad"] == []
        works(session, lambda text, *values: there.query(other, text, *values))
        session.close()


def definitions(server: servers.Server, url: str) -> dict[str, str]:
    """The definition of every function, view, index and constraint, and the columns of every table."""
    rows = server.query(url, _DEFINITIONS)
    assert len(rows) > 350
    return {row["name"]: row["definition"] for row in rows}


# NOT NULL is a constraint from 18 on.
_DEFINITIONS = """\
SELECT p.oid::regprocedure::text AS name, pg_get_functiondef(p.oid) AS definition
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname IN ('mq', 'mq_internal')
UNION ALL SELECT c.oid::regclass::text, CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid)
    WHEN 'i' THEN pg_get_indexdef(c.oid)
    ELSE (SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
        a.attgenerated, pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)), ', ' ORDER BY a.attname)
    FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) || coalesce(c.reloptions::text, '') END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname IN ('mq', 'mq_internal')
UNION ALL SELECT concat(c.conrelid::regclass, ' ', c.conname), pg_get_constraintdef(c.oid)
FROM pg_constraint AS c JOIN pg_namespace AS n ON n.oid = c.connamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND c.contype <> 'n'
"""


@pytest.mark.level(3)
def test_only_a_user_who_may_create_schemas_can_keep_others_from_installing(
    server: servers.Server, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowqueue.databases.postgresql.database._INSTALL_SECONDS", 1)
    with server.login(empty_database.url, "stranger") as url, server.client(url) as stranger:
        # The number of the lock of earlier versions.
        stranger.execute("SELECT pg_advisory_lock(7230415118)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute("CREATE SCHEMA rowqueue_installing")
        with empty_database.installing(), pytest.raises(DatabaseError, match="another"), empty_database.installing():
            pass
        assert install.apply(empty_database).procedures
    assert server.query(empty_database.url, "SELECT to_regnamespace('rowqueue_installing') AS n") == [{"n": None}]


def test_another_projects_schema_is_named_and_nothing_is_changed(
    server: servers.Server, empty_database: Database, run: Sql
) -> None:
    for schema in ("mq", "mq_internal"):
        run(f"CREATE SCHEMA {schema}")
        run(f"CREATE TABLE {schema}.jobs (id int)")
        before = server.catalog(empty_database.url)
        with pytest.raises(DatabaseError, match=f"another project has a schema {schema} in database .* owned by"):
            install.apply(empty_database)
        psql = [str(programs(18) / "psql"), "-X", "-q", empty_database.url]
        done = subprocess.run(psql, input="\n".join(install.script("postgresql")), capture_output=True, text=True)
        assert done.returncode == 3 and "another project has a schema mq or mq_internal" in done.stderr
        assert server.catalog(empty_database.url) == before
        run(f"DROP SCHEMA {schema} CASCADE")


def test_the_script_refuses_a_newer_database_and_repairs_one_of_its_own_release(
    server: servers.Server, installed_database: Database, run: Sql
) -> None:
    before = server.catalog(installed_database.url)
    psql = [str(programs(18) / "psql"), "-X", "-q", installed_database.url]
    script = "\n".join(install.script("postgresql"))
    for change in ("name = 'rowqueue_9999_next'", "sha256 = 'edited'"):
        run(f"UPDATE mq.installed SET {change} WHERE name = 'rowqueue_0007_consumers'")
        done = subprocess.run(psql, input=script, capture_output=True, text=True)
        assert done.returncode == 3 and "has migration rowqueue_" in done.stderr, done.stderr
    for statement in (
        "DELETE FROM mq.installed WHERE name IN ('rowqueue_9999_next', 'rowqueue_0007_consumers')",
        "DROP TABLE mq.consumer, mq.report",
        "DROP FUNCTION mq.cancel",
        "GRANT EXECUTE ON FUNCTION mq.send(text, jsonb) TO PUBLIC",
    ):
        run(statement)
    done = subprocess.run(psql, input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert install.apply(installed_database) == install.Applied()
    assert server.catalog(installed_database.url) == before


class elsewhere:
    """Another database of this server, or of a new one without any role."""

    def __init__(self, server: servers.Server | None, fresh: str | None) -> None:
        found = servers.make(fresh) if fresh else server
        assert found
        self.server = found
        self.is_fresh = fresh is not None

    def __enter__(self) -> tuple[servers.Server, str]:
        if self.is_fresh:
            self.server.start()
        self.url = self.server.create_database()
        return self.server, self.url

    def __exit__(self, *_: object) -> None:
        if self.is_fresh:
            self.server.close()
        else:
            self.server.drop_database(self.url)


def test_wrong_owners_are_reported_and_repaired(installed_database: Database, run: Sql) -> None:
    name = f"u{uuid.uuid4().hex[:12]}"
    run(f"CREATE ROLE {name}")
    run(f"ALTER FUNCTION mq.send(text, text) OWNER TO {name}")
    run(f"ALTER TABLE mq.message OWNER TO {name}")
    run("GRANT EXECUTE ON FUNCTION mq.purge(text, text, timestamptz, bigint) TO PUBLIC")
    run("REVOKE EXECUTE ON FUNCTION mq.claim_batch(text, bigint, text, bigint) FROM mq_consumer")
    # Internal procedures: granted to a queue role that needs others, and to a user's role with a public procedure.
    run("GRANT EXECUTE ON FUNCTION mq_internal.policy(text) TO mq_producer")
    run("GRANT EXECUTE ON FUNCTION mq_internal.drop_watched, mq_internal.erase TO mq_consumer")
    run("REVOKE EXECUTE ON FUNCTION mq_internal.polled_settings FROM mq_operator")
    run(f"GRANT EXECUTE ON FUNCTION mq.resume, mq_internal.erase TO {name} WITH GRANT OPTION")
    told = "\n".join(installed_database.rights_problems())
    assert (
        "mq_producer may execute mq_internal.policy(text)" in told
        and "mq_consumer may execute mq_internal.drop_watched(" in told
    )
    assert "mq_consumer may execute mq_internal.erase(" in told and f"{name} may execute mq_internal.erase(" in told
    assert (
        f"{name} may execute mq.resume(" not in told
        and "mq_operator lacks EXECUTE on mq_internal.polled_settings(" in told
    )
    assert f"mq.message is owned by {name}" in told and f"mq.send(text,text) is owned by {name}" in told
    assert "PUBLIC may execute mq.purge(text,text,timestamp with time zone,bigint)" in told
    assert "mq_consumer lacks EXECUTE on mq.claim_batch" in told
    assert install.apply(installed_database).repaired
    assert installed_database.rights_problems() == []
    assert run("SELECT has_function_privilege(%s, 'mq.resume(text)', 'EXECUTE') AS may", name) == [{"may": True}]
    run(f"DROP OWNED BY {name}")
    run(f"DROP ROLE {name}")


@pytest.mark.level(3)
def test_the_records_of_migrations_are_found_with_any_search_path(
    server: servers.Server, installed_database: Database, run: Sql
) -> None:
    name = installed_database.url.rpartition("/")[2]
    run("CREATE SCHEMA app")
    run(f"ALTER DATABASE {name} SET search_path = app, public")
    assert install.apply(installed_database) == install.Applied()
    run("UPDATE mq.installed SET sha256 = 'x' WHERE name = 'send'")
    assert install.apply(installed_database).procedures
    installed_database.uninstall()
    left = (
        "SELECT DISTINCT relnamespace::regnamespace::text AS schema FROM pg_class"
        " WHERE strpos(relname, 'yoyo') > 0 AND relkind = 'r'"
    )
    assert run(left) == []
    install.apply(installed_database)
    assert run(left) == [{"schema": "public"}]
    run(f"ALTER DATABASE {name} RESET search_path")
    assert install.apply(installed_database) == install.Applied()
    installed_database.uninstall()
    assert run(left) == []


def test_uninstalling_gives_claimed_rows_back_and_takes_nothing_of_anybody_elses(
    installed_database: Database, run: Sql
) -> None:
    session = installed_database.connect("test")
    fill(session, run)
    session.call("claim_rows", "orders", 1)
    session.close()
    assert "A" in {row["status"] for row in run("SELECT status FROM orders")}
    run("CREATE SCHEMA shop")
    run("CREATE VIEW shop.waiting AS SELECT count(*) AS n FROM mq.ready")
    run("CREATE TABLE shop.t (id bigint DEFAULT mq.send('a', 'b'))")
    with pytest.raises(install.InstallError, match=r"view shop\.waiting"):
        install.uninstall(installed_database)
    run("DROP VIEW shop.waiting")
    with pytest.raises(install.InstallError, match=r"shop\.t"):
        install.uninstall(installed_database)
    run("DROP TABLE shop.t")
    assert install.uninstall(installed_database) == (["orders"], [])
    assert {row["status"] for row in run("SELECT status FROM orders")} <= {"N", "D", "E"}
    assert run("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == []


# All settings of a group at once, because each needs an installation. Settings that a version lacks are left out.
SETTINGS: list[dict[str, str]] = [
    {
        "standard_conforming_strings": "off",
        "backslash_quote": "off",
        "escape_string_warning": "off",
        "search_path": "nowhere, public",
        "transform_null_equals": "on",
        "array_nulls": "off",
        "statement_timeout": "60s",
        "lock_timeout": "60s",
        "check_function_bodies": "off",
        "default_table_access_method": "heap",
        "default_toast_compression": "pglz",
        "default_transaction_isolation": "repeatable read",
        "plan_cache_mode": "force_generic_plan",
        "lc_messages": "POSIX",
        "jit": "on",
        "jit_above_cost": "0",
        "jit_inline_above_cost": "0",
        "jit_optimize_above_cost": "0",
        "max_parallel_workers_per_gather": "4",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0",
        "min_parallel_index_scan_size": "0",
        "force_parallel_mode": "on",
        "debug_parallel_query": "on",
        "work_mem": "64kB",
        "synchronous_commit": "off",
    },
    {
        "datestyle": "SQL, DMY",
        "intervalstyle": "sql_standard",
        "timezone": "Asia/Kolkata",
        "quote_all_identifiers": "on",
        "search_path": "''",
        "default_transaction_isolation": "serializable",
        "default_transaction_deferrable": "on",
        "bytea_output": "escape",
        "extra_float_digits": "-3",
        "xmlbinary": "hex",
        "client_min_messages": "error",
        "row_security": "off",
        "client_encoding": "LATIN1",
        "plan_cache_mode": "force_custom_plan",
        "lc_messages": "C.UTF-8",
        "max_parallel_workers": "0",
        "from_collapse_limit": "1",
        "join_collapse_limit": "1",
        "constraint_exclusion": "on",
        "cursor_tuple_fraction": "1",
    },
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["strings", "values"])
def test_a_setting_that_a_dba_may_change_changes_nothing(
    server: servers.Server, empty_database: Database, settings: dict[str, str]
) -> None:
    url = empty_database.url

    def run(text: str, *values: object) -> list[dict[str, Any]]:
        return server.query(f"{url}?options=-csearch_path%3Dpublic", text, *values)

    known = {row["name"] for row in run("SELECT name FROM pg_settings")}
    if settings["plan_cache_mode"] == "force_custom_plan":
        settings = settings | {name: "off" for name in known if name.startswith("enable_")}
    for setting in known & settings.keys():
        value = settings[setting]
        run(
            f"ALTER DATABASE {url.rpartition('/')[2]} SET {setting} = "
            + (value if setting == "search_path" else f"'{value}'")
        )
    install.apply(empty_database)
    assert install.apply(empty_database) == install.Applied()
    session = open_database(url).connect("test")
    fill(session, run)
    assert not [row for row in call(session, "queue_health") if row["name"] == "changed_objects" and row["measured"]]
    # A name that a lost backslash would shorten, and the name that it would then equal.
    run("CREATE TABLE stock (id int PRIMARY KEY, sync bigint)")
    run("CREATE TABLE tock (id int PRIMARY KEY, sync bigint)")
    for table in ("stock", "tock"):
        run(f"CREATE INDEX ON {table} (sync)")
        run(f"INSERT INTO {table} VALUES (1)")
    call(session, "create_feed", "stock", " stock ", "id", "sync")
    assert session.call("publish_feed", "stock") == [{"affected": 1}]
    assert run("SELECT sync FROM stock") == [{"sync": 1}] and run("SELECT sync FROM tock") == [{"sync": None}]
    works(session, run)
    run("SELECT mq.send('late', %s)", "na\u00efve")  # in the database's encoding for clients
    [row] = session.call("claim_batch", "late", 1, None, 60)
    assert row["lease_until"] > datetime.now(UTC) and row["body"] == "na\u00efve"
    session.call("finish_batch", row["batch_key"], failure(row["id"], "two\nlines", 0), 0)
    assert session.call("peek", "late")[0]["error"] == "two\nlines"
    session.close()
    session = open_database(f"{url}?client_encoding=LATIN1").connect("test")
    session.call("send", "arrows", TEXT)
    assert [row["body"] for row in session.call("take_batch", "arrows", 9)] == [TEXT]
    session.close()
    assert install.uninstall(empty_database) == ([], [])


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_a_database_of_another_encoding_is_refused_before_anything_is_created(
    server: servers.Server, encoding: str
) -> None:
    """Some texts cannot be stored in it, and its clients hash the name of a queue differently."""
    name = servers.base.new_name()
    server.query(
        server.url,
        f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    url = f"{server.url.rpartition('/')[0]}/{name}"
    wanted = f"database {name} has the encoding {encoding}, but the queue needs UTF8"
    with pytest.raises(DatabaseError, match=rf"{wanted}.*CREATE DATABASE \.\.\. ENCODING 'UTF8'"):
        install.apply(open_database(url))
    scripted = subprocess.run(
        [str(programs(18) / "psql"), "-q", url],
        input="\n".join(install.script("postgresql")),
        capture_output=True,
        text=True,
    )
    assert scripted.returncode == 3 and wanted in scripted.stderr and "CREATE DATABASE ... ENCODING" in scripted.stderr
    made = "SELECT relname FROM pg_class WHERE relnamespace IN (to_regnamespace('mq'), to_regnamespace('public'))"
    assert server.query(url, made) == []
    # A dump of the queue can be restored there.
    assert wanted in open_database(url).warnings_about_installation()[0]
    server.drop_database(url)


def test_disabled_triggers_send_nothing_and_claims_continue(
    server: servers.Server, installed_database: Database, run: Sql
) -> None:
    """session_replication_role = replica, as restores and replication set it: triggers do not fire."""
    url = f"{installed_database.url}?options=-csession_replication_role%3Dreplica"
    session = open_database(url).connect("test")
    fill(session, lambda text, *values: server.query(url, text, *values))
    assert session.call("take_batch", "told", 10) == []
    for n in range(5):
        session.call("send", "told", str(n))
    works(session, run)
    session.close()


@pytest.mark.level(3)
def test_a_database_that_is_read_only_by_default_raises_read_only(
    server: servers.Server, empty_database: Database, run: Sql
) -> None:
    name = empty_database.url.rpartition("/")[2]
    writable = f"{empty_database.url}?options=-cdefault_transaction_read_only%3Doff"
    read_only = f"ALTER DATABASE {name} SET default_transaction_read_only = on"
    run(read_only)
    with pytest.raises(DatabaseError, match=r"the server takes no changes: .* default_transaction_read_only"):
        install.apply(empty_database)
    install.apply(open_database(writable))
    session = open_database(writable).connect("test")
    fill(session, lambda text, *values: server.query(writable, text, *values))
    works(session, lambda text, *values: server.query(writable, text, *values))
    session.call("send", "q", "x")
    session.close()
    refused_session = empty_database.connect("test")
    for procedure, *values in (
        ("send", "q", "x"),
        ("claim_batch", "q"),
        ("take_batch", "q"),
        ("publish_feed", "f"),
        ("watch_table", "orders"),
    ):
        with pytest.raises(ReadOnly, match=r"the server takes no changes: .* default_transaction_read_only"):
            call(refused_session, procedure, *values)
    assert [(row["type"], row["ready"]) for row in refused_session.call("queue_stats", "nowhere")] == [("nowhere", 0)]
    refused_session.close()


@pytest.mark.parametrize(
    ("setting", "kind", "message"),
    [
        ("lock_timeout", Conflict, "canceling statement due to lock timeout"),
        ("statement_timeout", DatabaseError, "canceling statement due to statement timeout"),
    ],
)
def test_a_timeout_is_reported_and_leaves_no_process(
    server: servers.Server, installed_database: Database, run: Sql, setting: str, kind: type[Exception], message: str
) -> None:
    session = installed_database.connect("before")
    fill(session, run)
    session.close()
    run("SELECT mq.set_option('o', 'ordered', '1')")
    before = run("SELECT state, count(*) AS n FROM mq.message_state GROUP BY 1 ORDER BY 1")
    limited = open_database(f"{installed_database.url}?options=-c{setting}%3D300ms").connect("limited")
    with server.client(installed_database.url) as other, other.transaction():
        other.execute("LOCK TABLE mq.message, mq.polled, mq.feed, orders IN ACCESS EXCLUSIVE MODE")
        for procedure, *values in (
            ("send", "q", "x"),
            ("claim_batch", "q"),
            ("publish_feed", "f"),
            ("claim_rows", "orders"),
            ("watch_table", "orders"),
        ):
            with pytest.raises(kind, match=message):
                call(limited, procedure, *values)
    assert run("SELECT state, count(*) AS n FROM mq.message_state GROUP BY 1 ORDER BY 1") == before
    limited.execute(f"SET {setting} = 0")  # which a busy machine might reach
    works(limited, run)
    limited.close()


def test_a_server_that_speaks_another_language_is_understood() -> None:
    """Errors are recognised by number; the shown text is the server's own."""
    server = servers.make("postgresql-15")
    # For gettext any locale but C will do: LANGUAGE says which language.
    server.environment = {"LANGUAGE": "de"}
    server.start()
    try:
        url = server.create_database()
        server.query(server.url, "ALTER SYSTEM SET lc_messages = 'C.UTF-8'")
        server.query(server.url, "SELECT pg_reload_conf()")
        database = open_database(url)
        with pytest.raises(SchemaMissing, match="runner apply"):
            database.connect("test").call("send", "q", "x")
        install.apply(database)
        session = database.connect("test")
        run = lambda text, *values: server.query(url, text, *values)  # noqa: E731
        fill(session, run)
        with refused("not_found"):
            session.call("claim_rows", "nowhere")
        with refused("invalid_argument", "size: must be"):
            session.call("claim_batch", "q", 1 << 31)
        with pytest.raises(DatabaseError, match="existiert nicht"):
            open_database(url + "x").connect("test")
        run("DROP INDEX orders_status_id_idx")
        run("UPDATE mq.polled SET scanned_at = NULL")
        with refused("unsuitable_table", "CREATE INDEX ON public.orders"):
            session.call("claim_rows", "orders")
        run("CREATE INDEX ON orders (status, id)")
        works(session, run)
        with server.login(url, "stranger") as stranger_url, pytest.raises(NotAllowed):
            open_database(stranger_url).connect("test").call("send", "q", "x")
        session.close()
        with pytest.raises(DatabaseError, match=r"Read-Only-Transaktion"):
            open_database(url + "?options=-cdefault_transaction_read_only%3Don").connect("test").call("send", "q", "x")
    finally:
        server.close()


def test_a_time_that_no_client_can_show_is_refused(installed_database: Database, run: Sql) -> None:
    with pytest.raises(Exception, match="run_at: must be from 1970 to"):
        run("SELECT mq.send_message('a', 'b', '4713-01-01 BC')")


def test_types_with_operators_of_their_own_are_keys_like_others(installed_database: Database, run: Sql) -> None:
    """A type with operators outside the queue's search path, such as those of ltree and citext."""
    run("CREATE SCHEMA ext")
    if not run("SELECT 1 FROM pg_available_extensions WHERE name = 'ltree'"):
        pytest.skip("the server has no ltree")
    run("CREATE EXTENSION ltree SCHEMA ext")
    run("CREATE EXTENSION citext SCHEMA ext")
    run("CREATE TABLE t (p ext.ltree PRIMARY KEY, status ext.citext)")
    run("CREATE INDEX ON t (status, p)")
    run("INSERT INTO t SELECT ('a.b' || n)::ext.ltree, 'n' FROM generate_series(1, 4) AS n")
    session = installed_database.connect("test")
    call(session, "adopt_table", "t", "t", **{**STATUS, "key_columns": "p"})
    rows = session.call("claim_rows", "t", 2)
    assert call(session, "finish_rows", rows[0]["batch_key"], failure(rows[1]["id"], "x", 0))[0]["done"] == 1
    session.call("claim_rows", "t", 2, None, 1)
    time.sleep(1.1)  # until the lease ends
    rows = session.call("claim_rows", "t", 2)
    assert call(session, "finish_rows", rows[0]["batch_key"])[0]["done"] == 2
    session.close()


def test_an_object_dropped_after_adoption_is_named_with_the_statement_to_run(
    installed_database: Database, run: Sql
) -> None:
    session = installed_database.connect("test")
    fill(session, run)
    run("DROP INDEX orders_status_id_idx")
    with refused("unsuitable_table", "CREATE INDEX ON public.orders (status, id)"):
        run("UPDATE mq.polled SET scanned_at = NULL")
        session.call("claim_rows", "orders")
    run("CREATE INDEX ON orders (status, id)")
    run("ALTER TABLE orders RENAME id TO number")
    with refused("unsuitable_table", "unadopt_table, then adopt_table again"):
        session.call("claim_rows", "orders")
    with refused(
        "invalid_argument", "ALTER TABLE public.orders ADD COLUMN gone bigint; CREATE INDEX ON public.orders (gone)"
    ):
        call(session, "create_feed", "g", "orders", "number", "gone")
    session.close()


def test_stuck_groups_are_found_and_rescue_expired_repairs_them(installed_database: Database, run: Sql) -> None:
    session = installed_database.connect("test")
    call(session, "set_queue", "o", ordered=1)
    for group in "ab":
        for body in "12":
            call(session, "send_message", "o", body, group_key=group)
    session.call("claim_batch", "o", 1)

    def stuck() -> Any:
        [row] = [row for row in call(session, "queue_health") if row["name"] == "stuck_groups"]
        return row["verdict"], row["measured"]

    assert stuck() == ("ok", 0)
    run("DELETE FROM mq.ready WHERE type = 'o'")
    assert stuck() == ("bad", 1)
    assert session.call("claim_batch", "o", 10) == []
    session.call("rescue_expired", "o")
    assert stuck() == ("ok", 0)
    assert [row["group_key"] for row in session.call("claim_batch", "o", 10)] == ["b"]
    run("DELETE FROM mq.batch WHERE type = 'o'")
    assert stuck()[0] == "bad"
    session.call("rescue_expired")
    assert stuck() == ("ok", 0)
    session.close()


@pytest.fixture
def many(installed_database: Database, run: Sql) -> Iterator[Session]:
    run(
        "INSERT INTO mq.message (run_at, created_at, priority, type, body)"
        " SELECT now(), now(), 0, 'type.' || n, 'b' FROM generate_series(1, 100000) AS n"
    )
    run("INSERT INTO mq.ready SELECT run_at, id, 0, 0, type FROM mq.message")
    run("INSERT INTO mq.dead SELECT id, now(), 1, type FROM mq.message WHERE id & 1 = 0")
    session = installed_database.connect("test")
    yield session
    session.close()


@pytest.mark.level(3)
def test_a_hundred_thousand_types_are_counted_in_a_moment(many: Session, run: Sql) -> None:
    run("SET statement_timeout = 0")
    rows = call(many, "queue_stats")
    assert len(rows) == 100_000
    assert sum(row["ready"] for row in rows) == 100_000 and sum(row["dead"] for row in rows) == 50_000


def test_a_restored_core_is_a_core_and_can_be_extended(server: servers.Server, empty_database: Database) -> None:
    install.apply(empty_database, areas=["queue"])
    with closing(empty_database.connect("before")) as session:
        session.call("send_batch", "q", "a\nb")
        [row] = session.call("claim_batch", "q", 1)
    command = [str(programs(18) / "pg_dump"), f"--dbname={empty_database.url}"]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with elsewhere(server, None) as (_, url):
        subprocess.run([str(programs(18) / "psql"), "-q", url], input=dump, capture_output=True, text=True, check=True)
        restored = open_database(url)
        assert restored.areas() == empty_database.areas()
        assert install.apply(restored) == install.Applied()
        install.apply(restored, areas=["schedules"])
        with closing(restored.connect("after")) as session:
            assert session.call("complete_batch", row["batch_key"]) == [{"affected": 1}]
            assert [row["body"] for row in session.call("claim_batch", "q", 9)] == ["b"]
