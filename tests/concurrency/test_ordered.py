"""Ordered queues under racing consumers: each group strictly in order, one at a time, and nothing gets stuck."""

import json
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from rowqueue.databases import Conflict, Row, Session
from support.crowd import Crowd, Member, insert
from support.outcomes import failure
from support.waiting import until

CONSUMERS = 8
SENDERS = 3
GROUPS = 40
MESSAGES_A_GROUP = 30
HOT_MESSAGES = 600
KILLS = 4
LEASE = 3
RACE_GROUPS = 2
RACE_MESSAGES = 600
# Seconds until the next attempt of a failed message; -1: none.
SLOW_RETRIES = [0, 1, 1, 1, -1]
FAST_RETRIES = [0] * 40 + [1, -1, -1]
# A message of this group always fails and then waits for longer than the test.
HOPELESS = "hopeless"
DRAIN_SECONDS = 200
BURSTS = 15
BURST_GROUPS = 30
TAKES = 5
TAKEN_HOT = 30
TAKEN_GROUPS = 30
TAKEN_A_GROUP = 6
MANY_GROUPS = 60
MANY_EACH = 10

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]


@pytest.fixture
def diary(sql: Sql) -> Iterator[str]:
    """A table of handlings, with their times in nanoseconds of the machine's monotonic clock."""
    name = f"diary_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id BIGINT, attempt INTEGER, body VARCHAR(50), beginning BIGINT, ending BIGINT)")
    yield name
    sql(f"DROP TABLE {name}")


def write(member: Member, diary: str, rows: list[Row], beginning: int) -> None:
    times = f"{beginning}, {time.monotonic_ns()}"
    values = [f"{row['id']}, {row['attempt']}, '{row['body']}', {times}" for row in rows]
    with member.session.transaction() as connection:
        insert(connection, diary, "id, attempt, body, beginning, ending", values)


def handle(member: Member, type: str, diary: str, size: int, trouble: float, retries: list[int]) -> None:
    """Handle batches until stopped; a share `trouble` of the messages fails, a quarter of it of the batches is
    given back."""
    chance = random.Random(time.monotonic_ns())
    while not member.stopped():
        try:
            rows = member.session.call("claim_batch", type, chance.randrange(size) + 1, None, LEASE)
        except Conflict:  # beside takes, see docs/concepts/transactions.md
            assert member.is_mariadb
            continue
        while rows:
            beginning = time.monotonic_ns()
            key = rows[0]["batch_key"]
            if chance.random() < trouble / 4:
                member.session.call("release_batch", key)
                break
            failures = {row["id"]: chance.choice(retries) for row in rows if chance.random() < trouble}
            failures |= {row["id"]: 3_600 for row in rows if row["body"].startswith(HOPELESS)}
            list_of = "\n".join(failure(id, "no", after) for id, after in failures.items())
            write(member, diary, rows, beginning)
            rows = member.finish(key, list_of, chance.choice([0, size])) or []
        else:
            time.sleep(0.02)


def send_all(member: Member, type: str, hot: int, groups: int, each: int, priorities: int) -> int:
    """Send messages that say group/sender/number, one by one; returns how many."""
    chance = random.Random(member.number)
    bodies = [("hot", n) for n in range(hot)]
    for n in range(each):
        at = chance.randrange(len(bodies) + 1)
        bodies[at:at] = [(f"g{group}", n) for group in range(groups)]
    count: defaultdict[str, int] = defaultdict(int)
    for group, _ in bodies:
        body = f"{group}/{member.number}/{count[group]}"
        priority = chance.randrange(priorities)
        member.session.call("send_message", type, body, None, priority, group)
        count[group] += 1
    return len(bodies)


def cancel_heads(member: Member, type: str) -> list[int]:
    """Cancel messages that wait for a retry until stopped; returns their ids."""
    cancelled = []
    while not member.stopped():
        waiting = [row for row in member.session.call("peek", type, "N", 10_000) if row["attempts"] and row["error"]]
        for row in waiting[:1]:
            if member.cancel(row["id"]):
                cancelled.append(row["id"])
        time.sleep(0.05)
    return cancelled


