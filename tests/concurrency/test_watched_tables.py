"""Watched tables with several writers, while queues subscribe and unsubscribe."""

import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from rowqueue.databases import Database, Session
from support.capabilities import BY_DATABASE
from support.crowd import Crowd, Member
from support.queues import Queue, call, make_watched

WRITERS = 3
ROWS = 25
STRANGE = 500


class Undo(Exception):
    """Ends a transaction without a commit."""


def write(member: Member, table: str) -> list[tuple[str, int]]:
    """Insert, update and delete its own rows, and roll some of it back; returns the committed changes in order."""
    done: list[tuple[str, int]] = []
    refused = 0
    for n in range(ROWS):
        id = member.number * 1000 + n
        while True:
            try:
                with member.session.transaction() as connection:
                    cursor = connection.cursor()
                    cursor.execute(f"INSERT INTO {table} (id) VALUES ({id})")
                    cursor.execute(f"UPDATE {table} SET v = 'x' WHERE id = {id}")
                    if n % 3 == 0:
                        cursor.execute(f"DELETE FROM {table} WHERE id = {id}")
                    if n % 5 == 0:
                        raise Undo
                done += [("I", id), ("U", id)] + [("D", id)] * (n % 3 == 0)
                break
            except Undo:
                break
            except Exception:  # a conflict, in the driver's own form: the transaction has changed nothing
                refused += 1
                if refused > STRANGE:
                    raise
                time.sleep(0.002)
    return done


def come_and_go(member: Member, table: str, type: str) -> int:
    """Subscribe and unsubscribe another queue until stopped."""
    rounds = 0
    while not member.stopped():
        assert call(member.session, "subscribe", table, "IUD", type) == [{"affected": 3}]
        assert call(member.session, "unsubscribe", table, None, type) == [{"affected": 3}]
        rounds += 1
    return rounds


def consume(member: Member, type: str) -> list[tuple[str, int]]:
    """One consumer of an ordered queue; returns all changes in the order of the claims."""
    seen = []
    while True:
        last = member.stopped()
        rows = call(member.session, "claim_batch", type, 10)
        for row in rows:
            event = json.loads(row["body"])
            seen.append((event["action"], *event["key"].values()))
        if rows:
            call(member.session, "complete_batch", rows[0]["batch_key"])
        elif last:
            return seen


def test_each_writers_events_keep_their_order_while_subscribers_come_and_go(
    database: Database, session: Session, sql: Callable[..., list[dict[str, Any]]], queue: str, crowd: Crowd
) -> None:
    q = Queue(queue, session, sql, BY_DATABASE[database.name]).ordered()
    table = make_watched(q)
    call(session, "subscribe", table, "IUD", queue)
    guests = crowd.start(come_and_go, table, f"{queue}.guest", count=1)
    consumers = crowd.start(consume, queue, count=1)
    writers = crowd.start(write, table, count=WRITERS)
    written = crowd.results(writers)
    crowd.stop(guests)
    assert all(crowd.results(guests))
    crowd.stop(consumers)
    [seen] = crowd.results(consumers)
    by_writer = defaultdict(list)
    for event in seen:
        by_writer[event[1] // 1000].append(event)
    assert sorted(by_writer.values()) == sorted(written)
    assert call(session, "list_subscriptions", table)[0]["type"] == queue
