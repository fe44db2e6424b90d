"""Test a handler without a database. The consumer's own code runs it; the outcome says what it did to the message.

outcome = rowqueue.testing.run(send_mail, body='{"to": "ada@example.org"}')
assert outcome.done
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

from .handlers import Handled, of
from .messages import Item, Message

__all__ = ["Outcome", "message", "run", "run_batch"]

_ids = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """What the handler did to a message.

    `state`: "done", "failed" to retry it, or "dead" after DeadLetter. On a real queue, a message that fails its last
    attempt also becomes a dead letter. `error`: the text that is recorded. `retry_after`: seconds until the retry; None
    for the queue's backoff. `result`: with keep_results, the text that is stored with the message.
    """

    state: Literal["done", "failed", "dead"]
    error: str | None = None
    retry_after: int | None = None
    result: str | None = None

    @property
    def done(self) -> bool:
        return self.state == "done"

    @property
    def failed(self) -> bool:
        return self.state == "failed"

    @property
    def dead(self) -> bool:
        return self.state == "dead"


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
) -> Message:
    """A message as a claim returns it, for a test. Arguments that you leave out get sensible values."""
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
    )


def run(
    handler: Callable[..., Any],
    item: Item | None = None,
    /,
    *,
    body: str = "",
    connection: Any = None,
    keep_results: bool = False,
) -> Outcome:
    """Run a handler with one message: `item`, or a new one with `body`. Returns its Outcome.

    A handler that takes a list gets a list of one. `connection`: the value of message.connection, as in a consumer with
    `transaction`. `keep_results`: store what the handler returns as the result. Raises HandlerError when `handler` is
    not a handler.
    """
    if item is None:
        item = message(body)
    [outcome] = run_batch(handler, [item], connection=connection, keep_results=keep_results)
    return outcome


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
        if connection is not None and isinstance(item, Message):
            item.connection = connection
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
    outcomes = []
    for item in items:
        failure = failures.get(item.id)
        if failure is None:
            outcomes.append(Outcome("done", result=handled.results.get(item.id)))
        elif failure.retry_after == -1:
            outcomes.append(Outcome("dead", failure.error))
        else:
            outcomes.append(Outcome("failed", failure.error, failure.retry_after))
    return outcomes
