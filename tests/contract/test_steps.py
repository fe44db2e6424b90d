"""save_step, get_steps, snooze: a handler that continues where it stopped."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from threading import Thread

import pytest
from rowqueue.databases import Conflict, QueueError
from servers import Server
from support.crowd import insert
from support.outcomes import done
from support.queues import Queue

Saved = Callable[[int], list[str]]


@pytest.fixture
def saved(q: Queue, server: Server) -> Saved:
    """The steps of a message in the table."""
    return lambda id: [row["step"] for row in q.sql(f"SELECT step FROM {server.table('step')} WHERE id = %s", id)]


def names(q: Queue, id: int, key: object) -> list[tuple[str, str | None]]:
    return [(row["step"], row["step_value"]) for row in q.session.call("get_steps", id, key)]


def test_a_retry_and_a_redriven_dead_letter_continue_after_the_last_step(q: Queue, saved: Saved) -> None:
    q.call("set_queue", max_attempts=2)
    id = q.send()
    key = q.claim_key()
    assert names(q, id, key) == []
    assert q.one("save_step", id, key, "charge", "ch_1") == 1
    q.one("save_step", id, key, "pack")
    q.one("save_step", id, key, "charge", "ch_2")
    assert q.one("fail", id, key, "no", 0) == "N"
    key = q.claim_key()
    assert names(q, id, key) == [("charge", "ch_2"), ("pack", None)]
    assert q.one("fail", id, key, "no", 0) == "E"
    assert q.one("redrive", id) == 1
    key = q.claim_key()
    assert names(q, id, key) == [("charge", "ch_2"), ("pack", None)]
    assert q.one("complete", id, key) == 1
    assert saved(id) == []


@pytest.mark.parametrize("ends", ["cancel", "purge", "take", "finish"])
def test_steps_end_with_their_message(q: Queue, ends: str, saved: Saved) -> None:
    id = q.send()
    key = q.claim_key()
    q.one("save_step", id, key, "a", "b")
    if ends == "finish":
        q.session.call("finish_batch", key)
    else:
        q.one("release_batch", key)
        {
            "cancel": lambda: q.one("cancel", id),
            "purge": lambda: q.count("purge", "N"),
            "take": lambda: q.call("take_batch"),
        }[ends]()
    assert q.states() == {}
    assert saved(id) == []


def test_an_archived_message_keeps_its_steps(q: Queue, server: Server, saved: Saved) -> None:
    q.call("set_queue", on_complete="archive")
    id, other = q.send(), q.send()
    rows = q.claim(2)
    key = rows[0]["batch_key"]
    q.one("save_step", id, key, "b", '"')
    q.one("save_step", id, key, "a")
    q.one("complete_batch", key)
    rows = q.sql(f"SELECT id, steps FROM {server.table('archive')} WHERE id IN (%s, %s)", id, other)
    found = {row["id"]: row["steps"] for row in rows}
    assert found[other] is None
    assert [(step["step"], step["value"]) for step in json.loads(found[id])] == [("b", '"'), ("a", None)]
    assert saved(id) == []


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("policy", ["archive", "delete"])
@pytest.mark.parametrize("way", ["complete", "complete_batch", "finish_batch", "finish_messages"])
def test_a_finish_waits_for_a_step_that_is_being_saved(
    q: Queue, other: Queue, server: Server, saved: Saved, way: str, policy: str, commits: bool
) -> None:
    q.call("set_queue", on_complete=policy)
    id = q.send()
    key = q.claim_key()
    q.one("save_step", id, key, "a", "x" * 5_000)
    arguments = {"complete": (id, key), "finish_messages": (key, done(id))}.get(way, (key,))
    finishing = Thread(target=other.session.call, args=(way, *arguments))
    try:
        with q.session.transaction():
            q.one("save_step", id, key, "b", "y")
            finishing.start()
            time.sleep(0.3)
            assert finishing.is_alive()
            if not commits:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    finishing.join(20)
    assert saved(id) == []
    rows = q.sql(f"SELECT steps FROM {server.table('archive')} WHERE id = %s", id)
    expected = [("a", "x" * 5_000), ("b", "y")][: 1 + commits]
    assert [[(s["step"], s["value"]) for s in json.loads(row["steps"])] for row in rows] == [expected] * (
        policy == "archive"
    )
    for row in rows:
        times = [datetime.fromisoformat(step["saved_at"]) for step in json.loads(row["steps"])]
        assert times == sorted(times) and abs((times[0] - q.session.now()).total_seconds()) < 30


@pytest.mark.parametrize("commits", [True, False])
def test_a_release_by_an_operator_waits_for_a_step_that_is_being_saved(q: Queue, other: Queue, commits: bool) -> None:
    """Otherwise another consumer would do the step's work again before it is committed."""
    id = q.send()
    key = q.claim_key()
    claimed = []

    def release() -> None:
        while True:
            try:
                assert other.one("release_batch", key) == 1
                break
            except Conflict:  # Firebird waits for two seconds
                pass
        again = other.claim_key()
        claimed.extend(names(other, id, again))

    releasing = Thread(target=release)
    try:
        with q.session.transaction():
            q.one("save_step", id, key, "a")
            releasing.start()
            time.sleep(0.5)
            assert releasing.is_alive() and claimed == []
            if not commits:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    releasing.join(20)
    assert not releasing.is_alive()
    assert claimed == ([("a", None)] if commits else [])


