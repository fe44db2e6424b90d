"""Many consumers whose leases end at once: each attempt has at most one outcome, and the loser's effect is undone."""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rowqueue.databases import Conflict, LeaseLost, QueueError, Session
from servers import Server
from support.crowd import Crowd, Ledger, Member, end_lease, numbers
from support.outcomes import dead_letter, done

MESSAGES = 60
SECONDS = 4.0
CONSUMERS = 6
WAYS = (
    "complete",
    "complete_batch",
    "finish_batch",
    "finish_batch dead",
    "finish_messages",
    "fail",
    "dead_letter",
    "set_result",
    "result",
)
LAST = (
    "complete",
    "complete_batch",
    "finish_batch",
    "finish_batch dead",
    "finish_messages",
    "dead_letter",
    "result",
)  # ends a message

Sql = Callable[..., list[dict[str, Any]]]


def outcome(session: Session, way: str, row: dict[str, Any]) -> None:
    """Record an outcome of a message that is claimed alone."""
    id, key = row["id"], row["batch_key"]
    if way in {"set_result", "result"}:
        session.call("set_result", id, key, f"attempt {row['attempt']}")
    if way in {"complete", "result"}:
        session.call("complete", id, key)
    elif way in {"complete_batch", "finish_batch"}:
        session.call(way, key)
    elif way == "finish_batch dead":
        session.call("finish_batch", key, dead_letter(id, f"attempt {row['attempt']}"))
    elif way == "finish_messages":
        session.call("finish_messages", key, done(id))
    elif way == "fail":
        session.call("fail", id, key, "busy", 0)
    elif way == "dead_letter":
        session.call("dead_letter", id, key, f"attempt {row['attempt']}")


def consume(member: Member, type: str, ledger: Ledger, batches: str) -> dict[str, Any]:
    """Claim with a lease that has ended, and record an outcome with an effect, while others claim the same message."""
    chance, session = random.Random(member.number), member.session
    ended: dict[tuple[int, int], str] = {}
    lost: Counter[str] = Counter()
    sent, until = 0, time.monotonic() + SECONDS
    while True:
        late = time.monotonic() > until
        rows = session.call("claim_batch", type, 1, None, 2 if late else 1)
        if late and not rows:
            [stats] = session.call("queue_stats", type)
            if not any(stats[state] for state in ("ready", "delayed", "active", "expired")):
                return {"ended": ended, "lost": lost, "sent": sent}
        for row in rows:
            if not late:
                end_lease(session, batches, row["batch_key"])
            way = chance.choice(LAST if late else WAYS)
            sends = way in LAST and not late  # another message in the place of the one that ends
            time.sleep(0 if late else chance.choice([0, 0.002, 0.02]))
            try:
                with session.transaction() as connection:
                    ledger.note(connection, rows, member.number)
                    if sends:
                        session.call("send", type, row["body"])
                    outcome(session, way, row)
                ended[row["id"], row["attempt"]] = way
                sent += sends
            except QueueError as error:
                assert isinstance(error, LeaseLost), error
                lost[way] += 1
            except Conflict:
                pass  # rolled back: the lease ends


def rescue(member: Member, type: str) -> int:
    count = 0
    while not member.stopped():
        count += member.session.call("rescue_expired", type)[0]["affected"]
        time.sleep(0.002)
    return count


def test_each_attempt_has_one_outcome_and_the_loser_of_a_lease_gets_the_error(
    crowd: Crowd, session: Session, server: Server, queue: str, ledger: Ledger, sql: Sql
) -> None:
    session.call("set_queue", queue, '{"max_attempts": 1000, "on_complete": "archive"}')
    session.call("send_batch", queue, numbers(0, MESSAGES))
    rescuers = crowd.start(rescue, queue)
    consumers = crowd.start(consume, queue, ledger, server.table("batch"), count=CONSUMERS)
    found = crowd.results(consumers)
    crowd.stop(rescuers)
    assert sum(crowd.results(rescuers)) > 0
    lost = sum((result["lost"] for result in found), Counter[str]())
    assert lost.keys() == set(WAYS), lost

    ended = {attempt: way for result in found for attempt, way in result["ended"].items()}
    assert len(ended) == sum(len(result["ended"]) for result in found), "two outcomes of one attempt"
    noted = Counter((row["id"], row["attempt"]) for row in sql(f"SELECT id, attempt FROM {ledger.name}"))
    assert noted == Counter(ended.keys()), "an effect without its outcome, or an outcome without its effect"

    last = {id: (attempt, way) for (id, attempt), way in sorted(ended.items()) if way in LAST}
    sent = MESSAGES + sum(result["sent"] for result in found)
    assert len(last) == sum(way in LAST for way in ended.values()) == sent, "a message ended twice, or never"
    results = {id: attempt for (id, attempt), way in sorted(ended.items()) if way in {"set_result", "result"}}
    for id, (attempt, way) in last.items():
        [row] = session.call("get_result", id)
        is_dead = way in {"dead_letter", "finish_batch dead"}
        kept = f"attempt {results[id]}" if id in results else None
        assert row == {
            "state": "E" if is_dead else "C",
            "result": kept,
            "error": f"attempt {attempt}" if is_dead else None,
        }
