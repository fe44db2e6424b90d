"""MySQL and MariaDB through PyMySQL. Everything the runner knows of these servers stands in the modules mysql*."""

import hashlib
import logging
import math
import re
import selectors
import socket
import ssl
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import CR, ER, FIELD_TYPE, SERVER_STATUS  # type: ignore[import-untyped]
from pymysql.converters import conversions, convert_datetime  # type: ignore[import-untyped]
from pymysql.cursors import DictCursor  # type: ignore[import-untyped]

from .. import contract
from . import (
    Cluster,
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    Forbidden,
    Installed,
    QueueError,
    ReadOnly,
    Row,
    SchemaMissing,
    Session,
    mysql_clusters,
    mysql_options,
)

_log = logging.getLogger(__name__)

_SQL_MODE = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
# An idle consumer is not cut off, a COMMIT ends a transaction without beginning the next, and a call commits by itself
# whatever the server's default is: the driver believes a flag of the handshake, which does not show that default.
_SESSION = (
    "SET @mq_application = NULLIF(%s, ''), SESSION wait_timeout = 31536000, SESSION completion_type = 'NO_CHAIN',"
    " SESSION autocommit = 1, SESSION sql_big_selects = 1"
)
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
_CONNECT_SECONDS = 10.0
_PACKET_HEAD = 1024  # bytes of max_allowed_packet that are not for the text of a call: more than enough
_INSTALL_WAIT = 60  # seconds
# The lock belongs to the whole server, and its name has at most 64 characters. MySQL 9.6 has no MD5 any more.
_INSTALL_LOCK = "CONCAT('rowqueue.', LEFT(SHA2(DATABASE(), 256), 40))"

_ROLES = ("mq_producer", "mq_consumer", "mq_operator")
_OWNER = "'mq_owner'@'localhost'"
_YOYO_TABLES = ("_yoyo_migration", "_yoyo_log", "_yoyo_version", "yoyo_lock")

# Numbers of the servers' errors: https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html and
# https://mariadb.com/kb/en/mariadb-error-codes/
_INTERRUPTED = 1317  # KILL QUERY
_CONFLICTS = {
    1020,  # MariaDB: the record has changed since the snapshot
    1205,  # lock wait timeout
    1213,  # deadlock
    _INTERRUPTED,
    1412,  # table definition has changed
    1615,  # statement needs to be prepared anew
    1637,  # too many concurrent transactions
    3101,  # rolled back by the replication group
    3572,  # NOWAIT
}
_DISCONNECTS = {
    1040,  # too many connections
    1047,  # a Galera node that is not ready
    1053,  # server shutdown in progress
    1077,
    1078,
    1079,
    1152,
    1158,
    1159,
    1160,
    1161,
    1184,
    1180,  # a COMMIT that failed, unless it was for a conflict
    1203,  # max_user_connections
    1226,
    1927,  # MariaDB: connection was killed
    2002,
    2003,
    2006,
    2013,
    2014,
    2055,
    3100,  # a member that has left its replication group
    4031,  # closed for inactivity
}
_READ_ONLY = {1792, 1836}  # a secondary, or a server that is no longer the primary
# What the driver raises while it reads an answer that is not as the protocol has it. So are those of a Galera node that
# repeats a CALL after it has sent rows (wsrep_retry_autocommit).
_MALFORMED = (AttributeError, LookupError, TypeError, AssertionError, struct.error)
_FORBIDDEN = {1044, 1045, 1142, 1143, 1227, 1370, 1410, 1698}
_MISSING = {1146, 1305, 1318}  # a table, a routine, a routine with these arguments
_BAD_VALUES = {1264, 1265, 1292, 1366, 1406, 3988}
_RANGES = {"smallint": 15, "integer": 31, "bigint": 63}


# ---- errors --------------------------------------------------------------------------------------


def _number(error: BaseException) -> int:
    """The server's or the driver's number; 0 when there is none. The driver reads 50001 as a negative number."""
    number = error.args[0] if error.args else 0
    return number & 0xFFFF if isinstance(number, int) else 0


def _line(error: BaseException) -> str:
    """What the server or the driver says, on one line."""
    text = " ".join(str(error.args[-1] if error.args else error).split())
    if isinstance(error, pymysql.InterfaceError) and not text:
        return "the connection is closed"
    return text or type(error).__name__


def _of_contract(error: BaseException) -> bool:
    return 50001 <= _number(error) <= 50999


def _translate(error: BaseException, closed: bool = False) -> Exception:
    """Our exception for one of the driver's; `closed`: the connection did not survive it."""
    number, message = _number(error), _line(error)
    if _of_contract(error):
        return QueueError(number, message)
    if closed or isinstance(error, pymysql.InterfaceError):
        return Disconnected(message)
    # A savepoint is gone when the server has rolled back the transaction. A failed COMMIT tells why by its text only.
    in_commit = number == ER.ERROR_DURING_COMMIT and "deadlock" in message.lower()
    if number in _CONFLICTS or in_commit or message.startswith("SAVEPOINT "):
        return Conflict(message)
    # 1290 names the option that forbids the statement.
    if number in _READ_ONLY or (number == ER.OPTION_PREVENTS_STATEMENT and "read-only" in message):
        return ReadOnly(f"{message}: name the primary, or all servers, mysql://user@one,two/database, in the URL")
    if number in _DISCONNECTS:
        return Disconnected(message)
    if number in _MISSING and "mq_" in message:
        return SchemaMissing(f"the queue is not installed here, or not in this version: run `runner apply` ({message})")
    if number in _FORBIDDEN:
        return Forbidden(message)
    return DatabaseError(_HINTS.get(number, "{}").format(message))


