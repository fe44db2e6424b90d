"""Firebird: reports of consumers in all kinds of transactions, and what monitoring calls read.

See test_cost.py for how a call is measured.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, open_database
from rowqueue.install import apply as install
from servers import Server
from servers.firebird import driver
from servers.firebird_raw import MANNERS, NO_RECORD_VERSION, Raw, codes, raw_on

from .test_cost import measured

pytestmark = pytest.mark.product("firebird")

OWN, SHARED, SECONDS = 16, 4, 6
MESSAGES = 30_000
# Records read to find one message, and to scan 10,000 in each state.
FEW, MANY = 40, 80_000
BIG = {"MQ_MESSAGE", "MQ_READY", "MQ_DELAYED", "MQ_DEDUP", "MQ_CLAIMED", "MQ_GROUPED", "MQ_DEAD", "MQ_REPORT"}
WAITING = [manner for manner in MANNERS if not manner.endswith("NO WAIT")]


@pytest.fixture
def raws(server: Server, installed_database: Database) -> Iterator[Any]:
    """Makes raw connections: raws("SNAPSHOT WAIT")."""
    made: list[Raw] = []

    def make(manner: str = "READ COMMITTED NO WAIT") -> Raw:
        made.append(Raw(server.client(installed_database.url).connection, manner))
        return made[-1]

    yield make
    for raw in made:
        raw.close()


def report(raw: Raw, consumer: str, completed: int = 1, dead: int | None = 0) -> None:
    raw.call(
        "report_consumer",
        consumer,
        "q",
        json.dumps(
            {
                "completed": completed,
                "failed": 0,
                "dead": dead,
                "busy_ms": 0,
                "waited_ms": 0,
                "sent": 1,
                "next_seconds": 60,
            }
        ),
    )


def old_reports(raw: Raw, *consumers: str) -> None:
    """Reports of two days ago, and consumers that have been silent since then."""
    for consumer in consumers:
        report(raw, consumer)
    raw.run('UPDATE mq_report SET "MINUTE" = DATEADD(-2 DAY TO "MINUTE")')
    raw.run("UPDATE mq_consumer SET reported_at = DATEADD(-2 DAY TO reported_at), due_at = DATEADD(-2 DAY TO due_at)")
    raw.commit()


def consumers(raw: Raw, table: str) -> set[str]:
    found = {row["consumer"] for row in raw.run(f"SELECT consumer FROM {table}")}
    raw.commit()
    return found


@pytest.mark.parametrize("manner", [*MANNERS, NO_RECORD_VERSION])
def test_a_consumer_reports_during_anothers_open_report_in_any_kind_of_transaction(raws: Any, manner: str) -> None:
    if manner.startswith("TABLE STABILITY"):
        pytest.skip("nobody else may write to a table then")
    other, mine = raws(), raws(manner)
    report(other, "other")
    began = time.monotonic()
    try:
        report(mine, "mine")
    except driver().DatabaseError as error:
        # On 3.0, where it cannot read past uncommitted changes of others.
        assert manner == NO_RECORD_VERSION and "wrong_isolation" in str(error)
        return
    mine.commit()
    assert time.monotonic() - began < 3
    other.commit()
    assert {row["consumer"] for row in other.done("list_consumers", "q")} == {"mine", "other"}


@pytest.mark.parametrize("manner", [name for name in MANNERS if not name.startswith("TABLE")])
def test_locked_old_reports_are_skipped_at_once(server: Server, raws: Any, manner: str) -> None:
    other, mine = raws(), raws(manner)
    old_reports(other, "locked", "free")
    other.run("UPDATE mq_report SET sent = sent WHERE consumer = 'locked'")
    other.run("UPDATE mq_consumer SET dead = dead WHERE consumer = 'locked'")
    let_go = threading.Timer(5, other.rollback)  # otherwise a waiting call would wait forever
    let_go.start()
    began = time.monotonic()
    report(mine, "mine")
    mine.commit()
    assert time.monotonic() - began < 3
    let_go.cancel()
    other.rollback()
    # Before 5.0, a transaction that waits for locks cannot skip them, so it leaves old reports to others.
    forgets = manner not in WAITING or server.version >= "5"  # type: ignore[attr-defined]
    kept = {"mine", "locked"} if forgets else {"mine", "locked", "free"}
    assert consumers(other, "mq_report") == consumers(other, "mq_consumer") == kept
    report(raws(), "another")


def test_a_dead_letter_is_counted_once_by_two_processes_of_one_name(raws: Any) -> None:
    first, second = raws("READ COMMITTED WAIT"), raws()
    report(first, "twin", dead=None)
    first.run("UPDATE mq_consumer SET counted_at = DATEADD(-1 MINUTE TO counted_at)")
    first.run(
        "INSERT INTO mq_dead (id, died_at, attempts, type, consumer)"
        " VALUES (1, DATEADD(-30 SECOND TO mq_utc_now()), 1, 'q', 'twin')"
    )
    first.commit()
    report(first, "twin", dead=None)
    with pytest.raises(driver().DatabaseError) as refused:
        report(second, "twin", dead=None)
    assert {335544345, 335544336, 335544451} & set(codes(refused.value))
    second.rollback()
    first.commit()
    report(second, "twin", dead=None)
    second.commit()
    [row] = second.done("list_consumers", "q")
    assert (row["completed"], row["dead"]) == (3, 1)


def test_reports_at_once_are_all_counted_and_those_of_other_names_never_conflict(installed_database: Database) -> None:
    done: Counter[str] = Counter()
    until, mutex = time.monotonic() + SECONDS, threading.Lock()

    def live(number: int) -> None:
        consumer = f"own {number}" if number < OWN else "shared"
        chance, mine = random.Random(number), Counter[str]()
        with closing(installed_database.connect(consumer)) as session:
            while time.monotonic() < until:
                n = chance.randrange(1, 5)
                try:
                    with session.transaction():
                        session.call(
                            "report_consumer",
                            consumer,
                            "q",
                            json.dumps(
                                {
                                    "completed": n,
                                    "failed": 0,
                                    "dead": 0,
                                    "busy_ms": 0,
                                    "waited_ms": 0,
                                    "sent": 1,
                                    "sent_at": str(session.now() - timedelta(minutes=n)),
                                }
                            ),
                        )
                        if chance.random() < 0.2:
                            raise ZeroDivisionError
                    mine += Counter({consumer: n, "sent": 1})
                except ZeroDivisionError:
                    pass
                except Conflict:
                    mine[f"conflict of {consumer}"] += 1
        with mutex:
            done.update(mine)

    with ThreadPoolExecutor(OWN + SHARED) as pool:
        for future in [pool.submit(live, number) for number in range(OWN + SHARED)]:
            future.result()
    with closing(installed_database.connect("look")) as session:
        rows = {row["consumer"]: row["completed"] for row in session.call("list_consumers", "q")}
        sent = sum(row["sent"] for row in session.call("throughput", "q"))
    assert not [name for name in done if name.startswith("conflict of own")]
    assert rows == {consumer: done[consumer] for consumer in rows}
    assert len(rows) == OWN + 1
    assert sent == done["sent"] > 100


@pytest.fixture(scope="module")
def full(server: Server) -> Iterator[str]:
    """A queue with ready and dead messages in groups, each with a dedup_key, and reports of a day."""
    url = server.create_database()
    install.apply(open_database(url))
    with server.client(url) as client:
        client.execute(f"""
            EXECUTE BLOCK AS
            DECLARE n integer = 0;
            DECLARE v_now timestamp;
            BEGIN
                v_now = mq_utc_now();
                WHILE (n < {MESSAGES}) DO
                BEGIN
                    n = n + 1;
                    INSERT INTO mq_message (id, run_at, created_at, priority, type, body, group_key, dedup_key)
                    VALUES (:n, :v_now, :v_now, 0, 'q', 'x', 'g' || MOD(:n, 1000), 'k' || :n);
                    INSERT INTO mq_dedup (type, dedup_key, id) VALUES ('q', 'k' || :n, :n);
                    IF (MOD(n, 2) = 0) THEN
                        INSERT INTO mq_ready (type, priority, run_at, id, attempts) VALUES ('q', 0, :v_now, :n, 0);
                    ELSE
                        INSERT INTO mq_dead (id, died_at, attempts, type, consumer, error, error_group, error_hash)
                        VALUES (:n, DATEADD(:n - {MESSAGES} SECOND TO :v_now), 3, 'q', 'w',
                            'order ' || :n || ' failed', 'order # failed', HASH('order # failed'));
                    IF (MOD(n, 10) = 0) THEN
                        INSERT INTO mq_report
                            ("MINUTE", sent, completed, failed, dead, waited_ms, busy_ms, type, consumer)
                        VALUES (DATEADD(-:n SECOND TO :v_now), 1, 1, 0, 0, 0, 0, 'q', 'w');
                END
                EXECUTE PROCEDURE imq_save_report('q', 'w', :v_now, 1, 0, NULL, 0, 0, 60, NULL) RETURNING_VALUES n;
            END
        """)
    yield url
    server.drop_database(url)


@pytest.mark.level(3)
@pytest.mark.parametrize(
    ("call", "values", "rows", "reads"),
    [
        ("find_messages", (None, '{"id": 20000}'), [1], FEW),
        ("find_messages", ("q", '{"dedup_key": "k777"}'), [1], FEW),
        ("find_messages", ("q", '{"group_key": "g8"}'), [20], MANY),
        ("find_messages", ("q", '{"group_key": "none"}'), [0], MANY),
        ("list_errors", ("q",), [1], 2 * MESSAGES + FEW),
        ("list_consumers", (), [1], FEW),
        ("throughput", ("q",), range(360, 368), 800),
        ("report_consumer", ("w", "q", '{"completed": 1}'), [1], FEW),
    ],
    ids=["id", "dedup_key", "group_key", "no group_key", "errors", "consumers", "throughput", "report"],
)
def test_monitoring_reads_by_index_and_no_more_rows_than_needed(
    server: Server, full: str, call: str, values: tuple[Any, ...], rows: Sequence[int], reads: int
) -> None:
    with raw_on(server, full) as raw:
        cost, found = measured(raw, call, *values)
    assert len(found) in rows
    assert not cost.unindexed.keys() & BIG, cost
    assert sum(cost.found.values()) <= reads, cost


@pytest.mark.level(3)
def test_all_dead_letters_of_an_error_are_counted_and_redriven_in_parts(server: Server, full: str) -> None:
    with raw_on(server, full) as raw:
        [held] = raw.run("SELECT COUNT(*) AS n FROM mq_dead WHERE type = 'q'")
        [row] = raw.done("list_errors", "q")
        assert (row["error"], row["messages"], row["last_id"]) == ("order # failed", held["n"], MESSAGES - 1)
        [redriven] = raw.call("redrive_all", "q", "order # failed", 10_000)
        assert redriven["affected"] == 10_000
        raw.rollback()
