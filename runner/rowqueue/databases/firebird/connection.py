"""firebird-driver's connection, guarded in the runner's transaction, and helpers for the runner's own statements."""

import logging
from collections.abc import Sequence
from typing import Any

from firebird.driver import Connection as DriverConnection
from firebird.driver import Error, InterfaceError
from firebird.driver.core import Cursor, Statement, TransactionManager

from ..base import Disconnected, ReadOnly
from ..guard import refusal
from .errors import line, translate
from .watch import Watched

_log = logging.getLogger(__name__)


class Connection(DriverConnection):  # type: ignore[misc]
    """The driver's connection, guarded in the runner's transaction.

    commit() and rollback() without an active transaction do nothing, as in other drivers; yoyo relies on this.
    """

    guarded = False
    watched: Watched | None = None  # None for the embedded engine, which always answers

    def at_work(self) -> None:
        """A call begins; its answer must come in time."""
        if self.watched is not None:
            self.watched.begin()

    def at_rest(self) -> None:
        """No call is running."""
        if self.watched is not None:
            self.watched.end()

    def let_go(self, error: BaseException) -> None:
        """Send nothing more on a connection that the server has ended: it may never answer."""
        if self.watched is not None and isinstance(error, Error):
            failure = translate(error)
            if isinstance(failure, Disconnected) and not isinstance(failure, ReadOnly):
                self.watched.abort()

    def begin(self, tpb: bytes | None = None) -> None:
        self._refuse("begin")
        super().begin(tpb)

    def commit(self, *, retaining: bool = False) -> None:
        self._refuse("commit")
        if self.main_transaction.is_active():
            super().commit(retaining=retaining)

    def rollback(self, *, retaining: bool = False, savepoint: str | None = None) -> None:
        if savepoint is None:
            self._refuse("rollback")
        if self.main_transaction.is_active():
            super().rollback(retaining=retaining, savepoint=savepoint)

    def _refuse(self, what: str) -> None:
        if self.guarded:
            raise InterfaceError(refusal(what))

    def close(self) -> None:
        """Close it, in any state. Never raises."""
        if self.is_closed():
            return
        self.at_work()
        try:
            self._close_all()
        finally:
            if self.watched is not None:
                self.watched.forget()

    def _close_all(self) -> None:
        for reference in [*self._statements]:
            if (statement := reference()) is not None:
                free(statement)
        try:
            super().close()
        except (Error, AttributeError) as error:
            _log.debug("closing: %s", line(error))
            self.let_go(error)
            for manager in (self.main_transaction, self.query_transaction, *self._transactions):
                forget_transaction(manager)


def free(statement: Statement) -> None:
    """Free a statement; its connection may be lost."""
    try:
        statement.free()
    except Error as error:
        _log.debug("freeing: %s", line(error))
        # It ended with the connection. The driver would otherwise try to free it when it is garbage-collected.
        statement._istmt._refcnt, statement._istmt = 0, None


def forget_transaction(manager: TransactionManager) -> None:
    """End a transaction, even one that can no longer be ended normally."""
    try:
        if has_ended(manager):
            # The driver would release what a COMMIT has already released.
            manager._tra._refcnt, manager._tra = 0, None
        elif manager.is_active():
            manager.rollback()
    except (Error, AttributeError) as error:
        _log.debug("rollback: %s", line(error))
        manager._tra = None


def has_ended(manager: TransactionManager) -> bool:
    """Whether a statement such as COMMIT has ended a transaction that the driver still counts as active."""
    return manager._tra is not None and not manager._tra._as_parameter_


def cursor_of(transaction: TransactionManager) -> Cursor:
    """A cursor that reads every value whole."""
    cursor = transaction.cursor()
    cursor.stream_blob_threshold = -1
    return cursor


def rows(connection: Connection, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a statement, in a transaction of its own."""
    connection.at_work()
    with cursor_of(connection.main_transaction) as cursor:
        try:
            found: list[tuple[Any, ...]] = cursor.execute(text, parameters).fetchall()
        except Error as error:
            connection.let_go(error)
            raise
    connection.commit()
    return found
