"""Firebird: changing live messages, and sending the due messages of schedules."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, Session
from servers import Server
from servers.firebird import driver
from servers.firebird_raw import MANNERS, NO_WAIT, Raw

pytestmark = pytest.mark.product("firebird")

Sql = Callable[..., list[dict[str, Any]]]
Open = Callable[..., Raw]
Beside = Callable[..., "Future[Any]"]

SOON = 0.15  # seconds that a call may wait for another
WORKERS = 8
ROUNDS = 40
ROUND_SECONDS = 20


@pytest.fixture
def raw(server: Server, database: Database) -> Iterator[Open]:
    """Makes connections of the driver's: raw("SNAPSHOT WAIT")."""
    made: list[Raw] = []

    def make(manner: str = NO_WAIT) -> Raw:
        made.append(Raw(server.client(database.url).connection, manner))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def beside() -> Iterator[Beside]:
    """Runs a call in a thread: beside(send, raw, queue, "x").result()."""
    with ThreadPoolExecutor(WORKERS) as pool:
        yield pool.submit


def send(raw: Raw, queue: str, body: str, how: str | None, delay: int | None = None) -> tuple[int, int, int]:
    """With one dedup_key: id, created, changed."""
    [row] = raw.call("send_message", queue, body, None, None, None, "key", None, None, None, delay, how)
    return row["id"], row["created"], row["changed"]


def stored(sql: Sql, queue: str) -> list[tuple[int, str]]:
    return [(row["id"], row["body"]) for row in sql("SELECT id, body FROM mq_message WHERE type = %s", queue)]


@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("how", ["keep", "replace"])
def test_a_change_waits_for_the_open_transaction_that_has_sent_the_key(
    raw: Open, queue: str, sql: Sql, beside: Beside, how: str, ending: str
) -> None:
    first, second = raw(), raw()
    id, created, _ = send(first, queue, "first", how)
    assert created == 1
    changing = beside(send, second, queue, "second", "replace")
    time.sleep(SOON)
    assert not changing.done()
    getattr(first, ending)()
    found = changing.result()
    second.commit()
    if ending == "commit":
        assert found == (id, 0, 1)
    else:
        assert found[1:] == (1, 0)
    assert stored(sql, queue) == [(found[0], "second")]


@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("how", ["replace", "postpone"])
def test_of_two_changes_the_second_waits_and_counts(
    raw: Open, queue: str, session: Session, sql: Sql, beside: Beside, how: str, ending: str
) -> None:
    session.call("send_message", queue, "zero", None, None, None, "key")
    first, second = raw(), raw()
    id, created, changed = send(first, queue, "first", how, 60)
    assert (created, changed) == (0, 1)
    changing = beside(send, second, queue, "second", "replace", 3_600)
    time.sleep(SOON)
    assert not changing.done()
    getattr(first, ending)()
    assert changing.result() == (id, 0, 1)
    second.commit()
    assert stored(sql, queue) == [(id, "second")]
    [row] = sql("SELECT DATEDIFF(SECOND FROM mq_utc_now() TO run_at) AS n FROM mq_delayed WHERE type = %s", queue)
    assert 3_500 < row["n"] <= 3_600
    assert sql("SELECT id FROM mq_ready WHERE type = %s", queue) == []


@pytest.mark.parametrize("manner", [manner for manner in MANNERS if manner != NO_WAIT])
def test_a_change_is_refused_where_it_would_wait_for_claims_or_not_see_them(
    raw: Open, queue: str, session: Session, sql: Sql, manner: str
) -> None:
    session.call("send_message", queue, "first", None, None, None, "key")
    caller = raw(manner)
    for how in ("replace", "postpone"):
        with pytest.raises(driver().DatabaseError, match=r"MQ_50001\n-?wrong_isolation: this transaction"):
            send(caller, queue, "second", how)
    caller.commit()
    assert [body for _, body in stored(sql, queue)] == ["first"]


def test_no_time_of_a_schedule_is_lost_or_sent_twice_where_half_of_the_claims_roll_back(
    queue: str, session: Session, sql: Sql, connect: Callable[..., Session], beside: Beside
) -> None:
    session.call("set_schedule", queue, queue, "@yearly", "body")

    def claim(number: int, due: str) -> list[int]:
        """Claims until the schedule's message is sent and committed, or nothing is left to send."""
        chance = random.Random(f"{number} {due}")
        mine: list[int] = []
        until = time.monotonic() + ROUND_SECONDS
        while time.monotonic() < until and not mine:
            try:
                with sessions[number].transaction():
                    rows = sessions[number].call("claim_batch", queue, 2, None, 3_600)
                    if rows and chance.random() < 0.5:
                        raise ZeroDivisionError
                mine += [row["id"] for row in rows]
            except (ZeroDivisionError, Conflict):
                continue
            [row] = sessions[number].call("list_schedules", queue)
            if row["next_at"] > datetime.now(UTC):
                break
        return mine

    sessions = [connect(f"claimer {number}") for number in range(WORKERS)]
    for _ in range(ROUNDS):
        due = f"{datetime.now(UTC) - timedelta(seconds=1):%Y-%m-%d %H:%M:%S}"
        sql(f"UPDATE mq_schedule SET next_at = '{due}' WHERE name = %s", queue)
        sql("DELETE FROM mq_mark WHERE type = %s", queue)
        claims = [beside(claim, number, due) for number in range(WORKERS)]
        for each in claims:
            each.result()
        found = sql("SELECT id, run_at FROM mq_message WHERE type = %s", queue)
        assert [f"{row['run_at']:%Y-%m-%d %H:%M:%S}" for row in found] == [due]
        [row] = sql("SELECT last_id FROM mq_schedule WHERE name = %s", queue)
        assert row["last_id"] == found[0]["id"]
        for row in sql("SELECT batch_key FROM mq_batch WHERE type = %s", queue):
            session.call("complete_batch", row["batch_key"])
        session.call("purge", queue, "N")
    session.call("drop_schedule", queue)


@pytest.mark.parametrize("procedure", ["send", "send_batch", "send_message"])
def test_a_send_is_repeated_while_the_sequence_of_ids_lags(
    queue: str, session: Session, sql: Sql, procedure: str
) -> None:
    """The server may have lost its last steps in a crash: see docs/decisions/0008_firebird.md."""
    sent = [session.call("send", queue, "first")[0]["id"] for _ in range(3)]
    sql("SELECT GEN_ID(mq_message_id, -3) AS n FROM rdb$database")
    session.call(procedure, queue, "second")
    rows = sql("SELECT id FROM mq_message WHERE type = %s ORDER BY id", queue)
    assert [row["id"] for row in rows] == [*sent, sent[-1] + 1]
