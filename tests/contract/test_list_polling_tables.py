"""list_polling_tables: the polling tables, their arguments, and counts of their claims."""

from collections.abc import Callable

import pytest
from rowqueue.databases import Session
from support.capabilities import Capabilities
from support.outcomes import dead_letter, failure, joined
from support.polling import SHAPES, Polled, Shape, Sql
from support.queues import call


@pytest.fixture
def make(queue: str, session: Session, sql: Sql, can: Capabilities) -> Callable[[Shape], Polled]:
    """A table of a shape that no other test uses, not yet created."""
    return lambda shape: Polled(queue, session, sql, can, shape)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_table_is_listed_as_it_was_adopted(make: Callable[[Shape], Polled], can: Capabilities, shape: Shape) -> None:
    table = make(shape).create(max_attempts=7)
    [row] = call(table.session, "list_polling_tables", table.name)
    expected = dict.fromkeys(["key_columns", "order_column", "status_column", "late_seconds"])
    expected |= dict.fromkeys(["ready_value", "active_value", "done_value", "error_value"])
    expected |= {"equal_rows": 0} | shape.arguments
    for column in ("key_columns", "order_column", "status_column"):
        expected[column] = can.fold(expected[column]) if expected[column] else None
    assert {name: row[name] for name in expected} == expected
    assert (row["name"], row["max_attempts"]) == (table.name, 7)
    assert row["table_name"].rpartition(".")[2] == can.fold(table.name)
    assert row in call(table.session, "list_polling_tables")
    call(table.session, "unadopt_table", table.name)
    assert call(table.session, "list_polling_tables", table.name) == []


def test_rows_claimed_waiting_and_dead_are_counted(make: Callable[[Shape], Polled]) -> None:
    table = make(SHAPES["a"]).create().insert(*"abcdef")
    rows = table.claim(3)
    table.finish(
        rows[0]["batch_key"],
        joined(dead_letter(rows[0]["id"], "no"), *(failure(row["id"], "busy", 3_600) for row in rows[1:3])),
    )
    table.claim(1)
    [row] = call(table.session, "list_polling_tables", table.name)
    assert (row["active"], row["waiting"], row["dead"]) == (1, 2, 1)


def test_a_table_that_was_dropped_is_listed_still(make: Callable[[Shape], Polled]) -> None:
    table = make(SHAPES["e"]).create()
    table.sql(f"DROP TABLE {table.name}")
    assert [row["name"] for row in call(table.session, "list_polling_tables", table.name)] == [table.name]
