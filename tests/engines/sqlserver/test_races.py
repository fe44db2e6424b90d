"""Races that are specific to SQL Server, in a fixed order of steps, with row versioning and without."""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, QueueError, Session, open_database
from rowqueue.install import apply as install
from servers.sqlserver import ExternalSQLServer
from support.outcomes import dead_letter

pytestmark = pytest.mark.product("sqlserver")

Rows = list[dict[str, Any]]
Sql = Callable[..., Rows]
Submit = Callable[..., Future[Any]]

# This many tickets of one busy group make a claim drop them.
MANY = [str(n) for n in range(1, 51)]
# A call that has not answered by then waits for a lock.
SECONDS = 20
SERIALIZABLE = 4  # as sys.dm_exec_sessions numbers the levels

ending = pytest.mark.parametrize("ending", ["commit", "rollback"])


class Undo(Exception):
    """Ends a transaction without a commit."""


@pytest.fixture(scope="module", params=[True, False], ids=["versions", "no_versions"])
def versions(server: ExternalSQLServer, request: pytest.FixtureRequest) -> bool:
    """READ_COMMITTED_SNAPSHOT. Without it, no session can read rows that another transaction is deleting."""
    kept: bool = request.param
    if server.stand_in and not kept:
        pytest.skip(f"{server.stand_in} always keeps row versions")
    return kept


@pytest.fixture(scope="module")
def database(server: ExternalSQLServer, versions: bool) -> Iterator[Database]:
    url = server.create_database(versions)
    database = open_database(url)
    install.apply(database)
    yield database
    server.drop_database(url)


@pytest.fixture
def connect(connect: Callable[..., Session]) -> Callable[..., Session]:
    """Sessions whose calls fail when they wait for a lock; not for one of sp_getapplock: see `elsewhere`."""

    def make(application_name: str = "test") -> Session:
        session = connect(application_name)
        execute(session, "SET LOCK_TIMEOUT 3000")
        return session

    return make


@pytest.fixture
def patient(database: Database) -> Iterator[Session]:
    """A session that waits for locks, for calls that may wait without row versioning."""
    session = database.connect("patient")
    yield session
    session.close()


@pytest.fixture
def elsewhere() -> Iterator[Submit]:
    """Calls something in a thread: elsewhere(session.call, "send", ...).result(SECONDS)."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


@pytest.fixture
def ordered(session: Session, queue: str) -> Session:
    session.call("set_queue", queue, '{"backoff_seconds": 0, "ordered": 1}')
    return session


def execute(session: Session, statement: str) -> None:
    """A statement of the caller's own, in a transaction of its own."""
    with session.transaction() as connection:
        connection.cursor().execute(statement)


def asked(connection: Any, query: str) -> Any:
    """The only value of the only row."""
    cursor = connection.cursor()
    cursor.execute(query)
    [(value,)] = cursor.fetchall()
    return value


def send(session: Session, queue: str, body: str, group: str | None = None, **more: Any) -> int:
    row = session.call("send_message", queue, body, None, None, group, more.get("dedup_key"))[0]
    id: int = row["id"]
    return id


def send_many(session: Session, queue: str, group: str) -> None:
    with session.transaction():
        for body in MANY:
            send(session, queue, body, group)


def claim(session: Session, queue: str, size: int = 10) -> list[str]:
    return [row["body"] for row in session.call("claim_batch", queue, size)]


def claim_one(session: Session, queue: str) -> dict[str, Any]:
    [row] = session.call("claim_batch", queue, 1)
    return row


def complete(session: Session, row: dict[str, Any]) -> int:
    count: int = session.call("complete", row["id"], row["batch_key"])[0]["affected"]
    return count


def drain(session: Session, queue: str) -> list[str]:
    """Bodies in the order in which they are handled, one by one."""
    bodies: list[str] = []
    # A message put back by a rollback is found by a full scan, which happens once per second.
    for pause in (0.0, 1.1):
        time.sleep(pause)
        while rows := session.call("claim_batch", queue, 1):
            bodies.append(rows[0]["body"])
            assert complete(session, rows[0]) == 1
    return bodies


# ---- claims ---------------------------------------------------------------------------------------------


