"""message.steps: a handler, or a worker in any language, continues after the last step that was kept."""

import asyncio
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import rowqueue
from rowqueue import Consumer, Message
from rowqueue.databases import Database, Session
from rowqueue.messages import Snoozed
from support.processes import FOLDER

Runner = Callable[..., subprocess.CompletedProcess[str]]

WORKER = shlex.join([sys.executable, str(FOLDER / "step_worker.py")])


def send(session: Session, queue: str, *bodies: str) -> list[int]:
    return [session.call("send", queue, body)[0]["id"] for body in bodies]


def consume(database: Database, queue: str, handler: Callable[[Message], Any], **more: Any) -> None:
    Consumer(database.url, queue, handler, drain=True, **more).run()


def test_a_retry_continues_after_the_last_step(database: Database, session: Session, queue: str) -> None:
    calls: list[str] = []

    def pay() -> dict[str, Any]:
        calls.append("pay")
        return {"charge": "ch_1", "parts": (1, 2)}

    def pack() -> None:
        calls.append("pack")

    def handle(message: Message) -> None:
        assert message.steps.run("pay", pay) == {"charge": "ch_1", "parts": [1, 2]}
        if message.attempt == 1:
            raise rowqueue.Retry("the power is off", 0)
        assert message.steps.run("pack", pack) is None
        assert message.steps.run("pack", pack) is None
        assert message.steps.all() == {"pay": {"charge": "ch_1", "parts": [1, 2]}, "pack": None}

    [id] = send(session, queue, "x")
    consume(database, queue, handle)
    assert calls == ["pay", "pack"]
    assert session.call("get_state", id)[0]["state"] is None


def test_a_position_is_kept_again_and_again(database: Database, session: Session, queue: str) -> None:
    handled: list[int] = []

    def handle(message: Message) -> None:
        for n in range(message.steps.get("done", 0), 10):
            handled.append(n)
            message.steps.save("done", n + 1)
            if n == 4 and message.attempt == 1:
                raise rowqueue.Retry("", 0)

    send(session, queue, "x")
    consume(database, queue, handle)
    assert handled == list(range(10))


def test_a_step_in_the_handlers_own_transaction_is_undone_with_it(
    database: Database, session: Session, queue: str
) -> None:
    tries: list[int] = []

    def handle(message: Message) -> None:
        own = database.connect("own")
        try:
            with own.transaction() as connection:
                message.steps.run("count", lambda: tries.append(message.attempt), connection)
                assert message.steps.all(connection) == {"count": None}
                if message.attempt == 1:
                    raise rowqueue.Retry("", 0)
            assert message.steps.all() == {"count": None}
        finally:
            own.close()

    send(session, queue, "x")
    consume(database, queue, handle)
    assert tries == [1, 2]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_sleep_puts_the_message_back_and_passes_at_the_next_attempt(
    database: Database, session: Session, queue: str, concurrency: int
) -> None:
    began: dict[str, list[float]] = {}

    def handle(message: Message) -> None:
        assert message.attempt == 1
        began.setdefault(message.body, []).append(time.monotonic())
        if message.body != "short":
            message.steps.sleep(1)
            message.steps.sleep(1)

    send(session, queue, "long", "short", "longer")
    Consumer(database.url, queue, handle, idle_timeout=2.5, concurrency=concurrency).run()
    assert {body: len(times) for body, times in began.items()} == {"long": 3, "short": 1, "longer": 3}
    for times in (began["long"], began["longer"]):
        assert 2 <= times[-1] - times[0] < 6
    assert session.call("peek", queue, "N") == session.call("peek", queue, "A") == []


def test_a_snoozed_message_counts_no_attempt(database: Database, session: Session, queue: str) -> None:
    def handle(message: Message) -> None:
        assert message.attempt == 1
        try:
            message.steps.snooze(3600)
        except Exception:
            raise AssertionError("an `except Exception` must not keep the message") from None

    [id] = send(session, queue, "x")
    consume(database, queue, handle)
    [row] = session.call("peek", queue, "N")
    assert (row["id"], row["attempts"]) == (id, 0)
    assert 3590 < (row["run_at"] - session.now()).total_seconds() < 3610


