"""pause and pause_all: claims return nothing until resume."""

from collections.abc import Iterator

import pytest
from support.queues import Queue, call

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


# ---- all queues ----------------------------------------------------------------------------------


@pytest.fixture
def running(q: Queue) -> Iterator[None]:
    """Other tests need running queues."""
    call(q.session, "resume_all")
    yield
    call(q.session, "resume_all")


@pytest.mark.parametrize("claim", CLAIMS)
def test_pause_all_stops_every_queue_also_a_new_one(q: Queue, running: None, claim: str) -> None:
    known, new = q.named(q.name + "x"), q.named(q.name + "y")
    for each in (known, new):
        each.call("set_queue", ring=1) if claim == "claim_wraparound" else None
    known.call("set_queue", lease_seconds=7)
    known.send()
    assert [q.on("pause_all"), q.on("pause_all")] == [[{"changed": 1}], [{"changed": 0}]]
    new.send()
    for each in (known, new):
        assert each.call(claim) == [] and each.stats()["paused"] == 1
        assert each.call("list_queues")[0]["paused"] == 1
        assert each.call("wait_for_message", 0)[0]["ready"] == 0
        assert each.count("pause") == 0
    assert [q.on("resume_all"), q.on("resume_all")] == [[{"changed": 1}], [{"changed": 0}]]
    for each in (known, new):
        assert each.stats()["paused"] == 0 and len(each.call(claim)) == 1
    assert known.call("list_queues")[0]["lease_seconds"] == 7


def test_after_pause_all_one_queue_can_be_resumed(q: Queue, running: None) -> None:
    """Also one that had no settings of its own."""
    known, other = q.named(q.name + "x"), q.named(q.name + "y")
    known.call("set_queue", lease_seconds=7)
    for each in (q, known, other):
        each.send()
    q.on("pause_all")
    assert [q.count("resume"), q.count("resume"), known.count("resume")] == [1, 0, 1]
    assert [len(each.claim()) for each in (q, known, other)] == [1, 1, 0]


def test_set_queue_does_not_resume_after_pause_all(q: Queue, running: None) -> None:
    q.send()
    q.on("pause_all")
    assert q.call("set_queue", max_attempts=3)[0]["paused"] == 1
    assert q.claim() == []


def test_resume_all_resumes_what_pause_stopped(q: Queue, running: None) -> None:
    q.send()
    q.call("pause")
    assert q.on("resume_all") == [{"changed": 1}]
    assert len(q.claim()) == 1


def test_a_rollback_undoes_pause_all_and_resume_all(q: Queue, other: Queue, running: None) -> None:
    for procedure, paused in (("pause_all", 0), ("resume_all", 1)):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert q.on(procedure) == [{"changed": 1}]
            raise ZeroDivisionError
        assert other.stats()["paused"] == paused
        q.on("pause_all")
