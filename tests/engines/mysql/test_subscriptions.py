"""Watched tables on MySQL and MariaDB: upserts, cascades, locks and rights."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database, QueueError, Session
from servers import Server

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]
RIGHTS = "SELECT, TRIGGER ON {} TO 'mq_owner'@'localhost'"


@pytest.fixture
def table(sql: Sql, session: Session, queue: str) -> Iterator[str]:
    """A watched table to which this queue subscribes."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, n INT)")
    sql(f"GRANT {RIGHTS.format(name)}")
    for row in session.call("watch_table", name):
        sql(row["statement"])
    session.call("subscribe", name, "IUD", queue)
    yield name
    session.call("unwatch_table", name)
    sql(f"DROP TABLE {name}")


def events(sql: Sql, type: str) -> list[tuple[Any, ...]]:
    """Take all messages of a type; returns their actions and keys."""
    rows = [json.loads(row["body"]) for row in sql("SELECT body FROM mq_message WHERE type = %s ORDER BY id", type)]
    sql("DELETE FROM mq_message WHERE type = %s", type)
    return [(row["action"], *row["key"].values()) for row in rows]


def test_upserts_send_the_action_that_the_server_chose(sql: Sql, table: str, queue: str) -> None:
    sql(f"INSERT INTO {table} VALUES (1, 1)")
    assert events(sql, queue) == [("I", 1)]
    sql(f"INSERT INTO {table} VALUES (1, 2), (2, 2) ON DUPLICATE KEY UPDATE n = 3")
    assert events(sql, queue) == [("U", 1), ("I", 2)]
    sql(f"REPLACE INTO {table} VALUES (1, 4)")
    assert events(sql, queue) == [("D", 1), ("I", 1)]
    sql(f"INSERT IGNORE INTO {table} VALUES (1, 5), (3, 5)")
    assert events(sql, queue) == [("I", 3)]
    sql(f"TRUNCATE TABLE {table}")
    assert events(sql, queue) == []


def test_a_foreign_keys_cascade_sends_nothing(sql: Sql, session: Session, queue: str) -> None:
    """The storage engine does it without triggers, as the guide says. If a server fires them, this fails."""
    parent, child = (f"{kind}_{uuid.uuid4().hex[:12]}" for kind in ("parent", "child"))
    sql(f"CREATE TABLE {parent} (id INT NOT NULL PRIMARY KEY)")
    sql(
        f"CREATE TABLE {child} (id INT NOT NULL PRIMARY KEY, p INT,"
        f" FOREIGN KEY (p) REFERENCES {parent} (id) ON DELETE CASCADE)"
    )
    sql(f"GRANT {RIGHTS.format(child)}")
    for row in session.call("watch_table", child):
        sql(row["statement"])
    session.call("subscribe", child, "IUD", queue)
    sql(f"INSERT INTO {parent} VALUES (1)")
    sql(f"INSERT INTO {child} VALUES (1, 1)")
    sql(f"DELETE FROM {parent}")
    told = events(sql, queue)
    session.call("unwatch_table", child)
    sql(f"DROP TABLE {child}")
    sql(f"DROP TABLE {parent}")
    assert told == [("I", 1)]


def test_a_writers_last_insert_id_is_that_of_its_own_table(sql: Sql, table: str) -> None:
    sql(f"INSERT INTO {table} (n) VALUES (1)")
    assert sql("SELECT LAST_INSERT_ID() AS id") == sql(f"SELECT id FROM {table}")


