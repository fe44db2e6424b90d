"""yoyo-migrations' backend for SQL Server, on our connections."""

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

# The key exists or is being inserted. Babelfish has no separate number for a lock timeout.
_HELD = {1205, 1222, 2601, 2627, UNMAPPED}
_LOCK = "INSERT INTO dbo.yoyo_lock (locked, ctime, pid) VALUES (1, SYSUTCDATETIME(), {})"


class Backend(OwnLock, DatabaseBackend):  # type: ignore[misc]
    """Registered with yoyo as `sqlserver`: for database URLs and for `SQLServer.yoyo_url`.

    DDL can be rolled back: a migration that fails or is killed leaves nothing.
    """

    driver_module = "pymssql"
    _in_transaction: bool
    _url: str
    _lock: Connection | None = None
    # In upper case, as a database with a case-sensitive collation needs it.
    list_tables_sql = "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = N'dbo'"

    def connect(self, dburi: Any) -> Any:
        self._url = url(dburi, "sqlserver")
        return SQLServer(self._url).open("rowqueue yoyo")

    def _insert_lock_row(self, pid: int, timeout: float, poll_interval: float = 0.5) -> None:
        """Insert the lock row without a commit: it disappears when this process ends in any way."""
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
        """Runs yoyo's own statements, with another type for TIMESTAMP, which is not a time type in T-SQL."""
        return super().execute(sql.replace(" TIMESTAMP", " DATETIME2"), params)

    def quote_identifier(self, s: str) -> str:
        """Put yoyo's tables into dbo, not into the installer's default schema: otherwise each would have its own."""
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
        # Some errors have already rolled back; a second error about that would hide the real one.
        self.execute("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
        self._in_transaction = False

    def savepoint(self, id: str) -> None:
        self.execute(f"SAVE TRANSACTION {id}")

    def savepoint_release(self, id: str) -> None:
        pass

    def savepoint_rollback(self, id: str) -> None:
        self.execute(f"IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION {id}")

    def _check_transactional_ddl(self) -> bool:
        """Not detected by yoyo, which would create and drop a table."""
        return True
