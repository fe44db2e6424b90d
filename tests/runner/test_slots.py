"""--concurrency: how many messages are handled at a time, and what a consumer holds back from others."""

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from rowqueue import Consumer, Message
from rowqueue.consume.claims import Pace
from rowqueue.databases import Database, Session
from support.messages import counts, send
from support.processes import Log, Running
from support.waiting import until

Start = Callable[..., Running]
Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_as_many_messages_are_handled_at_a_time_as_concurrency_says(
    database: Database, session: Session, queue: str, kind: str
) -> None:
    """Each handler waits until four run: if a thread had claimed more than one, it would wait for ever."""
    import asyncio

    four = threading.Barrier(4)

    def handle(message: Message) -> None:
        time.sleep(0.1)  # so long that a claim brings one
        four.wait(60)

    async def handle_async(message: Message) -> None:
        await asyncio.to_thread(handle, message)

    handler = handle if kind == "sync" else handle_async
    send(session, queue, *"abcdefgh")
    Consumer(database.url, queue, handler, concurrency=4, batch=1000, drain=True).run()
    assert session.call("peek", queue, None, 10) == []


@pytest.mark.parametrize("how", ["--handler", "--exec", "--worker"])
def test_a_slow_handler_holds_nothing_back_from_another_consumer(
    start: Start, session: Session, queue: str, joblog: Log, how: str
) -> None:
    handler = {"--handler": "jobs:obey", "--exec": "sleep 600", "--worker": "sleep 600"}[how]
    send(session, queue, *["sleep 600"] * 6)
    first = start("consume", "--type", queue, how, handler, "--concurrency", 2)
    until(lambda: counts(session, queue) == (4, 2))
    second = start("consume", "--type", queue, how, handler)
    until(lambda: counts(session, queue) == (3, 3))
    for running in (first, second):
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()


@pytest.mark.parametrize("name", ["obey", "obey_async"])
def test_messages_that_were_done_are_not_repeated_after_a_kill(
    start: Start, runner: Runner, session: Session, queue: str, joblog: Log, name: str
) -> None:
    done = ["sleep 0.1", "sleep 0.11", "sleep 0.12"]
    send(session, queue, *done, "sleep 600", "last")
    options = ("--type", queue, "--handler", f"jobs:{name}", "--lease", 1)
    running = start("consume", *options)
    until(lambda: "sleep 600" in joblog.read())
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()
    until(lambda: session.call("rescue_expired", queue)[0]["affected"] == 1)
    running = start("consume", *options)
    until(lambda: joblog.read().count("sleep 600") == 2)
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()
    handled = Counter(joblog.read())
    assert [handled[body] for body in done] == [1, 1, 1]


def test_the_claims_of_a_fast_handler_grow_and_shrink_when_it_becomes_slow() -> None:
    pace = Pace(1, 100)
    sizes = [pace.size]
    for seconds in [0.00001] * 4 + [1.0] + [0.001] * 12 + [0.5]:
        pace.ran(pace.size, seconds * pace.size)
        sizes.append(pace.size)
    assert sizes[:7] == [1, 4, 16, 64, 100, 1, 1], "fast, then one of a second"
    assert 10 < sizes[-2] <= 20, "a millisecond each"
    assert sizes[-1] == 1
    assert Pace(3, 100).size == 3 and Pace(3, 2).size == 2
    pace = Pace(1, 100)
    pace.ran(1, 0.0)
    assert pace.size == 4


@pytest.mark.parametrize(("batch", "seen"), [(None, [3, 2, 1]), (3, [3, 3, 3])])
def test_transaction_takes_one_message_a_transaction_unless_batch_says_otherwise(
    database: Database, session: Session, queue: str, batch: int | None, seen: list[int]
) -> None:
    """What others see during each handler: the messages of transactions that have not been committed."""
    send(session, queue, *"abc")
    found: list[int] = []

    def handle(message: Message) -> None:
        found.append(len(session.call("peek", queue, "N", 10)))

    Consumer(database.url, queue, handle, transaction=True, batch=batch, drain=True).run()
    assert found == seen
    assert session.call("peek", queue, None, 10) == []
