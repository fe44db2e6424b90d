"""The runner with a server that has another clock: leases are computed only with the server's clock."""

import json
import time
from collections.abc import Callable

import pytest
from rowqueue.databases import Database, open_database
from servers.clock import Clock
from support.processes import Log, Running
from support.waiting import until

pytestmark = pytest.mark.level(4)

Start = Callable[..., Running]

LEASE = 3
HANDLER_SECONDS = 5
# The shortest jump back would cost three times as much; a busy machine costs some.
LATE_SECONDS = 10


@pytest.fixture
def shifted(clock: Clock) -> Database:
    """A database on the server with that clock."""
    return open_database(clock.url)


def test_no_lease_is_lost_while_a_handler_runs_with_any_server_clock(
    clock: Clock, shifted: Database, start: Start, joblog: Log
) -> None:
    session = shifted.connect("test")
    for offset in (10, 3600):
        type = f"ahead.{offset}"
        session.call("set_queue", type, json.dumps({"lease_seconds": LEASE}))
        clock.set(offset)
        session.call("send", type, f"sleep {HANDLER_SECONDS}")
        pair = [start("consume", "--type", type, "--handler", "jobs:obey", url=shifted.url) for _ in range(2)]
        until(lambda: "woke" in joblog.read())
        until(lambda t=type: session.call("queue_stats", t)[0]["active"] == 0)
        for running in pair:
            assert running.stop() == 0, running.stderr
            assert "lost the lease" not in running.stderr
        assert joblog.read() == [f"sleep {HANDLER_SECONDS}", "woke"]
        joblog.path.unlink()
    session.close()


def test_a_clock_that_is_set_back_costs_no_lease_and_no_delay(
    clock: Clock, shifted: Database, start: Start, joblog: Log
) -> None:
    session = shifted.connect("test")
    session.call("set_queue", "jobs", json.dumps({"lease_seconds": LEASE}))
    pair = [start("consume", "--type", "jobs", "--handler", "jobs:obey", url=shifted.url) for _ in range(2)]
    for running in pair:
        until(lambda r=running: "consuming" in r.stderr)
    for offset in (-30, -50, -3600):
        session.call("send", "jobs", f"sleep {HANDLER_SECONDS}")
        until(joblog.read)
        clock.set(offset)
        session.call("send", "jobs", "meanwhile")
        sent = time.monotonic()
        until(lambda: "meanwhile" in joblog.read())
        assert time.monotonic() - sent < LATE_SECONDS
        until(lambda: "woke" in joblog.read())
        until(lambda: session.call("queue_stats", "jobs")[0]["active"] == 0)
        assert sorted(joblog.read()) == ["meanwhile", f"sleep {HANDLER_SECONDS}", "woke"]
        joblog.path.unlink()
    for running in pair:
        assert running.stop() == 0, running.stderr
        assert "lost the lease" not in running.stderr
    session.close()
