"""Consumers that are killed at random: their leases end, others take over, every message is finished."""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Session
from support.crowd import Crowd, Ledger, Member, numbers
from support.waiting import until

CONSUMERS = 6
PRODUCERS = 2
MESSAGES_A_PRODUCER = 5_000
KILLS = 25
LEASE = 1
BATCH = 50
# How long anything may take on a busy machine, in seconds.
PATIENCE = 60

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]


def consume(member: Member, type: str, ledger: Ledger) -> None:
    """Note each attempt in the ledger before it is finished."""
    rows: list[dict[str, Any]] = []
    while not member.stopped():
        rows = rows or member.session.call("claim_batch", type, BATCH, None, LEASE)
        if not rows:
            time.sleep(0.01)
            continue
        with member.session.transaction() as connection:
            ledger.note(connection, rows, member.number)
        rows = member.finish(rows[0]["batch_key"], None, BATCH) or []
    if rows:
        member.session.call("release_batch", rows[0]["batch_key"])


def clutch(member: Member, type: str, ledger: Ledger) -> None:
    """Claim a batch, note it, and hold it to the end: killing this process always leaves a lease."""
    rows: list[dict[str, Any]] = []
    while not rows:
        rows = member.session.call("claim_batch", type, BATCH, None, LEASE)
    with member.session.transaction() as connection:
        ledger.note(connection, rows, member.number)
    time.sleep(PATIENCE)


def produce(member: Member, type: str, first: int) -> None:
    for n in range(first, first + MESSAGES_A_PRODUCER, 50):
        member.session.call("send_batch", type, numbers(n, 50))
        time.sleep(0.02)


@pytest.mark.level(3)
def test_every_message_is_finished_though_consumers_are_killed_while_producers_send(
    crowd: Crowd, session: Session, queue: str, ledger: Ledger, sql: Sql, holds: Look, rest: Look
) -> None:
    session.call("set_queue", queue, json.dumps({"lease_seconds": LEASE, "max_attempts": 1_000}))
    chance = random.Random(7)
    session.call("send_batch", queue, numbers(-BATCH, BATCH))
    [doomed] = crowd.start(clutch, queue, ledger)
    until(lambda: sql(f"SELECT 1 FROM {ledger.name}"), "one consumer holds a batch", PATIENCE)
    crowd.kill(doomed)
    consumers = crowd.start(consume, queue, ledger, count=CONSUMERS)
    producers = [crowd.start(produce, queue, number * MESSAGES_A_PRODUCER)[0] for number in range(PRODUCERS)]
    for _ in range(KILLS):
        time.sleep(chance.random() * 0.15)
        crowd.kill(consumers.pop(chance.randrange(len(consumers))))
        consumers += crowd.start(consume, queue, ledger)
    crowd.results(producers)
    # No call of rescue_expired: claiming does it.
    until(lambda: holds(queue) == {}, "every message is finished", PATIENCE)
    crowd.stop()
    crowd.results()
    found = sql(
        "SELECT count(DISTINCT n) AS bodies, count(DISTINCT id) AS ids, max(attempt) AS attempts FROM " + ledger.name
    )[0]
    sent = BATCH + PRODUCERS * MESSAGES_A_PRODUCER
    assert (found["bodies"], found["ids"]) == (sent, sent)
    assert found["attempts"] > 1, "no lease was rescued: the test has lost its point"
    twice = f"SELECT id, attempt FROM {ledger.name} GROUP BY id, attempt HAVING count(*) > 1"
    assert sql(twice) == [], "every attempt has a number of its own"
    assert rest(queue) == {}
