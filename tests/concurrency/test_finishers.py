"""Processes claim, finish and send at once, each in its own session: no deadlock and no lock timeout."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from crowd import Crowd, Ledger, Member, mailbox, numbers
from outcomes import dead_letter
from rowqueue.databases import Session

pytestmark = pytest.mark.one_engine

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
    done: defaultdict[str, int] = defaultdict(int)
    ways = ("complete_batch", "finish_batch", "complete", "fail")
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
        else:
            assert call("dead_letter", batch[0][0], key, "no")[0]["state"] == "E"
        rest = len(batch) - {"complete": 3, "fail": 1}.get(way, len(batch))
        if rest > 0:  # a batch without messages is gone
            assert call("complete_batch", key)[0]["affected"] == rest
        done[way] += len(batch)
    return dict(done)


def keep(member: Member, type: str) -> None:
    """The calls that an operator's tools make all the time."""
    while not member.stopped():
        assert member.session.call("rescue_expired", type)[0]["affected"] == 0
        member.session.call("queue_stats", type)
        time.sleep(0.02)


@pytest.mark.heavy("firebird")
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
