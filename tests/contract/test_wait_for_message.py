"""wait_for_message: until something is ready or the time is up."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from rowqueue.databases import Row
from support.capabilities import Capabilities
from support.queues import Queue, in_an_hour, in_time


@pytest.fixture
def waits(can: Capabilities) -> None:
    """For tests in which the call waits."""
    if not can.waits:
        pytest.skip("nothing can wait inside this database")


def wait(q: Queue, seconds: int | None = None) -> Row:
    [row] = q.call("wait_for_message", seconds)
    return row


def waited(q: Queue, seconds: int) -> tuple[Row, float]:
    start = time.monotonic()
    return wait(q, seconds), time.monotonic() - start


def test_wait_for_message_says_at_once_that_a_message_is_ready(q: Queue) -> None:
    q.send()
    row, seconds = waited(q, 30)
    assert row == {"ready": 1, "next_run_at": None, "reason": "ready"} and seconds < 5


def test_wait_for_message_answers_at_once_when_not_asked_to_wait(q: Queue) -> None:
    start = time.monotonic()
    assert wait(q) == wait(q, 0) == {"ready": 0, "next_run_at": None, "reason": "unknown"}
    assert time.monotonic() - start < 5


@pytest.mark.usefixtures("waits")
def test_wait_for_message_returns_when_the_time_is_up(q: Queue) -> None:
    row, seconds = waited(q, 1)
    assert row["ready"] == 0 and 0.9 < seconds < 5


def while_waiting(q: Queue, other: Queue, event: Callable[[], object]) -> tuple[Row, float]:
    """Wait over one connection and let something happen over another; the answer and the seconds after the event."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(wait, q, 30)
        time.sleep(0.3)
        assert not answer.done()
        event()
        start = time.monotonic()
        return answer.result(60), time.monotonic() - start


@pytest.mark.usefixtures("waits")
def test_wait_for_message_returns_soon_after_another_session_sends(q: Queue, other: Queue) -> None:
    row, seconds = while_waiting(q, other, other.send)
    assert row["ready"] == 1 and seconds < 5


@pytest.mark.usefixtures("waits")
def test_wait_for_message_returns_when_the_sender_commits_and_not_before(q: Queue, other: Queue) -> None:
    with ThreadPoolExecutor(1) as pool:
        with other.session.transaction():
            other.send()
            answer = pool.submit(wait, q, 30)
            time.sleep(0.5)
            assert not answer.done()
        assert answer.result(60)["ready"] == 1


@pytest.mark.usefixtures("waits")
def test_wait_for_message_returns_when_a_delayed_message_is_due(q: Queue) -> None:
    due = in_time(seconds=1)
    q.send(run_at=due)
    assert wait(q) == {"ready": 0, "next_run_at": due, "reason": "delayed"}
    row, seconds = waited(q, 30)
    assert row["ready"] == 1 and seconds < 10 and datetime.now(UTC) >= due
    assert len(q.claim()) == 1


@pytest.mark.usefixtures("waits")
def test_wait_for_message_returns_when_a_lease_runs_out(q: Queue) -> None:
    q.send()
    [claimed] = q.claim(lease_seconds=1)
    row = wait(q)
    assert row["ready"] == 0 and row["next_run_at"] >= claimed["lease_until"], "later when the last scan was slow"
    assert wait(q, 30)["ready"] == 1


@pytest.mark.usefixtures("waits")
def test_wait_for_message_returns_when_a_paused_queue_is_resumed(q: Queue, other: Queue) -> None:
    q.send()
    q.call("pause")
    assert wait(q)["ready"] == 0
    row, seconds = while_waiting(q, other, lambda: other.call("resume"))
    assert row["ready"] == 1 and seconds < 5


def test_wait_for_message_answers_at_once_where_nothing_can_wait(q: Queue, can: Capabilities) -> None:
    if can.waits:
        pytest.skip("this database can wait")
    row, seconds = waited(q, 60)
    assert row == {"ready": 0, "next_run_at": None, "reason": "unknown"} and seconds < 5


