"""PostgreSQL only: errors, wake-ups, poolers, restarts and the script."""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from rowqueue.databases import (
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    NotAllowed,
    QueueError,
    Session,
    open_database,
)
from rowqueue.databases.postgresql import PostgreSQLSession
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from servers.postgresql import PgBouncer

pytestmark = pytest.mark.product("postgresql")

Query = Callable[..., list[dict[str, Any]]]
Connect = Callable[..., PostgreSQLSession]


# ---- URLs and connecting


def test_a_socket_that_is_not_there_is_disconnected(tmp_path: Path) -> None:
    with pytest.raises(Disconnected, match="No such file"):
        open_database(f"postgresql:///postgres?host={tmp_path}").connect("test")


def test_a_database_or_role_that_does_not_exist_is_an_error_that_waiting_does_not_cure(database: Database) -> None:
    for url in (f"{database.url}_missing", database.url.replace("//postgres@", "//nobody_here@")):
        with pytest.raises(DatabaseError, match="does not exist") as caught:
            open_database(url).connect("test")
        assert not isinstance(caught.value, Disconnected)


def test_a_database_that_does_not_exist_is_such_an_error_through_a_socket_too(database: Database, sql: Query) -> None:
    with pytest.raises(DatabaseError, match="does not exist") as caught:
        folder, port = sql("SELECT current_setting('unix_socket_directories') AS f, current_setting('port') AS p")[
            0
        ].values()
        open_database(f"postgresql://postgres@/missing?host={folder.partition(',')[0]}&port={port}").connect("test")
    assert not isinstance(caught.value, Disconnected)


def test_the_url_may_set_any_parameter_of_the_connection(database: Database, queue: str) -> None:
    session = open_database(f"{database.url}?application_name=mine&options=-c%20work_mem%3D7MB").connect("test")
    assert isinstance(session, PostgreSQLSession)
    with session.transaction() as connection:
        shown = connection.execute("SELECT current_setting('application_name'), current_setting('work_mem')").fetchone()
    session.close()
    assert shown == ("mine", "7MB")


# ---- errors


def test_a_text_that_is_no_key_is_an_invalid_argument(session: Session) -> None:
    with pytest.raises(QueueError, match="no-key") as caught:
        session.call("complete_batch", "no-key")
    assert caught.value.number == 50002


def test_the_error_names_the_right_that_an_installer_lacks(empty_database: Database, server: Server) -> None:
    with (
        server.login(empty_database.url, f"test_{uuid.uuid4().hex[:8]}") as url,
        pytest.raises(NotAllowed, match="needs the right CREATE on database"),
    ):
        install.apply(open_database(url))
    assert empty_database.installed() is None


def test_a_deadlock_is_a_conflict(connect: Connect, sql: Query, queue: str) -> None:
    one, two = connect(), connect()
    caught: list[BaseException] = []

    def send_both(session: PostgreSQLSession, first: str, second: str, barrier: threading.Barrier) -> None:
        try:
            with session.transaction():
                session.call("send_message", queue, "x", None, None, None, first)
                barrier.wait(10)
                session.call("send_message", queue, "x", None, None, None, second)
        except Conflict as error:
            caught.append(error)

    barrier = threading.Barrier(2)
    pair = [
        threading.Thread(target=send_both, args=(one, "a", "b", barrier)),
        threading.Thread(target=send_both, args=(two, "b", "a", barrier)),
    ]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join(30)
    assert len(caught) == 1 and "deadlock" in str(caught[0])
    assert sql("SELECT dedup_key FROM mq.message WHERE type = %s ORDER BY 1", queue) == [
        {"dedup_key": "a"},
        {"dedup_key": "b"},
    ]


# ---- transactions


def test_an_error_swallowed_inside_a_transaction_does_not_pass_for_success(
    session: PostgreSQLSession, queue: str, sql: Query
) -> None:
    session.call("send", queue, "x")
    with pytest.raises(DatabaseError, match="swallowed"), session.transaction() as connection:
        session.call("take_batch", queue, 1)
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1 / 0")
    assert sql("SELECT state FROM mq.message_state WHERE type = %s", queue) == [{"state": "N"}]
    assert len(session.call("claim_batch", queue)) == 1


# ---- lost connections


# ---- wake-ups


def test_a_sender_wakes_a_listener_at_once(connect: Connect, queue: str, interrupt: tuple[int, int]) -> None:
    listener, sender = connect(), connect()
    listener.listen([queue])
    assert listener.call("wait_for_message", queue, 0)[0]["ready"] == 0
    timer = threading.Timer(0.3, lambda: sender.call("send", queue, "x"))
    timer.start()
    started = time.monotonic()
    assert listener.wait(30, interrupt[0]) is not None
    assert 0.2 < time.monotonic() - started < 10
    timer.join()
    assert listener.wait(0, interrupt[0]) is None


@pytest.mark.parametrize("place", [0, 2])
def test_a_sender_of_any_queue_of_a_list_wakes_a_listener(
    connect: Connect, queue: str, interrupt: tuple[int, int], place: int
) -> None:
    listener, sender = connect(), connect()
    names = [f"{queue}.{n}" for n in range(3)]
    listener.listen(names)
    for _ in "12":
        assert listener.call("wait_for_any", "\n".join(names), 0)[0]["ready"] == 0
    timer = threading.Timer(0.3, lambda: sender.call("send", names[place], "x"))
    timer.start()
    assert listener.wait(30, interrupt[0]) == {names[place]}
    timer.join()
    assert listener.call("wait_for_any", "\n".join(names), 0)[0]["type"] == names[place]


