"""queue_health: what hurts queues in this database, with a verdict each."""

import re
import time
from collections.abc import Callable
from contextlib import closing, suppress

import pytest
import servers
from rowqueue.databases import Database, Row, Session, open_database
from support.queues import Queue, call

# On every database; a database adds checks of its own.
COMMON = {"oldest_transaction", "expired_leases", "dead_dedup_keys", "changed_objects", "missing_indexes"}


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


def test_queue_health_finds_nothing_bad_in_a_fresh_installation(installed_database: Database) -> None:
    with closing(installed_database.connect("test")) as session:
        checks = health(session)
    assert {name: row["detail"] for name, row in checks.items() if row["verdict"] == "bad"} == {}
    assert checks["changed_objects"]["measured"] == checks["missing_indexes"]["measured"] == 0


def test_queue_health_shows_an_open_transaction_and_who_holds_it(
    q: Queue, server: servers.Server, connect: Callable[..., Session]
) -> None:
    culprit = connect("the-culprit")
    with server.watching(), culprit.transaction() as connection:
        name = q.can.holder(connection, "the-culprit")
        call(culprit, "queue_stats", q.name)
        time.sleep(0.2)
        row = health(q.session)["oldest_transaction"]
        assert row["measured"] >= 0.2 and row["unit"] == "seconds"
        assert name in row["detail"]
    # MySQL and MariaDB show transactions as they were up to 0.1 s ago.
    time.sleep(0.3)
    assert name not in health(q.session)["oldest_transaction"]["detail"]


@pytest.mark.level(3)
def test_queue_health_counts_expired_claims(installed_database: Database, queue: str) -> None:
    # In a database of its own: claims of other tests expire as well.
    session = open_database(installed_database.url).connect("test")
    try:
        session.call("send", queue, "x")
        key = session.call("claim_batch", queue, 1, None, 1)[0]["batch_key"]
        time.sleep(1.1)  # until the lease ends
        assert health(session)["expired_leases"]["measured"] == 1
        session.call("complete_batch", key)
        assert health(session)["expired_leases"]["measured"] == 0
    finally:
        session.close()


@pytest.mark.level(3)
def test_queue_health_names_a_dead_letter_that_holds_a_dedup_key(q: Queue, installed_database: Database) -> None:
    # In a database of its own: other tests have dead letters as well.
    with closing(open_database(installed_database.url).connect("test")) as session:
        here = q.by(session).named("o'nightly")
        here.send()
        here.on("dead_letter", here.claim()[0]["id"], here.call("peek", "A")[0]["batch_key"], "no")
        row = health(session)["dead_dedup_keys"]
        assert (row["verdict"], row["measured"], row["unit"], row["detail"]) == ("ok", 0, "keys", "none")
        id = here.send(dedup_key="it's due")
        here.on("dead_letter", id, here.claim_key(), "no")
        here.send(dedup_key="live")
        row = health(session)["dead_dedup_keys"]
        assert (row["verdict"], row["measured"]) == ("warn", 1)
        assert f"dead letter {id} of o'nightly" in row["detail"] and "due" in row["detail"]
        assert re.search(rf"mq[._]cancel[( ]{id}\b", row["detail"])
        here.on("cancel", id)
        assert health(session)["dead_dedup_keys"]["measured"] == 0


def test_queue_health_shows_no_statement_of_another_session(
    q: Queue, server: servers.Server, connect: Callable[..., Session]
) -> None:
    # A statement may contain a body, and operators may call queue_health.
    culprit = connect("the-culprit")
    with server.watching(), culprit.transaction() as connection:
        call(culprit, "send", q.name, "the-card-of-somebody")
        time.sleep(0.2)
        assert q.can.holder(connection, "the-culprit") in health(q.session)["oldest_transaction"]["detail"]
        assert not [row for row in health(q.session).values() if "the-card" in row["detail"]]


