"""Connecting to Firebird, the guarded connection, and helpers for the runner's own statements."""

import logging
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from firebird.driver import Connection as DriverConnection
from firebird.driver import Error, InterfaceError
from firebird.driver.core import DPB, Cursor, Statement, TransactionManager
from firebird.driver.fbapi import get_api
from firebird.driver.interfaces import iAttachment

from .. import values
from ..base import DatabaseError, Disconnected, ReadOnly
from ..guard import keep_alive, refusal
from .address import Address
from .errors import NO_CHARSET, line, translate, translated
from .library import load
from .watch import Watched, answer

_log = logging.getLogger(__name__)

_ATTACH_SECONDS = 30  # for the server to answer, after the TCP connection is open

# Transaction parameters in the form of the API: the driver's own function for them needs the client library.
_READ_COMMITTED = bytes([3, 9, 15, 17])  # format 3, write, read committed, record version
# A claim skips rows that another transaction has locked; it does not wait for them.
NO_WAIT = _READ_COMMITTED + b"\x07"
WAIT = _READ_COMMITTED + b"\x06"
# DDL waits until running calls of an object have ended.
PATIENCE = 60  # seconds
PATIENT = WAIT + b"\x15\x04" + PATIENCE.to_bytes(4, "little")


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


def connect(address: Address, application_name: str, manner: bytes) -> Connection:
    """A connection. `manner`: the parameters of its transactions. Raises Disconnected, NotAllowed or DatabaseError."""
    if not address.database.strip("/"):
        raise DatabaseError(
            "no database is named: firebird://user@host/alias, or firebird://user@host//path/of/file.fdb"
        )
    load(address.host is None)
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
        if NO_CHARSET in (error.gds_codes or ()):  # every database has UTF8, so the server was closing the connection
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
    """The numbers of our connections on the server. Raises as `connect` does."""
    with closing(connect(address, "rowqueue watch", NO_WAIT)) as connection, translated():
        with connection.query_transaction.cursor() as cursor:
            found = cursor.execute("SELECT mon$attachment_id FROM mon$attachments").fetchall()
        connection.query_transaction.commit()
    return {number for (number,) in found}


def _name(connection: Connection, application_name: str) -> int:
    """Set the caller's name for the procedures, because the server knows only the program's name.

    Returns the connection's number on the server.
    """
    name = values.program(application_name)
    transaction = connection.query_transaction
    with transaction.cursor() as cursor:
        context = "RDB$SET_CONTEXT('USER_SESSION', 'MQ_APPLICATION', CAST(? AS VARCHAR(200)))"
        text = f"SELECT CURRENT_CONNECTION, {context} FROM rdb$database"
        [[number, _]] = cursor.execute(text, [name or None]).fetchall()
    transaction.commit()
    return int(number)


def _keep_alive(port: int) -> None:
    """Let the system detect a dead server within about a minute: the client library has no setting for it."""
    for descriptor in _sockets():
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as mine:
            if mine.family in {socket.AF_INET, socket.AF_INET6} and mine.getpeername()[1] == port:
                keep_alive(mine)


def _sockets() -> Iterator[int]:
    """The open sockets of this process, on systems that list them."""
    for name in Path("/dev/fd").glob("*"):
        with suppress(OSError):  # it is closed by now
            if stat.S_ISSOCK(os.fstat(int(name.name)).st_mode):
                yield int(name.name)
