"""What is claimed: queues by name and pattern, the batches that they give, and the calls that claim and finish them.

The source of a polling table is in rowqueue.extras.tables.
"""

import logging
import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

from ..databases import AreaMissing, Conflict, DatabaseError, Disconnected, LeaseLost, QueueError, Rows, Session, Values
from ..databases.link import NEVER, Link, Links
from ..handlers import Handled
from ..messages import Failure, Held, Item, Message, clean, line_of
from .options import Options

log = logging.getLogger("rowqueue")
T = TypeVar("T")

# The limits of a list of types in one call: claim_any's, and what every server accepts.
MOST, LONGEST = 1_000, 100_000
LIST_SECONDS = 2.0  # a new queue is found after this time at the latest,
LIST_SHARE = 20  # or, where the list takes long, after this many times as long
FORGET_SECONDS = 600.0  # a queue without messages and settings is kept for this long
PAGE = 1_000
LOGGED = 20  # names of new queues in one line of the log
LONGEST_BEAT = 5.0  # seconds between two heartbeats at most: they also ask what was cancelled
FIRST_BEAT = 0.3  # seconds that a handler has run when the server is asked how much of a queue's lease is left
LONGEST_LIST = 1_000_000  # characters of all errors of one call; a server may accept only a few megabytes
SHORT = 300  # characters of an error in place of one that could not be stored
COMPLETED = "C"  # the state of an archived message
# The reasons of wait_for_message that somebody should know: they do not end on their own.
_WAITS = {
    "paused": "waiting: the queue is paused",
    "unknown": "waiting: nothing was ever sent to a queue of this name, and it has no settings",
}


