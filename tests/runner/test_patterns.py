"""Consumers of many queues: patterns, turns, and what they cost when nothing happens."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from rowqueue import Consumer, Message
from rowqueue.consume import BadOption, Options
from rowqueue.consume.source import LONGEST, MOST, Queues
from rowqueue.databases import Database, Session
from support.processes import Log, Running
from support.waiting import until

Start = Callable[..., Running]


def queues(*types: str, exclude: tuple[str, ...] = ()) -> Queues:
    return Queues(Options.of_queues(types, exclude))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("mail.*", ["mail.", "mail.a", "mail.a.b", "mail.\n"], ["mail", "mailxa", "email.a", "MAIL.a"]),
        ("*", ["a", "*", "ä.😀"], []),
        ("m?il", ["mail", "m?il", "m日il"], ["mil", "maail"]),
        ("a[bc]*", ["a[bc]", "a[bc]d"], ["ab", "abc"]),
        ("a.b*", ["a.b"], ["axb"]),
        ("a\\*", ["a\\", "a\\b"], ["a*", "ab"]),
    ],
)
def test_a_star_is_any_text_and_a_question_mark_one_character_and_all_else_is_literal(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    found = queues(pattern)
    assert [name for name in [*yes, *no] if found._takes(name)] == yes


def test_queues_take_turns_and_long_lists_are_split() -> None:
    found = queues("a", "b", "c")
    found.had_turn("b")
    assert found.lists() == [["c", "a", "b"]]
    assert found.lists(["b", "unknown"]) == [["b", "c", "a"]]
    assert {found.questions()[0][0] for _ in range(3)} == {"a", "b", "c"}
    names = [f"q{n}" for n in range(2500)]
    parts = queues(*names).lists()
    assert [len(part) for part in parts] == [MOST, MOST, 500]
    assert sorted(name for part in parts for name in part) == sorted(names)
    long = [f"{n:0200}" for n in range(900)]
    assert all(sum(map(len, part)) <= LONGEST for part in queues(*long).lists())


@pytest.mark.parametrize(
    ("types", "exclude", "more", "option"),
    [((), (), {}, "types"), (("a",), ("b",), {}, "exclude"), (("a*",), (), {"keep_results": True}, "keep_results")],
)
def test_options_of_patterns_that_do_not_fit_are_refused(
    types: tuple[str, ...], exclude: tuple[str, ...], more: dict[str, bool], option: str
) -> None:
    with pytest.raises(BadOption, match=f"^{option}: "):
        Options.of_queues(types, exclude, **more)


@pytest.fixture
def handled() -> Counter[str]:
    """How many messages of each queue `consuming` has handled."""
    return Counter()


@pytest.fixture
def consuming(database: Database, handled: Counter[str]) -> Iterator[Callable[..., Consumer]]:
    """Starts a consumer in a thread; the test's end stops it."""
    running: list[tuple[Consumer, threading.Thread]] = []

    def start(types: str | list[str], **options: object) -> Consumer:
        def handle(message: Message) -> None:
            handled[message.type] += 1

        consumer = Consumer(database.url, types, handle, **options)  # type: ignore[arg-type]
        thread = threading.Thread(target=consumer.run)
        thread.start()
        running.append((consumer, thread))
        return consumer

    yield start
    for consumer, thread in running:
        consumer.stop()
        thread.join(30)
        assert not thread.is_alive()


def in_state_new(session: Session, types: list[str]) -> int:
    return sum(session.call("queue_stats", type)[0]["ready"] for type in types)


@pytest.mark.parametrize("transaction", [False, True])
def test_a_pattern_consumes_what_matches_also_later_queues_and_not_what_is_excluded(
    consuming: Callable[..., Consumer], handled: Counter[str], session: Session, queue: str, transaction: bool
) -> None:
    for end in (".a", ".b", ".bulk.x", "other"):
        session.call("send", queue + end, "x")
    consuming(f"{queue}.*", exclude=f"{queue}.bulk*", transaction=transaction)
    until(lambda: handled.keys() == {f"{queue}.a", f"{queue}.b"})
    session.call("send", f"{queue}.later", "x")
    session.call("send", f"{queue}.bulk.later", "x")
    until(lambda: handled[f"{queue}.later"] == 1, seconds=15)
    session.call("send", f"{queue}.a", "x")
    until(lambda: handled[f"{queue}.a"] == 2)
    assert handled.keys() == {f"{queue}.{end}" for end in ("a", "b", "later")}
    left = [f"{queue}.bulk.x", f"{queue}.bulk.later", f"{queue}other"]
    assert in_state_new(session, left) == 3
    for type in left:
        session.call("take_batch", type, 10)


