"""MySQL and MariaDB: DDL commits, so an installation that ends anywhere is gone on with by the next one."""

import re
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Database, DatabaseError, open_database
from rowqueue.databases.mysql import _Connection
from servers import Server
from servers.clusters import until

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_engine]


class Killed(BaseException):
    """As a signal would end the process."""


def apply_until(database: Database, statements: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Apply, killed behind so many statements that change something; how many there were."""
    done = 0
    query = _Connection.query

    def counted(connection: _Connection, sql: Any, unbuffered: bool = False) -> Any:
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
        patched.setattr(_Connection, "query", counted)
        install.apply(database)
    return done


@pytest.mark.long
def test_an_installation_that_is_killed_behind_any_statement_is_gone_on_with(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = open_database(server.create_database())
    count = apply_until(whole, -1, monkeypatch)
    catalog = server.catalog(whole.url)
    # Behind some of the first ones, which make tables, and behind a few of the others.
    for n in (1, 2, 5, 9, 17, 30, 60, count // 2, count - 1):
        database = open_database(server.create_database())
        assert apply_until(database, n, monkeypatch) == n
        install.apply(database, break_lock=True)
        assert server.catalog(database.url) == catalog, n
        assert install.apply(database) == install.Applied(), n
        server.drop_database(database.url)
    server.drop_database(whole.url)


# What a run repeats of the runs before, which changes nothing: not migrations, nor what is made for a moment.
REPEATED = re.compile(
    r"\s*(DROP PROCEDURE(?!.* mq_grant_more)|CREATE DEFINER|GRANT|REVOKE|REPLACE INTO mq_installed)\b"
)

VARYING = re.compile(r"'[0-9a-f]{8}-[-0-9a-f]+'|'[-\d:. ]+'")  # in yoyo's log: a number of its own, and the time


@pytest.mark.long
@pytest.mark.product("mysql")
def test_an_installation_that_is_killed_behind_every_statement_gets_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run is killed behind the first statement that none before it has run; the next one begins from there."""
    whole, database = (open_database(server.create_database()) for _ in range(2))
    install.apply(whole)
    query, seen = _Connection.query, set[str]()

    def killed(connection: _Connection, sql: Any, unbuffered: bool = False) -> Any:
        text = sql.decode("utf-8", "replace") if isinstance(sql, bytes) else sql
        if not re.match(r"\s*(CREATE|DROP|GRANT|REVOKE|INSERT|REPLACE|ALTER|UPDATE|CALL mq_(grant|object))", text):
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
        patched.setattr(_Connection, "query", killed)
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


@pytest.mark.long
@pytest.mark.product("mysql")
def test_a_runner_that_is_killed_while_it_installs_is_gone_on_with(
    server: Server,
) -> None:
    """SIGKILL, at whatever it is about when so many tables or procedures are there."""
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
