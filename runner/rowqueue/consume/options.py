"""The options of a consumer."""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import Error
from ..handlers import Handler

# The smallest and the largest value of an option, on the command line and in code.
LIMITS: dict[str, tuple[int, int | None]] = {
    "batch": (1, 10_000),
    "concurrency": (1, 1_000),
    "lease": (1, 86_400),
    "max_messages": (1, None),
    "idle_timeout": (0, None),
    "shutdown_timeout": (0, None),
    "connect_timeout": (0, None),
    "report": (0, 3_600),
}


# Messages per claim: of a list, and of --once; and at most for a handler of one message.
LIST, MOST = 10, 100


class BadOption(Error, ValueError):
    """An option with a value that is not allowed; `option` is its name, with underscores."""

    exit_code = 2

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, reason


@dataclass(frozen=True)
class Options:
    """The options of `runner consume` or `runner table consume`. Times are in seconds; None means no limit.

    `types`: names of queues, or of one table. `patterns`: queues that match one are consumed too, except those that
    match one of `exclude`.
    `batch`: messages per claim; for a handler of one message, the most. 0: the default, which `for_handler` sets.
    `lease` None: the queue's. `connect_timeout`: how long the database may be unreachable. `report`: the interval
    between the consumer's reports to the database; 0 for none.
    """

    types: tuple[str, ...]
    consumer: str
    batch: int = 0
    concurrency: int = 1
    lease: int | None = None
    once: bool = False
    drain: bool = False
    max_messages: int | None = None
    idle_timeout: float | None = None
    transaction: bool = False
    keep_results: bool = False
    shutdown_timeout: float = 30.0
    connect_timeout: float | None = None
    report: int = 10
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def may_end(self) -> bool:
        """Whether the consumer may end by itself."""
        return self.drain or self.max_messages is not None or self.idle_timeout is not None

    @classmethod
    def of_queues(
        cls, types: Iterable[str], exclude: Iterable[str], batch: int | None, consumer: str | None, **others: Any
    ) -> "Options":
        """The options of a consumer of queues, with the defaults that depend on other options. Raises BadOption.

        A type with a * or a ? is a pattern.
        """
        wanted = tuple(dict.fromkeys(types))
        patterns = tuple(type for type in wanted if is_pattern(type))
        names = tuple(type for type in wanted if not is_pattern(type))
        options = cls(names, "", patterns=patterns, exclude=tuple(dict.fromkeys(exclude)), **others)
        if not wanted:
            raise BadOption("types", "name at least one queue")
        if options.exclude and not patterns:
            raise BadOption("exclude", "needs a pattern, such as 'mail.*', among the queues")
        if options.keep_results and patterns:
            raise BadOption("keep_results", "needs queues by name, not by a pattern: each of them must archive")
        if options.keep_results and options.transaction:
            raise BadOption("keep_results", "cannot be combined with transaction")
        options = replace(options, batch=cls.batch if batch is None else batch, consumer=consumer or process_name())
        for name, (least, greatest) in LIMITS.items():
            value = batch if name == "batch" else getattr(options, name)
            if value is not None and not (least <= value and (greatest is None or value <= greatest)):
                limit = f"at least {least}" if greatest is None else f"{least} to {greatest:,}"
                raise BadOption(name, f"must be {limit}, not {value}")
        return options

    def for_handler(self, handler: Handler) -> "Options":
        """The options with the defaults for a handler. Raises BadOption when it does not suit them."""
        if self.transaction and handler.is_async:
            raise BadOption("transaction", "needs a sync handler: an async one cannot share the connection")
        if self.keep_results and handler.takes_list:
            raise BadOption("keep_results", "needs a handler that takes one message; this one takes a list")
        if self.batch:
            return self
        if handler.takes_list or (self.once and not self.transaction):
            return replace(self, batch=LIST)
        return replace(self, batch=1 if self.transaction else MOST)


def is_pattern(type: str) -> bool:
    """Whether the name of a queue is a pattern."""
    return "*" in type or "?" in type


def process_name() -> str:
    """The default name of a consumer: host and process number."""
    return f"{socket.gethostname()}:{os.getpid()}"
