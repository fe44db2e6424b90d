"""Limits of set_queue: messages active at a time and claimed per period, per queue and per group."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import Row
from servers import Server
from support.outcomes import failure
from support.queues import LONG_AGO, Queue, call, ids, in_an_hour, in_time

LIMITS = ("max_active", "rate", "group_max_active", "group_rate")
PERIODS = ("rate_seconds", "group_rate_seconds")
# No token is added while a test runs.
DAY = 86_400
WAYS: dict[str, Callable[[Queue], list[Row]]] = {
    "claim_batch": lambda q: q.claim(10),
    "claim_batch of a ring": lambda q: q.claim(10),
    "get_message": lambda q: q.call("get_message"),
    "claim_wraparound": lambda q: q.call("claim_wraparound", 10),
}
RINGS = {"claim_wraparound", "claim_batch of a ring"}
ENDS: dict[str, Callable[[Queue, Row], Any]] = {
    "complete": lambda q, row: q.on("complete", row["id"], row["batch_key"]),
    "complete_batch": lambda q, row: q.on("complete_batch", row["batch_key"]),
    "finish_batch": lambda q, row: q.on("finish_batch", row["batch_key"]),
    "finish_batch with a failure": lambda q, row: q.on(
        "finish_batch", row["batch_key"], failure(row["id"], "no", 3600)
    ),
    "release_batch": lambda q, row: q.on("release_batch", row["batch_key"]),
    "fail": lambda q, row: q.on("fail", row["id"], row["batch_key"], "no", 3_600),
    "fail for good": lambda q, row: q.on("dead_letter", row["id"], row["batch_key"], "no"),
    "rescue_expired": lambda q, row: (
        q.expire(row["batch_key"]),
        q.call("rescue_expired"),
    ),
    "no more than an expired lease": lambda q, row: q.expire(row["batch_key"]),
}


def limited(q: Queue, count: int = 6, **limits: int) -> list[int]:
    """Set limits and send messages; returns their ids."""
    q.call("set_queue", **limits)
    return [q.send() for _ in range(count)]


def in_groups(q: Queue, each: int, groups: str = "abc", **limits: int) -> dict[str, list[int]]:
    """Set limits and send messages to the groups in turn; returns their ids by group."""
    q.call("set_queue", **limits)
    sent: dict[str, list[int]] = {group: [] for group in groups}
    for _ in range(each):
        for group in groups:
            sent[group].append(q.send(group_key=group))
    return sent


def drain(q: Queue, way: str, most: int = 20) -> list[Row]:
    """Claim until nothing is returned."""
    found: list[Row] = []
    for _ in range(most):
        rows = WAYS[way](q)
        found += rows
        if not rows:
            return found
    raise AssertionError(f"more than {most} claims have found something")


def claim_within(q: Queue, count: int, seconds: float = 5) -> list[Row]:
    """Claim until `count` messages have come or the time is over."""
    found: list[Row] = []
    end = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        found += q.claim(10)
        time.sleep(0.02)
    return found


def groups_of(rows: list[Row]) -> Counter[str]:
    return Counter(row["group_key"] for row in rows)


def active(q: Queue) -> int:
    return len([state for state in q.states().values() if state == "A"])


def take(q: Queue, size: int) -> list[Row]:
    """A take that is committed."""
    with q.session.transaction():
        return q.call("take_batch", size)


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [*LIMITS, *PERIODS])
def test_limits_have_ranges(q: Queue, setting: str) -> None:
    low, high = (1, DAY) if setting in PERIODS else (0, 1_000_000)
    for value in (low, high):
        assert q.call("set_queue", **{setting: value})[0][setting] == value
    for value in (low - 1, high + 1):
        with q.refused("invalid_argument", f"{setting}: must be {low} to {high:,}"):
            q.call("set_queue", **{setting: value})


def test_an_ordered_queue_takes_one_of_a_group_at_a_time(q: Queue) -> None:
    q.call("set_queue", ordered=1, group_max_active=1)
    with q.refused("invalid_argument", "group_max_active"):
        q.call("set_queue", group_max_active=2)
    q.call("set_queue", ordered=0, group_max_active=2)
    with q.refused("invalid_argument", "group_max_active"):
        q.call("set_queue", ordered=1)


@pytest.mark.parametrize("state", ["ready", "delayed", "active"])
@pytest.mark.parametrize(
    ("before", "after"), [({}, {"group_rate": 1}), ({"group_max_active": 2}, {"group_max_active": 0})]
)
def test_limits_per_group_can_be_set_or_removed_only_without_new_and_active_messages(
    q: Queue, state: str, before: dict[str, int], after: dict[str, int]
) -> None:
    q.call("set_queue", **before)
    q.send(run_at=in_an_hour() if state == "delayed" else None)
    if state == "active":
        q.claim()
    with q.refused("queue_not_empty", q.name):
        q.call("set_queue", lease_seconds=7, **after)
    assert q.call("set_queue", lease_seconds=7, max_active=3, rate=9)[0]["lease_seconds"] == 7


# ---- max_active ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_max_active_limits_all_ways_to_claim(q: Queue, way: str) -> None:
    limited(q, max_active=2, ring=int(way in RINGS))
    first, second = rows = drain(q, way)
    assert active(q) == len(rows) == 2
    q.on("complete", first["id"], first["batch_key"])
    assert len(drain(q, way)) == 1
    q.on("complete_batch", second["batch_key"])
    assert active(q) + len(drain(q, way)) == 2


@pytest.mark.parametrize("end", ENDS)
def test_max_active_frees_a_place_however_the_message_ends(q: Queue, end: str) -> None:
    limited(q, max_active=2)
    for row in (q.claim()[0], q.claim()[0]):
        assert q.claim(10) == []
        ENDS[end](q, row)
        assert len(q.claim(10)) == 1
        assert active(q) == 2


def test_max_active_counts_over_all_connections_and_by_type(q: Queue, other: Queue) -> None:
    limited(q, max_active=3)
    q.named(q.name + "x").send()
    assert len(q.claim(2)) == 2
    assert len(other.claim(2)) == 1
    assert q.claim(2) == other.claim(2) == []
    assert len(q.named(q.name + "x").claim(2)) == 1


def test_max_active_limits_the_next_batch_of_finish_batch(q: Queue) -> None:
    limited(q, 10, max_active=3)
    key = q.claim_key(2)
    other = q.claim_key(2)
    rows = q.on("finish_batch", key, None, 10)
    assert len(rows) == 2
    rows = q.on("finish_batch", rows[0]["batch_key"], failure(rows[0]["id"], "no", 3600), 1)
    assert len(rows) == 1
    assert len(q.on("finish_batch", other, None, 10)) == 2
    assert active(q) == 3


def test_max_active_holds_for_takes_and_their_transactions(q: Queue, other: Queue) -> None:
    limited(q, max_active=3)
    assert len(q.claim(1)) == 1
    with q.session.transaction():
        assert len(q.call("take_batch", 10)) == 2
        assert other.claim(10) == []
        assert other.call("take_batch", 10) == []
    assert len(other.claim(10)) == 2
    assert active(q) == 3
    assert take(q, 10) == []


def test_max_active_holds_through_rollbacks(q: Queue, other: Queue) -> None:
    limited(q, max_active=2)
    for procedure in ("claim_batch", "take_batch"):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert len(q.call(procedure, 10)) == 2
            assert other.claim(10) == []
            raise ZeroDivisionError
    rows = other.claim(10)
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert len(q.on("finish_batch", rows[0]["batch_key"], None, 10)) == 2
        raise ZeroDivisionError
    assert active(q) == 2
    assert q.claim(10) == []


def test_max_active_counts_an_expired_batch_until_it_is_rescued(q: Queue) -> None:
    sent = limited(q, max_active=3)
    key = q.claim_key(1)
    q.claim_expired(2)
    assert sorted((row["id"], row["attempt"]) for row in q.claim(10)) == [(sent[1], 2), (sent[2], 2)]
    q.on("complete_batch", key)
    assert ids(q.claim(10)) == [sent[3]]


def test_max_active_works_with_dead_letters_purges_and_cancels(q: Queue) -> None:
    sent = limited(q, max_active=2)
    for row in q.claim(2):
        q.on("dead_letter", row["id"], row["batch_key"], "no")
    rows = q.claim(2)
    assert q.count("redrive_all") == 2
    assert q.one("cancel", rows[0]["id"]) == 1 and q.one("cancel", sent[-1]) == 1
    assert q.claim(10) == []
    assert q.count("purge", "N") == 3
    q.send()
    assert q.claim(10) == []
    q.on("complete_batch", rows[0]["batch_key"])
    assert len(q.claim(10)) == 1


def test_max_active_can_change_at_any_time(q: Queue) -> None:
    limited(q, 12, max_active=1)
    counts = []
    for most in (1, 3, 1, 4, 0):
        q.call("set_queue", max_active=most)
        counts.append(len(q.claim(3)))
    assert counts == [1, 2, 0, 1, 3]


def test_max_active_works_with_priorities_delays_pauses_topics_and_schedules(q: Queue) -> None:
    q.call("set_queue", max_active=2)
    late = q.send(run_at=in_time(milliseconds=10), priority=-2)
    q.send(priority=5)
    [first] = [q.send(priority=-1, run_at=LONG_AGO)]
    topic = f"limits{q.name.rpartition('.')[2]}"
    call(q.session, "bind_topic", topic, q.name)
    call(q.session, "publish_with", topic, "b", priority=1)
    call(q.session, "set_schedule", q.name, q.name, "@yearly", "b")
    call(q.session, "run_schedule", q.name)
    time.sleep(0.02)
    q.call("pause")
    assert q.claim(10) == []
    q.call("resume")
    rows = q.claim(10)
    assert ids(rows) == [late, first]
    assert q.claim(10) == []
    q.on("complete_batch", rows[0]["batch_key"])
    assert [row["priority"] for row in q.claim(10)] == [0, 1]
    call(q.session, "drop_schedule", q.name)
    call(q.session, "unbind_topic", None, q.name)


def test_max_active_of_an_ordered_queue_limits_it_over_all_groups(q: Queue) -> None:
    sent = in_groups(q, 2, "abcd", ordered=1, max_active=3)
    rows = q.claim(10)
    assert len(rows) == 3
    assert {row["id"] for row in rows} <= {group[0] for group in sent.values()}
    assert q.claim(10) == []
    q.on("complete_batch", rows[0]["batch_key"])
    assert len(q.claim(10)) == 3


def test_max_active_works_with_an_archive_and_shows_in_the_counts(q: Queue) -> None:
    limited(q.archived(), max_active=2)
    key = q.claim_key(10)
    stats = q.stats()
    assert (stats["ready"], stats["active"]) == (4, 2)
    assert len(q.call("peek", "N", 10)) == 4
    q.on("complete_batch", key)
    assert len(q.claim(10)) == 2
    assert Counter(q.states().values()) == {"C": 2, "A": 2, "N": 2}


def test_wait_for_message_waits_for_a_place(q: Queue) -> None:
    limited(q, max_active=1)
    [row] = q.claim(lease_seconds=60)
    [waiting] = q.call("wait_for_message")
    assert waiting["ready"] == 0
    assert waiting["next_run_at"] is None or waiting["next_run_at"] <= row["lease_until"] + timedelta(seconds=1)
    assert waiting["next_run_at"] is None or waiting["next_run_at"] > datetime.now(UTC)
    q.on("complete_batch", row["batch_key"])
    assert q.call("wait_for_message")[0]["ready"] == 1
    q.claim_expired()
    assert q.call("wait_for_message")[0]["ready"] == 1


# ---- rate ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_rate_limits_all_ways_to_claim(q: Queue, way: str) -> None:
    limited(q, rate=3, rate_seconds=DAY, ring=int(way in RINGS))
    assert len(drain(q, way)) == 3
    assert active(q) == 3


def test_rate_limits_finish_batch_and_takes(q: Queue, other: Queue) -> None:
    limited(q, 10, rate=5, rate_seconds=DAY)
    with q.session.transaction():
        assert len(q.call("take_batch", 2)) == 2
        assert other.claim(10) == []
    key = q.claim_key(1)
    rows = q.on("finish_batch", key, None, 10)
    assert len(rows) == 2
    assert q.on("finish_batch", rows[0]["batch_key"], None, 10) == []
    assert take(q, 10) == []


def test_rate_applies_per_queue(q: Queue) -> None:
    limited(q, rate=1, rate_seconds=DAY)
    assert len(q.claim(10)) == 1
    another = q.named(q.name + "x")
    limited(another, rate=2, rate_seconds=DAY)
    assert len(another.claim(10)) == 2


def test_a_retry_spends_a_token_and_so_does_what_was_released(q: Queue) -> None:
    limited(q, 1, rate=3, rate_seconds=DAY)
    [row] = q.claim()
    q.on("fail", row["id"], row["batch_key"], "no", 0)
    [row] = q.claim()
    assert row["attempt"] == 2
    q.on("release_batch", row["batch_key"])
    [row] = q.claim()
    q.on("release_batch", row["batch_key"])
    assert q.claim() == []
    assert q.stats()["ready"] == 1


def test_a_claim_that_is_rolled_back_gives_its_tokens_back(q: Queue) -> None:
    limited(q, rate=2, rate_seconds=DAY)
    for procedure in ("claim_batch", "take_batch"):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert len(q.call(procedure, 10)) == 2
            raise ZeroDivisionError
    assert len(q.claim(10)) == 2
    assert q.claim(10) == []


def test_a_claim_that_finds_nothing_spends_nothing(q: Queue) -> None:
    limited(q, 0, rate=2, rate_seconds=DAY)
    for _ in range(5):
        assert q.claim(10) == []
    q.send()
    assert len(q.claim(10)) == 1
    q.send()
    q.send()
    assert len(q.claim(10)) == 1


@pytest.mark.parametrize(("rate", "seconds"), [(20, 1), (3, 2)])
def test_a_bucket_gains_tokens_and_fractions_of_them(q: Queue, rate: int, seconds: int) -> None:
    limited(q, 0, rate=rate, rate_seconds=seconds)
    q.send_many(rate * 10)
    begun = time.monotonic()
    count = 0
    while True:
        before = time.monotonic() - begun
        count += len(q.claim(rate))
        assert count <= rate + math.floor((time.monotonic() - begun) * rate / seconds)
        if before > 1:
            break
        time.sleep(0.01)
    # One claim gets all tokens since the claim before it, so a slow machine loses little.
    assert count >= rate + (1 if rate == 3 else rate // 2)


@pytest.mark.level(1)
def test_a_bucket_never_holds_more_than_rate(q: Queue) -> None:
    limited(q, 20, rate=2, rate_seconds=1)
    time.sleep(1.6)
    begun = time.monotonic()
    count = len(q.claim(10))
    count += len(q.claim(10))
    assert 2 <= count <= 2 + (time.monotonic() - begun) * 2


def test_a_high_rate_is_kept_exactly(q: Queue) -> None:
    q.call("set_queue", rate=1_000_000, rate_seconds=DAY)
    q.send_many(10)
    assert len(q.claim(4)) == 4
    assert len(q.claim(10)) == 6
    q.call("set_queue", rate=1_000_000, rate_seconds=1)
    q.send()
    assert len(q.claim()) == 1


def test_rate_can_change_at_any_time(q: Queue) -> None:
    limited(q, 20, rate=1, rate_seconds=DAY)
    assert len(q.claim(10)) == 1
    q.call("set_queue", rate=5, rate_seconds=1)
    count = len(q.claim(5))  # tokens spent under the old rate are owed for at most the new period
    time.sleep(1.1)
    assert count + len(q.claim(5)) >= 5
    q.call("set_queue", rate=0)
    assert len(q.claim(10)) >= 9
    q.call("set_queue", rate=1, rate_seconds=DAY, max_active=1)
    assert q.claim(10) == []


def test_wait_for_message_returns_the_time_of_the_next_token(q: Queue) -> None:
    limited(q, rate=1, rate_seconds=1)
    assert q.call("wait_for_message")[0]["ready"] == 1
    before = datetime.now(UTC)
    row = q.claim()[0]
    q.on("complete_batch", row["batch_key"])
    [waiting] = q.call("wait_for_message")
    if datetime.now(UTC) < before + timedelta(seconds=0.9):
        assert waiting["ready"] == 0
        assert before < waiting["next_run_at"] < before + timedelta(seconds=3)
    time.sleep(1.1)
    assert q.call("wait_for_message")[0]["ready"] == 1
    assert len(q.claim(5)) == 1


# ---- per group: how many are active --------------------------------------------------------------


def test_group_max_active_limits_each_group(q: Queue) -> None:
    sent = in_groups(q, 5, group_max_active=2)
    rows = q.claim(100)
    assert sorted(ids(rows)) == sorted(id for group in sent.values() for id in group[:2])
    assert q.claim(100) == []
    [row] = [row for row in rows if row["id"] == sent["b"][0]]
    q.on("complete", row["id"], row["batch_key"])
    assert ids(q.claim(100)) == [sent["b"][2]]
    assert q.claim(100) == []


def test_group_max_active_works_with_small_claims(q: Queue) -> None:
    sent = in_groups(q, 3, "ab", group_max_active=2)
    found = [row for _ in range(10) for row in q.claim()]
    assert sorted(ids(found)) == sorted(sent["a"][:2] + sent["b"][:2])
    for row in found:
        q.on("complete", row["id"], row["batch_key"])
    assert sorted(ids(q.claim(10))) == [sent["a"][2], sent["b"][2]]


def test_messages_without_a_group_key_are_one_group(q: Queue) -> None:
    q.call("set_queue", group_max_active=2)
    q.send_many(4)
    q.call("send", "body")
    q.send(group_key="g")
    assert groups_of(q.claim(100)) == {None: 2, "g": 1}
    assert q.claim(100) == []


@pytest.mark.parametrize("end", ENDS)
def test_group_max_active_frees_a_place_however_the_message_ends(q: Queue, end: str) -> None:
    in_groups(q, 5, "a", group_max_active=2)
    for row in (q.claim()[0], q.claim()[0]):
        assert q.claim(10) == []
        ENDS[end](q, row)
        assert len(claim_within(q, 1)) == 1  # a claim scans for expired leases once per second
        assert active(q) == 2


def test_group_max_active_holds_for_finish_batch_and_takes(q: Queue, other: Queue) -> None:
    sent = in_groups(q, 7, "ab", group_max_active=2)
    rows = q.claim(3)
    rows = q.on("finish_batch", rows[0]["batch_key"], None, 100)
    assert groups_of(rows) == {"a": 2, "b": 2}
    q.on("release_batch", rows[0]["batch_key"])
    with q.session.transaction():
        assert groups_of(q.call("take_batch", 100)) == {"a": 2, "b": 2}
        assert other.claim(100) == []
    rows = other.claim(100)
    assert groups_of(rows) == {"a": 2, "b": 2}
    assert take(q, 100) == []
    q.on("complete", rows[0]["id"], rows[0]["batch_key"])
    assert groups_of(take(q, 100)) == {rows[0]["group_key"]: 1}
    assert len(q.states()) < sum(map(len, sent.values()))


def test_takes_alone_work_off_all_groups(q: Queue) -> None:
    sent = in_groups(q, 5, "abc", group_max_active=2)
    found: list[int] = []
    for _ in range(30):
        found += ids(take(q, 4))
    assert sorted(found) == sorted(id for group in sent.values() for id in group)


def test_group_max_active_holds_through_rollbacks(q: Queue) -> None:
    in_groups(q, 3, group_max_active=1)
    for procedure in ("claim_batch", "take_batch"):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert len(q.call(procedure, 10)) == 3
            raise ZeroDivisionError
    rows = q.claim(10)
    assert len(rows) == 3
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert len(q.on("finish_batch", rows[0]["batch_key"], None, 10)) == 3
        raise ZeroDivisionError
    assert q.claim(10) == []
    assert len(q.on("finish_batch", rows[0]["batch_key"], None, 10)) == 3


def test_a_failed_take_is_counted_with_limits_per_group(q: Queue) -> None:
    sent = in_groups(q, 3, "a", group_max_active=2)
    q.claim(1)
    assert q.one("count_attempt", sent["a"][1], "no", 3_600) == "N"
    assert q.row(sent["a"][1])["error"] == "no"
    assert ids(q.claim(10)) == [sent["a"][2]]
    assert q.one("count_attempt", sent["a"][0], "no") is None
    assert q.claim(10) == []


def test_a_failed_take_is_counted_while_all_places_of_its_group_are_taken(q: Queue) -> None:
    sent = in_groups(q, 2, "a", group_max_active=1)["a"]
    assert ids(q.claim(10)) == sent[:1]
    assert q.one("count_attempt", sent[1], "no", 3_600) == "N"
    assert (q.row(sent[1])["attempts"], q.row(sent[1])["error"]) == (1, "no")


def test_a_group_continues_after_a_take_of_it_was_counted_as_failed_and_purged(q: Queue) -> None:
    """The ticket of the group was that message's own."""
    sent = in_groups(q, 3, "a", group_max_active=1)
    key = q.claim_key()
    for _ in range(2):
        assert q.claim(10) == []
    q.on("complete_batch", key)
    assert q.one("count_attempt", sent["a"][1], "no", None, 1) == "E"
    assert q.count("purge", "E") == 1
    assert ids(q.claim(10)) == [sent["a"][2]]


