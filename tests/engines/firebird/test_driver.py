"""Firebird only: URLs, texts for a version, events, lost transactions, installers and the script."""

import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from rowqueue.databases import (
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    NotAllowed,
    QueueError,
    open_database,
)
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server

pytest.importorskip("firebird.driver")

from firebird.driver import Error
from rowqueue.databases.firebird import Firebird, FirebirdSession
from rowqueue.databases.firebird.events import event_name
from rowqueue.databases.firebird.statements import statements

Query = Callable[..., list[dict[str, Any]]]
Connect = Callable[..., FirebirdSession]

pytestmark = pytest.mark.product("firebird")


# ---- URLs and connecting


@pytest.mark.parametrize(
    ("url", "dsn"),
    [
        ("firebird://host/alias", "host:alias"),
        ("firebird://host:3051//data/a%20b.fdb", "host/3051:/data/a b.fdb"),
        ("firebird://[::1]//data/db.fdb", "[::1]:/data/db.fdb"),
        ("firebird:///data/db.fdb", "/data/db.fdb"),
        ("firebird://host/C:/data/db.fdb", "host:C:/data/db.fdb"),
    ],
)
def test_a_url_names_an_alias_a_file_of_a_server_or_one_of_this_machine(url: str, dsn: str) -> None:
    database = open_database(url)
    assert isinstance(database, Firebird)
    assert database._address.dsn == dsn


