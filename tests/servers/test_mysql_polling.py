"""MySQL and MariaDB: adopted tables, the right that the queue needs on them, and what their texts and times compare as."""

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


def test_the_hour_that_comes_twice_is_two_hours(table: Polled, sql: Sql, connect: Callable[..., Session]) -> None:
    """A TIMESTAMP in a session with daylight saving: the place in the order is a moment, not what a clock shows."""
    name = table.name
    sql(f"CREATE TABLE {name} (made timestamp(6) NOT NULL DEFAULT '2026-01-01', v varchar(10), KEY (made))")
    grant(sql, name)
    for n, at in enumerate(("00:30", "01:30", "02:30")):  # in Berlin 02:30, 02:30 and 03:30
        sql("SET time_zone = '+00:00'")
        sql(f"INSERT INTO {name} VALUES (%s, %s)", f"2026-10-25 {at}:00.123456", str(n))
    if not sql("SELECT 1 AS one FROM mysql.time_zone_name WHERE name = 'Europe/Berlin'"):
        pytest.skip("this server has no time zones loaded")
    with table.session.transaction() as connection:
        connection.cursor().execute("SET time_zone = 'Europe/Berlin'")
    call(table.session, "adopt_table", name, name, order_column="made", late_seconds=0, equal_rows=1)
    assert [table.values(table.claim(1)) for _ in range(4)] == [["0"], ["1"], ["2"], []]


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


def test_a_thousand_keys_of_two_columns_are_found_by_their_index(table: Polled, sql: Sql) -> None:
    name = table.name
    sql(f"CREATE TABLE {name} (a bigint, b varchar(40), v varchar(10), PRIMARY KEY (a, b))")
    grant(sql, name)
    sql(f"INSERT INTO {name} SELECT n, CONCAT('key ', n), 'x' FROM mq_stripe WHERE n < 3000")
    call(table.session, "adopt_table", name, name, "a, b", on_complete="delete")
    rows = table.claim(2_000)
    assert table.finish(rows[0]["batch_key"]) == (2_000, 0, 0, 0)
    assert table.many() == 1_000
