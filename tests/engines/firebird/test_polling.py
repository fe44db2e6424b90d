"""Polling tables on Firebird: NO WAIT, restarted statements, rights, types of 4.0, reads."""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from rowqueue.databases import Database, LeaseLost, NotAllowed, Session, open_database
from servers import Server
from servers.firebird import driver
from servers.firebird_raw import NO_WAIT, Raw, codes
from support.capabilities import BY_DATABASE
from support.outcomes import dead_letter, failure
from support.polling import SHAPES, Polled, Shape, Sql, create_table
from support.queues import call, refused

pytestmark = pytest.mark.product("firebird")

CAN = BY_DATABASE["firebird"]
CONFLICTS = {335544336, 335544345, 335544451}
AT_ONCE = 2.0  # seconds; what waits for a lock takes longer

Make = Callable[[Shape], Polled]
Open = Callable[..., Raw]


@pytest.fixture
def make(queue: str, session: Session, sql: Sql) -> Make:
    return lambda shape: Polled(queue, session, sql, CAN, shape)


@pytest.fixture
def raw(server: Server, database: Database) -> Iterator[Open]:
    """Makes connections of the driver's: raw("SNAPSHOT WAIT")."""
    made: list[Raw] = []

    def new(manner: str = NO_WAIT) -> Raw:
        made.append(Raw(server.client(database.url).connection, manner))
        return made[-1]

    yield new
    for one in made:
        one.close()


def later(server: Server) -> bool:
    """Whether it is 4.0 or newer."""
    return not server.version.startswith("3.")  # type: ignore[attr-defined]


# ---- locks ---------------------------------------------------------------------------------------


def test_a_claim_next_to_an_uncommitted_one_returns_no_row_and_no_error(make: Make, raw: Open) -> None:
    table = make(SHAPES["e"]).create().insert("1", "2", "3")
    first = raw()
    claim = f"SELECT id, CAST(row_data AS VARCHAR(200)) AS r FROM mq_claim_rows('{table.name}', 2)"
    assert len(first.run(claim)) == 2
    began = time.monotonic()
    assert table.claim(10) == []
    assert time.monotonic() - began < AT_ONCE
    first.commit()
    assert len(table.claim(10)) == 1


def test_a_claim_that_waits_for_another_sees_its_committed_changes(make: Make, raw: Open) -> None:
    """It begins before the other commits and continues after it: a stale snapshot would claim the same rows."""
    table = make(SHAPES["f"]).create().copies("x", 4)
    for _ in range(5):
        first = raw()
        with ThreadPoolExecutor() as pool:
            taken = len(first.run(f"SELECT id FROM mq_claim_rows('{table.name}', 2)"))
            second = pool.submit(table.claim, 3)
            time.sleep(0.05)
            first.commit()
            taken += len(second.result())
        assert taken in (2, 4)
        for key in {row["batch_key"] for row in table.sql("SELECT batch_key FROM mq_polled_batch")}:
            table.count("release_rows", key)


def test_a_finish_waits_a_moment_for_a_row_that_a_writer_has_and_is_undone_as_a_whole(make: Make, raw: Open) -> None:
    table = make(SHAPES["a"]).create().insert("1", "2")
    key = table.claim(2)[0]["batch_key"]
    writer, finisher = raw(), raw()
    writer.run(f"UPDATE {table.name} SET v = 'changed' WHERE v = '2'")
    with pytest.raises(driver().DatabaseError) as caught:
        finisher.run(f"SELECT * FROM mq_finish_rows('{key}')")
    assert CONFLICTS & set(codes(caught.value))
    finisher.rollback()
    assert table.states() == [("A", 1)] * 2 and table.left()["1"] == "A"
    with ThreadPoolExecutor() as pool:
        finished = pool.submit(table.finish, key)
        time.sleep(0.3)
        writer.commit()
        assert finished.result() == (2, 0, 0, 0)
    assert table.left() == {"1": "D", "changed": "D"}


