"""A consumer's reports in the database."""

import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from processes import Log, Running, until
from rowqueue.consume.reports import MOST_HANDLED, Figures, text_of
from rowqueue.databases import Database, Session, open_database
from rowqueue.extras.handling import read, summary
from rowqueue.install import apply as install
from rowqueue.messages import Message
from servers import Server

pytestmark = pytest.mark.any_engine

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


def consumers(session: Session, queue: str) -> list[dict[str, Any]]:
    return session.call("list_consumers", queue)


def figures(session: Session, queue: str) -> dict[str, int]:
    rows = session.call("throughput", queue, LONG_AGO)
    names = ("sent", "completed", "failed", "dead", "waited_ms", "busy_ms")
    return {name: sum(row[name] for row in rows) for name in names}


@pytest.mark.one_engine
def test_a_consumer_reports_what_it_did_and_that_it_stops(runner: Runner, session: Session, queue: str) -> None:
    session.call("send_batch", queue, "\n".join(map(str, range(20))))
    done = runner("consume", "--type", queue, "--handler", "jobs:record", "--consumer", "me", "--drain")
    assert done.returncode == 0, done.stderr
    [row] = consumers(session, queue)
    assert (row["consumer"], row["status"], row["completed"], row["failed"]) == ("me", "stopped", 20, 0)
    assert row["started_at"] < row["reported_at"]
    counted = figures(session, queue)
    assert (counted["sent"], counted["completed"], counted["failed"]) == (20, 20, 0)
    assert 0 < counted["waited_ms"] < 20 * 60_000


@pytest.mark.one_engine
@pytest.mark.parametrize("transaction", [False, True])
def test_failures_and_dead_letters_are_reported(
    runner: Runner, session: Session, queue: str, transaction: bool
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 2, "backoff_seconds": 0}')
    session.call("send_batch", queue, 'raise "1"\nraise "2"\ngood\ndiscard')
    options = ["--transaction"] if transaction else []
    done = runner(
        "consume", "--type", queue, "--handler", "jobs:obey", "--max-messages", 6, "--idle-timeout", 20, *options
    )
    assert done.returncode == 0, done.stderr
    counted = figures(session, queue)
    assert (counted["sent"], counted["completed"], counted["failed"], counted["dead"]) == (4, 1, 5, 3)
    [row] = consumers(session, queue)
    assert (row["completed"], row["failed"], row["dead"]) == (1, 5, 3)


def test_time_in_handlers_and_time_waited_are_reported(runner: Runner, session: Session, queue: str) -> None:
    session.call("send_batch", queue, "sleep 0.3\nsleep 0.3")
    time.sleep(1)
    done = runner("consume", "--type", queue, "--handler", "jobs:obey", "--drain", "--report", 1)
    assert done.returncode == 0, done.stderr
    counted = figures(session, queue)
    assert 600 <= counted["busy_ms"] < 10_000
    assert 2_000 <= counted["waited_ms"] < 60_000


def test_a_consumer_reports_while_it_works_and_is_silent_once_it_is_killed(
    start: Start, session: Session, queue: str
) -> None:
    consumer = start("consume", "--type", queue, "--handler", "jobs:record", "--report", 1, "--consumer", "me")
    [first] = until(lambda: consumers(session, queue))
    assert first["status"] == "working"
    session.call("send", queue, "m")
    until(lambda: consumers(session, queue)[0]["completed"] == 1)
    consumer.stop(signal.SIGKILL)
    assert until(lambda: consumers(session, queue)[0]["status"] == "silent")


def test_a_report_counts_running_handlers_and_says_what_they_handle(
    start: Start, runner: Runner, session: Session, queue: str, joblog: Log
) -> None:
    """Four slots in handlers that do not end show a load of 4 at the next report."""
    before = session.now()
    session.call("send_batch", queue, "\n".join(["sleep 600"] * 6))
    consumer = start(
        "consume", "--type", queue, "--handler", "jobs:obey", "--concurrency", 4, "--report", 1, "--consumer", "me"
    )
    [first] = until(lambda: [row for row in consumers(session, queue) if len(read(row["handling"])) == 4])
    [then] = until(lambda: [row for row in consumers(session, queue) if row["reported_at"] > first["reported_at"]])
    passed = (then["reported_at"] - first["reported_at"]).total_seconds()
    assert (then["busy_ms"] - first["busy_ms"]) / 1000 / passed == pytest.approx(4, rel=0.3)
    handling = dict(read(then["handling"]))
    active = [row["id"] for row in session.call("peek", queue, "A", 10)]
    assert sorted(handling) == sorted(active) and len(active) == 4
    assert all(before - timedelta(seconds=2) <= since <= then["reported_at"] for since in handling.values())
    moved = [abs(since - handling[id]) for id, since in read(first["handling"])]
    assert max(moved) <= timedelta(seconds=1), "the times are of the start"
    assert then["completed"] == 0
    shown = runner("consumers", queue).stdout
    assert f"{min(handling)} since {min(handling.values()):%Y-%m-%dT%H:%M:%SZ}" in shown and "and 1 more" in shown
    consumer.stop(signal.SIGKILL)
    assert until(lambda: consumers(session, queue)[0]["status"] == "silent")
    assert len(read(consumers(session, queue)[0]["handling"])) == 4, "what the dead process held"


