"""`runner consume --worker`: what worker processes do to the messages, in the database."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Session
from support.messages import States, outcomes, send
from support.processes import FOLDER, Log, Running, is_alive
from support.waiting import until

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]

WORKER = shlex.join([sys.executable, str(FOLDER / "obedient_worker.py")])


@pytest.fixture
def consume(runner: Runner, queue: str) -> Runner:
    """Drains the queue with a worker."""

    def run(*more: object, worker: str = WORKER) -> subprocess.CompletedProcess[str]:
        return runner("consume", "--type", queue, "--worker", worker, "--drain", *more)

    return run


def bodies(joblog: Log) -> list[Any]:
    return [noted for noted in joblog.read() if not isinstance(noted, list)]


def starts(joblog: Log) -> list[int]:
    return [noted[1] for noted in joblog.read() if isinstance(noted, list)]


# ---- answers -------------------------------------------------------------------------------------


def test_answers_decide_the_outcome_of_a_message(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "a", "fail", "retry 500", "dead never", "dead", "b")
    done = consume()
    assert done.returncode == 0, done.stderr
    assert outcomes(states) == {
        "fail": ("N", 1, "not now"),
        "retry 500": ("N", 1, "not now"),
        "dead never": ("E", 1, "never"),
        "dead": ("E", 1, "dead"),
    }
    left = states()
    delay = (left["retry 500"]["run_at"] - left["dead"]["changed_at"]).total_seconds()
    assert 499 < delay < 501
    (started, *rest) = joblog.read()
    assert rest == ["a", "fail", "retry 500", "dead never", "dead", "b", "end of file"]
    assert started[2:] == ["1", True], "the protocol's version, a process group of its own"


def test_answers_come_in_any_order(consume: Runner, session: Session, queue: str, joblog: Log, states: States) -> None:
    """A fast worker gets several messages at once: at most four times as many as before."""
    send(session, queue, *(str(n) for n in range(100)))
    done = consume("--batch", 100, "--once", worker=f"{WORKER} reverse")
    assert done.returncode == 0, done.stderr
    assert sorted(map(int, joblog.read())) == list(range(100)) != list(map(int, joblog.read()))
    assert states() == {}


def test_concurrency_is_the_number_of_processes(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, *(f"sleep {0.1 + n / 1000}" for n in range(24)))
    done = consume("--concurrency", 3, "--batch", 1)
    assert done.returncode == 0, done.stderr
    assert len(set(starts(joblog))) == len(starts(joblog)) == 3
    assert joblog.read().count("end of file") == 3
    assert states() == {}


def test_worker_gets_the_message_as_one_line(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    headers = '{"h": 1.0000000000000000001,\n "é": null}'
    first = session.call("send_message", queue, "é", None, 5, "group", "dedup", 3, headers, "me")[0]
    session.call("send_message", queue, "text", None, None, None, None, None, "{}")
    done = consume(worker=f"{WORKER} lines")
    assert done.returncode == 0, done.stderr
    lines = {json.loads(line)["body"]: line for line in joblog.read()}
    assert '{"h": 1.0000000000000000001,' in lines["é"], "with all its digits"
    got = json.loads(lines["é"])
    assert got.pop("created_at").endswith("Z") and got.pop("run_at").endswith("Z")
    assert got == {
        "id": first["id"],
        "type": queue,
        "body": "é",
        "headers": {"h": 1.0, "é": None},
        "priority": 5,
        "group_key": "group",
        "dedup_key": "dedup",
        "attempt": 1,
        "source": "me",
        "max_attempts": 3,
    }
    other = json.loads(lines["text"])
    assert (other["headers"], other["group_key"], other["dedup_key"]) == ({}, None, None)
    assert states() == {}


def test_every_character_arrives(consume: Runner, session: Session, queue: str, joblog: Log, states: States) -> None:
    planes = [chr(n) for n in range(1, 0x11_0000, 37) if not 0xD800 <= n < 0xE000]
    sent = ["".join(map(chr, range(1, 256))), "\u2028\u2029\x85\r\n\\u2028\t\x0b\x0c\x1c", "".join(planes), '"\\"']
    send(session, queue, *sent)
    done = consume(worker=f"{WORKER} lines")
    assert done.returncode == 0, done.stderr
    lines = joblog.read()
    assert [json.loads(line)["body"] for line in lines] == sent
    assert all(line.splitlines() == [line[:-1]] for line in lines), "one line, by anybody's rule"
    assert states() == {}


def test_big_messages_and_big_answers_do_not_hang_both_sides(
    consume: Runner, session: Session, queue: str, states: States
) -> None:
    for n in range(12):
        session.call("send", queue, f"{n:02}" + "x" * (1 << 20))
    done = consume("--batch", 12, "--timeout", 60, worker=f"{WORKER} echo")
    assert done.returncode == 0, done.stderr[-2000:]
    left = sorted(states().values(), key=lambda row: row["id"])
    assert [(row["state"], row["error"]) for row in left] == [("E", f"{n:02}" + "x" * 3998) for n in range(12)]


def test_results_are_kept_when_that_is_asked_for(consume: Runner, session: Session, queue: str, states: States) -> None:
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 2, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive"}',
    )
    send(session, queue, "result first é", "none")
    done = consume("--keep-results")
    assert done.returncode == 0, done.stderr
    found = {body: session.call("get_result", row["id"])[0] for body, row in states().items()}
    assert {body: (row["state"], row["result"]) for body, row in found.items()} == {
        "result first é": ("C", "first é"),
        "none": ("C", None),
    }


# ---- workers that end, or talk nonsense ----------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("exit 3", "the worker ended: exit status 3: first line\nlast words"),
        ("exit 127", "the worker ended: exit status 127: first line\nlast words"),
        ("kill", "the worker ended: killed by SIGKILL"),
        ("orphan", "the worker ended: exit status 5"),
        ("mute", "the worker closed its stdout"),
        ("raw rubbish", "the worker wrote a line that is not JSON: rubbish"),
        ("raw", "the worker wrote a line that is not JSON: "),
        ("raw [1]", "the worker wrote a line that is not an object with a number as its id: [1]"),
        ('raw {"id": true}', 'the worker wrote a line that is not an object with a number as its id: {"id": true}'),
        ("raw " + "é" * 500, "the worker wrote a line that is not JSON: " + "é" * 200),
        ("long", "the worker wrote a line that is longer than 1 MB: " + "x" * 200),
    ],
)
def test_a_worker_that_ends_costs_one_message_an_attempt(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States, body: str, error: str
) -> None:
    """The first was answered, the second failed, the third costs no attempt and is handled by the next process."""
    session.call("set_queue", queue, '{"backoff_seconds": 300, "backoff_max_seconds": 300}')
    send(session, queue, "done", body, "rest", "dead after")
    done = consume("--concurrency", 1)
    assert done.returncode == 0, done.stderr
    assert outcomes(states) == {body: ("N", 1, error), "dead after": ("E", 1, "after")}
    assert bodies(joblog) == ["done", body, "rest", "dead after", "end of file"]
    first, _ = starts(joblog)
    until(lambda: not is_alive(first))


@pytest.mark.parametrize("body", ["unknown", "twice"])
def test_an_answer_to_no_waiting_message_ends_the_worker(
    consume: Runner, session: Session, queue: str, states: States, body: str
) -> None:
    session.call("set_queue", queue, '{"backoff_seconds": 300, "backoff_max_seconds": 300}')
    send(session, queue, body, "rest")
    done = consume(*["--once"] * (body == "twice"))
    assert done.returncode == 0, done.stderr
    if body == "unknown":
        (row,) = states().values()
        assert (row["state"], row["attempts"]) == ("N", 1)
        assert row["error"].startswith('the worker wrote a line that has the id of no unanswered message: {"id')
    else:  # its first answer counts, and the next message fails if the worker has it already
        for state, attempts, error in outcomes(states).values():
            assert (state, attempts) == ("N", 1)
            assert "the id of no unanswered message" in str(error)
        assert outcomes(states).keys() <= {"rest"}


@pytest.mark.parametrize("body", ["twice", "both"])
def test_an_answer_too_many_at_the_end_of_a_batch_fails_nothing(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States, body: str
) -> None:
    send(session, queue, "a", body)
    send(session, queue, "b")
    done = consume("--batch", 2)
    assert done.returncode == 0, done.stderr
    assert states() == {}
    assert [body for body in bodies(joblog) if body != "end of file"] == ["a", body, "b"]
    assert len(starts(joblog)) == 2
    if body == "both":  # in one write; otherwise the second may arrive too late to be read
        assert "the worker wrote something after its last answer: {" in done.stderr


@pytest.mark.parametrize("body", ["never", pytest.param("stubborn", marks=pytest.mark.level(4))])
def test_a_worker_that_never_answers_is_killed(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States, body: str
) -> None:
    session.call("set_queue", queue, '{"backoff_seconds": 300, "backoff_max_seconds": 300}')
    send(session, queue, "sleep 1.2", "sleep 1.3", body, "rest")
    began = time.monotonic()
    done = consume("--timeout", 2)
    assert done.returncode == 0, done.stderr
    assert outcomes(states) == {body: ("N", 1, "timed out after 2 s")}
    assert time.monotonic() - began > (9 if body == "stubborn" else 4)
    first, _ = starts(joblog)
    assert not is_alive(first)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/nowhere/at/all", "No such file"),
        ("/etc/passwd", "Permission denied"),
        ("sh -c 'echo no such thing >&2; exit 127'", "exit status 127: no such thing"),
        ("env /nowhere/at/all", "exit status 127"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--transaction"]])
def test_a_worker_that_cannot_be_started_ends_the_consumer_and_costs_no_attempt(
    runner: Runner, session: Session, queue: str, states: States, command: str, words: str, more: list[str]
) -> None:
    send(session, queue, "a", "b")
    done = runner("consume", "--type", queue, "--worker", command, *more)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("runner: the worker ") and words in last
    assert {body: (s, n) for body, (s, n, _) in outcomes(states).items()} == {"a": ("N", 0), "b": ("N", 0)}


def test_restarts_come_after_growing_pauses(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, *(f"exit {n}" for n in range(1, 7)))
    session.call("set_queue", queue, '{"backoff_seconds": 300, "backoff_max_seconds": 300}')
    began = time.monotonic()
    done = consume()
    assert done.returncode == 1, "no process has ever answered"
    assert {(s, n) for s, n, _ in outcomes(states).values()} == {("N", 1)}
    assert len(starts(joblog)) == 6
    assert time.monotonic() - began > (0.1 + 0.2 + 0.4 + 0.8 + 1.6) / 2


def test_transaction_ends_messages_with_its_commit(
    consume: Runner, session: Session, queue: str, joblog: Log, states: States
) -> None:
    session.call("set_queue", queue, '{"backoff_seconds": 300, "backoff_max_seconds": 300}')
    send(session, queue, "a", "fail", "exit 3", "b")
    done = consume("--transaction")
    assert done.returncode == 0, done.stderr
    assert {body: (s, n) for body, (s, n, _) in outcomes(states).items()} == {"fail": ("N", 1), "exit 3": ("N", 1)}


# ---- leases, signals, the end --------------------------------------------------------------------


def test_lease_is_extended_while_a_worker_is_slow(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "sleep 4")
    command = ["consume", "--type", queue, "--worker", WORKER, "--lease", 2]
    first = start(*command)
    until(lambda: bodies(joblog))
    second = start(*command)
    until(lambda: states() == {})
    assert (first.stop(), second.stop()) == (0, 0)
    assert [b for b in bodies(joblog) if b != "end of file"] == ["sleep 4", "woke"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_finishes_the_message_and_then_ends_the_worker(
    start: Start, session: Session, queue: str, joblog: Log, states: States, number: signal.Signals
) -> None:
    send(session, queue, "sleep 1", "fail", "rest", "next batch")
    running = start("consume", "--type", queue, "--worker", WORKER, "--batch", 3, "--once")
    until(lambda: "sleep 1" in joblog.read())
    assert running.stop(number) == 0, running.stderr
    assert bodies(joblog) == ["sleep 1", "woke", "end of file"]
    assert outcomes(states) == dict.fromkeys(("fail", "rest", "next batch"), ("N", 0, None))
    (pid,) = starts(joblog)
    assert not is_alive(pid)


def test_a_worker_that_stays_at_end_of_file_is_ended(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "a")
    command = ("consume", "--type", queue, "--worker", f"{WORKER} stays", "--shutdown-timeout", 1)
    running = start(*command)
    until(lambda: states() == {} and bodies(joblog))
    began = time.monotonic()
    assert running.stop() == 0, running.stderr
    assert 0.8 < time.monotonic() - began < 60
    assert "end of file" in joblog.read()
    (pid,) = starts(joblog)
    assert not is_alive(pid)


def test_second_signal_kills_workers(start: Start, session: Session, queue: str, joblog: Log, states: States) -> None:
    send(session, queue, "stubborn")
    running = start("consume", "--type", queue, "--worker", WORKER)
    until(lambda: bodies(joblog))
    running.process.send_signal(signal.SIGTERM)
    until(lambda: "running handlers may finish" in running.stderr)
    time.sleep(1.1)  # one that comes sooner is the same signal
    assert running.stop() == 143
    (pid,) = starts(joblog)
    until(lambda: not is_alive(pid))
    assert states()["stubborn"]["state"] == "A"


def test_a_killed_runner_leaves_no_worker_process_and_its_messages_are_retried(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "sleep 3", "rest")
    first = start("consume", "--type", queue, "--worker", WORKER, "--lease", 2)
    until(lambda: bodies(joblog))
    first.process.kill()
    first.wait()
    (pid,) = starts(joblog)
    until(lambda: not is_alive(pid), seconds=20)
    assert {state for state, _, _ in outcomes(states).values()} <= {"A", "N"} and len(states()) == 2
    second = start("consume", "--type", queue, "--worker", WORKER)
    until(lambda: states() == {})
    assert second.stop() == 0


def test_a_worker_that_ends_between_batches_costs_nothing(
    start: Start, session: Session, queue: str, joblog: Log, states: States
) -> None:
    send(session, queue, "a")
    running = start("consume", "--type", queue, "--worker", WORKER)
    until(lambda: bodies(joblog) and states() == {})
    os.kill(starts(joblog)[0], signal.SIGKILL)
    time.sleep(0.5)
    send(session, queue, "dead b")
    until(lambda: outcomes(states) == {"dead b": ("E", 1, "b")})
    assert running.stop() == 0


# ---- the workers of the examples -----------------------------------------------------------------

EXAMPLES = FOLDER.parents[1] / "examples" / "workers"
INTERPRETERS = {
    "worker.py": [sys.executable],
    "worker.js": ["node"],
    "worker.pl": ["perl"],
    "worker.php": ["php"],
    "worker.rb": ["ruby"],
    "Main.go": ["go", "run"],
}


def test_each_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == set(INTERPRETERS)
    page = (EXAMPLES.parents[1] / "docs" / "languages" / "workers.md").read_text("utf-8")
    assert all(f"(../../examples/workers/{name})" in page for name in INTERPRETERS)


@pytest.mark.parametrize("name", INTERPRETERS)
def test_example_of_a_worker(consume: Runner, session: Session, queue: str, states: States, name: str) -> None:
    if shutil.which(INTERPRETERS[name][0]) is None:
        pytest.skip(f"no {INTERPRETERS[name][0]} on this machine")
    hostile = '\u2028\u2029\x85\r\n\t"\\ é😀\x01\x7f' + "x" * 200_000
    send(session, queue, *(f"{n}{hostile}" for n in range(20)), f"dead{hostile}", "fail")
    done = consume("--batch", 30, "--timeout", 60, worker=shlex.join([*INTERPRETERS[name], str(EXAMPLES / name)]))
    assert done.returncode == 0, done.stderr
    left = states()
    assert outcomes(states) == {f"dead{hostile}": ("E", 1, "can never succeed"), "fail": ("N", 1, "not now")}
    delay = (left["fail"]["run_at"] - left[f"dead{hostile}"]["changed_at"]).total_seconds()
    assert 59 < delay < 61


def test_the_example_in_node_runs_beside_a_package_of_modules(
    consume: Runner, session: Session, queue: str, states: States, tmp_path: Path
) -> None:
    if shutil.which("node") is None:
        pytest.skip("no node on this machine")
    shutil.copy(EXAMPLES / "worker.js", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    send(session, queue, "a", "fail")
    done = consume(worker=f"node {tmp_path / 'worker.js'}")
    assert done.returncode == 0, done.stderr
    assert outcomes(states) == {"fail": ("N", 1, "not now")}