def test_a_group_continues_while_its_failed_message_waits(q: Queue) -> None:
    sent = in_groups(q, 3, "a", group_max_active=1)
    q.on("fail", sent["a"][0], q.claim_key(), "no", 3_600)
    q.on("fail", sent["a"][1], q.claim_key(), "no", 0)
    found = [row["id"] for _ in range(3) for row in q.claim(10)]
    assert found in ([sent["a"][1]], [sent["a"][2]])
    assert active(q) == 1


def test_group_max_active_works_with_cancels_purges_and_dead_letters(q: Queue) -> None:
    sent = in_groups(q, 4, "ab", group_max_active=1)
    for id in sent["a"][:2]:
        assert q.one("cancel", id) == 1
    rows = q.claim(10)
    assert sorted(ids(rows)) == sorted([sent["a"][2], sent["b"][0]])
    assert q.one("cancel", sent["a"][2]) == 1
    for row in rows:
        q.on("dead_letter", row["id"], row["batch_key"], "no")
    assert q.count("redrive_all") == 1
    rows = q.claim(10)
    assert groups_of(rows) == {"a": 1, "b": 1}
    assert q.claim(10) == []
    left = len(q.states()) - 2
    assert q.count("purge", "N") == left
    new = q.send(group_key="a")
    assert q.claim(10) == []
    q.on("complete_batch", rows[0]["batch_key"])
    assert ids(q.claim(10)) == [new]


