"""complete_batch: all messages that the batch key still holds are done."""

from support.queues import NO_KEY, Queue, ids


def test_complete_batch_deletes_all_of_the_batch_and_nothing_else(q: Queue) -> None:
    sent = q.send_many(5)
    key = q.claim_key(3)
    assert q.one("complete_batch", key) == 3
    assert q.states() == {sent[3]: "N", sent[4]: "N"}


def test_complete_batch_leaves_out_what_was_failed_or_completed_before(q: Queue) -> None:
    sent = q.send_many(4)
    key = q.claim_key(4)
    q.one("fail", sent[0], key, "busy", 3_600)
    q.one("dead_letter", sent[1], key, "broken")
    q.one("complete", sent[2], key)
    assert q.one("complete_batch", key) == 1
    assert q.states() == {sent[0]: "N", sent[1]: "E"}


def test_complete_batch_twice_does_it_once(q: Queue) -> None:
    q.send_many(3)
    key = q.claim_key(2)
    assert q.one("complete_batch", key) == 2
    with q.refused("lease_lost", "batch_key: this batch was finished", "roll back"):
        q.one("complete_batch", key)


def test_complete_batch_with_an_unknown_key_changes_nothing(q: Queue) -> None:
    q.send()
    q.claim()
    with q.refused("lease_lost", "batch_key"):
        q.one("complete_batch", NO_KEY)


def test_complete_batch_after_the_batch_was_lost_changes_nothing(q: Queue) -> None:
    q.send_many(2)
    key = q.expired_key(2)
    q.call("rescue_expired")
    q.claim(1)
    with q.refused("lease_lost", "batch_key"):
        q.one("complete_batch", key)


def test_complete_batch_archives_when_the_policy_says_so(q: Queue) -> None:
    sent = q.archived().send_many(3)
    assert q.one("complete_batch", q.claim_key(2)) == 2
    assert q.states() == {sent[0]: "C", sent[1]: "C", sent[2]: "N"}


def test_complete_batch_lets_all_groups_of_an_ordered_queue_continue(q: Queue) -> None:
    q.ordered()
    sent = [q.send(group_key=group) for _ in range(2) for group in "abc"]
    assert q.one("complete_batch", q.claim_key(10)) == 3
    assert ids(q.claim(10)) == sent[3:]
