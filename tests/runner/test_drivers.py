"""What all drivers have in common: kinds of errors, refused values, transactions, waits, restarts."""

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import (
    Database,
    Disconnected,
    NotAllowed,
    QueueError,
    SchemaMissing,
    Session,
    open_database,
)
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from support.capabilities import BY_DATABASE
from support.waiting import until

pytestmark = pytest.mark.engines

Query = Callable[..., list[dict[str, Any]]]
Connect = Callable[..., Session]


@pytest.mark.parametrize(
    ("module", "extra"),
    [("psycopg", "postgresql"), ("pymysql", "mysql"), ("firebird", "firebird"), ("pymssql", "sqlserver")],
)
def test_a_driver_that_is_not_installed_is_one_line_that_says_how_to_get_it(module: str, extra: str) -> None:
    program = f"import sys; sys.modules['{module}'] = None; from rowqueue.cli import main; main()"
    command = [sys.executable, "-c", program, "stats", "--database", f"{extra}://host/db"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"pip install '.[{extra}]' in the checkout" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("oracle://x/y", "unknown scheme 'oracle'"),
        ("postgresql://host/db?no_such_option=1", "no_such_option"),
        ("postgresql://user:cret%zz@host/db", "percent-encoded"),
        ("postgresql://[::1/db", "IPv6"),
        ("mysql://host/db?no_such_option=1", "no_such_option"),
        ("mysql://host/db?ssl_mode=perhaps", "ssl_mode is 'perhaps'"),
        ("mysql://host/db?connect_timeout=soon", "connect_timeout is 'soon'"),
        ("mysql://host/db?read_timeout=0", "read_timeout is '0'"),
        ("mysql://user:se/cret@host/db", "%XX"),
        ("mysql://user:se#cret@host/db", "%XX"),
        ("mysql://user:secret@host/db#x", "%23"),
        ("mysql://user:secret%ff@host/db", "percent-encoded UTF-8"),
        ("mysql://user:secret@host:0/db", "port is '0'"),
        ("mariadb://user:secret@host:99999/db", "the port is not a number"),
        ("mysql://[::1/db", "IPv6"),
        ("firebird://host/db?no_such_option=1", "no_such_option"),
        ("firebird://host/db?charset=LATIN1", "charset is 'LATIN1'"),
        ("firebird://host/db?connect_timeout=soon", "connect_timeout is 'soon'"),
        ("firebird://user:se/cret@host/db", "%XX"),
        ("firebird://user:secret@host/db#x", "%23"),
        ("firebird://user:secret%ff@host/db", "percent-encoded UTF-8"),
        ("firebird://user:secret@host:0/db", "port is '0'"),
        ("firebird://user:secret@host:99999/db", "the port is not a number"),
        ("firebird://[::1/db", "IPv6"),
        ("firebird://user:secret%00@host/db", "NUL"),
    ],
)
def test_a_bad_url_is_one_line_without_the_password(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^database URL: ") as caught:
        open_database(url)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value) and "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://127.0.0.1:1/db", "mysql://u@127.0.0.1:1/db", "firebird://127.0.0.1:1/db"]
)
def test_a_server_that_is_not_there_is_disconnected(url: str) -> None:
    with pytest.raises(Disconnected, match=r"127\.0\.0\.1"):
        open_database(url).connect("test")


