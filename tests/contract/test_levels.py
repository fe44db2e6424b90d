"""Sends inside a transaction whose snapshot is older than the call: they decide by what is there now."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from rowqueue.databases import Conflict, Row
from support.queues import Feed, Queue, in_time, make_feed, refused

KEY = "key"


def new(q: Queue) -> int:
    return q.send("old", dedup_key=KEY)


def held(q: Queue) -> int:
    new(q)
    id: int = q.claim()[0]["id"]
    return id


def delayed(q: Queue) -> int:
    return q.send("old", dedup_key=KEY, run_at=in_time(milliseconds=200))


def complete(q: Queue, id: int) -> None:
    [row] = q.rows("batch_key") if q.states()[id] == "A" else q.claim()
    assert q.one("complete", id, row["batch_key"]) == 1


def cancel(q: Queue, id: int) -> None:
    assert q.one("cancel", id) == 1


def claim(q: Queue, id: int) -> None:
    assert q.claim()[0]["id"] == id


def kill(q: Queue, id: int) -> None:
    q.on("dead_letter", id, q.claim_key(), "no")


def promote(q: Queue, id: int) -> None:
    time.sleep(0.3)
    q.on("release_batch", q.claim_key())


# What the message is at the snapshot, what happens to it after that, and the result: created, and changed by replace.
CASES: dict[str, tuple[Callable[[Queue], int], Callable[[Queue, int], Any], int, int]] = {
    "completed": (new, complete, 1, 0),
    "completed by its consumer": (held, complete, 1, 0),
    "cancelled": (new, cancel, 1, 0),
    "claimed": (new, claim, 0, 0),
    "dead": (new, kill, 0, 0),
    "promoted": (delayed, promote, 0, 1),
    "completed and sent again": (new, lambda q, id: (complete(q, id), new(q)), 0, 1),
    "sent": (lambda q: 0, lambda q, id: new(q), 0, 1),
}


def raise_level(q: Queue, level: str) -> None:
    with q.session.transaction() as connection:
        q.can.raise_level(connection, level)


@contextmanager
def snapshot(q: Queue) -> Iterator[None]:
    """A transaction with a snapshot of now, which has read none of the tables of messages."""
    with q.session.transaction():
        q.on("throughput", "none")
        yield


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["keep", "replace", "postpone"])
def test_a_send_decides_by_the_message_that_has_the_key_now(q: Queue, other: Queue, how: str, case: str) -> None:
    before, since, created, changed = CASES[case]
    options = {} if how == "keep" else {"on_conflict": how, "run_at": in_time(hours=1)}

    def send(here: Queue, there: Queue, id: int, since: Callable[[Queue, int], Any]) -> Row:
        with snapshot(there):
            since(here, id)
            [row] = there.call("send_message", "new", dedup_key=KEY, **options)
        return row

    for level in q.can.levels:
        here, there = q.named(f"{q.name} {level}"), other.named(f"{q.name} {level}")
        raise_level(there, level)
        id = before(here)
        if how != "keep" and not q.can.changes_at:
            with refused("wrong_isolation"):
                send(here, there, id, since)
            assert "new" not in {row["body"] for row in here.rows("body")}
            continue
        try:
            row = send(here, there, id, since)
        except Conflict:
            assert q.can.conflicts_at(q.sql)
            row = send(here, there, id, lambda q, id: None)
        assert (row["created"], row["changed"]) == (created, changed if how != "keep" else 0), level
        bodies = [row["body"] for row in here.rows("body")]
        assert bodies.count("new") == (created or (changed and how == "replace")), level
        assert row["id"] in here.states()


def test_set_queue_changes_orders_and_groups_only_where_it_sees_all_messages(q: Queue, other: Queue) -> None:
    for level in () if q.can.sets_level else q.can.levels:
        raise_level(other, level)
        for name in ("ordered", "group_max_active", "group_rate", "group_rate_seconds"):
            with refused("wrong_isolation"), snapshot(other):
                q.send()
                other.call("set_queue", **{name: 1})
        with refused("wrong_isolation"), snapshot(other):
            q.send()
            other.call("set_group", "g", max_active=1)
    q.call("set_queue", max_attempts=3)
    for level in q.can.levels:
        raise_level(other, level)
        try:
            with snapshot(other):
                q.call("set_queue", max_attempts=4)
                [row] = other.call("set_queue", lease_seconds=7)
        except Conflict:
            assert q.can.conflicts_at(q.sql)
        else:
            assert (row["max_attempts"], row["lease_seconds"]) == (4, 7)


def create_feed_at_a_snapshot(here: Feed, there: Feed) -> None:
    with snapshot(there.q):
        here.call("create_feed", here.table, "id", "sync")
        here.write(2, 3)
        here.publish()
        here.call("drop_feed")
        there.call("create_feed", there.table, "id", "sync")


def test_create_feed_continues_above_the_numbers_that_are_in_the_table_now(q: Queue, other: Queue) -> None:
    """A snapshot could show an older highest number: the next rows would get numbers that others have already read."""
    for level in q.can.levels:
        raise_level(other, level)
        feed = make_feed(q, 1)
        there = feed.by(other.session)
        feed.publish()
        feed.call("drop_feed")

        if q.can.sets_level:
            create_feed_at_a_snapshot(feed, there)
        else:
            with refused("wrong_isolation"):
                create_feed_at_a_snapshot(feed, there)
            feed.call("create_feed", feed.table, "id", "sync")
        feed.write(4)
        feed.publish()
        assert sorted(number or 0 for number in feed.numbers().values()) == [1, 2, 3, 4], level
        feed.call("drop_feed")
