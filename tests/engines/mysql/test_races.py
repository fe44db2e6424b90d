"""Races that are specific to MySQL and MariaDB, in a fixed order of steps. No session may wait for a lock."""

import contextlib
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Database, Session

pytestmark = pytest.mark.product("mysql", "mariadb")

Rows = list[dict[str, Any]]
Sql = Callable[..., Rows]
STRIPES = 16_384
# This many tickets of one busy group make a claim drop them.
MANY = [str(n) for n in range(1, 51)]


class Undo(Exception):
    """Ends a transaction without a commit."""


@pytest.fixture
def connect(connect: Callable[..., Session]) -> Callable[..., Session]:
    """Sessions whose calls fail when they wait for a lock."""

    def make(application_name: str = "test") -> Session:
        session = connect(application_name)
        with session.transaction() as tx:
            tx.cursor().execute("SET SESSION innodb_lock_wait_timeout = 1")
        return session

    return make


@pytest.fixture
def ordered(session: Session, queue: str) -> Session:
    session.call("set_queue", queue, '{"backoff_seconds": 0, "ordered": 1}')
    return session


def send(session: Session, queue: str, body: str, group: str | None = None, priority: int = 0) -> int:
    id: int = session.call("send_message", queue, body, None, priority, group)[0]["id"]
    return id


def send_many(session: Session, queue: str, group: str) -> None:
    with session.transaction():
        for body in MANY:
            send(session, queue, body, group)


def claim_one(session: Session, queue: str) -> dict[str, Any]:
    [row] = session.call("claim_batch", queue, 1)
    return row


def drain(session: Session, queue: str, size: int = 1) -> list[str]:
    """Bodies in the order in which they are handled, one by one."""
    bodies = []
    while rows := session.call("claim_batch", queue, size):
        bodies.append(rows[0]["body"])
        assert session.call("complete", rows[0]["id"], rows[0]["batch_key"])[0]["affected"] == 1
    return bodies


def tickets(sql: Sql, queue: str) -> int:
    count: int = sql("SELECT COUNT(*) AS n FROM mq_ready WHERE type = %s", queue)[0]["n"]
    return count


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_head_is_finished_while_a_claim_drops_tickets_of_its_group(
    ordered: Session, queue: str, connect: Callable[..., Session], ending: str
) -> None:
    """The claim in progress locks the tickets it drops; a finish does not wait for it, and the group continues."""
    send(ordered, queue, "head", "a")
    head = claim_one(ordered, queue)
    send_many(ordered, queue, "a")
    slow = connect("slow")
    with contextlib.suppress(Undo), slow.transaction():
        assert slow.call("claim_batch", queue, 10) == []
        assert ordered.call("complete", head["id"], head["batch_key"])[0]["affected"] == 1
        if ending == "rollback":
            raise Undo
    assert drain(ordered, queue) == MANY


def test_a_claim_leaves_one_ticket_of_a_group_at_work(ordered: Session, queue: str, sql: Sql) -> None:
    send(ordered, queue, "head", "a")
    claim_one(ordered, queue)
    send_many(ordered, queue, "a")
    assert ordered.call("claim_batch", queue, 10) == []
    assert tickets(sql, queue) == 1


def test_tickets_are_not_dropped_for_the_sake_of_one_that_is_being_cancelled(
    ordered: Session, queue: str, connect: Callable[..., Session]
) -> None:
    """Neither the cancel nor the finish of the head can see the later messages when they search for the next one."""
    send(ordered, queue, "head", "a")
    head = claim_one(ordered, queue)
    next_one = send(ordered, queue, "next", "a")
    operator, finisher, sender = connect("operator"), connect("finisher"), connect("sender")
    with operator.transaction():
        assert operator.call("cancel", next_one)[0]["affected"] == 1
        with finisher.transaction():
            assert finisher.call("complete", head["id"], head["batch_key"])[0]["affected"] == 1
            send_many(sender, queue, "a")
            assert ordered.call("claim_batch", queue, 10) == []
    assert drain(ordered, queue) == MANY


def test_messages_sent_while_their_group_is_being_finished_are_claimed(
    ordered: Session, queue: str, connect: Callable[..., Session]
) -> None:
    """The finish has already searched for the next message, and claims still see the group as busy."""
    send(ordered, queue, "head", "a")
    head = claim_one(ordered, queue)
    finisher = connect("finisher")
    with finisher.transaction():
        assert finisher.call("complete", head["id"], head["batch_key"])[0]["affected"] == 1
        send_many(ordered, queue, "a")
        assert ordered.call("claim_batch", queue, 10) == []
    assert drain(ordered, queue) == MANY


def test_a_message_that_is_redriven_while_a_claim_drops_its_old_ticket_gets_a_new_one(
    ordered: Session, queue: str, connect: Callable[..., Session], sql: Sql
) -> None:
    dead = send(ordered, queue, "poison", "a")
    assert ordered.call("count_attempt", dead, "no", None, 1) == [{"state": "E"}]
    assert tickets(sql, queue) == 1, "its old ticket is still there"
    slow = connect("slow")
    with slow.transaction():
        assert slow.call("claim_batch", queue, 10) == []
        assert ordered.call("redrive", dead)[0]["affected"] == 1
    assert drain(ordered, queue) == ["poison"]
    assert tickets(sql, queue) == 0


@pytest.mark.parametrize("procedure", ["take_batch", "claim_batch"])
def test_a_claim_gets_past_any_number_of_tickets_of_a_busy_group(ordered: Session, queue: str, procedure: str) -> None:
    send(ordered, queue, "head of the long group")
    claim_one(ordered, queue)
    for count in (10_000, 1):
        ordered.call("send_batch", queue, "\n".join(["more"] * count))
    send(ordered, queue, "other", "b")
    found = [row["body"] for _ in range(2) for row in ordered.call(procedure, queue, 10)]
    assert found == ["other"]


