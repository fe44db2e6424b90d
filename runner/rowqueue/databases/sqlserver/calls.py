"""Calls on SQL Server: their text, their values and their results, for the runner and for applications."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from ...install import contract
from ..base import Row
from ..values import columns, dated, dicts, in_utc, text, whole
from .errors import translate

SETS = True  # an error may come after the rows

_CONTINUED = re.compile(r"(?<=\\)(?=\r?\n)")


def compose(procedure: str, arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """A call and its parameters. Raises QueueError for a value that its type cannot hold."""
    known = contract.load().procedures[procedure].arguments
    return unbroken(procedure, tuple(_value(a, value) for a, value in zip(known, arguments, strict=False)))


def rows(procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]:
    """The rows as dicts, with values of the contract's types."""
    # The driver's own dicts take twice as long: they also have every value by its index, and must be copied.
    found = dicts(description, values)
    dated(found, procedure)
    for name, convert in _conversions(procedure):
        for row in found:
            if row[name] is not None:
                row[name] = convert(row[name])
    return found


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value in the form for the driver. Raises QueueError when its type cannot hold it."""
    if value is None:
        return None
    if argument.type in {"text", "key"}:
        return text(argument.name, value)  # the driver would cut the statement at a NUL
    if argument.type == "time":
        # In the form that the server reads the same in every language; the driver would cut the fraction.
        return in_utc(argument.name, value).isoformat(timespec="microseconds")
    return whole(argument.name, value)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "key": lambda key: str(key).lower(),
    "number": float,
    "flag": int,
}


@cache
def _conversions(procedure: str) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """The columns to convert, and the function for each."""
    return tuple((name, convert) for type, convert in _CONVERSIONS.items() for name in columns(procedure, type))


@cache
def _statement(procedure: str, count: int) -> str:
    """The text of a call. Missing arguments have the procedure's defaults."""
    return f"EXEC mq.{procedure} {', '.join(['%s'] * count)}".rstrip()


def unbroken(procedure: str, values: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The text and values of a call, changed to keep each backslash before a line end.

    The driver writes values as literals into the statement. In a literal, T-SQL removes a backslash together with the
    line end after it: two bodies of a list would become one. So a mark is put between them and removed in SQL.
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


# ---- on the connection of an application: see databases/applications.py


def cursor(connection: Any) -> Any:
    """A cursor whose rows are tuples."""
    return connection.cursor(as_dict=False)


def failure(error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception:
    """The exception of this package for a driver's error."""
    try:
        connected = connection._conn.connected
    except Exception:  # the driver has closed it
        connected = False
    return translate(error, not connected)
