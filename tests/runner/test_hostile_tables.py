"""A user who lists, counts, scrapes, shows or uninstalls evaluates nothing that the owner of a table has defined.

Mallory has the three roles of the queue and tables of its own, with a feed, a polling table and subscriptions. Then it
changes what the tables are. Its functions and triggers record the user that runs them. An administrator and an operator
look at everything, and the administrator uninstalls.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from rowqueue.cli import main
from rowqueue.databases import Database, Session, open_database
from rowqueue.extras.web.pages import PAGES
from servers import Server
from support.pages import Serve, serve
from support.queues import call

__all__ = ["serve"]

ROLES = ("mq_producer", "mq_consumer", "mq_operator")
NAMES = ("ev", "job")  # Mallory's table with a feed, and its polling table


@dataclass(frozen=True)
class Trap:
    """How Mallory prepares an engine. {m} is its login."""

    # By the administrator: Mallory's place, without any right on the place of others.
    place: tuple[str, ...]
    # By Mallory: what records who runs it.
    before: tuple[str, ...]
    # By Mallory, after it has made a feed of {m.}ev and claimed a row of {m.}job.
    after: tuple[str, ...]
    # What precedes Mallory's objects; the server's default place where there is one for all.
    prefix: str = "{m}."
    # A query that returns rows for what has run.
    ran: str = "SELECT who FROM {m.}trace"
    gone: tuple[str, ...] = ()


TABLES = (
    "CREATE TABLE {m.}ev (id int NOT NULL PRIMARY KEY, v int, sync bigint)",
    "CREATE INDEX ev_sync ON {m.}ev (sync)",
    "CREATE TABLE {m.}job (id int NOT NULL PRIMARY KEY, status char(1))",
    "CREATE INDEX job_status ON {m.}job (status, id)",
    "INSERT INTO {m.}ev (id, v) VALUES (1, 1)",
    "INSERT INTO {m.}job VALUES (1, 'N')",
)

POSTGRESQL = Trap(
    place=("CREATE SCHEMA {m} AUTHORIZATION {m}", "GRANT USAGE ON SCHEMA {m} TO PUBLIC"),
    before=(
        # A sequence keeps its value after a rollback.
        "CREATE SEQUENCE {m.}trace; GRANT ALL ON {m.}trace TO PUBLIC",
        "CREATE FUNCTION {m.}evil(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS"
        " $$ BEGIN IF current_user <> '{m}' THEN PERFORM nextval('{m.}trace'); END IF; RETURN NULL; END $$",
        "CREATE FUNCTION {m.}spring() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM {m.}evil(1); RETURN NEW; END $$",
        *TABLES,
        "CREATE TABLE {m.}shown (id int PRIMARY KEY, sync bigint); CREATE INDEX ON {m.}shown (sync)",
        "SELECT mq.create_feed('{m}shown', '{m.}shown', 'id', 'sync')",
    ),
    after=(
        # The planner evaluates both at each query of the table; the policy holds for all but superusers.
        "CREATE INDEX ON {m.}ev ({m.}evil(1)); CREATE INDEX ON {m.}ev (v) WHERE {m.}evil(2) IS NULL",
        "ALTER TABLE {m.}ev ENABLE ROW LEVEL SECURITY; ALTER TABLE {m.}ev FORCE ROW LEVEL SECURITY",
        "CREATE POLICY p ON {m.}ev USING ({m.}evil(v) IS NULL)",
        "GRANT SELECT, UPDATE, DELETE, TRIGGER ON {m.}ev, {m.}job TO PUBLIC",
        "DROP TABLE {m.}shown; CREATE VIEW {m.}shown AS SELECT 1 AS id, {m.}evil(v) AS sync FROM {m.}ev",
        "GRANT SELECT ON {m.}shown TO PUBLIC",
        "CREATE TRIGGER x BEFORE UPDATE OR DELETE ON {m.}job FOR EACH ROW EXECUTE FUNCTION {m.}spring()",
        "CREATE INDEX ON {m.}job ({m.}evil(3))",
    ),
    ran="SELECT last_value FROM {m.}trace WHERE is_called",
    gone=("DROP OWNED BY {m} CASCADE",),
)

MYSQL = Trap(
    place=(
        "CREATE DATABASE {m}",
        "GRANT ALL ON {m}.* TO {m}@'%' WITH GRANT OPTION",
        "GRANT SELECT, TRIGGER ON {m}.* TO 'mq_owner'@'localhost'",
        # With log_bin_trust_function_creators Mallory could create it.
        "CREATE FUNCTION {m.}evil(v bigint) RETURNS bigint DETERMINISTIC SQL SECURITY INVOKER"
        " BEGIN IF CURRENT_USER() NOT LIKE '{m}@%' THEN INSERT INTO {m.}trace VALUES (CURRENT_USER()); END IF;"
        " RETURN NULL; END",
    ),
    before=(
        "CREATE TABLE {m.}trace (who varchar(200)) ENGINE = MyISAM",  # keeps its rows after a rollback
        *TABLES,
    ),
    after=(
        "RENAME TABLE {m.}ev TO {m.}ev_base, {m.}job TO {m.}job_base",
        "CREATE SQL SECURITY INVOKER VIEW {m.}ev AS SELECT id, v, {m.}evil(id) AS sync FROM {m.}ev_base",
        "CREATE SQL SECURITY INVOKER VIEW {m.}job AS SELECT * FROM {m.}job_base WHERE {m.}evil(id) IS NULL",
    ),
    gone=("REVOKE SELECT, TRIGGER ON {m}.* FROM 'mq_owner'@'localhost'", "DROP DATABASE {m}"),
)

FIREBIRD = Trap(
    place=tuple(f"GRANT CREATE {kind} TO USER {{m}}" for kind in ("TABLE", "FUNCTION", "PROCEDURE", "VIEW")),
    before=(
        "CREATE TABLE trace (who varchar(100))",
        "GRANT INSERT ON trace TO PUBLIC",
        "CREATE FUNCTION evil RETURNS bigint AS BEGIN IF (CURRENT_USER <> UPPER('{m}')) THEN"
        " IN AUTONOMOUS TRANSACTION DO EXECUTE STATEMENT 'INSERT INTO trace VALUES (CURRENT_USER)';"
        " RETURN NULL; END",
        "GRANT EXECUTE ON FUNCTION evil TO PUBLIC",
        *TABLES,
    ),
    after=(
        "DROP INDEX ev_sync",
        "ALTER TABLE ev DROP sync",
        "ALTER TABLE ev ADD sync bigint COMPUTED BY (evil())",
        "GRANT ALL ON ev TO PUBLIC",
        "GRANT ALL ON job TO PUBLIC",
        "CREATE TRIGGER x FOR job BEFORE UPDATE OR DELETE AS DECLARE n bigint; BEGIN n = evil(); END",
    ),
    prefix="",
)

SQLSERVER = Trap(
    place=("CREATE SCHEMA {m} AUTHORIZATION {m}", "GRANT CREATE TABLE, CREATE FUNCTION TO {m}"),
    before=("CREATE TABLE {m.}trace (who sysname)", "GRANT INSERT ON {m.}trace TO public", *TABLES),
    after=(
        "CREATE TRIGGER {m.}x ON {m.}job AFTER UPDATE, DELETE AS"
        " IF USER_NAME() <> '{m}' INSERT INTO {m.}trace VALUES (USER_NAME())",
        "GRANT SELECT, UPDATE, DELETE ON {m.}job TO public",
    ),
)

TRAPS = {"postgresql": POSTGRESQL, "mysql": MYSQL, "firebird": FIREBIRD, "sqlserver": SQLSERVER}


@dataclass
class Mallory:
    login: str
    trap: Trap
    database: Database
    server: Server
    feeds: list[str] = field(default_factory=list)

    def filled(self, text: str) -> str:
        return text.replace("{m.}", self.trap.prefix).replace("{m}", self.login)

    def run(self, url: str, statements: tuple[str, ...]) -> None:
        with self.server.client(url) as client:
            for statement in statements:
                client.execute(self.filled(statement))

    def ran(self) -> list[dict[str, Any]]:
        """Who has run Mallory's code, except Mallory."""
        return self.server.query(self.database.url, self.filled(self.trap.ran))


