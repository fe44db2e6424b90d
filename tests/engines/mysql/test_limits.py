"""MySQL and MariaDB: limits of a type and by group, in whatever transaction the caller has."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from rowqueue.databases import Database, Session

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]
LIMITS = ("max_active", "rate", "rate_seconds", "group_max_active", "group_rate", "group_rate_seconds")


def limit(session: Session, queue: str, **limits: int) -> None:
    session.call("set_queue", queue, *[None] * 7, *[limits.get(name) for name in LIMITS])


def fill(session: Session, queue: str, count: int, group: str | None = None) -> None:
    for _ in range(count):
        session.call("send_message", queue, "x", None, None, group)


def test_no_more_are_active_than_allowed(database: Database, session: Session, queue: str, sql: Sql) -> None:
    limit(session, queue, max_active=5)
    session.call("send_batch", queue, "\n".join(map(str, range(600))))
    seen: list[int] = []
    over = threading.Event()

    def consume() -> None:
        with closing(database.connect("test")) as own:
            rows: list[Any] = []
            while not over.is_set():
                try:
                    if rows:
                        seen.extend(row["id"] for row in rows)
                        rows = own.call("finish_batch", rows[0]["batch_key"], None, 3)
                    else:
                        rows = own.call("claim_batch", queue, 3)
                except Exception as error:
                    print(error)
                    raise

    threads = [threading.Thread(target=consume) for _ in range(8)]
    for thread in threads:
        thread.start()
    most = 0
    until = time.monotonic() + 60
    while len(seen) < 600 and time.monotonic() < until:
        most = max(most, session.call("queue_stats", queue)[0]["active"])
    over.set()
    for thread in threads:
        thread.join()
    assert len(seen) == len(set(seen)) == 600
    assert 3 <= most <= 5


def test_a_rate_is_kept(session: Session, queue: str) -> None:
    limit(session, queue, rate=5, rate_seconds=2)
    session.call("send_batch", queue, "\n".join(map(str, range(30))))
    assert len(session.call("claim_batch", queue, 30)) == 5
    [row] = session.call("wait_for_message", queue, 0)
    assert not row["ready"]
    assert row["next_run_at"] is not None
    begun = time.monotonic()
    assert session.call("claim_batch", queue, 30) == []
    [row] = session.call("wait_for_message", queue, 10)
    assert row["ready"]
    assert 0.2 < time.monotonic() - begun < 0.6
    assert len(session.call("claim_batch", queue, 30)) == 1


def test_an_expired_lease_frees_its_place(session: Session, queue: str) -> None:
    limit(session, queue, max_active=2)
    session.call("send_batch", queue, "\n".join(map(str, range(5))))
    assert len(session.call("claim_batch", queue, 5, None, 0)) == 2
    assert len(session.call("claim_batch", queue, 5)) == 2
    assert session.call("take_batch", queue, 5) == []
    assert not session.call("wait_for_message", queue, 0)[0]["ready"]
