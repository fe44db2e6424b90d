"""A feed under racing writers, publishers and consumers: every consumer ends with the last version of every row."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from capabilities import BY_DATABASE
from crowd import Crowd, Member
from queues import Feed, Queue, make_feed, read
from rowqueue.databases import Conflict, Database, Session

pytestmark = pytest.mark.one_engine

WRITERS, PUBLISHERS, CONSUMERS = 3, 2, 2
TRANSACTIONS = 120
ROWS = 40  # a writer's own: so few that most changes meet a row that has been read before
STRANGE = 500


class Undo(Exception):
    """Ends a transaction that is not to be committed."""


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
            except Exception:  # a conflict, as each driver tells it: the transaction has changed nothing
                refused += 1
                if refused > STRANGE:
                    raise
                time.sleep(0.002)
    return known


def publish(member: Member, feed: str) -> int:
    """Publish until told to end and nothing is left; returns how many numbers were given for good."""
    chance = random.Random(member.number)
    given = 0
    while True:
        last = member.stopped()
        try:
            with member.session.transaction():
                [row] = member.session.call("publish_feed", feed, chance.choice([1, 7, 500]))
                if not last and chance.random() < 0.2:
                    raise Undo
            given += row["count"]
            if last and not row["count"]:
                return given
        except Undo:
            pass
        except Conflict:
            time.sleep(0.002)


def consume(member: Member, feed: str) -> dict[int, int]:
    """Read until told to end and nothing is left; returns the version of each row that was seen last."""
    chance = random.Random(member.number)
    name = f"reader-{member.number}"
    seen: dict[int, int] = {}
    position = 0
    while True:
        last = member.stopped()
        try:
            rows = member.session.call("fetch_feed", feed, name, chance.choice([1, 10, 100]))
        except Conflict:
            continue
        positions = [row["position"] for row in rows]
        assert positions == sorted(set(positions)) and all(n > position for n in positions)
        if not rows and last:
            return seen
        if chance.random() < 0.2 and not last:
            continue  # as if it had died before it could move its position
        for row in rows:
            found = read(row["row"])
            assert found["sync"] == row["position"]
            assert int(found["v"]) >= seen.get(found["id"], 0), "an older version after a newer one"
            seen[found["id"]] = int(found["v"])
            position = row["position"]
        if rows:
            try:
                assert member.session.call("advance_feed", feed, name, position) == [{"position": position}]
            except Conflict:
                position = 0  # the position is what the database says


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
    """No number was lost by a rollback, none given twice."""
    numbers = list(feed.numbers().values())
    assert len(set(numbers)) == len(numbers) == rows
    stats = feed.call("feed_stats")
    assert {row["last_position"] for row in stats} == {given}
    assert max(number or 0 for number in numbers) == given
