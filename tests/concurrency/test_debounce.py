"""Senders change live messages while consumers claim them; results of lost leases; topics bound during publishes."""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Conflict, QueueError, Row, Session
from support.crowd import Crowd, Member
from support.waiting import until

SENDERS = CONSUMERS = 8
KEYS = 4
CALLS = 120
RESULTS = 300
PUBLISHED = 150
DRAIN_SECONDS = 90

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]

# One accepted call: message, body, created, and the times of the call and of its answer.
Accepted = tuple[int, str, int, float, float]


def again(member: Member, procedure: str, *arguments: Any) -> list[Row]:
    """A call, repeated after a conflict."""
    while True:
        try:
            return member.session.call(procedure, *arguments)
        except Conflict:
            continue


def debounce(member: Member, type: str) -> tuple[list[Accepted], int]:
    """Sends with few keys, each call with its own body; also returns how many calls changed nothing."""
    chance = random.Random(member.number)
    accepted: list[Accepted] = []
    passed_over = 0
    for n in range(CALLS):
        key, body = f"k{chance.randrange(KEYS)}", f"{member.number}/{n}"
        how, delay = ("postpone", 0) if chance.random() < 0.2 else ("replace", chance.choice([None, 0, 0, 1]))
        options = (None, chance.randrange(3), key, key, None, None, None, delay, how)
        begun = time.monotonic()
        [row] = again(member, "send_message", type, body, *options)
        if row["created"] or (row["changed"] and how == "replace"):
            accepted.append((row["id"], body, row["created"], begun, time.monotonic()))
        passed_over += not (row["created"] or row["changed"])
    return accepted, passed_over


def work_off(member: Member, type: str) -> list[tuple[int, str]]:
    """Claims, works for a moment and completes, until stopped."""
    chance = random.Random(member.number)
    done = []
    while not member.stopped():
        rows = again(member, "claim_batch", type, 2, None, 600)
        if not rows:
            time.sleep(0.005)
            continue
        time.sleep(chance.random() * 0.01)
        done += [(row["id"], row["body"]) for row in rows]
        assert again(member, "complete_batch", rows[0]["batch_key"])[0]["affected"] == len(rows)
    return done


@pytest.mark.level(3)
@pytest.mark.parametrize("ordered", [0, 1])
def test_each_debounced_message_is_handled_once_with_the_last_body_that_was_accepted(
    crowd: Crowd, session: Session, queue: str, holds: Look, rest: Look, ordered: int
) -> None:
    session.call("set_queue", queue, json.dumps({"ordered": ordered}))
    consumers = crowd.start(work_off, queue, count=CONSUMERS)
    sent = crowd.results(crowd.start(debounce, queue, count=SENDERS))
    until(lambda: holds(queue) == {}, "the end of the queue", DRAIN_SECONDS)
    crowd.stop(consumers)
    done = [pair for each in crowd.results(consumers) for pair in each]
    accepted = [call for calls, _ in sent for call in calls]
    assert sorted(id for id, _ in done) == sorted(id for id, _, created, _, _ in accepted if created)
    for id, body in done:
        calls = {body: (begun, ended) for known, body, _, begun, ended in accepted if known == id}
        assert body in calls, f"message {id}: {body} was not accepted"
        _, ended = calls[body]
        assert not [other for other, (begun, _) in calls.items() if begun > ended], f"message {id}: {body} was replaced"
    # There was a real race: some calls changed a message, and some came too late.
    assert sum(not created for _, _, created, _, _ in accepted) > CALLS // 4
    assert sum(passed_over for _, passed_over in sent) > 0
    assert rest(queue) == {}


def replace(member: Member, type: str) -> set[tuple[int, int]]:
    """Replaces one message repeatedly; returns the results of the calls: (created, changed)."""
    said = set()
    for n in range(CALLS):
        options = (None, None, None, "key", None, None, None, None, "replace")
        [row] = member.session.call("send_message", type, f"{member.number}/{n}", *options)
        said.add((row["created"], row["changed"]))
    return said


