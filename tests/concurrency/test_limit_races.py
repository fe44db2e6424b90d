"""Limits under racing consumers that are killed: never more active, never more claimed, and no leftovers."""

import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from rowqueue.databases import QueueError, Row, Session
from rowqueue.install import contract
from support.crowd import Crowd, Member, insert
from support.outcomes import failure
from support.waiting import until

CONSUMERS = 16
LEASE = 1
# How long the rest may take on a busy machine, in seconds.
PATIENCE = 120
HOT = "hot"

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]


@pytest.fixture
def diary(sql: Sql) -> Iterator[str]:
    """A table of what was finished, when, in the transaction that finished it."""
    name = f"diary_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id BIGINT, body VARCHAR(50), ending BIGINT)")
    yield name
    sql(f"DROP TABLE {name}")


def settle(member: Member, diary: str, rows: list[Row], failures: str | None) -> None:
    """Finish a batch and note what succeeded, both or none."""
    failed = {json.loads(line)["id"] for line in (failures or "").splitlines()}
    done = [f"{row['id']}, '{row['body']}', {time.monotonic_ns()}" for row in rows if row["id"] not in failed]
    try:
        with member.session.transaction() as connection:
            if done:
                insert(connection, diary, "id, body, ending", done)
            member.session.call("finish_batch", rows[0]["batch_key"], failures)
    except QueueError as error:
        if error.number != contract.load().errors["lease_lost"].number:
            raise


def handle(member: Member, type: str, diary: str, size: int, seconds: float, trouble: float) -> None:
    """Claim, work and finish until stopped; a share `trouble` of the messages fails, of the batches is held for
    too long, and given back."""
    chance = random.Random(time.monotonic_ns())
    while not member.stopped():
        rows = member.session.call("claim_batch", type, chance.randint(1, size), None, LEASE)
        if not rows:
            time.sleep(0.01)
            continue
        time.sleep(seconds * chance.random())
        if chance.random() < trouble / 4:
            time.sleep(LEASE * 1.2)
        if chance.random() < trouble:
            member.session.call("release_batch", rows[0]["batch_key"])
            continue
        failures = "\n".join(failure(row["id"], "no", 0) for row in rows if chance.random() < trouble)
        settle(member, diary, rows, failures or None)


def send(session: Session, type: str, groups: dict[str, int]) -> int:
    """So many messages for each group, by turns; returns how many."""
    left = dict(groups)
    while left:
        with session.transaction():
            for group in list(left)[:100]:
                session.call("send_message", type, group, None, None, group)
        left = {group: count - 1 for group, count in left.items() if count > 1}
    return sum(groups.values())


@contextmanager
def watched(session: Session, type: str, check: Callable[[list[Row]], None]) -> Iterator[list[int]]:
    """Look at what batches hold, again and again, while the block runs; the numbers of messages that were seen."""
    end, seen, errors = Event(), [], []

    def look() -> None:
        try:
            while not end.is_set():
                rows = session.call("peek", type, "A", 1_000)
                check(rows)
                seen.append(len(rows))
                time.sleep(0.002)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()
    if errors:
        raise errors[0]


def kill_some(crowd: Crowd, consumers: list[int], kills: int, seconds: float, replace: Callable[[], list[int]]) -> None:
    chance = random.Random(1)
    for _ in range(kills):
        time.sleep(seconds)
        victim = chance.choice(consumers)
        consumers.remove(victim)
        crowd.kill(victim)
        consumers += replace()


def work_off(
    crowd: Crowd, consumers: list[int], session: Session, type: str, diary: str, sql: Sql, rest: Look, messages: int
) -> list[Row]:
    """Wait for the end of all messages, end the consumers, and return what the diary says, by time."""
    until(lambda: sql(f"SELECT COUNT(*) AS n FROM {diary}")[0]["n"] >= messages, f"end of {type}", PATIENCE)
    crowd.stop()
    crowd.results(consumers)
    assert session.call("claim_batch", type, 1_000) == []  # drops tickets without a message
    assert rest(type) == {}
    entries = sql(f"SELECT id, body, ending FROM {diary} ORDER BY ending, id")
    assert len({entry["id"] for entry in entries}) == len(entries), "a message was finished twice"
    return entries


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("messages", "kills"),
    [pytest.param(200, 4, id="short"), pytest.param(3_000, 40, id="long", marks=pytest.mark.level(4))],
)
def test_never_more_than_max_active_are_at_work(
    crowd: Crowd,
    session: Session,
    connect: Callable[..., Session],
    queue: str,
    diary: str,
    sql: Sql,
    rest: Look,
    messages: int,
    kills: int,
) -> None:
    session.call(
        "set_queue",
        queue,
        json.dumps(
            {
                "lease_seconds": LEASE,
                "max_attempts": 1_000,
                "backoff_seconds": 0,
                "backoff_max_seconds": 1,
                "max_active": 3,
            }
        ),
    )
    session.call("send_batch", queue, "\n".join(["x"] * messages))

    def check(rows: list[Row]) -> None:
        assert len(rows) <= 3, rows

    def consume(count: int = 1) -> list[int]:
        return crowd.start(handle, queue, diary, 2, 0.02, 0.12, count=count)

    with watched(connect("observer"), queue, check) as seen:
        consumers = consume(CONSUMERS)
        kill_some(crowd, consumers, kills, 0.2, consume)
        entries = work_off(crowd, consumers, session, queue, diary, sql, rest, messages)
    assert len(entries) == messages
    assert max(seen) == 3, "the limit was never reached: the test has lost its point"


