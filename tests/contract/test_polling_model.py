"""Polling tables whose rows other programs change, delete and set back while claims hold them.

Nothing is stuck, nothing is held twice. Random steps of a writer and of consumers, each in a transaction of its own.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import LeaseLost, QueueError, Row, Session
from support.capabilities import Capabilities
from support.outcomes import dead_letter, failure, joined
from support.polling import SHAPES, Polled, Sql

STEPS = 60


class Writer:
    """Another program that works on the table and knows nothing of claims."""

    def __init__(self, table: Polled, chance: random.Random) -> None:
        self.table = table
        self.chance = chance
        self.made = 0

    def insert(self) -> None:
        self.made += 1
        self.table.insert(f"r{self.made}")

    def _any(self) -> str | None:
        rows = sorted(self.table.left())
        return self.chance.choice(rows) if rows else None

    def _change(self, change: str) -> None:
        if v := self._any():
            self.table.sql(f"UPDATE {self.table.name} SET {change} WHERE v = %s", v)

    def change(self) -> None:
        """Another column: of a table without a key it makes another row."""
        self.made += 1
        self._change(f"v = 'r{self.made}'")

    def change_key(self) -> None:
        if self.table.shape.has_key:
            self.table.inserted += 1
            self._change(f"id = {self.table.inserted}")

    def delete(self) -> None:
        if v := self._any():
            self.table.sql(f"DELETE FROM {self.table.name} WHERE v = %s", v)

    def set_ready(self) -> None:
        if self.table.shape.has_status:
            self._change("status = 'N'")

    def set_done(self) -> None:
        if self.table.shape.has_status:
            self._change("status = 'D'")


class Consumers:
    """Several claims at a time, some of which end late or never."""

    def __init__(self, table: Polled, chance: random.Random) -> None:
        self.table = table
        self.chance = chance
        self.held: dict[Any, list[Row]] = {}

    def claim(self) -> None:
        claim = self.table.claim if self.chance.randint(0, 3) else self.table.claim_expired
        rows = claim(self.chance.randint(1, 4))
        if rows:
            self.held[rows[0]["batch_key"]] = rows

    def _one(self) -> tuple[Any, list[Row]] | None:
        if not self.held:
            return None
        key = self.chance.choice(list(self.held))
        return key, self.held.pop(key)

    def _finish(self, key: Any, failures: str | None = None) -> None:
        """Another consumer may have the batch by now."""
        try:
            self.table.finish(key, failures)
        except QueueError as error:
            assert isinstance(error, LeaseLost), error

    def finish(self) -> None:
        if batch := self._one():
            self._finish(batch[0])

    def fail(self) -> None:
        if batch := self._one():
            key, rows = batch
            failed = [row for row in rows if self.chance.random() < 0.6]
            self._finish(key, "\n".join(failure(row["id"], "no", self.chance.choice([0, 0, -1])) for row in failed))

    def release(self) -> None:
        if batch := self._one():
            self.table.count("release_rows", batch[0])

    def nobody_holds_a_row_twice(self) -> None:
        """By the entries, which name each row that is held."""
        if self.table.shape.has_key:
            keys = Counter(row["row_key"] for row in self.table.session.call("peek_rows", self.table.name, "A", 10_000))
            assert not keys or max(keys.values()) == 1, keys

    def drain(self) -> None:
        for key in list(self.held):
            self._finish(key)
        self.held.clear()
        empty = 0
        while empty < 3:
            rows = self.table.claim(10)
            empty = 0 if rows else empty + 1
            if rows:
                self.table.finish(rows[0]["batch_key"])


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.level(4)) for seed in (3, 4, 5))])
@pytest.mark.parametrize("shape", ["a", "a-never-active", "a-deleted", "c", "c-never-active", "e", "f"])
def test_no_row_is_stuck_or_held_twice_while_others_change_it(
    queue: str, session: Session, sql: Sql, can: Capabilities, shape: str, seed: int
) -> None:
    chance = random.Random(f"{shape} {seed}")
    table = Polled(queue, session, sql, can, SHAPES[shape]).create(max_attempts=1000)
    writer, consumers = Writer(table, chance), Consumers(table, chance)
    steps: list[Callable[[], None]] = [
        *[writer.insert] * 4,
        *(writer.change, writer.change_key, writer.delete, writer.set_ready, writer.set_done),
        *[consumers.claim] * 5,
        *(consumers.finish, consumers.finish, consumers.fail, consumers.release),
    ]
    for _ in range(STEPS):
        chance.choice(steps)()
        consumers.nobody_holds_a_row_twice()
    consumers.drain()
    assert {state for state, _ in table.states()} <= {"E"}
    left = Counter(table.left().values())
    if table.shape.has_status:
        assert set(left) <= {"D", "E"}, left
    else:
        # A dead row that was deleted since then is still listed.
        assert sum(left.values()) <= len(table.states()), "only the dead are left"


@pytest.mark.parametrize("shape", ["a", "b", "c", "c-never-active", "d", "e", "f"])
def test_an_added_column_does_not_change_the_identity_of_rows(
    queue: str, session: Session, sql: Sql, can: Capabilities, connect: Callable[..., Session], shape: str
) -> None:
    table = Polled(queue, session, sql, can, SHAPES[shape]).create().insert("1", "2", "3")
    rows = table.claim(3)
    sql(f"ALTER TABLE {table.name} ADD extra integer DEFAULT 5 NOT NULL")
    # Some engines keep what they know of a table until a session ends.
    table = table.by(connect("after the change"))
    assert table.claim(3) == []
    ids = [row["id"] for row in rows]
    assert table.finish(rows[0]["batch_key"], joined(failure(ids[1], "again", 0), dead_letter(ids[2], "dead"))) == (
        1,
        1,
        1,
        0,
    )
    again = table.claim(3)
    assert [row["id"] for row in again] == [ids[1]]
    assert table.finish(again[0]["batch_key"]) == (1, 0, 0, 0)
    assert table.claim(3) == []
    assert table.count("redrive_rows", table.name) == 1
    again = table.claim(3)
    assert [row["id"] for row in again] == [ids[2]]
    assert table.finish(again[0]["batch_key"]) == (1, 0, 0, 0)
    assert table.claim(3) == table.states() == []


def test_a_row_that_is_changed_while_claimed_is_claimed_again_after_the_claim(
    queue: str, session: Session, sql: Sql, can: Capabilities
) -> None:
    table = Polled(queue, session, sql, can, SHAPES["a"]).create().insert("1", "2")
    rows = table.claim(2)
    sql(f"UPDATE {table.name} SET id = id + 10 WHERE v = '1'")
    assert table.claim(2) == [], "its handler may still work on it"
    assert table.finish(rows[0]["batch_key"]) == (1, 0, 0, 1)
    again = table.claim(2)
    assert table.values(again) == ["1"]
    assert table.finish(again[0]["batch_key"]) == (1, 0, 0, 0)
    assert table.left() == {"1": "D", "2": "D"}
