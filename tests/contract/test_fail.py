"""fail: one attempt failed."""

from datetime import UTC, datetime, timedelta

import pytest
from support.queues import NO_KEY, Queue


def fail(q: Queue, id: int, error: str | None = "busy", retry: int | None = None) -> str | None:
    """Fail a message with the key that holds it."""
    state: str | None = q.one("fail", id, q.row(id)["batch_key"], error, retry)
    return state


def delay(q: Queue, id: int) -> float:
    """Seconds until a message is due."""
    until: timedelta = q.row(id)["run_at"] - datetime.now(UTC)
    return until.total_seconds()


def test_fail_makes_the_message_new_again_after_the_delay_asked_for(q: Queue) -> None:
    id = q.send()
    q.claim()
    assert fail(q, id, "server is busy", 100) == "N"
    row = q.row(id)
    assert (row["state"], row["attempts"], row["error"]) == ("N", 1, "server is busy")
    assert 95 < delay(q, id) <= 100
    assert q.claim() == []


def test_fail_with_no_delay_makes_the_message_claimable_at_once(q: Queue) -> None:
    id = q.send()
    q.claim()
    assert fail(q, id, retry=0) == "N"
    assert [(row["id"], row["attempt"]) for row in q.claim()] == [(id, 2)]


@pytest.mark.parametrize("retry", [-1, -3_600])
def test_fail_refuses_a_negative_delay(q: Queue, retry: int) -> None:
    """A delay that was computed as reset - now does not dead-letter a message."""
    id = q.send()
    q.claim()
    with q.refused("invalid_argument", "retry_after_seconds", "0 to 315,360,000"):
        fail(q, id, retry=retry)


def test_fail_refuses_to_act_without_a_key(q: Queue) -> None:
    ready, active = q.send_many(2)
    q.claim()
    for id in (ready, active):
        with q.refused("invalid_argument", "batch_key"):
            q.one("fail", id, None, "busy", 0)


def test_fail_at_the_last_attempt_makes_a_dead_letter(q: Queue) -> None:
    q.call("set_queue", max_attempts=3)
    id = q.send()
    for attempt in (1, 2, 3):
        assert q.claim()[0]["attempt"] == attempt
        assert fail(q, id, f"try {attempt}", 0) == ("N" if attempt < 3 else "E")
    row = q.row(id)
    assert (row["state"], row["attempts"], row["error"]) == ("E", 3, "try 3")


def test_fail_waits_by_the_queues_backoff_doubled_each_time_up_to_its_maximum(q: Queue) -> None:
    q.call("set_queue", backoff_seconds=1_000, backoff_max_seconds=5_000)
    id = q.send(max_attempts=100)
    for attempt, longest in enumerate((1_000, 2_000, 4_000, 5_000, 5_000), 1):
        for _ in range(attempt - 1):
            q.claim()
            fail(q, id, retry=0)
        q.claim()
        assert fail(q, id) == "N"
        assert longest / 2 - 5 < delay(q, id) <= longest
        q.on("cancel", id)
        id = q.send(max_attempts=100)


def test_fail_spreads_the_backoff(q: Queue) -> None:
    """Messages that failed together are not retried together."""
    q.call("set_queue", backoff_seconds=10_000, backoff_max_seconds=10_000)
    sent = q.send_many(8)
    q.claim(8)
    for id in sent:
        fail(q, id)
    delays = [delay(q, id) for id in sent]
    assert max(delays) - min(delays) > 100


def test_fail_backs_off_without_overflow_at_a_high_attempt(q: Queue) -> None:
    q.call("set_queue", backoff_seconds=315_360_000, backoff_max_seconds=315_360_000, max_attempts=1_000)
    id = q.send()
    for _ in range(60):
        q.claim()
        fail(q, id, retry=0)
    q.claim()
    assert fail(q, id) == "N"
    assert delay(q, id) <= 315_360_000


@pytest.mark.parametrize("length", [4_000, 4_001, 100_000])
def test_fail_cuts_an_error_at_4000_characters(q: Queue, length: int) -> None:
    id = q.send()
    q.claim()
    fail(q, id, "é" * length)
    assert q.row(id)["error"] == "é" * 4_000


def test_fail_takes_no_error(q: Queue) -> None:
    id = q.send()
    q.claim()
    assert fail(q, id, None) == "N"
    assert q.row(id)["error"] is None


def test_fail_leaves_the_rest_of_the_batch_active(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim_key(3)
    fail(q, sent[1], retry=3_600)
    assert q.states() == {sent[0]: "A", sent[1]: "N", sent[2]: "A"}
    assert q.one("complete_batch", key) == 2


def test_fail_needs_the_key_that_holds_the_message(q: Queue) -> None:
    first, _second, ready = q.send(), q.send(), q.send()
    q.claim()
    key_of_second = q.claim_key()
    for id, key in ((first, NO_KEY), (first, key_of_second), (ready, NO_KEY)):
        with q.refused("lease_lost", "batch_key: does not hold message", "roll back"):
            q.one("fail", id, key)


def test_fail_after_the_batch_was_lost_changes_nothing(q: Queue) -> None:
    id = q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    with q.refused("lease_lost", "batch_key"):
        q.one("fail", id, key, "late", 0)
    q.claim()
    with q.refused("lease_lost", "batch_key"):
        q.one("fail", id, key, "late", 0)
