"""Outcomes that cannot be stored unchanged, repeated conflicts, time limits, and counts of a consumer."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rowqueue import Consumer, Message
from rowqueue.databases import Database, Session
from servers import Server
from support.messages import States, send
from support.processes import Log, Running
from support.waiting import until

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]
# ---- outcomes that are refused -------------------------------------------------------------------


def test_errors_that_are_too_long_for_one_call_are_stored_in_parts(
    runner: Runner, session: Session, queue: str, states: States
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 1}')
    send(session, queue, *(f"{n % 10}-{n}" for n in range(300)))
    done = runner("consume", "--type", queue, "--handler", "odd:long_error", "--batch", 300, "--drain")
    assert done.returncode == 0, done.stderr[-2000:]
    found = states()
    assert len(found) == 300
    assert all(row["state"] == "E" and row["error"] == body[0] * 4_000 for body, row in found.items())
    assert "done: 300 failed" in done.stderr


@pytest.mark.level(3)
def test_a_result_that_the_server_refuses_is_dropped_and_said(
    runner: Runner, session: Session, queue: str, states: States
) -> None:
    """18 MB in a statement of MySQL's driver; the other databases get it as a parameter and take it."""
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive"}',
    )
    send(session, queue, "a", "long", "b")
    done = runner("consume", "--type", queue, "--handler", "odd:quotes", "--keep-results", "--drain")
    assert done.returncode == 0, done.stderr[-2000:]
    results = {body: session.call("get_result", row["id"])[0] for body, row in states().items()}
    assert {body: row["state"] for body, row in results.items()} == {"a": "C", "long": "C", "b": "C"}
    assert (results["a"]["result"], results["b"]["result"]) == ("short", "short")
    if results["long"]["result"] is None:
        assert "its result is not kept: invalid_argument: result" in done.stderr
    else:
        assert results["long"]["result"] == '"' * 9_000_000
    assert "done: 3 completed" in done.stderr


def test_results_need_a_queue_that_archives(runner: Runner, session: Session, queue: str) -> None:
    session.call("send", queue, "a")
    done = runner("consume", "--type", queue, "--handler", "odd:quotes", "--keep-results", "--drain")
    assert done.returncode == 2
    assert f"--keep-results: queue {queue} keeps no results" in done.stderr
    assert session.call("queue_stats", queue)[0]["ready"] == 1


@pytest.mark.level(1)
def test_a_queue_that_no_longer_archives_loses_results_and_no_message(
    start: Start, session: Session, queue: str, states: States, joblog: Log
) -> None:
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive"}',
    )
    send(session, queue, "a", "b")
    running = start("consume", "--type", queue, "--handler", "odd:slow_result", "--keep-results", "--max-messages", 2)
    until(joblog.read)
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "delete"}',
    )
    assert running.wait() == 0, running.stderr
    assert states() == {}
    assert running.stderr.count("its result is not kept: invalid_argument: id: the queue keeps no results") == 2
    assert "done: 2 completed" in running.stderr


# ---- repeated conflicts under --transaction ----------------------------------------------------------


@pytest.fixture
def effects(sql: Sql) -> Callable[[], list[str]]:
    with suppress(Exception):  # it is there
        sql("CREATE TABLE effect (body VARCHAR(200), amount INTEGER)")
    sql("DELETE FROM effect")
    return lambda: [row["body"] for row in sql("SELECT body FROM effect ORDER BY body")]


LOCKS = {
    "postgresql": "SET LOCAL lock_timeout = '50ms'; UPDATE effect SET amount = 1 WHERE body = 'held'",
    "mysql": "SET innodb_lock_wait_timeout = 1; UPDATE effect SET amount = 1 WHERE body = 'held'",
    "firebird": "UPDATE effect SET amount = 1 WHERE body = 'held'",
}
KILLS = {
    "postgresql": "SELECT pg_terminate_backend(pg_backend_pid())",
    "mysql": "KILL CONNECTION_ID()",
}


@pytest.mark.parametrize("batch", [1, 10])
def test_a_repeated_conflict_counts_as_an_attempt(
    runner: Runner,
    session: Session,
    queue: str,
    states: States,
    database: Database,
    server: Server,
    effects: Callable[[], list[str]],
    sql: Sql,
    batch: int,
) -> None:
    effects()
    sql("INSERT INTO effect (body) VALUES ('held')")
    session.call("set_queue", queue, '{"max_attempts": 1}')
    send(session, queue, "a", "poison", "b")
    consume = ("consume", "--type", queue, "--handler", "odd:poison", "--transaction", "--batch", batch, "--drain")
    with database.connect("holder").transaction() as connection:
        connection.cursor().execute("UPDATE effect SET amount = 2 WHERE body = 'held'")
        done = runner(*consume, env={"JOBS_POISON": LOCKS[database.name]})
    assert done.returncode == 0, done.stderr
    assert effects() == ["a", "b", "held"]
    [(body, row)] = states().items()
    assert (body, row["state"]) == ("poison", "E")
    assert row["error"].startswith("Conflict: "), row["error"]
    assert "WARNING" in done.stderr and "was rolled back 7 times" in done.stderr


