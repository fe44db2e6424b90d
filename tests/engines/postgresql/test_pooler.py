"""PgBouncer in transaction mode under load: more clients than server connections, all kinds of calls."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from rowqueue.databases import Database, Session, open_database
from servers.postgresql import PgBouncer

pytestmark = pytest.mark.product("postgresql")

CLIENTS = 8
MESSAGES_A_CLIENT = 500
BATCH = 20


def work(url: str, type: str, first: int) -> list[str]:
    """Send, then claim and finish in every way; returns the bodies that this client has finished."""
    session = open_database(url).connect("pooled")
    for n in range(first, first + MESSAGES_A_CLIENT, BATCH):
        session.call("send_batch", type, "\n".join(str(n) for n in range(n, n + BATCH)))
    done = []
    while True:
        with session.transaction():
            taken = session.call("take_batch", type, BATCH)
        rows = session.call("claim_batch", type, BATCH, None, 60)
        done += [row["body"] for row in [*taken, *rows]]
        if not rows:
            break
        rows = session.call("finish_batch", rows[0]["batch_key"], None, BATCH)
        done += [row["body"] for row in rows]
        if rows:
            assert session.call("extend_lease", rows[0]["batch_key"], 60) == [{"affected": len(rows)}]
            assert session.call("complete_batch", rows[0]["batch_key"]) == [{"affected": len(rows)}]
    session.close()
    return done


def test_eight_clients_on_three_server_connections_lose_nothing(
    pooler: PgBouncer, database: Database, session: Session, queue: str
) -> None:
    url = pooler.url(database.url)
    with ThreadPoolExecutor(CLIENTS) as threads:
        firsts = range(0, CLIENTS * MESSAGES_A_CLIENT, MESSAGES_A_CLIENT)
        done = [body for bodies in threads.map(lambda first: work(url, queue, first), firsts) for body in bodies]
    assert sorted(map(int, done)) == list(range(CLIENTS * MESSAGES_A_CLIENT))
    stats = session.call("queue_stats", queue)[0]
    assert [stats[state] for state in ("ready", "delayed", "active", "expired", "dead")] == [0] * 5
