"""Every procedure of the contract: its result's columns and types, NULL for a default, limits and their errors."""

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import Session
from rowqueue.install.contract import Argument, Column
from support.capabilities import Capabilities
from support.polling import SHAPES, Polled
from support.queues import (
    CONTRACT,
    POLLING,
    Queue,
    call,
    in_an_hour,
    in_time,
    make_feed,
    make_table,
    make_watched,
    refused,
    required,
)

PROCEDURES = sorted(CONTRACT.procedures)
LIMITED = [
    pytest.param(name, argument, id=f"{name}-{argument.name}")
    for name in PROCEDURES
    for argument in (*CONTRACT.procedures[name].arguments, *CONTRACT.procedures[name].options)
    if argument.limit and argument.limit != "object"  # see test_options.py
]
OPTIONAL = [
    pytest.param(name, argument, id=f"{name}-{argument.name}")
    for name in PROCEDURES
    for argument in (*CONTRACT.procedures[name].arguments, *CONTRACT.procedures[name].options)
    if argument.optional
    # A table that is adopted without these needs others, see test_polling_tables.py.
    # Nor does a subscription go without a type or a topic, see test_topics.py, or a search or removal without anything
    # to find.
    and (name, argument.name)
    not in {
        ("adopt_table", "key_columns"),
        ("adopt_table", "on_complete"),
        ("subscribe", "type"),
        *(("find_messages", name) for name in ("filter", "id", "dedup_key", "group_key")),
        ("unsubscribe", "action"),
        ("unbind_topic", "pattern"),
        ("update_message", "body"),  # has no default
    }
]
REQUIRED = [
    pytest.param(name, argument, id=f"{name}-{argument.name}")
    for name in PROCEDURES
    for argument in CONTRACT.procedures[name].arguments
    if not argument.optional
]


@pytest.fixture
def session(lasting_session: Session) -> Session:
    return lasting_session


@dataclass(frozen=True)
class Limit:
    """Values at the limits and just beyond, and the words that the error must have."""

    inside: tuple[Any, ...]
    beyond: tuple[Any, ...]
    told: str


def filled(text: str) -> str:
    """Headers with this text."""
    return f'{{"a":"{text}"}}'


LIMITS = {
    "name": Limit(("x", "é" * 200), ("", "x" * 201), "1 to 200 characters"),
    "body": Limit(("",), ("x" * (16_777_216 + 1),), "16 MiB"),
    "headers": Limit(("{}", filled("x" * 65_528)), (filled("x" * 65_529), filled("é" * 32_765)), "64 KiB"),
    "error": Limit(("", "x" * 5_000), (), ""),
    "size": Limit((1, 10_000), (0, -1, 10_001), "1 to 10,000"),
    "next_size": Limit((0, 10_000), (-1, 10_001), "0 to 10,000"),
    "due": Limit(
        (datetime(1970, 1, 1, tzinfo=UTC), in_time(days=3_649)),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), in_time(days=3_651)),
        "1970 to at most 315,360,000 seconds",
    ),
    "seconds": Limit((0, 315_360_000), (-1, 315_360_001), "0 to 315,360,000"),
    "lease": Limit((1, 86_400), (0, -1, 86_401), "1 to 86,400"),
    "wait_seconds": Limit((0, 3_600), (-1, 3_601), "0 to 3,600"),
    "priority": Limit((-32_768, 32_767), (-32_769, 32_768), "-32,768 to 32,767"),
    "weight": Limit((1, 1_000), (0, -1, 1_001), "1 to 1,000"),
    "attempts": Limit((1, 1_000), (0, -1, 1_001), "1 to 1,000"),
    "limited": Limit((0, 1, 1_000_000), (-1, 1_000_001), "0 to 1,000,000"),
    "period": Limit((1, 86_400), (0, -1, 86_401), "1 to 86,400"),
    "count": Limit((0, 1_000_000_000), (-1, 1_000_000_001), "0 to 1,000,000,000"),
    "busy_ms": Limit((0, 10**10), (-1, 10**10 + 1), "0 to 10,000,000,000"),
    "waited_ms": Limit((0, 10**13), (-1, 10**13 + 1), "0 to 10,000,000,000,000"),
    "handling": Limit(("", "é" * 4_000), ("x" * 4_001,), "4,000 characters"),
    "report_seconds": Limit((0, 3_600), (-1, 3_601), "0 to 3,600"),
    "length": Limit((0, 16_777_216), (-1, 16_777_217), "0 to 16,777,216"),
    "progress": Limit((0, 2**53 - 1), (-1, 2**53), "0 to 9,007,199,254,740,991"),
    "note": Limit(("", "é" * 500), ("x" * 501,), "500 characters"),
    "numbers": Limit((1, 1_000_000_000), (0, -1, 1_000_000_001), "1 to 1,000,000,000"),
}
FLAG = Limit((0, 1), (-1, 2), "0 to 1")