@pytest.mark.parametrize("how", ["keep", "replace", "postpone"])
def test_group_max_active_works_with_dedup_keys(q: Queue, how: str) -> None:
    q.call("set_queue", group_max_active=1)
    first = q.send("a", group_key="g", dedup_key="d")
    second = q.send("b", group_key="g")
    run_at = in_an_hour() if how == "postpone" else None
    assert q.send("c", group_key="g", dedup_key="d", on_conflict=how, run_at=run_at) == first
    rows = q.claim(10)
    assert ids(rows) == [second if how == "postpone" else first]
    assert rows[0]["body"] == {"keep": "a", "replace": "c", "postpone": "b"}[how]
    assert q.claim(10) == []
    q.on("complete_batch", rows[0]["batch_key"])
    assert ids(q.claim(10)) == ([] if how == "postpone" else [second])


def test_group_max_active_works_with_priorities_and_delays(q: Queue) -> None:
    q.call("set_queue", group_max_active=2)
    for group, priority in (("low", 5), ("high", -5), ("low", 5), ("high", -5)):
        q.send(group_key=group, priority=priority)
    late = q.send(group_key="late", run_at=in_time(milliseconds=20), priority=-9)
    q.send(group_key="late", run_at=in_an_hour())
    time.sleep(0.05)
    assert [row["group_key"] for row in q.claim(3)] == ["late", "high", "high"]
    assert groups_of(q.claim(3)) == {"low": 2}
    assert late in q.states()


