"""count_attempt: a take was rolled back, and counts as a failed attempt."""

import pytest
from support.queues import Queue, ids


def test_count_attempt_counts_a_take_that_was_rolled_back(q: Queue) -> None:
    id = q.send()
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.call("take_batch")
        raise ZeroDivisionError
    assert q.one("count_attempt", id, "broken", 0) == "N"
    row = q.row(id)
    assert (row["attempts"], row["error"]) == (1, "broken")
    assert q.call("take_batch")[0]["attempt"] == 2


def test_count_attempt_makes_a_dead_letter_when_the_attempts_are_used_up(q: Queue) -> None:
    id = q.send(max_attempts=1)
    assert q.one("count_attempt", id, "broken", 0) == "E"
    assert q.states() == {id: "E"}


@pytest.mark.parametrize("ordered", [0, 1])
def test_count_attempt_counts_one_failed_take_after_the_other(q: Queue, ordered: int) -> None:
    """The second take finds the message due again; its rollback puts it back again."""
    q.call("set_queue", max_attempts=4, ordered=ordered)
    id = q.send()
    for attempt in (1, 2, 3, 4):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert q.call("take_batch")[0]["attempt"] == attempt
            raise ZeroDivisionError
        assert q.one("count_attempt", id, "broken", 0) == ("N" if attempt < 4 else "E")
        assert q.attempts() == {id: attempt}


def test_count_attempt_leaves_alone_what_is_not_ready(q: Queue) -> None:
    active = q.send()
    q.claim()
    dead = q.send()
    q.claim()
    q.one("dead_letter", dead, q.row(dead)["batch_key"], "broken")
    delayed = q.send()
    q.one("fail", delayed, q.claim_key(), "busy", 3_600)
    with q.unchanged():
        for id in (active, dead, delayed, delayed + 1_000_000):
            assert q.one("count_attempt", id, "broken", None, 1) is None


def test_count_attempt_skips_a_message_that_is_being_taken(q: Queue, other: Queue) -> None:
    id = q.send()
    with q.session.transaction():
        q.call("take_batch")
        assert other.one("count_attempt", id) is None
    assert q.rows() == []


def test_count_attempt_makes_the_group_of_an_ordered_queue_wait(q: Queue) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    assert q.one("count_attempt", head, "busy", 3_600) == "N"
    assert q.claim(10) == []
    assert q.on("cancel", head)[0]["affected"] == 1
    assert ids(q.claim(10)) == [second]


def test_count_attempt_leaves_a_group_alone_that_is_at_work(q: Queue) -> None:
    q.ordered()
    _head, second = q.send(group_key="a"), q.send(group_key="a")
    q.claim()
    with q.unchanged():
        assert q.one("count_attempt", second) is None


def test_count_attempt_with_dead_makes_a_dead_letter_that_has_attempts_left(q: Queue) -> None:
    id = q.send()
    assert q.one("count_attempt", id, "no such address", dead=1) == "E"
    row = q.row(id)
    assert (row["state"], row["attempts"], row["error"]) == ("E", 1, "no such address")


def test_count_attempt_refuses_a_negative_delay_and_a_delay_of_a_dead_letter(q: Queue) -> None:
    id = q.send()
    with q.refused("invalid_argument", "retry_after_seconds", "0 to 315,360,000"):
        q.one("count_attempt", id, "busy", -1)
    for dead in (-1, 2):
        with q.refused("invalid_argument", "dead", "0 to 1"):
            q.one("count_attempt", id, "busy", dead=dead)
    with q.refused("invalid_argument", "dead", "retry_after_seconds"):
        q.one("count_attempt", id, "busy", 0, 1)
    assert q.one("count_attempt", id, "busy", 3_600, 0) == "N"
