"""One database to show, with its connection in a thread of its own: an unreachable one does not delay the others."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from ...databases import AreaMissing, Database, DatabaseError, Disconnected, NotAllowed, QueueError
from .reading import Looking

T = TypeVar("T")

ANSWER_SECONDS = 5.0  # a database that takes longer for a page counts as away
_PAUSE_SECONDS = 1.0  # after a failed attempt to connect


class Away(Exception):
    """A database that cannot be read now. The message says why, and never contains a password."""

    def __init__(self, reason: str, is_unreachable: bool = False) -> None:
        super().__init__(reason)
        self.is_unreachable = is_unreachable  # otherwise it answers, and with an error


class Watched:
    """One database with a name, and one connection in a thread of its own, opened again when it is lost."""

    def __init__(self, name: str, database: Database, program: str) -> None:
        self.name = name
        self.kind = database.name
        self._database = database
        self._program = program
        self._looking: Looking | None = None
        self._retry_at = float("-inf")
        self._reason, self._is_unreachable = "", False
        self._busy_since: float | None = None
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None  # from the first job on: a server may fork before

    def submit(self, work: Callable[[Looking], T], again: bool = True) -> Future[T]:
        """Queue `work` after earlier work. `again`: repeat it once if the connection was lost.

        The future raises Away, QueueError, NotAllowed or AreaMissing. It can be cancelled before its work begins.
        """
        future: Future[T] = Future()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._run(work, again))
                except BaseException as error:
                    future.set_exception(error)

        self._jobs.put(job)
        with self._lock:
            if self._thread is None:
                # A daemon: at its end, the process does not wait for a server that does not answer.
                self._thread = threading.Thread(target=self._serve, name=f"looking at {self.name}", daemon=True)
                self._thread.start()
        return future

    def ask(self, work: Callable[[Looking], T], seconds: float = ANSWER_SECONDS, again: bool = True) -> T:
        """The result of `work`; waits at most `seconds`. Raises Away, QueueError, NotAllowed."""
        return self.result(self.submit(work, again), seconds)

    def result(self, future: Future[T], seconds: float = ANSWER_SECONDS) -> T:
        """The result of a future of `submit`; waits at most `seconds`. Raises Away, QueueError, NotAllowed."""
        since = self._busy_since
        if since is not None and not future.running() and time.monotonic() - since > ANSWER_SECONDS:
            seconds = min(seconds, 0.1)  # an earlier call hangs: do not wait for it again
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise Away(f"it has not answered for {seconds:g} s") from None

    def close(self) -> None:
        """End the thread after its current work."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while job := self._jobs.get():
            self._busy_since = time.monotonic()
            job()
            self._busy_since = None
        self._drop()

    def _run(self, work: Callable[[Looking], T], again: bool) -> T:
        is_new = self._looking is None
        try:
            return work(self._connected())
        except Disconnected as error:
            self._drop()
            if again and not is_new:
                return self._run(work, False)
            raise Away(str(error), True) from None
        except (QueueError, NotAllowed, AreaMissing):
            if is_new and self._looking is None:  # not an error of a call: this user may not connect
                raise Away(self._reason, self._is_unreachable) from None
            raise
        except DatabaseError as error:
            raise Away(str(error)) from None

    def _connected(self) -> Looking:
        if self._looking is None:
            began = time.monotonic()
            if began < self._retry_at:
                raise Away(self._reason, self._is_unreachable)
            try:
                self._looking = Looking(self._database.connect(self._program))
            except DatabaseError as error:
                # After a slow attempt, such as to a host that is off, wait as long before the next one.
                now = time.monotonic()
                self._retry_at, self._reason = now + max(_PAUSE_SECONDS, now - began), str(error)
                self._is_unreachable = isinstance(error, Disconnected)
                raise
        return self._looking

    def _drop(self) -> None:
        if self._looking is not None:
            self._looking.session.close()
            self._looking = None
