"""queue_stats on SQL Server: it reads indexes in parts, and a queue may end anywhere in a part."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Session

pytestmark = pytest.mark.product("sqlserver")

Sql = Callable[..., list[dict[str, Any]]]

_DIGITS = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
_NUMBERS = (
    f"SELECT TOP (%s) 10000 * a.d + 1000 * b.d + 100 * c.d + 10 * d.d + e.d AS n FROM {_DIGITS} AS a (d)"
    f" CROSS JOIN {_DIGITS} AS b (d) CROSS JOIN {_DIGITS} AS c (d) CROSS JOIN {_DIGITS} AS d (d)"
    f" CROSS JOIN {_DIGITS} AS e (d) ORDER BY n"
)
_COUNTED = ("ready", "delayed", "active", "expired", "dead", "estimated")
_CAP = 10_000


def counted(row: dict[str, Any]) -> dict[str, int]:
    """The counts of one row; what is estimated is only known to be more than the cap."""
    exact = ("active", "expired", "estimated")
    return {name: row[name] if name in exact else min(row[name], _CAP + 1) for name in _COUNTED}


@pytest.fixture
def emptied(sql: Sql) -> Iterator[Sql]:
    """The tables of the queue, filled and emptied by hand: what a client sends would take minutes."""
    yield sql
    for table in ("ready", "delayed", "claimed", "batch", "grouped", "dead", "message"):
        sql(f"DELETE FROM mq.{table}")
    sql("DELETE FROM mq.queue WHERE type <> N''")


@pytest.mark.level(4)
def test_a_hundred_thousand_types_are_counted_in_a_moment(emptied: Sql, session: Session) -> None:
    emptied(
        "INSERT INTO mq.message (run_at, created_at, priority, type, body)"
        f" SELECT SYSUTCDATETIME(), SYSUTCDATETIME(), 0, CONCAT(N'type.', x.n), N'b' FROM ({_NUMBERS}) AS x",
        100_000,
    )
    emptied("INSERT INTO mq.ready (type, priority, run_at, id, attempts) SELECT type, 0, run_at, id, 0 FROM mq.message")
    emptied(
        "INSERT INTO mq.dead (id, died_at, attempts, type) SELECT id, run_at, 1, type FROM mq.message WHERE id % 2 = 0"
    )
    rows = session.call("queue_stats")
    assert len(rows) == 100_000
    assert sum(row["ready"] for row in rows) == 100_000 and sum(row["dead"] for row in rows) == 50_000


@pytest.mark.level(4)
def test_types_that_end_anywhere_in_a_part_are_counted_whole(emptied: Sql, session: Session) -> None:
    """A part has 20,002 entries. `due` and the like: so many rows lie before the moment, and `ahead` after it."""
    first = 10**9
    due, ahead = "'2026-01-01'", "'9998-01-01'"
    for type, table, past, later in (
        ("a", "ready", 3, 0),
        ("b", "ready", 20_000, 0),  # ends in the second part
        ("c", "ready", 30_000, 0),
        ("d", "ready", 1, 0),
        ("a", "grouped", 10_001, 0),
        ("e", "grouped", 10_001, 0),
        ("f", "grouped", 7, 0),
        ("a", "delayed", 20_005, 7),  # the rows ahead are not reached
        ("b", "delayed", 10_000, 10_003),
        ("c", "delayed", 2, 20_010),
        ("d", "delayed", 0, 4),
        ("g", "claimed", 20_003, 9),
        ("h", "claimed", 0, 10_000),
        ("i", "claimed", 6, 20_001),
        ("d", "dead", 9_999, 0),
        ("j", "dead", 10_003, 0),
        ("k", "dead", 1, 0),
    ):
        for count, moment in ((past, due), (later, ahead)):
            if count == 0:
                continue
            numbers, values = f"FROM ({_NUMBERS}) AS x", (count,)
            first += 10**6
            if table == "ready":
                emptied(
                    "INSERT INTO mq.ready (type, priority, run_at, id, attempts)"
                    f" SELECT N'{type}', 0, {moment}, {first} + x.n, 0 {numbers}",
                    *values,
                )
            elif table == "delayed":
                emptied(
                    "INSERT INTO mq.delayed (type, run_at, id, priority, attempts)"
                    f" SELECT N'{type}', {moment}, {first} + x.n, 0, 1 {numbers}",
                    *values,
                )
            elif table == "grouped":
                emptied(f"INSERT INTO mq.grouped SELECT N'{type}', N'g', {first} + x.n, 0 {numbers}", *values)
            elif table == "dead":
                emptied(
                    "INSERT INTO mq.dead (id, died_at, attempts, type)"
                    f" SELECT {first} + x.n, {moment}, 1, N'{type}' {numbers}",
                    *values,
                )
            else:
                # Two batches, that both are counted.
                for half, size in ((0, count // 2), (1, count - count // 2)):
                    [batch] = emptied(
                        "DECLARE @key uniqueidentifier = NEWID();"
                        " INSERT INTO mq.batch (batch_key, claimed_at, lease_until, lease_seconds, type, consumer)"
                        f" VALUES (@key, '2026-01-01', {moment}, 60, N'{type}', N'r'); SELECT @key AS id"
                    )
                    if size:
                        emptied(
                            f"INSERT INTO mq.claimed SELECT %s, {first} + {half} * 100000 + x.n, 1, 0, {moment}"
                            f" FROM ({_NUMBERS}) AS x",
                            str(batch["id"]),
                            size,
                        )
    emptied("INSERT INTO mq.queue (type, grouped) VALUES (N'e', 1), (N'f', 1), (N'policy', 0)")
    rows = {row["type"]: counted(row) for row in session.call("queue_stats")}
    assert set(rows) == {*"abcdefghijk", "policy"}
    assert {type: row["ready"] for type, row in rows.items() if row["ready"]} == {
        "a": _CAP + 1,
        "b": _CAP + 1,
        "c": _CAP + 1,
        "d": 1,
        "e": _CAP + 1,
        "f": 7,
    }
    assert {type: row["delayed"] for type, row in rows.items() if row["delayed"]} == {
        "a": 7,
        "b": _CAP + 1,
        "c": _CAP + 1,
        "d": 4,
    }
    assert {type: (row["active"], row["expired"]) for type, row in rows.items() if row["active"] or row["expired"]} == {
        "g": (9, 20_003),
        "h": (10_000, 0),
        "i": (20_001, 6),
    }
    assert {type: row["dead"] for type, row in rows.items() if row["dead"]} == {"d": 9_999, "j": _CAP + 1, "k": 1}
    assert {type for type, row in rows.items() if row["estimated"]} == set("abcej")
    for type, row in rows.items():
        [one] = session.call("queue_stats", type)
        assert counted(one) == row, type
