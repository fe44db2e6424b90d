"""Fixtures for tests with many processes."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from servers import Server
from support.capabilities import BY_DATABASE
from support.crowd import LEDGER, Crowd, Ledger, crowd_of

STATES = ("ready", "delayed", "active", "expired", "dead")


@pytest.fixture
def crowd(database: Database) -> Iterator[Crowd]:
    """Processes on the shared database."""
    with crowd_of(database.url) as made:
        yield made


@pytest.fixture
def ledger(sql: Callable[..., list[dict[str, Any]]]) -> Iterator[Ledger]:
    """A table for what was handled, on the shared database."""
    name = f"handled_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} ({LEDGER})")
    yield Ledger(name)
    sql(f"DROP TABLE {name}")


@pytest.fixture
def holds(session: Session) -> Callable[[str], dict[str, int]]:
    """Counts of a queue's messages by state, without zeros: holds(type) -> {} for an empty queue."""

    def look(type: str) -> dict[str, int]:
        row = session.call("queue_stats", type)[0]
        return {state: row[state] for state in STATES if row[state]}

    return look


@pytest.fixture
def rest(
    server: Server, database: Database, sql: Callable[..., list[dict[str, Any]]]
) -> Callable[[str], dict[str, int]]:
    """A queue's leftover rows in tables that no procedure shows: rest(type) -> {} when there are none."""

    def look(type: str) -> dict[str, int]:
        useful = {"group_lock": BY_DATABASE[database.name].live_locks}
        counts = {
            stem: sql(
                f"SELECT count(*) AS n FROM {server.table(stem)} WHERE type = %s AND {useful.get(stem, '1 = 1')}", type
            )[0]["n"]
            for stem in ("message", "ready", "delayed", "batch", "grouped", "group_lock", "dead")
        }
        return {stem: count for stem, count in counts.items() if count}

    return look
