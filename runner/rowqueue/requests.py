"""What an application asks of the queue: one call of a procedure each, with what its rows mean."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from . import tracing
from .databases import Row
from .databases.values import invalid
from .messages import Failure, Message, clean, line_of

T = TypeVar("T")

OnConflict = Literal["keep", "replace", "postpone"]
# A message that failed: its id, what went wrong, and seconds until the next attempt. None: the queue's backoff; -1:
# no further one.
Failed = tuple[int, str | Exception] | tuple[int, str | Exception, float | None]


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A call that has yet to be made; `read` makes its result of the rows."""

    procedure: str
    arguments: tuple[Any, ...]
    read: Callable[[list[Row]], T]


class Sent(NamedTuple):
    """What `send` has done: created is False when a live message has the dedup_key; changed tells of on_conflict."""

    id: int
    created: bool
    changed: bool


class Result(NamedTuple):
    """What became of a message: its state (N, A, C or E), the result that was kept, and the last error."""

    state: str
    result: str | None
    error: str | None


def send(
    type: str,
    body: str,
    *,
    run_at: datetime | None = None,
    delay_seconds: int | None = None,
    priority: int | None = None,
    group_key: str | None = None,
    dedup_key: str | None = None,
    max_attempts: int | None = None,
    headers: Mapping[str, Any] | None = None,
    source: str | None = None,
    on_conflict: OnConflict | None = None,
) -> Request[Sent]:
    """Send a message, in the transaction that the connection is in. Calls `send_message`."""
    options = (_aware(run_at), priority, group_key, dedup_key, max_attempts, _headers(headers), source)
    arguments = (type, _text("body", body), *options, delay_seconds, on_conflict)

    def read(rows: list[Row]) -> Sent:
        [row] = rows
        return Sent(row["id"], bool(row["created"]), bool(row["changed"]))

    return Request("send_message", arguments, read)


def send_batch(type: str, bodies: Iterable[str]) -> Request[int]:
    """Send up to 10,000 messages in one call; returns how many. All are sent or none. Calls `send_batch`."""
    lines = "\n".join(line_of(_text("bodies", body), empty=True) for body in bodies)
    return Request("send_batch", (type, lines), _count)


def publish(
    topic: str,
    body: str,
    *,
    run_at: datetime | None = None,
    delay_seconds: int | None = None,
    priority: int | None = None,
    group_key: str | None = None,
    dedup_key: str | None = None,
    max_attempts: int | None = None,
    headers: Mapping[str, Any] | None = None,
    source: str | None = None,
    on_conflict: OnConflict | None = None,
) -> Request[int]:
    """Send a message to each queue that is bound to the topic; returns how many. Calls `publish`."""
    options = (_aware(run_at), priority, group_key, dedup_key, max_attempts, _headers(headers), source)
    return Request("publish", (topic, _text("body", body), *options, delay_seconds, on_conflict), _count)


def claim(
    type: str, size: int = 1, *, reader: str | None = None, lease_seconds: int | None = None
) -> Request[list[Message]]:
    """Claim up to `size` messages; each has the batch key, by which `finish` ends the batch. Calls `claim_batch`."""
    return Request("claim_batch", (type, size, reader, lease_seconds), _messages)


def finish(batch_key: Any, failures: Iterable[Failed] = (), next_size: int = 0) -> Request[list[Message]]:
    """Complete a batch but for its failures, and claim the next one, of up to `next_size`. Calls `finish_batch`.

    A failure is `(id, error)` or `(id, error, retry_after)`; an exception is written as the runner writes it.
    """
    lines = "\n".join(_failure(*failed).line() for failed in failures)
    return Request("finish_batch", (_key(batch_key), lines or None, next_size), _messages)


def complete(id: int, batch_key: Any) -> Request[int]:
    """Complete one message; returns 0 when the batch key does not hold it. Calls `complete`."""
    return Request("complete", (id, _key(batch_key)), _count)


def fail(id: int, batch_key: Any, error: str | Exception, retry_after: float | None = None) -> Request[str | None]:
    """Fail one message; returns its state, N or E, or None when the batch key does not hold it. Calls `fail`.

    `retry_after`: seconds until the next attempt; None for the queue's backoff, -1 for none: it is dead.
    """
    failure = _failure(id, error, retry_after)

    def read(rows: list[Row]) -> str | None:
        state: str | None = rows[0]["state"]
        return state

    return Request("fail", (id, _key(batch_key), failure.error, failure.retry_after), read)


def extend_lease(batch_key: Any, seconds: int | None = None) -> Request[int]:
    """Let a lease last from now on for `seconds`; returns 0 when it was lost. Calls `extend_lease`."""
    return Request("extend_lease", (_key(batch_key), seconds), _count)


def take(type: str, size: int = 1) -> Request[list[Message]]:
    """Receive messages that are gone when the transaction commits and back when it rolls back. Calls `take_batch`."""
    return Request("take_batch", (type, size), _messages)


def get_result(id: int) -> Request[Result | None]:
    """What became of a message; None when nothing is known of it. Calls `get_result`."""

    def read(rows: list[Row]) -> Result | None:
        return Result(**rows[0]) if rows else None

    return Request("get_result", (id,), read)


def _count(rows: list[Row]) -> int:
    count: int = rows[0]["count"]
    return count


def _messages(rows: list[Row]) -> list[Message]:
    return [Message(**row) for row in rows]


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {value.__class__.__name__}")
    return value


def _key(batch_key: Any) -> str | None:
    """A batch key as every driver takes it."""
    return None if batch_key is None else str(batch_key)


def _aware(moment: datetime | None) -> datetime | None:
    if moment is not None and moment.utcoffset() is None:
        raise invalid("run_at", "must have a time zone, such as datetime.now(UTC) has")
    return moment


def _headers(headers: Mapping[str, Any] | None) -> str | None:
    """The headers as JSON, with the current span of OpenTelemetry in them, if there is one."""
    return tracing.injected(None if headers is None else json.dumps(dict(headers), ensure_ascii=False))


def _failure(id: int, error: str | Exception, retry_after: float | None = None) -> Failure:
    seconds = None if retry_after is None else math.ceil(retry_after)
    if isinstance(error, Exception):
        made = Failure.of_id(id, error)
        return made if seconds is None else Failure(id, seconds, made.error)
    return Failure(id, seconds, clean(_text("error", error)))
