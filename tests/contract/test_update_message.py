"""update_message: change a message before it is claimed."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from rowqueue.databases import Row
from support.queues import LONG_AGO, Queue, ids, in_an_hour, in_time
from support.waiting import until

CHANGED = [{"affected": 1, "state": "N"}]


def update(q: Queue, id: int, **options: Any) -> list[Row]:
    return q.on("update_message", id, **options)


def left(state: str | None) -> list[Row]:
    return [{"affected": 0, "state": state}]


def claims(q: Queue) -> list[int]:
    """The ids of all claims, each completed before the next."""
    found = []
    while rows := q.claim():
        found += ids(rows)
        q.on("complete_batch", rows[0]["batch_key"])
    return found


def test_update_message_changes_what_is_given_and_keeps_the_rest(q: Queue) -> None:
    id = q.send("old", priority=3, group_key="g", dedup_key="d", headers='{"a":1}', source="shop", max_attempts=7)
    before = q.row(id)
    assert update(q, id, body="new") == CHANGED
    assert update(q, id, max_attempts=2, headers='{"b":2}') == CHANGED
    assert q.row(id) == before | {"body": "new", "headers": '{"b":2}'}
    [row] = q.claim()
    assert (row["body"], row["headers"], row["max_attempts"], row["attempt"]) == ("new", '{"b":2}', 2, 1)
    assert (row["priority"], row["group_key"], row["dedup_key"], row["source"]) == (3, "g", "d", "shop")
    assert (row["created_at"], row["run_at"]) == (before["created_at"], before["run_at"])


def test_update_message_sets_defaults_with_null(q: Queue) -> None:
    id = q.send(priority=3, headers="{}", max_attempts=7, run_at=in_an_hour())
    assert update(q, id, priority=None, headers=None, max_attempts=None, run_at=None) == CHANGED
    [row] = q.claim()
    assert (row["id"], row["priority"], row["headers"], row["max_attempts"]) == (id, 0, None, 25)


def test_update_message_makes_a_delayed_message_due_now(q: Queue) -> None:
    first, second = (q.send(run_at=in_an_hour()) for _ in "12")
    assert q.claim() == []
    assert update(q, second, run_at=None) == CHANGED
    assert ids(q.claim(10)) == [second]
    assert update(q, first, delay_seconds=0) == CHANGED
    assert ids(q.claim(10)) == [first]


def test_update_message_delays_a_ready_message(q: Queue) -> None:
    first, second = q.send_many(2)
    due = in_an_hour()
    assert update(q, first, run_at=due) == CHANGED
    assert q.row(first)["run_at"] == due and q.stats()["delayed"] == 1
    assert ids(q.claim(10)) == [second]
    assert update(q, first, delay_seconds=7_200) == CHANGED
    assert q.row(first)["run_at"] > due


def test_update_message_moves_a_message_by_its_priority_and_time(q: Queue) -> None:
    sent = q.send_many(4)
    assert update(q, sent[2], priority=-1) == CHANGED
    assert update(q, sent[1], priority=1) == CHANGED
    assert update(q, sent[3], run_at=LONG_AGO) == CHANGED
    assert claims(q) == [sent[2], sent[3], sent[0], sent[1]]


def test_update_message_finds_its_new_place_although_claims_have_passed_it(q: Queue) -> None:
    sent = q.send_many(5)
    q.on("complete_batch", q.claim_key(2))
    assert update(q, sent[4], run_at=LONG_AGO) == CHANGED
    assert ids(q.claim()) == [sent[4]]
    assert update(q, sent[3], priority=-5) == CHANGED
    assert ids(q.claim()) == [sent[3]]


def test_update_message_of_the_priority_of_a_delayed_message_keeps_its_time(q: Queue) -> None:
    due = in_time(seconds=2)
    id = q.send(run_at=due)
    assert update(q, id, priority=-7) == CHANGED
    row = q.row(id)
    assert (row["priority"], row["run_at"]) == (-7, due)
    update(q, id, run_at=None)
    assert q.claim()[0]["priority"] == -7


def test_update_message_of_a_message_that_waits_for_its_retry(q: Queue) -> None:
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 3_600)
    before = q.row(id)
    assert update(q, id, body="new", priority=2) == CHANGED
    assert q.row(id) == before | {"body": "new", "priority": 2}
    assert q.claim() == []
    assert update(q, id, run_at=None) == CHANGED
    [row] = q.claim()
    assert (row["id"], row["body"], row["attempt"]) == (id, "new", 2)


@pytest.mark.parametrize("option", [{"body": "new"}, {"priority": -1}, {"run_at": None}, {"delay_seconds": 9}])
def test_update_message_leaves_active_dead_and_archived_messages_alone(q: Queue, option: dict[str, Any]) -> None:
    id = q.archived().send()
    key = q.claim_key()
    with q.unchanged():
        assert update(q, id, **option) == left("A")
    q.on("dead_letter", id, key, "no")
    with q.unchanged():
        assert update(q, id, **option) == left("E")
    q.on("redrive", id)
    q.on("complete", id, q.claim_key())
    with q.unchanged():
        assert update(q, id, **option) == left("C")


@pytest.mark.parametrize("id", [0, -1, (1 << 63) - 1, -(1 << 63)])
def test_update_message_of_what_does_not_exist_changes_nothing(q: Queue, id: int) -> None:
    q.send()
    with q.unchanged():
        assert update(q, id, body="new") == left(None)


@pytest.mark.parametrize("option", [{"body": "new"}, {"priority": -1}, {"run_at": None}])
@pytest.mark.parametrize("kind", ["plain", "ordered", "ring", "fair"])
def test_update_message_skips_a_message_that_is_being_claimed(
    q: Queue, other: Queue, kind: str, option: dict[str, Any]
) -> None:
    if kind != "plain":
        getattr(q, kind)()
    id = q.send(group_key="g")
    before = q.row(id)
    with q.session.transaction():
        q.call("claim_wraparound" if kind == "ring" else "claim_batch")
        assert update(other, id, **option) == left("N")
    after = q.row(id)
    assert after["state"] == "A"
    assert (after["body"], after["priority"]) == (before["body"], before["priority"])


def test_a_claim_skips_a_message_that_is_being_moved(q: Queue, other: Queue) -> None:
    first, second = q.send_many(2)
    with q.session.transaction():
        assert update(q, first, priority=-1) == CHANGED
        assert ids(other.claim(10)) == [second]
    assert ids(other.claim(10)) == [first]


def test_update_message_skips_a_message_that_is_being_changed(q: Queue, other: Queue) -> None:
    ready, delayed = q.send(), q.send(run_at=in_an_hour())
    with q.session.transaction():
        for id in (ready, delayed):
            assert update(q, id, body="new", priority=1) == CHANGED
            assert update(other, id, body="other", priority=2) == left("N")
            assert other.on("cancel", id) == [{"affected": 0, "state": "N"}]
    assert [row["body"] for row in q.rows()] == ["new", "new"]
    with q.session.transaction():
        assert q.one("cancel", ready) == 1
        assert update(other, ready, body="other") == left("N")
    assert list(q.states()) == [delayed]


def test_update_message_rolled_back_changes_nothing(q: Queue) -> None:
    id, late = q.send(), q.send(run_at=in_an_hour())
    with q.unchanged(), pytest.raises(ZeroDivisionError), q.session.transaction():
        assert update(q, id, body="new", priority=-1, run_at=in_an_hour()) == CHANGED
        assert update(q, late, body="new", run_at=None) == CHANGED
        raise ZeroDivisionError
    assert ids(q.claim(10)) == [id]


def test_update_message_in_a_paused_queue(q: Queue) -> None:
    id = q.send()
    q.call("pause")
    assert update(q, id, body="new", run_at=None) == CHANGED
    assert q.claim() == []
    q.call("resume")
    assert q.claim()[0]["body"] == "new"


def test_update_message_in_a_ring_keeps_the_turn(q: Queue) -> None:
    q.ring()
    sent = [q.send() for _ in range(3)]
    assert update(q, sent[1], body="new", priority=-3) == CHANGED
    assert update(q, sent[2], run_at=in_an_hour()) == CHANGED
    assert ids(q.call("claim_wraparound", 10)) == sent[:2]
    assert update(q, sent[2], run_at=None) == CHANGED
    assert ids(q.call("claim_wraparound", 10)) == sent[2:]


def test_update_message_in_a_fair_queue_keeps_the_turns(q: Queue) -> None:
    q.fair()
    a1, a2, b1 = (q.send(group_key=group) for group in "aab")
    assert update(q, a2, priority=-1) == CHANGED
    assert update(q, a1, body="new") == CHANGED
    assert claims(q)[0] == a2
    assert b1 not in q.states() and a1 not in q.states()


def test_update_message_in_a_queue_with_limits_per_group(q: Queue) -> None:
    q.call("set_queue", group_max_active=1)
    first, second = q.send(group_key="g"), q.send(group_key="g")
    assert update(q, first, run_at=in_an_hour()) == CHANGED
    assert ids(q.claim(10)) == [second]
    assert update(q, first, run_at=None) == CHANGED
    assert q.claim(10) == []
    q.on("complete_batch", q.row(second)["batch_key"])
    assert ids(q.claim(10)) == [first]


# ---- ordered queues ------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [{"body": "new"}, {"headers": "{}"}, {"max_attempts": 3}])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_update_message_of_the_content_keeps_the_order_of_a_group(q: Queue, place: int, option: dict[str, Any]) -> None:
    q.ordered()
    sent = [q.send(group_key="a") for _ in range(3)]
    assert update(q, sent[place], **option) == CHANGED
    assert claims(q) == sent


@pytest.mark.parametrize("option", [{"body": "new"}, {"priority": -1}])
def test_update_message_leaves_the_group_blocked_by_a_head_that_waits_for_its_retry(
    q: Queue, option: dict[str, Any]
) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    q.one("fail", head, q.claim_key(), "busy", 3_600)
    assert update(q, head, **option) == CHANGED
    assert q.claim(10) == []
    assert update(q, head, run_at=None) == CHANGED
    [row] = q.claim(10)
    assert (row["id"], row["attempt"]) == (head, 2)
    q.on("complete_batch", row["batch_key"])
    assert claims(q) == [second]


@pytest.mark.parametrize("is_waiting", [False, True])
def test_update_message_to_a_later_time_unblocks_the_group(q: Queue, is_waiting: bool) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    if is_waiting:
        q.one("fail", head, q.claim_key(), "busy", 3_600)
    assert update(q, head, run_at=in_time(hours=2)) == CHANGED
    assert claims(q) == [second]
    assert update(q, head, run_at=None) == CHANGED
    assert claims(q) == [head]


def test_update_message_of_the_priority_moves_its_group(q: Queue) -> None:
    q.ordered()
    a1, a2, b1 = (q.send(group_key=group) for group in "aab")
    assert update(q, b1, priority=-1) == CHANGED
    assert [row["id"] for row in q.claim(10)] == [b1, a1]
    assert update(q, a2, priority=-9) == CHANGED
    assert q.claim(10) == []


def test_update_message_of_a_message_behind_an_active_head(q: Queue) -> None:
    q.ordered()
    head, second, third = (q.send(group_key="a") for _ in range(3))
    key = q.claim_key(10)
    assert update(q, second, run_at=in_an_hour()) == CHANGED
    assert update(q, third, body="new") == CHANGED
    assert q.claim(10) == []
    q.on("complete_batch", key)
    assert claims(q) == [third]
    assert update(q, second, run_at=None) == CHANGED
    assert claims(q) == [second] and head not in q.states()


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["{}", " { } "])
def test_update_message_needs_an_option(q: Queue, options: str) -> None:
    id = q.send()
    with q.refused("invalid_argument", "options: "):
        q.on("update_message", id, options)


@pytest.mark.parametrize("name", ["group_key", "dedup_key", "source", "on_conflict", "type"])
def test_update_message_refuses_what_it_cannot_change(q: Queue, name: str) -> None:
    id = q.send()
    known = ("body", "delay_seconds", "headers", "max_attempts", "priority", "run_at")  # each engine has its order
    with q.refused("invalid_argument", f"options: {name} is not known; known are ", *known):
        q.on("update_message", id, json.dumps({name: "x"}))


def test_update_message_takes_either_a_time_or_a_delay(q: Queue) -> None:
    id = q.send()
    with q.refused("invalid_argument", "delay_seconds"):
        update(q, id, run_at=in_an_hour(), delay_seconds=1)
    assert update(q, id, run_at=None, delay_seconds=3_600) == CHANGED
    assert q.stats()["delayed"] == 1


def test_update_message_refuses_a_body_of_null(q: Queue) -> None:
    id = q.send()
    with q.refused("invalid_argument", "body: "):
        update(q, id, body=None)


@pytest.mark.parametrize("headers", ["x", "[]", '{"a":1,"a":2}'])
def test_update_message_refuses_headers_as_sending_does(q: Queue, headers: str) -> None:
    id = q.send()
    with q.refused("invalid_argument", "headers: "):
        update(q, id, headers=headers)


# ---- races ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "ordered", "fair"])
def test_messages_that_are_moved_while_they_are_claimed_are_claimed_once(q: Queue, other: Queue, kind: str) -> None:
    if kind != "plain":
        getattr(q, kind)()
    sent = [q.send(group_key=f"g{n % 5}") for n in range(60)]
    found: list[int] = []
    changed: list[int] = []

    def move() -> None:
        for n, id in enumerate(reversed(sent)):
            [row] = update(other, id, priority=n % 3, run_at=None)
            changed.extend([id] * row["affected"])

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        until(lambda: changed or moving.done(), "a first one is moved")  # else a busy machine claims all before
        while not moving.done():
            found += claims(q)
        moving.result()
    found += claims(q)
    assert sorted(found) == sorted(sent) and q.rows() == []
    assert changed