def test_messages_sent_before_the_queue_was_ordered_keep_their_order(
    session: Session, queue: str, connect: Callable[..., Session], sql: Sql
) -> None:
    """A transaction that began before the queue was ordered has sent a message without a group."""
    early = connect("early")
    with early.transaction():
        send(early, queue, "1", "a", priority=1)
        session.call("set_queue", queue, '{"ordered": 1}')
        send(session, queue, "2", "a")
        send(session, queue, "3", "a")
    first, *_ = bodies = drain(session, queue, 10)
    assert sorted(bodies) == ["1", "2", "3"]
    assert first == "1", "a claim that sees both takes the elder"
    assert tickets(sql, queue) == 0


def test_a_group_that_is_being_taken_is_let_alone_by_a_failed_take_of_another_session(
    ordered: Session, queue: str, connect: Callable[..., Session], sql: Sql
) -> None:
    first, second = send(ordered, queue, "1", "a"), send(ordered, queue, "2", "a")
    taker = connect("taker")
    with contextlib.suppress(Undo), taker.transaction():
        assert [row["id"] for row in taker.call("take_batch", queue, 10)] == [first]
        for id in (first, second):
            assert ordered.call("count_attempt", id, "no", 3_600) == [{"state": None}]
            assert ordered.call("cancel", id)[0]["affected"] == 0
        raise Undo
    assert ordered.call("count_attempt", first, "no", 3_600) == [{"state": "N"}]
    assert sql("SELECT id FROM mq_group_lock WHERE type = %s", queue) == [{"id": first}]
    assert ordered.call("claim_batch", queue, 10) == [], "the group waits for its head"


def test_groups_that_share_a_stripe_are_claimed_together_and_never_mixed_up(
    ordered: Session, queue: str, connect: Callable[..., Session]
) -> None:
    stripe = zlib.crc32(f"{queue}\na".encode()) % STRIPES
    twin = next(name for n in range(10**6) if zlib.crc32(f"{queue}\n{(name := f'b{n}')}".encode()) % STRIPES == stripe)
    for body in ("1", "2"):
        for group in ("a", twin):
            send(ordered, queue, body, group)
    slow = connect("slow")
    with contextlib.suppress(Undo), slow.transaction():
        assert {row["group_key"] for row in slow.call("claim_batch", queue, 10)} == {"a", twin}
        raise Undo
    with slow.transaction():
        assert len(slow.call("take_batch", queue, 1)) == 1
        assert ordered.call("take_batch", queue, 10) == [], "the twin waits as well"
    rest = [(row["group_key"], row["body"]) for _ in range(3) for row in ordered.call("take_batch", queue, 10)]
    assert sorted(rest) == [("a", "2"), (twin, "1"), (twin, "2")]
    assert rest.index((twin, "1")) < rest.index((twin, "2"))


@pytest.mark.parametrize("place", ["its ordinary place", "the ring"])
@pytest.mark.parametrize("call", ["fail", "cancel", "purge"])
def test_a_message_of_a_ring_is_found_at_every_position(
    session: Session, queue: str, connect: Callable[..., Session], sql: Sql, place: str, call: str
) -> None:
    """A message of a transaction that began before the queue became a ring has its ordinary position."""
    sender = connect("sender")
    with sender.transaction():
        if place == "its ordinary place":
            id = send(sender, queue, "x", priority=3)
        session.call("set_queue", queue, '{"ring": 1}')
        assert session.call("claim_wraparound", queue, 1) == []
        if place == "the ring":
            id = send(sender, queue, "x", priority=3)
    assert tickets(sql, queue) == 1
    if call == "fail":
        assert session.call("count_attempt", id, "no", 3_600) == [{"state": "N"}]
    elif call == "cancel":
        assert session.call("cancel", id)[0]["affected"] == 1
    else:
        assert session.call("purge", queue, "N")[0]["affected"] == 1
    assert tickets(sql, queue) == 0
    left = [row["id"] for row in sql("SELECT id FROM mq_message WHERE type = %s", queue)]
    assert left == ([id] if call == "fail" else [])


@pytest.mark.parametrize(
    "call",
    [("pause",), ("resume",), ("set_queue", '{"lease_seconds": 30}')],
    ids=lambda call: call if isinstance(call, str) else call[0],
)
def test_a_policy_call_that_waited_for_another_is_not_refused(
    database: Database, queue: str, call: tuple[Any, ...]
) -> None:
    """With innodb_snapshot_isolation MariaDB refuses a row that has changed since the statement's snapshot: 1020."""
    first, second = database.connect("policy"), database.connect("policy")
    first.call("set_queue", queue, '{"lease_seconds": 60}')
    failures: list[BaseException] = []

    def late() -> None:
        try:
            second.call(call[0], queue, *call[1:])
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=late)
    with first.transaction():
        first.call(
            "pause" if call[0] != "pause" else "set_queue",
            queue,
            *([] if call[0] != "pause" else ['{"lease_seconds": 45}']),
        )
        thread.start()
        time.sleep(0.7)
        assert thread.is_alive(), "it waits"
    thread.join(20)
    assert not failures
    [policy] = first.call("set_queue", queue)
    wanted = {"pause": (45, 1), "resume": (60, 0), "set_queue": (30, 1)}[call[0]]
    assert (policy["lease_seconds"], policy["paused"]) == wanted
    first.close()
    second.close()