def test_group_max_active_works_with_topics_schedules_archives_and_pauses(q: Queue) -> None:
    q.archived().call("set_queue", group_max_active=1)
    topic = f"limits{q.name.rpartition('.')[2]}"
    call(q.session, "bind_topic", topic, q.name)
    for _ in range(2):
        call(q.session, "publish_with", topic, "b", group_key="g")
    call(q.session, "set_schedule", q.name, q.name, "@yearly", "b", group_key="g")
    call(q.session, "run_schedule", q.name)
    q.call("pause")
    assert q.claim(10) == []
    q.call("resume")
    for n in range(3):
        rows = q.claim(10)
        assert len(rows) == 1
        assert q.one("set_result", rows[0]["id"], rows[0]["batch_key"], "r") == 1
        q.on("finish_batch", rows[0]["batch_key"])
        assert Counter(q.states().values())["C"] == n + 1
    assert q.on("get_result", rows[0]["id"])[0]["result"] == "r"
    call(q.session, "drop_schedule", q.name)
    call(q.session, "unbind_topic", None, q.name)


def test_the_numbers_and_lists_show_what_waits_for_a_place_as_ready(q: Queue) -> None:
    sent = in_groups(q, 3, "ab", group_max_active=1)
    q.claim(10)
    stats = q.stats()
    assert (stats["ready"], stats["delayed"], stats["active"]) == (4, 0, 2)
    assert sorted(ids(q.call("peek", "N", 10))) == sorted(sent["a"][1:] + sent["b"][1:])
    assert sorted(ids(q.call("peek", "A", 10))) == sorted([sent["a"][0], sent["b"][0]])
    assert Counter(q.states().values()) == {"A": 2, "N": 4}
    assert [q.on("get_result", id)[0]["state"] for id in sent["a"]] == ["A", "N", "N"]