@pytest.mark.parametrize("manner", ["READ COMMITTED WAIT", "SNAPSHOT NO WAIT"])
def test_only_transactions_that_do_not_wait_and_see_what_is_committed_claim_and_finish(
    make: Make, raw: Open, manner: str
) -> None:
    table = make(SHAPES["e"]).create().insert("1")
    key = table.claim()[0]["batch_key"]
    for text in (f"mq_claim_rows('{table.name}')", f"mq_finish_rows('{key}')", f"mq_release_rows('{key}')"):
        with pytest.raises(driver().DatabaseError, match="wrong_isolation"):
            raw(manner).run(f"SELECT * FROM {text}")
    assert table.finish(key) == (1, 0, 0, 0)


# ---- rights --------------------------------------------------------------------------------------


@pytest.mark.level(3)
def test_adopting_and_claiming_need_the_callers_own_rights_on_the_table(
    make: Make, server: Server, database: Database, sql: Sql
) -> None:
    table = make(SHAPES["a"])
    create_table(sql, CAN, table.name, *table.shape.columns, index=table.shape.index)
    sql(f"REVOKE SELECT, UPDATE, DELETE ON {table.name} FROM PUBLIC")
    names = [f"login_{uuid.uuid4().hex[:12]}" for _ in range(2)]

    def lacks(name: str) -> tuple[str, str]:
        return f'GRANT SELECT, UPDATE ON "{table.name.upper()}"', f"TO USER {name.upper()}"

    sessions: list[Session] = []

    def by(url: str) -> Polled:
        # A connection caches its rights.
        for one in sessions:
            one.close()
        sessions.append(open_database(url).connect("another"))
        return Polled(table.name, sessions[-1], sql, CAN, table.shape)

    with server.login(database.url, names[0], "mq_operator") as url:
        with refused("unsuitable_table", *lacks(names[0])):
            by(url).adopt()
        sql(f"GRANT SELECT, UPDATE ON {table.name} TO USER {names[0]}")
        operator = by(url)
        assert operator.adopt() == [{"created": 1}]
    with server.login(database.url, names[1], "mq_consumer") as url:
        table.insert("1", "2")
        for procedure in ("claim_rows", "peek_rows"):
            with refused("unsuitable_table", "TO USER " + names[1].upper()):
                call(by(url).session, procedure, table.name)
        sql(f"GRANT SELECT, UPDATE ON {table.name} TO USER {names[1]}")
        rows = by(url).claim(2)
        key = rows[0]["batch_key"]
        sql(f"REVOKE UPDATE ON {table.name} FROM USER {names[1]}")
        with refused("unsuitable_table", *lacks(names[1])):
            by(url).finish(key)
        sql(f"GRANT UPDATE ON {table.name} TO USER {names[1]}")
        assert by(url).finish(key, dead_letter(rows[1]["id"], "no")) == (1, 0, 1, 0)
        with pytest.raises(NotAllowed):
            call(by(url).session, "unadopt_table", table.name)
    assert table.left() == {"1": "D", "2": "E"}
    sql(f"REVOKE ALL ON {table.name} FROM USER {names[0]}")
    with server.login(database.url, names[0], "mq_operator") as url:
        for procedure, arguments in (("redrive_rows", ()), ("redrive_row", (rows[1]["id"],))):
            with refused("unsuitable_table", *lacks(names[0])):
                call(by(url).session, procedure, table.name, *arguments)
        with refused("unsuitable_table", *lacks(names[0])):
            call(by(url).session, "unadopt_table", table.name)
        sql(f"GRANT SELECT, UPDATE ON {table.name} TO USER {names[0]}")
        call(by(url).session, "unadopt_table", table.name)
        sessions[-1].close()