class Queues:
    """The names of all queues, in an order in which they take turns. All threads use it."""

    def __init__(self, options: Options) -> None:
        self._named, self._patterns = options.types, options.patterns
        self._matches = [_expression(pattern) for pattern in options.patterns]
        self._excluded = [_expression(pattern) for pattern in options.exclude]
        # What all matching names begin with; without blanks at its end, as every name is.
        self._prefixes = sorted({re.split(r"[*?]", pattern)[0].rstrip(" ") for pattern in options.patterns})
        self._listing = threading.Lock()
        self._list_at = 0.0
        self._seen: dict[str, float] = {}  # when the queues that match were last listed
        self._last = random.choice(options.types) if options.types else ""  # which had its turn last
        self._asked = 0
        self.known: tuple[str, ...] = ()
        self._set(options.types)

    @property
    def are_one(self) -> bool:
        """Whether there is one queue, and never another one."""
        return not self._patterns and len(self._named) == 1

    @property
    def calls(self) -> int:
        """How many calls ask about all queues."""
        return max(-(-len(self.known) // MOST), 1)

    def lists(self, first: Iterable[str] = ()) -> list[list[str]]:
        """All queues in the order of their turns, as lists for a call each. `first`: these come before the others."""
        return self._parts(first, self._places.get(self._last, -1) + 1)

    def questions(self) -> list[list[str]]:
        """As `lists`, but each call begins with another queue: an answer may be only about the first one."""
        self._asked += 1
        return self._parts((), self._asked % max(len(self.known), 1))

    def had_turn(self, type: str) -> None:
        """Note that messages of a queue were claimed: all others come before its next turn."""
        self._last = type

    def refresh(self, link: Link, stop: threading.Event) -> bool:
        """List the queues that match the patterns, if it is time to and no other thread does it; whether it was."""
        if not self._patterns or time.monotonic() < self._list_at or not self._listing.acquire(blocking=False):
            return False
        began = time.monotonic()
        try:
            with suppress(Disconnected, Conflict):  # only after `stop`
                self._list(link, stop, began)
                return True
            return False
        finally:
            self._list_at = time.monotonic() + max(LIST_SECONDS, LIST_SHARE * (time.monotonic() - began))
            self._listing.release()

    def until_list(self) -> float | None:
        """Seconds until the next list; None without patterns."""
        return max(self._list_at - time.monotonic(), 0.001) if self._patterns else None

    def _list(self, link: Link, stop: threading.Event, now: float) -> None:
        is_first = not self._list_at
        for prefix in self._prefixes:
            after: str | None = None
            rows = [{"type": ""}] * PAGE
            while len(rows) == PAGE:
                rows = link.call(stop, "find_queues", prefix or None, after, PAGE)
                self._seen.update((row["type"], now) for row in rows if self._takes(row["type"]))
                after = rows[-1]["type"] if rows else None
        self._seen = {type: at for type, at in self._seen.items() if now - at < FORGET_SECONDS}
        if new := self._seen.keys() - set(self.known):
            more = f" and {len(new) - LOGGED} more" if len(new) > LOGGED else ""
            log.info("consuming %s%s", ", ".join(sorted(new)[:LOGGED]), more)
        elif is_first and not self.known:
            log.warning("waiting: no queue matches %s yet", ", ".join(self._patterns))
        kept = [type for type in self.known if type in self._seen or type in self._named]
        if new or len(kept) < len(self.known):
            self._set((*kept, *sorted(new)))

    def _takes(self, type: str) -> bool:
        return any(match(type) for match in self._matches) and not any(match(type) for match in self._excluded)

    def _set(self, types: tuple[str, ...]) -> None:
        self._places = {type: place for place, type in enumerate(types)}
        self.known = types

    def _parts(self, first: Iterable[str], start: int) -> list[list[str]]:
        known, places = self.known, self._places
        if len(known) < 2:
            return [[*known]] if known else []
        front = [type for type in first if type in places]
        ordered = dict.fromkeys((*front, *known[start:], *known[:start]))
        parts: list[list[str]] = [[]]
        length = 0
        for type in ordered:
            length += len(type)
            if len(parts[-1]) == MOST or length > LONGEST:
                parts.append([])
                length = len(type)
            parts[-1].append(type)
        return parts


def _expression(pattern: str) -> Callable[[str], "re.Match[str] | None"]:
    """The function that matches a whole name: * is any text, also none, and ? one character; all else is literal."""
    parts = (".*" if sign == "*" else "." if sign == "?" else re.escape(sign) for sign in pattern)
    return re.compile("".join(parts), re.DOTALL).fullmatch


@dataclass(eq=False, slots=True)
class Batch:
    """Claimed messages, with the next heartbeat and the end of the lease on this process's monotonic clock.

    `lease_until`: the end on the server's clock; None once the heartbeat has asked how far off it is.
    `waiting`: the messages that the handler has not begun, by id; the thread that pops one has it. `handled`: what the
    handler has done so far. `settled`: the ids that were finished or given back before the handler's end. `lock`: of
    the thread that finishes some of it.
    """

    type: str
    key: Any
    messages: Sequence[Held]
    is_full: bool  # the claim returned as many as it asked for
    beat_every: float
    beat_at: float
    expires: float
    lease_until: datetime | None = None
    lost: bool = False
    waiting: dict[int, Held] = field(default_factory=dict)
    handled: Handled | None = None
    settled: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    turn_ends: float = 0.0  # until then, the next claim may be of this queue too

    @classmethod
    def leased(cls, messages: Sequence[Held], size: int, lease: int | None, asked_at: float) -> "Batch":
        """A batch just claimed with this size. Its lease is counted from when the claim was sent: too early is safe.

        `lease` None: the queue's. Its end is then known as a time of the server's clock, which may differ from ours.
        """
        type, key, lease_until = messages[0].type, messages[0].batch_key, messages[0].lease_until
        is_full = len(messages) == size
        if lease is not None:
            beat = min(lease / 3, LONGEST_BEAT)
            return cls(type, key, messages, is_full, beat, asked_at + beat, asked_at + lease)
        return cls(type, key, messages, is_full, FIRST_BEAT, asked_at + FIRST_BEAT, float("inf"), lease_until)


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


class Source(ABC):
    """The differences between queues and polling tables."""

    area: ClassVar[str]
    extend_procedure: ClassVar[str]
    chains: ClassVar[bool]  # finishing a batch claims the next one
    wakes: ClassVar[bool]  # the database may wake the consumer
    answers: ClassVar[bool]  # `ask` knows whether something is ready
    reports: ClassVar[bool]  # the consumer calls report_consumer
    longest_blind_poll: ClassVar[float]  # seconds between two polls without wake-ups

    def __init__(self, options: Options) -> None:
        self._options = options
        self.links: Links | None = None  # for what handlers call by a message

    @abstractmethod
    def claim(self, link: Link, stop: threading.Event, types: Sequence[str], size: int) -> Rows:
        """Claim up to `size` items of the first type that has some."""

    @abstractmethod
    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        """Claimed rows as the handler receives them."""

    @abstractmethod
    def ask(self, link: Link, stop: threading.Event, types: Sequence[str]) -> Answer | None:
        """Whether anything is ready; None if unknown."""

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

    def cancelled(self, link: Link, ended: threading.Event, batch: Batch) -> Sequence[Message]:
        """The messages of a batch that were cancelled since the last call."""
        return []

    def ended_by_handler(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        """The items of a batch that is no longer held, although its lease holds, which the handler has ended itself."""
        return []


class QueueSource(Source):
    area = "queue"
    extend_procedure = "extend_lease"
    chains = wakes = answers = reports = True
    longest_blind_poll = 0.15  # a message waits for half of it on average

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._tells = True  # which messages were cancelled: the area `steps` is installed
        self._reasons: dict[str, str] = {}  # why each queue had no ready message when it was last asked

    def claim(self, link: Link, stop: threading.Event, types: Sequence[str], size: int) -> Rows:
        call, what = ("claim_any", _lines(types)) if len(types) > 1 else ("claim_batch", types[0])
        return link.fetch(stop, call, what, size, self._options.name, self._options.lease)

    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        return [Message(*(*row, None, False, self.links)) for row in rows]

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
        if lines is not None and len(lines) > LONGEST_LIST:
            raise Refused(f"the errors of a batch are longer than {LONGEST_LIST:,} characters together")
        try:
            return _settle(link, batch, handled, lambda session: session.fetch("finish_batch", batch.key, lines, size))
        except Refused as error:
            if not error.is_lost:
                raise
            return None  # or it was finished by a call whose answer was lost

    def cancelled(self, link: Link, ended: threading.Event, batch: Batch) -> Sequence[Message]:
        try:
            ids = {row["id"] for row in link.call(ended, "list_cancelled", batch.key)} if self._tells else ()
        except AreaMissing:
            self._tells, ids = False, ()
        return [m for m in batch.messages if m.id in ids and isinstance(m, Message) and not m.cancelled]

    def ended_by_handler(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        """Such as in a transaction with its effect. What was released or rescued is new or active, not gone."""
        failed = {failure.id for failure in handled.failures}
        return [
            message
            for message in batch.messages
            if message.id not in failed and link.call(NEVER, "get_state", message.id)[0]["state"] in (None, COMPLETED)
        ]

    def finish_part(self, link: Link, batch: Batch, handled: Handled, is_plain: bool = False) -> Sequence[Item]:
        """As Source.finish_part. `is_plain`: what the database had refused was left out."""
        lines = handled.all_lines()
        try:
            if len(lines) > LONGEST_LIST and len(handled.ended) > 1:
                raise Refused("too long")
            _settle(link, batch, handled, lambda session: session.call("finish_messages", batch.key, lines))
            return [*handled.ended, *handled.unstarted]
        except Refused as error:
            if error.is_lost and not link.call(NEVER, "extend_lease", batch.key, None)[0]["affected"]:
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
                return self.finish_part(link, batch, _plain(batch, handled, error), is_plain=True)
            return [item for some in halves for item in self.finish_part(link, batch, handled.of(some))]


def _lines(types: Iterable[str]) -> str:
    return "\n".join(map(line_of, types))


def _settle(link: Link, batch: Batch, handled: Handled, finish: Callable[[Session], T]) -> T:
    """Store the results of a batch and finish it. Raises Refused when the server or the driver cannot take them."""

    def work(session: Session) -> T:
        if not handled.results:
            return finish(session)
        with session.transaction():
            for id, result in handled.results.items():
                session.call("set_result", id, batch.key, result)
            return finish(session)

    try:
        return link.run(work, NEVER)
    except (QueueError, DatabaseError) as error:
        # The classes below DatabaseError are about the connection, the server or the installation.
        if not isinstance(error, QueueError) and type(error) is not DatabaseError:
            raise
        raise Refused(str(error), isinstance(error, LeaseLost)) from error


def _plain(batch: Batch, handled: Handled, error: Refused) -> Handled:
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
