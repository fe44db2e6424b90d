"""Sources of batches: the calls that claim and finish them."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import ClassVar, TypeVar

from ..databases import LEASE_LOST, QueueError, Rows, Session, Values
from ..handlers import Handled
from ..link import Link
from ..messages import Held, Item, Message
from .leases import Batch
from .options import Options

T = TypeVar("T")

LONGEST_BLIND_POLL = 0.15  # without wake-ups; a message waits for half of it on average


class Source(ABC):
    """The differences between queues and polling tables."""

    extend_procedure: ClassVar[str]
    chains: ClassVar[bool]  # finishing a batch claims the next one
    wakes: ClassVar[bool]  # the database may wake the consumer
    keeps_whole: ClassVar[bool]  # a batch that has begun is handled to its end, even after a stop
    reports: ClassVar[bool]  # the consumer calls report_consumer
    longest_blind_poll: ClassVar[float]

    def __init__(self, options: Options) -> None:
        self._options = options
        self._never = threading.Event()  # never set: for calls that must be made even after a stop

    @abstractmethod
    def claim(self, link: Link, stop: threading.Event, type: str, size: int) -> Rows:
        """Claim up to `size` items."""

    @abstractmethod
    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        """Claimed rows as the handler receives them."""

    @abstractmethod
    def ask(self, link: Link, stop: threading.Event, type: str) -> tuple[bool, datetime | None] | None:
        """Whether anything is ready, and when the next is due; None if unknown. Also asks to be woken by senders."""

    @abstractmethod
    def finish(self, link: Link, batch: Batch, handled: Handled, size: int) -> Rows | None:
        """Finish a batch. Returns the rows of the next one, up to `size`, if finishing claims it; None: batch lost."""

    @abstractmethod
    def finish_part(self, link: Link, batch: Batch, started: Sequence[Item], handled: Handled) -> None:
        """Finish the started items and give the others back without counting an attempt. No effect on a lost batch."""


class QueueSource(Source):
    """Queues."""

    extend_procedure = "extend_lease"
    chains = True
    wakes = True
    keeps_whole = False
    reports = True
    longest_blind_poll = LONGEST_BLIND_POLL

    def claim(self, link: Link, stop: threading.Event, type: str, size: int) -> Rows:
        procedure = "claim_wraparound" if self._options.ring else "claim_batch"
        return link.fetch(stop, procedure, type, size, self._options.reader, self._options.lease)

    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        return [Message(*row) for row in rows]

    def ask(self, link: Link, stop: threading.Event, type: str) -> tuple[bool, datetime | None] | None:
        row = link.call(stop, "wait_for_message", type, 0)[0]
        return bool(row["ready"]), row["next_run_at"]

    def finish(self, link: Link, batch: Batch, handled: Handled, size: int) -> Rows | None:
        def settle(session: Session) -> Rows:
            if not handled.results:
                return session.fetch("finish_batch", batch.key, handled.lines(), size)
            with session.transaction():
                for id, result in handled.results.items():
                    session.call("set_result", id, batch.key, result)
                return session.fetch("finish_batch", batch.key, handled.lines(), size)

        return _unless_lost(lambda: link.run(settle, self._never))

    def finish_part(self, link: Link, batch: Batch, started: Sequence[Item], handled: Handled) -> None:
        failures = {f.id: f for f in handled.failures}

        def settle(session: Session) -> None:
            with session.transaction():
                for message in started:
                    if f := failures.get(message.id):
                        session.call("fail", f.id, batch.key, f.error, f.retry_after)
                    else:
                        if message.id in handled.results:
                            session.call("set_result", message.id, batch.key, handled.results[message.id])
                        session.call("complete", message.id, batch.key)
                session.call("release_batch", batch.key)

        _unless_lost(lambda: link.run(settle, self._never))


def _unless_lost(finish: Callable[[], T]) -> T | None:
    """The result of `finish`; None when the batch was lost, or was finished by a call whose answer was lost."""
    try:
        return finish()
    except QueueError as error:
        if error.number != LEASE_LOST:
            raise
        return None
