"""Fair queues: within a priority, the groups take turns."""

from collections import Counter
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from rowqueue.databases import Database, Row, Session
from support.queues import LONG_AGO, Queue, ids, in_an_hour, in_time

# No token is added while a test runs.
DAY = 86_400
# Every way to claim up to `size` messages of a queue; a message that it returns is not claimed again.
WAYS: dict[str, Callable[[Queue, int], list[Row]]] = {
    "claim_batch": lambda q, size: q.claim(size),
    "take_batch": lambda q, size: q.call("take_batch", size),
    "get_message": lambda q, size: [row for _ in range(size) for row in q.call("get_message")],
    "finish_batch": lambda q, size: q.on("finish_batch", _held(q), None, size),
}


def _held(q: Queue) -> Any:
    """The batch key of a message that is ahead of all others."""
    q.send("first", priority=-32_768)
    [row] = q.claim()
    assert row["body"] == "first"
    return row["batch_key"]


def send(q: Queue, groups: str, **options: Any) -> None:
    """A message to each of the groups that the letters name, in this order; the body says its group and its number."""
    count: Counter[str] = Counter()
    for letter in groups:
        count[letter] += 1
        q.send(f"{letter}{count[letter]}", group_key=None if letter == "-" else letter, **options)


def bodies(rows: list[Row]) -> str:
    return " ".join(row["body"] for row in rows)


def turns(q: Queue, *sizes: int) -> list[str]:
    """What claims of these sizes return, one after the other."""
    return [bodies(q.claim(size)) for size in sizes]


# ---- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_groups_take_turns(q: Queue, way: str) -> None:
    send(q.fair(), "aaaaabcc")
    assert bodies(WAYS[way](q, 10)) == "a1 b1 c1 a2 c2 a3 a4 a5"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_a_claim_continues_after_the_group_where_the_last_one_stopped(q: Queue, size: int) -> None:
    send(q.fair(), "aaaaabcc")
    expected = ["a1", "b1", "c1", "a2", "c2", "a3", "a4", "a5"]
    assert turns(q, *[size] * 8) == [" ".join(expected[n : n + size]) for n in range(0, 8 * size, size)]


def test_a_single_message_waits_one_round_after_a_group_with_very_many(q: Queue) -> None:
    q.fair().is_big = True
    for _ in range(5):
        q.call("send_batch", "\n".join(["many"] * 1_000))
    assert [row["body"] for row in q.claim(3)] == ["many"] * 3
    q.send("one", group_key="small")
    assert [row["body"] for row in q.claim(3)] == ["one", "many", "many"]


def test_messages_without_a_group_key_are_one_group_and_the_first(q: Queue) -> None:
    send(q.fair(), "bb--aa")
    assert turns(q, 10) == ["-1 a1 b1 -2 a2 b2"]


def test_the_messages_of_a_group_come_in_order_of_their_ids(q: Queue) -> None:
    q.fair().send("a1", group_key="a")
    q.send("a2", group_key="a", run_at=LONG_AGO)
    q.send("b1", group_key="b", run_at=LONG_AGO)
    assert turns(q, 10) == ["a1 b1 a2"]


def test_a_more_urgent_priority_comes_first_and_its_groups_take_turns(q: Queue) -> None:
    send(q.fair(), "ab")
    send(q, "aab", priority=-1)
    send(q, "b", priority=5)
    assert turns(q, 4, 10) == ["a1 b1 a2 a1", "b1 b1"]
    send(q, "ab")
    send(q, "cd", priority=-1)
    assert turns(q, 3, 3) == ["c1 d1 a1", "b1"]


def test_each_priority_has_a_position_of_its_own(q: Queue) -> None:
    send(q.fair(), "abcabc")
    assert turns(q, 2) == ["a1 b1"]
    send(q, "abc", priority=-1)
    assert turns(q, 2, 3) == ["a1 b1", "c1 c1 a2"]