def test_group_max_active_can_change_at_any_time(q: Queue) -> None:
    in_groups(q, 9, "ab", group_max_active=1)
    counts = []
    for most in (1, 3, 2, 4):
        q.call("set_queue", group_max_active=most)
        rows = q.claim(100) or q.claim(100)
        counts.append(len(rows))
    assert counts == [2, 4, 0, 2]
    q.call("set_queue", group_max_active=0, group_rate=1_000)
    assert len(q.claim(100)) == 10


def test_group_max_active_counts_what_was_claimed_before_it_was_set(q: Queue) -> None:
    in_groups(q, 4, "a", group_rate=1_000)
    first = q.claim(2)
    q.call("set_queue", group_max_active=2)
    assert len(first) == 2 and q.claim(10) == []
    q.on("complete", first[0]["id"], first[0]["batch_key"])
    assert len(q.claim(10)) == 1


def test_a_hot_group_leaves_the_others_their_turn(q: Queue) -> None:
    q.call("set_queue", group_max_active=2)
    with q.session.transaction():
        for _ in range(300):
            q.send(group_key="hot")
    cold = [q.send(group_key=f"cold{n}") for n in range(5)]
    rows = q.claim(7)
    assert sorted(ids(rows))[2:] == cold
    for _ in range(3):
        q.send(group_key="hot")
        q.send(group_key="cold")
    q.on("complete_batch", rows[0]["batch_key"])
    assert groups_of(q.claim(10)) == {"hot": 2, "cold": 2}