def test_keys_and_errors_are_not_shown_to_the_owner_of_a_new_table_with_the_same_name(
    make: Make, server: Server, database: Database, sql: Sql
) -> None:
    """Its owner has dropped it, and another user creates one with the same name."""
    table = make(SHAPES["a"]).create().insert("1", "2")
    key = table.claim(2)[0]["batch_key"]
    sql(f"DROP TABLE {table.name}")
    with refused("not_found", table.name):
        table.peek()
    name = f"login_{uuid.uuid4().hex[:12]}"
    sql(f"GRANT CREATE TABLE TO USER {name}")
    with server.login(database.url, name, "mq_consumer") as url:
        with server.client(url) as client:
            client.execute(f"CREATE TABLE {table.name} (id bigint NOT NULL PRIMARY KEY, v varchar(50), status char(1))")
            client.execute(f"CREATE INDEX i{table.name} ON {table.name} (status, id)")
        session = open_database(url).connect("thief")
        for procedure, argument in (("peek_rows", table.name), ("claim_rows", table.name), ("finish_rows", key)):
            with refused("unsuitable_table", "another of its name", "unadopt_table"):
                call(session, procedure, argument)
        session.close()
    assert table.count("unadopt_table", table.name) == 1


# ---- what the table itself does ------------------------------------------------------------------


def test_a_trigger_that_keeps_a_status_fails_the_row_and_one_that_raises_stops_no_other_row(
    make: Make, sql: Sql, server: Server
) -> None:
    table = make(SHAPES["a"]).create(max_attempts=2).insert("1", "kept", "3", "refused")
    sql(f"CREATE EXCEPTION x{table.name} 'not this one'")
    sql(
        f"CREATE TRIGGER t{table.name} FOR {table.name} BEFORE UPDATE AS BEGIN"
        f" IF (NEW.status = 'D' AND NEW.v = 'kept') THEN NEW.status = OLD.status;"
        f" IF (NEW.status = 'D' AND NEW.v = 'refused') THEN EXCEPTION x{table.name}; END"
    )
    rows = table.claim(4)
    assert table.finish(rows[0]["batch_key"]) == (2, 2, 0, 0)
    assert table.left() == {"1": "D", "3": "D", "kept": "N", "refused": "N"}
    errors = " ".join(row["error"] for row in call(table.session, "peek_rows", table.name, "N"))
    assert "the status did not change; a trigger may have reset it" in errors and (
        "not this one" in errors if later(server) else "error 335544517" in errors
    )


# ---- the table or a row changes under a claim ----------------------------------------------------


@pytest.mark.parametrize("name", ["c", "c-never-active", "d", "f"])
def test_a_column_that_is_added_changes_no_rows_identity(make: Make, sql: Sql, name: str) -> None:
    table = make(SHAPES[name]).create().insert("1").copies("2", 2)
    rows = table.claim(2)
    sql(f"ALTER TABLE {table.name} ADD extra integer DEFAULT 5")
    more = table.claim(9)
    assert len(rows) == 2 and len(more) == 1
    assert table.finish(rows[0]["batch_key"], failure(rows[0]["id"], "no", 0)) == (1, 1, 0, 0)
    assert table.finish(more[0]["batch_key"]) == (1, 0, 0, 0)
    [again] = table.claim(9)
    assert again["attempt"] == 2
    assert table.finish(again["batch_key"]) == (1, 0, 0, 0)
    assert table.claim(9) == []


@pytest.mark.parametrize("change", ["DROP extra", "ALTER extra TO renamed", "ALTER extra TYPE varchar(40)"])
def test_a_column_that_is_dropped_renamed_or_of_another_type_is_an_error_that_says_what_to_do(
    make: Make, sql: Sql, change: str
) -> None:
    table = make(SHAPES["f"]).create()
    table.count("unadopt_table", table.name)
    sql(f"ALTER TABLE {table.name} ADD extra varchar(20)")
    table.adopt()
    table.insert("1", "2")
    [row] = table.claim()
    sql(f"ALTER TABLE {table.name} {change}")
    for procedure, value in (("claim_rows", table.name), ("finish_rows", row["batch_key"])):
        with refused("unsuitable_table", "unadopt_table", "adopt_table again"):
            call(table.session, procedure, value)
    assert table.count("unadopt_table", table.name) == 1
    table.adopt()
    assert len(table.claim(9)) == 2