@pytest.mark.product("postgresql", "mysql", "mariadb")
def test_a_session_that_is_killed_again_counts_as_an_attempt(
    runner: Runner, session: Session, queue: str, states: States, database: Database, effects: Callable[[], list[str]]
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 1}')
    send(session, queue, "a", "poison", "b")
    consume = ("consume", "--type", queue, "--handler", "odd:poison", "--transaction", "--drain")
    done = runner(*consume, env={"JOBS_POISON": KILLS[database.name]})
    assert done.returncode == 0, done.stderr
    assert effects() == ["a", "b"]
    assert {body: row["state"] for body, row in states().items()} == {"poison": "E"}
    assert "message" in done.stderr and "failed (attempt 1): Disconnected: " in done.stderr


@pytest.mark.product("postgresql", "mariadb")
def test_a_session_that_idles_too_long_in_a_handler_counts_as_an_attempt(
    runner: Runner, session: Session, queue: str, states: States, database: Database, effects: Callable[[], list[str]]
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 1}')
    send(session, queue, "a", "poison", "b")
    limit, pause = {
        "postgresql": ("idle_in_transaction_session_timeout = '100ms'", "0.5"),
        "mysql": ("idle_transaction_timeout = 1", "1.6"),
    }[database.name]
    consume = ("consume", "--type", queue, "--handler", "odd:poison", "--transaction", "--drain")
    done = runner(*consume, env={"JOBS_POISON": f"SET {limit}", "JOBS_PAUSE": pause})
    assert done.returncode == 0, done.stderr
    assert effects() == ["a", "b"]
    assert {body: row["state"] for body, row in states().items()} == {"poison": "E"}


# ---- time limits of the server ---------------------------------------------------------------------


@pytest.mark.product("postgresql")
def test_a_statement_timeout_of_a_claim_is_logged_and_the_consumer_continues(
    start: Start, session: Session, queue: str, database: Database, joblog: Log, server: Server
) -> None:
    url = f"{database.url}{'&' if '?' in database.url else '?'}options=-cstatement_timeout%3D100ms"
    running = start("consume", "--type", queue, "--handler", "jobs:record", url=url)
    with server.client(database.url) as other, other.transaction():
        other.execute("LOCK TABLE mq.message IN ACCESS EXCLUSIVE MODE")
        until(lambda: "canceling statement due to statement timeout" in running.stderr)
    session.call("send", queue, "after")
    until(joblog.read)
    assert running.stop() == 0, running.stderr


@pytest.mark.product("mariadb")
def test_a_max_statement_time_of_a_claim_is_logged_and_the_consumer_continues(
    start: Start, session: Session, queue: str, database: Database, joblog: Log, server: Server, sql: Sql
) -> None:
    role = f"limited_{queue[5:15]}"
    with server.login(database.url, role, "mq_consumer") as url:
        sql(f"ALTER USER {role}@'%' WITH MAX_STATEMENT_TIME 0.2")
        with server.client(database.url) as other:
            other.execute("LOCK TABLES mq_message WRITE")
            running = start("consume", "--type", queue, "--handler", "jobs:record", url=url)
            until(lambda: "max_statement_time exceeded" in running.stderr)
            other.execute("UNLOCK TABLES")
        session.call("send", queue, "after")
        until(joblog.read)
        assert running.stop() == 0, running.stderr


# ---- signals ---------------------------------------------------------------------------------------


@pytest.mark.level(1)
def test_a_sigterm_while_the_consumer_is_stopped_ends_it(start: Start, queue: str) -> None:
    started = [start("consume", "--type", queue, "--handler", "jobs:record_async") for _ in range(3)]
    until(lambda: all("consuming" in running.stderr for running in started))
    time.sleep(0.5)
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
        for running in started:
            running.process.send_signal(number)
    assert [running.wait(30) for running in started] == [0, 0, 0]


@pytest.mark.level(1)
def test_two_signals_at_once_are_one(start: Start, session: Session, queue: str, joblog: Log, states: States) -> None:
    """As timeout(1) sends them."""
    session.call("send", queue, "1")
    running = start("consume", "--type", queue, "--handler", "odd:sleep")
    until(joblog.read)
    running.process.send_signal(signal.SIGTERM)
    assert running.stop() == 0, running.stderr
    assert states() == {}


# ---- counts ----------------------------------------------------------------------------------------


@pytest.mark.level(1)
def test_load_counts_handlers_that_are_still_running(start: Start, session: Session, queue: str, joblog: Log) -> None:
    send(session, queue, "4", "4.0")
    consumer = f"consumer of {queue}"
    options = ("--consumer", consumer, "--report", 1, "--batch", 1, "--concurrency", 2)
    running = start("consume", "--type", queue, "--handler", "odd:sleep", *options)
    until(lambda: len(joblog.read()) == 2)

    def busy() -> int:
        rows = session.call("throughput", queue)
        return sum(row["busy_ms"] for row in rows)

    until(lambda: busy() > 1_500, seconds=10)
    assert "completed" not in running.stderr
    assert running.stop() == 0
    assert 7_900 < busy() < 12_000


