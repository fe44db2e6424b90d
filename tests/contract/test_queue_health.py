"""queue_health: what hurts queues in this database, with a verdict each."""

import time
from collections.abc import Callable

import pytest
import servers
from queues import Queue, call
from rowqueue.databases import Database, Row, Session, open_database

pytestmark = pytest.mark.one_version

# On every database; a database adds checks of its own.
COMMON = {"oldest_transaction", "expired_leases", "changed_objects", "missing_indexes"}


def health(session: Session) -> dict[str, Row]:
    rows = call(session, "queue_health")
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


def test_queue_health_has_the_checks_that_every_database_has(q: Queue) -> None:
    checks = health(q.session)
    assert set(checks) >= COMMON
    for row in checks.values():
        assert row["verdict"] in {"ok", "warn", "bad"}
        assert row["unit"] and row["detail"] and "\n" not in row["detail"]


def test_queue_health_finds_nothing_bad_in_a_fresh_installation(q: Queue) -> None:
    checks = health(q.session)
    assert {name: row["detail"] for name, row in checks.items() if row["verdict"] == "bad"} == {}
    assert checks["changed_objects"]["value"] == checks["missing_indexes"]["value"] == 0


def test_queue_health_shows_an_open_transaction_and_who_holds_it(
    q: Queue, server: servers.Server, connect: Callable[..., Session]
) -> None:
    culprit = connect("the-culprit")
    with server.watching(), culprit.transaction() as connection:
        name = q.can.holder(connection, "the-culprit")
        call(culprit, "queue_stats", q.name)
        time.sleep(0.2)
        row = health(q.session)["oldest_transaction"]
        assert row["value"] >= 0.2 and row["unit"] == "seconds"
        assert name in row["detail"]
    # MySQL and MariaDB show transactions as they were up to 0.1 s ago.
    time.sleep(0.3)
    assert name not in health(q.session)["oldest_transaction"]["detail"]


def test_queue_health_counts_expired_claims(installed_database: Database, queue: str) -> None:
    # In a database of its own: claims of other tests expire as well.
    session = open_database(installed_database.url).connect("test")
    try:
        session.call("send", queue, "x")
        key = session.call("claim_batch", queue, 1, None, 0)[0]["batch_key"]
        assert health(session)["expired_leases"]["value"] == 1
        session.call("complete_batch", key)
        assert health(session)["expired_leases"]["value"] == 0
    finally:
        session.close()


def test_queue_health_names_a_missing_object(server: servers.Server, installed_database: Database) -> None:
    server.drop_procedure(installed_database.url, "cancel")
    session = open_database(installed_database.url).connect("test")
    try:
        row = health(session)["changed_objects"]
    finally:
        session.close()
    assert (row["verdict"], row["value"]) == ("bad", 1) and "cancel" in row["detail"]
