"""Feeds: a publisher that numbers rows in a loop, and a consumer that handles them one after the other.

The order of a feed is kept: a consumer handles one row at a time, its position moves behind what it has handled and
never past a row that failed, and a row that fails is tried again until it succeeds or its handler discards it.
"""

import json
import logging
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from .databases import Conflict, Database, Disconnected, Row
from .handlers import Handled, Handler, HandlerError, Message
from .link import Link, Outage
from .metrics import Metrics

log = logging.getLogger("rowqueue")

SHORTEST_POLL = 0.05
LONGEST_POLL = 1.0
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0


@dataclass(slots=True)
class Record:
    """One row of a feed as a handler gets it: `key` and `row` are read from the JSON in `key_text` and `row_text`.

    `position` is its number in the feed; `id` is the same, and `type` the feed, as a message has them. `attempt` counts
    in this process.
    """

    feed: str
    position: int
    key: dict[str, Any]
    row: dict[str, Any]
    key_text: str
    row_text: str
    attempt: int = 1

    @property
    def id(self) -> int:
        return self.position

    @property
    def type(self) -> str:
        return self.feed

    @property
    def headers(self) -> None:
        return None

    def as_json(self) -> str:
        """The record as one line of JSON, the row with all the digits that the database has written."""
        head = {"feed": self.feed, "position": self.position, "attempt": self.attempt}
        line = f'{json.dumps(head, ensure_ascii=False)[:-1]}, "key": {self.key_text}, "row": {self.row_text}}}'
        # Inside a string they are escaped; a column of JSON may have them between its values.
        return line.replace("\n", " ").replace("\r", " ")


@dataclass(frozen=True)
class Options:
    """What `runner consume --feed` was asked for; seconds everywhere, None for no limit."""

    feed: str
    consumer: str
    batch: int = 100
    once: bool = False
    drain: bool = False
    max_messages: int | None = None
    idle_timeout: float | None = None
    shutdown_timeout: float = 30.0
    connect_timeout: float | None = None