def rows_of(q: Queue, procedure: str) -> list[dict[str, Any]]:
    """A call that returns at least one row, with as few NULLs as the procedure can do."""
    options = {"headers": "{}", "group_key": "g", "source": "me"}
    if procedure in {"get_message", "claim_batch", "claim_wraparound", "take_batch", "claim_any"}:
        q.call("set_queue", ring=int(procedure == "claim_wraparound"))
        q.send(dedup_key="d", **options)
        return q.call(procedure)
    if procedure == "finish_batch":
        q.send()
        q.send(dedup_key="d", **options)
        return q.on(procedure, q.claim_key(), next_size=1)
    if procedure in {"wait_for_message", "wait_for_any"}:
        q.send(run_at=in_an_hour())
    if procedure == "find_queues":
        q.send()
    if procedure == "fail":
        values = required(q, procedure)
        return q.on(procedure, **values, error="busy")
    if procedure == "peek":
        return peek_all_states(q, options)
    if procedure == "pause_all":
        rows = call(q.session, procedure)
        call(q.session, "resume_all")
        return rows
    if procedure in {"list_consumers", "throughput"}:
        q.on("report_consumer", "me", q.name, completed=1, handling='{"id": 1, "since": "2026-11-27T08:30:00Z"}')
        return q.call(procedure)
    if procedure == "list_errors":
        q.send()
        [row] = q.claim()
        q.on("dead_letter", row["id"], row["batch_key"], "broken")
        return q.call(procedure)
    if procedure == "find_messages":
        return [row for seen in peek_all_states(q, options) for row in q.call(procedure, id=seen["id"])]
    if procedure == "list_polling_tables":
        return [row for letter in "ab" for row in adopted(q, letter)]
    if procedure in {"fetch_feed", "list_feeds"}:
        feed = make_feed(q, 1)
        feed.publish()
        feed.advance(0)
        return feed.fetch() if procedure == "fetch_feed" else feed.call(procedure)
    if procedure == "list_subscriptions":
        call(q.session, "subscribe", table := make_watched(q), "I", q.name)
        call(q.session, "subscribe", table, "I", None, "a.b")
        return call(q.session, procedure, table)
    if procedure == "list_schedules":
        call(
            q.session,
            "set_schedule",
            q.name,
            q.name,
            "@every 1",
            "b",
            time_zone="UTC",
            headers="{}",
            priority=0,
            group_key="g",
        )
        time.sleep(1.1)
        q.claim()
        rows = call(q.session, procedure, q.name)
        call(q.session, "drop_schedule", q.name)
        return rows
    if procedure == "list_bindings":
        call(q.session, "bind_topic", "a.b", q.name)
    if procedure == "get_result":
        [row] = (q.archived().send(), q.claim())[1]
        q.on("set_result", row["id"], row["batch_key"], "r")
        q.on("fail", row["id"], row["batch_key"], "busy", 3_600)
        return q.on(procedure, row["id"])
    values = required(q, procedure)
    if procedure in {"get_steps", "list_steps"}:
        key = values["batch_key"] if procedure == "get_steps" else q.claim_key()
        q.on("save_step", values["id"], key, "charge", "v")
    if procedure == "list_cancelled":
        q.on("cancel", q.rows()[0]["id"])
    if procedure == "queue_stats":
        q.send()
        return q.call(procedure)
    return call(q.session, procedure, **values)


def adopted(q: Queue, letter: str) -> list[dict[str, Any]]:
    """A polling table of a shape, as list_polling_tables has it."""
    table = Polled(f"t{uuid.uuid4().hex[:20]}", q.session, q.sql, q.can, SHAPES[letter]).create()
    return q.on("list_polling_tables", table.name)


def peek_all_states(q: Queue, options: dict[str, Any]) -> list[dict[str, Any]]:
    """One message in each state: every column of peek has a value somewhere."""
    q.archived()
    q.send(dedup_key="1", **options)
    q.on("complete_batch", q.claim_key())
    q.send(dedup_key="2", **options)
    [row] = q.claim()
    q.on("dead_letter", row["id"], row["batch_key"], "broken")
    q.send(dedup_key="3", **options)
    q.claim()
    q.send(dedup_key="4", **options)
    return [row for state in "NAEC" for row in q.call("peek", state)]