def assert_order(entries: list[Row]) -> None:
    """In each group: one message at a time, each sender's messages in order, no attempt twice."""
    assert len({(entry["id"], entry["attempt"]) for entry in entries}) == len(entries)
    busy_until: defaultdict[str, int] = defaultdict(int)
    last: defaultdict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (-1, 0))
    for entry in sorted(entries, key=lambda entry: entry["beginning"]):
        group, sender, number = entry["body"].split("/")
        assert entry["beginning"] >= busy_until[group], f"two of {group} at the same time: {entry}"
        busy_until[group] = entry["ending"]
        place = int(number), entry["attempt"]
        assert place > last[group, sender], f"{group}: {place} of {sender} came late: {entry}"
        last[group, sender] = place


def finish_off(
    crowd: Crowd, consumers: list[int], holds: Look, type: str, connection: Session, rest: Look
) -> dict[str, int]:
    """Wait until nothing is new or active, end the consumers, and return the contents of the tables."""
    until(lambda: holds(type).keys() <= {"dead"}, f"the end of {type}", DRAIN_SECONDS)
    crowd.stop()
    crowd.results(consumers)
    assert connection.call("claim_batch", type, 1_000) == []  # drops tickets without a message
    return rest(type)


def kill_some(crowd: Crowd, consumers: list[int], replace: Callable[[], list[int]]) -> None:
    chance = random.Random(1)
    for _ in range(KILLS):
        time.sleep(0.4)
        victim = chance.choice(consumers)
        consumers.remove(victim)
        crowd.kill(victim)
        consumers += replace()


@pytest.mark.level(1)
def test_groups_keep_their_order_through_failures_crashes_and_cancels(
    crowd: Crowd, session: Session, queue: str, diary: str, sql: Sql, holds: Look, rest: Look
) -> None:
    session.call(
        "set_queue",
        queue,
        json.dumps(
            {"lease_seconds": LEASE, "max_attempts": 5, "backoff_seconds": 0, "backoff_max_seconds": 1, "ordered": 1}
        ),
    )

    def consume(count: int = 1) -> list[int]:
        return crowd.start(handle, queue, diary, 20, 0.01, SLOW_RETRIES, count=count)

    consumers = consume(CONSUMERS)
    canceller = crowd.start(cancel_heads, queue)
    senders = crowd.start(
        send_all, queue, HOT_MESSAGES // SENDERS, GROUPS, MESSAGES_A_GROUP // SENDERS, 1, count=SENDERS
    )
    kill_some(crowd, consumers, consume)
    session.call("send_message", queue, f"{HOPELESS}/0/0", None, None, HOPELESS)  # stays until it is cancelled
    sent = sum(crowd.results(senders)) + 1
    until(lambda: holds(queue).keys() <= {"dead"}, f"the end of {queue}", DRAIN_SECONDS)
    crowd.stop(canceller)
    cancelled = crowd.results(canceller)[0]
    left = finish_off(crowd, consumers, holds, queue, session, rest)
    entries = sql(f"SELECT * FROM {diary}")
    assert_order(entries)
    assert cancelled
    # How many use up their attempts before they are cancelled depends on luck; it may be none.
    assert left.keys() <= {"message", "dead"} and left.get("message") == left.get("dead")
    assert len({entry["id"] for entry in entries}) == sent, "every message was handled at least once"
    for id in cancelled:
        assert sql(f"SELECT count(*) AS n FROM {diary} WHERE id = %s", id)[0]["n"] >= 1


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("priorities", "trouble"),
    [
        pytest.param(1, 0.0, id="one-priority-all-succeed", marks=pytest.mark.level(4)),
        pytest.param(3, 0.3, id="mixed-priorities-many-fail"),
    ],
)
def test_no_group_is_lost_when_finishing_races_with_claiming(
    crowd: Crowd,
    session: Session,
    queue: str,
    diary: str,
    sql: Sql,
    holds: Look,
    rest: Look,
    priorities: int,
    trouble: float,
) -> None:
    """A finish lets its group continue while other claims drop the group's tickets: two groups, small batches."""
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1000, "backoff_seconds": 0, "backoff_max_seconds": 1, "ordered": 1}',
    )
    consumers = crowd.start(handle, queue, diary, 3, trouble, FAST_RETRIES, count=CONSUMERS)
    senders = crowd.start(send_all, queue, 0, RACE_GROUPS, RACE_MESSAGES // RACE_GROUPS // SENDERS, priorities, count=3)
    sent = sum(crowd.results(senders))
    left = finish_off(crowd, consumers, holds, queue, session, rest)
    entries = sql(f"SELECT * FROM {diary}")
    assert_order(entries)
    assert len({entry["id"] for entry in entries}) == sent
    assert left.get("message", 0) == left.get("dead", 0) and left.keys() <= {"message", "dead"}


def rush(member: Member, type: str) -> None:
    """Claim and finish as fast as possible until stopped."""
    chance = random.Random(member.number)
    while not member.stopped():
        rows = member.session.call("claim_batch", type, chance.randrange(1, BURST_GROUPS), None, 60)
        while rows:
            rows = member.session.call("finish_batch", rows[0]["batch_key"], None, chance.choice([0, BURST_GROUPS]))


@pytest.mark.level(3, one=True)
def test_the_last_message_of_a_group_is_not_left_behind_when_its_ticket_is_dropped_as_its_head_finishes(
    crowd: Crowd, session: Session, queue: str, holds: Look
) -> None:
    """Bursts of a few messages per group, then a pause: a later message would hide a stuck group."""
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 10, "backoff_seconds": 0, "backoff_max_seconds": 0, "ordered": 1, "notify": 0}',
    )
    crowd.start(rush, queue, count=CONSUMERS)
    for _ in range(BURSTS):
        with session.transaction():
            for n in range(BURST_GROUPS * 3):
                session.call("send_message", queue, "x", None, None, f"g{n % BURST_GROUPS}")
        until(lambda: holds(queue) == {}, "the end of a burst", DRAIN_SECONDS)
    crowd.stop()
    crowd.results()


