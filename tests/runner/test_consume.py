"""`runner consume` as a process: what it does to the messages, in the database."""

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from servers import Server
from support.messages import States, send
from support.processes import Log, Running
from support.waiting import until

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]

SELDOM = {"JOBS_POLL": "60"}  # seconds between polls: a message handled sooner did not wait for a poll


# ---- handlers ------------------------------------------------------------------------------------


def test_drain_handles_every_message_once_and_ends(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    bodies = [f"m{n}" for n in range(250)]
    send(session, queue, *bodies)
    done = runner("consume", "--type", queue, "--handler", "jobs:record", "--concurrency", 4, "--batch", 7, "--drain")
    assert done.returncode == 0, done.stderr
    assert sorted(joblog.read()) == sorted(bodies)
    assert states() == {}


@pytest.mark.level(1)
def test_a_consumer_says_once_that_a_queue_is_paused_or_unknown(runner: Runner, session: Session, queue: str) -> None:
    session.call("send", queue, "x")
    session.call("pause", queue)
    types = (queue, queue + ".typo")
    named = [word for type in types for word in ("--type", type)]
    done = runner("consume", *named, "--handler", "jobs:record", "--idle-timeout", 1.5)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"{queue}: waiting: the queue is paused") == 1
    assert done.stderr.count(f"{queue}.typo: waiting: nothing was ever sent") == 1
    session.call("resume", queue)
    done = runner("consume", "--type", queue, "--handler", "jobs:record", "--drain")
    assert done.returncode == 0 and "waiting" not in done.stderr


@pytest.mark.level(1)
@pytest.mark.parametrize("name", ["record_batch", "record_sequence", "by_attribute", "record_async_batch"])
def test_batch_handler_gets_a_list(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States, name: str
) -> None:
    send(session, queue, *"abcde")
    done = runner("consume", "--type", queue, "--handler", f"jobs:{name}", "--batch", 3, "--drain")
    assert done.returncode == 0, done.stderr
    assert joblog.read() == [["a", "b", "c"], ["d", "e"]]
    assert states() == {}


@pytest.mark.level(1)
@pytest.mark.parametrize(("name", "batch"), [("record_async", 40), ("record_async", 2), ("record_async_alone", 1)])
def test_async_handler_runs_as_many_at_once_as_concurrency_says(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States, name: str, batch: int
) -> None:
    bodies = [f"m{n}" for n in range(40)]
    send(session, queue, *bodies)
    options = ["--concurrency", 20, "--batch", batch, "--drain"]
    done = runner("consume", "--type", queue, "--handler", f"jobs:{name}", *options)
    assert done.returncode == 0, done.stderr
    noted = joblog.read()
    assert sorted(body for body, _, _ in noted) == sorted(bodies)
    at_once = [sum(begun <= moment < ended for _, begun, ended in noted) for _, moment, _ in noted]
    assert 1 < max(at_once) <= 20
    assert states() == {}


@pytest.mark.level(1)
@pytest.mark.parametrize("name", ["obey", "obey_async"])
def test_exceptions_decide_the_outcome_of_a_message(
    runner: Runner, session: Session, queue: str, states: States, name: str
) -> None:
    send(session, queue, "retry 500", "backoff", "discard", 'raise "plain"', "fine")
    done = runner("consume", "--type", queue, "--handler", f"jobs:{name}", "--drain")
    assert done.returncode == 0, done.stderr
    left = states()
    assert {body: (row["state"], row["error"]) for body, row in left.items()} == {
        "retry 500": ("N", "not now"),
        "backoff": ("N", "not now"),
        "discard": ("E", "never"),
        'raise "plain"': ("N", "ValueError: plain"),
    }
    assert {row["attempts"] for row in left.values()} == {1}
    delay = (left["retry 500"]["run_at"] - left["discard"]["changed_at"]).total_seconds()
    assert 499 < delay < 501
    assert 0 < (left["backoff"]["run_at"] - left["discard"]["changed_at"]).total_seconds() < 60


