"""SQL Server and Azure SQL through pymssql. Everything the runner knows of them stands in the modules sqlserver*."""

import hashlib
import logging
import re
import selectors
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from uuid import uuid4

import pymssql
from pymssql import _mssql

from .. import contract
from . import (
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
    sqlserver_rights,
)

_log = logging.getLogger(__name__)

# The first seven are what an index with a filter needs. No transaction begins by itself, and an error of
# a handler's own statement leaves the transaction to him, whatever the `user options` of the server say.
_SESSION = "".join(
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
_OPTIONS = ("connect_timeout", "encryption")
_ENCRYPTION = ("default", "off", "request", "require")
_CONNECT_SECONDS = 10
_LOGIN_BYTES = 128  # FreeTDS takes no longer name
_INSTALL_WAIT = 60  # seconds
_INSTALL_LOCK = "rowqueue"  # of this database
_LEAST_VERSION = (13, 0, 4001)  # 2016 SP1, the first with CREATE OR ALTER
_LEAST_LEVEL = 130
_BIGINT = 1 << 63

_SYSTEM = ("master", "model", "msdb", "tempdb")
_YOYO_TABLES = ("_yoyo_migration", "_yoyo_log", "_yoyo_version", "yoyo_lock")

# Numbers of the server's errors: https://learn.microsoft.com/sql/relational-databases/errors-events/
# database-engine-events-and-errors; those from 20000 to 20999 are FreeTDS's own.
_DEADLOCK = 1205
_CONFLICTS = {
    601,  # rows moved under a dirty read: the page of table hints says to treat it as a deadlock
    701,  # no memory
    802,
    1204,  # no room for more locks
    _DEADLOCK,
    1222,  # lock time-out
    2801,  # the procedure was changed while it was being called
    3958,  # the version store is full
    3960,  # update conflict under SNAPSHOT
    3961,
    3966,  # the version store was full: the transaction's versions are gone
    3998,  # the end of a call that a deadlock has spoilt: it hides 1205, whose severity is lower
    8628,  # no time to compile
    8645,  # no memory for the query
    8651,
}
# Two who put a message back at the same time, of which one rolls back: the other's place is taken for a moment.
_DUPLICATES = {2601, 2627}
_DISCONNECTS = {
    64,
    121,
    233,
    596,  # the session was killed
    615,  # the database was closed meanwhile
    921,  # the database is not recovered yet
    922,
    924,  # the database is in single-user mode
    927,  # it is being restored
    942,  # offline
    952,  # between two states
    976,  # the replica is not readable
    978,
    979,
    982,
    983,
    988,
    4221,  # a secondary that waits for row versions
    6005,  # shutdown in progress
    10053,
    10054,
    10060,
    10928,  # Azure: its limits, and its moves
    10929,
    10936,
    17142,  # paused
    17187,  # not ready yet
    17188,
    17189,
    17197,
    17809,  # too many connections
    18401,  # script upgrade mode
    18451,  # only administrators may log in
    20002,  # connection failed
    20003,  # timed out
    20004,  # read failed
    20005,
    20006,  # write failed
    20008,
    20009,  # unable to connect
    20017,  # unexpected end
    20047,  # the connection is dead
    40143,
    40197,
    40501,
    40540,
    40549,  # 40549 to 40553: the session took too long or too much
    40550,
    40551,
    40552,
    40553,
    40613,
    49918,
    49919,
    49920,
}
_READ_ONLY = 3906  # a secondary, or a server that is no longer the primary
_FORBIDDEN = {229, 230, 262, 297, 300, 916, 15151, 15247, 18452, 18456, 18470, 18486, 18487, 18488}
# A database that is recovering, or a server in a failover, says so of logins and databases it will know soon.
_NOT_YET = {4060, 18456}
_MISSING = {208, 2812, 4121}  # a table, a procedure, a function
_CONTINUED = re.compile(r"(?<=\\)(?=\r?\n)")
_OTHER_ARGUMENTS = {201, 8144, 8145, 8146}
_UNMAPPED = 33557097  # what Babelfish tells of PostgreSQL's errors that SQL Server does not have


# ---- errors --------------------------------------------------------------------------------------


def _told(error: BaseException) -> tuple[int, str]:
    """The number, 0 when there is none, and the text, which the driver gives as bytes and sometimes as a pair."""
    arguments = error.args
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        arguments = arguments[0]
    number = arguments[0] if len(arguments) > 1 and isinstance(arguments[0], int) else 0
    text = arguments[-1] if arguments else ""
    return number, text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def _number(error: BaseException) -> int:
    return _told(error)[0]


def _line(error: BaseException) -> str:
    """What the server or the driver says, on one line, without what the driver's library adds to it."""
    said, *added = re.split(r"DB-Lib error message \d+, severity \d+:\n", _told(error)[1])
    if not said.strip() and added:
        cause = re.search(r"(?:Net-Lib|Operating System) error during (.+) \(-?\d+\)", added[0])
        said = cause[1] if cause else added[0]
    return " ".join(said.split()) or type(error).__name__


def _tidy(error: BaseException) -> None:
    """Give one of the driver's errors its number and its text as arguments, as other drivers do."""
    number, text = _number(error), _line(error)
    error.args = (number, text) if number else (text,)


def _of_contract(error: BaseException) -> bool:
    return 50001 <= _number(error) <= 50999


def _translate(error: BaseException, closed: bool = False) -> Exception:
    """Our exception for one of the driver's; `closed`: the connection did not survive it."""
    number, message = _number(error), _line(error)
    if _of_contract(error):
        return QueueError(number, message)
    if number == _READ_ONLY:
        return ReadOnly(f"{message}: name the listener of the availability group, or the primary, in the URL")
    # Without a number it is the driver's own: nearly always, that it is not connected.
    lost = isinstance(error, pymssql.InterfaceError | _mssql.MSSQLDriverException) and not number
    if closed or lost or number in _DISCONNECTS:
        return Disconnected(message)
    # Babelfish has the database's name before that of the schema.
    named = re.search(r"(\b|_)mq\b", message) is not None
    if number in _CONFLICTS or (named and number in _DUPLICATES):
        return Conflict(message)
    absent = number == _UNMAPPED and "does not exist" in message
    if number in _OTHER_ARGUMENTS or (named and (number in _MISSING or absent)):
        return SchemaMissing(f"the queue is not installed here, or not in this version: run `runner apply` ({message})")
    if number in _FORBIDDEN or (number == _UNMAPPED and "permission denied" in message):
        return Forbidden(message)
    return DatabaseError(message)


def _unreachable(error: BaseException, where: str, been_connected: bool) -> Exception:
    """Our exception for a connection that was not made; `been_connected`: one like it was made before."""
    translated = _translate(error)
    if isinstance(translated, Disconnected) or (been_connected and _number(error) in _NOT_YET):
        return Disconnected(f"cannot connect to {where}: {translated}")
    return translated


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except pymssql.Error as error:
        raise _translate(error) from error


def _invalid(argument: str, reason: str) -> QueueError:
    return QueueError(50002, f"invalid_argument: {argument}: {reason}")


# ---- values --------------------------------------------------------------------------------------


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value as the driver is to write it. Raises QueueError when its type cannot hold it."""
    if value is None:
        return None
    if argument.type in {"text", "key"}:
        return _text(argument.name, str(value))
    if argument.type == "time":
        return _time(argument.name, value)
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        raise _invalid(argument.name, f"must be a finite number, not {str(value)[:100]!r}") from None
    if isinstance(value, float) and number != value:
        raise _invalid(argument.name, f"must be a whole number, not {value}")
    if not -_BIGINT <= number < _BIGINT:
        raise _invalid(argument.name, f"must be {-_BIGINT:,} to {_BIGINT - 1:,}")
    return number


def _text(name: str, text: str) -> str:
    # The driver would end the whole statement there.
    if "\0" in text:
        raise _invalid(name, "must not hold the character NUL")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _invalid(name, "must be valid Unicode text") from None
    return text


def _time(name: str, value: Any) -> str:
    """A time in UTC, in the one form that the server reads alike in all its languages; the driver would cut it."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise _invalid(name, f"must be a time of the years 1 to 9999 in UTC, not {str(value)[:100]!r}") from None
    return moment.isoformat(timespec="microseconds")


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "time": lambda moment: moment.replace(tzinfo=UTC),
    "key": lambda key: str(key).lower(),
    "number": float,
    "flag": int,
}


