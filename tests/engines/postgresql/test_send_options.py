"""send_options, which passes plain objects by read_options: the same values, and the same errors."""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from rowqueue.databases import Database

pytestmark = [pytest.mark.product("postgresql"), pytest.mark.one_version]

NAMES = ("run_at", "priority", "group_key", "dedup_key", "max_attempts", "headers", "source", "delay_seconds", "on_conflict")
OTHERS = ("nosuch", "Priority", "priority ", "", 'pri"', "priorit\\u0079", "header\\", "\\u0000", "é")
TEXTS = ("", "a", "5", "null", 'q"q', "\\", '\\"', '":1', '"priority":1', ": 1e3", "tab\there", "é😀", "\\u0041", "0e0", '{"a":"b"}')
TIMES = ("2030-11-27T08:30:00Z", "2030-11-27 08:30:00.123456+05:30", "2030-11-27T08:30:00", "2030-02-30T08:30:00Z", "now")
NUMBERS = ("0", "-0", "5", "-32768", "32767", "32768", "999999999", "1000000000", "1e3", "1E0", "1.0", "1.5", "01", "9" * 20)
RAW = ("true", "false", "null", "{}", "[]", "[1]", '{"priority":1}', '"\\ud800"', '"\\u0000"', '"\\x"', '"a', "")
EDITS = '{}[]:,"\\ \t\n9eE.-'


def _value(random: Random, name: str) -> str:
    kind = random.random()
    if kind < 0.06:
        return random.choice(RAW)
    if kind < 0.9 and name in ("priority", "max_attempts", "delay_seconds") or kind < 0.12:
        return random.choice(NUMBERS)
    text = random.choice(TIMES if name == "run_at" else TEXTS)
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def _object(random: Random) -> str:
    members = []
    for name in random.choices(NAMES, k=random.choice((0, 1, 1, 2, 3))):
        if random.random() < 0.05:
            name = random.choice(OTHERS)
        between = random.choice(("", "", " ", "\t\n", "\u00a0" if random.random() < 0.1 else ""))
        members.append(f'"{name}"{between}:{random.choice(("", " "))}{_value(random, name)}')
    text = "{" + random.choice((",", ", ")).join(members) + "}"
    if random.random() < 0.15:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(EDITS) + text[at + random.randrange(2) :]
    return text


@pytest.mark.parametrize("batch", [False, True])
def test_plain_objects_are_read_as_all_others(database: Database, sql: Callable[..., list[dict[str, Any]]], batch: bool) -> None:
    """A mutation of send_options that drops one of its conditions fails here."""
    random = Random(1)
    known = {name: "text" for name in NAMES if not (batch and name in ("dedup_key", "on_conflict"))} | {
        "run_at": "time",
        "priority": [-32768, 32767],
        "max_attempts": [1, 1000],
        "delay_seconds": [0, 315360000],
    }
    sql("""
CREATE OR REPLACE FUNCTION pg_temp.answer(p_query text, p_text text, p_batch boolean, p_known jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_set jsonb;
    v_priority bigint;
BEGIN
    EXECUTE p_query INTO v_set USING p_text, p_batch, p_known;
    -- send_message checks ranges, with the same errors.
    PERFORM mq_internal.require_range('priority', (v_set ->> 'priority')::bigint, -32768, 32767)
    WHERE v_set ->> 'priority' <> '';
    PERFORM mq_internal.require_range('max_attempts', (v_set ->> 'max_attempts')::bigint, 1, 1000)
    WHERE v_set ->> 'max_attempts' <> '';
    PERFORM mq_internal.require_range('delay_seconds', (v_set ->> 'delay_seconds')::bigint, 0, 315360000)
    WHERE v_set ->> 'delay_seconds' <> '';
    RETURN jsonb_strip_nulls(v_set);
EXCEPTION WHEN SQLSTATE '50002' THEN
    RETURN SQLERRM;
END $$""")
    texts = [text for _ in range(5_000) if "\0" not in (text := _object(random))]
    rows = sql(
        """
SELECT t AS text, pg_temp.answer('SELECT mq_internal.send_options($1, $2)', t, %s, %s) AS found,
    pg_temp.answer('SELECT mq_internal.read_options($1, ''options'', $3)', t, %s, %s) AS expected
FROM unnest(%s::text[]) AS t""",
        *(batch, json.dumps(known), batch, json.dumps(known), texts),
    )

    def kind(answer: str) -> str:  # of two numbers outside of their ranges, either may be named
        return "range" if re.search(r": must be [\d,-]+ to ", answer) else answer

    assert [row for row in rows if kind(row["found"]) != kind(row["expected"])] == []
    assert 1_000 < sum(row["expected"].startswith("{") for row in rows) < len(texts) - 1_000