@pytest.fixture
def mallory(server: Server, installed_database: Database) -> Iterator[Mallory]:
    m = Mallory(f"mall_{uuid.uuid4().hex[:8]}", TRAPS[installed_database.name], installed_database, server)
    admin = installed_database.url
    with ExitStack() as stack:
        if installed_database.name == "firebird":  # a session has one role there: the rights themselves
            url = stack.enter_context(server.login(admin, m.login))
            # In one session: a session for each right takes seconds.
            with server.client(admin) as client:
                for role in ROLES:
                    for row in server.query(
                        admin,
                        "SELECT IIF(rdb$object_type = 15, 'FUNCTION ', 'PROCEDURE ') || TRIM(rdb$relation_name) AS name"
                        f" FROM rdb$user_privileges WHERE rdb$user = '{role.upper()}' AND rdb$privilege = 'X'",
                    ):
                        client.execute(f"GRANT EXECUTE ON {row['name']} TO USER {m.login}")
        else:
            url = stack.enter_context(server.login(admin, m.login, *ROLES))
        m.run(admin, m.trap.place)
        stack.callback(m.run, admin, m.trap.gone)
        m.run(url, m.trap.before)
        with closing(open_database(url).connect("mallory")) as session:
            ev, job = (m.filled("{m.}" + name) for name in NAMES)
            call(session, "create_feed", m.login, ev, "id", "sync")
            call(
                session,
                "adopt_table",
                m.login,
                job,
                key_columns="id",
                status_column="status",
                ready_value="N",
                active_value="A",
                done_value="D",
                error_value="E",
            )
            assert len(call(session, "claim_rows", m.login, 1)) == 1
            with closing(installed_database.connect("the queue's owner")) as owner:
                for row in call(owner, "watch_table", ev):
                    owner.execute(row["statement"])
            call(session, "subscribe", ev, "IUD", m.login)
        m.run(url, m.trap.after)
        m.feeds = [row["feed"] for row in server.query(admin, f"SELECT name AS feed FROM {server.table('feed')}")]
        assert m.ran() == []
        yield m


