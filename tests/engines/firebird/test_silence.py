"""Calls that a Firebird server never answers, as 5.0 sometimes does after it has ended their connection."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import pytest
from rowqueue.databases import Database, Disconnected, Session, open_database
from rowqueue.databases.firebird import Firebird, FirebirdSession, watch
from rowqueue.databases.firebird import events as events_module
from servers import Server

pytestmark = [pytest.mark.product("firebird"), pytest.mark.one_version]
SECONDS = 60  # how long a test waits for something that should be immediate


class Relay:
    """A proxy in front of the server. `silence` holds back all answers on existing connections, even their end."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        login, port = parts.netloc.rpartition("@")[0], self._listener.getsockname()[1]
        self.url = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{port}"))
        self._silenced = 0  # connections up to this
        self._sockets: list[socket.socket] = []
        self.holds = False
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        self._silenced = len(self._sockets)

    def close(self) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # close alone would not end the calls of other threads
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self.holds:
                    continue
                server = socket.create_connection(self._server)
                self._sockets.append(server)
                number = len(self._sockets)
                for source, target, ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._copy, args=(source, target, number, ends), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, number: int, is_clients: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if is_clients or number > self._silenced:
                    target.sendall(data)
        if is_clients or number > self._silenced:
            with suppress(OSError):
                target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(database: Database) -> Iterator[Relay]:
    relay = Relay(database.url)
    yield relay
    relay.close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_LOOK", 0.5)


def end_all(server: Server, url: str) -> None:
    """End all connections to the database, as an administrator does."""
    with server.client(url) as client:
        client.execute("DELETE FROM mon$attachments WHERE mon$attachment_id <> CURRENT_CONNECTION")


