"""Where and how to connect to Firebird: URLs, the client library, connections, and what the driver's errors mean."""

import ctypes
import logging
import os
import re
import socket
import stat
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from firebird.driver import Connection as DriverConnection
from firebird.driver import Error, InterfaceError, driver_config
from firebird.driver.core import DPB, Statement, TransactionManager
from firebird.driver.fbapi import get_api, has_api, load_api
from firebird.driver.interfaces import iAttachment
from firebird.driver.provider import find_library

from . import Conflict, DatabaseError, Disconnected, Forbidden, QueueError, ReadOnly, SchemaMissing
from .firebird_watch import Watched, answer

_log = logging.getLogger(__name__)

LIBRARY = "FIREBIRD_CLIENT_LIBRARY"
_OPTIONS = ("charset", "connect_timeout", "role")
_CONNECT_SECONDS = 10
_ATTACH_SECONDS = 30  # for the server's part, after the client's
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}

# How a transaction goes about its work, as the API has it: the driver's own function for it needs the client library.
_READ_COMMITTED = bytes([3, 9, 15, 17])  # format 3, write, read committed, record version
# A claim passes over what another has locked, and does not stand still behind it.
NO_WAIT = _READ_COMMITTED + b"\x07"
WAIT = _READ_COMMITTED + b"\x06"
# For changes of the schema, which wait until running calls of an object have ended.
PATIENCE = 60  # seconds
PATIENT = WAIT + b"\x15\x04" + PATIENCE.to_bytes(4, "little")

# Numbers of the server's errors: https://firebirdsql.org/file/documentation/html/en/refdocs/fblangref50/
# firebird-50-language-reference.html#fblangref50-appx02-sqlcodes
_EXCEPTION = 335544517
_CONFLICTS = {
    335544336,  # deadlock
    335544345,  # lock conflict on no wait transaction
    335544348,  # no current record: 3.0, for a row that has gone since the statement found it
    335544451,  # update conflicts with concurrent update
    335544510,  # lock time-out
    335544453,  # object is in use
    335544794,  # operation was cancelled
}
_DISCONNECTS = {
    335544324,  # invalid database handle: an earlier call has lost it
    335544421,  # connection rejected by remote interface
    335544528,  # database shutdown
    335544557,
    335544648,  # connection lost to pipe server
    335544721,  # network errors
    335544722,
    335544726,
    335544727,
    335544741,  # connection lost to database
    335544744,  # too many attachments
    335544856,  # connection shutdown
    335545130,  # killed by database administrator
}
_READ_ONLY = {335544361, 335544765}  # of a transaction, of a database: a replica
_FORBIDDEN = {
    335544352,  # no permission
    335544472,  # no such user, or not this password
    335545094,  # no permission to create or change objects: on 3.0
    335545264,  # and later
}
_MISSING = {335544512, 335544580, 335544581, 335544586}  # other parameters; no such table, procedure, function
_NO_COLUMN = 335544578
_IO_ERROR = 335544344
_UNIQUE = 335544665
_NO_CHARSET = 335544509
# Keys that another transaction may have put there and not committed yet.
_AWAITED = re.compile("MQ_(DEDUP_PK|WATCHED_LABEL|SUBSCRIPTION_PK)")
_NO_METADATA_UPDATE = 335544351


def is_taken(error: BaseException) -> bool:
    """Whether a row or a name is there already, or another transaction is about to put it there."""
    codes = set(getattr(error, "gds_codes", None) or ())
    # A server tells of a name that is taken in several ways: of an index, of a lock, or with a text that 3.0 lacks.
    return bool(codes & {_UNIQUE, _NO_METADATA_UPDATE}) and not codes & _FORBIDDEN


def line(error: BaseException) -> str:
    """What the server or the driver says, on one line."""
    return " ".join(part.lstrip("-") for part in str(error).split("\n") if part).strip() or type(error).__name__


def _of_contract(text: str) -> QueueError | None:
    """The numbered error that a procedure has raised."""
    found = re.search(
        r"^-?MQ_(50\d{3})\n-?(.*?)(?:\n-?At (?:procedure|function|block|trigger|sub) .*)?\Z", text, re.M | re.S
    )
    return QueueError(int(found[1]), found[2]) if found else None


def translate(error: BaseException) -> Exception:
    """Our exception for one of the driver's."""
    codes = set(getattr(error, "gds_codes", None) or ())
    state = getattr(error, "sqlstate", None) or ""
    message = line(error)
    if _EXCEPTION in codes and (raised := _of_contract(str(error))):
        return raised
    if isinstance(error, AttributeError) or codes & _DISCONNECTS or (state.startswith("08") and _IO_ERROR not in codes):
        # The driver lets go of a connection that it has closed.
        return Disconnected("the connection is closed" if isinstance(error, AttributeError) else message)
    if codes & _READ_ONLY:
        return ReadOnly(f"{message}: name the primary in the URL; a database of its own: gfix -mode read_write")
    if codes & _CONFLICTS or state == "40001" or (_UNIQUE in codes and _AWAITED.search(message)):
        return Conflict(message)
    if codes & _FORBIDDEN or state == "28000":
        return Forbidden(message)
    if (codes & _MISSING and "MQ_" in message) or _NO_COLUMN in codes:
        return SchemaMissing(f"the queue is not installed here, or not in this version: run `runner apply` ({message})")
    return DatabaseError(message)


