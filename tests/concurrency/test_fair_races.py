"""Fair queues under racing consumers: no group is served twice before each waiting group was served once."""

import json
import os
import random
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from support.crowd import Crowd, Member
from support.outcomes import failure
from support.waiting import until

CONSUMERS = 16
KILLED = 4
LEASE = 2
PATIENCE = 180
UNDOING = 2  # seconds
# In how many rounds every consumer may serve a group while another waits. On Firebird a claim sees what was there when
# it began: a slow one passes over a group whose message has come since, and leaves the position behind it.
ROUNDS = {"firebird": 4}
# One group with very many messages, some with many, most with one: (groups, messages of each).
SIZES = [(1, 400), (9, 30), (90, 4), (900, 1)]
MORE_SIZES = [(1, 3_000), (9, 300), (90, 20), (900, 2)]
WEIGHTS = {"0.0": 4, "1.3": 2, "2.50": 9}

Look = Callable[[str], dict[str, int]]


class Log:
    """A file to which many processes append. It keeps what a process wrote before it was killed."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def write(self, what: str, begun: int, messages: Any) -> None:
        line = json.dumps([what, begun, time.monotonic_ns(), messages]) + "\n"
        os.write(self._file, line.encode())


def served(rows: Sequence[dict[str, Any]]) -> list[tuple[int, str, int]]:
    return [(row["id"], f"{row['priority']} {row['group_key']}", row["attempt"]) for row in rows]


def serve(member: Member, type: str, path: str, size: int, trouble: float) -> None:
    """Claim and finish until stopped; a share `trouble` of the messages fails, of the batches is given back."""
    log, chance = Log(path), random.Random(time.monotonic_ns())
    while not member.stopped():
        begun = time.monotonic_ns()
        if trouble and chance.random() < 0.2:
            rows = member.session.call("take_batch", type, chance.randint(1, size))
            log.write("claim", begun, served(rows))
            continue
        rows = member.session.call("claim_batch", type, chance.randint(1, size))
        if not rows:
            time.sleep(0.01)
            continue
        log.write("claim", begun, served(rows))
        begun = time.monotonic_ns()
        if chance.random() < trouble / 4:
            if member.session.call("release_batch", rows[0]["batch_key"])[0]["affected"]:
                log.write("back", begun, [(row["id"], row["attempt"]) for row in rows])
            continue
        failed = {row["id"]: chance.choice([0, -1]) for row in rows if chance.random() < trouble}
        if (
            member.finish(rows[0]["batch_key"], "\n".join(failure(id, "no", after) for id, after in failed.items()))
            is not None
        ):
            log.write("back", begun, [(row["id"], row["attempt"] + 1) for row in rows if failed.get(row["id"]) == 0])


def send(session: Session, type: str, groups: Sequence[tuple[str, int]], priorities: int = 1) -> dict[int, int]:
    """So many messages for each group; returns the time by which each is there, by id."""
    sent: dict[int, int] = {}
    for first in range(0, len(groups), 50):
        made = []
        with session.transaction():
            for group, count in groups[first : first + 50]:
                for n in range(count):
                    [row] = session.call("send_message", type, group, None, n % priorities, group)
                    made.append(row["id"])
        sent |= dict.fromkeys(made, time.monotonic_ns())
    return sent


def send_late(member: Member, type: str, path: str) -> int:
    """Messages of small groups, of which each transaction stays open for a while."""
    log, sent = Log(path), 0
    while not member.stopped():
        begun = time.monotonic_ns()
        with member.session.transaction():
            rows = [
                member.session.call("send_message", type, "late", None, None, f"late.{member.number}.{sent + n}")[0]
                for n in range(5)
            ]
            time.sleep(0.05)
        log.write("back", begun, [(row["id"], 1) for row in rows])
        sent += len(rows)
        time.sleep(0.05)
    return sent


def redrive(member: Member, type: str) -> int:
    """Redrive dead letters until stopped: they may come back at any time, as far as the log knows."""
    count = 0
    while not member.stopped():
        count += member.session.call("redrive_all", type)[0]["affected"]
        time.sleep(0.1)
    return count


@dataclass(frozen=True)
class Claim:
    """A group was served a message, surely between these two times."""

    begun: int
    ended: int
    id: int
    attempt: int


def read(path: Path) -> tuple[dict[str, list[Claim]], dict[tuple[int, int], list[int]]]:
    """The claims by group, and the times at which each message was surely back, by id and next attempt."""
    claims: dict[str, list[Claim]] = defaultdict(list)
    back: dict[tuple[int, int], list[int]] = defaultdict(list)
    for line in path.read_text().splitlines():
        what, begun, ended, messages = json.loads(line)
        if what == "back":
            for id, attempt in messages:
                back[id, attempt].append(ended)
            continue
        for id, group, attempt in messages:
            claims[group].append(Claim(begun, ended, id, attempt))
    for found in claims.values():
        found.sort(key=lambda claim: claim.begun)
    return claims, back


def waits(
    claims: dict[str, list[Claim]], sent: dict[int, int], back: dict[tuple[int, int], list[int]]
) -> dict[str, list[Any]]:
    """When each group surely waited, and was not served: from the later of two times, when a message of it was there
    and when the claims before had ended, until the claim that took this message began.

    A consumer that is killed during a claim writes nothing into the log, but the server may commit the claim. Its
    messages are served then, and come back when the lease ends. Their numbers of attempts show this: the attempt is not
    the one that the message had to have next."""
    found: dict[str, list[Any]] = defaultdict(list)
    for group, of_group in claims.items():
        ended = 0
        taken: dict[int, int] = {}
        for claim in of_group:
            times = list(back[claim.id, claim.attempt])
            if claim.id in sent and claim.attempt == 1:
                times.append(sent[claim.id])
            # A message that a killed consumer held, or that was redriven, came back at an unknown time.
            known = [at for at in times if taken.get(claim.id, 0) < at <= claim.begun]
            start = max([*known, ended]) if known else claim.begun
            if start < claim.begun:
                found[group].append((start, claim.begun))
            ended, taken[claim.id] = max(ended, claim.ended), claim.ended
    return found


def worst(claims: dict[str, list[Claim]], waited: dict[str, list[Any]], kills: Sequence[int] = ()) -> tuple[int, str]:
    """How many turns beyond one any group had while another of its priority waited once; and which.

    The claim of a killed consumer may run on in the server, keep its locks until the server notices, and be undone
    then: its groups are passed over without being served. So waits in the UNDOING seconds after a kill do not count."""
    begun = {group: [claim.begun for claim in found] for group, found in claims.items()}
    ended = {group: sorted(claim.ended for claim in found) for group, found in claims.items()}
    most = (0, "")
    often = [group for group, found in claims.items() if len(found) > 1]
    for group, times in waited.items():
        priority = group.split()[0]
        for start, end in times:
            if any(kill <= end and start <= kill + UNDOING * 1_000_000_000 for kill in kills):
                continue
            for other in often:
                if other == group or other.split()[0] != priority:
                    continue
                # Claims that began after the start and ended before the end.
                inside = bisect_right(ended[other], end) - bisect_left(begun[other], start)
                beyond = -(-inside // WEIGHTS.get(other.split()[1], 1)) - 1
                most = max(most, (beyond, f"{other} while {group} waited {(end - start) / 1e6:.0f} ms"))
    return most


@pytest.mark.level(3)
@pytest.mark.parametrize(
    ("sizes", "size", "trouble"),
    [
        pytest.param(SIZES, 1, 0.0, id="one by one"),
        pytest.param(SIZES, 10, 0.0, id="batches"),
        pytest.param(SIZES, 5, 0.05, id="with trouble"),
        pytest.param(MORE_SIZES, 20, 0.02, id="long", marks=pytest.mark.level(4)),
    ],
)
def test_no_group_is_served_twice_before_each_waiting_group_was_served_once(
    database: Database,
    crowd: Crowd,
    session: Session,
    queue: str,
    rest: Look,
    tmp_path: Path,
    sizes: list[tuple[int, int]],
    size: int,
    trouble: float,
) -> None:
    # Without trouble no lease may end, however busy the machine is.
    session.call(
        "set_queue",
        queue,
        json.dumps(
            {
                "lease_seconds": LEASE if trouble else 600,
                "max_attempts": 1_000,
                "backoff_seconds": 0,
                "backoff_max_seconds": 1,
                "fair": 1,
            }
        ),
    )
    if trouble:
        for group, weight in WEIGHTS.items():
            session.call("set_group", queue, group, weight)
    groups = [(f"{kind}.{n}", count) for kind, (many, count) in enumerate(sizes) for n in range(many)]
    random.Random(1).shuffle(groups)
    sent = send(session, queue, groups, 2 if trouble else 1)
    path = tmp_path / "log"
    consumers = crowd.start(serve, queue, str(path), size, trouble, count=CONSUMERS)
    kills: list[int] = []
    if trouble:
        helpers = crowd.start(send_late, queue, str(path), count=2) + crowd.start(redrive, queue)
        for victim in consumers[:KILLED]:
            time.sleep(0.3)
            crowd.kill(victim)
            kills.append(time.monotonic_ns())
            consumers.remove(victim)
            consumers += crowd.start(serve, queue, str(path), size, trouble)
        crowd.stop(helpers[:2])
        late = sum(crowd.results(helpers[:2]))
        assert late > 0
    until(lambda: rest(queue) == {}, f"the end of {queue}", PATIENCE)
    crowd.stop()
    crowd.results()
    claims, back = read(path)
    if not trouble:
        served_at = Counter(claim.id for found in claims.values() for claim in found)
        twice = [claim for found in claims.values() for claim in found if served_at[claim.id] > 1]
        assert twice == [], "claimed twice"
        assert served_at.keys() == sent.keys()
    beyond, what = worst(claims, waits(claims, sent, back), kills)
    assert beyond <= ROUNDS.get(database.name, 1) * CONSUMERS, f"{beyond} turns too many: {what}"


@pytest.mark.level(3)
def test_consumers_share_a_queue_with_a_single_big_group(
    crowd: Crowd, session: Session, queue: str, rest: Look
) -> None:
    """The first row of the group is locked by one claim; the others take what it has not locked."""
    session.call("set_queue", queue, '{"fair": 1}')
    session.call("send_batch", queue, "\n".join(["x"] * 4_000))
    crowd.start(claim_all, queue, count=CONSUMERS)
    shares = crowd.results()
    assert sum(shares) == 4_000
    assert rest(queue) == {}
    assert len([share for share in shares if share]) > CONSUMERS // 2, shares


def claim_all(member: Member, type: str) -> int:
    """Claim and complete until nothing is there; returns how many."""
    count, empty = 0, 0
    while empty < 20:
        rows = member.session.call("claim_batch", type, 10, None, 60)
        if not rows:
            empty += 1
            time.sleep(0.01)
            continue
        empty = 0
        count += len(rows)
        member.finish(rows[0]["batch_key"])
    return count


def switch(member: Member, type: str) -> int:
    """Change how the queue is served, and the weights of its groups, until stopped; returns how often."""
    count, chance = 0, random.Random(member.number)
    while not member.stopped():
        ring, fair = chance.choice([(0, 0), (0, 1), (1, 0)])
        member.session.call("set_queue", type, json.dumps({"ring": ring, "fair": fair}))
        if chance.random() < 0.5:
            member.session.call("set_group", type, f"g{chance.randrange(7)}", chance.choice([None, 2, 5]))
        count += 1
        time.sleep(chance.random() / 5)
    return count


def consume(member: Member, type: str) -> list[int]:
    """Claim and complete until stopped; returns the ids."""
    done = []
    while not member.stopped():
        rows = member.session.call("claim_batch", type, 7, None, LEASE)
        if not rows:
            time.sleep(0.01)
            continue
        time.sleep(0.002)
        if member.session.call("complete_batch", rows[0]["batch_key"])[0]["affected"] == len(rows):
            done += [row["id"] for row in rows]
    return done


def send_some(member: Member, type: str, count: int) -> list[int]:
    """Messages with an open transaction each; returns their ids."""
    sent = []
    for n in range(count):
        with member.session.transaction():
            [row] = member.session.call("send_message", type, "x", None, n % 3, f"g{n % 7}")
            if n % 5 == 0:
                time.sleep(0.02)
        sent.append(row["id"])
    return sent


@pytest.mark.level(3)
def test_no_message_is_lost_doubled_or_stuck_while_a_queue_changes_its_way(
    crowd: Crowd, session: Session, queue: str, rest: Look
) -> None:
    """Senders are open, consumers claim, and one who changes the queue is killed."""
    session.call(
        "set_queue",
        queue,
        json.dumps({"lease_seconds": LEASE, "max_attempts": 1_000, "backoff_seconds": 0, "backoff_max_seconds": 1}),
    )
    consumers = crowd.start(consume, queue, count=4)
    switchers = crowd.start(switch, queue, count=2)
    senders = crowd.start(send_some, queue, 150, count=4)
    for _ in range(3):
        time.sleep(0.4)
        crowd.kill(switchers.pop(0))
        switchers += crowd.start(switch, queue)
    sent = [id for ids in crowd.results(senders) for id in ids]
    until(lambda: rest(queue) == {}, f"the end of {queue}", PATIENCE)
    crowd.stop()
    done = [id for ids in crowd.results(consumers) for id in ids]
    assert {id: count for id, count in Counter(done).items() if count > 1} == {}, "completed twice"
    assert sorted(done) == sorted(sent)
    assert sum(crowd.results(switchers)) > 0
