"""What runs handlers: the outcome of a batch, and the class of all of them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Expected
from ..messages import Discard, Failure, Item, Retry

LONGEST_RESULT = 16 << 20


class HandlerError(Expected):
    """A handler that cannot be loaded or cannot be used in this way."""


@dataclass(slots=True)
class Handled:
    """What became of a batch: failures, messages never started, an exception that must end the process, and results.

    `cause`: the first exception of a handler that it did not mean for the queue. `began` (of the monotonic clock) and
    `seconds`: when the handler ran, and for how long.
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
        """Note what a handler has returned for a message, if that is wanted: a text as it is, anything else as JSON.

        Raises ValueError or TypeError for what no database could keep.
        """
        if not self.keeps_results or value is None:
            return
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\0" in text or len(text.encode("utf-8")) > LONGEST_RESULT:
            raise ValueError("a result has up to 16 MiB, and no character NUL")
        self.results[message.id] = text

    def lines(self) -> str | None:
        """The failures as finish_batch's list."""
        return "\n".join(f.line() for f in self.failures) or None

    def add(self, message: Item, error: BaseException | None) -> None:
        """Note the end of one attempt; an exception such as SystemExit leaves the message as not started."""
        if isinstance(error, Exception):
            if self.cause is None and not isinstance(error, Retry | Discard):
                self.cause = error
            self.failures.append(Failure.of(message, error))
        elif error is not None:
            self.crash = error
            self.unstarted.append(message)

    def ending(self) -> HandlerError | None:
        """What the process must end with."""
        if self.crash is None or isinstance(self.crash, HandlerError):
            return self.crash
        return HandlerError(f"the handler ended the process: {type(self.crash).__name__}: {self.crash}")


class Handler(ABC):
    """Runs batches, called by as many threads as there may be batches at the same time.

    One that `limits_itself` runs no more messages at once than allowed, however many threads call it.
    """

    is_async = False
    limits_itself = False
    takes_list = False

    @abstractmethod
    def run(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        """Handle the messages and note the outcome in `handled`; start none when `go_on` says no. Never raises."""

    def close(self, seconds: float = 0.0) -> None:  # noqa: B027
        """Nothing more will be run: let go of what it holds. What runs beside this process has so many seconds to end.

        A second call does nothing.
        """

    def abort(self) -> None:  # noqa: B027  (most handlers hold nothing that outlives the process)
        """End what would outlive this process."""
