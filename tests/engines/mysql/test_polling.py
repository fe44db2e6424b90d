"""MySQL and MariaDB: polling tables, the rights that the queue needs on them, and the collations of texts."""

import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from rowqueue.databases import Database, Session, open_database
from servers import Server
from support.capabilities import BY_DATABASE
from support.outcomes import dead_letter, failure, joined
from support.polling import SHAPES, Polled
from support.queues import call, refused

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]
DELETES = {"on_complete": "delete", "equal_rows": 1}


@pytest.fixture
def table(queue: str, session: Session, sql: Sql) -> Polled:
    return Polled(queue, session, sql, BY_DATABASE["mysql"], SHAPES["a"])


def test_the_right_that_a_caller_lacks_is_named_with_its_grant(
    table: Polled, sql: Sql, server: Server, database: Database
) -> None:
    sql(f"CREATE TABLE {table.name} (id bigint PRIMARY KEY, v varchar(10), status char(1), KEY (status))")
    login = f"u_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, login, "mq_consumer", "mq_operator") as url:
        session = open_database(url).connect("test")
        theirs = table.by(session)
        with refused("not_found", "GRANT SELECT", login):
            theirs.adopt()
        sql(f"GRANT SELECT ON {table.name} TO {login}@'%'")
        with refused("unsuitable_table", "GRANT SELECT, UPDATE ON", login):
            theirs.adopt()
        table.adopt()
        with refused("unsuitable_table", "GRANT SELECT, UPDATE ON", login):
            theirs.claim()
        sql(f"GRANT UPDATE ON {table.name} TO {login}@'%'")
        assert theirs.adopt() == [{"created": 0}]
        assert theirs.insert("1").values(theirs.claim()) == ["1"]
        session.close()


def test_a_right_by_a_pattern_or_a_nested_role_is_enough_to_claim(
    table: Polled, sql: Sql, server: Server, database: Database
) -> None:
    table.create().insert("1", "2")
    schema, login = database.url.rpartition("/")[2], f"u_{uuid.uuid4().hex[:12]}"
    sql(f"REVOKE ALL ON {table.name} FROM mq_consumer")
    with server.login(database.url, login, "mq_consumer") as url:
        sql(f"GRANT SELECT ON `{schema[:-1]}_`.* TO {login}@'%'")
        with closing(open_database(url).connect("test")) as session, refused("unsuitable_table", "GRANT"):
            table.by(session).claim()
        sql(f"GRANT UPDATE ON `{schema[:-1]}_`.* TO {login}@'%'")
        with closing(open_database(url).connect("test")) as session:
            assert len(table.by(session).claim()) == 1
        sql(f"REVOKE ALL ON `{schema[:-1]}_`.* FROM {login}@'%'")
    sql(f"CREATE ROLE {login}_in, {login}_out")
    sql(f"GRANT SELECT, UPDATE ON {table.name} TO {login}_in")
    sql(f"GRANT {login}_in TO {login}_out")
    with (
        server.login(database.url, login, "mq_consumer", f"{login}_out") as url,
        closing(open_database(url).connect("test")) as session,
    ):
        assert len(table.by(session).claim()) == 1
    sql(f"DROP ROLE {login}_in, {login}_out")


def test_an_account_of_the_same_name_on_another_host_lends_no_right(
    table: Polled, sql: Sql, server: Server, database: Database
) -> None:
    """The login is 'u'@'%'; another account with the same user name has no right."""
    table.create().insert("1")
    login = f"u_{uuid.uuid4().hex[:12]}"
    sql(f"REVOKE ALL ON {table.name} FROM mq_consumer")
    with server.login(database.url, login, "mq_consumer") as url:
        sql(f"CREATE USER {login}@'10.9.8.7' IDENTIFIED BY 'x'")
        sql(f"GRANT SELECT, UPDATE ON {table.name} TO {login}@'10.9.8.7'")
        with closing(open_database(url).connect("test")) as session, refused("unsuitable_table", f"'{login}'@'%'"):
            table.by(session).claim()
        sql(f"DROP USER {login}@'10.9.8.7'")


def test_a_row_that_is_deleted_done_or_made_ready_by_hand_blocks_nothing(table: Polled, sql: Sql) -> None:
    """An INT key and a failure whose row is gone: the claim compared a binary with the number 0."""
    name = table.name
    sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v varchar(10), status char(1), KEY i (status))")
    table.adopt()
    table.insert("1", "2", "3", "4", "5")
    rows = {table.v(row): row for row in table.claim(4)}
    table.finish(rows["1"]["batch_key"], joined(failure(rows["1"]["id"], "x", 0), failure(rows["2"]["id"], "x", 0)))
    sql(f"DELETE FROM {name} WHERE v = '1'")
    assert table.values(table.claim(1)) in (["2"], ["5"])
    lost = table.claim_expired(1)
    sql(f"UPDATE {name} SET status = 'N' WHERE id = {table.inserted - 5 + int(table.values(lost)[0])}")
    assert table.values(table.claim(5)) == table.values(lost)
    assert table.claim(5) == []
    assert "N" not in table.left().values()


def test_the_error_for_a_dropped_index_has_the_statement_that_creates_it(table: Polled, sql: Sql) -> None:
    table.create().insert("1", "2")
    [row] = table.claim()
    sql(f"DROP INDEX i{table.name} ON {table.name}")
    with refused("unsuitable_table", f"CREATE INDEX `i{table.name}`"):
        table.claim()
    sql(f"CREATE INDEX i{table.name} ON {table.name} (status, id)")
    assert table.finish(row["batch_key"]) == (1, 0, 0, 0)
    assert table.values(table.claim()) == ["2"]


