"""The text of a call on SQL Server, its values, and what comes back: for the runner and for applications."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from ... import contract
from ..base import Row
from ..values import columns, dated, dicts, in_utc, text, whole
from .errors import translate

SETS = True  # an error may come after the rows

_CONTINUED = re.compile(r"(?<=\\)(?=\r?\n)")


def compose(procedure: str, arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """A call and its parameters. Raises QueueError for what no type can hold."""
    known = contract.load().procedures[procedure].arguments
    return unbroken(procedure, tuple(_value(a, value) for a, value in zip(known, arguments, strict=False)))


def rows(procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]:
    """The rows as dicts, their values of the contract's types."""
    # The driver's own dicts take twice as long: they hold every value by its number as well, and are made anew.
    found = dicts(description, values)
    dated(found, procedure)
    for name, convert in _conversions(procedure):
        for row in found:
            if row[name] is not None:
                row[name] = convert(row[name])
    return found


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value as the driver is to write it. Raises QueueError when its type cannot hold it."""
    if value is None:
        return None
    if argument.type in {"text", "key"}:
        return text(argument.name, value)  # the driver would end the whole statement at a NUL
    if argument.type == "time":
        # In the one form that the server reads alike in all its languages; the driver would cut it.
        return in_utc(argument.name, value).isoformat(timespec="microseconds")
    return whole(argument.name, value)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "key": lambda key: str(key).lower(),
    "number": float,
    "flag": int,
}


@cache
def _conversions(procedure: str) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """What else is to be converted: a column, and how."""
    return tuple((name, convert) for type, convert in _CONVERSIONS.items() for name in columns(procedure, type))


@cache
def _statement(procedure: str, count: int) -> str:
    """The text of a call. What is left out takes the procedure's default."""
    return f"EXEC mq.{procedure} {', '.join(['%s'] * count)}".rstrip()


def unbroken(procedure: str, values: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
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


# ---- on a connection of an application's: see databases/applications.py


def cursor(connection: Any) -> Any:
    """A cursor whose rows are tuples."""
    return connection.cursor(as_dict=False)


def failure(error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception:
    """Our exception for one of the driver's."""
    try:
        connected = connection._conn.connected
    except Exception:  # the driver has let go of it
        connected = False
    return translate(error, not connected)
