"""The server is killed several times at any moment: acknowledged work stays done."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from rowqueue.databases import Conflict, Disconnected, Row, open_database
from rowqueue.install import apply as install
from servers import Server
from support.crowd import LEDGER, Ledger, Member, crowd_of, numbers
from support.waiting import until

CRASHES = 3
SECONDS_BETWEEN = 0.5
BATCH = 20
LEASE = 1
GROUPS = 50


@dataclass
class Acknowledged:
    """The acknowledgements that a process received, by number of the body."""

    sent: set[int] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    handled: set[int] = field(default_factory=set)


@contextlib.contextmanager
def reconnecting(member: Member) -> Iterator[None]:
    """Suppress the error of a lost connection, of a call or of our own statement, or a conflict, and no other error."""
    try:
        yield
    except Conflict:
        return  # rolled back, to be repeated: Firebird's sequence of ids may be behind after a crash
    except Exception:
        with contextlib.suppress(Disconnected):
            member.session.call("queue_stats")
            raise
        member.reconnect()


def produce(member: Member, types: list[str]) -> Acknowledged:
    """Send every number to both queues; only acknowledged sends count."""
    said, first = Acknowledged(), member.number * 10_000_000
    while not member.stopped():
        first += BATCH
        with reconnecting(member):
            with member.session.transaction():
                member.session.call("send_batch", types[0], numbers(first, BATCH))
                for n in range(first, first + BATCH):
                    member.session.call("send_message", types[1], str(n), None, None, f"g{n % GROUPS}")
            said.sent.update(range(first, first + BATCH))
        time.sleep(0.002)
    return said


def take(member: Member, type: str, ledger: Ledger) -> Acknowledged:
    while not member.stopped():
        with reconnecting(member), member.session.transaction() as connection:
            if rows := member.session.call("take_batch", type, BATCH):
                ledger.note(connection, rows, member.number)
    return Acknowledged()


def claim(member: Member, type: str) -> Acknowledged:
    """Claim and finish in one call or two; a finished message must never be claimed again."""
    said = Acknowledged()
    rows: list[Row] | None = None
    while not member.stopped():
        try:
            rows = rows or member.session.call("claim_batch", type, BATCH, None, LEASE)
            if not rows:
                continue
            bodies = {int(row["body"]) for row in rows}
            said.handled |= bodies
            assert not bodies & said.finished, "a finished message came back"
            key, rows = rows[0]["batch_key"], None
            if member.number % 2:
                finished = member.session.call("complete_batch", key)[0]["affected"] == len(bodies)
            else:
                rows = member.finish(key, None, BATCH)
                finished = rows is not None
            if finished:
                said.finished |= bodies
        except Disconnected:
            rows = None
            member.reconnect()
    return said


def drain(member: Member, type: str) -> list[int]:
    """Wait until the leases of ended processes are over; returns the bodies that are left."""
    bodies: list[int] = []
    while True:
        stats = member.session.call("queue_stats", type)[0]
        if not stats["ready"] + stats["delayed"] + stats["active"] + stats["expired"]:
            return bodies
        rows = member.session.call("claim_batch", type, 1_000, None, 60)
        bodies += [int(row["body"]) for row in rows]
        if rows:
            member.session.call("complete_batch", rows[0]["batch_key"])
        else:
            time.sleep(0.05)


def work(server: Server, url: str, ledger: Ledger) -> None:
    """Let the crowd work until some messages have been taken and the first claimed ones finished."""

    def done() -> tuple[int, int]:
        first = server.query(url, f"SELECT min(id) AS id FROM {server.table('message')} WHERE type = 'claimed'")
        count = server.query(url, f"SELECT count(*) AS n FROM {ledger.name}")
        return count[0]["n"], first[0]["id"] or 0

    before = done()
    time.sleep(SECONDS_BETWEEN)
    until(lambda: all(now > then for now, then in zip(done(), before, strict=True)), "messages are handled", 60)


def assert_one_state_each(server: Server, url: str) -> None:
    """No message is in two states or in none, at any moment."""
    view = server.table("message_state")
    found = server.query(url, f"SELECT count(*) AS n, count(DISTINCT id) AS ids, count(state) AS states FROM {view}")[0]
    assert found["n"] == found["ids"] == found["states"], found


def assert_no_orphans(server: Server, url: str, stems: list[str], type: str) -> None:
    """No table of states holds a message that is not there."""
    message = server.table("message")
    for stem in stems:
        orphans = f"SELECT * FROM {server.table(stem)} WHERE type = %s AND id NOT IN (SELECT id FROM {message})"
        assert server.query(url, orphans, type) == [], stem
    active = f"SELECT count(*) AS n FROM {server.table('message_state')} WHERE type = %s AND state = 'A'"
    session = open_database(url).connect("test")
    stats = session.call("queue_stats", type)[0]
    session.close()
    assert stats["active"] + stats["expired"] == server.query(url, active, type)[0]["n"]


@pytest.mark.level(3)
@pytest.mark.parametrize(
    "ordered", [pytest.param(0, id="plain", marks=pytest.mark.level(4)), pytest.param(1, id="ordered")]
)
def test_nothing_acknowledged_is_lost_when_the_server_crashes_repeatedly(private_server: Server, ordered: int) -> None:
    url = private_server.create_database()
    database = open_database(url)
    install.apply(database)
    ledger = Ledger("ledger")
    private_server.query(url, f"CREATE TABLE {ledger.name} ({LEDGER})")
    session = database.connect("test")
    session.call(
        "set_queue", "claimed", json.dumps({"lease_seconds": LEASE, "max_attempts": 1_000, "ordered": ordered})
    )
    session.close()
    with crowd_of(url) as crowd:
        crowd.start(produce, ["taken", "claimed"], count=2)
        crowd.start(take, "taken", ledger, count=2)
        crowd.start(claim, "claimed", count=4)
        for _ in range(CRASHES):
            work(private_server, url, ledger)
            private_server.stop("immediate")
            private_server.start()
            assert_one_state_each(private_server, url)
        work(private_server, url, ledger)
        crowd.stop()
        said: list[Acknowledged] = crowd.results()
        assert_one_state_each(private_server, url)
        assert_no_orphans(private_server, url, ["ready", "delayed", "dead", "grouped"], "taken")
        # A claim drops tickets of an ordered queue when it finds no message for them.
        stems = ["delayed", "dead", "grouped", "group_lock"] + ["ready"] * (not ordered)
        assert_no_orphans(private_server, url, stems, "claimed")
        left_taken, left_claimed = crowd.results([crowd.start(drain, type)[0] for type in ("taken", "claimed")])
    sent: set[int] = set().union(*(one.sent for one in said))
    finished: set[int] = set().union(*(one.finished for one in said))
    handled: set[int] = set().union(*(one.handled for one in said))
    effects: list[dict[str, Any]] = private_server.query(url, f"SELECT n FROM {ledger.name}")
    taken = [row["n"] for row in effects] + left_taken
    assert len(taken) == len(set(taken)), "an effect of a take happened twice"
    assert sent <= set(taken), "a message is lost"
    assert len(left_claimed) == len(set(left_claimed))
    assert not finished & set(left_claimed), "a finished message came back"
    assert sent <= handled | set(left_claimed), "a message is lost"
    assert effects and finished