@pytest.mark.level(4)
def test_rows_that_are_longer_than_a_packet_together_are_claimed_in_parts(table: Polled, sql: Sql) -> None:
    name = table.name
    sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v longtext, status char(1), KEY i (status))")
    table.adopt()
    sql(f"INSERT INTO {name} SELECT n + 1, REPEAT('x', 6000000), 'N' FROM mq_stripe WHERE n < 12")
    taken = []
    while rows := table.claim(100):
        taken += rows
    assert len(taken) == 12


def test_rows_that_only_compare_as_equal_are_not_mixed_up(table: Polled, sql: Sql) -> None:
    """Under a collation without case and with blanks that do not count."""
    name = table.name
    sql(f"CREATE TABLE {name} (v varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, raw varbinary(9))")
    for v in ("a", "A", "a ", "á"):
        sql(f"INSERT INTO {name} VALUES (%s, %s)", v, b"\x00'\\\xff")
    call(table.session, "adopt_table", name, name, **DELETES)
    rows = {table.v(row): row for row in table.claim(10)}
    assert set(rows) == {"a", "A", "a ", "á"}
    failures = "\n".join(dead_letter(rows[v]["id"], "no") for v in ("A", "á"))
    assert table.finish(rows["a"]["batch_key"], failures) == (2, 0, 2, 0)
    assert sorted(row["v"] for row in sql(f"SELECT v FROM {name}")) == ["A", "á"]


def test_a_trigger_that_raises_an_error_fails_its_row_alone(table: Polled, sql: Sql) -> None:
    name = table.create().name
    sql(
        f"CREATE TRIGGER t_{name} BEFORE UPDATE ON {name} FOR EACH ROW IF NEW.v = 'bad' AND NEW.status = 'D' THEN"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not on a Sunday'; END IF"
    )
    rows = table.insert("1", "bad", "3").claim(3)
    assert table.finish(rows[0]["batch_key"]) == (2, 1, 0, 0)
    [waits] = call(table.session, "peek_rows", name)
    assert (waits["state"], waits["error"]) == ("N", "not on a Sunday")
    assert table.left() == {"1": "D", "bad": "N", "3": "D"}
    sql(f"DROP TRIGGER t_{name}")


def test_a_thousand_keys_of_two_columns_are_found_by_their_index(table: Polled, sql: Sql) -> None:
    name = table.name
    sql(f"CREATE TABLE {name} (a bigint, b varchar(40), v varchar(10), PRIMARY KEY (a, b))")
    sql(f"INSERT INTO {name} SELECT n, CONCAT('key ', n), 'x' FROM mq_stripe WHERE n < 3000")
    call(table.session, "adopt_table", name, name, key_columns="a, b", on_complete="delete")
    rows = table.claim(2_000)
    assert table.finish(rows[0]["batch_key"]) == (2_000, 0, 0, 0)
    assert table.many() == 1_000


@pytest.mark.parametrize("key", [None, "`{table}`"])
def test_a_name_that_looks_like_a_place_of_a_template_is_a_name(
    queue: str, session: Session, sql: Sql, key: str | None
) -> None:
    table = f"`{{row}}{uuid.uuid4().hex[:8]}`"
    sql(
        f"CREATE TABLE {table} (`{{table}}` bigint NOT NULL, `{{literals}}` varchar(20), `{{where}}` char(1),"
        " PRIMARY KEY (`{table}`), KEY (`{where}`, `{table}`))"
    )
    sql(f"INSERT INTO {table} VALUES (1, '{{ident}}', 'N'), (2, NULL, 'N')")
    settings = {
        "status_column": "`{where}`",
        "ready_value": "N",
        "active_value": "A",
        "done_value": "D",
        "error_value": "E",
    }
    call(session, "adopt_table", queue, table, key_columns=key, equal_rows=None if key else 1, **settings)
    rows = call(session, "claim_rows", queue, 2, "w", 60)
    assert [row["attempt"] for row in rows] == [1, 1]
    failed = failure(rows[0]["id"], "{row}", 0)
    assert call(session, "finish_rows", rows[0]["batch_key"], failed) == [
        {"done": 1, "failed": 1, "dead": 0, "gone": 0}
    ]
    [again] = call(session, "claim_rows", queue, 2, "w", 60)
    assert again["id"] == rows[0]["id"]
    call(session, "finish_rows", again["batch_key"], None)
    assert [row["{where}"] for row in sql(f"SELECT `{{where}}` FROM {table}")] == ["D", "D"]
    call(session, "unadopt_table", queue)
    sql(f"DROP TABLE {table}")


def test_a_dead_row_has_the_time_of_its_death(table: Polled, sql: Sql) -> None:
    table.create(max_attempts=1).insert("1", "2", "3")
    rows = table.claim(3)
    failures = joined(
        dead_letter(rows[0]["id"], "no"), failure(rows[1]["id"], "no", 3_600), failure(rows[2]["id"], "no")
    )
    assert table.finish(rows[0]["batch_key"], failures) == (0, 0, 3, 0)
    [now] = sql("SELECT UTC_TIMESTAMP(6) AS at")
    dead = sql("SELECT run_at FROM mq_polled_row WHERE name = %s AND state = 'E'", table.name)
    assert len(dead) == 3 and all(row["run_at"] <= now["at"] for row in dead)
