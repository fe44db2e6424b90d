"""Calls on MySQL and MariaDB through PyMySQL."""

import logging
import selectors
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.cursors import DictCursor  # type: ignore[import-untyped]

from ...errors import Error
from ...install import contract
from ...messages import line_of
from ..base import AreaMissing, DatabaseError, Disconnected, NotAllowed, Row, Session, how_to_add
from ..guard import guarded
from ..values import invalid
from .calls import compose, convert
from .connection import Connection
from .errors import bad_argument, line, told, translate, translated

_log = logging.getLogger(__name__)

# How long the server waits for a message in one call. Meanwhile, other calls on this connection must wait.
WAIT_SECONDS = 1
MOST_TYPES = 1_000  # of wait_for_any
# The pause when ready messages are locked by other consumers: waiting on the server would return at once.
BLIND_SECONDS = 0.15


class MySQLSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: Connection, longest_call: int) -> None:
        self._connection = connection
        self._cursor = connection.cursor(DictCursor)
        self._longest_call = longest_call
        self._awaited: Sequence[str] = ()  # the queues to wait for
        self._is_ready = False  # it had a ready message at the last call
        self._is_waiting = False  # a call that waits for it is running

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        self._end_wait()
        statement = self._statement(procedure, arguments)
        try:
            self._cursor.execute(statement)
            rows: list[Row] = list(self._cursor.fetchall())
            description = self._cursor.description or ()
            while self._cursor.nextset():  # an error raised after the rows is reported only here
                pass
        except pymysql.Error as error:
            self._connection.abandon(error)
            failure = bad_argument(error) or translate(error, not self._connection.open)
            raise self._named(failure, procedure) from error
        convert(rows, procedure, description)
        if procedure in ("wait_for_message", "wait_for_any"):
            self._is_ready = bool(rows[0]["ready"])
        return rows

    def _named(self, failure: Exception, procedure: str) -> Exception:
        """The failure of a call. Who may not see the procedures is refused even those that do not exist."""
        area = contract.load().procedures[procedure].area
        if isinstance(failure, NotAllowed) and area not in contract.CORE:
            with suppress(Error):
                return failure if area in self.areas() else AreaMissing(f"{how_to_add([area])} ({failure.detail})")
        return failure

    def _statement(self, procedure: str, arguments: Sequence[Any]) -> bytes:
        """The call as bytes. Raises QueueError for a value that is not valid, or a call that is too long."""
        text, values = compose(procedure, arguments)
        texts = [self._connection.escape(value) for value in values]
        statement = (text % tuple(texts)).encode()
        # The server would close the connection, and the same call would be repeated forever.
        if len(statement) > self._longest_call:
            longest = max(range(len(texts)), key=lambda number: len(texts[number]))
            limit = f"the call has {len(statement):,} bytes, the server accepts {self._longest_call:,}"
            name = contract.load().procedures[procedure].arguments[longest].name
            raise invalid(name, f"{limit}: raise its max_allowed_packet")
        return statement

    def listen(self, types: Sequence[str]) -> bool:
        """True unless there are more queues than a call can wait for: the server waits for their messages."""
        self._awaited = types if len(types) <= MOST_TYPES else ()
        return bool(self._awaited)

    def wait(self, seconds: float, interrupt: int) -> Collection[str] | None:
        if not self._awaited:
            return super().wait(seconds, interrupt)
        if self._is_ready:  # ready, but locked by other consumers: waiting on the server would return at once
            return super().wait(min(seconds, BLIND_SECONDS), interrupt)
        try:
            return self._wait(interrupt)
        except Disconnected:
            raise
        except DatabaseError as error:  # if it is more than a KILL QUERY, the next call fails too
            _log.debug("waiting: %s", error)
            return super().wait(min(seconds, BLIND_SECONDS), interrupt)

    def _wait(self, interrupt: int) -> Collection[str] | None:
        """Let the server wait for a message. When interrupted, the call keeps running."""
        with translated(), selectors.DefaultSelector() as selector:
            if not self._is_waiting:
                one = len(self._awaited) == 1
                procedure = "wait_for_message" if one else "wait_for_any"
                what = self._awaited[0] if one else "\n".join(map(line_of, self._awaited))
                self._connection.start(self._statement(procedure, [what, WAIT_SECONDS]))
                self._is_waiting = True
            own = selector.register(self._connection.fileno(), selectors.EVENT_READ)
            selector.register(interrupt, selectors.EVENT_READ)
            if all(key != own for key, _ in selector.select(2 * WAIT_SECONDS)):
                return None
        return self._end_wait()

    def _end_wait(self) -> Collection[str] | None:
        """Read the result of a running call that waits, if there is one: the queue that has a ready message."""
        if not self._is_waiting:
            return None
        self._is_waiting = False
        with translated():
            *type, is_ready, _, _ = self._connection.answer()[0]
        return (type or self._awaited) if is_ready else None

    def transaction(self) -> AbstractContextManager[Connection]:
        self._end_wait()
        return guarded(self._connection, translated, told)

    def now(self) -> datetime:
        self._end_wait()
        with translated():
            self._cursor.execute("SELECT UTC_TIMESTAMP(6) AS now")
            now: datetime = self._cursor.fetchone()["now"]
        return now.replace(tzinfo=UTC)

    def execute(self, statement: str) -> None:
        self._end_wait()
        with translated():  # without a transaction, because DDL would end it
            self._cursor.execute(statement)

    def close(self) -> None:
        try:
            self._connection.close()
        except pymysql.Error as error:
            _log.debug("closing: %s", line(error))