@contextmanager
def translated() -> Iterator[None]:
    """The driver's errors come out as ours."""
    try:
        yield
    except Error as error:
        raise translate(error) from error


# ---- the client library --------------------------------------------------------------------------

_loading = threading.Lock()


def _load(embedded: bool) -> None:
    """Load the client library once a process. Raises DatabaseError that says what to install."""
    with _loading:
        if has_api():
            return
        # It warns of handles that went with a lost connection.
        warnings.filterwarnings("ignore", module=r"firebird\.driver")
        named = os.environ.get(LIBRARY)
        has_wheel = _has_wheel()
        found = bool(driver_config.fb_client_library.value or find_library("fbclient"))
        try:
            if named:
                _preload(Path(named).parent)
                load_api(named)
            elif has_wheel and (embedded or not found):
                _load_wheel()
            elif found:
                load_api()
            else:
                raise DatabaseError(
                    "no Firebird client library: install your system's (libfbclient2), or pip install"
                    f" firebird-embedded, or name one in {LIBRARY}"
                )
        except (OSError, RuntimeError) as error:
            hint = ": apt-get install libtommath1" if "libtommath" in str(error) else ""
            raise DatabaseError(f"Firebird client library: {line(error)}{hint}") from error


def _has_wheel() -> bool:
    try:
        return find_spec("firebird.embedded") is not None
    except ModuleNotFoundError:
        return False


def _load_wheel() -> None:
    """The library of the package firebird-embedded, which is linked against two libraries that it does not find."""
    from firebird.embedded.provider import FirebirdProvider

    provider = FirebirdProvider()
    _preload(provider.root)
    load_api(provider)


def _preload(folder: Path) -> None:
    if not (folder / "libtomcrypt.so.1").exists():
        return
    beside = folder / "libtommath.so.1"
    ctypes.CDLL(str(beside) if beside.exists() else beside.name, ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(folder / "libtomcrypt.so.1"), ctypes.RTLD_GLOBAL)


# ---- connecting ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """What a URL says. `host`: None for the embedded engine; `database`: a path or an alias."""

    host: str | None
    port: int | None
    database: str
    user: str | None
    password: str | None
    role: str | None
    connect_seconds: int

    @property
    def dsn(self) -> str:
        """The database as the client library names it."""
        if self.host is None:
            return self.database
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}{f'/{self.port}' if self.port else ''}:{self.database}"


def parse(url: str) -> Address:
    """What a URL says. Raises ValueError, which never tells the password."""
    try:
        return _split(url)
    except ValueError as error:
        raise ValueError(f"database URL: {error}") from None


def _split(url: str) -> Address:
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
    host = parts.hostname or None
    try:
        user, password = (
            None if text is None else unquote(text, errors="strict") for text in (parts.username, parts.password)
        )
        # Without a host it is a file of this machine, whose whole path the URL's path is.
        database = unquote(parts.path[1:] if host else parts.path, errors="strict")
        options = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), errors="strict")
        )
    except ValueError:
        raise ValueError("a name, the password or an option is not percent-encoded UTF-8") from None
    if unknown := options.keys() - set(_OPTIONS):
        raise ValueError(f"unknown option {min(unknown)!r}; known: {', '.join(_OPTIONS)}")
    if options.get("charset", "UTF8").upper() not in {"UTF8", "UTF-8"}:
        raise ValueError(f"charset is {options['charset']!r}; it must be UTF8")
    seconds = options.get("connect_timeout", str(_CONNECT_SECONDS))
    if not (seconds.isdecimal() and 1 <= int(seconds) <= 32_767):
        raise ValueError(f"connect_timeout is {seconds!r}; it must be 1 to 32,767 seconds")
    if "\0" in database + (user or "") + (password or ""):
        raise ValueError("the character NUL stands in it")
    return Address(host, port, database, user, password, options.get("role") or None, int(seconds))


