"""What is shown is read in parts: a part that fails is shown as failed, and the others are not touched.

The exporter, `runner web`, `runner top` and `runner doctor` all read through `Parts`.
"""

from collections.abc import Callable
from typing import TypeVar

from ...databases import Disconnected, QueueError
from ...errors import Error

T = TypeVar("T")


class Parts:
    """Runs the parts of an answer. `errors`: the parts that failed, with their errors."""

    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}

    def get(self, name: str, work: Callable[[], T], otherwise: T) -> T:
        """The result of `work`, or `otherwise` after any error.

        Raises only Disconnected, because then no part can be read, and errors of arguments: the request is wrong.
        """
        try:
            return work()
        except Exception as error:  # not only the driver's: a value of an unexpected kind is one too
            if isinstance(error, Disconnected) or (isinstance(error, QueueError) and error.name == "invalid_argument"):
                raise
            self.errors[name] = error
            return otherwise


def said(error: BaseException) -> str:
    """An error in words; one that was not expected begins with the name of its class."""
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
