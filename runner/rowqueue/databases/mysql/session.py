"""Calls on MySQL and MariaDB through PyMySQL."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.cursors import DictCursor  # type: ignore[import-untyped]

from ... import contract
from ..base import Row, Session
from ..guard import guarded
from ..values import invalid
from .calls import compose, convert
from .connection import Connection
from .errors import bad_argument, line, told, translate, translated

_log = logging.getLogger(__name__)


class MySQLSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: Connection, longest_call: int) -> None:
        self._connection = connection
        self._cursor = connection.cursor(DictCursor)
        self._longest_call = longest_call

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        statement = self._statement(procedure, arguments)
        try:
            self._cursor.execute(statement)
            rows: list[Row] = list(self._cursor.fetchall())
            description = self._cursor.description or ()
            while self._cursor.nextset():  # an error that came after the rows shows here
                pass
        except pymysql.Error as error:
            self._connection.abandon(error)
            raise bad_argument(error) or translate(error, not self._connection.open) from error
        convert(rows, procedure, description)
        return rows

    def _statement(self, procedure: str, arguments: Sequence[Any]) -> bytes:
        """The call as the server reads it. Raises QueueError for what cannot be written, or is too long for it."""
        text, values = compose(procedure, arguments)
        texts = [self._connection.escape(value) for value in values]
        statement = (text % tuple(texts)).encode()
        # The server would close the connection, and the same call would be tried again without end.
        if len(statement) > self._longest_call:
            longest = max(range(len(texts)), key=lambda number: len(texts[number]))
            limit = f"the call has {len(statement):,} bytes, the server takes {self._longest_call:,}"
            name = contract.load().procedures[procedure].arguments[longest].name
            raise invalid(name, f"{limit}: raise its max_allowed_packet")
        return statement

    def transaction(self) -> AbstractContextManager[Connection]:
        return guarded(self._connection, translated, told)

    def now(self) -> datetime:
        with translated():
            self._cursor.execute("SELECT UTC_TIMESTAMP(6) AS now")
            now: datetime = self._cursor.fetchone()["now"]
        return now.replace(tzinfo=UTC)

    def execute(self, statement: str) -> None:
        with translated():  # DDL would end a transaction
            self._cursor.execute(statement)

    def close(self) -> None:
        try:
            self._connection.close()
        except pymysql.Error as error:
            _log.debug("closing: %s", line(error))
