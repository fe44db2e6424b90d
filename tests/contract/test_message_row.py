"""The row of a claim: how many attempts its message may have, and when it was due first, from each call that claims."""

from datetime import timedelta
from typing import Any

import pytest
from rowqueue.databases import Row
from support.queues import LONG_AGO, Queue

CLAIMS = ["claim_batch", "claim_wraparound", "finish_batch", "get_message", "take_batch"]


def claimed(q: Queue, call: str, size: int = 10) -> list[Row]:
    """What a call claims of the messages that are ready."""
    if call == "get_message":
        return [row for _ in range(size) for row in q.call(call)]
    if call == "finish_batch":
        return q.on(call, q.expired_key(), None, size)
    return q.call(call, size)


def prepared(q: Queue, call: str, **settings: Any) -> Queue:
    """The queue for a call, with a message of its own for finish_batch, which needs a batch."""
    q.call("set_queue", ring=int(call == "claim_wraparound"), **settings)
    if call == "finish_batch":
        q.send(priority=-9)
    return q


@pytest.mark.parametrize("call", CLAIMS)
def test_a_row_has_the_attempts_of_its_message_or_of_the_queue(q: Queue, call: str) -> None:
    prepared(q, call, max_attempts=7)
    for own in (None, 3, 1_000):
        q.send(max_attempts=own)
    assert [row["max_attempts"] for row in claimed(q, call)] == [7, 3, 1_000]


@pytest.mark.parametrize("call", CLAIMS)
def test_a_single_row_has_the_attempts_of_a_queue_without_a_policy(q: Queue, call: str) -> None:
    if call == "claim_wraparound":
        q.ring()
    if call == "finish_batch":
        q.send(priority=-9)
    q.send()
    assert [(row["max_attempts"], row["extra"]) for row in claimed(q, call, 1)] == [(25, None)]


@pytest.mark.parametrize("call", CLAIMS)
def test_a_row_says_when_its_message_was_due_first(q: Queue, call: str) -> None:
    prepared(q, call)
    q.send("now")
    q.send("then", run_at=LONG_AGO)
    rows = {row["body"]: row for row in claimed(q, call)}
    assert rows["then"]["run_at"] == LONG_AGO
    assert timedelta(0) <= rows["now"]["created_at"] - rows["now"]["run_at"] < timedelta(milliseconds=1)


@pytest.mark.parametrize("call", ["claim_batch", "take_batch"])
@pytest.mark.parametrize("settings", [{}, {"ordered": 1}, {"group_rate": 1_000}, {"fair": 1}], ids=str)
def test_a_retry_a_release_and_a_redrive_do_not_change_when_a_message_was_due_first(
    q: Queue, settings: dict[str, int], call: str
) -> None:
    q.call("set_queue", **settings)
    id = q.send(run_at=LONG_AGO, group_key="g")
    q.on("release_batch", q.claim_key())
    q.on("fail", id, q.claim_key(), "no", 0)
    q.on("dead_letter", id, q.claim_key(), "no")
    q.call("redrive_all")
    q.on("fail", id, q.claim_key(), "no", 0)
    assert [row["run_at"] for row in q.call(call)] == [LONG_AGO]


def test_replace_and_postpone_change_when_a_message_is_due_first(q: Queue) -> None:
    first = LONG_AGO + timedelta(days=1)
    q.send(run_at=LONG_AGO, dedup_key="d")
    q.send(run_at=first, dedup_key="d", on_conflict="postpone")
    [row] = q.claim()
    assert row["run_at"] == first
