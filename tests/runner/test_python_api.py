"""rowqueue.send and the other functions on every driver's connection, in the application's transaction."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest
import rowqueue
from rowqueue.databases import Database, Session
from support import applications
from support.applications import Application

NASTY = "tab\tline\nquote\"' back\\slash\\\n% %s {} é😀 \u2028 \x01 \r"


@pytest.fixture(params=applications.WAYS)
def app(request: pytest.FixtureRequest, database: Database) -> Iterator[Application]:
    """An application's connection, of every kind that the server has, in a transaction of its own."""
    made = request.param(database.url)
    yield made
    with suppress(Exception):  # a test has lost it
        made.close()


@pytest.fixture
def live(session: Session, queue: str) -> Callable[[], list[dict[str, Any]]]:
    """The queue as other sessions see it: its messages, ordered by id."""
    return lambda: [row for state in "NAE" for row in session.call("peek", queue, state, 100)]


def bodies(rows: list[dict[str, Any]]) -> list[str]:
    return [row["body"] for row in rows]


def test_a_message_is_sent_by_the_commit_of_the_application(app: Application, queue: str, live: Any) -> None:
    sent = rowqueue.send(app.connection, queue, NASTY)
    assert (sent.created, sent.changed) == (True, False)
    assert live() == []
    app.commit()
    assert [(row["id"], row["body"]) for row in live()] == [(sent.id, NASTY)]


def test_a_rollback_takes_the_message_back(app: Application, queue: str, live: Any) -> None:
    rowqueue.send(app.connection, queue, "gone")
    rowqueue.send_batch(app.connection, queue, ["gone", "too"])
    app.rollback()
    rowqueue.send(app.connection, queue, "kept")
    app.commit()
    assert bodies(live()) == ["kept"]


def test_all_options_of_a_message(app: Application, queue: str, live: Any) -> None:
    due = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=123_000)
    options: dict[str, Any] = {"priority": -3, "group_key": "g'", "dedup_key": 'k"', "max_attempts": 7, "source": "s;"}
    sent = rowqueue.send(
        app.connection,
        queue,
        "x",
        run_at=due.astimezone(timezone(timedelta(hours=5, minutes=30))),
        headers={"a": "é\n", "n": [1, None]},
        **options,
    )
    again = rowqueue.send(app.connection, queue, "y", dedup_key='k"')
    changed = rowqueue.send(app.connection, queue, "z", dedup_key='k"', on_conflict="replace", delay_seconds=60)
    app.commit()
    assert again == (sent.id, False, False, "N") and changed == (sent.id, False, True, "N")
    [row] = live()
    assert (row["body"], row["group_key"], row["dedup_key"], row["source"]) == ("z", "g'", 'k"', "s;")
    assert 0 < (row["run_at"] - datetime.now(UTC)).total_seconds() < 120


def test_run_at_is_a_moment_of_its_zone(app: Application, queue: str, live: Any) -> None:
    due = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=123_000)
    rowqueue.send(app.connection, queue, "x", run_at=due.astimezone(timezone(timedelta(hours=-7))))
    app.commit()
    assert [row["run_at"] for row in live()] == [due]


def test_a_time_without_a_zone_is_refused(app: Application, queue: str, live: Any) -> None:
    with pytest.raises(rowqueue.QueueError, match="run_at: must have a time zone") as raised:
        rowqueue.send(app.connection, queue, "x", run_at=datetime(2030, 1, 1))
    assert (raised.value.number, raised.value.name) == (50002, "invalid_argument")
    rowqueue.send(app.connection, queue, "y")
    app.commit()
    assert bodies(live()) == ["y"]


def test_a_batch_of_bodies_arrives_unchanged(app: Application, queue: str) -> None:
    sent = ["", '"', "a\r", NASTY, '{"a": "b\\n"}', " ", "\\"]
    assert rowqueue.send_batch(app.connection, queue, iter(sent)) == len(sent)
    app.commit()
    claimed = rowqueue.claim_batch(app.connection, queue, 100)
    assert [message.body for message in claimed] == sent
    app.rollback()


