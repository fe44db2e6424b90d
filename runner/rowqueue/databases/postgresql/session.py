"""Calls on PostgreSQL through psycopg 3."""

import hashlib
import logging
import selectors
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import dict_row, tuple_row

from ..base import DatabaseError, Disconnected, Row, Rows, Session, Values
from ..guard import ENDED, SWALLOWED
from .calls import query
from .errors import bad_argument, line, told, translate, translated

_log = logging.getLogger(__name__)

_WRONG_ISOLATION = "50001"


class PostgreSQLSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._cursor = connection.cursor(row_factory=dict_row)
        self._listening: set[str] = set()
        self._woken: set[str] = set()  # the queues of the notifications that have arrived
        self._begin = ""  # a statement that must precede each call, if any
        connection.add_notify_handler(self._wake)

    def _wake(self, notify: psycopg.Notify) -> None:
        self._woken.add(notify.payload)

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        self._ask(self._cursor, procedure, arguments)
        with translated():
            return self._cursor.fetchall()

    def fetch(self, procedure: str, *arguments: Any) -> Rows:
        # A separate cursor keeps the result. Numbers, times and keys are faster to read in binary form.
        cursor = psycopg.Cursor(self._connection, row_factory=tuple_row)
        cursor.format = Format.BINARY
        self._ask(cursor, procedure, arguments, prepare=True)

        def rows() -> Sequence[Values]:
            with translated():
                return cursor.fetchall()

        return rows

    def _ask(
        self, cursor: psycopg.Cursor[Any], procedure: str, arguments: Sequence[Any], prepare: bool = False
    ) -> None:
        """Make a call; its rows stay in the cursor. `prepare`: prepare the statement, if the connection keeps it."""
        try:
            self._run(cursor, query(procedure, len(arguments)), arguments, prepare)
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            # Once per session: the default isolation level of the database or role is not READ COMMITTED.
            if self._begin == "" and getattr(error, "sqlstate", None) == _WRONG_ISOLATION and self._is_alone():
                self._begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
                self._ask(cursor, procedure, arguments, prepare)
                return
            bad = bad_argument(error, procedure, arguments)
            raise bad or translate(error, self._connection.closed, procedure) from error

    def now(self) -> datetime:
        with translated():
            row = self._cursor.execute("SELECT clock_timestamp() AS now").fetchone()
        assert row is not None
        now: datetime = row["now"]
        return now

    def _run(self, cursor: psycopg.Cursor[Any], query: str, arguments: Sequence[Any], prepare: bool) -> None:
        if not (self._begin and self._is_alone()):
            cursor.execute(query, arguments, prepare=prepare)
            return
        self._connection.execute(self._begin)
        try:
            cursor.execute(query, arguments, prepare=prepare)
        except BaseException:
            if not self._connection.closed:
                self._connection.rollback()
            raise
        self._connection.commit()

    def _is_alone(self) -> bool:
        """Whether a call is a transaction of its own."""
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        with told(), self._transaction() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        block = self._connection.transaction()
        with translated():
            block.__enter__()
        try:
            yield self._connection
            # The driver would roll back or do nothing without an error, and the caller would believe in a commit.
            status = self._connection.info.transaction_status
            if self._connection.closed:
                raise Disconnected("the connection was closed inside the transaction")
            if status != TransactionStatus.INTRANS:
                raise DatabaseError(SWALLOWED if status == TransactionStatus.INERROR else ENDED)
        except BaseException as error:
            block.__exit__(type(error), error, error.__traceback__)
            raise
        with translated():
            block.__exit__(None, None, None)

    def listen(self, types: Sequence[str]) -> bool:
        new = sorted(set(types) - self._listening)
        if not new:
            return bool(types)
        # The name of a channel is an identifier of at most 63 bytes: hence the hash.
        hashes = (hashlib.md5(name.encode(), usedforsecurity=False).hexdigest() for name in new)
        try:
            self._connection.execute(";".join(f"LISTEN mq_{hash}" for hash in hashes))
        except psycopg.Error as error:
            translated = translate(error, self._connection.closed)
            if isinstance(translated, Disconnected):
                raise translated from error
        self._listening.update(new)
        return True

    def wait(self, seconds: float, interrupt: int) -> Collection[str] | None:
        deadline = time.monotonic() + seconds
        with translated(), selectors.DefaultSelector() as selector:
            own = selector.register(self._connection.fileno(), selectors.EVENT_READ)
            selector.register(interrupt, selectors.EVENT_READ)
            while not self._drained():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if any(key == own for key, _ in ready):
                    self._connection.pgconn.consume_input()
                elif ready or time.monotonic() >= deadline:
                    return None
        woken, self._woken = self._woken, set()
        return woken

    def _drained(self) -> bool:
        """Take all notifications that have arrived; returns whether there were any, now or during an earlier call."""
        while notify := self._connection.pgconn.notifies():
            self._woken.add(notify.extra.decode("utf-8", "replace"))
        return bool(self._woken)

    def close(self) -> None:
        try:
            self._connection.close()
        except psycopg.Error as error:
            _log.debug("closing: %s", line(error))