_HINTS = {
    1046: "no database is named: mysql://user@host/database",
    1419: "{} (or let the server's administrator SET GLOBAL log_bin_trust_function_creators = 1)",
}


def _unreachable(error: BaseException, where: str) -> Exception:
    """Our exception for a connection that was not made."""
    cause = getattr(error, "original_exception", error)
    message = _line(error)
    if isinstance(cause, OSError):
        message = f"cannot connect to {where}: {_line(cause)}"
    handshake_cut = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError)
    if isinstance(cause, PermissionError) or (isinstance(cause, ssl.SSLError) and not handshake_cut):
        return DatabaseError(message)
    if isinstance(cause, OSError):
        return Disconnected(message)
    if isinstance(error, RuntimeError):  # what PyMySQL lacks for this account's authentication plugin
        return DatabaseError(f"{message}: pip install 'PyMySQL[rsa,ed25519]'")
    if not isinstance(error, pymysql.Error):
        return DatabaseError(f"{where} does not answer as a MySQL or MariaDB server ({message})")
    if _number(error) == CR.CR_AUTH_PLUGIN_CANNOT_LOAD:
        return DatabaseError(f"{message}: the driver does not know it; give the account another authentication plugin")
    return _translate(error)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except pymysql.Error as error:
        raise _translate(error) from error


def _invalid(argument: str, reason: str) -> QueueError:
    return QueueError(50002, f"invalid_argument: {argument}: {reason}")


# ---- values --------------------------------------------------------------------------------------


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value as the driver is to write it. Raises QueueError when its type cannot hold it."""
    if isinstance(value, str):
        if "\0" in value:
            raise _invalid(argument.name, "must not hold the character NUL")
    elif isinstance(value, int):
        bits = _RANGES.get(contract.load().types["mysql"][argument.type])
        if bits and not -(1 << bits) <= value < 1 << bits:
            raise _invalid(argument.name, f"must be {-(1 << bits):,} to {(1 << bits) - 1:,}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise _invalid(argument.name, "must be a finite number")
    elif isinstance(value, datetime) and value.tzinfo is not None:
        try:
            return value.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            raise _invalid(argument.name, "must be a time of the years 1 to 9999 in UTC") from None
    return value


def _bad_argument(error: pymysql.Error) -> QueueError | None:
    """The contract's error for a value that never reached the procedure because the type cannot hold it."""
    named = re.search(r"[`'.]p_(\w+)[`'] at row", _line(error))
    return _invalid(named[1], _line(error)) if _number(error) in _BAD_VALUES and named else None


def _datetime(text: str) -> Any:
    """As the driver reads a DATETIME, five times as fast."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # 0000-00-00
        return convert_datetime(text)


@cache
def _times(procedure: str) -> tuple[str, ...]:
    return tuple(column.name for column in contract.load().procedures[procedure].columns if column.type == "time")


@cache
def _numbers(procedure: str) -> frozenset[str]:
    return frozenset(column.name for column in contract.load().procedures[procedure].columns if column.type == "number")


def _convert(rows: Sequence[Row], procedure: str, decimals: Sequence[str]) -> None:
    """Give times their zone, and what the server has counted as decimal numbers the contract's type."""
    for name in _times(procedure):
        for row in rows:
            if row[name] is not None:
                row[name] = row[name].replace(tzinfo=UTC)
    for name in decimals:
        kind = float if name in _numbers(procedure) else int
        for row in rows:
            if row[name] is not None:
                row[name] = kind(row[name])


# ---- the connection ------------------------------------------------------------------------------


