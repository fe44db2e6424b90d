"""extend_lease: heartbeat."""

from datetime import UTC, datetime, timedelta

from support.queues import NO_KEY, Queue


def left(q: Queue, id: int) -> float:
    """Seconds that are left of the lease."""
    until: timedelta = q.row(id)["lease_until"] - datetime.now(UTC)
    return until.total_seconds()


def test_extend_lease_holds_the_claim_for_so_many_seconds_from_now(q: Queue) -> None:
    sent = q.send_many(2)
    key = q.claim_key(2, lease_seconds=10)
    assert q.one("extend_lease", key, 1_000) == 2
    assert all(995 < left(q, id) <= 1_000 for id in sent)


def test_extend_lease_can_shorten_the_lease(q: Queue) -> None:
    id = q.send()
    key = q.claim_key(lease_seconds=1_000)
    q.one("extend_lease", key, 1)
    assert 0 < left(q, id) <= 1


def test_extend_lease_takes_the_length_that_the_claim_asked_for(q: Queue) -> None:
    id = q.send()
    key = q.claim_key(lease_seconds=500)
    q.one("extend_lease", key, 5_000)
    q.one("extend_lease", key)
    assert 495 < left(q, id) <= 500


def test_extend_lease_returns_0_after_the_batch_was_lost(q: Queue) -> None:
    q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    with q.unchanged():
        assert q.one("extend_lease", key, 60) == 0
        assert q.one("extend_lease", NO_KEY, 60) == 0


def test_extend_lease_in_time_keeps_the_batch_from_being_rescued(q: Queue) -> None:
    id = q.send()
    key = q.expired_key()
    assert q.one("extend_lease", key, 60) == 1
    assert q.count("rescue_expired") == 0
    assert q.one("complete", id, key) == 1


def test_extend_lease_counts_what_is_still_held(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim_key(3)
    q.one("complete", sent[0], key)
    assert q.one("extend_lease", key, 60) == 2
