"""MySQL and MariaDB: adopted tables, the right that the queue needs on them, and what their texts compare as."""

from collections.abc import Callable
from typing import Any

import pytest
from capabilities import BY_DATABASE
from polling import SHAPES, Polled
from queues import call, refused
from rowqueue.databases import Session

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_version]

Sql = Callable[..., list[dict[str, Any]]]
DELETES = {"on_complete": "delete", "equal_rows": 1}


@pytest.fixture
def table(queue: str, session: Session, sql: Sql) -> Polled:
    return Polled(queue, session, sql, BY_DATABASE["mysql"], SHAPES["a"])


def grant(sql: Sql, name: str, rights: str = "SELECT, UPDATE, DELETE") -> None:
    sql(f"GRANT {rights} ON {name} TO 'mq_owner'@'localhost'")


def test_the_right_that_the_queue_lacks_is_told_with_its_grant(table: Polled, sql: Sql) -> None:
    sql(f"CREATE TABLE {table.name} (id bigint PRIMARY KEY, v varchar(10), status char(1), KEY (status))")
    with refused("not_found", "GRANT"):
        table.adopt()
    grant(sql, table.name, "SELECT")
    with refused("unsuitable_table", "GRANT SELECT, UPDATE ON"):
        table.adopt()
    grant(sql, table.name, "UPDATE")
    assert table.adopt() == [{"created": 1}]


def test_rows_that_only_compare_as_equal_are_not_mixed_up(table: Polled, sql: Sql) -> None:
    """Under a collation without case and with blanks that do not count."""
    name = table.name
    sql(f"CREATE TABLE {name} (v varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, raw varbinary(9))")
    grant(sql, name)
    for v in ("a", "A", "a ", "á"):
        sql(f"INSERT INTO {name} VALUES (%s, %s)", v, b"\x00'\\\xff")
    call(table.session, "adopt_table", name, name, **DELETES)
    rows = {table.v(row): row for row in table.claim(10)}
    assert set(rows) == {"a", "A", "a ", "á"}
    failures = "\n".join(f"{rows[v]['id']},-1,no" for v in ("A", "á"))
    assert table.finish(rows["a"]["batch_key"], failures) == (2, 0, 2, 0)
    assert sorted(row["v"] for row in sql(f"SELECT v FROM {name}")) == ["A", "á"]


def test_a_trigger_that_raises_an_error_fails_its_row_alone(table: Polled, sql: Sql) -> None:
    name = table.create().name
    sql(
        f"CREATE TRIGGER t_{name} BEFORE UPDATE ON {name} FOR EACH ROW IF NEW.v = 'bad' AND NEW.status = 'D' THEN"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not on a Sunday'; END IF"
    )
    rows = table.insert("1", "bad", "3").claim(3)
    assert table.finish(rows[0]["batch_key"]) == (2, 1, 0, 0)
    [waits] = call(table.session, "peek_rows", name)
    assert (waits["state"], waits["error"]) == ("N", "not on a Sunday")
    assert table.left() == {"1": "D", "bad": "N", "3": "D"}
    sql(f"DROP TRIGGER t_{name}")


def test_a_thousand_keys_of_two_columns_are_found_by_their_index(table: Polled, sql: Sql) -> None:
    name = table.name
    sql(f"CREATE TABLE {name} (a bigint, b varchar(40), v varchar(10), PRIMARY KEY (a, b))")
    grant(sql, name)
    sql(f"INSERT INTO {name} SELECT n, CONCAT('key ', n), 'x' FROM mq_stripe WHERE n < 3000")
    call(table.session, "adopt_table", name, name, "a, b", on_complete="delete")
    rows = table.claim(2_000)
    assert table.finish(rows[0]["batch_key"]) == (2_000, 0, 0, 0)
    assert table.many() == 1_000