@pytest.mark.parametrize(
    ("procedure", "arguments", "named"),
    [
        ("send", ("q\0", "x"), "type"),
        ("send", ("q", "x\0y"), "body"),
        ("send", ("q", "x\ud800y"), "body"),
        ("claim_batch", ("q", 1 << 40), "size"),
        ("claim_batch", ("q", -(1 << 80)), "size"),
        ("complete", (1 << 63, str(uuid.uuid4())), "id"),
        ("send_message", ("q", "x", None, 1 << 33), "priority"),
        ("set_queue", ("q", '{"ordered": 1048576}'), "ordered"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_an_invalid_argument(
    session: Session, sql: Query, server: Server, procedure: str, arguments: tuple[Any, ...], named: str
) -> None:
    with pytest.raises(QueueError, match=rf"^invalid_argument: {named}: must ") as caught:
        session.call(procedure, *arguments)
    assert caught.value.number == 50002
    for table in ("message", "queue"):
        assert sql(f"SELECT type FROM {server.table(table)} WHERE type = 'q'") == []


def test_an_error_of_the_contract_carries_its_number_and_text(session: Session) -> None:
    with pytest.raises(QueueError, match=r"^invalid_argument: type: must be 1 to 200 characters") as caught:
        session.call("send", "", "x")
    assert caught.value.number == contract.load().errors["invalid_argument"].number


def test_a_database_without_the_queue_says_which_command_installs_it(empty_database: Database) -> None:
    session = empty_database.connect("test")
    with pytest.raises(SchemaMissing, match="runner apply"):
        session.call("send", "q", "x")
    session.close()


def test_a_release_without_a_procedure_says_which_command_installs_it(
    installed_database: Database, server: Server
) -> None:
    server.drop_procedure(installed_database.url, "cancel")
    session = installed_database.connect("test")
    with pytest.raises(SchemaMissing, match="runner apply"):
        session.call("cancel", 1)
    session.close()


def test_a_role_without_the_right_is_forbidden(database: Database, server: Server, queue: str, sql: Query) -> None:
    with server.login(database.url, f"test_{uuid.uuid4().hex[:8]}", "mq_consumer") as url:
        session = open_database(url).connect("test")
        with pytest.raises(NotAllowed, match=r"(?i)send"):
            session.call("send", queue, "x")
        assert session.call("claim_batch", queue) == []
        session.close()
    assert sql(f"SELECT id FROM {server.table('message')} WHERE type = %s", queue) == []


def test_times_are_utc_in_any_time_zone_of_the_server(session: Session, queue: str) -> None:
    """The servers of the tests are five and a half hours ahead."""
    session.call("send", queue, "x")
    created = session.call("claim_batch", queue)[0]["created_at"]
    assert created.utcoffset().total_seconds() == 0
    assert abs(created.timestamp() - time.time()) < 60


def test_a_transaction_rolls_back_with_its_block(session: Session, queue: str, sql: Query, server: Server) -> None:
    session.call("send", queue, "x")
    with pytest.raises(RuntimeError, match="handler"), session.transaction():
        assert len(session.call("take_batch", queue, 1)) == 1
        raise RuntimeError("handler")
    assert len(session.call("take_batch", queue, 1)) == 1
    assert sql(f"SELECT id FROM {server.table('message')} WHERE type = %s", queue) == []


@pytest.mark.product("mysql", "mariadb", "firebird")  # the driver of PostgreSQL sees to it itself
@pytest.mark.parametrize("end", ["commit", "rollback", "begin"])
def test_the_driver_may_not_end_the_runners_transaction(session: Session, queue: str, end: str) -> None:
    session.call("send", queue, "x")
    with pytest.raises(Exception, match="runner's transaction"), session.transaction() as connection:
        session.call("take_batch", queue, 1)
        getattr(connection, end)()
    assert [row["body"] for row in session.call("take_batch", queue)] == ["x"]
    assert session.call("claim_batch", queue) == []


@pytest.fixture
def kill(sql: Query, database: Database) -> Callable[[Any], Callable[[], object]]:
    """kill(connection)() ends the driver's connection as an administrator does."""
    can = BY_DATABASE[database.name]

    def of(connection: Any) -> Callable[[], object]:
        cursor = connection.cursor()
        cursor.execute(can.session_id)
        [number] = cursor.fetchone()
        cursor.close()
        return lambda: sql(can.end_session.format(number))

    return of


def test_a_connection_ended_by_the_server_is_disconnected(
    connect: Connect, queue: str, kill: Callable[[Any], Callable[[], object]]
) -> None:
    session = connect()
    with session.transaction() as connection:
        end = kill(connection)
    end()
    for _ in range(2):
        with pytest.raises(Disconnected):
            session.call("queue_stats", queue)
    with pytest.raises(Disconnected), session.transaction():
        pass


def test_a_connection_lost_inside_a_transaction_is_disconnected(
    connect: Connect, queue: str, kill: Callable[[Any], Callable[[], object]]
) -> None:
    session = connect()
    session.call("send", queue, "x")
    with pytest.raises(Disconnected), session.transaction() as connection:
        session.call("take_batch", queue, 1)
        kill(connection)()
    # The server may still be ending it.
    rows = until(lambda: connect().call("claim_batch", queue), "the message is back", 30)
    assert [row["body"] for row in rows] == ["x"]


@pytest.mark.level(3)
@pytest.mark.parametrize("mode", ["fast", "kill"])
def test_a_restarted_server_is_disconnected_first_and_then_has_everything(private_server: Server, mode: str) -> None:
    database = open_database(private_server.create_database())
    install.apply(database)
    session = database.connect("test")
    sent = session.call("send", "q", "kept")[0]["id"]
    private_server.kill() if mode == "kill" else private_server.stop(mode)
    with pytest.raises(Disconnected):
        session.call("send", "q", "lost")
    with pytest.raises(Disconnected):
        database.connect("test")
    session.close()
    private_server.start()
    session = database.connect("test")
    assert [(row["id"], row["body"]) for row in session.call("claim_batch", "q", 10)] == [(sent, "kept")]
    session.close()


def test_waiting_ends_with_the_time_and_with_the_interrupt(
    connect: Connect, queue: str, interrupt: tuple[int, int]
) -> None:
    session = connect()
    session.listen([queue])
    started = time.monotonic()
    assert session.wait(0.3, interrupt[0]) is None
    assert 0.3 <= time.monotonic() - started < 10
    threading.Timer(0.2, lambda: os.write(interrupt[1], b"x")).start()
    started = time.monotonic()
    assert session.wait(30, interrupt[0]) is None
    assert time.monotonic() - started < 10


@pytest.mark.level(3)
def test_databases_of_one_server_can_be_installed_at_once(private_server: Server) -> None:
    """Roles and accounts belong to all of them."""
    databases = [open_database(private_server.create_database()) for _ in range(4)]
    failures: list[BaseException] = []

    def apply(database: Database) -> None:
        try:
            install.apply(database)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=apply, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [install.pending(database) for database in databases] == [[]] * 4