# ---- per group: rate -----------------------------------------------------------------------------


def test_group_rate_limits_each_group(q: Queue) -> None:
    sent = in_groups(q, 5, group_rate=2, group_rate_seconds=DAY)
    found = [row for _ in range(5) for row in q.claim(100)]
    assert sorted(ids(found)) == sorted(id for group in sent.values() for id in group[:2])
    assert Counter(q.states().values()) == {"A": 6, "N": 9}
    # Finished or not, the tokens are spent.
    for key in {row["batch_key"] for row in found}:
        q.on("complete_batch", key)
    assert q.claim(100) == []
    assert take(q, 100) == []


def test_a_message_that_waits_for_a_token_is_new_and_not_due(q: Queue) -> None:
    sent = in_groups(q, 2, "a", group_rate=1, group_rate_seconds=3_600)
    before = datetime.now(UTC)
    for _ in range(3):
        q.claim(10)
    row = q.row(sent["a"][1])
    assert (row["state"], row["attempts"], row["error"]) == ("N", 0, None)
    assert timedelta(seconds=3_500) < row["run_at"] - before < timedelta(seconds=3_700)
    stats = q.stats()
    assert (stats["ready"], stats["delayed"], stats["active"]) == (0, 1, 1)
    [waiting] = q.call("wait_for_message")
    assert waiting["ready"] == 0 and waiting["next_run_at"] > before
    assert q.one("cancel", sent["a"][1]) == 1
    assert ids(q.call("peek", "N")) == []


