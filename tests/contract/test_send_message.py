"""send_message: one message with all options."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from queues import LONG_AGO, Queue, in_an_hour, in_time

# Long enough to tell waiting from not waiting.
A_MOMENT = 0.3


def test_send_message_keeps_every_option(q: Queue) -> None:
    due = in_time(hours=2)
    options = {"priority": -7, "group_key": "g", "dedup_key": "d", "headers": '{"a": 1}', "source": "shop"}
    [sent] = q.call("send_message", "b", run_at=due, max_attempts=3, **options)
    assert sent["created"] == 1
    row = q.row(sent["id"])
    assert {name: row[name] for name in options} == options
    assert (row["state"], row["run_at"], row["body"]) == ("N", due, "b")


def test_send_message_with_a_time_to_come_is_not_claimed(q: Queue) -> None:
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
    q.one("fail", id, q.claim_key(), "broken", -1)
    assert again(q) == (id, 0)
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
