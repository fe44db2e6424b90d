"""finish_messages: finish a part of a batch; the rest stays claimed."""

from datetime import timedelta

import pytest
from support.outcomes import dead_letter, done, failure, joined, released
from support.queues import LONG_AGO, NO_KEY, Queue, ids

LOST = "batch_key: this batch was finished, released or rescued"


def test_finish_messages_finishes_what_the_list_names_and_keeps_the_rest(q: Queue) -> None:
    done_, failed, dead, back, *kept = sent = q.send_many(6)
    key = q.claim_key(6, consumer="worker-7", lease_seconds=90)
    before = {row["id"]: row["lease_until"] for row in q.rows()}
    outcomes = joined(done(done_), failure(failed, "busy", 3_600), dead_letter(dead, "broken"), released(back))
    assert q.one("finish_messages", key, outcomes) == 4
    assert q.states() == {failed: "N", dead: "E", back: "N", **dict.fromkeys(kept, "A")}
    assert q.attempts() == {failed: 1, dead: 1, back: 0, **dict.fromkeys(kept, 1)}
    for id in kept:
        row = q.row(id)
        assert (row["consumer"], row["batch_key"], row["lease_until"]) == ("worker-7", key, before[id])
    assert ids(q.claim(10)) == [back]
    assert q.one("complete_batch", key) == 2
    assert sent


@pytest.mark.level(3)
def test_finish_messages_takes_thousands(q: Queue) -> None:
    sent = q.send_many(4_000)
    key = q.claim_key(4_000)
    finished, back, dead, kept = sent[:1_300], sent[1_300:2_600], sent[2_600:3_900], sent[3_900:]
    outcomes = (*map(done, finished), *map(released, back), *(dead_letter(id, "broken") for id in dead))
    assert q.one("finish_messages", key, joined(*outcomes)) == 3_900
    assert q.states() == {**dict.fromkeys(back, "N"), **dict.fromkeys(dead, "E"), **dict.fromkeys(kept, "A")}
    assert q.one("complete_batch", key) == 100


@pytest.mark.parametrize("outcomes", ["", "\n\n"])
def test_finish_messages_takes_an_empty_list(q: Queue, outcomes: str) -> None:
    q.send_many(2)
    key = q.claim_key(2)
    with q.unchanged():
        assert q.one("finish_messages", key, outcomes) == 0
    assert q.one("complete_batch", key) == 2


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("way", ["done", "failed", "released"])
def test_finish_messages_of_the_last_ones_ends_the_batch(q: Queue, size: int, way: str) -> None:
    sent = q.send_many(size)
    key = q.claim_key(size)
    line = {"done": done, "failed": lambda id: failure(id, "busy", 3_600), "released": released}[way]
    for id in sent:
        assert q.one("finish_messages", key, line(id)) == 1
    assert q.states() == ({} if way == "done" else dict.fromkeys(sent, "N"))
    with q.refused("lease_lost", LOST):
        q.on("finish_messages", key, line(sent[0]))
    assert q.one("release_batch", key) == 0 == q.one("extend_lease", key, 60)


def test_finish_messages_skips_ids_that_the_batch_does_not_hold(q: Queue) -> None:
    mine, other, foreign = q.send_many(3)
    key = q.claim_key(2)
    q.claim()
    assert q.one("finish_messages", key, joined(done(mine), done(foreign), released(foreign + 1_000_000))) == 1
    assert q.one("finish_messages", key, joined(dead_letter(mine, "late"), released(foreign))) == 0
    assert q.states() == {other: "A", foreign: "A"}


@pytest.mark.parametrize("bad", ["[1]", '{"id":1,"retry":1}', '{"id":1,"error":"a","released":1}', "{}", "1,-1,busy"])
def test_finish_messages_changes_nothing_for_one_bad_line(q: Queue, bad: str) -> None:
    id, _ = q.send_many(2)
    key = q.claim_key(2)
    with q.unchanged(), q.refused("invalid_argument", "outcomes: line 2: "):
        q.on("finish_messages", key, f"{done(id)}\n{bad}")
    with q.unchanged(), q.refused("invalid_argument", "outcomes: an id is given twice"):
        q.on("finish_messages", key, f"{done(id)}\n{released(id)}")


