"""SIGTERM and SIGINT: running handlers may finish for a while; a later signal, or the timeout, aborts them."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

log = logging.getLogger("rowqueue")

# Seconds. A signal that comes this soon after the first is the same one: timeout(1) sends it to the process and to its
# group.
SAME_SIGNAL = 1.0
# Seconds between two moments when a waiting main thread can run signal handlers: after SIGCONT, the system may deliver
# the signal to another thread, which does not end the wait.
LOOK = 0.2


class Shutdown:
    """Calls `stop` on the first signal. On a later one, or after `timeout` seconds, calls `abort` and exits at once.

    `remark`: added to the log line of an abort.
    """

    def __init__(self, timeout: float, stop: Callable[[], None], abort: Callable[[], None], remark: str = "") -> None:
        self._timeout, self._stop, self._abort, self._remark = timeout, stop, abort, remark
        self._asked_at: float | None = None
        self._timer: threading.Timer | None = None
        self._deadline = 0.0

    def listen(self) -> None:
        """Install the signal handlers; only for the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        name = signal.Signals(number).name
        if self._asked_at is not None:
            if time.monotonic() - self._asked_at >= SAME_SIGNAL:
                self._leave(number, f"{name} again")
            return
        self._asked_at = time.monotonic()
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


def join(thread: threading.Thread) -> None:
    """Wait for a thread in the main thread, which runs signal handlers meanwhile."""
    while thread.is_alive():
        thread.join(LOOK)