@pytest.mark.level(3, one=True)
@pytest.mark.parametrize("text", ['two\nlines, "quoted"', '"', "a,b,-1", "", "é😀\r\ttab", "x" * 5000, "nul\0nul"])
def test_any_error_text_is_kept(runner: Runner, session: Session, queue: str, states: States, text: str) -> None:
    body = f"raise {json.dumps(text)}"
    send(session, queue, body, "fine")
    done = runner("consume", "--type", queue, "--handler", "jobs:obey", "--drain")
    assert done.returncode == 0, done.stderr
    assert {b: row["error"] for b, row in states().items()} == {
        body: (f"ValueError: {text}" if text else "ValueError")[:4000].replace("\0", "")
    }


@pytest.mark.level(1)
def test_batch_handler_may_name_the_messages_that_failed(
    runner: Runner, session: Session, queue: str, states: States
) -> None:
    send(session, queue, "good", "bad", "fine")
    done = runner("consume", "--type", queue, "--handler", "jobs:fail_some", "--drain")
    assert done.returncode == 0, done.stderr
    assert {body: (row["state"], row["error"]) for body, row in states().items()} == {"bad": ("E", "bad")}


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("fail_all", "ValueError: all of them"),
        ("return_nonsense", "ValueError: a batch handler returned message id 0, which is not in its batch"),
    ],
)
def test_exception_of_a_batch_handler_fails_the_whole_batch(
    runner: Runner, session: Session, queue: str, states: States, name: str, error: str
) -> None:
    send(session, queue, "a", "b")
    done = runner("consume", "--type", queue, "--handler", f"jobs:{name}", "--drain")
    assert done.returncode == 0, done.stderr
    assert {b: (r["state"], r["attempts"], r["error"]) for b, r in states().items()} == {
        "a": ("N", 1, error),
        "b": ("N", 1, error),
    }


@pytest.mark.level(1)
def test_system_exit_in_a_handler_fails_the_message(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 1}')
    send(session, queue, "first", "discard", "exit", "after")
    done = runner("consume", "--type", queue, "--handler", "jobs:obey", "--drain")
    assert done.returncode == 0, done.stderr
    assert joblog.read() == ["first", "discard", "exit", "after"]
    assert {b: (r["state"], r["attempts"], r["error"]) for b, r in states().items()} == {
        "discard": ("E", 1, "never"),
        "exit": ("E", 1, "SystemExit: 7"),
    }


@pytest.mark.level(1)
def test_exec_decides_by_exit_status(runner: Runner, session: Session, queue: str, states: States) -> None:
    send(session, queue, "0", "65", "3", "kill")
    command = (
        "body=$(python3 -c 'import json, sys; print(json.load(sys.stdin)[\"body\"])');"
        'echo "first line" >&2; echo "was $body" >&2; if [ "$body" = kill ]; then kill -9 $$; fi; exit $body'
    )
    done = runner("consume", "--type", queue, "--exec", command, "--drain")
    assert done.returncode == 0, done.stderr
    assert {body: (row["state"], row["error"]) for body, row in states().items()} == {
        "65": ("E", "was 65"),
        "3": ("N", "exit status 3: was 3"),
        "kill": ("N", "killed by SIGKILL: was kill"),
    }


@pytest.mark.level(1)
def test_exec_gets_the_message_as_json_and_in_the_environment(
    runner: Runner, session: Session, queue: str, states: States
) -> None:
    body = 'a "b"\nc é😀' + "x" * 200_000
    row = session.call("send_message", queue, body, None, 5, "group", "dedup", 3, '{"h":1}', "me")[0]
    command = "cat; echo $RUNNER_MESSAGE_ID $RUNNER_MESSAGE_TYPE $RUNNER_MESSAGE_ATTEMPT"
    done = runner("consume", "--type", queue, "--exec", command, "--drain")
    assert done.returncode == 0, done.stderr
    message, variables = done.stdout.splitlines()
    got = json.loads(message)
    assert got.pop("created_at").endswith("Z") and got.pop("run_at").endswith("Z")
    assert got == {
        "id": row["id"],
        "type": queue,
        "body": body,
        "headers": '{"h":1}',
        "priority": 5,
        "group_key": "group",
        "dedup_key": "dedup",
        "attempt": 1,
        "source": "me",
        "max_attempts": 3,
    }
    assert variables == f"{row['id']} {queue} 1"
    assert states() == {}


