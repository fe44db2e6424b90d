"""Claims of a ring: the next messages in order of ids, wrapping around."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from rowqueue.databases import Row, Session, open_database
from rowqueue.install import apply as install
from servers import Server
from support.outcomes import failure
from support.queues import Queue, call, ids, in_an_hour


@pytest.fixture
def q(q: Queue) -> Queue:
    """A ring."""
    return q.ring()


# The calls that claim for a named consumer.
any_way = pytest.mark.parametrize("way", ["claim_wraparound", "claim_batch", "claim_any"])


def claim(q: Queue, way: str, size: int, consumer: str | None = "me", lease: int | None = None) -> list[Row]:
    """Claim round-robin with any of the calls; the first queue of the list of claim_any is empty."""
    if way == "claim_any":
        return q.on(way, f"{q.name}.empty\n{q.name}", size, consumer, lease)
    return q.call(way, size, consumer, lease)


def visit(q: Queue, size: int, consumer: str = "me", **options: int) -> list[int]:
    """Claim round-robin and fail the whole batch, to be retried at once."""
    rows = q.call("claim_wraparound", size, consumer, **options)
    again(q, rows)
    return ids(rows)


def again(q: Queue, rows: list[Row]) -> None:
    failures = "\n".join(failure(row["id"], "again", 0) for row in rows)
    assert q.on("finish_batch", rows[0]["batch_key"], failures, 0) == []


def ring(q: Queue, size: int, consumer: str = "me", **options: int) -> list[int]:
    """Claim round-robin and return the ids."""
    return ids(q.call("claim_wraparound", size, consumer, **options))


@any_way
def test_a_claim_of_a_ring_orders_by_id_and_ignores_priority(q: Queue, way: str) -> None:
    sent = [q.send(priority=priority) for priority in (5, -5, 0)]
    assert ids(claim(q, way, 10)) == sent


@any_way
def test_a_claim_of_a_ring_continues_where_the_consumer_stopped(q: Queue, way: str) -> None:
    sent = q.send_many(6)
    assert [ids(claim(q, way, 2)) for _ in range(4)] == [sent[:2], sent[2:4], sent[4:], []]


@any_way
def test_a_claim_of_a_ring_continues_after_the_last_id_of_a_released_batch(q: Queue, way: str) -> None:
    sent = q.send_many(6)
    rows = claim(q, way, 3)
    q.on("release_batch", rows[0]["batch_key"])
    rows = claim(q, way, 6)
    assert ids(rows) == [*sent[3:], *sent[:3]]
    assert [row["body"] for row in rows] == list("345012")
    assert [row["attempt"] for row in rows] == [1] * 6


def test_all_calls_share_the_position_of_a_consumer(q: Queue) -> None:
    sent = q.send_many(8)
    [first] = claim(q, "claim_batch", 1)
    [second] = q.on("finish_batch", first["batch_key"], failure(first["id"], "again", 0), 1)
    claimed = [first, second, *claim(q, "claim_any", 2), *claim(q, "claim_wraparound", 2), *claim(q, "claim_batch", 3)]
    assert ids(claimed) == [*sent, sent[0]]


def test_the_next_batch_of_finish_batch_goes_round_from_the_position_of_the_batchs_consumer(q: Queue) -> None:
    """Failed messages are claimed again after all others, also those with a higher priority."""
    q.call("set_queue", max_attempts=9)
    sent = [q.send(priority=-n) for n in range(6)]
    rows = claim(q, "claim_batch", 2, "a", 77)
    assert ids(claim(q, "claim_batch", 1, "b")) == [sent[2]]
    key = rows[0]["batch_key"]
    seen = [ids(rows)]
    for _ in range(3):
        rows = q.on("finish_batch", key, "\n".join(failure(row["id"], "again", 0) for row in rows), 2)
        key = rows[0]["batch_key"]
        seen.append(ids(rows))
    assert seen == [sent[:2], sent[3:5], [sent[5], sent[0]], [sent[1], sent[3]]]
    assert ids(q.on("finish_batch", key, None, 10)) == [sent[4], sent[5], sent[0]]
    assert q.states().keys() == {sent[n] for n in (0, 2, 4, 5)}
    assert {row["consumer"] for row in q.rows()} == {"a", "b"}


def test_finish_batch_returns_nothing_when_the_ring_holds_nothing_more(q: Queue) -> None:
    [id] = q.send_many(1)
    [row] = claim(q, "claim_batch", 5)
    [row] = q.on("finish_batch", row["batch_key"], failure(id, "again", 0), 5)
    assert (row["id"], row["attempt"]) == (id, 2)
    assert q.on("finish_batch", row["batch_key"], None, 5) == []


def test_get_message_goes_round_a_ring_from_the_position_of_its_session(q: Queue, other: Queue) -> None:
    sent = [q.send(priority=-n) for n in range(4)]
    seen = []
    for _ in range(6):
        [row] = q.call("get_message")
        seen.append(row["id"])
        q.on("release_batch", row["batch_key"])
    assert seen == [*sent, *sent[:2]]
    assert ids(other.call("get_message")) == [sent[0]]
    assert ids(claim(q, "claim_batch", 1, None)) == [sent[2]]


@any_way
def test_a_ring_whose_ids_are_not_a_run_returns_each_body_with_its_id(q: Queue, way: str) -> None:
    """After the last id, and in the middle of the ring, beside messages that others hold."""
    sent = q.send_many(8)
    claim(q, "claim_wraparound", 1, "other")
    q.on("cancel", sent[3])
    assert [(row["id"], row["body"]) for row in claim(q, way, 4)] == [(sent[n], str(n)) for n in (1, 2, 4, 5)]
    q.call("claim_wraparound", 1, "other", None, sent[6])
    q.send("late")
    assert [row["body"] for row in claim(q, way, 3)] == ["6", "late"]


def test_a_queue_that_is_no_longer_a_ring_is_claimed_by_priority(q: Queue) -> None:
    for n in range(4):
        q.send(str(n), priority=-n)
    assert [row["body"] for row in q.claim(1)] == ["0"]
    q.call("set_queue", ring=0)
    assert [row["body"] for row in q.claim(1)] == ["3"]
    q.ring()
    assert [row["body"] for row in claim(q, "claim_batch", 2)] == ["1", "2"]


@any_way
@pytest.mark.parametrize("limit", [{"max_active": 3}, {"rate": 3, "rate_seconds": 86_400}], ids=str)
def test_a_ring_with_a_limit_continues_after_what_was_claimed(q: Queue, way: str, limit: dict[str, int]) -> None:
    q.call("set_queue", **limit)
    sent = q.send_many(6)
    rows = claim(q, way, 2)
    more = claim(q, way, 2)
    assert ids([*rows, *more]) == sent[:3]
    assert claim(q, way, 2) == []
    q.on("release_batch", rows[0]["batch_key"])
    assert ids(claim(q, way, 3)) == (sent[3:5] if "max_active" in limit else [])
    q.call("set_queue", max_active=0, rate=0)
    assert ids(claim(q, way, 2)) == ([sent[5], sent[0]] if "max_active" in limit else sent[3:5])


def test_claim_wraparound_wraps_inside_one_batch_and_claims_nothing_twice(q: Queue) -> None:
    sent = q.send_many(6)
    assert ring(q, 10, after_id=sent[3]) == [sent[4], sent[5], *sent[:4]]


def test_claim_wraparound_starts_after_after_id(q: Queue) -> None:
    sent = q.send_many(4)
    assert ring(q, 1, after_id=sent[1]) == [sent[2]]
    assert ring(q, 1, after_id=0) == [sent[0]]
    assert ring(q, 1, after_id=sent[-1]) == [sent[1]]


def test_claim_wraparound_takes_after_id_anywhere(q: Queue) -> None:
    sent = q.send_many(3)
    assert ring(q, 1, after_id=-(1 << 63)) == [sent[0]]
    assert ring(q, 1, after_id=(1 << 63) - 1) == [sent[1]]


@any_way
def test_a_round_robin_claim_retries_a_failed_message_in_the_next_round_only(q: Queue, way: str) -> None:
    """The purpose of a ring: a message that always fails does not come back before all others had their turn."""
    sent = q.send_many(4)
    seen = []
    for _ in range(8):
        [row] = claim(q, way, 1)
        seen.append(row["id"])
        q.one("fail", row["id"], row["batch_key"], "busy", 0)
    assert seen == sent * 2


@any_way
def test_a_claim_of_a_ring_keeps_a_position_for_each_consumer(q: Queue, way: str) -> None:
    sent = q.send_many(6)
    assert ids(claim(q, way, 2, "a")) == sent[:2]
    assert ids(claim(q, way, 1, "b")) == [sent[2]]
    assert ids(claim(q, way, 1, "a")) == [sent[3]]
    assert ids(claim(q, way, 1, "b")) == [sent[4]]


def test_claim_wraparound_keeps_its_position_across_connections(q: Queue, other: Queue) -> None:
    sent = q.send_many(4)
    [row] = q.call("claim_wraparound", 1, "me", after_id=sent[1])
    assert row["id"] == sent[2]
    q.on("release_batch", row["batch_key"])
    assert ring(other, 1) == [sent[3]]


@any_way
def test_a_rolled_back_claim_of_a_ring_keeps_the_old_position(q: Queue, way: str) -> None:
    sent = q.send_many(4)
    rows = claim(q, way, 1)
    assert ids(rows) == [sent[0]]
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert ids(q.on("finish_batch", rows[0]["batch_key"], None, 1)) == [sent[1]]
        assert ids(claim(q, way, 1)) == [sent[2]]
        raise ZeroDivisionError
    assert ids(q.on("finish_batch", rows[0]["batch_key"], None, 1)) == [sent[1]]
    assert ids(claim(q, way, 1)) == [sent[2]]


@any_way
def test_a_claim_of_a_ring_keeps_its_position_when_it_finds_nothing(q: Queue, way: str) -> None:
    sent = q.send_many(2)
    assert ids(claim(q, way, 2)) == sent
    assert claim(q, way, 2) == []
    more = q.send_many(2)
    assert ids(claim(q, way, 1)) == [more[0]]


def test_claim_wraparound_skips_what_another_session_is_claiming(q: Queue, other: Queue) -> None:
    sent = q.send_many(4)
    with q.session.transaction():
        assert ring(q, 2, after_id=sent[1]) == sent[2:]
        assert ring(other, 4, "other", after_id=sent[2]) == sent[:2]


def test_claim_wraparound_promotes_what_is_due_and_leaves_what_is_not(q: Queue) -> None:
    q.send(run_at=in_an_hour())
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 0)
    assert ring(q, 10) == [id]


def test_claim_wraparound_rescues_expired_claims_on_the_way(q: Queue) -> None:
    id = q.send()
    q.claim_expired()
    deadline = time.monotonic() + 10
    while not (rows := q.call("claim_wraparound")):  # the first claim of each second rescues
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [(row["id"], row["attempt"]) for row in rows] == [(id, 2)]


@pytest.mark.parametrize("settings", [{}, {"ordered": 1}, {"fair": 1}, {"group_max_active": 1}], ids=str)
def test_claim_wraparound_of_a_queue_that_is_no_ring_says_how_to_declare_it(q: Queue, settings: dict[str, int]) -> None:
    q = q.named(f"{q.name}.other")
    q.call("set_queue", **settings)
    q.send(group_key="g")
    with q.refused("wrong_kind", q.name, "set_option", "ring"):
        q.call("claim_wraparound")


@any_way
def test_a_claim_returns_nothing_from_a_paused_ring(q: Queue, way: str) -> None:
    q.send()
    q.call("pause")
    with q.unchanged():
        assert claim(q, way, 10) == []


def test_claim_wraparound_and_claim_batch_share_a_queue(q: Queue) -> None:
    sent = q.send_many(6)
    assert ids(q.claim(2)) == sent[:2]
    assert ring(q, 2, after_id=sent[3]) == sent[4:]
    assert ids(q.claim(10)) == sent[2:4]


def test_claim_batch_finds_at_once_a_message_put_back_below_its_mark_in_a_ring(q: Queue) -> None:
    sent = q.send_many(4)
    [row] = q.call("claim_wraparound", 1, "me")
    assert ids(q.claim(1)) == sent[1:2]
    q.one("fail", row["id"], row["batch_key"], "busy", 0)
    assert sorted(ids(q.call("take_batch", 5))) == [sent[0], *sent[2:]]


def test_claim_wraparound_visits_twenty_messages_of_which_three_use_up_their_attempts(q: Queue) -> None:
    q.call("set_queue", max_attempts=3)
    sent = q.send_many(20)
    number = {id: n for n, id in enumerate(sent, 1)}

    def batch() -> list[int]:
        return [number[id] for id in visit(q, 10)]

    assert batch() == [*range(1, 11)]
    assert batch() == [*range(11, 21)]
    for n in (5, 10, 15):
        for _ in range(2):
            assert visit(q, 1, "other", after_id=sent[n - 1] - 1) == [sent[n - 1]]
    assert [number[id] for id, state in q.states().items() if state == "E"] == [5, 10, 15]
    assert batch() == [1, 2, 3, 4, 6, 7, 8, 9, 11, 12]
    assert batch() == [13, 14, 16, 17, 18, 19, 20, 1, 2, 3]


def test_claim_wraparound_returns_each_once_when_fewer_are_left_than_asked_for(q: Queue) -> None:
    sent = q.send_many(4)
    assert visit(q, 3) == sent[:3]
    assert visit(q, 10) == [sent[3], *sent[:3]]
    assert visit(q, 10) == [sent[3], *sent[:3]]


@pytest.mark.parametrize(
    ("start", "first", "second"),
    [(0, 2, 3), (3, 2, 3), (4, 2, 3), (5, 2, 3)],
    ids=["ahead", "one goes round", "the other starts anew", "both go round"],
)
@pytest.mark.parametrize("last", ["the first", "the second"])
def test_of_two_claims_of_one_consumer_at_once_the_one_that_went_further_counts(
    q: Queue, other: Queue, start: int, first: int, second: int, last: str
) -> None:
    """In either order of commits: neither consumer visits what the other has visited, and neither waits."""
    sent = q.send_many(6)
    order = [*sent[start:], *sent[:start]]
    if start:
        before = q.call("claim_wraparound", start, "me")
        q.on("release_batch", before[0]["batch_key"])
    with ExitStack() as one, ExitStack() as two:
        one.enter_context(q.session.transaction())
        rows = q.call("claim_wraparound", first, "me")
        two.enter_context(other.session.transaction())
        more = other.call("claim_wraparound", second, "me")
        (two if last == "the first" else one).close()
    assert [ids(rows), ids(more)] == [order[:first], order[first : first + second]]
    q.on("release_batch", rows[0]["batch_key"])
    q.on("release_batch", more[0]["batch_key"])
    assert ring(q, 1) == [order[first + second]]


def test_claim_wraparound_with_after_id_ignores_the_consumers_position(q: Queue) -> None:
    sent = q.send_many(6)
    assert visit(q, 5) == sent[:5]
    assert visit(q, 2, after_id=0) == sent[:2]
    assert visit(q, 2) == sent[2:4]


def test_round_robin_claims_leave_few_rows_of_positions(q: Queue, sql: Callable[..., list[dict[str, Any]]]) -> None:
    q.send_many(7)
    for size in (1, 2, 3, 5, 7, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1):
        visit(q, size)
        visit(q, size, "other", after_id=0)
    table = q.can.view.replace("message_state", "ring")
    rows = sql(f"SELECT consumer FROM {table} WHERE type = %s", q.name)
    assert max(Counter(row["consumer"] for row in rows).values()) <= 2


def test_consumers_that_race_round_a_ring_share_its_messages(q: Queue, connect: Callable[..., Session]) -> None:
    """Each has its own position; only one holds a message at a time, and all are visited about equally often."""
    q.call("set_queue", max_attempts=1_000)
    sent = q.send_many(40)
    held: set[int] = set()
    turns: Counter[int] = Counter()

    def read(number: int) -> None:
        session = connect(f"consumer-{number}")
        turn = 0
        begun = time.monotonic()
        deadline = begun + 30
        # A message that was put back at the moment of another claim is found by the first claim of a second.
        while turn < 25 or time.monotonic() < begun + 3:
            rows = call(session, "claim_wraparound", q.name, 5, f"consumer-{number}")
            if not rows:
                assert time.monotonic() < deadline, "all are with the others, all the time"
                continue
            turn += 1
            mine = set(ids(rows))
            assert not held & mine
            held.update(mine)
            turns.update(mine)
            held.difference_update(mine)
            failures = "\n".join(failure(id, "again", 0) for id in mine)
            call(session, "finish_batch", rows[0]["batch_key"], failures, 0)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(read, number) for number in range(4)]:
            done.result()
    assert turns.keys() == set(sent)
    assert min(turns.values()) >= 2


def test_claim_wraparound_keeps_its_position_after_a_server_restart(private_server: Server) -> None:
    url = private_server.create_database()
    database = open_database(url)
    install.apply(database)
    session = database.connect("before")
    call(session, "set_queue", "crawl", ring=1)
    call(session, "send_batch", "crawl", "a\nb\nc\nd")
    [*_, last] = rows = call(session, "claim_wraparound", "crawl", 2, "me")
    call(session, "release_batch", rows[0]["batch_key"])
    session.close()
    private_server.stop()
    private_server.start()
    session = database.connect("after")
    assert [row["body"] for row in call(session, "claim_wraparound", "crawl", 3, "me")] == ["c", "d", "a"]
    assert last["body"] == "b"
    session.close()
