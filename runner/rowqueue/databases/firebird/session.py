"""Calls on Firebird through firebird-driver."""

import json
import random
import selectors
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Protocol

from firebird.driver import Error
from firebird.driver.core import Cursor, Statement, TransactionManager

from ...install import contract
from ..base import Conflict, DatabaseError, Disconnected, QueueError, Row, Session
from ..guard import ENDED
from .calls import EPOCH, bad_argument, compose, shape
from .connection import NO_WAIT, WAIT, Connection, cursor_of, forget_transaction, free, has_ended
from .errors import told, translate, translated
from .events import Listener

# These wait for the locks of other transactions; all other calls skip locked rows, or are repeated.
_WAITING = {
    "send",
    "send_message",
    "send_with",
    "send_batch",
    "set_queue",
    "set_option",
    "set_group",
    "pause",
    "resume",
    "extend_lease",
} | {
    *("pause_all", "resume_all"),
    *("advance_sequence", "create_feed", "drop_feed", "advance_feed", "rewind_feed"),
    *(
        "subscribe",
        "unsubscribe",
        "unwatch_table",
        "bind_topic",
        "unbind_topic",
        "publish",
        "publish_with",
        "set_result",
        "save_step",
    ),
    *("set_schedule", "drop_schedule", "run_schedule"),
}
# Seconds. A prepared statement keeps the procedure as it was when it was prepared, even after an upgrade.
_STATEMENT_SECONDS = 5.0

# Repeats of a call that does not wait for locks, for conflicts that last longer than the procedure itself retries.
_ATTEMPTS = 10
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1


def _waits(procedure: str, known: Sequence[contract.Argument], arguments: Sequence[Any]) -> bool:
    """Whether a call waits for locks. A send that may change a live message does not: it skips claimed rows."""
    if procedure not in _WAITING:
        return False
    given = {argument.name: value for argument, value in zip(known, arguments, strict=False)}
    conflict = given.get("on_conflict")
    if procedure.endswith("_with") and given.get("options"):
        with suppress(ValueError, AttributeError):  # the procedure refuses it
            conflict = json.loads(given["options"]).get("on_conflict")
    return conflict in (None, "keep")


class Server(Protocol):
    """The part of the database that a session needs."""

    @property
    def version(self) -> int: ...

    def open(self, application_name: str) -> Connection: ...


class FirebirdSession(Session):
    """One connection; each call outside `transaction()` is a transaction of its own."""

    def __init__(self, database: Server, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self._main = connection.main_transaction
        self._polling = connection.transaction_manager(NO_WAIT)
        self._waiting = connection.transaction_manager(WAIT)
        self._cursors = {manager: cursor_of(manager) for manager in (self._main, self._polling, self._waiting)}
        self._statements: dict[str, Statement] = {}
        self._prepared_at = 0.0
        self._listener: Listener | None = None
        connection.at_rest()

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        known = contract.load().procedures[procedure].arguments
        text, values = compose(procedure, arguments)
        if self._connection.is_closed():
            raise Disconnected("the connection is closed")
        if self._connection.guarded:
            found = self._run(self._main, text, known, values)
        else:
            transaction = self._waiting if _waits(procedure, known, arguments) else self._polling
            found = self._run_again(transaction, text, known, values)
        return shape(procedure).rows(found)

    def _run_again(
        self, transaction: TransactionManager, text: str, known: Sequence[contract.Argument], values: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """As `_run`, but repeats the call after a conflict, several times."""
        for attempt in range(_ATTEMPTS - 1):
            try:
                return self._run(transaction, text, known, values)
            except Conflict:
                time.sleep(random.uniform(0, min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)))
        return self._run(transaction, text, known, values)

    def _run(
        self, transaction: TransactionManager, text: str, known: Sequence[contract.Argument], values: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """Make a call and return its values: in the caller's transaction, or in one of its own."""
        own = transaction is not self._main
        if own:
            self._connection.at_work()
        try:
            if own:
                transaction.begin()
            found = self._fetch(transaction, text, values)
            if own:
                transaction.commit()
        except BaseException as error:
            self._connection.let_go(error)
            if own:
                forget_transaction(transaction)
            if isinstance(error, Error):
                raise bad_argument(error, known, values) or self._failed(error) from error
            raise
        finally:
            if own:
                self._connection.at_rest()
        return found

    def _fetch(self, transaction: TransactionManager, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._cursors[transaction]
        try:
            cursor.execute(self._statement(cursor, text), values)
            found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
            return found
        except Error as error:
            self._connection.let_go(error)
            raise
        finally:
            with suppress(Error):  # the connection and the result are lost
                cursor.close()

    def _statement(self, cursor: Cursor, text: str) -> Statement:
        """The prepared statement; it is prepared again after a while."""
        now = time.monotonic()
        if now - self._prepared_at > _STATEMENT_SECONDS:
            self._forget_statements()
            self._prepared_at = now
        statement = self._statements.get(text)
        if statement is None:
            statement = self._statements[text] = cursor.prepare(text)
        return statement

    def _forget_statements(self) -> None:
        while self._statements:
            free(self._statements.popitem()[1])

    def _failed(self, error: Error) -> Exception:
        """The exception for a driver's error. If it is not of the contract, prepared statements may be out of date."""
        failure = translate(error)
        if not isinstance(failure, QueueError | Conflict):
            self._prepared_at = 0.0
        return failure

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        connection = self._connection
        if connection.is_closed():
            raise Disconnected("the connection is closed")
        connection.at_work()  # the caller's own statements are watched too
        try:
            with told(), self._guarded():
                yield connection
        finally:
            connection.at_rest()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A transaction that only this context manager ends."""
        connection, main = self._connection, self._main
        with translated():
            main.begin()
        begun, connection.guarded = main._tra, True
        try:
            yield
            if main._tra is not begun or has_ended(main):
                raise DatabaseError(ENDED)
            connection.guarded = False
            with translated():
                main.commit()
        except BaseException as error:
            connection.guarded = False
            connection.let_go(error.__cause__ or error)
            forget_transaction(main)
            raise

    def now(self) -> datetime:
        if self._connection.is_closed():
            raise Disconnected("the connection is closed")
        # 3.0 has no time zones and must run in UTC.
        zone = " UTC" if self._database.version >= 4 else ""
        since = f"DATEDIFF(MILLISECOND FROM TIMESTAMP '{EPOCH:%Y-%m-%d 00:00}{zone}' TO CURRENT_TIMESTAMP)"
        [[milliseconds]] = self._run(self._polling, f"SELECT CAST({since} AS bigint) FROM rdb$database", (), ())
        return EPOCH + timedelta(milliseconds=milliseconds)

    def execute(self, statement: str) -> None:
        with translated():
            super().execute(statement)

    def listen(self, types: Sequence[str]) -> bool:
        if self._listener is not None and self._listener.types >= set(types):
            return self._listener.is_on
        known = self._listener.types if self._listener else frozenset[str]()
        self._deafen()
        self._listener = Listener([*known, *types], lambda: self._database.open("rowqueue events"))
        return self._listener.is_on

    def wait(self, seconds: float, interrupt: int) -> Collection[str] | None:
        with selectors.DefaultSelector() as selector:
            selector.register(interrupt, selectors.EVENT_READ)
            if self._listener is not None:
                selector.register(self._listener.descriptor, selectors.EVENT_READ)
            selector.select(max(0.0, seconds))
        return self._listener.clear() if self._listener is not None else None

    def _deafen(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        self._deafen()
        self._connection.close()