def test_a_wake_up_that_came_during_another_call_is_not_lost(
    connect: Connect, queue: str, interrupt: tuple[int, int]
) -> None:
    listener, sender = connect(), connect()
    listener.listen([queue])
    listener.call("wait_for_message", queue, 0)
    sender.call("send", queue, "x")
    time.sleep(0.1)
    listener.call("queue_stats", queue)
    started = time.monotonic()
    assert listener.wait(30, interrupt[0]) == {queue}
    assert time.monotonic() - started < 10


def test_waiting_on_a_lost_connection_is_disconnected(
    connect: Connect, sql: Query, queue: str, interrupt: tuple[int, int]
) -> None:
    session = connect(application_name=(name := f"victim-{uuid.uuid4().hex[:8]}"))
    session.listen([queue])
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", name)
    with pytest.raises(Disconnected):
        session.wait(10, interrupt[0])


# ---- uninstalling


def test_roles_that_another_database_uses_stay(
    database: Database, installed_database: Database, server: Server, caplog: pytest.LogCaptureFixture, queue: str
) -> None:
    installed_database.uninstall()
    assert "role mq_producer stays" in caplog.text
    with server.login(database.url, f"test_{uuid.uuid4().hex[:8]}", "mq_producer") as url:
        session = open_database(url).connect("test")
        assert session.call("send", queue, "x")[0]["id"] > 0
        session.close()


# ---- poolers


def test_calls_work_through_a_pooler_in_transaction_mode(pooler: PgBouncer, database: Database, queue: str) -> None:
    pooled = open_database(pooler.url(database.url))
    sessions = [pooled.connect(f"pooled-{number}") for number in range(8)]
    for round_ in range(10):
        for number, session in enumerate(sessions):
            session.call("send", queue, f"{round_}/{number}")
    bodies = []
    for session in sessions:
        while rows := session.call("claim_batch", queue, 7, None, 60):
            assert all(row["created_at"].utcoffset().total_seconds() == 0 for row in rows)
            bodies += [row["body"] for row in rows]
            assert session.call("complete_batch", rows[0]["batch_key"]) == [{"affected": len(rows)}]
    assert sorted(bodies) == sorted(f"{round_}/{number}" for round_ in range(10) for number in range(8))
    for session in sessions:
        session.close()


def test_frequent_calls_are_prepared_but_not_through_a_pooler(
    pooler: PgBouncer, database: Database, queue: str
) -> None:
    found = []
    for url in (database.url, pooler.url(database.url)):
        session = open_database(url).connect("often")
        for _ in range(7):
            session.fetch("claim_batch", queue, 7)
        with session.transaction() as connection:
            cursor = connection.execute("SELECT statement FROM pg_prepared_statements", prepare=False)
            found.append([text for (text,) in cursor if "claim_batch" in text])
        session.close()
    assert [len(prepared) for prepared in found] == [1, 0]


def test_listening_through_a_pooler_is_silent_and_polling_still_works(
    pooler: PgBouncer, database: Database, queue: str, interrupt: tuple[int, int]
) -> None:
    session = open_database(pooler.url(database.url)).connect("pooled")
    session.listen([queue])
    session.call("send", queue, "x")
    session.wait(0.1, interrupt[0])
    assert [row["body"] for row in session.call("claim_batch", queue)] == ["x"]
    session.close()


@pytest.mark.parametrize("mode", [[], ["--transaction"]])
def test_runner_consumes_through_a_pooler(
    pooler: PgBouncer, database: Database, session: Any, queue: str, mode: list[str]
) -> None:
    session.call("send_batch", queue, "\n".join(str(n) for n in range(60)))
    command = [sys.executable, "-m", "rowqueue.cli", "consume", "--database", pooler.url(database.url), "--type", queue]
    options = ["--exec", "cat", "--concurrency", "5", "--batch", "4", "--lease", "1", "--drain", *mode]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(int(json.loads(line)["body"]) for line in done.stdout.splitlines()) == list(range(60))
    [row] = session.call("queue_stats", queue)
    assert (row["ready"], row["active"], row["dead"]) == (0, 0, 0)


def test_apply_works_through_a_pooler(pooler: PgBouncer, empty_database: Database) -> None:
    install.apply(open_database(pooler.url(empty_database.url)))
    assert install.pending(empty_database) == []


# ---- strict types: see decision 17


def test_no_procedure_refuses_a_bigint(sql: Query) -> None:
    """Drivers that name the types of arguments send whole numbers as bigint."""
    names = list(contract.load().procedures)
    narrow = sql(
        "SELECT p.proname AS name FROM pg_proc AS p WHERE p.pronamespace = 'mq'::regnamespace AND p.proname = ANY (%s)"
        " AND p.proargtypes::oid[] && ARRAY['smallint'::regtype, 'integer'::regtype]::oid[]",
        names,
    )
    assert narrow == []


@pytest.mark.parametrize("type", ["smallint", "integer", "bigint"])
def test_numbers_of_any_width_are_taken(sql: Query, queue: str, type: str) -> None:
    sql(f"SELECT * FROM mq.send_message(%s::varchar, 'x'::varchar, p_priority => 3::{type})", queue)
    [row] = sql(f"SELECT * FROM mq.claim_batch(%s::varchar, 5::{type}, 'me'::varchar, 60::{type})", queue)
    assert row["priority"] == 3
    count = sql(f"SELECT affected FROM mq.extend_lease(%s::uuid, 60::{type})", row["batch_key"])
    assert count == [{"affected": 1}]
    with pytest.raises(psycopg.Error, match="size: must be 1 to 10,000"):
        sql("SELECT * FROM mq.claim_batch(%s, 99999999999)", queue)
