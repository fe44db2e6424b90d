"""Options as a JSON object: what every procedure that takes one refuses, and what null, true and times mean."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from rowqueue.install.contract import Argument
from support.queues import CONTRACT, Queue, call, required

TAKING = sorted(name for name, procedure in CONTRACT.procedures.items() if procedure.options)
NUMBERS = {"integer", "bigint", "flag"}


def wrong(procedure: str, text: str, q: Queue) -> dict[str, Any]:
    """Arguments that are right but for the object."""
    entry = CONTRACT.procedures[procedure]
    values = required(q, procedure)
    return {name: value for name, value in values.items() if name not in {o.name for o in entry.options}} | {
        entry.object: text
    }


def first(procedure: str, *types: str) -> Argument:
    return next(option for option in CONTRACT.procedures[procedure].options if option.type in types)


@pytest.mark.parametrize("procedure", TAKING)
@pytest.mark.parametrize(
    "text", ["", "x", "[]", '"x"', "1", '{"a":null', '{"a":null} x', '{"a":{}}', '{"a":[1]}', "{'a':1}"]
)
def test_another_text_than_a_flat_object_is_refused(q: Queue, procedure: str, text: str) -> None:
    entry = CONTRACT.procedures[procedure]
    arguments = wrong(procedure, text.replace("a", entry.options[0].name), q)
    with q.refused("invalid_argument", f"{entry.object}: must be a JSON object"):
        call(q.session, procedure, **arguments)


@pytest.mark.parametrize("procedure", TAKING)
def test_a_name_given_twice_is_refused(q: Queue, procedure: str) -> None:
    name = CONTRACT.procedures[procedure].options[0].name
    arguments = wrong(procedure, f'{{"{name}":null,"{name}":null}}', q)
    with q.refused("invalid_argument", "unique names"):
        call(q.session, procedure, **arguments)


@pytest.mark.parametrize("procedure", TAKING)
def test_an_unknown_name_is_refused_with_the_names_that_are_known(q: Queue, procedure: str) -> None:
    entry = CONTRACT.procedures[procedure]
    for name in ("nosuch", entry.options[0].name.upper(), entry.options[0].name + " ", "a.b", 'a"b', "a;b:c"):
        arguments = wrong(procedure, json.dumps({name: 1}), q)
        with q.refused("invalid_argument", f"{entry.object}: ", "is not known; known are"):
            call(q.session, procedure, **arguments)


@pytest.mark.parametrize(
    "procedure", [name for name in TAKING if {o.type for o in CONTRACT.procedures[name].options} & NUMBERS]
)
def test_a_number_is_a_whole_number(q: Queue, procedure: str) -> None:
    option = first(procedure, "integer", "bigint")
    for value in ("1.5", "1e3", '"1"', "true", '""', "123456789012345678901234567890"):
        arguments = wrong(procedure, f'{{"{option.name}":{value}}}', q)
        with q.refused("invalid_argument", f"{option.name}: must be "):
            call(q.session, procedure, **arguments)


@pytest.mark.parametrize(
    "procedure", [name for name in TAKING if any(o.type == "text" for o in CONTRACT.procedures[name].options)]
)
def test_a_text_is_no_number(q: Queue, procedure: str) -> None:
    option = first(procedure, "text")
    for value in ("1", "true"):
        arguments = wrong(procedure, f'{{"{option.name}":{value}}}', q)
        with q.refused("invalid_argument", f"{option.name}: must be a text"):
            call(q.session, procedure, **arguments)


@pytest.mark.parametrize(
    "text",
    [
        *("2026-11-27T08:30:00", "2026-11-27", "2026-02-30T08:30:00Z", "2026-11-27T25:00:00Z", "27.11.2026 08:30Z"),
        *("now", "", "2026-11-27T08:30:00 Europe/Paris", "2026-11-27T08:30:00+1:00", "٢026-11-27T08:30:00Z"),
    ],
)
def test_a_time_needs_its_zone(q: Queue, text: str) -> None:
    with q.refused("invalid_argument", "run_at: must be a time with its zone"):
        q.call("send_with", "b", json.dumps({"run_at": text}))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2030-01-31T22:30:00Z",
            "2030-01-31 22:30:00Z",
            "2030-02-01T00:30:00+02:00",
            "2030-01-31T13:00:00.000000-09:30",
        ),
        *("2030-01-31T22:30:00.0Z",),
    ],
)
def test_a_time_is_read_in_its_zone(q: Queue, text: str) -> None:
    id = q.call("send_with", "b", json.dumps({"run_at": text}))[0]["id"]
    [row] = q.call("find_messages", id=id)
    assert row["run_at"] == datetime(2030, 1, 31, 22, 30, tzinfo=UTC)


def test_send_with_sets_all_options(q: Queue) -> None:
    options = {"priority": -3, "group_key": "é\n", "dedup_key": '"d"', "max_attempts": 2, "headers": '{"a":"\\""}'}
    [sent] = q.call("send_with", "body", json.dumps(options | {"source": "me", "delay_seconds": 3_600}))
    assert (sent["created"], sent["changed"], sent["state"]) == (1, 0, "N")
    [row] = q.call("find_messages", id=sent["id"])
    assert {name: row[name] for name in ("priority", "group_key", "dedup_key", "headers", "source")} == {
        name: value for name, value in (options | {"source": "me"}).items() if name != "max_attempts"
    }
    again = q.call("send_with", "other", json.dumps({"dedup_key": '"d"', "on_conflict": "replace"}))
    assert again == [{"id": sent["id"], "created": 0, "changed": 1, "state": "N"}]
    assert q.call("find_messages", id=sent["id"])[0]["body"] == "other"


def test_null_sets_the_default_of_a_setting(q: Queue) -> None:
    q.call("set_queue")
    before = q.call("set_queue")
    assert q.call("set_queue", lease_seconds=7, on_complete="archive", fair=1) != before
    assert q.call("set_queue", lease_seconds=None, on_complete=None, fair=None) == before


def test_a_flag_may_be_true_or_false(q: Queue) -> None:
    assert q.call("set_queue", '{"fair":true}')[0]["fair"] == 1
    assert q.call("set_queue", '{ "fair" : false }\n')[0]["fair"] == 0


@pytest.mark.parametrize(
    ("option", "value", "kept"),
    [("max_attempts", "3", 3), ("on_complete", "archive", "archive"), ("ordered", "1", 1), ("max_attempts", None, 25)],
)
def test_set_option_changes_one_setting(q: Queue, option: str, value: str | None, kept: object) -> None:
    q.call("set_queue")
    before = q.call("set_queue", lease_seconds=7)[0]
    assert q.call("set_option", option, value) == [before | {option: kept}]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("nosuch", "1"),
        ("", "1"),
        ('"', "1"),
        ("\\", "1"),
        ("max_attempts", "x"),
        ("max_attempts", '1,"ordered":1'),
        ("on_complete", '"'),
    ],
)
def test_set_option_takes_no_more_than_one_setting(q: Queue, option: str, value: str) -> None:
    q.call("set_queue")
    before = q.call("set_queue")
    with q.refused("invalid_argument"):
        q.call("set_option", option, value)
    assert q.call("set_queue") == before
