"""drop_queue: remove the settings of a queue that holds no messages."""

from typing import Any

import pytest
from support.queues import Queue, in_an_hour

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"ordered": 1},
    "ring": {"ring": 1},
    "fair": {"fair": 1},
    "limits": {"group_max_active": 2, "group_rate": 100, "max_active": 5, "rate": 100},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def work_off(q: Queue, claim: str = "claim_batch") -> list[str]:
    """Claims and completes all; returns the bodies."""
    bodies = []
    while rows := q.call(claim, 10):
        bodies += [row["body"] for row in rows]
        q.on("complete_batch", rows[0]["batch_key"])
    return bodies


@each_kind
def test_drop_queue_removes_settings_groups_and_marks(q: Queue, kind: str) -> None:
    before = q.call("list_queues")[0]
    q.call("set_queue", lease_seconds=7, **KINDS[kind])
    q.call("pause")
    if kind not in {"plain", "ring"}:
        q.call("set_group", "g", max_active=1) if kind == "limits" else q.call("set_group", "g", 2)
    for n in range(3):
        q.send(f"{n}", group_key="g")
    q.call("resume")
    assert len(work_off(q, "claim_wraparound" if kind == "ring" else "claim_batch")) == 3
    assert q.call("drop_queue") == [{"known": 1}]
    assert q.call("list_queues") == [before]
    assert q.call("drop_queue") == [{"known": 0}]
    assert q.name not in {row["type"] for row in q.on("queue_stats")}
    q.send("new", group_key="g")
    assert work_off(q) == ["new"]


@pytest.mark.parametrize("state", ["ready", "delayed", "active", "dead"])
@pytest.mark.parametrize("kind", ["plain", "ordered"])
def test_drop_queue_refuses_a_queue_that_holds_a_message(q: Queue, kind: str, state: str) -> None:
    q.call("set_queue", **KINDS[kind])
    id = q.send(group_key="g", run_at=in_an_hour() if state == "delayed" else None)
    if state in {"active", "dead"}:
        key = q.claim_key()
        if state == "dead":
            q.on("dead_letter", id, key, "no")
    with q.refused("queue_not_empty", q.name, "purge"):
        q.call("drop_queue")
    assert q.call("list_queues")[0]["ordered"] == int(kind == "ordered")


def test_drop_queue_keeps_the_archive(q: Queue) -> None:
    id = q.archived().send()
    q.on("complete_batch", q.claim_key())
    q.call("drop_queue")
    assert q.states() == {id: "C"} and q.call("list_queues")[0]["on_complete"] == "delete"
    assert q.call("drop_queue") == [{"known": 1}], "the archive still has the name"
    assert q.count("purge", "C") == 1 and q.call("drop_queue") == [{"known": 0}]


@each_kind
def test_a_message_that_is_sent_at_the_same_time_is_not_lost(q: Queue, other: Queue, kind: str) -> None:
    q.call("set_queue", **KINDS[kind])
    with other.session.transaction():
        for n in range(3):
            other.send(f"{n}", group_key="g")
        q.call("drop_queue")
    assert sorted(work_off(q)) == ["0", "1", "2"]
    assert q.rows() == [] and q.stats()["ready"] == 0


def test_drop_queue_leaves_other_queues_alone(q: Queue) -> None:
    near = q.named(q.name + "x").ordered()
    near.send(group_key="g")
    q.call("set_queue", lease_seconds=7)
    q.call("drop_queue")
    assert near.call("list_queues")[0]["ordered"] == 1 and len(near.claim()) == 1
