"""Races that are specific to PostgreSQL, in a fixed order of steps."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, QueueError, Session
from servers import Server

pytestmark = pytest.mark.product("postgresql")

Claimed = list[dict[str, Any]]


@pytest.fixture
def slow_claim(server: Server, database: Database, connect: Callable[..., Session], queue: str) -> Callable[[], Any]:
    """A claim that stops at group `a` and continues when the block ends: `with slow_claim() as rows`."""
    slow = connect("slow")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'slow' AND wait_event_type = 'Lock'"

    @contextmanager
    def claiming(size: int = 10) -> Iterator[Claimed]:
        claimed: Claimed = []
        thread = threading.Thread(target=lambda: claimed.extend(slow.call("claim_batch", queue, size, "slow", 60)))
        with server.client(database.url) as other, server.client(database.url) as looking:
            with other.transaction(force_rollback=True):
                other.execute(
                    "INSERT INTO mq.group_lock (id, type, group_key)"
                    " SELECT min(id), type, group_key FROM mq.grouped WHERE type = %s AND group_key = 'a'"
                    " GROUP BY type, group_key",
                    [queue],
                )
                thread.start()
                deadline = time.monotonic() + 30
                while not looking.execute(waiting).fetchone():
                    assert time.monotonic() < deadline, "the claim does not wait"
                    time.sleep(0.01)
                yield claimed
            thread.join(30)

    return claiming


@pytest.fixture
def ordered(session: Session, queue: str) -> Session:
    session.call("set_queue", queue, '{"ordered": 1}')
    return session


def claim_one(session: Session, queue: str, group: str) -> dict[str, Any]:
    row = session.call("claim_batch", queue, 1)[0]
    assert row["group_key"] == group
    return row


def test_a_slow_claim_does_not_claim_a_message_that_was_finished_meanwhile(
    ordered: Session, queue: str, slow_claim: Any, sql: Callable[..., Claimed]
) -> None:
    """Its cursor still sees the message: without a second look the claim would hold a message that is no more, and its
    group would be locked for good."""
    first = ordered.call("send_message", queue, "first", None, 0, "a")[0]["id"]
    ordered.call("send_message", queue, "head of its group, less urgent", None, 2, "b")
    ordered.call("send_message", queue, "second of its group, more urgent", None, 1, "b")
    # A ticket without a message: the claim processes tickets one by one and has not seen those of the second group.
    sql(
        "INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id)"
        " VALUES (now(), -1, -1, 0, %s, true) RETURNING id",
        queue,
    )
    with slow_claim(2) as claimed:
        for _ in range(2):
            row = claim_one(ordered, queue, "b")
            assert ordered.call("complete", row["id"], row["batch_key"])[0]["affected"] == 1
    assert [row["id"] for row in claimed] == [first]
    assert sql("SELECT ids FROM mq.batch WHERE type = %s", queue) == [{"ids": [first]}]
    assert sql("SELECT group_key FROM mq.group_lock WHERE type = %s", queue) == [{"group_key": "a"}]


def test_a_message_that_is_redriven_while_a_claim_drops_its_old_ticket_gets_a_new_one(
    ordered: Session, queue: str, slow_claim: Any
) -> None:
    ordered.call("send_message", queue, "first", None, 5, "a")
    head = ordered.call("send_message", queue, "head of its group, less urgent", None, 0, "b")[0]["id"]
    ordered.call("send_message", queue, "second of its group, more urgent", None, -1, "b")
    # The head uses the ticket of the second message; its own ticket stays.
    row = claim_one(ordered, queue, "b")
    assert row["id"] == head
    ordered.call("dead_letter", head, row["batch_key"], "no")
    row = claim_one(ordered, queue, "b")
    ordered.call("complete", row["id"], row["batch_key"])
    with slow_claim() as claimed:
        assert ordered.call("redrive", head)[0]["affected"] == 1
    assert [row["group_key"] for row in claimed] == ["a"]
    assert claim_one(ordered, queue, "b")["id"] == head


def test_a_group_continues_when_its_last_place_is_taken_while_another_message_of_it_is_finished(
    session: Session, connect: Callable[..., Session], queue: str, slow_claim: Any
) -> None:
    """The claim drops the group's other tickets: a call that frees a place must wait and then issue a new one."""
    session.call("set_queue", queue, '{"group_max_active": 2}')
    session.call("send_message", queue, "b1", None, 0, "b")
    [first] = session.call("claim_batch", queue, 1)
    for body, priority in (("b2", 1), ("b3", 2)):
        session.call("send_message", queue, body, None, priority, "b")
    session.call("send_message", queue, "a1", None, 3, "a")
    with ThreadPoolExecutor(1) as pool:
        with slow_claim() as claimed:
            finishing = pool.submit(connect("finisher").call, "complete_batch", first["batch_key"])
            time.sleep(0.3)
        assert finishing.result(30) == [{"affected": 1}]
    assert [row["body"] for row in claimed] == ["b2", "a1"]
    assert [row["body"] for row in session.call("claim_batch", queue, 10)] == ["b3"]