def test_messages_that_wait_for_a_token_can_be_cancelled_replaced_and_purged(q: Queue) -> None:
    q.call("set_queue", group_rate=1, group_rate_seconds=DAY)
    sent = [q.send(group_key="g", dedup_key=f"d{n}") for n in range(5)]
    assert [row["id"] for _ in range(3) for row in q.claim(10)] == sent[:1]
    assert q.one("cancel", sent[1]) == 1
    assert q.claim(10) == []
    [row] = q.call("send_message", "new", group_key="g", dedup_key="d2", on_conflict="replace")
    assert (row["id"], row["changed"]) == (sent[2], 1)
    for _ in range(3):
        assert q.claim(10) == []
    assert q.count("purge", "N") == 4 - 1
    assert q.claim(10) == []
    assert Counter(q.states().values()) == {"A": 1}


def test_groups_gain_tokens(q: Queue) -> None:
    in_groups(q, 30, "ab", group_rate=5, group_rate_seconds=1)
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    while True:
        before = time.monotonic() - begun
        counts += groups_of(q.claim(100))
        most = 5 + math.floor((time.monotonic() - begun) * 5)
        assert max(counts.values()) <= most
        if before > 1.5:
            break
        time.sleep(0.01)
    assert min(counts[group] for group in "ab") >= 8


