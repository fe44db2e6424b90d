"""The runner with a database that is unreachable or takes no changes, at its start and later."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from rowqueue.databases import Database, Disconnected, ReadOnly, open_database
from rowqueue.install import apply as install
from servers import Server
from support.processes import Log, Running
from support.waiting import until

pytestmark = pytest.mark.engines

Start = Callable[..., Running]
HANDLER = ("--handler", "jobs:record")


@pytest.fixture
def installed(installed_database: Database, server: Server) -> Database:
    """A database of this test's own, without other connections."""
    if not server.restartable:
        pytest.skip("the named server is not ours to change")
    return installed_database


@pytest.fixture
def private(private_server: Server) -> Iterator[Database]:
    """A database on a server that the test may stop."""
    database = open_database(private_server.create_database())
    install.apply(database)
    yield database


def send(database: Database, type: str, body: str) -> None:
    session = database.connect("test")
    session.call("send", type, body)
    session.close()


def said(running: Running, text: str) -> int:
    return running.stderr.count(text)


@pytest.mark.level(1)
def test_a_consumer_that_starts_before_the_database_waits_for_it_and_says_so_once(
    private: Database, private_server: Server, start: Start, queue: str, joblog: Log
) -> None:
    send(private, queue, "a")
    private_server.stop()
    running = start("consume", "--type", queue, *HANDLER, "--max-messages", 1, url=private.url)
    until(lambda: said(running, "the database is unreachable"))
    time.sleep(2.5)
    assert running.process.poll() is None
    private_server.start()
    back = time.monotonic()
    assert running.wait() == 0, running.stderr
    assert joblog.read() == ["a"] and time.monotonic() - back < 10
    assert said(running, "is unreachable") == said(running, "is reachable again after") == 1, running.stderr


@pytest.mark.level(3)
def test_connect_timeout_ends_a_consumer_that_waits_for_the_database(
    private: Database, private_server: Server, start: Start, queue: str
) -> None:
    running = start("consume", "--type", queue, *HANDLER, "--connect-timeout", 2, url=private.url)
    until(lambda: said(running, "consuming"))
    stopped = time.monotonic()
    private_server.stop()
    assert running.wait() == 1, running.stderr
    assert 1.5 < time.monotonic() - stopped < 20
    for command in (("consume", "--type", queue, *HANDLER), ("feed", "publish", queue), ("apply",)):
        begun = time.monotonic()
        late = start(*command, "--connect-timeout", 1, url=private.url)
        assert late.wait() == 1 and time.monotonic() - begun < 20, late.stderr
        assert len(late.stderr.splitlines()) == 2, late.stderr
    at_once = start("apply", url=private.url)
    assert at_once.wait() == 1 and len(at_once.stderr.splitlines()) == 1, at_once.stderr


@pytest.mark.level(1)
def test_a_signal_ends_a_consumer_that_waits_for_the_database_as_a_clean_end(
    private: Database, private_server: Server, start: Start, queue: str
) -> None:
    private_server.stop()
    running = start("consume", "--type", queue, *HANDLER, url=private.url)
    until(lambda: said(running, "the database is unreachable"))
    assert running.stop() == 0, running.stderr


@pytest.mark.level(1)
def test_idle_timeout_ends_a_consumer_whose_database_is_unreachable(
    private: Database, private_server: Server, start: Start, queue: str
) -> None:
    running = start("consume", "--type", queue, *HANDLER, "--idle-timeout", 2, url=private.url)
    until(lambda: said(running, "consuming"))
    private_server.stop()
    assert running.wait() == 1, running.stderr
    assert said(running, "gave up") == 1, running.stderr


@pytest.mark.level(1)
def test_a_server_that_takes_no_changes_is_named_once_and_waited_for(
    installed: Database, server: Server, start: Start, queue: str, joblog: Log
) -> None:
    send(installed, queue, "a")
    with server.forbid_changes(installed.url):
        running = start("consume", "--type", queue, *HANDLER, "--max-messages", 1, url=installed.url)
        until(lambda: said(running, "takes no changes"))
        time.sleep(2)
        assert running.process.poll() is None and said(running, "is reachable again after") == 0, running.stderr
        assert said(running, "in the URL") == 1, running.stderr
        if server.name.startswith("firebird"):  # its mode can be set only without connections
            assert running.stop() == 0
            running = start("consume", "--type", queue, *HANDLER, "--max-messages", 1, url=installed.url)
            until(lambda: said(running, "takes no changes"))
            running.process.kill()
            running.wait()
    if server.name.startswith("firebird"):
        running = start("consume", "--type", queue, *HANDLER, "--max-messages", 1, url=installed.url)
    assert running.wait() == 0, running.stderr
    assert joblog.read() == ["a"]