def test_a_batch_has_options_for_all_its_messages(app: Application, queue: str, live: Any) -> None:
    due = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=123_000)
    options = {"priority": 3, "group_key": "g'", "source": "s;", "max_attempts": 2}
    assert rowqueue.send_batch(app.connection, queue, ["a"], headers={"a": "é\n"}, **options) == 1
    in_tokyo = due.astimezone(timezone(timedelta(hours=9)))
    assert rowqueue.send_batch(app.connection, queue, ["b", "c"], run_at=in_tokyo) == 2
    app.commit()
    first, *later = live()
    assert (first["priority"], first["group_key"], first["source"]) == (3, "g'", "s;")
    assert json.loads(first["headers"]) == {"a": "é\n"}
    assert [row["run_at"] for row in later] == [due, due]
    with pytest.raises(rowqueue.QueueError, match="run_at: must have a time zone"):
        rowqueue.send_batch(app.connection, queue, ["x"], run_at=datetime(2030, 1, 1))


def test_messages_of_several_queues_are_claimed_by_one_call(app: Application, queue: str) -> None:
    names = [f"{queue}.{word}" for word in ("a", 'b"\n', "c")]
    rowqueue.send_batch(app.connection, names[1], ["one", "two"])
    app.commit()
    batch = rowqueue.claim_any(app.connection, names, 10, consumer="the tests", lease_seconds=100)
    app.commit()
    assert [(message.type, message.body) for message in batch] == [(names[1], "one"), (names[1], "two")]
    assert rowqueue.claim_any(app.connection, iter(names)) == []
    assert rowqueue.finish_batch(app.connection, batch[0].batch_key) == []
    app.commit()


