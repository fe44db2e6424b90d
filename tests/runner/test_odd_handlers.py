"""Anything a handler does gives its message an outcome; its neighbours are finished, and the consumer continues."""

import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import odd
import pytest
from rowqueue.databases import Database, Session
from servers import Server
from support.capabilities import BY_DATABASE
from support.polling import SHAPES, Polled
from support.processes import Log, Running
from support.queues import Queue, make_feed

pytestmark = pytest.mark.level(1)

Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]

WORKER = f"{sys.executable} {Path(odd.__file__)}"
EXEC = """read -r line; case "$line" in
*'"body": "fail'*) exit 3;;
*'"body": "dead'*) exit 65;;
*'"body": "kill'*) kill -9 $$;;
*'"body": "binary'*) printf '\\377\\376\\000\\n' >&2; exit 1;;
*'"body": "long'*) head -c 3000000 /dev/zero >&2; exit 1;;
*'"body": "deaf'*) exec 2>&-; exit 1;;
esac"""

# The mode: options of `runner consume`, and the odd words. Handlers of a whole list get one message at a time.
MODES: dict[str, tuple[list[Any], Iterable[str]]] = {
    "one": (["--handler", "odd:one"], odd.ERRORS),
    "list": (["--handler", "odd:whole", "--batch", 1], odd.ERRORS),
    "blame": (["--handler", "odd:blame", "--batch", 100], odd.ERRORS),
    "async": (["--handler", "odd:one_async"], [*odd.ERRORS, *odd.ASYNC]),
    "async list": (["--handler", "odd:whole_async", "--batch", 1], [*odd.ERRORS, *odd.ASYNC]),
    "results": (["--handler", "odd:one", "--keep-results"], [*odd.ERRORS, *odd.RESULTS]),
    "worker": (
        ["--worker", WORKER, "--keep-results"],
        ["rubbish", "binary", "digits", "deep", "nan", "surrogate", "long", "never after", "half", "exit", "kill"],
    ),
    "exec": (["--exec", EXEC, "--batch", 2, "--concurrency", 4], ["fail", "dead", "kill", "binary", "long", "deaf"]),
    "transaction": (["--handler", "odd:one", "--transaction"], [*odd.ERRORS, *odd.TRANSACTION]),
}


def await_end(running: Running, unfinished: Callable[[], list[str]]) -> None:
    """Wait until everything has an outcome; the consumer must be alive then."""
    deadline = time.monotonic() + 30
    while (left := unfinished()) and running.process.poll() is None:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert running.process.poll() is None, running.stderr[-3000:]


DONE = {name for name, (_, is_committed) in odd.TRANSACTION.items() if is_committed}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.level(3, one=True)
def test_odd_ends_of_a_handler_fail_the_message_and_nothing_else(
    start: Start, session: Session, queue: str, sql: Sql, server: Server, mode: str
) -> None:
    arguments, words = MODES[mode]
    view = server.table("message_state")

    def states() -> dict[str, dict[str, Any]]:
        return {row["body"]: row for row in sql(f"SELECT * FROM {view} WHERE type = %s", queue)}

    def unfinished() -> list[str]:
        return [body for body, row in states().items() if row["state"] in "NA"]

    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive"}',
    )
    words = list(words)
    session.call("send_batch", queue, "\n".join(body for word in words for body in (word, f"good {word}")))
    running = start("consume", "--type", queue, *arguments)
    await_end(running, unfinished)
    session.call("send", queue, "one more")
    await_end(running, unfinished)
    assert running.stop(signal.SIGTERM) == 0, running.stderr

    found = states()
    neighbours = {body: row["state"] for body, row in found.items() if body not in words}
    assert neighbours == dict.fromkeys([*(f"good {word}" for word in words), "one more"], "C")
    for word in words:
        row = found[word]
        assert (row["state"] == "E" and row["error"]) or (row["state"] == "C" and word in DONE), (word, row)
    # asyncio logs the error of a task that the handler forgot.
    assert "Traceback" not in running.stderr.partition("Task exception was never retrieved")[0]
    assert "\x1b" not in running.stderr


@pytest.mark.level(1)
def test_odd_ends_of_a_handler_fail_the_row_and_nothing_else(
    start: Start, session: Session, queue: str, sql: Sql, database: Database
) -> None:
    table = Polled(queue, session, sql, BY_DATABASE[database.name], SHAPES["a"]).create(max_attempts=1)
    words = list(odd.ERRORS)
    table.insert(*(v for word in words for v in (word, f"good {word}")))
    running = start("table", "consume", table.name, "--handler", "odd:one")
    unfinished = lambda: [v for v, status in table.left().items() if status in "NA"]  # noqa: E731
    await_end(running, unfinished)
    table.insert("one more")
    await_end(running, unfinished)
    assert running.stop(signal.SIGTERM) == 0, running.stderr
    assert table.left() == {v: "E" if v in words else "D" for v in table.left()}
    assert all(row["error"] for row in table.peek("E").values())


@pytest.mark.level(1)
def test_a_row_of_a_feed_is_retried_after_an_odd_end(
    start: Start, session: Session, queue: str, sql: Sql, database: Database, joblog: Log
) -> None:
    feed = make_feed(Queue(queue, session, sql, BY_DATABASE[database.name]))
    words = list(odd.ERRORS)
    for number, word in enumerate(words):
        feed.write(number)
        feed.change(number, word)
    feed.publish()
    running = start("feed", "consume", feed.name, "--consumer", "c", "--handler", "odd:row")
    await_end(running, lambda: words[feed.call("list_feeds")[0]["feed_position"] :])
    assert running.stop(signal.SIGTERM) == 0, running.stderr
    once = ("mute discard", "quotes")  # DeadLetter passes over its row; every other one is retried
    assert joblog.read() == [[word, n] for word in words for n in (1, 2)[: 1 if word in once else 2]]
    feed.call("drop_feed")