class RolledBack(Exception):
    """Ends the transaction of a take."""


def take(member: Member, type: str, diary: str, size: int, trouble: float) -> None:
    """Take several times in one transaction; a share `trouble` of the transactions is rolled back."""
    chance = random.Random(member.number)
    # MariaDB takes it for a deadlock when two transactions look at each other's locked rows at once, which they skip.
    expected = (RolledBack, Conflict) if member.is_mariadb else (RolledBack,)
    while not member.stopped():
        entries: list[tuple[int, list[Row]]] = []
        with suppress(*expected), member.session.transaction() as connection:
            while len(entries) < TAKES and (rows := member.session.call("take_batch", type, chance.randint(1, size))):
                entries.append((time.monotonic_ns(), rows))
            if chance.random() < trouble:
                raise RolledBack
            # Before the commit, only a later take of this transaction can take from these groups.
            ends: defaultdict[str, int] = defaultdict(time.monotonic_ns)
            values = []
            for beginning, rows in reversed(entries):
                for row in rows:
                    group = row["body"].partition("/")[0]
                    values.append(f"{row['id']}, {row['attempt']}, '{row['body']}', {beginning}, {ends[group]}")
                    ends[group] = beginning
            if values:
                insert(connection, diary, "id, attempt, body, beginning, ending", values)
        if not entries:
            time.sleep(0.02)


