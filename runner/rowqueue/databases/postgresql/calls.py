"""Calls on PostgreSQL: their text and their results, for the runner and for applications."""

import sys
from collections.abc import Sequence
from datetime import UTC
from functools import cache
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from ...install import contract
from ..base import Row
from ..values import columns, dicts
from .errors import bad_argument, translate

SETS = False  # a call has one result set


@cache
def query(procedure: str, count: int) -> str:
    """The text of a call. All arguments are cast: psycopg picks integer types by value and sends strings as unknown."""
    types = contract.load().arguments["postgresql"]
    called = contract.load().procedures[procedure]
    call = f"mq.{procedure}({', '.join(f'%s::{types[a.kind]}' for a in called.arguments[:count])})"
    # A function without a result returns one row without columns, which OFFSET skips.
    return f"SELECT * FROM {call}" if called.columns else f"SELECT FROM {call} OFFSET 1"


# ---- on the connection of an application: see databases/applications.py


def compose(procedure: str, arguments: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """A call and its parameters."""
    return query(procedure, len(arguments)), arguments


def cursor(connection: Any) -> Any:
    """A plain cursor, independent of the connection's default: client-side, with rows as tuples."""
    if isinstance(connection, psycopg.AsyncConnection):
        return psycopg.AsyncCursor(connection, row_factory=tuple_row)
    if isinstance(connection, psycopg.Connection):
        return psycopg.Cursor(connection, row_factory=tuple_row)
    return connection.cursor(cursor_factory=sys.modules["psycopg2.extensions"].cursor)


def rows(procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]:
    """The rows as dicts: times in UTC, keys as UUID."""
    found = dicts(description, values)
    for name in columns(procedure, "time"):
        for row in found:
            if row[name] is not None:
                row[name] = row[name].astimezone(UTC)
    for name in columns(procedure, "key"):
        for row in found:
            if isinstance(row[name], str):
                row[name] = UUID(row[name])
    return found


def failure(error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception:
    """The exception of this package for a driver's error."""
    return bad_argument(error, procedure, arguments) or translate(error, bool(connection.closed), procedure)
