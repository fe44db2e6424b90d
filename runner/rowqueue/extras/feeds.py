"""Feeds: a publisher that numbers new rows, and a consumer that handles them in order.

A consumer handles one row at a time and moves its position after it. A row that fails is retried until it succeeds or
its handler raises DeadLetter; the position never moves past it before.
"""

import json
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..consume import Options
from ..databases import Conflict, Database, Disconnected, Row
from ..databases.link import Link, Outage
from ..handlers import Handled, Handler
from ..shutdown import Shutdown
from .rows import Record

log = logging.getLogger("rowqueue")

SHORTEST_POLL = 0.05
LONGEST_POLL = 1.0
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0
BATCH = 100  # rows per fetch
PUBLISHER_SHUTDOWN = 30.0  # seconds that a running call may take after a signal


class _Loop:
    """Common to both: one connection, adaptive sleep, and an end at SIGTERM or SIGINT that finishes running work."""

    def __init__(
        self,
        database: Database,
        name: str,
        outage: Outage,
        shutdown_timeout: float,
        abort: Callable[[], None] = lambda: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._link = Link(database, name, outage, is_over=is_over)
        self._stop = threading.Event()
        self._shutdown = Shutdown(shutdown_timeout, self._stop.set, abort)
        self._pause = SHORTEST_POLL

    def _call(self, procedure: str, *arguments: Any) -> list[Row]:
        return self._link.call(self._stop, procedure, *arguments)

    def _rest(self, at_most: float = LONGEST_POLL) -> None:
        """Sleep; longer each time until `_pause` is reset."""
        self._stop.wait(min(self._pause * random.uniform(0.5, 1), at_most))
        self._pause = min(self._pause * 1.5, LONGEST_POLL)

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._shutdown.listen()
        try:
            with suppress_when(self._stop, Disconnected, Conflict):
                yield
        finally:
            self._link.close()


@contextmanager
def suppress_when(condition: threading.Event, *errors: type[Exception]) -> Iterator[None]:
    """Suppress these errors once the event is set: the work is not repeated then."""
    try:
        yield
    except errors:
        if not condition.is_set():
            raise


class Publisher(_Loop):
    """Publishes batches of one feed until stopped. Call `run` once, from the main thread."""

    def __init__(
        self,
        database: Database,
        feed: str,
        size: int,
        once: bool = False,
        drain: bool = False,
        connect_timeout: float | None = None,
    ) -> None:
        super().__init__(database, "runner publish", Outage(connect_timeout, not (once or drain)), PUBLISHER_SHUTDOWN)
        self._feed, self._size, self._once, self._drain = feed, size, once, drain
        self.published = 0

    def run(self) -> None:
        """Publish until stopped; with `once`, one batch; with `drain`, until nothing is left."""
        with self._running():
            while not self._stop.is_set():
                count = self._call("publish_feed", self._feed, self._size)[0]["affected"]
                self.published += count
                if self._once or (self._drain and not count):
                    return
                if count:
                    self._pause = SHORTEST_POLL
                if count < self._size and not self._drain:
                    self._rest()


class FeedConsumer(_Loop):
    """Handles the feed in `Options.types` until done or stopped. Call `run` once, from the main thread."""

    def __init__(self, database: Database, handler: Handler, options: Options) -> None:
        outage = Outage(options.connect_timeout, not (options.drain or options.once))
        timeout, is_over = options.shutdown_timeout, self._is_idle_too_long
        [self._feed] = options.types
        super().__init__(database, options.name, outage, timeout, handler.abort, is_over)
        self._idle_since = time.monotonic()
        self._handler, self._options = handler, options
        self.totals: Counter[str] = Counter()
        self._left = options.max_messages
        self._failing = (0, 0)  # the position of the row that failed last, and how often it failed

    def run(self) -> None:
        """Consume until done or stopped. Raises HandlerError when the handler ends the process."""
        options = self._options
        log.info("consuming feed %s as %s", self._feed, options.consumer)
        self._idle_since = time.monotonic()
        try:
            self._consume()
        finally:
            self._handler.close(self._shutdown.time_left())
        log.info("done: %s", ", ".join(f"{n} {outcome}" for outcome, n in self.totals.items()) or "no rows")
        self._handler.check()

    def _consume(self) -> None:
        options, batch = self._options, self._options.batch or BATCH
        with self._running():
            while not self._stop.is_set() and self._left != 0:
                size = batch if self._left is None else min(batch, self._left)
                rows = self._call("fetch_feed", self._feed, options.consumer, size)
                if rows:
                    self._handle(rows)
                    self._idle_since, self._pause = time.monotonic(), SHORTEST_POLL
                elif options.drain:
                    break
                if options.once:
                    break
                if not rows:
                    if self._is_idle_too_long():
                        break
                    left = LONGEST_POLL
                    if options.idle_timeout is not None:
                        left = self._idle_since + options.idle_timeout - time.monotonic()
                    self._rest(max(left, 0) + 0.001)

    def _is_idle_too_long(self) -> bool:
        timeout = self._options.idle_timeout
        return timeout is not None and time.monotonic() - self._idle_since >= timeout

    def _handle(self, rows: Sequence[Row]) -> None:
        """Handle rows up to the first that fails, and move the position after the last that is done."""
        records = [self._record(row) for row in rows]
        handled = Handled()
        # One row at a time, unlike messages: the order counts.
        self._handler.run(records, handled, lambda _: not (self._stop.is_set() or self._fails(handled)))
        stopped_at = {record.id for record in handled.unstarted}
        stopped_at |= {failure.id for failure in handled.failures if failure.retry_after != -1}
        done = records[: next((n for n, record in enumerate(records) if record.id in stopped_at), len(records))]
        skipped = 0
        for failure in handled.failures:
            if failure.retry_after == -1 and done and failure.id <= done[-1].id:
                skipped += 1
                log.error("%s: row %d is skipped: %s", self._feed, failure.id, failure.error)
        if done:
            self._advance(done[-1].position)
            self.totals["handled"] += len(done) - skipped
            if skipped:
                self.totals["skipped"] += skipped
            if self._left is not None:
                self._left -= len(done)
        if handled.crash is not None:
            raise handled.crash
        if self._fails(handled):
            self._back_off(handled, len(done), records)

    def _record(self, row: Row) -> Record:
        position, tries = self._failing
        attempt = tries + 1 if row["feed_position"] == position else 1
        key, text = row["row_key"], row["row_data"]
        return Record(self._feed, row["feed_position"], json.loads(key), json.loads(text), key, text, attempt)

    @staticmethod
    def _fails(handled: Handled) -> bool:
        return any(failure.retry_after != -1 for failure in handled.failures)

    def _advance(self, position: int) -> None:
        """Move the position, even after a stop: handled rows must not be fetched again."""
        with suppress_when(self._stop, Disconnected, Conflict):
            self._link.call(self._stop, "advance_feed", self._feed, self._options.consumer, position)

    def _back_off(self, handled: Handled, first: int, records: Sequence[Record]) -> None:
        """Log the failure and wait before the retry. No later row is handled first."""
        failed = records[first]
        failure = next(failure for failure in handled.failures if failure.id == failed.id)
        self._failing = (failed.position, failed.attempt)
        self.totals["failed"] += 1
        log.warning("%s: row %d failed (attempt %d): %s", self._feed, failed.position, failed.attempt, failure.error)
        longest = min(FIRST_BACKOFF * 2 ** min(failed.attempt - 1, 20), LONGEST_BACKOFF)
        pause = failure.retry_after if failure.retry_after is not None else longest * random.uniform(0.75, 1)
        if not self._options.once:
            self._stop.wait(pause)
