"""MySQL and MariaDB: reports of consumers at every isolation level, and what monitoring procedures read."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from servers import Server
from servers.mysql import Client

from .test_sessions import SETTINGS

pytestmark = pytest.mark.product("mysql", "mariadb")

Rows = list[dict[str, Any]]
Sql = Callable[..., Rows]
WORKED = {"completed": 2, "failed": 1, "dead": 1, "busy_ms": 1, "waited_ms": 1, "sent": 1}
LEVELS = ["READ COMMITTED", "REPEATABLE READ"]
BACKLOG = 200_000
ACTIVE = 20_000
DEAD = 20_000


@pytest.fixture
def client(server: Server, database: Database) -> Iterator[Callable[[str], Client]]:
    """Makes connections of this isolation level whose statements fail when they wait for a lock."""
    made: list[Client] = []

    def connect(level: str) -> Client:
        made.append(server.client(database.url))
        made[-1].execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        made[-1].execute("SET SESSION innodb_lock_wait_timeout = 1")
        return made[-1]

    yield connect
    for each in made:
        each.close()


def run(connection: Client, text: str, *parameters: object) -> Rows:
    cursor = connection.execute(text, parameters)
    rows = list(cursor.fetchall()) if cursor.description else []
    while cursor.nextset():
        pass
    cursor.close()
    return rows


def report(connection: Client, queue: str, consumer: str, completed: int = 1) -> None:
    run(
        connection,
        "CALL mq_report_consumer(%s, %s, JSON_OBJECT('completed', %s, 'sent', 1,"
        " 'sent_at', CONCAT(UTC_TIMESTAMP(6) - INTERVAL 3 MINUTE, 'Z')))",
        consumer,
        queue,
        completed,
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("known", [["b", "d"], [], ["a", "b", "c", "d", "e"]], ids=["some", "none", "all"])
def test_an_open_transaction_with_a_report_is_in_no_other_consumers_way(
    client: Callable[[str], Client], session: Session, queue: str, sql: Sql, level: str, known: list[str]
) -> None:
    """Not even at REPEATABLE READ, where InnoDB locks gaps: of names before, after and between."""
    for consumer in known:
        report(client(level), queue, consumer)
    first, second = client(level), client(level)
    first.begin()
    second.begin()
    for consumer in ("b", "d"):
        report(first, queue, consumer, 10)
    for consumer in ("a", "c", "e"):
        report(second, queue, consumer, 10)
    report(client("READ COMMITTED"), queue, "f", 10)
    first.commit()
    second.commit()
    rows = {row["consumer"]: row["completed"] for row in session.call("list_consumers", queue)}
    assert rows == {consumer: 10 + (consumer in known) for consumer in "abcdef"}
    assert sql("SELECT SUM(completed) AS n FROM mq_report WHERE type = %s", queue)[0]["n"] == sum(rows.values())


def make_old(sql: Sql, queue: str, consumers: str) -> None:
    for consumer in consumers:
        sql("UPDATE mq_report SET minute = minute - INTERVAL 2 DAY WHERE type = %s AND consumer = %s", queue, consumer)
        sql(
            "UPDATE mq_consumer SET reported_at = reported_at - INTERVAL 2 DAY WHERE type = %s AND consumer = %s",
            queue,
            consumer,
        )


def left(sql: Sql, queue: str) -> dict[str, str]:
    """The consumers with rows in each of the two tables."""
    return {
        table: "".join(
            row["consumer"]
            for row in sql(f"SELECT DISTINCT consumer FROM mq_{table} WHERE type = %s ORDER BY consumer", queue)
        )
        for table in ("consumer", "report")
    }


def test_a_locked_report_is_deleted_by_a_later_one(client: Callable[[str], Client], queue: str, sql: Sql) -> None:
    first, second = client("READ COMMITTED"), client("READ COMMITTED")
    for consumer in "abc":
        report(first, queue, consumer)
    make_old(sql, queue, "abc")
    second.begin()
    for table in ("consumer", "report"):
        run(second, f"SELECT * FROM mq_{table} WHERE type = %s AND consumer = 'b' FOR UPDATE", queue)
    report(first, queue, "x")
    assert left(sql, queue) == {"consumer": "bx", "report": "bx"}
    second.rollback()
    report(first, queue, "y")
    assert left(sql, queue) == {"consumer": "xy", "report": "xy"}


@pytest.mark.parametrize("level", LEVELS)
def test_a_transaction_with_a_new_minute_locks_nothing_of_consumers_that_work(
    client: Callable[[str], Client], queue: str, sql: Sql, level: str
) -> None:
    """It deletes old rows at READ COMMITTED; at levels with gap locks it leaves them to others."""
    first, second, third = client(level), client(level), client("READ COMMITTED")
    for consumer in "abcd":
        report(first, queue, consumer)
    make_old(sql, queue, "ac")
    first.begin()
    report(first, queue, "x")
    for other in (second, third):
        for consumer in "bdewz":
            report(other, queue, consumer)
    first.commit()
    assert left(sql, queue) == {"consumer": "bdewxz", "report": "bdewxz"}


@pytest.mark.parametrize("own", [True, False], ids=["autocommit", "transaction"])
def test_a_session_at_repeatable_read_forgets_in_a_transaction_of_its_own(
    client: Callable[[str], Client], queue: str, sql: Sql, own: bool
) -> None:
    first = client("REPEATABLE READ")
    for consumer in "ab":
        report(first, queue, consumer)
    make_old(sql, queue, "ab")
    if not own:
        first.begin()
    report(first, queue, "x")
    first.commit()
    assert left(sql, queue) == ({"consumer": "x", "report": "x"} if own else {"consumer": "abx", "report": "abx"})


def test_dead_letters_are_those_of_a_name_to_the_last_blank(session: Session, queue: str) -> None:
    for consumer in ("w", "w ", "W"):
        session.call("report_consumer", consumer, queue)
    session.call("send_batch", queue, "1\n2\n3\n4\n5\n6")
    for consumer, count in (("w", 1), ("w ", 2), ("W", 3)):
        for row in session.call("claim_batch", queue, count, consumer):
            session.call("dead_letter", row["id"], row["batch_key"], "broken")
    for consumer in ("w", "w ", "W"):
        session.call("report_consumer", consumer, queue, '{"next_seconds": 0}')
    found = {row["consumer"]: row["dead"] for row in session.call("list_consumers", queue)}
    assert found == {"w": 1, "w ": 2, "W": 3}


def test_two_errors_are_redriven_at_one_time(database: Database, session: Session, queue: str) -> None:
    session.call("send_batch", queue, "1\n2\n3")
    for row, error in zip(session.call("claim_batch", queue, 3), ("busy 1", "gone", "busy 2"), strict=True):
        session.call("dead_letter", row["id"], row["batch_key"], error)
    with closing(database.connect("other")) as other, session.transaction():
        assert session.call("redrive_all", queue, "busy #")[0]["affected"] == 2
        assert other.call("redrive_all", queue, "busy #")[0]["affected"] == 0
        assert other.call("redrive_all", queue, "gone")[0]["affected"] == 1


# Calls that only read obey the session's row limit.
@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"big-selects", "timestamps"}))
def test_the_settings_of_a_session_that_reports_or_lists_change_nothing(
    server: Server, database: Database, queue: str, name: str
) -> None:
    with server.client(database.url) as connection:
        connection.autocommit(True)
        connection.execute(f"SET SESSION {SETTINGS[name]}")
        for n in range(3):
            run(
                connection,
                "CALL mq_send_message(%s, 'b\u00e9', NULL, 0, %s, %s, NULL, NULL, NULL, NULL, NULL)",
                queue,
                "g" * 200,
                f"{n} ",
            )
        for row in run(connection, "CALL mq_claim_batch(%s, 2, 'w', NULL)", queue):
            error = "\u00c9t\u00e9 12\\34\n5" if name != "latin1" else "34\\12\n5"
            run(connection, "CALL mq_dead_letter(%s, %s, %s)", row["id"], row["batch_key"], error)
        for next_seconds in (60, 0, 60):
            run(
                connection,
                "CALL mq_report_consumer('w', %s, %s)",
                queue,
                json.dumps(WORKED | {"next_seconds": next_seconds}),
            )
        [consumer] = run(connection, "CALL mq_list_consumers(%s, NULL)", queue)
        assert (consumer["status"], consumer["completed"]) == ("working", 2)
        assert run(connection, "CALL mq_throughput(%s, NULL)", queue)[-1]["completed"] in (2, 4, 6)
        [group] = run(connection, "CALL mq_list_errors(%s, NULL)", queue)
        assert group["messages"] == 2 and "#\\#" in group["error"]
        found = run(connection, "CALL mq_find_messages(%s, %s, NULL, 1)", queue, json.dumps({"group_key": "g" * 200}))
        assert [(row["state"], row["body"]) for row in found] == [("E", "b"), ("E", "b"), ("N", "b")]
        [one] = run(connection, "CALL mq_find_messages(%s, %s, NULL, NULL)", queue, '{"dedup_key": "2 "}')
        assert one["id"] == found[2]["id"]
        assert run(connection, "CALL mq_list_queues(%s)", queue)[0]["type"] == queue
        run(connection, "CALL mq_list_polling_tables(NULL)")
        assert run(connection, "CALL mq_redrive_all(%s, %s, NULL)", queue, group["error"]) == [{"affected": 2}]


# ---- what is read ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def backlog(server: Server) -> Iterator[str]:
    """The queue q: ACTIVE claimed messages, DEAD dead letters and the rest of BACKLOG ready, each with both keys."""
    url = server.create_database()
    install.apply(open_database(url))
    with server.client(url) as connection:
        for _ in range(BACKLOG // 10_000):
            run(connection, "CALL mq_send_batch('q', %s, NULL)", "x\n" * 9_999 + "x" * 1_000)
        run(connection, "UPDATE mq_message SET dedup_key = CONCAT('d', id), group_key = IF(id MOD 100, 'other', 'g')")
        run(connection, "INSERT INTO mq_dedup (type, dedup_key, id) SELECT type, dedup_key, id FROM mq_message")
        for _ in range(ACTIVE // 1_000):
            run(connection, "CALL mq_claim_batch('q', 1000, 'w', 3600)")
        run(connection, f"CREATE TABLE moved AS SELECT * FROM mq_ready ORDER BY id LIMIT {DEAD}")
        run(connection, "DELETE r FROM moved AS o JOIN mq_ready AS r USING (type, priority, lane, run_at, id)")
        run(
            connection,
            "INSERT INTO mq_dead (id, died_at, attempts, type, consumer, error)"
            " SELECT id, UTC_TIMESTAMP(6), 1, 'q', 'w', CONCAT('order ', id, ' failed') FROM moved",
        )
        run(connection, "DROP TABLE moved")
    yield url
    server.drop_database(url)


def reads(connection: Client) -> int:
    rows = run(connection, "SHOW SESSION STATUS LIKE 'Handler_read%%'")
    return sum(int(row["Value"]) for row in rows)


def rows_read(connection: Client, call: str, *arguments: object) -> tuple[int, Rows]:
    """How many rows the call has read, those of lists and temporary tables included, and what it returned."""
    before = reads(connection)
    own = reads(connection) - before
    found = run(connection, f"CALL mq_{call}", *arguments)
    return reads(connection) - before - 2 * own, found


@pytest.mark.level(4)
@pytest.mark.parametrize("state", ["A", "E", "N"])
@pytest.mark.parametrize("key", ["id", "dedup_key"])
def test_one_message_is_found_without_reading_others(server: Server, backlog: str, state: str, key: str) -> None:
    with server.client(backlog) as connection:
        [row] = run(connection, "CALL mq_peek('q', %s, 1, 0)", state)
        by_id = key == "id"
        count, [found] = rows_read(
            connection,
            "find_messages(%s, %s, NULL, 0)",
            None if by_id else "q",
            json.dumps({key: row[key]}),
        )
        assert found == row
        # For an active one, also the list of its claim: once to split it and once to search it.
        assert count < (100 + ACTIVE // 1_000 if state != "A" else 3_000)


@pytest.mark.level(3)
@pytest.mark.parametrize("group", ["g", "none"])
def test_a_search_by_group_reads_ten_thousand_of_each_state(server: Server, backlog: str, group: str) -> None:
    with server.client(backlog) as connection:
        count, found = rows_read(connection, "find_messages('q', %s, 10000, 0)", json.dumps({"group_key": group}))
        assert {row["state"] for row in found} == ({"N", "A", "E"} if group == "g" else set())
        assert len(found) == (300 if group == "g" else 0)
        # Three states, with the messages and the server's temporary tables.
        assert count < 130_000


@pytest.mark.level(3)
def test_all_dead_letters_are_counted_by_error_from_the_index(server: Server, backlog: str) -> None:
    with server.client(backlog) as connection:
        count, [found] = rows_read(connection, "list_errors('q', NULL)")
        [held] = run(connection, "SELECT COUNT(*) AS n FROM mq_dead WHERE type = 'q'")
        assert (found["error"], found["messages"]) == ("order # failed", held["n"])
        assert count < 2 * held["n"] + 100
        [newest] = run(connection, "SELECT MAX(id) AS id FROM mq_dead")
        assert found["last_id"] == newest["id"]


@pytest.mark.level(3)
def test_the_dead_letters_of_a_report_are_found_by_their_time(server: Server, backlog: str) -> None:
    with server.client(backlog) as connection:
        report = '{"completed": 1, "failed": 1, "next_seconds": %d}'
        run(connection, "CALL mq_report_consumer('w', 'q', %s)", report % 3600)
        run(connection, "UPDATE mq_consumer SET counted_at = UTC_TIMESTAMP(6) WHERE consumer = 'w'")
        count, _ = rows_read(
            connection, "report_consumer('w', 'q', %s)", '{"completed": 1, "failed": 1, "next_seconds": 0}'
        )
        assert count < 50


def test_a_piece_of_a_body_is_all_that_is_sent(server: Server, backlog: str) -> None:
    with server.client(backlog) as connection:
        [newest] = run(connection, "SELECT MAX(id) AS id FROM mq_message")
        for call, arguments in (
            ("peek('q', 'N', 10000, %s)", []),
            ("find_messages(NULL, JSON_OBJECT('id', %s), 1, %s)", [1]),
        ):
            bodies = [
                [row["body"] for row in run(connection, f"CALL mq_{call}", *[newest["id"] for _ in arguments], length)]
                for length in (None, 5, 0)
            ]
            whole, piece, nothing = bodies
            assert any(len(body) == 1_000 for body in whole)
            assert piece == [body[:5] for body in whole]
            assert set(nothing) == {""}


def test_the_clock_of_a_minute_is_the_servers(session: Session, queue: str) -> None:
    at = session.call("report_consumer", "w", queue, '{"completed": 1}')[0]["reported_at"]
    [row] = session.call("throughput", queue, at)
    assert row["minute_at"] == at.replace(second=0, microsecond=0)
    assert session.call("throughput", queue, at + timedelta(minutes=1)) == []
