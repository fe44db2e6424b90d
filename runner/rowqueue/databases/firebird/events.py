"""Wake-ups on Firebird: events, over a connection and a thread of their own.

The server tells them over a second TCP connection, to a port that a firewall may hide. The registration then hangs in
the client library for minutes, or no event ever comes: neither may hold up the consumer, who polls anyway.
"""

import logging
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from firebird.driver import Error
from firebird.driver.interfaces import iEventCallbackImpl, iEvents

from ..base import DatabaseError
from .connection import Connection
from .errors import line

_log = logging.getLogger(__name__)

_READY_SECONDS = 1.0  # how long a caller waits until events are sure to come
_RETRY_SECONDS = 10.0
_PING_SECONDS = 30.0
_NAME_CHARACTERS = 30  # of a type: what the procedures put into the name of its event


def event_name(type_name: str) -> bytes:
    """The event that the procedures post for a type."""
    return ("mq_" + type_name[:_NAME_CHARACTERS]).encode()


class _Callback(iEventCallbackImpl):  # type: ignore[misc]
    """What the client library calls from a thread of its own, with the counts of all events."""

    def __init__(self, arrived: "queue.SimpleQueue[bytes | None]") -> None:
        super().__init__()
        self._arrived = arrived

    # The driver's own take too few arguments (2.1.0). We hold the object for as long as the library may call.
    def add_ref(self, *_: object) -> None:
        pass

    def release(self, *_: object) -> int:
        return 1

    def events_arrived(self, events: bytes) -> None:
        if events:  # none when a registration is given up
            self._arrived.put(events)


def _let_go(registration: iEvents) -> None:
    try:
        registration.release()
    except Error as error:
        _log.debug("events: %s", line(error))
        registration._refcnt = 0


class Listener:
    """Makes `descriptor` readable when something has been sent to one of the types. `is_on`: it is sure to."""

    def __init__(self, types: Sequence[str], connect: Callable[[], Connection]) -> None:
        self.types = frozenset(types)
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
        """Readable after an event, until `clear`."""
        return self._reader.fileno()

    def clear(self) -> bool:
        """Forget what has come; returns whether something had."""
        woken = False
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                woken = True
        return woken

    def close(self) -> None:
        """Give up. Never raises, and does not wait for a registration that hangs."""
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
        """Pass events on until it is closed. Raises the driver's errors."""
        # Format 1, then each name with its length before it and its count behind it.
        names = sorted({event_name(name) for name in self.types})
        counts = b"\1" + b"".join(bytes([len(name)]) + name + bytes(4) for name in names)
        while not self._closed:
            # An event counts from the last counts that we have seen: none is lost between two registrations.
            registration = connection._att.que_events(self._callback, counts)
            try:
                connection.at_rest()
                arrived = self._next(connection)
            except Error as error:
                connection.let_go(error)
                raise
            finally:
                connection.at_work()
                # Before the connection is closed, also when that is lost: else the client library is asked to let go
                # of it when the object is collected, with memory that it has freed, and the process would die.
                _let_go(registration)
            if arrived is None:
                return
            # The very first answer comes at once and tells where the counts stand; so does that of a later connection,
            # and what was sent until then has been missed.
            if self._ready.is_set():
                self._wake()
            self.is_on, counts = True, arrived
            self._ready.set()

    def _next(self, connection: Connection) -> bytes | None:
        """The next counts; None when it is closed. Raises the driver's errors when the connection is lost."""
        while True:
            try:
                return self._arrived.get(timeout=_PING_SECONDS)
            except queue.Empty:
                connection.at_work()
                connection.ping()
                connection.at_rest()

    def _wake(self) -> None:
        with suppress(OSError):  # it is full of wake-ups, or closed
            self._writer.send(b"x")

    def _pause(self) -> None:
        """Wait before the next attempt, unless it is closed."""
        with suppress(queue.Empty):
            while self._arrived.get(timeout=_RETRY_SECONDS) is not None:
                pass
