"""claim_any and wait_for_any: many queues in one call."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from rowqueue.databases import Row, Session
from support.capabilities import Capabilities
from support.queues import Queue, ids, in_an_hour, in_time


@pytest.fixture
def some(q: Queue) -> list[Queue]:
    """Three queues."""
    return [q, q.named(q.name + ".2"), q.named(q.name + ".3")]


def lines(queues: list[Queue]) -> str:
    return "\n".join(queue.name for queue in queues)


def claim(queues: list[Queue], size: int | None = None, **options: Any) -> list[Row]:
    return queues[0].on("claim_any", lines(queues), size, **options)


def test_claim_any_claims_from_the_first_queue_that_has_something(some: list[Queue]) -> None:
    a, b, c = some
    assert claim(some) == []
    late, early = c.send("c"), b.send_many(3)
    rows = claim(some, 2, consumer="me", lease_seconds=90)
    assert [(row["id"], row["type"], row["body"], row["attempt"]) for row in rows] == [
        (early[0], b.name, "0", 1),
        (early[1], b.name, "1", 1),
    ]
    assert len({row["batch_key"] for row in rows}) == 1
    held = b.row(early[0])
    assert (held["consumer"], held["batch_key"]) == ("me", rows[0]["batch_key"])
    assert held["lease_until"] == held["changed_at"] + timedelta(seconds=90) == rows[0]["lease_until"]
    assert ids(claim([c, b, a], 10)) == [late]
    assert ids(claim([c, b, a], 10)) == early[2:]
    assert claim(some, 10) == []
    assert a.rows() == []


def test_claim_any_returns_what_claim_batch_returns(some: list[Queue]) -> None:
    options = {"priority": 3, "group_key": "g", "dedup_key": "d", "headers": "{}", "source": "shop", "max_attempts": 4}
    id = some[1].send("text", **options)
    [row] = claim(some)
    assert {name: row[name] for name in options} == options
    q = some[1]
    q.one("release_batch", row["batch_key"])
    [other] = q.claim()
    assert list(other) == list(row)
    held = {"batch_key", "lease_until"}
    assert {name: value for name, value in other.items() if name not in held} == {
        name: value for name, value in row.items() if name not in held
    }
    assert q.one("complete", id, other["batch_key"]) == 1


def test_claim_any_claims_one_when_no_size_is_given_and_names_its_consumer(some: list[Queue]) -> None:
    some[1].send_many(2)
    [row] = claim(some)
    assert some[1].row(row["id"])["consumer"].startswith("test/")


def test_claim_any_uses_the_lease_and_policy_of_the_queue(some: list[Queue]) -> None:
    some[1].call("set_queue", lease_seconds=7, max_attempts=3)
    id = some[1].send()
    [row] = claim(some)
    assert row["max_attempts"] == 3
    assert row["lease_until"] == some[1].row(id)["changed_at"] + timedelta(seconds=7)


def test_claim_any_reads_a_list_as_lists_are_read(some: list[Queue]) -> None:
    a, b, _ = some
    odd = a.named(a.name + '\n"é')
    id = odd.send()
    text = f"\n{a.name}\n\n{json.dumps(odd.name)}\n{b.name}\n{a.name}\n"
    [row] = a.on("claim_any", text)
    assert (row["id"], row["type"]) == (id, odd.name)
    assert a.on("wait_for_any", text)[0]["ready"] == 0


@pytest.mark.parametrize("procedure", ["claim_any", "wait_for_any"])
def test_a_list_of_types_has_1_to_1000_names(q: Queue, procedure: str) -> None:
    many = [f"{q.name}.{n}" for n in range(1_000)]
    q.named(many[-1]).send()
    assert q.on(procedure, "\n".join([*many, *many[:500]]))[0]["type"] == many[-1]
    for text in (None, "", "\n\n", "\n".join([*many, "one more"])):
        with q.refused("invalid_argument", "types: "):
            q.on(procedure, text)
    for bad in ("x" * 201, '""', '"', '"a" b'):
        with q.refused("invalid_argument", "types: "):
            q.on(procedure, f"{q.name}\n{bad}")


def test_claim_any_skips_paused_limited_and_blocked_queues(q: Queue) -> None:
    paused, limited, blocked, grouped, free = queues = [q.named(f"{q.name}.{n}") for n in range(5)]
    for queue in queues:
        queue.send("1", group_key="g")
        queue.send("2", group_key="g")
    free.empty()
    limited.empty()
    blocked.empty()
    grouped.empty()
    paused.call("pause")
    limited.call("set_queue", max_active=1)
    blocked.call("set_queue", ordered=1)
    grouped.call("set_queue", group_max_active=1)
    for queue in (limited, blocked, grouped):
        queue.send("1", group_key="g")
        queue.send("2", group_key="g")
        assert len(queue.claim()) == 1
    assert claim(queues) == []
    id = free.send()
    assert ids(claim(queues, 10)) == [id]
    paused.call("resume")
    assert len(claim(queues, 10)) == 2


def test_claim_any_of_ordered_queues_takes_one_message_per_group(some: list[Queue]) -> None:
    b = some[1].ordered()
    a1, a2, b1 = (b.send(group_key=group) for group in "aab")
    rows = claim(some, 10)
    assert ids(rows) == [a1, b1] and claim(some, 10) == []
    b.on("complete_batch", rows[0]["batch_key"])
    assert ids(claim(some, 10)) == [a2]


@pytest.mark.parametrize("kind", ["ring", "fair", "ordered", "max_active", "rate", "group_max_active"])
def test_claim_any_claims_every_kind_of_queue_as_claim_batch_does(q: Queue, kind: str) -> None:
    one, two = q.named(q.name + ".1"), q.named(q.name + ".2")
    sizes = []
    for queue in (one, two):
        queue.call("set_queue", **{kind: 2 if "max" in kind or kind == "rate" else 1})
        sizes.append([queue.send(priority=n % 2, group_key="ab"[n % 3 == 0]) for n in range(6)])
    places = []
    for queue, sent in zip((one, two), sizes, strict=True):
        rows = queue.claim(4) if queue is one else claim([q, two], 4)
        places.append([sent.index(row["id"]) for row in rows])
    assert places[0] == places[1] != []


def test_claim_any_takes_due_messages_and_expired_claims(some: list[Queue]) -> None:
    a, b, c = some
    a.send(run_at=in_an_hour())
    delayed = b.send(run_at=in_time(seconds=1))
    deadline = time.monotonic() + 30
    while not (rows := claim(some, 10)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ids(rows) == [delayed]
    lost = c.send()
    c.expired_key()
    deadline = time.monotonic() + 30
    while not (rows := claim(some, 10)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [(row["id"], row["attempt"]) for row in rows] == [(lost, 2)]


def test_claim_any_finds_what_is_put_back_and_what_commits_late(some: list[Queue], other: Queue) -> None:
    b = some[1]
    with other.session.transaction():
        late = other.named(b.name).send()
        sent = b.send_many(20)
        key = claim(some, 5)[0]["batch_key"]
        assert ids(claim(some, 5)) == sent[5:10]
    b.one("release_batch", key)
    found: list[int] = []
    deadline = time.monotonic() + 30
    while late not in found and time.monotonic() < deadline:
        found += ids(claim(some, 3))
        time.sleep(0.05)
    assert set(sent[:5]) <= {*found, *ids(claim(some, 20))} and late in found


def test_claim_any_continues_with_the_next_queue_when_others_are_claiming(some: list[Queue], other: Queue) -> None:
    a, b, _ = some
    first, second = a.send(), b.send()
    with a.session.transaction():
        assert ids(claim(some, 10)) == [first]
        assert ids(claim([other.named(queue.name) for queue in some], 10)) == [second]


def test_claim_any_rolled_back_returns_the_messages(some: list[Queue], other: Queue) -> None:
    id = some[1].send()
    with pytest.raises(ZeroDivisionError), some[0].session.transaction():
        assert len(claim(some)) == 1
        raise ZeroDivisionError
    rows = claim([other.named(queue.name) for queue in some])
    assert [(row["id"], row["attempt"]) for row in rows] == [(id, 1)]


def test_claim_any_of_an_archived_queue_completes_into_the_archive(some: list[Queue]) -> None:
    id = some[2].archived().send()
    some[2].on("complete_batch", claim(some)[0]["batch_key"])
    assert some[2].states() == {id: "C"}


def test_two_sessions_claim_every_message_of_many_queues_once(q: Queue, other: Queue) -> None:
    names = [f"{q.name}.{n}" for n in range(12)]
    sent = sorted(id for name in names for id in q.named(name).send_many(10))

    def work(by: Queue, names: list[str]) -> list[int]:
        found = []
        while rows := by.on("claim_any", "\n".join(names), 3):
            found += ids(rows)
            by.on("complete_batch", rows[0]["batch_key"])
            names = [*names[1:], names[0]]
        return found

    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(work, other, names[::-1])
        mine = work(q, names)
        found = mine + theirs.result(60)
    for name in names:
        found += ids(q.named(name).claim(100))
    assert sorted(found) == sent


# ---- wait_for_any --------------------------------------------------------------------------------


@pytest.fixture
def waits(can: Capabilities) -> None:
    """For tests in which the call waits."""
    if not can.waits:
        pytest.skip("nothing can wait inside this database")


def wait(queues: list[Queue], seconds: int | None = None) -> Row:
    [row] = queues[0].on("wait_for_any", lines(queues), seconds)
    return row


def test_wait_for_any_names_the_first_queue_that_is_ready(some: list[Queue]) -> None:
    a, b, c = some
    for queue in (c, b):
        queue.send()
        start = time.monotonic()
        assert wait(some, 30) == {"type": queue.name, "ready": 1, "next_run_at": None, "reason": "ready"}
        assert time.monotonic() - start < 5
    with b.unchanged():
        assert wait([c, b, a])["type"] == c.name


def test_wait_for_any_answers_at_once_when_not_asked_to_wait(some: list[Queue]) -> None:
    start = time.monotonic()
    assert wait(some) == wait(some, 0) == {"type": None, "ready": 0, "next_run_at": None, "reason": "unknown"}
    some[0].call("set_queue")
    assert wait(some) == {"type": None, "ready": 0, "next_run_at": None, "reason": "empty"}
    assert time.monotonic() - start < 5


def test_wait_for_any_returns_the_first_time_that_something_is_due(some: list[Queue]) -> None:
    a, b, c = some
    first = in_an_hour()
    a.send(run_at=first + timedelta(hours=2))
    c.send(run_at=first + timedelta(hours=1))
    b.send(run_at=first)
    assert wait(some) == {"type": b.name, "ready": 0, "next_run_at": first, "reason": "delayed"}
    b.call("pause")
    assert wait(some)["type"] == c.name
    a.call("pause")
    c.call("pause")
    assert wait(some) == {"type": None, "ready": 0, "next_run_at": None, "reason": "paused"}
    a.call("resume")
    a.send()
    assert wait(some) == {
        "type": a.name,
        "ready": 1,
        "next_run_at": first + timedelta(hours=2),
        "reason": "ready",
    }


def test_wait_for_any_of_one_queue_is_like_wait_for_message(q: Queue) -> None:
    def both() -> tuple[Row, Row]:
        one = wait([q])
        [other] = q.call("wait_for_message")
        return {name: value for name, value in one.items() if name != "type"}, other

    def same() -> str:
        one, other = both()
        assert one == other
        reason: str = one["reason"]
        return reason

    assert same() == "unknown"
    q.send(run_at=in_an_hour())
    assert same() == "delayed"
    q.send()
    assert same() == "ready"
    q.claim()
    assert same() == "delayed"
    q.call("set_queue", max_active=1)
    q.send()
    assert same() == "limited"


def test_wait_for_any_reports_blocked_queues(some: list[Queue]) -> None:
    some[0].ordered()
    for _ in "12":
        some[0].send(group_key="g")
    some[0].claim()
    # A ticket of a blocked group may remain until a claim drops it.
    assert some[0].claim() == []
    assert wait(some)["reason"] in {"blocked", "ready"}


@pytest.mark.usefixtures("waits")
def test_wait_for_any_returns_when_the_time_is_up(some: list[Queue]) -> None:
    start = time.monotonic()
    assert wait(some, 1)["ready"] == 0
    assert 0.9 < time.monotonic() - start < 5


def while_waiting(queues: list[Queue], event: Callable[[], object]) -> tuple[Row, float]:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(wait, queues, 30)
        time.sleep(0.3)
        assert not answer.done()
        event()
        start = time.monotonic()
        return answer.result(60), time.monotonic() - start


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("place", [0, 2])
def test_wait_for_any_returns_soon_after_another_session_sends_to_any(
    some: list[Queue], other: Queue, place: int
) -> None:
    row, seconds = while_waiting(some, other.named(some[place].name).send)
    assert (row["type"], row["ready"]) == (some[place].name, 1) and seconds < 5


@pytest.mark.usefixtures("waits")
def test_wait_for_any_returns_when_a_queue_is_resumed_or_a_message_is_due(some: list[Queue], other: Queue) -> None:
    some[1].send()
    some[1].call("pause")
    row, seconds = while_waiting(some, lambda: other.named(some[1].name).call("resume"))
    assert (row["type"], row["reason"]) == (some[1].name, "ready") and seconds < 5
    some[1].claim()
    some[2].send(run_at=in_time(seconds=1))
    assert wait(some, 30)["type"] == some[2].name
    assert len(claim(some)) == 1


def test_wait_for_any_answers_at_once_where_nothing_can_wait(some: list[Queue], can: Capabilities) -> None:
    if can.waits:
        pytest.skip("this database can wait")
    start = time.monotonic()
    assert wait(some, 60)["ready"] == 0 and time.monotonic() - start < 5


def test_wait_for_any_does_not_block_senders_or_other_waiters(some: list[Queue], other: Queue) -> None:
    others = [other.named(queue.name) for queue in some]
    with some[0].session.transaction():
        wait(some)
        assert wait(others)["ready"] == 0
        assert wait(others[::-1])["ready"] == 0
        others[1].send()
        assert wait(others)["type"] == some[1].name


def test_claims_and_waits_of_300_empty_queues_are_quick(q: Queue, connect: Callable[..., Session]) -> None:
    """Far less than 300 calls cost: most of it is the engine's own time."""
    names = "\n".join(f"{q.name}.{n}" for n in range(300))
    for procedure in ("claim_any", "wait_for_any"):
        q.on(procedure, names)
        start = time.monotonic()
        for _ in range(5):
            q.on(procedure, names)
        spent = (time.monotonic() - start) / 5
        print(f"{procedure} of 300 empty queues: {spent * 1000:.1f} ms")
        assert spent < 2