def count_claims(member: Member, type: str) -> list[tuple[float, float, int]]:
    """Claim and complete until stopped; returns the earliest and latest time of each claim, and its size."""
    chance, claims = random.Random(member.number), []
    while not member.stopped():
        before = time.monotonic()
        rows = member.session.call("claim_batch", type, chance.randint(1, 5), None, LEASE)
        if not rows:
            time.sleep(0.01)
            continue
        claims.append((before, time.monotonic(), len(rows)))
        if chance.random() < 0.05:
            time.sleep(LEASE * 1.2)  # retried, and uses tokens again
        member.finish(rows[0]["batch_key"])
    return claims


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("rate", "period", "seconds"),
    [pytest.param(20, 2, 4, id="short"), pytest.param(100, 10, 25, id="long", marks=pytest.mark.level(4))],
)
def test_never_more_than_rate_are_claimed(
    crowd: Crowd, session: Session, queue: str, sql: Sql, rate: int, period: int, seconds: int
) -> None:
    session.call(
        "set_queue",
        queue,
        json.dumps(
            {
                "lease_seconds": LEASE,
                "max_attempts": 1_000,
                "backoff_seconds": 0,
                "backoff_max_seconds": 1,
                "on_complete": "archive",
                "rate": rate,
                "rate_seconds": period,
            }
        ),
    )
    session.call("send_batch", queue, "\n".join(["x"] * rate * 10))
    begun = time.monotonic()
    consumers = crowd.start(count_claims, queue, count=CONSUMERS if rate == 100 else CONSUMERS // 2)
    working = time.monotonic()
    kill_some(crowd, consumers, seconds, 0.8, lambda: crowd.start(count_claims, queue))
    time.sleep(max(working + seconds - time.monotonic(), 0))
    crowd.stop()
    worked = time.monotonic() - working
    claims = [claim for claims in crowd.results(consumers) for claim in claims]
    ended = time.monotonic()

    # Killed processes report nothing, but each message has its number of attempts.
    messages = [row for state in "NAC" for row in session.call("peek", queue, state, 10_000)]
    assert len(messages) == rate * 10
    total = sum(row["attempts"] for row in messages)
    assert total <= rate + (ended - begun) * rate / period
    assert total >= worked * rate / period * 0.7, "tokens are lost"
    starts = sorted(before for before, _, _ in claims)
    for start in starts:
        count = 0
        for _, after, size in sorted((c for c in claims if c[0] >= start), key=lambda c: c[1]):
            count += size
            assert count <= rate + (after - start) * rate / period


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("each", "hot", "kills"),
    [pytest.param(2, 80, 3, id="short"), pytest.param(60, 2_000, 40, id="long", marks=pytest.mark.level(4))],
)
def test_never_more_than_group_max_active_of_a_group_are_at_work(
    crowd: Crowd,
    session: Session,
    connect: Callable[..., Session],
    queue: str,
    diary: str,
    sql: Sql,
    rest: Look,
    each: int,
    hot: int,
    kills: int,
) -> None:
    """Fifty groups, and one with many messages that all stand before theirs."""
    session.call(
        "set_queue",
        queue,
        json.dumps(
            {
                "lease_seconds": LEASE,
                "max_attempts": 1_000,
                "backoff_seconds": 0,
                "backoff_max_seconds": 1,
                "group_max_active": 2,
            }
        ),
    )
    sent = send(session, queue, {HOT: hot})
    sent += send(session, queue, {f"g{n}": each for n in range(50)})

    def check(rows: list[Row]) -> None:
        assert max(Counter(row["group_key"] for row in rows).values(), default=0) <= 2, rows

    def consume(count: int = 1) -> list[int]:
        return crowd.start(handle, queue, diary, 4, 0.04, 0.02, count=count)

    with watched(connect("observer"), queue, check) as seen:
        consumers = consume(CONSUMERS)
        kill_some(crowd, consumers, kills, 0.2, consume)
        entries = work_off(crowd, consumers, session, queue, diary, sql, rest, sent)
    assert len(entries) == sent
    assert max(seen) > 10
    bodies = [entry["body"] for entry in entries]
    assert any(body != HOT for body in bodies[:20]), "the hot group has held up all others"


@pytest.mark.level(1)
def test_never_more_than_group_rate_are_claimed_and_all_groups_continue(
    crowd: Crowd, session: Session, queue: str, diary: str, sql: Sql, rest: Look
) -> None:
    rate, groups, each = 4, 10, 10
    session.call(
        "set_queue",
        queue,
        json.dumps(
            {
                "lease_seconds": LEASE,
                "max_attempts": 1_000,
                "backoff_seconds": 0,
                "backoff_max_seconds": 1,
                "group_rate": rate,
                "group_rate_seconds": 1,
            }
        ),
    )
    sent = send(session, queue, {f"g{n}": each for n in range(groups)})
    begun = time.monotonic_ns()
    consumers = crowd.start(handle, queue, diary, 6, 0.01, 0.0, count=CONSUMERS // 2)
    entries = work_off(crowd, consumers, session, queue, diary, sql, rest, sent)
    assert len(entries) == sent
    for group in {entry["body"] for entry in entries}:
        times = [entry["ending"] for entry in entries if entry["body"] == group]
        for n, ending in enumerate(times, 1):
            assert n <= rate + (ending - begun) / 1e9 * rate
