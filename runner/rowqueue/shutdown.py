"""SIGTERM and SIGINT: running handlers may finish for a while; a second signal, or the timeout, aborts them."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

log = logging.getLogger("rowqueue")


class Shutdown:
    """Calls `stop` on the first signal. On the second, or after `timeout` seconds, calls `abort` and exits at once.

    `remark`: added to the log line of an abort.
    """

    def __init__(self, timeout: float, stop: Callable[[], None], abort: Callable[[], None], remark: str = "") -> None:
        self._timeout, self._stop, self._abort, self._remark = timeout, stop, abort, remark
        self._is_asked = False
        self._timer: threading.Timer | None = None
        self._deadline = 0.0

    def listen(self) -> None:
        """Install the signal handlers; only for the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        name = signal.Signals(number).name
        if self._is_asked:
            self._leave(number, f"{name} again")
        self._is_asked = True
        log.info("%s: running handlers may finish within %g s", name, self._timeout)
        self._deadline = time.monotonic() + self._timeout
        self._timer = threading.Timer(self._timeout, self._leave, (number, f"still busy after {self._timeout:g} s"))
        self._timer.daemon = True
        self._timer.start()
        self._stop()

    def time_left(self) -> float:
        """The rest of the timeout, in seconds; its end no longer aborts. Call it when no handler runs any more."""
        if self._timer is None:
            return self._timeout
        self._timer.cancel()
        return max(self._deadline - time.monotonic(), 0.0)

    def _leave(self, number: int, reason: str) -> None:
        """Exit at once: there is no other way to end handlers in threads."""
        log.error("%s: aborting%s", reason, self._remark)
        self._abort()
        os._exit(128 + number)
