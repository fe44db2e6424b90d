"""set_group: one group's own share and limits."""

import time
from collections import Counter
from typing import Any

import pytest
from rowqueue.databases import Row
from support.queues import Queue, in_an_hour

# No token is added while a test runs.
DAY = 86_400
SETTINGS = {"weight": 3, "max_active": 2, "rate": 4, "rate_seconds": 5}


def stored(q: Queue) -> list[Row]:
    """What the table holds for the queue, by group."""
    table = q.can.view.replace("message_state", "queue_group")
    columns = "group_key, weight, max_active, rate, rate_seconds"
    return q.sql(f"SELECT {columns} FROM {table} WHERE type = %s ORDER BY group_key", q.name)


def row(group: str, **settings: int) -> Row:
    return {"group_key": group} | dict.fromkeys(SETTINGS) | settings


def send(q: Queue, groups: str, **options: Any) -> list[int]:
    """A message to each of the groups that the letters name."""
    return [q.send(letter, group_key=letter, **options) for letter in groups]


def claimed(q: Queue, size: int = 20) -> str:
    """The groups of the messages of one claim, sorted."""
    return "".join(sorted(row["body"] for row in q.claim(size)))


def finish(q: Queue) -> None:
    """Complete all that is active."""
    for key in {row["batch_key"] for row in q.rows()} - {None}:
        q.on("complete_batch", key)


# ---- what is stored ------------------------------------------------------------------------------


