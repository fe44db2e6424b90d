"""Calls on SQL Server through pymssql."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import uuid4

import pymssql

from ... import contract
from ..base import Row, Session
from ..guard import guarded
from ..values import columns, dated, in_utc, text, whole
from .connection import Connection
from .errors import told, translate, translated

_CONTINUED = re.compile(r"(?<=\\)(?=\r?\n)")


class SQLServerSession(Session):
    """One connection, in autocommit outside `transaction()`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        known = contract.load().procedures[procedure].arguments
        values = tuple(_value(argument, value) for argument, value in zip(known, arguments, strict=False))
        try:
            rows = self._run(*unbroken(procedure, values))
        except pymssql.Error as error:
            self._connection.abandon(error)
            raise translate(error, self._connection.is_closed) from error
        dated(rows, procedure)
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

    def transaction(self) -> AbstractContextManager[Connection]:
        return guarded(self._connection, translated, told)

    def now(self) -> datetime:
        with translated():
            now: datetime = self._connection.command("SELECT SYSUTCDATETIME() AS now")
        return now.replace(tzinfo=UTC)

    def close(self) -> None:
        self._connection.close()


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
