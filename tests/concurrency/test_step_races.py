"""Steps are kept while leases end, consumers are killed and others release: each effect happens once."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Conflict, Disconnected, LeaseLost, QueueError, Session
from servers import Server
from support.crowd import Crowd, Ledger, Member, end_lease, insert, numbers
from support.waiting import until

MESSAGES = 40
CONSUMERS = 5
KILLS = 12
STEPS = ("charge", "pack", "ship")
PATIENCE = 90

Sql = Callable[..., list[dict[str, Any]]]
Look = Callable[[str], dict[str, int]]


class _GivesUp(Exception):
    """The handler rolls its transaction back."""


def handle(member: Member, row: dict[str, Any], ledger: Ledger, batches: str, chance: random.Random) -> None:
    """The steps that are not done, each with its effect in one transaction; sometimes the lease ends before it."""
    session, id, key = member.session, row["id"], row["batch_key"]
    kept = {step["step"] for step in session.call("get_steps", id, key)}
    assert kept == {*STEPS[: len(kept)]}
    for n, step in enumerate(STEPS):
        if step in kept:
            continue
        if chance.random() < 0.3:
            end_lease(session, batches, key)
        if chance.random() < 0.2:
            session.call("snooze", id, key, 0)
            return
        if chance.random() < 0.1:
            session.call("fail", id, key, "busy", 0)
            return
        try:
            with session.transaction() as connection:
                late = chance.random() < 0.5
                if not late:
                    session.call("save_step", id, key, step, f"attempt {row['attempt']}")
                time.sleep(chance.choice([0, 0.002, 0.02]))
                insert(connection, ledger.name, "id, n, consumer, attempt", [f"{id}, {n}, {member.number}, 0"])
                if late:
                    session.call("save_step", id, key, step, f"attempt {row['attempt']}")
                time.sleep(chance.choice([0, 0.002, 0.02]))
                if chance.random() < 0.2:
                    raise _GivesUp
        except _GivesUp:
            assert step not in {found["step"] for found in session.call("get_steps", id, key)}
            session.call("fail", id, key, "busy", 0)
            return
    session.call("complete", id, key)


def consume(member: Member, type: str, ledger: Ledger, batches: str) -> None:
    chance = random.Random(member.number)
    while not member.stopped():
        try:
            rows = member.session.call("claim_batch", type, chance.choice([1, 1, 3]), None, 1)
            for row in rows:
                try:
                    handle(member, row, ledger, batches, chance)
                except QueueError as error:
                    assert isinstance(error, LeaseLost), error
        except (Conflict, Disconnected):
            member.reconnect()
        else:
            time.sleep(0 if rows else 0.01)


def disturb(member: Member, type: str) -> int:
    """Rescue, and release what consumers hold, as an operator may at any time."""
    chance, count = random.Random(member.number), 0
    while not member.stopped():
        try:
            count += member.session.call("rescue_expired", type)[0]["affected"]
            if chance.random() < 0.05:
                count += member.session.call("release_consumer", f"member-{chance.randint(2, 12)}")[0]["affected"]
        except Conflict:
            pass
        time.sleep(0.005)
    return count


@pytest.mark.parametrize("ordered", [0, 1])
def test_the_effect_of_each_step_happens_once_though_leases_end_and_consumers_are_killed(
    crowd: Crowd, session: Session, server: Server, queue: str, ledger: Ledger, sql: Sql, holds: Look, ordered: int
) -> None:
    session.call("set_queue", queue, json.dumps({"max_attempts": 1_000, "ordered": ordered, "on_complete": "archive"}))
    if ordered:
        for n in range(MESSAGES):
            session.call("send_with", queue, str(n), json.dumps({"group_key": f"g{n % 12}"}))
    else:
        session.call("send_batch", queue, numbers(0, MESSAGES))
    chance = random.Random(11)
    disturbers = crowd.start(disturb, queue)
    consumers = crowd.start(consume, queue, ledger, server.table("batch"), count=CONSUMERS)
    for _ in range(KILLS):
        time.sleep(chance.random() * 0.2)
        crowd.kill(consumers.pop(chance.randrange(len(consumers))))
        consumers += crowd.start(consume, queue, ledger, server.table("batch"))
    until(lambda: holds(queue) == {}, "every message is finished", PATIENCE)
    crowd.stop()
    crowd.results(consumers)
    assert sum(crowd.results(disturbers)) > 0

    effects = Counter((row["id"], row["n"]) for row in sql(f"SELECT id, n FROM {ledger.name}"))
    assert len(effects) == MESSAGES * len(STEPS)
    assert set(effects.values()) == {1}, "an effect without its step, or a step without its effect"
    archived = sql(f"SELECT id, steps FROM {server.table('archive')} WHERE type = %s", queue)
    assert len(archived) == MESSAGES
    for row in archived:
        assert [step["step"] for step in json.loads(row["steps"])] == [*STEPS]
    ids = ", ".join(str(row["id"]) for row in archived)
    assert sql(f"SELECT id FROM {server.table('step')} WHERE id IN ({ids})") == []
