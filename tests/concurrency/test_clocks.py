"""Jumps of the server's clock: due messages are claimed at most a second late, and a wait ends on time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from rowqueue.databases import Row, Session, open_database
from servers.clock import Clock
from support.capabilities import BY_DATABASE, Capabilities
from support.polling import SHAPES, Polled
from tabs import for_engine

DOCS = Path(__file__).parents[2] / "docs"

# How much a jump may add: a claim scans everything once per second.
LATE_SECONDS = 1.0
# A busy machine is late only sometimes; a fault is late every time, by as much as the clock was set back.
TRIES = 3
# Of one wait; the load of the machine may delay it.
WAIT_LATE_SECONDS = 4
PATIENCE = 60


@pytest.fixture
def can(clock: Clock) -> Capabilities:
    return BY_DATABASE[open_database(clock.server.url).name]


@pytest.fixture
def sessions(clock: Clock) -> Iterator[Callable[[], Session]]:
    """Makes sessions on a database of the server with that clock."""
    database = open_database(clock.url)
    made: list[Session] = []

    def make() -> Session:
        made.append(database.connect("test"))
        return made[-1]

    yield make
    for session in made:
        session.close()


def until(look: Callable[[], list[Row]]) -> tuple[list[Row], float]:
    """Poll until there is a result; returns it and the seconds it took."""
    begun = time.monotonic()
    while not (rows := look()):
        assert time.monotonic() - begun < PATIENCE, f"nothing within {PATIENCE} s"
        time.sleep(0.02)
    return rows, time.monotonic() - begun


def until_claimed(session: Session, type: str) -> float:
    """Claim until there is a message and complete it; returns the seconds it took."""
    rows, seconds = until(lambda: session.call("claim_batch", type, 1, "consumer", 60))
    session.call("complete_batch", rows[0]["batch_key"])
    return seconds


def until_visited(session: Session, type: str) -> float:
    """The same with a ring."""
    rows, seconds = until(lambda: session.call("claim_wraparound", type, 1, "consumer", 60))
    session.call("complete_batch", rows[0]["batch_key"])
    return seconds


def make_ring(session: Session, type: str) -> None:
    session.call("set_queue", type, '{"ring": 1}')


def send(session: Session, type: str, run_at: datetime | None = None, priority: int | None = None) -> None:
    session.call("send_message", type, "x", run_at, priority)


def lateness(session: Session, type: str) -> float:
    """How late the latest of several messages was, which are due one after the other."""
    late = []
    send(session, type)
    late.append(until_claimed(session, type))
    send(session, type, session.now() + timedelta(seconds=1))
    late.append(until_claimed(session, type) - 1)
    assert late[-1] > -0.5, "it was claimed before it was due"
    send(session, type, priority=-5)
    late.append(until_claimed(session, type))
    send(session, f"{type}.failing")
    [row] = session.call("claim_batch", f"{type}.failing", 1, "consumer", 60)
    session.call("fail", row["id"], row["batch_key"], "error", 0)
    late.append(until_claimed(session, f"{type}.failing"))
    send(session, f"{type}.expiring")
    assert session.call("claim_batch", f"{type}.expiring", 1, "consumer", 1)
    late.append(until_claimed(session, f"{type}.expiring") - 1)
    make_ring(session, f"{type}.ring")
    send(session, f"{type}.ring")
    late.append(until_visited(session, f"{type}.ring"))
    return max(late)


@pytest.mark.level(4)
def test_the_guide_releases_messages_that_a_clock_set_back_holds(clock: Clock, sessions: Callable[[], Session]) -> None:
    database, session = open_database(clock.server.url), sessions()
    guide = for_engine((DOCS / "operate" / "stuck-consumers.md").read_text("utf-8"), database.name)
    section = guide.partition("## After the server's clock was set back")[2].partition("\n## ")[0]
    statements = section.partition("```sql\n")[2].partition("```")[0].split(";\n")
    for type in ("failing", "expiring", "kept"):
        send(session, type)
    [row] = session.call("claim_batch", "failing", 1, "consumer", 60)
    session.call("fail", row["id"], row["batch_key"], "error", 4)
    assert session.call("claim_batch", "expiring", 1, "frozen", 4)
    [kept] = session.call("claim_batch", "kept", 1, "living", 600)
    clock.set(-3600)
    time.sleep(2)
    for type in ("failing", "expiring", "kept"):
        assert not session.call("claim_batch", type, 1, "consumer", 60)
    for statement in statements:
        if statement.strip() not in {"", "COMMIT"}:
            clock.server.query(clock.url, statement)
    assert until_claimed(session, "failing") < 4 + LATE_SECONDS
    assert until_claimed(session, "expiring") < 4 + LATE_SECONDS
    assert not session.call("claim_batch", "kept", 1, "consumer", 60)
    assert session.call("complete_batch", kept["batch_key"])[0]["affected"] == 1


@pytest.mark.level(3)
@pytest.mark.parametrize("jumps", [(-50, -3600, 3600), pytest.param((-3, -30, 10), marks=pytest.mark.level(4))])
def test_after_a_jump_messages_are_claimed_a_second_late_at_most(
    clock: Clock, sessions: Callable[[], Session], jumps: tuple[float, ...]
) -> None:
    session = sessions()
    usual = lateness(session, "usual")
    for jump in jumps:
        found: list[float] = []
        while not found or found[-1] > usual + LATE_SECONDS:
            assert len(found) < TRIES, f"{found} seconds late after a jump of {jump}; {usual} without one"
            # The queue has been in use: its stored times are from before the jump.
            type = f"jobs.{jump}.{len(found)}"
            for _ in range(2):
                send(session, type)
                until_claimed(session, type)
                assert not session.call("claim_batch", type, 1, "consumer", 60)
                make_ring(session, f"{type}.ring")
                send(session, f"{type}.ring")
                until_visited(session, f"{type}.ring")
                assert not session.call("claim_wraparound", f"{type}.ring", 1, "consumer", 60)
            clock.set(clock.offset + jump)
            found.append(lateness(session, type))


@pytest.mark.level(4)
def test_after_a_clock_jump_tokens_come_at_their_rate(clock: Clock, sessions: Callable[[], Session]) -> None:
    session = sessions()
    session.call("set_queue", "type", '{"backoff_seconds": 0, "rate": 1, "rate_seconds": 2}')
    session.call("set_queue", "groups", '{"backoff_seconds": 0, "group_rate": 1, "group_rate_seconds": 2}')
    for type in ("type", "groups"):
        for _ in range(4):
            session.call("send_message", type, "x", None, None, "g")
        until_claimed(session, type)
        assert not session.call("claim_batch", type, 1, "consumer", 60)
    for jump in (-3600, 3600, -30):
        clock.set(clock.offset + jump)
        for type in ("type", "groups"):
            assert until_claimed(session, type) < 2 + 2 * LATE_SECONDS, (type, jump)
            assert not session.call("claim_batch", type, 1, "consumer", 60)


@pytest.mark.level(4)
def test_after_a_jump_a_lease_that_is_extended_is_kept(clock: Clock, sessions: Callable[[], Session]) -> None:
    mine, others = sessions(), sessions()
    for jump in (-30, 3600):
        clock.set(jump)
        type = f"jobs.{jump}"
        send(mine, type)
        [row] = mine.call("claim_batch", type, 1, "mine", 2)
        begun = time.monotonic()
        while time.monotonic() - begun < 3.5:
            assert mine.call("extend_lease", row["batch_key"], 2)[0]["affected"] == 1
            assert not others.call("claim_batch", type, 1, "others", 2)
            time.sleep(0.3)
        assert mine.call("complete_batch", row["batch_key"])[0]["affected"] == 1


@pytest.mark.level(4)
def test_after_a_jump_late_rows_of_a_polling_table_are_claimed_in_their_order(
    clock: Clock, sessions: Callable[[], Session], can: Capabilities
) -> None:
    """A table with a key and no status, whose claims use the highest key of late_seconds ago."""
    session, late_seconds = sessions(), 2

    def sql(text: str, *values: object) -> list[Row]:
        return clock.server.query(clock.url, text, *values)

    table = Polled("jumping", session, sql, can, SHAPES["b"]).create(late_seconds=late_seconds)

    def claimed(count: int) -> tuple[list[str], float]:
        seen: list[str] = []

        def look() -> list[Row]:
            rows = session.call("claim_rows", table.name, 10, "consumer", 60)
            if rows:
                seen.extend(row["row_key"] for row in rows)
                session.call("finish_rows", rows[0]["batch_key"])
            return rows if len(seen) >= count else []

        return seen, until(look)[1]

    def insert(id: int) -> None:
        sql(f"INSERT INTO {table.name} (id, v) VALUES ({id}, 'x')")

    insert(1)
    _, usual = claimed(1)
    id = 1
    for jump in (-3600, -30):
        found: list[float] = []
        while not found or found[-1] > usual + LATE_SECONDS:
            assert len(found) < TRIES, f"{found} seconds after a jump of {jump}; {usual} without one"
            clock.set(clock.offset + jump)
            insert(id + 2)
            assert not session.call("claim_rows", table.name, 10, "consumer", 60)
            insert(id + 1)  # late, as by a transaction that took its key earlier
            seen, seconds = claimed(2)
            assert [int("".join(filter(str.isdigit, key))) for key in seen] == [id + 1, id + 2]
            id += 2
            found.append(seconds)


@pytest.mark.level(4)
def test_wait_for_message_ends_on_time_over_a_jump(
    clock: Clock, sessions: Callable[[], Session], can: Capabilities
) -> None:
    if not can.waits:
        pytest.skip("nothing can wait inside this database")
    session = sessions()
    for jump in (-8, 3600):
        with ThreadPoolExecutor(1) as pool:
            begun = time.monotonic()
            answer = pool.submit(session.call, "wait_for_message", "empty", 5)
            time.sleep(0.5)
            clock.set(clock.offset + jump)
            assert answer.result(PATIENCE)[0]["ready"] == 0
            seconds = time.monotonic() - begun
        # On a server that sleeps by its clock, the short sleep during which the clock jumps lasts that much longer:
        # nothing inside the server can end it.
        longer = -jump if can.sleeps_by_clock and jump < 0 else 0
        # A jump forward may count for a second.
        assert 5 - 1.2 < seconds < 5 + longer + WAIT_LATE_SECONDS, jump
