"""Claiming ahead: while a worker thread handles a batch, a second thread finishes its last one and claims its next."""

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from .leases import Batch
from .link import Link

# Claim ahead when the handler needs less time per batch than this many claims, and fewer seconds than this.
QUICK = 10
LONGEST_QUICK = 0.05
# How long, in seconds, a batch waits for a handler that has become slow. The shortest lease is a second.
PATIENCE = 0.1

Next = Callable[[], Batch | None]  # makes the next batch from the rows that the database sent


class Ahead:
    """Makes one worker thread's calls in order, on its connection; meanwhile the worker thread itself makes none.

    Results are returned in the order of the calls. A batch that is not fetched for `PATIENCE` seconds is passed to
    `give_back`; its result is then None.
    """

    def __init__(self, give_back: Callable[[Link, Batch], None]) -> None:
        self._give_back = give_back
        self._calls = queue.SimpleQueue[tuple[Link, Callable[[], Next]] | None]()
        self._answers = queue.SimpleQueue[Next]()
        self._thread: threading.Thread | None = None
        self.count = 0  # calls whose results have not been fetched

    def call(self, link: Link, work: Callable[[], Next]) -> None:
        """Queue a call; it is made after the earlier ones have been answered."""
        if self._thread is None:
            # A daemon: when a worker thread ends with an error, its calls are not awaited.
            self._thread = threading.Thread(target=self._serve, name="ahead", daemon=True)
            self._thread.start()
        self.count += 1
        self._calls.put((link, work))

    def next(self) -> Batch | None:
        """Wait for the oldest call and return its batch. Raises what the call raised."""
        self.count -= 1
        return self._answers.get()()

    def close(self) -> None:
        """End the thread, after all calls have been answered."""
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
            # The worker thread converts the rows; this thread makes the next call first.
            self._answers.put(answer)

    def _clear(self, link: Link) -> None:
        """Give back a batch that has waited too long."""
        waiting = []
        while not self._answers.empty():
            try:
                waiting.append(self._answers.get_nowait())
            except queue.Empty:  # the worker thread has just fetched it
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
