"""rescue_expired: expired claims back to new, or dead when their attempts are used up."""

from datetime import timedelta

import pytest
from support.queues import LONG_AGO, Queue, call, ids


def test_rescue_expired_makes_the_messages_of_expired_claims_new_and_counts_the_attempt(q: Queue) -> None:
    sent = q.send_many(3)
    q.claim_expired(2)
    assert q.count("rescue_expired") == 2
    assert q.states() == dict.fromkeys(sent, "N")
    assert q.attempts() == {sent[0]: 1, sent[1]: 1, sent[2]: 0}


def test_rescue_expired_puts_the_messages_back_at_their_old_place(q: Queue) -> None:
    sent = q.send_many(4)
    q.claim_expired(1)
    q.on("complete_batch", q.claim_key())
    q.call("rescue_expired")
    assert ids(q.claim(10)) == [sent[0], *sent[2:]]


def test_rescue_expired_puts_a_message_that_has_failed_back_where_it_was_sent_to(q: Queue) -> None:
    id = q.send(run_at=LONG_AGO)
    for _ in range(2):
        q.one("fail", id, q.claim_key(), "busy", 0)
        assert q.row(id)["run_at"] > LONG_AGO
        q.claim_expired()
        assert q.count("rescue_expired") == 1
        assert q.row(id)["run_at"] == LONG_AGO
    later = q.send(run_at=LONG_AGO + timedelta(days=1))
    assert ids(q.claim(2)) == [id, later]


def test_rescue_expired_leaves_running_claims_alone(q: Queue) -> None:
    id = q.send()
    q.claim(lease_seconds=60)
    with q.unchanged():
        assert q.count("rescue_expired") == 0
    assert q.states() == {id: "A"}


def test_rescue_expired_dead_letters_a_message_without_attempts_left(q: Queue) -> None:
    last, more = q.send(max_attempts=1), q.send(max_attempts=2)
    q.claim_expired(2, consumer="worker-7")
    assert q.count("rescue_expired") == 2
    assert q.states() == {last: "E", more: "N"}
    row = q.row(last)
    assert (row["attempts"], row["consumer"]) == (1, "worker-7")
    assert "lease expired" in row["error"]


def test_rescue_expired_rescues_only_messages_still_held(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.expired_key(3)
    q.one("complete", sent[1], key)
    assert q.count("rescue_expired") == 2
    assert q.states() == {sent[0]: "N", sent[2]: "N"}


def test_rescue_expired_does_one_type_or_all(q: Queue) -> None:
    other = q.named(q.name + ".other")
    for each in (q, other):
        each.send()
        each.claim_expired()
    assert q.count("rescue_expired") == 1
    assert set(other.states().values()) == {"A"}
    assert call(q.session, "rescue_expired")[0]["affected"] >= 1
    assert set(other.states().values()) == {"N"}


def test_rescue_expired_skips_a_batch_that_is_being_finished(q: Queue, other: Queue) -> None:
    q.send_many(2)
    key = q.expired_key(2)
    with q.session.transaction():
        assert q.one("complete_batch", key) == 2
        assert other.count("rescue_expired") == 0
    assert q.rows() == []


def test_rescue_expired_skips_a_lease_that_is_being_extended(q: Queue, other: Queue) -> None:
    q.send()
    key = q.expired_key()
    with q.session.transaction():
        q.one("extend_lease", key, 60)
        assert other.count("rescue_expired") == 0
    assert other.count("rescue_expired") == 0
    assert q.one("complete_batch", key) == 1


@pytest.mark.level(1)
def test_rescue_expired_does_at_most_1000_claims_a_call(q: Queue) -> None:
    q.send_many(1_001)
    with q.session.transaction():
        for _ in range(1_001):
            q.claim(lease_seconds=3_600)
    q.expire()
    assert [q.count("rescue_expired") for _ in range(3)] == [1_000, 1, 0]


def test_rescue_expired_works_on_a_paused_queue(q: Queue) -> None:
    id = q.send()
    q.claim_expired()
    q.call("pause")
    assert q.count("rescue_expired") == 1
    assert q.states() == {id: "N"}


def test_rescue_expired_of_an_ordered_queue_starts_again_at_the_head(q: Queue) -> None:
    q.ordered()
    head, _second = q.send(group_key="a"), q.send(group_key="a")
    q.claim_expired()
    assert q.count("rescue_expired") == 1
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(head, 2)]


def test_rescue_expired_of_an_ordered_queue_continues_after_a_dead_head(q: Queue) -> None:
    q.ordered()
    head, second = q.send(group_key="a", max_attempts=1), q.send(group_key="a")
    q.claim_expired()
    assert q.count("rescue_expired") == 1
    assert ids(q.claim(10)) == [second]
    assert q.states() == {head: "E", second: "A"}