@pytest.mark.parametrize("ordered", [0, 1])
def test_finish_messages_with_a_lost_key_says_so_and_changes_nothing(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    sent = [q.send(group_key=str(n)) for n in range(2)]
    key = q.expired_key(2)
    q.call("rescue_expired")
    q.claim()
    for lost in (key, NO_KEY):
        for outcomes in ("", done(sent[0]), released(sent[1])):
            with q.unchanged(), q.refused("lease_lost", LOST):
                q.on("finish_messages", lost, outcomes)


def test_finish_messages_of_an_expired_batch_still_counts_before_the_rescue(q: Queue) -> None:
    first, second = q.send_many(2)
    key = q.expired_key(2)
    assert q.one("finish_messages", key, done(first)) == 1
    q.call("rescue_expired")
    assert q.states() == {second: "N"}


def test_finish_messages_puts_messages_back_at_their_old_place(q: Queue) -> None:
    old = q.send(run_at=LONG_AGO)
    q.one("fail", old, q.claim_key(), "busy", 0)
    newer = q.send(run_at=LONG_AGO + timedelta(days=1))
    key = q.claim_key(2)
    last = q.send(run_at=LONG_AGO + timedelta(hours=1))
    assert q.one("finish_messages", key, released(old)) == 1
    assert q.row(old)["run_at"] == LONG_AGO and q.attempts()[old] == 1
    assert ids(q.claim(3)) == [old, last]
    assert q.states()[newer] == "A"


def test_finish_messages_archives_with_results_when_the_policy_says_so(q: Queue) -> None:
    first, second = q.archived().send_many(2)
    key = q.claim_key(2)
    assert q.one("finish_messages", key, done(first)) == 1
    assert q.states() == {first: "C", second: "A"}
    assert q.row(first)["attempts"] == 1


def test_finish_messages_frees_the_dedup_key_of_what_is_done(q: Queue) -> None:
    keys = {q.send(dedup_key=key): key for key in "abc"}
    first, second, _ = keys
    q.one("finish_messages", q.claim_key(3), joined(done(first), released(second)))
    assert q.send(dedup_key="a") not in keys
    assert q.send(dedup_key="b") == second


def test_finish_messages_of_an_ordered_queue_frees_the_groups_and_puts_heads_back_in_front(q: Queue) -> None:
    q.ordered()
    a1, b1, c1, d1, a2, b2, c2, d2 = (q.send(group_key=group) for group in "abcdabcd")
    key = q.claim_key(10)
    assert q.one("finish_messages", key, joined(done(a1), released(b1), failure(c1, "busy", 3_600))) == 3
    assert ids(q.claim(10)) == [b1, a2], "a continues, b starts again, c waits for its retry, d1 is still active"
    assert q.states() == {b1: "A", c1: "N", d1: "A", a2: "A", b2: "N", c2: "N", d2: "N"}


@pytest.mark.parametrize("way", ["done", "released", "failed"])
def test_finish_messages_frees_places_under_the_limits(q: Queue, way: str) -> None:
    line = {"done": done, "released": released, "failed": lambda id: failure(id, "busy", 3_600)}[way]
    q.call("set_queue", max_active=3, group_max_active=2)
    first, *_ = [q.send(group_key=group) for group in "aabaab"]
    key = q.claim_key(10)
    assert q.claim(10) == []
    assert q.one("finish_messages", key, line(first)) == 1
    assert len(q.claim(10)) == 1
    assert q.claim(10) == []
    q.one("release_batch", key)
    assert len(q.claim(10)) == 2


def test_finish_messages_puts_messages_of_a_ring_back(q: Queue) -> None:
    q.call("set_queue", ring=1)
    sent = q.send_many(4)
    rows = q.call("claim_wraparound", size=3)
    key = rows[0]["batch_key"]
    assert q.one("finish_messages", key, joined(done(sent[0]), released(sent[2]))) == 2
    assert sorted(ids(q.call("claim_wraparound", size=10))) == [sent[2], sent[3]]
    assert q.states()[sent[1]] == "A"


def test_finish_messages_puts_messages_of_a_fair_queue_back(q: Queue) -> None:
    q.call("set_queue", fair=1)
    sent = [q.send(group_key=group) for group in "aab"]
    key = q.claim_key(3)
    q.one("finish_messages", key, joined(*map(released, sent[:2])))
    assert sorted(ids(q.claim(10))) == sent[:2]


@pytest.mark.parametrize("on_complete", ["delete", "archive"])
def test_finish_messages_finishes_thousands(q: Queue, on_complete: str) -> None:
    q.call("set_queue", on_complete=on_complete)
    sent = q.send_many(2_400)
    key = q.claim_key(2_400)
    lines = [[done, released, lambda id: dead_letter(id, "no")][n % 3](id) for n, id in enumerate(sent[:-1])]
    assert q.one("finish_messages", key, joined(*lines)) == 2_399
    states = list(q.states().values())
    assert [states.count(state) for state in "NEAC"] == [800, 799, 1, 800 if on_complete == "archive" else 0]
