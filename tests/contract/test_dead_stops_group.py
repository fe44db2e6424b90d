"""dead_stops_group: a dead letter stops its ordered group until it is redriven or deleted."""

import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest
from queues import Queue, call
from rowqueue.databases import QueueError

STOPS = {"ordered": 1, "dead_stops_group": 1}


@pytest.fixture(autouse=True)
def no_dead_letters(q: Queue) -> Iterator[None]:
    """queue_health counts the stopped groups of all queues."""
    yield
    q.call("purge", "E")


@pytest.fixture
def stops(q: Queue) -> Queue:
    q.call("set_queue", **STOPS)
    return q


def send(q: Queue, *bodies: str) -> list[int]:
    """A message per body; the letter is its group, and `-` is none."""
    return [q.call("send_message", body, group_key=None if body[0] == "-" else body[0])[0]["id"] for body in bodies]


def claim(q: Queue, size: int = 10) -> list[dict[str, Any]]:
    return q.claim(size)


def bodies(rows: list[dict[str, Any]]) -> list[str]:
    return [row["body"] for row in rows]


def die(q: Queue, *only: str) -> dict[str, int]:
    """Claim and dead-letter messages, or those with these bodies; complete the others."""
    rows = claim(q)
    for row in rows:
        if not only or row["body"] in only:
            q.one("dead_letter", row["id"], row["batch_key"], "no")
        else:
            q.one("complete", row["id"], row["batch_key"])
    return {row["body"]: row["id"] for row in rows}


def drain(q: Queue) -> list[str]:
    """The bodies of all messages that can be claimed, in the order of the claims."""
    found = []
    while rows := claim(q):
        found += bodies(rows)
        q.one("complete_batch", rows[0]["batch_key"])
    return found


def health(q: Queue, name: str) -> dict[str, Any]:
    [row] = [row for row in call(q.session, "queue_health") if row["name"] == name]
    return row


GONE = {
    "redrive": lambda q, id: q.one("redrive", id),
    "redrive_all": lambda q, id: q.count("redrive_all"),
    "cancel": lambda q, id: q.one("cancel", id),
    "purge": lambda q, id: q.count("purge", "E"),
}
gone = pytest.mark.parametrize("gone", GONE)
LIMITS = {"group_rate": 1_000, "max_active": 50, "on_complete": "archive"}
more = pytest.mark.parametrize("more", [{}, {"fair": 1}, LIMITS, {"fair": 1, **LIMITS}], ids=str)


@more
@gone
def test_a_dead_letter_stops_its_group_until_it_is_gone(stops: Queue, gone: str, more: dict[str, Any]) -> None:
    stops.call("set_queue", **more)
    send(stops, "a1", "a2", "b1", "b2")
    died = die(stops, "a1")
    assert bodies(claim(stops)) == ["b2"]
    assert claim(stops) == []
    send(stops, "a3")
    assert claim(stops) == []
    assert GONE[gone](stops, died["a1"]) == 1
    assert drain(stops) == (["a1", "a2", "a3"] if "redrive" in gone else ["a2", "a3"])


def test_without_the_option_the_group_continues(q: Queue) -> None:
    q.call("set_queue", ordered=1)
    send(q, "a1", "a2")
    die(q, "a1")
    assert drain(q) == ["a2"]


def test_messages_without_a_group_key_are_not_stopped(stops: Queue) -> None:
    send(stops, "-1", "-2")
    die(stops, "-1")
    assert drain(stops) == ["-2"]


@more
@gone
def test_turning_it_on_stops_groups_of_older_dead_letters_until_all_are_gone(
    q: Queue, gone: str, more: dict[str, Any]
) -> None:
    q.call("set_queue", ordered=1, **more)
    send(q, "a1", "a2", "a3", "b1", "-1", "-2")
    died = die(q, "a1", "b1", "-1")
    died |= die(q, "a2")
    [policy] = q.call("set_option", "dead_stops_group", "1")
    assert policy["dead_stops_group"] == 1
    assert drain(q) == []
    if gone in ("redrive", "cancel"):
        assert GONE[gone](q, died["a2"]) == 1
        assert drain(q) == []
        assert GONE[gone](q, died["a1"]) == 1
        assert drain(q) == (["a1", "a2", "a3"] if gone == "redrive" else ["a3"])
        assert q.one(gone, died["b1"]) == 1
    else:
        arguments = ["E", None] if gone == "purge" else [None]
        assert q.call(gone, *arguments, 1)[0]["affected"] == 1
        assert GONE[gone](q, 0) == 3
    assert health(q, "stopped_groups")["measured"] == 0
    drain(q)
    assert call(q.session, "queue_stats", q.name)[0]["ready"] == 0


