"""Calls on the connection of an application, with any supported driver, inside the connection's transaction.

SQLAlchemy and Django are not imported: their objects are recognised by their attributes. The module `calls` of each
engine knows how its drivers write a call, which cursor they need, and what their errors mean.
"""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol, cast

from .base import Disconnected, Row
from .registry import ASYNC_DRIVERS, DRIVERS

_ERRORS = {*DRIVERS, *ASYNC_DRIVERS}


class Calls(Protocol):
    """The module `calls` of an engine. `SETS`: a call has several result sets, and all must be read."""

    SETS: bool

    def compose(self, procedure: str, arguments: Sequence[Any]) -> tuple[str, Sequence[Any]]: ...

    def cursor(self, connection: Any) -> Any: ...

    def rows(self, procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]: ...

    def failure(self, error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception: ...


def call(connection: Any, procedure: str, arguments: Sequence[Any]) -> list[Row]:
    """Call a procedure and return its rows. Does not commit or roll back, and reads every result.

    Raises TypeError for an unknown kind of connection; otherwise as `Session.call`.
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
            while calls.SETS and cursor.nextset():  # an error raised after the rows is reported only here
                pass
        finally:
            with suppress(Exception):  # the connection is lost; the error above reports it
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
    """The driver's connection that has, or will have, the transaction of this object. Raises TypeError."""
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
            connection.begin()  # as its own execute() does; otherwise its commit() would do nothing
        connection = connection.connection
    # A connection from a pool of SQLAlchemy.
    return getattr(connection, "driver_connection", connection)


async def _async_raw(connection: Any) -> Any:
    """As `_raw`, for an async connection."""
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
    """The module for the driver of a connection. Raises TypeError."""
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
    """The exception of this package for a driver's error; any other exception unchanged."""
    of_driver = isinstance(error, UnicodeError | OverflowError) or not _packages(error).isdisjoint(_ERRORS)
    if not of_driver and not isinstance(error, ValueError):
        return error
    failure = calls.failure(error, raw, procedure, arguments)
    if isinstance(failure, Disconnected) and hasattr(connection, "invalidate") and hasattr(connection, "closed"):
        connection.invalidate(error)  # SQLAlchemy's pool must not reuse a dead connection
    return failure
