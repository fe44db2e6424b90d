"""MySQL and MariaDB: limits per queue and per group, in any transaction of the caller."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from servers import Server
from servers.mysql import Client

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]


def limit(session: Session, queue: str, **limits: int) -> None:
    session.call("set_queue", queue, json.dumps(limits))


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
    assert 0.2 < time.monotonic() - begun < 5
    assert len(session.call("claim_batch", queue, 30)) == 1


def test_an_expired_lease_frees_its_place(session: Session, queue: str) -> None:
    limit(session, queue, max_active=2)
    session.call("send_batch", queue, "\n".join(map(str, range(5))))
    assert len(session.call("claim_batch", queue, 5, None, 1)) == 2
    time.sleep(1.1)  # until the lease ends
    assert len(session.call("claim_batch", queue, 5)) == 2
    assert session.call("take_batch", queue, 5) == []
    assert not session.call("wait_for_message", queue, 0)[0]["ready"]


def active_by_group(sql: Sql, queue: str) -> dict[str, int]:
    active = "mq_message_state WHERE type = %s AND state = 'A'"
    rows = sql(f"SELECT COALESCE(group_key, '') AS g, COUNT(*) AS n FROM {active} GROUP BY 1", queue)
    return {row["g"]: row["n"] for row in rows}


def test_groups_have_so_many_places(session: Session, queue: str, sql: Sql) -> None:
    limit(session, queue, group_max_active=2)
    for group in ("a", "b", None):
        fill(session, queue, 5, group)
    held = session.call("claim_batch", queue, 100)
    assert len(held) == 6
    assert active_by_group(sql, queue) == {"a": 2, "b": 2, "": 2}
    assert session.call("claim_batch", queue, 100) == []
    assert session.call("complete", held[0]["id"], held[0]["batch_key"])[0]["affected"] == 1
    assert len(session.call("claim_batch", queue, 100)) == 1
    session.call("fail", held[2]["id"], held[2]["batch_key"], "x", 600)
    assert len(session.call("claim_batch", queue, 100)) == 1
    session.call("dead_letter", held[3]["id"], held[3]["batch_key"], "x")
    assert len(session.call("take_batch", queue, 1)) == 1
    assert len(session.call("take_batch", queue, 1)) == 1
    session.call("release_batch", held[0]["batch_key"])
    assert len(session.call("claim_batch", queue, 100)) == 3


def test_a_group_waits_for_its_token(session: Session, queue: str, sql: Sql) -> None:
    limit(session, queue, group_rate=2, group_rate_seconds=1)
    for group in ("a", "b"):
        fill(session, queue, 5, group)
    assert len(session.call("claim_batch", queue, 100)) == 4
    assert session.call("claim_batch", queue, 100) == []
    assert sql("SELECT COUNT(*) AS n FROM mq_delayed WHERE type = %s", queue)[0]["n"] == 2
    got = 0
    begun = time.monotonic()
    while got < 6 and time.monotonic() < begun + 10:
        if session.call("wait_for_message", queue, 1)[0]["ready"]:
            got += len(session.call("claim_batch", queue, 100))
    assert got == 6
    assert time.monotonic() - begun > 1.3
    # The next full scan after they are full again deletes them.
    while sql("SELECT COUNT(*) AS n FROM mq_bucket WHERE type = %s", queue)[0]["n"] and time.monotonic() < begun + 30:
        time.sleep(0.1)
        assert session.call("claim_batch", queue, 1) == []
    assert sql("SELECT COUNT(*) AS n FROM mq_bucket WHERE type = %s", queue)[0]["n"] == 0


def test_a_raised_limit_lets_groups_continue(session: Session, queue: str) -> None:
    limit(session, queue, group_rate=1, group_rate_seconds=3600)
    fill(session, queue, 5, "a")
    assert len(session.call("claim_batch", queue, 100)) == 1
    assert session.call("claim_batch", queue, 100) == []
    limit(session, queue, group_rate=0, group_max_active=3)
    assert len(session.call("claim_batch", queue, 100)) == 2
    limit(session, queue, group_max_active=10)
    assert len(session.call("claim_batch", queue, 100)) == 2


def statements(client: Client) -> int:
    """How many statements the session has run, those inside procedures included."""
    names = ("select", "insert", "insert_select", "update", "update_multi", "delete", "delete_multi")
    rows = client.execute("SHOW SESSION STATUS LIKE 'Com\\_%'").fetchall()
    return sum(int(row["Value"]) for row in rows if row["Variable_name"].removeprefix("Com_") in names)


def test_a_claim_delays_a_group_without_a_token_with_two_statements_at_most(
    server: Server, database: Database, session: Session, queue: str, sql: Sql
) -> None:
    few, many = 5, 150
    cost = {}
    for count in (few, many):
        type = f"{queue}.{count}"
        limit(session, type, group_rate=1, group_rate_seconds=3_600)
        for group in range(count):
            fill(session, type, 1, f"g{group}")
        fill(session, type, 1, "with a token")
        sql(
            "INSERT INTO mq_bucket (type, group_key, full_at)"
            " SELECT type, group_key, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
            " FROM mq_message WHERE type = %s AND group_key <> 'with a token'",
            type,
        )
        with closing(server.client(database.url)) as client:
            client.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            before = statements(client)
            [row] = client.execute("CALL mq_claim_batch(%s, 10, NULL, 60)", [type]).fetchall()
            cost[count] = statements(client) - before
        assert row["group_key"] == "with a token"
        [waiting] = sql("SELECT COUNT(*) AS n FROM mq_delayed WHERE type = %s", type)
        assert waiting["n"] == count
    assert cost[many] < cost[few] + 2 * (many - few), cost
