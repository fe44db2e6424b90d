"""send_quietly and send_message_quietly on MySQL and MariaDB: from triggers, functions and an ORM's transaction."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
from rowqueue.databases import Database, Session
from servers import Server
from servers.mysql import Client

pytestmark = pytest.mark.product("mysql", "mariadb")

Query = Callable[..., list[dict[str, Any]]]
REPLACE = '{"group_key": "g", "dedup_key": "d", "on_conflict": "replace"}'
OFF = [{"Variable_name": "innodb_snapshot_isolation", "Value": "OFF"}]


@pytest.fixture
def client(server: Server, database: Database) -> Iterator[Client]:
    """The driver's own connection, in autocommit, at the server's default isolation level."""
    connection = server.client(database.url)
    connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    yield connection
    connection.close()


@pytest.fixture
def table(sql: Query) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id bigint PRIMARY KEY) ENGINE = InnoDB")
    yield name
    sql(f"DROP TABLE {name}")


def bodies(sql: Query, queue: str) -> list[str]:
    found = sql("SELECT body, state FROM mq_message_state WHERE type = %s ORDER BY id", queue)
    assert {row["state"] for row in found} <= {"N"}
    return [row["body"] for row in found]


def last_id(client: Client) -> int:
    [row] = client.execute("SELECT LAST_INSERT_ID() AS id").fetchall()
    id: int = row["id"]
    return id


@pytest.mark.parametrize("ordered", [0, 1])
def test_a_call_returns_no_rows_and_leaves_the_id(
    client: Client, session: Session, sql: Query, queue: str, ordered: int
) -> None:
    session.call("set_queue", queue, json.dumps({"ordered": ordered}))
    cursor = client.execute("CALL mq_send_quietly(%s, 'a', NULL)", [queue])
    assert cursor.description is None and not cursor.nextset()
    first = last_id(client)
    cursor = client.execute(
        "CALL mq_send_quietly(%s, 'b', %s)",
        [
            queue,
            '{"run_at": "2001-01-01T00:00Z", "priority": 3, "group_key": "g", "dedup_key": "d", "max_attempts": 5,'
            ' "headers": "{}", "source": "me"}',
        ],
    )
    assert cursor.description is None and not cursor.nextset()
    second = last_id(client)
    found = sql(
        "SELECT id, body, priority, group_key, dedup_key, headers, source FROM mq_message WHERE type = %s", queue
    )
    assert [row["id"] for row in found] == [first, second]
    assert [*found[1].values()][1:] == ["b", 3, "g", "d", "{}", "me"]
    # The id of the live message, and 0 rows for a new one.
    for how in (None, "replace"):
        options = json.dumps({"dedup_key": "d", "delay_seconds": 60, "on_conflict": how})
        client.execute("CALL mq_send_quietly(%s, 'c', %s)", [queue, options])
        assert last_id(client) == second
    assert bodies(sql, queue) == ["a", "c"]
    assert len(session.call("claim_batch", queue, 10)) == 1


def test_a_trigger_may_send(client: Client, sql: Query, queue: str, table: str) -> None:
    """Outside of a transaction, inside of one, and with a statement that fails half-way."""
    client.execute(
        f"CREATE TRIGGER {table}_sends AFTER INSERT ON {table} FOR EACH ROW BEGIN"
        f" CALL mq_send_quietly('{queue}', NEW.id, NULL);"
        f" CALL mq_send_quietly('{queue}.2', NEW.id, '{REPLACE}');"
        " IF NEW.id = 13 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'unlucky'; END IF; END"
    )
    sql("CALL mq_set_option(%s, 'ordered', '1')", queue)
    client.execute(f"INSERT INTO {table} VALUES (1), (2)")
    assert (bodies(sql, queue), bodies(sql, f"{queue}.2")) == (["1", "2"], ["2"])
    client.execute("START TRANSACTION")
    client.execute(f"INSERT INTO {table} VALUES (3)")
    client.execute("SAVEPOINT mine")
    client.execute(f"INSERT INTO {table} VALUES (4)")
    client.execute("ROLLBACK TO SAVEPOINT mine")
    with pytest.raises(pymysql.Error, match="unlucky"):
        client.execute(f"INSERT INTO {table} VALUES (5), (13), (6)")
    client.execute(f"INSERT INTO {table} VALUES (7)")
    client.execute("COMMIT")
    with pytest.raises(pymysql.Error, match="unlucky"):
        client.execute(f"INSERT INTO {table} VALUES (8), (13)")
    assert (bodies(sql, queue), bodies(sql, f"{queue}.2")) == (["1", "2", "3", "7"], ["7"])
    assert [row["id"] for row in sql(f"SELECT id FROM {table} ORDER BY id")] == [1, 2, 3, 7]


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_a_trigger_decides_by_the_message_that_has_the_key_now(
    client: Client, session: Session, sql: Query, queue: str, table: str, level: str
) -> None:
    """Its snapshot is as old as the statement that fired it."""
    if sql("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'") not in ([], OFF):
        pytest.skip("this server fails with a conflict instead")
    client.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    client.execute(
        f"CREATE TRIGGER {table}_sends AFTER INSERT ON {table} FOR EACH ROW"
        f" CALL mq_send_quietly('{queue}', 'new', IF(NEW.id = 0, '{{\"dedup_key\": \"key\"}}', NULL))"
    )
    session.call("send_message", queue, "old", None, None, None, "key")
    writing = threading.Thread(target=client.execute, args=(f"INSERT INTO {table} VALUES (1), (SLEEP(0.8))",))
    writing.start()
    time.sleep(0.3)  # the first row has been inserted
    [row] = session.call("claim_batch", queue, 1)
    assert session.call("complete", row["id"], row["batch_key"]) == [{"affected": 1}]
    writing.join()
    assert [row["dedup_key"] for row in sql("SELECT dedup_key FROM mq_message WHERE type = %s ORDER BY id", queue)] == [
        None,
        "key",
    ]


def test_a_trigger_that_catches_invalid_argument_continues(client: Client, sql: Query, queue: str, table: str) -> None:
    client.execute(
        f"CREATE TRIGGER {table}_sends AFTER INSERT ON {table} FOR EACH ROW BEGIN"
        " DECLARE CONTINUE HANDLER FOR SQLSTATE '45000' SET @told = 1;"
        f" CALL mq_send_quietly('{queue}', NEW.id, NULL); CALL mq_send_quietly('', NEW.id, NULL);"
        f" CALL mq_send_quietly('{queue}', 'x', '{{\"on_conflict\": \"replace\"}}'); END"
    )
    client.execute(f"INSERT INTO {table} VALUES (1)")
    assert client.execute("SELECT @told AS told").fetchall() == [{"told": 1}]
    assert bodies(sql, queue) == ["1"]


def test_a_function_may_send(client: Client, sql: Query, queue: str, table: str) -> None:
    client.execute("SET GLOBAL log_bin_trust_function_creators = 1")
    try:
        client.execute(
            f"CREATE FUNCTION {table}_f (x int) RETURNS int MODIFIES SQL DATA BEGIN"
            f" CALL mq_send_quietly('{queue}', x, NULL); RETURN x; END"
        )
        assert client.execute(f"SELECT {table}_f(1) + {table}_f(2) AS x").fetchall() == [{"x": 3}]
        assert bodies(sql, queue) == ["1", "2"]
        client.execute(f"DROP FUNCTION {table}_f")
    finally:
        client.execute("SET GLOBAL log_bin_trust_function_creators = 0")


def test_an_orm_sends_in_the_middle_of_its_transaction(client: Client, sql: Query, queue: str, table: str) -> None:
    """What Rails and Sequel send: their drivers do not expect rows of such a statement."""
    client.execute("BEGIN")
    client.execute(f"INSERT INTO {table} VALUES (1)")
    client.query(f"CALL mq_send_quietly('{queue}', 'a', NULL)")  # one result is read, and no more
    client.execute("SAVEPOINT active_record_1")
    client.query(f"CALL mq_send_quietly('{queue}', 'b', '{{\"delay_seconds\": 60}}')")
    client.execute("ROLLBACK TO SAVEPOINT active_record_1")
    client.query(f"CALL mq_send_quietly('{queue}', 'c', NULL)")
    client.execute("RELEASE SAVEPOINT active_record_1")
    client.execute("COMMIT")
    assert bodies(sql, queue) == ["a", "c"]
    client.execute("BEGIN")
    client.query(f"CALL mq_send_quietly('{queue}', 'd', NULL)")
    client.execute("ROLLBACK")
    assert bodies(sql, queue) == ["a", "c"]


@pytest.mark.parametrize("where", ["message insert", "dedup insert", "grouped insert", "ready insert"])
@pytest.mark.parametrize("begin", ["SET autocommit = 1", "START TRANSACTION", "SET autocommit = 0"])
def test_a_call_that_fails_halfway_changes_nothing(
    server: Server, database: Database, client: Client, sql: Query, queue: str, where: str, begin: str
) -> None:
    """In autocommit too, where each statement of a procedure would commit alone."""
    sql("CALL mq_set_option(%s, 'ordered', '1')", queue)
    server.plant_faults(database.url, ["message", "dedup", "grouped", "ready"])
    try:
        client.execute(begin)
        client.execute("CALL mq_send_quietly(%s, 'before', NULL)", [queue])
        client.execute(server.fault(where))
        with pytest.raises(pymysql.Error, match="a fault"):
            client.execute("CALL mq_send_quietly(%s, 'x', %s)", [queue, '{"dedup_key": "d"}'])
        client.execute(server.fault(""))
        client.execute("CALL mq_send_quietly(%s, 'after', NULL)", [queue])
        client.execute("COMMIT")
    finally:
        for stem in ("message", "dedup", "grouped", "ready"):
            for event in ("insert", "update", "delete"):
                sql(f"DROP TRIGGER fault_{stem}_{event}")
    assert bodies(sql, queue) == ["before", "after"]
    assert sql("SELECT * FROM mq_dedup WHERE type = %s", queue) == []


def test_a_call_leaves_the_session_as_it_was(client: Client, sql: Query, queue: str) -> None:
    settings = "@@sql_safe_updates, @@sql_big_selects, @@autocommit, @@completion_type"
    client.execute(
        "SET SESSION sql_safe_updates = 1, sql_big_selects = 0, max_join_size = 1000, completion_type = 'CHAIN'"
    )
    before = client.execute(f"SELECT {settings}").fetchall()
    for begin in ("DO 0", "START TRANSACTION"):
        client.execute(begin)
        client.execute("CALL mq_send_quietly(%s, 'a', NULL)", [queue])
        for how in ("replace", "postpone"):
            options = json.dumps({"priority": 1, "group_key": "g", "dedup_key": "d", "on_conflict": how})
            client.execute("CALL mq_send_quietly(%s, 'b', %s)", [queue, options])
        with pytest.raises(pymysql.Error, match="invalid_argument"):
            client.execute("CALL mq_send_quietly('', 'a', NULL)")
        assert client.execute(f"SELECT {settings}").fetchall() == before
        client.execute("COMMIT AND NO CHAIN")
    assert len(bodies(sql, queue)) == 3


def test_a_change_of_an_ordered_queue_from_a_trigger_asks_for_the_level(
    client: Client, sql: Query, queue: str, table: str
) -> None:
    sql("CALL mq_set_option(%s, 'ordered', '1')", queue)
    client.execute(
        f"CREATE TRIGGER {table}_sends AFTER INSERT ON {table} FOR EACH ROW"
        f" CALL mq_send_quietly('{queue}', NEW.id, '{REPLACE}')"
    )
    client.execute(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(pymysql.Error, match=r"wrong_isolation: .*SET SESSION TRANSACTION"):
        client.execute(f"INSERT INTO {table} VALUES (2)")
    client.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.execute(f"INSERT INTO {table} VALUES (3)")
    assert bodies(sql, queue) == ["3"]


def test_only_a_producer_may_send_quietly(server: Server, database: Database, sql: Query, queue: str) -> None:
    for role, may in (("mq_producer", True), ("mq_consumer", False), ("mq_operator", False)):
        name = f"login_{uuid.uuid4().hex[:12]}"
        with server.login(database.url, name, role) as url, server.client(url) as connection:
            if may:
                connection.execute("CALL mq_send_quietly(%s, 'a', NULL)", [queue])
                continue
            for call in ("mq_send_quietly(%s, 'a', NULL)", "mq_send_quietly(%s, 'a', '{}')"):
                with pytest.raises(pymysql.Error, match="denied"):
                    connection.execute(f"CALL {call}", [queue])
    assert bodies(sql, queue) == ["a"]
