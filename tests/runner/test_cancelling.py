"""Cancelling a message that is handled: its handler learns of it, and the message is deleted; progress."""

import asyncio
import json
import shlex
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from rowqueue import Cancelled, Consumer, Message
from rowqueue.databases import Database, Session
from rowqueue.extras.monitor.looking import MessageDetail
from rowqueue.testing import message, run
from support.processes import FOLDER
from support.waiting import until

LEASE = 2  # a heartbeat each 0.7 seconds


def consumed(database: Database, queue: str, handler: Any, **more: Any) -> Consumer:
    """A consumer that has ended after it has handled what there is."""
    consumer = Consumer(database.url, queue, handler, drain=True, lease=LEASE, **more)
    consumer.run()
    return consumer


def test_a_handler_learns_of_it_and_the_message_is_not_retried(
    database: Database, session: Session, queue: str
) -> None:
    [id] = [session.call("send", queue, "x")[0]["id"]]
    [other] = [session.call("send", queue, "y")[0]["id"]]
    seen: list[tuple[str, int]] = []

    def handle(message: Message) -> None:
        seen.append((message.body, message.attempt))
        if message.body == "y":
            return
        assert not message.cancelled
        assert session.call("cancel", message.id) == [{"affected": 1, "state": "A"}]
        until(lambda: message.cancelled, "the handler learns of it", 10)
        raise RuntimeError("ended")

    consumed(database, queue, handle)
    assert sorted(seen) == [("x", 1), ("y", 1)]
    assert [session.call("get_state", one)[0]["state"] for one in (id, other)] == [None, None]


def test_a_handler_that_ends_well_all_the_same_completes_its_message(
    database: Database, session: Session, queue: str
) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    id = session.call("send", queue, "x")[0]["id"]
    consumed(database, queue, lambda message: session.call("cancel", message.id) and None)
    assert session.call("get_state", id) == [{"state": "C"}]


def test_an_async_handler_is_cancelled_and_its_neighbours_are_not(
    database: Database, session: Session, queue: str
) -> None:
    for body in "abc":
        session.call("send", queue, body)
    ended: list[str] = []

    async def handle(message: Message) -> None:
        try:
            if message.body == "b":
                await asyncio.to_thread(session.call, "cancel", message.id)
                await asyncio.sleep(60)
            else:
                await asyncio.sleep(1.5)
        except asyncio.CancelledError:
            assert message.cancelled
            ended.append(f"{message.body} cancelled")
            raise
        ended.append(message.body)

    began = time.monotonic()
    consumed(database, queue, handle, concurrency=3)
    assert time.monotonic() - began < 30
    assert sorted(ended) == ["a", "b cancelled", "c"]
    assert session.call("peek", queue) == session.call("peek", queue, "E") == []


def test_the_next_step_says_so_and_what_waits_in_the_batch_is_not_begun(
    database: Database, session: Session, queue: str
) -> None:
    ids = [session.call("send", queue, "x")[0]["id"] for _ in range(2)]
    began: list[int] = []

    def handle(message: Message) -> None:
        began.append(message.id)
        for id in ids:
            session.call("cancel", id)
        with pytest.raises(Cancelled):
            message.steps.save("a", 1)
        assert message.cancelled
        with pytest.raises(Cancelled):
            message.steps.progress(1, 1)
        with pytest.raises(Cancelled):
            message.steps.sleep(5)
        time.sleep(1.5)
        message.steps.run("b", str)

    consumed(database, queue, handle, batch=2)
    assert began == ids[:1]
    assert [session.call("get_state", id)[0]["state"] for id in ids] == [None, None]


def test_a_command_is_ended(database: Database, session: Session, queue: str, runner: Any) -> None:
    id = session.call("send", queue, "x")[0]["id"]
    ended: list[subprocess.CompletedProcess[str]] = []
    command = ("consume", "--type", queue, "--drain", "--lease", str(LEASE), "--exec", "sleep 60")
    thread = threading.Thread(target=lambda: ended.append(runner(*command)))
    thread.start()
    until(lambda: session.call("get_state", id)[0]["state"] == "A" or ended, "the message is claimed", 20)
    assert not ended, ended
    began = time.monotonic()
    assert session.call("cancel", id) == [{"affected": 1, "state": "A"}]
    thread.join(40)
    assert time.monotonic() - began < 30
    assert ended[0].returncode == 0, ended[0].stderr
    assert "1 cancelled" in ended[0].stderr
    assert session.call("get_state", id) == [{"state": None}]


def test_a_worker_asks_and_reports_how_far_it_is(database: Database, session: Session, queue: str, runner: Any) -> None:
    id = session.call("send", queue, "x")[0]["id"]
    ended: list[subprocess.CompletedProcess[str]] = []
    worker = shlex.join([sys.executable, str(FOLDER / "cancelled_worker.py")])
    command = ("consume", "--type", queue, "--drain", "--lease", str(LEASE), "--worker", worker)
    thread = threading.Thread(target=lambda: ended.append(runner(*command)))
    thread.start()
    until(lambda: session.call("list_steps", id) != [], "the worker has reported how far it is", 20)
    [step] = session.call("list_steps", id)
    assert (step["step"], json.loads(step["step_value"])) == ("progress", {"done": 1, "total": 3, "note": "page 1"})
    assert session.call("cancel", id) == [{"affected": 1, "state": "A"}]
    thread.join(40)
    assert ended[0].returncode == 0, ended[0].stderr
    assert "1 cancelled" in ended[0].stderr
    assert session.call("get_state", id) == [{"state": None}]


def test_progress_is_written_once_a_second_and_at_the_end(
    database: Database, session: Session, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    session.call("send", queue, "x")
    written: list[Any] = []

    def handle(message: Message) -> None:
        real = message.steps._progress
        monkeypatch.setattr(type(message.steps), "_progress", lambda self, *of: (written.append(of), real(*of)))
        for n in range(1_001):
            message.steps.progress(n, 1_000, "lines")
        assert json.loads(session.call("list_steps", message.id)[0]["step_value"]) == {
            "done": 1_000,
            "total": 1_000,
            "note": "lines",
        }
        assert message.steps.get("progress")["done"] == 1_000

    consumed(database, queue, handle)
    assert written[0][0] == 0 and written[-1][0] == 1_000 and len(written) < 10


def handle_lines(message: Message) -> None:
    for n in range(3):
        message.steps.save("line", n)


@pytest.mark.level(1)
def test_a_handler_can_be_tested_with_a_cancelled_message() -> None:
    assert run(handle_lines, message()).done
    outcome = run(handle_lines, message(cancelled=True))
    assert outcome.cancelled and outcome.steps == {}


@pytest.mark.level(1)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('{"done":3,"total":10,"note":"page 3"}', "3 of 10 (30 %), page 3"),
        ('{"done":1200}', "1,200"),
        *(
            (text, "")
            for text in (
                None,
                "",
                "[]",
                "7",
                '"x"',
                "{}",
                '{"done":"x"}',
                '{"done":Infinity}',
                '{"done":NaN}',
                "[" * 999,
            )
        ),
    ],
)
def test_any_text_may_be_kept_as_progress_and_those_who_look_are_not_hurt(value: str | None, shown: str) -> None:
    steps = [{"step": "progress", "step_value": value}]
    assert MessageDetail(datetime.now(UTC), None, None, steps, [], [], {}).progress == shown
