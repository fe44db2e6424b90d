"""Calls on MySQL and MariaDB: their text, their values and their results, for the runner and for applications."""

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib import import_module
from typing import Any

from pymysql.constants import FIELD_TYPE  # type: ignore[import-untyped]

from ...install import contract
from ..base import DatabaseError, NotAllowed, Row, areas_of, how_to_add
from ..values import bits, columns, dated, dicts, in_utc, invalid, problem_of_range, problem_of_text
from .errors import bad_argument, is_open, translate

SETS = True  # the status of a CALL comes after its rows, and it may be an error


# The drivers whose connections take the class of a cursor. The last two are async.
_WITH_CURSORS = ("pymysql", "MySQLdb", "aiomysql", "asyncmy")


@cache
def _text(procedure: str) -> str:
    return f"CALL mq_{procedure}({', '.join(['%s'] * len(contract.load().procedures[procedure].arguments))})"


def compose(procedure: str, arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The text of a call and its values; missing ones are NULL. Raises QueueError for a value that does not fit."""
    known = contract.load().procedures[procedure].arguments
    padded = [*arguments, *[None] * (len(known) - len(arguments))]
    return _text(procedure), [_value(argument, value) for argument, value in zip(known, padded, strict=True)]


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value in the form for the driver. Raises QueueError when its type cannot hold it."""
    problem = None
    if isinstance(value, str):
        problem = problem_of_text(value)
    elif isinstance(value, int):
        problem = problem_of_range(value, bits("mysql", argument))
    elif (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, Decimal) and value.is_nan()):
        problem = "must be a finite number"
    elif isinstance(value, datetime):
        return in_utc(argument.name, value)
    if problem:
        raise invalid(argument.name, problem)
    return value


def convert(rows: Sequence[Row], procedure: str, description: Sequence[Any]) -> None:
    """Set the time zone of times, and convert counts, which the server returns as decimals, to integers."""
    dated(rows, procedure)
    for name in (column[0] for column in description if column[1] == FIELD_TYPE.NEWDECIMAL):
        kind = float if name in columns(procedure, "number") else int
        for row in rows:
            if row[name] is not None:
                row[name] = kind(row[name])


# ---- on the connection of an application: see databases/applications.py


def cursor(connection: Any) -> Any:
    """A plain cursor, independent of the connection's default: client-side, with rows as tuples."""
    packages = [kind.__module__.partition(".")[0] for kind in type(connection).__mro__]
    for package in _WITH_CURSORS:
        if package in packages:
            return connection.cursor(import_module(f"{package}.cursors").Cursor)
    return connection.cursor(dictionary=False, raw=False, prepared=False)  # mysql.connector


def rows(procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]:
    """The rows as dicts."""
    found = dicts(description, values)
    convert(found, procedure, description)
    return found


def failure(error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception:
    """The exception of this package for a driver's error."""
    if isinstance(error, UnicodeError):
        return DatabaseError(f"the connection's character set cannot encode the text: set it to utf8mb4 ({error})")
    failure = bad_argument(error) or translate(error, not is_open(connection))
    # Who may not see the procedures is refused even those that do not exist.
    if isinstance(failure, NotAllowed) and (absent := areas_of(failure.detail)):
        return NotAllowed(f"{failure.detail}; or {how_to_add(absent)}")
    return failure