@pytest.mark.level(1)
def test_exec_may_leave_its_input_unread(runner: Runner, session: Session, queue: str, states: States) -> None:
    session.call("send", queue, "x" * 3_000_000)
    done = runner("consume", "--type", queue, "--exec", "exit 0", "--drain")
    assert done.returncode == 0, done.stderr
    assert states() == {}


@pytest.mark.level(1)
def test_a_trace_continues_from_the_headers(runner: Runner, session: Session, queue: str, joblog: Log) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = json.dumps({"traceparent": f"00-{trace}-b7ad6b7169203331-01", "other": 1})
    session.call("send_message", queue, "", None, None, None, None, None, headers)
    session.call("send_message", queue, "", None, None, None, None, None, '{"traceparent": 5}')
    done = runner("consume", "--type", queue, "--handler", "jobs:traced", "--drain")
    assert done.returncode == 0, done.stderr
    first, second = joblog.read()
    assert first.split("-")[1] == trace
    assert second is None


# ---- when it ends, and what it claims ------------------------------------------------------------


@pytest.mark.level(1)
def test_once_claims_one_batch_of_each_type(
    runner: Runner, session: Session, queue: str, joblog: Log, sql: Sql, server: Server
) -> None:
    other = f"{queue}.other"
    send(session, queue, *"abcde")
    send(session, other, *"xyz")
    done = runner("consume", "--type", queue, "--type", other, "--handler", "jobs:record", "--batch", 2, "--once")
    assert done.returncode == 0, done.stderr
    assert sorted(joblog.read()) == ["a", "b", "x", "y"]
    view = server.table("message_state")
    left = sql(f"SELECT body, state FROM {view} WHERE type IN (%s, %s)", queue, other)
    assert {(row["body"], row["state"]) for row in left} == {("c", "N"), ("d", "N"), ("e", "N"), ("z", "N")}


@pytest.mark.level(1)
@pytest.mark.parametrize("more", [[], ["--transaction"]])
def test_max_messages_is_exact(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States, more: list[str]
) -> None:
    send(session, queue, *(f"m{n}" for n in range(100)))
    done = runner(
        "consume",
        "--type",
        queue,
        "--handler",
        "jobs:record",
        "--batch",
        8,
        "--concurrency",
        3,
        "--max-messages",
        33,
        *more,
    )
    assert done.returncode == 0, done.stderr
    assert len(joblog.read()) == 33
    assert [row["state"] for row in states().values()] == ["N"] * 67
    assert {row["attempts"] for row in states().values()} == {0}, "more was claimed than asked for"


