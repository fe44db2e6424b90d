"""PostgreSQL: an installation whose process is killed after any of its statements is continued by the next one."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg._connection_base import BaseConnection
from rowqueue.databases import Database, migrations, open_database
from rowqueue.install import apply as install
from servers import Server

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.product("postgresql")]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long yoyo tries to get its lock, even after its connection is lost."""
    monkeypatch.setattr(migrations, "LOCK_SECONDS", 0.5)


_WRITES = re.compile(r"\W*(?!SELECT|SET|SHOW|SAVEPOINT|RELEASE|ROLLBACK|BEGIN)\w")
_MIGRATION = re.compile(r"rowqueue_\d{4}_\w+")


class Killed(BaseException):
    """As a signal would end the process."""


class Process:
    """Runs apply, and ends it after the first kind of statement after which no earlier run ended.

    `step`: of the statements that a COMMIT has still to follow, only every so many; all of them are undone in one way.
    """

    def __init__(self, step: int) -> None:
        self._step = step
        self._seen: set[tuple[str, ...]] = set()
        self._connections: dict[int, BaseConnection[Any]] = {}
        self._running: dict[int, tuple[str, ...]] = {}
        self.is_dead = False
        self.inside = 0
        self.killed_after: list[tuple[str, ...]] = []

    def begins(self, connection: BaseConnection[Any], text: str, values: object = None) -> None:
        if self.is_dead:
            raise Killed
        known = self._running.get(id(connection), ())
        # yoyo's own rows differ by the migration, all commits by what they commit.
        self._running[id(connection)] = (text, *(known if "COMMIT" in text else _MIGRATION.findall(str(values))))
        self._connections[id(connection)] = connection

    def ended(self, connection: BaseConnection[Any]) -> None:
        what = self._running.get(id(connection), ("",))
        if self.is_dead or what in self._seen or not _WRITES.match(what[0].removeprefix("b'")):
            return
        self._seen.add(what)
        is_inside = connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE
        self.inside += is_inside
        if not is_inside or self.inside % self._step == 0:
            self.killed_after.append(what)
            self.is_dead = True
            for each in self._connections.values():
                each.pgconn.finish()
            raise Killed

    @contextmanager
    def lives(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.is_dead = False
        self._connections.clear()
        self._running.clear()
        execute, wait = psycopg.Cursor.execute, psycopg.Connection.wait
        executemany, command = psycopg.Cursor.executemany, BaseConnection._exec_command

        def counted_execute(cursor: Any, query: Any, *values: Any, **named: Any) -> Any:
            self.begins(cursor.connection, str(query), values)
            return execute(cursor, query, *values, **named)

        def counted_many(cursor: Any, query: Any, *values: Any, **named: Any) -> Any:
            self.begins(cursor.connection, str(query))
            return executemany(cursor, query, *values, **named)

        def counted_command(connection: Any, text: Any, *values: Any, **named: Any) -> Any:
            self.begins(connection, str(text))
            return command(connection, text, *values, **named)

        def counted_wait(connection: Any, *values: Any, **named: Any) -> Any:
            result = wait(connection, *values, **named)
            self.ended(connection)
            return result

        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Cursor, "execute", counted_execute)
            patched.setattr(psycopg.Cursor, "executemany", counted_many)
            patched.setattr(psycopg.Connection, "wait", counted_wait)
            patched.setattr(BaseConnection, "_exec_command", counted_command)
            yield


def apply_killed(database: Database, process: Process, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it ran to its end."""
    with process.lives(monkeypatch):
        try:
            install.apply(database, break_lock=True)
        except BaseException:  # yoyo's cleanup fails
            if not process.is_dead:
                raise
            return False
    return True


@pytest.mark.parametrize("step", [40, pytest.param(8, marks=pytest.mark.level(4))])
@pytest.mark.level(3)
def test_an_installation_that_is_killed_after_any_statement_is_continued_by_the_next(
    server: Server, empty_database: Database, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    process = Process(step)
    while not apply_killed(empty_database, process, monkeypatch):
        pass
    after = [what for what in process.killed_after if "COMMIT" in what[0]]
    assert len(after) > 6 and process.inside > 100
    whole = open_database(server.create_database())
    install.apply(whole)
    assert server.catalog(empty_database.url) == server.catalog(whole.url)
    assert empty_database.rights_problems() == []
    assert install.apply(empty_database) == install.Applied()
    names = "SELECT kind, name, sha256, fingerprint FROM mq.installed ORDER BY name"
    assert server.query(empty_database.url, names) == server.query(whole.url, names)
    server.drop_database(whole.url)


@pytest.mark.level(3)
def test_the_lock_that_a_killed_migration_leaves_is_reported_and_broken(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(10**9)
    while not any("rowqueue_0001_queue" in what for what in process.killed_after):
        assert not apply_killed(empty_database, process, monkeypatch)
    with pytest.raises(install.InstallError, match="runner apply --break-lock"):
        install.apply(empty_database)
    assert install.apply(empty_database, break_lock=True).migrations
