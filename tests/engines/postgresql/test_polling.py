"""PostgreSQL: polling tables with triggers, partitions and other owners, and sessions with other time formats."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import servers
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from support.capabilities import BY_DATABASE
from support.outcomes import dead_letter, failure
from support.polling import SHAPES, Polled
from support.queues import call, refused

pytestmark = pytest.mark.product("postgresql")

Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def table(queue: str, session: Session, sql: Sql) -> Polled:
    return Polled(queue, session, sql, BY_DATABASE["postgresql"], SHAPES["a"])


def test_triggers_find_what_stands_beside_their_table_and_may_keep_rows_as_they_are(table: Polled, sql: Sql) -> None:
    name = table.create().name
    sql(f"CREATE TABLE audit_{name} (v text, status text)")
    sql(
        f"CREATE FUNCTION note_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.v = 'kept' AND NEW.status = 'D' THEN RETURN NULL; END IF;"
        f" INSERT INTO audit_{name} VALUES (NEW.v, NEW.status); RETURN NEW; END $$"
    )
    sql(f"CREATE TRIGGER t BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION note_{name}()")
    [row, _] = table.insert("1", "kept").claim(2)
    assert table.finish(row["batch_key"]) == (1, 1, 0, 0)
    assert table.left() == {"1": "D", "kept": "N"}
    [waits] = call(table.session, "peek_rows", name)
    assert waits["error"] == "a trigger of the table left the row as it was"
    assert {(row["v"], row["status"]) for row in sql(f"SELECT * FROM audit_{name}")} >= {("1", "A"), ("1", "D")}


def test_a_row_without_a_key_is_the_same_for_sessions_in_other_zones_and_styles(
    queue: str, sql: Sql, connect: Callable[..., Session]
) -> None:
    name = queue.replace(".", "_")
    sql(f"CREATE TABLE {name} (made timestamptz, took interval, raw bytea, size numeric, tags text[])")
    sql(
        f"INSERT INTO {name} VALUES (now(), '1 day 02:03:04', '\\x00ff', 1.10, ARRAY['a', NULL]),"
        " (NULL, NULL, '', 1, '{}')"
    )
    sessions = []
    for zone, style, output in (("Asia/Tokyo", "iso_8601", "escape"), ("America/New_York", "sql_standard", "hex")):
        sessions.append(connect("elsewhere"))
        with sessions[-1].transaction() as connection:
            connection.execute(f"SET timezone = '{zone}'; SET intervalstyle = '{style}'; SET bytea_output = '{output}'")
    call(sessions[0], "adopt_table", name, name, on_complete="delete", equal_rows=1)
    rows = call(sessions[0], "claim_rows", name, 10)
    assert len(rows) == 2
    assert call(sessions[1], "claim_rows", name, 10) == []
    lines = failure(rows[0]["id"], "again", 0)
    assert call(sessions[1], "finish_rows", rows[0]["batch_key"], lines)[0] == {
        "done": 1,
        "failed": 1,
        "dead": 0,
        "gone": 0,
    }
    [again] = call(sessions[1], "claim_rows", name, 10)
    assert again["row_data"] == rows[0]["row_data"]
    assert call(sessions[0], "finish_rows", again["batch_key"])[0]["done"] == 1
    assert sql(f"SELECT * FROM {name}") == []


def test_a_partitioned_table_is_claimed_from_and_rows_may_move_between_its_parts(table: Polled, sql: Sql) -> None:
    name = table.name
    sql(
        f"CREATE TABLE {name} (id bigint NOT NULL, v text, status char(1) NOT NULL, UNIQUE (id, status))"
        " PARTITION BY LIST (status)"
    )
    sql(f"CREATE TABLE {name}_open PARTITION OF {name} FOR VALUES IN ('N', 'A')")
    sql(f"CREATE TABLE {name}_closed PARTITION OF {name} FOR VALUES IN ('D', 'E')")
    sql(f"CREATE INDEX ON {name} (status, id)")
    with refused("unsuitable_table", "key_columns"):
        table.adopt()  # its key holds the status
    sql(f"DROP TABLE {name}")
    sql(f"CREATE TABLE {name} (id bigint PRIMARY KEY, v text, status char(1) NOT NULL) PARTITION BY RANGE (id)")
    sql(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (3)")
    sql(f"CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (3) TO (1000)")
    sql(f"CREATE INDEX ON {name} (status, id)")
    assert table.adopt() == [{"created": 1}]
    rows = table.insert("1", "2", "3", "4").claim(4)
    assert table.finish(rows[0]["batch_key"], failure(rows[1]["id"], "no", 0)) == (3, 1, 0, 0)
    assert table.left() == {"1": "D", "2": "N", "3": "D", "4": "D"}


def test_claims_and_finishes_need_read_committed(table: Polled) -> None:
    table.create().insert("1")
    for procedure, *values in (
        ("claim_rows", table.name),
        ("finish_rows", uuid.uuid4()),
        ("redrive_rows", table.name),
        ("redrive_row", table.name, 1),
    ):
        with refused("wrong_isolation", "READ COMMITTED"), table.session.transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            call(table.session, procedure, *values)


def test_a_consumer_needs_the_rights_and_the_queues_owner_none(
    server: servers.Server, empty_database: Database
) -> None:
    """The error has the GRANT statement for the right that the consumer lacks."""
    owner, operator = (f"u{uuid.uuid4().hex[:12]}" for _ in range(2))
    url = empty_database.url
    values = {"key_columns": "id", "status_column": "status", "ready_value": "N", "done_value": "D", "error_value": "E"}
    with (
        server.login(url, owner) as owner_url,
        server.login(url, operator, "mq_operator", "mq_consumer") as operator_url,
    ):
        server.query(url, f"GRANT CREATE ON DATABASE {url.rpartition('/')[2]} TO {owner}")
        server.query(url, f"GRANT CREATE ON SCHEMA public TO {owner}")
        install.apply(open_database(owner_url))
        server.query(url, "CREATE SCHEMA shop")
        server.query(url, "CREATE TABLE shop.orders (id int PRIMARY KEY, status text)")
        server.query(url, "CREATE INDEX ON shop.orders (status, id)")
        session = open_database(operator_url).connect("operator")
        with refused(
            "unsuitable_table", f"GRANT SELECT, UPDATE ON shop.orders TO {operator}; GRANT USAGE ON SCHEMA shop"
        ):
            call(session, "adopt_table", "orders", "shop.orders", **values)
        server.query(url, f"GRANT USAGE ON SCHEMA shop TO {operator}")
        server.query(url, f"GRANT SELECT, UPDATE (status) ON shop.orders TO {operator}")
        assert call(session, "adopt_table", "orders", "shop.orders", **values) == [{"created": 1}]
        server.query(url, "INSERT INTO shop.orders VALUES (1, 'N'), (2, 'N')")
        rows = call(session, "claim_rows", "orders", 2)
        assert call(session, "finish_rows", rows[0]["batch_key"], dead_letter(rows[1]["id"], "no"))[0]["dead"] == 1
        assert [row["error"] for row in call(session, "peek_rows", "orders")] == ["no"]
        server.query(url, f"REVOKE UPDATE (status) ON shop.orders FROM {operator}")
        with refused("unsuitable_table", f"GRANT SELECT, UPDATE ON shop.orders TO {operator}"):
            call(session, "claim_rows", "orders")
        assert len(call(session, "peek_rows", "orders")) == 1
        session.close()
        server.query(url, f"DROP OWNED BY {operator}, {owner} CASCADE")


def test_a_finish_finds_its_rows_by_their_key_and_not_by_their_status(
    table: Polled, sql: Sql, server: servers.Server, database: Database
) -> None:
    """The statistics have no active rows, but the status index still has entries of old ones."""
    name = table.create().name
    sql(f"INSERT INTO {name} (id, v, status) SELECT n, 'x', 'N' FROM generate_series(1, 20000) AS n")
    sql(f"ANALYZE {name}")
    touched = []
    with server.client(database.url) as looking, looking.transaction(), server.client(database.url) as connection:
        # A snapshot that stays open: nothing is cleaned up.
        looking.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        looking.execute(f"SELECT count(*) FROM {name}")
        for _ in range(20):
            key = table.claim(100)[0]["batch_key"]
            explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT * FROM mq.finish_rows(%s)"
            plan = connection.execute(explain, [key]).fetchone()["QUERY PLAN"][0]["Plan"]
            touched.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
    assert sql(f"SELECT count(*) AS n FROM {name} WHERE status = 'D'")[0]["n"] == 2000
    assert max(touched[1:]) < 5_000, touched
