"""Connecting to SQL Server, and pymssql's connection, guarded in the runner's transaction."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pymssql
from pymssql import _mssql

from .. import values
from ..base import DatabaseError
from ..guard import ENDED, SWALLOWED, Guarded
from .address import LOGIN_BYTES, Address
from .errors import CONFLICTS, DEADLOCK, line, number, of_contract, tidy, unreachable

_log = logging.getLogger(__name__)

# An interrupted batch leaves nothing: an error ends the batch and rolls back its transaction.
BEGIN = "SET XACT_ABORT ON; BEGIN TRANSACTION"
# Filtered indexes need the first seven. The others override the server's `user options`: no implicit transactions, and
# an error in a handler's own statement does not roll back the transaction.
SESSION = "".join(
    f"SET {option};"
    for option in (
        "ANSI_NULLS ON",
        "ANSI_PADDING ON",
        "ANSI_WARNINGS ON",
        "ARITHABORT ON",
        "CONCAT_NULL_YIELDS_NULL ON",
        "NUMERIC_ROUNDABORT OFF",
        "QUOTED_IDENTIFIER ON",
        "ANSI_NULL_DFLT_ON ON",
        "IMPLICIT_TRANSACTIONS OFF",
        "XACT_ABORT OFF",
        "TEXTSIZE 2147483647",
    )
)


class Connection(Guarded, pymssql.Connection):  # type: ignore[misc]
    """The driver's connection, guarded in the runner's transaction. Its own commit() and rollback() do nothing.

    An error in one of the queue's procedures also ends the transaction.
    """

    _refusal = pymssql.ProgrammingError
    _failure: BaseException | None = None  # after it, only the server knows whether the transaction is still open

    def cursor(self, as_dict: bool | None = None, **options: Any) -> "Cursor":
        return Cursor(self, self.as_dict if as_dict is None else as_dict, **options)

    @property
    def is_closed(self) -> bool:
        try:
            return not self._conn.connected
        except pymssql.InterfaceError:
            return True

    def command(self, text: str) -> Any:
        """Run one of the runner's own statements; returns the first value of its first row, None without rows."""
        cursor = pymssql.Cursor(self, False)
        cursor.execute(text)
        rows = cursor.fetchall() if cursor.description else []
        while cursor.nextset():  # otherwise the next statement would have to cancel the rest
            pass
        return rows[0][0] if rows else None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A context manager for a cursor's calls: raises unless the block's transaction is open, and notes errors."""
        if self._guarded and self._failure is not None:
            self.check()
        try:
            yield
        except pymssql.Error as error:
            tidy(error)
            self._failure = error
            raise

    def check(self) -> None:
        failure = self._failure
        if self.command("SELECT @@TRANCOUNT"):
            self._failure = None
        elif failure is None:
            raise pymssql.ProgrammingError(ENDED)
        elif number(failure) in CONFLICTS:
            raise pymssql.OperationalError(DEADLOCK, "the server rolled back the transaction after an error")
        else:
            raise pymssql.ProgrammingError(f"{SWALLOWED}: {line(failure)}")

    def guard(self) -> None:
        self.command("BEGIN TRANSACTION")
        self._guarded, self._failure = True, None

    def end(self) -> None:
        # Also the transactions that a handler has nested in it.
        self.command("WHILE @@TRANCOUNT > 0 COMMIT TRANSACTION")

    def undo(self) -> None:
        with suppress(pymssql.Error):  # if it fails, the connection and the transaction are lost
            self.command("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")

    def abandon(self, error: BaseException) -> None:
        """Clean up after a failed call. Only errors of the contract have certainly run the procedure's own handler."""
        if not self._guarded and not of_contract(error):
            self.undo()

    def close(self) -> None:
        """Close it, in any state. Never raises."""
        try:
            super().close()
        except (pymssql.Error, _mssql.MSSQLException) as error:
            _log.debug("closing: %s", line(error))


class Cursor(pymssql.Cursor):  # type: ignore[misc]
    """The driver's cursor, guarded by its connection."""

    @contextmanager
    def _watched(self) -> Iterator[None]:
        if self.connection is None:
            raise pymssql.InterfaceError("the cursor is closed")
        with self.connection.watched():
            yield

    def execute(self, operation: Any, params: Any = None) -> None:
        with self._watched():
            if params:
                super().execute(operation, params)
            else:
                super().execute(operation)

    def executemany(self, operation: Any, params: Any, **options: Any) -> None:
        with self._watched():
            super().executemany(operation, params, **options)

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Any:
        with self._watched():
            return super().callproc(procname, parameters)

    def fetchone(self) -> Any:
        with self._watched():
            return super().fetchone()

    def fetchall(self) -> Any:
        with self._watched():
            return super().fetchall()

    def nextset(self) -> Any:
        with self._watched():
            return super().nextset()


def connect(address: Address, application_name: str, been_connected: bool) -> Connection:
    """A driver connection in autocommit mode. Raises as `Database.connect`. `been_connected`: to this server before."""
    if not address.database:
        raise DatabaseError("no database is named: sqlserver://user@host/database")
    name = values.program(application_name).encode()[:LOGIN_BYTES].decode("utf-8", "ignore")
    _mssql.login_timeout = address.connect_seconds  # the driver has one setting for the whole process
    try:
        connected = _mssql.connect(
            server=address.server,
            user=address.user,
            password=address.password,
            database=address.database,
            charset="UTF-8",
            appname=name or " ",  # the driver would replace '' by its own name
            tds_version="7.4",
            encryption=address.encryption,
            conn_properties=SESSION,
        )
    except _mssql.MSSQLException as error:
        raise unreachable(error, address.server, been_connected) from error
    return Connection(connected, False, True)
