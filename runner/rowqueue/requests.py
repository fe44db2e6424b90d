"""The calls that an application makes: for each one its procedure, its arguments, and how its rows become a result."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from . import tracing
from .databases import Row
from .databases.values import invalid, options
from .messages import Failure, Message, clean, line_of, outcome_line

T = TypeVar("T")

OnConflict = Literal["keep", "replace", "postpone"]
# A failed message: its id, the error (DeadLetter: no retry), and seconds until the retry. None: the queue's backoff.
Failed = tuple[int, str | Exception] | tuple[int, str | Exception, float | None]


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A call that has not been made yet; `read` turns its rows into the result."""

    procedure: str
    arguments: tuple[Any, ...]
    read: Callable[[list[Row]], T]


class Sent(NamedTuple):
    """The result of `send`.

    `id`: the message. `created`: False when a live message already had the dedup_key; `id` is then that message.
    `changed`: True when on_conflict changed that message. `state`: N (new), A (active) or E (dead letter). A dead
    letter keeps its dedup_key: nothing with this key is sent until it is redriven and completed, or cancelled.
    """

    id: int
    created: bool
    changed: bool
    state: str


class Result(NamedTuple):
    """The state of a message (N new, A active, C completed, E dead letter), its stored result, and its last error."""

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
    headers: Mapping[str, Any] | str | None = None,
    source: str | None = None,
    on_conflict: OnConflict | None = None,
) -> Request[Sent]:
    """Send one message in the transaction of the connection; returns a Sent. Calls `send_message`.

    `type`: the queue. `body`: the text, such as JSON. `run_at` (with a time zone) or `delay_seconds`: not claimed
    earlier. `priority`: a smaller number is claimed first; None is 0. `group_key`: the group, for ordered queues and
    limits per group. `dedup_key`: a queue has at most one live message with it. `on_conflict`: if there is one already,
    "keep" it (default), "replace" its body, or "postpone" it. `max_attempts`: None for the queue's. `headers`: a
    mapping, stored as JSON, or such JSON. `source`: the sender's name. Raises QueueError for an argument that is not
    allowed.
    """
    chosen = (_aware(run_at), priority, group_key, dedup_key, max_attempts, _headers(headers), source)
    arguments = (type, _text("body", body), *chosen, delay_seconds, on_conflict)

    def read(rows: list[Row]) -> Sent:
        [row] = rows
        return Sent(row["id"], bool(row["created"]), bool(row["changed"]), row["state"])

    return Request("send_message", arguments, read)


def send_batch(
    type: str,
    bodies: Iterable[str],
    *,
    run_at: datetime | None = None,
    delay_seconds: int | None = None,
    priority: int | None = None,
    group_key: str | None = None,
    max_attempts: int | None = None,
    headers: Mapping[str, Any] | None = None,
    source: str | None = None,
) -> Request[int]:
    """Send up to 10,000 messages in one call; returns how many. Either all are sent or none. Calls `send_batch`.

    `type`: the queue. `bodies`: one text per message. The other arguments are those of `send`, for every message.
    `headers` are sent as they are, without the current span. Raises QueueError for an argument that is not allowed.
    """
    lines = "\n".join(line_of(_text("bodies", body)) for body in bodies)
    chosen = options(
        run_at=_aware(run_at),
        delay_seconds=delay_seconds,
        priority=priority,
        group_key=group_key,
        max_attempts=max_attempts,
        headers=None if headers is None else json.dumps(dict(headers), ensure_ascii=False),
        source=source,
    )
    return Request("send_batch", (type, lines, None if chosen == "{}" else chosen), _count)


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
    headers: Mapping[str, Any] | str | None = None,
    source: str | None = None,
    on_conflict: OnConflict | None = None,
) -> Request[int]:
    """Send a message to each queue that is bound to the topic; returns how many. Calls `publish_with`.

    `topic`: words separated by dots. The other arguments and the errors are those of `send`.
    """
    chosen = options(
        run_at=_aware(run_at),
        delay_seconds=delay_seconds,
        priority=priority,
        group_key=group_key,
        dedup_key=dedup_key,
        max_attempts=max_attempts,
        headers=_headers(headers),
        source=source,
        on_conflict=on_conflict,
    )
    return Request("publish_with", (topic, _text("body", body), chosen), _count)


