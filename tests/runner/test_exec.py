"""`runner consume --exec`: exit statuses and errors of commands; the rest is in test_consume.py."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Session
from support.messages import States, outcomes, send
from support.processes import Running, is_alive
from support.waiting import until

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]

BODY = "body=$(python3 -c 'import json, sys; print(json.load(sys.stdin)[\"body\"])');"


@pytest.fixture
def consume(runner: Runner, session: Session, queue: str) -> Runner:
    """Drains the queue with a command; failed messages are not retried during the test."""
    session.call("set_queue", queue, '{"backoff_seconds": 300, "backoff_max_seconds": 300}')
    return lambda command, *more: runner("consume", "--type", queue, "--exec", command, "--drain", *more)


def pids(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize("number", [126, 127])
def test_a_command_that_cannot_be_run_ends_the_consumer_and_costs_no_attempt(
    consume: Runner, session: Session, queue: str, states: States, number: int
) -> None:
    send(session, queue, "fine", "bad", "rest")
    done = consume(f'{BODY} if [ "$body" = bad ]; then echo "no such thing" >&2; exit {number}; fi')
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == f"runner: the command cannot be run: exit status {number}: no such thing"
    assert outcomes(states) == {"bad": ("N", 0, None), "rest": ("N", 0, None)}


def test_a_real_command_that_is_not_there(consume: Runner, session: Session, queue: str, states: States) -> None:
    send(session, queue, "a")
    done = consume("/nowhere/at/all")
    assert done.returncode == 1
    assert "exit status 127" in done.stderr.splitlines()[-1]
    assert outcomes(states) == {"a": ("N", 0, None)}


def test_timeout_ends_the_command_and_what_it_started(
    consume: Runner, session: Session, queue: str, states: States, tmp_path: Path
) -> None:
    send(session, queue, "slow", "fast")
    seen, asked = tmp_path / "pids", tmp_path / "asked"
    child = f"trap 'echo asked >> {asked}; exit' TERM; while :; do sleep 0.1; done"
    slow = f"({child}) & echo $$ $! >> {seen}; trap 'sleep 1; exit 1' TERM; sleep 601"
    command = f"if grep -q '\"slow\"'; then {slow}; fi"
    done = consume(command, "--timeout", 3)
    assert done.returncode == 0, done.stderr
    assert outcomes(states) == {"slow": ("N", 1, "timed out after 3 s")}
    assert len(pids(seen)) == 2
    until(lambda: not any(map(is_alive, pids(seen))))
    assert asked.read_text() == "asked\n"


def test_timeout_kills_what_does_not_listen(
    consume: Runner, session: Session, queue: str, states: States, tmp_path: Path
) -> None:
    send(session, queue, "deaf")
    seen = tmp_path / "pids"
    began = time.monotonic()
    done = consume(f"trap '' TERM; echo $$ >> {seen}; while :; do sleep 0.1; done", "--timeout", 0.5)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began > 5.5
    assert outcomes(states) == {"deaf": ("N", 1, "timed out after 0.5 s")}
    until(lambda: not any(map(is_alive, pids(seen))))


def test_an_inherited_pipe_is_not_waited_for(
    consume: Runner, session: Session, queue: str, states: States, tmp_path: Path
) -> None:
    send(session, queue, "a", "b")
    seen = tmp_path / "pids"
    began = time.monotonic()
    done = consume(f"sleep 60 > /dev/null < /dev/null & echo $! >> {seen}; echo last words >&2; exit 3")
    took = time.monotonic() - began
    try:
        assert done.returncode == 0, done.stderr
        assert took < 50, "waited for a grandchild"
        assert outcomes(states) == {body: ("N", 1, "exit status 3: last words") for body in "ab"}
        assert all(map(is_alive, pids(seen))), "what a command leaves behind survives a runner that ends in order"
    finally:
        subprocess.run(["kill", *map(str, pids(seen))], check=False)


def test_status_75_is_a_retry(consume: Runner, session: Session, queue: str, states: States) -> None:
    send(session, queue, "a")
    assert consume("echo mailbox is busy >&2; exit 75").returncode == 0
    assert outcomes(states) == {"a": ("N", 1, "exit status 75: mailbox is busy")}


def test_closed_stderr_is_no_end(consume: Runner, session: Session, queue: str, states: States) -> None:
    send(session, queue, "a")
    done = consume("echo early >&2; exec 2>&-; sleep 1; exit 65")
    assert done.returncode == 0, done.stderr
    assert outcomes(states) == {"a": ("E", 1, "early")}


@pytest.mark.parametrize("timeout", [[], ["--timeout", 600]])
def test_a_killed_runner_leaves_no_command(
    start: Start, session: Session, queue: str, states: States, tmp_path: Path, timeout: list[object]
) -> None:
    send(session, queue, "a", "b")
    seen = tmp_path / "pids"
    command = f"trap '' TERM HUP INT; sleep 600 & echo $$ $! >> {seen}; sleep 601"
    options = ["--batch", 1, "--concurrency", 2, "--lease", 2, *timeout]
    running = start("consume", "--type", queue, "--exec", command, *options)
    until(lambda: len(pids(seen)) == 4)
    assert all(map(is_alive, pids(seen)))
    running.process.kill()
    running.wait()
    until(lambda: not any(map(is_alive, pids(seen))), seconds=10)
    assert {state for state, _, _ in outcomes(states).values()} <= {"A", "N"} and len(outcomes(states)) == 2
    second = start("consume", "--type", queue, "--exec", "true")
    until(lambda: outcomes(states) == {})
    assert second.stop() == 0


def test_a_killed_guard_is_replaced(start: Start, session: Session, queue: str, states: States, tmp_path: Path) -> None:
    session.call("set_queue", queue, '{"backoff_seconds": 0, "backoff_max_seconds": 0}')
    send(session, queue, "a")
    seen = tmp_path / "groups"
    command = f"ps -o pgid= -p $$ >> {seen}; if [ $(wc -l < {seen}) = 1 ]; then sleep 600; fi"
    running = start("consume", "--type", queue, "--exec", command)
    until(lambda: pids(seen))
    os.killpg(pids(seen)[0], signal.SIGKILL)
    until(lambda: outcomes(states) == {})
    assert running.stop() == 0
    first, second = pids(seen)
    assert first != second
