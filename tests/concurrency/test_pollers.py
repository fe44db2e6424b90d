"""Five slow pollers consume polling tables while others write: no row is handled twice or lost."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, Row, Session
from support.capabilities import BY_DATABASE
from support.crowd import Crowd, Member, insert
from support.outcomes import failure
from support.polling import SHAPES, Polled
from support.waiting import until

POLLERS = 5
WRITERS = 2
ROWS = 40  # of each writer in each table
BATCH = 7
LEASE = 2
LATE_SECONDS = 2
PATIENCE = 60
EQUAL_ROWS = 100

Names = dict[str, str]


def write(member: Member, names: Names, number: int) -> list[str]:
    """Insert rows, some of them late; some are inserted twice, because the first insert is rolled back."""
    chance = random.Random(number)
    written = []
    for n in range(ROWS):
        for shape_name, table in names.items():
            shape = SHAPES[shape_name]
            now = datetime.now(UTC)
            v = f"{number}-{n}"
            row = {"v": f"'{v}'"}
            if shape.has_key:
                row["id"] = f"{int(now.timestamp() * 1e6)}{number}"
            if shape.letter in "cd":
                row["made"] = f"'{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03}'"
            if shape.has_status:
                row["status"] = "'N'"
            for outcome in ("rolled back", "kept") if chance.random() < 0.1 else ("kept",):
                try:
                    with member.session.transaction() as connection:
                        insert(connection, table, ", ".join(row), [", ".join(row.values())])
                        time.sleep(chance.random() * 0.004)
                        if outcome != "kept":
                            raise InterruptedError
                except InterruptedError:
                    pass
        written.append(v)
    return written


def finish(member: Member, key: Any, lines: str | None = None) -> Row | None:
    """The counts; None when the lease was lost.

    Repeats after a conflict, as the runner does: without a key, deletes read the whole table and may deadlock.
    """
    while True:
        try:
            rows = member.settle("finish_rows", key, lines)
            return rows and rows[0]
        except Conflict:
            continue


def poll(member: Member, names: Names, folded: str) -> list[tuple[str, str]]:
    """Claim, work for longer than a poll interval, finish, and note the finished rows; sometimes fail."""
    chance = random.Random(member.number)
    done = []
    while not member.stopped():
        time.sleep(0.02)
        for shape, table in names.items():
            rows = member.session.call("claim_rows", table, BATCH, None, LEASE)
            if not rows:
                continue
            time.sleep(0.01)
            failed = [row["id"] for row in rows if row["attempt"] < 3 and chance.random() < 0.1]
            lines = "\n".join(failure(id, "no", 0) for id in failed)
            if (counts := finish(member, rows[0]["batch_key"], lines)) is None:
                continue  # lost: another poller has them
            assert (counts["done"], counts["gone"]) == (len(rows) - len(failed), 0), counts
            done += [(shape, json.loads(row["row_data"])[folded]) for row in rows if row["id"] not in failed]
    return done


def clutch(member: Member, names: Names) -> None:
    """Claim from each table and hold it to the end."""
    for table in names.values():
        while not member.session.call("claim_rows", table, 2, None, LEASE):
            time.sleep(0.05)
    member.session.call("peek_rows", next(iter(names.values())))
    time.sleep(PATIENCE)


@pytest.mark.level(1)
def test_five_slow_pollers_finish_every_row_of_every_shape_exactly_once(
    crowd: Crowd, session: Session, sql: Callable[..., list[Any]], database: Database, queue: str
) -> None:
    can = BY_DATABASE[database.name]
    tables = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        options = {"late_seconds": LATE_SECONDS} if shape.letter in "bd" else {}
        tables[name] = Polled(f"{queue}_{number}", session, sql, can, shape).create(max_attempts=100, **options)
    names = {name: table.name for name, table in tables.items()}
    writers = [crowd.start(write, names, number)[0] for number in range(WRITERS)]
    [doomed] = crowd.start(clutch, names)
    until(lambda: all(table.states() for table in tables.values()), "one poller holds rows of each table", PATIENCE)
    pollers = crowd.start(poll, names, can.fold("v"), count=POLLERS)
    crowd.kill(doomed)
    written = [v for values in crowd.results(writers) for v in values]
    settled = time.monotonic() + LATE_SECONDS + LEASE + 1

    def idle() -> bool:
        return time.monotonic() > settled and not any(table.states() for table in tables.values())

    until(idle, "every row is finished", PATIENCE)
    crowd.stop(pollers)
    done = Counter(pair for pairs in crowd.results(pollers) for pair in pairs)
    assert {pair: times for pair, times in done.items() if times > 1} == {}
    assert done.keys() == {(shape, v) for shape in names for v in written}
    for name, table in tables.items():
        shape = SHAPES[name]
        assert set(table.left().values()) == (set() if shape.on_complete == "delete" else {table.expected("D")})


def finish_each(member: Member, keys: list[str]) -> None:
    for key in keys:
        counts = finish(member, key)
        assert counts and (counts["done"], counts["gone"]) == (1, 0)


def claim_often(member: Member, name: str) -> list[Any]:
    """Claims find nothing in a table whose rows are all claimed, while others finish them."""
    found = []
    while not member.stopped():
        found += member.session.call("claim_rows", name, EQUAL_ROWS, None, PATIENCE)
    return found


@pytest.mark.parametrize("shape", ["c-never-active", "f"])
@pytest.mark.level(3)
def test_messages_finished_during_a_claim_are_not_claimed_again(
    crowd: Crowd, session: Session, sql: Callable[..., list[Any]], database: Database, queue: str, shape: str
) -> None:
    """Equal rows without a status: a claim reads rows and entries in one statement, or the entries first."""
    table = Polled(queue, session, sql, BY_DATABASE[database.name], SHAPES[shape]).create()
    table.copies("same", EQUAL_ROWS)
    keys = [table.claim(lease_seconds=PATIENCE * 10)[0]["batch_key"] for _ in range(EQUAL_ROWS)]
    claimer = crowd.start(claim_often, table.name)
    finishers = [crowd.start(finish_each, half)[0] for half in (keys[::2], keys[1::2])]
    crowd.results(finishers)
    crowd.stop(claimer)
    assert crowd.results(claimer) == [[]]
    assert table.states() == []
    assert set(table.left().values()) == (set() if table.shape.on_complete == "delete" else {table.expected("D")})
