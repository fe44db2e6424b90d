"""fail: one attempt failed."""

from datetime import UTC, datetime, timedelta

import pytest
from queues import NO_KEY, Queue, ids


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


def test_fail_with_minus_one_makes_a_dead_letter(q: Queue) -> None:
    id = q.send()
    q.claim(reader="worker-7")
    assert fail(q, id, "no such address", -1) == "E"
    row = q.row(id)
    assert (row["state"], row["attempts"], row["error"], row["reader"]) == ("E", 1, "no such address", "worker-7")
    assert q.claim() == [] and q.stats()["dead"] == 1


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
    fail(q, id, "é" * length, -1)
    assert q.row(id)["error"] == "é" * 4_000


def test_fail_takes_no_error(q: Queue) -> None:
    id = q.send()
    q.claim()
    assert fail(q, id, None, -1) == "E"
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
    with q.unchanged():
        assert q.one("fail", first, NO_KEY) is None
        assert q.one("fail", first, key_of_second) is None
        assert q.one("fail", ready, NO_KEY) is None


def test_fail_after_the_batch_was_lost_changes_nothing(q: Queue) -> None:
    id = q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    with q.unchanged():
        assert q.one("fail", id, key, "late", -1) is None
    q.claim()
    with q.unchanged():
        assert q.one("fail", id, key, "late", -1) is None


# ---- without a key: a failed take ----------------------------------------------------------------


def test_fail_without_a_key_counts_a_failed_take(q: Queue) -> None:
    id = q.send()
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.call("take_batch")
        raise ZeroDivisionError
    assert q.one("fail", id, None, "broken", 0) == "N"
    row = q.row(id)
    assert (row["attempts"], row["error"]) == (1, "broken")
    assert q.call("take_batch")[0]["attempt"] == 2


def test_fail_without_a_key_makes_a_dead_letter_when_the_attempts_are_used_up(q: Queue) -> None:
    id = q.send(max_attempts=1)
    assert q.one("fail", id, None, "broken", 0) == "E"
    assert q.states() == {id: "E"}


@pytest.mark.parametrize("ordered", [0, 1])
def test_fail_without_a_key_counts_one_failed_take_after_the_other(q: Queue, ordered: int) -> None:
    """The second take finds the message due again; its rollback puts it back again."""
    q.call("set_queue", max_attempts=4, ordered=ordered)
    id = q.send()
    for attempt in (1, 2, 3, 4):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert q.call("take_batch")[0]["attempt"] == attempt
            raise ZeroDivisionError
        assert q.one("fail", id, None, "broken", 0) == ("N" if attempt < 4 else "E")
        assert q.attempts() == {id: attempt}


def test_fail_without_a_key_leaves_alone_what_is_not_ready(q: Queue) -> None:
    active = q.send()
    q.claim()
    dead = q.send()
    q.claim()
    fail(q, dead, retry=-1)
    delayed = q.send()
    q.claim()
    fail(q, delayed, retry=3_600)
    with q.unchanged():
        for id in (active, dead, delayed, delayed + 1_000_000):
            assert q.one("fail", id, None, "broken", -1) is None


def test_fail_without_a_key_skips_a_message_that_is_being_taken(q: Queue, other: Queue) -> None:
    id = q.send()
    with q.session.transaction():
        q.call("take_batch")
        assert other.one("fail", id, None) is None
    assert q.rows() == []


def test_fail_without_a_key_makes_the_group_of_an_ordered_queue_wait(q: Queue) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    assert q.one("fail", head, None, "busy", 3_600) == "N"
    assert q.claim(10) == []
    assert q.on("cancel", head) == [{"count": 1}]
    assert ids(q.claim(10)) == [second]


def test_fail_without_a_key_leaves_a_group_alone_that_is_at_work(q: Queue) -> None:
    q.ordered()
    _head, second = q.send(group_key="a"), q.send(group_key="a")
    q.claim()
    with q.unchanged():
        assert q.one("fail", second, None) is None