@ending
def test_claims_pass_over_what_another_is_claiming(
    session: Session, connect: Callable[..., Session], queue: str, ending: str
) -> None:
    for n in range(6):
        send(session, queue, str(n))
    slow, other = connect("slow"), connect("other")
    with contextlib.suppress(Undo), slow.transaction():
        assert claim(slow, queue, 3) == ["0", "1", "2"]
        assert claim(other, queue) == ["3", "4", "5"]
        assert claim(other, queue) == []
        if ending == "rollback":
            raise Undo
    assert drain(session, queue) == {"commit": [], "rollback": ["0", "1", "2"]}[ending]


def test_senders_and_finishers_do_not_wait_for_a_claim_of_thousands(
    session: Session, connect: Callable[..., Session], queue: str
) -> None:
    """The claim holds 5,000 row locks, at which a single statement would have locked the whole table instead."""
    assert session.call("send_batch", queue, "\n".join(map(str, range(6_000))))[0]["affected"] == 6_000
    first = claim_one(session, queue)
    slow, other = connect("slow"), connect("other")
    with slow.transaction() as connection:
        assert claim(slow, queue, 5_000) == [str(n) for n in range(1, 5_001)]
        escalated = (
            "SELECT COUNT(*) FROM sys.dm_tran_locks WHERE request_session_id = @@SPID AND resource_type = 'OBJECT'"
            " AND request_mode IN ('S', 'U', 'X', 'SIX') AND resource_database_id = DB_ID()"
        )
        assert asked(connection, escalated) == 0
        assert complete(other, first) == 1
        send(other, queue, "late")
        assert claim(other, queue, 1_000) == [*map(str, range(5_001, 6_000)), "late"]


def test_a_batch_of_thousands_is_finished_as_its_failures_say(session: Session, queue: str) -> None:
    assert session.call("send_batch", queue, "\n".join(map(str, range(3_500))))[0]["affected"] == 3_500
    rows = session.call("claim_batch", queue, 2_500, "r", 600)
    assert [row["body"] for row in rows] == [str(n) for n in range(2_500)]
    failures = "\n".join(dead_letter(row["id"], "no") for row in rows[::2])
    following = session.call("finish_batch", rows[0]["batch_key"], failures, 2_500)
    assert [row["body"] for row in following] == [str(n) for n in range(2_500, 3_500)]
    [stats] = session.call("queue_stats", queue)
    assert (stats["ready"], stats["active"], stats["dead"]) == (0, 1_000, 1_250)


def test_a_ring_is_scanned_in_steps_of_a_thousand(session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"ring": 1}')
    session.call("send_batch", queue, "\n".join(map(str, range(2_500))))
    ids = [row["id"] for row in session.call("peek", queue, "N", 10_000)]
    first = session.call("claim_wraparound", queue, 2_100, "r", 600, ids[1_199])
    assert [row["id"] for row in first] == [*ids[1_200:], *ids[:800]]
    rest = session.call("claim_wraparound", queue, 2_100, "r", 600)
    assert [row["id"] for row in rest] == ids[800:1_200]


def test_a_message_of_a_rolled_back_take_can_be_failed_during_another_take(
    session: Session, connect: Callable[..., Session], queue: str
) -> None:
    first, second = send(session, queue, "1"), send(session, queue, "2")
    slow = connect("slow")
    with contextlib.suppress(Undo), session.transaction():
        assert [row["id"] for row in session.call("take_batch", queue, 1)] == [first]
        raise Undo
    assert session.call("count_attempt", first, "no", 3_600)[0]["state"] == "N"
    with slow.transaction():
        assert [row["id"] for row in slow.call("take_batch", queue, 1)] == [second]
        assert [row["state"] for row in session.call("count_attempt", first, "no", None, 1)] in ([], [None])


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
def test_callers_of_a_higher_isolation_level_claim_and_keep_their_level(
    session: Session, connect: Callable[..., Session], queue: str, level: str
) -> None:
    for n in range(4):
        send(session, queue, str(n))
    strict = connect("strict")
    execute(strict, f"SET TRANSACTION ISOLATION LEVEL {level}")
    own = "SELECT transaction_isolation_level FROM sys.dm_exec_sessions WHERE session_id = @@SPID"
    with strict.transaction() as connection:
        before = asked(connection, own)
        row = claim_one(strict, queue)
        assert complete(strict, row) == 1
        assert [row["body"] for row in strict.call("take_batch", queue, 1)] == ["1"]
        assert asked(connection, own) == before
        assert claim(session, queue) == ["2", "3"]
        send(session, queue, "late")
    assert (before == SERIALIZABLE) == (level == "SERIALIZABLE")
    assert drain(session, queue) == ["late"]