@cache
def _conversions(procedure: str) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    columns = contract.load().procedures[procedure].columns
    return tuple((column.name, _CONVERSIONS[column.type]) for column in columns if column.type in _CONVERSIONS)


@cache
def _statement(procedure: str, count: int) -> str:
    """The text of a call. What is left out takes the procedure's default."""
    return f"EXEC mq.{procedure} {', '.join(['%s'] * count)}".rstrip()


def _unbroken(procedure: str, values: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The text and values of a call, in which the server keeps each backslash that stands before the end of a line.

    The driver writes values into the statement, and inside a literal T-SQL takes such a backslash away, and the line
    end with it: two failures of a batch would become one. So a mark stands between the two, which the server removes.
    """
    declared, marked, given = [], [], []
    for n, value in enumerate(values):
        if isinstance(value, str) and _CONTINUED.search(value):
            mark = uuid4().hex
            while mark in value:
                mark = uuid4().hex
            whole = "CAST(%s AS nvarchar(max)) COLLATE Latin1_General_100_BIN2"
            declared.append(f"DECLARE @p{n} nvarchar(max) = REPLACE({whole}, N'{mark}', N'');")
            marked.append(_CONTINUED.sub(mark, value))
            given.append(f"@p{n}")
        else:
            given.append("%s")
    if not declared:
        return _statement(procedure, len(values)), values
    others = [value for value, text in zip(values, given, strict=True) if text == "%s"]
    return " ".join([*declared, f"EXEC mq.{procedure} {', '.join(given)}"]), (*marked, *others)


# ---- the connection ------------------------------------------------------------------------------


class _Connection(pymssql.Connection):  # type: ignore[misc]
    """The driver's connection, which does not go on in a transaction that has ended before its block.

    A deadlock rolls back the whole transaction, and so does an error in one of the queue's procedures. What a handler
    that swallows the error does next would commit by itself, statement by statement, while the messages it was done for
    come back.
    """

    _guarded = False
    _failure: BaseException | None = None  # since then only the server knows whether the transaction is still there

    def cursor(self, as_dict: bool | None = None, **options: Any) -> "_Cursor":
        return _Cursor(self, self.as_dict if as_dict is None else as_dict, **options)

    @property
    def is_closed(self) -> bool:
        try:
            return not self._conn.connected
        except pymssql.InterfaceError:
            return True

    def command(self, text: str) -> Any:
        """Run a statement of the runner's own; returns the first value of its first row, if it has any."""
        cursor = pymssql.Cursor(self, False)
        cursor.execute(text)
        rows = cursor.fetchall() if cursor.description else []
        while cursor.nextset():  # else the next statement would have to cancel what is left
            pass
        return rows[0][0] if rows else None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Around what a cursor does: raise unless the transaction of the block is there, and notice errors."""
        if self._guarded and self._failure is not None:
            self.check()
        try:
            yield
        except pymssql.Error as error:
            _tidy(error)
            self._failure = error
            raise

    def check(self) -> None:
        """Raise unless the transaction of the block is there."""
        failure = self._failure
        if self.command("SELECT @@TRANCOUNT"):
            self._failure = None
        elif failure is None:
            raise pymssql.ProgrammingError("a statement inside the transaction has ended it")
        elif _number(failure) in _CONFLICTS:
            raise pymssql.OperationalError(_DEADLOCK, "the server rolled back the transaction after an error")
        else:
            lack = "a statement failed inside the transaction and its error was swallowed"
            raise pymssql.ProgrammingError(f"{lack}: {_line(failure)}")

    def guard(self) -> None:
        """Begin a transaction and watch over it."""
        self.command("BEGIN TRANSACTION")
        self._guarded, self._failure = True, None

    def unguard(self) -> None:
        """Watch no longer."""
        self._guarded = False

    def end(self) -> None:
        """Commit, whatever a handler has nested into the transaction."""
        self.command("WHILE @@TRANCOUNT > 0 COMMIT TRANSACTION")

    def undo(self) -> None:
        """Roll back, if there is a transaction; never raises."""
        with suppress(pymssql.Error):  # then the connection is lost, and the transaction with it
            self.command("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")

    def abandon(self, error: BaseException) -> None:
        """See to what a failed call has left: what is no error of the contract may have passed by its handler."""
        if not self._guarded and not _of_contract(error):
            self.undo()

    # The driver's own do nothing, as it is in autocommit.
    def commit(self) -> None:
        self._refuse("commit")
        super().commit()

    def rollback(self) -> None:
        self._refuse("rollback")
        super().rollback()

    def _refuse(self, what: str) -> None:
        if self._guarded:
            raise pymssql.ProgrammingError(f"{what}() inside the runner's transaction: it is the runner that ends it")

    def close(self) -> None:
        """Close it, whatever state it is in. Never raises."""
        try:
            super().close()
        except (pymssql.Error, _mssql.MSSQLException) as error:
            _log.debug("closing: %s", _line(error))


class _Cursor(pymssql.Cursor):  # type: ignore[misc]
    """The driver's cursor, under the watch of its connection."""

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


class SQLServerSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        known = contract.load().procedures[procedure].arguments
        values = tuple(_value(argument, value) for argument, value in zip(known, arguments, strict=False))
        try:
            rows = self._run(*_unbroken(procedure, values))
        except pymssql.Error as error:
            self._connection.abandon(error)
            raise _translate(error, self._connection.is_closed) from error
        for name, convert in _conversions(procedure):
            for row in rows:
                if row[name] is not None:
                    row[name] = convert(row[name])
        return rows

    def _run(self, statement: str, values: tuple[Any, ...]) -> list[Row]:
        cursor = self._cursor
        cursor.execute(statement, values)
        rows: list[Row] = []
        if cursor.description:
            names = [column[0] for column in cursor.description]
            # The driver's own dicts take twice as long: they hold every value by its number as well, and are made anew.
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        while cursor.nextset():  # an error that came after the rows shows here
            pass
        return rows

    @contextmanager
    def transaction(self) -> Iterator[_Connection]:
        connection = self._connection
        with _translated():
            connection.guard()
        try:
            yield connection
            with _translated():
                connection.check()
        except BaseException:
            connection.unguard()
            connection.undo()
            raise
        connection.unguard()
        with _translated():
            connection.end()

    def now(self) -> datetime:
        with _translated():
            now: datetime = self._connection.command("SELECT SYSUTCDATETIME() AS now")
        return now.replace(tzinfo=UTC)

    def listen(self, types: Sequence[str]) -> bool:
        return False

    def wait(self, seconds: float, interrupt: int) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(interrupt, selectors.EVENT_READ)
            selector.select(max(0.0, seconds))
        return False

    def close(self) -> None:
        self._connection.close()


# ---- the database ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Address:
    """What a URL says."""

    host: str
    port: int
    database: str
    user: str | None
    password: str | None
    connect_seconds: int
    encryption: str | None

    @property
    def server(self) -> str:
        """Host and port, as the driver's library takes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _parse(url: str) -> _Address:
    """What a URL says. Raises ValueError, which never tells the password."""
    try:
        return _split(url)
    except ValueError as error:
        raise ValueError(f"database URL: {error}") from None


def _split(url: str) -> _Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        reason = "the address is not valid IPv6" if "IPv6" in str(error) else "the port is not a number of 0 to 65535"
        raise ValueError(f"{reason}; in names and passwords, special characters are written as %XX") from None
    if parts.fragment:
        raise ValueError("the character # is written as %23")
    if port == 0:
        raise ValueError("port is '0'; it must be 1 to 65535")
    try:
        user, password = (
            None if text is None else unquote(text, errors="strict") for text in (parts.username, parts.password)
        )
        database = unquote(parts.path[1:], errors="strict")
        strict = bool(parts.query)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=strict, errors="strict"))
    except ValueError:
        raise ValueError("a name, the password or an option is not percent-encoded UTF-8") from None
    if unknown := options.keys() - set(_OPTIONS):
        raise ValueError(f"unknown option {min(unknown)!r}; known: {', '.join(_OPTIONS)}")
    encryption = options.get("encryption")
    if encryption is not None and encryption not in _ENCRYPTION:
        raise ValueError(f"encryption is {encryption!r}; it must be one of {', '.join(_ENCRYPTION)}")
    seconds = options.get("connect_timeout", str(_CONNECT_SECONDS))
    if not (seconds.isdecimal() and 1 <= int(seconds) <= 32_767):
        raise ValueError(f"connect_timeout is {seconds!r}; it must be 1 to 32,767 seconds")
    for name, text in (("user", user), ("password", password), ("database", database)):
        if "\0" in (text or ""):
            raise ValueError("the character NUL stands in it")
        if len((text or "").encode()) > _LOGIN_BYTES:
            raise ValueError(f"the {name} is longer than {_LOGIN_BYTES} bytes")
    return _Address(parts.hostname or "localhost", port or 1433, database, user, password, int(seconds), encryption)


class SQLServer(Database):
    """A database of SQL Server 2016 SP1 or later or of Azure SQL, named by a URL.

    Options: `connect_timeout` in seconds, and `encryption`: default, off, request or require, as FreeTDS has them.
    """

    name: ClassVar[str] = "sqlserver"
    schemes: ClassVar[tuple[str, ...]] = ("sqlserver", "mssql")
    undoes_ddl: ClassVar[bool] = True
    # A call may meet new procedures beside old ones.
    swaps_at_once: ClassVar[bool] = False

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._address = _parse(url)
        self._been_connected = False

    def open(self, application_name: str) -> _Connection:
        """A connection of the driver's, in autocommit. Raises as `connect` does."""
        address = self._address
        if not address.database:
            raise DatabaseError("no database is named: sqlserver://user@host/database")
        # A blank stands for no name: for '' the driver would put its own.
        name = application_name.replace("\0", "").encode("utf-8", "replace")[:_LOGIN_BYTES].decode("utf-8", "ignore")
        _mssql.login_timeout = address.connect_seconds  # the driver has one for the whole process
        try:
            connected = _mssql.connect(
                server=address.server,
                user=address.user,
                password=address.password,
                database=address.database,
                charset="UTF-8",
                appname=name or " ",
                tds_version="7.4",
                encryption=address.encryption,
                conn_properties=_SESSION,
            )
        except _mssql.MSSQLException as error:
            raise _unreachable(error, address.server, self._been_connected) from error
        self._been_connected = True
        return _Connection(connected, False, True)

    def connect(self, application_name: str) -> Session:
        return SQLServerSession(self.open(application_name))

    def yoyo_url(self) -> str:
        return f"sqlserver:///?url={quote(self.url, safe='')}"

    @contextmanager
    def installing(self) -> Iterator[None]:
        # A lock of the session: it is free when the session ends, however that happens.
        with _translated(), closing(self.open("rowqueue apply")) as connection:
            _check(connection)
            if connection.command(_TAKE_LOCK) < 0:
                raise Conflict(f"another installation runs in this database; gave up after {_INSTALL_WAIT} s")
            yield

    def installed(self) -> dict[str, Installed] | None:
        with _translated(), closing(self.open("rowqueue apply")) as connection, connection.cursor() as cursor:
            rows = _installed_files(connection, cursor)
        if rows is None:
            return None
        return {name: Installed(name, kind, sha256, bool(changed)) for name, kind, sha256, changed in rows}

    def rights_problems(self) -> list[str]:
        with _translated(), closing(self.open("rowqueue apply")) as connection:
            # Babelfish shows no rights.
            return [] if _is_babelfish(connection) else sqlserver_rights.problems(connection)

    def warnings_about_installation(self) -> list[str]:
        with _translated(), closing(self.open("rowqueue apply")) as connection:
            return [] if _is_babelfish(connection) else sqlserver_rights.warnings(connection)

    def run_files(self, files: Sequence[tuple[str, str, str, str]]) -> list[str]:
        # One transaction a file, so that callers wait for a moment only. A file is recorded with it, without a
        # fingerprint, so that it counts as changed until all are done: a second `apply` then does the rest.
        with _translated(), closing(self.open("rowqueue apply")) as connection:
            replaces = _is_babelfish(connection)
            for file in files:
                _run_file(connection, file, replaces)
            connection.command(_FINGERPRINTS)
        return []

    def script(self, files: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
        yield _SCRIPT_HEAD
        for kind, name, sha256, text in files:
            # A file is one transaction: where a script has ended early, `runner apply` goes on.
            yield "BEGIN TRANSACTION;\nGO\n"
            if kind == "migration":
                # One statement a batch, as yoyo runs them: none is compiled before what it names is there.
                yield f"-- {kind} {name}\n"
                yield "".join(f"{statement}\nGO\n" for statement in _statements(text))
                yield _YOYO_ROW.format(name=name, hash=hashlib.sha256(name.encode()).hexdigest())
            else:
                # A procedure is kept with all that its batch holds: as the file has it, and nothing else.
                yield "".join(f"{batch}\nGO\n" for batch in _batches(text))
            yield _RECORD.replace("%s", "N'{}'").format(name, name, kind, sha256) + ";\nGO\n"
            yield "COMMIT TRANSACTION;\nGO\n"
        yield f"{_FINGERPRINTS};\nGO\n"

    def adopted_tables(self) -> list[str]:
        with _translated(), closing(self.open("rowqueue uninstall")) as connection, connection.cursor() as cursor:
            if connection.command("SELECT OBJECT_ID(N'mq.polled') AS id") is None:
                return []
            cursor.execute("SELECT name FROM mq.polled ORDER BY 1")
            return [name for (name,) in cursor.fetchall()]

    def dependents(self) -> list[str]:
        with _translated(), closing(self.open("rowqueue uninstall")) as connection, connection.cursor() as cursor:
            if _is_babelfish(connection):  # which has no such catalog
                return []
            cursor.execute(_DEPENDENTS)
            return [f"{kind} {schema}.{name}" for kind, schema, name in cursor.fetchall()]

    def uninstall(self) -> None:
        with self.installing(), _translated():
            recorded = self.installed() or {}
            migrations = {name for name, entry in recorded.items() if entry.kind == "migration"}
            with closing(self.open("rowqueue uninstall")) as connection, connection.cursor() as cursor:
                connection.command(BEGIN)
                _release_tables(connection, cursor)
                _drop_schema(cursor)
                _forget_migrations(cursor, migrations | {path.stem for path in _migration_files()})
                _drop_roles(cursor)
                connection.end()


# ---- installing ----------------------------------------------------------------------------------

# What ends in the middle leaves nothing: an error ends the batch, and the transaction with it.
BEGIN = "SET XACT_ABORT ON; BEGIN TRANSACTION"

_TAKE_LOCK = f"""\
DECLARE @got int;
EXEC @got = sp_getapplock @Resource = N'{_INSTALL_LOCK}', @LockMode = 'Exclusive', @LockOwner = 'Session',
    @LockTimeout = {_INSTALL_WAIT * 1000};
SELECT @got AS got"""

_RECORD = """\
DELETE FROM mq.installed WHERE name = %s;
INSERT INTO mq.installed (name, kind, sha256, fingerprint, applied_at) VALUES (%s, %s, %s, NULL, SYSUTCDATETIME())"""

_FINGERPRINTS = "UPDATE mq.installed SET fingerprint = mq.object_fingerprint(name) WHERE kind = 'procedure'"

# Without the triggers of watched tables, which are the queue's own.
_DEPENDENTS = """\
SELECT LOWER(REPLACE(o.type_desc, '_', ' ')), OBJECT_SCHEMA_NAME(o.object_id), o.name
FROM sys.objects AS o
WHERE o.schema_id <> SCHEMA_ID(N'mq') AND o.name <> CONCAT(N'mq_watch_', o.parent_object_id)
    AND (EXISTS (SELECT 1 FROM sys.sql_expression_dependencies AS d
            WHERE d.referencing_id = o.object_id AND d.referenced_schema_name = N'mq'
                AND d.referenced_database_name IS NULL)
        OR EXISTS (SELECT 1 FROM sys.foreign_keys AS f
            WHERE f.object_id = o.object_id AND OBJECT_SCHEMA_NAME(f.referenced_object_id) = N'mq'))
ORDER BY 1, 2, 3"""

_IN_DATABASE = (
    *("CREATE SCHEMA", "CREATE TABLE", "CREATE TYPE", "CREATE PROCEDURE", "CREATE FUNCTION", "CREATE VIEW"),
    *("CREATE ROLE", "ALTER ANY USER"),
)
_AZURE = (5, 8, 12)  # editions whose version says nothing: SQL Database, Managed Instance, SQL database in Fabric

# In the order in which they can go; the types come after what has parameters of them.
_KINDS = {
    "V": "VIEW",
    "P": "PROCEDURE",
    "FN": "FUNCTION",
    "IF": "FUNCTION",
    "TF": "FUNCTION",
    "U": "TABLE",
    "SO": "SEQUENCE",
    "SN": "SYNONYM",
}


def _is_babelfish(connection: _Connection) -> bool:
    return connection.command("SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS nvarchar(128)) AS v") is not None


def _check(connection: _Connection) -> None:
    """Raise for a server too old or a database of the server's own, and Forbidden that names what is missing."""
    name = connection.command("SELECT DB_NAME()")
    if str(name).lower() in _SYSTEM:
        raise DatabaseError(
            f"{name} is the server's own database: CREATE DATABASE makes one for the queue, name that in the URL"
        )
    # Babelfish calls itself an old SQL Server, and knows few of these rights.
    if _is_babelfish(connection):
        return
    with connection.cursor() as cursor:
        cursor.execute(_SERVER)
        version, edition, level, user, database = cursor.fetchone()
        build = tuple(int(part) for part in re.findall(r"\d+", version or "")[:3])
        if edition not in _AZURE and build < _LEAST_VERSION:
            least = ".".join(map(str, _LEAST_VERSION))
            raise DatabaseError(f"the queue needs SQL Server 2016 SP1 (build {least}) or later: this is {version}")
        if level is not None and level < _LEAST_LEVEL:
            raise DatabaseError(
                f"database {database} has the compatibility level {level}, and the queue needs {_LEAST_LEVEL}:"
                f" ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = {_LEAST_LEVEL}"
            )
        here = [f"HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', '{right}')" for right in _IN_DATABASE]
        cursor.execute(f"SELECT {', '.join(here)}, HAS_PERMS_BY_NAME(N'dbo', 'SCHEMA', 'ALTER')")
        *found, in_schema = cursor.fetchone()
    if missing := [right for right, has in zip(_IN_DATABASE, found, strict=True) if not has]:
        raise Forbidden(f"user {user} needs the right {', '.join(missing)} on database {database} to install")
    if not in_schema:  # where yoyo keeps its tables
        raise Forbidden(f"user {user} needs the right ALTER on schema dbo to install")


_SERVER = """\
SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)), CAST(SERVERPROPERTY('EngineEdition') AS int),
    CAST((SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME()) AS int), USER_NAME(), DB_NAME()"""


def _batches(text: str) -> Iterator[str]:
    """The batches of a file for sqlcmd: a line that is GO and nothing else ends one."""
    for batch in re.split(r"^GO[ \t]*$", text, flags=re.M | re.I):
        if batch.strip():
            yield batch.strip("\n")


def _statements(text: str) -> Iterator[str]:
    """The statements of a migration: each ends at the end of a line."""
    lines: list[str] = []
    for line in text.splitlines():
        comment = line.lstrip().startswith("--")
        if lines or (line and not comment):
            lines.append(line)
        if lines and not comment and line.endswith(";"):
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _replacing(batch: str) -> list[str]:
    """The same for Babelfish, which knows no CREATE OR ALTER; the grants come anew after every change.

    Nor can it grant the sight of definitions, which it hides from nobody, or run a procedure as its owner, and it
    counts characters in every collation.
    """
    if "GRANT VIEW DEFINITION" in batch:
        return []
    batch = batch.replace("Latin1_General_100_CI_AS_SC", "Latin1_General_100_BIN2")
    batch = batch.replace("WITH EXECUTE AS OWNER\n", "")
    # It has no security policies.
    batch = batch.replace(
        "sys.security_predicates AS p", "(SELECT 0 AS object_id, 0 AS target_object_id, 1 AS predicate_type) AS p"
    )
    batch = batch.replace("sys.security_policies AS s", "(SELECT 0 AS object_id, 0 AS is_enabled) AS s")
    # Its schema dbo belongs to a role.
    batch = batch.replace("q.principal_id <> COALESCE(t.principal_id, s.principal_id)", "1 = 0")
    found = re.search(r"^CREATE OR ALTER (\w+) ([\w.\[\]]+)", batch, re.M)
    if not found:
        return [batch]
    created = f"{batch[: found.start()]}CREATE {found[1]} {found[2]}{batch[found.end() :]}"
    return [f"DROP {found[1]} IF EXISTS {found[2]}", created]


def _run_file(connection: _Connection, file: tuple[str, str, str, str], replaces: bool) -> None:
    kind, name, sha256, text = file
    try:
        connection.command(BEGIN)
        for batch in _batches(text):
            for part in _replacing(batch) if replaces else [batch]:
                connection.command(part)
        with connection.cursor() as cursor:
            cursor.execute(_RECORD, (name, name, kind, sha256))
        connection.end()
    except pymssql.Error as error:
        translated = _translate(error, connection.is_closed)
        connection.undo()
        raise type(translated)(f"{name}.sql: {translated}") from error


def _installed_files(connection: _Connection, cursor: _Cursor) -> list[tuple[str, str, str, Any]] | None:
    """What is recorded: name, kind, sha256, changed; None when nothing is."""
    try:
        cursor.execute("EXEC mq.installed_files")
        return [row[:4] for row in cursor.fetchall()]
    except pymssql.Error as error:
        if not isinstance(_translate(error, connection.is_closed), SchemaMissing):
            raise
    if connection.command("SELECT OBJECT_ID(N'mq.installed', N'U')") is None:
        return None
    # Without the procedures nothing can be compared, and all of them are to be installed again.
    cursor.execute("SELECT name, kind, sha256, CASE kind WHEN 'procedure' THEN 1 ELSE 0 END FROM mq.installed")
    return list(cursor.fetchall())


def _migration_files() -> list[Path]:
    return sorted((contract.sql_root() / "migrations" / SQLServer.name).glob("*.sql"))


def _release_tables(connection: _Connection, cursor: _Cursor) -> None:
    """Give claimed rows of adopted tables their status back: nobody could do that afterwards."""
    if connection.command("SELECT OBJECT_ID(N'mq.release_table', N'P')") is None:
        return
    cursor.execute("SELECT name FROM mq.polled")
    for (name,) in cursor.fetchall():
        cursor.execute(*_unbroken("release_table", (name,)))


def _drop_schema(cursor: _Cursor) -> None:
    """Drop the schema mq with all that is in it, and the triggers of watched tables, which would fail without it."""
    cursor.execute(
        "SELECT QUOTENAME(OBJECT_SCHEMA_NAME(object_id)), QUOTENAME(name) FROM sys.triggers"
        " WHERE name = CONCAT(N'mq_watch_', parent_id)"
    )
    for schema, trigger in cursor.fetchall():
        cursor.execute(f"DROP TRIGGER {schema}.{trigger}")
    cursor.execute(
        "SELECT RTRIM(type), QUOTENAME(name) FROM sys.objects"
        " WHERE schema_id = SCHEMA_ID(N'mq') AND parent_object_id = 0 ORDER BY name"
    )
    found = cursor.fetchall()
    for known, kind in _KINDS.items():
        for name in [name for code, name in found if code == known]:
            cursor.execute(f"DROP {kind} IF EXISTS mq.{name}")
    cursor.execute("SELECT QUOTENAME(name) FROM sys.types WHERE is_user_defined = 1 AND schema_id = SCHEMA_ID(N'mq')")
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP TYPE mq.{name}")
    cursor.execute("DROP SCHEMA IF EXISTS mq")


def _forget_migrations(cursor: _Cursor, migrations: Iterable[str]) -> None:
    """Delete our rows of yoyo's tables, and the tables when no other project's migrations are left in them."""
    cursor.execute(
        "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = N'dbo' AND TABLE_NAME IN %s",
        (_YOYO_TABLES,),
    )
    found = {name for (name,) in cursor.fetchall()}
    for table in {"_yoyo_migration", "_yoyo_log"} & found:
        cursor.execute(f"DELETE FROM dbo.{table} WHERE migration_id IN %s", (tuple(migrations),))
    if "_yoyo_migration" in found:
        cursor.execute("SELECT TOP (1) 1 FROM dbo._yoyo_migration")
        if cursor.fetchone():
            return
    for table in sorted(found):
        cursor.execute(f"DROP TABLE dbo.{table}")


def _drop_roles(cursor: _Cursor) -> None:
    """Drop the roles, which belong to this database alone: first of all whoever has them must give them back."""
    cursor.execute(
        "SELECT r.name, QUOTENAME(m.name) FROM sys.database_role_members AS x"
        " INNER JOIN sys.database_principals AS r ON r.principal_id = x.role_principal_id"
        " INNER JOIN sys.database_principals AS m ON m.principal_id = x.member_principal_id WHERE r.name IN %s",
        (sqlserver_rights.ROLES,),
    )
    for role, member in cursor.fetchall():
        cursor.execute(f"ALTER ROLE {role} DROP MEMBER {member}")
    cursor.execute(
        "SELECT name FROM sys.database_principals WHERE type = 'R' AND name IN %s", (sqlserver_rights.ROLES,)
    )
    for (role,) in cursor.fetchall():
        cursor.execute(f"DROP ROLE {role}")
    cursor.execute(f"DROP USER IF EXISTS {sqlserver_rights.TELLER}")


DATABASE = SQLServer

# yoyo's own tables as yoyo 9 makes them, so that `yoyo apply` and `runner apply` go on from here. sqlcmd has
# QUOTED_IDENTIFIER off, and a procedure keeps what was on when it was made.
_SCRIPT_HEAD = f"""\
-- rowqueue for SQL Server 2016 SP1 and later and Azure SQL: the whole installation in a database without it, for
-- sqlcmd: sqlcmd -b -f 65001 -d DATABASE -i this-file. It ends at the first error.
:on error exit
SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;
SET IMPLICIT_TRANSACTIONS OFF;
SET XACT_ABORT ON;
SET NOCOUNT ON;
GO
IF (SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME()) < {_LEAST_LEVEL}
    THROW 50000, N'the queue needs the compatibility level {_LEAST_LEVEL}: SQL Server 2016 SP1 or later', 1;
DECLARE @got int;
EXEC @got = sp_getapplock @Resource = N'{_INSTALL_LOCK}', @LockMode = 'Exclusive', @LockOwner = 'Session',
    @LockTimeout = {_INSTALL_WAIT * 1000};
IF @got < 0
    THROW 50000, N'another installation runs in this database', 1;
IF SCHEMA_ID(N'mq') IS NOT NULL
    THROW 50000, N'the schema mq is there already: an installation is brought up to date by `runner apply`', 1;
GO
IF OBJECT_ID(N'dbo.yoyo_lock', N'U') IS NULL
    CREATE TABLE dbo.yoyo_lock (locked int DEFAULT 1, ctime datetime2, pid int NOT NULL, PRIMARY KEY (locked));
IF OBJECT_ID(N'dbo._yoyo_log', N'U') IS NULL
    CREATE TABLE dbo._yoyo_log (
        id varchar(36), migration_hash varchar(64), migration_id varchar(255), operation varchar(10),
        username varchar(255), hostname varchar(255), comment varchar(255), created_at_utc datetime2, PRIMARY KEY (id)
    );
IF OBJECT_ID(N'dbo._yoyo_version', N'U') IS NULL
    CREATE TABLE dbo._yoyo_version (version int NOT NULL PRIMARY KEY, installed_at_utc datetime2);
IF OBJECT_ID(N'dbo._yoyo_migration', N'U') IS NULL
    CREATE TABLE dbo._yoyo_migration (
        migration_hash varchar(64), migration_id varchar(255), applied_at_utc datetime2, PRIMARY KEY (migration_hash)
    );
GO
IF NOT EXISTS (SELECT * FROM dbo._yoyo_version)
    INSERT INTO dbo._yoyo_version VALUES (2, SYSUTCDATETIME());
GO
"""

_YOYO_ROW = """\
INSERT INTO dbo._yoyo_migration VALUES ('{hash}', '{name}', SYSUTCDATETIME());
GO
"""
