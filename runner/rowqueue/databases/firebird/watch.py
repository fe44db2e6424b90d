"""Ends calls that a Firebird server never answers.

When an administrator ends a connection with DELETE FROM mon$attachments, a 5.0 server may never answer the running or
the next call. The TCP connection stays open, so the client library would wait forever. A thread watches long calls: it
asks the server, over a new connection, whether their connections still exist.
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
FIRST_LOOK = 5.0  # seconds; a call that takes longer is checked,
_LONGEST_PAUSE = 30.0  # then again after pauses that double up to this
# If no new connection can be opened for this long, the call is ended too: about as long as TCP waits for a dead host.
LONGEST = 60.0
_ABORT = 4  # fb_cancel_abort: the client library closes the socket, which ends the waiting call


class Watched:
    """A connection that can be ended while a call waits. `look`: returns the numbers of our connections on the server.

    Connections with the same `server` are checked together. Opening the connection counts as a call.
    """

    def __init__(self, attachment: iAttachment, server: Hashable, look: Callable[[], set[int]]) -> None:
        self.server = server
        self.look = look
        self.number: int | None = None
        self.since: float | None = None  # when the running call began
        self.pause = FIRST_LOOK
        self._lock = threading.Lock()
        # Our own reference: it stays valid as long as it may be ended, independent of the driver's.
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
        """No call is running."""
        self.since = None

    def abort(self) -> None:
        """End the connection. Running and later calls fail at once."""
        with self._lock, suppress(Error):
            if self._attachment is not None:
                self._attachment.cancel_operation(_ABORT)

    def forget(self) -> None:
        """Note that the connection is closed."""
        _watch.remove(self)
        with self._lock:
            self._attachment = None

    def is_overdue(self, now: float) -> bool:
        """Whether it is time to check the running call."""
        since = self.since
        return since is not None and now >= since + self.pause

    def examine(self, there: set[int] | None) -> None:
        """End the connection if the server no longer has it. `there`: None when the server could not be asked."""
        if (since := self.since) is None:
            return
        lasted = time.monotonic() - since
        is_lost = lasted >= LONGEST if there is None or self.number is None else self.number not in there
        if is_lost:
            _log.info("no answer for %.0f s on a connection that the server no longer has; closing it", lasted)
            self.abort()
            self.pause = lasted + FIRST_LOOK  # then again, should the call still wait
        else:
            self.pause = lasted + min(max(lasted, FIRST_LOOK), _LONGEST_PAUSE)


class _Watch:
    """All connections of this process, and the thread that watches them."""

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
    """Check the connections to one server."""
    there: set[int] | None = None
    try:
        there = answer(overdue[0].look, LONGEST)
    except Disconnected as error:
        _log.debug("cannot ask for connections: %s", error)
    except (Error, DatabaseError) as error:  # the server answers, but with an error
        _log.debug("cannot ask for connections: %s", error)
        there = {watched.number for watched in overdue if watched.number is not None}
    except Exception:  # a thread that ended here would leave all calls of this process unwatched
        _log.exception("cannot ask for connections")
    for watched in overdue:
        watched.examine(there)


_watch = _Watch()


class _Work(Generic[T]):
    """Work in a thread of its own, and its result."""

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
        """Stop waiting for the work; returns whether it was still running."""
        with self._lock:
            self._is_given_up = not self.results
            return self._is_given_up and self.error is None


def answer(work: Callable[[], T], seconds: float, discard: Callable[[T], object] = lambda _: None) -> T:
    """The result of work that may never end: client library calls before there is a connection that could be ended.

    Raises Disconnected after `seconds`. A later result is passed to `discard`.
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