@pytest.mark.parametrize("before", [0, 1])
def test_it_can_change_together_with_fair(q: Queue, before: int) -> None:
    q.call("set_queue", ordered=1, dead_stops_group=before, fair=before)
    send(q, "a1", "a2", "b1")
    die(q, "a1")
    q.call("set_queue", dead_stops_group=1 - before, fair=1 - before)
    assert bodies(claim(q)) == ([] if before == 0 else ["a2"])


def test_it_stops_a_group_whose_next_message_is_active(q: Queue) -> None:
    q.call("set_queue", ordered=1)
    send(q, "a1", "a2", "a3")
    died = die(q, "a1")
    [active] = claim(q)
    q.call("set_queue", dead_stops_group=1)
    q.one("complete", active["id"], active["batch_key"])
    assert claim(q) == []
    q.one("redrive", died["a1"])
    assert drain(q) == ["a1", "a3"]


@pytest.mark.parametrize("options", [{"dead_stops_group": 0}, {"dead_stops_group": None}], ids=str)
def test_turning_it_off_frees_the_groups(stops: Queue, options: dict[str, Any]) -> None:
    send(stops, "a1", "a2", "b1", "b2")
    die(stops)
    assert claim(stops) == []
    assert stops.call("set_queue", **options)[0]["dead_stops_group"] == 0
    assert sorted(drain(stops)) == ["a2", "b2"]
    assert stops.call("redrive_all")[0]["affected"] == 2
    assert sorted(drain(stops)) == ["a1", "b1"]


def test_a_queue_that_stops_being_ordered_frees_its_dead_letters(stops: Queue) -> None:
    send(stops, "a1", "a2")
    died = die(stops, "a1")
    stops.call("purge", "N")
    stops.call("set_queue", ordered=0, dead_stops_group=0)
    send(stops, "a3", "a4")
    assert sorted(drain(stops)) == ["a3", "a4"]
    stops.call("set_queue", **STOPS)
    send(stops, "a5")
    assert claim(stops) == []
    stops.one("redrive", died["a1"])
    assert drain(stops) == ["a1", "a5"]


def test_it_needs_an_ordered_queue(q: Queue) -> None:
    for options in ({"dead_stops_group": 1}, {"dead_stops_group": 1, "group_max_active": 1}):
        with pytest.raises(QueueError, match="dead_stops_group: must be 0 on a queue that is not ordered") as caught:
            q.call("set_queue", **options)
        assert caught.value.number == 50002
    q.call("set_queue", **STOPS)
    with pytest.raises(QueueError, match="dead_stops_group") as caught:
        q.call("set_queue", ordered=0)
    assert caught.value.number == 50002
    assert q.call("list_queues")[0]["dead_stops_group"] == 1


@pytest.mark.parametrize("way", ["last attempt", "outcome", "count_attempt", "expired lease"])
def test_each_way_to_die_stops_the_group(stops: Queue, way: str) -> None:
    stops.call("set_queue", max_attempts=1)
    dead, later = send(stops, "a1", "a2")
    if way == "count_attempt":
        assert stops.one("count_attempt", dead, "no", None, 1) == "E"
    elif way == "last attempt":
        assert stops.one("fail", dead, stops.claim_key(), "no") == "E"
    elif way == "outcome":
        assert stops.on("finish_batch", stops.claim_key(), f'{{"id":{dead},"error":"no"}}', 5) == []
    else:
        stops.claim_expired()
        stops.call("rescue_expired")
    assert stops.states() == {dead: "E", later: "N"}
    with stops.unchanged():
        assert claim(stops) == []
        assert stops.on("claim_any", stops.name, 5) == []
        assert stops.call("get_message") == []
        assert stops.one("count_attempt", later, "no") is None
        with stops.session.transaction():
            assert stops.call("take_batch", 5) == []
    # A ticket of a blocked group may remain: then the queue seems to be ready.
    assert stops.call("wait_for_message")[0]["reason"] in {"blocked", "ready"}
    stops.one("redrive", dead)
    assert drain(stops) == ["a1", "a2"]


