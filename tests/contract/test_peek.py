"""peek: look at messages without claiming them."""

from datetime import timedelta

import pytest
from support.outcomes import dead_letter
from support.queues import LONG_AGO, Queue, ids, in_an_hour


def test_peek_shows_new_messages_in_claim_order_the_delayed_ones_last(q: Queue) -> None:
    later = in_an_hour()
    delayed = q.send(run_at=later)
    late, urgent, early = q.send(), q.send(priority=-1), q.send(run_at=LONG_AGO)
    rows = q.call("peek")
    assert ids(rows) == [urgent, early, late, delayed]
    assert [row["run_at"] for row in rows[1:2] + rows[3:]] == [LONG_AGO, later]
    assert {row["state"] for row in rows} == {"N"}
    assert {row["attempts"] for row in rows} == {0}


def test_peek_shows_the_message_as_it_was_sent(q: Queue) -> None:
    options = {"priority": 3, "group_key": "g", "dedup_key": "d", "headers": "{}", "source": "shop"}
    id = q.send("text", **options)
    [row] = q.call("peek", "N")
    assert {name: row[name] for name in options} == options
    assert (row["id"], row["type"], row["body"]) == (id, q.name, "text")
    assert row["consumer"] is row["batch_key"] is row["lease_until"] is row["changed_at"] is row["error"] is None


def test_peek_shows_active_messages_and_who_holds_them(q: Queue) -> None:
    sent = q.send_many(2)
    claimed = q.claim(2, consumer="worker-7", lease_seconds=90)
    rows = q.call("peek", "A")
    assert sorted(ids(rows)) == sent
    for row in rows:
        assert (row["state"], row["consumer"], row["attempts"]) == ("A", "worker-7", 1)
        assert row["batch_key"] == claimed[0]["batch_key"]
        assert row["lease_until"] == claimed[0]["lease_until"] == row["changed_at"] + timedelta(seconds=90)


def test_peek_shows_dead_messages_with_their_error_the_newest_first(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim_key(3, consumer="worker-7")
    for id in sent:
        q.one("dead_letter", id, key, f"broken {id}")
    rows = q.call("peek", "E")
    assert ids(rows) == sent[::-1]
    for row in rows:
        assert (row["state"], row["error"], row["attempts"]) == ("E", f"broken {row['id']}", 1)
        assert row["changed_at"] >= row["created_at"] and row["consumer"] == "worker-7"
        assert row["batch_key"] is row["lease_until"] is None


def test_peek_shows_archived_messages_the_newest_first(q: Queue) -> None:
    sent = q.archived().send_many(3)
    key = q.claim_key(3, consumer="worker-7")
    for id in sent:
        q.one("complete", id, key)
    rows = q.call("peek", "C")
    assert ids(rows) == sent[::-1]
    assert {(row["state"], row["consumer"], row["attempts"]) for row in rows} == {("C", "worker-7", 1)}


def test_peek_shows_the_last_error_of_a_message_that_waits_for_its_next_attempt(q: Queue) -> None:
    id = q.send()
    q.one("fail", id, q.claim_key(), "busy", 3_600)
    [row] = q.call("peek", "N")
    assert (row["id"], row["attempts"], row["error"]) == (id, 1, "busy")


@pytest.mark.parametrize("state", list("NAEC"))
def test_peek_shows_at_most_size_messages(q: Queue, state: str) -> None:
    q.archived().send_many(5)
    if state != "N":
        rows = q.claim(5)
    if state == "E":
        q.on("finish_batch", rows[0]["batch_key"], "\n".join(dead_letter(row["id"], "x") for row in rows))
    if state == "C":
        q.on("complete_batch", rows[0]["batch_key"])
    assert [len(q.call("peek", state, size)) for size in (1, 3, 5, 10_000)] == [1, 3, 5, 5]


def test_peek_counts_ready_and_delayed_messages_together_for_size(q: Queue) -> None:
    ready = q.send_many(2)
    delayed = [q.send(run_at=in_an_hour()) for _ in range(3)]
    assert ids(q.call("peek", "N", 3)) == [*ready, delayed[0]]
    assert ids(q.call("peek", "N", 2)) == ready


@pytest.mark.parametrize("state", ["n", "", "D", "NA"])
def test_peek_refuses_any_other_state(q: Queue, state: str) -> None:
    with q.refused("invalid_argument", "state: must be N, A, E or C"):
        q.call("peek", state)


def test_peek_shows_only_its_own_type(q: Queue) -> None:
    q.send()
    assert all(q.named(q.name + "x").call("peek", state) == [] for state in "NAEC")


def test_peek_changes_nothing_and_waits_for_nobody(q: Queue, other: Queue) -> None:
    sent = q.send_many(3)
    with q.session.transaction():
        q.claim(2)
        with other.unchanged():
            assert ids(other.call("peek", "N")) == sent
            assert other.call("peek", "A") == []


def test_peek_shows_a_paused_queue(q: Queue) -> None:
    id = q.send()
    q.call("pause")
    assert ids(q.call("peek")) == [id]


def test_peek_of_an_ordered_queue_shows_each_new_message_once(q: Queue) -> None:
    q.ordered()
    sent = [q.send(group_key=group) for _ in range(2) for group in "ab"]
    assert sorted(ids(q.call("peek"))) == sent
    q.claim(10)
    assert sorted(ids(q.call("peek"))) == sent[2:]
    assert sorted(ids(q.call("peek", "A"))) == sent[:2]


def test_peek_shows_so_much_of_each_body_in_every_state(q: Queue) -> None:
    q.archived()
    for state in "CEAN":
        q.send("é😀" * 5)
        if state != "N":
            [row] = q.claim()
        if state == "C":
            q.on("complete", row["id"], row["batch_key"])
        if state == "E":
            q.on("dead_letter", row["id"], row["batch_key"], "broken")
    q.send("é😀" * 5, run_at=in_an_hour())
    for state in "NAEC":
        for length, body in ((3, "é😀é"), (0, ""), (10, "é😀" * 5), (11, "é😀" * 5), (None, "é😀" * 5)):
            found = {row["body"] for row in q.call("peek", state, body_length=length)}
            assert found == {body}, state
