"""What feeds do on Firebird only: rights, triggers, the types of 4.0, plans, and calls that meet each other."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from capabilities import BY_DATABASE
from queues import Feed, Queue, make_feed, refused
from rowqueue.databases import Database, Forbidden, Session, open_database

from . import Server

pytestmark = [pytest.mark.product("firebird")]

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def feed(queue: str, session: Session, sql: Sql) -> Feed:
    return make_feed(Queue(queue, session, sql, BY_DATABASE["firebird"]))


@pytest.mark.one_version
def test_a_trigger_that_keeps_rows_from_being_numbered_is_told(feed: Feed) -> None:
    feed.write(1, 2)
    feed.sql(f"CREATE TRIGGER {feed.table}_t FOR {{t}} BEFORE UPDATE AS BEGIN NEW.sync = NULL; END")
    with refused("unsuitable_table", "trigger", feed.table):
        feed.publish()
    feed.sql(f"DROP TRIGGER {feed.table}_t")
    assert feed.publish() == 2
    assert feed.numbers() == {1: 1, 2: 2}