@pytest.mark.level(3, one=True)
@pytest.mark.parametrize("option", [("--idle-timeout", 2), ("--drain",), ("--once",)])
def test_a_consumer_that_may_end_does_so_where_no_changes_are_taken(
    installed: Database, server: Server, start: Start, queue: str, option: tuple[object, ...]
) -> None:
    send(installed, queue, "a")
    with server.forbid_changes(installed.url):
        running = start("consume", "--type", queue, *HANDLER, *option, url=installed.url)
        assert running.wait() == 1, running.stderr
        assert said(running, "gave up") == 1 and said(running, "is reachable again after") == 0, running.stderr
        assert said(running, "the database takes no changes") <= 1, running.stderr


def test_a_change_where_none_are_taken_is_refused_as_read_only(installed: Database, server: Server, queue: str) -> None:
    with server.forbid_changes(installed.url):
        session = installed.connect("test")
        with pytest.raises(ReadOnly, match=r"in the URL"):
            session.call("send", queue, "a")
        session.close()


@pytest.mark.product("firebird")
def test_connections_that_are_killed_while_a_consumer_starts_do_not_end_it(
    private: Database, private_server: Server, start: Start, queue: str, joblog: Log
) -> None:
    """Slowly: a 5.0 server crashes when connections are ended while they are being opened."""
    running = start("consume", "--type", queue, *HANDLER, "--max-messages", 1, url=private.url)
    with private_server.client(private.url) as connection:
        for _ in range(20):
            connection.execute(
                "DELETE FROM mon$attachments WHERE mon$attachment_id <> CURRENT_CONNECTION AND mon$system_flag = 0"
            )
            time.sleep(0.2)
    assert running.process.poll() is None, running.stderr
    send(private, queue, "a")
    assert running.wait() == 0, running.stderr
    assert joblog.read() == ["a"]


@pytest.mark.level(4)
@pytest.mark.product("firebird")
def test_apply_continues_after_its_server_or_it_itself_was_killed(private_server: Server, start: Start) -> None:
    """At random moments; tests/engines/firebird/test_install.py tests a kill after each statement."""
    url = private_server.create_database()

    def apply_until(least: int) -> Running:
        """Kill and start the server when so many tables and procedures have been made."""
        running = start("apply", "--connect-timeout", 90, url=url)
        until(lambda: running.process.poll() is not None or made(private_server, url) >= least)
        private_server.kill()
        private_server.start()
        return running

    for least in (random.randint(3, 25), random.randint(30, 80), random.randint(85, 110)):
        running = apply_until(least)
        until(lambda running=running: running.process.poll() is not None or said(running, "is unreachable"))
        running.process.kill()
        running.wait()
    running = apply_until(120)
    assert running.wait() == 0, running.stderr
    fresh = private_server.create_database()
    install.apply(open_database(fresh))
    assert private_server.catalog(url) == private_server.catalog(fresh)


def made(server: Server, url: str) -> int:
    """How many tables and procedures the database has."""
    count = (
        "SELECT (SELECT COUNT(*) FROM rdb$relations WHERE rdb$system_flag = 0)"
        " + (SELECT COUNT(*) FROM rdb$procedures WHERE rdb$system_flag = 0) AS n FROM rdb$database"
    )
    return int(server.query(url, count)[0]["n"])


@pytest.mark.product("firebird")
@pytest.mark.level(4)
def test_a_runner_outlives_twenty_ends_of_its_connections(
    private: Database, private_server: Server, start: Start, queue: str, joblog: Log
) -> None:
    """By a killed server and by an administrator in turn, while it waits for events; it must not crash."""
    running = start("consume", "--type", queue, *HANDLER, "--concurrency", 3, "--batch", 1, url=private.url)
    until(lambda: said(running, "consuming"))
    for n in range(20):
        if n % 2:
            private_server.kill()
        else:
            with suppress(Exception), private_server.client(private.url) as connection:
                connection.execute(
                    "DELETE FROM mon$attachments WHERE mon$attachment_id <> CURRENT_CONNECTION AND mon$system_flag = 0"
                )
        try:
            private_server.start()
        except TimeoutError:  # 5.0 itself may have crashed
            private_server.kill()
            private_server.start()
        for body in (f"{n} a", f"{n} b", f"{n} c"):
            until(lambda body=body: sent(private, queue, body))
        until(lambda n=n: {f"{n} a", f"{n} b", f"{n} c"} <= set(joblog.read()) or running.process.poll() is not None)
        assert running.process.poll() is None, f"{running.process.returncode}: {running.stderr}"
    assert running.stop() == 0, running.stderr


def sent(database: Database, type: str, body: str) -> bool:
    try:
        send(database, type, body)
    except Disconnected:
        return False
    return True