class _Loop:
    """What both have: one connection, adaptive sleep, and an end by SIGTERM or SIGINT that finishes what runs."""

    def __init__(
        self,
        database: Database,
        name: str,
        shutdown_timeout: float,
        outage: Outage,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._link = Link(database, name, outage, is_over=is_over)
        self._shutdown_timeout = shutdown_timeout
        self._stop = threading.Event()
        self._pause = SHORTEST_POLL
        self._signal = 0

    def _call(self, procedure: str, *arguments: Any) -> list[Row]:
        return self._link.call(self._stop, procedure, *arguments)

    def _rest(self, at_most: float = LONGEST_POLL) -> None:
        """Sleep: longer each time, until `_pause` is set back."""
        self._stop.wait(min(self._pause * random.uniform(0.5, 1), at_most))
        self._pause = min(self._pause * 1.5, LONGEST_POLL)

    @contextmanager
    def _running(self) -> Iterator[None]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        try:
            with suppress_when(self._stop, Disconnected, Conflict):
                yield
        finally:
            self._link.close()

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._signal:
            self._leave(number, "again: aborting")
        self._signal = number
        log.info("%s: finishing what runs, for at most %g s", signal.Signals(number).name, self._shutdown_timeout)
        timer = threading.Timer(self._shutdown_timeout, self._leave, (number, "still busy: aborting"))
        timer.daemon = True
        timer.start()
        self._stop.set()

    def _leave(self, number: int, reason: str) -> None:
        """Leave at once; what was not noted as handled comes again."""
        log.error("%s %s", signal.Signals(number).name, reason)
        self._abort()
        os._exit(128 + number)

    def _abort(self) -> None:
        """End what would outlive this process."""


@contextmanager
def suppress_when(condition: threading.Event, *errors: type[Exception]) -> Iterator[None]:
    """Swallow these errors once the event is set: then nobody tries again."""
    try:
        yield
    except errors:
        if not condition.is_set():
            raise


class Publisher(_Loop):
    """Publishes batches of one feed until told to stop; `run` is called once, from the main thread."""

    def __init__(
        self, database: Database, feed: str, size: int, once: bool, connect_timeout: float | None = None
    ) -> None:
        super().__init__(database, "runner publish", 30.0, Outage(Metrics(), connect_timeout, not once))
        self._feed, self._size, self._once = feed, size, once
        self.published = 0

    def run(self) -> None:
        """Publish; with `once` until nothing is left."""
        with self._running():
            while not self._stop.is_set():
                count = self._call("publish_feed", self._feed, self._size)[0]["count"]
                self.published += count
                if count:
                    self._pause = SHORTEST_POLL
                elif self._once:
                    return
                if count < self._size and not self._once:
                    self._rest()


class Consumer(_Loop):
    """Handles one feed with one handler until told to stop; `run` is called once, from the main thread."""

    def __init__(self, database: Database, handler: Handler, options: Options) -> None:
        outage = Outage(Metrics(), options.connect_timeout, not (options.drain or options.once))
        super().__init__(database, options.consumer, options.shutdown_timeout, outage, self._is_idle_too_long)
        self._idle_since = time.monotonic()
        self._handler, self._options = handler, options
        self.totals: Counter[str] = Counter()
        self._left = options.max_messages
        self._failing = (0, 0)  # the position of the row that failed last, and how often

    def run(self) -> None:
        """Consume until done or stopped. Raises HandlerError when the handler ends the process."""
        options = self._options
        log.info("consuming feed %s as %s", options.feed, options.consumer)
        self._idle_since = time.monotonic()
        with self._running():
            while not self._stop.is_set() and self._left != 0:
                size = options.batch if self._left is None else min(options.batch, self._left)
                rows = self._call("fetch_feed", options.feed, options.consumer, size)
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
        log.info("done: %s", ", ".join(f"{n} {outcome}" for outcome, n in self.totals.items()) or "no rows")

    def _is_idle_too_long(self) -> bool:
        timeout = self._options.idle_timeout
        return timeout is not None and time.monotonic() - self._idle_since >= timeout

    def _handle(self, rows: Sequence[Row]) -> None:
        """Handle rows up to the first that fails, and move the position behind what is done."""
        records = [self._record(row) for row in rows]
        handled = Handled()
        # Never two at once: handlers of messages may run side by side, here the order counts.
        self._handler.run(
            cast("list[Message]", records), handled, lambda: not (self._stop.is_set() or self._fails(handled))
        )
        stopped_at = {record.id for record in handled.unstarted}
        stopped_at |= {failure.id for failure in handled.failures if failure.retry_after != -1}
        done = records[: next((n for n, record in enumerate(records) if record.id in stopped_at), len(records))]
        discarded = 0
        for failure in handled.failures:
            if failure.retry_after == -1 and done and failure.id <= done[-1].id:
                discarded += 1
                log.error("%s: row %d is passed over: %s", self._options.feed, failure.id, failure.error)
        if done:
            self._advance(done[-1].position)
            self.totals["handled"] += len(done) - discarded
            if discarded:
                self.totals["passed over"] += discarded
            if self._left is not None:
                self._left -= len(done)
        if handled.crash is not None:
            raise HandlerError(f"the handler ended the process: {type(handled.crash).__name__}: {handled.crash}")
        if self._fails(handled):
            self._back_off(handled, len(done), records)

    def _record(self, row: Row) -> Record:
        position, tries = self._failing
        attempt = tries + 1 if row["position"] == position else 1
        key, text = row["key"], row["row"]
        return Record(self._options.feed, row["position"], json.loads(key), json.loads(text), key, text, attempt)

    @staticmethod
    def _fails(handled: Handled) -> bool:
        return any(failure.retry_after != -1 for failure in handled.failures)

    def _advance(self, position: int) -> None:
        """Also when we are to stop: what is handled shall not come again."""
        with suppress_when(self._stop, Disconnected, Conflict):
            self._link.call(self._stop, "advance_feed", self._options.feed, self._options.consumer, position)

    def _back_off(self, handled: Handled, first: int, records: Sequence[Record]) -> None:
        """Say what failed, and wait before it is tried again: nothing behind it goes before it."""
        failed = records[first]
        failure = next(failure for failure in handled.failures if failure.id == failed.id)
        self._failing = (failed.position, failed.attempt)
        self.totals["failed"] += 1
        log.warning(
            "%s: row %d failed (attempt %d): %s", self._options.feed, failed.position, failed.attempt, failure.error
        )
        longest = min(FIRST_BACKOFF * 2 ** min(failed.attempt - 1, 20), LONGEST_BACKOFF)
        pause = failure.retry_after if failure.retry_after is not None else longest * random.uniform(0.75, 1)
        if not self._options.once:
            self._stop.wait(pause)

    def _abort(self) -> None:
        self._handler.abort()