def ends(work: Callable[[], object]) -> BaseException | None:
    """The exception of `work`, which must end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "it still waits for an answer"
    return errors[0] if errors else None


def connected(relay: Relay) -> FirebirdSession:
    return connected_to(open_database(relay.url))


def connected_to(database: Database) -> FirebirdSession:
    session = database.connect("test")
    assert isinstance(session, FirebirdSession)
    return session


def until(condition: Callable[[], bool], deadline: float) -> None:
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def in_transaction(session: Session) -> None:
    with session.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM rdb$database").fetchall()


@pytest.mark.parametrize(
    "work", [lambda session: session.call("queue_stats", "x"), in_transaction, lambda session: session.now()]
)
def test_an_unanswered_call_ends_when_the_server_has_dropped_its_connection(
    server: Server, relay: Relay, work: Callable[[Session], object]
) -> None:
    session = connected(relay)
    relay.silence()
    end_all(server, relay.url)
    assert isinstance(ends(lambda: work(session)), Disconnected)
    assert ends(session.close) is None
    later = connected(relay)
    work(later)
    later.close()


def test_a_connection_is_closed_though_the_server_never_answers(server: Server, relay: Relay) -> None:
    for make in (connected, lambda relay: open_database(relay.url)):
        made = make(relay)
        connection = made.open("test") if isinstance(made, Firebird) else made
        relay.silence()
        end_all(server, relay.url)
        assert ends(connection.close) is None


def test_a_call_that_takes_long_is_left_alone(relay: Relay) -> None:
    """Whether the server has the connection and runs a statement on it."""
    session = connected(relay)
    with session.transaction() as connection, connection.cursor() as cursor:
        # About 3 seconds or more: the check happens after half a second.
        begun = time.monotonic()
        while time.monotonic() < begun + 2.5:
            cursor.execute(
                "EXECUTE BLOCK RETURNS (n integer) AS BEGIN n = 0; WHILE (n < 300000) DO n = n + 1; SUSPEND; END"
            ).fetchall()
    assert [(row["type"], row["ready"]) for row in session.call("queue_stats", "silence")] == [("silence", 0)]
    session.close()


def test_where_the_server_cannot_be_asked_a_call_ends_as_tcp_would_end_it(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LONGEST", 2.0)
    session = connected(relay)
    relay.silence()
    relay.holds = True
    begun = time.monotonic()
    assert isinstance(ends(lambda: session.call("queue_stats", "x")), Disconnected)
    assert time.monotonic() - begun >= 2
    assert ends(session.close) is None


def test_a_server_that_does_not_answer_does_not_delay_the_check_of_another_one(
    server: Server, database: Database
) -> None:
    """Each relay is a server of its own to the runner, which waits a minute for the answer of the first one."""
    relays = [Relay(database.url) for _ in range(2)]
    patient = open_database(f"{relays[0].url}?connect_timeout={SECONDS}")
    first, second = connected_to(patient), connected(relays[1])
    relays[0].silence()
    relays[0].holds = True
    accepted = len(relays[0]._sockets)
    threading.Thread(target=lambda: ends(lambda: first.call("queue_stats", "x")), daemon=True).start()
    until(lambda: len(relays[0]._sockets) > accepted, time.monotonic() + SECONDS)  # the first server is being asked
    relays[1].silence()
    end_all(server, relays[1].url)
    begun = time.monotonic()
    assert isinstance(ends(lambda: second.call("queue_stats", "x")), Disconnected)
    assert time.monotonic() - begun < SECONDS / 2
    for relay in relays:
        relay.close()
    for session in (first, second):
        assert ends(session.close) is None


def test_an_attempt_to_connect_that_is_never_answered_ends(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowqueue.databases.firebird.connection._ATTACH_SECONDS", 1)
    relay.holds = True
    database = open_database(f"{relay.url}?connect_timeout=1")
    assert isinstance(ends(lambda: database.connect("test")), Disconnected)


def test_events_are_registered_again_when_the_registration_was_never_answered(
    server: Server, relay: Relay, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowqueue.databases.firebird.events._PING_SECONDS", 0.2)
    monkeypatch.setattr("rowqueue.databases.firebird.events._RETRY_SECONDS", 0.1)
    session = connected(relay)
    assert session.listen([queue]) is True
    relay.silence()
    end_all(server, relay.url)
    listener = session._listener
    assert listener is not None
    deadline = time.monotonic() + SECONDS
    until(lambda: not listener.is_on, deadline)  # the ping has failed
    until(lambda: listener.is_on, deadline)
    sender, reader = connected(relay), os.pipe()
    listener.clear()
    sender.call("send", queue, "x")
    assert session.wait(SECONDS, reader[0]) is not None
    for one in reader:
        os.close(one)
    sender.close()
    session.close()


@pytest.mark.parametrize("events", [0, 2])
def test_after_a_loss_nothing_is_freed_before_the_last_call_of_the_client_library(
    server: Server, database: Database, queue: str, monkeypatch: pytest.MonkeyPatch, events: int
) -> None:
    """The library makes no such call when we have ended the connection: then a second must pass.

    Each event ends a registration with such a call, too. That one must not count.
    """
    monkeypatch.setattr("rowqueue.databases.firebird.events._PING_SECONDS", 0.2)
    happened: list[str] = []
    waited: list[float] = []

    class Callback(events_module._Callback):
        def events_arrived(self, events: bytes) -> None:
            if not events and threading.current_thread().name != "rowqueue events":
                time.sleep(0.3)  # the thread of the client library is slow
                happened.append("last call")
            super().events_arrived(events)

        def wait_for_last(self) -> None:
            begun = time.monotonic()
            super().wait_for_last()
            waited.append(time.monotonic() - begun)

    def let_go(registration: object) -> None:
        happened.append("freed")
        free(registration)

    free = events_module._let_go
    monkeypatch.setattr(events_module, "_Callback", Callback)
    monkeypatch.setattr(events_module, "_let_go", let_go)
    session, sender = connected_to(database), connected_to(database)
    assert session.listen([queue]) is True
    deadline = time.monotonic() + SECONDS
    until(lambda: happened == ["freed"], deadline)  # the first answer comes at once
    for number in range(events):
        sender.call("send", queue, "x")
        until(lambda number=number: len(happened) == number + 2, deadline)
    time.sleep(0.1)  # the next registration
    happened.clear()
    end_all(server, database.url)
    until(lambda: "freed" in happened, deadline)
    assert happened[:2] == ["last call", "freed"] or waited[0] >= events_module._LAST_CALL_SECONDS
    sender.close()
    session.close()


def test_a_call_that_still_waits_is_ended_again(
    server: Server, relay: Relay, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first attempt may fail, and so may the question for our connections, with any error."""
    session = connected(relay)
    watched = session._connection.watched
    assert watched is not None
    abort, look = watch.Watched.abort, watched.look
    failed: list[str] = []

    def fails_at_first(watched: watch.Watched) -> None:
        if len(failed) < 2:
            failed.append("abort")
        else:
            abort(watched)

    def fails_once() -> set[int]:
        if not failed:
            failed.append("look")
            raise ZeroDivisionError
        return look()

    monkeypatch.setattr(watch.Watched, "abort", fails_at_first)
    watched.look = fails_once
    relay.silence()
    end_all(server, relay.url)
    assert isinstance(ends(lambda: session.call("queue_stats", "x")), Disconnected)
    assert failed == ["look", "abort"] and "ZeroDivisionError" in caplog.text
    assert ends(session.close) is None
