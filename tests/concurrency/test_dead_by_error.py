"""Many consumers fail with few errors, while others redrive by error: each death is counted, and redriven once."""

import time
from collections import Counter

import pytest
from rowqueue.databases import Session
from support.crowd import Crowd, Member, numbers
from support.outcomes import dead_letter

MESSAGES = 1_000
ERRORS = 3
SECONDS = 3.0


def fail_all(member: Member, type: str) -> Counter[str]:
    """Dead-letters what it claims; returns how many with each error."""
    made: Counter[str] = Counter()
    deadline = time.monotonic() + SECONDS
    rows = member.session.call("claim_batch", type, 20, None, 600)
    while rows or time.monotonic() < deadline:
        if not rows:
            time.sleep(0.02)
            rows = member.session.call("claim_batch", type, 20, None, 600)
            continue
        texts = {row["id"]: f"broken {row['id'] % ERRORS} at {'abc'[row['id'] % ERRORS]}" for row in rows}
        failures = "\n".join(dead_letter(id, text) for id, text in texts.items())
        size = 20 if time.monotonic() < deadline else 0
        after = member.finish(rows[0]["batch_key"], failures, size)
        made.update(text[-1] for text in texts.values())
        rows = after or []
    return made


def redrive_errors(member: Member, type: str) -> Counter[str]:
    """Redrives one error after the other; returns how many of each."""
    made: Counter[str] = Counter()
    while not member.stopped():
        letter = "abc"[(member.number + sum(made.values())) % ERRORS]
        made[letter] += member.session.call("redrive_all", type, f"broken # at {letter}")[0]["affected"]
        listed = member.session.call("list_errors", type)
        assert all(0 < row["messages"] <= MESSAGES for row in listed)
        assert {row["error"] for row in listed} <= {f"broken # at {letter}" for letter in "abc"}
    return made


@pytest.mark.level(3)
def test_every_death_is_counted_and_redriven_once(crowd: Crowd, session: Session, queue: str) -> None:
    session.call("send_batch", queue, numbers(0, MESSAGES))
    consumers = crowd.start(fail_all, queue, count=16)
    operators = crowd.start(redrive_errors, queue, count=2)
    died: Counter[str] = sum(crowd.results(consumers), Counter())
    crowd.stop(operators)
    redriven: Counter[str] = sum(crowd.results(operators), Counter())
    left = {row["error"][-1]: row["messages"] for row in session.call("list_errors", queue)}
    assert +Counter(left) == died - redriven
    assert sum(redriven.values()) > 0
    stats = session.call("queue_stats", queue)[0]
    assert stats["ready"] + stats["dead"] == MESSAGES
    for letter, count in left.items():
        calls = [session.call("redrive_all", queue, f"broken # at {letter}")[0]["affected"] for _ in range(2)]
        assert calls == [count, 0]
    assert session.call("list_errors", queue) == []
    assert session.call("purge", queue, "N")[0]["affected"] == MESSAGES
