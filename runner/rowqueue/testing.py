"""Test a handler without a database. The consumer's own code runs it; the outcome says what it did to the message.

outcome = rowqueue.testing.run(send_mail, body='{"to": "ada@example.org"}')
assert outcome.done
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

from .databases import Cancelled
from .databases.base import CANCELLED
from .extras.steps import Steps
from .handlers import Handled, of
from .messages import Item, Message

__all__ = ["Outcome", "message", "run", "run_batch", "run_with_crashes"]
ATTEMPTS = 10_000

_ids = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """What the handler did to a message.

    `state`: "done", "failed" to retry it, "dead" after DeadLetter, "snoozed" when it was put back, or "cancelled" when
    it failed after it was cancelled. On a real queue, a message that fails its last attempt also becomes a dead letter.
    `error`: the text that is recorded. `retry_after`: seconds until the retry; None for the queue's backoff. `result`:
    with keep_results, the text that is stored with the message. `steps`: the values that `message.steps` has kept.
    `due_after`: seconds for which it was put back.
    """

    state: Literal["done", "failed", "dead", "snoozed", "cancelled"]
    error: str | None = None
    retry_after: int | None = None
    result: str | None = None
    steps: dict[str, Any] = field(default_factory=dict)
    due_after: float | None = None

    @property
    def done(self) -> bool:
        return self.state == "done"

    @property
    def failed(self) -> bool:
        return self.state == "failed"

    @property
    def dead(self) -> bool:
        return self.state == "dead"

    @property
    def snoozed(self) -> bool:
        return self.state == "snoozed"

    @property
    def cancelled(self) -> bool:
        return self.state == "cancelled"


class _Crash(BaseException):
    """The process of the handler ends here."""


class _Steps(Steps):
    """Steps that are kept in the test. `crashes`: raise _Crash when one has been kept."""

    def __init__(self, message: Message, kept: dict[str, str | None], crashes: bool = False) -> None:
        super().__init__(message)
        self.stored, self._crashes = kept, crashes
        self.has_crashed = False
        self.due_after: float | None = None

    def _check(self) -> None:
        if self._message.cancelled:
            raise Cancelled(CANCELLED, f"cancelled: message {self._message.id} was cancelled")

    def _load(self, connection: Any) -> dict[str, str | None]:
        return dict(self.stored)

    def _save(self, name: str, text: str | None, connection: Any) -> None:
        self._check()
        self.stored[name] = text
        if self._crashes:
            self.has_crashed = True
            raise _Crash

    def _progress(self, done: int, total: int | None, note: str | None) -> None:
        """No step of the test's: it depends on the time whether it is kept."""
        self._check()

    def _sleep(self, name: str, seconds: float) -> bool:
        if name in self.stored:
            return False
        self.stored[name], self.due_after = "", seconds
        return True

    def _snooze(self, seconds: int, connection: Any) -> None:
        self.due_after = seconds


def message(
    body: str = "",
    *,
    type: str = "test",
    id: int | None = None,
    headers: str | None = None,
    priority: int = 0,
    group_key: str | None = None,
    dedup_key: str | None = None,
    attempt: int = 1,
    created_at: datetime | None = None,
    source: str | None = None,
    batch_key: UUID | None = None,
    max_attempts: int = 25,
    run_at: datetime | None = None,
    connection: Any = None,
    cancelled: bool = False,
) -> Message:
    """A message as a claim returns it, for a test. Arguments that you leave out get sensible values.

    `cancelled`: it was cancelled while it is handled, so the handler's next `message.steps.save` raises Cancelled.
    """
    now = datetime.now(UTC)
    return Message(
        id=next(_ids) if id is None else id,
        type=type,
        body=body,
        headers=headers,
        priority=priority,
        group_key=group_key,
        dedup_key=dedup_key,
        attempt=attempt,
        created_at=created_at or now,
        source=source,
        batch_key=batch_key or uuid4(),
        lease_until=now + timedelta(minutes=1),
        max_attempts=max_attempts,
        run_at=run_at or created_at or now,
        extra=None,
        connection=connection,
        cancelled=cancelled,
    )


def run(
    handler: Callable[..., Any],
    item: Item | None = None,
    /,
    *,
    body: str = "",
    connection: Any = None,
    keep_results: bool = False,
    steps: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run a handler with one message: `item`, or a new one with `body`. Returns its Outcome.

    A handler that takes a list gets a list of one. `connection`: the value of message.connection, as in a consumer with
    `transaction`. `keep_results`: store what the handler returns as the result. `steps`: the values that earlier
    attempts have kept. Raises HandlerError when `handler` is not a handler.
    """
    if item is None:
        item = message(body)
    if steps is not None and isinstance(item, Message):
        item._steps = _Steps(item, {name: json.dumps(value) for name, value in steps.items()})
    [outcome] = run_batch(handler, [item], connection=connection, keep_results=keep_results)
    return outcome


def run_with_crashes(handler: Callable[..., Any], item: Message | None = None, /, *, body: str = "") -> Outcome:
    """As `run`, but the process ends whenever a step has been kept, and the next attempt continues after it.

    Sleeps are over at the next attempt. Returns the Outcome of the last one, which has run without a crash. Raises
    RuntimeError when there is none among 10,000, which means that the handler keeps other steps each time.
    """
    item = message(body) if item is None else item
    kept: dict[str, str | None] = {}
    for _ in range(ATTEMPTS):
        item = replace(item)
        item._steps = steps = _Steps(item, kept, crashes=True)
        outcome = run(handler, item)
        if not (steps.has_crashed or outcome.snoozed):
            return outcome
    raise RuntimeError(
        f"the handler has not ended in {ATTEMPTS:,} attempts: do its steps have the same names each time?"
    )


def run_batch(
    handler: Callable[..., Any],
    messages: Iterable[Item | str],
    *,
    connection: Any = None,
    keep_results: bool = False,
) -> list[Outcome]:
    """Run a handler with a batch; returns one Outcome per message, in order.

    `messages`: messages, or bodies of new ones. The other arguments and the errors are those of `run`. Raises
    ValueError for keep_results with a handler that takes a list.
    """
    items: list[Item] = [message(item) if isinstance(item, str) else item for item in messages]
    for item in items:
        if isinstance(item, Message):
            item.connection = item.connection if connection is None else connection
            item._steps = item._steps or _Steps(item, {})
    runs = of(handler, max(1, len(items)))
    if keep_results and runs.takes_list:
        raise ValueError("keep_results: needs a handler that takes one message; this one takes a list")
    handled = Handled(keeps_results=keep_results)
    try:
        runs.run(items, handled, lambda _: True)
    finally:
        runs.close()
    if isinstance(handled.cause, KeyboardInterrupt):  # Ctrl-C in the test
        raise handled.cause
    failures = {failure.id: failure for failure in handled.failures}
    left = {item.id for item in handled.left}
    outcomes = []
    for item in items:
        failure = failures.get(item.id)
        steps = item.steps if isinstance(item, Message) else None
        kept = {} if steps is None else steps.all()
        if steps is not None and item.id in left:
            outcomes.append(Outcome("snoozed", steps=kept, due_after=steps.due_after))
        elif item.id in handled.cancelled:
            outcomes.append(Outcome("cancelled", failures[item.id].error, steps=kept))
        elif failure is None:
            outcomes.append(Outcome("done", result=handled.results.get(item.id), steps=kept))
        elif failure.retry_after == -1:
            outcomes.append(Outcome("dead", failure.error, steps=kept))
        else:
            outcomes.append(Outcome("failed", failure.error, failure.retry_after, steps=kept))
    return outcomes
