"""Fixtures of the contract suite, on top of those that every suite shares."""

from collections.abc import Callable, Iterator

import pytest
from rowqueue.databases import Database, Session
from support.queues import Feed, Queue


@pytest.fixture(scope="session")
def _lasting(database: Database) -> Iterator[list[Session]]:
    sessions = [database.connect("test")]
    yield sessions
    sessions[0].close()


@pytest.fixture
def lasting_session(database: Database, _lasting: list[Session]) -> Session:
    """A session for modules with many short tests that do not change it."""
    try:
        _lasting[0].call("queue_stats", "none")
    except Exception:  # the test has ended the connection
        _lasting[0] = database.connect("test")
    return _lasting[0]


@pytest.fixture
def other(q: Queue, connect: Callable[..., Session]) -> Queue:
    """The same queue over a second connection."""
    return q.by(connect("other"))


@pytest.fixture
def another(feed: Feed, connect: Callable[..., Session]) -> Feed:
    """The same feed over a second connection."""
    return feed.by(connect("another"))
