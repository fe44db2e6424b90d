"""claim_wraparound: the next messages round the ring of ids."""

import pytest
from queues import Queue, ids, in_an_hour


def ring(q: Queue, size: int, reader: str = "me", **options: int) -> list[int]:
    """Claim round the ring and return the ids."""
    return ids(q.call("claim_wraparound", size, reader, **options))


def test_claim_wraparound_goes_by_id_whatever_the_priority(q: Queue) -> None:
    sent = [q.send(priority=priority) for priority in (5, -5, 0)]
    assert ring(q, 10) == sent


def test_claim_wraparound_goes_on_where_the_reader_stopped(q: Queue) -> None:
    sent = q.send_many(6)
    assert [ring(q, 2), ring(q, 2), ring(q, 2), ring(q, 2)] == [sent[:2], sent[2:4], sent[4:], []]


def test_claim_wraparound_goes_on_behind_the_last_of_a_batch_that_was_given_back(q: Queue) -> None:
    sent = q.send_many(6)
    rows = q.call("claim_wraparound", 3, "me")
    q.on("release_batch", rows[0]["batch_key"])
    assert ring(q, 6) == [*sent[3:], *sent[:3]]


def test_claim_wraparound_goes_round_inside_one_batch_and_takes_nothing_twice(q: Queue) -> None:
    sent = q.send_many(6)
    assert ring(q, 10, after_id=sent[3]) == [sent[4], sent[5], *sent[:4]]


def test_claim_wraparound_starts_behind_after_id(q: Queue) -> None:
    sent = q.send_many(4)
    assert ring(q, 1, after_id=sent[1]) == [sent[2]]
    assert ring(q, 1, after_id=0) == [sent[0]]
    assert ring(q, 1, after_id=sent[-1]) == [sent[1]]


def test_claim_wraparound_takes_after_id_anywhere(q: Queue) -> None:
    sent = q.send_many(3)
    assert ring(q, 1, after_id=-(1 << 63)) == [sent[0]]
    assert ring(q, 1, after_id=(1 << 63) - 1) == [sent[1]]


def test_claim_wraparound_visits_what_failed_only_in_the_next_round(q: Queue) -> None:
    """The use of the ring: a broken head does not come back before all others had their turn."""
    sent = q.send_many(4)
    seen = []
    for _ in range(8):
        [row] = q.call("claim_wraparound", 1, "me")
        seen.append(row["id"])
        q.one("fail", row["id"], row["batch_key"], "busy", 0)
    assert seen == sent * 2


def test_claim_wraparound_keeps_a_place_for_each_reader(q: Queue) -> None:
    sent = q.send_many(6)
    assert ring(q, 2, "a") == sent[:2]
    assert ring(q, 1, "b") == [sent[2]]
    assert ring(q, 1, "a") == [sent[3]]
    assert ring(q, 1, "b") == [sent[4]]


def test_claim_wraparound_keeps_its_place_over_connections(q: Queue, other: Queue) -> None:
    sent = q.send_many(4)
    [row] = q.call("claim_wraparound", 1, "me", after_id=sent[1])
    assert row["id"] == sent[2]
    q.on("release_batch", row["batch_key"])
    assert ring(other, 1) == [sent[3]]


def test_claim_wraparound_rolled_back_keeps_the_place_as_it_was(q: Queue) -> None:
    sent = q.send_many(4)
    assert ring(q, 1) == [sent[0]]
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert ring(q, 2) == sent[1:3]
        raise ZeroDivisionError
    assert ring(q, 1) == [sent[1]]


def test_claim_wraparound_keeps_its_place_when_it_finds_nothing(q: Queue) -> None:
    sent = q.send_many(2)
    assert ring(q, 2) == sent
    assert ring(q, 2) == []
    more = q.send_many(2)
    assert ring(q, 1) == [more[0]]


def test_claim_wraparound_skips_what_another_session_is_claiming(q: Queue, other: Queue) -> None:
    sent = q.send_many(4)
    with q.session.transaction():
        assert ring(q, 2, after_id=sent[1]) == sent[2:]
        assert ring(other, 4, "other", after_id=sent[2]) == sent[:2]


def test_claim_wraparound_promotes_what_is_due_and_leaves_what_is_not(q: Queue) -> None:
    q.send(run_at=in_an_hour())
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 0)
    assert ring(q, 10) == [id]


def test_claim_wraparound_rescues_expired_claims_on_the_way(q: Queue) -> None:
    id = q.send()
    q.claim(lease_seconds=0)
    [row] = q.call("claim_wraparound")
    assert (row["id"], row["attempt"]) == (id, 2)


def test_claim_wraparound_is_refused_on_an_ordered_queue(q: Queue) -> None:
    q.ordered().send()
    with q.refused("queue_is_ordered", q.name):
        q.call("claim_wraparound")


def test_claim_wraparound_returns_nothing_from_a_paused_queue(q: Queue) -> None:
    q.send()
    q.call("pause")
    with q.unchanged():
        assert ring(q, 10) == []


def test_claim_wraparound_and_claim_batch_share_a_queue(q: Queue) -> None:
    sent = q.send_many(6)
    assert ids(q.claim(2)) == sent[:2]
    assert ring(q, 2, after_id=sent[3]) == sent[4:]
    assert ids(q.claim(10)) == sent[2:4]


def test_claim_batch_finds_at_once_what_comes_back_into_a_ring_behind_what_it_has_claimed(q: Queue) -> None:
    sent = q.send_many(4)
    [row] = q.call("claim_wraparound", 1, "me")
    assert ids(q.claim(1)) == sent[1:2]
    q.one("fail", row["id"], row["batch_key"], "busy", 0)
    assert sorted(ids(q.call("take_batch", 5))) == [sent[0], *sent[2:]]
