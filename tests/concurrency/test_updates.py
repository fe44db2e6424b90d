"""update_message and release_consumer while consumers claim, fail and complete, and while updates are rolled back."""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Conflict, QueueError, Row, Session
from support.crowd import Crowd, Member
from support.waiting import until

UPDATERS = CONSUMERS = 4
MESSAGES = 240
GROUPS = 12
UPDATES = 400
DRAIN_SECONDS = 90
KINDS = {"plain": {}, "ordered": {"ordered": 1}, "fair": {"fair": 1}, "limited": {"group_max_active": 2}}

# An accepted update: message, body, and the times of the call and of its answer.
Accepted = tuple[int, str, float, float]


def again(member: Member, procedure: str, *arguments: Any) -> list[Row]:
    """A call, repeated after a conflict."""
    while True:
        try:
            return member.session.call(procedure, *arguments)
        except Conflict:
            continue


def update(member: Member, ids: list[int]) -> list[Accepted]:
    """Updates any messages; a third of the updates are rolled back."""
    chance = random.Random(member.number)
    accepted = []
    for n in range(UPDATES):
        id, body = chance.choice(ids), f"{member.number}/{n}"
        options = {"body": body} | chance.choice([{}, {"priority": n % 3}, {"run_at": None}, {"delay_seconds": n % 2}])
        begun = time.monotonic()
        try:
            with member.session.transaction():
                [row] = member.session.call("update_message", id, json.dumps(options))
                if chance.random() < 0.3:
                    raise ZeroDivisionError
        except (ZeroDivisionError, Conflict):
            continue
        if row["affected"]:
            accepted.append((id, body, begun, time.monotonic()))
    return accepted


def work_off(member: Member, type: str) -> list[tuple[int, str]]:
    """Claims and completes until stopped; fails or releases some, and loses some to release_consumer."""
    chance = random.Random(member.number)
    name = f"{type}/{member.number}"
    done = []
    while not member.stopped():
        rows = again(member, "claim_batch", type, 2, name, 600)
        if not rows:
            time.sleep(0.005)
            continue
        key, what = rows[0]["batch_key"], chance.random()
        time.sleep(chance.random() * 0.004)  # release_consumer must find a batch
        try:
            if what < 0.5:
                again(member, "fail", rows[0]["id"], key, "busy", chance.randrange(2))
                rows = rows[1:]
            elif what < 0.7:
                again(member, "release_batch", key)
                continue
            if rows and again(member, "complete_batch", key)[0]["affected"]:
                done += [(row["id"], row["body"]) for row in rows]
        except QueueError as error:  # the lease was released
            assert "lease_lost" in str(error)
    return done


def release(member: Member, type: str) -> int:
    """Releases what one consumer after the other holds, until stopped."""
    chance = random.Random(member.number)
    released = 0
    while not member.stopped():
        [row] = again(member, "release_consumer", f"{type}/{chance.randrange(2 * CONSUMERS)}")
        released += row["affected"]
        time.sleep(0.01)
    return released


@pytest.mark.level(3)
@pytest.mark.parametrize("kind", KINDS)
def test_each_message_is_handled_once_with_the_last_body_that_it_was_given(
    crowd: Crowd,
    session: Session,
    queue: str,
    sql: Callable[..., list[dict[str, Any]]],
    holds: Callable[[str], dict[str, int]],
    rest: Callable[[str], dict[str, int]],
    kind: str,
) -> None:
    session.call("set_queue", queue, json.dumps(KINDS[kind] | {"max_attempts": 1000, "backoff_seconds": 0}))
    ids = []
    for n in range(MESSAGES):
        options = (None, n % 3, f"g{n % GROUPS}", None, None, None, None, 1 + n % 4)
        ids.append(session.call("send_message", queue, "first", *options)[0]["id"])
    updaters = crowd.start(update, ids, count=UPDATERS)
    consumers = crowd.start(work_off, queue, count=CONSUMERS)
    releasers = crowd.start(release, queue, count=1)
    updates = [accepted for each in crowd.results(updaters) for accepted in each]
    # The counts of the states are not from one moment: a message that changes its state may be in none of them.
    until(lambda: holds(queue) == rest(queue) == {}, "the end of the queue", DRAIN_SECONDS)
    crowd.stop(consumers)
    crowd.stop(releasers)
    done = [pair for each in crowd.results(consumers) for pair in each]
    assert sorted(id for id, _ in done) == ids
    for id, body in done:
        given = {body: (begun, ended) for known, body, begun, ended in updates if known == id}
        _, ended = given.get(body, (0.0, 0.0)) if body == "first" else given[body]
        assert not [other for other, (begun, _) in given.items() if begun > ended], f"message {id}: {body} was replaced"
    assert updates and sum(crowd.results(releasers))
    assert rest(queue) == {}
