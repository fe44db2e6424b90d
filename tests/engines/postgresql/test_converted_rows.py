"""The index by lane and id of mq.ready has only the rows that need it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from servers import Server

pytestmark = pytest.mark.product("postgresql")

Connection = Any


@pytest.fixture
def sql(server: Server, database: Database) -> Callable[..., list[dict[str, Any]]]:
    def run(statement: str, *arguments: Any) -> list[dict[str, Any]]:
        with server.client(database.url) as connection:
            cursor = connection.execute(statement, arguments)
            return list(cursor.fetchall()) if cursor.description else []

    return run


Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture(params=["ring", "fair"])
def way(request: pytest.FixtureRequest) -> str:
    return request.param


def declare(session: Session, queue: str, way: str, on: int = 1) -> None:
    session.call("set_queue", queue, json.dumps({way: on}))


def mixed(sql: Sql, queue: str) -> bool:
    [row] = sql("SELECT mixed FROM mq.queue WHERE type = %s", queue)
    return bool(row["mixed"])


def visit(session: Session, queue: str, way: str, times: int = 3) -> set[int]:
    """The ids that claims visit, each a full scan; all messages are released after that."""
    visited, keys = set(), set()
    for _ in range(times):
        for row in session.call("claim_wraparound" if way == "ring" else "claim_batch", queue, 10, "r", 60):
            visited.add(row["id"])
            keys.add(row["batch_key"])
        session.call("redrive_all", queue)
        for key in keys:
            session.call("release_batch", key)
    return visited


def test_senders_pay_for_no_index_by_id(session: Session, queue: str, sql: Sql) -> None:
    session.call("send", queue, "x")
    session.call("send_batch", queue, "x\ny")
    session.call("send_message", queue, "x")
    assert sql("SELECT count(*) AS n FROM mq.ready WHERE type = %s AND by_id IS NULL", queue) == [{"n": 4}]


def test_messages_that_commit_late_are_found(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, way: str
) -> None:
    with server.client(database.url) as late, server.client(database.url) as later:
        with late.transaction():
            sent = {
                late.execute("SELECT mq.send(%s, 'late') AS id", [queue]).fetchone()["id"],
                late.execute("SELECT id FROM mq.send_message(%s, 'late')", [queue]).fetchone()["id"],
            }
            late.execute("SELECT mq.send_batch(%s, 'late')", [queue])
            session.call("send", queue, "x")
            declare(session, queue, way)
            with later.transaction():
                later.execute("SELECT mq.send(%s, 'after')", [queue])
                assert len(visit(session, queue, way)) == 1
                assert mixed(sql, queue), "a transaction of before is open"
        visited = visit(session, queue, way)
        assert sent <= visited and len(visited) == 5
    visit(session, queue, way)
    assert not mixed(sql, queue)


def test_messages_sent_from_an_older_snapshot_are_found(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, way: str
) -> None:
    with server.client(database.url) as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        session.call("send", queue, "x")
        declare(session, queue, way)
        visit(session, queue, way)
        assert not mixed(sql, queue), "a reader keeps nobody waiting"
        ids = {row["id"] for row in old.execute("SELECT mq.send(%s, 'x') AS id", [queue]).fetchall()}
        old.execute("SELECT mq.send_batch(%s, 'x')", [queue])
        ids |= {row["id"] for row in old.execute("SELECT id FROM mq.send_message(%s, 'x')", [queue]).fetchall()}
        old.execute("COMMIT")
    visited = visit(session, queue, way)
    assert len(visited) == 4
    assert ids <= visited


def test_messages_of_a_take_are_found_when_it_rolls_back(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, way: str
) -> None:
    for _ in range(3):
        session.call("send", queue, "x")
    with server.client(database.url) as other:
        other.execute("BEGIN")
        [taken] = other.execute("SELECT id FROM mq.take_batch(%s, 1)", [queue]).fetchall()
        declare(session, queue, way)
        assert len(visit(session, queue, way)) == 2
        other.execute("ROLLBACK")
    assert taken["id"] in visit(session, queue, way)
    visit(session, queue, way)
    assert not mixed(sql, queue)


def test_a_transaction_id_of_another_server_is_replaced(session: Session, queue: str, sql: Sql, way: str) -> None:
    """A restore keeps the number, although the new server starts from a low number."""
    declare(session, queue, way)
    sql("UPDATE mq.queue SET senders_before = '99999999999' WHERE type = %s", queue)
    session.call("send", queue, "x")
    visit(session, queue, way, times=6)
    assert not mixed(sql, queue)


@pytest.mark.parametrize("on", [0, 1])
def test_cancel_finds_a_message_in_every_table(session: Session, queue: str, sql: Sql, way: str, on: int) -> None:
    declare(session, queue, way, on)
    for _ in range(4):
        session.call("send", queue, "x")
    failed, released, redriven = (session.call("claim_batch", queue, 1)[0] for _ in range(3))
    session.call("fail", failed["id"], failed["batch_key"], "again", 0)
    session.call("release_batch", released["batch_key"])
    session.call("dead_letter", redriven["id"], redriven["batch_key"], "no")
    session.call("redrive_all", queue)
    session.call("release_batch", session.call("claim_batch", queue, 1)[0]["batch_key"])  # promotes what has failed
    ids = [row["id"] for row in sql("SELECT id FROM mq.ready WHERE type = %s", queue)]
    assert len(ids) == 4
    for id in ids:
        [state] = sql("SELECT state FROM mq.message_state WHERE id = %s", id)
        assert state == {"state": "N"}
        assert session.call("cancel", id)[0]["affected"] == 1
    assert sql("SELECT count(*) AS n FROM mq.message WHERE type = %s", queue) == [{"n": 0}]