def test_queue_health_names_a_stopped_group_and_does_not_call_it_stuck(stops: Queue) -> None:
    assert health(stops, "stopped_groups") | {"unit": ""} == {
        "name": "stopped_groups",
        "verdict": "ok",
        "measured": 0,
        "unit": "",
        "detail": "none",
    }
    send(stops, "a1", "a2", "b1")
    died = die(stops)
    found = health(stops, "stopped_groups")
    assert (found["verdict"], found["measured"]) == ("warn", 2)
    assert all(
        told in found["detail"] for told in (f"dead letter {died['a1']}", "'a'", stops.name, "redrive", "cancel")
    )
    assert health(stops, "stuck_groups")["measured"] == 0
    stops.call("rescue_expired")
    assert claim(stops) == []
    stops.call("redrive_all")
    assert health(stops, "stopped_groups")["verdict"] == "ok"


def test_its_group_can_be_changed_while_it_stands(stops: Queue) -> None:
    dead, second, third = send(stops, "a1", "a2", "a3")
    die(stops)
    assert stops.on("update_message", dead, '{"priority": 1}')[0] == {"affected": 0, "state": "E"}
    assert stops.on("update_message", second, '{"body": "a2!", "delay_seconds": 0}')[0]["affected"] == 1
    assert stops.one("cancel", third) == 1
    assert claim(stops) == []
    stops.one("redrive", dead)
    assert drain(stops) == ["a1", "a2!"]


def test_a_redriven_message_that_waits_for_its_retry_keeps_the_group_waiting(stops: Queue) -> None:
    dead, *_ = send(stops, "a1", "a2")
    die(stops)
    stops.one("redrive", dead)
    assert stops.one("fail", dead, stops.claim_key(), "no", 3600) == "N"
    assert claim(stops) == []
    stops.one("cancel", dead)
    assert drain(stops) == ["a2"]


@pytest.mark.parametrize("before", [0, 1])
def test_a_change_waits_for_a_death_in_an_open_transaction(q: Queue, other: Queue, before: int) -> None:
    q.call("set_queue", ordered=1, dead_stops_group=before)
    dead, _ = send(q, "a1", "a2")
    key = q.claim_key()
    with other.session.transaction():
        other.one("dead_letter", dead, key, "no")
        changing = Thread(target=q.call, args=("set_queue",), kwargs={"dead_stops_group": 1 - before})
        changing.start()
        time.sleep(0.3)
    changing.join(20)
    assert q.states()[dead] == "E" and q.call("list_queues")[0]["dead_stops_group"] == 1 - before
    assert drain(q) == ([] if before == 0 else ["a2"])
    assert health(q, "stuck_groups")["measured"] == 0


@pytest.mark.parametrize("before", [0, 1])
def test_a_death_waits_for_a_change_in_an_open_transaction(q: Queue, other: Queue, before: int) -> None:
    q.call("set_queue", ordered=1, dead_stops_group=before)
    dead, _ = send(q, "a1", "a2")
    key = q.claim_key()
    with other.session.transaction():
        other.call("set_queue", dead_stops_group=1 - before)
        dying = Thread(target=q.one, args=("dead_letter", dead, key, "no"))
        dying.start()
        time.sleep(0.3)
    dying.join(20)
    assert q.states()[dead] == "E"
    assert drain(q) == ([] if before == 0 else ["a2"])
    assert health(q, "stuck_groups")["measured"] == 0


@pytest.mark.parametrize("end", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("gone", ["redrive", "cancel"])
def test_turning_it_on_waits_for_a_dead_letter_that_is_being_redriven_or_deleted(
    q: Queue, other: Queue, gone: str, end: bool
) -> None:
    q.call("set_queue", ordered=1)
    send(q, "a1", "a2")
    died = die(q, "a1")
    with suppress(ZeroDivisionError), other.session.transaction():
        assert other.one(gone, died["a1"]) == 1
        changing = Thread(target=q.call, args=("set_queue",), kwargs={"dead_stops_group": 1})
        changing.start()
        time.sleep(0.3)
        if not end:
            raise ZeroDivisionError
    changing.join(20)
    assert q.call("list_queues")[0]["dead_stops_group"] == 1
    if end:
        assert drain(q) == (["a1", "a2"] if gone == "redrive" else ["a2"])
    else:
        assert drain(q) == []
        assert q.one(gone, died["a1"]) == 1
        assert drain(q) == (["a1", "a2"] if gone == "redrive" else ["a2"])
    assert health(q, "stuck_groups")["measured"] == 0
