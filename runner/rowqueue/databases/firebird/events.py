"""Wake-ups on Firebird: events, with a connection and a thread of their own.

The server sends events over a second TCP connection, whose port a firewall may block. Then the registration hangs in
the client library for minutes, or no event arrives. Neither must delay the consumer, which polls anyway.
"""

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from firebird.driver import Error
from firebird.driver.interfaces import iEventCallbackImpl, iEvents

from ..base import DatabaseError
from .connection import Connection
from .errors import line

_log = logging.getLogger(__name__)

_READY_SECONDS = 1.0  # how long a caller waits for the registration
_RETRY_SECONDS = 10.0
_PING_SECONDS = 30.0
_LAST_CALL_SECONDS = 1.0  # how long the client library may take to notice that its connection for events is lost
_NAME_CHARACTERS = 30  # of a type, which the procedures put into the name of its event


def event_name(type_name: str) -> bytes:
    """The name of the event that the procedures post for a queue."""
    return ("mq_" + type_name[:_NAME_CHARACTERS]).encode()


class _Callback(iEventCallbackImpl):  # type: ignore[misc]
    """The object that the client library calls, from a thread of its own, with the counts of all events."""

    def __init__(self, arrived: "queue.SimpleQueue[bytes | None]") -> None:
        super().__init__()
        self._arrived = arrived
        self._is_last = threading.Event()

    # The driver's own class takes too few arguments (2.1.0). The object is kept as long as the library may call it.
    def add_ref(self, *_: object) -> None:
        pass

    def release(self, *_: object) -> int:
        return 1

    def events_arrived(self, events: bytes) -> None:
        if events:
            self._arrived.put(events)
        else:  # the registration was cancelled, or its connection is lost
            self._is_last.set()

    def begin(self) -> None:
        """A registration begins: cancelling the one before has been the last call for that one only."""
        self._is_last.clear()

    def wait_for_last(self) -> None:
        """Wait until the client library's thread has noticed that the connection is lost.

        Meanwhile it goes through the registrations. The process crashes if one of them is freed then. It calls
        nothing if we have ended the connection: then this waits the whole time.
        """
        self._is_last.wait(_LAST_CALL_SECONDS)
        time.sleep(_LAST_CALL_SECONDS / 10)  # its thread must have returned from the call


def _changed(before: bytes, after: bytes) -> list[bytes]:
    """The names of the events that have other counts. After the first byte: a length, the name and four bytes each."""
    names, start = [], 1
    while start < len(after) and len(before) == len(after):
        end = start + 1 + after[start]
        if before[end : end + 4] != after[end : end + 4]:
            names.append(after[start + 1 : end])
        start = end + 4
    return names


def _let_go(registration: iEvents) -> None:
    try:
        registration.release()
    except Error as error:
        _log.debug("events: %s", line(error))
        registration._refcnt = 0


class Listener:
    """Makes `descriptor` readable when a message is sent to one of the queues. `is_on`: the registration works."""

    def __init__(self, types: Sequence[str], connect: Callable[[], Connection]) -> None:
        self.types = frozenset(types)
        self._types: dict[bytes, set[str]] = {}  # by the name of their event
        for type in self.types:
            self._types.setdefault(event_name(type), set()).add(type)
        self._woken: queue.SimpleQueue[bytes] = queue.SimpleQueue()  # events that have arrived
        self.is_on = False
        self._connect = connect
        self._arrived: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._callback = _Callback(self._arrived)
        self._closed = False
        self._ready = threading.Event()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="rowqueue events", daemon=True)
        self._thread.start()
        self._ready.wait(_READY_SECONDS)

    @property
    def descriptor(self) -> int:
        """A file descriptor that is readable after an event, until `clear`."""
        return self._reader.fileno()

    def clear(self) -> Collection[str] | None:
        """Clear the events; returns the queues whose events they were, if that is known; None: there were none."""
        woken = False
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                woken = True
        types: set[str] = set()
        with suppress(queue.Empty):
            while True:
                types |= self._types.get(self._woken.get_nowait(), set())
        return types if woken else None

    def close(self) -> None:
        """End the thread. Never raises, and does not wait for a registration that hangs."""
        self._closed = True
        self._arrived.put(None)
        self._thread.join(_READY_SECONDS)
        self._reader.close()
        self._writer.close()

    def _run(self) -> None:
        while not self._closed:
            try:
                connection = self._connect()
                try:
                    self._follow(connection)
                finally:
                    self.is_on = False
                    connection.close()
            except (Error, DatabaseError) as error:
                _log.debug("no events: %s", line(error))
            if not self._closed:
                self._pause()

    def _follow(self, connection: Connection) -> None:
        """Pass events on until closed. Raises the driver's errors."""
        # Format 1; then for each name its length, the name and its count.
        names = sorted(self._types)
        counts = b"\1" + b"".join(bytes([len(name)]) + name + bytes(4) for name in names)
        while not self._closed:
            # Counting starts at the last counts received, so no event is lost between two registrations.
            registration: iEvents | None = None
            self._callback.begin()
            try:
                registration = connection._att.que_events(self._callback, counts)
                connection.at_rest()
                arrived = self._next(connection)
            except Error as error:
                connection.let_go(error)
                self._callback.wait_for_last()
                raise
            finally:
                connection.at_work()
                # Must happen before the connection is closed, even a lost one. Otherwise garbage collection calls the
                # client library with memory that it has freed, and the process crashes.
                if registration is not None:
                    _let_go(registration)
            if arrived is None:
                return
            # The first answer on each connection comes at once and has the current counts. Events between the
            # connections were missed.
            if self._ready.is_set():
                self._wake(_changed(counts, arrived))
            self.is_on, counts = True, arrived
            self._ready.set()

    def _next(self, connection: Connection) -> bytes | None:
        """The next counts; None when closed. Raises the driver's errors when the connection is lost."""
        while True:
            try:
                return self._arrived.get(timeout=_PING_SECONDS)
            except queue.Empty:
                connection.at_work()
                connection.ping()
                connection.at_rest()

    def _wake(self, names: Iterable[bytes]) -> None:
        for name in names:
            self._woken.put(name)
        with suppress(OSError):  # the pipe is full of wake-ups, or closed
            self._writer.send(b"x")

    def _pause(self) -> None:
        """Wait before the next attempt, unless closed."""
        with suppress(queue.Empty):
            while self._arrived.get(timeout=_RETRY_SECONDS) is not None:
                pass
