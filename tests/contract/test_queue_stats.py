"""queue_stats: what each queue holds, cheaply."""

from datetime import UTC, datetime, timedelta

import pytest
from support.outcomes import failure
from support.queues import Queue, call, in_an_hour

EMPTY = {
    "ready": 0,
    "delayed": 0,
    "active": 0,
    "expired": 0,
    "dead": 0,
    "oldest_ready_seconds": None,
    "estimated": 0,
    "paused": 0,
}


def fill(q: Queue) -> None:
    """1 dead, 2 active, 3 expired, 4 delayed and 5 ready."""
    id = q.send(group_key="dead")
    q.one("dead_letter", id, q.claim_key(), "broken")
    for n in range(2):
        q.send(group_key=f"active {n}")
    assert len(q.claim(2)) == 2
    for n in range(3):
        q.send(group_key=f"expired {n}")
    assert len(q.claim_expired(3)) == 3
    for n in range(4):
        q.send(group_key=f"delayed {n}", run_at=in_an_hour())
    for n in range(5):
        q.send(group_key=f"ready {n // 2}")


def test_queue_stats_of_an_unknown_type_is_one_row_of_zeros(q: Queue) -> None:
    assert q.call("queue_stats") == [{"type": q.name, **EMPTY}]


@pytest.mark.parametrize("ordered", [0, 1])
def test_queue_stats_counts_every_state(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    fill(q)
    stats = q.stats()
    assert {name: stats[name] for name in ("ready", "delayed", "active", "expired", "dead")} == {
        "ready": 5,
        "delayed": 4,
        "active": 2,
        "expired": 3,
        "dead": 1,
    }
    assert (stats["estimated"], stats["paused"]) == (0, 0)
    assert 0 <= stats["oldest_ready_seconds"] < 60


def test_queue_stats_counts_what_is_due_but_not_promoted_as_ready(q: Queue) -> None:
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 0)
    stats = q.stats()
    assert (stats["ready"], stats["delayed"]) == (1, 0)
    assert stats["oldest_ready_seconds"] >= 0


def test_queue_stats_shows_how_long_the_first_message_has_been_due(q: Queue) -> None:
    q.send(run_at=datetime.now(UTC) - timedelta(seconds=500))
    q.send()
    assert 500 <= q.stats()["oldest_ready_seconds"] < 560


LONGER = pytest.mark.level(4)


@pytest.mark.level(3)
@pytest.mark.parametrize(
    "state",
    ["ready", "dead", *(pytest.param(state, marks=LONGER) for state in ("active", "expired", "delayed"))],
)
def test_queue_stats_is_exact_up_to_10000_and_estimates_above_that(q: Queue, state: str) -> None:
    """Claimed messages are always exact. delayed by failing, because send_batch has no run_at."""
    sent = q.send_many(9_999)
    fates = {"dead": -1, "delayed": 3_600}
    if state in fates:
        q.on("finish_batch", q.claim_key(9_999), "\n".join(failure(id, "x", fates[state]) for id in sent))
    keys = []
    for held in (9_999, 10_000, 10_001):
        if state in {"active", "expired"}:
            keys.append(q.claim_key(10_000))
        # Expired only meanwhile: a claim would rescue them.
        if state == "expired":
            q.expire()
        above = held > 10_000 and not keys
        assert (q.stats()[state], q.stats()["estimated"]) == (pytest.approx(held, rel=0.01 if above else 0), above)
        for key in keys:
            assert q.one("extend_lease", key, 600) > 0
        id = q.send(run_at=in_an_hour() if state == "delayed" else None)
        if state == "dead":
            q.one("dead_letter", id, q.claim_key(), "x")
    for key in keys:
        q.on("complete_batch", key)
    for purged in "NNEE":
        q.call("purge", purged, size=10_000)
    assert q.rows() == []


@pytest.mark.level(3)
@pytest.mark.parametrize("state", ["ready", "dead", pytest.param("delayed", marks=LONGER)])
def test_an_estimate_is_near_the_number(q: Queue, state: str) -> None:
    """Among messages of another queue. A quarter of the ready ones was completed."""
    held, fate = 0, {"delayed": 3_600, "dead": -1}.get(state)
    another = q.named(f"{q.name}.b")
    for n in range(3 if fate else 4):
        sent = q.send_many(4_000)
        another.send_many(1_500)
        if fate:
            q.on("finish_batch", q.claim_key(4_000), "\n".join(failure(id, "x", fate) for id in sent))
        elif n == 1:
            q.one("complete_batch", q.claim_key(4_000))
            continue
        held += 4_000
    for stats in (q.stats(), next(row for row in call(q.session, "queue_stats") if row["type"] == q.name)):
        assert stats["estimated"] == 1
        assert 0.8 * held < stats[state] < 1.2 * held
    for each in (q, another):
        for purged in "NE":
            while each.call("purge", purged)[0]["affected"]:
                pass


def test_queue_stats_without_a_type_lists_all_with_a_policy_or_a_message(q: Queue) -> None:
    names = {state: f"{q.name}.{state}" for state in ("policy", "ready", "delayed", "active", "dead", "grouped")}
    q.named(names["policy"]).call("set_queue")
    q.named(names["ready"]).send()
    q.named(names["delayed"]).send(run_at=in_an_hour())
    for state in ("active", "dead"):
        each = q.named(names[state])
        id = each.send()
        key = each.claim_key()
        if state == "dead":
            each.one("dead_letter", id, key, "x")
    q.named(names["grouped"]).ordered().send()
    rows = {row["type"]: row for row in call(q.session, "queue_stats")}
    assert set(names.values()) <= set(rows) and q.name not in rows
    for state in ("ready", "delayed", "active", "dead"):
        assert rows[names[state]][state] == 1
        assert rows[names[state]] == {
            **q.named(names[state]).stats(),
            "oldest_ready_seconds": rows[names[state]]["oldest_ready_seconds"],
        }


def test_queue_stats_without_a_type_lists_each_type_once(q: Queue) -> None:
    fill(q)
    types = [row["type"] for row in call(q.session, "queue_stats")]
    assert len(types) == len(set(types)) and q.name in types


def test_queue_stats_says_that_a_queue_is_paused(q: Queue) -> None:
    q.call("pause")
    assert q.stats()["paused"] == 1


def test_queue_stats_changes_nothing(q: Queue) -> None:
    fill(q)
    with q.unchanged():
        q.call("queue_stats")
        call(q.session, "queue_stats")