@pytest.mark.level(1)
def test_idle_timeout_ends_after_the_last_message(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    running = start("consume", "--type", queue, "--handler", "jobs:record", "--idle-timeout", 2)
    time.sleep(1)
    send(session, queue, "late")
    sent_at = time.monotonic()
    assert running.wait() == 0
    assert 1.9 < time.monotonic() - sent_at < 60
    assert joblog.read() == ["late"]
    assert states() == {}


@pytest.mark.level(1)
def test_drain_does_not_wait_for_delayed_messages(runner: Runner, session: Session, queue: str, states: States) -> None:
    send(session, queue, "retry 300")
    assert runner("consume", "--type", queue, "--handler", "jobs:obey", "--drain").returncode == 0
    assert states()["retry 300"]["state"] == "N"


@pytest.mark.level(1)
@pytest.mark.parametrize("more", [[], ["--transaction"]])
def test_drain_of_a_paused_queue_ends_and_changes_nothing(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States, more: list[str]
) -> None:
    send(session, queue, "a")
    session.call("pause", queue)
    done = runner("consume", "--type", queue, "--handler", "jobs:record", "--drain", *more)
    assert done.returncode == 0, done.stderr
    assert joblog.read() == []
    assert states()["a"]["state"] == "N"


@pytest.mark.level(1)
def test_types_take_turns(runner: Runner, session: Session, queue: str, joblog: Log, sql: Sql, server: Server) -> None:
    busy, quiet = f"{queue}.busy", f"{queue}.quiet"
    send(session, busy, *"a" * 100)
    send(session, quiet, *"b" * 10)
    done = runner("consume", "--type", busy, "--type", quiet, "--handler", "jobs:record_type", "--batch", 5, "--drain")
    assert done.returncode == 0, done.stderr
    order = joblog.read()
    assert Counter(order) == {busy: 100, quiet: 10}
    assert max(n for n, name in enumerate(order) if name == quiet) < 30, "the quiet queue waited for the busy one"
    assert sql(f"SELECT 1 FROM {server.table('message')} WHERE type IN (%s, %s)", busy, quiet) == []


@pytest.mark.level(1)
def test_ring_continues_where_the_consumer_stopped(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    session.call("set_queue", queue, '{"ring": 1}')
    for n in range(6):
        session.call("send_message", queue, str(n), None, 6 - n)
    command = ["consume", "--type", queue, "--handler", "jobs:record", "--batch", 2, "--consumer", "r"]
    assert runner(*command, "--once").returncode == 0
    session.call("send_message", queue, "urgent", None, -5)
    assert runner(*command, "--once").returncode == 0
    assert joblog.read() == ["0", "1", "2", "3"]
    assert sorted(states()) == ["4", "5", "urgent"]


@pytest.mark.level(1)
def test_ring_retries_a_failed_message_after_all_others_had_their_turn(
    runner: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    session.call("set_queue", queue, '{"ring": 1}')
    session.call("send", queue, "a")
    session.call("send_message", queue, "retry 0", None, -5, None, None, 3)
    send(session, queue, "b", "c")
    done = runner("consume", "--type", queue, "--handler", "jobs:obey", "--consumer", "r", "--drain")
    assert done.returncode == 0, done.stderr
    assert joblog.read() == ["a", "retry 0", "b", "c", "retry 0", "retry 0"]
    assert {body: row["state"] for body, row in states().items()} == {"retry 0": "E"}


@pytest.mark.level(1)
def test_delayed_message_is_handled_when_due(start: Start, session: Session, queue: str, joblog: Log) -> None:
    due = datetime.now(UTC) + timedelta(seconds=4)
    due_at = time.monotonic() + 4
    session.call("send_message", queue, "later", due)
    session.call("send", queue, "now")
    running = start("consume", "--type", queue, "--handler", "jobs:record_late", env=SELDOM)
    until(lambda: len(joblog.read()) == 2)
    first, (body, at) = joblog.read()
    assert (first[0], body) == ("now", "later")
    assert due_at - 0.1 < at < due_at + 20
    assert running.stop() == 0


def test_idle_consumer_is_woken_or_polls(start: Start, session: Session, queue: str, joblog: Log) -> None:
    woken = session.listen([queue])
    options = ["--handler", "jobs:record", "--concurrency", 2, "--health-port", 0]
    running = start("consume", "--type", queue, *options, env=SELDOM if woken else {})
    until(lambda: "health: http" in running.stderr)
    for n in range(5):
        time.sleep(0.3)
        session.call("send", queue, str(n))
        until(lambda n=n: len(joblog.read()) == n + 1)
    assert running.stop() == 0


# ---- leases, signals, failures -------------------------------------------------------------------


@pytest.mark.level(1)
def test_lease_is_extended_while_a_handler_runs(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "sleep 6")
    command = ["consume", "--type", queue, "--handler", "jobs:obey", "--lease", 4]
    first = start(*command)
    until(joblog.read)
    second = start(*command)
    until(lambda: "woke" in joblog.read())
    until(lambda: states() == {})
    assert (first.stop(), second.stop()) == (0, 0)
    assert joblog.read() == ["sleep 6", "woke"]


@pytest.mark.level(4)
def test_lease_of_the_queue_is_extended_too(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    session.call("set_queue", queue, '{"lease_seconds": 4}')
    send(session, queue, "sleep 6")
    first = start("consume", "--type", queue, "--handler", "jobs:obey")
    until(joblog.read)
    second = start("consume", "--type", queue, "--handler", "jobs:obey")
    until(lambda: states() == {})
    assert (first.stop(), second.stop()) == (0, 0)
    assert joblog.read() == ["sleep 6", "woke"]


@pytest.mark.level(1)
@pytest.mark.parametrize("handler", ["answer", "answer_async"])
def test_results_of_handlers_are_kept_with_keep_results(
    runner: Runner, session: Session, queue: str, states: States, handler: str
) -> None:
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 2, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive"}',
    )
    send(session, queue, "text first", "text ", "json", "none", "die now", "nul", "bad")
    consume = ("consume", "--type", queue, "--handler", f"jobs:{handler}", "--drain", "--batch", 3)
    done = runner(*consume, "--keep-results")
    assert done.returncode == 0, done.stderr
    found = {body: session.call("get_result", row["id"])[0] for body, row in states().items()}
    assert {body: (row["state"], row["result"]) for body, row in found.items()} == {
        "text first": ("C", "first"),
        "text ": ("C", ""),
        "json": ("C", '{"é": [1, null]}'),
        "none": ("C", None),
        "die now": ("E", None),
        "nul": ("E", None),
        "bad": ("E", None),
    }
    assert found["nul"]["error"].startswith("ValueError: the result must be")
    assert found["bad"]["error"].startswith("TypeError: ")
    send(session, queue, "text second")
    assert runner(*consume).returncode == 0
    assert session.call("get_result", states()["text second"]["id"])[0]["result"] is None


@pytest.mark.level(1)
def test_a_batch_whose_lease_is_lost_before_its_finish_counts_as_lost(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    """The lease is long, to avoid a heartbeat before the end."""
    send(session, queue, "sleep 2", "rest")
    running = start("consume", "--type", queue, "--handler", "jobs:obey", "--lease", 600, "--once")
    until(joblog.read)
    session.call("pause", queue)
    session.call("release_batch", states()["rest"]["batch_key"])
    assert running.wait() == 0, running.stderr
    assert "lost the lease of 2 messages" in running.stderr
    assert "2 lost" in running.stderr
    assert {body: row["state"] for body, row in states().items()} == {"sleep 2": "N", "rest": "N"}


@pytest.mark.level(1)
def test_lost_batch_is_not_finished_and_its_rest_not_started(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "sleep 2", "rest")
    running = start("consume", "--type", queue, "--handler", "jobs:obey", "--lease", 1, "--once")
    until(joblog.read)
    session.call("pause", queue)
    session.call("release_batch", states()["rest"]["batch_key"])
    assert running.wait() == 0
    assert "lost the lease of 2 messages" in running.stderr
    assert joblog.read() == ["sleep 2", "woke"]
    assert {body: row["state"] for body, row in states().items()} == {"sleep 2": "N", "rest": "N"}


@pytest.mark.level(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_finishes_what_runs_and_releases_the_rest(
    start: Start, session: Session, queue: str, joblog: Log, states: States, number: signal.Signals
) -> None:
    send(session, queue, "done", "discard", "sleep 1.5", "rest", "more")
    running = start("consume", "--type", queue, "--handler", "jobs:obey")
    until(lambda: "sleep 1.5" in joblog.read())
    assert running.stop(number) == 0, running.stderr
    assert joblog.read() == ["done", "discard", "sleep 1.5", "woke"]
    assert {b: (r["state"], r["attempts"]) for b, r in states().items()} == {
        "discard": ("E", 1),
        "rest": ("N", 0),
        "more": ("N", 0),
    }


@pytest.mark.level(1)
def test_idle_consumer_stops_at_once(start: Start, queue: str) -> None:
    running = start("consume", "--type", queue, "--handler", "jobs:record", "--health-port", 0, env=SELDOM)
    until(lambda: "health: http" in running.stderr)
    time.sleep(1)
    started = time.monotonic()
    assert running.stop() == 0
    assert time.monotonic() - started < 20


@pytest.mark.level(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_second_signal_aborts_and_kills_commands(
    start: Start, session: Session, queue: str, states: States, joblog: Log, number: signal.Signals, code: int
) -> None:
    send(session, queue, "a")
    command = f"echo '\"'$$'\"' >> {joblog.path}; exec sleep 60"
    running = start("consume", "--type", queue, "--exec", command)
    (pid,) = until(joblog.read)
    running.process.send_signal(number)
    until(lambda: "running handlers may finish" in running.stderr)
    time.sleep(1.1)  # one that comes sooner is the same signal
    assert running.stop(number) == code
    until(lambda: subprocess.run(["kill", "-0", pid], capture_output=True, check=False).returncode != 0)
    assert states()["a"]["state"] == "A", "what an aborted consumer held comes back with its lease"


@pytest.mark.level(1)
def test_shutdown_timeout_aborts(start: Start, session: Session, queue: str, states: States, joblog: Log) -> None:
    send(session, queue, "sleep 60")
    running = start("consume", "--type", queue, "--handler", "jobs:obey", "--shutdown-timeout", 0.5)
    until(joblog.read)
    assert running.stop() == 143
    assert "still busy after 0.5 s" in running.stderr
    assert states()["sleep 60"]["state"] == "A"


@pytest.mark.level(1)
def test_killed_consumer_is_taken_over_when_its_lease_runs_out(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "sleep 3", "rest")
    first = start("consume", "--type", queue, "--handler", "jobs:obey", "--lease", 2)
    until(joblog.read)
    first.process.kill()
    first.wait()
    second = start("consume", "--type", queue, "--handler", "jobs:obey")
    until(lambda: states() == {})
    assert second.stop() == 0
    assert sorted(joblog.read()) == ["rest", "sleep 3", "sleep 3", "woke"]


@pytest.mark.level(1)
def test_server_restart_loses_nothing(private_server: Server, start: Start, joblog: Log, queue: str) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    session = open_database(url).connect("test")
    bodies = [f"m{n}" for n in range(3_000)]
    send(session, queue, *bodies)
    session.close()
    command = ["consume", "--type", queue, "--handler", "jobs:record", "--lease", 2, "--batch", 10, "--concurrency", 2]
    running = start(*command, url=url)
    until(lambda: len(joblog.read()) > 200)
    private_server.stop("immediate")
    time.sleep(1.5)
    private_server.start()
    until(lambda: "the database is reachable again" in running.stderr)
    view = private_server.table("message_state")
    until(lambda: private_server.query(url, f"SELECT count(*) AS n FROM {view}")[0]["n"] == 0, seconds=60)
    assert running.stop() == 0, running.stderr
    assert set(joblog.read()) == set(bodies)
    assert running.stderr.count("the database is unreachable") == running.stderr.count(
        "the database is reachable again"
    )
    assert "Traceback" not in running.stderr


@pytest.mark.level(3)
def test_consumer_waits_for_the_server_without_a_busy_loop(
    private_server: Server, start: Start, joblog: Log, queue: str
) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    command = ["consume", "--type", queue, "--handler", "jobs:record", "--concurrency", 4, "--health-port", 0]
    running = start(*command, url=url)
    until(lambda: get(running, "/ready")[0] == 200)
    private_server.stop("fast")
    until(lambda: "the database is unreachable" in running.stderr)
    before = cpu_seconds(running)
    time.sleep(3)
    assert cpu_seconds(running) - before < 0.5
    assert running.stop() == 0
    private_server.start()


@pytest.mark.level(3)
def test_idle_timeout_with_a_busy_worker_thread_is_no_busy_loop(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "sleep 4")
    options = ["--concurrency", 3, "--idle-timeout", 0.5]
    running = start("consume", "--type", queue, "--handler", "jobs:obey", *options)
    until(joblog.read)
    time.sleep(0.7)
    before = cpu_seconds(running)
    time.sleep(2)
    assert cpu_seconds(running) - before < 0.1
    assert running.wait() == 0
    assert states() == {}


def cpu_seconds(running: Running) -> float:
    fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_user_with_the_consumer_role_alone_can_consume(
    runner: Runner, session: Session, server: Server, database: Database, queue: str, states: States, joblog: Log
) -> None:
    send(session, queue, "a")
    with server.login(database.url, f"consumer_{queue[5:15]}", "mq_consumer") as url:
        done = runner("consume", "--type", queue, "--handler", "jobs:record", "--drain", url=url)
    assert done.returncode == 0, done.stderr
    assert joblog.read() == ["a"]
    assert states() == {}


@pytest.mark.level(3)
def test_memory_stays_flat_over_a_long_backlog(start: Start, session: Session, queue: str, states: States) -> None:
    for _ in range(4):
        send(session, queue, *["x" * 1_000] * 10_000)
    running = start("consume", "--type", queue, "--handler", "jobs:ignore_batch", "--batch", 100)
    until(lambda: session.call("queue_stats", queue)[0]["ready"] < 10_000, seconds=120)
    early = megabytes(running)
    until(lambda: not states(), seconds=120)
    assert megabytes(running) < min(100, early + 10)
    assert running.stop() == 0


def megabytes(running: Running) -> float:
    """The largest memory a process has had."""
    lines = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def test_consumer_ends_with_3_when_the_queue_is_taken_away(
    start: Start, empty_database: Database, server: Server, queue: str
) -> None:
    if not empty_database.swaps_at_once:
        pytest.skip("an upgrade is given a minute first; the tests of that engine make it short")
    install.apply(empty_database)
    command = ["consume", "--type", queue, "--handler", "jobs:record", "--concurrency", 2, "--health-port", 0]
    running = start(*command, url=empty_database.url)
    until(lambda: "health: http" in running.stderr)
    server.drop_procedure(empty_database.url, "wait_for_message")
    assert running.wait() == 3, running.stderr
    assert "runner apply" in running.stderr.splitlines()[-1]
    assert "Traceback" not in running.stderr


# ---- --transaction -------------------------------------------------------------------------------


@pytest.fixture
def effects(sql: Sql) -> Callable[[], list[str]]:
    with suppress(Exception):  # it is there
        sql("CREATE TABLE effect (body VARCHAR(200), amount INTEGER)")
    sql("DELETE FROM effect")
    return lambda: [row["body"] for row in sql("SELECT body FROM effect ORDER BY body")]


def test_transaction_commits_the_work_and_the_message_together(
    runner: Runner, session: Session, queue: str, states: States, effects: Callable[[], list[str]], database: Database
) -> None:
    session.call(
        "set_queue", queue, '{"backoff_seconds": 1000}'
    )  # failed messages are not retried during the test, even on a slow machine
    send(session, queue, "a", "fail", "b", "swallow", "c")
    # An error does not end a transaction on every database; where it does, the handler must not count as successful.
    spoil = {"JOBS_SPOIL": "SELECT 1 / 0" if database.name == "postgresql" else "ROLLBACK"}
    done = runner("consume", "--type", queue, "--handler", "jobs:effect", "--transaction", "--drain", env=spoil)
    assert done.returncode == 0, done.stderr
    assert effects() == ["a", "b", "c"]
    left = states()
    assert {body: (row["state"], row["attempts"]) for body, row in left.items()} == {
        "fail": ("N", 1),
        "swallow": ("N", 1),
    }
    assert left["fail"]["error"] == "ValueError: after the work"
    assert left["fail"]["run_at"] > left["fail"]["created_at"]


@pytest.mark.level(3, one=True)
def test_transaction_blames_nobody_for_a_batch_that_failed_but_the_one_that_fails_alone(
    runner: Runner, session: Session, queue: str, states: States, effects: Callable[[], list[str]]
) -> None:
    session.call(
        "set_queue", queue, '{"backoff_seconds": 1000}'
    )  # failed messages are not retried during the test, even on a slow machine
    send(session, queue, "a", "fail", "b")
    command = ["consume", "--type", queue, "--handler", "jobs:effect", "--transaction", "--batch", 3, "--once"]
    done = runner(*command)
    assert done.returncode == 0, done.stderr
    assert "3 messages were rolled back and are handled one by one: ValueError: after the work" in done.stderr
    assert effects() == ["a", "b"]
    assert {b: (r["state"], r["attempts"]) for b, r in states().items()} == {"fail": ("N", 1)}


@pytest.mark.level(3)
def test_transaction_finishes_a_busy_queue_with_several_workers(
    runner: Runner, session: Session, queue: str, states: States, effects: Callable[[], list[str]]
) -> None:
    bodies = [f"m{n:03}" for n in range(200)]
    send(session, queue, *bodies)
    done = runner(
        "consume", "--type", queue, "--handler", "jobs:effect", "--transaction", "--concurrency", 4, "--drain"
    )
    assert done.returncode == 0, done.stderr
    assert effects() == bodies
    assert states() == {}


@pytest.mark.level(1)
def test_a_conflict_of_a_handlers_own_statement_costs_no_attempt(
    start: Start, session: Session, queue: str, states: States, sql: Sql, effects: Callable[[], list[str]], joblog: Log
) -> None:
    """Two handlers change two rows in opposite order: the server ends one of the transactions, or both."""
    effects()
    for body in ("1", "2"):
        sql(f"INSERT INTO effect (body, amount) VALUES ('{body}', 0)")
    session.call("set_queue", queue, '{"max_attempts": 1}')
    send(session, queue, "1 2", "2 1")
    one_each = ["--batch", 1, "--concurrency", 2]
    running = start("consume", "--type", queue, "--handler", "jobs:cross", "--transaction", *one_each)
    until(lambda: states() == {} or [row for row in states().values() if row["state"] == "D"])
    assert states() == {}, running.stderr
    assert [row["amount"] for row in sql("SELECT amount FROM effect")] == [2, 2]
    assert any(line[0] == "met" for line in joblog.read()), "nobody met anybody: the test has lost its point"


# ---- health --------------------------------------------------------------------------------------


def get(running: Running, path: str) -> tuple[int, str]:
    line = until(lambda: [line for line in running.stderr.splitlines() if "health: http" in line])[0]
    try:
        with urllib.request.urlopen(line.rpartition(" ")[2] + path, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.level(1)
def test_health_port_serves_live_ready_and_metrics(start: Start, session: Session, queue: str, states: States) -> None:
    session.call(
        "set_queue", queue, '{"backoff_seconds": 1000}'
    )  # failed messages are not retried during the test, even on a slow machine
    send(session, queue, "a", "b", "discard", "backoff")
    running = start("consume", "--type", queue, "--handler", "jobs:obey", "--health-port", 0)
    until(lambda: sorted(states()) == ["backoff", "discard"])
    assert get(running, "/live") == (200, "live\n")
    assert get(running, "/ready") == (200, "ready\n")
    assert get(running, "/nothing")[0] == 404
    metrics = until(lambda: (page := get(running, "/metrics")[1]).count("outcome=") >= 3 and page)
    for line in (
        f'rowqueue_messages_total{{outcome="completed",type="{queue}"}} 2.0',
        f'rowqueue_messages_total{{outcome="discarded",type="{queue}"}} 1.0',
        f'rowqueue_messages_total{{outcome="failed",type="{queue}"}} 1.0',
        f'rowqueue_batch_size_sum{{type="{queue}"}} 4.0',
        "rowqueue_consumer_active_messages 0.0",
        "rowqueue_lost_leases_total 0.0",
    ):
        assert line in metrics.splitlines()
    assert running.stop() == 0


@pytest.mark.level(3)
def test_ready_says_no_while_the_server_is_away(private_server: Server, start: Start, queue: str) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    running = start("consume", "--type", queue, "--handler", "jobs:record", "--health-port", 0, url=url)
    until(lambda: get(running, "/ready")[0] == 200)
    private_server.stop("immediate")
    until(lambda: get(running, "/ready")[0] == 503)
    assert get(running, "/live")[0] == 200
    private_server.start()
    until(lambda: get(running, "/ready")[0] == 200)
    assert "rowqueue_reconnects_total 0.0" not in get(running, "/metrics")[1]
    assert running.stop() == 0
