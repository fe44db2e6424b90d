"""claim_batch: up to size ready messages under one new batch key."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from rowqueue.databases import Session
from servers import Server
from support.queues import LONG_AGO, Queue, ids, in_an_hour


def test_claim_batch_claims_in_order_of_priority_then_run_at_then_id(q: Queue) -> None:
    late = [q.send(), q.send()]
    urgent = q.send(priority=-1)
    early = q.send(run_at=LONG_AGO)
    idle = q.send(priority=1, run_at=LONG_AGO)
    assert ids(q.claim(10)) == [urgent, early, *late, idle]


def test_claim_batch_claims_up_to_size_under_one_key(q: Queue) -> None:
    sent = q.send_many(5)
    rows = q.claim(3)
    assert ids(rows) == sent[:3]
    assert len({row["batch_key"] for row in rows}) == 1
    assert q.states() == dict.fromkeys(sent[:3], "A") | dict.fromkeys(sent[3:], "N")
    assert ids(q.claim(10)) == sent[3:]
    assert q.claim(10) == []


def test_claim_batch_claims_one_when_no_size_is_given(q: Queue) -> None:
    q.send_many(3)
    assert len(q.call("claim_batch")) == 1


def test_claim_batch_claims_10000_at_once(q: Queue) -> None:
    sent = q.send_many(10_000)
    rows = q.claim(10_000)
    assert ids(rows) == sent
    assert q.one("complete_batch", rows[0]["batch_key"]) == 10_000


def test_claim_batch_returns_the_message_as_it_was_sent(q: Queue) -> None:
    options = {"priority": 3, "group_key": "g", "dedup_key": "d", "headers": "{}", "source": "shop"}
    id = q.send("text", **options)
    [row] = q.claim()
    assert {name: row[name] for name in options} == options
    assert (row["id"], row["type"], row["body"], row["attempt"]) == (id, q.name, "text", 1)


def test_claim_batch_records_the_consumer_and_the_lease(q: Queue) -> None:
    id = q.send()
    [claimed] = q.claim(consumer="worker-7", lease_seconds=90)
    row = q.row(id)
    assert (row["consumer"], row["batch_key"]) == ("worker-7", claimed["batch_key"])
    assert row["lease_until"] == claimed["lease_until"] == row["changed_at"] + timedelta(seconds=90)


def test_claim_batch_names_a_consumer_after_its_application(q: Queue, connect: Callable[..., Session]) -> None:
    id = q.send()
    q.by(connect("mailer")).claim()
    assert q.row(id)["consumer"].startswith("mailer/")


def test_claim_batch_skips_messages_that_another_session_is_claiming(q: Queue, other: Queue) -> None:
    sent = q.send_many(4)
    with q.session.transaction():
        assert ids(q.claim(2)) == sent[:2]
        assert ids(other.claim(10)) == sent[2:]
    assert q.states() == dict.fromkeys(sent, "A")


def test_a_rolled_back_claim_batch_returns_the_messages_without_counting_an_attempt(q: Queue, other: Queue) -> None:
    sent = q.send_many(3)
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.claim(2)
        raise ZeroDivisionError
    assert [(row["id"], row["attempt"]) for row in other.claim(10)] == [(id, 1) for id in sent]


def test_claim_batch_does_not_see_a_message_before_its_sender_commits(q: Queue, other: Queue) -> None:
    with q.session.transaction():
        late = q.send()
        assert other.claim() == []
        after = other.send()
        assert ids(other.claim(10)) == [after]
        newer = other.send_many(30)
        assert ids(other.claim(10)) == newer[:10]
    # A message that commits late is before the mark; it must be found within about a second.
    deadline = time.monotonic() + 30
    found: list[int] = []
    while late not in found and time.monotonic() < deadline:
        other.send()
        found += ids(other.claim(1))
    assert late in found


def test_claim_batch_leaves_delayed_messages_alone(q: Queue) -> None:
    q.send(run_at=in_an_hour(), priority=-100)
    ready = q.send()
    assert ids(q.claim(10)) == [ready]


def test_claim_batch_sees_only_its_own_type(q: Queue) -> None:
    q.send()
    assert q.named(q.name + "x").claim(10) == []
    assert q.named(q.name[:-1]).claim(10) == []


def test_claim_batch_returns_nothing_from_a_paused_queue(q: Queue) -> None:
    q.send()
    q.call("pause")
    with q.unchanged():
        assert q.claim(10) == []


def test_claim_batch_rescues_expired_claims_on_the_way(q: Queue) -> None:
    id = q.send()
    lost = q.expired_key()
    deadline = time.monotonic() + 30
    while not (rows := q.claim()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [(row["id"], row["attempt"]) for row in rows] == [(id, 2)]
    with q.refused("lease_lost", "batch_key"):
        q.on("complete_batch", lost)


def test_claim_batch_keeps_the_order_when_a_failed_message_comes_back(q: Queue) -> None:
    """A retry is due when it failed: after messages that were ready then, before messages sent later."""
    sent = q.send_many(3)
    [first] = q.claim()
    q.one("fail", first["id"], first["batch_key"], "busy", 0)
    late = q.send()
    assert ids(q.claim(10)) == [sent[1], sent[2], sent[0], late]


def test_claim_batch_returns_the_attempt_of_each_of_several_consecutive_messages(q: Queue) -> None:
    sent = q.send_many(3)
    key = q.claim(3)[0]["batch_key"]
    q.one("fail", sent[2], key, "busy", 0)
    q.one("release_batch", key)
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == list(zip(sent, [1, 1, 2], strict=True))


def test_claim_batch_keeps_the_order_of_priorities_whose_first_and_last_ids_look_like_a_run(q: Queue) -> None:
    sent = [q.send(priority=priority) for priority in (0, 2, 1, 3)]
    rows = q.claim(10)
    assert ids(rows) == [sent[0], sent[2], sent[1], sent[3]]
    assert (q.one("complete_batch", rows[0]["batch_key"]), q.rows()) == (4, [])


def test_claim_batch_of_an_ordered_queue_takes_one_message_a_group_in_order(q: Queue) -> None:
    q.ordered()
    sent = {(n, group): q.send(group_key=group) for n in range(3) for group in "abc"}
    for n in range(3):
        rows = q.claim(10)
        assert ids(rows) == [sent[n, group] for group in "abc"]
        assert q.claim(10) == []
        q.on("complete_batch", rows[0]["batch_key"])
    assert q.claim(10) == [] and q.rows() == []


def test_claim_batch_of_an_ordered_queue_continues_with_a_group_whose_head_is_done(q: Queue) -> None:
    q.ordered()
    a1, b1, a2, b2 = (q.send(group_key=group) for group in "abab")
    a, b = q.claim(2)
    q.one("complete", a["id"], a["batch_key"])
    assert ids(q.claim(10)) == [a2]
    assert q.states() == {b1: "A", a2: "A", b2: "N"}
    q.one("complete", b["id"], b["batch_key"])
    assert ids(q.claim(10)) == [b2]
    assert a1 not in q.states()


def test_claim_batch_of_an_ordered_queue_waits_for_a_head_that_failed(q: Queue) -> None:
    q.ordered()
    head, _next, free = q.send(group_key="a"), q.send(group_key="a"), q.send(group_key="b")
    [row] = q.claim()
    assert row["id"] == head
    q.one("fail", head, row["batch_key"], "busy", 3_600)
    assert ids(q.claim(10)) == [free]
    assert q.claim(10) == []


def test_claim_batch_of_an_ordered_queue_takes_a_failed_head_first_again(q: Queue) -> None:
    q.ordered()
    head, _next = q.send(group_key="a"), q.send(group_key="a")
    q.one("fail", head, q.claim_key(), "busy", 0)
    assert [(row["id"], row["attempt"]) for row in q.claim(10)] == [(head, 2)]


def test_claim_batch_of_an_ordered_queue_continues_after_a_dead_head(q: Queue) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    assert q.one("dead_letter", head, q.claim_key(), "broken") == "E"
    assert ids(q.claim(10)) == [second]
    assert q.states() == {head: "E", second: "A"}


def test_claim_batch_of_an_ordered_queue_does_not_pass_a_claim_in_progress(q: Queue, other: Queue) -> None:
    q.ordered()
    first, second = q.send(group_key="a"), q.send(group_key="a")
    with q.session.transaction():
        [row] = q.claim(10)
        assert row["id"] == first
        assert other.claim(10) == []
    assert other.claim(10) == []
    q.on("complete_batch", row["batch_key"])
    assert ids(other.claim(10)) == [second]


def test_claim_batch_of_an_ordered_queue_after_a_rolled_back_claim_starts_at_the_head(q: Queue, other: Queue) -> None:
    first = q.ordered().send(group_key="a")
    q.send(group_key="a")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert ids(q.claim(10)) == [first]
        raise ZeroDivisionError
    assert [(row["id"], row["attempt"]) for row in other.claim(10)] == [(first, 1)]


def test_claim_batch_finds_messages_of_many_priorities_past_its_marks(q: Queue) -> None:
    """More priorities than a queue has low-water marks, sent repeatedly after claims."""
    for turn in range(4):
        sent = {priority: q.send(priority=priority) for priority in range(20, -20, -1)}
        claimed = [id for _ in range(20) for id in ids(q.claim(2))]
        assert claimed == [sent[priority] for priority in sorted(sent)], turn


def test_claims_work_after_the_table_of_marks_is_emptied(q: Queue, other: Queue, server: Server) -> None:
    """The repair in docs/background/how-a-claim-works.md, while the queue is in use."""
    sent = {priority: [q.send(priority=priority) for _ in range(4)] for priority in (-1, 0, 7)}
    assert ids(q.claim(5)) == [*sent[-1], sent[0][0]]
    q.sql(f"DELETE FROM {server.table('mark')} WHERE type = %s", q.name)
    assert ids(other.claim(4)) == [*sent[0][1:], sent[7][0]]
    q.sql(f"DELETE FROM {server.table('mark')} WHERE type = %s", q.name)
    urgent = q.send(priority=-5)
    assert ids(q.claim(100)) == [urgent, *sent[7][1:]]
    q.sql(f"DELETE FROM {server.table('mark')} WHERE type = %s", q.name)
    assert q.claim(1) == []


def test_the_lowered_mark_of_a_long_transaction_is_deleted(q: Queue, other: Queue, server: Server) -> None:
    """It is far behind the marks of the claims that ran in the meantime."""
    mark = server.table("mark")

    def newest() -> int:
        n: int = q.sql(f"SELECT MAX(n) AS n FROM {mark} WHERE type = %s", q.name)[0]["n"]
        return n

    def renew(ahead: int) -> None:
        """Let the next claim be a full scan that many numbers ahead."""
        n = newest()
        q.sql(f"UPDATE {mark} SET n = n + {ahead}, scanned_at = '2000-01-01' WHERE type = %s AND n = %s", q.name, n)
        q.send()
        q.claim()

    q.send()
    key = other.claim_key()
    q.send()
    q.claim()
    with other.session.transaction():
        other.on("release_batch", key)
        renew(500)
    for _ in range(2):
        renew(-newest() % 100)
    numbers = [row["n"] for row in q.sql(f"SELECT n FROM {mark} WHERE type = %s", q.name)]
    assert min(numbers) > 400


def test_claim_batch_finds_at_once_what_a_sender_commits_after_a_newer_message_was_claimed(
    q: Queue, other: Queue
) -> None:
    """Within a second. Later commits may wait for the next full scan: see tests/concurrency/test_late_commits.py."""
    for _ in range(5):
        begun = time.monotonic()
        with other.session.transaction():
            late = other.send()
            newer = q.send()
            assert ids(q.claim(1)) == [newer]
        found = ids(q.claim(1))
        if time.monotonic() - begun < 0.8:
            assert found == [late]
            return
        q = q.named(f"{q.name}x")
        other = other.named(q.name)
    pytest.skip("the machine is too slow for what happens within a second")


def test_claim_batch_finds_at_once_what_is_sent_before_between_and_after_the_priorities_that_it_knows(q: Queue) -> None:
    known = [q.send(priority=0), q.send(priority=7)]
    assert ids(q.claim(10)) == known
    for priority in (-7, 3, 9, 0, 7, -7, 3, 9):
        sent = [q.send(priority=priority), q.send(priority=7)]
        assert ids(q.claim(10)) == sorted(sent, key=lambda id: (priority if id == sent[0] else 7, id))


def test_claim_batch_of_one_finds_at_once_what_is_sent_or_due_before_the_priorities_that_it_knows(q: Queue) -> None:
    known = [q.send(), q.send(), q.send()]
    assert ids(q.claim(1)) == known[:1]
    urgent = q.send(priority=-7)
    assert ids(q.claim(1)) == [urgent]
    due = q.send(priority=-9, run_at=datetime.now(UTC) + timedelta(milliseconds=200))
    time.sleep(0.25)
    assert [(row["id"], row["attempt"]) for row in q.claim(1)] == [(due, 1)]
    assert ids(q.claim(1)) == known[1:2]


def test_claim_batch_of_one_counts_attempts(q: Queue) -> None:
    q.send()
    [row] = q.claim(1)
    for attempt in range(1, 4):
        assert row["attempt"] == attempt
        assert q.one("fail", row["id"], row["batch_key"], "busy", 0) == "N"
        [row] = q.claim(1)


@pytest.mark.parametrize("way", ["claim_batch", "finish_batch", "claim_wraparound"])
def test_a_batch_key_says_nothing_about_the_next_one(q: Queue, way: str) -> None:
    """Each digit is random, except the two that hold the version of a UUID."""
    count = 40
    if way == "claim_wraparound":
        q.ring()
    q.send_many(count)
    keys = [q.call("claim_wraparound" if way == "claim_wraparound" else "claim_batch")[0]["batch_key"]]
    while len(keys) < count:
        rows = q.on("finish_batch", keys[-1], None, 1) if way == "finish_batch" else q.call(way)
        keys.append(rows[0]["batch_key"])
    digits = list(zip(*(str(key).replace("-", "") for key in keys), strict=True))
    assert len(digits) == 32
    alike = [n for n, found in enumerate(digits) if len(set(found)) < 5]
    assert alike in ([], [12], [12, 16])
    assert all(len(set(digits[n])) == 1 for n in alike[:1])
