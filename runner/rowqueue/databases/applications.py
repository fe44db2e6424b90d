"""Calls on a connection of an application's own, of whichever driver, inside whatever transaction it is in.

Nothing is imported for SQLAlchemy and Django: their objects are known by what they have. A package of this folder says
in its `calls` how a call is written for its drivers, what kind of cursor it needs, and what its errors mean.
"""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol, cast

from .base import Disconnected, Row
from .registry import ASYNC_DRIVERS, DRIVERS

_ERRORS = {*DRIVERS, *ASYNC_DRIVERS}


class Calls(Protocol):
    """The module `calls` of a database. `SETS`: results are to be read to the last one."""

    SETS: bool

    def compose(self, procedure: str, arguments: Sequence[Any]) -> tuple[str, Sequence[Any]]: ...

    def cursor(self, connection: Any) -> Any: ...

    def rows(self, procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]: ...

    def failure(self, error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception: ...


def call(connection: Any, procedure: str, arguments: Sequence[Any]) -> list[Row]:
    """Call a procedure and return its rows. Commits nothing, rolls nothing back, and leaves no result unread.

    Raises TypeError for a connection of no known kind, else as `Session.call`.
    """
    raw = _raw(connection)
    calls = _calls(raw, DRIVERS)
    text, parameters = calls.compose(procedure, arguments)
    try:
        cursor = calls.cursor(raw)
        try:
            cursor.execute(text, parameters)
            description = cursor.description or ()
            values = cursor.fetchall() if description else []
            while calls.SETS and cursor.nextset():  # an error that came after the rows shows here
                pass
        finally:
            with suppress(Exception):  # the connection is lost, and the error above says so
                cursor.close()
    except Exception as error:
        failure = _failure(calls, error, connection, raw, procedure, arguments)
        if failure is error:
            raise
        raise failure from error
    return calls.rows(procedure, description, values)


async def call_async(connection: Any, procedure: str, arguments: Sequence[Any]) -> list[Row]:
    """As `call`, on an async connection."""
    raw = await _async_raw(connection)
    calls = _calls(raw, ASYNC_DRIVERS)
    text, parameters = calls.compose(procedure, arguments)
    try:
        cursor = calls.cursor(raw)
        if hasattr(cursor, "__await__"):
            cursor = await cursor
        try:
            await cursor.execute(text, parameters)
            description = cursor.description or ()
            values = await cursor.fetchall() if description else []
            while calls.SETS and await cursor.nextset():
                pass
        finally:
            with suppress(Exception):
                await cursor.close()
    except Exception as error:
        failure = _failure(calls, error, None, raw, procedure, arguments)
        if failure is error:
            raise
        raise failure from error
    return calls.rows(procedure, description, values)


def _raw(connection: Any) -> Any:
    """The driver's connection on which the transaction of this object runs, or will run. Raises TypeError."""
    if _is_async_sqlalchemy(connection):
        raise TypeError(f"{_name(connection)} is asynchronous: use rowqueue.aio")
    if hasattr(connection, "ensure_connection"):  # Django
        connection.validate_no_broken_transaction()
        connection.ensure_connection()
        return connection.connection
    if hasattr(connection, "get_bind") and callable(connection.connection):  # a Session of SQLAlchemy
        connection = connection.connection()
    if hasattr(connection, "exec_driver_sql"):  # a Connection of SQLAlchemy
        if not connection.in_transaction():
            connection.begin()  # as its own execute() does: without it, commit() would have nothing to commit
        connection = connection.connection
    # What a pool of SQLAlchemy gives out.
    return getattr(connection, "driver_connection", connection)


async def _async_raw(connection: Any) -> Any:
    """As `_raw`, of an async connection."""
    if not _is_async_sqlalchemy(connection):
        return connection
    if hasattr(connection, "get_bind"):  # a session
        connection = await connection.connection()
    if not connection.in_transaction():
        await connection.begin()
    return (await connection.get_raw_connection()).driver_connection


def _is_async_sqlalchemy(connection: Any) -> bool:
    return any(kind.__module__.startswith("sqlalchemy.ext.asyncio.") for kind in type(connection).__mro__)


def _name(connection: Any) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def _calls(raw: Any, drivers: dict[str, str]) -> Calls:
    """What knows the driver of a connection. Raises TypeError."""
    is_async = any(kind.__name__ == "AsyncConnection" for kind in type(raw).__mro__)
    for package in _packages(raw):
        has_both = package in DRIVERS and package in ASYNC_DRIVERS
        if package in drivers and (not has_both or is_async == (drivers is ASYNC_DRIVERS)):
            return cast(Calls, import_module(f"{__package__}.{drivers[package]}.calls"))
    if drivers is DRIVERS and (is_async or not _packages(raw).isdisjoint(ASYNC_DRIVERS)):
        raise TypeError(f"{_name(raw)} is asynchronous: use rowqueue.aio")
    known = "a connection of " + ", ".join(drivers) + ", of SQLAlchemy" + (" or of Django" * (drivers is DRIVERS))
    raise TypeError(f"{_name(raw)} is not {known}")


def _packages(thing: Any) -> set[str]:
    return {kind.__module__.partition(".")[0] for kind in type(thing).__mro__}


def _failure(
    calls: Calls, error: Exception, connection: Any, raw: Any, procedure: str, arguments: Sequence[Any]
) -> Exception:
    """Our exception for one of a driver's; any other one as it is."""
    of_driver = isinstance(error, UnicodeError | OverflowError) or not _packages(error).isdisjoint(_ERRORS)
    if not of_driver and not isinstance(error, ValueError):
        return error
    failure = calls.failure(error, raw, procedure, arguments)
    if isinstance(failure, Disconnected) and hasattr(connection, "invalidate") and hasattr(connection, "closed"):
        connection.invalidate(error)  # SQLAlchemy's pool is to give out no dead connection
    return failure
