"""Calls that a Firebird server never answers: they end after a while, as those of a lost connection do.

When an administrator ends a connection (DELETE FROM mon$attachments), a server of 5.0 may leave the call that runs, or
the next one, without an answer. TCP says that all is well, so the client library would wait for good. A thread looks
after calls that take long: it asks the server over a new connection whether theirs is still there.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from itertools import groupby
from typing import Generic, TypeVar

from firebird.driver import Error
from firebird.driver.interfaces import iAttachment

from ..base import DatabaseError, Disconnected

_log = logging.getLogger(__name__)
T = TypeVar("T")

_TICK = 0.5
FIRST_LOOK = 5.0  # a call that takes longer is looked after,
_LONGEST_PAUSE = 30.0  # at first soon, then in pauses that double up to this
# Where no new connection can be made for so long, a call is over as well: about what TCP gives a host that is gone.
LONGEST = 60.0
_ABORT = 4  # fb_cancel_abort: the client library closes the socket, and the call that waits for it ends


class Watched:
    """A connection that can be ended while a call of it waits. `look`: the numbers of all connections of the server.

    Connections with the same `server` are looked after together. The creation of one counts as a call of it.
    """

    def __init__(self, attachment: iAttachment, server: Hashable, look: Callable[[], set[int]]) -> None:
        self.server = server
        self.look = look
        self.number: int | None = None
        self.since: float | None = None  # when the call has begun that runs now
        self.pause = FIRST_LOOK
        self._lock = threading.Lock()
        # Of our own: it stays for as long as it may be ended, whatever the driver does with the other.
        held = iAttachment(attachment._as_parameter_)
        held.add_ref()
        held._refcnt = 1
        self._attachment: iAttachment | None = held
        self.begin()
        _watch.add(self)

    def begin(self) -> None:
        """A call begins."""
        self.pause = FIRST_LOOK
        self.since = time.monotonic()

    def end(self) -> None:
        """No call runs."""
        self.since = None

    def abort(self) -> None:
        """End the connection. Everything that is asked of it now or later fails at once."""
        with self._lock, suppress(Error):
            if self._attachment is not None:
                self._attachment.cancel_operation(_ABORT)

    def forget(self) -> None:
        """The connection is closed."""
        _watch.remove(self)
        with self._lock:
            self._attachment = None

    def is_overdue(self, now: float) -> bool:
        """Whether it is time to look after the call that runs."""
        since = self.since
        return since is not None and now >= since + self.pause

    def examine(self, there: set[int] | None) -> None:
        """End the connection if it has gone from the server. `there`: None when the server could not be asked."""
        if (since := self.since) is None:
            return
        lasted = time.monotonic() - since
        is_lost = lasted >= LONGEST if there is None or self.number is None else self.number not in there
        if is_lost:
            _log.info("no answer for %.0f s on a connection that the server no longer knows; closing it", lasted)
            self.abort()
            _watch.remove(self)
        self.pause = lasted + min(max(lasted, FIRST_LOOK), _LONGEST_PAUSE)


class _Watch:
    """All connections of this process, and the thread that looks after them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: set[Watched] = set()
        self._thread: threading.Thread | None = None

    def add(self, watched: Watched) -> None:
        with self._lock:
            self._watched.add(watched)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="rowqueue firebird watch", daemon=True)
                self._thread.start()

    def remove(self, watched: Watched) -> None:
        with self._lock:
            self._watched.discard(watched)

    def _run(self) -> None:
        while True:
            time.sleep(_TICK)
            now = time.monotonic()
            with self._lock:
                overdue = [watched for watched in self._watched if watched.is_overdue(now)]
            for _, group in groupby(sorted(overdue, key=_order), _order):
                _examine([*group])


def _order(watched: Watched) -> int:
    return hash(watched.server)


def _examine(overdue: list[Watched]) -> None:
    """Look after connections to one server."""
    there: set[int] | None = None
    try:
        there = answer(overdue[0].look, LONGEST)
    except Disconnected as error:
        _log.debug("cannot ask for connections: %s", error)
    except (Error, DatabaseError) as error:  # it answers, though not this
        _log.debug("cannot ask for connections: %s", error)
        there = {watched.number for watched in overdue if watched.number is not None}
    for watched in overdue:
        watched.examine(there)


_watch = _Watch()


class _Work(Generic[T]):
    """What a thread of its own does, and what came of it."""

    def __init__(self, work: Callable[[], T], discard: Callable[[T], object]) -> None:
        self._work = work
        self._discard = discard
        self._lock = threading.Lock()
        self._is_given_up = False
        self.results: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:
            self.error = error
            return
        with self._lock:
            self.results.append(result)
            is_late = self._is_given_up
        if is_late:
            with suppress(Exception):
                self._discard(result)

    def give_up(self) -> bool:
        """Whether it had not ended yet."""
        with self._lock:
            self._is_given_up = not self.results
            return self._is_given_up and self.error is None


def answer(work: Callable[[], T], seconds: float, discard: Callable[[T], object] = lambda _: None) -> T:
    """The result of a work that may never end: of the client library, before there is a connection to end.

    Raises Disconnected when it takes too long. What comes of it later is discarded.
    """
    doing = _Work(work, discard)
    thread = threading.Thread(target=doing.run, name="rowqueue firebird call", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive() and doing.give_up():
        raise Disconnected(f"no answer from the server within {seconds:g} s")
    if doing.error is not None:
        raise doing.error
    return doing.results[0]
