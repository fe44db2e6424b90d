"""A user with every role of the queue but no right on a table cannot get its data through the queue.

Tests for one engine (types, casts, policies, computed columns, other databases) are in tests/engines/.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import servers
from rowqueue.databases import Database, NotAllowed, QueueError, Row, Session, open_database
from support.capabilities import Capabilities
from support.outcomes import dead_letter, failure, joined
from support.polling import SHAPES, Polled, Sql
from support.queues import CONTRACT, Feed, Queue, call, refused, watch

ROLES = ("mq_producer", "mq_consumer", "mq_operator")
LOOT = "hunter2"


@dataclass
class Stranger:
    """Three accounts, one with each role: on some engines a session has the rights of one role at a time."""

    sql: Sql
    can: Capabilities
    logins: dict[str, str]
    sessions: dict[str, Session]
    urls: dict[str, str]

    def again(self, role: str) -> Session:
        """Another session of an account, which the test closes."""
        return open_database(self.urls[role]).connect(self.logins[role])

    def call(self, procedure: str, *values: Any, **named: Any) -> list[Row]:
        """As the account that may call it."""
        role = [role for role in CONTRACT.procedures[procedure].roles if role in ROLES][-1]
        return call(self.sessions[role], procedure, *values, **named)

    @contextmanager
    def given(self, right: str, table: str) -> Iterator[None]:
        """The accounts have these rights inside the block; some engines cannot drop an account with rights."""
        for login in self.logins.values():
            self.sql(f"GRANT {right} ON {table} TO {self.can.user(login)}")
        try:
            yield
        finally:
            for login in self.logins.values():
                self.sql(f"REVOKE {right} ON {table} FROM {self.can.user(login)}")


@contextmanager
def denied() -> Iterator[None]:
    """The block fails for a missing right, with the queue's or the engine's error, and reveals no value of a row."""
    with pytest.raises((QueueError, NotAllowed)) as caught:
        yield
    assert LOOT not in str(caught.value)
    if isinstance(caught.value, QueueError):
        assert caught.value.number in {CONTRACT.errors[name].number for name in ("unsuitable_table", "not_found")}


@pytest.fixture(scope="module")
def accounts(
    server: servers.Server, database: Database
) -> Iterator[tuple[dict[str, str], dict[str, Session], dict[str, str]]]:
    with ExitStack() as stack:
        logins = {role: f"mallory_{uuid.uuid4().hex[:8]}" for role in ROLES}
        sessions = {}
        urls = {}
        for role, login in logins.items():
            url = stack.enter_context(server.login(database.url, login, role))
            sessions[role] = open_database(url).connect(login)
            urls[role] = url
            stack.callback(sessions[role].close)
        yield logins, sessions, urls


@pytest.fixture
def stranger(
    accounts: tuple[dict[str, str], dict[str, Session], dict[str, str]], sql: Sql, can: Capabilities
) -> Stranger:
    return Stranger(sql, can, *accounts)


@pytest.fixture
def private(queue: str, session: Session, sql: Sql, can: Capabilities) -> Callable[[str], Polled]:
    """A table of a shape, adopted by its owner; no other user has a right on it."""

    def make(shape: str) -> Polled:
        table = Polled(queue, session, sql, can, SHAPES[shape])
        sql(f"CREATE TABLE {table.name} ({', '.join(table.shape.columns).replace('{moment}', can.moment)})")
        if table.shape.index:
            sql(f"CREATE INDEX i{table.name} ON {table.name} ({table.shape.index})")
        assert table.adopt() == [{"created": 1}]
        return table.insert(LOOT, "2", "3", "4")

    return make


def content(table: Polled) -> tuple[Any, Any]:
    """The table, and the claims as its owner sees them."""
    return sorted(table.left().items()), call(table.session, "peek_rows", table.name)


@contextmanager
def untouched(table: Polled) -> Iterator[None]:
    before = content(table)
    yield
    assert content(table) == before


# ---- polling tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_only_a_user_who_may_read_rows_can_claim_them(
    private: Callable[[str], Polled], stranger: Stranger, shape: str
) -> None:
    table = private(shape)
    with untouched(table), denied():
        stranger.call("claim_rows", table.name, 10)


@pytest.mark.parametrize("shape", SHAPES)
def test_only_a_user_who_may_read_rows_sees_waiting_and_dead_ones(
    private: Callable[[str], Polled], stranger: Stranger, shape: str
) -> None:
    table = private(shape)
    rows = table.claim(3, lease_seconds=60)
    table.finish(rows[0]["batch_key"], joined(failure(rows[0]["id"], LOOT, 0), dead_letter(rows[1]["id"], LOOT)))
    table.claim_expired(1)
    with untouched(table):
        for procedure in ("claim_rows", "peek_rows"):
            with denied():
                stranger.call(procedure, table.name)
        with denied():
            call(stranger.sessions["mq_consumer"], "peek_rows", table.name)


def test_an_operator_cannot_change_a_table_without_a_right_on_it(
    private: Callable[[str], Polled], stranger: Stranger
) -> None:
    table = private("a")
    [row] = table.claim(1)
    table.finish(row["batch_key"], dead_letter(row["id"], "dead"))
    table.claim(1)
    with untouched(table):
        for procedure, *values in (("redrive_rows",), ("redrive_row", row["id"]), ("unadopt_table",)):
            with denied():
                stranger.call(procedure, table.name, *values)
        with denied():
            stranger.call("adopt_table", f"{table.name}x", table.name, **table.shape.arguments)
    with stranger.given("SELECT", table.name):
        with untouched(table):
            for procedure, *values in (
                ("claim_rows",),
                ("redrive_rows",),
                ("redrive_row", row["id"]),
                ("unadopt_table",),
            ):
                with denied():
                    stranger.call(procedure, table.name, *values)
        assert call(stranger.sessions["mq_consumer"], "peek_rows", table.name)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_operator_cannot_release_a_table_without_a_right_on_it_even_if_no_row_is_claimed(
    private: Callable[[str], Polled], stranger: Stranger, shape: str
) -> None:
    table = private(shape)
    with untouched(table), denied():
        stranger.call("unadopt_table", table.name)
    assert table.count("unadopt_table", table.name) == 1


def test_claiming_and_finishing_need_the_rights_at_each_call(
    private: Callable[[str], Polled], stranger: Stranger
) -> None:
    table = private("a")
    consumer = table.by(stranger.sessions["mq_consumer"])
    with stranger.given("SELECT, UPDATE", table.name):
        rows = consumer.claim(2)
        assert consumer.finish(rows[0]["batch_key"], failure(rows[1]["id"], "again", 0)) == (1, 1, 0, 0)
        rows = consumer.claim(1)
    # Some servers cache the rights of a session, so a new one is used.
    with closing(stranger.again("mq_consumer")) as session:
        consumer = table.by(session)
        with untouched(table), denied():
            consumer.finish(rows[0]["batch_key"])
        with untouched(table), denied():
            consumer.claim(1)


def test_claims_of_another_table_are_out_of_reach_of_ones_own(
    private: Callable[[str], Polled], stranger: Stranger, session: Session, sql: Sql, can: Capabilities
) -> None:
    table = private("a")
    [row] = table.claim(1)
    own = Polled(f"{table.name}_own", session, sql, can, SHAPES["a"]).create().insert("x")
    with stranger.given("SELECT, UPDATE", own.name):
        [mine] = call(stranger.sessions["mq_consumer"], "claim_rows", own.name, 1)
        with untouched(table):
            call(stranger.sessions["mq_consumer"], "finish_rows", mine["batch_key"], dead_letter(row["id"], LOOT))


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_stays_granted_after_unadopt_table(
    private: Callable[[str], Polled], server: servers.Server, database: Database, shape: str
) -> None:
    table = private(shape)
    table.claim(2)
    assert table.count("unadopt_table", table.name) == 1
    granted = [line for line in server.catalog(database.url) if table.name in line or table.name.upper() in line]
    table.adopt()
    table.count("unadopt_table", table.name)
    again = [line for line in server.catalog(database.url) if table.name in line or table.name.upper() in line]
    assert again == granted
    assert not [line for line in granted if "mq_" in line.replace(table.name, "").lower()]


# ---- feeds -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def private_feed(q: Queue) -> Iterator[Feed]:
    name = f"t_{uuid.uuid4().hex[:12]}"
    q.sql(f"CREATE TABLE {name} (id integer NOT NULL PRIMARY KEY, v {q.can.text}, sync bigint)")
    q.sql(f"CREATE INDEX {name}_sync ON {name} (sync)")
    feed = Feed(f"feed.{name}", name, q)
    assert feed.call("create_feed", name, "id", "sync") == [{"created": 1}]
    feed.write(1, 2, v=LOOT)
    assert feed.publish() == 2
    feed.write(3, v=LOOT)
    yield feed
    feed.call("drop_feed")


def test_only_users_with_rights_on_the_table_can_read_or_publish_a_feed(private_feed: Feed, stranger: Stranger) -> None:
    feed = private_feed
    before = feed.numbers()
    for procedure in ("fetch_feed", "publish_feed"):
        with denied():
            stranger.call(procedure, feed.name, *(["consumer"] if procedure == "fetch_feed" else []))
    with denied():
        stranger.call("create_feed", f"{feed.name}.2", feed.table, "id", "sync")
    # Some servers cache granted and refused rights of a session, so a new one is used each time.
    with stranger.given("SELECT", feed.table), closing(stranger.again("mq_consumer")) as session:
        assert len(call(session, "fetch_feed", feed.name, "consumer")) == 2
        with denied():
            call(session, "publish_feed", feed.name)
    with denied(), closing(stranger.again("mq_consumer")) as session:
        call(session, "fetch_feed", feed.name, "consumer")
    assert feed.numbers() == before
    assert feed.publish() == 1


def test_only_users_with_rights_on_the_table_move_consumers_or_drop_a_feed(
    private_feed: Feed, stranger: Stranger
) -> None:
    feed = private_feed
    feed.advance(1)
    moves: list[tuple[str, tuple[Any, ...]]] = [
        ("advance_feed", ("consumer", 2)),
        ("advance_feed", ("new", 2)),
        ("rewind_feed", ("consumer", 0)),
        ("drop_feed", ()),
    ]
    before = feed.call("list_feeds")
    for procedure, values in moves:
        with denied():
            stranger.call(procedure, feed.name, *values)
    assert feed.call("list_feeds") == before
    [row] = stranger.call("list_feeds", feed.name)
    assert (row["last_position"], row["behind"], row["unpublished"]) == (2, 1, None)
    with stranger.given("SELECT", feed.table):
        with closing(stranger.again("mq_consumer")) as session:
            assert call(session, "advance_feed", feed.name, "consumer", 2) == [{"feed_position": 2}]
        with closing(stranger.again("mq_operator")) as session:
            assert call(session, "rewind_feed", feed.name, "consumer", 1) == [{"feed_position": 1}]
            with denied():
                call(session, "drop_feed", feed.name)
    assert feed.call("list_feeds") == [{**before[0], "moved_at": feed.call("list_feeds")[0]["moved_at"]}]
    with stranger.given("SELECT, UPDATE", feed.table), closing(stranger.again("mq_operator")) as session:
        assert call(session, "drop_feed", feed.name) == [{"affected": 1}]


def test_an_operator_drops_the_feed_of_a_table_that_is_gone(private_feed: Feed, stranger: Stranger) -> None:
    feed = private_feed
    with closing(stranger.again("mq_operator")) as session:
        if not feed.q.can.sees_drops:
            feed.sql("DROP TABLE {t}")
            with denied():
                call(session, "drop_feed", feed.name)
            return
        feed.sql("DROP TABLE {t}")
        feed.sql(f"CREATE VIEW {{t}} AS SELECT 1 AS id, 2 AS sync FROM {feed.q.can.view}")
        for procedure, consumer in (("advance_feed", ["consumer", 1]), ("fetch_feed", ["consumer"]), ("drop_feed", [])):
            with denied():
                stranger.call(procedure, feed.name, *consumer)
        feed.sql("DROP VIEW {t}")
        assert call(session, "drop_feed", feed.name) == [{"affected": 1}]


def test_nothing_stays_granted_after_drop_feed(private_feed: Feed, server: servers.Server, database: Database) -> None:
    feed = private_feed
    feed.call("drop_feed")
    lines = [line for line in server.catalog(database.url) if feed.table in line or feed.table.upper() in line]
    assert lines and not [line for line in lines if "mq_" in line.replace(feed.table, "").lower()]


# ---- subscriptions ---------------------------------------------------------------------------------------------------


@pytest.mark.level(3)
def test_only_a_user_who_may_create_triggers_on_a_table_can_watch_it(
    private_feed: Feed, stranger: Stranger, server: servers.Server, database: Database
) -> None:
    table = private_feed.table
    before = server.catalog(database.url)
    with denied():
        for row in stranger.call("watch_table", table):
            stranger.sessions["mq_operator"].execute(row["statement"])
    assert server.catalog(database.url) == before


def test_only_a_user_who_may_read_a_table_hears_of_its_changes(
    private_feed: Feed, stranger: Stranger, database: Database, queue: str
) -> None:
    table, q = private_feed.table, private_feed.q
    if database.name == "mysql":
        q.sql(f"GRANT SELECT, TRIGGER ON {table} TO 'mq_owner'@'localhost'")
    watch(q.session, q.sql, table)
    call(q.session, "subscribe", table, "I", "theirs")
    before = call(q.session, "list_subscriptions", table)
    # Also by the name that messages have, which is that of a dropped table.
    for name in (table, q.can.fold(table)):
        for procedure, values in (("subscribe", ("IUD", queue)), ("unsubscribe", ("I",)), ("unwatch_table", ())):
            with denied():
                stranger.call(procedure, name, *values)
    assert call(q.session, "list_subscriptions", table) == before
    with stranger.given("SELECT", table), closing(stranger.again("mq_operator")) as session:
        assert call(session, "subscribe", table, "UD", queue) == [{"affected": 2}]
        assert call(session, "unsubscribe", table, None, queue) == [{"affected": 2}]
        with denied():
            call(session, "unwatch_table", table)
    assert call(q.session, "list_subscriptions", table) == before
    q.sql(f"DROP TABLE {table}")
    name = q.can.fold(table)
    with denied():
        stranger.call("subscribe", name, "I", queue)
    assert stranger.call("unsubscribe", name, "I") == [{"affected": 1}]
    assert stranger.call("unwatch_table", name) == []
    assert [row for row in call(q.session, "list_subscriptions") if row["table_name"] == name] == []


# ---- the queue's own tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ["message", "queue", "ready", "polled_row", "feed_consumer"])
def test_the_queues_own_tables_are_no_tables_of_users(
    server: servers.Server, session: Session, stranger: Stranger, stem: str
) -> None:
    table = server.table(stem)
    attempts: list[tuple[str, tuple[Any, ...]]] = [
        ("adopt_table", ("x", table, '{"key_columns": "id", "on_complete": "delete"}')),
        ("create_feed", ("x", table, "id", "attempts")),
        ("watch_table", (table,)),
    ]
    for procedure, values in attempts:
        with refused("unsuitable_table"):
            call(session, procedure, *values)
        with denied():
            stranger.call(procedure, *values)


def test_only_users_with_rights_clean_up_after_a_watched_table_while_a_view_has_its_name(
    q: Queue, session: Session, stranger: Stranger
) -> None:
    name = q.can.fold(f"t_{uuid.uuid4().hex[:12]}")
    q.sql(f"CREATE TABLE {name} (id integer NOT NULL PRIMARY KEY)")
    for statement in q.can.before_watching(name):
        q.sql(statement.replace(", mq_operator", ""))  # the strangers get no right
    watch(session, q.sql, name)
    assert call(session, "subscribe", name, "IUD", q.name) == [{"affected": 3}]
    q.sql(f"DROP TABLE {name}")
    q.sql(f"CREATE VIEW {name} AS SELECT 1 AS id FROM {q.can.view}")
    for procedure, *values in (("unsubscribe", "IUD"), ("unwatch_table",)):
        with denied():
            stranger.call(procedure, name, *values)
    assert len(call(session, "list_subscriptions", name)) == 3
    q.sql(f"DROP VIEW {name}")
    assert stranger.call("unsubscribe", name, "IUD") == [{"affected": 3}]
    assert stranger.call("unwatch_table", name) == []
    with refused("not_found", name):
        call(session, "list_subscriptions", name)