def test_the_rest_of_a_claim_is_finished_while_and_after_a_message_has_left_it(
    database: Database, session: Session, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rowqueue")
    handled: list[str] = []

    def handle(message: Message) -> None:
        if message.body == "leaves" and not handled:
            message.steps.snooze(0)
        handled.append(message.body)
        time.sleep(0.3 if message.body == "slow" else 0)

    send(session, queue, "leaves", "quick", "slow", "last")
    Consumer(database.url, queue, handle, once=True, batch=4).run()
    assert handled == ["quick", "slow", "last"]
    consume(database, queue, handle)
    assert handled == ["quick", "slow", "last", "leaves"]
    assert session.call("peek", queue, "N") == session.call("peek", queue, "A") == []
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == []
    first, second = (r.getMessage() for r in caplog.records if r.getMessage().startswith("done"))
    assert sorted(first.removeprefix("done: ").split(", ")) == ["1 snoozed", "3 completed"]
    assert second == "done: 1 completed"


def test_async_handlers_have_steps_too(database: Database, session: Session, queue: str) -> None:
    calls: list[str] = []

    async def charge() -> str:
        calls.append("charge")
        return "ch_1"

    async def handle(message: Message) -> None:
        assert await message.steps.arun("charge", charge) == "ch_1"
        assert await message.steps.aget("none", 5) == 5
        await message.steps.asave("n", 7)
        if message.body == "sleep":
            await message.steps.asleep(1)
        elif message.attempt == 1:
            raise rowqueue.Retry("", 0)
        await asyncio.gather(*(message.steps.asave(f"part {n}", n) for n in range(5)))

    send(session, queue, "sleep", "retry")
    Consumer(database.url, queue, handle, idle_timeout=2.5, concurrency=4).run()
    assert calls == ["charge", "charge"]
    assert session.call("peek", queue, "N") == session.call("peek", queue, "A") == []


def test_without_a_claim_the_error_says_what_is_missing(database: Database, session: Session, queue: str) -> None:
    errors: list[str] = []

    def handle(message: Message) -> None:
        with pytest.raises(RuntimeError) as raised:
            message.steps.run("a", dict)
        errors.append(str(raised.value))

    send(session, queue, "x")
    consume(database, queue, handle, transaction=True)
    assert errors == ["message.steps: there is no consumer that holds a claim; pass the connection that does"]


def test_outside_of_a_consumer_the_connection_of_the_claim_is_passed(
    database: Database, session: Session, queue: str
) -> None:
    send(session, queue, "x")
    with session.transaction() as connection:
        [message] = rowqueue.claim_batch(connection, queue)
    with session.transaction() as connection:
        assert message.steps.run("a", lambda: [1], connection) == [1]
    with session.transaction() as connection, pytest.raises(Snoozed):
        message.steps.snooze(60, connection)
    assert [row["step"] for row in session.call("list_steps", message.id)] == ["a"]


def test_a_handler_whose_lease_was_lost_can_keep_nothing(database: Database, session: Session, queue: str) -> None:
    errors: list[str] = []

    def handle(message: Message) -> None:
        session.call("release_batch", message.batch_key)
        try:
            message.steps.save("a")
        except rowqueue.LeaseLost as error:
            errors.append(str(error))
            raise

    [id] = send(session, queue, "x")
    consume(database, queue, handle, max_messages=1)
    assert len(errors) == 1
    assert session.call("list_steps", id) == []
    [row] = session.call("peek", queue, "N")
    assert (row["id"], row["attempts"], row["error"]) == (id, 0, None)


# ---- workers in any language -------------------------------------------------------------------------


def test_a_worker_keeps_steps_and_continues_after_them(runner: Runner, session: Session, queue: str) -> None:
    send(session, queue, *(json.dumps({"crash_after": n}) for n in (0, 1, 2, 3)))
    done = runner("consume", "--type", queue, "--worker", WORKER, "--drain")
    assert done.returncode == 0, done.stderr
    for _ in range(3):  # a crash fails the message, and it waits for its backoff
        session.call("redrive_all", queue)
        for row in session.call("peek", queue, "N"):
            session.call("update_message", row["id"], json.dumps({"delay_seconds": 0}))
        done = runner("consume", "--type", queue, "--worker", WORKER, "--drain")
    assert session.call("peek", queue, "N") == session.call("peek", queue, "E") == []
    ran = [line.split("ran ")[1] for line in done.stderr.splitlines() if "ran " in line]
    assert len(ran) == len(set(ran))


def test_a_worker_puts_a_message_back(runner: Runner, session: Session, queue: str) -> None:
    send(session, queue, json.dumps({"snooze": 3600}), json.dumps({}))
    done = runner("consume", "--type", queue, "--worker", WORKER, "--drain")
    assert done.returncode == 0, done.stderr
    [row] = session.call("peek", queue, "N")
    assert row["attempts"] == 0


@pytest.mark.level(3)
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"id": ID, "save_step": 5}', "save_step that is not the name of a step"),
        ('{"id": ID, "snooze_seconds": -1}', "snooze_seconds that is not a number"),
        ('{"id": ID, "snooze_seconds": "5"}', "snooze_seconds that is not a number"),
        ('{"id": 5, "get_steps": true}', "id of no unanswered message"),
    ],
)
def test_a_line_that_is_no_question_stops_the_worker(
    runner: Runner, session: Session, queue: str, line: str, error: str
) -> None:
    send(session, queue, json.dumps({"write": line}))
    runner("consume", "--type", queue, "--worker", WORKER, "--drain")
    [row] = session.call("peek", queue, "N")
    assert error in row["error"]


def test_a_worker_gets_the_reason_why_a_step_cannot_be_kept(runner: Runner, session: Session, queue: str) -> None:
    send(session, queue, json.dumps({"bad_name": "x" * 201}))
    done = runner("consume", "--type", queue, "--worker", WORKER, "--drain")
    assert done.returncode == 0, done.stderr
    [row] = session.call("peek", queue, "N")
    assert "step: " in row["error"]
