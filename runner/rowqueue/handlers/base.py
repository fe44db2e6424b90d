"""What runs handlers: the outcome of a batch, and the class of all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..errors import Expected
from ..messages import Failure, Item


class HandlerError(Expected):
    """A handler that cannot be loaded or cannot be used in this way."""


@dataclass(slots=True)
class Handled:
    """What became of a batch: failures, messages never started, and an exception that must end the process."""

    failures: list[Failure] = field(default_factory=list)
    unstarted: list[Item] = field(default_factory=list)
    crash: BaseException | None = None

    def add(self, message: Item, error: BaseException | None) -> None:
        """Note the end of one attempt; an exception such as SystemExit leaves the message as not started."""
        if isinstance(error, Exception):
            self.failures.append(Failure.of(message, error))
        elif error is not None:
            self.crash = error
            self.unstarted.append(message)


class Handler(ABC):
    """Runs batches, called by as many threads as there may be batches at the same time.

    One that `limits_itself` runs no more messages at once than allowed, however many threads call it.
    """

    is_async = False
    limits_itself = False

    @abstractmethod
    def run(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        """Handle the messages and note the outcome in `handled`; start none when `go_on` says no. Never raises."""

    def abort(self) -> None:  # noqa: B027  (most handlers hold nothing that outlives the process)
        """End what would outlive this process."""
