"""Calls on SQL Server through pymssql."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import pymssql

from ..base import Row, Session
from ..guard import guarded
from .calls import compose, rows
from .connection import Connection
from .errors import told, translate, translated


class SQLServerSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        try:
            return rows(procedure, *self._run(*compose(procedure, arguments)))
        except pymssql.Error as error:
            self._connection.abandon(error)
            raise translate(error, self._connection.is_closed) from error

    def _run(self, statement: str, values: tuple[Any, ...]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The columns and the rows of a call."""
        cursor = self._cursor
        cursor.execute(statement, values)
        description = cursor.description or ()
        found = cursor.fetchall() if description else []
        while cursor.nextset():  # an error raised after the rows is reported only here
            pass
        return description, found

    def transaction(self) -> AbstractContextManager[Connection]:
        return guarded(self._connection, translated, told)

    def now(self) -> datetime:
        with translated():
            now: datetime = self._connection.command("SELECT SYSUTCDATETIME() AS now")
        return now.replace(tzinfo=UTC)

    def close(self) -> None:
        self._connection.close()
