"""The list of incidents: what is wrong with the queues now, in `runner doctor`, `runner top`, the pages and metrics."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from rowqueue.databases import Database, Session
from rowqueue.extras import monitor as seeing
from rowqueue.extras.monitor import Incident, Looking, figures, incidents
from rowqueue.extras.monitor.collector import QueueCollector
from servers import Server
from support.outcomes import dead_letter

Runner = Callable[..., subprocess.CompletedProcess[str]]
Found = dict[tuple[str, str], Incident]


def find(session: Session) -> Found:
    looking = Looking(session)
    found = incidents.incidents(looking)
    assert (looking.failed, looking.left_out) == ({}, [])
    return {(one.kind, one.name): one for one in found}


@pytest.fixture
def session(installed_database: Database) -> Iterator[Session]:
    with closing(installed_database.connect("test")) as session:
        yield session


def waiting(session: Session, type: str, count: int = 3) -> None:
    """Messages that have been due for ten minutes."""
    for _ in range(count):
        session.call("send_message", type, "x", session.now() - timedelta(minutes=10))


def dead_letters(session: Session, type: str, error: str, count: int) -> None:
    session.call("send_batch", type, "\n".join(["x"] * count))
    rows = session.call("claim_batch", type, count)
    session.call("finish_batch", rows[0]["batch_key"], "\n".join(dead_letter(row["id"], error) for row in rows))


def test_each_kind_is_found_and_nothing_else(session: Session, installed_database: Database, server: Server) -> None:
    now = session.now()
    dead_letters(session, "dead", "ValueError: no such customer", 5)
    dead_letters(session, "dead", "TimeoutError: mail", 3)
    waiting(session, "alone")
    for type in ("paused", "calm"):
        session.call("send_batch", type, "x\ny")
    session.call("pause", "paused")
    session.call(
        "report_consumer",
        "gone",
        "quiet",
        '{"completed": 1, "failed": 0, "dead": 0, "busy_ms": 5, "waited_ms": 5, "sent": 1, "next_seconds": 60}',
    )
    session.call("set_schedule", "late", "reports", "0 3 * * *", "x")
    # Only a server's administrator can move time.
    past = str(now.replace(tzinfo=None, microsecond=0) - timedelta(minutes=5))
    with closing(server.client(installed_database.url)) as client:
        client.execute(f"UPDATE {server.table('consumer')} SET due_at = '{past}'")
        client.execute(f"UPDATE {server.table('schedule')} SET next_at = '{past}'")
    found = find(session)
    assert found.keys() == {
        ("no_consumer", "alone"),
        ("silent_consumers", "quiet"),
        ("late_schedule", "late"),
        ("dead_letters", "dead"),
        ("paused_with_work", "paused"),
    }
    errors = [one for one in incidents.incidents(Looking(session)) if one.kind == "dead_letters"]
    assert [(one.text, one.error) for one in errors] == [
        ("5 dead letters", "ValueError: no such customer"),
        ("3 dead letters", "TimeoutError: mail"),
    ]
    assert all(one.since and abs(one.since - now) < timedelta(minutes=2) for one in errors)
    alone = found["no_consumer", "alone"]
    assert alone.since and abs(now - alone.since - timedelta(minutes=10)) < timedelta(minutes=1)
    assert "3 ready" in alone.text and "gone" in found["silent_consumers", "quiet"].text
    assert [one.kind for one in find(session).values()] == sorted(
        (one.kind for one in found.values()), key=incidents.KINDS.index
    )


@pytest.mark.product("postgresql")
def test_a_backlog_grows_if_messages_wait_longer_than_before(
    session: Session, server: Server, sql_of: Callable[..., None]
) -> None:
    waiting(session, "growing")
    waiting(session, "shrinking")
    for type, before, after in (("growing", 1_000, 60_000), ("shrinking", 60_000, 1_000)):
        for minutes, waited in ((8, before), (2, after)):
            session.call(
                "report_consumer",
                "busy",
                type,
                json.dumps(
                    {
                        "completed": 10,
                        "failed": 0,
                        "dead": 0,
                        "busy_ms": 5,
                        "waited_ms": waited,
                        "sent": 10,
                        "next_seconds": 60,
                    }
                ),
            )
            sql_of(
                "UPDATE mq.report SET minute = date_trunc('minute', now()) - %s * interval '1 minute'"
                " WHERE minute > now() - interval '1 minute' AND type = %s",
                minutes,
                type,
            )
    found = find(session)
    assert {key for key in found if key[0] == "growing_backlog"} == {("growing_backlog", "growing")}
    assert "2 completed per minute" in found["growing_backlog", "growing"].text


@pytest.fixture
def sql_of(installed_database: Database, server: Server) -> Callable[..., None]:
    def run(text: str, *parameters: object) -> None:
        with closing(server.client(installed_database.url)) as client:
            client.execute(text, parameters)

    return run


@pytest.mark.level(1)
def test_a_queue_whose_messages_a_claim_holds_has_a_consumer(session: Session) -> None:
    waiting(session, "held")
    session.call("claim_batch", "held", 1, "psql", 60)
    assert find(session) == {}


@pytest.mark.level(1)
def test_doctor_lists_incidents_and_its_exit_code_is_for_checks(
    runner: Runner, session: Session, installed_database: Database
) -> None:
    url = installed_database.url
    dead_letters(session, "mails", "ValueError: \x1b[31mred", 2)
    waiting(session, "alone")
    session.call("send", "stopped", "x")
    session.call("pause", "stopped")
    done = runner("doctor", url=url)
    assert done.returncode == 0, done.stdout
    for line in ("no_consumer\tbad\talone\t", "dead_letters\twarn\tmails\t", "paused_with_work\twarn\tstopped\t"):
        assert line in done.stdout
    assert "\x1b" not in done.stdout
    rows = [json.loads(line) for line in runner("doctor", "--json", url=url).stdout.splitlines()]
    assert {row["incident"] for row in rows if "incident" in row} == {"no_consumer", "dead_letters", "paused_with_work"}


@pytest.mark.level(1)
def test_doctor_continues_after_a_check_that_fails(
    runner: Runner, session: Session, installed_database: Database, server: Server
) -> None:
    url = installed_database.url
    waiting(session, "alone")
    session.close()
    for name in ("queue_health", "list_consumers"):
        server.drop_procedure(url, name)
    done = runner("doctor", "--json", url=url)
    assert done.returncode == 3
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    checks = {row["name"]: row for row in rows if "verdict" in row}
    assert checks["queue_health"]["verdict"] == checks["consumers"]["verdict"] == "bad"
    assert "not installed" in checks["queue_health"]["detail"]
    assert {row["name"] for row in rows if row.get("state") == "drifted"} >= {"queue_health", "list_consumers"}


@pytest.mark.level(1)
def test_kinds_are_counted_in_the_metrics(session: Session) -> None:
    waiting(session, "alone")
    limits = {kind: figures.Limit("main", kind, 10) for kind in figures.KINDS}
    samples = figures.PARTS["incidents"](Looking(session), limits, figures.Totals())
    counts = {sample.labels[0]: sample.value for sample in samples}
    assert counts == {kind: float(kind == "no_consumer") for kind in incidents.KINDS}


@pytest.mark.level(1)
def test_of_many_queues_only_the_worst_are_asked_for_their_errors(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(15):
        dead_letters(session, f"dead-{number:02}", "broken", number + 1)
    asked: list[str] = []
    call = session.call

    def counting(procedure: str, *arguments: object) -> list[seeing.looking.Row]:
        asked.append(procedure)
        return call(procedure, *arguments)

    monkeypatch.setattr(session, "call", counting)
    found = incidents.incidents(Looking(session))
    assert len(found) == 15 and sum(bool(one.error) for one in found) == 10
    assert asked.count("list_errors") == 10 and len(asked) < 20


@pytest.mark.product("postgresql")
@pytest.mark.level(3)
def test_20000_queues_with_20000_consumers_are_a_few_calls_of_bounded_size(
    session: Session, installed_database: Database, sql_of: Callable[..., None]
) -> None:
    session.call("set_queue", "queue", '{"lease_seconds": 60}')
    session.call(
        "report_consumer",
        "consumer",
        "queue",
        '{"completed": 1, "failed": 0, "dead": 0, "busy_ms": 5, "waited_ms": 5, "sent": 1, "next_seconds": 3600}',
    )
    for table in ("queue", "consumer", "report"):
        names = "jsonb_build_object('type', 'queue-' || n, 'consumer', 'consumer-' || n)"
        copies = f"SELECT (jsonb_populate_record(t, {names})).* FROM mq.{table} AS t, generate_series(1, 19999) AS n"
        copies += " WHERE t.type <> ''"  # the row of defaults
        sql_of(f"INSERT INTO mq.{table} {copies}")
    asked: list[tuple[str, int]] = []
    call = session.call

    def counting(procedure: str, *arguments: object) -> list[seeing.looking.Row]:
        rows = call(procedure, *arguments)
        asked.append((procedure, len(rows)))
        return rows

    session.call = counting  # type: ignore[method-assign]
    looking = Looking(session)
    began = time.monotonic()
    seen = seeing.recent_overview(looking)
    found = seeing.recent_incidents(looking)
    seconds = time.monotonic() - began
    assert (len(seen.queues), seen.total, len(seen.consumers)) == (seeing.QUEUES, 20_000, seeing.MOST_ROWS)
    assert max(rows for procedure, rows in asked if procedure not in ("queue_stats", "throughput")) <= 10_000
    assert len(asked) < 12 and found == []
    began = time.monotonic()
    call("queue_stats")
    assert seconds < 100 * (time.monotonic() - began), "much more than linear"
    collector = QueueCollector([("main", installed_database)], 0, 120, 500)
    samples = [sample for family in collector.collect() for sample in family.samples]
    collector.close()
    assert len(samples) < 500 * 20
    assert {sample.value for sample in samples if sample.name == "rowqueue_part_up"} == {1.0}
