"""take_batch: receive and finish in one."""

import time
from datetime import timedelta

import pytest
from support.queues import LONG_AGO, Queue, ids


def take(q: Queue, size: int) -> list[int]:
    return ids(q.call("take_batch", size))


def test_take_batch_takes_in_order_and_the_messages_are_gone(q: Queue) -> None:
    late, urgent, early = q.send(), q.send(priority=-1), q.send(run_at=LONG_AGO)
    assert take(q, 2) == [urgent, early]
    assert q.states() == {late: "N"}
    assert (take(q, 2), q.rows()) == ([late], [])


def test_take_batch_returns_the_message_without_key_and_lease(q: Queue) -> None:
    id = q.send("text", headers="{}", group_key="g", dedup_key="d", source="shop")
    [row] = q.call("take_batch")
    assert row["batch_key"] is None and row["lease_until"] is None
    assert (row["id"], row["body"], row["headers"], row["attempt"]) == (id, "text", "{}", 1)
    assert (row["group_key"], row["dedup_key"], row["source"]) == ("g", "d", "shop")


def test_take_batch_returns_the_attempt_of_each_message_in_order(q: Queue) -> None:
    sent = [q.send(), q.send(priority=2), q.send(priority=1), q.send(priority=3)]
    key = q.claim(1)[0]["batch_key"]
    q.one("fail", sent[0], key, "busy", 0)
    rows = q.call("take_batch", 10)
    assert [(row["id"], row["attempt"]) for row in rows] == [(sent[0], 2), (sent[2], 1), (sent[1], 1), (sent[3], 1)]
    assert q.rows() == []


def test_take_batch_of_consecutive_messages_returns_the_attempt_of_each(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim(3)[0]["batch_key"]
    q.one("fail", sent[2], key, "busy", 0)
    q.one("release_batch", key)
    rows = q.call("take_batch", 10)
    assert [(row["id"], row["attempt"]) for row in rows] == list(zip(sent, [1, 1, 2], strict=True))
    assert q.rows() == []


def test_take_batch_takes_one_when_no_size_is_given(q: Queue) -> None:
    q.send_many(3)
    assert len(q.call("take_batch")) == 1


@pytest.mark.parametrize("on_complete", ["delete", "archive"])
def test_take_batch_rolled_back_gives_the_messages_back_without_an_attempt(q: Queue, on_complete: str) -> None:
    q.call("set_queue", on_complete=on_complete)
    sent = q.send_many(3)
    with q.unchanged(), pytest.raises(ZeroDivisionError), q.session.transaction():
        assert take(q, 2) == sent[:2]
        raise ZeroDivisionError
    assert [(row["id"], row["attempt"]) for row in q.call("take_batch", 10)] == [(id, 1) for id in sent]


def test_take_batch_hides_its_messages_from_others_until_it_ends(q: Queue, other: Queue) -> None:
    sent = q.send_many(4)
    with q.session.transaction():
        assert take(q, 2) == sent[:2]
        assert take(other, 10) == sent[2:]
        assert other.claim(10) == []
    assert other.rows() == []


def test_take_batch_commits_with_the_work_of_its_transaction(q: Queue) -> None:
    q.send("order")
    result = q.named(q.name + ".done")
    with q.session.transaction():
        [row] = q.call("take_batch")
        result.send(row["body"])
    assert (q.rows(), [row["body"] for row in result.rows()]) == ([], ["order"])


def test_take_batch_archives_when_the_policy_says_so(q: Queue) -> None:
    sent = q.archived().send_many(3)
    assert take(q, 2) == sent[:2]
    assert q.states() == {sent[0]: "C", sent[1]: "C", sent[2]: "N"}
    row = q.row(sent[0])
    assert (row["attempts"], row["body"]) == (1, "0") and row["consumer"].startswith("test/")


def test_take_batch_returns_nothing_from_a_paused_queue(q: Queue) -> None:
    q.send()
    q.call("pause")
    with q.unchanged():
        assert take(q, 10) == []


def test_take_batch_frees_the_dedup_key(q: Queue) -> None:
    q.send(dedup_key="d")
    take(q, 1)
    assert q.call("send_message", "b", dedup_key="d")[0]["created"] == 1


def test_take_batch_of_an_ordered_queue_takes_one_message_a_group(q: Queue) -> None:
    q.ordered()
    a1, b1, a2, b2 = (q.send(group_key=group) for group in "abab")
    assert [take(q, 10), take(q, 10), take(q, 10)] == [[a1, b1], [a2, b2], []]


def test_take_batch_that_reads_on_past_a_long_group_leaves_no_group_behind(q: Queue) -> None:
    """The first tickets are all of one group. The groups that fill the batch up have one each, and need another."""
    q.ordered()
    for group in "b" * 60 + "c" * 60:
        q.send(group, group_key=group)
    blocked = q.claim(2)
    assert q.claim(100) == []  # drops the tickets of both
    for _ in range(20):
        q.send("a", group_key="a", priority=-1)
    q.on("complete_batch", blocked[0]["batch_key"])
    for _ in range(20):
        assert [row["body"] for row in q.call("take_batch", 3)] == ["a", "b", "c"]
    assert [row["body"] for row in q.call("take_batch", 3)] == ["b", "c"]


def test_take_batch_of_an_ordered_queue_holds_its_groups_until_it_ends(q: Queue, other: Queue) -> None:
    q.ordered()
    a1, b1, a2, b2 = (q.send(group_key=group) for group in "abab")
    with q.session.transaction():
        assert take(q, 1) == [a1]
        assert take(other, 10) == [b1]
        assert take(other, 10) == [b2]
    assert take(other, 10) == [a2]


def test_take_batch_of_an_ordered_queue_rolled_back_starts_at_the_head(q: Queue, other: Queue) -> None:
    q.ordered()
    first, second = q.send(group_key="a"), q.send(group_key="a")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert take(q, 10) == [first]
        raise ZeroDivisionError
    assert [take(other, 10), take(other, 10)] == [[first], [second]]


def test_take_batch_finds_messages_that_become_ready_below_the_mark_of_earlier_takes(q: Queue) -> None:
    """A take promotes no more than it wants: what has long been due becomes ready after newer messages are taken."""
    due = q.session.now() + timedelta(milliseconds=500)
    idle = q.send(priority=9, run_at=due)
    urgent = q.send(priority=3, run_at=due + timedelta(milliseconds=1))
    time.sleep(2)
    fresh = [q.send(priority=3), q.send(priority=3)]
    assert [take(q, 1) for _ in range(5)] == [[fresh[0]], [urgent], [fresh[1]], [idle], []]