@pytest.mark.level(3)
def test_queue_health_continues_after_a_check_that_fails(server: servers.Server, installed_database: Database) -> None:
    url = installed_database.url
    session = open_database(url).connect("test")
    names = [row["name"] for row in call(session, "queue_health")]
    if installed_database.name == "firebird":  # which drops nothing that is used
        server.query(
            url,
            "ALTER PROCEDURE imq_stuck_groups (p_type mq_name, p_most integer) RETURNS (group_key mq_name) AS BEGIN"
            " EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'broken'); SUSPEND; END",
        )
        server.query(url, "INSERT INTO mq_queue (type, grouped) SELECT 'x', 1 FROM rdb$database")
    else:
        server.drop_procedure(url, "stuck_groups")
    session.close()
    session = open_database(url).connect("test")
    try:
        rows = call(session, "queue_health")
    finally:
        session.close()
    assert [row["name"] for row in rows] == names
    found = {row["name"]: row for row in rows}
    assert found["stuck_groups"]["verdict"] == "bad" and "this check failed" in found["stuck_groups"]["detail"]
    assert found["missing_indexes"]["verdict"] == found["expired_leases"]["verdict"] == "ok"


@pytest.mark.level(3)
def test_queue_health_names_a_missing_object(server: servers.Server, installed_database: Database) -> None:
    server.drop_procedure(installed_database.url, "cancel")
    session = open_database(installed_database.url).connect("test")
    try:
        row = health(session)["changed_objects"]
    finally:
        session.close()
    assert (row["verdict"], row["measured"]) == ("bad", 1) and "cancel" in row["detail"]


# Every index of the queue's tables, and the statement that drops it. A primary key of MySQL becomes another index,
# because a column that numbers itself must be in one.
_INDEXES = {
    "postgresql": """\
SELECT c.relname AS name,
    coalesce('ALTER TABLE ' || k.conrelid::regclass || ' DROP CONSTRAINT ' || k.conname || ' CASCADE',
        'DROP INDEX ' || c.oid::regclass) AS statement
FROM pg_index AS x
JOIN pg_class AS c ON c.oid = x.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_constraint AS k ON k.conindid = c.oid AND k.contype IN ('p', 'u')
WHERE n.nspname IN ('mq', 'mq_internal') AND NOT c.relispartition""",
    "firebird": """\
SELECT TRIM(i.rdb$index_name) AS name, IIF(c.rdb$constraint_name IS NULL, 'DROP INDEX ' || TRIM(i.rdb$index_name),
    'ALTER TABLE ' || TRIM(i.rdb$relation_name) || ' DROP CONSTRAINT ' || TRIM(c.rdb$constraint_name)) AS statement
FROM rdb$indices AS i
LEFT JOIN rdb$relation_constraints AS c ON c.rdb$index_name = i.rdb$index_name
WHERE i.rdb$relation_name STARTING WITH 'MQ_'""",
    "mysql": """\
SELECT CONCAT(table_name, '.', index_name) AS name, IF(index_name = 'PRIMARY',
    CONCAT('ALTER TABLE ', table_name, ' DROP PRIMARY KEY, ADD INDEX was_primary (',
        GROUP_CONCAT(column_name ORDER BY seq_in_index), ')'),
    -- A column that numbers its rows needs an index.
    CONCAT('ALTER TABLE ', table_name, IF(index_name = 'dead_n', ' MODIFY n bigint NOT NULL,', ''),
        ' DROP INDEX ', index_name)) AS statement
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND LEFT(table_name, 3) = 'mq_'
GROUP BY table_name, index_name""",
}


def test_every_index_that_is_missing_is_named(installed_database: Database, server: servers.Server) -> None:
    url = installed_database.url
    statements = {row["name"]: row["statement"] for row in server.query(url, _INDEXES[installed_database.name])}
    assert len(statements) > 20
    with closing(installed_database.connect("test")) as session:
        assert health(session)["missing_indexes"]["measured"] == 0
        if installed_database.name == "mysql":  # DDL commits
            for statement in ["SET GLOBAL group_concat_max_len = 100000", *statements.values()]:
                server.query(url, statement)
            with closing(installed_database.connect("new")) as other:
                row = health(other)["missing_indexes"]
            server.query(url, "SET GLOBAL group_concat_max_len = DEFAULT")
        else:
            with suppress(ZeroDivisionError), session.transaction() as connection:
                for statement in statements.values():
                    connection.cursor().execute(statement)
                row = health(session)["missing_indexes"]
                raise ZeroDivisionError
            assert health(session)["missing_indexes"]["measured"] == 0
    assert {name for name in statements if re.search(rf"\b{name}\b", row["detail"])} == set(statements)
    assert (row["verdict"], row["measured"]) == ("bad", len(statements))