def test_an_index_that_claims_need_is_named_when_it_is_dropped(make: Make, sql: Sql) -> None:
    table = make(SHAPES["a"]).create().insert("1", "2")
    [row] = table.claim()
    sql(f"DROP INDEX i{table.name}")
    with refused("unsuitable_table", "CREATE INDEX", '("STATUS", "ID")'):
        table.claim()
    assert table.finish(row["batch_key"]) == (1, 0, 0, 0)
    sql(f"CREATE INDEX i{table.name} ON {table.name} (status, id)")
    [row] = table.claim()
    sql(f"DROP TABLE {table.name}")
    for procedure, value in (("claim_rows", table.name), ("finish_rows", row["batch_key"])):
        with refused("not_found", table.name):
            call(table.session, procedure, value)
    assert table.count("unadopt_table", table.name) == 1


@pytest.mark.parametrize("name", ["a", "a-deleted", "c"])
def test_a_row_whose_key_or_content_changes_while_claimed_is_claimed_again(make: Make, sql: Sql, name: str) -> None:
    table = make(SHAPES[name]).create().insert("1", "2", "3")
    key = table.claim(2)[0]["batch_key"]
    change = "v = 'changed'" if name == "c" else "id = 77, v = 'changed'"
    sql(f"UPDATE {table.name} SET {change} WHERE v = '1'")
    # Its old entry exists: there are as many entries as rows.
    assert table.values(table.claim(9)) == ["3"]
    assert table.finish(key) == (1, 0, 0, 1)
    [row] = table.claim(9)
    assert table.v(row) == "changed"
    assert table.claim(9) == []
    assert table.finish(row["batch_key"]) == (1, 0, 0, 0)
    assert "A" not in [status for v, status in table.left().items() if v != "3"]


def test_a_claim_that_finds_enough_searches_for_lost_rows_once_per_second(make: Make, sql: Sql) -> None:
    table = make(SHAPES["a"]).create().insert("lost", status="A").insert(*map(str, range(200)))
    found: list[str] = []
    until = time.monotonic() + 3
    while "lost" not in found and time.monotonic() < until:
        found += table.values(table.claim())
        time.sleep(0.05)
    assert "lost" in found and len(found) < 100


def test_rows_of_a_dead_claim_that_were_deleted_done_or_set_back_block_nobody(make: Make, sql: Sql) -> None:
    table = make(SHAPES["a"]).create().insert("deleted", "done", "back", "moved", "same")
    assert len(table.claim_expired(9)) == 5
    sql(f"DELETE FROM {table.name} WHERE v = 'deleted'")
    sql(f"UPDATE {table.name} SET status = 'D' WHERE v = 'done'")
    sql(f"UPDATE {table.name} SET status = 'N' WHERE v = 'back'")
    sql(f"UPDATE {table.name} SET id = 99 WHERE v = 'moved'")
    rows = [row for _ in range(3) for row in table.claim(9)]
    assert sorted(table.values(rows)) == ["back", "moved", "same"]
    for key in {row["batch_key"] for row in rows}:
        table.finish(key)
    assert table.left() == dict.fromkeys(["done", "back", "moved", "same"], "D")
    assert table.sql("SELECT * FROM mq_polled_row WHERE name = %s", table.name) == []


