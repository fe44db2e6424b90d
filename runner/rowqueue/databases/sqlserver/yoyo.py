"""yoyo-migrations' backend for SQL Server over connections of ours."""

import time
from collections.abc import Mapping
from typing import Any

import pymssql
from yoyo.backends import DatabaseBackend  # type: ignore[import-untyped]
from yoyo.exceptions import LockTimeout  # type: ignore[import-untyped]

from ..yoyo import OwnLock, url
from .connection import BEGIN, Connection
from .database import SQLServer
from .errors import UNMAPPED, number

# A row of that key is there, or about to be; of waiting that was too long Babelfish tells no number of its own.
_HELD = {1205, 1222, 2601, 2627, UNMAPPED}
_LOCK = "INSERT INTO dbo.yoyo_lock (locked, ctime, pid) VALUES (1, SYSUTCDATETIME(), {})"


class Backend(OwnLock, DatabaseBackend):  # type: ignore[misc]
    """Known to yoyo under `sqlserver`, for the URLs of a database and for that of `SQLServer.yoyo_url`.

    DDL can be rolled back there: a migration that fails, or is killed, leaves nothing.
    """

    driver_module = "pymssql"
    _in_transaction: bool
    _url: str
    _lock: Connection | None = None
    # In capitals, which a database that tells letters apart by their case asks for.
    list_tables_sql = "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = N'dbo'"

    def connect(self, dburi: Any) -> Any:
        self._url = url(dburi, "sqlserver")
        return SQLServer(self._url).open("rowqueue yoyo")

    def _insert_lock_row(self, pid: int, timeout: float, poll_interval: float = 0.5) -> None:
        """Not committed: the row goes with us, however we end."""
        deadline = time.monotonic() + timeout
        self._lock = SQLServer(self._url).open("rowqueue yoyo lock")
        self._lock.command(f"SET LOCK_TIMEOUT {int(poll_interval * 1000)}")
        while True:
            try:
                self._lock.command(BEGIN)
                self._lock.command(_LOCK.format(int(pid)))
                return
            except pymssql.Error as error:
                self._lock.undo()
                waits = number(error) in _HELD
                if not waits or time.monotonic() > deadline:
                    self._delete_lock_row(pid)
                    if not waits:
                        raise
                    raise LockTimeout("Another process has locked this database") from error
            time.sleep(poll_interval)

    def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        """yoyo's own statements: a TIMESTAMP is no time there. Migrations do not come this way."""
        return super().execute(sql.replace(" TIMESTAMP", " DATETIME2"), params)

    def quote_identifier(self, s: str) -> str:
        """Its own tables are in dbo, whatever schema is the installer's own: else each would have others."""
        tables = {self.log_table, self.lock_table, self.version_table, self.migration_table}
        return ("dbo." if s in tables else "") + str(super().quote_identifier(s))

    # The driver's own commit and rollback do nothing in autocommit.
    def begin(self) -> None:
        assert not self._in_transaction
        self._in_transaction = True
        self.execute(BEGIN)

    def commit(self) -> None:
        self.execute("COMMIT TRANSACTION")
        self._in_transaction = False

    def rollback(self) -> None:
        # Some errors have done it already, and one that it is gone would hide the one that matters.
        self.execute("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
        self._in_transaction = False

    def savepoint(self, id: str) -> None:
        self.execute(f"SAVE TRANSACTION {id}")

    def savepoint_release(self, id: str) -> None:
        pass

    def savepoint_rollback(self, id: str) -> None:
        self.execute(f"IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION {id}")

    def _check_transactional_ddl(self) -> bool:
        """It would make and drop a table to find out."""
        return True
