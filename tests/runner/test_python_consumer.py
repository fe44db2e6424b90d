"""rowqueue.Consumer: a consumer in an application's own process."""

import inspect
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import rowqueue
import typer
from rowqueue import Consumer, Message
from rowqueue.cli import app
from rowqueue.consume.options import OPTIONS
from rowqueue.databases import Database, Session
from support.waiting import until

pytestmark = pytest.mark.level(1)


def started(consumer: Consumer) -> threading.Thread:
    thread = threading.Thread(target=consumer.run)
    thread.start()
    return thread


def test_its_parameters_and_those_of_the_command_are_the_options() -> None:
    parameters = dict(inspect.signature(Consumer).parameters)
    for own in ("database_url", "types", "handler", "exclude", "signals"):
        del parameters[own]
    assert {name: (one.annotation, one.default) for name, one in parameters.items()} == {
        name: (one.type, one.default) for name, one in OPTIONS.items()
    }
    command: Any = typer.main.get_command(app).commands["consume"]  # type: ignore[attr-defined]
    given = {one.name: one for one in command.params if one.name in OPTIONS}
    assert {name: (one.default, one.help) for name, one in given.items()} == {
        name: (one.default, one.metadata["help"]) for name, one in OPTIONS.items()
    }
    limits = {name: (getattr(one.type, "min", None), getattr(one.type, "max", None)) for name, one in given.items()}
    assert limits == {name: (one.metadata["least"], one.metadata["most"]) for name, one in OPTIONS.items()}


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch", 0), ("batch", 10_001), ("concurrency", 0), ("lease", 86_401), ("report", -1), ("health_port", 65_536)],
)
def test_a_value_beyond_a_limit_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{name}: must be "):
        Consumer("postgresql://nobody@127.0.0.1:1/none", "email", print, **{name: value})  # type: ignore[arg-type]


def test_it_consumes_in_a_thread_until_it_is_stopped(database: Database, session: Session, queue: str) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    handled: list[str] = []
    consumer = Consumer(database.url, types=[queue], handler=lambda message: handled.append(message.body), batch=5)
    thread = started(consumer)
    try:
        session.call("send_batch", queue, "\n".join(map(str, range(20))))
        until(lambda: len(handled) == 20)
        assert consumer.is_ready()
    finally:
        consumer.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert session.call("peek", queue, "N") == session.call("peek", queue, "A") == []
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    with pytest.raises(RuntimeError, match="once per Consumer"):
        consumer.run()


def test_stop_lets_running_handlers_end_and_releases_the_rest(database: Database, session: Session, queue: str) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def handler(message: Message) -> None:
        begun.set()
        assert may_end.wait(30)

    session.call("send_batch", queue, "one\ntwo\nthree")
    consumer = Consumer(database.url, queue, handler, batch=3)
    thread = started(consumer)
    assert begun.wait(30)
    consumer.stop()
    assert thread.is_alive()
    may_end.set()
    thread.join(30)
    left = session.call("peek", queue, "N")
    assert [(row["body"], row["attempts"]) for row in left] == [("two", 0), ("three", 0)]


# An application with a SIGTERM handler of its own.
APPLICATION = """
import signal, sys, threading, time
from rowqueue import Consumer

def handler(message):
    print("begun", flush=True)
    time.sleep(1.5)

consumer = Consumer(sys.argv[1], sys.argv[2], handler)
signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
thread = threading.Thread(target=consumer.run)
thread.start()
while thread.is_alive():
    thread.join(0.2)
"""


@pytest.mark.level(2)  # the client libraries differ: that of Firebird handles signals itself
def test_a_signal_handler_of_the_application_stops_it_and_the_running_message_is_done(
    database: Database, session: Session, queue: str
) -> None:
    session.call("send", queue, "x")
    program = [sys.executable, "-c", APPLICATION, database.url, queue]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None and running.stdout.readline() == "begun\n"
            running.terminate()
            assert running.wait(30) == 0
        finally:
            running.kill()
    assert [session.call("peek", queue, state) for state in "NAE"] == [[], [], []]


def test_consumers_that_have_ended_leave_no_descriptor_open(database: Database, session: Session, queue: str) -> None:
    async def handler(message: Message) -> None: ...

    def count() -> int:
        for function in (print, handler):
            session.call("send", queue, "x")
            consumer = Consumer(database.url, queue, function, max_messages=1)
            consumer.run()
            consumer.stop()  # after its end, it does nothing
        return len([*Path("/dev/fd").iterdir()])

    count()  # what the first one opens for all, such as a library
    assert [count() for _ in range(4)] == [count()] * 4