class _Connection(pymysql.connections.Connection):  # type: ignore[misc]
    """The driver's connection, which does not go on in a transaction that has ended before its block.

    A deadlock rolls back the whole transaction. What a handler that swallows the error does next would commit by
    itself, statement by statement, while the messages it was done for come back.
    """

    _guarded = False
    _doubtful = False  # an error came: only the server knows whether the transaction is still there
    _half_done = False  # a call was interrupted, and a part of its work may still be in the transaction

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        """The driver's own way for no options, TLS if the server has it, without loading what is not used."""
        return super()._create_ssl_ctx(sslp) if sslp else mysql_options.unverified()

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

    def check(self) -> None:
        """Raise unless the transaction of the block is there; outside of one, do nothing."""
        if not self._guarded:
            return
        if self._half_done:
            raise pymysql.OperationalError(_INTERRUPTED, "a call was interrupted: the transaction cannot go on")
        failed = self._doubtful
        if failed:
            self.ping()
        if self.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
            self._doubtful = False
        elif failed:
            raise pymysql.OperationalError(ER.LOCK_DEADLOCK, "the server rolled back the transaction after an error")
        else:
            raise pymysql.ProgrammingError("a statement inside the transaction has ended it")

    def ended(self) -> pymysql.Error | None:
        """The conflict, or the lost connection, by which the server has ended the transaction of the block."""
        try:
            self.check()
        except pymysql.OperationalError as error:
            return error
        except pymysql.Error:  # the handler itself has ended it
            pass
        return None

    def guard(self) -> None:
        """Begin a transaction and watch over it."""
        super().begin()
        self._guarded, self._doubtful, self._half_done = True, False, False

    def abandon(self, error: BaseException) -> None:
        """See to what a failed call has left: a procedure undoes its work itself, if the server lets it.

        MySQL does not after KILL QUERY, MariaDB 11 not after an error in a joined DELETE: then the procedure's own
        transaction is still open, and nothing would ever be committed on this connection again.
        """
        if self._guarded:
            self._half_done = _number(error) == _INTERRUPTED
        elif not _of_contract(error):
            with suppress(pymysql.Error):  # then the connection is lost, and the transaction with it
                self.rollback()

    def unguard(self) -> None:
        """Watch no longer."""
        self._guarded = False

    def begin(self) -> None:
        self._refuse("begin")
        super().begin()

    def commit(self) -> None:
        self._refuse("commit")
        super().commit()

    def rollback(self) -> None:
        self._refuse("rollback")
        super().rollback()

    def _refuse(self, what: str) -> None:
        if self._guarded:
            raise pymysql.ProgrammingError(f"{what}() inside the runner's transaction: it is the runner that ends it")


class MySQLSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: _Connection, longest_call: int) -> None:
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
            raise _bad_argument(error) or _translate(error, not self._connection.open) from error
        _convert(rows, procedure, [column[0] for column in description if column[1] == FIELD_TYPE.NEWDECIMAL])
        return rows

    def _statement(self, procedure: str, arguments: Sequence[Any]) -> bytes:
        """The call as the server reads it. Raises QueueError for what cannot be written, or is too long for it."""
        known = contract.load().procedures[procedure].arguments
        padded = [*arguments, *[None] * (len(known) - len(arguments))]
        texts = []
        for argument, value in zip(known, padded, strict=True):
            try:
                texts.append(self._connection.escape(_value(argument, value)).encode())
            except UnicodeEncodeError:
                raise _invalid(argument.name, "must be valid Unicode text") from None
        statement = b"CALL mq_%s(%s)" % (procedure.encode(), b", ".join(texts))
        # The server would close the connection, and the same call would be tried again without end.
        if len(statement) > self._longest_call:
            longest = max(range(len(texts)), key=lambda number: len(texts[number]))
            limit = f"the call has {len(statement):,} bytes, the server takes {self._longest_call:,}"
            raise _invalid(known[longest].name, f"{limit}: raise its max_allowed_packet")
        return statement

    @contextmanager
    def transaction(self) -> Iterator[_Connection]:
        connection = self._connection
        with _translated():
            connection.guard()
        try:
            yield connection
            with _translated():
                connection.check()
        except BaseException as error:
            ended = connection.ended() if isinstance(error, Exception) else None
            connection.unguard()
            with suppress(pymysql.Error):  # then the connection is lost, and the transaction with it
                connection.rollback()
            # What a handler makes of a conflict that one of its own statements met is not its failure.
            if ended is not None and not isinstance(error, DatabaseError | QueueError):
                raise _translate(ended, not connection.open) from error
            raise
        connection.unguard()
        with _translated():
            connection.commit()

    def now(self) -> datetime:
        with _translated():
            self._cursor.execute("SELECT UTC_TIMESTAMP(6) AS now")
            now: datetime = self._cursor.fetchone()["now"]
        return now.replace(tzinfo=UTC)

    def execute(self, statement: str) -> None:
        with _translated():  # DDL would end a transaction
            self._cursor.execute(statement)

    def listen(self, types: Sequence[str]) -> bool:
        return False

    def wait(self, seconds: float, interrupt: int) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(interrupt, selectors.EVENT_READ)
            selector.select(seconds)
        return False

    def close(self) -> None:
        try:
            self._connection.close()
        except pymysql.Error as error:
            _log.debug("closing: %s", _line(error))


# ---- the database ----------------------------------------------------------------------------------


