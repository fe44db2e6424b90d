"""Many consumers, senders and operators at once: nothing lost, nothing handled twice, no error."""

import json
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import Session
from support.crowd import Crowd, Ledger, Member, numbers
from support.outcomes import failure

CONSUMERS = 8
MESSAGES = 100_000
FEWER_MESSAGES = 30_000
MIXED_MESSAGES = 12_000
BATCH = 100
KEYS = 100
GROUPS = 300
DRAIN_SECONDS = 90

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]


def take_all(member: Member, type: str, ledger: Ledger) -> None:
    while True:
        with member.session.transaction() as connection:
            rows = member.session.call("take_batch", type, BATCH)
            if not rows:
                return
            ledger.note(connection, rows, member.number)


def claim_all(member: Member, type: str, ledger: Ledger) -> None:
    rows = member.session.call("claim_batch", type, BATCH, None, 600)
    while rows:
        with member.session.transaction() as connection:
            ledger.note(connection, rows, member.number)
        rows = member.session.call("finish_batch", rows[0]["batch_key"], None, BATCH)


def claim_ring(member: Member, type: str, ledger: Ledger) -> None:
    """Until nothing is ready: a claim that finds all of its messages locked by others returns nothing."""
    while member.session.call("queue_stats", type)[0]["ready"]:
        if rows := member.session.call("claim_wraparound", type, BATCH, None, 600):
            with member.session.transaction() as connection:
                ledger.note(connection, rows, member.number)
            assert member.session.call("complete_batch", rows[0]["batch_key"])[0]["affected"] == len(rows)


@pytest.mark.parametrize(
    ("work", "messages"),
    [
        pytest.param(claim_all, FEWER_MESSAGES, id="claim_fewer"),
        pytest.param(claim_all, MESSAGES, id="claim_all", marks=pytest.mark.level(4)),
        pytest.param(take_all, FEWER_MESSAGES, id="take_all", marks=pytest.mark.level(3)),
        pytest.param(claim_ring, FEWER_MESSAGES, id="claim_ring", marks=pytest.mark.level(3)),
    ],
)
def test_eight_consumers_lose_nothing_and_finish_nothing_twice(
    crowd: Crowd,
    session: Session,
    queue: str,
    ledger: Ledger,
    sql: Sql,
    rest: Look,
    work: Callable[..., None],
    messages: int,
) -> None:
    if work is claim_ring:
        session.call("set_queue", queue, '{"ring": 1}')
    for first in range(0, messages, 10_000):
        session.call("send_batch", queue, numbers(first, 10_000))
    crowd.start(work, queue, ledger, count=CONSUMERS)
    crowd.results()
    found = sql(
        "SELECT count(*) AS handled, count(DISTINCT id) AS ids, count(DISTINCT n) AS bodies, min(n) AS first,"
        f" max(n) AS last, count(DISTINCT consumer) AS consumers, max(attempt) AS attempts FROM {ledger.name}"
    )
    assert found == [
        {
            "handled": messages,
            "ids": messages,
            "bodies": messages,
            "first": 0,
            "last": messages - 1,
            "consumers": CONSUMERS,
            "attempts": 1,
        }
    ]
    assert rest(queue) == {}


def send_keys(member: Member, type: str) -> list[tuple[int, int]]:
    rows = (member.session.call("send_message", type, "x", None, None, None, f"key-{n}")[0] for n in range(KEYS))
    return [(row["id"], row["created"]) for row in rows]


def test_eight_senders_racing_on_a_hundred_keys_make_one_message_a_key(
    crowd: Crowd, session: Session, queue: str
) -> None:
    crowd.start(send_keys, queue, count=CONSUMERS)
    for answers in zip(*crowd.results(), strict=True):
        assert len({id for id, _ in answers}) == 1
        assert sorted(created for _, created in answers) == [0] * (CONSUMERS - 1) + [1]
    assert len(session.call("peek", queue, "N", 1_000)) == KEYS


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_sender_waits_for_an_open_transaction_with_the_same_key_and_then_decides(
    connect: Callable[..., Session], queue: str, ending: str
) -> None:
    first, second = connect("first"), connect("second")
    answer: list[dict[str, Any]] = []
    call = ("send_message", queue, "x", None, None, None, "key")
    thread = threading.Thread(target=lambda: answer.extend(second.call(*call)))
    try:
        with first.transaction():
            held = first.call(*call)[0]
            thread.start()
            time.sleep(0.3)
            assert answer == [], "it did not wait"
            if ending == "rollback":
                raise KeyError
    except KeyError:
        pass
    thread.join(30)
    live = [row["id"] for row in first.call("peek", queue)]
    if ending == "commit":
        assert (answer[0]["id"], answer[0]["created"], live) == (held["id"], 0, [held["id"]])
    else:
        assert (answer[0]["created"], live) == (1, [answer[0]["id"]])