def python_type(column: Column, can: Capabilities) -> type:
    return {
        "text": str,
        "integer": int,
        "bigint": int,
        "flag": int,
        "number": float,
        "time": datetime,
        "key": can.key,
    }[column.type]


# What a result may leave without any value, because it is said to be NULL.
CLAIMS = ("get_message", "claim_batch", "claim_any", "claim_wraparound", "finish_batch")
EMPTY: dict[str, set[str]] = {name: {"extra"} for name in CLAIMS}
EMPTY |= {"take_batch": {"batch_key", "lease_until", "extra"}, "list_polling_tables": {"order_column"}}


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_result_has_the_columns_and_types_of_the_contract(q: Queue, can: Capabilities, procedure: str) -> None:
    columns = CONTRACT.procedures[procedure].columns
    rows = rows_of(q, procedure)
    if procedure in {"watch_table", "unwatch_table"} and not rows:
        return  # nothing is left to the caller
    if CONTRACT.procedures[procedure].rows == "0":
        assert rows == []
        return
    assert rows
    for row in rows:
        assert list(row) == [column.name for column in columns]
    for column in columns:
        values = [row[column.name] for row in rows if row[column.name] is not None]
        if column.name in EMPTY.get(procedure, ()):
            assert not values
            continue
        assert values, f"{column.name} has no value"
        assert {type(value) for value in values} == {python_type(column, can)}, column.name
        if column.type == "flag":
            assert set(values) <= {0, 1}, column.name
        if column.type == "time":
            assert {value.utcoffset() for value in values} == {timedelta(0)}, column.name


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_trailing_arguments_can_be_left_out(q: Queue, procedure: str) -> None:
    call(q.session, procedure, **required(q, procedure))
    if procedure == "pause_all":
        call(q.session, "resume_all")


@pytest.mark.parametrize(("procedure", "argument"), OPTIONAL)
def test_null_is_the_default(q: Queue, procedure: str, argument: Argument) -> None:
    call(q.session, procedure, **required(q, procedure) | {argument.name: None})


@pytest.mark.parametrize(("procedure", "argument"), REQUIRED)
def test_a_required_argument_is_never_null(q: Queue, procedure: str, argument: Argument) -> None:
    values = required(q, procedure) | {argument.name: None}
    with q.refused("invalid_argument", argument.name):
        call(q.session, procedure, **values)


# What is no name but has the length of one.
SCHEDULED = {
    "cron": Limit(("@daily", "0," * 95 + "0 * * * *"), LIMITS["name"].beyond, ""),
    "time_zone": Limit(("UTC",), LIMITS["name"].beyond, ""),
}
# There they are a JSON object.
PUBLISHED = Limit(
    ("{}", '{"a":"' + "x" * 65_514 + '"}'), ("{" + "x" * 65_535 + "}", "{" + "é" * 32_768 + "}"), "64 KiB"
)


def limit_of(procedure: str, argument: Argument) -> Limit:
    assert argument.limit is not None
    if argument.name in {"cron", "time_zone"}:
        return SCHEDULED[argument.name]
    return PUBLISHED if (procedure, argument.name) == ("publish_with", "headers") else LIMITS[argument.limit]


def values_beside(q: Queue, procedure: str, argument: Argument) -> dict[str, Any]:
    """What a call needs beside this argument: on_conflict goes with a key, and a topic without a type."""
    values = required(q, procedure)
    if (procedure, argument.name) in {("subscribe", "topic"), ("unsubscribe", "topic")}:
        values.pop("type", None)
    return values


def test_every_limit_of_the_contract_is_tested() -> None:
    assert set(LIMITS) == set(CONTRACT.limits) - {"object"}  # see test_options.py


@pytest.mark.parametrize(("procedure", "argument"), LIMITED)
def test_a_value_on_the_edge_of_its_limit_is_taken(q: Queue, procedure: str, argument: Argument) -> None:
    if procedure in POLLING and argument.name in {"name", "late_seconds"}:
        pytest.skip("needs a table that is adopted so, see test_polling_tables.py")
    for value in limit_of(procedure, argument).inside:
        if procedure in {"wait_for_message", "wait_for_any"} and value == 3_600:
            q.send()  # else it would wait
        values = values_beside(q, procedure, argument)
        if (procedure, argument.name) == ("run_schedule", "name"):
            call(q.session, "set_schedule", value, q.name, "@yearly", "b")
        if (procedure, argument.name) == ("claim_wraparound", "type"):
            q.named(value).ring()
        if argument.name == "feed" and "table" not in values:
            # A name that no feed has is good as a name.
            call(q.session, "drop_feed", value)
            call(q.session, "create_feed", value, make_table(q), "id", "sync")
        call(q.session, procedure, **values | {argument.name: value})
        if argument.name == "feed":
            call(q.session, "drop_feed", value)
        if (procedure, argument.name) == ("claim_wraparound", "type"):
            q.named(value).call("set_queue", ring=0)