@pytest.mark.level(1)
def test_messages_of_a_lost_batch_are_not_counted_as_completed(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    """A signal makes the consumer finish a part of a batch that others have released meanwhile."""
    send(session, queue, "1.5", "rest")
    running = start("consume", "--type", queue, "--handler", "odd:sleep", "--lease", 600, "--once")
    until(joblog.read)
    session.call("pause", queue)
    session.call("release_batch", states()["rest"]["batch_key"])
    assert running.stop() == 0, running.stderr
    assert "completed" not in running.stderr
    assert "1 lost" in running.stderr
    assert all(row["state"] == "N" for row in states().values())


@pytest.mark.level(3)
@pytest.mark.product("postgresql")
def test_an_uncommitted_report_of_another_does_not_delay_the_end(
    start: Start, session: Session, queue: str, database: Database, joblog: Log, states: States
) -> None:
    """Nor the heartbeats: the handler takes longer than its lease."""
    consumer = f"consumer of {queue}"
    session.call("set_queue", queue, '{"max_attempts": 1}')
    with database.connect("attacker").transaction() as connection:
        connection.execute("SELECT mq.report_consumer(%s, %s)", [consumer, queue])
        session.call("send", queue, "3")
        options = ("--consumer", consumer, "--report", 1, "--lease", 1)
        running = start("consume", "--type", queue, "--handler", "odd:sleep", *options)
        until(joblog.read)
        until(lambda: states() == {}, seconds=20)
        began = time.monotonic()
        assert running.stop() == 0, running.stderr
        assert time.monotonic() - began < 12
    assert "lost the lease" not in running.stderr


# ---- connections of a framework --------------------------------------------------------------------


@pytest.mark.product("postgresql")
@pytest.mark.parametrize("handler", ["ask", "ask_async", "ask_list"])
def test_a_connection_of_django_that_is_lost_is_opened_again(
    start: Start, session: Session, queue: str, states: States, sql: Sql, joblog: Log, handler: str
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 2, "backoff_seconds": 0, "backoff_max_seconds": 0}')
    session.call("send", queue, "a")
    running = start("consume", "--type", queue, "--handler", f"django_jobs:{handler}", "--batch", 1)
    until(lambda: joblog.read() and states() == {})
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT 1'")
    send(session, queue, "b", "c")
    until(lambda: states() == {})
    assert running.stop() == 0, running.stderr
    assert running.stderr.count("failed (attempt 1)") == 1, "the one that found the lost connection"


# ---- children --------------------------------------------------------------------------------------


@pytest.mark.level(1)
@pytest.mark.parametrize("option", ["--exec", "--worker"])
def test_processes_of_a_handler_do_not_get_the_url_of_the_database(
    runner: Runner, session: Session, queue: str, states: States, tmp_path: Path, option: str
) -> None:
    session.call("send", queue, "a")
    out = tmp_path / "environment"
    command = f"env > {out}"
    worker = f"sh -c '{command}; exec {sys.executable} {Path(__file__).with_name('odd.py')}'"
    done = runner("consume", "--type", queue, option, command if option == "--exec" else worker, "--drain")
    assert done.returncode == 0, done.stderr
    assert states() == {}
    assert "PATH=" in out.read_text() and "RUNNER_DATABASE" not in out.read_text()


@pytest.mark.level(1)
def test_a_worker_that_never_answers_anything_is_an_error_at_the_end(
    runner: Runner, session: Session, queue: str, states: States
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 1}')
    session.call("send", queue, "a")
    done = runner("consume", "--type", queue, "--worker", "sh -c 'echo no module >&2; exit 1'", "--drain")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "runner: no worker process has answered a message: the worker ended: exit status 1: no module"
    assert states()["a"]["state"] == "E"


@pytest.mark.level(1)
@pytest.mark.parametrize("on_complete", ["delete", "archive"])
def test_a_message_that_its_handler_completes_itself_is_completed_and_not_lost(
    database: Database, session: Session, queue: str, caplog: pytest.LogCaptureFixture, on_complete: str
) -> None:
    """As in a transaction with the handler's effect. What an operator releases meanwhile is lost as before."""
    session.call("set_queue", queue, json.dumps({"on_complete": on_complete}))
    caplog.set_level("INFO", "rowqueue")

    def handle(message: Message) -> None:
        if message.body == "own":
            session.call("complete", message.id, message.batch_key)
        elif message.attempt == 1:
            session.call("release_batch", message.batch_key)

    send(session, queue, "own", "own", "released")
    Consumer(database.url, queue, handle, batch=1, max_messages=3).run()
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "2 completed" in text and "1 lost" in text
    assert text.count("lost the lease") == 1
