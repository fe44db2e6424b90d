"""Calls on Firebird: their text, their values and their results, for the runner and for applications."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from ...install import contract
from ..base import Disconnected, QueueError, Row
from ..values import in_utc, invalid, text, whole
from .errors import translate

SETS = False  # a call has one result set

# The driver takes 0.2 ms more for a BLOB than for a VARCHAR, in both directions: short texts are sent as VARCHAR.
_SHORT = 2000  # bytes
_LONG = {"body", "row_key", "row_data", "step_value"}  # the BLOB columns for which speed matters
_NAME_CHARACTERS = 1000  # room in an argument that is a name; the procedure checks the real limit
_TRUNCATION = 335544914
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = datetime(1858, 11, 17)  # day 0 of a TIMESTAMP: the driver cannot encode earlier ones


def compose(procedure: str, arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """A call and its parameters. Raises QueueError for a value that its type cannot hold."""
    known = contract.load().procedures[procedure].arguments
    values = [value_of(argument, value) for argument, value in zip(known, arguments, strict=False)]
    return query(procedure, tuple(map(marker, known, values))), values


def value_of(argument: contract.Argument, value: Any) -> Any:
    """The value in the form for the driver. Raises QueueError when its type cannot hold it."""
    if value is None:
        return None
    if argument.type in {"text", "key"}:
        return _text(argument, text(argument.name, value))
    if argument.type == "time":
        # Rounded to milliseconds, as in results.
        moment = in_utc(argument.name, value)
        if moment < _FIRST_DAY:
            raise invalid(argument.name, f"must be {_FIRST_DAY:%Y-%m-%d} or later")
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return _number(argument, value) if argument.type == "number" else whole(argument.name, value)


def _text(argument: contract.Argument, found: str) -> str:
    if _is_name(argument) and len(found) > _NAME_CHARACTERS:
        limit = contract.load().limits.get(argument.limit or "")
        raise invalid(argument.name, f"must be {limit}, not {len(found):,}" if limit else "is too long")
    return found


def _number(argument: contract.Argument, value: Any) -> float:
    try:
        number = float(value)
    except (ValueError, TypeError, OverflowError):
        raise invalid(argument.name, f"must be a finite number, not {str(value)[:100]!r}") from None
    if not math.isfinite(number):
        raise invalid(argument.name, f"must be a whole number, not {value}")
    return number


def _is_name(argument: contract.Argument) -> bool:
    return argument.type == "key" or argument.limit == "name"


def marker(argument: contract.Argument, value: Any) -> str:
    """The parameter marker: cast to VARCHAR, or of the procedure's own type."""
    if argument.type != "text" or _is_name(argument):
        return "?"
    is_short = value is None or len(value) <= _SHORT // 4 or len(value.encode()) <= _SHORT
    return f"CAST(? AS VARCHAR({_SHORT}))" if is_short else "?"


@cache
def query(procedure: str, markers: tuple[str, ...]) -> str:
    """The text of a call. A long text has two result columns, one of them NULL: a VARCHAR if it is short, else a BLOB.

    Times are returned as milliseconds: the driver takes longer for a TIMESTAMP than for the rest of a row.
    """
    columns, whole = [], []
    for column in contract.load().procedures[procedure].columns:
        name = column.name
        if name in _LONG:
            whole.append(f"CASE WHEN OCTET_LENGTH({name}) > {_SHORT} THEN {name} END")
            name = f"CASE WHEN OCTET_LENGTH({name}) <= {_SHORT} THEN CAST({name} AS VARCHAR({_SHORT})) END"
        elif column.type == "time":
            name = f"CAST(DATEDIFF(MILLISECOND FROM TIMESTAMP '{EPOCH:%Y-%m-%d}' TO {name}) AS BIGINT)"
        columns.append(name)
    arguments = f"({', '.join(markers)})" if markers else ""
    call = f"mq_{procedure}{arguments}"
    return f"SELECT {', '.join(columns + whole)} FROM {call}" if columns else f"EXECUTE PROCEDURE {call}"


@dataclass(frozen=True)
class Shape:
    """The columns of a result: which are times, and which are split in two."""

    names: tuple[str, ...]
    times: tuple[str, ...]
    long: tuple[str, ...]

    def rows(self, values: Sequence[tuple[Any, ...]]) -> list[Row]:
        rows = [dict(zip(self.names, row, strict=False)) for row in values]
        known: dict[int | None, datetime | None] = {None: None}  # the rows of a batch have many times in common
        for name in self.times:
            for row in rows:
                if (moment := row[name]) not in known:
                    known[moment] = EPOCH + timedelta(milliseconds=moment)
                row[name] = known[moment]
        for place, name in enumerate(self.long, len(self.names)):
            for row, found in zip(rows, values, strict=True):
                if found[place] is not None:
                    row[name] = found[place]
        return rows


@cache
def shape(procedure: str) -> Shape:
    columns = contract.load().procedures[procedure].columns
    names = tuple(column.name for column in columns)
    times = tuple(column.name for column in columns if column.type == "time")
    return Shape(names, times, tuple(name for name in names if name in _LONG))


def bad_argument(error: Exception, known: Sequence[contract.Argument], values: Sequence[Any]) -> QueueError | None:
    """invalid_argument for a text that is too long, so it never reached the procedure."""
    if _TRUNCATION not in getattr(error, "gds_codes", ()) or re.search(r"^-?At ", str(error), re.M):
        return None
    texts = [
        (len(value), argument.name) for argument, value in zip(known, values, strict=False) if isinstance(value, str)
    ]
    return invalid(max(texts)[1], "is too long") if texts else None


# ---- on the connection of an application: see databases/applications.py


def cursor(connection: Any) -> Any:
    """A cursor of the main transaction that reads every value whole."""
    if connection.is_closed():
        raise Disconnected("the connection is closed")
    made = connection.cursor()
    made.stream_blob_threshold = -1
    return made


def rows(procedure: str, description: Sequence[Any], values: Sequence[Any]) -> list[Row]:
    """The rows as dicts."""
    return shape(procedure).rows(values)


def failure(error: Exception, connection: Any, procedure: str, arguments: Sequence[Any]) -> Exception:
    """The exception of this package for a driver's error."""
    known = contract.load().procedures[procedure].arguments
    return bad_argument(error, known, arguments) or translate(error)
