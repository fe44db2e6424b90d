"""release_batch: give back what the batch key still holds, without costing an attempt."""

from datetime import timedelta

import pytest
from support.queues import LONG_AGO, NO_KEY, Queue, ids


def test_release_batch_makes_the_messages_new_again_without_an_attempt(q: Queue) -> None:
    sent = q.send_many(3)
    assert q.one("release_batch", q.claim_key(2)) == 2
    assert q.states() == dict.fromkeys(sent, "N")
    assert q.attempts() == dict.fromkeys(sent, 0)
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(id, 1) for id in sent]


def test_release_batch_puts_the_messages_back_at_their_old_place(q: Queue) -> None:
    sent = q.send_many(6)
    first, second = q.claim_key(2), q.claim_key(2)
    q.one("complete_batch", second)
    q.one("release_batch", first)
    assert ids(q.claim(3)) == [*sent[:2], sent[4]]


@pytest.mark.level(1)
def test_release_batch_puts_a_message_back_where_claims_have_long_passed(q: Queue) -> None:
    """A claim may begin where earlier ones found something: what is put back before that must not be missed."""
    old = q.send(run_at=LONG_AGO)
    many = q.send_many(6_000)
    later = q.send_many(3)
    key = q.claim_key()
    q.on("complete_batch", q.claim_key(len(many)))
    for id in later[:2]:
        assert ids(q.claim()) == [id]
    assert q.one("release_batch", key) == 1
    assert ids(q.claim(5)) == [old, later[2]]


def test_release_batch_keeps_the_attempts_that_were_made_before(q: Queue) -> None:
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 0)
    q.one("release_batch", q.claim_key())
    assert q.attempts() == {id: 1}
    assert q.claim()[0]["attempt"] == 2


def test_release_batch_puts_a_message_that_has_failed_back_where_it_was_sent_to(q: Queue) -> None:
    id = q.send(run_at=LONG_AGO)
    for _ in range(2):
        q.one("fail", id, q.claim_key(), "busy", 0)
        assert q.row(id)["run_at"] > LONG_AGO
        q.one("release_batch", q.claim_key())
        assert q.row(id)["run_at"] == LONG_AGO
    later = q.send(run_at=LONG_AGO + timedelta(days=1))
    assert ids(q.claim(2)) == [id, later]


def test_release_batch_releases_only_messages_still_held(q: Queue) -> None:
    sent = q.send_many(4)
    key = q.claim_key(3)
    q.one("complete", sent[0], key)
    q.one("dead_letter", sent[1], key, "broken")
    assert q.one("release_batch", key) == 1
    assert q.states() == {sent[1]: "E", sent[2]: "N", sent[3]: "N"}


def test_release_batch_with_a_lost_key_changes_nothing(q: Queue) -> None:
    q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    q.claim()
    with q.unchanged():
        assert q.one("release_batch", key) == 0
        assert q.one("release_batch", NO_KEY) == 0


def test_release_batch_works_while_the_queue_is_paused(q: Queue) -> None:
    id = q.send()
    key = q.claim_key()
    q.call("pause")
    assert q.one("release_batch", key) == 1
    assert q.states() == {id: "N"}


def test_release_batch_of_an_ordered_queue_puts_the_heads_back_in_front(q: Queue) -> None:
    q.ordered()
    sent = [q.send(group_key=group) for _ in range(2) for group in "ab"]
    assert q.one("release_batch", q.claim_key(10)) == 2
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(sent[0], 1), (sent[1], 1)]
    assert q.claim(10) == []
