"""Claiming ahead: while a fast handler works, the next batch is already being claimed."""

import logging
import threading
import time
from collections.abc import Callable

import pytest
from rowqueue import Consumer, Message
from rowqueue.consume.claims import Claims
from rowqueue.databases import Database, Session

BATCH = 10


@pytest.fixture(autouse=True)
def _full_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims as large as allowed, however long a handler takes: on a busy machine they would be smaller."""
    monkeypatch.setattr(Claims, "size", lambda claims, _: claims.most)


def send(session: Session, queue: str, count: int) -> list[str]:
    bodies = [f"{n:04}" for n in range(count)]
    session.call("send_batch", queue, "\n".join(bodies))
    return bodies


def attempts(session: Session, queue: str, state: str) -> list[int]:
    return [row["attempts"] for row in session.call("peek", queue, state, 1000)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


class Halting:
    """A handler that is fast for a number of messages and then waits until the test lets it continue."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.handled: list[str] = []
        self.threads: set[int] = set()
        self.halts, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, message: Message) -> None:
        if len(self.handled) == self._count:
            self.halts.set()
            assert self.may_go_on.wait(60)
        self.threads.add(threading.get_ident())
        self.handled.append(message.body)


def start(consumer: Consumer, handler: Halting) -> threading.Thread:
    thread = threading.Thread(target=consumer.run)
    thread.start()
    assert handler.halts.wait(60)
    return thread


def end(thread: threading.Thread) -> None:
    thread.join(60)
    assert not thread.is_alive()


def test_messages_are_handled_once_in_their_order_and_in_one_thread(
    database: Database, session: Session, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rowqueue")
    sent = send(session, queue, 1000)
    handler = Halting(-1)
    Consumer(database.url, queue, handler, batch=BATCH, drain=True).run()
    assert handler.handled == sent
    assert len(handler.threads) == 1
    assert "done: 1000 completed" in caplog.messages


def test_a_batch_that_waits_for_a_slow_handler_is_given_back_and_costs_no_attempt(
    database: Database, session: Session, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rowqueue")
    sent = send(session, queue, 300)
    handler = Halting(105)
    thread = start(Consumer(database.url, queue, handler, batch=BATCH, drain=True), handler)
    # At first the consumer also holds the rest of the batch, and the batch before it or the one after it.
    until(lambda: len(attempts(session, queue, "A")) == 1)
    assert attempts(session, queue, "N") == [0] * 194
    handler.may_go_on.set()
    end(thread)
    assert handler.handled == sent
    [done] = [text for text in caplog.messages if text.startswith("done: ")]
    assert "300 completed" in done
    assert "14 released" in done, "nothing was claimed ahead: the test has lost its point"


def test_released_messages_do_not_count_for_max_messages(database: Database, session: Session, queue: str) -> None:
    sent = send(session, queue, 300)
    handler = Halting(105)
    thread = start(Consumer(database.url, queue, handler, batch=BATCH, max_messages=200), handler)
    until(lambda: len(attempts(session, queue, "A")) == 1)
    handler.may_go_on.set()
    end(thread)
    assert handler.handled == sent[:200]
    assert attempts(session, queue, "N") == [0] * 100


def test_a_signal_gives_back_messages_that_were_claimed_ahead(database: Database, session: Session, queue: str) -> None:
    sent = send(session, queue, 300)
    handler = Halting(105)
    consumer = Consumer(database.url, queue, handler, batch=BATCH)
    thread = start(consumer, handler)
    consumer.stop()
    handler.may_go_on.set()
    end(thread)
    # The rest of the batch is not begun any more.
    assert handler.handled == sent[:106]
    assert attempts(session, queue, "A") == []
    assert attempts(session, queue, "N") == [0] * 194


def test_a_handler_that_is_not_quick_has_one_batch_only(
    connect: Callable[..., Session], database: Database, session: Session, queue: str
) -> None:
    send(session, queue, 100)
    looking = connect()
    active: list[int] = []

    def handler(messages: list[Message]) -> None:
        time.sleep(0.06)
        active.append(len(attempts(looking, queue, "A")))

    Consumer(database.url, queue, handler, batch=BATCH, drain=True).run()
    assert active == [BATCH] * 10


@pytest.mark.any_engine
def test_a_single_claim_has_one_batch_only(
    connect: Callable[..., Session], database: Database, session: Session, queue: str
) -> None:
    looking = connect()
    active: list[int] = []

    def handler(messages: list[Message]) -> None:
        active.append(len(attempts(looking, queue, "A")))

    send(session, queue, 60)
    Consumer(database.url, queue, handler, batch=BATCH, once=True).run()
    assert active == [BATCH]


@pytest.mark.any_engine
def test_a_ring_is_handled_in_turn_while_the_next_batch_is_claimed_ahead(
    connect: Callable[..., Session], database: Database, session: Session, queue: str
) -> None:
    looking = connect()
    session.call("set_queue", queue, '{"ring": 1, "max_attempts": 2, "backoff_seconds": 0}')
    for n in range(60):
        session.call("send_message", queue, str(n), None, -n)
    active: list[int] = []
    seen: list[str] = []

    def handler(messages: list[Message]) -> None:
        active.append(len(attempts(looking, queue, "A")))
        seen.extend(message.body for message in messages)
        raise ValueError("again")

    Consumer(database.url, queue, handler, batch=BATCH, consumer="one", drain=True).run()
    assert seen == [str(n) for n in range(60)] * 2
    assert max(active) > BATCH, "nothing was claimed ahead: the test has lost its point"


@pytest.mark.any_engine
def test_groups_of_an_ordered_queue_keep_their_order(database: Database, session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"backoff_seconds": 0, "ordered": 1}')
    for n in range(400):
        session.call("send_message", queue, f"{n:04}", None, None, f"g{n % 37}")
    handled: list[str] = []
    failed: set[str] = set()

    def handler(message: Message) -> None:
        if message.body.endswith("7") and message.body not in failed:
            failed.add(message.body)
            raise ValueError("once")
        handled.append(message.body)

    Consumer(database.url, queue, handler, batch=BATCH, drain=True).run()
    assert sorted(handled) == [f"{n:04}" for n in range(400)]
    for group in range(37):
        mine = [body for body in handled if int(body) % 37 == group]
        assert mine == sorted(mine)


def test_rows_as_tuples_are_the_rows_of_a_call(session: Session, queue: str) -> None:
    session.call("send_message", queue, "ä", None, -3, "group", "key", None, '{"a": 1}')
    [values] = session.fetch("claim_batch", queue, 10, "one", 60)()
    assert session.call("release_batch", values[10]) == [{"affected": 1}]
    [row] = session.call("claim_batch", queue, 10, "one", 60)
    held = {"batch_key", "lease_until"}
    names = [name for name in row if name not in held]
    assert [*values[:10], *values[12:]] == [row[name] for name in names]
    assert type(values[10]) is type(row["batch_key"])
    assert values[11].utcoffset() == row["lease_until"].utcoffset()
    assert values[11] <= row["lease_until"]
