"""rowqueue.testing: a handler runs without a database, by the runner's own code."""

import asyncio
import itertools
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
import rowqueue
from rowqueue import DeadLetter, Message, Record, Retry
from rowqueue.handlers import HandlerError
from rowqueue.testing import Outcome, message, run, run_batch, run_with_crashes


def test_a_handler_that_returns_is_done() -> None:
    seen = []
    assert run(seen.append, body="hello") == Outcome("done")
    [got] = seen
    assert isinstance(got, Message) and (got.body, got.attempt, got.type, got.connection) == ("hello", 1, "test", None)


def test_the_error_of_a_handler_is_the_one_that_the_queue_would_store() -> None:
    def handler(message: Message) -> None:
        raise {"retry": Retry("busy", after=1.2), "discard": DeadLetter("bad"), "other": KeyError("k\0")}[message.body]

    assert run(handler, body="retry") == Outcome("failed", "busy", 2)
    assert run(handler, body="discard") == Outcome("dead", "bad")
    assert run(handler, body="other") == Outcome("failed", "KeyError: 'k\\x00'")
    assert run(handler, body="discard").dead and run(handler, body="retry").failed and not run(handler, body="x").done


def test_an_async_handler_runs_also_where_a_loop_runs() -> None:
    async def handler(message: Message) -> None:
        if message.body != "good":
            raise Retry("later", after=5)

    async def asynchronous_test() -> None:
        assert run(handler, body="good").done

    import asyncio

    def loops() -> set[threading.Thread]:
        """The threads of event loops; threads of other tests may end or start meanwhile."""
        return {thread for thread in threading.enumerate() if thread.name == "asyncio"}

    before = loops()
    assert run(handler, body="good").done
    assert run(handler, body="x") == Outcome("failed", "later", 5)
    asyncio.run(asynchronous_test())
    assert not loops() - before, "no thread is left"


def test_batch_handlers_get_a_list_and_name_what_failed() -> None:
    def handler(messages: list[Message]) -> dict[int, Exception]:
        return {m.id: DeadLetter("odd") for m in messages if m.body == "b"}

    async def awaited(messages: Sequence[Message]) -> None:
        raise ValueError("all of them")

    assert run_batch(handler, ["a", "b", message("c", attempt=3)]) == [
        Outcome("done"),
        Outcome("dead", "odd"),
        Outcome("done"),
    ]
    assert run(handler, body="b") == Outcome("dead", "odd")
    assert {outcome.error for outcome in run_batch(awaited, ["a", "b"])} == {"ValueError: all of them"}


def test_one_by_one_handlers_see_each_message_of_a_batch() -> None:
    def handler(message: Message) -> str:
        if message.body == "b":
            raise Retry
        return message.body.upper()

    outcomes = run_batch(handler, ["a", "b", "c"], keep_results=True)
    assert outcomes == [Outcome("done", result="A"), Outcome("failed", "Retry"), Outcome("done", result="C")]


def test_a_result_is_kept_as_the_queue_would_keep_it() -> None:
    assert run(lambda message: {"é": 1}, keep_results=True) == Outcome("done", result='{"é": 1}')
    assert run(lambda message: object()).done
    assert "not JSON serializable" in str(run(lambda message: object(), keep_results=True).error)


def test_a_handler_finds_its_connection_and_any_item() -> None:
    connection = object()
    seen: list[Any] = []
    run(lambda message: seen.append(message.connection), body="x", connection=connection)
    record = Record("articles", 7, {"id": 1}, {"id": 1}, '{"id": 1}', '{"id": 1}')
    run(lambda record: seen.append(record.position), record)
    assert seen == [connection, 7]


def test_an_object_that_is_no_handler_is_raised_and_so_is_a_signal_in_the_test() -> None:
    with pytest.raises(HandlerError, match="takes no argument"):
        run(lambda: None)  # type: ignore[misc]
    with pytest.raises(HandlerError, match="is not a function"):
        run(Message)
    with pytest.raises(KeyboardInterrupt):
        run(interrupted)


def interrupted(message: Message) -> None:
    raise KeyboardInterrupt


