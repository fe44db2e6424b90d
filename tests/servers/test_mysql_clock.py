"""MySQL and MariaDB: the server's clock is set back or forward while it runs."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from rowqueue import install
from rowqueue.databases import Database, open_database

from . import Server, Unavailable, make
from .clock import Clock

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_version]


@pytest.fixture
def moved(server_name: str) -> Iterator[tuple[Server, Clock, Database]]:
    try:
        server = make(server_name)
        clock = Clock(server)
    except Unavailable as error:
        pytest.skip(str(error))
    server.start()
    database = open_database(server.create_database())
    install.apply(database)
    yield server, clock, database
    server.close()
    clock.close()


def seconds_until(condition: Callable[[], object], most: float = 20) -> float:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < most
        time.sleep(0.05)
    return time.monotonic() - started


@pytest.mark.parametrize("jump", [-3, -30, -50, -3600, 50])
def test_what_is_due_waits_no_second_longer_for_a_jump(moved: tuple[Server, Clock, Database], jump: int) -> None:
    _, clock, database = moved
    with closing(database.connect("test")) as session:
        for kind, claim in (("q", "claim_batch"), ("ring", "claim_wraparound")):
            clock.set(0)
            time.sleep(1.1)
            session.call("send", kind, "first")
            while session.call(claim, kind, 10):
                pass
            clock.set(jump)
            now = datetime.now(UTC) + timedelta(seconds=jump)
            session.call("send_message", kind, "due", now + timedelta(seconds=1))
            session.call("send", kind, "now")
            seen: list[str] = []
            waited = seconds_until(
                lambda kind=kind, claim=claim, seen=seen: (
                    seen.extend(row["body"] for row in session.call(claim, kind, 10)) or {"due", "now"} <= {*seen}
                )
            )
            assert waited < 3, (kind, jump)


@pytest.mark.parametrize("jump", [-30, 30])
def test_a_wait_ends_on_time(moved: tuple[Server, Clock, Database], jump: int) -> None:
    _, clock, database = moved
    with closing(database.connect("test")) as session, ThreadPoolExecutor() as pool:
        started = time.monotonic()
        waiting = pool.submit(session.call, "wait_for_message", "none", 3)
        time.sleep(1)
        clock.set(jump)
        assert waiting.result(30)[0]["ready"] == 0
        assert 2.5 < time.monotonic() - started < 5