@pytest.mark.level(3)
def test_a_pattern_that_matches_nothing_waits_and_is_logged_once(
    start: Start, session: Session, queue: str, joblog: Log
) -> None:
    running = start("consume", "--type", f"{queue}.?", "--handler", "jobs:record")
    until(lambda: "no queue matches" in running.stderr)
    session.call("send", f"{queue}.1", "first")
    session.call("send", f"{queue}.22", "no match")
    until(lambda: joblog.read() == ["first"], seconds=15)
    assert running.stderr.count("no queue matches") == 1
    assert f"consuming {queue}.1" in running.stderr
    session.call("take_batch", f"{queue}.22", 10)


def test_a_consumer_without_a_queue_yet_is_ready(
    consuming: Callable[..., Consumer], queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowqueue.consume.loop.READY_SECONDS", 4.0)
    consumer = consuming(f"{queue}.*")
    until(consumer.is_ready)
    for _ in range(12):
        time.sleep(0.5)
        assert consumer.is_ready()


@pytest.mark.parametrize("transaction", [False, True])
def test_drain_max_messages_and_once_of_a_pattern(
    database: Database, session: Session, queue: str, transaction: bool
) -> None:
    types = [f"{queue}.{n}" for n in range(4)]
    for type in types:
        session.call("send_batch", type, "a\nb\nc")
    seen: list[str] = []

    def run(**options: object) -> Counter[str]:
        seen.clear()
        Consumer(
            database.url, f"{queue}.*", lambda message: seen.append(message.type), transaction=transaction, **options
        ).run()  # type: ignore[arg-type]
        return Counter(seen)

    assert run(once=True, batch=1) == dict.fromkeys(types, 1)
    assert sum(run(max_messages=3).values()) == 3
    assert sum(run(drain=True).values()) == 5
    assert in_state_new(session, types) == 0
    assert run(drain=True) == {}


@pytest.mark.parametrize("how", ["plain", "lists", "transaction"])
def test_no_queue_starves_another(database: Database, session: Session, queue: str, how: str) -> None:
    """A full queue has its turn, and then each other queue that has messages."""
    types = [f"{queue}.{n}" for n in range(5)]
    session.call("send_batch", types[0], "\n".join(["x"] * 3000))
    for type in types[1:]:
        session.call("send", type, "x")
    seen: list[tuple[str, float]] = []

    def handle(message: Message) -> None:
        time.sleep(0.001)
        seen.append((message.type, time.monotonic()))
        if len({type for type, _ in seen}) == len(types):
            consumer.stop()

    def handle_list(messages: list[Message]) -> None:
        for message in messages:
            handle(message)

    consumer = Consumer(
        database.url, types, handle_list if how == "lists" else handle, transaction=how == "transaction"
    )
    consumer.run()
    assert {type for type, _ in seen} == set(types)
    assert len(seen) < 2000, "the full queue had been emptied before"
    session.call("pause", types[0])
    session.call("drop_queue", types[1])


def test_paused_limited_ordered_and_ring_queues_among_others(
    consuming: Callable[..., Consumer], handled: Counter[str], session: Session, queue: str
) -> None:
    kinds = {
        "paused": {},
        "limited": {"max_active": 1},
        "ordered": {"ordered": 1},
        "ring": {"ring": 1},
        "fair": {"fair": 1},
    }
    for kind, options in kinds.items():
        session.call("set_queue", f"{queue}.{kind}", str(options).replace("'", '"'))
        for n in range(5):
            session.call("send_with", f"{queue}.{kind}", "x", f'{{"group_key": "group {n % 2}"}}')
    session.call("pause", f"{queue}.paused")
    consuming(f"{queue}.*", concurrency=2)
    until(lambda: sum(handled.values()) == 20)
    assert handled == {f"{queue}.{kind}": 5 for kind in kinds if kind != "paused"}
    session.call("resume", f"{queue}.paused")
    until(lambda: handled[f"{queue}.paused"] == 5)


@pytest.mark.level(3)
def test_a_consumer_of_many_queues_makes_few_calls_when_nothing_happens(
    consuming: Callable[..., Consumer],
    handled: Counter[str],
    session: Session,
    queue: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in range(120):
        session.call("set_queue", f"{queue}.{n}", "{}")
    calls: Counter[str] = Counter()
    kind = type(session)
    plain, plain_fetch = kind.call, kind.fetch

    def call(self: Session, procedure: str, *arguments: object) -> object:
        calls[procedure] += 1
        return plain(self, procedure, *arguments)

    def fetch(self: Session, procedure: str, *arguments: object) -> object:
        calls[procedure] += 1
        return plain_fetch(self, procedure, *arguments)

    monkeypatch.setattr(kind, "call", call)
    monkeypatch.setattr(kind, "fetch", fetch)
    consuming(f"{queue}.*")
    until(lambda: calls["wait_for_any"] > 2)
    time.sleep(2)
    calls.clear()
    time.sleep(6)
    assert calls.total() <= 60, calls
    session.call("send", f"{queue}.77", "x")
    until(lambda: handled[f"{queue}.77"] == 1)
