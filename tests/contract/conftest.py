"""Fixtures of the contract suite, on top of those that every suite shares."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from capabilities import BY_DATABASE, Capabilities
from queues import Feed, Queue, make_feed
from rowqueue.databases import Database, Session


@pytest.fixture
def can(database: Database) -> Capabilities:
    """What this database does its own way."""
    return BY_DATABASE[database.name]


@pytest.fixture(scope="session")
def lasting_session(database: Database) -> Iterator[Session]:
    """For modules of many short tests of which none changes its session: `session` may be this one there."""
    with closing(database.connect("test")) as session:
        yield session


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


@pytest.fixture
def feed(q: Queue) -> Iterator[Feed]:
    """A feed of an empty table that no other test uses."""
    feed = make_feed(q)
    yield feed
    feed.call("drop_feed")


@pytest.fixture
def another(feed: Feed, connect: Callable[..., Session]) -> Feed:
    """The same feed over a second connection."""
    return feed.by(connect("another"))
