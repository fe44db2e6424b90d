"""SQL Server: an installation that is killed in any file leaves nothing of it, and the next one continues."""

import re
from contextlib import suppress
from typing import Any

import pymssql
import pytest
import yoyo
from rowqueue.databases import Database, DatabaseError
from rowqueue.databases.sqlserver import SQLServer
from rowqueue.databases.sqlserver.connection import Connection, Cursor
from rowqueue.install import apply as install
from servers.sqlserver import ExternalSQLServer
from yoyo.exceptions import LockTimeout

pytestmark = pytest.mark.product("sqlserver")

# In the order of installation, with the objects that are missing after a kill at this point.
POINTS = (
    (r"INSERT INTO .*_yoyo_version", "dbo._yoyo_migration"),
    (r"INSERT INTO dbo\.yoyo_lock", "mq.queue"),
    (r"CREATE TABLE mq\.queue\b", "mq.queue"),
    (r"INSERT INTO .*_yoyo_log", "mq.queue"),
    (r"INSERT INTO .*_yoyo_migration", "mq.queue"),
    (r"CREATE TABLE mq\.feed_consumer\b", "mq.counter"),
    (r"CREATE (OR ALTER )?PROCEDURE mq\.put_back\b", "mq_internal.put_back"),
    (r"GRANT EXECUTE\b", ""),
    (r"UPDATE mq\.installed SET fingerprint\b", ""),
)


class Killed(BaseException):
    """As a signal would end the process."""


def apply_until(database: Database, point: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Apply, killed with all its connections after the first matching statement; returns whether there was one."""
    opened: list[Connection] = []
    struck = False
    open_, command, execute = SQLServer.open, Connection.command, Cursor.execute

    def opening(self: SQLServer, application_name: str) -> Connection:
        opened.append(open_(self, application_name))
        return opened[-1]

    def strike(text: str) -> None:
        nonlocal struck
        if not struck and re.search(point, text):
            struck = True
            for connection in opened:
                connection.close()
            raise Killed

    def commanding(self: Connection, text: str) -> Any:
        result = command(self, text)
        strike(text)
        return result

    def executing(self: Cursor, operation: Any, params: Any = None) -> None:
        execute(self, operation, params)
        strike(operation)

    with monkeypatch.context() as patched, suppress(Killed, DatabaseError, pymssql.Error):
        patched.setattr(SQLServer, "open", opening)
        patched.setattr(Connection, "command", commanding)
        patched.setattr(Cursor, "execute", executing)
        install.apply(database)
    return struck


@pytest.mark.timeout(1800)  # a stand-in takes a minute and more for one installation
def test_apply_continues_after_a_kill_in_any_file(
    server: ExternalSQLServer, database: Database, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(url: str) -> list[str]:
        """The queue's own objects in the catalog, without tables of other tests."""
        return [line for line in server.catalog(url) if " | mq | " in line]

    for point, missing in POINTS:
        assert apply_until(empty_database, point, monkeypatch), point
        if missing:
            [row] = server.query(empty_database.url, "SELECT OBJECT_ID(%s) AS id", missing)
            assert row["id"] is None, point
    # No lock to break: it was released with its holder.
    install.apply(empty_database)
    assert own(empty_database.url) == own(database.url)
    assert install.apply(empty_database) == install.Applied()
    assert empty_database.rights_problems() == []


def test_yoyos_lock_goes_with_who_holds_it(empty_database: Database) -> None:
    with (
        yoyo.get_backend(empty_database.yoyo_url()) as killed,
        yoyo.get_backend(empty_database.yoyo_url()) as other,
        killed.lock(60),
    ):
        with pytest.raises(LockTimeout), other.lock(1):
            pass
        killed._lock.close()
        with other.lock(60):
            pass
