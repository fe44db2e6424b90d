"""Connections that are opened again when lost: one session per thread, and one log line for all of them."""

import logging
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from ..escaping import escape_record
from .base import (
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    NotAllowed,
    ReadOnly,
    Row,
    Rows,
    SchemaMissing,
    Session,
    TimedOut,
)

log = logging.getLogger("rowqueue")
log.addFilter(escape_record)  # for all modules that log here: texts of handlers and senders stay on one line
T = TypeVar("T")

UPGRADE_SECONDS = 60.0  # how long a procedure may be missing while an upgrade replaces it
# The longest pause between two attempts to connect: all consumers are back this soon after the server is.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
# A conflict that comes this often without a success between is logged, and again after this many seconds.
MANY_CONFLICTS = 10
SAY_AGAIN = 10.0
NEVER = threading.Event()  # is never set: for calls that must be made, even after a stop


class GaveUp(DatabaseError):
    """The database was unreachable for longer than the user wants to wait."""


class Outage:
    """The set of lost connections. Logs once when the first is lost, and once when all work again.

    `longest`: seconds after which retrying ends, None for no limit. `awaits_writer`: also wait for a server that takes
    no changes, since it may become the primary. `reconnected`: called for each connection that works again. `name`:
    the database's name in the log.
    """

    def __init__(
        self,
        longest: float | None = None,
        awaits_writer: bool = True,
        reconnected: Callable[[], None] = lambda: None,
        name: str = "the database",
    ) -> None:
        self._name = name
        self._longest = longest
        self._awaits_writer = awaits_writer
        self._reconnected = reconnected
        self._lock = threading.Lock()
        self._links: set[object] = set()
        self._since = 0.0
        self._is_read_only = False
        self.has_worked = False  # a call has been answered
        self.renewed_at = 0.0  # on the monotonic clock: when a lost connection was last opened again

    def begin(self, link: object, error: Exception) -> None:
        """Note that a connection is lost."""
        with self._lock:
            is_first = not self._links
            if is_first:
                self._since = time.monotonic()
            if isinstance(error, ReadOnly) and (is_first or not self._is_read_only):
                log.warning("%s takes no changes (%s); trying again until it does", self._name, error)
            elif is_first:
                log.warning("%s is unreachable (%s); trying again until it answers", self._name, error)
            self._is_read_only = isinstance(error, ReadOnly) or (self._is_read_only and not is_first)
            self._links.add(link)

    def end(self, link: object) -> None:
        """Note that a connection works again."""
        if link not in self._links:
            return
        with self._lock:
            self._links.discard(link)
            self.renewed_at = time.monotonic()
            self._reconnected()
            if not self._links:
                log.warning("%s is reachable again after %.1f s", self._name, time.monotonic() - self._since)

    def is_hopeless(self, error: BaseException) -> bool:
        """Whether to stop retrying after this error."""
        if isinstance(error, ReadOnly) and not self._awaits_writer and not self.has_worked:
            return True
        return self._longest is not None and self.is_on() and time.monotonic() - self._since >= self._longest

    def is_on(self) -> bool:
        """Whether any connection is lost."""
        return bool(self._links)