class MySQL(Database):
    """A database of MySQL 8.0 or later or MariaDB 10.6 or later, named by a URL.

    The URL goes first, then the environment, then the user's option file, as with the servers' own client.
    """

    name: ClassVar[str] = "mysql"
    schemes: ClassVar[tuple[str, ...]] = ("mysql", "mariadb")
    swaps_at_once: ClassVar[bool] = False

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._named = mysql_options.parse(url)

    def open(self, application_name: str) -> _Connection:
        """A connection of the driver's, in autocommit. Raises as `connect` does.

        Of several hosts it is the first that answers and takes changes.
        """
        settings = mysql_options.resolve(self._named)
        if not settings.get("database"):
            raise DatabaseError(_HINTS[1046])
        places = mysql_options.places(settings)
        if len(places) == 1:
            return self._open(settings, *places[0], application_name)
        errors: list[Disconnected] = []
        for host, port in places:
            try:
                connection = self._open(settings, host, port, application_name)
                if _takes_changes(connection):
                    return connection
                errors.append(ReadOnly(f"{host}:{port} takes no changes"))
            except Disconnected as error:
                errors.append(error)
        only_read = all(isinstance(error, ReadOnly) for error in errors)
        raise (ReadOnly if only_read else Disconnected)("; ".join(map(str, errors)))

    def open_own(self, application_name: str) -> _Connection:
        """A connection for statements of ours, whatever the server has set for those of its users."""
        connection = self.open(application_name)
        with _translated():
            connection.cursor().execute("SET SESSION sql_safe_updates = 0")
        return connection

    def _open(self, settings: mysql_options.Settings, host: str, port: int, application_name: str) -> _Connection:
        # Bytes that no name is made of; the server's own limit for a name is the procedures' 200 characters.
        name = application_name.replace("\0", "").encode("utf-8", "replace").decode()[:200]
        where = settings.get("unix_socket") or f"{host}:{port}"
        patience = float(settings.get("connect_timeout", _CONNECT_SECONDS))
        connection = _Connection(
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
            sql_mode=_SQL_MODE,
            init_command=_ISOLATION,
            program_name=name or None,
            connect_timeout=patience,
            read_timeout=patience,
            write_timeout=float(settings["write_timeout"]) if "write_timeout" in settings else None,
            **mysql_options.tls(settings),
        )
        try:
            connection.connect(None if "unix_socket" in settings else _reach(connection.host, port, patience))
            connection.cursor().execute(_SESSION, [name])
            _repeat_nothing(connection)
        except (pymysql.Error, OSError, RuntimeError, ValueError, IndexError, AssertionError, struct.error) as error:
            raise _unreachable(error, where) from error
        # The driver has no time-out of its own for the handshake: up to here it was that of connecting.
        connection._read_timeout = float(settings["read_timeout"]) if "read_timeout" in settings else None
        return connection

    def connect(self, application_name: str) -> Session:
        connection = self.open(application_name)
        with _translated(), connection.cursor() as cursor:
            cursor.execute("SELECT @@max_allowed_packet")
            return MySQLSession(connection, cursor.fetchone()[0] - _PACKET_HEAD)

    def yoyo_url(self) -> str:
        return f"mysql+rowqueue:///?url={quote(self.url, safe='')}"

    @contextmanager
    def installing(self) -> Iterator[None]:
        with _translated(), closing(self.open_own("rowqueue apply")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT DATABASE()")
            if (name := cursor.fetchone()[0]).lower() in _SYSTEM:
                raise DatabaseError(f"{name} is a database of the server's own: name one of yours in the URL")
            _check_rights(cursor)
            cursor.execute(f"SELECT GET_LOCK({_INSTALL_LOCK}, %s)", [_INSTALL_WAIT])
            if cursor.fetchone() != (1,):
                raise Conflict(f"another installation runs in this database; gave up after {_INSTALL_WAIT} s")
            yield

    def installed(self) -> dict[str, Installed] | None:
        with _translated(), closing(self.open_own("rowqueue apply")) as connection, connection.cursor() as cursor:
            rows = _installed_files(cursor)
        if rows is None:
            return None
        return {name: Installed(name, kind, sha256, bool(changed)) for name, kind, sha256, changed in rows}

    def rights_problems(self) -> list[str]:
        with _translated(), closing(self.open_own("rowqueue doctor")) as connection, connection.cursor() as cursor:
            try:
                return _rights_problems(cursor)
            except pymysql.Error as error:
                if _number(error) not in _FORBIDDEN:
                    raise
                return []  # only who may install may look

    def warnings_about_installation(self) -> list[str]:
        with _translated(), closing(self.open_own("rowqueue doctor")) as connection, connection.cursor() as cursor:
            return _warnings(cursor)

    def cluster(self) -> Cluster | None:
        with _translated(), closing(self.open_own("rowqueue doctor")) as connection, connection.cursor() as cursor:
            return mysql_clusters.cluster(cursor)

    def run_files(self, files: Sequence[tuple[str, str, str, str]]) -> list[str]:
        # DDL commits by itself. A file is recorded when it has run, without a fingerprint, so that it counts as changed
        # until all are done: a second `apply` then does the rest.
        with _translated(), closing(self.open_own("rowqueue apply")) as connection, connection.cursor() as cursor:
            for kind, name, sha256, text in files:
                _run_file(cursor, name, text)
                cursor.execute(_RECORD, [name, kind, sha256])
            if any(name == _GRANTS for _, name, _, _ in files):
                _revoke_from_everybody(cursor)
            for statement in _FINGERPRINTS:
                cursor.execute(statement)
        return []

    def script(self, files: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
        yield _SCRIPT_HEAD
        for kind, name, sha256, text in files:
            yield f"-- {kind} {name}\n{text.rstrip()}\n"
            if kind == "migration":
                yield _YOYO_ROW.format(name=name, hash=hashlib.sha256(name.encode()).hexdigest())
            yield _RECORD % (f"'{name}'", f"'{kind}'", f"'{sha256}'") + ";\n"
        yield from (f"{statement};\n" for statement in _FINGERPRINTS)

    def adopted_tables(self) -> list[str]:
        with _translated(), closing(self.open_own("rowqueue uninstall")) as connection, connection.cursor() as cursor:
            if not _existing(cursor, "tables", ["mq_polled"]):
                return []
            cursor.execute("SELECT name FROM mq_polled ORDER BY 1")
            return [name for (name,) in cursor.fetchall()]

    def dependents(self) -> list[str]:
        with _translated(), closing(self.open_own("rowqueue uninstall")) as connection, connection.cursor() as cursor:
            cursor.execute(_DEPENDENTS)
            own = {f"mq_{name}" for name in contract.load().objects("mysql")}
            return [
                f"{kind} {schema}.{name}"
                for kind, schema, name, mine in cursor.fetchall()
                if name not in own or not mine
            ]

    def uninstall(self) -> None:
        with self.installing(), _translated(), closing(self.open_own("rowqueue uninstall")) as connection:
            recorded = self.installed() or {}
            migrations = {name for name, entry in recorded.items() if entry.kind == "migration"}
            with connection.cursor() as cursor:
                _drop_objects(cursor, recorded)
                _forget_migrations(cursor, migrations | {path.stem for path in _migration_files()})
                _drop_accounts(cursor)


def _repeat_nothing(connection: _Connection) -> None:
    """Let a Galera node report a conflict instead of repeating the CALL, which may have sent rows already."""
    if "MariaDB" in connection.get_server_info():
        with suppress(pymysql.OperationalError):  # 1193: built without Galera
            connection.cursor().execute("SET SESSION wsrep_retry_autocommit = 0")


def _takes_changes(connection: _Connection) -> bool:
    """Whether the server is no secondary; a connection to one is closed. Raises Disconnected."""
    with _translated(), connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.read_only OR @@GLOBAL.innodb_read_only")
        if not cursor.fetchone()[0]:
            return True
    connection.close()
    return False


def _reach(host: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection on which a dead peer is noticed within about a minute. Raises OSError."""
    reached = socket.create_connection((host, port), seconds)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reached.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            reached.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return reached


# ---- installing ----------------------------------------------------------------------------------

_RECORD = """\
REPLACE INTO mq_installed (name, kind, sha256, fingerprint, applied_at)
VALUES (%s, %s, %s, NULL, UTC_TIMESTAMP(6))"""

_FINGERPRINTS = (
    "CALL mq_object_fingerprint(@mq_fingerprints)",
    """\
UPDATE mq_installed AS i
INNER JOIN JSON_TABLE(@mq_fingerprints, '$[*]' COLUMNS (
    name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]', fingerprint char(64) CHARACTER SET ascii PATH '$[1]'
)) AS f ON f.name = i.name
SET i.fingerprint = f.fingerprint
WHERE i.kind = 'procedure'""",
)

_GRANTS = "grants"
_SYSTEM = {"mysql", "sys", "information_schema", "performance_schema"}
# PROCESS is what the guide gives the owner for queue_health, SELECT on some columns what require_use reads.
_OF_NO_DATABASE = re.compile(r"GRANT (USAGE|PROCESS) ON \*\.\* |GRANT SELECT \([^)]*\) ON `mysql`\.")
_EVERYBODY = ("", "PUBLIC")  # the anonymous account; MariaDB's name for all

# Watched tables that the triggers' owner has no right on, as after a restore under another name.
_WATCHED = """\
SELECT DISTINCT CONCAT('`', REPLACE(t.event_object_schema, '`', '``'), '`.`',
    REPLACE(t.event_object_table, '`', '``'), '`')
FROM information_schema.triggers AS t
WHERE t.trigger_schema = DATABASE() AND t.definer = 'mq_owner@localhost' AND t.action_statement LIKE '%mq\\_tell(%'
    AND NOT EXISTS (
        SELECT * FROM information_schema.table_privileges AS p
        WHERE p.grantee = '''mq_owner''@''localhost''' AND p.table_schema = t.event_object_schema
            AND p.table_name = t.event_object_table AND p.privilege_type = 'TRIGGER'
    )
    AND NOT EXISTS (
        SELECT * FROM information_schema.schema_privileges AS p
        WHERE p.grantee = '''mq_owner''@''localhost''' AND t.event_object_schema LIKE p.table_schema
            AND p.privilege_type = 'TRIGGER'
    )"""

_TRIGGERS = """\
SELECT trigger_schema, trigger_name FROM information_schema.triggers
WHERE definer = 'mq_owner@localhost'
    AND (LOCATE(CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.mq_tell('), action_statement) > 0
        OR trigger_schema = DATABASE() AND LOCATE('CALL mq_tell(', action_statement) > 0)"""

# No catalog of both servers tells what a view is made of, but its text does: names in it are whole and quoted.
_DEPENDENTS = """\
SELECT 'view', table_schema, table_name, table_schema = DATABASE() FROM information_schema.views
WHERE LOCATE(CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.`mq_'), view_definition) > 0
UNION ALL
SELECT 'foreign key', constraint_schema, constraint_name, 0 FROM information_schema.referential_constraints
WHERE unique_constraint_schema = DATABASE() AND referenced_table_name LIKE 'mq\\_%'
    AND NOT (constraint_schema = DATABASE() AND table_name LIKE 'mq\\_%')
ORDER BY 1, 2, 3"""

_IN_DATABASE = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "EXECUTE"),
    *("CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "GRANT OPTION"),
)
# Each of these sets lets a user make procedures that belong to another account, which may exist already: those of
# MariaDB, of MySQL and of MySQL before 8.2.
_DEFINERS = ({"SET USER"}, {"SET_ANY_DEFINER", "ALLOW_NONEXISTENT_DEFINER"}, {"SET_USER_ID"})


def _statements(text: str) -> Iterator[str]:
    """The statements of a file for the servers' own client: each ends at the end of a line."""
    delimiter = ";"
    lines: list[str] = []
    for line in text.splitlines():
        comment = line.lstrip().startswith("--")
        if line.startswith("DELIMITER "):
            delimiter = line.split()[1]
        elif lines or (line and not comment):
            lines.append(line)
        if lines and not comment and line.endswith(delimiter):
            yield "\n".join(lines).removesuffix(delimiter)
            lines = []
    if lines:
        yield "\n".join(lines)


def _run_file(cursor: Any, name: str, text: str) -> None:
    try:
        for statement in _statements(text):
            cursor.execute(statement)
    except pymysql.Error as error:
        translated = _translate(error)
        raise type(translated)(f"{name}.sql: {translated}") from error


def _installed_files(cursor: Any) -> list[tuple[str, str, str, int]] | None:
    """What is recorded: name, kind, sha256, changed; None when nothing is."""
    try:
        cursor.execute("CALL mq_installed_files()")
        rows = [row[:4] for row in cursor.fetchall()]
        while cursor.nextset():
            pass
        return rows
    except pymysql.Error as error:
        # The procedures may be missing, or their owner or its rights. Where nothing is installed, MySQL tells an
        # account with few rights that it lacks this one.
        is_missing = _number(error) == ER.SP_DOES_NOT_EXIST or "mq_owner" in _line(error)
        if _number(error) == ER.PROCACCESS_DENIED_ERROR and not is_missing:
            seen = _existing(cursor, "routines", ["mq_installed_files"]) + _existing(cursor, "tables", ["mq_installed"])
            is_missing = not seen
        if not is_missing:
            raise
    if not _existing(cursor, "tables", ["mq_installed"]):
        return None
    # Without the procedures nothing can be compared, and all of them are to be installed again.
    cursor.execute("SELECT name, kind, sha256, kind = 'procedure' FROM mq_installed")
    return list(cursor.fetchall())


def _existing(cursor: Any, kind: str, names: Iterable[str]) -> list[str]:
    """Which of these `tables`, `views` or `routines` are in the database, in the order of their names."""
    column = "routine" if kind == "routines" else "table"
    cursor.execute(
        f"SELECT {column}_name FROM information_schema.{kind}"
        f" WHERE {column}_schema = DATABASE() AND {column}_name IN %s ORDER BY 1",
        [[*names]],
    )
    return [name for (name,) in cursor.fetchall()]


def _check_rights(cursor: Any) -> None:
    """Raise Forbidden that names what is missing: the first refused statement would leave half an installation."""
    cursor.execute("SELECT CURRENT_USER(), DATABASE(), CURRENT_ROLE(), VERSION()")
    user, database, role, version = cursor.fetchone()
    cursor.execute("SHOW GRANTS")
    lines = [line for (line,) in cursor.fetchall()]
    if role not in (None, "NONE") and "MariaDB" not in version:  # which MariaDB shows by itself
        cursor.execute(f"SHOW GRANTS FOR CURRENT_USER() USING {role}")
        lines += [line for (line,) in cursor.fetchall()]
    everywhere, here = _rights(lines, database)
    if missing := [right for right in _IN_DATABASE if right not in here | everywhere]:
        raise Forbidden(f"user {user} needs the right {', '.join(missing)} on database {database} to install")
    if "CREATE USER" not in everywhere:
        raise Forbidden(f"user {user} needs the right CREATE USER on *.* to install")
    if not any(names <= everywhere for names in _DEFINERS):
        names = (
            "SET USER"
            if "MariaDB" in version
            else "SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER (before 8.2: SET_USER_ID)"
        )
        raise Forbidden(f"user {user} needs the right {names} on *.* to install")


def _rights(lines: Iterable[str], database: str) -> tuple[set[str], set[str]]:
    """The rights that SHOW GRANTS tells, on the whole server and on one database."""
    everywhere, here = set[str](), set[str]()
    for line in lines:
        found = re.match(r"GRANT (.+?) ON (?:(\*)|`((?:[^`]|``)+)`)\.\* TO (.*)", line)
        if not found:
            continue
        names, server, pattern, rest = found.groups()
        rights = set(re.split(", ?", names)) | ({"GRANT OPTION"} if "GRANT OPTION" in rest else set())
        if "ALL PRIVILEGES" in rights:
            rights |= {*_IN_DATABASE, "CREATE USER", "SET USER"} - {"GRANT OPTION"}
        if server:
            everywhere |= rights
        elif _is_like(database, pattern.replace("``", "`")):
            here |= rights
    return everywhere, here


def _is_like(name: str, pattern: str) -> bool:
    """Does a name match a pattern of a grant: % and _ are wild, unless a backslash stands before them."""
    parts = re.findall(r"\\([%_])|([%_])|(.)", pattern, re.S)
    wild = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(wild.get(w) or re.escape(e or c) for e, w, c in parts), name, re.S | re.I))


def _granted_by_files() -> tuple[set[tuple[str, str, str]], set[str]]:
    """What grants.sql gives: (right, object, account); and the objects themselves."""
    text = (contract.sql_root() / "procedures" / MySQL.name / f"{_GRANTS}.sql").read_text("utf-8")
    given = set()
    for rights, name, accounts in re.findall(r"(?m)^GRANT ([A-Z, ]+?) ON (?:PROCEDURE )?(mq_\w+) TO (.+);$", text):
        for right in rights.split(", "):
            for account in accounts.split(", "):
                given.add((right, name, "mq_owner" if account == _OWNER else account))
    return given, {name for _, name, _ in given}


def _rights_problems(cursor: Any) -> list[str]:
    """See Database.rights_problems; an error when this account may not read who has which right."""
    wanted, names = _granted_by_files()
    problems = []
    cursor.execute("SELECT user FROM mysql.user WHERE user IN %s", [["mq_owner", *_ROLES]])
    accounts = {user for (user,) in cursor.fetchall()}
    if "mq_owner" not in accounts:
        problems.append(f"{_OWNER}, whom the procedures belong to, does not exist")
    problems += [f"role {role} does not exist" for role in _ROLES if role not in accounts]
    cursor.execute(
        "SELECT routine_name, definer FROM information_schema.routines WHERE routine_schema = DATABASE()"
        " UNION ALL SELECT table_name, definer FROM information_schema.views WHERE table_schema = DATABASE()"
    )
    for name, definer in cursor.fetchall():
        if name in names and definer != "mq_owner@localhost":
            problems.append(f"{name} belongs to {definer}, not to mq_owner@localhost")
    have = set()
    strangers = []
    cursor.execute(
        "SELECT user, routine_name, proc_priv FROM mysql.procs_priv WHERE db = DATABASE()"
        " UNION ALL SELECT user, table_name, table_priv FROM mysql.tables_priv WHERE db = DATABASE()"
    )
    for user, name, rights in cursor.fetchall():
        for right in filter(None, rights.upper().split(",")):
            have.add((right, name, user))
            known = user in (*_ROLES, "mq_owner")
            if name in names and (right, name, user) not in wanted and (known or user in _EVERYBODY):
                who = user if known else "everybody"
                strangers.append(f"{who} has {right} on {name}")
    cursor.execute(
        "SELECT user FROM mysql.db WHERE DATABASE() LIKE db AND user IN %s AND execute_priv = 'Y'", [_EVERYBODY]
    )
    if cursor.fetchall():
        strangers.append("everybody may execute all procedures of this database")
    problems += [f"{user} lacks {right} on {name}" for right, name, user in sorted(wanted - have) if user in accounts]
    problems += sorted(strangers)
    cursor.execute(_WATCHED)
    return problems + [
        f"the triggers of {table} would fail: GRANT SELECT, TRIGGER ON {table} TO {_OWNER}"
        for (table,) in cursor.fetchall()
    ]


def _revoke_from_everybody(cursor: Any) -> None:
    """Take away what grants.sql does not give, from everybody and from the queue's own accounts."""
    wanted, names = _granted_by_files()
    try:
        for table, column, held, kind in (
            ("procs_priv", "routine_name", "proc_priv", "PROCEDURE "),
            ("tables_priv", "table_name", "table_priv", ""),
        ):
            cursor.execute(
                f"SELECT user, host, {column}, {held} FROM mysql.{table} WHERE db = DATABASE() AND user IN %s",
                [[*_EVERYBODY, *_ROLES, "mq_owner"]],
            )
            for user, host, name, rights in cursor.fetchall():
                for right in filter(None, rights.upper().split(",")):
                    if name in names and (right, name, user) not in wanted:
                        account = user if user in ("PUBLIC", *_ROLES) else f"'{user}'@'{host}'"
                        right = right.replace("GRANT", "GRANT OPTION")
                        cursor.execute(f"REVOKE {right} ON {kind}{name} FROM {account}")
    except pymysql.Error as error:
        if _number(error) not in _FORBIDDEN:
            raise


def _warnings(cursor: Any) -> list[str]:
    """See Database.warnings_about_installation."""
    warnings = []
    with suppress(pymysql.Error):  # not who may look
        cursor.execute(f"SHOW GRANTS FOR {_OWNER}")
        for (line,) in cursor.fetchall():
            if " ON *.* " in line and not re.match(r"GRANT (USAGE|PROCESS) ON ", line):
                warnings.append(f"{_OWNER} needs no right on the whole server but has: {line}")
            elif re.search(r" ON [^ ]+\.\* ", line) and " ON *.* " not in line:
                warnings.append(f"{_OWNER} needs rights on single tables only but has: {line}")
        cursor.execute(
            "SELECT COUNT(*) FROM mysql.columns_priv WHERE user = 'mq_owner' AND db = 'mysql' AND table_name = 'db'"
        )
        if cursor.fetchone() == (0,):
            warnings.append(
                f"{_OWNER} may not read the server's rights: a polling table or feed serves only the user that made it"
            )
    return warnings


def _migration_files() -> list[Path]:
    return sorted((contract.sql_root() / "migrations" / MySQL.name).glob("*.sql"))


def _drop_objects(cursor: Any, recorded: Iterable[str]) -> None:
    """Drop the views, procedures and tables of this release and those that are recorded."""
    objects = [f"mq_{name}" for name in {*contract.load().objects("mysql"), *recorded}]
    created = r"CREATE TABLE (?:IF NOT EXISTS )?(mq_\w+)"
    tables = [name for path in _migration_files() for name in re.findall(created, path.read_text("utf-8"))]
    # Triggers of watched tables would fail with their writers.
    cursor.execute(_TRIGGERS)
    for schema, trigger in cursor.fetchall():
        cursor.execute("DROP TRIGGER {}.{}".format(*(f"`{name.replace('`', '``')}`" for name in (schema, trigger))))
    for procedure in _existing(cursor, "routines", objects):
        cursor.execute(f"DROP PROCEDURE {procedure}")
    for kind, names in (("view", objects), ("table", tables)):
        for name in _existing(cursor, f"{kind}s", names):
            with suppress(pymysql.ProgrammingError, pymysql.OperationalError):  # it has none
                cursor.execute(f"REVOKE ALL PRIVILEGES ON {name} FROM {_OWNER}")  # rights outlive their table
            cursor.execute(f"DROP {kind.upper()} {name}")


def _forget_migrations(cursor: Any, migrations: Iterable[str]) -> None:
    """Delete our rows of yoyo's tables, and the tables when no other project's migrations are left in them."""
    found = _existing(cursor, "tables", _YOYO_TABLES)
    for table in {"_yoyo_migration", "_yoyo_log"}.intersection(found):
        cursor.execute(f"DELETE FROM {table} WHERE migration_id IN %s", [[*migrations]])
    if "_yoyo_migration" not in found or not cursor.execute("SELECT 1 FROM _yoyo_migration LIMIT 1"):
        for table in found:
            cursor.execute(f"DROP TABLE {table}")


def _drop_accounts(cursor: Any) -> None:
    """Drop the roles and the procedures' owner. They belong to all databases of a server: one that has rights stays."""
    for kind, account in [("ROLE", role) for role in _ROLES] + [("USER", _OWNER)]:
        try:
            cursor.execute(f"SHOW GRANTS FOR {account}")
            if all(_OF_NO_DATABASE.match(line) for (line,) in cursor.fetchall()):
                cursor.execute(f"DROP {kind} {account}")
            else:
                _log.warning("%s %s stays: it has rights in another database", kind.lower(), account)
        except pymysql.Error as error:
            if _number(error) != ER.NONEXISTING_GRANT:  # it is not there
                _log.warning("%s %s stays: %s", kind.lower(), account, _line(error))


DATABASE = MySQL

# yoyo's own tables as yoyo 9 makes them, so that `yoyo apply` and `runner apply` go on from here.
YOYO_TABLES = """\
CREATE TABLE IF NOT EXISTS yoyo_lock (
    locked INT DEFAULT 1, ctime TIMESTAMP, pid INT NOT NULL, PRIMARY KEY (locked)
);
CREATE TABLE IF NOT EXISTS _yoyo_log (
    id VARCHAR(36), migration_hash VARCHAR(64), migration_id VARCHAR(255), operation VARCHAR(10),
    username VARCHAR(255), hostname VARCHAR(255), comment VARCHAR(255), created_at_utc TIMESTAMP, PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS _yoyo_version (version INT NOT NULL PRIMARY KEY, installed_at_utc TIMESTAMP);
INSERT IGNORE INTO _yoyo_version VALUES (2, UTC_TIMESTAMP());
CREATE TABLE IF NOT EXISTS _yoyo_migration (
    migration_hash VARCHAR(64), migration_id VARCHAR(255), applied_at_utc TIMESTAMP, PRIMARY KEY (migration_hash)
);
"""

_SCRIPT_HEAD = f"""\
-- rowqueue for MySQL and MariaDB: the whole installation, for the mysql client: mysql --comments DATABASE < this file.
-- It ends at the first error. DDL cannot be undone, but the script can be run again.
SET NAMES utf8mb4;
SET SESSION sql_mode = '{_SQL_MODE}', SESSION time_zone = '+00:00', SESSION autocommit = 1;
SET SESSION sql_safe_updates = 0;
-- A script has no other means of ending with a message: a column of that name is asked for, which does not exist.
SET @mq_statement = IF(LOWER(DATABASE()) IN ({", ".join(f"'{name}'" for name in sorted(_SYSTEM))}),
    'SELECT `this database is the server''s own: name one of yours`', 'DO 0');
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
DO GET_LOCK({_INSTALL_LOCK}, {_INSTALL_WAIT});
{YOYO_TABLES}"""

_YOYO_ROW = """\
INSERT IGNORE INTO _yoyo_migration VALUES ('{hash}', '{name}', UTC_TIMESTAMP());
"""
