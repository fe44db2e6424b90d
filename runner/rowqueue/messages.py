"""What a handler gets, what it may raise, and what becomes of a failed attempt."""

import json
import math
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Protocol

ERROR_LENGTH = 4_000
TEN_YEARS = 315_360_000
_LINE_ENDS = {"\x85", "\u2028", "\u2029"}


class Item(Protocol):
    """What messages, rows of polling tables and records of feeds have in common: all that running a handler needs."""

    @property
    def id(self) -> int: ...

    @property
    def type(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def headers(self) -> str | None: ...

    def as_json(self) -> str: ...


class Held(Item, Protocol):
    """What a claim holds with a lease: messages and rows of polling tables."""

    @property
    def batch_key(self) -> Any: ...

    @property
    def lease_until(self) -> datetime | None: ...


@dataclass(slots=True)
class Message:
    """One message as a handler gets it; times are UTC. `connection` is the driver's own under --transaction."""

    id: int
    type: str
    body: str
    headers: str | None
    priority: int
    group_key: str | None
    dedup_key: str | None
    attempt: int
    created_at: datetime
    source: str | None
    batch_key: Any
    lease_until: datetime | None
    connection: Any = None

    def as_json(self, headers: str | None = None) -> str:
        """The message as one line of JSON; times are ISO 8601 in UTC. `headers`: JSON to stand for the text."""
        values = {name: getattr(self, name) for name in _JSON_FIELDS}
        if headers is None:
            return json.dumps(values, ensure_ascii=False, default=plain)
        del values["headers"]
        return f'{json.dumps(values, ensure_ascii=False, default=plain)[:-1]}, "headers": {headers}}}'


_JSON_FIELDS = [f.name for f in fields(Message) if f.name not in ("batch_key", "lease_until", "connection")]


@dataclass(slots=True)
class RowMessage:
    """One row of a polling table as a handler gets it. `table` is the name under which the table is adopted.

    `id` numbers the claim of the row. `key` and `row` are the JSON in `key_text` and `row_text` as objects.
    """

    id: int
    table: str
    attempt: int
    key_text: str
    row_text: str
    batch_key: Any
    lease_until: datetime | None

    @property
    def type(self) -> str:
        return self.table

    @property
    def headers(self) -> None:
        return None

    @property
    def key(self) -> dict[str, Any]:
        key: dict[str, Any] = json.loads(self.key_text)
        return key

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(self.row_text)
        return row

    def as_json(self) -> str:
        """One line of JSON: id, table, attempt, key and row (objects), with all the digits that the database wrote."""
        return _row_line({"id": self.id, "table": self.table, "attempt": self.attempt}, self.key_text, self.row_text)


@dataclass(slots=True)
class Record:
    """One row of a feed as a handler gets it: `key` and `row` are read from the JSON in `key_text` and `row_text`.

    `position` is its number in the feed; `id` is the same, and `type` the feed, as a message has them. `attempt` counts
    in this process.
    """

    feed: str
    position: int
    key: dict[str, Any]
    row: dict[str, Any]
    key_text: str
    row_text: str
    attempt: int = 1

    @property
    def id(self) -> int:
        return self.position

    @property
    def type(self) -> str:
        return self.feed

    @property
    def headers(self) -> None:
        return None

    def as_json(self) -> str:
        """The record as one line of JSON, the row with all the digits that the database has written."""
        head = {"feed": self.feed, "position": self.position, "attempt": self.attempt}
        return _row_line(head, self.key_text, self.row_text)


def worker_line(item: Item) -> str:
    """An item as a worker process gets it: the line of `as_json`, with headers as an object, and always an id."""
    if isinstance(item, Message):
        line = item.as_json(_object(item.headers))
    elif isinstance(item, Record):
        line = f'{{"id": {item.id}, {item.as_json()[1:]}'
    else:
        line = item.as_json()
    # Some languages end a line at these, too. In JSON they stand inside of strings only, where an escape is the same.
    for end in _LINE_ENDS & set(line):
        line = line.replace(end, f"\\u{ord(end):04x}")
    return line


def _object(headers: str | None) -> str | None:
    """Headers as the JSON object that they are, with all its digits; None when they are none or something else."""
    try:
        if headers and isinstance(json.loads(headers, parse_constant=_no_number), dict):
            return headers.replace("\n", " ").replace("\r", " ")  # only between its values
    except (ValueError, RecursionError):
        pass
    return None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _row_line(head: dict[str, Any], key: str, row: str) -> str:
    """One line of JSON: a head, and the key and the row as the database wrote them."""
    line = f'{json.dumps(head, ensure_ascii=False)[:-1]}, "key": {key}, "row": {row}}}'
    # Inside a string they are escaped; a column of JSON may have them between its values.
    return line.replace("\n", " ").replace("\r", " ")


class Retry(Exception):
    """Raised by a handler: try this message again, after `after` seconds (None: the queue's backoff).

    Raises ValueError for a negative `after`; more than ten years are ten years.
    """

    def __init__(self, reason: str = "", after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None and not after >= 0:
            raise ValueError(f"Retry: after is {after!r}; it must be 0 or more seconds")
        self.after = after


class Discard(Exception):
    """Raised by a handler: this message can never succeed; make it a dead letter now, with `reason` as its error."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt: `retry_after` in seconds, None for the queue's backoff, -1 for dead now."""

    id: int
    retry_after: int | None
    error: str

    @classmethod
    def of(cls, item: Item, error: BaseException) -> "Failure":
        """What an exception of a handler means for its message."""
        return cls.of_id(item.id, error)

    @classmethod
    def of_id(cls, id: int, error: BaseException) -> "Failure":
        """What an exception means for the message of that number."""
        retry_after: int | None = None
        text = str(error)
        if isinstance(error, Discard):
            retry_after = -1
        elif isinstance(error, Retry):
            if error.after is not None:
                retry_after = math.ceil(min(error.after, TEN_YEARS))
        else:
            text = f"{type(error).__name__}: {text}"
        return cls(id, retry_after, clean(text or type(error).__name__))

    def line(self) -> str:
        """The failure as a line of finish_batch's list."""
        return f"{self.id},{'' if self.retry_after is None else self.retry_after},{line_of(self.error)}"


def line_of(text: str, empty: bool = False) -> str:
    """A text as a line of a procedure's list. `empty`: an empty one is a line too, not one that is passed over."""
    if "\n" in text or text.startswith('"') or (empty and not text):
        return json.dumps(text, ensure_ascii=False)
    return text


def clean(text: str) -> str:
    """An error as every database can keep it: no NUL, no lone surrogates, at most 4,000 characters."""
    return text[:ERROR_LENGTH].replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def plain(value: Any) -> str:
    """A value that JSON has no word for: times as ISO 8601 in UTC with Z, anything else as its text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)