@pytest.mark.parametrize("priority", [-32_768, -1, 0, 9_999, 32_767])
def test_groups_take_turns_in_every_priority(q: Queue, priority: int) -> None:
    send(q.fair(), "aaab", priority=priority)
    q.send("other", group_key="a", priority=min(priority + 1, 32_767))
    assert turns(q, 2, 1, 1, 1) == ["a1 b1", "a2", "a3", "other"]


def test_a_new_group_gets_its_turn_in_the_running_round(q: Queue) -> None:
    send(q.fair(), "aaccee")
    assert turns(q, 2) == ["a1 c1"]
    send(q, "bd")
    assert turns(q, 5) == ["d1 e1 a2 b1 c2"]


def test_the_group_at_the_position_may_be_gone(q: Queue) -> None:
    send(q.fair(), "abcabc")
    assert turns(q, 2) == ["a1 b1"]
    assert sum(q.on("cancel", row["id"])[0]["affected"] for row in q.call("peek") if row["group_key"] == "b") == 1
    assert turns(q, 5) == ["c1 a2 c2"]


def test_an_empty_queue_forgets_nothing(q: Queue) -> None:
    send(q.fair(), "ab")
    assert turns(q, 1, 5, 5) == ["a1", "b1", ""]
    send(q, "abc")
    assert turns(q, 1) == ["c1"]


def test_names_that_are_alike_are_different_groups(q: Queue) -> None:
    names = ["a", "A", "à", "aa", "a.", "a'", "0", "10", "2"]
    for name in names * 2:
        q.fair().send(name, group_key=name)
    first, second = q.claim(len(names)), q.claim(len(names))
    assert [sorted(row["body"] for row in rows) for rows in (first, second)] == [sorted(names)] * 2
    assert bodies(first) == bodies(second)


def test_a_group_key_may_begin_like_the_stored_form_of_a_priority(q: Queue) -> None:
    for name in ("32768", "00000", "65535a", "32767a"):
        for n in "12":
            q.fair().send(name + "/" + n, group_key=name)
    q.send("urgent", group_key="x", priority=-1)
    rows = q.claim(9)
    assert rows[0]["body"] == "urgent"
    assert [row["body"][-1] for row in rows[1:]] == ["1"] * 4 + ["2"] * 4


@pytest.mark.parametrize("name", ["x" * 200, "é" * 200, "😀" * 200, "\n" * 200])
def test_groups_with_long_names_take_turns(q: Queue, name: str) -> None:
    for n in range(4):
        q.fair().send(str(n), group_key=name[:-1] + "ab"[n % 2])
    assert sorted(row["body"] for row in q.claim(2)) == ["0", "1"]
    assert sorted(row["body"] for row in q.claim(2)) == ["2", "3"]


# ---- positions, transactions, other sessions -----------------------------------------------------


def test_the_position_is_one_for_all_sessions(q: Queue, other: Queue) -> None:
    send(q.fair(), "aabbcc")
    assert turns(q, 1) + turns(other, 1) + turns(q, 2) == ["a1", "b1", "c1 a2"]


def test_a_rolled_back_claim_keeps_the_old_position(q: Queue) -> None:
    send(q.fair(), "aabbcc")
    assert turns(q, 1) == ["a1"]
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert turns(q, 1) == ["b1"]
        raise ZeroDivisionError
    assert turns(q, 5) == ["b1 c1 a2 b2 c2"]


def test_claims_at_the_same_time_serve_different_groups(q: Queue, other: Queue) -> None:
    send(q.fair(), "aaabbbccc")
    with q.session.transaction():
        assert turns(q, 1) == ["a1"]
        assert turns(other, 2) == ["b1 c1"]


def test_a_claim_takes_all_that_others_have_not_locked(q: Queue, other: Queue) -> None:
    send(q.fair(), "aaaab")
    with q.session.transaction():
        assert turns(q, 1) == ["a1"]
        rows = other.claim(10)
        assert rows[0]["body"] == "b1" and sorted(row["body"] for row in rows) == ["a2", "a3", "a4", "b1"]


def test_claims_at_the_same_time_share_a_single_group(q: Queue, other: Queue) -> None:
    send(q.fair(), "aaaaaa")
    with q.session.transaction():
        assert turns(q, 2) == ["a1 a2"]
        assert sorted(row["body"] for row in other.claim(10)) == ["a3", "a4", "a5", "a6"]


