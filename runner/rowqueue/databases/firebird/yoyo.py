"""yoyo-migrations' backend for Firebird, on our connections."""

import time
import weakref
from typing import Any

from firebird.driver import Error, StatementType
from firebird.driver.core import Cursor
from yoyo.backends import DatabaseBackend  # type: ignore[import-untyped]
from yoyo.exceptions import LockTimeout  # type: ignore[import-untyped]

from ..base import Disconnected
from ..yoyo import NoSavepoints, OwnLock, url
from . import yoyo_tables
from .connection import PATIENT, Connection
from .database import Firebird
from .errors import translate
from .statements import is_there


class _Cursor(Cursor):  # type: ignore[misc]
    """The driver's cursor, which commits after DDL: the next statement needs the new object.

    An interrupted migration therefore leaves what it created. Its statements that have already run are skipped.
    """

    def execute(self, operation: Any, parameters: Any = None) -> Any:
        self.connection.at_work()
        try:
            if isinstance(operation, str) and (query := is_there(operation)) and super().execute(query).fetchall():
                return self
            super().execute(operation, parameters)
            if self.statement.type == StatementType.DDL:
                self.connection.commit()
        except Error as error:
            # The rollback that follows fails too, so a lost connection is recognised here.
            if isinstance(lost := translate(error), Disconnected):
                raise lost from error
            raise
        return self


class Backend(NoSavepoints, OwnLock, DatabaseBackend):  # type: ignore[misc]
    """Registered with yoyo as `firebird`: for database URLs and for `Firebird.yoyo_url`."""

    driver_module = "firebird.driver"
    _in_transaction: bool
    _url: str
    _lock: Connection | None = None
    list_tables_sql = "SELECT TRIM(rdb$relation_name) FROM rdb$relations WHERE rdb$system_flag = 0"

    def connect(self, dburi: Any) -> Any:
        self._url = url(dburi, "firebird")
        return Firebird(self._url).open("rowqueue yoyo", PATIENT)

    def _insert_lock_row(self, pid: int, timeout: float, poll_interval: float = 0.5) -> None:
        """Insert the lock row without a commit: it disappears when this process ends in any way."""
        deadline = time.monotonic() + timeout
        self._lock = Firebird(self._url).open("rowqueue yoyo lock")
        while True:
            try:
                with self._lock.cursor() as cursor:
                    cursor.execute('INSERT INTO "yoyo_lock" ("locked", "pid") VALUES (1, ?)', [pid])
                self._lock.at_rest()
                return
            except Error:
                self._lock.rollback()
                if time.monotonic() > deadline:
                    rows = self.execute('SELECT "pid" FROM "yoyo_lock"').fetchall()
                    self._delete_lock_row(pid)
                    raise LockTimeout(f"Process {rows[0][0] if rows else '?'} has locked this database") from None
            time.sleep(poll_interval)

    def list_tables(self, **_: Any) -> list[str]:
        return [name for (name,) in self.execute(self.list_tables_sql).fetchall()]

    def cursor(self) -> Any:
        manager = self.connection.main_transaction
        cursor = _Cursor(self.connection, manager)
        manager._cursors.append(weakref.ref(cursor, manager._cursor_deleted))
        return cursor

    def begin(self) -> None:
        assert not self._in_transaction
        self._in_transaction = True
        self.connection.begin()

    def _check_transactional_ddl(self) -> bool:
        """Not detected by yoyo, which would create and drop a table."""
        return False

    def create_lock_table(self) -> None:
        """Create all of yoyo's tables."""
        yoyo_tables.make(self.connection)

    def ensure_internal_schema_updated(self) -> None:
        """Nothing to do: `create_lock_table` creates all tables."""
