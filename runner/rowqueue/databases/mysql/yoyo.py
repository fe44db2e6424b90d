"""yoyo-migrations' backend for MySQL and MariaDB, on our connections with their TLS, sockets and option files."""

from typing import Any

import pymysql  # type: ignore[import-untyped]
from yoyo.backends.core.mysql import MySQLBackend  # type: ignore[import-untyped]

from ..base import ReadOnly
from ..yoyo import NoSavepoints
from .database import MySQL
from .errors import translate
from .script import make_yoyo_tables


class Backend(NoSavepoints, MySQLBackend):  # type: ignore[misc]
    """Registered with yoyo under the scheme of `MySQL.yoyo_url`."""

    list_tables_sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"

    def connect(self, dburi: Any) -> Any:
        return MySQL(dburi.args["url"]).open_own("rowqueue yoyo")

    def execute(self, sql: str, params: Any = None) -> Any:
        """Translates the error of a server that takes no changes, as all other calls do."""
        try:
            return super().execute(sql, params)
        except pymysql.Error as error:
            if isinstance(translated := translate(error), ReadOnly):
                raise translated from error
            raise

    def ensure_internal_schema_updated(self) -> None:
        """Yoyo's own method cannot continue after a kill that left only some of its tables: DDL commits here."""
        make_yoyo_tables(self.cursor())
        self.connection.commit()
        super().ensure_internal_schema_updated()

    def _check_transactional_ddl(self) -> bool:
        """Not detected by yoyo, which would create and drop a table."""
        return False
