"""The one connection of `runner top`: a thread makes its calls one by one, and connects again when it is lost."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from ..databases import Conflict, Database, DatabaseError, Disconnected, Session

T = TypeVar("T")
Work = Callable[[Session], Any]

# A change that could not begin for so long is not made any more: whoever asked for it may have turned to another thing.
PATIENCE = 10.0
_ATTEMPTS = 3  # of a call that another transaction has ended; it has changed nothing


class TooLate(DatabaseError):
    """The connection was busy or away for too long: the change was not begun."""


class Desk:
    """Does work on one session, in a thread of its own, in the order in which it is asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session: Session | None = None
        self._jobs: queue.SimpleQueue[tuple[Work, float, Future[Any]] | None] = queue.SimpleQueue()
        # A daemon: a server that does not answer must not keep the process alive.
        self._thread = threading.Thread(target=self._serve, name="top", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Session], T], patience: float = float("inf")) -> Future[T]:
        """Have work done; the result or the error comes with the future.

        `patience`: seconds within which it has to begin, else the error is TooLate.
        """
        future: Future[T] = Future()
        self._jobs.put((work, time.monotonic() + patience, future))
        return future

    async def do(self, work: Callable[[Session], T], patience: float = float("inf")) -> T:
        """The same for asyncio."""
        return await asyncio.wrap_future(self.submit(work, patience))

    def close(self, seconds: float = 2.0) -> None:
        """Close the connection when the work that was asked for is done, but wait no longer than so."""
        self._jobs.put(None)
        self._thread.join(seconds)

    def _serve(self) -> None:
        while job := self._jobs.get():
            work, latest, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if time.monotonic() > latest:
                    raise TooLate("the database did not answer in time; nothing was changed")
                future.set_result(self._done(work))
            except BaseException as error:
                future.set_exception(error)
        self._drop()

    def _done(self, work: Work) -> Any:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if self._session is None:
                    self._session = self._database.connect("runner top")
                return work(self._session)
            except Disconnected:
                self._drop()
                raise
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
