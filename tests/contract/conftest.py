"""Fixtures of the contract suite, on top of those that every suite shares."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from capabilities import BY_DATABASE, Capabilities
from queues import Queue
from rowqueue.databases import Database, Session


@pytest.fixture
def can(database: Database) -> Capabilities:
    """What this database does its own way."""
    return BY_DATABASE[database.name]


@pytest.fixture
def q(queue: str, session: Session, sql: Callable[..., list[dict[str, Any]]], can: Capabilities) -> Iterator[Queue]:
    """A queue that no other test uses."""
    q = Queue(queue, session, sql, can)
    yield q
    if q.is_big:
        q.empty()


@pytest.fixture
def other(q: Queue, connect: Callable[..., Session]) -> Queue:
    """The same queue over a second connection."""
    return q.by(connect("other"))
