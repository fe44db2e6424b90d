"""redrive and redrive_all: retry dead letters."""

from datetime import timedelta
from typing import Any

import pytest
from support.outcomes import dead_letter
from support.queues import LONG_AGO, Queue, ids


def dead(q: Queue, count: int, **options: Any) -> list[int]:
    """Messages that have died in order of id."""
    sent = [q.send(**options) for _ in range(count)]
    for id in sent:
        q.one("dead_letter", id, q.claim_key(), "broken")
    return sent


def test_redrive_makes_all_dead_messages_of_the_type_new_with_no_attempts(q: Queue) -> None:
    sent = dead(q, 3)
    assert q.count("redrive_all") == 3
    assert q.states() == dict.fromkeys(sent, "N")
    assert q.attempts() == dict.fromkeys(sent, 0)
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(id, 1) for id in sent]


def test_redrive_with_an_id_redrives_one_message(q: Queue) -> None:
    first, second = dead(q, 2)
    assert q.one("redrive", second) == 1
    assert q.states() == {first: "E", second: "N"}


def test_redrive_puts_a_message_back_at_its_old_place(q: Queue) -> None:
    [first] = dead(q, 1)
    later = q.send_many(3)
    assert ids(q.claim(1)) == later[:1]
    q.call("redrive_all")
    assert ids(q.claim(10)) == [first, *later[1:]]


def test_redrive_puts_a_message_that_has_failed_before_back_where_it_was_sent_to(q: Queue) -> None:
    id = q.send(run_at=LONG_AGO)
    for _ in range(2):
        q.one("fail", id, q.claim_key(), "busy", 0)
        assert q.row(id)["run_at"] > LONG_AGO
        q.one("dead_letter", id, q.claim_key(), "broken")
        assert q.count("redrive_all") == 1
        assert q.row(id)["run_at"] == LONG_AGO
    later = q.send(run_at=LONG_AGO + timedelta(days=1))
    assert ids(q.claim(2)) == [id, later]


def test_redrive_resets_the_attempts(q: Queue) -> None:
    q.call("set_queue", max_attempts=2)
    [id] = dead(q, 1)
    q.call("redrive_all")
    assert q.one("fail", id, q.claim_key(), "busy", 0) == "N"
    assert q.one("fail", id, q.claim_key(), "busy", 0) == "E"


def test_redrive_changes_nothing_that_is_not_dead(q: Queue) -> None:
    active, ready = q.send_many(2)
    q.claim()
    with q.unchanged():
        assert q.count("redrive_all") == 0
        for id in (active, ready, ready + 1_000_000):
            assert q.one("redrive", id) == 0


def test_redrive_all_leaves_other_queues_alone(q: Queue) -> None:
    dead(q, 1)
    with q.unchanged():
        assert q.named(q.name + "x").count("redrive_all") == 0


def test_redrive_without_an_id_and_redrive_all_without_a_queue_redrive_nothing(q: Queue) -> None:
    dead(q, 2)
    with q.refused("invalid_argument", "id", "redrive_all"):
        q.on("redrive", None)
    with q.refused("invalid_argument", "type"):
        q.on("redrive_all", None)


def test_redrive_all_does_at_most_so_many_the_oldest_first(q: Queue) -> None:
    sent = dead(q, 5)
    assert q.count("redrive_all", size=2) == 2
    assert q.states() == dict(zip(sent, "NNEEE", strict=True))
    assert q.count("redrive_all", "broken", 1) == 1
    assert q.states() == dict(zip(sent, "NNNEE", strict=True))
    assert q.count("redrive_all", "broken", 10_000) == 2


def test_redrive_keeps_the_dedup_key_taken(q: Queue) -> None:
    [id] = dead(q, 1, dedup_key="d")
    q.call("redrive_all")
    assert q.call("send_message", "b", dedup_key="d") == [{"id": id, "created": 0, "changed": 0, "state": "N"}]


@pytest.mark.level(1)
def test_redrive_all_does_the_1000_oldest_dead_a_call_or_up_to_10000(q: Queue) -> None:
    old = q.send_many(11_000)
    for _ in range(2):
        rows = q.claim(10_000)
        q.on("finish_batch", rows[0]["batch_key"], "\n".join(dead_letter(row["id"], "broken") for row in rows))
    [young] = dead(q, 1)
    assert q.count("redrive_all") == 1_000
    assert [id for id, state in q.states().items() if state == "N"] == old[:1_000]
    assert [q.count("redrive_all", size=10_000), q.states()[young]] == [10_000, "E"]
    assert [q.count("redrive_all"), q.count("redrive_all")] == [1, 0]
    assert [q.count("purge", "N", size=10_000) for _ in range(2)] == [10_000, 1_001]


def test_redrive_works_on_a_paused_queue(q: Queue) -> None:
    [id] = dead(q, 1)
    q.call("pause")
    assert q.count("redrive_all") == 1
    assert q.states() == {id: "N"} and q.claim() == []


def test_redrive_in_an_ordered_queue_goes_to_the_front_of_its_group(q: Queue) -> None:
    q.ordered()
    [first] = dead(q, 1, group_key="a")
    second, third = q.send(group_key="a"), q.send(group_key="a")
    key = q.claim_key(10)
    assert q.states()[second] == "A"
    assert q.count("redrive_all") == 1
    assert q.claim(10) == []
    q.on("complete_batch", key)
    assert ids(q.claim(10)) == [first]
    q.on("complete_batch", q.row(first)["batch_key"])
    assert ids(q.claim(10)) == [third]


@pytest.mark.parametrize("redriven_last", [True, False], ids=["redriven-last", "completed-last"])
@pytest.mark.parametrize("settings", [{"ordered": 1}, {"group_max_active": 1}, {"ordered": 1, "fair": 1}], ids=str)
def test_a_message_is_claimed_that_was_redriven_while_the_active_one_of_its_group_was_finished(
    q: Queue, other: Queue, settings: dict[str, int], redriven_last: bool
) -> None:
    q.call("set_queue", **settings)
    first, second = (q.send(group_key="a") for _ in range(2))
    q.one("dead_letter", first, q.claim_key(), "broken")
    key = q.claim_key()
    if redriven_last:
        with other.session.transaction():
            assert other.one("redrive", first) == 1
            assert q.one("complete", second, key) == 1
    else:
        with other.session.transaction():
            assert other.one("complete", second, key) == 1
            assert q.count("redrive_all") == 1
    assert ids(q.claim(10)) == [first]
