"""The options of send_with that some engines read without their general parser, against Python's json."""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from objects import expected
from rowqueue.databases import Database

pytestmark = pytest.mark.product("postgresql", "mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]
RANGES = {"priority": (-32_768, 32_767), "max_attempts": (1, 1_000), "delay_seconds": (0, 315_360_000)}
SINGLE = ("dedup_key", "on_conflict")
NAMES = (*RANGES, *SINGLE, "group_key", "headers", "source")
OTHERS = (
    "nosuch",
    "Priority",
    "priority ",
    "",
    'pri"',
    "priorit\\u0079",
    "header\\",
    'sou\\"rce',
    "group\\\\_key",
    "é",
)
TEXTS = (
    "",
    "a",
    "5",
    "null",
    'q"q',
    "\\",
    '\\"',
    '":1',
    '"priority":1',
    ": 1e3",
    "a\tb",
    "é😀",
    "\\u0041",
    '{"a":"b"}',
)
TIMES = ("2030-11-27T08:30:00Z", "2030-11-27 08:30:00.123456+05:30", "2030-11-27T08:30:00", "2030-02-30T08:30Z", "now")
NUMBERS = ("0", "-0", "5", "-32768", "32767", "32768", "999999999", "1000000000", "1e3", "1E0", "1.5", "01", "9" * 20)
RAW = ("true", "false", "null", "{}", "[]", "[1]", '{"priority":1}', '"\\ud800"', '"\\u0000"', '"\\x"', '"a', "")
EDITS = '{}[]:,"\\ \t\n9eE.-'
# What counting quotes is about.
TWICE = (
    '{"priority":1,"priority":1}',
    '{"priority":1,"priority":1,"group_key":"\\\\","source":"\\\\"}',
    '{"priority":1,"priority":1,"group_key":"\\"","source":"\\\\\\""}',
    '{"source":"a","source":5}',
    '{"group_key":1,"group_key":2}',
    '{"source":"\\u0022","source":"a"}',
)


def _value(random: Random, name: str) -> str:
    kind = random.random()
    if kind < 0.06:
        return random.choice(RAW)
    if (kind < 0.9 and name in RANGES) or kind < 0.12:
        return random.choice(NUMBERS)
    return json.dumps(random.choice(TIMES if name == "run_at" else TEXTS), ensure_ascii=random.random() < 0.5)


def _object(random: Random, names: tuple[str, ...]) -> str:
    members = []
    for name in random.choices(names, k=random.choice((0, 1, 1, 2, 3))):
        name = random.choice(OTHERS) if random.random() < 0.05 else name
        between = random.choice(("", "", " ", "\t\n", "\u00a0" if random.random() < 0.1 else ""))
        members.append(f'"{name}"{between}:{random.choice(("", " "))}{_value(random, name)}')
    text = "{" + random.choice((",", ", ")).join(members) + "}"
    if random.random() < 0.15:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(EDITS) + text[at + random.randrange(2) :]
    return text


def _model(text: str, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The options that a text gives; None: it is refused."""
    members = expected(text)
    options: dict[str, Any] = {}
    for name, value, kind in [("", None, "")] if members is None else members:
        if name not in names:
            return None
        if kind == "null":
            continue
        if name in RANGES:
            if kind != "number" or not re.fullmatch("-?[0-9]{1,19}", value or ""):
                return None
            options[name] = int(value or "")
        elif kind != "string" or (name == "run_at" and value not in TIMES[:2]):
            return None
        else:
            options[name] = value
    return _in_range(options)


def _in_range(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """send_options may leave the ranges to require_message."""
    if options is None or any(not low <= options.get(name, low) <= high for name, (low, high) in RANGES.items()):
        return None
    return options


def _read_on_postgresql(sql: Sql, texts: list[str], batch: bool) -> list[Any]:
    sql("""
CREATE OR REPLACE FUNCTION pg_temp.options(p_text text, p_batch boolean) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    v_set jsonb;
BEGIN
    v_set := mq_internal.send_options(p_text, p_batch);
    RETURN jsonb_strip_nulls(v_set || jsonb_build_object('priority', (v_set ->> 'priority')::bigint,
        'max_attempts', (v_set ->> 'max_attempts')::bigint, 'delay_seconds', (v_set ->> 'delay_seconds')::bigint));
EXCEPTION WHEN SQLSTATE '50002' THEN
    RETURN NULL;
END $$""")
    query = "SELECT pg_temp.options(t, %s) AS found FROM unnest(%s::text[]) WITH ORDINALITY AS t (t, n) ORDER BY n"
    return [row["found"] for row in sql(query, batch, texts)]


def _read_on_mysql(sql: Sql, texts: list[str], batch: bool) -> list[Any]:
    names = ("priority", "group_key", "dedup_key", "max_attempts", "headers", "source", "delay_seconds", "on_conflict")
    declared = "".join(
        f"DECLARE v_{name} {'bigint' if name in RANGES else 'longtext CHARACTER SET utf8mb4'};\n" for name in names
    )
    # MariaDB's JSON_OBJECT takes a text that looks like JSON for JSON, unless it is an expression of another kind.
    pairs = ", ".join(f"'{name}', {f'v_{name}' if name in RANGES else f'HEX(v_{name})'}" for name in names)
    sql("DROP PROCEDURE IF EXISTS read_all_options")
    sql(f"""
CREATE PROCEDURE read_all_options(IN p_texts longtext CHARACTER SET utf8mb4, IN p_batch tinyint)
BEGIN
    DECLARE v_n int DEFAULT 0;
    DECLARE v_run_at datetime(6);
    DECLARE v_text longtext CHARACTER SET utf8mb4;
    DECLARE v_all longtext CHARACTER SET utf8mb4 DEFAULT '';
    {declared}
    WHILE v_n < JSON_LENGTH(p_texts) DO
        BEGIN
            DECLARE EXIT HANDLER FOR 50002 SET v_all = CONCAT(v_all, ',null');
            SET v_text = JSON_UNQUOTE(JSON_EXTRACT(p_texts, CONCAT('$[', v_n, ']')));
            CALL imq_send_options(v_text, p_batch, v_run_at, {", ".join(f"v_{name}" for name in names)});
            SET v_all = CONCAT(v_all, ',', JSON_OBJECT({pairs}));
        END;
        SET v_n = v_n + 1;
    END WHILE;
    SELECT CONCAT('[', SUBSTRING(v_all, 2), ']') AS found;
END""")
    found: list[Any] = []
    for first in range(0, len(texts), 200):
        [row] = sql("CALL read_all_options(%s, %s)", json.dumps(texts[first : first + 200]), int(batch))
        for options in json.loads(row["found"]):
            found.append(
                options
                and {
                    name: int(value) if name in RANGES else bytes.fromhex(value).decode()
                    for name, value in options.items()
                    if value is not None
                }
            )
    sql("DROP PROCEDURE read_all_options")
    return found


@pytest.mark.level(3)
@pytest.mark.parametrize("batch", [False, True])
def test_options_are_read_as_python_reads_them(database: Database, sql: Sql, batch: bool) -> None:
    """A mutation of send_options that drops one of the conditions of a plain object fails here."""
    postgresql = database.name == "postgresql"
    known = (*(name for name in NAMES if not (batch and name in SINGLE)), *(["run_at"] if postgresql else []))
    random = Random(1)
    names = (*NAMES, "run_at") if postgresql else NAMES
    texts = [*TWICE, *(_object(random, names) for _ in range(4_000 if postgresql else 1_200))]
    found = (_read_on_postgresql if postgresql else _read_on_mysql)(sql, texts, batch)
    model = [_model(text, known) for text in texts]
    wrong = [
        (text, options, should)
        for text, options, should in zip(texts, found, model, strict=True)
        if _in_range(options) != should
    ]
    assert wrong == []
    assert len(texts) / 5 < sum(options is not None for options in model) < len(texts) * 4 / 5
