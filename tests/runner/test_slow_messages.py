"""One message of a claim takes long: what was done before it is finished, and what waits behind it is given back."""

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rowqueue import Consumer, DeadLetter, Message
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from servers import Server
from support.messages import counts, send
from support.processes import Log, Running
from support.waiting import until

pytestmark = pytest.mark.level(1)

Start = Callable[..., Running]
Runner = Callable[..., subprocess.CompletedProcess[str]]

# More than a millisecond for each message: it gets one at a time.
WORKER = f"python3 {Path(__file__).with_name('obedient_worker.py')} slowly"
# As jobs:obey.
SHELL = r"""
body=$(sed 's/.*"body": "\([^"]*\)".*/\1/')
echo "\"$body\"" >> "$JOBS_LOG"
case $body in sleep*) exec $body;; esac
"""
HOW = {
    "sync": ("--handler", "jobs:obey"),
    "async": ("--handler", "jobs:obey_patiently"),
    "worker": ("--worker", WORKER),
    "exec": ("--exec", SHELL),
}


def kill(running: Running) -> None:
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()


@pytest.mark.parametrize("how", HOW)
def test_a_slow_message_holds_nothing_back_and_a_kill_repeats_only_it(
    start: Start, runner: Runner, session: Session, queue: str, joblog: Log, how: str
) -> None:
    """The fast ones before it make the claims long."""
    fast = 40 if how in {"exec", "worker"} else 300
    send(session, queue, *["fast"] * fast, "sleep 600", *["fast"] * 99)
    first = start("consume", "--type", queue, *HOW[how])
    until(lambda: "sleep 600" in joblog.read() and sum(counts(session, queue)) == 100)  # all before it are finished
    until(lambda: counts(session, queue) == (99, 1))
    assert joblog.read().count("fast") == fast
    done = runner("consume", "--type", queue, *HOW[how], "--drain")
    assert done.returncode == 0, done.stderr
    assert counts(session, queue) == (0, 1)
    kill(first)
    assert joblog.read().count("fast") == fast + 99


@pytest.mark.parametrize("how", ["sync", "async"])
def test_after_a_kill_only_the_running_messages_are_repeated(
    start: Start, session: Session, queue: str, joblog: Log, how: str
) -> None:
    """Three run, and a fourth slot handles the rest: the fast ones are done and finished."""
    bodies = [f"fast {n}" for n in range(600)]
    send(session, queue, *bodies[:200], "sleep 601", *bodies[200:400], "sleep 602", *bodies[400:], "sleep 603")
    running = start("consume", "--type", queue, *HOW[how], "--concurrency", 4, "--lease", 1)
    until(lambda: counts(session, queue) == (0, 3))
    kill(running)
    until(lambda: session.call("rescue_expired", queue) and counts(session, queue) == (3, 0))
    left = sorted(row["body"] for row in session.call("peek", queue, "N", 10))
    assert left == ["sleep 601", "sleep 602", "sleep 603"]
    handled = Counter(joblog.read())
    assert [handled[body] for body in (*bodies, *left)] == [1] * 603


@pytest.mark.parametrize("how", HOW)
def test_a_consumer_that_is_alone_handles_what_it_gave_back(
    runner: Runner, session: Session, queue: str, joblog: Log, how: str
) -> None:
    send(session, queue, *["fast"] * 60, "sleep 0.3", *["fast"] * 40, "sleep 0.3", *["fast"] * 40)
    done = runner("consume", "--type", queue, *HOW[how], "--drain")
    assert done.returncode == 0, done.stderr
    assert session.call("peek", queue, None, 10) == []
    assert joblog.read().count("fast") == 140
    assert "lost" not in done.stderr


@pytest.mark.level(3, one=True)
@pytest.mark.parametrize("how", ["sync", "async", "worker"])
def test_messages_that_are_given_back_count_for_no_limit(
    runner: Runner, session: Session, queue: str, joblog: Log, how: str
) -> None:
    send(session, queue, *["fast"] * 60, "sleep 0.3", *["fast"] * 100)
    done = runner("consume", "--type", queue, *HOW[how], "--max-messages", 120)
    assert done.returncode == 0, done.stderr
    bodies = joblog.read()
    assert bodies.count("fast") == 119 and "sleep 0.3" in bodies
    assert counts(session, queue) == (41, 0)


