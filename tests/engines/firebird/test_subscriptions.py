"""Firebird: triggers of watched tables are created during writes, with any transactions and rights."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database, NotAllowed, QueueError, Session, open_database
from servers import Server
from servers.firebird import driver
from servers.firebird_raw import MANNERS, NO_WAIT, Raw

pytestmark = pytest.mark.product("firebird")

Sql = Callable[..., list[dict[str, Any]]]
Open = Callable[..., Raw]


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
def table(sql: Sql) -> str:
    """A table with rows 1 to 3. It stays: a session that has seen it would have to end first."""
    table = f"T_{uuid.uuid4().hex[:12].upper()}"
    sql(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, n INTEGER)")
    for id in (1, 2, 3):
        sql(f"INSERT INTO {table} (id, n) VALUES ({id}, 0)")
    return table


def watch(session: Session, table: str, *types: str) -> None:
    assert session.call("watch_table", table) == []
    for type in types:
        session.call("subscribe", table, "IUD", type)


def events(sql: Sql, queue: str) -> list[tuple[str, str, list[Any]]]:
    """The contents of a queue's messages, ordered by id: table, action and key."""
    rows = sql("SELECT body FROM mq_message WHERE type = %s ORDER BY id", queue)
    told = [json.loads(row["body"]) for row in rows]
    return [(event["table"], event["action"], [*event["key"].values()]) for event in told]


def test_a_trigger_fires_at_once_in_sessions_that_know_the_table_but_not_in_what_they_have_prepared(
    raw: Open, session: Session, table: str, queue: str, sql: Sql
) -> None:
    """The engine loads new triggers when it prepares a statement that names the table. See the guide."""
    writer = raw()
    writer.run(f"INSERT INTO {table} (id) VALUES (4)")
    prepared = writer.transaction.cursor()
    statement = prepared.prepare(f"INSERT INTO {table} (id) VALUES (?)")
    prepared.execute(statement, [5])
    writer.commit()
    watch(session, table, queue)
    prepared.execute(statement, [6])
    writer.commit()
    assert events(sql, queue) == []
    writer.run(f"INSERT INTO {table} (id) VALUES (7)")
    prepared.execute(statement, [8])
    writer.commit()
    assert events(sql, queue) == [(table, "I", [7]), (table, "I", [8])]
    # Subscribing needs nothing of that.
    session.call("unsubscribe", table, "IUD")
    prepared.execute(statement, [9])
    session.call("subscribe", table, "I", queue)
    prepared.execute(statement, [10])
    writer.commit()
    assert events(sql, queue)[2:] == [(table, "I", [10])]
    [row] = session.call("unwatch_table", table)
    prepared.execute(statement, [11])
    writer.commit()
    sql(row["statement"])
    prepared.execute(statement, [12])
    writer.run(f"INSERT INTO {table} (id) VALUES (13)")
    writer.commit()
    assert len(events(sql, queue)) == 3
    prepared.close()
    statement.free()


def test_a_watch_and_an_unwatch_that_are_rolled_back_change_nothing(
    raw: Open, session: Session, table: str, queue: str, sql: Sql
) -> None:
    caller = raw()
    caller.run(f"SELECT * FROM mq_watch_table('{table}')")
    caller.run(f"SELECT * FROM mq_subscribe('{table}', 'IUD', '{queue}')")
    caller.rollback()
    with pytest.raises(QueueError, match="not_found"):
        session.call("list_subscriptions", table)
    sql(f"UPDATE {table} SET n = 1")
    watch(session, table, queue)
    caller.run(f"SELECT * FROM mq_unwatch_table('{table}')")
    # A session that uses the table for the first time now also has the trigger.
    late = raw()
    late.run(f"DELETE FROM {table} WHERE id = 1")
    late.commit()
    caller.rollback()
    late.run(f"DELETE FROM {table} WHERE id = 2")
    late.commit()
    assert events(sql, queue) == [(table, "D", [1]), (table, "D", [2])]
    # Both in one transaction.
    caller.run(f"SELECT * FROM mq_unwatch_table('{table}')")
    caller.run(f"SELECT * FROM mq_watch_table('{table}')")
    caller.run(f"SELECT * FROM mq_subscribe('{table}', 'D', '{queue}')")
    caller.commit()
    sql(f"DELETE FROM {table} WHERE id = 3")
    assert events(sql, queue)[2:] == [(table, "D", [3])]