@pytest.mark.level(3, one=True)
def test_senders_never_pass_over_what_another_sender_is_changing(crowd: Crowd, session: Session, queue: str) -> None:
    """No consumer claims: each call waits for another one and then changes the message."""
    session.call("send_message", queue, "first", None, None, None, "key")
    said = crowd.results(crowd.start(replace, queue, count=SENDERS))
    assert set().union(*said) == {(0, 1)}
    assert len(session.call("peek", queue, "N", 10)) == 1


def leave_results(member: Member, type: str) -> dict[int, str]:
    """Claims with leases that mostly expire, sets results, and returns the messages that it finished."""
    chance = random.Random(member.number)
    finished: dict[int, str] = {}
    while not member.stopped():
        rows = member.session.call("claim_batch", type, 3, None, 1)
        results = {}
        for row in rows:
            text = f"{member.number}/{row['id']}/{row['attempt']}"
            try:
                member.session.call("set_result", row["id"], row["batch_key"], text)
            except QueueError as error:
                assert "lease_lost" in str(error)
                continue
            results[row["id"]] = text
        time.sleep(chance.choice([0, 0, 0.01, 0.9, 1.05]))
        if rows and member.finish(rows[0]["batch_key"]) is not None:
            assert results.keys() == {row["id"] for row in rows}
            finished |= results
        elif not rows:
            time.sleep(0.01)
    return finished


def rescue(member: Member, type: str) -> None:
    while not member.stopped():
        member.session.call("rescue_expired", type)


@pytest.mark.level(3, one=True)
def test_a_message_keeps_the_result_of_the_consumer_that_finished_it(
    crowd: Crowd, session: Session, queue: str, holds: Look
) -> None:
    session.call(
        "set_queue",
        queue,
        '{"max_attempts": 1000, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive"}',
    )
    session.call("send_batch", queue, "\n".join(map(str, range(RESULTS))))
    members = crowd.start(leave_results, queue, count=CONSUMERS)
    rescuers = crowd.start(rescue, queue, count=2)
    until(lambda: holds(queue) == {}, "the end of the queue", DRAIN_SECONDS)
    crowd.stop(members + rescuers)
    crowd.results(rescuers)
    finished: dict[int, str] = {}
    for each in crowd.results(members):
        assert not finished.keys() & each.keys()
        finished |= each
    assert len(finished) == RESULTS
    for id, text in finished.items():
        assert session.call("get_result", id) == [{"state": "C", "result": text, "error": None}]


def publish(member: Member, topic: str) -> tuple[int, int]:
    """Publishes until both types were bound at times; returns how often, and how many messages it sent."""
    sent, count, deadline = 0, 0, time.monotonic() + DRAIN_SECONDS
    while count < PUBLISHED or (sent == count and time.monotonic() < deadline):
        sent += int(member.session.call("publish", topic, f"{member.number}")[0]["affected"])
        count += 1
    return count, sent


def rebind(member: Member, pattern: str, type: str) -> None:
    while not member.stopped():
        member.session.call("bind_topic", pattern, type)
        member.session.call("unbind_topic", pattern, type)


@pytest.mark.level(1)
def test_a_message_is_published_to_the_types_that_are_bound_at_that_moment(
    crowd: Crowd, session: Session, queue: str, rest: Look
) -> None:
    topic, always, sometimes = "t" + queue.rpartition(".")[2], f"{queue}.a", f"{queue}.b"
    session.call("bind_topic", f"{topic}.#", always)
    binders = crowd.start(rebind, f"{topic}.*", sometimes, count=2)
    published, sent = map(sum, zip(*crowd.results(crowd.start(publish, f"{topic}.x", count=4)), strict=True))
    crowd.stop(binders)
    crowd.results(binders)
    session.call("unbind_topic", None, sometimes)
    session.call("unbind_topic", None, always)
    # Not queue_stats: a publisher that waits long for the other binding sends more than 10,000, which it estimates.
    assert rest(always)["message"] == published
    assert rest(sometimes)["message"] == sent - published > 0
