"""Connecting to MySQL and MariaDB, to the first host that answers and takes changes; and the guarded connection."""

import socket
import ssl
import struct
from contextlib import suppress
from datetime import datetime
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import COMMAND, CR, ER, FIELD_TYPE, SERVER_STATUS  # type: ignore[import-untyped]
from pymysql.converters import conversions, convert_datetime  # type: ignore[import-untyped]

from .. import values
from ..base import DatabaseError, Disconnected, ReadOnly
from ..guard import ENDED, Guarded, keep_alive
from ..url import CONNECT_SECONDS
from .address import Settings, places, resolve, tls, unverified
from .errors import HINTS, INTERRUPTED, number, of_contract, translate, translated, unreachable

SQL_MODE = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
# Idle consumers are not disconnected, and a COMMIT does not begin another transaction. autocommit is set explicitly:
# the driver takes it from a flag in the handshake, which does not show the server's default.
_SESSION = (
    "SET @mq_application = NULLIF(%s, ''), SESSION wait_timeout = 31536000, SESSION completion_type = 'NO_CHAIN',"
    " SESSION autocommit = 1, SESSION sql_big_selects = 1"
)
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
        return super()._create_ssl_ctx(sslp) if sslp else unverified()

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


def connect(named: Settings, application_name: str) -> Connection:
    """A driver connection in autocommit mode, to the first host that answers and takes changes.

    Raises as `Database.connect` does.
    """
    settings = resolve(named)
    if not settings.get("database"):
        raise DatabaseError(HINTS[1046])
    servers = places(settings)
    if len(servers) == 1:
        return _open(settings, *servers[0], application_name)
    errors: list[Disconnected] = []
    for host, port in servers:
        try:
            connection = _open(settings, host, port, application_name)
            if _takes_changes(connection):
                return connection
            errors.append(ReadOnly(f"{host}:{port} takes no changes"))
        except Disconnected as error:
            errors.append(error)
    only_read = all(isinstance(error, ReadOnly) for error in errors)
    raise (ReadOnly if only_read else Disconnected)("; ".join(map(str, errors)))


def _open(settings: Settings, host: str, port: int, application_name: str) -> Connection:
    name = values.program(application_name)
    where = settings.get("unix_socket") or f"{host}:{port}"
    patience = float(settings.get("connect_timeout", CONNECT_SECONDS))
    connection = Connection(
        defer_connect=True,
        autocommit=True,
        user=settings.get("user"),
        # The driver would write text as Latin-1.
        password=settings.get("password", "").encode(),
        host=host,
        port=port,
        unix_socket=settings.get("unix_socket"),
        database=settings["database"],
        charset="utf8mb4",
        conv=conversions | {FIELD_TYPE.DATETIME: _datetime},
        sql_mode=SQL_MODE,
        init_command=_ISOLATION,
        program_name=name or None,
        connect_timeout=patience,
        read_timeout=patience,
        write_timeout=float(settings["write_timeout"]) if "write_timeout" in settings else None,
        **tls(settings),
    )
    try:
        connection.connect(None if "unix_socket" in settings else _reach(connection.host, port, patience))
        connection.cursor().execute(_SESSION, [name])
        _repeat_nothing(connection)
    except (pymysql.Error, OSError, RuntimeError, ValueError, IndexError, AssertionError, struct.error) as error:
        raise unreachable(error, where) from error
    # The driver has no timeout for the handshake; until here, connect_timeout applied to it.
    connection._read_timeout = float(settings["read_timeout"]) if "read_timeout" in settings else None
    return connection


def _datetime(text: str) -> Any:
    """Convert a DATETIME as the driver does, but five times as fast."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # 0000-00-00
        return convert_datetime(text)


def _repeat_nothing(connection: Connection) -> None:
    """Let a Galera node report a conflict instead of repeating the CALL, which may already have returned rows."""
    if "MariaDB" in connection.get_server_info():
        with suppress(pymysql.OperationalError):  # 1193: built without Galera
            connection.cursor().execute("SET SESSION wsrep_retry_autocommit = 0")


def _takes_changes(connection: Connection) -> bool:
    """Whether the server takes changes; if not, the connection is closed. Raises Disconnected."""
    with translated(), connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.read_only OR @@GLOBAL.innodb_read_only")
        if not cursor.fetchone()[0]:
            return True
    connection.close()
    return False


def _reach(host: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection that detects a dead peer within about a minute. Raises OSError."""
    reached = socket.create_connection((host, port), seconds)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(reached)
    return reached