@pytest.mark.level(3, one=True)
def test_an_outage_while_a_part_is_finished_repeats_nothing(
    private_server: Server, start: Start, joblog: Log, queue: str
) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    session = open_database(url).connect("test")
    send(session, queue, *["fast"] * 300, "sleep 4", *["fast"] * 99)
    session.close()
    running = start("consume", "--type", queue, *HOW["sync"], "--lease", 60, url=url)
    until(lambda: "sleep 4" in joblog.read())
    time.sleep(0.03)  # about when the part is finished
    private_server.stop("immediate")
    private_server.start()
    view = private_server.table("message_state")
    until(lambda: private_server.query(url, f"SELECT count(*) AS n FROM {view}")[0]["n"] == 0, seconds=60)
    assert running.stop() == 0, running.stderr
    bodies = joblog.read()
    assert (bodies.count("fast"), bodies.count("sleep 4")) == (399, 1)


def test_once_handles_its_whole_batch(runner: Runner, session: Session, queue: str, joblog: Log) -> None:
    send(session, queue, "fast", "sleep 0.3", *["fast"] * 10)
    done = runner("consume", "--type", queue, "--handler", "jobs:obey", "--once")
    assert done.returncode == 0, done.stderr
    assert joblog.read() == ["fast", "sleep 0.3", "woke", *["fast"] * 8]


def test_the_order_of_groups_is_kept(database: Database, session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"ordered":1}')
    for n in range(40):
        for group in "abcdefgh":
            session.call("send_message", queue, str(n), None, None, group)
    seen: dict[str | None, list[int]] = {}

    def handle(message: Message) -> None:
        seen.setdefault(message.group_key, []).append(int(message.body))
        time.sleep(0.1 if message.group_key == "c" and message.body.endswith("7") else 0)

    Consumer(database.url, queue, handle, concurrency=3, drain=True).run()
    assert seen == {group: list(range(40)) for group in "abcdefgh"}


def test_a_ring_and_a_limit_continue_beside_a_slow_message(database: Database, session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"ring":1,"max_active":30}')
    send(session, queue, *map(str, range(200)))
    handled: list[str] = []

    def handle(message: Message) -> None:
        handled.append(message.body)
        time.sleep(0.4 if message.body in {"50", "51", "120"} else 0)

    Consumer(database.url, queue, handle, concurrency=2, drain=True).run()
    assert sorted(handled, key=int) == [str(n) for n in range(200)]
    assert session.call("peek", queue, None, 10) == []


@pytest.mark.level(1)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_outcomes_before_a_slow_message_are_stored_while_it_runs(
    database: Database, session: Session, queue: str, kind: str
) -> None:
    """Results, failures and dead letters; what waits behind it is ready."""
    import asyncio

    session.call("set_queue", queue, '{"on_complete":"archive"}')
    # The first claims are short; these fill them.
    send(session, queue, *["first"] * 85, "fail", "dead", "fine", "slow", *["last"] * 20)
    may_end, begun = threading.Event(), list[int]()

    def handle(message: Message) -> str | None:
        if message.body == "fail":
            raise ValueError("not now")
        if message.body == "dead":
            raise DeadLetter("never")
        if message.body == "slow":
            begun.append(message.id)
            assert may_end.wait(60)
        return message.body

    async def handle_async(message: Message) -> str | None:
        return await asyncio.to_thread(handle, message) if message.body == "slow" else handle(message)

    handler: Any = handle if kind == "sync" else handle_async
    consumer = Consumer(database.url, queue, handler, keep_results=True)
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        until(lambda: [row["body"] for row in session.call("peek", queue, "A", 200)] == ["slow"])
        found = {row["body"]: (state, row["id"]) for state in "NEC" for row in session.call("peek", queue, state, 200)}
        assert [found[body][0] for body in ("fail", "dead", "fine", "last")] == ["N", "E", "C", "N"]
        assert session.call("get_result", found["fine"][1])[0]["result"] == "fine"
        assert counts(session, queue)[0] == 20
    finally:
        consumer.stop()
        may_end.set()
        thread.join(60)
    [row] = session.call("get_result", *begun)
    assert (row["state"], row["result"]) == ("C", "slow")
    assert counts(session, queue)[1] == 0