def look(session: Session, feeds: list[str]) -> None:
    """The calls of everything that lists and shows."""
    for procedure in (
        "queue_stats",
        "queue_health",
        "list_polling_tables",
        "list_subscriptions",
        "list_queues",
        "list_consumers",
    ):
        call(session, procedure)
    assert {row["unpublished"] for row in call(session, "list_feeds")} == {None}
    for feed in feeds:
        assert {row["unpublished"] for row in call(session, "list_feeds", feed)} == {None}


@pytest.mark.level(3)
def test_looking_and_uninstalling_run_no_code_of_a_tables_owner(
    mallory: Mallory,
    installed_database: Database,
    server: Server,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One test, because Mallory's tables take longer to prepare than to look at. Uninstalling changes none of them."""
    url = installed_database.url

    def run(*arguments: str) -> tuple[int, str, str]:
        """The runner's commands in this process, which saves their start."""
        monkeypatch.setattr("sys.argv", ["runner", *arguments])
        monkeypatch.setenv("RUNNER_DATABASE", url)
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capsys.readouterr()

    # An account that looks at the queue for others; no administrator.
    with server.login(url, f"duty_{uuid.uuid4().hex[:8]}", "mq_operator") as operator:
        for each in (url, operator):
            with closing(open_database(each).connect("looking")) as session:
                look(session, mallory.feeds)
            assert mallory.ran() == []
        site = serve("--database", f"admin={url}", "--database", f"duty={operator}")
        for name in ("admin", "duty"):
            for path in PAGES:
                found = site.ask(f"{path}?name={mallory.login}&type={mallory.login}&id=1&db={name}").status
                # There is no message 1; an operator without rights on a polling table is refused its rows.
                assert found in {"/message": (404,), "/table": (200, 400)}.get(path, (200,)), (path, name)
            assert mallory.ran() == []
        figures = site.ask("/metrics").text
        for name in ("admin", "duty"):
            assert re.search(f'rowqueue_feed_last_position.*"{name}"', figures), figures
        assert mallory.ran() == []
        assert site.running.stop() == 0
    for command in (["stats"], ["doctor"], ["feed", "list"], ["feed", "list", mallory.login], ["table", "list"]):
        code, _, errors = run(*command)
        assert code == 0 or command == ["doctor"], errors
    assert mallory.ran() == []

    code, _, errors = run("uninstall", "--yes")
    assert code == 1
    assert mallory.login in errors and "--force" in errors, errors
    assert installed_database.installed() is not None
    code, output, errors = run("uninstall", "--yes", "--force")
    assert (code, output) == (0, f"uninstalled; left: {mallory.login}\n"), errors
    assert installed_database.installed() is None
    assert mallory.ran() == []
    job = mallory.filled("{m.}job" + ("_base" if installed_database.name == "mysql" else ""))
    assert [row["status"] for row in server.query(url, f"SELECT status FROM {job}")] == ["A"]
