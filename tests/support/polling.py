"""Users' tables for the tests of polling tables: one of each shape, with its calls."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rowqueue.databases import Row, Session

from support.capabilities import Capabilities
from support.queues import LONG_AGO, call, refused

Sql = Callable[..., list[Row]]


@dataclass(frozen=True)
class Shape:
    """a: key and status; b: key; c: order and status; d: order; e: key, deletes; f: nothing, deletes."""

    letter: str
    active: str | None = "A"
    deletes: bool = False
    status_type: str = "char(1)"

    @property
    def has_key(self) -> bool:
        return self.letter in "abe"

    @property
    def has_status(self) -> bool:
        return self.letter in "ac"

    @property
    def on_complete(self) -> str:
        return "delete" if self.deletes or self.letter in "ef" else "keep"

    @property
    def columns(self) -> list[str]:
        key = ["id bigint NOT NULL PRIMARY KEY"] if self.has_key else []
        order = ["made {moment} NOT NULL"] if self.letter in "cd" else []
        status = [f"status {self.status_type}"] if self.has_status else []
        return [*key, *order, "v varchar(50)", *status]

    @property
    def index(self) -> str:
        return {"a": "status, id", "c": "status, made", "d": "made"}.get(self.letter, "")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of adopt_table except name and table."""
        arguments: dict[str, Any] = {"on_complete": self.on_complete}
        if self.has_key:
            arguments["key_columns"] = "id"
        else:
            arguments["equal_rows"] = 1
        if self.letter in "cd":
            arguments["order_column"] = "made"
        if self.has_status:
            arguments |= {
                "status_column": "status",
                "ready_value": "N",
                "active_value": self.active,
                "error_value": "E",
            }
            arguments["done_value"] = None if self.deletes else "D"
        elif self.letter in "bd":
            arguments["late_seconds"] = 0
        return arguments


SHAPES = {
    "a": Shape("a"),
    "a-never-active": Shape("a", active=None),
    "a-deleted": Shape("a", deletes=True),
    "b": Shape("b"),
    "c": Shape("c"),
    "c-never-active": Shape("c", active=None),
    "d": Shape("d"),
    "e": Shape("e"),
    "f": Shape("f"),
}


class Polled:
    """A table of one shape, adopted under its own name. Its column v identifies rows for the tests."""

    def __init__(self, name: str, session: Session, sql: Sql, can: Capabilities, shape: Shape) -> None:
        self.name = name.replace(".", "_")
        self.session = session
        self.sql = sql
        self.can = can
        self.shape = shape
        self.inserted = 0

    def by(self, session: Session) -> "Polled":
        """The same table over another connection."""
        return Polled(self.name, session, self.sql, self.can, self.shape)

    def create(self, *constraints: str, **options: Any) -> "Polled":
        """With further constraints; `options` change the arguments of adopt_table."""
        create_table(self.sql, self.can, self.name, *self.shape.columns, *constraints, index=self.shape.index)
        assert self.adopt(**options) == [{"created": 1}]
        return self

    def adopt(self, **options: Any) -> list[Row]:
        return call(self.session, "adopt_table", self.name, self.name, **self.shape.arguments | options)

    def insert(self, *values: str, status: str | None = "N") -> "Polled":
        for v in values:
            self.inserted += 1
            row: dict[str, Any] = {"v": v}
            if self.shape.has_key:
                row["id"] = self.inserted
            if self.shape.letter in "cd":
                row["made"] = f"2026-01-01 00:{self.inserted // 60:02}:{self.inserted % 60:02}"
            if self.shape.has_status:
                row["status"] = status
            self.sql(
                f"INSERT INTO {self.name} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", *row.values()
            )
        return self

    def copies(self, v: str, count: int) -> "Polled":
        """Rows that are equal in all columns, if the shape allows it."""
        for _ in range(count):
            before, self.inserted = self.inserted, 30
            self.insert(v)
            self.inserted = before
        return self

    def claim(self, size: int = 1, **options: Any) -> list[Row]:
        return call(self.session, "claim_rows", self.name, size, **options)

    def claim_expired(self, size: int) -> list[Row]:
        """A claim whose lease has ended: the shortest lease is a second."""
        rows = self.claim(size)
        if rows:
            table = re.sub(r"message$", "polled_batch", self.can.own_table)
            ended = self.can.instant.format(LONG_AGO)
            self.sql(f"UPDATE {table} SET lease_until = {ended} WHERE batch_key = %s", str(rows[0]["batch_key"]))
        return rows

    def finish(
        self, key: Any, outcomes: str | None = None, keep_others: int | None = None
    ) -> tuple[int, int, int, int]:
        [row] = call(self.session, "finish_rows", key, outcomes, keep_others)
        return row["done"], row["failed"], row["dead"], row["gone"]

    def count(self, procedure: str, *values: Any) -> int:
        [row] = call(self.session, procedure, *values)
        [count] = row.values()
        assert isinstance(count, int)
        return count

    def peek(self, state: str | None = None) -> dict[str, Row]:
        """The rows that are claimed, waiting or dead, by v."""
        return {self.v(row): row for row in call(self.session, "peek_rows", self.name, state, 10_000)}

    def states(self) -> list[tuple[str, int]]:
        """State and attempts of the rows that are claimed, waiting or dead."""
        rows = call(self.session, "peek_rows", self.name, None, 10_000)
        return sorted((row["state"], row["attempts"]) for row in rows)

    def v(self, row: Row) -> str:
        """The v of a claimed row; for a peeked row, only if the key is the whole row."""
        value = json.loads(row.get("row_data") or row["row_key"]).get(self.can.fold("v"))
        return str(value)

    def values(self, rows: list[Row]) -> list[str]:
        return [self.v(row) for row in rows]

    def left(self) -> dict[str, str | None]:
        """The rows of the table itself: v and status, '' if it has no status."""
        status = "status" if self.shape.has_status else "''"
        rows = self.sql(f"SELECT v, {status} AS s FROM {self.name}")
        found = [{name.lower(): value for name, value in row.items()} for row in rows]
        return {row["v"]: None if row["s"] is None else str(row["s"]).strip() for row in found}

    def many(self) -> int:
        """How many rows the table has."""
        return len(self.sql(f"SELECT v FROM {self.name}"))

    def expected(self, status: str | None) -> str | None:
        """What left() shows for a row of that status."""
        return status if self.shape.has_status else ""

    @property
    def waiting(self) -> str | None:
        """What left() shows for a row that is ready or waiting."""
        return self.expected("N")

    @property
    def active(self) -> str | None:
        return self.expected(self.shape.active or "N")

    @contextmanager
    def refused(self, error: str, *told: str) -> Iterator[None]:
        before = self.left()
        with refused(error, *told):
            yield
        assert self.left() == before


def create_table(sql: Sql, can: Capabilities, name: str, *columns: str, index: str = "") -> None:
    """A user's table that the queue and every login may use."""
    sql(f"CREATE TABLE {name} ({', '.join(columns).replace('{moment}', can.moment)})")
    if index:
        sql(f"CREATE INDEX i{name} ON {name} ({index})")
    for grant in can.grants:
        sql(grant.format(name))
