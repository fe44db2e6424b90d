"""Jumps of the server's clock: what is due comes about a second late at most, and a wait ends on time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from capabilities import BY_DATABASE
from rowqueue.databases import Session, open_database
from servers.clock import Clock

pytestmark = pytest.mark.one_version

# What busy processors may add; a fault costs as long as the clock was set back.
LATE_SECONDS = 4


@pytest.fixture
def sessions(clock: Clock) -> Iterator[Callable[[], Session]]:
    """Makes sessions on a database of the server with that clock."""
    database = open_database(clock.url)
    made: list[Session] = []

    def make() -> Session:
        made.append(database.connect("test"))
        return made[-1]

    yield make
    for session in made:
        session.close()


def until_claimed(session: Session, type: str, seconds: float) -> float:
    """Claim until a message comes; the seconds that it took."""
    begun = time.monotonic()
    while not (rows := session.call("claim_batch", type, 1, "reader", 60)):
        assert time.monotonic() - begun < seconds, f"nothing within {seconds:g} s"
        time.sleep(0.05)
    session.call("complete_batch", rows[0]["batch_key"])
    return time.monotonic() - begun


def send(session: Session, type: str, body: str, run_at: datetime | None = None) -> None:
    session.call("send_message", type, body, run_at)


def test_after_a_jump_messages_are_claimed_when_they_are_due(clock: Clock, sessions: Callable[[], Session]) -> None:
    session = sessions()
    for jump in (-30, -50, -3600, 10, 3600):
        clock.set(0)
        # The queue has been in use: all that it remembers of the time is from before the jump.
        type = f"jobs.{jump}"
        for _ in range(2):
            send(session, type, "before")
            until_claimed(session, type, 10)
            assert not session.call("claim_batch", type, 1, "reader", 60)
        clock.set(jump)
        send(session, type, "now")
        assert until_claimed(session, type, 60) < LATE_SECONDS, jump
        send(session, type, "soon", session.now() + timedelta(seconds=1))
        assert 0.5 < until_claimed(session, type, 60) < 1 + LATE_SECONDS, jump
        session.call("send_message", type, "urgent", None, -5)
        assert until_claimed(session, type, 60) < LATE_SECONDS, jump


def test_after_a_jump_failed_and_expired_messages_come_back(clock: Clock, sessions: Callable[[], Session]) -> None:
    session = sessions()
    for jump in (-50, 3600):
        clock.set(jump)
        type = f"failing.{jump}"
        send(session, type, "x")
        [row] = session.call("claim_batch", type, 1, "reader", 60)
        session.call("fail", row["id"], row["batch_key"], "error", 0)
        assert until_claimed(session, type, 60) < LATE_SECONDS, jump
        type = f"expiring.{jump}"
        send(session, type, "x")
        assert session.call("claim_batch", type, 1, "reader", 1)
        assert until_claimed(session, type, 60) < 2 + LATE_SECONDS, jump


def test_after_a_jump_a_lease_that_is_extended_is_kept(clock: Clock, sessions: Callable[[], Session]) -> None:
    mine, others = sessions(), sessions()
    for jump in (-30, 3600):
        clock.set(jump)
        type = f"jobs.{jump}"
        send(mine, type, "x")
        [row] = mine.call("claim_batch", type, 1, "mine", 2)
        begun = time.monotonic()
        while time.monotonic() - begun < 3.5:
            assert mine.call("extend_lease", row["batch_key"], 2)[0]["count"] == 1
            assert not others.call("claim_batch", type, 1, "others", 2)
            time.sleep(0.3)
        assert mine.call("complete_batch", row["batch_key"])[0]["count"] == 1


@pytest.mark.parametrize("jump", [-20, 3600])
def test_wait_for_message_ends_on_time_over_a_jump(clock: Clock, sessions: Callable[[], Session], jump: float) -> None:
    session = sessions()
    can = BY_DATABASE[open_database(clock.server.url).name]
    if not can.waits:
        pytest.skip("nothing can wait inside this database")
    if can.sleeps_by_clock and jump < 0:
        pytest.skip("the server's own sleep lasts as much longer")
    with ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        answer = pool.submit(session.call, "wait_for_message", "empty", 5)
        time.sleep(0.5)
        clock.set(jump)
        assert answer.result(60)[0]["ready"] == 0
        seconds = time.monotonic() - begun
    # Forward it may end at once: the time is up by the clock that the server has.
    assert seconds < 5 + LATE_SECONDS and (jump > 0 or seconds > 4.5)