class Connection(DriverConnection):  # type: ignore[misc]
    """The driver's connection, which leaves the runner's transaction to the runner.

    Where no transaction is active there is nothing to end: other drivers think so, and yoyo relies on it.
    """

    guarded = False
    watched: Watched | None = None  # None for the embedded engine, which always answers

    def at_work(self) -> None:
        """A call begins, whose answer is not awaited for good."""
        if self.watched is not None:
            self.watched.begin()

    def at_rest(self) -> None:
        """No call runs."""
        if self.watched is not None:
            self.watched.end()

    def let_go(self, error: BaseException) -> None:
        """Ask nothing more of a server that has ended this connection: it may leave that without an answer."""
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
            raise InterfaceError(f"{what}() inside the runner's transaction: it is the runner that ends it")

    def close(self) -> None:
        """Close it, whatever state it is in. Never raises."""
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
    """Free a statement, whatever state its connection is in."""
    try:
        statement.free()
    except Error as error:
        _log.debug("freeing: %s", line(error))
        # It went with the connection, and the driver would try to free it when it is collected.
        statement._istmt._refcnt, statement._istmt = 0, None


def forget_transaction(manager: TransactionManager) -> None:
    """End a transaction that may be past ending in order."""
    try:
        if has_ended(manager):
            # The driver would release what a COMMIT has released.
            manager._tra._refcnt, manager._tra = 0, None
        elif manager.is_active():
            manager.rollback()
    except (Error, AttributeError) as error:
        _log.debug("rollback: %s", line(error))
        manager._tra = None


def has_ended(manager: TransactionManager) -> bool:
    """Whether a statement such as COMMIT has ended a transaction that the driver takes for active."""
    return manager._tra is not None and not manager._tra._as_parameter_


def connect(address: Address, application_name: str, manner: bytes) -> Connection:
    """A connection whose transactions are begun in that manner. Raises Disconnected, Forbidden or DatabaseError."""
    if not address.database.strip("/"):
        raise DatabaseError(
            "no database is named: firebird://user@host/alias, or firebird://user@host//path/of/file.fdb"
        )
    _load(address.host is None)
    settings = DPB(
        user=address.user,
        password=address.password,
        role=address.role,
        sql_dialect=3,
        timeout=address.connect_seconds,
        charset="UTF8",
        utf8filename=True,
    ).get_buffer()
    try:
        attached = _attach(address, settings)
        connection = Connection(attached, address.dsn, settings, 3, "UTF8")
        connection.default_tpb = connection.main_transaction.default_tpb = manner
        if address.host is not None:
            _keep_alive(address.port or 3050)
            connection.watched = Watched(attached, address, partial(_attachments, address))
        try:
            number = _name(connection, application_name)
        except Error as error:
            connection.let_go(error)
            connection.close()
            raise
    except Error as error:
        if _NO_CHARSET in (error.gds_codes or ()):  # every database has UTF8: the server was ending the connection
            raise Disconnected(line(error)) from error
        raise translate(error) from error
    if connection.watched is not None:
        connection.watched.number = number
    return connection


def _attach(address: Address, settings: bytes) -> iAttachment:
    def attach() -> iAttachment:
        with get_api().master.get_dispatcher() as dispatcher:
            return dispatcher.attach_database(address.dsn, settings, "utf-8")

    if address.host is None:
        return attach()
    return answer(attach, address.connect_seconds + _ATTACH_SECONDS, iAttachment.detach)


def _attachments(address: Address) -> set[int]:
    """The numbers of our connections that the server has. Raises as `connect` does."""
    with closing(connect(address, "rowqueue watch", NO_WAIT)) as connection, translated():
        with connection.query_transaction.cursor() as cursor:
            found = cursor.execute("SELECT mon$attachment_id FROM mon$attachments").fetchall()
        connection.query_transaction.commit()
    return {number for (number,) in found}


def _name(connection: Connection, application_name: str) -> int:
    """Tell the procedures who calls, where they are not told: the server knows a program's name only.

    Returns the connection's number on the server.
    """
    # Bytes that no name is made of; the procedures' own limit for a name is 200 characters.
    name = application_name.replace("\0", "").encode("utf-8", "replace").decode()[:200]
    transaction = connection.query_transaction
    with transaction.cursor() as cursor:
        context = "RDB$SET_CONTEXT('USER_SESSION', 'MQ_APPLICATION', CAST(? AS VARCHAR(200)))"
        text = f"SELECT CURRENT_CONNECTION, {context} FROM rdb$database"
        [[number, _]] = cursor.execute(text, [name or None]).fetchall()
    transaction.commit()
    return int(number)


def _keep_alive(port: int) -> None:
    """Let the system notice within about a minute that a server is gone: the client library has no setting for it."""
    for descriptor in _sockets():
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as mine:
            if mine.family in {socket.AF_INET, socket.AF_INET6} and mine.getpeername()[1] == port:
                mine.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for name, value in _KEEPALIVE.items():
                    if hasattr(socket, name):
                        mine.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _sockets() -> Iterator[int]:
    """The sockets that this process has open, where the system lists them."""
    for name in Path("/dev/fd").glob("*"):
        with suppress(OSError):  # it is closed by now
            if stat.S_ISSOCK(os.fstat(int(name.name)).st_mode):
                yield int(name.name)
