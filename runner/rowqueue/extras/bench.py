"""`runner bench`: measures the queue on this database, with a queue of its own that is removed afterwards."""

import statistics
import time
import uuid
from collections.abc import Iterator
from typing import Any

from ..databases import Database, Session

BODY = "x" * 100
SINGLE = 200  # messages of the test that measures one at a time


def run(database: Database, messages: int, batch: int) -> Iterator[dict[str, Any]]:
    """Measure, and yield a row per test: name, messages, seconds, messages per second, median milliseconds per call.

    `messages`: how many each test sends and handles. `batch`: messages per call, at most 10,000.
    """
    type = f"bench-{uuid.uuid4().hex[:12]}"
    session = database.connect("runner bench")
    try:
        yield _measure(f"send_batch, {batch} per call", _send(session, type, messages, batch))
        yield _measure(f"finish_batch, {batch} per call", _finish(session, type, batch))
        _exhaust(_send(session, type, messages, batch))
        yield _measure(f"take_batch, {batch} per call", _take(session, type, batch))
        _exhaust(_send(session, type, SINGLE, SINGLE))
        yield _measure("finish_batch, 1 per call", _finish(session, type, 1))
        yield _measure("send, claim_batch, complete_batch: 1 message", _round_trips(session, type))
    finally:
        _clean_up(session, type)
        session.close()


def _measure(name: str, calls: Iterator[int]) -> dict[str, Any]:
    """Time an iterator that makes one call per step and yields the call's number of messages."""
    started = last = time.perf_counter()
    times, count = [], 0
    for moved in calls:
        now = time.perf_counter()
        times.append(now - last)
        last = now
        count += moved
    seconds = last - started
    return {
        "test": name,
        "messages": count,
        "seconds": round(seconds, 3),
        "messages_per_second": round(count / seconds) if seconds else 0,
        "call_milliseconds": round(statistics.median(times) * 1000, 3) if times else 0.0,
    }


def _exhaust(calls: Iterator[int]) -> None:
    for _ in calls:
        pass


def _send(session: Session, type: str, messages: int, batch: int) -> Iterator[int]:
    while messages:
        size = min(batch, messages)
        messages -= size
        yield int(session.call("send_batch", type, "\n".join([BODY] * size))[0]["affected"])


def _finish(session: Session, type: str, batch: int) -> Iterator[int]:
    rows = session.call("claim_batch", type, batch)
    while rows:
        count = len(rows)
        rows = session.call("finish_batch", rows[0]["batch_key"], None, batch)
        yield count


def _take(session: Session, type: str, batch: int) -> Iterator[int]:
    while rows := session.call("take_batch", type, batch):
        yield len(rows)


def _round_trips(session: Session, type: str) -> Iterator[int]:
    for _ in range(SINGLE):
        session.call("send", type, BODY)
        session.call("complete_batch", session.call("claim_batch", type, 1)[0]["batch_key"])
        yield 1


def _clean_up(session: Session, type: str) -> None:
    """Remove everything, even after an interruption between a claim and its finish."""
    for row in session.call("peek", type, "A", 10_000):
        session.call("release_batch", row["batch_key"])
    while session.call("purge", type, "N", None, 10_000)[0]["affected"]:
        pass