def test_set_group_stores_the_settings(q: Queue) -> None:
    assert q.call("set_group", "g", **SETTINGS) == [{"known": 0}]
    assert stored(q) == [row("g", **SETTINGS)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_set_group_replaces_all_settings_of_the_group(q: Queue, setting: str) -> None:
    q.call("set_group", "g", **SETTINGS)
    q.call("set_group", "g", **{setting: 1})
    assert stored(q) == [row("g", **{setting: 1})]


def test_set_group_without_settings_removes_those_of_the_group(q: Queue) -> None:
    for group in ("g", "h"):
        q.call("set_group", group, weight=2)
    q.call("set_group", "g")
    assert stored(q) == [row("h", weight=2)]
    q.call("set_group", "g")
    assert stored(q) == [row("h", weight=2)]


def test_set_group_concerns_one_queue_and_one_group(q: Queue) -> None:
    q.call("set_group", "g", weight=2)
    q.named(q.name + "x").call("set_group", "g", weight=3)
    q.call("set_group", "G", weight=4)
    assert [found for found in stored(q) if found["group_key"] == "g"] == [row("g", weight=2)]
    assert [found for found in stored(q) if found["group_key"] == "G"] == [row("G", weight=4)]
    assert stored(q.named(q.name + "x")) == [row("g", weight=3)]


def test_set_group_rolled_back_changes_nothing(q: Queue) -> None:
    q.call("set_group", "g", weight=2)
    [policy] = q.call("list_queues")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.call("set_group", "g", max_active=1)
        q.call("set_group", "h", weight=7)
        raise ZeroDivisionError
    assert stored(q) == [row("g", weight=2)]
    assert q.call("list_queues") == [policy]
    send(q, "gg")
    assert claimed(q) == "gg"


def test_set_group_refused_for_one_setting_changes_none(q: Queue) -> None:
    q.call("set_group", "g", weight=2)
    with q.refused("invalid_argument", "rate_seconds"):
        q.call("set_group", "g", 5, 5, 5, 0)
    assert stored(q) == [row("g", weight=2)]


@pytest.mark.parametrize("text", ["it's", "x'); DROP TABLE queue_group; --", "%", "é", "😀 𝄞", "a\nb", '"', "\\"])
def test_a_hostile_group_has_its_own_settings(q: Queue, text: str) -> None:
    q.call("set_group", text, max_active=1)
    assert stored(q) == [row(text, max_active=1)]
    for group in (text, text, text + "x", text + "x"):
        q.send("b", group_key=group)
    assert sorted(row["group_key"] for row in q.claim(10)) == sorted([text, text + "x", text + "x"])


@pytest.mark.parametrize("setting", [*SETTINGS, "group_key"])
@pytest.mark.parametrize("value", [-1, 1_000_001, -(1 << 40), (1 << 63) - 1])
def test_set_group_refuses_what_is_outside_the_limits(q: Queue, setting: str, value: int) -> None:
    if setting == "group_key":
        for wrong in ("", "x" * 201):
            with q.refused("invalid_argument", "group_key"):
                q.call("set_group", wrong, weight=1)
        return
    with q.refused("invalid_argument", setting):
        q.call("set_group", "g", **{setting: value})
    assert stored(q) == []


def test_two_sessions_set_groups_of_one_queue_one_after_the_other(q: Queue, other: Queue) -> None:
    q.call("set_group", "g", max_active=1)
    other.call("set_group", "h", max_active=1)
    q.call("set_group", "h")
    other.call("set_group", "g", weight=2)
    assert stored(q) == [row("g", weight=2)]


# ---- limits --------------------------------------------------------------------------------------


def test_a_group_has_a_limit_in_a_queue_without_one(q: Queue) -> None:
    q.call("set_group", "a", max_active=1)
    send(q, "aaabbb")
    assert claimed(q) == "abbb"
    assert claimed(q) == ""
    finish(q)
    assert [claimed(q), claimed(q)] == ["a", ""]


def test_a_groups_limit_replaces_that_of_the_queue(q: Queue) -> None:
    q.call("set_queue", group_max_active=2)
    q.call("set_group", "a", max_active=1)
    q.call("set_group", "b", max_active=3)
    q.call("set_group", "c", max_active=0)
    q.call("set_group", "d", weight=9)
    send(q, "abcd" * 5)
    assert claimed(q) == "abbb" + "ccccc" + "dd"


def test_a_groups_rate_replaces_that_of_the_queue(q: Queue) -> None:
    q.call("set_queue", group_rate=2, group_rate_seconds=DAY)
    q.call("set_group", "a", rate=1)
    q.call("set_group", "b", rate=3, rate_seconds=DAY)
    q.call("set_group", "c", rate=0)
    send(q, "abcd" * 5)
    assert claimed(q) == "abbb" + "ccccc" + "dd"
    finish(q)
    assert claimed(q) == ""


def test_a_group_has_a_rate_in_a_queue_without_one(q: Queue) -> None:
    q.call("set_group", "a", rate=2, rate_seconds=DAY)
    send(q, "aaabbb")
    assert claimed(q) == "aabbb"
    finish(q)
    assert claimed(q) == ""


def test_a_limit_can_change_while_messages_wait_for_it(q: Queue) -> None:
    q.call("set_queue", group_max_active=1)
    send(q, "aaaabbbb")
    assert claimed(q) == "ab"
    q.call("set_group", "a", max_active=3)
    assert claimed_in_time(q) == "aa"
    q.call("set_group", "a", max_active=0)
    assert claimed_in_time(q) == "a"
    q.call("set_group", "b", max_active=2)
    assert claimed_in_time(q) == "b"
    q.call("set_group", "b")
    assert claimed(q) == ""


def claimed_in_time(q: Queue) -> str:
    """As `claimed`, but soon: the first claim of a second finds the groups that a change of numbers frees."""
    deadline = time.monotonic() + 10
    while not (found := claimed(q)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_a_rate_can_change_while_messages_wait_for_a_token(q: Queue) -> None:
    q.call("set_group", "a", rate=1, rate_seconds=DAY)
    send(q, "aaa")
    assert [claimed(q), claimed(q)] == ["a", ""]
    q.call("set_group", "a", rate=0)
    found = claimed_in_time(q)
    while len(found) < 2:
        found += claimed_in_time(q)
    assert found == "aa"


@pytest.mark.parametrize("state", ["ready", "delayed", "active"])
def test_the_first_limit_of_a_queue_needs_it_to_be_empty(q: Queue, state: str) -> None:
    send(q, "a", run_at=in_an_hour() if state == "delayed" else None)
    if state == "active":
        q.claim()
    with q.refused("queue_not_empty", q.name):
        q.call("set_group", "a", max_active=1)
    assert stored(q) == []
    q.call("set_group", "a", weight=2)
    q.call("set_group", "a", max_active=0, rate=0, rate_seconds=9)
    assert stored(q) == [row("a", max_active=0, rate=0, rate_seconds=9)]


def test_the_first_limit_may_come_with_dead_and_archived_messages(q: Queue) -> None:
    q.archived()
    send(q, "aaa")
    [first] = q.claim()
    q.on("complete_batch", first["batch_key"])
    for message in q.claim(5):
        q.on("dead_letter", message["id"], message["batch_key"], "no")
    q.call("set_group", "a", max_active=1)
    assert q.count("redrive_all") == 2
    assert claimed(q) == "a"


def test_the_last_limit_can_be_removed_while_messages_wait(q: Queue) -> None:
    q.call("set_group", "a", max_active=1)
    send(q, "aaabb")
    assert claimed(q) == "abb"
    q.call("set_group", "a")
    assert stored(q) == []
    assert claimed_in_time(q) == "aa"
    finish(q)
    assert q.call("set_queue", lease_seconds=7)[0]["lease_seconds"] == 7
    send(q, "aab")
    assert claimed(q) == "aab"


def test_an_empty_queue_whose_last_limit_was_removed_may_be_a_ring(q: Queue) -> None:
    q.call("set_group", "a", max_active=1)
    q.call("set_group", "a")
    sent = send(q.ring(), "aab")
    assert [row["id"] for row in q.call("claim_wraparound", 5)] == sent


def test_a_queue_keeps_its_groups_limits_when_its_own_are_removed(q: Queue) -> None:
    q.call("set_queue", group_max_active=2)
    q.call("set_group", "a", max_active=1)
    send(q, "aaaabbbb")
    q.call("set_queue", group_max_active=0)
    found = claimed(q)
    while len(found) < 5:
        found += claimed_in_time(q)
    assert Counter(found) == {"a": 1, "b": 4}
    q.call("set_queue", lease_seconds=7, max_attempts=3)
    assert claimed(q) == ""


def test_an_ordered_queue_has_one_place_per_group(q: Queue) -> None:
    q.ordered()
    with q.refused("invalid_argument", "max_active"):
        q.call("set_group", "a", max_active=2)
    q.call("set_group", "a", max_active=1)
    q.call("set_group", "b", max_active=0)
    send(q, "aabb")
    assert claimed(q) == "ab"
    assert claimed(q) == ""


def test_a_queue_whose_group_has_more_places_cannot_be_ordered(q: Queue) -> None:
    q.call("set_group", "a", max_active=2)
    with q.refused("invalid_argument", "max_active"):
        q.ordered()
    q.call("set_group", "a", max_active=1)
    q.ordered()


def test_an_ordered_queue_may_give_a_group_a_rate(q: Queue) -> None:
    q.ordered().call("set_group", "a", rate=1, rate_seconds=DAY)
    send(q, "aabb")
    assert claimed(q) == "ab"
    finish(q)
    assert claimed(q) == "b"


@pytest.mark.parametrize("limit", ["max_active", "rate"])
def test_a_ring_gives_no_group_a_limit(q: Queue, limit: str) -> None:
    with q.ring().refused("invalid_argument", "ring", "limits per group"):
        q.call("set_group", "a", **{limit: 1})
    q.call("set_group", "a", 5, **{limit: 0})
    q.call("set_queue", ring=0)
    q.call("set_group", "a", **{limit: 1})
    with q.refused("invalid_argument", "ring", "limits per group"):
        q.ring()


@pytest.mark.parametrize("way", ["claim_batch", "take_batch", "finish_batch"])
def test_every_kind_of_claim_knows_a_groups_limit(q: Queue, way: str) -> None:
    q.call("set_group", "a", max_active=1)
    if way == "finish_batch":
        q.send("first", priority=-1)
        key = q.claim_key()
        send(q, "aaab")
        rows = q.on(way, key, None, 10)
    else:
        send(q, "aaab")
        with q.session.transaction():
            rows = q.call(way, 10)
    assert "".join(sorted(row["body"] for row in rows)) == "ab"


def test_wait_for_message_sees_a_new_place_of_a_group(q: Queue) -> None:
    q.call("set_group", "a", max_active=1)
    send(q, "aa")
    assert [claimed(q), claimed(q)] == ["a", ""]
    q.call("set_group", "a", max_active=2)
    deadline = time.monotonic() + 10
    while not q.call("wait_for_message", 0)[0]["ready"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert claimed_in_time(q) == "a"


def test_a_redriven_message_waits_for_its_groups_place(q: Queue) -> None:
    q.call("set_group", "a", max_active=1)
    send(q, "aa")
    [first] = q.claim(5)
    q.on("dead_letter", first["id"], first["batch_key"], "no")
    assert claimed(q) == "a"
    q.count("redrive_all")
    assert claimed(q) == ""
    finish(q)
    assert claimed(q) == "a"
