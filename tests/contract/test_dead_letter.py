"""dead_letter: a message can never succeed."""

import pytest
from support.queues import NO_KEY, Queue, ids


def test_dead_letter_ends_a_message_that_has_attempts_left(q: Queue) -> None:
    id = q.send()
    key = q.claim_key(consumer="worker-7")
    assert q.one("dead_letter", id, key, "no such address") == "E"
    row = q.row(id)
    assert (row["state"], row["attempts"], row["error"], row["consumer"]) == ("E", 1, "no such address", "worker-7")
    assert q.claim() == [] and q.stats()["dead"] == 1


@pytest.mark.parametrize("length", [4_000, 4_001, 100_000])
def test_dead_letter_cuts_an_error_at_4000_characters(q: Queue, length: int) -> None:
    id = q.send()
    q.one("dead_letter", id, q.claim_key(), "é" * length)
    assert q.row(id)["error"] == "é" * 4_000


def test_dead_letter_takes_no_error(q: Queue) -> None:
    id = q.send()
    assert q.one("dead_letter", id, q.claim_key()) == "E"
    assert (q.states(), q.row(id)["error"]) == ({id: "E"}, None)


def test_dead_letter_leaves_the_rest_of_the_batch_active(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim_key(3)
    assert q.one("dead_letter", sent[1], key, "broken") == "E"
    assert q.states() == {sent[0]: "A", sent[1]: "E", sent[2]: "A"}
    assert q.one("complete_batch", key) == 2


def test_dead_letter_needs_the_key_that_holds_the_message(q: Queue) -> None:
    first, _second, ready = q.send(), q.send(), q.send()
    q.claim()
    key_of_second = q.claim_key()
    for id, key in ((first, NO_KEY), (first, key_of_second), (ready, NO_KEY)):
        with q.refused("lease_lost", "batch_key: does not hold message", "roll back"):
            q.one("dead_letter", id, key, "broken")
    for id in (first, ready):
        with q.refused("invalid_argument", "batch_key"):
            q.one("dead_letter", id, None, "broken")


def test_dead_letter_after_the_batch_was_lost_changes_nothing(q: Queue) -> None:
    id = q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    with q.refused("lease_lost", "batch_key"):
        q.one("dead_letter", id, key, "late")
    q.claim()
    with q.refused("lease_lost", "batch_key"):
        q.one("dead_letter", id, key, "late")


def test_dead_letter_lets_the_group_of_an_ordered_queue_continue(q: Queue) -> None:
    q.ordered()
    first, second = q.send(group_key="a"), q.send(group_key="a")
    q.one("dead_letter", first, q.claim_key(10), "broken")
    assert ids(q.claim(10)) == [second]
