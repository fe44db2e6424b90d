"""The index by id of mq.ready has only the rows that need it, and all that a ring or `cancel` searches for."""

from collections.abc import Callable
from typing import Any

import pytest
from rowqueue import install
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


def complete(sql: Sql, queue: str) -> bool:
    return bool(sql("SELECT type FROM mq.ring_type WHERE type = %s AND complete", queue))


def go_round(session: Session, queue: str, times: int = 3) -> set[int]:
    """The ids that claims of one message visit; each is released."""
    visited = set()
    for _ in range(times):
        for row in session.call("claim_wraparound", queue, 10, "r", 60):
            visited.add(row["id"])
            session.call("release_batch", row["batch_key"])
    return visited


def test_senders_pay_for_no_index_by_id(session: Session, queue: str, sql: Sql) -> None:
    session.call("send", queue, "x")
    session.call("send_batch", queue, "x\ny")
    session.call("send_message", queue, "x")
    assert sql("SELECT count(*) AS n FROM mq.ready WHERE type = %s AND by_id IS NULL", queue) == [{"n": 4}]


def test_messages_that_commit_late_join_the_ring(
    server: Server, database: Database, session: Session, queue: str, sql: Sql
) -> None:
    with server.client(database.url) as late:
        with late.transaction():
            [sent] = late.execute("SELECT mq.send(%s, 'late') AS id", [queue]).fetchall()
            session.call("send", queue, "x")
            assert len(go_round(session, queue)) == 1
            assert not complete(sql, queue), "a transaction of before is open"
        assert sent["id"] in go_round(session, queue)
    assert complete(sql, queue)


def test_messages_sent_from_an_older_snapshot_join_the_ring(
    server: Server, database: Database, session: Session, queue: str, sql: Sql
) -> None:
    with server.client(database.url) as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        session.call("send", queue, "x")
        go_round(session, queue)
        assert complete(sql, queue), "a reader keeps nobody waiting"
        ids = {row["id"] for row in old.execute("SELECT mq.send(%s, 'x') AS id", [queue]).fetchall()}
        old.execute("SELECT mq.send_batch(%s, 'x')", [queue])
        ids |= {row["id"] for row in old.execute("SELECT id FROM mq.send_message(%s, 'x')", [queue]).fetchall()}
        old.execute("COMMIT")
    visited = go_round(session, queue)
    assert len(visited) == 4
    assert ids <= visited


def test_messages_of_a_take_join_the_ring_when_it_rolls_back(
    server: Server, database: Database, session: Session, queue: str, sql: Sql
) -> None:
    for _ in range(3):
        session.call("send", queue, "x")
    with server.client(database.url) as other:
        other.execute("BEGIN")
        [taken] = other.execute("SELECT id FROM mq.take_batch(%s, 1)", [queue]).fetchall()
        assert len(go_round(session, queue)) == 2
        other.execute("ROLLBACK")
    assert taken["id"] in go_round(session, queue)
    assert complete(sql, queue)


def test_a_backlog_joins_the_ring_in_steps(session: Session, queue: str, sql: Sql) -> None:
    session.call("send_batch", queue, "x\n" * 9999 + "x")
    visited: set[int] = set()
    for _ in range(12):
        rows = session.call("claim_wraparound", queue, 1000, "r", 60)
        visited |= {row["id"] for row in rows}
        if rows:
            session.call("complete_batch", rows[0]["batch_key"])
    assert len(visited) == 10_000
    assert complete(sql, queue)


def test_cancel_finds_a_message_in_every_table(session: Session, queue: str, sql: Sql) -> None:
    for _ in range(4):
        session.call("send", queue, "x")
    failed, released, redriven = (session.call("claim_batch", queue, 1)[0] for _ in range(3))
    session.call("fail", failed["id"], failed["batch_key"], "again", 0)
    session.call("release_batch", released["batch_key"])
    session.call("fail", redriven["id"], redriven["batch_key"], "no", -1)
    session.call("redrive", queue)
    session.call("release_batch", session.call("claim_batch", queue, 1)[0]["batch_key"])  # promotes what has failed
    ids = [row["id"] for row in sql("SELECT id FROM mq.ready WHERE type = %s", queue)]
    assert len(ids) == 4
    for id in ids:
        [state] = sql("SELECT state FROM mq.message_state WHERE id = %s", id)
        assert state == {"state": "N"}
        assert session.call("cancel", id) == [{"count": 1}]
    assert sql("SELECT count(*) AS n FROM mq.message WHERE type = %s", queue) == [{"n": 0}]


@pytest.mark.one_version
def test_an_upgrade_keeps_what_is_in_the_queue(server: Server, empty_database: Database, queue: str) -> None:
    """As in the previous release: an index of all rows, no column by_id."""
    install.apply(empty_database)
    with server.client(empty_database.url) as connection, connection.transaction():
        for statement in (
            "DROP INDEX mq.ready_by_id",
            "ALTER TABLE mq.ready DROP COLUMN by_id CASCADE",
            "CREATE INDEX ready_ring ON mq.ready (type, id)",
            "DROP TABLE mq.ring_type",
            "ALTER TABLE mq.batch ALTER COLUMN ids SET STORAGE EXTENDED",
            "DELETE FROM mq.installed WHERE name LIKE '%0008%' OR name = 'message_state'",
            "DELETE FROM _yoyo_migration WHERE migration_id LIKE '0008%'",
        ):
            connection.execute(statement)
        for attempts, later in ((0, "0"), (1, "1 minute")):
            connection.execute(
                "WITH sent AS (INSERT INTO mq.message (run_at, created_at, priority, type, body)"
                " VALUES (now() - interval '1 hour', now(), 0, %s, 'x') RETURNING id, run_at)"
                " INSERT INTO mq.ready (run_at, id, priority, attempts, type)"
                " SELECT run_at + %s::interval, id, 0, %s, %s FROM sent",
                [queue, later, attempts, queue],
            )
        connection.execute("INSERT INTO mq.ring (n, after_id, type, reader) VALUES (1, 0, %s, 'r')", [queue])
    install.apply(empty_database)
    session = empty_database.connect("upgraded")
    try:
        assert len(go_round(session, queue)) == 2
        with server.client(empty_database.url) as connection:
            ids = [row["id"] for row in connection.execute("SELECT id FROM mq.ready").fetchall()]
        assert [session.call("cancel", id) for id in ids] == [[{"count": 1}]] * 2
    finally:
        session.close()