@pytest.mark.parametrize("name", ["a", "c"])
@pytest.mark.level(3)
def test_no_row_gets_stuck_next_to_a_writer_that_does_anything(
    make: Make, connect: Callable[..., Session], sql: Sql, name: str, server: Server, database: Database
) -> None:
    table = make(SHAPES[name]).create().insert(*(f"v{n}" for n in range(60)))
    stop = time.monotonic() + 6
    columns = {"a": "id", "c": "made"}[name]

    def consume(number: int) -> None:
        mine = table.by(connect(f"c{number}"))
        chance = random.Random(number)
        while time.monotonic() < stop:
            rows = mine.claim(4, lease_seconds=1)
            time.sleep(chance.choice([0.01, 0.01, 0.01, 1.01]))
            if rows and chance.random() < 0.7:
                lines = [failure(row["id"], "no", 0) for row in rows if chance.random() < 0.2]
                with suppress(LeaseLost):
                    mine.finish(rows[0]["batch_key"], "\n".join(lines) or None)

    def write() -> None:
        chance = random.Random(7)
        with server.client(database.url) as client:
            while time.monotonic() < stop:
                n = chance.randrange(60)
                change = chance.choice(
                    [
                        "SET status = 'N'",
                        "SET status = 'D'",
                        f"SET v = 'w{chance.randrange(10**9)}'",
                        "SET id = id + 1000" if name == "a" else "SET made = DATEADD(1 DAY TO made)",
                        "DELETE",
                    ]
                )
                where = f"WHERE v = (SELECT v FROM {table.name} ORDER BY {columns} ROWS {n + 1} TO {n + 1})"
                text = f"UPDATE {table.name} {change}" if change != "DELETE" else f"DELETE FROM {table.name}"
                with suppress(driver().DatabaseError):
                    client.execute(f"{text} {where}")
                time.sleep(0.005)

    with ThreadPoolExecutor() as pool:
        for work in [*(pool.submit(consume, n) for n in range(3)), pool.submit(write)]:
            work.result()
    time.sleep(1.1)  # the last leases
    until = time.monotonic() + 20
    while time.monotonic() < until:
        rows = table.claim(50)
        if rows:
            table.finish(rows[0]["batch_key"])
        elif set(table.left().values()) <= {"D", "E"}:
            break
    assert set(table.left().values()) <= {"D", "E"}
    assert {state for state, _ in table.states()} <= {"E"}


# ---- types ---------------------------------------------------------------------------------------


def keys(server: Server) -> dict[str, tuple[str, str]]:
    """Types of a key, each with literals of values that differ in the last place that they have."""
    found = {
        "numeric(18, 6)": ("-123456789012.345678", "-123456789012.345679"),
        "timestamp": ("TIMESTAMP '0001-01-01 00:00:00.0000'", "TIMESTAMP '9999-12-31 23:59:59.9999'"),
        "time": ("TIME '00:00:00.0001'", "TIME '00:00:00.0002'"),
        "date": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
        "boolean": ("FALSE", "TRUE"),
        "char(8) CHARACTER SET OCTETS": ("x'0001FF2D3A'", "x'0001FF2D3B'"),
        "varchar(20) CHARACTER SET WIN1252": ("_UTF8 'é:-'", "_UTF8 'è:-'"),
        "varchar(20) CHARACTER SET NONE": ("x'E9'", "x'EA'"),
    }
    if later(server):
        found |= {
            "decfloat(34)": ("1.234567890123456789012345678901234E+200", "1.234567890123456789012345678901235E+200"),
            "int128": ("170141183460469231731687303715884105726", "170141183460469231731687303715884105727"),
            "timestamp WITH TIME ZONE": (
                "TIMESTAMP '2026-10-25 02:30:00.0001 +02:00'",
                "TIMESTAMP '2026-10-25 02:30:00.0001 +01:00'",
            ),
            "time WITH TIME ZONE": ("TIME '12:00:00.0001 +02:00'", "TIME '12:00:00.0002 +02:00'"),
        }
    return found


def test_rows_are_found_again_by_a_key_of_any_type(session: Session, sql: Sql, queue: str, server: Server) -> None:
    for number, (type, values) in enumerate(keys(server).items()):
        name = f"{queue.replace('.', '_')}_{number}"
        sql(f"CREATE TABLE {name} (k {type} NOT NULL PRIMARY KEY, n integer)")
        for n, value in enumerate(values):
            sql(f"INSERT INTO {name} VALUES ({value}, {n})")
        for equal in (False, True):
            columns = {"equal_rows": 1} if equal else {"key_columns": "k"}
            call(session, "adopt_table", name, name, **columns, on_complete="delete")
            rows = call(session, "claim_rows", name, 10)
            assert sorted(json.loads(row["row_data"])["N"] for row in rows) == [0, 1], type
            assert call(session, "claim_rows", name, 10) == []
            failures = "\n".join(failure(row["id"], "no", 0) for row in rows)
            assert call(session, "finish_rows", rows[0]["batch_key"], failures)[0]["failed"] == 2
            again = call(session, "claim_rows", name, 10)
            assert [row["row_data"] for row in again] == [row["row_data"] for row in rows], type
            if not equal:
                call(session, "unadopt_table", name)
        [finished] = call(session, "finish_rows", again[0]["batch_key"])
        assert finished == {"done": 2, "failed": 0, "dead": 0, "gone": 0}, type


