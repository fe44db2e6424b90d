"""Active messages are cancelled while their consumers end them in every way, die and are rescued: none begins again."""

import json
import random
import time
from collections.abc import Callable
from itertools import chain

import pytest
from rowqueue.databases import Conflict, Disconnected, LeaseLost, QueueError, Session
from servers import Server
from support.crowd import Crowd, Member, end_lease, numbers
from support.outcomes import failure, released
from support.waiting import until

MESSAGES = 60
CONSUMERS = 4
KILLS = 4
PATIENCE = 90

Look = Callable[[str], dict[str, int]]
Claims = list[tuple[int, float]]  # the message, and when the claim was sent


def consume(member: Member, type: str, batches: str) -> Claims:
    chance, claims = random.Random(member.number), []
    while not member.stopped():
        try:
            sent_at = time.monotonic()
            rows = member.session.call("claim_batch", type, chance.choice([1, 1, 3]), f"c-{member.number}", 1)
            claims += [(row["id"], sent_at) for row in rows]
            if not rows:
                time.sleep(0.01)
                continue
            id, key = rows[0]["id"], rows[0]["batch_key"]
            if chance.random() < 0.5:
                time.sleep(chance.choice([0.001, 0.01, 0.05]))
            if chance.random() < 0.3:
                end_lease(member.session, batches, key)
            end = chance.randrange(7)
            with member.session.transaction():
                if end == 0:
                    member.session.call("fail", id, key, "busy", 0)
                elif end == 1:
                    member.session.call("snooze", id, key, 0)
                elif end == 2:
                    member.session.call("release_batch", key)
                elif end == 3:
                    member.session.call("finish_messages", key, released(id))
                elif end == 4:
                    lines = [failure(row["id"], "busy", 0) for row in rows]
                    member.session.call("finish_batch", key, "\n".join(lines))
                elif end == 5:
                    member.session.call("save_step", id, key, f"step {chance.randrange(3)}", "v")
                if chance.random() < 0.3:
                    time.sleep(0.01)
        except QueueError as error:
            assert isinstance(error, LeaseLost) or error.name == "cancelled", error
        except (Conflict, Disconnected):
            member.reconnect()
    return claims


def cancel(member: Member, type: str) -> Claims:
    """Cancel what is active, sometimes in a transaction that waits, or is rolled back; returns what was cancelled."""
    chance, cancelled = random.Random(member.number), []
    while not member.stopped():
        time.sleep(0.02)
        try:
            active = [row["id"] for row in member.session.call("peek", type, "A", 10, 0)]
            if not active:
                continue
            id = chance.choice(active)
            try:
                with member.session.transaction():
                    [row] = member.session.call("cancel", id)
                    if chance.random() < 0.3:
                        time.sleep(0.02)
                    if chance.random() < 0.2:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            if row["affected"]:
                cancelled.append((id, time.monotonic()))
        except Conflict:
            pass
    return cancelled


def rescue(member: Member, type: str) -> None:
    chance = random.Random(member.number)
    while not member.stopped():
        try:
            member.session.call("rescue_expired", type)
            if chance.random() < 0.05:
                member.session.call("release_consumer", f"c-{chance.randint(2, 12)}")
        except Conflict:
            pass
        time.sleep(0.01)


@pytest.mark.parametrize("options", [{}, {"ordered": 1}, {"group_max_active": 2}, {"fair": 1}])
def test_a_message_that_was_cancelled_does_not_begin_again(
    crowd: Crowd, session: Session, server: Server, queue: str, holds: Look, options: dict[str, int]
) -> None:
    session.call("set_queue", queue, json.dumps({"max_attempts": 1_000, **options}))
    for n in range(0, MESSAGES, 10):
        session.call("send_batch", queue, numbers(n, 10), json.dumps({"group_key": f"g{n}"}))
    chance = random.Random(5)
    rescuers, cancellers = crowd.start(rescue, queue), crowd.start(cancel, queue, count=2)
    consumers = crowd.start(consume, queue, server.table("batch"), count=CONSUMERS)
    for _ in range(KILLS):
        time.sleep(chance.random() * 0.3)
        crowd.kill(consumers.pop(chance.randrange(len(consumers))))
        consumers += crowd.start(consume, queue, server.table("batch"))
    until(lambda: holds(queue) == {}, lambda: f"every message is cancelled: {holds(queue)}", PATIENCE)
    crowd.stop()
    crowd.results(rescuers)
    cancelled: dict[int, float] = {}
    for id, at in chain(*crowd.results(cancellers)):
        cancelled[id] = min(at, cancelled.get(id, at))
    assert len(cancelled) == MESSAGES
    claims: Claims = [*chain(*crowd.results(consumers))]
    late = [id for id, sent_at in claims if id in cancelled and sent_at > cancelled[id]]
    assert late == []
    assert len({id for id, _ in claims}) > MESSAGES / 2
