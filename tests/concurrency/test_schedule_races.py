"""Schedules under many consumers, some of which are killed: each time is sent once."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Conflict, Session
from servers import Server
from support.crowd import Crowd, Member

pytestmark = pytest.mark.level(1)

CONSUMERS = 8
SCHEDULES = 5
SECONDS = 8
KILLS = 8

Sql = Callable[..., list[dict[str, Any]]]


def claim(member: Member, queue: str) -> None:
    """Claim repeatedly, roll back one in three claims, and finish nothing: the messages are counted later."""
    chance = random.Random(member.number)
    while not member.stopped():
        try:
            with member.session.transaction():
                member.session.call("claim_batch", queue, 2, None, 3600)
                time.sleep(chance.random() * 0.01)
                if chance.random() < 0.3:
                    raise ZeroDivisionError
        except (ZeroDivisionError, Conflict):
            pass
        time.sleep(chance.random() * 0.02)


def test_each_time_of_a_schedule_is_sent_once(
    crowd: Crowd, session: Session, queue: str, sql: Sql, server: Server
) -> None:
    names = [f"{n} of {queue}" for n in range(SCHEDULES)]
    consumers = crowd.start(claim, queue, count=CONSUMERS)
    for name in names:
        session.call("set_schedule", name, queue, "@every 1", name)
    chance = random.Random(15)
    for _ in range(KILLS):
        time.sleep(SECONDS / KILLS)
        crowd.kill(consumers.pop(chance.randrange(len(consumers))))
        consumers += crowd.start(claim, queue)
    crowd.stop()
    crowd.results()
    for name in names:
        session.call("drop_schedule", name)
    view = sql(f"SELECT body, run_at FROM {server.table('message_state')} WHERE type = %s", queue)
    for name in names:
        times = sorted(row["run_at"] for row in view if row["body"] == name)
        assert len(times) >= 3, "the consumers found nothing"
        assert len(times) == len(set(times)), "a time was sent twice"
