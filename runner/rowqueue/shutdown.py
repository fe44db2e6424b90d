"""SIGTERM and SIGINT: what runs may end, for a while; a second signal, or the end of that time, aborts."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

log = logging.getLogger("rowqueue")


class Shutdown:
    """Calls `stop` on the first signal, and on the second, or `timeout` seconds later, `abort` before leaving at once.

    `remark` tells in the log what becomes of what was running.
    """

    def __init__(self, timeout: float, stop: Callable[[], None], abort: Callable[[], None], remark: str = "") -> None:
        self._timeout, self._stop, self._abort, self._remark = timeout, stop, abort, remark
        self._is_asked = False
        self._timer: threading.Timer | None = None
        self._deadline = 0.0

    def listen(self) -> None:
        """From now on; only for the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        name = signal.Signals(number).name
        if self._is_asked:
            self._leave(number, f"{name} again")
        self._is_asked = True
        log.info("%s: running handlers may finish, for at most %g s", name, self._timeout)
        self._deadline = time.monotonic() + self._timeout
        self._timer = threading.Timer(self._timeout, self._leave, (number, f"still busy after {self._timeout:g} s"))
        self._timer.daemon = True
        self._timer.start()
        self._stop()

    def time_left(self) -> float:
        """The seconds that are left when nothing is busy any more; from now on their end aborts nothing."""
        if self._timer is None:
            return self._timeout
        self._timer.cancel()
        return max(self._deadline - time.monotonic(), 0.0)

    def _leave(self, number: int, reason: str) -> None:
        """Leave at once: handlers in threads cannot be ended in any other way."""
        log.error("%s: aborting%s", reason, self._remark)
        self._abort()
        os._exit(128 + number)