def test_a_client_library_that_is_not_there_is_one_line_that_names_it() -> None:
    command = [sys.executable, "-m", "rowqueue.cli", "stats", "--database", "firebird://127.0.0.1:1/db"]
    environment = os.environ | {"FIREBIRD_CLIENT_LIBRARY": "/nowhere/libfbclient.so.2"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 1
    assert "/nowhere/libfbclient.so.2" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_a_server_that_is_not_there_is_disconnected(server: Server) -> None:
    with pytest.raises(Disconnected, match=r"127\.0\.0\.1"):
        open_database("firebird://127.0.0.1:1/db").connect("test")
    with pytest.raises(Disconnected, match="no-such-host"):
        open_database("firebird://no-such-host.invalid/db").connect("test")


def test_a_connection_attempt_to_a_silent_server_ends(server: Server) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        with pytest.raises(Disconnected):
            open_database(f"firebird://u@127.0.0.1:{silent.getsockname()[1]}/db?connect_timeout=1").connect("test")
        assert 0.9 < time.monotonic() - started < 10


def test_a_database_or_login_that_is_not_there_is_an_error_that_waiting_does_not_cure(database: Database) -> None:
    user = urlsplit(database.url).username
    for url in (f"{database.url}_missing", database.url.replace(f"//{user}:", "//nobody_here:")):
        with pytest.raises(DatabaseError) as caught:
            open_database(url).connect("test")
        assert not isinstance(caught.value, Disconnected)


def test_the_sessions_socket_notices_a_dead_peer(connect: Connect, database: Database) -> None:
    connect()
    port = urlsplit(database.url).port
    lines = subprocess.run(["ss", "-tno", f"dport = :{port}"], capture_output=True, text=True).stdout.splitlines()[1:]
    assert lines and all("keepalive" in line for line in lines if line.startswith("ESTAB"))


# ---- values and errors


@pytest.mark.parametrize(
    "text", ["", " ", "blanks  ", "é€😀", "x" * 2000, "€" * 667, "😀" * 500, "x" * 2001, "€" * 70_000]
)
def test_a_body_comes_back_byte_for_byte(session: FirebirdSession, queue: str, text: str) -> None:
    session.call("send", queue, text)
    assert [row["body"] for row in session.call("claim_batch", queue)] == [text]


@pytest.mark.parametrize(
    ("procedure", "arguments", "named"),
    [
        ("send", ("q\0", "x"), "type"),
        ("send", ("q" * 1001, "x"), "type"),
        ("send", ("q", "x\0y"), "body"),
        ("send", ("q", "x\ud800y"), "body"),
        ("claim_batch", ("q", 1 << 40), "size"),
        ("claim_batch", ("q", -(1 << 80)), "size"),
        ("claim_batch", ("q", "many"), "size"),
        ("claim_batch", ("q", 1.5), "size"),
        ("complete", (1 << 63, str(uuid.uuid4())), "id"),
        ("send_message", ("q", "x", "tomorrow"), "run_at"),
        ("send_message", ("q", "x", None, float("inf")), "priority"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_an_invalid_argument(
    session: FirebirdSession, procedure: str, arguments: tuple[Any, ...], named: str
) -> None:
    with pytest.raises(QueueError, match=rf"^invalid_argument: {named}: must ") as caught:
        session.call(procedure, *arguments)
    assert caught.value.number == 50002


def test_a_user_without_the_role_is_forbidden(database: Database, server: Server, queue: str) -> None:
    with server.login(database.url, f"TEST_{uuid.uuid4().hex[:8]}", "mq_consumer") as url:
        session = open_database(url).connect("test")
        with pytest.raises(NotAllowed, match="MQ_SEND"):
            session.call("send", queue, "x")
        assert session.call("claim_batch", queue) == []
        session.close()


# ---- transactions


def test_two_transactions_that_change_one_row_are_a_conflict(connect: Connect, queue: str) -> None:
    one, two = connect(), connect()
    one.call("set_queue", queue, '{"lease_seconds": 60}')
    with one.transaction():
        one.call("set_queue", queue, '{"lease_seconds": 61}')
        with pytest.raises(Conflict), two.transaction():
            two.call("set_queue", queue, '{"lease_seconds": 62}')
    assert one.call("set_queue", queue)[0]["lease_seconds"] == 61


def test_a_call_of_its_own_waits_for_the_row_of_another(connect: Connect, queue: str) -> None:
    one, two = connect(), connect()
    one.call("set_queue", queue, '{"lease_seconds": 60}')
    with one.transaction():
        one.call("set_queue", queue, '{"lease_seconds": 61}')
        waiting = threading.Thread(target=two.call, args=("set_queue", queue, '{"max_attempts": 5}'))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join(10)
    row = one.call("set_queue", queue)[0]
    assert (row["lease_seconds"], row["max_attempts"]) == (61, 5)


def test_the_handlers_own_statements_are_in_the_transaction_of_the_calls(session: FirebirdSession, queue: str) -> None:
    session.call("send", queue, "x")
    with pytest.raises(RuntimeError, match="handler"), session.transaction() as connection:
        assert len(session.call("take_batch", queue, 1)) == 1
        with connection.cursor() as cursor:
            assert cursor.execute("SELECT COUNT(*) FROM mq_message WHERE type = ?", [queue]).fetchone() == (0,)
        raise RuntimeError("handler")
    assert len(session.call("take_batch", queue, 1)) == 1


def test_an_error_of_one_statement_leaves_the_transaction_open(session: FirebirdSession, queue: str) -> None:
    session.call("send", queue, "x")
    with session.transaction() as connection:
        session.call("take_batch", queue, 1)
        with pytest.raises(Error), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0 FROM rdb$database").fetchall()
    assert session.call("claim_batch", queue) == []


@pytest.mark.parametrize("how", ["statement", "manager"])
def test_a_transaction_that_was_ended_inside_does_not_pass_for_success(
    session: FirebirdSession, queue: str, how: str
) -> None:
    session.call("send", queue, "x")
    with pytest.raises(DatabaseError, match="ended it"), session.transaction() as connection:
        session.call("take_batch", queue, 1)
        if how == "manager":
            connection.main_transaction.commit()
        else:
            connection.cursor().execute("COMMIT")
    assert session.call("send", queue, "y")


# ---- lost connections


def kill(sql: Query, session: FirebirdSession) -> None:
    with session.transaction() as connection, connection.cursor() as cursor:
        [number] = cursor.execute("SELECT CURRENT_CONNECTION FROM rdb$database").fetchone()
    sql("DELETE FROM mon$attachments WHERE mon$attachment_id = %s", number)


def test_a_connection_ended_by_the_server_is_disconnected(
    connect: Connect, sql: Query, queue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = connect()
    session.call("send", queue, "x")
    kill(sql, session)
    for _ in range(2):
        with pytest.raises(Disconnected):
            session.call("send", queue, "y")
    with pytest.raises(Disconnected), session.transaction():
        pass
    session.close()
    with pytest.raises(Disconnected), session.transaction():
        pass
    assert "Exception ignored" not in capsys.readouterr().err


# ---- events


def test_an_event_wakes_a_waiting_session_at_once(connect: Connect, queue: str, interrupt: tuple[int, int]) -> None:
    session, other = connect(), connect()
    long = queue + "é" * 100
    assert session.listen([queue, long]) is True
    assert session.wait(0.1, interrupt[0]) is None
    delays = []
    for type_name in [queue, long] * 5:
        sent: list[float] = []

        def send(type_name: str = type_name, sent: list[float] = sent) -> None:
            other.call("send", type_name, "x")
            sent.append(time.monotonic())

        sender = threading.Timer(0.05, send)
        sender.start()
        assert session.wait(10, interrupt[0]) == {type_name}
        woken = time.monotonic()
        sender.join()
        delays.append(woken - sent[0])
    assert sorted(delays)[len(delays) // 2] < 0.01


def test_events_of_1000_queues_name_those_that_begin_alike(
    connect: Connect, queue: str, interrupt: tuple[int, int]
) -> None:
    session, other = connect(), connect()
    assert session.listen([f"{n}.{queue}" for n in range(998)] + [queue + "é" * 90, queue + "é" * 91]) is True
    other.call("send", f"777.{queue}", "x")
    assert session.wait(10, interrupt[0]) == {f"777.{queue}"}
    other.call("send", queue + "é" * 91, "x")
    assert session.wait(10, interrupt[0]) == {queue + "é" * 90, queue + "é" * 91}


def test_an_event_between_two_waits_is_not_lost(connect: Connect, queue: str, interrupt: tuple[int, int]) -> None:
    session, other = connect(), connect()
    session.listen([queue])
    for _ in range(3):
        other.call("send", queue, "x")
    time.sleep(0.2)
    started = time.monotonic()
    assert session.wait(10, interrupt[0]) is not None
    assert time.monotonic() - started < 1
    assert session.wait(0.2, interrupt[0]) is None


def test_events_arrive_after_their_connection_was_lost(
    connect: Connect, queue: str, sql: Query, interrupt: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowqueue.databases.firebird.events._PING_SECONDS", 0.2)
    monkeypatch.setattr("rowqueue.databases.firebird.events._RETRY_SECONDS", 0.1)
    session, other = connect(), connect()
    before = {row["id"] for row in sql("SELECT mon$attachment_id AS id FROM mon$attachments")}
    session.listen([queue])
    after = {row["id"] for row in sql("SELECT mon$attachment_id AS id FROM mon$attachments")}
    [number] = after - before
    sql("DELETE FROM mon$attachments WHERE mon$attachment_id = %s", number)
    assert session.wait(10, interrupt[0]) is not None  # events in the meantime were missed
    other.call("send", queue, "x")
    assert session.wait(10, interrupt[0]) is not None


def test_the_name_of_an_event_has_room_for_any_type() -> None:
    assert event_name("q") == b"mq_q"
    assert len(event_name("😀" * 200)) <= 127


# ---- installing


def test_a_file_is_split_where_its_statements_end() -> None:
    text = """\
-- a comment; with a semicolon
CREATE EXCEPTION a 'one; two';
INSERT INTO t VALUES ('a
;'); -- the end
/* not
here; */ SELECT 1 FROM rdb$database;

SET TERM ^ ;

CREATE PROCEDURE p AS
BEGIN
    -- it's one;
    EXIT;
END^

SET TERM ; ^

GRANT a TO b;
"""
    assert list(statements(text)) == [
        "CREATE EXCEPTION a 'one; two'",
        "INSERT INTO t VALUES ('a\n;')",
        "here; */ SELECT 1 FROM rdb$database",
        "CREATE PROCEDURE p AS\nBEGIN\n    -- it's one;\n    EXIT;\nEND",
        "GRANT a TO b",
    ]


def test_a_server_gets_the_text_for_its_version(empty_database: Database, server: Server) -> None:
    assert isinstance(empty_database, Firebird)
    plain = {file.name: file.text for file in install.files("firebird")}
    fitted = {file.name: file.text for file in install.known(empty_database)}
    for name, text in plain.items():
        versions = {int(found) for found in re.findall(r"/\*!(\d)", text)}
        left = {int(found) for found in re.findall(r"/\*!(\d)", fitted[name])}
        assert left == {version for version in versions if version > empty_database.version}
    assert (empty_database.version >= 4) == (fitted != plain)
    assert ("BASE64_ENCODE(p_bytes); */" in fitted["base64"]) == (empty_database.version < 4)


@pytest.mark.level(4)
def test_six_installers_at_once_are_one_installation(empty_database: Database, server: Server) -> None:
    program = (
        "import sys; from rowqueue.install import apply as install; from rowqueue.databases import open_database;"
        " done = install.apply(open_database(sys.argv[1])); print(len(done.migrations), bool(done.procedures))"
    )
    command = [sys.executable, "-c", program, empty_database.url]
    installers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    told = sorted(installer.communicate(timeout=120)[0].strip() for installer in installers)
    migrations = sum(file.kind == "migration" for file in install.known(empty_database))
    assert told == ["0 False"] * 5 + [f"{migrations} True"]
    assert install.pending(empty_database) == []


@pytest.mark.level(3)
def test_a_killed_installer_frees_the_lock(empty_database: Database) -> None:
    program = (
        "import sys, time; from rowqueue.databases import open_database\n"
        "with open_database(sys.argv[1]).installing(): print('in', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, empty_database.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as installer:
        assert installer.stdout and installer.stdout.readline() == "in\n"
        installer.kill()
    started = time.monotonic()
    install.apply(empty_database)
    assert time.monotonic() - started < 30


@pytest.mark.level(3)
def test_yoyos_own_command_applies_the_migrations_too(empty_database: Database) -> None:
    folder = contract.sql_root() / "migrations" / "firebird"
    command = [sys.executable, "-m", "yoyo", "apply", "--batch", "--database", empty_database.url, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert install.apply(empty_database).migrations == []
    assert install.pending(empty_database) == []


@pytest.mark.level(3)
def test_uninstall_leaves_the_users_own_objects_and_nothing_else(empty_database: Database, server: Server) -> None:
    def catalog() -> list[str]:
        # The engine records a change of triggers in the rows of the table's columns.
        return [line for line in server.catalog(url) if not line.startswith("relation_fields ['ID', ")]

    url = empty_database.url
    for table in ("mq_of_the_user", "watched", "unwatched"):
        server.query(url, f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY)")
    server.query(url, "CREATE TRIGGER mq_watch_99 FOR watched AFTER INSERT AS BEGIN END")
    before = catalog()
    install.apply(empty_database)
    with closing(empty_database.connect("test")) as session:
        for table in ("watched", "unwatched"):
            session.call("watch_table", table)
        session.call("subscribe", "watched", "I", "changes")
        for row in session.call("unwatch_table", "unwatched"):
            server.query(url, row["statement"])
    server.query(url, "INSERT INTO watched (id) VALUES (1)")
    empty_database.uninstall()
    assert catalog() == before
    server.query(url, "INSERT INTO watched (id) VALUES (2)")


def test_a_session_uses_a_new_procedure_soon_after_an_upgrade(
    connect: Connect, database: Database, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prepared statement keeps using the old one."""
    url = server.create_database()
    server.query(
        url,
        "CREATE PROCEDURE mq_cancel (p_id bigint) RETURNS (affected bigint, state char(1)) AS"
        " BEGIN affected = 1; SUSPEND; END",
    )
    monkeypatch.setattr("rowqueue.databases.firebird.session._STATEMENT_SECONDS", 0.5)
    session = open_database(url).connect("test")
    assert session.call("cancel", 1)[0]["affected"] == 1
    changed = (
        "ALTER PROCEDURE mq_cancel (p_id bigint) RETURNS (affected bigint, state char(1)) AS"
        " BEGIN affected = 2; SUSPEND; END"
    )
    server.query(url, changed)
    deadline = time.monotonic() + 10
    while session.call("cancel", 1)[0]["affected"] == 1:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    session.close()
    server.drop_database(url)


def test_a_path_is_quoted_in_a_url(server: Server, empty_database: Database) -> None:
    path = unquote(urlsplit(empty_database.url).path[1:])
    assert quote(path, safe="") != path
    url = empty_database.url.replace(urlsplit(empty_database.url).path, "/" + quote(path, safe=""))
    open_database(url).connect("test").close()
