"""Messages that commit late are before the mark: they are found within seconds, while claims continue."""

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from support.crowd import Crowd, Ledger, Member
from support.waiting import until

CONSUMERS = 3
# Long enough for claims to forget about the late ones: they begin where they found something, or a second ago.
CLAIMED_SINCE = 6_000
HELD_SECONDS = 2.5
# About one, and on the others up to five more after a look that took long.
SECONDS = {"postgresql": 6, "mysql": 11, "firebird": 11}
BATCH = 20
LATE = -1

Sql = Callable[..., list[dict[str, Any]]]


def consume(member: Member, type: str, ledger: Ledger) -> None:
    while not member.stopped():
        rows = member.session.call("claim_batch", type, BATCH, None, 60)
        while rows:
            with member.session.transaction() as connection:
                ledger.note(connection, rows, member.number)
            rows = member.session.call("finish_batch", rows[0]["batch_key"], None, BATCH)


def produce(member: Member, type: str, priorities: list[int]) -> None:
    """Keep the queue busy, with a backlog of some hundreds: every claim is full."""
    chance = random.Random(member.number)
    for n in itertools.count(1):
        if member.stopped():
            return
        with member.session.transaction():
            for _ in range(100):
                member.session.call("send_message", type, str(n), None, chance.choice(priorities))
        while len(member.session.call("peek", type, "N", 500)) == 500 and not member.stopped():
            time.sleep(0.01)


def later(sql: Sql, ledger: Ledger) -> Callable[[], bool]:
    """Whether the consumers have claimed CLAIMED_SINCE more messages and HELD_SECONDS have passed."""
    count = f"SELECT count(*) AS n FROM {ledger.name}"
    enough = sql(count)[0]["n"] + CLAIMED_SINCE
    end = time.monotonic() + HELD_SECONDS
    return lambda: time.monotonic() >= end and sql(count)[0]["n"] >= enough


def in_ledger(sql: Sql, ledger: Ledger, ids: list[int]) -> bool:
    listed = ", ".join(str(id) for id in ids)
    return bool(sql(f"SELECT count(*) AS n FROM {ledger.name} WHERE id IN ({listed})")[0]["n"] == len(ids))


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("late", "others"),
    [
        pytest.param(0, [0], id="of-the-same-priority", marks=pytest.mark.level(4)),
        pytest.param(-5, [0], id="more-urgent", marks=pytest.mark.level(4)),
        pytest.param(5, [0, 5, 9], id="in-the-middle"),
        pytest.param(0, [-5, 0], id="less-urgent", marks=pytest.mark.level(4)),
    ],
)
def test_a_message_whose_sender_commits_late_is_claimed_within_seconds(
    crowd: Crowd,
    connect: Callable[..., Session],
    database: Database,
    queue: str,
    ledger: Ledger,
    sql: Sql,
    late: int,
    others: list[int],
) -> None:
    crowd.start(consume, queue, ledger, count=CONSUMERS)
    crowd.start(produce, queue, others, count=2)
    until(lambda: sql(f"SELECT count(*) AS n FROM {ledger.name}")[0]["n"] > 200, "the queue is busy", 60)
    sender = connect("sender")
    with sender.transaction():
        id = sender.call("send_message", queue, str(LATE), None, late)[0]["id"]
        until(later(sql, ledger), "others are claimed meanwhile", 60)
    until(lambda: in_ledger(sql, ledger, [id]), "the late message is claimed", SECONDS[database.name])
    crowd.stop()
    crowd.results()


@pytest.mark.level(3)
def test_messages_of_a_take_that_rolls_back_are_claimed_within_seconds(
    crowd: Crowd, connect: Callable[..., Session], database: Database, queue: str, ledger: Ledger, sql: Sql
) -> None:
    crowd.start(consume, queue, ledger, count=CONSUMERS)
    crowd.start(produce, queue, [0], count=2)
    until(lambda: sql(f"SELECT count(*) AS n FROM {ledger.name}")[0]["n"] > 200, "the queue is busy", 60)
    taker = connect("taker")
    with pytest.raises(KeyError), taker.transaction():
        ids: list[int] = []
        while not ids:
            ids = [row["id"] for row in taker.call("take_batch", queue, 5)]
        until(later(sql, ledger), "others are claimed meanwhile", 60)
        raise KeyError("roll back")
    until(lambda: in_ledger(sql, ledger, ids), "the taken messages are claimed", SECONDS[database.name])
    crowd.stop()
    crowd.results()