def test_it_drains_and_keeps_results(database: Database, session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    [sent] = session.call("send", queue, "abc")
    Consumer(database.url, queue, lambda message: message.body.upper(), drain=True, keep_results=True).run()
    assert session.call("get_result", sent["id"]) == [{"state": "C", "result": "ABC", "error": None}]


def test_async_handlers_and_names_of_handlers(database: Database, session: Session, queue: str) -> None:
    handled: list[str] = []

    async def handler(message: Message) -> None:
        handled.append(message.body)

    for bodies in ("one", "three\ntwo"):
        before = threading.active_count()  # if Django is imported, its first call from a coroutine leaves a thread
        session.call("send_batch", queue, bodies)
        Consumer(database.url, [queue], handler, drain=True, concurrency=4).run()
    assert sorted(handled) == ["one", "three", "two"]
    assert threading.active_count() == before, "no thread is left"
    session.call("send", queue, "four")
    Consumer(database.url, [queue], "json:loads", max_messages=1).run()
    assert session.call("peek", queue, "N")[0]["error"].startswith("TypeError: the JSON object must be str")


def test_a_message_taken_is_sent_on_in_its_transaction(database: Database, session: Session, queue: str) -> None:
    def handler(message: Message) -> None:
        rowqueue.send(message.connection, f"{queue}.next", message.body)
        if message.body == "bad":
            raise rowqueue.DeadLetter("bad")

    session.call("send_batch", queue, "good\nbad")
    Consumer(database.url, queue, handler, transaction=True, drain=True).run()
    assert [row["body"] for row in session.call("peek", f"{queue}.next", "N")] == ["good"]
    assert [row["body"] for row in session.call("peek", queue, "E")] == ["bad"]


def test_a_handler_that_exits_fails_its_message(database: Database, session: Session, queue: str) -> None:
    def handler(message: Message) -> None:
        raise SystemExit(3)

    session.call("set_queue", queue, '{"max_attempts": 1}')
    session.call("send", queue, "x")
    Consumer(database.url, queue, handler, drain=True).run()
    assert [row["error"] for row in session.call("peek", queue, "E")] == ["SystemExit: 3"]


def test_results_of_a_queue_that_keeps_none_are_refused(database: Database, session: Session, queue: str) -> None:
    session.call("send", queue, "x")
    with pytest.raises(ValueError, match=r"keep_results: .* keeps no results"):
        Consumer(database.url, queue, lambda message: "result", keep_results=True, drain=True).run()
    assert session.call("queue_stats", queue)[0]["ready"] == 1


def test_stopped_before_it_runs_it_claims_nothing(database: Database, session: Session, queue: str) -> None:
    session.call("send", queue, "x")
    consumer = Consumer(database.url, queue, print)
    consumer.stop()
    consumer.run()
    assert len(session.call("peek", queue, "N")) == 1


def test_stop_ends_the_wait_for_a_database_that_is_away() -> None:
    consumer = Consumer("postgresql://nobody@127.0.0.1:1/none", "x", print)
    thread = started(consumer)
    time.sleep(0.3)
    assert thread.is_alive() and not consumer.is_ready()
    consumer.stop()
    thread.join(15)
    assert not thread.is_alive()
    consumer = Consumer("postgresql://nobody@127.0.0.1:1/none", "x", print, signals=True)
    threading.Timer(0.3, consumer.stop).start()
    consumer.run()
    with pytest.raises(rowqueue.Disconnected):
        Consumer("postgresql://nobody@127.0.0.1:1/none", "x", print, connect_timeout=0).run()


def test_an_empty_database_is_refused(empty_database: Database) -> None:
    with pytest.raises(rowqueue.SchemaMissing, match="runner apply"):
        Consumer(empty_database.url, "x", print).run()


def test_health_is_served(database: Database, queue: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rowqueue")
    consumer = Consumer(database.url, queue, print, health_port=0)
    thread = started(consumer)
    ports: list[Any] = []
    try:
        until(lambda: ports.extend(r.args[0] for r in caplog.records if r.msg.startswith("health:")) or bool(ports))
        until(consumer.is_ready)
        with urlopen(f"http://127.0.0.1:{ports[0]}/ready") as answer:
            assert answer.status == 200
    finally:
        consumer.stop()
        thread.join(30)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"types": []}, "types: name at least one queue"),
        ({"batch": 0}, "batch: must be 1 to 10,000, not 0"),
        ({"concurrency": 1001}, "concurrency: must be 1 to 1,000, not 1001"),
        ({"lease": 0}, "lease: must be 1 to 86,400, not 0"),
        ({"max_messages": 0}, "max_messages: must be at least 1, not 0"),
        ({"idle_timeout": -1}, "idle_timeout: must be at least 0, not -1"),
        ({"transaction": True, "keep_results": True}, "keep_results: cannot be combined with transaction"),
        ({"database_url": "oracle://x"}, "unknown scheme 'oracle'"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Consumer(**{"database_url": "postgresql://x", "types": "x", "handler": print, **options})


def test_a_handler_that_cannot_be_used_so_is_refused() -> None:
    async def handler(message: Message) -> None: ...

    def whole(messages: list[Message]) -> None: ...

    with pytest.raises(ValueError, match="needs a sync handler"):
        Consumer("postgresql://x", "x", handler, transaction=True)
    with pytest.raises(ValueError, match="takes a list"):
        Consumer("postgresql://x", "x", whole, keep_results=True)
