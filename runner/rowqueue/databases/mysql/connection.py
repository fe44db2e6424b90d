"""PyMySQL's connection, guarded in the runner's transaction."""

import ssl
import struct
from contextlib import suppress
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import COMMAND, CR, ER, SERVER_STATUS  # type: ignore[import-untyped]

from ..guard import ENDED, Guarded
from . import options
from .errors import INTERRUPTED, number, of_contract, translate

# The exceptions of the driver for an answer that violates the protocol. A Galera node sends such an answer when it
# repeats a CALL that has already returned rows (wsrep_retry_autocommit).
_MALFORMED = (AttributeError, LookupError, TypeError, AssertionError, struct.error)


class Connection(Guarded, pymysql.connections.Connection):  # type: ignore[misc]
    """The driver's connection, guarded in the runner's transaction."""

    _refusal = pymysql.ProgrammingError
    _doubtful = False  # after an error, only the server knows whether the transaction is still open
    _half_done = False  # a call was interrupted, and a part of its work may still be in the transaction

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        """As the driver without options: TLS if the server has it, but without loading unused certificates."""
        return super()._create_ssl_ctx(sslp) if sslp else options.unverified()

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        try:
            return super()._read_query_result(unbuffered)
        except _MALFORMED as error:
            self._force_close()
            reason = f"the server's answer cannot be read ({type(error).__name__}: {error})"
            raise pymysql.OperationalError(CR.CR_SERVER_LOST, reason) from error

    def query(self, sql: Any, unbuffered: bool = False) -> Any:
        self.check()
        try:
            return super().query(sql, unbuffered)
        except pymysql.Error:
            self._doubtful = True
            raise

    def next_result(self, unbuffered: bool = False) -> Any:
        try:
            return super().next_result(unbuffered)
        except pymysql.Error:
            self._doubtful = True
            raise

    def start(self, statement: bytes) -> None:
        """Send a statement. Send nothing else before `answer` has read the result."""
        self._execute_command(COMMAND.COM_QUERY, statement)

    def answer(self) -> Any:
        """Wait for the rows of the statement that `start` sent, as tuples."""
        self._affected_rows = self._read_query_result()
        rows = self._result.rows
        while self._result.has_next:
            self.next_result()
        return rows

    def fileno(self) -> int:
        """The socket's descriptor, to wait for an answer."""
        number: int = self._sock.fileno()
        return number

    def check(self) -> None:
        if not self._guarded:
            return
        if self._half_done:
            raise pymysql.OperationalError(INTERRUPTED, "a call was interrupted: the transaction cannot continue")
        failed = self._doubtful
        if failed:
            if not self.open:  # ping() would raise an error without a number
                raise pymysql.OperationalError(CR.CR_SERVER_LOST, "the connection was lost inside the transaction")
            self.ping(reconnect=False)
        if self.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
            self._doubtful = False
        elif failed:
            raise pymysql.OperationalError(ER.LOCK_DEADLOCK, "the server rolled back the transaction after an error")
        else:
            raise pymysql.ProgrammingError(ENDED)

    def ended(self) -> Exception | None:
        try:
            self.check()
        except pymysql.OperationalError as error:
            return translate(error, not self.open)
        except pymysql.Error:  # the handler has ended it
            pass
        return None

    def guard(self) -> None:
        super().begin()
        self._guarded, self._doubtful, self._half_done = True, False, False

    def abandon(self, error: BaseException) -> None:
        """Clean up after a failed call. A procedure usually rolls back its own transaction.

        It cannot on MySQL after KILL QUERY, or on MariaDB 11 after an error in a joined DELETE. Then its transaction is
        still open, and later calls on this connection would never be committed.
        """
        if self._guarded:
            self._half_done = number(error) == INTERRUPTED
        elif not of_contract(error):
            self.undo()

    def undo(self) -> None:
        with suppress(pymysql.Error):  # if it fails, the connection and the transaction are lost
            self.rollback()

    def end(self) -> None:
        self.commit()

    def begin(self) -> None:
        self._refuse("begin")
        super().begin()