def test_positions_leave_few_rows(q: Queue, sql: Callable[..., list[dict[str, Any]]]) -> None:
    """A claim deletes the positions that it replaces."""
    q.fair()
    for n in range(40):
        send(q, "abc", priority=n % 2)
        q.on("complete_batch", q.claim_key(3))
    table = q.can.view.replace("message_state", "ring")
    assert len(sql(f"SELECT type FROM {table} WHERE type = %s", q.name)) <= 8


# ---- what returns --------------------------------------------------------------------------------


def test_a_failed_message_comes_back_in_its_groups_turn(q: Queue) -> None:
    send(q.fair(), "aabbcc")
    [row] = q.claim()
    q.on("fail", row["id"], row["batch_key"], "no", 0)
    assert turns(q, 10) == ["b1 c1 a1 b2 c2 a2"]


def test_a_released_batch_and_an_expired_lease_come_back_in_their_groups_turns(q: Queue) -> None:
    send(q.fair(), "aabb")
    q.on("release_batch", q.claim_key(2))
    assert turns(q, 1) == ["a1"]
    q.expired_key(1)
    assert q.count("rescue_expired") == 1
    assert turns(q, 10) == ["a2 b1 b2"]


def test_a_redriven_message_is_claimed_within_the_round(q: Queue) -> None:
    send(q.fair(), "abb")
    [dead] = q.claim()
    assert q.one("dead_letter", dead["id"], dead["batch_key"], "no") == "E"
    assert turns(q, 1) == ["b1"]
    assert q.count("redrive_all") == 1
    assert turns(q, 2) == ["a1 b2"]


def test_a_delayed_message_joins_its_group_when_it_is_due(q: Queue) -> None:
    send(q.fair(), "bbb")
    q.send("a1", group_key="a", run_at=in_an_hour(), dedup_key="d")
    assert turns(q, 2) == ["b1 b2"]
    q.send("a1", run_at=LONG_AGO, dedup_key="d", on_conflict="replace")
    assert turns(q, 5) == ["a1 b3"]


def test_a_retry_that_waits_is_claimed_in_its_groups_turn(q: Queue) -> None:
    send(q.fair(), "ab")
    [row] = q.claim()
    q.on("fail", row["id"], row["batch_key"], "no", 3_600)
    assert turns(q, 5) == ["b1"]
    assert q.stats()["delayed"] == 1


def test_a_replaced_message_moves_to_its_new_priority(q: Queue) -> None:
    q.fair().send("old", group_key="a", dedup_key="d")
    send(q, "b")
    q.send("new", dedup_key="d", priority=-1, on_conflict="replace")
    assert turns(q, 1, 1) == ["new", "b1"]


def test_cancelled_and_purged_messages_are_gone(q: Queue) -> None:
    send(q.fair(), "aabb")
    assert q.one("cancel", q.call("peek")[0]["id"]) == 1
    assert turns(q, 1) in (["a1"], ["a2"])
    assert q.count("purge", "N") == 2
    assert q.claim(10) == [] and q.stats()["ready"] == 0


def test_sends_of_every_kind_take_part(q: Queue) -> None:
    q.fair()
    topic = "x" + q.name.rpartition(".")[2]
    q.on("bind_topic", topic, q.name)
    q.call("send", "-1")
    q.call("send_batch", "-2\n-3")
    q.on("publish_with", topic, "t1", group_key="t")
    send(q, "a")
    assert turns(q, 10) == ["-1 a1 t1 -2 -3"]
    q.on("unbind_topic", None, q.name)


def test_a_failed_take_is_counted(q: Queue) -> None:
    send(q.fair(), "ab")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        [row] = q.call("take_batch", 1)
        raise ZeroDivisionError
    assert q.one("count_attempt", row["id"], "no", 0) == "N"
    assert q.attempts()[row["id"]] == 1
    assert sorted(row["body"] for row in q.claim(5)) == ["a1", "b1"]


# ---- weights -------------------------------------------------------------------------------------


