"""A feed under racing writers, publishers and consumers: every consumer ends with the last version of every row."""

import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, Session
from support.capabilities import BY_DATABASE
from support.crowd import Crowd, Member, insert
from support.queues import Feed, Queue, call, make_feed, make_watched, read

WRITERS, PUBLISHERS, CONSUMERS = 3, 2, 2
TRANSACTIONS = 120
ROWS = 40  # per writer: so few that most changes hit a row that has been read before
STRANGE = 500
MANY_PUBLISHERS, SUBSCRIBERS = 8, 2
MANY_ROWS = 20_000
AT_ONCE = 100  # rows of a transaction


class Undo(Exception):
    """Ends a transaction without a commit."""


def write(member: Member, table: str) -> dict[int, int]:
    """Insert and change rows, some in transactions that commit late or not at all; returns the last version of each."""
    chance = random.Random(member.number)
    known: dict[int, int] = {}
    refused = 0
    for _ in range(TRANSACTIONS):
        while True:
            mine = dict(known)
            try:
                with member.session.transaction() as connection:
                    cursor = connection.cursor()
                    for n in sorted(chance.sample(range(ROWS), chance.randint(1, 4))):
                        id = member.number * 1000 + n
                        mine[id] = mine.get(id, 0) + 1
                        if mine[id] == 1:
                            cursor.execute(f"INSERT INTO {table} (id, v) VALUES ({id}, '1')")
                        else:
                            cursor.execute(f"UPDATE {table} SET v = '{mine[id]}', sync = NULL WHERE id = {id}")
                    if chance.random() < 0.15:
                        time.sleep(0.02)
                    if chance.random() < 0.2:
                        raise Undo
                known = mine
                break
            except Undo:
                break
            except Exception:  # a conflict, in the driver's own form: the transaction has changed nothing
                refused += 1
                if refused > STRANGE:
                    raise
                time.sleep(0.002)
    return known


def publish(member: Member, feed: str, sizes: Sequence[int] = (1, 7, 500)) -> int:
    """Publish until stopped and nothing is left; returns how many numbers were assigned and committed."""
    chance = random.Random(member.number)
    given = 0
    while True:
        last = member.stopped()
        try:
            with member.session.transaction():
                [row] = member.session.call("publish_feed", feed, chance.choice(sizes))
                if not last and chance.random() < 0.2:
                    raise Undo
            given += row["affected"]
            if last and not row["affected"]:
                return given
        except Undo:
            pass
        except Conflict:
            time.sleep(0.002)


def consume(member: Member, feed: str) -> dict[int, int]:
    """Read until stopped and nothing is left; returns the last version seen of each row."""
    chance = random.Random(member.number)
    name = f"consumer-{member.number}"
    seen: dict[int, int] = {}
    position = 0
    while True:
        last = member.stopped()
        try:
            rows = member.session.call("fetch_feed", feed, name, chance.choice([1, 10, 100]))
        except Conflict:
            continue
        positions = [row["feed_position"] for row in rows]
        assert positions == sorted(set(positions)) and all(n > position for n in positions)
        if not rows and last:
            return seen
        if chance.random() < 0.2 and not last:
            continue  # as if it had died before moving its position
        for row in rows:
            found = read(row["row_data"])
            assert found["sync"] == row["feed_position"]
            assert int(found["v"]) >= seen.get(found["id"], 0), "an older version after a newer one"
            seen[found["id"]] = int(found["v"])
            position = row["feed_position"]
        if rows:
            try:
                assert member.session.call("advance_feed", feed, name, position) == [{"feed_position": position}]
            except Conflict:
                position = 0  # use the position in the database


def test_every_consumer_ends_with_the_last_version_of_every_row(
    database: Database, session: Session, sql: Callable[..., list[dict[str, Any]]], queue: str, crowd: Crowd
) -> None:
    feed = make_feed(Queue(queue, session, sql, BY_DATABASE[database.name]))
    writers = crowd.start(write, feed.table, count=WRITERS)
    publishers = crowd.start(publish, feed.name, count=PUBLISHERS)
    consumers = crowd.start(consume, feed.name, count=CONSUMERS)
    written = {id: version for known in crowd.results(writers) for id, version in known.items()}
    crowd.stop(publishers)
    given = crowd.results(publishers)
    crowd.stop(consumers)
    assert crowd.results(consumers) == [written] * CONSUMERS
    check_numbers(feed, sum(given), len(written))


def check_numbers(feed: Feed, given: int, rows: int) -> None:
    """No number was lost by a rollback, and none was assigned twice."""
    numbers = list(feed.numbers().values())
    assert len(set(numbers)) == len(numbers) == rows
    stats = feed.call("list_feeds")
    assert {row["last_position"] for row in stats} == {given}
    assert max(number or 0 for number in numbers) == given


def fill(member: Member, table: str, first: int, count: int) -> None:
    """Insert rows from `first` on; some are inserted twice, because the first insert is rolled back."""
    chance = random.Random(member.number)
    for start in range(first, first + count, AT_ONCE):
        rows = [f"{id}, 'v'" for id in range(start, start + AT_ONCE)]
        for outcome in ("rolled back", "kept") if chance.random() < 0.1 else ("kept",):
            try:
                with member.session.transaction() as connection:
                    insert(connection, table, "id, v", rows)
                    if outcome != "kept":
                        raise Undo
            except Undo:
                pass


def come_and_go(member: Member, table: str, type: str) -> int:
    """Subscribe and unsubscribe its own queue until stopped."""
    rounds = 0
    while not member.stopped():
        guest = f"{type}.{member.number}"
        assert call(member.session, "subscribe", table, "IUD", guest) == [{"affected": 3}]
        assert call(member.session, "unsubscribe", table, None, guest) == [{"affected": 3}]
        rounds += 1
    return rounds


@pytest.mark.level(4)
def test_many_publishers_assign_each_number_once_while_triggers_send_and_subscribers_change(
    database: Database, session: Session, sql: Callable[..., list[dict[str, Any]]], queue: str, crowd: Crowd
) -> None:
    q = Queue(queue, session, sql, BY_DATABASE[database.name])
    table = make_watched(q)
    feed = Feed(f"feed.{table}", table, q)
    feed.call("create_feed", table, "id", "sync")
    call(session, "subscribe", table, "I", queue)
    guests = crowd.start(come_and_go, table, queue, count=SUBSCRIBERS)
    publishers = crowd.start(publish, feed.name, [1, 2, 5], count=MANY_PUBLISHERS)
    half = MANY_ROWS // 2
    writers = [number for first in (1, half + 1) for number in crowd.start(fill, table, first, half)]
    crowd.results(writers)
    crowd.stop(publishers)
    given = crowd.results(publishers)
    crowd.stop(guests)
    assert all(crowd.results(guests))
    check_numbers(feed, sum(given), MANY_ROWS)
    assert sum(given) == MANY_ROWS
    assert sum(count > 0 for count in given) > 1, "nobody met another"
    sent = []
    while rows := q.call("take_batch", 1_000):
        sent += [id for row in rows for id in json.loads(row["body"])["key"].values()]
    assert sorted(sent) == list(range(1, MANY_ROWS + 1))