def test_every_odd_exception_is_a_failure() -> None:
    assert run(lambda message: sys.exit(3)) == Outcome("failed", "SystemExit: 3")
    assert run(mute) == Outcome("failed", "Mute: its text cannot be read: str() raised ValueError")
    assert run(not_awaited).error == (
        "TypeError: the handler returned a coroutine, whose code has not run: is an async or an await missing?"
    )


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def mute(message: Message) -> None:
    raise Mute


def not_awaited(message: Message) -> object:
    return asyncio.sleep(0)


def test_an_async_handler_that_cancels_every_task_fails_messages_and_loses_none() -> None:
    async def handler(message: Message) -> None:
        for task in asyncio.all_tasks():
            task.cancel()

    assert run_batch(handler, ["a", "b", "c"]) == [Outcome("failed", "CancelledError")] * 3


def test_an_async_handler_that_has_swallowed_a_cancellation_is_done() -> None:
    """As libraries do that end a part of their own work: the task keeps the count of requests."""

    async def handler(message: Message) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)

    assert run_batch(handler, ["a", "b"]) == [Outcome("done")] * 2


def test_neither_a_driver_nor_a_database_is_needed() -> None:
    program = (
        "import sys, rowqueue.testing as t; print(t.run(print, body='x').done,"
        " [m for m in ('psycopg', 'pymysql', 'pymssql', 'firebird', 'asyncio', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True []"


def test_names_are_exported_and_documented() -> None:
    import inspect

    for name in rowqueue.__all__:
        assert getattr(rowqueue, name).__doc__, name
    assert set(rowqueue.__all__) <= set(dir(rowqueue))
    for module in (rowqueue, rowqueue.aio):
        assert list(inspect.signature(module.send).parameters)[:3] == ["connection", "type", "body"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        rowqueue.nothing  # noqa: B018


# ---- steps ---------------------------------------------------------------------------------------


def test_steps_are_kept_in_the_outcome_and_given_to_the_next_run() -> None:
    def handle(message: Message) -> None:
        charge = message.steps.run("pay", lambda: {"charge": (1,)})
        message.steps.save("seen", charge)
        raise Retry("later", 5)

    outcome = run(handle)
    assert (outcome.state, outcome.retry_after) == ("failed", 5)
    assert outcome.steps == {"pay": {"charge": [1]}, "seen": {"charge": [1]}}
    assert run(handle, steps={"pay": "kept"}).steps == {"pay": "kept", "seen": "kept"}


def test_a_message_that_is_put_back_says_for_how_long() -> None:
    outcome = run(lambda message: message.steps.snooze(30))
    assert outcome.snoozed and (outcome.due_after, outcome.error) == (30, None)
    outcome = run(lambda message: message.steps.sleep(60))
    assert (outcome.state, outcome.due_after, [*outcome.steps]) == ("snoozed", 60, ["sleep 1"])


def test_a_handler_is_run_with_a_crash_after_each_step() -> None:
    calls: list[str] = []

    def order(message: Message) -> str:
        calls.append("begins")
        message.steps.run("pay", lambda: calls.append("pay"))
        message.steps.sleep(60)
        for part in range(message.steps.get("packed", 0), 2):
            calls.append(f"pack {part}")
            message.steps.save("packed", part + 1)
        return "shipped"

    outcome = run_with_crashes(order, body="x")
    assert outcome.done and outcome.steps["packed"] == 2
    assert [call for call in calls if call != "begins"] == ["pay", "pack 0", "pack 1"]
    assert calls.count("begins") == 5


@pytest.mark.level(3)
def test_a_handler_whose_steps_have_another_name_each_time_is_found() -> None:
    names = itertools.count()
    with pytest.raises(RuntimeError, match="the same names each time"):
        run_with_crashes(lambda message: message.steps.save(f"step {next(names)}"))


async def _async_order(message: Message) -> None:
    async def pay() -> int:
        return 5

    assert await message.steps.arun("pay", pay) == 5
    await message.steps.asleep(1)


def test_async_handlers_are_run_with_crashes_too() -> None:
    assert run_with_crashes(_async_order).steps["pay"] == 5