def claim_batch(
    type: str, size: int = 1, *, consumer: str | None = None, lease_seconds: int | None = None
) -> Request[list[Message]]:
    """Claim up to `size` messages of the queue `type`; returns them, [] when none is ready. Calls `claim_batch`.

    All have the same batch key; pass it to `finish_batch`. `size`: 1 to 10,000. `consumer`: the consumer's name.
    `lease_seconds`: how long you hold them; None for the queue's lease.
    """
    return Request("claim_batch", (type, size, consumer, lease_seconds), _messages)


def claim_any(
    types: Iterable[str], size: int = 1, *, consumer: str | None = None, lease_seconds: int | None = None
) -> Request[list[Message]]:
    """Claim up to `size` messages of the first of several queues that has any; returns them. Calls `claim_any`.

    All are of one queue and have the same batch key. `types`: 1 to 1,000 queues. For fairness, rotate them
    between calls. The other arguments are those of `claim_batch`.
    """
    lines = "\n".join(line_of(_text("types", type)) for type in types)
    return Request("claim_any", (lines, size, consumer, lease_seconds), _messages)


def finish_batch(batch_key: Any, failures: Iterable[Failed] = (), next_size: int = 0) -> Request[list[Message]]:
    """Complete a batch except for its failures, claim the next batch, and return it. Calls `finish_batch`.

    A failure is `(id, error)` or `(id, error, retry_after)`. `error`: a text or an exception; a DeadLetter makes a dead
    letter. `retry_after`: seconds until the retry; None for the queue's backoff. `next_size`: how many to claim
    at most; 0 claims none. Raises LeaseLost when the lease was lost: nothing is finished then.
    """
    lines = "\n".join(_failure(*failed).line() for failed in failures)
    return Request("finish_batch", (_key(batch_key), lines or None, next_size), _messages)


def finish_messages(
    batch_key: Any, done: Iterable[int], failures: Iterable[Failed] = (), released: Iterable[int] = ()
) -> Request[int]:
    """Finish a part of a batch; returns how many messages it no longer holds. Calls `finish_messages`.

    `done` and `released`: ids of messages that are completed, or given back without counting the attempt.
    `failures`: as in `finish_batch`. The other messages stay claimed. Raises LeaseLost when the lease was lost: nothing
    is finished then.
    """
    lines = [*map(outcome_line, done), *(_failure(*failed).line() for failed in failures)]
    lines += [outcome_line(id, released=1) for id in released]
    return Request("finish_messages", (_key(batch_key), "\n".join(lines)), _count)


def complete(id: int, batch_key: Any) -> Request[int]:
    """Complete one message; returns 1. Calls `complete`.

    Raises LeaseLost when the batch key does not hold it: roll back, and continue with the next claim.
    """
    return Request("complete", (id, _key(batch_key)), _count)


def complete_batch(batch_key: Any) -> Request[int]:
    """Complete all messages that a batch still holds; returns how many. Calls `complete_batch`.

    Raises LeaseLost when the batch key holds none: roll back, and continue with the next claim.
    """
    return Request("complete_batch", (_key(batch_key),), _count)


def release_batch(batch_key: Any) -> Request[int]:
    """Give the messages of a batch back; returns how many, 0 when the lease was lost. Calls `release_batch`."""
    return Request("release_batch", (_key(batch_key),), _count)


def fail(id: int, batch_key: Any, error: str | Exception, retry_after: float | None = None) -> Request[str | None]:
    """Fail one message; returns its state: N, it will be retried; E, it is dead; None, it was cancelled. Calls `fail`.

    `error`: a text or an exception; DeadLetter dead-letters the message, as `dead_letter` does. `retry_after`: seconds
    until the retry; None for the queue's backoff. Raises LeaseLost when the batch key does not hold the message:
    roll back, and continue with the next claim.
    """
    failure = _failure(id, error, retry_after)
    if retry_after is None and failure.dead:
        return dead_letter(id, batch_key, error)
    return Request("fail", (id, _key(batch_key), failure.error, failure.retry_after), _state)


