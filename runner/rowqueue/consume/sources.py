"""Sources of batches: the calls that claim and finish them."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, NamedTuple, TypeVar

from ..databases import DatabaseError, LeaseLost, QueueError, Rows, Session, Values
from ..handlers import Handled
from ..messages import Failure, Held, Item, Message, clean, line_of
from .leases import Batch
from .link import Link
from .options import Options

log = logging.getLogger("rowqueue")
T = TypeVar("T")

LONGEST_BLIND_POLL = 0.15  # without wake-ups; a message waits for half of it on average

LONGEST_LIST = 1_000_000  # characters of all errors of one call; a server may accept only a few megabytes
# The reasons of wait_for_message that somebody should know: they do not end on their own.
_WAITS = {
    "paused": "waiting: the queue is paused",
    "unknown": "waiting: nothing was ever sent to a queue of this name, and it has no settings",
}
SHORT = 300  # characters of an error in place of one that could not be stored


class Refused(DatabaseError):
    """The outcome of a batch cannot be stored unchanged. `is_lost`: the batch key does not hold its messages."""

    def __init__(self, reason: str, is_lost: bool = False) -> None:
        super().__init__(reason)
        self.is_lost = is_lost


class Answer(NamedTuple):
    """Whether a message is ready, and of which queue; when the next one is due, if none is."""

    type: str | None
    ready: bool
    due: datetime | None


COMPLETED = "C"  # the state of an archived message


class Source(ABC):
    """The differences between queues and polling tables."""

    area: ClassVar[str]
    extend_procedure: ClassVar[str]
    chains: ClassVar[bool]  # finishing a batch claims the next one
    wakes: ClassVar[bool]  # the database may wake the consumer
    answers: ClassVar[bool]  # `ask` knows whether something is ready
    reports: ClassVar[bool]  # the consumer calls report_consumer
    longest_blind_poll: ClassVar[float]

    def __init__(self, options: Options) -> None:
        self._options = options
        self._never = threading.Event()  # never set: for calls that must be made even after a stop

    @abstractmethod
    def claim(self, link: Link, stop: threading.Event, types: Sequence[str], size: int) -> Rows:
        """Claim up to `size` items of the first type that has some."""

    @abstractmethod
    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        """Claimed rows as the handler receives them."""

    @abstractmethod
    def ask(self, link: Link, stop: threading.Event, types: Sequence[str]) -> Answer | None:
        """Whether anything is ready; None if unknown. Also asks to be woken by senders."""

    @abstractmethod
    def finish(self, link: Link, batch: Batch, handled: Handled, size: int) -> Rows | None:
        """Finish a batch. Returns the rows of the next one, up to `size`, if finishing claims it; None: batch lost.

        Raises Refused when an outcome cannot be stored; then nothing is finished, and `finish_part` finds which one.
        """

    @abstractmethod
    def finish_part(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        """Finish the items that have ended, and give those back that were not started; returns both.

        Other items of the batch stay claimed. Items that the batch does not hold any more are left out of the result.
        """

    def ended_by_handler(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        """The items of a batch that is no longer held, although its lease holds, which the handler has ended itself."""
        return []


class QueueSource(Source):
    """Queues."""

    area = "queue"
    extend_procedure = "extend_lease"
    chains = True
    wakes = True
    answers = True
    reports = True
    longest_blind_poll = LONGEST_BLIND_POLL

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._reasons: dict[str, str] = {}  # why each queue had no ready message when it was last asked

    def claim(self, link: Link, stop: threading.Event, types: Sequence[str], size: int) -> Rows:
        call, what = ("claim_any", _lines(types)) if len(types) > 1 else ("claim_batch", types[0])
        return link.fetch(stop, call, what, size, self._options.consumer, self._options.lease)

    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        return [Message(*row) for row in rows]

    def ask(self, link: Link, stop: threading.Event, types: Sequence[str]) -> Answer | None:
        if len(types) == 1:
            row = link.call(stop, "wait_for_message", types[0], 0)[0]
            self._explain(types[0], row["reason"])
            return Answer(types[0], bool(row["ready"]), row["next_run_at"])
        for type in self._options.types:
            if type not in self._reasons and type in types:  # asked alone once: the name may be misspelt
                self._explain(type, link.call(stop, "wait_for_message", type, 0)[0]["reason"])
        row = link.call(stop, "wait_for_any", _lines(types), 0)[0]
        self._explain(row["type"] or types[0], row["reason"])
        return Answer(row["type"], bool(row["ready"]), row["next_run_at"])

    def _explain(self, type: str, reason: str) -> None:
        if self._reasons.get(type) != reason and reason in _WAITS:
            log.warning("%s: %s", type, _WAITS[reason])
        self._reasons[type] = reason

    def finish(self, link: Link, batch: Batch, handled: Handled, size: int) -> Rows | None:
        lines = handled.lines()

        def settle(session: Session) -> Rows:
            if not handled.results:
                return session.fetch("finish_batch", batch.key, lines, size)
            with session.transaction():
                for id, result in handled.results.items():
                    session.call("set_result", id, batch.key, result)
                return session.fetch("finish_batch", batch.key, lines, size)

        if lines is not None and len(lines) > LONGEST_LIST:
            raise Refused(f"the errors of a batch are longer than {LONGEST_LIST:,} characters together")
        try:
            return _or_refused(lambda: link.run(settle, self._never))
        except Refused as error:
            if not error.is_lost:
                raise
            return None  # or it was finished by a call whose answer was lost

    def finish_part(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        return self._finish_part(link, batch, handled)

    def ended_by_handler(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        """Such as in a transaction with its effect. What was released or rescued is new or active, not gone."""
        failed = {failure.id for failure in handled.failures}
        return [
            message
            for message in batch.messages
            if message.id not in failed
            and link.call(self._never, "get_state", message.id)[0]["state"] in (None, COMPLETED)
        ]

    def _finish_part(self, link: Link, batch: Batch, handled: Handled, is_plain: bool = False) -> Sequence[Item]:
        """As `finish_part`. `is_plain`: what the database had refused was left out."""

        def settle(session: Session) -> Sequence[Item]:
            if not handled.results:
                session.call("finish_messages", batch.key, lines)
            else:
                with session.transaction():
                    for id, result in handled.results.items():
                        session.call("set_result", id, batch.key, result)
                    session.call("finish_messages", batch.key, lines)
            return [*handled.ended, *handled.unstarted]

        lines = handled.all_lines()
        try:
            if len(lines) > LONGEST_LIST and len(handled.ended) > 1:
                raise Refused("too long")
            return _or_refused(lambda: link.run(settle, self._never))
        except Refused as error:
            if error.is_lost and not link.call(self._never, "extend_lease", batch.key, None)[0]["affected"]:
                return []  # the whole batch is lost
            # Find the outcome that is refused by halves, and store a plain one.
            if handled.unstarted and handled.ended:
                halves = handled.unstarted, handled.ended
            elif len(handled.ended) > 1:
                half = len(handled.ended) // 2
                halves = handled.ended[:half], handled.ended[half:]
            elif error.is_lost:
                return []
            elif is_plain:
                raise
            else:
                return self._finish_part(link, batch, self._plain(batch, handled, error), is_plain=True)
            return [item for some in halves for item in self._finish_part(link, batch, handled.of(some))]

    def _plain(self, batch: Batch, handled: Handled, error: Refused) -> Handled:
        """The outcome of one message without what the database has refused."""
        id, plain = handled.ended[0].id, replace(handled, results={})
        if handled.results:
            log.warning("%s message %d: its result is not kept: %s", batch.type, id, error)
        elif handled.failures:
            text = f"the attempt failed; its error could not be stored: {error}"
            log.warning("%s message %d: %s", batch.type, id, text)
            plain.failures = [Failure(id, handled.failures[0].retry_after, clean(text)[:SHORT])]
        else:
            raise error
        return plain


def _lines(types: Iterable[str]) -> str:
    return "\n".join(map(line_of, types))


def _or_refused(finish: Callable[[], T]) -> T:
    """The result of `finish`. Raises Refused when the server or the driver cannot take an outcome."""
    try:
        return finish()
    except (QueueError, DatabaseError) as error:
        # The classes below DatabaseError are about the connection, the server or the installation.
        if not isinstance(error, QueueError) and type(error) is not DatabaseError:
            raise
        raise Refused(str(error), isinstance(error, LeaseLost)) from error