def test_a_snoozed_message_counts_no_attempt_and_keeps_its_steps(q: Queue) -> None:
    q.call("set_queue", max_attempts=1)
    id = q.send()
    for n in range(3):
        [row] = q.claim(1)
        assert row["attempt"] == 1
        q.one("save_step", id, row["batch_key"], f"step {n}")
        assert q.one("snooze", id, row["batch_key"], 0) == 1
    assert len(names(q, id, q.claim_key())) == 3


def test_a_snoozed_message_of_an_ordered_queue_keeps_its_group_waiting(q: Queue) -> None:
    q.call("set_queue", ordered=1)
    first, second = q.send(group_key="a"), q.send(group_key="a")
    q.one("snooze", first, q.claim_key(), 1)
    assert q.claim(10) == []
    time.sleep(1.1)
    assert [row["id"] for row in q.claim(10)] == [first]
    assert second


def test_nothing_is_saved_or_read_without_the_lease(q: Queue, other: Queue, saved: Saved) -> None:
    id, neighbour = q.send(), q.send()
    key = q.claim_key()
    with pytest.raises(QueueError, match="lease_lost"):
        other.one("save_step", neighbour, key, "a")
    q.one("release_batch", key)
    for call in (("save_step", id, key, "a"), ("get_steps", id, key), ("snooze", id, key, 1)):
        with pytest.raises(QueueError, match="lease_lost"):
            q.session.call(*call)
    assert saved(id) == []


@pytest.mark.parametrize("commits", [True, False])
def test_a_message_is_not_rescued_while_the_transaction_of_its_step_is_open(
    q: Queue, other: Queue, commits: bool
) -> None:
    id = q.send()
    [row] = q.session.call("claim_batch", q.name, 1, None, 1)
    key = row["batch_key"]
    try:
        with q.session.transaction():
            q.one("save_step", id, key, "a")
            time.sleep(1.1)
            assert other.count("rescue_expired") == 0
            assert other.claim(1) == []
            if not commits:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert other.count("rescue_expired") == 1
    key = other.claim_key()
    assert names(other, id, key) == ([("a", None)] if commits else [])


def test_a_held_message_does_not_keep_others_from_being_rescued(q: Queue, other: Queue) -> None:
    """A take rescues one claim, the one that has expired first."""
    held, lost = q.send(), q.send()
    [row] = q.session.call("claim_batch", q.name, 1, None, 1)
    assert row["id"] == held
    time.sleep(0.01)
    other.session.call("claim_batch", q.name, 1, None, 1)
    with q.session.transaction():
        q.one("save_step", held, row["batch_key"], "a")
        time.sleep(1.1)
        taken: list[int] = []
        for _ in range(30):  # only the first claim of a second rescues
            with other.session.transaction():
                taken = taken or [row["id"] for row in other.call("take_batch", 5)]
            time.sleep(0.1)
        assert taken == [lost]
    assert other.count("rescue_expired") == 1


def test_neighbours_in_the_batch_and_heartbeats_do_not_wait_for_the_transaction_of_a_step(
    q: Queue, other: Queue
) -> None:
    ids = [q.send() for _ in range(3)]
    key = q.claim(3)[0]["batch_key"]
    with q.session.transaction():
        q.one("save_step", ids[0], key, "a")
        began = time.monotonic()
        assert other.one("complete", ids[1], key) == 1
        assert other.one("extend_lease", key) == 2
        assert other.one("fail", ids[2], key, "no", 0) == "N"
        assert time.monotonic() - began < 1
    assert q.one("complete", ids[0], key) == 1


def test_a_step_waits_for_a_rescue_and_is_refused(q: Queue, other: Queue) -> None:
    id = q.send()
    [row] = q.session.call("claim_batch", q.name, 1, None, 1)
    time.sleep(1.1)
    errors = []

    def save() -> None:
        try:
            q.one("save_step", id, row["batch_key"], "a")
        except QueueError as error:
            errors.append(str(error))

    with other.session.transaction():
        assert other.count("rescue_expired") == 1
        saving = Thread(target=save)
        saving.start()
        time.sleep(0.3)
        assert saving.is_alive()
    saving.join(10)
    assert errors and "lease_lost" in errors[0]


def test_an_operator_lists_the_last_steps_without_the_lease(q: Queue, other: Queue) -> None:
    id, bare = q.send(), q.send()
    key = q.claim_key()
    for step in ("a", "b", "c"):
        q.one("save_step", id, key, step, step * 1_001)
    q.one("save_step", id, key, "a")
    listed = other.session.call("list_steps", id, 2)
    assert [(row["step"], row["step_value"]) for row in listed] == [("c", "c" * 1_000), ("b", "b" * 1_000)]
    assert [row["step"] for row in other.session.call("list_steps", id)] == ["c", "b", "a"]
    assert other.session.call("list_steps", bare) == []
    with pytest.raises(QueueError, match="size: "):
        other.session.call("list_steps", id, 0)


def test_a_message_has_at_most_10000_steps(q: Queue, server: Server, saved: Saved) -> None:
    id = q.send()
    key = q.claim_key()
    of = "n, id" if server.table("step") == "mq_step" else "id"
    for first in range(0, 9_999, 99):
        rows = [f"'2026-01-01', '{n}', {f'{n}, {id}' if ',' in of else id}" for n in range(first, first + 99)]
        with q.session.transaction() as connection:
            insert(connection, server.table("step"), f"saved_at, step, {of}", rows)
    q.one("save_step", id, key, "last")
    with pytest.raises(QueueError, match="10,000"):
        q.one("save_step", id, key, "one more")
    assert q.one("save_step", id, key, "last", "again") == 1
    assert q.one("complete", id, key) == 1
    assert saved(id) == []
