"""Claiming ahead: a second thread finishes a worker's last batch and claims its next one while it handles another."""

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from ..link import Link
from .leases import Batch

# A handler that takes less than so many claims, and less than so many seconds, for a batch has the next one waiting.
QUICK = 10
LONGEST_QUICK = 0.05
# So long may a batch wait for a handler that has become slow; the shortest lease is a second.
PATIENCE = 0.2

Next = Callable[[], Batch | None]  # makes the next batch of what the database has sent


class Ahead:
    """Makes calls for one worker, one after the other, on that worker's connection; the worker itself makes none.

    What comes of each is had in the order of the calls. A batch that nobody wants for `PATIENCE` is passed to
    `give_back`, and nothing stands in its place.
    """

    def __init__(self, give_back: Callable[[Link, Batch], None]) -> None:
        self._give_back = give_back
        self._calls = queue.SimpleQueue[tuple[Link, Callable[[], Next]] | None]()
        self._answers = queue.SimpleQueue[Next]()
        self._thread: threading.Thread | None = None
        self.count = 0  # calls whose answers are to be had

    def call(self, link: Link, work: Callable[[], Next]) -> None:
        """Begin a call, which is made when the ones before it have been answered."""
        if self._thread is None:
            # A daemon: where a worker ends with an error, nobody waits for its calls.
            self._thread = threading.Thread(target=self._serve, name="ahead", daemon=True)
            self._thread.start()
        self.count += 1
        self._calls.put((link, work))

    def next(self) -> Batch | None:
        """The batch that came of the oldest call; waits for it. Raises what the call has raised."""
        self.count -= 1
        return self._answers.get()()

    def close(self) -> None:
        """End the thread; every call has been answered."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        link: Link | None = None
        while True:
            try:
                # Only this thread puts answers there.
                job = self._calls.get(timeout=None if self._answers.empty() else PATIENCE)
            except queue.Empty:
                assert link is not None
                self._clear(link)
                continue
            if job is None:
                return
            link, work = job
            try:
                answer = work()
            except BaseException as error:
                answer = partial(_fail, error)
            # What has come is read by the worker: the next call is made first.
            self._answers.put(answer)

    def _clear(self, link: Link) -> None:
        """Give back what has waited for too long."""
        waiting = []
        while not self._answers.empty():
            try:
                waiting.append(self._answers.get_nowait())
            except queue.Empty:  # the worker was quicker
                break
        for answer in waiting:
            left: Next = _nothing
            try:
                batch = answer()
                if batch is not None:
                    self._give_back(link, batch)
            except BaseException as error:
                left = partial(_fail, error)
            self._answers.put(left)


def _nothing() -> None:
    return None


def _fail(error: BaseException) -> NoReturn:
    raise error