def produce(member: Member, types: list[str], count: int) -> int:
    """Sends about `count` messages, most of them in batches, the others with every option; returns how many."""
    chance = random.Random(member.number)
    sent = 0
    while sent < count:
        if chance.random() < 0.1:
            unordered = chance.choice([types[0], types[2]])
            sent += member.session.call("send_batch", unordered, numbers(0, chance.choice([50, 500])))[0]["affected"]
            continue
        key = f"k{chance.randrange(20)}" if chance.random() < 0.3 else None
        type = chance.choice([types[1], *types])
        run_at = datetime.now(UTC) + timedelta(seconds=chance.random()) if chance.random() < 0.2 else None
        arguments = (run_at, chance.randrange(-2, 3), f"g{chance.randrange(GROUPS)}", key, chance.choice([None, 2]))
        sent += member.session.call("send_message", type, "x", *arguments)[0]["created"]
    return sent


def consume(member: Member, types: list[str]) -> None:
    """Claims and finishes in every way, and now and then forgets what it has claimed."""
    chance = random.Random(member.number)
    while not member.stopped():
        type = chance.choice(types)
        if chance.random() < 0.2:
            with member.session.transaction():
                member.session.call("take_batch", type, chance.randrange(1, 100))
                time.sleep(chance.choice([0, 0, 0, 0.1]))
            continue
        claim = "claim_wraparound" if type == types[2] else "claim_batch"
        rows = member.session.call(claim, type, chance.randrange(1, 200), None, 1)
        if not rows:
            time.sleep(0.02)
        for _ in range(3):
            if not rows:
                break
            failures = "\n".join(failure(row["id"], "no", chance.choice([None, 0, 1, -1])) for row in rows[:2])
            rows = member.finish(rows[0]["batch_key"], failures, chance.randrange(0, 200)) or []


def meddle(member: Member, types: list[str]) -> int:
    """Does to other processes' batches and messages what an operator may do; returns how many it removed."""
    chance = random.Random(member.number)
    removed = 0
    while not member.stopped():
        type, call = chance.choice(types), member.session.call
        held = call("peek", type, "A", 20)
        if held:
            row = chance.choice(held)
            id, key = row["id"], row["batch_key"]
            meddling: list[tuple[Any, ...]] = [
                ("complete", id, key),
                ("complete_batch", key),
                ("fail", id, key, "meddled", chance.choice([None, 0, 1])),
                ("dead_letter", id, key, "meddled"),
                ("release_batch", key),
                ("extend_lease", key, 1),
            ]
            member.settle(*chance.choice(meddling))
        call("rescue_expired", chance.choice([type, None]))
        if chance.random() < 0.1:
            removed += call("purge", type, chance.choice("EEEN"))[0]["affected"]
        call("redrive_all", type)
        for row in call("peek", type, "N", 5):
            if chance.random() < 0.2:
                removed += member.cancel(row["id"])
            elif chance.random() < 0.2:
                call("count_attempt", row["id"], "as after a take", 0)
        call("queue_stats", type)
        call("wait_for_message", type, 0)
        time.sleep(0.02)
    return removed


def drain(member: Member, types: list[str]) -> None:
    """Until nothing is new or active: what failed is tried again, what was forgotten is rescued."""
    deadline = time.monotonic() + DRAIN_SECONDS
    for type in types:
        while True:
            if rows := member.session.call("claim_batch", type, 1_000, None, 60):
                member.session.call("complete_batch", rows[0]["batch_key"])
                continue
            stats = member.session.call("queue_stats", type)[0]
            if not any(stats[state] for state in ("ready", "delayed", "active", "expired")):
                break
            assert time.monotonic() < deadline, f"nobody can claim what is left: {stats}"
            time.sleep(0.02)


@pytest.mark.level(3)
def test_senders_consumers_and_operators_together_get_no_error_and_lose_nothing(
    crowd: Crowd, session: Session, queue: str, sql: Sql, server: Any, rest: Look
) -> None:
    types = [f"{queue}.plain", f"{queue}.ordered", f"{queue}.ring"]
    for type in types:
        ring = int(type.endswith("ring"))
        session.call(
            "set_queue",
            type,
            json.dumps(
                {
                    "lease_seconds": 1,
                    "max_attempts": 100,
                    "backoff_seconds": 0,
                    "backoff_max_seconds": 1,
                    "on_complete": "archive",
                    "ordered": int(type.endswith("ordered")),
                    "ring": ring,
                }
            ),
        )
    consumers = crowd.start(consume, types, count=8)
    meddlers = crowd.start(meddle, types, count=4)
    producers = crowd.start(produce, types, MIXED_MESSAGES // 4, count=4)
    sent = sum(crowd.results(producers))
    crowd.stop(consumers + meddlers)
    crowd.results(consumers)
    removed = sum(crowd.results(meddlers))
    crowd.results(crowd.start(drain, types))
    assert {stem for type in types for stem in rest(type)} <= {"message", "dead"}
    dead = sum(rest(type).get("dead", 0) for type in types)
    assert dead == sum(rest(type).get("message", 0) for type in types)
    archive = (
        f"SELECT count(*) AS n, count(DISTINCT id) AS ids FROM {server.table('archive')} WHERE type IN (%s, %s, %s)"
    )
    finished = sql(archive, *types)[0]
    assert finished["n"] == finished["ids"]
    assert finished["n"] + dead + removed == sent
