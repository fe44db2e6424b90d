"""Reports of many consumers at once: none is lost, and none waits for another."""

import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, Session
from servers import Server
from support.capabilities import BY_DATABASE
from support.crowd import Crowd, Member
from support.queues import LONG_AGO, call

pytestmark = pytest.mark.level(1)

SECONDS = 5
OWN, SHARED, KILLS = 8, 4, 6

Sql = Callable[..., list[dict[str, Any]]]


def report(member: Member, queue: str, consumer: str | None) -> Counter[str]:
    """Report repeatedly, one in four rolled back; returns the committed counts and the conflicts."""
    chance = random.Random(member.number)
    consumer = consumer or f"own {member.number}"
    done: Counter[str] = Counter()
    while not member.stopped():
        completed = chance.randrange(5)
        ago = timedelta(minutes=chance.randrange(3))
        try:
            at = member.session.now() - ago
            with member.session.transaction():
                call(
                    member.session,
                    "report_consumer",
                    consumer,
                    queue,
                    completed=completed,
                    sent=1,
                    sent_at=at,
                    next_seconds=60,
                )
                if chance.random() < 0.25:
                    raise ZeroDivisionError
            done += Counter(completed=completed, sent=1)
        except ZeroDivisionError:
            pass
        except Conflict:
            done["conflicts"] += 1
            done["own conflicts"] += consumer.startswith("own")
        time.sleep(chance.random() * 0.005)
    return done


def test_every_report_is_counted_once(crowd: Crowd, session: Session, queue: str, sql: Sql, server: Server) -> None:
    """At the same time, others report old minutes, which every new minute deletes."""
    others = crowd.start(report, queue, None, count=OWN)
    crowd.start(report, queue, "shared", count=SHARED)
    time.sleep(SECONDS)
    assert others
    crowd.stop()
    total = sum(crowd.results(), Counter[str]())
    found = session.call("throughput", queue, LONG_AGO)
    assert total["sent"] > 100, "the reporters did next to nothing"
    assert sum(row["sent"] for row in found) == total["sent"]
    assert sum(row["completed"] for row in found) == total["completed"]
    rows = session.call("list_consumers", queue)
    assert len(rows) == OWN + 1
    assert sum(row["completed"] for row in rows) == total["completed"]
    assert total["own conflicts"] == 0


def forget(member: Member, queue: str) -> int:
    """Report as another consumer each time: each report deletes old ones. A queue may have 10,000 consumers."""
    count = 0
    while not member.stopped():
        call(member.session, "report_consumer", f"{member.number}.{count % 700}", queue, completed=1)
        count += 1
    return count


@pytest.mark.level(3)
def test_forgetting_old_reports_is_in_nobodys_way(
    crowd: Crowd, session: Session, queue: str, sql: Sql, server: Server, database: Database
) -> None:
    """All try to delete the same old rows, one holds locks on some of them, and consumers are killed."""
    old = session.now() - timedelta(days=2)
    call(session, "report_consumer", "old", queue, completed=1)
    can = BY_DATABASE[database.name]
    table, minute = server.table("report"), can.quote(can.fold("minute"))  # a keyword in Firebird
    sql(f"UPDATE {table} SET {minute} = %s WHERE type = %s", old.replace(second=0, microsecond=0, tzinfo=None), queue)
    members = crowd.start(forget, queue, count=OWN)
    for n in range(KILLS):
        time.sleep(SECONDS / KILLS)
        call(session, "report_consumer", f"old {n}", queue, completed=1)
        sql(
            f"UPDATE {table} SET {minute} = %s WHERE type = %s AND consumer = %s",
            old.replace(second=n, microsecond=0, tzinfo=None),
            queue,
            f"old {n}",
        )
        crowd.kill(members.pop())
        members += crowd.start(forget, queue)
    crowd.stop()
    assert sum(crowd.results()) > 100
    call(session, "report_consumer", "last", queue, completed=1)  # a consumer that is new to this minute deletes
    minutes = [row["minute_at"] for row in session.call("throughput", queue, LONG_AGO)]
    assert min(minutes) > session.now() - timedelta(hours=1)
    for table in ("consumer", "report"):  # other tests list the consumers of all queues
        sql(f"DELETE FROM {server.table(table)} WHERE type = %s", queue)
