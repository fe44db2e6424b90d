"""pause: claims return nothing until resume."""

import pytest
from queues import Queue

CLAIMS = ["get_message", "claim_batch", "claim_wraparound", "take_batch"]


def test_pause_says_whether_the_queue_was_running(q: Queue) -> None:
    assert [q.count("pause"), q.count("pause")] == [1, 0]
    assert q.stats()["paused"] == 1


@pytest.mark.parametrize("claim", CLAIMS)
def test_pause_stops_every_way_to_claim(q: Queue, claim: str) -> None:
    q.call("set_queue", ring=int(claim == "claim_wraparound"))
    q.send()
    q.call("pause")
    with q.unchanged():
        assert q.call(claim) == []
    q.call("resume")
    assert len(q.call(claim)) == 1


def test_during_a_pause_claimed_messages_can_be_finished_and_messages_sent(q: Queue) -> None:
    sent = q.send_many(5)
    keys = [q.claim_key() for _ in range(5)]
    q.call("pause")
    assert q.one("complete", sent[0], keys[0]) == 1
    assert q.one("complete_batch", keys[1]) == 1
    assert q.one("dead_letter", sent[2], keys[2], "broken") == "E"
    assert q.one("extend_lease", keys[3], 60) == 1
    assert q.one("release_batch", keys[3]) == 1
    assert q.on("finish_batch", keys[4], None, 10) == []
    new = q.send()
    assert q.states() == {sent[2]: "E", sent[3]: "N", new: "N"}


def test_pause_concerns_one_type(q: Queue) -> None:
    q.call("pause")
    other = q.named(q.name + "x")
    other.send()
    assert len(other.claim()) == 1


def test_pause_keeps_the_policy_of_the_queue(q: Queue) -> None:
    q.call("set_queue", lease_seconds=7)
    q.call("pause")
    assert q.call("set_queue")[0]["lease_seconds"] == 7
