"""cancel and cancel_key: delete one message; one that a consumer holds when its attempt ends."""

from collections.abc import Callable
from threading import Thread

import pytest
from servers import Server
from support.outcomes import dead_letter, done, failure, released
from support.queues import Queue, ids, in_an_hour, refused

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


def test_cancel_marks_an_active_message_and_its_holder_may_complete_it(q: Queue) -> None:
    id, other = q.send_many(2)
    key = q.claim_key(2)
    assert q.session.call("list_cancelled", key) == []
    assert q.on("cancel", id) == q.on("cancel", id) == [{"affected": 1, "state": "A"}]
    assert q.session.call("list_cancelled", key) == [{"id": id}]
    assert q.states() == {id: "A", other: "A"}
    assert {row["id"]: row["error"] for row in q.call("peek", "A")} == {id: "cancelled", other: None}
    assert q.row(id)["error"] == "cancelled"
    assert q.one("extend_lease", key) == 2
    assert q.one("complete", id, key) == 1
    assert q.session.call("list_cancelled", key) == []
    assert q.one("fail", other, key, "x", 0) == "N"


ENDS: dict[str, Callable[[Queue, int, object], object]] = {
    "fail": lambda q, id, key: q.one("fail", id, key, "x", 0),
    "dead_letter": lambda q, id, key: q.one("dead_letter", id, key, "x"),
    "finish_batch failed": lambda q, id, key: q.on("finish_batch", key, failure(id, "x", 0)),
    "finish_batch dead": lambda q, id, key: q.on("finish_batch", key, dead_letter(id, "x")),
    "finish_batch released": lambda q, id, key: q.on("finish_batch", key, released(id)),
    "finish_messages failed": lambda q, id, key: q.on("finish_messages", key, failure(id, "x", 0)),
    "finish_messages released": lambda q, id, key: q.on("finish_messages", key, released(id)),
    "snooze": lambda q, id, key: q.one("snooze", id, key, 0),
    "release_batch": lambda q, id, key: q.one("release_batch", key),
    "release_consumer": lambda q, id, key: q.on("release_consumer", q.name),
    "rescue": lambda q, id, key: (q.expire(key), q.call("rescue_expired")),
    "complete": lambda q, id, key: q.one("complete", id, key),
}


@pytest.mark.parametrize("kind", ["plain", "ordered", "ring", "fair", "limited"])
@pytest.mark.parametrize("end", [*ENDS])
def test_a_cancelled_message_is_gone_when_its_attempt_ends(q: Queue, server: Server, kind: str, end: str) -> None:
    if kind == "limited":
        q.call("set_queue", group_max_active=1)
    elif kind != "plain":
        getattr(q, kind)()
    q.archived()
    id, after = q.send(group_key="a"), q.send(group_key="a")
    [row] = q.claim(1, consumer=q.name)
    key = row["batch_key"]
    q.one("save_step", id, key, "a", "b")
    q.one("set_result", id, key, "r")
    assert q.on("cancel", id) == [{"affected": 1, "state": "A"}]
    for procedure, *more in (("save_step", "x"), ("get_steps",), ("set_progress", 1)):
        with refused("cancelled", str(id)):
            q.session.call(procedure, id, key, *more)
    said = ENDS[end](q, id, key)
    assert said is None or end not in {"fail", "dead_letter"}
    states = q.states()
    assert states.pop(id, None) == ("C" if end == "complete" else None)
    assert states == {after: "N"}
    for table in ("step", "result"):
        assert q.sql(f"SELECT id FROM {server.table(table)} WHERE id = %s", id) == []
    # Its group and its place are free.
    assert ids(q.claim(10)) == [after]


def test_a_cancelled_message_is_gone_after_its_last_attempt_too(q: Queue) -> None:
    q.call("set_queue", max_attempts=1)
    id = q.send()
    key = q.claim_key()
    q.one("cancel", id)
    q.expire(key)
    assert q.count("rescue_expired") == 1
    assert q.states() == {}


def test_neighbours_in_the_batch_end_as_they_would(q: Queue) -> None:
    first, second, third, fourth = q.send_many(4)
    key = q.claim_key(4)
    for id in (second, third):
        assert q.one("cancel", id) == 1
    assert q.session.call("list_cancelled", key) == [{"id": second}, {"id": third}]
    outcomes = "\n".join([failure(first, "x", 3_600), failure(second, "x", 0), done(fourth)])
    q.on("finish_batch", key, outcomes)
    assert q.states() == {first: "N"}
    assert q.stats()["delayed"] == 1


@pytest.mark.parametrize("own", [False, True])
def test_cancel_waits_for_a_call_that_ends_the_attempt(q: Queue, other: Queue, own: bool) -> None:
    """The message is new again when it has waited: it is deleted from there."""
    id = q.send()
    key = q.claim_key()
    found: list[object] = []
    thread = Thread(target=lambda: found.append(other.on("cancel", id)))
    with q.session.transaction():
        if own:
            q.one("release_batch", key)
        else:
            q.one("fail", id, key, "x", 0)
        thread.start()
        thread.join(0.5)
    thread.join(30)
    assert found == [[{"affected": 1, "state": "N"}]]
    assert q.states() == {}


@pytest.mark.parametrize("how", ["fail", "release_batch", "complete"])
def test_a_call_that_ends_the_attempt_waits_for_cancel(q: Queue, other: Queue, how: str) -> None:
    id = q.send()
    key = q.claim_key()
    end = {
        "fail": lambda: other.one("fail", id, key, "x", 0),
        "release_batch": lambda: other.one("release_batch", key),
        "complete": lambda: other.one("complete", id, key),
    }[how]
    thread = Thread(target=end)
    with q.session.transaction():
        assert q.on("cancel", id) == [{"affected": 1, "state": "A"}]
        thread.start()
        thread.join(0.5)
    thread.join(30)
    assert q.states() == {}


def test_cancel_rolled_back_leaves_an_active_message_as_it_was(q: Queue) -> None:
    id = q.send()
    key = q.claim_key()
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert q.one("cancel", id) == 1
        raise ZeroDivisionError
    assert q.session.call("list_cancelled", key) == []
    assert q.one("save_step", id, key, "a") == 1
    assert q.one("fail", id, key, "x", 0) == "N"


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
    q.on("dead_letter", id, row["batch_key"], "no")
    assert q.on("cancel", id) == [{"affected": 1, "state": "E"}]
    assert q.on("cancel", id) == [{"affected": 0, "state": None}]
    id = q.send(group_key="c")
    [row] = q.call(claim)
    assert q.on("cancel", id) == [{"affected": 1, "state": "A"}]
    assert q.on("dead_letter", id, row["batch_key"], "no") == [{"state": None}]
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


def test_cancel_key_marks_an_active_message_and_deletes_a_dead_letter(q: Queue) -> None:
    id = q.send(dedup_key="d")
    key = q.claim_key()
    assert q.call("cancel_key", "d") == [{"affected": 1, "state": "A", "id": id}]
    assert q.call("send_message", "b", dedup_key="d")[0]["created"] == 0
    q.on("dead_letter", id, key, "no")
    assert q.call("cancel_key", "d") == [{"affected": 0, "state": None, "id": None}]
    id = q.send(dedup_key="d")
    q.on("dead_letter", id, q.claim_key(), "no")
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
