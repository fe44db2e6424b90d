"""cancel and cancel_key: delete one message that no consumer holds."""

import pytest
from support.queues import Queue, ids, in_an_hour

KINDS = pytest.mark.parametrize("kind", ["plain", "ordered", "ring", "fair"])


def test_cancel_removes_a_ready_message(q: Queue) -> None:
    gone, kept = q.send_many(2)
    assert q.one("cancel", gone) == 1
    assert q.states() == {kept: "N"}
    assert ids(q.claim(10)) == [kept]


def test_cancel_removes_a_delayed_message(q: Queue) -> None:
    assert q.one("cancel", q.send(run_at=in_an_hour())) == 1
    assert q.rows() == [] and q.stats()["delayed"] == 0


def test_cancel_removes_a_message_that_waits_for_its_next_attempt(q: Queue) -> None:
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 3_600)
    assert q.one("cancel", id) == 1
    assert q.rows() == []


def test_cancel_removes_a_dead_message(q: Queue) -> None:
    id = q.send()
    q.one("dead_letter", id, q.claim_key(), "broken")
    assert q.one("cancel", id) == 1
    assert q.rows() == [] and q.stats()["dead"] == 0


def test_cancel_leaves_an_active_message_alone(q: Queue) -> None:
    id = q.send()
    key = q.claim_key()
    with q.unchanged():
        assert q.one("cancel", id) == 0
    assert q.one("complete", id, key) == 1


def test_cancel_leaves_an_archived_message_alone(q: Queue) -> None:
    id = q.archived().send()
    q.on("complete_batch", q.claim_key())
    with q.unchanged():
        assert q.one("cancel", id) == 0


@pytest.mark.parametrize("id", [0, -1, (1 << 63) - 1, -(1 << 63)])
def test_cancel_of_what_does_not_exist_changes_nothing(q: Queue, id: int) -> None:
    q.send()
    with q.unchanged():
        assert q.one("cancel", id) == 0


def test_cancel_skips_a_message_that_is_being_claimed(q: Queue, other: Queue) -> None:
    id = q.send()
    with q.session.transaction():
        q.claim()
        assert other.on("cancel", id) == [{"affected": 0, "state": "N"}]
    assert q.states() == {id: "A"}


def test_cancel_rolled_back_leaves_the_message_claimable(q: Queue, other: Queue) -> None:
    id = q.send()
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert q.one("cancel", id) == 1
        assert other.claim() == []
        raise ZeroDivisionError
    assert ids(other.claim()) == [id]


def test_cancel_works_on_a_paused_queue(q: Queue) -> None:
    id = q.send()
    q.call("pause")
    assert q.one("cancel", id) == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_cancel_in_an_ordered_queue_leaves_the_rest_of_the_group_in_order(q: Queue, place: int) -> None:
    q.ordered()
    sent = [q.send(group_key="a") for _ in range(3)]
    assert q.one("cancel", sent[place]) == 1
    claimed = []
    while rows := q.claim(10):
        claimed += ids(rows)
        q.on("complete_batch", rows[0]["batch_key"])
    assert claimed == [id for id in sent if id != sent[place]]


def test_cancel_of_a_message_after_an_active_head_keeps_the_group_waiting(q: Queue) -> None:
    q.ordered()
    _head, second, third = (q.send(group_key="a") for _ in range(3))
    key = q.claim_key(10)
    assert q.one("cancel", second) == 1
    assert q.claim(10) == []
    q.on("complete_batch", key)
    assert ids(q.claim(10)) == [third]


def test_cancel_of_a_dead_message_in_an_ordered_queue_leaves_its_group_alone(q: Queue) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    q.one("dead_letter", head, q.claim_key(), "broken")
    q.claim()
    assert q.one("cancel", head) == 1
    assert q.states() == {second: "A"}
    assert q.claim(10) == []


@KINDS
def test_cancel_returns_the_state_that_the_message_had(q: Queue, kind: str) -> None:
    if kind != "plain":
        getattr(q, kind)()
    q.archived()
    claim = "claim_wraparound" if kind == "ring" else "claim_batch"
    ready, delayed = q.send(group_key="a"), q.send(group_key="b", run_at=in_an_hour())
    assert q.on("cancel", ready) == q.on("cancel", delayed) == [{"affected": 1, "state": "N"}]
    id = q.send(group_key="c")
    [row] = q.call(claim)
    assert q.on("cancel", id) == [{"affected": 0, "state": "A"}]
    q.on("dead_letter", id, row["batch_key"], "no")
    assert q.on("cancel", id) == [{"affected": 1, "state": "E"}]
    assert q.on("cancel", id) == [{"affected": 0, "state": None}]
    id = q.send(group_key="d")
    q.on("complete_batch", q.call(claim)[0]["batch_key"])
    assert q.on("cancel", id) == [{"affected": 0, "state": "C"}]
    assert q.states() == {id: "C"}


# ---- cancel_key ----------------------------------------------------------------------------------


def test_cancel_key_deletes_the_live_message_with_the_key_and_frees_it(q: Queue) -> None:
    kept, id = q.send(dedup_key="other"), q.send(dedup_key="d")
    q.named(q.name + ".other").send(dedup_key="d")
    assert q.call("cancel_key", "d") == [{"affected": 1, "state": "N", "id": id}]
    assert q.states() == {kept: "N"}
    assert len(q.named(q.name + ".other").rows()) == 1
    assert q.call("send_message", "b", dedup_key="d")[0]["created"] == 1


def test_cancel_key_deletes_a_dead_letter_and_no_active_message(q: Queue) -> None:
    id = q.send(dedup_key="d")
    key = q.claim_key()
    with q.unchanged():
        assert q.call("cancel_key", "d") == [{"affected": 0, "state": "A", "id": id}]
    q.on("dead_letter", id, key, "no")
    assert q.call("cancel_key", "d") == [{"affected": 1, "state": "E", "id": id}]
    assert q.rows() == []


def test_cancel_key_finds_nothing_for_a_key_that_no_live_message_has(q: Queue) -> None:
    q.archived().send(dedup_key="d")
    q.on("complete_batch", q.claim_key())
    with q.unchanged():
        for key in ("d", "D", "none"):
            assert q.call("cancel_key", key) == [{"affected": 0, "state": None, "id": None}]


@pytest.mark.parametrize("key", [None, "", "x" * 201])
def test_cancel_key_refuses_a_key_outside_its_limits(q: Queue, key: str | None) -> None:
    with q.refused("invalid_argument", "dedup_key: "):
        q.call("cancel_key", key)


# ---- get_state -----------------------------------------------------------------------------------


def test_get_state_returns_the_letter_of_the_state_and_nothing_for_a_message_that_is_gone(q: Queue) -> None:
    id = q.send()
    assert q.on("get_state", id) == [{"state": "N"}]
    key = q.claim_key()
    assert q.on("get_state", id) == [{"state": "A"}]
    q.on("dead_letter", id, key, "no")
    assert q.on("get_state", id) == [{"state": "E"}]
    q.call("redrive_all")
    assert q.on("get_state", id) == [{"state": "N"}]
    q.on("complete_batch", q.claim_key())
    assert q.on("get_state", id) == [{"state": None}]
    id = q.archived().send()
    q.on("complete_batch", q.claim_key())
    assert q.on("get_state", id) == [{"state": "C"}]
    for nothing in (0, -1, (1 << 63) - 1):
        assert q.on("get_state", nothing) == [{"state": None}]
    with q.refused("invalid_argument", "id: "):
        q.on("get_state", None)