def dead_letter(id: int, batch_key: Any, error: str | Exception) -> Request[str | None]:
    """Dead-letter one message that can never succeed; returns E, or None: it was cancelled. Calls `dead_letter`.

    `error`: a text or an exception. Raises LeaseLost when the batch key does not hold the message: roll back,
    and continue with the next claim.
    """
    return Request("dead_letter", (id, _key(batch_key), _failure(id, error).error), _state)


def count_attempt(
    id: int, error: str | Exception, retry_after: float | None = None, *, dead: bool = False
) -> Request[str | None]:
    """Count a take that was rolled back as a failed attempt. Calls `count_attempt`.

    Returns the message's state: N, it will be retried; E, it is dead; None, it is not ready, and nothing has changed.
    `error`: a text or an exception. `retry_after`: seconds until the retry; None for the queue's backoff. `dead`: it
    can never succeed, and there is no retry.
    """
    failure = _failure(id, error, retry_after)
    is_dead = dead or (retry_after is None and failure.dead)
    return Request("count_attempt", (id, failure.error, None if is_dead else failure.retry_after, int(is_dead)), _state)


def extend_lease(batch_key: Any, seconds: int | None = None) -> Request[int]:
    """Extend a lease to `seconds` from now; returns how many messages it holds, 0 when it was lost.

    `seconds`: None for the queue's lease. Calls `extend_lease`.
    """
    return Request("extend_lease", (_key(batch_key), seconds), _count)


def take_batch(type: str, size: int = 1) -> Request[list[Message]]:
    """Take up to `size` messages off the queue `type`, in the transaction of the connection. Calls `take_batch`.

    A commit removes them for good; a rollback puts them back. `size`: 1 to 10,000.
    """
    return Request("take_batch", (type, size), _messages)


def cancel(id: int) -> Request[str | None]:
    """Cancel a message; returns the state that it had, None when there is none. Calls `cancel`.

    A, active: the message is marked, and deleted when its attempt ends in any way other than done.
    """
    return Request("cancel", (id,), _state)


def get_state(id: int) -> Request[str | None]:
    """The state letter of a message; None when the database no longer has it. Calls `get_state`."""
    return Request("get_state", (id,), _state)


def get_result(id: int) -> Request[Result | None]:
    """The state, result and last error of a message; None when the database no longer has it. Calls `get_result`."""
    return Request("get_result", (id,), lambda rows: Result(**rows[0]) if rows else None)


def _state(rows: list[Row]) -> Any:
    return rows[0]["state"]


def _count(rows: list[Row]) -> int:
    count: int = rows[0]["affected"]
    return count


def _messages(rows: list[Row]) -> list[Message]:
    return [Message(**row) for row in rows]


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {value.__class__.__name__}")
    return value


def _key(batch_key: Any) -> str | None:
    """A batch key in the form that every driver accepts."""
    return None if batch_key is None else str(batch_key)


def _aware(moment: datetime | None) -> datetime | None:
    if moment is not None and moment.utcoffset() is None:
        raise invalid("run_at", "must have a time zone, such as datetime.now(UTC)")
    return moment


def _headers(headers: Mapping[str, Any] | str | None) -> str | None:
    """The headers as JSON. The current OpenTelemetry span, if any, is added to them."""
    text = headers if headers is None or isinstance(headers, str) else json.dumps(dict(headers), ensure_ascii=False)
    return tracing.injected(text)


def _failure(id: int, error: str | Exception, retry_after: float | None = None) -> Failure:
    if retry_after is not None and not retry_after >= 0:
        raise invalid("retry_after", "must be 0 or more; a DeadLetter as the error makes a dead letter")
    seconds = None if retry_after is None else math.ceil(retry_after)
    if isinstance(error, Exception):
        made = Failure.of(id, error)
        return made if seconds is None else Failure(id, seconds, made.error)
    return Failure(id, seconds, clean(_text("error", error)))