def test_types_that_a_collation_takes_for_the_same_get_a_message_each(
    sql: Sql, session: Session, table: str, queue: str
) -> None:
    """A zero-width space is nothing to MySQL's usual collation, and blanks at the end are nothing to MariaDB's."""
    session.call("bind_topic", "collations.#", f"{queue}.bound")
    session.call("subscribe", table, "I", None, "collations.one")
    types = [queue, f"{queue}\u200b", f"{queue} ", f"{queue}.A", f"{queue}.a", f"{queue}.\U0001f600", "\u200b", " x"]
    for type in types[1:]:
        session.call("subscribe", table, "I", type)
    sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    assert {type: events(sql, type) for type in types} == {type: [("I", 1), ("I", 2)] for type in types}
    assert events(sql, f"{queue}.bound") == [("I", 1), ("I", 2)]
    sql("DELETE FROM mq_ready")
    session.call("unbind_topic", "collations.#", f"{queue}.bound")


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_an_open_writer_does_not_block_subscriptions(
    sql: Sql, server: Server, database: Database, session: Session, table: str, queue: str, level: str
) -> None:
    """With a lock on the rows that it read, later writers would wait too."""
    with server.client(database.url) as writer, session.transaction() as connection:
        writer.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        writer.execute("BEGIN")
        writer.execute(f"INSERT INTO {table} (n) VALUES (1)")
        connection.cursor().execute("SET SESSION innodb_lock_wait_timeout = 1")
        assert session.call("subscribe", table, "I", f"{queue}.new") == [{"affected": 1}]
        assert session.call("unsubscribe", table, "IUD") == [{"affected": 4}]
        writer.execute("COMMIT")


def test_a_missing_right_of_mq_owner_is_refused_before_a_writer_fails(sql: Sql, session: Session) -> None:
    name = f"t_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY)")
    sql(f"GRANT SELECT ON {name} TO 'mq_owner'@'localhost'")
    with pytest.raises(QueueError, match=rf"unsuitable_table: GRANT SELECT, TRIGGER ON .*{name}.* TO 'mq_owner'"):
        session.call("watch_table", name)
    sql(f"DROP TABLE {name}")


def test_a_table_of_another_database_is_watched_by_its_full_name(
    sql: Sql, server: Server, session: Session, queue: str
) -> None:
    other = server.create_database()
    name = f"{other.rpartition('/')[2]}.stock"
    sql(f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY)")
    sql(f"GRANT {RIGHTS.format(name)}")
    for row in session.call("watch_table", name):
        sql(row["statement"])
    session.call("subscribe", name, "I", queue)
    server.query(other, "INSERT INTO stock VALUES (7)")
    assert sql("SELECT body FROM mq_message WHERE type = %s", queue) == [
        {"body": f'{{"table":"{name}","action":"I","key":{{"id":7}}}}'}
    ]
    session.call("unwatch_table", name)
    server.drop_database(other)


def test_a_table_is_registered_under_its_own_name_only(sql: Sql, server: Server, database: Database) -> None:
    """Operators may call the step of watch_table that stores the table."""
    name, login = f"t_{uuid.uuid4().hex[:12]}", f"mall_{uuid.uuid4().hex[:8]}"
    sql(f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY)")
    sql(f"GRANT {RIGHTS.format(name)}")
    with server.login(database.url, login, "mq_operator") as url, server.client(url) as client:
        sql(f"GRANT SELECT, TRIGGER ON {name} TO {login}@'%'")
        cursor = client.cursor()
        with pytest.raises(Exception, match=f"unsuitable_table: the table is {name}"):
            cursor.execute("CALL imq_add_watched(DATABASE(), %s, %s)", [name, "payroll"])
        cursor.execute("CALL imq_add_watched(DATABASE(), %s, %s)", [name, name])
    assert sql("SELECT label FROM mq_watched WHERE label IN ('payroll', %s)", name) == [{"label": name}]
    sql("DELETE FROM mq_watched WHERE label = %s", name)
    sql(f"DROP TABLE {name}")


