"""SQL Server: the rows that the one trigger per table receives, and its rights."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database
from servers.sqlserver import ExternalSQLServer

pytestmark = pytest.mark.product("sqlserver")

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def table(sql: Sql) -> Iterator[str]:
    """A watched table with rows 1 to 3; the queue with its name gets the changes."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, v int)")
    sql(f"INSERT INTO dbo.{name} (id) VALUES (1), (2), (3)")
    sql(f"EXEC mq.watch_table N'{name}'")
    sql(f"EXEC mq.subscribe N'{name}', N'IUD', N'{name}'")
    yield name
    sql(f"EXEC mq.unwatch_table N'{name}'")
    sql(f"DROP TABLE dbo.{name}")


def told(sql: Sql, kind: str) -> list[tuple[str, int, int | None]]:
    """Action, key and old key of each message."""
    bodies = [
        json.loads(row["body"]) for row in sql("SELECT body FROM mq.message_state WHERE type = %s ORDER BY id", kind)
    ]
    return [(body["action"], body["key"]["id"], body.get("old_key", {}).get("id")) for body in bodies]


def test_each_new_key_and_each_removed_key_is_reported_once(table: str, sql: Sql) -> None:
    """A trigger cannot know which row became which: 1 and 2 exist before and after."""
    sql(f"UPDATE dbo.{table} SET id = id - 1")
    assert told(sql, table) == [("U", 1, None), ("U", 2, None), ("U", 0, 3)]


def test_a_statement_of_thousands_of_rows_is_reported_in_key_order(table: str, sql: Sql) -> None:
    tens = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
    more = "".join(f" CROSS JOIN {tens} AS {alias} (n)" for alias in "bcd")
    numbers = f"SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n FROM {tens} AS a (n){more}"
    sql(f"INSERT INTO dbo.{table} (id) SELECT 10000 - n FROM ({numbers}) AS a WHERE n <= 2500")
    assert told(sql, table) == [("I", id, None) for id in range(7500, 10000)]


def test_a_merge_is_reported_by_its_actions(table: str, sql: Sql) -> None:
    sql(
        f"MERGE dbo.{table} AS t USING (VALUES (1), (4)) AS s (id) ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE;"
    )
    assert sorted(told(sql, table)) == [("D", 3, None), ("I", 4, None), ("U", 1, None)]


def test_an_empty_merge_reports_nothing(table: str, sql: Sql) -> None:
    sql(
        f"MERGE dbo.{table} AS t USING (VALUES (9)) AS s (id) ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN DELETE;"
    )
    assert told(sql, table) == []


def test_a_limit_of_the_session_does_not_cut_a_sent_body(
    server: ExternalSQLServer, database: Database, table: str, sql: Sql
) -> None:
    with server.client(database.url) as connection:
        connection.execute("SET ROWCOUNT 2")
        connection.execute(f"UPDATE dbo.{table} SET v = 1")
    assert told(sql, table) == [("U", 1, None), ("U", 2, None)]


def test_a_table_of_another_owner_reports_changes_of_writers_without_rights_on_the_queue(
    server: ExternalSQLServer, database: Database, sql: Sql
) -> None:
    name = f"owner_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url:
        sql(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        sql(f"CREATE TABLE {name}.stock (id int NOT NULL PRIMARY KEY)")
        sql(f"EXEC mq.watch_table N'{name}.stock'")
        sql(f"EXEC mq.subscribe N'{name}.stock', N'I', N'{name}'")
        with server.client(url) as connection:
            connection.execute(f"INSERT INTO {name}.stock (id) VALUES (7)")
        assert told(sql, name) == [("I", 7, None)]
        sql(f"EXEC mq.unwatch_table N'{name}.stock'")
        sql(f"DROP TABLE {name}.stock")
        sql(f"DROP SCHEMA {name}")


def test_a_serializable_writer_does_not_block_a_subscription(
    server: ExternalSQLServer, database: Database, table: str, sql: Sql
) -> None:
    with server.client(database.url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        connection.execute("BEGIN TRANSACTION")
        connection.execute(f"INSERT INTO dbo.{table} (id) VALUES (4)")
        sql("SET LOCK_TIMEOUT 3000")
        assert sql(f"EXEC mq.subscribe N'{table}', N'I', N'{table}2'") == [{"affected": 1}]
        sql("SET LOCK_TIMEOUT -1")
        connection.execute("ROLLBACK TRANSACTION")
    assert told(sql, table) == []
