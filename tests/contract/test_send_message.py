"""send_message: one message with all options."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.queues import LONG_AGO, Queue, ids, in_an_hour, in_time

# Seconds; long enough to distinguish waiting from not waiting.
A_MOMENT = 0.3


def test_send_message_keeps_every_option(q: Queue) -> None:
    due = in_time(hours=2)
    options = {"priority": -7, "group_key": "g", "dedup_key": "d", "headers": '{"a": 1}', "source": "shop"}
    [sent] = q.call("send_message", "b", run_at=due, max_attempts=3, **options)
    assert sent["created"] == 1
    row = q.row(sent["id"])
    assert {name: row[name] for name in options} == options
    assert (row["state"], row["run_at"], row["body"]) == ("N", due, "b")


def test_send_message_with_a_future_time_is_not_claimed(q: Queue) -> None:
    id = q.send(run_at=in_an_hour())
    assert q.claim(10) == []
    assert (q.states(), q.stats()["delayed"], q.stats()["ready"]) == ({id: "N"}, 1, 0)


def test_send_message_is_claimed_once_it_is_due(q: Queue) -> None:
    id = q.send(run_at=in_time(seconds=0.4))
    assert q.claim() == []
    time.sleep(0.5)
    assert [row["id"] for row in q.claim()] == [id]


def test_send_message_with_a_past_time_goes_before_what_was_sent_earlier(q: Queue) -> None:
    first, second = q.send(), q.send()
    assert [row["id"] for row in q.claim()] == [first]
    past = q.send(run_at=LONG_AGO)
    assert [row["id"] for row in q.claim(10)] == [past, second]


def test_send_message_with_a_smaller_priority_goes_first(q: Queue) -> None:
    sent = {priority: q.send(priority=priority) for priority in (0, 32_767, -32_768, 5, -1)}
    assert [row["id"] for row in q.claim(10)] == [sent[priority] for priority in sorted(sent)]


def test_send_message_with_a_max_attempts_of_its_own_dies_by_that(q: Queue) -> None:
    q.call("set_queue", max_attempts=5)
    id = q.send(max_attempts=1)
    assert q.one("fail", id, q.claim_key(), "broken", 0) == "E"


@pytest.mark.parametrize("days", [3_650, 3_660])
def test_send_message_takes_a_run_at_of_up_to_ten_years_ahead(q: Queue, days: int) -> None:
    due = datetime.now(UTC) + timedelta(days=days)
    if days == 3_650:
        q.send(run_at=due - timedelta(minutes=1))
        assert q.stats()["delayed"] == 1
    else:
        with q.refused("invalid_argument", "run_at: ", "ten years"):
            q.send(run_at=due)


@pytest.mark.parametrize("year", [1, 1800, 1858, 1969, 9999])
def test_send_message_refuses_a_run_at_outside_of_its_limit(q: Queue, year: int) -> None:
    with q.refused("invalid_argument", "run_at: "):
        q.send(run_at=datetime(year, 6, 1, tzinfo=UTC))
    assert q.stats()["ready"] == 0


def test_send_message_takes_a_run_at_of_1970(q: Queue) -> None:
    q.send(run_at=datetime(1970, 1, 1, tzinfo=UTC))
    assert q.stats()["ready"] == 1


# ---- dedup_key -----------------------------------------------------------------------------------


def again(q: Queue, **options: Any) -> tuple[int, int]:
    [row] = q.call("send_message", "again", dedup_key="d", **options)
    return row["id"], row["created"]


def test_a_dedup_key_of_a_ready_message_returns_that_message(q: Queue) -> None:
    id = q.send("first", dedup_key="d")
    assert again(q) == (id, 0)
    assert [row["body"] for row in q.rows()] == ["first"]


def test_a_dedup_key_of_a_delayed_message_returns_that_message(q: Queue) -> None:
    id = q.send(dedup_key="d", run_at=in_an_hour())
    assert again(q) == (id, 0)
    assert q.claim(10) == []


def test_a_dedup_key_of_an_active_message_returns_that_message(q: Queue) -> None:
    id = q.send(dedup_key="d")
    q.claim()
    assert again(q) == (id, 0)


def test_a_dedup_key_of_a_dead_message_returns_that_message(q: Queue) -> None:
    id = q.send(dedup_key="d")
    q.one("dead_letter", id, q.claim_key(), "broken")
    assert again(q) == (id, 0)
    assert q.states() == {id: "E"}


@pytest.mark.parametrize("how", [None, "replace", "postpone"])
@pytest.mark.parametrize("kind", ["plain", "ordered", "ring", "fair"])
def test_send_message_returns_the_state_of_the_live_message(q: Queue, kind: str, how: str | None) -> None:
    if kind != "plain":
        getattr(q, kind)()
    take = {"ring": "claim_wraparound"}.get(kind, "claim_batch")

    def seen(body: str = "again", run_at: datetime | None = LONG_AGO) -> tuple[int, str]:
        options = {"run_at": run_at} if how == "postpone" else {}
        [row] = q.call("send_message", body, group_key="g", dedup_key="d", on_conflict=how, **options)
        return row["created"], row["state"]

    def claimed() -> dict[str, Any]:
        [row] = q.call(take, 1)
        return {"id": row["id"], "batch_key": row["batch_key"]}

    assert seen(run_at=None) == (1, "N")
    assert seen() == (0, "N")
    q.send(group_key="g")  # the next message of the group has a ticket while the first is active
    q.on("fail", **claimed(), error="no", retry_after_seconds=3_600)
    assert seen() == (0, "N")
    [row] = q.call("find_messages", dedup_key="d")
    q.on("cancel", row["id"])
    assert seen(run_at=None) == (1, "N")
    while (held := claimed())["id"] != q.call("find_messages", dedup_key="d")[0]["id"]:
        q.on("complete", **held)
    assert seen() == (0, "A")
    q.on("dead_letter", **held, error="no")
    assert seen() == (0, "E")
    q.call("redrive_all")
    assert seen() == (0, "N")
    q.on("complete_batch", claimed()["batch_key"])
    assert seen(run_at=None) == (1, "N")


def test_send_message_returns_the_state_that_its_own_transaction_has_made(q: Queue) -> None:
    id = q.send(dedup_key="d")
    with q.session.transaction():
        key = q.claim_key()
        assert q.call("send_message", "x", dedup_key="d")[0]["state"] == "A"
        q.on("dead_letter", id, key, "no")
        assert q.call("send_message", "x", dedup_key="d")[0]["state"] == "E"
    assert q.states() == {id: "E"}


@pytest.mark.parametrize("on_complete", ["delete", "archive"])
def test_a_dedup_key_is_free_once_its_message_is_completed(q: Queue, on_complete: str) -> None:
    q.call("set_queue", on_complete=on_complete)
    id = q.send(dedup_key="d")
    q.on("complete_batch", q.claim_key())
    new, created = again(q)
    assert created == 1 and new > id


def test_a_dedup_key_is_free_once_its_message_is_cancelled(q: Queue) -> None:
    q.on("cancel", q.send(dedup_key="d"))
    assert again(q)[1] == 1


def test_a_dedup_key_belongs_to_one_type(q: Queue) -> None:
    q.send(dedup_key="d")
    assert again(q.named(q.name + ".other"))[1] == 1


def test_dedup_keys_that_differ_by_case_or_blanks_are_different(q: Queue) -> None:
    keys = ["d", "D", "d " if q.can.blank_endings else "dd", " d", "đ"]
    assert [q.call("send_message", "b", dedup_key=key)[0]["created"] for key in keys] == [1] * len(keys)


def test_messages_without_a_dedup_key_are_never_the_same(q: Queue) -> None:
    assert q.send() != q.send()


@pytest.fixture
def in_background() -> Any:
    """Runs a call in a thread of its own."""
    with ThreadPoolExecutor(2) as pool:
        yield pool.submit


def test_a_second_sender_of_a_dedup_key_waits_and_gets_the_first_ones_message(
    q: Queue, other: Queue, in_background: Callable[..., Future[Any]]
) -> None:
    with q.session.transaction():
        id = q.send(dedup_key="d")
        second = in_background(again, other)
        with pytest.raises(TimeoutError):
            second.result(A_MOMENT)
    assert second.result(10) == (id, 0)
    assert q.states() == {id: "N"}


def test_a_second_sender_of_a_dedup_key_sends_when_the_first_rolls_back(
    q: Queue, other: Queue, in_background: Callable[..., Future[Any]]
) -> None:
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        id = q.send("lost", dedup_key="d")
        second = in_background(again, other)
        with pytest.raises(TimeoutError):
            second.result(A_MOMENT)
        raise ZeroDivisionError
    new, created = second.result(10)
    assert created == 1 and new != id
    assert [row["body"] for row in q.rows()] == ["again"]


def test_a_sender_of_a_dedup_key_waits_for_a_take_and_sends_when_that_commits(
    q: Queue, other: Queue, in_background: Callable[..., Future[Any]]
) -> None:
    q.send("first", dedup_key="d")
    with q.session.transaction():
        assert len(q.call("take_batch")) == 1
        second = in_background(again, other)
        with pytest.raises(TimeoutError):
            second.result(A_MOMENT)
    assert second.result(10)[1] == 1
    assert [row["body"] for row in q.rows()] == ["again"]


def test_of_many_racing_senders_of_a_dedup_key_exactly_one_sends(q: Queue, connect: Callable[..., Any]) -> None:
    racers = [q.by(connect()) for _ in range(6)]
    start = threading.Barrier(len(racers))

    def race(racer: Queue) -> tuple[int, int]:
        start.wait()
        return again(racer)

    with ThreadPoolExecutor(len(racers)) as pool:
        results = list(pool.map(race, racers))
    assert sum(created for _, created in results) == 1
    assert {id for id, _ in results} == {row["id"] for row in q.rows()}


def test_a_dedup_conflict_does_not_abort_the_callers_transaction(q: Queue) -> None:
    id = q.send(dedup_key="d")
    with q.session.transaction():
        before = q.send()
        assert again(q) == (id, 0)
        after = q.send()
    assert set(q.states()) == {id, before, after}


# ---- delay_seconds -------------------------------------------------------------------------------


def test_a_delay_counts_from_now_on_the_servers_clock(q: Queue) -> None:
    id = q.send(delay_seconds=3_600)
    row = q.row(id)
    assert abs(row["run_at"] - row["created_at"] - timedelta(hours=1)) < timedelta(seconds=1)
    assert (q.claim(10), q.stats()["delayed"]) == ([], 1)


def test_a_message_with_a_delay_is_claimed_when_that_is_over(q: Queue) -> None:
    id = q.send(delay_seconds=1)
    assert q.claim() == []
    time.sleep(1.1)
    assert ids(q.claim()) == [id]


def test_a_delay_of_0_is_none(q: Queue) -> None:
    id = q.send(delay_seconds=0)
    assert ids(q.claim()) == [id]


def test_a_delay_and_a_run_at_are_not_given_together(q: Queue) -> None:
    with q.refused("invalid_argument", "delay_seconds: must be NULL when run_at is given"):
        q.send(run_at=in_an_hour(), delay_seconds=0)


# ---- on_conflict ---------------------------------------------------------------------------------


def conflict(q: Queue, how: str | None, body: str = "again", **options: Any) -> tuple[int, int, int]:
    """Send with the key d: (id, created, changed)."""
    [row] = q.call("send_message", body, dedup_key="d", on_conflict=how, **options)
    return row["id"], row["created"], row["changed"]


def work_off(q: Queue) -> list[tuple[int, str]]:
    """Claims and completes all that can be claimed, one after the other: (id, body)."""
    done = []
    while rows := q.claim():
        done.append((rows[0]["id"], rows[0]["body"]))
        q.on("complete_batch", rows[0]["batch_key"])
    return done


CHANGES = pytest.mark.parametrize("how", ["replace", "postpone"])


@pytest.mark.parametrize("how", ["", "KEEP", "Replace", "ignore", " keep", "keep,replace", "x" * 300])
def test_on_conflict_is_one_of_three_words(q: Queue, how: str) -> None:
    with q.refused("invalid_argument", "on_conflict: must be keep, replace or postpone"):
        q.send(dedup_key="d", on_conflict=how)


@CHANGES
def test_on_conflict_needs_a_dedup_key(q: Queue, how: str) -> None:
    with q.refused("invalid_argument", "on_conflict: replace and postpone need a dedup_key"):
        q.send(on_conflict=how)
    id = q.send(on_conflict="keep")
    assert q.states() == {id: "N"}


@pytest.mark.parametrize("how", [None, "keep", "replace", "postpone"])
def test_on_conflict_does_not_matter_when_no_live_message_has_the_key(q: Queue, how: str | None) -> None:
    q.archived()
    q.named(q.name + ".other").send(dedup_key="d")
    first, created, changed = conflict(q, how, "first", delay_seconds=0)
    assert (created, changed) == (1, 0)
    assert work_off(q) == [(first, "first")]
    second, created, changed = conflict(q, how, "second", run_at=in_an_hour())
    assert (created, changed) == (1, 0) and second > first
    assert q.row(second)["body"] == "second"


@pytest.mark.parametrize("how", [None, "keep"])
@pytest.mark.parametrize("state", ["ready", "delayed", "failed", "active", "dead"])
def test_keep_changes_nothing(q: Queue, how: str | None, state: str) -> None:
    id = q.send("first", dedup_key="d", run_at=in_an_hour() if state == "delayed" else None)
    if state not in {"ready", "delayed"}:
        key = q.claim_key()
        if state != "active":
            q.one(*(("dead_letter", id, key, "no") if state == "dead" else ("fail", id, key, "no", 3_600)))
    with q.unchanged():
        assert conflict(q, how, run_at=LONG_AGO, priority=-9, headers="{}") == (id, 0, 0)


def test_replace_sets_body_headers_priority_and_time(q: Queue) -> None:
    kept = {"group_key": "g", "dedup_key": "d", "source": "shop"}
    id = q.send("first", priority=3, headers='{"a":1}', max_attempts=2, **kept)
    before, due = q.row(id), in_an_hour()
    options = {"priority": -7, "headers": '{"b":2}', "group_key": "h", "source": "other", "max_attempts": 9}
    assert conflict(q, "replace", run_at=due, **options) == (id, 0, 1)
    row = q.row(id)
    assert {name: row[name] for name in kept} == kept
    assert row["created_at"] == before["created_at"]
    assert (row["body"], row["headers"], row["priority"], row["run_at"]) == ("again", '{"b":2}', -7, due)
    assert (q.stats()["ready"], q.stats()["delayed"], q.claim(10)) == (0, 1, [])
    assert conflict(q, "replace", "last") == (id, 0, 1)
    assert (q.stats()["ready"], q.stats()["delayed"]) == (1, 0)
    [row] = q.claim(10)
    assert (row["id"], row["body"], row["headers"], row["priority"], row["attempt"]) == (id, "last", None, 0, 1)
    assert q.one("fail", id, row["batch_key"], "no", 0) == "N"
    assert q.one("fail", id, q.claim_key(), "no", 0) == "E"


def test_replace_moves_a_message_to_its_new_place(q: Queue) -> None:
    id = q.send("first", dedup_key="d")
    more = q.send_many(2)
    conflict(q, "replace")
    assert ids(q.call("peek", "N")) == [*more, id]
    conflict(q, "replace", priority=-1)
    assert ids(q.call("peek", "N")) == [id, *more]
    conflict(q, "replace", priority=1, run_at=LONG_AGO)
    assert ids(q.call("peek", "N")) == [*more, id]
    conflict(q, "replace", run_at=LONG_AGO)
    assert ids(q.claim(10)) == [id, *more]


def test_replace_is_claimed_below_what_claims_have_passed(q: Queue) -> None:
    id = q.send("first", dedup_key="d", run_at=in_an_hour())
    q.send_many(50)
    for _ in range(20):
        q.on("complete_batch", q.claim_key())
    conflict(q, "replace", run_at=LONG_AGO)
    assert ids(q.claim()) == [id]


def test_replace_forgets_a_failed_attempt(q: Queue) -> None:
    id = q.send("first", dedup_key="d", max_attempts=2)
    q.one("fail", id, q.claim_key(), "busy", 3_600)
    assert conflict(q, "replace", run_at=in_an_hour()) == (id, 0, 1)
    row = q.row(id)
    assert (row["attempts"], row["error"], row["body"]) == (0, None, "again")
    conflict(q, "replace", "last")
    [row] = q.claim()
    assert (row["attempt"], row["body"]) == (1, "last")
    # Given back, it goes to its new place.
    q.on("release_batch", row["batch_key"])
    assert [(row["attempt"], row["body"]) for row in q.claim()] == [(1, "last")]


def test_postpone_moves_a_message_later_and_changes_nothing_else(q: Queue) -> None:
    id = q.send("first", dedup_key="d", priority=3, headers='{"a":1}')
    before, due, later = q.row(id), in_an_hour(), in_time(hours=2)
    assert conflict(q, "postpone", run_at=due, priority=-1, headers="{}") == (id, 0, 1)
    assert q.row(id) == before | {"run_at": due}
    assert (q.stats()["delayed"], q.claim(10)) == (1, [])
    assert conflict(q, "postpone", run_at=later) == (id, 0, 1)
    assert q.row(id) == before | {"run_at": later}


def test_postpone_never_moves_a_message_to_an_earlier_time(q: Queue) -> None:
    due = in_an_hour()
    id = q.send("first", dedup_key="d", run_at=due)
    with q.unchanged():
        for run_at in (None, LONG_AGO, due - timedelta(milliseconds=1), due):
            assert conflict(q, "postpone", run_at=run_at) == (id, 0, 0)


def test_postpone_of_a_ready_message_to_now_puts_it_last(q: Queue) -> None:
    id = q.send("first", dedup_key="d")
    more = q.send_many(2)
    time.sleep(0.01)
    assert conflict(q, "postpone") == (id, 0, 1)
    assert [(row["id"], row["body"]) for row in q.claim(10)][2:] == [(id, "first")]
    assert q.states() == dict.fromkeys([id, *more], "A")


def test_postpone_keeps_attempts_and_error_of_a_failed_message(q: Queue) -> None:
    id = q.send("first", dedup_key="d")
    q.one("fail", id, q.claim_key(), "busy", 60)
    before, due = q.row(id), in_an_hour()
    assert conflict(q, "postpone", run_at=before["run_at"] - timedelta(seconds=1)) == (id, 0, 0)
    assert q.row(id) == before
    assert conflict(q, "postpone", run_at=due) == (id, 0, 1)
    assert q.row(id) == before | {"run_at": due}


@CHANGES
@pytest.mark.parametrize("ordered", [0, 1])
def test_an_active_message_is_never_changed(q: Queue, how: str, ordered: int) -> None:
    q.call("set_queue", ordered=ordered, on_complete="archive")
    id = q.send("first", dedup_key="d", group_key="g")
    key = q.claim_key()
    with q.unchanged():
        assert conflict(q, how, run_at=in_an_hour()) == (id, 0, 0)
    assert q.one("complete_batch", key) == 1
    assert (q.row(id)["state"], q.row(id)["body"]) == ("C", "first")


@CHANGES
@pytest.mark.parametrize("ordered", [0, 1])
def test_a_dead_message_is_never_changed(q: Queue, how: str, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    id = q.send("first", dedup_key="d")
    q.one("dead_letter", id, q.claim_key(), "broken")
    with q.unchanged():
        assert conflict(q, how, run_at=in_an_hour()) == (id, 0, 0)


@CHANGES
@pytest.mark.parametrize("ordered", [0, 1])
def test_a_message_that_is_being_claimed_is_not_waited_for(q: Queue, other: Queue, how: str, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    id = q.send("first", dedup_key="d")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.claim()
        assert conflict(other, how, run_at=in_an_hour()) == (id, 0, 0)
        raise ZeroDivisionError
    assert [(row["id"], row["body"]) for row in other.claim()] == [(id, "first")]


@CHANGES
@pytest.mark.parametrize("ordered", [0, 1])
def test_a_change_can_be_rolled_back_and_others_pass_over_it(q: Queue, other: Queue, how: str, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    id = q.send("first", dedup_key="d")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        time.sleep(0.01)
        assert conflict(q, how) == (id, 0, 1)
        assert other.claim() == []
        raise ZeroDivisionError
    assert [(row["id"], row["body"], row["attempt"]) for row in other.claim()] == [(id, "first", 1)]


@CHANGES
def test_a_change_works_on_a_paused_queue(q: Queue, how: str) -> None:
    id = q.send("first", dedup_key="d")
    q.call("pause")
    assert conflict(q, how, run_at=in_an_hour()) == (id, 0, 1)
    q.call("resume")
    assert (q.claim(), q.states()) == ([], {id: "N"})


def test_a_replaced_message_is_archived_with_its_new_values(q: Queue) -> None:
    id = q.archived().send("first", dedup_key="d")
    conflict(q, "replace", headers="{}")
    q.on("complete_batch", q.claim_key())
    row = q.row(id)
    assert (row["state"], row["body"], row["headers"], row["dedup_key"]) == ("C", "again", "{}", "d")


def test_a_round_robin_claim_finds_what_was_replaced(q: Queue) -> None:
    id = q.ring().send("first", dedup_key="d", run_at=in_an_hour())
    more = q.send_many(3)

    def ring(size: int) -> list[tuple[int, str]]:
        rows = q.call("claim_wraparound", size, "consumer")
        q.on("release_batch", rows[0]["batch_key"])
        return [(row["id"], row["body"]) for row in rows]

    assert [n for n, _ in ring(10)] == more
    conflict(q, "replace", "second")
    assert ring(10)[0] == (id, "second")
    conflict(q, "replace", "third", run_at=LONG_AGO)
    assert ring(10) == [(id, "third"), *((n, str(i)) for i, n in enumerate(more))]
    conflict(q, "postpone", run_at=in_an_hour())
    assert [n for n, _ in ring(10)] == more


# ---- on_conflict in an ordered queue --------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_replaced_message_keeps_its_place_in_its_group(q: Queue, place: int) -> None:
    q.ordered()
    sent = [q.send(str(n), group_key="g", dedup_key="d" if n == place else None) for n in range(3)]
    assert conflict(q, "replace", priority=5) == (sent[place], 0, 1)
    assert work_off(q) == [(id, "again" if n == place else str(n)) for n, id in enumerate(sent)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_delayed_message_lets_its_group_continue_and_keeps_its_place(q: Queue, place: int) -> None:
    q.ordered()
    sent = [q.send(str(n), group_key="g", dedup_key="d" if n == place else None) for n in range(3)]
    changed, rest = sent[place], [id for id in sent if id != sent[place]]
    assert conflict(q, "postpone", run_at=in_an_hour()) == (changed, 0, 1)
    key = q.claim_key(10)
    assert q.states() == {rest[0]: "A", rest[1]: "N", changed: "N"}
    assert conflict(q, "replace", "back") == (changed, 0, 1)
    assert q.claim(10) == []
    q.on("complete_batch", key)
    assert [id for id, _ in work_off(q)] == sorted([changed, rest[1]])
    assert q.rows() == []


@CHANGES
def test_a_message_after_an_active_head_can_be_changed_and_keeps_waiting(q: Queue, how: str) -> None:
    q.ordered()
    q.send(group_key="g")
    second, third = q.send("first", group_key="g", dedup_key="d"), q.send("third", group_key="g")
    key = q.claim_key(10)
    time.sleep(0.01)
    assert conflict(q, how) == (second, 0, 1)
    assert q.claim(10) == []
    q.on("complete_batch", key)
    assert work_off(q) == [(second, "again" if how == "replace" else "first"), (third, "third")]


def failed_head(q: Queue) -> tuple[int, int]:
    """A head that waits for its next attempt, with the key d, and the message after it."""
    q.ordered()
    head, second = q.send("first", group_key="g", dedup_key="d"), q.send("second", group_key="g")
    q.one("fail", head, q.claim_key(), "busy", 60)
    assert q.claim(10) == []
    return head, second


def test_a_failed_head_that_is_replaced_is_the_first_of_its_group_at_once(q: Queue) -> None:
    head, second = failed_head(q)
    assert conflict(q, "replace") == (head, 0, 1)
    [row] = q.claim(10)
    assert (row["id"], row["attempt"], row["body"]) == (head, 1, "again")
    q.on("complete_batch", row["batch_key"])
    assert work_off(q) == [(second, "second")]


def test_a_group_continues_after_its_failed_head_is_replaced_by_a_later_one(q: Queue) -> None:
    """As any message that is sent for a later time."""
    head, second = failed_head(q)
    third = q.send("third", group_key="g")
    assert conflict(q, "replace", run_at=in_an_hour()) == (head, 0, 1)
    [row] = q.claim(10)
    assert row["id"] == second
    assert conflict(q, "replace", "back") == (head, 0, 1)
    q.on("complete_batch", row["batch_key"])
    assert work_off(q) == [(head, "back"), (third, "third")]


def test_a_group_continues_after_its_failed_head_is_postponed(q: Queue) -> None:
    """A message for a later time does not make its group wait."""
    head, second = failed_head(q)
    assert conflict(q, "postpone") == (head, 0, 0)
    assert q.claim(10) == []
    assert conflict(q, "postpone", run_at=in_an_hour()) == (head, 0, 1)
    assert q.attempts() == {head: 1, second: 0}
    assert work_off(q) == [(second, "second")]
    assert (q.row(head)["error"], q.row(head)["body"]) == ("busy", "first")


def test_a_replaced_message_wakes_waiting_consumers(q: Queue, connect: Callable[..., Any]) -> None:
    q.send("first", dedup_key="d", run_at=in_an_hour())
    waiting = connect("waiting")
    if not waiting.listen([q.name]):
        pytest.skip("consumers of this database poll")
    waiting.call("wait_for_message", q.name)
    conflict(q, "replace")
    interrupt, never = os.pipe()
    try:
        assert waiting.wait(30, interrupt)
    finally:
        os.close(interrupt)
        os.close(never)
