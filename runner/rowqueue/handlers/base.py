"""The base class of handlers, and the outcome of a batch."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from ..errors import Error
from ..messages import DeadLetter, Failure, Item, Retry, Snoozed, outcome_line

LONGEST_RESULT = 16 << 20
# Whether the handler may start this message, which nobody else has taken back; None: whether it may start any.
GoOn = Callable[[Item | None], bool]


class HandlerError(Error):
    """A handler that cannot be loaded or used."""


@dataclass(slots=True)
class Handled:
    """The outcome of a batch: failures, messages not started, the error that must end the process, and results.

    `ended`: the messages of a handler of one message, each added when its failure or result has been noted. `left`: the
    messages that the handler's own call has put back. `cause`: the first exception other than Retry and DeadLetter.
    `cancelled`: those of the failures that were cancelled. `cancel`: ends the handler of a message from another thread.
    `crash`: the command cannot be started, which is no message's fault. `began`: when the handler began, on the
    monotonic clock. `seconds`: how long it ran.
    """

    failures: list[Failure] = field(default_factory=list)
    cause: BaseException | None = None
    unstarted: list[Item] = field(default_factory=list)
    ended: list[Item] = field(default_factory=list)
    left: list[Item] = field(default_factory=list)
    cancelled: set[int] = field(default_factory=set)
    cancel: Callable[[Item], object] | None = None
    crash: HandlerError | None = None
    keeps_results: bool = False
    results: dict[int, str] = field(default_factory=dict)
    began: float = 0.0
    seconds: float = 0.0

    def returned(self, message: Item, value: Any) -> None:
        """Note what a handler returned. If results are wanted, it is the result: a text unchanged, others as JSON.

        Raises ValueError or TypeError for a value that no database can store, and for code that has not run.
        """
        if value is None:
            return
        check_ran(value)
        if not self.keeps_results:
            return
        is_text = isinstance(value, str)
        text = "".join([value]) if is_text else json.dumps(value, ensure_ascii=False, allow_nan=False)
        if "\0" in text or len(text.encode("utf-8")) > LONGEST_RESULT:
            raise ValueError("the result must be at most 16 MiB, without the character NUL")
        self.results[message.id] = text

    def lines(self, longest: int | None = None) -> str | None:
        """The list that finish_batch takes: what has failed. `longest`: cut each error to so many characters."""
        # In the order of ids: some databases read another order twice.
        return "\n".join(f.line(longest) for f in sorted(self.failures, key=lambda f: f.id)) or None

    def all_lines(self, longest: int | None = None) -> str:
        """The list that finish_messages takes: what has failed, what is done, and what was not started."""
        lines = {message.id: outcome_line(message.id) for message in self.ended}
        lines |= {failure.id: failure.line(longest) for failure in self.failures}
        lines |= {message.id: outcome_line(message.id, released=1) for message in self.unstarted}
        return "\n".join(lines[id] for id in sorted(lines))

    def add(self, message: Item, error: BaseException | None) -> None:
        """Note the end of an attempt. Any exception is a failure of the message, SystemExit too. Never raises."""
        if error is not None:
            if isinstance(error, Snoozed) and error.id == message.id:
                self.left.append(message)
                return
            if getattr(message, "cancelled", False):
                self.cancelled.add(message.id)
            elif self.cause is None and not isinstance(error, Retry | DeadLetter):
                self.cause = error
            self.failures.append(Failure.of(message.id, error))
        self.ended.append(message)

    def add_all(self, messages: Iterable[Item], error: BaseException) -> None:
        """Note the same end of several attempts; messages that have ended already keep their outcome."""
        ended = {message.id for message in self.ended}
        for message in messages:
            if message.id not in ended:
                self.add(message, error)

    def of(self, messages: Iterable[Item]) -> "Handled":
        """The outcome of some of the messages. Another thread may still be adding to this one."""
        ids = {message.id for message in messages}
        return replace(
            self,
            failures=[failure for failure in self.failures if failure.id in ids],
            unstarted=[message for message in self.unstarted if message.id in ids],
            ended=[message for message in self.ended if message.id in ids],
            results={id: self.results[id] for id in ids if id in self.results},
        )


def refresh_connections() -> None:
    """Around a handler in a process that uses Django: close lost and old connections, as Django does around a request.

    Those of a test's transaction stay open. Never raises.
    """
    django = sys.modules.get("django.db")
    if django is not None:
        with suppress(Exception):  # not configured
            for connection in django.connections.all(initialized_only=True):
                if not connection.in_atomic_block:
                    connection.close_if_unusable_or_obsolete()


def check_ran(value: object) -> None:
    """Raise TypeError when a handler returned code that has not run: a coroutine or a generator."""
    if isinstance(value, CoroutineType | GeneratorType | AsyncGeneratorType):
        if not isinstance(value, AsyncGeneratorType):
            value.close()
        kind = type(value).__name__.replace("_", " ")
        raise TypeError(f"the handler returned a {kind}, whose code has not run: is an async or an await missing?")


class Handler(ABC):
    """Runs batches. Several threads call it at the same time, each with a batch.

    A handler that `limits_itself` runs no more messages at a time than allowed, for any number of threads. One that is
    `aborted` has killed its child processes.
    """

    aborted = False
    is_async = False
    limits_itself = False
    takes_list = False

    @abstractmethod
    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        """Handle the messages and note the outcome in `handled`. Start those of which `go_on` is true. Never raises.

        A list is started when `go_on` is true of its first message.
        """

    def check(self) -> None:  # noqa: B027
        """Raise HandlerError at the end of a consumer whose handler has never worked at all."""

    def close(self, seconds: float = 0.0) -> None:  # noqa: B027
        """Release resources; called when nothing more will run. Child processes get `seconds` to end.

        A second call does nothing.
        """

    def abort(self) -> None:  # noqa: B027  (most handlers hold nothing that outlives the process)
        """End child processes that would outlive this process."""