def test_an_ordered_queue_can_have_a_rate_per_group(q: Queue) -> None:
    sent = in_groups(q, 4, "ab", ordered=1, group_rate=2, group_rate_seconds=DAY)
    found = []
    for _ in range(5):
        rows = q.claim(100)
        found += ids(rows)
        assert max(groups_of(rows).values(), default=0) <= 1
        if rows:
            q.on("complete_batch", rows[0]["batch_key"])
    assert [id for id in found if id in sent["a"]] == sent["a"][:2]
    assert [id for id in found if id in sent["b"]] == sent["b"][:2]


def test_a_retry_spends_a_token_of_its_group(q: Queue) -> None:
    [id] = in_groups(q, 1, "a", group_rate=2, group_rate_seconds=DAY)["a"]
    for _ in range(2):
        assert q.one("fail", id, q.claim_key(), "no", 0) == "N"
    for _ in range(3):
        assert q.claim() == []
    assert q.row(id)["attempts"] == 2


def test_a_claim_that_is_rolled_back_gives_the_tokens_of_groups_back(q: Queue) -> None:
    in_groups(q, 3, group_rate=1, group_rate_seconds=DAY)
    for procedure in ("claim_batch", "take_batch"):
        with pytest.raises(ZeroDivisionError), q.session.transaction():
            assert len(q.call(procedure, 10)) == 3
            raise ZeroDivisionError
    assert len(q.claim(10)) == 3
    assert q.claim(10) == []


def test_group_rate_can_change_at_any_time(q: Queue) -> None:
    in_groups(q, 8, "ab", group_rate=1, group_rate_seconds=DAY)
    for _ in range(3):
        q.claim(100)
    q.call("set_queue", group_rate=1, group_rate_seconds=1)
    found = claim_within(q, 4, 10)
    assert groups_of(found) >= Counter(a=1, b=1)
    for _ in range(3):
        q.claim(100)
    q.call("set_queue", group_rate=0, group_max_active=8)
    left = 16 - active(q)
    assert sum(len(q.claim(100)) for _ in range(3)) == left


def stuck(q: Queue) -> float:
    """The groups of all queues that queue_health reports as stuck."""
    [value] = [row["measured"] for row in call(q.session, "queue_health") if row["name"] == "stuck_groups"]
    return float(value)


@pytest.mark.level(3)
def test_queue_health_distinguishes_a_stuck_group_from_a_waiting_one(q: Queue, server: Server) -> None:
    in_groups(q, 4, "abcd", group_max_active=2, group_rate=3, group_rate_seconds=DAY)
    rows = q.claim(100)
    assert stuck(q) == 0, "groups without a place"
    for row in rows:
        if row["group_key"] in "ab":
            q.on("complete", row["id"], row["batch_key"])
    for _ in range(3):
        q.claim(100)
    assert stuck(q) == 0, "groups a and b wait for a token"
    q.on("complete_batch", rows[0]["batch_key"])
    assert stuck(q) == 0, "groups c and d can go on"
    q.sql(f"DELETE FROM {server.table('ready')} WHERE type = %s", q.name)
    assert stuck(q) == 2
    q.call("rescue_expired")
    assert stuck(q) == 0
    assert groups_of(q.claim(100)) == {"c": 1, "d": 1}


def test_all_limits_hold_together(q: Queue) -> None:
    in_groups(
        q, 9, "abcd", max_active=5, rate=8, rate_seconds=DAY, group_max_active=2, group_rate=3, group_rate_seconds=DAY
    )
    total: Counter[str] = Counter()
    for _ in range(10):
        rows = q.claim(100)
        total += groups_of(rows)
        assert len(rows) <= 5 and max(groups_of(rows).values(), default=0) <= 2
        if rows:
            q.on("complete_batch", rows[0]["batch_key"])
    assert total.total() == 8 and max(total.values()) <= 3


@pytest.mark.parametrize("options", [{"ordered": 1}, {"group_max_active": 1}, {"group_max_active": 1, "fair": 1}])
def test_groups_that_differ_in_case_accent_or_blank_have_places_of_their_own(q: Queue, options: dict[str, int]) -> None:
    """MariaDB keeps the results of subqueries by the collation of what they are asked for."""
    q.call("set_queue", json.dumps(options))
    groups = ["a", "A", "á", "a", "A", "á"]
    if q.can.blank_endings:
        groups += ["a ", "a "]
    sent = [q.send(group_key=group) for group in groups]
    first = [sent[groups.index(group)] for group in dict.fromkeys(groups)]
    assert sorted(ids(q.claim(20))) == first
    assert ids(q.claim(20)) == []
    later = q.send(group_key="ä")
    assert ids(q.claim(20)) == [later], "the places of the others are taken"
