"""Limits step by step: places freed by uncommitted finishes, with row versioning and without."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from servers.sqlserver import ExternalSQLServer

pytestmark = pytest.mark.product("sqlserver")

Rows = list[dict[str, Any]]
Sql = Callable[..., Rows]

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
    """Sessions whose calls fail when they wait for a lock."""

    def make(application_name: str = "test") -> Session:
        session = connect(application_name)
        session._connection.command("SET LOCK_TIMEOUT 3000")  # type: ignore[attr-defined]
        return session

    return make


@pytest.fixture
def other(connect: Callable[..., Session]) -> Session:
    return connect("other")


def set_queue(session: Session, type: str, **limits: int) -> None:
    session.call("set_queue", type, json.dumps(limits))


def send(session: Session, type: str, count: int, *groups: str) -> None:
    for group in groups or [None] * count:
        session.call("send_message", type, "body", None, None, group)


def finish(session: Session, rows: Rows, **how: Any) -> None:
    session.call(how.get("by", "complete_batch"), rows[0]["batch_key"])


def end(ending: str) -> None:
    if ending == "rollback":
        raise Undo


# --- the type as a whole --------------------------------------------------------------------------------------------


@ending
@pytest.mark.parametrize("by", ["complete_batch", "release_batch"])
def test_a_place_is_free_when_the_finish_is_committed(
    queue: str, session: Session, other: Session, by: str, ending: str
) -> None:
    set_queue(session, queue, max_active=2)
    send(session, queue, 5)
    held = session.call("claim_batch", queue, 10)
    assert len(held) == 2
    try:
        with session.transaction():
            finish(session, held, by=by)
            assert other.call("claim_batch", queue, 10) == []
            assert other.call("wait_for_message", queue, 0)[0]["ready"] == 0
            end(ending)
    except Undo:
        pass
    assert len(other.call("claim_batch", queue, 10)) == (2 if ending == "commit" else 0)


@ending
def test_the_place_of_one_message_is_free_when_its_end_is_committed(
    queue: str, session: Session, other: Session, ending: str
) -> None:
    set_queue(session, queue, max_active=3)
    send(session, queue, 8)
    held = session.call("claim_batch", queue, 10)
    try:
        with session.transaction():
            session.call("complete", held[0]["id"], held[0]["batch_key"])
            session.call("fail", held[1]["id"], held[1]["batch_key"], "no", 100)
            assert other.call("claim_batch", queue, 10) == []
            end(ending)
    except Undo:
        pass
    assert len(other.call("claim_batch", queue, 10)) == (2 if ending == "commit" else 0)
    finish(session, held)
    assert len(other.call("claim_batch", queue, 10)) == (1 if ending == "commit" else 3)


@ending
def test_a_claim_that_is_rolled_back_takes_no_place_and_no_token(
    server: ExternalSQLServer, queue: str, session: Session, other: Session, ending: str
) -> None:
    set_queue(session, queue, max_active=3, rate=4, rate_seconds=86400)
    send(session, queue, 8)
    try:
        with session.transaction():
            assert len(session.call("claim_batch", queue, 2)) == 2
            if not server.stand_in:
                assert other.call("claim_batch", queue, 10) == []  # one claim of the type at a time
            end(ending)
    except Undo:
        pass
    assert len(other.call("claim_batch", queue, 10)) == (1 if ending == "commit" else 3)


@ending
def test_a_take_has_its_places_until_it_commits_and_its_tokens_for_good(
    server: ExternalSQLServer, queue: str, session: Session, other: Session, ending: str
) -> None:
    set_queue(session, queue, max_active=2, rate=5, rate_seconds=86400)
    send(session, queue, 8)
    try:
        with session.transaction():
            assert len(session.call("take_batch", queue, 10)) == 2
            if not server.stand_in:
                assert other.call("claim_batch", queue, 10) == []
            end(ending)
    except Undo:
        pass
    assert len(other.call("claim_batch", queue, 1)) == 1
    assert len(other.call("take_batch", queue, 10)) == 1
    assert len(other.call("take_batch", queue, 10)) == 1
    assert len(other.call("take_batch", queue, 10)) == (0 if ending == "commit" else 1)


def test_finish_batch_claims_into_the_places_that_it_has_left(queue: str, session: Session) -> None:
    set_queue(session, queue, max_active=3)
    send(session, queue, 9)
    rows = session.call("claim_batch", queue, 10)
    for _ in range(2):
        rows = session.call("finish_batch", rows[0]["batch_key"], None, 10)
        assert len(rows) == 3
    assert session.call("finish_batch", rows[0]["batch_key"], None, 10) == []


def test_expired_claims_leave_their_places(queue: str, session: Session) -> None:
    set_queue(session, queue, max_active=2)
    send(session, queue, 3)
    assert len(session.call("claim_batch", queue, 10, None, 1)) == 2
    time.sleep(1.1)  # until the lease ends
    assert session.call("wait_for_message", queue, 0)[0]["ready"] == 1
    assert len(session.call("claim_batch", queue, 10, None, 100)) == 2
    assert session.call("wait_for_message", queue, 0)[0]["ready"] == 0
    assert session.call("claim_batch", queue, 10) == []


def test_a_first_limit_counts_what_is_active_already(queue: str, session: Session, other: Session) -> None:
    send(session, queue, 6)
    held = session.call("claim_batch", queue, 2)
    set_queue(session, queue, max_active=3)
    assert len(other.call("claim_batch", queue, 10)) == 1
    finish(session, held)
    assert len(other.call("claim_batch", queue, 10)) == 2
    set_queue(session, queue, max_active=1)
    assert other.call("claim_batch", queue, 10) == []
    set_queue(session, queue, max_active=0)
    assert len(other.call("claim_batch", queue, 10)) == 1


def test_a_claim_that_did_not_know_of_the_limit_counts_when_it_is_committed(
    queue: str, session: Session, other: Session
) -> None:
    send(session, queue, 6)
    with session.transaction():
        session.call("claim_batch", queue, 2)
    set_queue(other, queue, max_active=3)
    assert len(other.call("claim_batch", queue, 10)) == 1


def test_tokens_come_back_one_by_one(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, rate=2, rate_seconds=2)
    send(session, queue, 9)
    assert len(session.call("claim_batch", queue, 10)) == 2
    waiting = session.call("wait_for_message", queue, 0)[0]
    assert waiting["ready"] == 0
    now = sql("SELECT SYSUTCDATETIME() AS now")[0]["now"]
    ahead = (waiting["next_run_at"].replace(tzinfo=None) - now.replace(tzinfo=None)).total_seconds()
    assert 0 < ahead <= 1.01
    time.sleep(max(ahead - 0.3, 0))
    assert session.call("claim_batch", queue, 10) == []
    time.sleep(0.4)
    assert session.call("wait_for_message", queue, 0)[0]["ready"] == 1
    assert len(session.call("claim_batch", queue, 10)) == 1
    assert session.call("claim_batch", queue, 10) == []


def test_a_bucket_that_is_to_be_full_too_far_ahead_is_put_right(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, rate=1000, rate_seconds=10)
    send(session, queue, 3)
    sql("UPDATE mq.limited SET full_at = DATEADD(DAY, 1, SYSUTCDATETIME()) WHERE type = %s", queue)
    assert session.call("wait_for_message", queue, 0)[0]["ready"] == 1
    assert session.call("claim_batch", queue, 1) == []
    time.sleep(0.1)
    assert len(session.call("claim_batch", queue, 1)) == 1


@pytest.mark.parametrize(("rate", "seconds"), [(1, 1), (3, 1), (7, 86400), (1000000, 1), (999983, 86400), (1, 86400)])
def test_no_rounding_lets_more_through(sql: Sql, rate: int, seconds: int) -> None:
    start, full, spent = "2026-01-01T00:00:00", "2026-01-01T00:00:00", 0
    size = max(rate // 3, 1)
    for step in range(6):
        now = sql(
            "SELECT CONVERT(varchar(40), DATEADD(MILLISECOND, %s, CAST(%s AS datetime2(6))), 126) AS t",
            step * seconds * 150 + step,
            start,
        )[0]["t"]
        tokens = sql("SELECT mq_internal.tokens(%s, %s, %s, %s) AS n", full, now, rate, seconds)[0]["n"]
        take = min(tokens, size)
        assert 0 <= tokens <= rate
        if take:
            full = sql(
                "SELECT CONVERT(varchar(40), mq_internal.full_after(%s, %s, %s, %s, %s), 126) AS t",
                full,
                now,
                take,
                rate,
                seconds,
            )[0]["t"]
            left = sql("SELECT mq_internal.tokens(%s, %s, %s, %s) AS n", full, now, rate, seconds)[0]["n"]
            assert left in (tokens - take, tokens - take - 1)
            spent += take
        assert spent <= rate + (step * (seconds * 0.15 + 0.001)) * rate / seconds


# --- per group ------------------------------------------------------------------------------------------------------


@ending
@pytest.mark.parametrize("by", ["complete_batch", "release_batch"])
def test_a_place_of_a_group_is_free_when_the_finish_is_committed(
    queue: str, session: Session, other: Session, by: str, ending: str
) -> None:
    set_queue(session, queue, group_max_active=2)
    send(session, queue, 0, *"aaaaabbb")
    held = session.call("claim_batch", queue, 2)
    assert {row["group_key"] for row in held} == {"a"}
    try:
        with session.transaction():
            finish(session, held, by=by)
            rows = other.call("claim_batch", queue, 10)
            assert [row["group_key"] for row in rows] == ["b", "b"]
            assert other.call("claim_batch", queue, 10) == []
            end(ending)
    except Undo:
        pass
    rows = other.call("claim_batch", queue, 10)
    assert [row["group_key"] for row in rows] == (["a", "a"] if ending == "commit" else [])


@ending
def test_a_group_is_claimed_from_while_another_call_finishes_one_of_its_messages(
    queue: str, session: Session, other: Session, ending: str
) -> None:
    set_queue(session, queue, group_max_active=3)
    send(session, queue, 0, *"aaaaaa")
    held = session.call("claim_batch", queue, 1)
    try:
        with session.transaction():
            finish(session, held)
            first = other.call("claim_batch", queue, 10)
            assert len(first) == 2
            finish(other, first)
            assert len(other.call("claim_batch", queue, 10)) == 2
            end(ending)
    except Undo:
        pass
    assert len(other.call("claim_batch", queue, 10)) == (1 if ending == "commit" else 0)


def test_a_message_that_has_come_back_takes_one_place(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, group_max_active=2)
    send(session, queue, 0, *"aaa")
    for _ in range(3):
        held = session.call("claim_batch", queue, 10)
        assert len(held) == 2
        finish(session, held, by="release_batch")
    held = session.call("claim_batch", queue, 1)
    assert len(session.call("claim_batch", queue, 10)) == 1
    finish(session, held)
    assert len(session.call("claim_batch", queue, 10)) == 1
    rows = sql(
        "SELECT l.id, f.id AS freed FROM mq.group_lock AS l LEFT JOIN mq.group_freed AS f ON f.id = l.id"
        " WHERE l.type = %s",
        queue,
    )
    assert len([row for row in rows if row["freed"] is None]) == 2


def test_a_claim_of_a_later_second_forgets_what_groups_have_left(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, group_max_active=2, group_rate=1000)
    send(session, queue, 0, *"abc")
    finish(session, session.call("claim_batch", queue, 10))
    assert len(sql("SELECT * FROM mq.group_freed WHERE type = %s", queue)) == 3
    time.sleep(1.2)
    session.call("claim_batch", queue, 10)
    for table in ("group_freed", "group_lock", "bucket"):
        assert sql(f"SELECT * FROM mq.{table} WHERE type = %s", queue) == []


def test_a_group_gets_tokens_again_after_the_clock_was_set_back(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, group_rate=1, group_rate_seconds=1)
    send(session, queue, 0, *"aa")
    assert len(session.call("claim_batch", queue, 10)) == 1
    assert session.call("claim_batch", queue, 10) == []
    # What was written before the clock was set back by a day.
    for column in ("mark.scanned_at", "mark.promoted_to", "bucket.full_at", "delayed.run_at"):
        table, name = column.split(".")
        sql(f"UPDATE mq.{table} SET {name} = DATEADD(DAY, 1, {name}) WHERE type = %s", queue)
    sql(
        "UPDATE m SET run_at = d.run_at FROM mq.message AS m INNER JOIN mq.delayed AS d ON d.id = m.id"
        " WHERE d.type = %s",
        queue,
    )
    deadline = time.monotonic() + 6
    while not (rows := session.call("claim_batch", queue, 10)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(rows) == 1


def test_tickets_of_active_messages_give_them_to_nobody_else(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, group_max_active=2)
    send(session, queue, 0, *"aaa")
    held = session.call("claim_batch", queue, 10)
    sql(
        "INSERT INTO mq.ready (type, priority, run_at, id, attempts)"
        " SELECT type, priority, run_at, id, 0 FROM mq.message WHERE id = %s",
        held[0]["id"],
    )
    assert session.call("claim_batch", queue, 10) == []
    finish(session, held[:1])
    assert len(session.call("claim_batch", queue, 10)) == 1


def test_no_group_is_stuck_after_its_places_were_taken_and_left(queue: str, session: Session, sql: Sql) -> None:
    set_queue(session, queue, group_max_active=2)
    send(session, queue, 0, *("a" * 60), *("b" * 60))
    done = 0
    while rows := session.call("claim_batch", queue, 50):
        assert len(rows) <= 4
        done += len(rows)
        assert sql("SELECT * FROM mq_internal.stuck_groups(%s)", queue) == []
        finish(session, rows)
        assert sql("SELECT * FROM mq_internal.stuck_groups(%s)", queue) == []
    assert done == 120