@pytest.mark.level(3)
@pytest.mark.parametrize("priorities", [pytest.param(1, marks=pytest.mark.level(4)), 3])
def test_takes_race_with_claims_and_finishes_and_every_group_keeps_its_order(
    crowd: Crowd,
    session: Session,
    queue: str,
    diary: str,
    sql: Sql,
    holds: Look,
    rest: Look,
    priorities: int,
) -> None:
    """A take uses up the tickets of its groups and issues new ones, while others drop theirs."""
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1000, "backoff_seconds": 0, "backoff_max_seconds": 1, "ordered": 1}',
    )
    consumers = crowd.start(take, queue, diary, 20, 0.2, count=CONSUMERS // 2)
    consumers += crowd.start(handle, queue, diary, 10, 0.1, FAST_RETRIES, count=CONSUMERS // 2)
    senders = crowd.start(send_all, queue, TAKEN_HOT, TAKEN_GROUPS, TAKEN_A_GROUP, priorities, count=SENDERS)
    sent = sum(crowd.results(senders))
    left = finish_off(crowd, consumers, holds, queue, session, rest)
    entries = sql(f"SELECT * FROM {diary}")
    assert len({entry["id"] for entry in entries}) == sent
    assert left.get("message", 0) == left.get("dead", 0) and left.keys() <= {"message", "dead"}
    assert_order(entries)


@pytest.mark.level(1)
def test_the_first_messages_of_many_groups_are_handled_once_while_takes_roll_back(
    crowd: Crowd, session: Session, queue: str, diary: str, sql: Sql, holds: Look, rest: Look
) -> None:
    """A claim takes those of all groups at once if each ticket is that of a first message."""
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1000, "backoff_seconds": 0, "backoff_max_seconds": 1, "ordered": 1}',
    )
    with session.transaction():
        for number in range(MANY_EACH):
            for group in range(MANY_GROUPS):
                session.call("send_message", queue, f"g{group}/0/{number}", None, None, f"g{group}")
    consumers = crowd.start(take, queue, diary, 30, 0.3, count=CONSUMERS // 2)
    consumers += crowd.start(handle, queue, diary, 30, 0.2, FAST_RETRIES, count=CONSUMERS // 2)
    left = finish_off(crowd, consumers, holds, queue, session, rest)
    entries = sql(f"SELECT * FROM {diary}")
    assert len({entry["id"] for entry in entries}) == MANY_GROUPS * MANY_EACH
    assert left.get("message", 0) == left.get("dead", 0) and left.keys() <= {"message", "dead"}
    assert_order(entries)


def test_a_message_taken_by_the_ticket_of_a_more_urgent_one_keeps_its_attempts(session: Session, queue: str) -> None:
    """The ticket of a message is still there when the message is put back."""
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 10, "backoff_seconds": 0, "backoff_max_seconds": 0, "ordered": 1}',
    )
    head = session.call("send_message", queue, "less urgent", None, 1, "g")[0]["id"]
    session.call("send_message", queue, "more urgent", None, 0, "g")
    attempts = []
    for _ in range(3):
        row = session.call("claim_batch", queue, 1)[0]
        assert row["id"] == head
        attempts.append(row["attempt"])
        session.call("fail", head, row["batch_key"], "no", 0)
    assert attempts == [1, 2, 3]


def drain(session: Session, type: str) -> list[str]:
    """Bodies in the order in which they are handled, one by one, until nothing is ready."""
    bodies = []
    rows = session.call("claim_batch", type, 1)
    while rows:
        bodies.append(rows[0]["body"])
        rows = session.call("finish_batch", rows[0]["batch_key"], None, 1)
    return bodies


@pytest.mark.parametrize("at_work", [False, True], ids=["free", "at-work"])
def test_messages_sent_before_the_queue_was_ordered_are_all_claimed(
    session: Session, queue: str, connect: Callable[..., Session], at_work: bool
) -> None:
    """A transaction that began before the queue was ordered has sent a message without a group."""
    early = connect("early")
    with early.transaction():
        early.call("send_message", queue, "1", None, 1, "g")
        session.call(
            "set_queue",
            queue,
            '{"max_attempts": 10, "backoff_seconds": 0, "backoff_max_seconds": 0, "ordered": 1}',
        )
        for body in ("2", "3"):
            session.call("send_message", queue, body, None, 0, "g")
        held = session.call("claim_batch", queue, 1) if at_work else []
    if held:
        assert session.call("claim_batch", queue, 10) == []
        session.call("complete_batch", held[0]["batch_key"])
    assert sorted([row["body"] for row in held] + drain(session, queue)) == ["1", "2", "3"]


def test_a_queue_is_made_ordered_again_after_a_late_message_of_its_first_order(
    session: Session, queue: str, connect: Callable[..., Session]
) -> None:
    """Messages sent to groups are claimed without groups and leave no tickets."""
    policy = '{"backoff_seconds": 0, "backoff_max_seconds": 0, "ordered": %d}'
    session.call("set_queue", queue, policy % 1)
    early = connect("early")
    with early.transaction():
        early.call("send_message", queue, "late", None, 0, "g")
        session.call("set_queue", queue, policy % 0)
    assert drain(session, queue) == ["late"]
    assert session.call("set_queue", queue, policy % 1)[0]["ordered"] == 1
    for body in ("1", "2"):
        session.call("send_message", queue, body, None, 0, "g")
    assert drain(session, queue) == ["1", "2"]