def test_a_body_that_is_no_text_is_refused(app: Application, queue: str) -> None:
    with pytest.raises(TypeError, match="body must be str, not dict"):
        rowqueue.send(app.connection, queue, {"a": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bodies must be str, not int"):
        rowqueue.send_batch(app.connection, queue, ["x", 1])  # type: ignore[list-item]


def test_a_batch_is_claimed_finished_and_followed_by_the_next(app: Application, queue: str, live: Any) -> None:
    rowqueue.send_batch(app.connection, queue, [f"body {n}" for n in range(6)])
    app.commit()
    batch = rowqueue.claim_batch(app.connection, queue, 4, consumer="the tests", lease_seconds=100)
    app.commit()
    first = batch[0]
    assert [message.body for message in batch] == [f"body {n}" for n in range(4)]
    assert isinstance(first, rowqueue.Message) and (first.type, first.attempt, first.priority) == (queue, 1, 0)
    assert first.created_at.utcoffset() == first.lease_until.utcoffset() == timedelta()
    assert 90 < (first.lease_until - datetime.now(UTC)).total_seconds() < 110
    assert {message.batch_key for message in batch} == {first.batch_key}
    assert rowqueue.extend_lease(app.connection, first.batch_key, 200) == 4
    failures = [
        (batch[1].id, NASTY),
        (batch[2].id, ValueError("two\nlines"), 60),
        (batch[3].id, rowqueue.DeadLetter("never")),
    ]
    following = rowqueue.finish_batch(app.connection, first.batch_key, failures, 10)
    app.commit()
    assert [message.body for message in following] == ["body 4", "body 5"]
    rows = {row["id"]: row for row in live()}
    assert first.id not in rows
    assert [rows[message.id]["error"] for message in batch[1:]] == [NASTY, "ValueError: two\nlines", "never"]
    assert [rows[message.id]["state"] for message in batch[1:]] == ["N", "N", "E"]
    assert rowqueue.complete(app.connection, following[0].id, following[0].batch_key) == 1
    assert rowqueue.fail(app.connection, following[1].id, following[1].batch_key, rowqueue.Retry("é", after=9)) == "N"
    app.commit()
    left = {row["id"]: row for row in live()}
    assert following[0].id not in left and left[following[1].id]["error"] == "é"


def test_a_part_of_a_batch_is_finished(app: Application, queue: str, live: Any) -> None:
    rowqueue.send_batch(app.connection, queue, [f"body {n}" for n in range(5)])
    app.commit()
    done, failed, back, *kept = rowqueue.claim_batch(app.connection, queue, 5)
    key = done.batch_key
    assert rowqueue.finish_messages(app.connection, key, [done.id], [(failed.id, NASTY, 60)], [back.id]) == 3
    assert rowqueue.finish_messages(app.connection, key, []) == 0
    app.commit()
    rows = {row["id"]: row for row in live()}
    assert {id: row["state"] for id, row in rows.items()} == {
        failed.id: "N",
        back.id: "N",
        **{message.id: "A" for message in kept},
    }
    assert rows[failed.id]["error"] == NASTY
    assert rowqueue.finish_messages(app.connection, key, (message.id for message in kept)) == 2
    with pytest.raises(rowqueue.LeaseLost):
        rowqueue.finish_messages(app.connection, key, [done.id])
    app.rollback()


def test_a_rollback_undoes_a_claim(app: Application, queue: str, live: Any) -> None:
    rowqueue.send(app.connection, queue, "x")
    app.commit()
    assert len(rowqueue.claim_batch(app.connection, queue)) == 1
    app.rollback()
    assert [row["state"] for row in live()] == ["N"]


def test_taken_messages_are_gone_with_the_commit_only(app: Application, queue: str, live: Any) -> None:
    rowqueue.send_batch(app.connection, queue, ["one", "two"])
    app.commit()
    assert [message.body for message in rowqueue.take_batch(app.connection, queue, 5)] == ["one", "two"]
    app.rollback()
    assert bodies(live()) == ["one", "two"]
    assert len(rowqueue.take_batch(app.connection, queue)) == 1
    app.commit()
    assert bodies(live()) == ["two"]


def test_a_topic_is_published(app: Application, queue: str, session: Session, live: Any) -> None:
    topic = f"t{uuid4().hex}.paid"
    session.call("bind_topic", topic, queue)
    assert rowqueue.publish(app.connection, topic, NASTY, headers={"a": 1}) == 1
    assert rowqueue.publish(app.connection, f"{topic}.other", "x") == 0
    app.commit()
    assert bodies(live()) == [NASTY]


def test_the_result_of_a_message(app: Application, queue: str, session: Session) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    sent = rowqueue.send(app.connection, queue, "x")
    app.commit()
    assert rowqueue.get_result(app.connection, sent.id) == ("N", None, None)
    app.commit()
    [message] = session.call("claim_batch", queue)
    session.call("set_result", message["id"], message["batch_key"], NASTY)
    session.call("complete", message["id"], message["batch_key"])
    result = rowqueue.get_result(app.connection, sent.id)
    assert result == rowqueue.Result("C", NASTY, None)
    assert rowqueue.get_result(app.connection, 1 << 60) is None
    app.commit()


# ---- errors


def test_an_argument_that_is_refused_is_an_error_with_its_number(app: Application, queue: str, live: Any) -> None:
    for refused in ({"type": "", "body": "x"}, {"type": queue, "body": "x", "priority": 99_999}):
        with pytest.raises(rowqueue.QueueError, match=r"type|priority") as raised:
            rowqueue.send(app.connection, **refused)
        assert (raised.value.number, raised.value.name) == (50002, "invalid_argument")
        app.rollback()
    rowqueue.send(app.connection, queue, "the connection goes on")
    app.commit()
    assert bodies(live()) == ["the connection goes on"]


@pytest.mark.parametrize("body", ["a\0b", "\ud800"], ids=["NUL", "surrogate"])
def test_a_text_that_no_database_can_hold_is_refused(app: Application, queue: str, body: str) -> None:
    with pytest.raises(rowqueue.QueueError, match="body: must") as raised:
        rowqueue.send(app.connection, queue, body)
    assert raised.value.number == 50002


def test_a_lost_lease_is_an_error_and_changes_nothing(app: Application, queue: str) -> None:
    with pytest.raises(rowqueue.QueueError, match="batch_key") as raised:
        rowqueue.finish_batch(app.connection, uuid4())
    assert (raised.value.number, raised.value.name) == (50008, "lease_lost")
    app.rollback()
    assert rowqueue.extend_lease(app.connection, str(uuid4()), 5) == 0
    for call, *more in ((rowqueue.complete,), (rowqueue.fail, "x"), (rowqueue.dead_letter, "x")):
        with pytest.raises(rowqueue.QueueError, match="does not hold message 1; roll back") as raised:
            call(app.connection, 1, uuid4(), *more)
        assert raised.value.number == 50008
        app.rollback()


def test_a_connection_that_is_lost_says_so(app: Application, queue: str) -> None:
    rowqueue.send(app.connection, queue, "x")
    app.rollback()
    raw = rowqueue.databases.applications._raw(app.connection)
    raw.close()
    with pytest.raises(rowqueue.Disconnected):
        rowqueue.send(app.connection, queue, "x")


def test_a_thing_that_is_no_connection_is_refused() -> None:
    with pytest.raises(TypeError, match=r"builtins\.str is not a connection of psycopg"):
        rowqueue.send("postgresql://…", "x", "y")


# ---- the connection as it was


@pytest.mark.product("postgresql")
def test_after_an_error_on_postgresql_the_transaction_waits_for_its_rollback(database: Database, queue: str) -> None:
    app = applications.psycopg(database.url)
    with app.raw.transaction():
        app.execute("CREATE TEMPORARY TABLE own (n integer)")
        with pytest.raises(rowqueue.QueueError), app.raw.transaction():  # a savepoint
            rowqueue.send(app.connection, "", "x")
        app.execute("INSERT INTO own VALUES (1)")
    with pytest.raises(rowqueue.QueueError):
        rowqueue.send(app.connection, "", "x")
    with pytest.raises(rowqueue.DatabaseError, match="aborted"):
        rowqueue.send(app.connection, queue, "x")
    app.close()


@pytest.mark.product("mysql", "mariadb", "firebird")
def test_a_transaction_continues_after_an_error(
    server: Any, database: Database, queue: str, live: Callable[[], list[dict[str, Any]]]
) -> None:
    app = (applications.firebird if database.name == "firebird" else applications.pymysql)(database.url)
    rowqueue.send(app.connection, queue, "before")
    with pytest.raises(rowqueue.QueueError):
        rowqueue.send(app.connection, "", "x")
    rowqueue.send(app.connection, queue, "after")
    app.commit()
    assert bodies(live()) == ["before", "after"]
    app.close()


@pytest.mark.parametrize("make", [m for m in applications.WAYS if "pymssql" not in m.id])
def test_a_savepoint_takes_the_message_back(make: Any, database: Database, queue: str, live: Any) -> None:
    app = make(database.url)
    try:
        rowqueue.send(app.connection, queue, "before")
        app.execute("SAVEPOINT mine")
        rowqueue.send(app.connection, queue, "inside")
        app.execute("ROLLBACK TO SAVEPOINT mine" if database.name != "firebird" else "ROLLBACK TO mine")
        rowqueue.send(app.connection, queue, "after")
        app.commit()
        assert bodies(live()) == ["before", "after"]
    finally:
        app.close()


@pytest.mark.product("postgresql", "mysql", "mariadb")
def test_in_autocommit_a_call_is_a_transaction_of_its_own(database: Database, queue: str, live: Any) -> None:
    make = applications.psycopg if database.name == "postgresql" else applications.pymysql
    app = make(database.url, autocommit=True)
    rowqueue.send(app.connection, queue, "x")
    assert bodies(live()) == ["x"]
    [message] = rowqueue.claim_batch(app.connection, queue)
    rowqueue.finish_batch(app.connection, message.batch_key)
    assert live() == []
    app.close()


@pytest.mark.product("postgresql")
def test_settings_of_psycopg_stay(database: Database, queue: str) -> None:
    app = applications.psycopg_rows(database.url)
    raw = app.raw
    app.execute("SET TIME ZONE 'Asia/Tokyo'")
    app.commit()
    before = (raw.row_factory, raw.cursor_factory, raw.prepare_threshold, raw.autocommit)
    for _ in range(7):  # prepared on the server, as the application has set it
        rowqueue.send(app.connection, queue, "x")
    [message] = rowqueue.claim_batch(app.connection, queue)
    assert message.created_at.utcoffset() == timedelta()
    app.commit()
    assert (raw.row_factory, raw.cursor_factory, raw.prepare_threshold, raw.autocommit) == before
    assert app.execute("SHOW TIME ZONE") == [{"TimeZone": "Asia/Tokyo"}]
    app.close()


@pytest.mark.product("mysql", "mariadb")
def test_settings_of_pymysql_stay(database: Database, queue: str) -> None:
    app = applications.pymysql_rows(database.url)
    rowqueue.send(app.connection, queue, "x")
    assert app.execute("SELECT 1 AS one") == [{"one": 1}]
    assert app.raw.get_autocommit() is False
    app.close()


@pytest.mark.product("mysql", "mariadb")
def test_a_claim_in_a_repeatable_read_is_refused_with_what_to_set(database: Database, queue: str) -> None:
    import pymysql

    connection = pymysql.connect(**applications.mysql_arguments(database.url))
    rowqueue.send(connection, queue, "x")
    with pytest.raises(rowqueue.QueueError, match="READ COMMITTED") as raised:
        rowqueue.claim_batch(connection, queue)
    assert raised.value.number == 50001
    connection.close()


# ---- SQLAlchemy and Django


@pytest.mark.product("postgresql", "mysql", "mariadb")
def test_blocks_of_sqlalchemy_commit_and_roll_back(database: Database, queue: str, live: Any) -> None:
    from sqlalchemy.orm import Session as OrmSession

    engine = applications.engine_of(database.url)
    with engine.begin() as connection:
        rowqueue.send(connection, queue, "begin")
    with engine.connect() as connection:
        rowqueue.send(connection, queue, "never committed")
    with OrmSession(engine) as orm, orm.begin():
        rowqueue.send(orm, queue, "session")
        with pytest.raises(ZeroDivisionError), orm.begin_nested():
            rowqueue.send(orm, queue, "nested")
            raise ZeroDivisionError
    assert bodies(live()) == ["begin", "session"]
    with engine.connect() as connection:
        rowqueue.send(connection, queue, "x")
        rowqueue.databases.applications._raw(connection).close()
        with pytest.raises(rowqueue.Disconnected):
            rowqueue.send(connection, queue, "x")
        assert connection.invalidated
    engine.dispose()


@pytest.mark.product("postgresql", "mysql", "mariadb")
def test_blocks_of_django_commit_and_roll_back(database: Database, queue: str, live: Any) -> None:
    applications.django_connection(database.url)
    from django.db import connection, transaction

    with transaction.atomic():
        rowqueue.send(connection, queue, "atomic")
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            rowqueue.send(connection, queue, "nested")
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        rowqueue.send(connection, queue, "rolled back")
        raise ZeroDivisionError
    rowqueue.send(connection, queue, "autocommit")
    assert bodies(live()) == ["atomic", "autocommit"]
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            rowqueue.send(connection, queue, "broken")
    connection.close()