def test_senders_at_serializable_stop_nobody(session: Session, connect: Callable[..., Session], queue: str) -> None:
    send(session, queue, "1", dedup_key="b")
    strict, other = connect("strict"), connect("other")
    execute(strict, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    with strict.transaction():
        send(strict, queue, "2", dedup_key="a")
        send(other, queue, "3", dedup_key="aa")
        assert drain(other, queue) == ["1", "3"]
    assert drain(session, queue) == ["2"]


# ---- dedup_key ------------------------------------------------------------------------------------------


@ending
def test_a_second_sender_of_one_key_waits_for_the_first(
    session: Session, connect: Callable[..., Session], queue: str, elsewhere: Submit, ending: str
) -> None:
    """And gets no error of the unique index."""
    first, second = connect("first"), connect("second")
    with contextlib.suppress(Undo), first.transaction():
        id = send(first, queue, "first", dedup_key="k")
        sending = elsewhere(second.call, "send_message", queue, "second", None, None, None, "k")
        time.sleep(0.5)
        assert not sending.done()
        if ending == "rollback":
            raise Undo
    [row] = sending.result(SECONDS)
    assert (row["created"], row["id"] == id) == {"commit": (0, True), "rollback": (1, False)}[ending]
    assert drain(session, queue) == {"commit": ["first"], "rollback": ["second"]}[ending]


def test_senders_of_different_keys_and_finishers_do_not_wait(
    session: Session, connect: Callable[..., Session], queue: str
) -> None:
    """A lock of the range around a new key would stop those of the next key."""
    send(session, queue, "m", dedup_key="m")
    row = claim_one(session, queue)
    slow, other = connect("slow"), connect("other")
    with slow.transaction():
        send(slow, queue, "l", dedup_key="l")
        send(slow, queue, "n", dedup_key="n")
        send(other, queue, "k", dedup_key="k")
        send(other, queue, "lm", dedup_key="lm")
        assert complete(other, row) == 1
    assert sorted(drain(session, queue)) == ["k", "l", "lm", "n"]


# ---- ordered queues -------------------------------------------------------------------------------------


@ending
def test_a_group_continues_while_its_only_other_message_is_being_cancelled(
    ordered: Session,
    connect: Callable[..., Session],
    patient: Session,
    queue: str,
    elsewhere: Submit,
    versions: bool,
    ending: str,
) -> None:
    send(ordered, queue, "1", "a")
    head = claim_one(ordered, queue)
    second = send(ordered, queue, "2", "a")
    operator = connect("operator")
    with contextlib.suppress(Undo), operator.transaction():
        assert operator.call("cancel", second)[0]["affected"] == 1
        completing = elsewhere(complete, patient, head)
        if versions:
            assert completing.result(SECONDS) == 1
        else:  # it may wait for the end of the cancel: give it time to reach that point
            time.sleep(1)
        if ending == "rollback":
            raise Undo
    assert completing.result(SECONDS) == 1
    assert drain(ordered, queue) == {"commit": [], "rollback": ["2"]}[ending]


@ending
def test_a_claim_skips_a_head_that_an_open_transaction_cancels(
    ordered: Session,
    connect: Callable[..., Session],
    patient: Session,
    queue: str,
    elsewhere: Submit,
    versions: bool,
    ending: str,
) -> None:
    """Never does the second message come before the first, which may stay."""
    first = send(ordered, queue, "1", "a")
    send(ordered, queue, "2", "a")
    operator = connect("operator")
    with contextlib.suppress(Undo), operator.transaction():
        assert operator.call("cancel", first)[0]["affected"] == 1
        claiming = elsewhere(patient.call, "claim_batch", queue, 10)
        if versions:
            assert claiming.result(SECONDS) == []
        else:
            time.sleep(1)
        if ending == "rollback":
            raise Undo
    rows = claiming.result(SECONDS)
    handled = [row["body"] for row in rows if complete(patient, row)]
    handled += drain(ordered, queue)
    assert handled == {"commit": ["2"], "rollback": ["1", "2"]}[ending]


@ending
def test_claims_pass_over_a_group_that_another_is_claiming_or_freeing(
    ordered: Session, connect: Callable[..., Session], queue: str, ending: str
) -> None:
    for body in ("1", "2", "3"):
        send(ordered, queue, f"a{body}", "a")
    send(ordered, queue, "b1", "b")
    slow, other = connect("slow"), connect("other")
    with contextlib.suppress(Undo), slow.transaction():
        row = claim_one(slow, queue)
        assert row["body"] == "a1"
        assert claim(other, queue) == ["b1"]
        assert complete(slow, row) == 1
        assert claim(other, queue) == []
        if ending == "rollback":
            raise Undo
    assert drain(ordered, queue) == {"commit": ["a2", "a3"], "rollback": ["a1", "a2", "a3"]}[ending]


@ending
def test_a_head_of_many_is_finished_while_a_claim_drops_its_tickets(
    ordered: Session, connect: Callable[..., Session], queue: str, ending: str
) -> None:
    """The claim in progress locks the tickets it drops; a finish does not wait for it, and the group continues."""
    send(ordered, queue, "head", "a")
    head = claim_one(ordered, queue)
    send_many(ordered, queue, "a")
    slow = connect("slow")
    with contextlib.suppress(Undo), slow.transaction():
        assert claim(slow, queue) == []
        assert complete(ordered, head) == 1
        if ending == "rollback":
            raise Undo
    assert drain(ordered, queue) == MANY


def test_of_a_group_at_work_one_ticket_is_left(ordered: Session, queue: str, sql: Sql) -> None:
    send(ordered, queue, "head", "a")
    head = claim_one(ordered, queue)
    send_many(ordered, queue, "a")
    assert claim(ordered, queue) == []
    assert sql("SELECT COUNT(*) AS n FROM mq.ready WHERE type = %s", queue) == [{"n": 1}]
    assert complete(ordered, head) == 1
    assert drain(ordered, queue) == MANY


def test_a_failed_head_of_a_take_that_rolled_back_is_the_first_of_its_group_again(ordered: Session, queue: str) -> None:
    first = send(ordered, queue, "1", "a")
    send(ordered, queue, "2", "a")
    with contextlib.suppress(Undo), ordered.transaction():
        assert [row["body"] for row in ordered.call("take_batch", queue, 10)] == ["1"]
        raise Undo
    assert ordered.call("count_attempt", first, "no", 1)[0]["state"] == "N"
    assert claim(ordered, queue) == [], "its group waits for its next attempt"
    time.sleep(1.1)
    row = claim_one(ordered, queue)
    assert (row["body"], row["attempt"]) == ("1", 2)
    assert complete(ordered, row) == 1
    assert drain(ordered, queue) == ["2"]


def test_a_policy_does_not_become_ordered_while_a_sender_is_open(
    session: Session, connect: Callable[..., Session], queue: str
) -> None:
    session.call("set_queue", queue)
    sender = connect("sender")
    with sender.transaction():
        send(sender, queue, "1", "a")
        with pytest.raises(QueueError, match="queue_not_empty"):
            session.call("set_queue", queue, '{"ordered": 1}')
    assert drain(session, queue) == ["1"]


def test_a_sender_that_was_too_late_for_a_policy_is_ordered_all_the_same(
    ordered: Session, queue: str, sql: Sql
) -> None:
    """It read the policy before the queue became ordered and wrote after it: a ready message without a group."""
    sql(
        "INSERT INTO mq.message (run_at, created_at, priority, type, body, group_key)"
        " VALUES ('2020-01-01', '2020-01-01', 0, %s, N'1', N'a')",
        queue,
    )
    sql(
        "INSERT INTO mq.ready (type, priority, run_at, id, attempts)"
        " SELECT type, priority, run_at, id, 0 FROM mq.message WHERE type = %s",
        queue,
    )
    send(ordered, queue, "2", "a")
    assert claim(ordered, queue) == ["1"]
    assert claim(ordered, queue) == []


def test_eight_consumers_of_few_groups_get_no_deadlock(database: Database, ordered: Session, queue: str) -> None:
    """finish_batch frees groups and claims groups in one transaction."""
    groups = ("a", "b", "c", "d")
    with ordered.transaction():
        for n in range(60):
            for group in groups:
                send(ordered, queue, f"{group}{n:02}", group)
    deadline = time.monotonic() + 120

    def consume(number: int) -> list[str]:
        handled: list[str] = []
        session = database.connect(f"consumer {number}")
        idle = 0
        try:
            while idle < 50 and time.monotonic() < deadline:
                rows = session.call("claim_batch", queue, 2, None, 600)
                idle = 0 if rows else idle + 1
                while rows:
                    handled += [row["body"] for row in rows]
                    rows = session.call("finish_batch", rows[0]["batch_key"], "", 2)
                time.sleep(0.05)
        finally:
            session.close()
        return handled

    with ThreadPoolExecutor(8) as pool:
        handled = [body for bodies in pool.map(consume, range(8)) for body in bodies]
    assert sorted(handled) == sorted(f"{group}{n:02}" for n in range(60) for group in groups)


# ---- errors and transactions ----------------------------------------------------------------------------


def test_the_victim_of_a_deadlock_gets_a_retryable_error_and_can_call_again(
    session: Session, connect: Callable[..., Session], queue: str, elsewhere: Submit, sql: Sql
) -> None:
    """And nothing of its transaction is left."""
    table = f"mine_{queue.partition('.')[2]}"
    sql(f"CREATE TABLE {table} (n int NOT NULL PRIMARY KEY)")
    sql(f"INSERT INTO {table} VALUES (1)")
    session.call("set_queue", queue)
    victim, other = connect("victim"), connect("other")
    for each in (victim, other):
        execute(each, "SET LOCK_TIMEOUT -1")
    execute(victim, "SET DEADLOCK_PRIORITY LOW")

    def work() -> None:
        with victim.transaction() as connection:
            connection.cursor().execute(f"UPDATE {table} SET n = 2")
            holding.set_result(None)
            meeting.result(SECONDS)
            victim.call("pause", queue)

    holding: Future[None] = Future()
    meeting: Future[None] = Future()
    with other.transaction() as connection:
        assert other.call("pause", queue)[0]["affected"] == 1
        working = elsewhere(work)
        holding.result(SECONDS)
        meeting.set_result(None)
        time.sleep(0.5)
        connection.cursor().execute(f"UPDATE {table} SET n = 3")
        with pytest.raises(Conflict):
            working.result(SECONDS)
    assert sql(f"SELECT n FROM {table}") == [{"n": 3}]
    assert victim.call("resume", queue)[0]["affected"] == 1
    sql(f"DROP TABLE {table}")


def test_an_error_inside_the_callers_transaction_ends_it_and_raises(session: Session, queue: str, sql: Sql) -> None:
    with pytest.raises(Exception, match="swallowed"), session.transaction() as connection:
        send(session, queue, "1")
        with contextlib.suppress(QueueError):
            session.call("send", queue, None)
        connection.cursor().execute("SELECT 1")
    assert sql("SELECT id FROM mq.message WHERE type = %s", queue) == []
    send(session, queue, "2")
    assert drain(session, queue) == ["2"]


def test_a_call_under_implicit_transactions_is_the_callers_to_commit(
    server: ExternalSQLServer, database: Database, queue: str, sql: Sql
) -> None:
    """As JDBC and ODBC have it in their manual commit."""
    sent = "SELECT COUNT(*) AS n FROM mq.message WITH (READPAST) WHERE type = %s"
    with server.client(database.url) as client:
        client.execute("SET IMPLICIT_TRANSACTIONS ON")
        for end in ("ROLLBACK", "COMMIT"):
            client.execute("SELECT TOP (1) name FROM mq.installed")  # begins the transaction
            client.execute("EXEC mq.send %s, N'x'", [queue])
            assert client.execute("SELECT @@TRANCOUNT AS n").fetchone() == {"n": 1}
            client.execute(f"IF @@TRANCOUNT > 0 {end} TRANSACTION")
            assert sql(sent, queue) == [{"n": int(end == "COMMIT")}]


@ending
def test_claims_continue_during_an_uncommitted_pause(
    session: Session,
    connect: Callable[..., Session],
    patient: Session,
    queue: str,
    elsewhere: Submit,
    versions: bool,
    ending: str,
) -> None:
    """With row versioning they use the old policy; without it they wait for the new one."""
    send(session, queue, "1")
    session.call("set_queue", queue)
    operator = connect("operator")
    with contextlib.suppress(Undo), operator.transaction():
        assert operator.call("pause", queue)[0]["affected"] == 1
        claiming = elsewhere(claim, patient, queue)
        if versions:
            assert claiming.result(SECONDS) == ["1"]
        else:
            time.sleep(1)
        if ending == "rollback":
            raise Undo
    paused = not versions and ending == "commit"
    assert claiming.result(SECONDS) == ([] if paused else ["1"])