def test_a_snapshot_transaction_can_watch_or_gets_an_error_with_the_reason(
    raw: Open, session: Session, table: str, queue: str, sql: Sql
) -> None:
    """On 3.0 it does not see the empty trigger that is created meanwhile."""
    caller = raw("SNAPSHOT WAIT")
    try:
        caller.run(f"SELECT * FROM mq_watch_table('{table}')")
    except driver().DatabaseError as error:
        assert "wrong_isolation: this transaction is SNAPSHOT" in str(error)
        caller.rollback()
        with pytest.raises(QueueError, match="not_found"):
            session.call("list_subscriptions", table)
        caller.run(f"SELECT * FROM mq_watch_table('{table}')")
    caller.run(f"SELECT * FROM mq_subscribe('{table}', 'D', '{queue}')")
    caller.commit()
    sql(f"DELETE FROM {table} WHERE id = 1")
    assert events(sql, queue) == [(table, "D", [1])]


def test_writers_without_rights_are_never_refused_while_tables_are_watched_and_unwatched(
    server: Server, database: Database, session: Session, table: str, queue: str, sql: Sql
) -> None:
    """If the trigger was dropped, some were: its rights go with it. Version 3.0 in Super mode may crash when a trigger
    is changed beside so many writers, and is left out."""
    name = f"login_{uuid.uuid4().hex[:12]}"
    stop = threading.Event()
    failures: list[str] = []
    written = [0] * 4

    def write(url: str, n: int) -> None:
        writer = Raw(server.client(url).connection, "SNAPSHOT WAIT" if n % 2 else NO_WAIT)
        while not stop.is_set():
            id = n * 1_000_000 + written[n] + 10
            try:
                writer.run(f"INSERT INTO {table} (id, n) VALUES ({id}, 0)")
                writer.run(f"UPDATE {table} SET n = 1 WHERE id = {id}")
                writer.commit()
                written[n] += 1
            except driver().DatabaseError as error:
                failures.append(str(error))
                writer.rollback()
        writer.close()

    with server.login(database.url, name) as url:
        sql(f"GRANT ALL ON {table} TO USER {name}")
        threads = [threading.Thread(target=write, args=(url, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            watch(session, table, queue)
            stop.wait(0.05)
            [row] = session.call("unwatch_table", table)
            sql(row["statement"])
        stop.set()
        for thread in threads:
            thread.join()
        sql(f"REVOKE ALL ON {table} FROM USER {name}")
    assert failures == []
    assert min(written) > 20 and len(events(sql, queue)) > 20


@pytest.mark.parametrize("manner", [manner for manner in MANNERS if "TABLE" not in manner])
def test_a_writer_reports_to_the_subscriptions_that_its_snapshot_sees(
    raw: Open, session: Session, table: str, queue: str, sql: Sql, manner: str
) -> None:
    writer = raw(manner)
    watch(session, table)
    writer.run(f"SELECT 1 FROM {table}")
    session.call("subscribe", table, "U", queue)
    writer.run(f"UPDATE {table} SET n = 1 WHERE id = 1")
    writer.commit()
    sees = [] if "SNAPSHOT" in manner else [(table, "U", [1])]
    assert events(sql, queue) == sees
    writer.run(f"UPDATE {table} SET n = 1 WHERE id = 2")
    writer.commit()
    assert events(sql, queue) == [*sees, (table, "U", [2])]


@pytest.mark.parametrize("ordered", [0, 1])
def test_open_writers_subscribers_and_claims_do_not_meet(
    raw: Open, session: Session, table: str, queue: str, sql: Sql, ordered: int
) -> None:
    """No transaction waits here: one that met another's row would fail."""
    session.call("set_queue", queue, json.dumps({"ordered": ordered}))
    watch(session, table, queue)
    session.call("send", queue, "before")
    first, second, subscriber, claimer = raw(), raw("SNAPSHOT NO WAIT"), raw(), raw()
    subscriber.run(f"SELECT * FROM mq_unsubscribe('{table}', 'D')")
    subscriber.run(f"SELECT * FROM mq_subscribe('{table}', 'U', '{queue}.more')")
    first.run(f"UPDATE {table} SET n = 1 WHERE id = 1")
    second.run(f"UPDATE {table} SET n = 1 WHERE id = 2")
    assert len(claimer.call("take_batch", queue, 10)) == 1
    first.run(f"DELETE FROM {table} WHERE id = 1")
    for one in (second, first, claimer, subscriber):
        one.commit()
    assert sorted(events(sql, queue)) == [(table, "D", [1]), (table, "U", [1]), (table, "U", [2])]


def test_cascades_are_reported_and_changes_of_later_triggers_are_reported_later(
    session: Session, table: str, queue: str, sql: Sql
) -> None:
    child, log = f"{table}_C", f"{table}_L"
    sql(
        f"CREATE TABLE {child} (id INTEGER NOT NULL PRIMARY KEY,"
        f" parent INTEGER REFERENCES {table} ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    sql(f"CREATE TABLE {log} (id INTEGER NOT NULL PRIMARY KEY)")
    sql(f"CREATE TRIGGER {table}_A FOR {table} AFTER INSERT POSITION 1 AS BEGIN INSERT INTO {log} VALUES (NEW.id); END")
    for watched in (table, child, log):
        watch(session, watched, queue)
    sql(f"INSERT INTO {table} (id) VALUES (4)")
    assert events(sql, queue) == [(table, "I", [4]), (log, "I", [4])]
    sql(f"INSERT INTO {child} (id, parent) VALUES (7, 1)")
    sql(f"DELETE FROM {table} WHERE id = 1")
    assert sorted(events(sql, queue)[3:]) == [(table, "D", [1]), (child, "D", [7])]


def test_keys_are_reported_whole_whether_built_as_a_varchar_or_as_a_blob(
    session: Session, queue: str, sql: Sql
) -> None:
    """The body is a BLOB from keys of more than 2,000 bytes on: here one byte less and one more, old and new."""
    table = f"T_{uuid.uuid4().hex[:12].upper()}"
    sql(f"CREATE TABLE {table} (a VARCHAR(450) CHARACTER SET UTF8 NOT NULL PRIMARY KEY)")
    watch(session, table, queue)
    at_most, more = ("\x01" * 320 + "a" * count + "é" * 20 for count in (32, 33))
    assert [
        len(json.dumps({"A": key}, ensure_ascii=False, separators=(",", ":")).encode()) for key in (at_most, more)
    ] == [
        2000,
        2001,
    ]
    sql(f"INSERT INTO {table} VALUES (%s)", at_most)
    keys = ["short", at_most, more, "short", more, at_most]
    for key in keys:
        sql(f"UPDATE {table} SET a = %s", key)
    told = [json.loads(row["body"]) for row in sql("SELECT body FROM mq_message WHERE type = %s ORDER BY id", queue)]
    assert told == [
        {"table": table, "action": "I", "key": {"A": at_most}},
        *(
            {"table": table, "action": "U", "key": {"A": new}, "old_key": {"A": old}}
            for old, new in zip([at_most, *keys], keys, strict=False)
        ),
    ]


def test_a_missing_right_to_alter_the_table_or_to_grant_is_named(
    server: Server, database: Database, session: Session, table: str, queue: str, sql: Sql
) -> None:
    name = f"login_{uuid.uuid4().hex[:12]}".upper()
    with server.login(database.url, name, "mq_operator") as url:
        operator = open_database(url).connect("operator")
        with pytest.raises(NotAllowed, match=table):
            operator.call("watch_table", table)
        with pytest.raises(QueueError, match="not_found"):
            session.call("list_subscriptions", table)
        # The owner of a table who does not own the queue.
        sql(f"GRANT CREATE TABLE TO USER {name}")
        with server.client(url) as connection:
            connection.execute(f"CREATE TABLE {table}_2 (id INTEGER NOT NULL PRIMARY KEY)")
        with pytest.raises(QueueError, match=f"unsuitable_table: {table}_2: {name} .*: let SYSDBA call this"):
            operator.call("watch_table", f"{table}_2")
        with pytest.raises(QueueError, match="not_found"):
            operator.call("list_subscriptions", f"{table}_2")
        watch(session, f"{table}_2", queue)
        with server.client(url) as connection:
            connection.execute(f"INSERT INTO {table}_2 (id) VALUES (1)")
        assert events(sql, queue) == [(f"{table}_2", "I", [1])]
        # Once the trigger has its rights, the table's owner may repair it, and others may call watch_table.
        [trigger] = sql("SELECT rdb$trigger_name AS name FROM rdb$triggers WHERE rdb$relation_name = %s", f"{table}_2")
        sql(f"ALTER TRIGGER {trigger['name']} INACTIVE")
        assert operator.call("watch_table", f"{table}_2") == []
        with server.client(url) as connection:
            connection.execute(f"INSERT INTO {table}_2 (id) VALUES (2)")
        assert len(events(sql, queue)) == 2
        watch(session, table, queue)
        assert operator.call("watch_table", table) == []
        # An operator who may not alter the table may not remove its subscriptions either.
        with pytest.raises(QueueError, match=r"unsuitable_table: .* may not alter"):
            operator.call("unwatch_table", table)
        [row] = session.call("unwatch_table", table)
        sql(f"UPDATE {table} SET n = 1")
        assert len(events(sql, queue)) == 2
        sql(row["statement"])
        operator.close()