SETTINGS = {
    "ordered": '{"ordered": 1}',
    "a limit per group": '{"group_max_active": 1}',
    "ring": '{"ring": 1}',
    "fair": '{"fair": 1}',
    "ordered and fair": '{"ordered": 1, "fair": 1}',
    "paused": None,
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("types", [1, 2])
def test_settings_changed_after_the_triggers_were_made_hold_for_their_messages(
    sql: Sql, session: Session, table: str, queue: str, settings: str | None, types: int
) -> None:
    """The trigger of a table with one type writes the message itself: its rows are those of `send`."""

    def write_and_send(id: int) -> list[list[Any]]:
        """The rows of a change's message and those of a sent one; leaves the queue empty."""
        sql(f"INSERT INTO {table} VALUES ({id}, 1)")
        session.call("send", queue, "sent")
        found = sql(
            "SELECT m.priority, m.max_attempts, m.headers, m.group_key, r.priority AS place, r.lane,"
            " YEAR(r.run_at) = 1000 AS first, r.run_at = m.run_at AS same, r.attempts, g.group_key AS grouped"
            " FROM mq_message AS m JOIN mq_ready AS r ON r.id = m.id LEFT JOIN mq_grouped AS g ON g.id = m.id"
            " WHERE m.type = %s ORDER BY m.id",
            queue,
        )
        claimed = 0
        while rows := session.call("claim_batch", queue, 10, "c", 60):
            claimed += len(rows)
            session.call("complete_batch", rows[0]["batch_key"])
        assert claimed == (0 if paused else 2)
        session.call("purge", queue, "N", None, 10)
        return [list(row.values()) for row in found]

    if types == 2:
        session.call("subscribe", table, "IUD", f"{queue}.2")
    paused = False
    plain, sent = write_and_send(1)
    assert plain == sent
    if settings:
        session.call("set_queue", queue, settings)
    else:
        session.call("pause", queue)
        paused = True
    changed, sent = write_and_send(2)
    assert changed == sent
    assert (changed == plain) == paused
    if settings:
        session.call("set_queue", queue, json.dumps(dict.fromkeys(json.loads(settings), 0)))
    else:
        session.call("resume", queue)
        paused = False
    assert write_and_send(3) == [plain, plain]


@pytest.mark.parametrize(
    "mode", ["", "ANSI,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE", "TRADITIONAL", "EMPTY_STRING_IS_NULL"]
)
def test_triggers_made_in_any_sql_mode_send_the_same(
    sql: Sql, server: Server, database: Database, session: Session, table: str, queue: str, mode: str
) -> None:
    """The server keeps the mode of the session that creates a trigger."""
    with server.client(database.url) as client:
        if mode == "EMPTY_STRING_IS_NULL" and not client.is_mariadb:
            return
        client.execute("SET SESSION sql_mode = %s", [mode])
        for row in session.call("watch_table", table):
            client.execute(row["statement"])
        session.call("set_queue", queue, '{"ordered": 1}')
        client.execute("SET @mq_application = 'shop'")
        client.execute(f"INSERT INTO {table} VALUES (1, 1)")
        client.execute(f"UPDATE {table} SET id = 2")
        client.execute("SET @mq_application = SPACE(0)")
        client.execute(f"UPDATE {table} SET n = 2")
        client.execute(f"DELETE FROM {table}")
    found = sql(
        "SELECT m.body, SUBSTRING_INDEX(m.source, '/', 1) AS source, g.group_key"
        " FROM mq_message AS m JOIN mq_grouped AS g ON g.id = m.id WHERE m.type = %s ORDER BY m.id",
        queue,
    )
    head = f'{{"table":"{table}","action":'
    assert [row["body"] for row in found] == [
        f'{head}"I","key":{{"id":1}}}}',
        f'{head}"U","key":{{"id":2}},"old_key":{{"id":1}}}}',
        f'{head}"U","key":{{"id":2}}}}',
        f'{head}"D","key":{{"id":2}}}}',
    ]
    assert [row["source"] == "shop" for row in found] == [True, True, False, False]
    assert all(row["source"] for row in found)
    assert {row["group_key"] for row in found} == {""}


@pytest.mark.parametrize("settings", ["{}", '{"ordered": 1}'])
def test_a_bulk_insert_for_one_type_calls_no_procedure(
    sql: Sql, server: Server, database: Database, session: Session, table: str, queue: str, settings: str
) -> None:
    session.call("set_queue", queue, settings)
    with server.client(database.url) as client:

        def calls() -> int:
            return int(client.execute("SHOW SESSION STATUS LIKE 'Com_call_procedure'").fetchall()[0]["Value"])

        before = calls()
        client.execute(
            f"INSERT INTO {table} (n) WITH RECURSIVE r (n) AS"
            " (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 900) SELECT n FROM r"
        )
        assert calls() == before
        session.call("subscribe", table, "U", f"{queue}.2")
        client.execute(f"UPDATE {table} SET n = 0 WHERE id <= 10")
        assert calls() > before, "otherwise the server does not count them"
    keys = [key for _, key in events(sql, queue)]
    assert len(keys) == 910
    assert keys[:900] == sorted(keys[:900])