PLACES = ("json", "content", "ident", "table", "status", "order", "check", "condition", "keys", "sync")


@pytest.mark.parametrize("kind", ["status", "delete", "keep", "feed"])
def test_names_that_look_like_places_of_a_template_are_names(session: Session, sql: Sql, queue: str, kind: str) -> None:
    """Placeholders are replaced one after the other: placeholders inside a name must not be replaced."""
    name = f'{queue.replace(".", "_")[:18]}{{"table"}}'
    columns = [f'{{"{place}"}}' for place in PLACES]

    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    key, order, status, sync = (quoted(f'{{"{place}"}}') for place in ("json", "order", "status", "sync"))
    sql(f"CREATE TABLE {quoted(name)} ({', '.join(f'{quoted(column)} bigint NOT NULL' for column in columns)})")
    if kind == "feed":
        sql(f"ALTER TABLE {quoted(name)} DROP {sync}")
        sql(f"ALTER TABLE {quoted(name)} ADD {sync} bigint")
    sql(f"ALTER TABLE {quoted(name)} ADD PRIMARY KEY ({key})")
    leading = {"status": status, "delete": order, "keep": order, "feed": sync}[kind]
    sql(
        f"CREATE INDEX {quoted('i' + name[:20])} ON {quoted(name)} ({leading}, {order})"
        if kind == "status"
        else f"CREATE INDEX {quoted('i' + name[:20])} ON {quoted(name)} ({leading})"
    )
    for n in (1, 2):
        values = ["NULL" if kind == "feed" and place == "sync" else str(n) for place in PLACES if place != "status"]
        given = ", ".join(quoted(column) for column in columns if column != '{"status"}')
        sql(f"INSERT INTO {quoted(name)} ({given}, {status}) VALUES ({', '.join(values)}, 7)")
    if kind == "feed":
        call(session, "create_feed", queue, quoted(name), key, sync)
        assert call(session, "publish_feed", queue)[0]["affected"] == 2
        keys_now = [json.loads(row["row_key"]) for row in call(session, "fetch_feed", queue, "c")]
    else:
        manner = {
            "status": {
                "status_column": status,
                "ready_value": "7",
                "active_value": "8",
                "done_value": "9",
                "error_value": "6",
            },
            "delete": {"on_complete": "delete"},
            "keep": {"late_seconds": 0},
        }[kind]
        call(session, "adopt_table", queue, quoted(name), key_columns=key, order_column=order, **manner)
        rows = call(session, "claim_rows", queue, 10)
        assert set(json.loads(rows[0]["row_data"])) == set(columns)
        keys_now = [json.loads(row["row_key"]) for row in rows]
        [failed] = call(session, "finish_rows", rows[0]["batch_key"], failure(rows[1]["id"], "no", 0))
        assert (failed["done"], failed["failed"]) == (1, 1)
        [again] = call(session, "claim_rows", queue, 10)
        assert call(session, "finish_rows", again["batch_key"])[0]["done"] == 1
    assert keys_now == [{'{"json"}': 1}, {'{"json"}': 2}]


def test_an_order_column_of_floating_point_numbers_works_where_no_position_is_kept(
    session: Session, sql: Sql, queue: str
) -> None:
    """Their texts do not read back as the same here."""
    name = queue.replace(".", "_")
    sql(f"CREATE TABLE {name} (id integer NOT NULL PRIMARY KEY, f double precision NOT NULL)")
    sql(f"CREATE INDEX i{name} ON {name} (f)")
    for n in range(9):
        sql(f"INSERT INTO {name} VALUES ({n}, 0.1e0 + {n} * 1.4e-17)")
    with refused("unsuitable_table", "order_column: F must be", "exact"):
        call(session, "adopt_table", name, name, key_columns="id", order_column="f", late_seconds=0)
    call(session, "adopt_table", name, name, key_columns="id", order_column="f", on_complete="delete")
    claimed = [json.loads(row["row_key"])["ID"] for _ in range(10) for row in call(session, "claim_rows", name)]
    assert sorted(claimed) == list(range(9))


