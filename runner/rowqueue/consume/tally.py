"""Counts of messages: a log line per failure, totals for the last log line, and metrics if asked for."""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..handlers import Handled
from ..messages import Item
from .reports import Reports

if TYPE_CHECKING:  # prometheus_client is slow to import and rarely needed
    from .health import Metrics

log = logging.getLogger("rowqueue")


class Tally:
    """Counts for all worker threads; also passed on to `reports`, which writes them to the database."""

    def __init__(self, metrics: "Metrics | None", reports: Reports) -> None:
        self._metrics, self._reports = metrics, reports
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()

    def __str__(self) -> str:
        return ", ".join(f"{n} {outcome}" for outcome, n in self._totals.items())

    def count(self, type: str, outcome: str, count: int) -> None:
        """Add `count` messages to an outcome."""
        if count:
            if self._metrics is not None:
                self._metrics.messages.labels(type, outcome).inc(count)
            with self._lock:
                self._totals[outcome] += count

    def ran(self, type: str, size: int, seconds: float) -> None:
        """Note that a handler has run for a batch."""
        if self._metrics is not None:
            self._metrics.seconds.labels(type).observe(seconds)
            self._metrics.sizes.labels(type).observe(size)

    def lost(self, type: str, size: int) -> None:
        """Note that a lease was lost: other consumers may have claimed the messages."""
        if self._metrics is not None:
            self._metrics.lost.inc()
        log.warning("%s: lost the lease of %d messages; other consumers may claim them", type, size)

    def reconnected(self) -> None:
        """Note that a lost connection works again."""
        if self._metrics is not None:
            self._metrics.reconnects.inc()

    def busy(self, type: str, messages: Sequence[Item]) -> AbstractContextManager[None]:
        """Count the time of the block as time in a handler of these messages."""
        return self._reports.busy(type, messages)

    def finished(self, type: str, finished: Sequence[Item], handled: Handled, dead: int = 0) -> None:
        """Log the failures and count the messages that were finished. `dead`: how many are known dead letters."""
        attempts = {message.id: message.attempt for message in finished} if handled.failures else {}
        failures = [f for f in handled.failures if f.id in attempts]
        for f in failures:
            log.warning("%s message %d failed (attempt %d): %s", type, f.id, attempts[f.id], f.error)
        discarded = sum(f.retry_after == -1 for f in failures)
        self.count(type, "completed", len(finished) - len(failures))
        self.count(type, "failed", len(failures) - discarded)
        self.count(type, "discarded", discarded)
        self._reports.finished(type, finished, handled.began, len(failures), dead)
