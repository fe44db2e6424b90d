"""What a handler receives, what it may raise, and how a failed attempt is recorded."""

import json
import math
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Protocol

ERROR_LENGTH = 4_000
TEN_YEARS = 315_360_000


class Item(Protocol):
    """What running a handler needs: common to messages, rows of polling tables and records of feeds."""

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
    """An item that a claim holds under a lease: a message or a row of a polling table."""

    @property
    def batch_key(self) -> Any: ...

    @property
    def lease_until(self) -> datetime | None: ...


@dataclass(slots=True)
class Message:
    """One message as a handler receives it. Times are in UTC.

    `attempt`: 1 for the first, `max_attempts` for the last. `run_at`: when it was due first. `batch_key` and
    `lease_until`: of the claim that holds it. `extra`: for later releases, None today. `connection`: the driver's
    connection in a consumer with `transaction`, else None. `cancelled`: an operator or the sender has cancelled it
    while it is handled; the handler may end with any exception, and the message is deleted.
    """

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
    max_attempts: int
    run_at: datetime
    extra: str | None
    connection: Any = None
    cancelled: bool = field(default=False, repr=False, compare=False)
    links: Any = field(default=None, repr=False, compare=False)  # the consumer's connections for steps
    _steps: Any = field(default=None, repr=False, compare=False)

    @property
    def steps(self) -> Any:
        """What handlers have done of this message: a rowqueue.extras.steps.Steps, if the area `steps` is installed."""
        if self._steps is None:
            self._steps = import_module("rowqueue.extras.steps").Steps(self)
        return self._steps

    def as_json(self, headers: str | None = None) -> str:
        """The message as one line of JSON; times are ISO 8601 in UTC. `headers`: JSON to write in place of the text."""
        values = {name: getattr(self, name) for name in _JSON_FIELDS}
        if self.extra is not None:
            values["extra"] = json.loads(self.extra)
        if headers is None:
            return json.dumps(values, ensure_ascii=False, default=plain)
        del values["headers"]
        return f'{json.dumps(values, ensure_ascii=False, default=plain)[:-1]}, "headers": {headers}}}'


_NOT_JSON = ("batch_key", "lease_until", "extra", "connection", "cancelled", "links", "_steps")
_JSON_FIELDS = [f.name for f in fields(Message) if f.name not in _NOT_JSON]


class Retry(Exception):
    """Raised by a handler to retry this message after `after` seconds; None for the queue's backoff.

    `reason` is recorded as the error. Raises ValueError for a negative `after`. The longest delay is ten years.
    """

    def __init__(self, reason: str = "", after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None and not after >= 0:
            raise ValueError(f"Retry: after is {after!r}; it must be 0 seconds or more")
        self.after = after


class Snoozed(BaseException):
    """Ends a handler whose message `message.steps` has put back; `id` is the message. Let it pass."""

    def __init__(self, id: int) -> None:
        super().__init__(f"message {id} was put back")
        self.id = id


class DeadLetter(Exception):
    """Raised by a handler to dead-letter a message that can never succeed; `reason` is recorded as its error."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `retry_after`: seconds; None for the queue's backoff, -1 for a dead letter."""

    id: int
    retry_after: int | None
    error: str

    @classmethod
    def of(cls, id: int, error: BaseException) -> "Failure":
        """The failure that an exception means for the message with this id. Never raises."""
        text, name = text_of(error), type(error).__name__
        if text and not isinstance(error, Retry | DeadLetter):
            text = f"{name}: {text}"
        return cls(id, -1 if isinstance(error, DeadLetter) else _seconds(error), clean(text or name))

    @property
    def dead(self) -> bool:
        """Whether the message is dead now, without a retry."""
        return self.retry_after == -1

    def line(self, longest: int | None = None) -> str:
        """The failure as a line of a list of outcomes. `longest`: cut the error to so many characters."""
        error = self.error[:longest]
        if self.dead:
            return outcome_line(self.id, error=error, dead=1)
        if self.retry_after is None:
            return outcome_line(self.id, error=error)
        return outcome_line(self.id, error=error, retry_after_seconds=self.retry_after)


def outcome_line(id: int, **more: Any) -> str:
    """A line of a list of outcomes: the message is done, unless `more` says that it is released or has failed."""
    return json.dumps({"id": id, **more}, ensure_ascii=False)


def line_of(text: str) -> str:
    """A body as a line of the list that send_batch takes."""
    if "\n" in text or text.startswith('"') or not text:
        return json.dumps(text, ensure_ascii=False)
    return text


def _seconds(error: BaseException) -> int | None:
    """The delay that a Retry asks for; None for others, and for a delay that is not a number of seconds from 0."""
    after = getattr(error, "after", None) if isinstance(error, Retry) else None
    try:
        return None if after is None else max(math.ceil(min(after, TEN_YEARS)), 0)
    except Exception:  # the handler has set the attribute itself
        return None


def text_of(value: object) -> str:
    """The text of a handler's exception or answer. Never raises: a `__str__` of an application may."""
    try:
        return "".join([str(value)])  # a plain str, also from a subclass with methods of its own
    except BaseException as error:
        return f"its text cannot be read: str() raised {type(error).__name__}"


def clean(text: str) -> str:
    """An error text that every database can store: no NUL, no lone surrogates, at most 4,000 characters."""
    return text[:ERROR_LENGTH].replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def plain(value: Any) -> str:
    """A value that JSON has no type for: a time as ISO 8601 in UTC with Z, any other value as its text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)