@pytest.mark.parametrize(("procedure", "argument"), LIMITED)
def test_a_value_beyond_its_limit_is_refused_and_nothing_changes(q: Queue, procedure: str, argument: Argument) -> None:
    limit = limit_of(procedure, argument)
    values = values_beside(q, procedure, argument)
    for value in limit.beyond:
        with q.refused("invalid_argument", f"{argument.name}: ", limit.told):
            call(q.session, procedure, **values | {argument.name: value})


@pytest.mark.parametrize("argument", ["ordered", "notify", "ring", "fair"])
def test_a_flag_is_0_or_1(q: Queue, argument: str) -> None:
    for value in FLAG.inside:
        assert q.call("set_queue", **{argument: value})[0][argument] == value
    for value in FLAG.beyond:
        with q.refused("invalid_argument", argument, FLAG.told):
            q.call("set_queue", **{argument: value})


@pytest.mark.parametrize("value", [-(1 << 63) - 1, 1 << 63, 1 << 100])
def test_a_number_too_big_for_the_database_is_an_invalid_argument(q: Queue, value: int) -> None:
    with q.refused("invalid_argument", "id"):
        q.on("cancel", value)
    with q.refused("invalid_argument", "size"):
        q.claim(value)


def test_a_batch_key_that_is_no_key_is_an_invalid_argument(q: Queue) -> None:
    q.send()
    with q.refused("invalid_argument"):
        q.on("complete_batch", "no key")


# Procedures whose call, with its required arguments only, changes what the database holds.
CHANGING = [
    *("send", "send_message", "send_batch", "get_message", "claim_batch", "claim_wraparound", "take_batch"),
    *(
        "complete",
        "complete_batch",
        "fail",
        "dead_letter",
        "count_attempt",
        "finish_batch",
        "finish_messages",
        "release_batch",
        "cancel",
        "purge",
        "pause",
    ),
    *("send_with", "publish", "publish_with", "claim_any", "update_message", "release_consumer"),
]  # feeds: see test_feeds.py and test_transactions.py


def bound(q: Queue, procedure: str) -> dict[str, Any]:
    """Valid values, and a queue that is bound to the topic."""
    values = required(q, procedure)
    if procedure.startswith("publish"):
        values["topic"] = "x" + q.name.rpartition(".")[2]
        call(q.session, "bind_topic", values["topic"], q.name)
    return values


@pytest.mark.parametrize("procedure", CHANGING)
def test_a_call_joins_the_callers_transaction_and_a_rollback_undoes_it(q: Queue, procedure: str) -> None:
    q.send()
    values = bound(q, procedure)
    before = q.content()
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        call(q.session, procedure, **values)
        raise ZeroDivisionError
    assert q.content() == before
    call(q.session, procedure, **values)
    assert q.content() != before


@pytest.mark.parametrize("procedure", CHANGING)
def test_nothing_is_seen_of_a_call_before_its_transaction_commits(q: Queue, other: Queue, procedure: str) -> None:
    q.send()
    values = bound(q, procedure)
    before = other.content()
    with q.session.transaction():
        call(q.session, procedure, **values)
        assert other.content() == before
    assert other.content() != before


def test_an_error_inside_a_transaction_leaves_the_earlier_calls_to_the_caller(q: Queue) -> None:
    """The caller rolls back, and all changes are undone."""
    with pytest.raises(RuntimeError), q.session.transaction():
        q.send()
        with refused("invalid_argument", "size"):
            q.claim(0)
        raise RuntimeError
    assert q.rows() == []


def test_times_are_utc_in_any_zone_of_the_server(q: Queue) -> None:
    before = datetime.now(UTC)
    q.send()
    created: datetime = q.claim()[0]["created_at"]
    assert timedelta(seconds=-5) < created - before < timedelta(seconds=60)
    assert created.utcoffset() == timedelta(0)


def test_a_name_is_measured_in_characters_not_bytes(q: Queue) -> None:
    name = "😀" * 200
    assert call(q.session, "send", name, "b")
    assert call(q.session, "purge", name, "N")[0]["affected"] == 1
