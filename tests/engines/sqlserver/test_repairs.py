"""SQL Server: objects broken by hand are reported with the statement that repairs them."""

import uuid
from collections.abc import Callable
from typing import Any

import pymssql
import pytest

pytestmark = pytest.mark.product("sqlserver")

Sql = Callable[..., list[dict[str, Any]]]


ADOPTED = (
    '{"key_columns": "id", "status_column": "status", "ready_value": "N", "active_value": "A", "done_value": "D",'
    ' "error_value": "E"}'
)


def stuck(sql: Sql) -> dict[str, Any]:
    [row] = [row for row in sql("EXEC mq.queue_health") if row["name"] == "stuck_groups"]
    return row


@pytest.mark.parametrize("of_all", [False, True])
def test_a_group_without_a_ticket_is_found_and_continues(sql: Sql, of_all: bool) -> None:
    kind = f"stuck.{uuid.uuid4().hex[:12]}"
    sql("EXEC mq.set_option %s, 'ordered', '1'", kind)
    sql("EXEC mq.send_message %s, N'a', @group_key = N'g'", kind)
    sql("EXEC mq.send_message %s, N'b', @priority = -1, @group_key = N'g'", kind)
    assert stuck(sql)["verdict"] == "ok"
    sql("DELETE FROM mq.ready WHERE type = %s", kind)
    assert sql("EXEC mq.claim_batch %s", kind) == []
    found = stuck(sql)
    assert (found["verdict"], found["measured"]) == ("bad", 1)
    assert f"EXEC mq.rescue_expired N'{kind}'" in found["detail"]
    sql("EXEC mq.rescue_expired %s", None if of_all else kind)
    assert stuck(sql)["verdict"] == "ok"
    assert [row["body"] for row in sql("EXEC mq.take_batch %s", kind)] == ["a"]
    assert [row["body"] for row in sql("EXEC mq.take_batch %s", kind)] == ["b"]


@pytest.fixture
def letters(sql: Sql) -> str:
    """A polling table with a row."""
    name = f"letters_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, v varchar(9), status char(1))")
    sql(f"CREATE INDEX {name}_claim ON dbo.{name} (status, id)")
    sql(f"INSERT INTO dbo.{name} (id, status) VALUES (1, 'N'), (2, 'N')")
    sql(f"EXEC mq.adopt_table N'{name}', N'{name}', N'{ADOPTED}'")
    return name


def test_an_index_that_was_dropped_is_asked_for(sql: Sql, letters: str) -> None:
    sql(f"DROP INDEX {letters}_claim ON dbo.{letters}")
    with pytest.raises(pymssql.Error, match=r"unsuitable_table.*CREATE INDEX \[letters"):
        sql(f"EXEC mq.claim_rows N'{letters}'")


def test_a_changed_column_type_is_reported_and_the_table_can_be_released(sql: Sql, letters: str) -> None:
    sql(f"EXEC mq.claim_rows N'{letters}'")
    sql(f"DROP INDEX {letters}_claim ON dbo.{letters}")
    sql(f"ALTER TABLE dbo.{letters} ALTER COLUMN status char(2)")
    sql(f"CREATE INDEX {letters}_claim ON dbo.{letters} (status, id)")
    with pytest.raises(pymssql.Error, match=r"unsuitable_table.*another type.*unadopt_table"):
        sql(f"EXEC mq.claim_rows N'{letters}'")
    assert sql(f"EXEC mq.unadopt_table N'{letters}'") == [{"affected": 1}]
    assert {row["status"].strip() for row in sql(f"SELECT status FROM dbo.{letters}")} == {"N"}
