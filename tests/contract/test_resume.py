"""resume: claims continue after a pause."""

from support.queues import Queue, ids


def test_resume_says_whether_the_queue_was_paused(q: Queue) -> None:
    assert q.count("resume") == 0
    q.call("pause")
    assert [q.count("resume"), q.count("resume")] == [1, 0]
    assert q.stats()["paused"] == 0


def test_after_resume_claims_continue_in_order(q: Queue) -> None:
    before = q.send()
    q.call("pause")
    during = q.send()
    q.call("resume")
    assert ids(q.claim(10)) == [before, during]


def test_resume_lets_an_ordered_queue_continue(q: Queue) -> None:
    q.ordered()
    first, second = q.send(group_key="a"), q.send(group_key="a")
    key = q.claim_key(10)
    q.call("pause")
    assert q.one("complete", first, key) == 1
    assert q.claim(10) == []
    q.call("resume")
    assert ids(q.claim(10)) == [second]


def test_resume_concerns_one_type(q: Queue) -> None:
    other = q.named(q.name + "x")
    q.call("pause")
    other.call("pause")
    q.call("resume")
    assert (q.stats()["paused"], other.stats()["paused"]) == (0, 1)
