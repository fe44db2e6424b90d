"""Polling tables: rows of a user's own table claimed as work. Each shape of table, and what each of them guarantees."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Row, Session
from support.capabilities import Capabilities
from support.outcomes import dead_letter, done, failure, hostile_errors, joined, released
from support.polling import SHAPES, Polled, Shape, Sql, create_table
from support.queues import NO_KEY, call, refused

every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
keyed = pytest.mark.parametrize("shape", [SHAPES[name] for name in ("a", "e")], ids=["a", "e"])


def several(*names: str) -> Any:
    return pytest.mark.parametrize("shape", [SHAPES[name] for name in names], ids=names)


Make = Callable[[Shape], Polled]


@pytest.fixture
def make(queue: str, session: Session, sql: Sql, can: Capabilities) -> Make:
    """A table of a shape that no other test uses, not yet created."""
    return lambda shape: Polled(queue, session, sql, can, shape)


# ---- each shape ----------------------------------------------------------------------------------


@every_shape
def test_rows_are_claimed_once_finished_and_never_claimed_again(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2", "3", "4", "5")
    first, second = table.claim(2, consumer="me", lease_seconds=90), table.claim(10)
    assert [len(first), len(second)] == [2, 3]
    if shape.letter != "f":
        assert table.values([*first, *second]) == ["1", "2", "3", "4", "5"]
    assert table.claim(10) == []
    assert {(row["attempt"], row["batch_key"]) for row in first} == {(1, first[0]["batch_key"])}
    assert sorted(table.left().items()) == [(v, table.active) for v in "12345"]
    assert table.states() == [("A", 1)] * 5
    assert table.finish(first[0]["batch_key"]) == (2, 0, 0, 0)
    assert table.finish(second[0]["batch_key"], "") == (3, 0, 0, 0)
    assert table.states() == []
    assert table.left() == ({} if shape.on_complete == "delete" else dict.fromkeys("12345", table.expected("D")))
    assert table.claim(10) == []
    table.insert("6")
    assert table.values(table.claim(10)) == ["6"]


@every_shape
def test_a_failed_row_is_retried_until_its_attempts_are_used_up_and_a_dead_row_can_be_retried(
    make: Make, shape: Shape
) -> None:
    table = make(shape).create(max_attempts=2).insert("1", "2", "3", "4")
    rows = {table.v(row): row for row in table.claim(10)}
    ids = {v: row["id"] for v, row in rows.items()}
    key = rows["1"]["batch_key"]
    assert table.finish(
        key, joined(failure(ids["1"], "first", 0), dead_letter(ids["2"], "for good"), failure(ids["3"], "later", 3600))
    ) == (1, 2, 1, 0)
    left = {"1": table.waiting, "2": table.expected("E"), "3": table.waiting, "4": table.expected("D")}
    if shape.on_complete == "delete":
        del left["4"]
    assert table.left() == left
    assert {
        row["id"]: (row["state"], row["attempts"], row["error"]) for row in call(table.session, "peek_rows", table.name)
    } == {
        ids["1"]: ("N", 1, "first"),
        ids["2"]: ("E", 1, "for good"),
        ids["3"]: ("N", 1, "later"),
    }

    [again] = table.claim(10)
    assert (table.v(again), again["id"], again["attempt"]) == ("1", ids["1"], 2)
    assert again["row_key"] == rows["1"]["row_key"] and again["row_data"] == rows["1"]["row_data"]
    assert table.left()["1"] == table.active
    assert table.finish(again["batch_key"], failure(ids["1"], "second", 0)) == (0, 0, 1, 0)
    assert table.left()["1"] == table.expected("E")
    assert table.claim(10) == []

    assert table.count("redrive_row", table.name, ids["1"]) == 1
    assert table.left()["1"] == table.waiting
    assert table.count("redrive_row", table.name, ids["1"]) == 0
    assert table.left()["2"] == table.expected("E")
    [retried] = table.claim(10)
    assert (retried["id"], retried["attempt"]) == (ids["1"], 1)
    assert table.count("redrive_rows", table.name) == 1
    assert table.values(table.claim(10)) == ["2"]
    assert table.finish(retried["batch_key"]) == (1, 0, 0, 0)


def test_dead_rows_are_retried_one_by_one_or_the_oldest_first(make: Make) -> None:
    """NULL never means all of them."""
    table = make(SHAPES["e"]).create().insert("1", "2", "3", "4", "5")
    died = []
    for _ in range(4):
        [row] = table.claim(1)
        table.finish(row["batch_key"], dead_letter(row["id"], "no"))
        died.append(row["id"])
    first, second, third, fourth = died
    [alive] = table.claim(1)

    def dead() -> list[int]:
        return sorted(row["id"] for row in call(table.session, "peek_rows", table.name, "E"))

    with refused("invalid_argument", "id: ", "NULL", "redrive_rows"):
        call(table.session, "redrive_row", table.name, None)
    for id in (alive["id"], 0, -1, 1 << 62):
        assert table.count("redrive_row", table.name, id) == 0
    assert dead() == sorted(died)
    assert table.count("redrive_row", table.name, third) == 1
    assert dead() == sorted([first, second, fourth])
    assert table.count("redrive_rows", table.name, 1) == 1
    assert dead() == sorted([second, fourth])
    assert table.count("redrive_rows", table.name) == 2
    assert table.count("redrive_rows", table.name) == table.count("redrive_row", table.name, first) == 0
    assert dead() == []
    assert {(row["id"], row["attempt"]) for row in table.claim(5)} == {(id, 1) for id in died}


def test_redrive_row_retries_no_row_of_another_table(make: Make) -> None:
    mine = make(SHAPES["e"]).create().insert("1")
    other = Polled(f"{mine.name}o", mine.session, mine.sql, mine.can, SHAPES["e"]).create().insert("1")
    for table in (mine, other):
        [row] = table.claim(1)
        table.finish(row["batch_key"], dead_letter(row["id"], "no"))
    [dead] = call(other.session, "peek_rows", other.name, "E")
    assert mine.count("redrive_row", mine.name, dead["id"]) == 0
    assert other.left() == {"1": other.expected("E")}
    with refused("not_found", "name: "):
        call(mine.session, "redrive_row", mine.name + "x", dead["id"])
    assert mine.count("unadopt_table", other.name) == 1


@every_shape
def test_an_expired_claim_is_claimed_again_and_its_first_consumer_changes_nothing_more(
    make: Make, shape: Shape
) -> None:
    table = make(shape).create(max_attempts=2).insert("1", "2")
    lost = table.claim_expired(2)
    rows = table.claim_expired(2)
    assert {row["attempt"] for row in rows} == {2} and {row["id"] for row in rows} == {row["id"] for row in lost}
    for key in (lost[0]["batch_key"], NO_KEY):
        for failures in (None, dead_letter(lost[0]["id"], "no")):
            with refused("lease_lost", "batch_key: this batch was finished", "roll back"):
                table.finish(key, failures)
        assert table.count("extend_rows", key) == table.count("release_rows", key) == 0
    assert table.states() == [("A", 2)] * 2
    assert table.claim(2) == []
    assert table.left() == dict.fromkeys("12", table.expected("E"))
    assert {(row["state"], row["error"]) for row in call(table.session, "peek_rows", table.name, "E")} == {
        ("E", "lease expired")
    }


@every_shape
def test_a_part_of_a_claim_is_finished_and_the_others_stay_claimed(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2", "3", "4", "5")
    rows = {table.v(row): row for row in table.claim(5)}
    key, ids = rows["1"]["batch_key"], {v: row["id"] for v, row in rows.items()}
    with refused("invalid_argument", "keep_others: "):
        table.finish(key, done(ids["1"]), 2)
    with refused("invalid_argument", "outcomes: line 2: "):
        table.finish(key, joined(done(ids["1"]), "{}"), 1)
    assert table.finish(key, joined(done(ids["1"]), released(ids["2"]), dead_letter(ids["3"], "no")), 1) == (1, 1, 1, 0)
    assert sorted(table.states()) == [("A", 1), ("A", 1), ("E", 1), ("N", 0)]
    [again] = table.claim(10)
    assert (table.v(again), again["attempt"]) == ("2", 1)
    assert table.count("extend_rows", key, 60) == 2
    for nothing in (None, joined(done(ids["1"]), released(ids["2"]))):
        assert table.finish(key, nothing, 1) == (0, 0, 0, 0)
    assert table.finish(key, failure(ids["4"], "busy", 60), 1) == (0, 1, 0, 0)
    assert table.finish(key, done(ids["5"]), 1) == (1, 0, 0, 0)
    with refused("lease_lost", "batch_key"):
        table.finish(key, None, 1)
    assert table.finish(again["batch_key"], released(again["id"])) == (0, 1, 0, 0)
    assert sorted(table.states()) == [("E", 1), ("N", 0), ("N", 1)]


@every_shape
def test_released_rows_are_claimed_again_without_counting_an_attempt(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2")
    [row, _] = table.claim(2)
    assert table.count("extend_rows", row["batch_key"], 600) == 2
    assert table.count("release_rows", row["batch_key"]) == 2
    assert table.left() == dict.fromkeys("12", table.waiting)
    rows = table.claim(2)
    assert sorted(table.values(rows)) == ["1", "2"] and {row["attempt"] for row in rows} == {1}
    with refused("lease_lost", "batch_key"):
        table.finish(row["batch_key"])


@every_shape
def test_unadopt_table_releases_claimed_rows_and_forgets_the_rest(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2", "3")
    rows = {table.v(row): row for row in table.claim(3)}
    table.finish(
        rows["1"]["batch_key"], joined(dead_letter(rows["1"]["id"], "dead"), failure(rows["2"]["id"], "waits", 60))
    )
    table.insert("4")
    [row] = table.claim()
    assert table.count("unadopt_table", table.name) == 1
    assert {v: s for v, s in table.left().items() if v in "124"} == {
        "1": table.expected("E"),
        "2": table.waiting,
        "4": table.waiting,
    }
    assert table.count("unadopt_table", table.name) == 0
    with refused("lease_lost", "batch_key"):
        table.finish(row["batch_key"])
    with refused("not_found", "name: "):
        table.claim()
    assert table.adopt() == [{"created": 1}]
    assert "4" in table.values(table.claim(10))


# ---- rows that are equal ------------------------------------------------------------------------


@several("c", "c-never-active", "d", "f")
def test_of_equal_rows_as_many_are_claimed_and_finished_as_there_are(make: Make, shape: Shape) -> None:
    table = make(shape).create().copies("x", 3).insert("y")
    first = table.claim(2)
    second = table.claim(10)
    assert sorted(table.values([*first, *second])) == ["x", "x", "x", "y"]
    assert len({row["id"] for row in [*first, *second]}) == 4
    if shape.letter != "d":
        # It comes late: in d at a place that was passed.
        table.copies("x", 1)
        assert table.finish(first[0]["batch_key"]) == (2, 0, 0, 0)
        assert table.values(table.claim(10)) == ["x"]
        assert table.finish(second[0]["batch_key"]) == (2, 0, 0, 0)
        statuses = table.sql(f"SELECT v FROM {table.name}" + (" WHERE status <> 'D'" if shape.has_status else ""))
        assert len(statuses) == 1
    assert table.claim(10) == []


@several("c", "f")
def test_deleting_an_equal_row_ends_one_claim(make: Make, shape: Shape, connect: Callable[..., Session]) -> None:
    table = make(shape).create().copies("x", 1).insert("y")
    rows = table.claim(2)
    table.sql(f"DELETE FROM {table.name} WHERE v = 'x'")
    assert table.finish(rows[0]["batch_key"]) == (1, 0, 0, 1)


def test_a_null_in_a_row_without_a_key_is_a_value_like_any(make: Make) -> None:
    table = make(SHAPES["f"]).create()
    table.sql(f"INSERT INTO {table.name} (v) VALUES (NULL)")
    table.sql(f"INSERT INTO {table.name} (v) VALUES ('')")
    rows = table.claim(10)
    assert sorted(str(json.loads(row["row_data"])[table.can.fold("v")]) for row in rows) == ["", "None"]
    assert table.finish(rows[0]["batch_key"]) == (2, 0, 0, 0)
    assert table.many() == 0


@several("a", "c")
def test_no_text_of_an_error_touches_another_row(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert(*map(str, range(1, 12)))
    first, *others = sorted(table.claim(11), key=lambda row: int(row["id"]))
    errors = [*hostile_errors(first["id"]), "é😀" * 2_500]
    outcomes = [dead_letter(row["id"], error) for row, error in zip(others, errors, strict=True)]
    assert table.finish(first["batch_key"], joined(*outcomes)) == (1, 0, len(errors), 0)
    told = {row["id"]: row["error"] for row in call(table.session, "peek_rows", table.name, "E")}
    assert told == {row["id"]: error[:4_000] for row, error in zip(others, errors, strict=True)}


# ---- others at work ------------------------------------------------------------------------------


@several("a", "a-never-active", "a-deleted", "c", "e", "f")
def test_a_row_that_others_delete_meanwhile_is_gone(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2", "3", "4")
    rows = {table.v(row): row for row in table.claim(4)}
    table.sql(f"DELETE FROM {table.name} WHERE v IN ('1', '2')")
    failed = "" if shape.letter in "ef" else failure(rows["2"]["id"], "no", 0)
    assert table.finish(rows["1"]["batch_key"], failed) == (2, 0, 0, 2)
    assert table.claim(10) == [] and table.states() == []


@several("a", "a-never-active", "a-deleted", "c")
def test_a_row_whose_status_is_changed_while_claimed_stays_unchanged(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2", "3")
    rows = {table.v(row): row for row in table.claim(3)}
    table.sql(f"UPDATE {table.name} SET status = 'X' WHERE v <> '3'")
    assert table.finish(rows["1"]["batch_key"], dead_letter(rows["2"]["id"], "no")) == (1, 0, 0, 2)
    assert table.left() == {"1": "X", "2": "X"} | ({} if shape.deletes else {"3": "D"})
    assert table.states() == []


@several("a", "e")
def test_a_waiting_row_that_others_take_away_is_forgotten(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2")
    rows = table.claim(2)
    table.finish(rows[0]["batch_key"], joined(failure(rows[0]["id"], "no", 0), failure(rows[1]["id"], "no", 0)))
    table.sql(f"DELETE FROM {table.name} WHERE v = '1'")
    assert table.values(table.claim(10)) == ["2"]
    assert len(table.states()) == 1


def test_a_dead_row_that_is_set_back_to_ready_is_claimed_again(make: Make) -> None:
    table = make(SHAPES["a"]).create().insert("1")
    [row] = table.claim()
    table.finish(row["batch_key"], dead_letter(row["id"], "dead"))
    assert table.claim() == []
    table.sql(f"UPDATE {table.name} SET status = 'N'")
    [again] = table.claim()
    assert again["attempt"] == 1
    assert table.finish(again["batch_key"]) == (1, 0, 0, 0)
    assert table.states() == []


@several("a", "a-never-active", "c", "e")
def test_claims_pass_over_rows_that_a_writer_has_locked(
    make: Make, shape: Shape, connect: Callable[..., Session]
) -> None:
    table = make(shape).create().insert("1", "2", "3")
    writer = connect("writer")
    with writer.transaction() as connection:
        cursor = connection.cursor()
        cursor.execute(f"UPDATE {table.name} SET v = 'changed' WHERE v = '1'")
        rows = table.claim(10)
        if shape.letter != "c" or shape.active:
            assert table.values(rows) == ["2", "3"]
    assert "changed" in table.values(table.claim(10))


@several("a", "c", "e", "f")
def test_a_claim_and_a_finish_that_are_rolled_back_have_not_been(make: Make, shape: Shape) -> None:
    table = make(shape).create().insert("1", "2")
    with pytest.raises(ZeroDivisionError), table.session.transaction():
        assert len(table.claim(10)) == 2
        raise ZeroDivisionError
    assert table.left() == dict.fromkeys("12", table.waiting) and table.states() == []
    [row, _] = table.claim(10)
    with pytest.raises(ZeroDivisionError), table.session.transaction():
        assert table.finish(row["batch_key"]) == (2, 0, 0, 0)
        raise ZeroDivisionError
    assert table.left() == dict.fromkeys("12", table.active) and table.states() == [("A", 1)] * 2
    with table.session.transaction():
        assert table.finish(row["batch_key"]) == (2, 0, 0, 0)
    assert table.states() == []


def test_a_key_that_is_deleted_and_inserted_again_is_claimed_again(make: Make) -> None:
    table = make(SHAPES["e"]).create().insert("1")
    [row] = table.claim()
    assert table.finish(row["batch_key"]) == (1, 0, 0, 0)
    table.inserted = 0
    table.insert("again")
    assert table.values(table.claim()) == ["again"]


def test_messages_below_the_last_claim_are_claimed_as_well(make: Make) -> None:
    table = make(SHAPES["e"]).create()
    table.inserted = 10
    table.insert("11", "12", "13")
    assert table.values(table.claim(2)) == ["11", "12"]
    table.inserted = 0
    table.insert("1", "2")
    assert sorted(table.values(table.claim(10))) == ["1", "13", "2"]


# ---- tables with rules of their own --------------------------------------------------------------


def told(row: Row, constraint: str) -> bool:
    """The error names the constraint, or, where procedures cannot get at the text, that there was one."""
    return constraint in row["error"].lower() or "SQLSTATE 23000, error" in row["error"]


def test_a_row_that_the_table_will_not_have_done_fails_alone(make: Make) -> None:
    table = make(SHAPES["a"])
    table.create(f"CONSTRAINT never_{table.name} CHECK (NOT (v = 'bad' AND status = 'D'))", max_attempts=2)
    table.insert("1", "bad", "3")
    rows = table.claim(3)
    assert table.finish(rows[0]["batch_key"]) == (2, 1, 0, 0)
    assert table.left() == {"1": "D", "bad": "N", "3": "D"}
    [waits] = call(table.session, "peek_rows", table.name, "N")
    assert told(waits, f"never_{table.name}")


def test_a_row_that_the_table_will_not_have_active_does_not_stop_the_others(make: Make) -> None:
    table = make(SHAPES["a"])
    table.create(f"CONSTRAINT never_{table.name} CHECK (NOT (v = 'bad' AND status = 'A'))", max_attempts=1)
    table.insert("1", "bad", "3")
    assert table.values(table.claim(3)) == ["1", "3"]
    assert table.left()["bad"] == "E"
    [dead] = call(table.session, "peek_rows", table.name, "E")
    assert told(dead, f"never_{table.name}")


def test_a_row_that_the_table_will_not_have_deleted_fails_alone(make: Make, sql: Sql) -> None:
    table = make(SHAPES["e"]).create().insert("1", "2", "3")
    sql(f"CREATE TABLE c{table.name} (parent bigint NOT NULL REFERENCES {table.name} (id))")
    if table.can.quote("") == "``":  # which reads over REFERENCES of a column
        sql(f"ALTER TABLE c{table.name} ADD CONSTRAINT f{table.name} FOREIGN KEY (parent) REFERENCES {table.name} (id)")
    sql(f"INSERT INTO c{table.name} (parent) VALUES (2)")
    rows = table.claim(3)
    assert table.finish(rows[0]["batch_key"]) == (2, 1, 0, 0)
    assert table.left() == {"2": ""}


# ---- statuses, keys and names --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "ready", "active", "done", "error"),
    [
        ("smallint", "0", "-1", "1", "2"),
        ("varchar(60)", "it's new", "wörk", "; DROP TABLE mq_polled --", '"'),
        ("char(4)", "NEW", "RUN", "DONE", "BAD"),
        ("char(1)", None, "A", "D", "E"),
        ("enum", "N", "A", "D", "E"),
    ],
    ids=["smallint", "varchar", "char(4)", "NULL", "enum"],
)
def test_a_status_is_of_any_type(
    make: Make, sql: Sql, type: str, ready: str | None, active: str, done: str, error: str
) -> None:
    table = make(SHAPES["a"])
    if type == "enum":
        if not table.can.enum:
            pytest.skip("no such type here")
        before, type = (text.format(f"e{table.name}") for text in table.can.enum)
        if before:
            sql(before)
    table = make(Shape("a", status_type=type)).create(
        ready_value=ready, active_value=active, done_value=done, error_value=error
    )
    table.insert("1", "2", "3", status=ready)
    rows = table.claim(3)
    assert table.left() == dict.fromkeys("123", active)
    failures = joined(dead_letter(rows[1]["id"], "no"), failure(rows[2]["id"], "no", 0))
    assert table.finish(rows[0]["batch_key"], failures) == (1, 1, 1, 0)
    assert table.left() == {"1": done, "2": error, "3": ready}
    assert table.values(table.claim(3)) == ["3"]
    assert table.count("redrive_rows", table.name) == 1
    assert table.left()["2"] == ready


HOSTILE = ["it's", "''\"\"", "\\' \\n \\\\", "x'); DROP TABLE t; --", "$1 %s ? {0}", "é😀", "a", "A", "a b", " a"]


def test_keys_of_several_columns_and_types_find_their_rows_again(make: Make, sql: Sql) -> None:
    table = make(SHAPES["e"])
    create_table(
        sql,
        table.can,
        table.name,
        *(
            "big bigint NOT NULL",
            f"txt {table.can.letters} NOT NULL",
            "made {moment} NOT NULL",
            "dec_no decimal(18, 4) NOT NULL",
        ),
        *("v varchar(10)", "PRIMARY KEY (big, txt, made, dec_no)"),
    )
    keys = "big, txt, made, dec_no"
    assert call(table.session, "adopt_table", table.name, table.name, key_columns=keys, on_complete="delete") == [
        {"created": 1}
    ]
    texts = HOSTILE if table.can.fold is not str else [text for text in HOSTILE if text != "A"]
    for number, text in enumerate(texts):
        values = (
            9_007_199_254_740_993 + number,
            text,
            f"2026-01-01 00:00:00.{number:03}1",
            f"{number}.1200",
            str(number),
        )
        sql(f"INSERT INTO {table.name} ({keys}, v) VALUES (%s, %s, %s, %s, %s)", *values)
    rows = table.claim(100)
    assert [json.loads(row["row_key"])[table.can.fold("txt")] for row in rows] == texts
    assert [json.loads(row["row_key"])[table.can.fold("big")] for row in rows] == [
        9_007_199_254_740_993 + number for number in range(len(texts))
    ]
    assert list(json.loads(rows[0]["row_key"])) == [table.can.fold(name) for name in keys.split(", ")]
    assert table.finish(rows[0]["batch_key"], failure(rows[3]["id"], "again", 0)) == (len(texts) - 1, 1, 0, 0)
    [again] = table.claim(100)
    assert again["row_key"] == rows[3]["row_key"] and again["row_data"] == rows[3]["row_data"]
    assert table.finish(again["batch_key"]) == (1, 0, 0, 0)
    assert table.many() == 0


def test_names_that_need_quotes_are_taken_as_they_are(make: Make, sql: Sql) -> None:
    table = make(SHAPES["a"])
    quoted = table.can.quote
    name, key, status = f'{table.name[:9]} "Ord;er', "select", 'sta"tus, é'
    columns = [f"{quoted(key)} integer NOT NULL PRIMARY KEY", f"{quoted(status)} char(1)", "v varchar(10)"]
    sql(f"CREATE TABLE {quoted(name)} ({', '.join(columns)})")
    sql(f"CREATE INDEX i{table.name} ON {quoted(name)} ({quoted(status)}, {quoted(key)})")
    for grant in table.can.grants:
        sql(grant.format(quoted(name)))
    sql(f"INSERT INTO {quoted(name)} VALUES (1, 'N', 'x')")
    arguments = {"key_columns": quoted(key), "status_column": quoted(status), "ready_value": "N", "active_value": "A"}
    adopted = call(table.session, "adopt_table", table.name, quoted(name), **arguments, done_value="D", error_value="E")
    assert adopted == [{"created": 1}]
    [row] = table.claim(10)
    assert json.loads(row["row_key"]) == {key: 1}
    assert json.loads(row["row_data"]) == {key: 1, status: "N", table.can.fold("v"): "x"}
    assert table.finish(row["batch_key"]) == (1, 0, 0, 0)
    assert [next(iter(r.values())) for r in sql(f"SELECT {quoted(status)} FROM {quoted(name)}")] == ["D"]


# ---- late rows -----------------------------------------------------------------------------------


@several("b", "d")
def test_a_row_that_commits_late_is_claimed_in_its_place(make: Make, shape: Shape) -> None:
    table = make(shape).create(late_seconds=1).insert("1")
    table.inserted = 2
    table.insert("3")
    assert table.claim(10) == []
    table.inserted = 1
    table.insert("2")
    deadline = time.monotonic() + 10
    while not (rows := table.claim(10)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert table.values(rows) == ["1", "2", "3"]
    table.inserted = 3
    table.insert("4")
    assert table.claim(10) == []


@several("b", "d")
def test_a_row_that_commits_later_than_late_seconds_is_missed(make: Make, shape: Shape) -> None:
    table = make(shape).create(late_seconds=0)
    table.inserted = 1
    table.insert("2")
    assert table.values(table.claim(10)) == ["2"]
    table.inserted = 0
    table.insert("1")
    assert table.claim(10) == []


def test_rows_of_one_order_value_are_claimed_in_several_batches(make: Make) -> None:
    table = make(SHAPES["d"]).create()
    for v in "abcdefgh":
        table.copies(v, 2)
    claimed = [table.values(table.claim(3)) for _ in range(7)]
    assert [len(values) for values in claimed] == [3, 3, 3, 3, 3, 1, 0]
    assert sorted(v for values in claimed for v in values) == sorted("abcdefgh" * 2)


# ---- what adopt_table refuses --------------------------------------------------------------------


def test_adopting_twice_is_adopting_once(make: Make) -> None:
    table = make(SHAPES["a"]).create()
    assert table.adopt() == [{"created": 0}]
    with table.refused("already_exists", table.name):
        table.adopt(max_attempts=3)
    with table.refused("already_exists", table.name):
        call(table.session, "adopt_table", f"{table.name} two", table.name, **table.shape.arguments)


REFUSED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "ready_value": ("e", {"ready_value": "N"}, "invalid_argument", "ready_value: "),
    "error_value": ("a", {"error_value": None}, "invalid_argument", "error_value: "),
    "done_value": ("a", {"done_value": None}, "invalid_argument", "done_value: "),
    "equal values": ("a", {"active_value": "N"}, "invalid_argument", "active_value: "),
    "too wide": ("a", {"done_value": "DONE"}, "invalid_argument", "done_value: "),
    "on_complete": ("a", {"on_complete": "archive"}, "invalid_argument", "on_complete: "),
    "equal_rows": ("a", {"equal_rows": 1}, "invalid_argument", "equal_rows: "),
    "late_seconds": ("a", {"late_seconds": 1}, "invalid_argument", "late_seconds: "),
    "status as key": ("a", {"key_columns": "id, status"}, "invalid_argument", "key_columns: "),
    "status as order": ("a", {"order_column": "status"}, "invalid_argument", "order_column: "),
    "two orders": ("a", {"order_column": "id, v"}, "invalid_argument", "order_column: "),
    "no column": ("a", {"key_columns": "idd"}, "invalid_argument", "key_columns: "),
    "doubled column": ("a", {"key_columns": "id, id"}, "invalid_argument", "key_columns: "),
    "malformed": ("a", {"key_columns": "id,"}, "invalid_argument", "key_columns: "),
    "no key": ("a", {"key_columns": "v"}, "unsuitable_table", "key_columns: "),
    "no choice": ("f", {"equal_rows": None}, "unsuitable_table", "equal_rows"),
    "no lateness": ("b", {"late_seconds": None}, "unsuitable_table", "late_seconds"),
    "no order": ("d", {"order_column": None}, "unsuitable_table", "order_column"),
    "nullable order": ("b", {"order_column": "v"}, "unsuitable_table", "order_column"),
    "no index": ("a", {"order_column": "v"}, "unsuitable_table", "CREATE INDEX"),
    "no index of the order": ("e", {"order_column": "v"}, "unsuitable_table", "CREATE INDEX"),
}


def test_a_table_that_cannot_be_adopted_is_refused_with_the_reason(make: Make, sql: Sql) -> None:
    tables = {letter: make(SHAPES[letter]) for letter in "abdef"}
    for letter, table in tables.items():
        table.name += letter
        create_table(sql, table.can, table.name, *table.shape.columns, index=table.shape.index)
    for letter, options, error, told in REFUSED.values():
        with refused(error, told):
            tables[letter].adopt(**options)
        with refused("not_found"):
            tables[letter].claim()
        assert call(tables[letter].session, "list_polling_tables", tables[letter].name) == []
    table = tables["a"]
    arguments = table.shape.arguments
    with refused("not_found", "table: "):
        call(table.session, "adopt_table", table.name, f"{table.name}_none", **arguments)
    sql(f"CREATE VIEW v{table.name} AS SELECT * FROM {table.name}")
    for grant in table.can.grants:
        sql(grant.format(f"v{table.name}"))
    with refused("unsuitable_table", table.can.fold(f"v{table.name}")[:40]):
        call(table.session, "adopt_table", table.name, f"v{table.name}", **arguments)
    own = table.can.view.replace("message_state", "message")
    with refused("unsuitable_table"):
        call(table.session, "adopt_table", table.name, own, key_columns="id", on_complete="delete")


def test_a_table_whose_columns_cannot_be_compared_needs_a_key(make: Make, sql: Sql) -> None:
    table = make(SHAPES["f"])
    create_table(sql, table.can, table.name, "v varchar(10)", "measured double precision")
    with refused("unsuitable_table", table.can.fold("measured")):
        table.adopt()


# MySQL and MariaDB let the table itself say what it refuses: the text of a CHECK is nothing to execute.
@pytest.mark.product("postgresql", "firebird", "sqlserver")
def test_a_value_that_a_check_forbids_is_refused(make: Make, sql: Sql) -> None:
    table = make(Shape("a", status_type="char(1) CHECK (status IN ('N', 'A', 'D'))"))
    create_table(sql, table.can, table.name, *table.shape.columns, index=table.shape.index)
    with refused("invalid_argument", "error_value: "):
        table.adopt()
    assert table.adopt(error_value="D", done_value=None, on_complete="delete") == [{"created": 1}]


def test_a_dropped_table_is_reported_and_can_be_released(make: Make, sql: Sql, connect: Callable[..., Session]) -> None:
    table = make(SHAPES["a"]).create().insert("1")
    claimer = connect("claimer")
    [row] = table.by(claimer).claim()
    claimer.close()
    sql(f"DROP TABLE {table.name}")
    for procedure, *values in (
        ("claim_rows", table.name),
        ("finish_rows", row["batch_key"]),
        ("release_rows", row["batch_key"]),
    ):
        with refused("not_found", "table: "):
            call(table.session, procedure, *values)
    assert table.count("unadopt_table", table.name) == 1


# MySQL and MariaDB keep rights by name: who has them on a whole schema has them on what is not there.
@pytest.mark.product("postgresql", "firebird", "sqlserver")
def test_the_records_of_a_dropped_table_are_not_shown(make: Make, sql: Sql, connect: Callable[..., Session]) -> None:
    table = make(SHAPES["a"]).create().insert("1")
    looker = connect("looker")
    [row] = table.by(looker).claim()
    call(looker, "finish_rows", row["batch_key"], dead_letter(row["id"], "no"))
    assert len(call(looker, "peek_rows", table.name, "E")) == 1
    looker.close()
    sql(f"DROP TABLE {table.name}")
    for procedure, *values in (("peek_rows",), ("redrive_rows",), ("redrive_row", row["id"])):
        with refused("not_found", "table: "):
            call(table.session, procedure, table.name, *values)
    assert table.count("unadopt_table", table.name) == 1
    with refused("not_found", "name: "):
        call(table.session, "peek_rows", table.name)


def test_a_dropped_column_is_named(make: Make, sql: Sql, connect: Callable[..., Session]) -> None:
    table = make(SHAPES["e"])
    create_table(sql, table.can, table.name, "id bigint NOT NULL PRIMARY KEY", "made integer NOT NULL", index="made")
    assert table.adopt(order_column="made") == [{"created": 1}]
    sql(f"DROP INDEX i{table.name}" + (f" ON {table.name}" if table.can.fold is str else ""))
    sql(f"ALTER TABLE {table.name} DROP {'COLUMN ' if table.can.fold is not str.upper else ''}made")
    with refused("unsuitable_table"):
        table.claim()
    assert table.count("unadopt_table", table.name) == 1
