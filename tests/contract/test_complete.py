"""complete: one claimed message is done."""

import pytest
from support.queues import NO_KEY, Queue, ids


def test_complete_deletes_one_message_and_leaves_the_rest_of_the_batch(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim_key(3)
    assert q.one("complete", sent[1], key) == 1
    assert q.states() == {sent[0]: "A", sent[2]: "A"}
    assert q.one("complete_batch", key) == 2


def test_complete_twice_does_it_once(q: Queue) -> None:
    sent = q.send_many(2)
    key = q.claim_key(2)
    assert q.one("complete", sent[0], key) == 1
    with q.refused("lease_lost", "batch_key: does not hold message", str(sent[0]), "roll back"):
        q.one("complete", sent[0], key)


def test_complete_of_the_last_message_ends_the_batch(q: Queue) -> None:
    id = q.send()
    key = q.claim_key()
    assert q.one("complete", id, key) == 1
    assert q.one("extend_lease", key) == 0
    assert q.stats()["active"] == 0


def test_complete_needs_the_key_that_holds_the_message(q: Queue) -> None:
    first, second = q.send(), q.send()
    q.claim()
    key_of_second = q.claim_key()
    for id, key in ((first, NO_KEY), (first, key_of_second), (second + 1_000_000, key_of_second)):
        with q.refused("lease_lost", "batch_key"):
            q.one("complete", id, key)


def test_complete_after_the_batch_was_lost_changes_nothing(q: Queue) -> None:
    id = q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    with q.refused("lease_lost", "batch_key"):
        q.one("complete", id, key)
    q.claim()
    with q.refused("lease_lost", "batch_key"):
        q.one("complete", id, key)


def test_complete_after_the_lease_but_before_the_rescue_still_counts(q: Queue) -> None:
    id = q.send()
    assert q.one("complete", id, q.expired_key()) == 1
    assert q.call("rescue_expired") == [{"affected": 0}]
    assert q.rows() == []


def test_complete_archives_when_the_policy_says_so(q: Queue) -> None:
    q.archived()
    options = {"priority": 3, "group_key": "g", "dedup_key": "d", "headers": "{}", "source": "shop"}
    id = q.send("text", **options)
    sent = q.row(id)
    key = q.claim_key(consumer="worker-7")
    assert q.one("complete", id, key) == 1
    row = q.row(id)
    assert {name: row[name] for name in options} == options
    assert (row["state"], row["body"], row["consumer"], row["attempts"]) == ("C", "text", "worker-7", 1)
    assert row["created_at"] == sent["created_at"] <= row["changed_at"]
    assert row["batch_key"] is None and row["lease_until"] is None


def test_complete_uses_the_current_policy(q: Queue) -> None:
    sent = q.send_many(2)
    key = q.claim_key(2)
    q.one("complete", sent[0], key)
    q.archived()
    q.one("complete", sent[1], key)
    assert q.states() == {sent[1]: "C"}


def test_complete_works_while_the_queue_is_paused(q: Queue) -> None:
    id = q.send()
    key = q.claim_key()
    q.call("pause")
    assert q.one("complete", id, key) == 1


@pytest.mark.parametrize("group", ["a", None])
def test_complete_lets_the_group_of_an_ordered_queue_continue(q: Queue, group: str | None) -> None:
    q.ordered()
    first, second = q.send(group_key=group), q.send(group_key=group)
    assert q.claim(10)[0]["id"] == first
    q.one("complete", first, q.row(first)["batch_key"])
    assert ids(q.claim(10)) == [second]