def test_texts_that_compare_as_equal_are_counted_apart(session: Session, sql: Sql, queue: str) -> None:
    """Firebird compares them equal with and without trailing blanks; each is finished as its own value."""
    name = queue.replace(".", "_")
    sql(f"CREATE TABLE {name} (v varchar(10) CHARACTER SET UTF8)")
    for value in ("a", "a ", "a ", "a  "):
        sql(f"INSERT INTO {name} VALUES (%s)", value)
    call(session, "adopt_table", name, name, equal_rows=1, on_complete="delete")
    rows = [row for _ in range(5) for row in call(session, "claim_rows", name)]
    keys = {len(json.loads(row["row_data"])["V"]): row["batch_key"] for row in rows}
    assert len(rows) == 4 and len(keys) == 3

    def left() -> list[int]:
        return sorted(row["n"] for row in sql(f"SELECT CHAR_LENGTH(v) AS n FROM {name}"))

    call(session, "finish_rows", keys[3])
    assert left() == [1, 2, 2]
    sql(f"DELETE FROM {name} WHERE CHAR_LENGTH(v) = 1")
    assert call(session, "finish_rows", keys[1])[0]["gone"] == 1
    assert left() == [2, 2]


def test_columns_that_are_too_wide_to_be_a_rows_identity_are_refused(session: Session, sql: Sql, queue: str) -> None:
    name = queue.replace(".", "_")
    sql(f"CREATE TABLE {name} (a varchar(2000) CHARACTER SET UTF8, b varchar(2000) CHARACTER SET UTF8)")
    with refused("unsuitable_table", "15,000", "give key_columns"):
        call(session, "adopt_table", name, name, equal_rows=1, on_complete="delete")


# ---- what a claim reads --------------------------------------------------------------------------

READS = """
    SELECT SUM(r.mon$record_seq_reads + r.mon$record_idx_reads) AS n
    FROM mon$attachments AS a
    JOIN mon$table_stats AS t ON t.mon$stat_id = a.mon$stat_id
    JOIN mon$record_stats AS r ON r.mon$stat_id = t.mon$record_stat_id
    WHERE a.mon$attachment_id = CURRENT_CONNECTION AND t.mon$table_name NOT STARTING WITH 'RDB$'
"""


def reads(one: Raw) -> int:
    n: int = one.run(READS)[0]["n"] or 0
    one.commit()
    return n


@pytest.mark.parametrize("name", ["a", "b", "c", "d", "e", "f"])
def test_a_claim_and_a_finish_read_no_backlog(make: Make, raw: Open, sql: Sql, name: str) -> None:
    """5,000 rows are ready, and 20 claimed before each claim of 10. Without an index (f), a finish reads all."""
    shape = SHAPES[name]
    table = make(shape).create()
    made = "DATEADD(:n SECOND TO TIMESTAMP '2026-01-01')"
    values = {"id": ":n", "made": made, "v": "'v' || :n", "status": "'N'"}
    columns = [column.split()[0] for column in shape.columns]
    sql(
        f"EXECUTE BLOCK AS DECLARE n integer = 0; BEGIN WHILE (n < 5000) DO BEGIN n = n + 1; INSERT INTO {table.name}"
        f" ({', '.join(columns)}) VALUES ({', '.join(values[column] for column in columns)}); END END"
    )
    one = raw()
    claim = f"SELECT batch_key FROM mq_claim_rows('{table.name}', 10)"
    held = [one.run(claim)[0]["batch_key"] for _ in range(2)]
    one.commit()
    before = reads(one)
    key = one.run(claim)[0]["batch_key"]
    one.commit()
    claimed = reads(one) - before
    assert one.run(f"SELECT * FROM mq_finish_rows('{key}')")[0]["done"] == 10
    one.commit()
    finished = reads(one) - before - claimed
    assert claimed < 400, (claimed, finished)
    assert name == "f" or finished < 400, (claimed, finished)
    assert len(set(held)) == 2
