"""MySQL and MariaDB, where DDL commits: an interrupted installation is continued by the next one."""

import re
import signal
import subprocess
import sys
from contextlib import closing, suppress
from typing import Any

import pytest
from rowqueue.databases import AreaMissing, Database, DatabaseError, open_database
from rowqueue.databases.mysql.connection import Connection
from rowqueue.install import apply as install
from servers import Server
from support.waiting import until

pytestmark = pytest.mark.product("mysql", "mariadb")


class Killed(BaseException):
    """As a signal would end the process."""


def apply_until(database: Database, statements: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Apply, killed after a number of statements that change something; returns how many there were."""
    done = 0
    query = Connection.query

    def counted(connection: Connection, sql: Any, unbuffered: bool = False) -> Any:
        nonlocal done
        text = sql.decode("utf-8", "replace") if isinstance(sql, bytes) else sql
        result = query(connection, sql, unbuffered)
        if re.match(r"\s*(CREATE|DROP|GRANT|REVOKE|INSERT|REPLACE|ALTER|UPDATE)\b", text):
            done += 1
            if done == statements:
                connection._force_close()
                raise Killed
        return result

    with monkeypatch.context() as patched, suppress(Killed, DatabaseError):
        patched.setattr(Connection, "query", counted)
        install.apply(database)
    return done


@pytest.mark.level(4)
def test_apply_continues_when_it_was_killed_after_any_statement(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = open_database(server.create_database())
    count = apply_until(whole, -1, monkeypatch)
    catalog = server.catalog(whole.url)
    # After some of the first ones, which create tables, and after a few of the others.
    for n in (1, 2, 5, 9, 17, 30, 60, count // 2, count - 1):
        database = open_database(server.create_database())
        assert apply_until(database, n, monkeypatch) == n
        install.apply(database, break_lock=True)
        assert server.catalog(database.url) == catalog, n
        assert install.apply(database) == install.Applied(), n
        server.drop_database(database.url)
    server.drop_database(whole.url)


@pytest.mark.level(3)
def test_a_setting_is_refused_until_all_files_of_its_area_are_installed(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    install.apply(empty_database, areas=["queue"])
    query = Connection.query

    def killed(connection: Connection, sql: Any, unbuffered: bool = False) -> Any:
        text = sql.decode("utf-8", "replace") if isinstance(sql, bytes) else sql
        if re.match(r"CREATE .* PROCEDURE imq_claim_ring\(", text):
            connection._force_close()
            raise Killed
        return query(connection, sql, unbuffered)

    with monkeypatch.context() as patched, suppress(Killed, DatabaseError):
        patched.setattr(Connection, "query", killed)
        install.apply(empty_database, areas=["ring"])
    with closing(empty_database.connect("test")) as session:
        with pytest.raises(AreaMissing):
            session.call("set_queue", "q", '{"ring": 1}')
        install.apply(empty_database)
        assert session.call("set_queue", "q", '{"ring": 1}')[0]["ring"] == 1


# Statements that a run repeats without effect; not migrations.
REPEATED = re.compile(r"\s*(DROP PROCEDURE|CREATE DEFINER|GRANT|REVOKE|REPLACE INTO mq_installed)\b")

VARYING = re.compile(r"'[0-9a-f]{8}-[-0-9a-f]+'|'[-\d:. ]+'")  # in yoyo's log: an id and the time


@pytest.mark.level(4)
@pytest.mark.product("mysql")
def test_apply_makes_progress_when_it_is_killed_after_every_statement(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run is killed after the first statement that no earlier run has run; the next one continues from there."""
    whole, database = (open_database(server.create_database()) for _ in range(2))
    install.apply(whole)
    query, seen = Connection.query, set[str]()

    def killed(connection: Connection, sql: Any, unbuffered: bool = False) -> Any:
        text = sql.decode("utf-8", "replace") if isinstance(sql, bytes) else sql
        if not re.match(r"\s*(CREATE|DROP|GRANT|REVOKE|INSERT|REPLACE|ALTER|UPDATE|CALL imq_(grant|object))", text):
            return query(connection, sql, unbuffered)
        if text in seen and REPEATED.match(text):
            return 0
        result = query(connection, sql, unbuffered)
        if (what := VARYING.sub("", text)) not in seen:
            seen.update((what, text))
            connection._force_close()
            raise Killed
        return result

    runs = 0
    with monkeypatch.context() as patched:
        patched.setattr(Connection, "query", killed)
        while True:
            runs += 1
            before = len(seen)
            try:
                install.apply(database, break_lock=True)
                break
            except (Killed, DatabaseError):
                assert len(seen) > before, "it does not get on"
    assert server.catalog(database.url) == server.catalog(whole.url)
    assert install.apply(database) == install.Applied()
    assert runs > len(install.files("mysql")) * 2
    for made in (database, whole):
        server.drop_database(made.url)


@pytest.mark.level(4)
@pytest.mark.product("mysql")
def test_apply_continues_after_an_installation_that_was_killed(
    server: Server,
) -> None:
    """SIGKILL when a given number of tables or procedures exists."""
    made = (
        "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE())"
        " + (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE()) AS n"
    )
    whole = open_database(server.create_database())
    install.apply(whole)
    for count in (5, 40, 100):
        database = open_database(server.create_database())
        command = [sys.executable, "-m", "rowqueue.cli", "apply", "--database", database.url]
        runner = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def is_there(database: Database = database, count: int = count) -> bool:
            return bool(server.query(database.url, made)[0]["n"] >= count)

        until(is_there, f"{count} objects")
        runner.kill()
        assert runner.wait() == -signal.SIGKILL
        install.apply(database, break_lock=True)
        assert server.catalog(database.url) == server.catalog(whole.url)
        server.drop_database(database.url)
    server.drop_database(whole.url)
