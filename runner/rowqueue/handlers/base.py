"""The base class of handlers, and the outcome of a batch."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Expected
from ..messages import Discard, Failure, Item, Retry

LONGEST_RESULT = 16 << 20


class HandlerError(Expected):
    """A handler that cannot be loaded or used."""


@dataclass(slots=True)
class Handled:
    """The outcome of a batch: failures, messages not started, an exception that must end the process, and results.

    `cause`: the first exception other than Retry and Discard. `began`: when the handler began, on the monotonic clock.
    `seconds`: how long it ran.
    """

    failures: list[Failure] = field(default_factory=list)
    cause: Exception | None = None
    unstarted: list[Item] = field(default_factory=list)
    crash: BaseException | None = None
    keeps_results: bool = False
    results: dict[int, str] = field(default_factory=dict)
    began: float = 0.0
    seconds: float = 0.0

    def keep(self, message: Item, value: Any) -> None:
        """Keep the return value of a handler as the result, if results are wanted: a text unchanged, others as JSON.

        Raises ValueError or TypeError for a value that no database can store.
        """
        if not self.keeps_results or value is None:
            return
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\0" in text or len(text.encode("utf-8")) > LONGEST_RESULT:
            raise ValueError("the result must be at most 16 MiB, without the character NUL")
        self.results[message.id] = text

    def lines(self) -> str | None:
        """The failures as the list that finish_batch takes."""
        return "\n".join(f.line() for f in self.failures) or None

    def add(self, message: Item, error: BaseException | None) -> None:
        """Note the end of an attempt. After an exception such as SystemExit, the message counts as not started."""
        if isinstance(error, Exception):
            if self.cause is None and not isinstance(error, Retry | Discard):
                self.cause = error
            self.failures.append(Failure.of(message, error))
        elif error is not None:
            self.crash = error
            self.unstarted.append(message)

    def ending(self) -> HandlerError | None:
        """The error with which the process must end; None if it need not."""
        if self.crash is None or isinstance(self.crash, HandlerError):
            return self.crash
        return HandlerError(f"the handler ended the process: {type(self.crash).__name__}: {self.crash}")


class Handler(ABC):
    """Runs batches. Several threads call it at the same time, each with a batch.

    A handler that `limits_itself` runs no more messages at a time than allowed, for any number of threads.
    """

    is_async = False
    limits_itself = False
    takes_list = False

    @abstractmethod
    def run(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        """Handle the messages and note the outcome in `handled`. Start none once `go_on` is false. Never raises."""

    def close(self, seconds: float = 0.0) -> None:  # noqa: B027
        """Release resources; called when nothing more will run. Child processes get `seconds` to end.

        A second call does nothing.
        """

    def abort(self) -> None:  # noqa: B027  (most handlers hold nothing that outlives the process)
        """End child processes that would outlive this process."""
