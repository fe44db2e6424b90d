"""release_consumer: release everything that one consumer holds."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from rowqueue.databases import QueueError
from support.queues import LONG_AGO, Queue, ids


def me(q: Queue) -> str:
    """A name that no other test uses, and that looks like a pattern."""
    return f"{q.name}%_/'\\"


def release(q: Queue, consumer: str) -> int:
    [row] = q.on("release_consumer", consumer)
    assert list(row) == ["affected"]
    affected: int = row["affected"]
    return affected


def claim(q: Queue, size: int = 1, consumer: str | None = None, **options: object) -> list[dict[str, object]]:
    return q.call("claim_batch", size, me(q) if consumer is None else consumer, **options)


def test_release_consumer_releases_all_batches_of_all_queues(q: Queue) -> None:
    second = q.named(q.name + ".2")
    sent, more = q.send_many(4), second.send_many(2)
    claim(q, 2)
    claim(q)
    second.call("claim_batch", 2, me(q))
    [kept] = claim(q, 1, me(q) + "x")
    assert release(q, me(q)) == 5
    assert q.states() == dict.fromkeys(sent[:3], "N") | {kept["id"]: "A"}
    assert second.states() == dict.fromkeys(more, "N")
    assert set(q.attempts().values()) == {0, 1} and set(second.attempts().values()) == {0}
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(id, 1) for id in sent[:3]]
    assert ids(second.claim(10)) == more
    assert release(q, me(q)) == 0


@pytest.mark.parametrize("name", ["", "X", "x%", "_", "é"])
def test_release_consumer_of_another_name_releases_nothing(q: Queue, name: str) -> None:
    q.send()
    claim(q, 1, me(q) + "x")
    with q.unchanged():
        assert release(q, me(q) + name) == 0


def test_release_consumer_releases_only_what_is_still_held(q: Queue) -> None:
    sent = q.send_many(4)
    key = claim(q, 3)[0]["batch_key"]
    q.one("complete", sent[0], key)
    q.one("dead_letter", sent[1], key, "broken")
    assert release(q, me(q)) == 1
    assert q.states() == {sent[1]: "E", sent[2]: "N", sent[3]: "N"}


def test_release_consumer_ends_the_lease_of_the_old_holder(q: Queue) -> None:
    id = q.send()
    key = claim(q)[0]["batch_key"]
    assert release(q, me(q)) == 1
    with q.refused("lease_lost", "batch_key"):
        q.on("complete", id, key)
    with q.refused("lease_lost", "batch_key"):
        q.on("complete_batch", key)
    with q.unchanged():
        assert q.one("release_batch", key) == q.one("extend_lease", key) == 0
    [row] = q.claim()
    with q.refused("lease_lost", "batch_key"):
        q.on("complete", id, key)
    assert q.one("complete", id, row["batch_key"]) == 1


def test_release_consumer_releases_an_expired_batch_that_is_not_rescued(q: Queue) -> None:
    id = q.send()
    q.expire(claim(q)[0]["batch_key"])
    assert release(q, me(q)) == 1
    assert (q.states(), q.attempts()) == ({id: "N"}, {id: 0})
    q.expire(claim(q)[0]["batch_key"])
    q.call("rescue_expired")
    with q.unchanged():
        assert release(q, me(q)) == 0
    assert q.claim()[0]["attempt"] == 2


def test_release_consumer_keeps_the_attempts_that_were_made_before(q: Queue) -> None:
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 0)
    claim(q)
    assert release(q, me(q)) == 1
    assert q.attempts() == {id: 1}


def test_release_consumer_puts_messages_back_at_their_old_place(q: Queue) -> None:
    old = q.send(run_at=LONG_AGO)
    sent = q.send_many(3)
    claim(q)
    q.on("complete_batch", q.claim_key())
    assert release(q, me(q)) == 1
    assert ids(q.claim(2)) == [old, sent[1]]


def test_release_consumer_of_an_ordered_queue_puts_the_heads_back_in_front(q: Queue) -> None:
    q.ordered()
    sent = [q.send(group_key=group) for _ in range(2) for group in "ab"]
    claim(q, 10)
    assert release(q, me(q)) == 2
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(sent[0], 1), (sent[1], 1)]
    assert q.claim(10) == []


@pytest.mark.parametrize("kind", ["ring", "fair", "max_active", "group_max_active"])
def test_release_consumer_in_other_kinds_of_queues(q: Queue, kind: str) -> None:
    q.call("set_queue", **{kind: 1})
    first, second = q.send(group_key="g"), q.send(group_key="g")
    procedure = "claim_wraparound" if kind == "ring" else "claim_batch"
    assert ids(q.call(procedure, 1, me(q))) == [first]
    assert release(q, me(q)) == 1
    assert q.states() == {first: "N", second: "N"}
    # A ring continues after the place where this consumer stopped.
    assert ids(q.call(procedure, 1, me(q))) == ([second] if kind == "ring" else [first])


def test_release_consumer_works_while_a_queue_is_paused_and_with_priorities(q: Queue) -> None:
    sent = [q.send(priority=priority) for priority in (2, 1)]
    claim(q, 2)
    q.call("pause")
    assert release(q, me(q)) == 2
    assert q.claim() == []
    q.call("resume")
    assert ids(q.claim(2)) == sent[::-1]


def test_release_consumer_rolled_back_leaves_the_messages_held(q: Queue) -> None:
    id = q.send()
    key = claim(q)[0]["batch_key"]
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert release(q, me(q)) == 1
        raise ZeroDivisionError
    assert q.states() == {id: "A"}
    assert q.one("complete", id, key) == 1


def test_release_consumer_releases_the_lane_of_a_dedup_key(q: Queue) -> None:
    id = q.send(dedup_key="d")
    claim(q)
    assert release(q, me(q)) == 1
    assert q.call("send_message", "b", dedup_key="d")[0]["id"] == id


@pytest.mark.parametrize("name", [None, "", "x" * 201])
def test_release_consumer_refuses_a_name_outside_its_limits(q: Queue, name: str | None) -> None:
    with q.refused("invalid_argument", "consumer: "):
        q.on("release_consumer", name)


def test_release_consumer_and_completes_of_the_same_batches_never_do_both(q: Queue, other: Queue) -> None:
    """The holder completes while the operator releases: each message is either completed or released."""
    completed: list[int] = []
    lost = released = 0
    for _ in range(15):
        sent = q.send_many(3)
        keys = [claim(q)[0]["batch_key"] for _ in sent]
        with ThreadPoolExecutor(1) as pool:
            releasing = pool.submit(release, other, me(q))
            for id, key in zip(sent, keys, strict=True):
                try:
                    assert q.one("complete", id, key) == 1
                    completed.append(id)
                except QueueError as error:
                    assert "lease_lost" in str(error)
                    lost += 1
            released += releasing.result(60)
        rows = q.claim(10)
        assert not {row["id"] for row in rows} & set(completed)
        assert len(rows) == len(set(sent) - set(completed))
        if rows:
            q.on("complete_batch", rows[0]["batch_key"])
    assert lost == released
    assert q.rows() == []
