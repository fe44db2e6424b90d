"""Defaults that later releases keep: what lists has a size of 20, what changes 1,000; a message has 25 attempts."""

import uuid
from collections.abc import Callable

import pytest
from rowqueue.databases import Row, Session
from support.capabilities import Capabilities
from support.outcomes import dead_letter
from support.polling import SHAPES, Polled
from support.queues import Queue, ids, make_feed

SHOWN, CHANGED = 20, 1_000


@pytest.fixture
def table(session: Session, sql: Callable[..., list[Row]], can: Capabilities) -> Polled:
    """A polling table of the simplest shape; its rows are deleted when they are completed."""
    return Polled(f"t{uuid.uuid4().hex[:20]}", session, sql, can, SHAPES["e"]).create()


def test_messages_are_listed_twenty_at_a_time(q: Queue) -> None:
    sent = q.send_many(SHOWN + 1)
    assert ids(q.call("peek")) == sent[:SHOWN]
    for _ in range(SHOWN + 1):
        q.send(group_key="g")
    assert len(q.call("find_messages", group_key="g")) == SHOWN


def test_errors_are_listed_twenty_at_a_time(q: Queue) -> None:
    q.send_many(SHOWN + 1)
    rows = q.claim(SHOWN + 1)
    failures = "\n".join(dead_letter(row["id"], f"error {'x' * n}") for n, row in enumerate(rows))
    q.on("finish_batch", rows[0]["batch_key"], failures)
    assert len(q.call("list_errors")) == SHOWN


def test_consumers_are_listed_twenty_at_a_time(q: Queue) -> None:
    for n in range(SHOWN + 1):
        q.on("report_consumer", f"consumer-{n}", q.name)
    assert len(q.call("list_consumers")) == SHOWN


def test_dead_rows_are_listed_twenty_and_retried_a_thousand_at_a_time(q: Queue, table: Polled) -> None:
    table.insert(*map(str, range(CHANGED + 2)))
    rows = table.claim(CHANGED + 2)
    table.finish(rows[0]["batch_key"], "\n".join(dead_letter(row["id"], "no") for row in rows))
    assert table.count("redrive_rows", table.name, 1) == 1
    assert len(q.on("peek_rows", table.name, "E")) == SHOWN
    assert table.count("redrive_rows", table.name) == CHANGED
    assert table.count("redrive_rows", table.name) == 1


def test_rows_of_a_feed_are_published_a_thousand_at_a_time(q: Queue) -> None:
    feed = make_feed(q, *range(CHANGED + 1))
    assert [feed.publish(), feed.publish()] == [CHANGED, 1]
    feed.call("drop_feed")


def test_a_message_and_a_row_have_25_attempts(q: Queue, table: Polled) -> None:
    assert q.call("set_queue", lease_seconds=60)[0]["max_attempts"] == 25
    assert q.on("list_polling_tables", table.name)[0]["max_attempts"] == 25
    q.call("set_queue", backoff_seconds=0)
    id = q.send()
    states = []
    for _ in range(25):
        [row] = q.claim()
        states.append(q.one("fail", id, row["batch_key"], "no", 0))
    assert states == ["N"] * 24 + ["E"]
