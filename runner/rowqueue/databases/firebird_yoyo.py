"""yoyo-migrations' backend for Firebird over connections of ours."""

import weakref
from typing import Any
from urllib.parse import urlencode

from firebird.driver import StatementType
from firebird.driver.core import Cursor
from yoyo.backends import DatabaseBackend  # type: ignore[import-untyped]

from . import firebird_client as client
from .firebird import Firebird, make_yoyo_tables


class _Cursor(Cursor):  # type: ignore[misc]
    """The driver's cursor, which commits DDL: what comes next needs it, and a transaction begins by itself."""

    def execute(self, operation: Any, parameters: Any = None) -> Any:
        super().execute(operation, parameters)
        if self.statement.type == StatementType.DDL:
            self.connection.commit()
        return self


class Backend(DatabaseBackend):  # type: ignore[misc]
    """Known to yoyo under `firebird`, for the URLs of a database and for that of `Firebird.yoyo_url`."""

    driver_module = "firebird.driver"
    _in_transaction: bool
    list_tables_sql = "SELECT TRIM(rdb$relation_name) FROM rdb$relations WHERE rdb$system_flag = 0"

    def connect(self, dburi: Any) -> Any:
        # yoyo's own way back to a URL loses the slash of an absolute path.
        query = f"?{urlencode(dburi.args)}" if dburi.args else ""
        url = dburi.args.get("url") or f"firebird://{dburi.netloc}/{dburi.database}{query}"
        return Firebird(url).open("rowqueue yoyo", client.PATIENT)

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

    # A savepoint does not outlive the commit after DDL.
    def savepoint(self, id: str) -> None:
        pass

    def savepoint_release(self, id: str) -> None:
        pass

    def savepoint_rollback(self, id: str) -> None:
        pass

    def _check_transactional_ddl(self) -> bool:
        """It would make and drop a table to find out."""
        return False

    def create_lock_table(self) -> None:
        """All of yoyo's tables."""
        make_yoyo_tables(self.connection)

    def ensure_internal_schema_updated(self) -> None:
        """`create_lock_table` has seen to it."""
