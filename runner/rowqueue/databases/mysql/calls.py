"""The text of a call on MySQL and MariaDB, its values, and what comes back: for the runner and for applications."""

import math
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any

from pymysql.constants import FIELD_TYPE  # type: ignore[import-untyped]

from ... import contract
from ..base import DatabaseError, Row
from ..values import bits, columns, dated, dicts, in_utc, invalid, problem_of_range, problem_of_text
from .errors import bad_argument, is_open, translate

SETS = True  # the result of a CALL comes after its rows, and an error may do so as well


# The drivers whose connections are told the class of a cursor. The two last ones are async.
_WITH_CURSORS = ("pymysql", "MySQLdb", "aiomysql", "asyncmy")


@cache
def _text(procedure: str) -> str:
    return f"CALL mq_{procedure}({', '.join(['%s'] * len(contract.load().procedures[procedure].arguments))})"


def compose(procedure: str, arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The text of a call and its values; what is left out is NULL. Raises QueueError for what no type can hold."""
    known = contract.load().procedures[procedure].arguments
    padded = [*arguments, *[None] * (len(known) - len(arguments))]
    return _text(procedure), [_value(argument, value) for argument, value in zip(known, padded, strict=True)]


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value as the driver is to write it. Raises QueueError when its type cannot hold it."""
    problem = None
    if isinstance(value, str):
        problem = problem_of_text(value)
    elif isinstance(value, int):
        problem = problem_of_range(value, bits("mysql", argument))
    elif isinstance(value, float) and not math.isfinite(value):
        problem = "must be a finite number"
    elif isinstance(value, datetime):
        return in_utc(argument.name, value)
    if problem:
        raise invalid(argument.name, problem)
    return value


def convert(rows: Sequence[Row], procedure: str, description: Sequence[Any]) -> None:
    """Give times their zone, and what the server has counted as decimal numbers the contract's type."""
    dated(rows, procedure)
    for name in (column[0] for column in description if column[1] == FIELD_TYPE.NEWDECIMAL):
        kind = float if name in columns(procedure, "number") else int
        for row in rows:
            if row[name] is not None:
                row[name] = kind(row[name])


# ---- on a connection of an application's: see databases/applications.py


def cursor(connection: Any) -> Any:
    """A plain cursor, whatever kind the connection makes: on the client, its rows as tuples."""
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
    """Our exception for one of the driver's."""
    if isinstance(error, UnicodeError):
        return DatabaseError(f"the connection's character set cannot hold what is sent: make it utf8mb4 ({error})")
    return bad_argument(error) or translate(error, not is_open(connection))
