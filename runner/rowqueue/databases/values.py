"""Arguments and results: values are checked against the types of the contract before a driver sees them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from ..install import contract
from .base import QueueError, Row

_BITS = {"smallint": 15, "integer": 31, "bigint": 63}
_SHOWN = 100  # characters of a wrong value that an error shows
_NAME_CHARACTERS = 200


def invalid(argument: str, reason: str) -> QueueError:
    """The error invalid_argument of the contract."""
    return QueueError(50002, f"invalid_argument: {argument}: {reason}")


def dicts(description: Sequence[Any], values: Sequence[Any]) -> list[Row]:
    """The rows of a cursor as dicts."""
    names = [column[0] for column in description]
    return [dict(zip(names, row, strict=True)) for row in values]


def bits(database: str, argument: contract.Argument) -> int | None:
    """The number of bits of an argument's integer type, without the sign; None for other types."""
    return _BITS.get(contract.load().arguments[database][argument.kind])


def problem_of_text(text: str) -> str | None:
    """The reason why no database can store this text; None if there is none."""
    if "\0" in text:
        return "must not contain the character NUL"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "must be valid Unicode text"
    return None


def problem_of_range(number: int, width: int | None) -> str | None:
    """The reason why an integer type of `width` bits cannot hold the number; None if there is none."""
    if width and not -(1 << width) <= number < 1 << width:
        return f"must be {-(1 << width):,} to {(1 << width) - 1:,}"
    return None


def text(name: str, value: Any) -> str:
    """The value as a text that every database can store. Raises QueueError."""
    found = str(value)
    if problem := problem_of_text(found):
        raise invalid(name, problem)
    return found


def in_utc(name: str, value: Any) -> datetime:
    """A time in UTC without a time zone, as the servers store it. Raises QueueError."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise invalid(name, f"must be a time in the years 1 to 9999 in UTC, not {str(value)[:_SHOWN]!r}") from None


def options(**values: Any) -> str:
    """The values that are not None as a flat JSON object, for the argument of a procedure that holds options."""
    return json.dumps({name: value for name, value in values.items() if value is not None}, default=str)


def whole(name: str, value: Any) -> int:
    """The value as a bigint. Raises QueueError."""
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        raise invalid(name, f"must be a finite number, not {str(value)[:_SHOWN]!r}") from None
    if isinstance(value, float) and number != value:
        raise invalid(name, f"must be a whole number, not {value}")
    if problem := problem_of_range(number, _BITS["bigint"]):
        raise invalid(name, problem)
    return number


def program(application_name: str, longest: int = _NAME_CHARACTERS) -> str:
    """A name for a connection: without invalid characters, and no longer than the procedures allow."""
    return application_name.replace("\0", "").encode("utf-8", "replace").decode()[:longest]


@cache
def columns(procedure: str, type: str) -> tuple[str, ...]:
    """The columns of a procedure's result with a given type of the contract."""
    return tuple(column.name for column in contract.load().procedures[procedure].columns if column.type == type)


def dated(rows: Sequence[dict[str, Any]], procedure: str) -> None:
    """Set the time zone of the times in a result to UTC."""
    for name in columns(procedure, "time"):
        for row in rows:
            if row[name] is not None:
                row[name] = row[name].replace(tzinfo=UTC)
