"""dead_stops_group under races and kills: a group stands still while it has a dead letter, and no longer."""

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from rowqueue.databases import Conflict, Row, Session
from support.crowd import Crowd, Member
from support.outcomes import dead_letter, failure
from support.waiting import until

CONSUMERS = 6
SENDERS = 3
GROUPS = 6  # of each sender
MESSAGES = 120  # of each sender
KILLS = 3
LEASE = 5
DRAIN_SECONDS = 120

# What a process has done: handled (group, id, begin of the claim, its end, end of the work), died (group, id, begin and
# end of the call), gone (the id or None for any, when the call began).
Log = dict[str, list[tuple[Any, ...]]]


def again(member: Member, procedure: str, *arguments: Any) -> list[Row]:
    """A call, repeated after a conflict."""
    while True:
        try:
            return member.session.call(procedure, *arguments)
        except Conflict:
            continue


class RolledBack(Exception):
    """Ends the transaction of a take."""


def take(member: Member, type: str, chance: random.Random, log: Log) -> bool:
    """Take a batch; commit it, or roll it back and count a dead letter."""
    handled, began = [], time.monotonic()
    with suppress(RolledBack, Conflict), member.session.transaction():
        rows = member.session.call("take_batch", type, chance.randint(1, 4))
        claimed = time.monotonic()
        if chance.random() < 0.3:
            raise RolledBack
        handled = [(row["group_key"], row["id"], began, claimed, time.monotonic()) for row in rows]
    if handled:
        log["handled"] += handled
    elif rows:
        began = time.monotonic()
        if again(member, "count_attempt", rows[0]["id"], "no", None, 1)[0]["state"] == "E":
            log["died"].append((rows[0]["group_key"], rows[0]["id"], began, time.monotonic()))
    return bool(rows)


def consume(member: Member, type: str) -> Log:
    """Claim or take until stopped; complete, retry, release and dead-letter messages in every way."""
    chance = random.Random(time.monotonic_ns())
    log: Log = {"handled": [], "died": []}
    while not member.stopped():
        if chance.random() < 0.15 and take(member, type, chance, log):
            continue
        began = time.monotonic()
        rows = again(member, "claim_batch", type, chance.randint(1, 8), None, LEASE)
        while rows:
            claimed, key = time.monotonic(), rows[0]["batch_key"]
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.02)
            ends = {row["id"]: chance.choices(["done", "retry", "dead"], [80, 10, 10])[0] for row in rows}
            handled = [(row["group_key"], row["id"], began, claimed, time.monotonic()) for row in rows]
            died = [(row["group_key"], row["id"]) for row in rows if ends[row["id"]] == "dead"]
            began = time.monotonic()
            if chance.random() < 0.05:
                again(member, "release_batch", key)
                died, next_rows = [], []
            elif chance.random() < 0.6:
                outcomes = [failure(id, "no", 0) for id, end in ends.items() if end == "retry"]
                outcomes += [dead_letter(id, "no") for id, end in ends.items() if end == "dead"]
                next_rows = member.finish(key, "\n".join(outcomes), chance.choice([0, 4]))
            else:
                next_rows = []
                for id, end in ends.items():
                    name, *more = {"done": ["complete"], "retry": ["fail", "no", 0], "dead": ["dead_letter", "no"]}[end]
                    if member.settle(name, id, key, *more) is None:
                        next_rows = None
            if next_rows is None:  # the lease was lost
                rows = []
                continue
            log["handled"] += handled
            log["died"] += [(*which, began, time.monotonic()) for which in died]
            rows = next_rows
        time.sleep(0.002)
    return log


def send(member: Member, type: str) -> int:
    """Send in transactions that stay open for a while; some are rolled back. Returns how many messages were sent."""
    chance = random.Random(member.number)
    sent = 0
    while sent < MESSAGES:
        count = chance.randint(1, 4)
        with suppress(RolledBack), member.session.transaction():
            for _ in range(count):
                group = f"{member.number}.{chance.randrange(GROUPS)}"
                member.session.call("send_message", type, "x", None, chance.randrange(2), group)
            time.sleep(chance.random() * 0.04)
            if chance.random() < 0.1:
                raise RolledBack
            sent += count
    return sent


def operate(member: Member, type: str, toggles: bool) -> Log:
    """Redrive and delete dead letters until stopped."""
    chance = random.Random(member.number)
    log: Log = {"gone": []}
    while not member.stopped():
        time.sleep(chance.random() * 0.05)
        dead = again(member, "peek", type, "E", 20)
        if not dead:
            continue
        id, began = chance.choice(dead)["id"], time.monotonic()
        call = chance.choices(
            [("redrive", id), ("cancel", id), ("redrive_all", type, None, 2), ("purge", type, "E", None, 1)],
            [60, 20, 5, 5],
        )[0]
        log["gone"].append((id if call[1] == id else None, began))
        again(member, *call)
        if toggles and chance.random() < 0.03:
            again(member, "set_queue", type, json.dumps({"dead_stops_group": chance.randrange(2)}))
    return log


def check(handled: list[Any], died: list[Any], gone: list[Any]) -> None:
    """In each group one message at a time, never an earlier one after a later one, and none beside a dead letter."""
    groups = defaultdict(list)
    for group, *entry in handled:
        groups[group].append(tuple(entry))
    for group, entries in groups.items():
        entries.sort(key=lambda entry: entry[2])
        for (id, _, _, ended), (later, _, claimed, _) in pairwise(entries):
            assert claimed >= ended, f"two of {group} at the same time: {id}, {later}"
            assert later >= id, f"{later} of {group} came after {id}"
    for group, id, dying_at, died_at in died:
        ends = [began for other, began in gone if other in (id, None) and began > dying_at]
        gone_at = min(ends, default=float("inf"))
        beside = [e for e in groups[group] if e[0] != id and died_at < e[1] and e[2] < gone_at]
        assert not beside, f"beside the dead letter {id} of {group}: {beside}"


@pytest.mark.level(3, one=True)
@pytest.mark.parametrize("toggles", [False, True], ids=["on", "toggled"])
def test_a_group_stands_while_it_has_a_dead_letter_and_continues_afterwards(
    crowd: Crowd,
    session: Session,
    queue: str,
    holds: Callable[[str], dict[str, int]],
    rest: Callable[[str], dict[str, int]],
    toggles: bool,
) -> None:
    policy = {"ordered": 1, "dead_stops_group": 1, "max_attempts": 3, "backoff_seconds": 0, "backoff_max_seconds": 0}
    session.call("set_queue", queue, json.dumps(policy))
    consumers = crowd.start(consume, queue, count=CONSUMERS)
    operators = crowd.start(operate, queue, toggles, count=2)
    senders = crowd.start(send, queue, count=SENDERS)
    for _ in range(KILLS):
        time.sleep(0.5)
        crowd.kill(consumers.pop(0))
        consumers += crowd.start(consume, queue)
    assert all(crowd.results(senders))
    until(lambda: holds(queue) == {}, lambda: f"groups stay stopped: {holds(queue)} {rest(queue)}", DRAIN_SECONDS)
    crowd.stop()
    logs = [*crowd.results(consumers), *crowd.results(operators)]
    whole = {name: [entry for log in logs for entry in log.get(name, [])] for name in ("handled", "died", "gone")}
    assert len(whole["handled"]) > SENDERS * MESSAGES / 2 and whole["died"] and whole["gone"]
    if not toggles:
        check(**whole)
    assert session.call("claim_batch", queue, 1_000) == []  # drops tickets without a message
    assert rest(queue) == {}