class Link:
    """One thread's session, opened on first use and again after it is lost.

    `is_over`: returns true when retrying must end for a reason of the caller's, such as its idle timeout.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        outage: Outage,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database = database
        self._name = name
        self._outage = outage
        self._listen_to: Sequence[str] = ()
        self._heard: Sequence[str] = ()  # what the session listens to
        self._is_over = is_over
        self._session: Session | None = None
        self._worked_at = 0.0
        self._conflicts = 0  # since the last success
        self._said_at = float("-inf")
        self._missing_since = self._missing_last = float("-inf")
        self.is_woken = False  # the database sends wake-ups

    def run(self, work: Callable[[Session], T], give_up: threading.Event) -> T:
        """Run `work`; repeat it after a lost connection or a conflict until it succeeds or `give_up` is set.

        Raises GaveUp when the outage lasts too long.
        """
        pausing = pauses()
        while True:
            try:
                return self.once(work)
            except (Disconnected, Conflict) as error:
                if give_up.is_set():
                    raise
                if isinstance(error, Disconnected) and (self._outage.is_hopeless(error) or self._is_over()):
                    raise GaveUp(f"gave up: {error}") from error
            give_up.wait(next(pausing))

    def call(self, give_up: threading.Event, procedure: str, *arguments: Any) -> list[Row]:
        """Call one procedure, as `run` does."""
        return self.run(lambda session: session.call(procedure, *arguments), give_up)

    def fetch(self, give_up: threading.Event, procedure: str, *arguments: Any) -> Rows:
        """As `call`, for many rows; see Session.fetch."""
        return self.run(lambda session: session.fetch(procedure, *arguments), give_up)

    def once(self, work: Callable[[Session], T]) -> T:
        """Run `work` once; close the session if the connection is lost."""
        try:
            if self._worked_at < self._outage.renewed_at:
                self.close()  # unused since another connection was lost: probably lost too, which is not a new outage
            if self._session is None:
                self._session = self._database.connect(self._name)
            if self._heard is not self._listen_to:
                self.is_woken = self._session.listen(self._listen_to)
                self._heard = self._listen_to
            result = work(self._session)
            # Only after a call has succeeded: a standby accepts connections too.
            self._outage.end(self)
            self._outage.has_worked = True
            self._conflicts = 0
            self._worked_at = time.monotonic()
            return result
        except Disconnected as error:
            self._outage.begin(self, error)
            self.close()
            raise
        except Conflict as error:
            self._conflicts += 1
            if isinstance(error, TimedOut) or self._conflicts >= MANY_CONFLICTS:
                self._say(error)
            raise
        except (SchemaMissing, NotAllowed) as error:
            if not self._may_pass():
                raise
            raise Conflict(f"an upgrade may be replacing it: {error}") from error

    def _say(self, error: Conflict) -> None:
        """Log a conflict that may not pass, at most every few seconds."""
        if time.monotonic() - self._said_at >= SAY_AGAIN:
            self._said_at = time.monotonic()
            log.warning("trying again (attempt %d failed): %s", self._conflicts, error)

    def _may_pass(self) -> bool:
        """Whether a missing procedure or grant may be due to an upgrade in progress."""
        if self._database.swaps_at_once or not self._outage.has_worked:
            return False
        now = time.monotonic()
        if now - self._missing_last > UPGRADE_SECONDS:
            self._missing_since = now
            log.warning("a procedure is missing: an upgrade may be replacing it; retrying for %g s", UPGRADE_SECONDS)
        self._missing_last = now
        return now - self._missing_since < UPGRADE_SECONDS

    def listen(self, types: Sequence[str]) -> None:
        """Ask to be woken when a message of these queues is sent, from the next call on; instead of earlier ones."""
        self._listen_to = types

    def wait(self, seconds: float, interrupt: int) -> Collection[str] | None:
        """Sleep as Session.wait does. A lost connection is left for the next call to open again."""
        try:
            return self.once(lambda session: session.wait(seconds, interrupt))
        except Disconnected:
            return None

    def close(self) -> None:
        """Close the session, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session, self._heard = None, ()


class Links:
    """Links for calls from any thread: as many as there are calls at a time."""

    def __init__(self, open: Callable[[], Link]) -> None:
        self._open = open
        self._free: list[Link] = []

    def run(self, work: Callable[[Session], T]) -> T:
        """As `Link.run`, on a link that no other thread uses."""
        try:
            link = self._free.pop()
        except IndexError:
            link = self._open()
        try:
            return link.run(work, NEVER)
        finally:
            self._free.append(link)

    def close(self) -> None:
        """Close all of them; called when nobody calls any more."""
        while self._free:
            self._free.pop().close()


def pauses() -> Iterator[float]:
    """Seconds to wait before each further attempt: none, then random ones that grow."""
    yield 0.0
    longest = FIRST_PAUSE
    while True:
        yield random.uniform(0, longest)
        longest = min(longest * 2, LONGEST_PAUSE)


def when_there(check: Callable[[], T], longest: float | None, stop: threading.Event = NEVER) -> T:
    """As `once_there`. During the wait, SIGTERM and SIGINT end the process. Only for the main thread."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, _leave) for number in numbers}
    try:
        return once_there(check, longest, stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def once_there(check: Callable[[], T], longest: float | None, stop: threading.Event) -> T:
    """The result of `check`, repeated until the database answers, for at most `longest` seconds; None for no limit.

    Raises the last error after that time, or when `stop` is set.
    """
    outage = Outage(longest)
    began = time.monotonic()
    pausing = pauses()
    while True:
        try:
            result = check()
            outage.end(check)
            return result
        except (Disconnected, Conflict) as error:
            if isinstance(error, TimedOut):
                log.warning("the queue cannot be checked: %s", error)
            if stop.is_set() or (longest is not None and time.monotonic() - began >= longest):
                raise
            if isinstance(error, Disconnected):
                outage.begin(check, error)
        stop.wait(next(pausing))


def _leave(number: int, _frame: object) -> NoReturn:
    log.info("%s: ended before the database could be reached", signal.Signals(number).name)
    raise SystemExit(0)