def test_a_group_gets_its_weight_per_turn(q: Queue) -> None:
    q.fair().call("set_group", "b", 3)
    send(q, "aaabbbbbccc")
    assert turns(q, 20) == ["a1 b1 b2 b3 c1 a2 b4 b5 c2 a3 c3"]


def test_a_weight_counts_with_claims_of_one_message(q: Queue) -> None:
    """Over claims of any size a group gets its share."""
    q.fair().call("set_group", "b", 3)
    send(q, "a" * 12 + "b" * 12)
    first = [q.claim()[0]["body"][0] for _ in range(12)]
    assert Counter(first) == {"a": 3, "b": 9}


@pytest.mark.level(3)
@pytest.mark.parametrize("first", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("groups", ["b" * 12, "a" + "b" * 12, "ab" * 7, "abbc" * 4])
def test_a_claim_that_begins_in_the_middle_of_a_turn_returns_each_message_once(
    q: Queue, first: int, groups: str
) -> None:
    q.fair().call("set_group", "b", 4)
    send(q, groups)
    expected: list[str] = []
    left = Counter(groups)
    while left.total():
        for letter in sorted(left):
            for _ in range(min(4 if letter == "b" else 1, left[letter])):
                left[letter] -= 1
                expected.append(f"{letter}{groups.count(letter) - left[letter]}")
    assert [row["body"] for size in (first, 3, 20) for row in q.claim(size)] == expected


def test_a_weight_applies_at_once_and_to_messages_that_wait(q: Queue) -> None:
    send(q.fair(), "a" * 9 + "b" * 9)
    assert turns(q, 4) == ["a1 b1 a2 b2"]
    q.call("set_group", "a", 2)
    assert turns(q, 6) == ["a3 a4 b3 a5 a6 b4"]
    q.call("set_group", "a")
    assert turns(q, 4) == ["a7 b5 a8 b6"]


def test_a_round_ends_in_the_turn_with_which_it_began(q: Queue) -> None:
    """A claim that continues the turn of a group comes around to it again."""
    q.fair().call("set_group", "b", 3)
    send(q, "b" * 9)
    assert turns(q, 1, 10) == ["b1", "b2 b3 b4 b5 b6 b7 b8 b9"]
    send(q, "b" * 8 + "c")
    assert turns(q, 2, 10) == ["c1 b1", "b2 b3 b4 b5 b6 b7 b8"]


def _finished(q: Queue, size: int) -> list[Row]:
    """The messages of the next batch; those that are active are completed."""
    key = next((row["batch_key"] for row in q.rows("state, batch_key") if row["state"] == "A"), None)
    return q.on("finish_batch", key, None, size) if key else q.claim(size)


def _completed(q: Queue, size: int) -> list[Row]:
    rows = q.claim(size)
    q.on("complete_batch", rows[0]["batch_key"])
    return rows


FINISHING_WAYS: dict[str, Callable[[Queue, int], list[Row]]] = {
    "claim_batch": _completed,
    "finish_batch": _finished,
    "take_batch": WAYS["take_batch"],
}
# A claim continues the turn with which the last one ended. An ordered queue has one message of a group in each claim.
WEIGHTED: dict[tuple[str, int], str] = {
    ("ordered", 1): "a b b b c d e a b b b c d",
    ("limited", 1): "a b b b c d e a b b b c d",
    ("ordered", 3): "abc dea bcd eab bcd eab bcd",
    ("limited", 3): "abb bcd eab bbc dea bbb cde",
}


@pytest.mark.parametrize("way", FINISHING_WAYS)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("kind", ["ordered", "limited"])
def test_a_weight_counts_in_a_queue_with_order_or_limits_per_group(q: Queue, kind: str, size: int, way: str) -> None:
    q.fair().call("set_queue", **({"ordered": 1} if kind == "ordered" else {"group_max_active": 5}))
    q.call("set_group", "a", 1)
    q.call("set_group", "b", 3)
    send(q, "abcde" * 12)
    expected = WEIGHTED[kind, size]
    found = [FINISHING_WAYS[way](q, size) for _ in expected.split()]
    assert " ".join("".join(row["group_key"] for row in rows) for rows in found) == expected
    for letter in "abcde":
        numbers = [int(row["body"][1:]) for rows in found for row in rows if row["group_key"] == letter]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_weight_has_no_effect_in_a_queue_that_is_not_fair(q: Queue) -> None:
    q.call("set_group", "b", 100)
    send(q, "aabb")
    assert turns(q, 4) == ["a1 a2 b1 b2"]


# ---- fair with order and limits ------------------------------------------------------------------


def test_a_fair_ordered_queue_takes_one_of_each_group_in_turn(q: Queue) -> None:
    q.ordered().fair()
    send(q, "aaabbc")
    first = q.claim(2)
    assert bodies(first) == "a1 b1"
    assert turns(q, 5) == ["c1"]
    q.on("complete_batch", first[0]["batch_key"])
    assert sorted(turns(q, 5)[0].split()) == ["a2", "b2"]


def test_a_fair_queue_with_limits_per_group_takes_turns_within_them(q: Queue) -> None:
    q.fair().call("set_queue", group_max_active=2)
    send(q, "aaaaabbbc")
    rows = q.claim(10)
    assert sorted(row["body"] for row in rows) == ["a1", "a2", "b1", "b2", "c1"]
    assert {row["body"] for row in rows[:3]} == {"a1", "b1", "c1"}
    assert q.claim(10) == []
    q.on("complete_batch", rows[0]["batch_key"])
    assert sorted(row["body"] for row in q.claim(10)) == ["a3", "a4", "b3"]


@pytest.mark.parametrize("most", [1, 2])
def test_a_take_of_a_fair_queue_has_no_more_of_a_group_than_a_claim(q: Queue, most: int) -> None:
    """Its rounds count together, also with a weight and over several priorities."""
    q.fair().call("set_queue", **({"ordered": 1} if most == 1 else {"group_max_active": most}))
    q.call("set_group", "a", 3)
    send(q, "aaaabb-")
    send(q, "ab", priority=1)
    # Then the next round begins within the turn of a group.
    left = Counter(a=5, b=3) + Counter([""])
    [row] = q.call("take_batch", 1)
    left[row["group_key"] or ""] -= 1
    while left.total():
        taken = Counter(row["group_key"] or "" for row in q.call("take_batch", 20))
        assert set(taken) == {group for group, count in left.items() if count}
        assert max(taken.values()) <= most
        left -= taken
    assert q.call("take_batch", 20) == []


def test_groups_of_a_fair_ordered_queue_take_turns(q: Queue) -> None:
    """A group with many messages, whose finishes issue ticket after ticket, does not overtake those that wait."""
    q.ordered().fair()
    send(q, "a" * 6 + "bcd" * 2)
    served = []
    while rows := q.claim():
        served.append(rows[0]["body"])
        q.on("complete_batch", rows[0]["batch_key"])
    assert " ".join(served) == "a1 b1 c1 d1 a2 b2 c2 d2 a3 a4 a5 a6"


@pytest.mark.parametrize("limit", ["max_active", "rate"])
def test_a_fair_queue_with_a_limit_serves_its_groups_in_turn(q: Queue, limit: str) -> None:
    q.call("set_queue", fair=1, **{limit: 3}, **({"rate_seconds": DAY} if limit == "rate" else {}))
    send(q, "aaabbb")
    assert turns(q, 2, 10, 10) == ["a1 b1", "a2", ""]


def test_a_paused_fair_queue_returns_nothing_and_keeps_its_position(q: Queue) -> None:
    send(q.fair(), "aabb")
    assert turns(q, 1) == ["a1"]
    q.call("pause")
    with q.unchanged():
        assert q.claim(10) == []
    q.call("resume")
    assert turns(q, 3) == ["b1 a2 b2"]


def test_completed_messages_of_a_fair_queue_are_archived(q: Queue) -> None:
    send(q.archived().fair(), "aab")
    rows = q.claim(2)
    q.on("set_result", rows[0]["id"], rows[0]["batch_key"], "done")
    assert q.one("complete_batch", rows[0]["batch_key"]) == 2
    assert q.on("get_result", rows[0]["id"])[0]["result"] == "done"
    assert sorted(q.states().values()) == ["C", "C", "N"]


def test_wait_for_message_sees_the_messages_of_a_fair_queue(q: Queue) -> None:
    assert q.fair().call("wait_for_message", 0)[0]["ready"] == 0
    send(q, "a")
    assert q.call("wait_for_message", 0)[0]["ready"] == 1


def test_dedup_keys_work_in_a_fair_queue(q: Queue) -> None:
    id = q.fair().send("a1", group_key="a", dedup_key="d")
    assert q.call("send_message", "x", group_key="b", dedup_key="d") == [
        {"id": id, "created": 0, "changed": 0, "state": "N"}
    ]
    assert turns(q, 5) == ["a1"]


# ---- changing the policy -------------------------------------------------------------------------

WAYS_TO_SERVE: dict[str, dict[str, int]] = {
    "plain": {"ring": 0, "fair": 0},
    "ring": {"ring": 1, "fair": 0},
    "fair": {"ring": 0, "fair": 1},
}


def in_every_state(q: Queue) -> dict[int, str]:
    """Messages of three groups and two priorities that are new, delayed, active, expired, failed, dead and archived."""
    q.archived().call("set_queue", backoff_seconds=0, max_attempts=5)
    for n in range(7):
        q.send(f"early {n}", group_key="ab"[n % 2] if n else None)
    q.on("complete_batch", q.claim_key())
    [dead] = q.claim()
    q.on("dead_letter", dead["id"], dead["batch_key"], "no")
    for retry in (0, 3_600):
        [row] = q.claim()
        q.on("fail", row["id"], row["batch_key"], "no", retry)
    q.claim_key(2)
    q.expired_key(1)
    send(q, "aabbc")
    send(q, "ab-", priority=3)
    q.send("delayed", group_key="a", run_at=in_an_hour())
    q.send("soon", group_key="c", run_at=in_time(milliseconds=5))
    return q.states()


@pytest.mark.parametrize("after", WAYS_TO_SERVE)
@pytest.mark.parametrize("before", WAYS_TO_SERVE)
def test_a_queue_with_messages_in_every_state_can_change(q: Queue, before: str, after: str) -> None:
    q.call("set_queue", **WAYS_TO_SERVE[before])
    states = in_every_state(q)
    [policy] = q.call("set_queue", **WAYS_TO_SERVE[after])
    assert {name: policy[name] for name in ("ring", "fair")} == WAYS_TO_SERVE[after]
    assert q.states() == states
    q.call("rescue_expired")
    q.call("redrive_all")
    for key in {row["batch_key"] for row in q.rows()} - {None}:
        q.one("release_batch", key)
    for row in q.rows():
        if row["state"] == "N" and row["body"] == "delayed":
            q.on("cancel", row["id"])
    waiting = {row["id"] for row in q.rows() if row["state"] == "N"}
    done: set[int] = set()
    way = "claim_wraparound" if after == "ring" else "claim_batch"
    while rows := q.call(way, 4):
        assert not done & set(ids(rows))
        done |= set(ids(rows))
        q.on("complete_batch", rows[0]["batch_key"])
    left = {row["id"] for row in q.rows() if row["state"] == "N"}
    assert done | left == waiting and len(left) == 1, "all but the retry in an hour"


@pytest.mark.parametrize("after", ["plain", "fair"])
def test_the_first_claim_after_a_change_has_the_new_order(q: Queue, after: str) -> None:
    q.call("set_queue", fair=int(after == "plain"))
    send(q, "aaabbb")
    q.call("set_queue", fair=int(after == "fair"))
    assert turns(q, 4) == ["a1 b1 a2 b2" if after == "fair" else "a1 a2 a3 b1"]


@pytest.mark.parametrize("other_way", [{"ordered": 1}, {"group_max_active": 1}])
def test_fair_can_change_in_a_queue_with_groups(q: Queue, other_way: dict[str, int]) -> None:
    q.call("set_queue", **other_way)
    send(q, "aaabbb")
    first = q.claim(1)
    q.fair()
    assert turns(q, 5) == ["b1"]
    q.on("complete_batch", first[0]["batch_key"])
    assert turns(q, 5) == ["a2"]
    q.call("set_queue", fair=0)
    for _ in range(8):
        for key in {row["batch_key"] for row in q.rows()} - {None}:
            q.on("complete_batch", key)
        q.claim(5)
    assert q.rows() == []


def test_a_message_of_a_transaction_from_before_the_change_is_claimed(q: Queue, other: Queue) -> None:
    """Its sender read the old policy; the change waits for it, or a claim finds it all the same."""
    send(q, "a")
    assert len(q.claim()) == 1
    with other.session.transaction():
        other.send("late", group_key="b")
        changed = _in_background(q)
    changed()
    found = []
    for _ in range(100):
        found += q.claim(5)
        if found:
            break
    assert bodies(found) == "late"


def _in_background(q: Queue) -> Callable[[], None]:
    """set_queue(fair) in a thread, because it may wait for an open sender; returns what waits for its end."""
    thread = Thread(target=q.fair)
    thread.start()
    thread.join(1)

    def end() -> None:
        thread.join(30)
        assert not thread.is_alive()

    return end


PAIRS = [
    ({"ring": 1}, {"ordered": 1}, ("ring", "ordered")),
    ({"ring": 1}, {"fair": 1}, ("ring", "fair")),
    ({"ring": 1}, {"group_max_active": 2}, ("ring", "limits per group")),
    ({"ring": 1}, {"group_rate": 2}, ("ring", "limits per group")),
]


@pytest.mark.parametrize("at_once", ["first", "second", "both"])
@pytest.mark.parametrize(("one", "another", "named"), PAIRS)
def test_a_ring_has_no_order_no_turns_and_no_limits_per_group(
    q: Queue, one: dict[str, int], another: dict[str, int], named: tuple[str, str], at_once: str
) -> None:
    before, given = {"first": (another, one), "second": (one, another), "both": ({}, one | another)}[at_once]
    q.call("set_queue", **before)
    [policy] = q.call("list_queues")
    with q.refused("invalid_argument", *named):
        q.call("set_queue", lease_seconds=7, **given)
    assert q.call("list_queues") == [policy]


def test_a_ring_may_have_a_limit_of_its_type(q: Queue) -> None:
    [policy] = q.call("set_queue", ring=1, max_active=2, rate=5)
    assert (policy["ring"], policy["max_active"], policy["rate"]) == (1, 2, 5)


@pytest.mark.level(3)
@pytest.mark.parametrize("setting", ["ring", "fair"])
@pytest.mark.parametrize("default", [0, 1])
def test_a_new_queue_has_the_changed_defaults(
    installed_database: Database, server: Any, setting: str, default: int
) -> None:
    """The row without a name holds the defaults. A DBA may change them."""
    value = f"{default} = 1" if installed_database.name == "postgresql" else default
    server.query(
        installed_database.url,
        f"UPDATE {server.table('queue')} SET {setting} = {value}, lease_seconds = 7 WHERE type = ''",
    )
    session = installed_database.connect("test")
    [policy] = session.call("list_queues", "new")
    assert (policy[setting], policy["lease_seconds"]) == (default, 7)
    session.call("set_group", "new", "b", 2)
    for group in "aaabbb":
        session.call("send_message", "new", group, None, None, group)
    way = "claim_wraparound" if (setting, default) == ("ring", 1) else "claim_batch"
    expected = "abbaba" if (setting, default) == ("fair", 1) else "aaabbb"
    assert "".join(row["body"] for row in session.call(way, "new", 6)) == expected
    [policy] = session.call("set_queue", "new", '{"max_attempts": 3}')
    assert (policy[setting], policy["lease_seconds"], policy["max_attempts"]) == (default, 7, 3)
    session.close()


def test_restarts_do_not_matter_to_the_turns(q: Queue, connect: Callable[..., Session]) -> None:
    send(q.fair(), "aabb")
    assert turns(q.by(connect("first")), 1) + turns(q.by(connect("second")), 1) == ["a1", "b1"]
