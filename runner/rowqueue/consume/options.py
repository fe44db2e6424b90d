"""The options of a consumer: each is defined here once, with its type, default, limits and help.

The command line reads the definitions. The parameters of rowqueue.Consumer repeat names, types and defaults for
editors and type checkers, and tests/runner/test_python_consumer.py compares them.
"""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from ..errors import Error
from ..handlers import Handler

# Messages per claim: of a list, and of --once; and at most for a handler of one message.
LIST, MOST = 10, 100


class BadOption(Error, ValueError):
    """An option with a value that is not allowed; `option` is its name, with underscores."""

    exit_code = 2

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, reason


def option(default: Any, help: str, least: int | None = None, most: int | None = None) -> Any:
    """A field of Options that is an option of commands. `least`, `most`: the limits of its value."""
    return field(default=default, metadata={"help": help, "least": least, "most": most})


@dataclass(frozen=True)
class Options:
    """The options of a consumer. Times are in seconds. Raises BadOption for a value that is not allowed.

    `types`: names of queues, or of one polling table or feed. `patterns`: queues that match one are consumed too,
    except those that match one of `exclude`.
    """

    types: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    batch: int | None = option(
        None,
        "The messages in a list; for a handler of one message, the most per claim. [10; 100; with --transaction: 1]",
        least=1,
        most=10_000,
    )
    concurrency: int = option(1, "Messages handled at a time; lists, for a handler of lists.", least=1, most=1_000)
    lease: int | None = option(
        None, "How long a claim holds; extended while handlers run. [the queue's]", least=1, most=86_400
    )
    consumer: str | None = option(
        None, "This consumer's name. A ring keeps its position under this name. [host and process number]"
    )
    once: bool = option(False, "End after one batch per queue.")
    drain: bool = option(False, "End when nothing is ready.")
    max_messages: int | None = option(None, "End after this many messages.", least=1)
    idle_timeout: float | None = option(None, "End after this long without a message. [never]", least=0)
    transaction: bool = option(
        False, "Handle messages in the transaction that takes them: an effect in this database happens once."
    )
    keep_results: bool = option(
        False, "Keep what the handler returns (text or JSON) as the result. The queue must archive."
    )
    shutdown_timeout: float = option(30.0, "After SIGTERM or SIGINT, how long running handlers may take.", least=0)
    health_port: int | None = option(
        None,
        "Serve /live, /ready and /metrics on this port of 127.0.0.1. 0: any free port. [off]",
        least=0,
        most=65_535,
    )
    connect_timeout: float | None = option(
        None, "End with an error when the database is unreachable or read-only for this long. [never]", least=0
    )
    report: int = option(
        10,
        "The interval of this consumer's reports, which `runner consumers` shows. 0: none.",
        least=0,
        most=3_600,
    )

    def __post_init__(self) -> None:
        if not self.types and not self.patterns:
            raise BadOption("types", "name at least one queue")
        if self.exclude and not self.patterns:
            raise BadOption("exclude", "needs a pattern, such as 'mail.*', among the queues")
        if self.keep_results and self.patterns:
            raise BadOption("keep_results", "needs queues by name, not by a pattern: each of them must archive")
        if self.keep_results and self.transaction:
            raise BadOption("keep_results", "cannot be combined with transaction")
        for one in OPTIONS.values():
            value, least, most = getattr(self, one.name), one.metadata["least"], one.metadata["most"]
            if least is not None and value is not None and not (least <= value and (most is None or value <= most)):
                limit = f"at least {least}" if most is None else f"{least} to {most:,}"
                raise BadOption(one.name, f"must be {limit}, not {value}")

    @classmethod
    def of_queues(cls, types: Iterable[str], exclude: Iterable[str] = (), **others: Any) -> "Options":
        """The options of a consumer of queues. A type with a * or a ? is a pattern."""
        wanted = dict.fromkeys(types)
        patterns = tuple(type for type in wanted if "*" in type or "?" in type)
        names = tuple(type for type in wanted if type not in patterns)
        return cls(names, patterns, tuple(dict.fromkeys(exclude)), **others)

    @cached_property
    def name(self) -> str:
        return self.consumer or process_name()

    @property
    def may_end(self) -> bool:
        return self.drain or self.max_messages is not None or self.idle_timeout is not None

    def check(self, handler: Handler) -> None:
        """Raise BadOption when a handler does not suit the options."""
        if self.transaction and handler.is_async:
            raise BadOption("transaction", "needs a sync handler: an async one cannot share the connection")
        if self.keep_results and handler.takes_list:
            raise BadOption("keep_results", "needs a handler that takes one message; this one takes a list")

    def most(self, handler: Handler) -> int:
        """The most messages per claim."""
        if self.batch is not None:
            return self.batch
        if handler.takes_list or (self.once and not self.transaction):
            return LIST
        return 1 if self.transaction else MOST


# The options by name, in the order of the help.
OPTIONS = {one.name: one for one in fields(Options) if one.metadata}


def process_name() -> str:
    """The default name of a consumer: host and process number."""
    return f"{socket.gethostname()}:{os.getpid()}"
