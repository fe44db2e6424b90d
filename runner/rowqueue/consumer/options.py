"""What a consumer was asked for."""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import Expected
from ..handlers import Handler

# The least and the greatest value of an option, on the command line and in code.
LIMITS: dict[str, tuple[int, int | None]] = {
    "batch": (1, 10_000),
    "concurrency": (1, 1_000),
    "lease": (1, 315_360_000),
    "max_messages": (1, None),
    "idle_timeout": (0, None),
    "shutdown_timeout": (0, None),
    "connect_timeout": (0, None),
    "report": (0, 3_600),
}


class BadOption(Expected, ValueError):
    """An option that cannot be used so; `option` is its name, with underscores."""

    exit_code = 2

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, reason


@dataclass(frozen=True)
class Options:
    """What `runner consume` or `runner table consume` was asked for; seconds everywhere, None for no limit.

    `lease` None leaves the length of a lease to the queue's policy. `connect_timeout`: how long the database may be
    away. `report`: a queue's consumer says so often in the database what it does, 0 for never.
    """

    types: tuple[str, ...]
    reader: str
    batch: int = 10
    concurrency: int = 1
    lease: int | None = None
    once: bool = False
    drain: bool = False
    max_messages: int | None = None
    idle_timeout: float | None = None
    transaction: bool = False
    ring: bool = False
    keep_results: bool = False
    shutdown_timeout: float = 30.0
    connect_timeout: float | None = None
    report: int = 10

    @property
    def may_end(self) -> bool:
        """Whether the consumer may come to an end that nobody calls for."""
        return self.drain or self.max_messages is not None or self.idle_timeout is not None

    @classmethod
    def of_queues(cls, types: Iterable[str], batch: int | None, reader: str | None, **others: Any) -> "Options":
        """For queues, with the defaults that depend on other options. Raises BadOption."""
        options = cls(tuple(dict.fromkeys(types)), "", **others)
        if not options.types:
            raise BadOption("types", "name at least one queue")
        if options.transaction and options.ring:
            raise BadOption("ring", "cannot be combined with transaction")
        if options.keep_results and options.transaction:
            raise BadOption("keep_results", "cannot be combined with transaction")
        if batch is None:
            batch = cls.batch
        if reader is None:
            reader = socket.gethostname() if options.ring else process_name()
        options = replace(options, batch=batch, reader=reader)
        for name, (least, greatest) in LIMITS.items():
            value = getattr(options, name)
            if value is not None and not (least <= value and (greatest is None or value <= greatest)):
                limit = f"at least {least}" if greatest is None else f"{least} to {greatest:,}"
                raise BadOption(name, f"must be {limit}, not {value}")
        return options

    def check(self, handler: Handler) -> None:
        """Whether the handler can be used so. Raises BadOption."""
        if self.transaction and handler.is_async:
            raise BadOption("transaction", "an async handler cannot share the transaction's connection")
        if self.keep_results and handler.takes_list:
            raise BadOption("keep_results", "the handler takes a list; a result is of one message")


def process_name() -> str:
    """The name under which a process claims, unless it is told another."""
    return f"{socket.gethostname()}:{os.getpid()}"
