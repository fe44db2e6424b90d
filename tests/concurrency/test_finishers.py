"""Processes claim, finish and send at once, each in its own session: no deadlock and no lock timeout."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Session
from support.crowd import Crowd, Ledger, Member, mailbox, numbers
from support.outcomes import dead_letter, done, joined, released

CLAIMERS = 8
PRODUCERS = 4
FINISHERS = 4
MESSAGES = 25_000
SEND = 250
BATCH = 100

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]


def produce(member: Member, type: str, first: int) -> None:
    for n in range(first, first + MESSAGES // PRODUCERS, SEND):
        member.session.call("send_batch", type, numbers(n, SEND))


def claim(member: Member, type: str, batches: Any) -> int:
    """Claim until stopped and nothing is left; returns how many."""
    count = 0
    while True:
        last = member.stopped()
        rows = member.session.call("claim_batch", type, BATCH, None, 600)
        count += len(rows)
        if rows:
            batches.put([(row["id"], row["batch_key"], row["body"], row["attempt"]) for row in rows])
        elif last:
            return count
        else:
            time.sleep(0.02)


def finish(member: Member, ledger: Ledger, batches: Any) -> dict[str, int]:
    """Send a heartbeat and finish what others claimed, in every way; returns how many in each way."""
    count: defaultdict[str, int] = defaultdict(int)
    ways = ("complete_batch", "finish_batch", "complete", "finish_messages", "fail")
    turn = member.number
    while batch := batches.get():
        key, call = batch[0][1], member.session.call
        assert call("extend_lease", key, 600)[0]["affected"] == len(batch)
        with member.session.transaction() as connection:
            rows = [{"id": id, "body": body, "attempt": attempt} for id, _, body, attempt in batch]
            ledger.note(connection, rows, member.number)
        turn += 1
        way = ways[turn % len(ways)]
        if way == "complete_batch":
            assert call("complete_batch", key)[0]["affected"] == len(batch)
        elif way == "finish_batch":
            assert call("finish_batch", key, dead_letter(batch[0][0], "no")) == []
        elif way == "complete":
            for id, *_ in batch[:3]:
                assert call("complete", id, key)[0]["affected"] == 1
        elif way == "finish_messages":
            lines = joined(dead_letter(batch[0][0], "no"), *(done(id) for id, *_ in batch[1:40]))
            assert call("finish_messages", key, lines)[0]["affected"] == len(batch[:40])
        else:
            assert call("dead_letter", batch[0][0], key, "no")[0]["state"] == "E"
        rest = len(batch) - {"complete": 3, "finish_messages": 40, "fail": 1}.get(way, len(batch))
        if rest > 0:  # a batch without messages is gone
            assert call("complete_batch", key)[0]["affected"] == rest
        count[way] += len(batch)
    return dict(count)


def keep(member: Member, type: str) -> None:
    """The calls that an operator's tools make all the time."""
    while not member.stopped():
        assert member.session.call("rescue_expired", type)[0]["affected"] == 0
        member.session.call("queue_stats", type)
        time.sleep(0.02)


@pytest.mark.level(3)
def test_claimers_finishers_and_producers_get_no_conflict_and_lose_nothing(
    crowd: Crowd, session: Session, queue: str, ledger: Ledger, sql: Sql, holds: Look, rest: Look
) -> None:
    """A deadlock or a time-out would be an error of the member that met it: nothing is tried again here."""
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    batches = mailbox()
    keeper = crowd.start(keep, queue)
    finishers = crowd.start(finish, ledger, batches, count=FINISHERS)
    claimers = crowd.start(claim, queue, batches, count=CLAIMERS)
    producers = [crowd.start(produce, queue, n * MESSAGES // PRODUCERS)[0] for n in range(PRODUCERS)]
    crowd.results(producers)
    crowd.stop(claimers)
    claimed = crowd.results(claimers)
    assert sum(claimed) == MESSAGES
    for _ in finishers:
        batches.put(None)
    finished = crowd.results(finishers)
    crowd.stop(keeper)
    crowd.results(keeper)
    assert sum(sum(ways.values()) for ways in finished) == MESSAGES
    found = sql(
        "SELECT count(*) AS handled, count(DISTINCT id) AS ids, min(n) AS first, max(n) AS last,"
        f" count(DISTINCT n) AS bodies, max(attempt) AS attempts FROM {ledger.name}"
    )[0]
    assert [found["handled"], found["ids"], found["bodies"]] == [MESSAGES] * 3
    assert (found["first"], found["last"], found["attempts"]) == (0, MESSAGES - 1, 1)
    left = rest(queue)
    assert left.keys() == {"message", "dead"} and left["message"] == left["dead"]
    assert holds(queue).keys() == {"dead"}


def finish_parts(member: Member, key: Any, ids: list[int]) -> int:
    """Finish some messages of a batch of which others finish the rest: ten per call, every fifth is given back."""
    count = 0
    for n in range(0, len(ids), 10):
        some = [released(id) if id % 5 == 0 else done(id) for id in ids[n : n + 10]]
        count += member.session.call("finish_messages", key, joined(*some))[0]["affected"]
        assert member.session.call("extend_lease", key, 600)[0]["affected"] > 0
    return count


def test_several_sessions_finish_parts_of_one_batch(crowd: Crowd, session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    session.call("send_batch", queue, numbers(0, 401))
    rows = session.call("claim_batch", queue, 401, None, 600)
    key, (last, *ids) = rows[0]["batch_key"], sorted((row["id"] for row in rows), key=lambda id: id % 5 != 1)
    members = [crowd.start(finish_parts, key, ids[n::4])[0] for n in range(4)]
    assert crowd.results(members) == [100] * 4
    [stats] = session.call("queue_stats", queue)
    back = sum(id % 5 == 0 for id in ids)
    assert (stats["ready"], stats["active"]) == (back, 1)
    assert session.call("finish_messages", key, done(last)) == [{"affected": 1}]
    assert len(session.call("claim_batch", queue, 1000)) == back