def test_an_ordered_queue_is_not_claimed_from_a_snapshot(ordered: Session, queue: str) -> None:
    """A finish with an old snapshot would not see the group's next message, and the group would be stuck."""
    ordered.call("send_message", queue, "first", None, None, "a")
    second = ordered.call("send_message", queue, "second", None, None, "a")[0]["id"]
    row = claim_one(ordered, queue, "a")
    calls: list[tuple[Any, ...]] = [
        ("claim_batch", queue),
        ("take_batch", queue),
        ("complete", row["id"], row["batch_key"]),
        ("complete_batch", row["batch_key"]),
        ("finish_batch", row["batch_key"]),
        ("release_batch", row["batch_key"]),
        ("release_consumer", ordered.call("peek", queue, "A")[0]["consumer"]),
        ("update_message", second, '{"body": "x"}'),
        ("claim_any", queue),
        ("dead_letter", row["id"], row["batch_key"], "no"),
        ("purge", queue, "N"),
    ]
    for call in calls:
        with (
            pytest.raises(QueueError, match="wrong_isolation") as refused,
            ordered.transaction() as tx,
        ):
            tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            ordered.call(*call)
        assert refused.value.number == 50001, call
    with ordered.transaction() as tx:
        tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        ordered.call("send_message", queue, "third", None, None, "a")
    assert ordered.call("complete_batch", row["batch_key"])[0]["affected"] == 1
    assert claim_one(ordered, queue, "a")["body"] == "second"


@pytest.mark.parametrize("delay", [None, 3_600])
def test_a_claim_from_a_snapshot_does_not_return_a_body_that_was_changed_since(
    session: Session, connect: Callable[..., Session], queue: str, delay: int | None
) -> None:
    id = session.call("send_message", queue, "old")[0]["id"]
    options = '{"body": "new"}' if delay is None else f'{{"body": "new", "delay_seconds": {delay}}}'
    with pytest.raises(Conflict), session.transaction() as tx:
        tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        tx.execute("SELECT 1")
        assert connect().call("update_message", id, options) == [{"affected": 1, "state": "N"}]
        session.call("claim_batch", queue)
    assert [row["body"] for row in session.call("claim_batch", queue)] == ["new"] * (delay is None)


def test_a_queue_with_limits_is_not_claimed_from_a_snapshot(session: Session, queue: str) -> None:
    """Claims by others after the snapshot would not count."""
    session.call("send", queue, "body")
    session.call("set_queue", queue, '{"ring": 1}')  # a ring, for claim_wraparound
    for limits in ('{"max_active": 1}', '{"max_active": 0, "rate": 1}'):
        session.call("set_queue", queue, limits)
        for procedure in ("claim_batch", "get_message", "take_batch", "claim_wraparound"):
            with (
                pytest.raises(QueueError, match="wrong_isolation") as refused,
                session.transaction() as tx,
            ):
                tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                session.call(procedure, queue)
            assert refused.value.number == 50001, procedure
    assert len(session.call("claim_batch", queue)) == 1


def test_a_take_skips_any_number_of_tickets_of_busy_groups(
    ordered: Session, queue: str, sql: Callable[..., Claimed]
) -> None:
    ordered.call("send_message", queue, "head of the long group", None, None, "a")
    claim_one(ordered, queue, "a")
    sql(
        "SELECT count(mq.send_message(%s, 'more', p_group_key => 'a')) FROM generate_series(1, 10001)",
        queue,
    )
    ordered.call("send_message", queue, "other", None, None, "b")
    assert [row["body"] for row in ordered.call("take_batch", queue, 10)] == ["other"]


TAKES = 80
TAKE_GROUPS = 250


@pytest.mark.level(4)
def test_a_transaction_takes_from_twenty_thousand_groups_during_claims_and_no_group_is_stuck(
    ordered: Session, queue: str, connect: Callable[..., Session], sql: Callable[..., Claimed]
) -> None:
    """Each take has the most groups possible; the stripe locks of the transaction only make others wait."""
    sql(
        "SELECT count(mq.send_message(%s, 'g' || g || '/' || n, p_group_key => 'g' || g))"
        " FROM generate_series(1, 2) AS n CROSS JOIN generate_series(1, %s) AS g",
        queue,
        TAKES * TAKE_GROUPS,
    )
    handled: dict[str, list[str]] = {}

    def handle(rows: Claimed) -> Claimed:
        for row in rows:
            handled.setdefault(row["group_key"], []).append(row["body"].partition("/")[2])
        return rows

    other = connect("other")
    taken: Claimed = []
    claimed: Claimed = []
    with contextlib.suppress(ZeroDivisionError), ordered.transaction():
        assert len(ordered.call("take_batch", queue, 10_000)) == TAKE_GROUPS
        _ = 1 // 0
    with ordered.transaction():
        for n in range(TAKES):
            taken += handle(ordered.call("take_batch", queue, TAKE_GROUPS))
            if n % 8 == 4:
                claimed += handle(other.call("claim_batch", queue, 40, None, 600))
            if n % 8 == 6 and claimed:
                other.call("complete_batch", claimed[-1]["batch_key"])
    assert len({row["group_key"] for row in taken}) >= TAKES * TAKE_GROUPS // 2 and claimed
    for key in {str(row["batch_key"]) for row in claimed}:
        other.call("complete_batch", key)
    while handle(ordered.call("take_batch", queue, 10_000)):
        pass
    assert len(handled) == TAKES * TAKE_GROUPS
    assert all(numbers == ["1", "2"] for numbers in handled.values())
    left = [
        table
        for table in ("message", "ready", "grouped", "group_lock", "batch")
        if sql(f"SELECT 1 FROM mq.{table} WHERE type = %s LIMIT 1", queue)
    ]
    assert left == []