def test_the_text_of_what_is_handled_keeps_to_its_limit_and_is_read_with_care() -> None:
    times = [(10**18 + n, datetime(2026, 11, 27, 8, 30, tzinfo=UTC) - timedelta(seconds=n)) for n in range(5_000)]
    text = text_of(times)
    assert text is not None and len(text) <= 4_000
    assert read(text) == times[: -MOST_HANDLED - 1 : -1]
    assert text_of([]) is None and read(None) == []
    odd = (
        '\n[1]\nx{"id": "x", "since": "2026-11-27T08:30Z"}\n{"id": 1, "since": 5}\n{"id": 1, "since": "2026-11-27"}\n{}'
    )
    assert read(odd) == []
    assert summary('{"id": 7, "since": "2026-11-27T08:30:00Z"}') == "7 since 2026-11-27T08:30:00Z"


def test_a_consumer_of_two_queues_reports_both(runner: Runner, session: Session, queue: str) -> None:
    second = f"{queue}.b"
    session.call("send", queue, "m")
    done = runner("consume", "--type", queue, "--type", second, "--handler", "jobs:record", "--drain")
    assert done.returncode == 0, done.stderr
    assert [row["completed"] for type in (queue, second) for row in consumers(session, type)] == [1, 0]


def test_a_consumer_does_not_report_with_report_0(runner: Runner, session: Session, queue: str) -> None:
    session.call("send", queue, "m")
    done = runner("consume", "--type", queue, "--handler", "jobs:record", "--drain", "--report", 0)
    assert done.returncode == 0, done.stderr
    assert consumers(session, queue) == []
    refused = runner("consume", "--type", queue, "--handler", "jobs:record", "--report", 3_601)
    assert refused.returncode == 2
    assert "--report" in refused.stderr and "3600" in refused.stderr.replace(",", "")


@pytest.mark.product("postgresql")
def test_a_consumer_that_may_not_report_works_on(
    start: Start, session: Session, queue: str, joblog: Log, server: Server, database: Database, sql: Sql
) -> None:
    """Such as a user whose rights were granted by hand before reports existed."""
    name = f"by_hand_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name) as url:
        sql(f"GRANT USAGE ON SCHEMA mq TO {name}")
        for call in ("claim_batch", "finish_batch", "extend_lease", "wait_for_message", "version"):
            sql(f"GRANT EXECUTE ON FUNCTION mq.{call} TO {name}")
        session.call("send", queue, "m")
        consumer = start("consume", "--type", queue, "--handler", "jobs:record", "--report", 1, url=url)
        until(lambda: joblog.read() == ["m"])
        until(lambda: "no longer reports" in consumer.stderr)
        time.sleep(1.5)
        session.call("send", queue, "n")
        until(lambda: joblog.read() == ["m", "n"])
        assert consumer.stop() == 0
        assert consumer.stderr.count("no longer reports") == 1
        sql(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mq FROM {name}")
        sql(f"REVOKE ALL ON SCHEMA mq FROM {name}")
    assert consumers(session, queue) == []


@pytest.mark.heavy
def test_work_before_an_outage_is_reported_after_it(
    private_server: Server, start: Start, queue: str, joblog: Log
) -> None:
    database = open_database(private_server.create_database())
    install.apply(database)
    send(database, queue, "a")
    consumer = start("consume", "--type", queue, "--handler", "jobs:record", "--report", 2, url=database.url)
    until(lambda: joblog.read() == ["a"])
    until(lambda: holds(database, queue) == 0)
    private_server.stop()
    time.sleep(4)
    private_server.start()
    send(database, queue, "b")
    until(lambda: joblog.read() == ["a", "b"])
    assert consumer.stop() == 0, consumer.stderr
    with closing(database.connect("test")) as session:
        counted = figures(session, queue)
        assert (counted["sent"], counted["completed"]) == (2, 2)
        assert [row["status"] for row in consumers(session, queue)] == ["stopped"]


def send(database: Database, queue: str, body: str) -> None:
    with closing(database.connect("test")) as session:
        session.call("send", queue, body)


def holds(database: Database, queue: str) -> int:
    """Messages that are ready or active."""
    with closing(database.connect("test")) as session:
        [row] = session.call("queue_stats", queue)
        return int(row["ready"] + row["active"])


def message(sent: datetime, attempt: int = 1) -> Message:
    return Message(1, "t", "", None, 0, None, None, attempt, sent, None, None, None, 25, sent, None)


def test_first_attempts_count_in_the_minute_of_sending() -> None:
    at = datetime(2026, 1, 1, 10, 0, 59, tzinfo=UTC)
    base = at.timestamp()
    figures = Figures()
    figures.begin([message(at), message(at, attempt=2), message(at + timedelta(seconds=2))], 10.0, base)
    minute = at.replace(second=0)
    assert figures.sent == {minute: 1, minute + timedelta(minutes=1): 1}
    assert (figures.first, figures.began, figures.created) == (2, 20.0, 2.0)
    figures.begin([message(at, attempt=3)], 10.0, base)
    assert figures.first == 2
    figures.begin([message(at), message(at)], 11.0, base)
    assert figures.sent[minute] == 3