def test_wait_for_message_returns_the_first_time_that_something_is_due(q: Queue) -> None:
    first = in_an_hour()
    q.send(run_at=first + timedelta(hours=1))
    q.send(run_at=first)
    assert wait(q)["next_run_at"] == first


def test_wait_for_message_claims_nothing(q: Queue) -> None:
    q.send()
    with q.unchanged():
        wait(q)


def test_wait_for_message_does_not_block_senders(q: Queue, other: Queue) -> None:
    """Many wait at the same time while others keep sending."""
    with q.session.transaction():
        wait(q)
        assert wait(other)["ready"] == 0
        other.send()
        assert wait(other)["ready"] == 1


# ---- reason --------------------------------------------------------------------------------------


def reason(q: Queue) -> str:
    row = wait(q)
    assert row["ready"] == (row["reason"] == "ready")
    found: str = row["reason"]
    return found


def test_a_queue_is_unknown_until_something_is_sent_to_it_or_set(q: Queue) -> None:
    for _ in range(3):
        assert reason(q) == "unknown" and q.claim() == [] and q.call("take_batch") == []
    id = q.send()
    assert reason(q) == "ready"
    [row] = q.claim()
    assert reason(q) == "empty"
    q.on("complete", id, row["batch_key"])
    assert reason(q) == "empty" and q.rows() == []
    other = q.named(q.name + ".other")
    assert reason(other) == "unknown"
    other.call("set_queue")
    assert reason(other) == "empty"


@pytest.mark.parametrize("state", ["E", "C"])
def test_a_queue_without_new_messages_is_empty(q: Queue, state: str) -> None:
    q.archived().send()
    [row] = q.claim()
    if state == "E":
        q.on("dead_letter", row["id"], row["batch_key"], "no")
    else:
        q.on("complete", row["id"], row["batch_key"])
    assert q.states() == {row["id"]: state} and reason(q) == "empty"


def test_a_queue_whose_messages_are_due_later_is_delayed(q: Queue) -> None:
    q.send(run_at=in_an_hour())
    assert reason(q) == "delayed"
    q.send(priority=-1)
    [row] = q.claim()
    assert reason(q) == "delayed"
    q.on("fail", row["id"], row["batch_key"], "no", 3_600)
    assert reason(q) == "delayed"


def test_a_paused_queue_is_paused_with_and_without_messages(q: Queue) -> None:
    q.call("pause")
    assert reason(q) == "paused"
    q.send()
    assert reason(q) == "paused"
    q.call("resume")
    assert reason(q) == "ready"


@pytest.mark.parametrize("limits", [{"max_active": 1}, {"rate": 1, "rate_seconds": 3_600}, {"group_max_active": 1}])
def test_a_queue_whose_limit_is_reached_is_limited(q: Queue, limits: dict[str, int]) -> None:
    q.call("set_queue", **limits)
    assert reason(q) == "empty"
    for _ in "12":
        q.send(group_key="g")
    assert reason(q) == "ready"
    [row] = q.claim(2)
    # A ticket of a group without a free place may remain: then the queue seems to be ready.
    assert q.claim() == [] and reason(q) in ({"limited", "ready"} if "group_max_active" in limits else {"limited"})
    q.on("release_batch", row["batch_key"])
    assert reason(q) == ("limited" if "rate" in limits else "ready")


def test_an_ordered_queue_whose_groups_are_held_is_blocked(q: Queue) -> None:
    for _ in "12":
        q.ordered().send(group_key="g")
    [row] = q.claim(2)
    assert q.claim() == [] and reason(q) == "blocked"
    q.on("fail", row["id"], row["batch_key"], "no", 3_600)
    assert reason(q) == "blocked"
    q.send(group_key="h")
    assert reason(q) == "ready"
