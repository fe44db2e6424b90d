"""Reading flat JSON objects: the internal procedure of each engine over many texts, and Python's json as the model."""

import json
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

Sql = Callable[..., list[dict[str, Any]]]
# (name, value, kind) of each member; None: the text was refused.
Members = list[tuple[str, str | None, str]] | None


class _Number(str):
    """A number, unchanged."""


class _Pairs(list[tuple[str, Any]]):
    """A JSON object."""


def _no_constant(text: str) -> None:
    raise ValueError(text)


def _is_kept(text: str) -> bool:
    """Whether every engine can keep a text: no NUL, and no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def expected(text: str) -> Members:
    """What read_object makes of a text."""
    try:
        read = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant
        )
    except ValueError:
        return None
    if not isinstance(read, _Pairs) or len({name for name, _ in read}) < len(read):
        return None
    members = []
    for name, value in read:
        if isinstance(value, list) or not _is_kept(name) or not _is_kept(str(value)):
            return None
        if isinstance(value, _Number):
            members.append((name, str(value), "number"))
        elif isinstance(value, str):
            members.append((name, value, "string"))
        elif value is None:
            members.append((name, None, "null"))
        else:
            members.append((name, "true" if value else "false", "boolean"))
    return members


_NAMES = ("id", "error", "dead", "delay", "a", "a ", "A", "", "é", "😀", '"', "\\", "x" * 300, "n\n", "a,b", "{")
_LETTERS = 'ab ,:{}[]"\\/\b\f\n\r\t\x01\x1f\x7f éß€😀\u2028\uffff\U0010ffff0-'
_RAW = ("\\ud83d\\ude00", "\\uD83D", "\\ude00", "\\u0000", "\\u00e9", "\\u005c", "\\u0022", "\\x", "\\u12g4", "\\")
_NUMBERS = ("0", "-0", "17", "-1", "1.5", "1e5", "2E-3", "-0.10e+2", "9223372036854775808", "1" * 40)
_BAD = ("01", "1.", ".5", "+1", "1e", "-", "NaN", "Infinity", "True", "nul", "'x'", "x", "")
_NESTED = ("{}", "[]", "[1]", '{"a":1}', '[{"a":[]}]')
_BLANKS = ("", "", "", "", " ", "\t", "\n", "\r", " \r\n\t ", "\u00a0", "\x0b", "\f")
_EDITS = '{}[]:,"\\ \t\n09eE+-.tfnu\r'


def _string(random: Random, most: int = 9_000) -> str:
    """A JSON string; a few are not valid."""
    length = random.choice((0, 1, 3, 8, 30)) if random.random() < 0.97 else random.choice((900, 3_990, 4_000, 9_000))
    length = min(length, most)
    text = json.dumps("".join(random.choices(_LETTERS, k=length)), ensure_ascii=random.random() < 0.5)
    if random.random() < 0.05:
        at = random.randrange(1, len(text))
        text = text[:at] + random.choice(_RAW) + text[at:]
    return text


def _value(random: Random) -> str:
    kind = random.random()
    if kind < 0.45:
        return _string(random)
    if kind < 0.75:
        return random.choice(_NUMBERS)
    if kind < 0.98:
        return random.choice(("true", "false", "null"))
    return random.choice(_BAD if kind < 0.99 else _NESTED)


def texts(seed: int, count: int) -> list[str]:
    """Texts that are flat JSON objects, or nearly."""
    random = Random(seed)
    made: list[str] = []
    while len(made) < count:
        between = _BLANKS if random.random() < 0.3 else ("",)
        gaps = [random.choice(between) for _ in range(2)]
        members = []
        for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8))):
            name = json.dumps(random.choice(_NAMES), ensure_ascii=random.random() < 0.5)
            name = name if random.random() < 0.7 else _string(random, 900)  # Firebird: up to 1,000
            members.append(f"{name}{random.choice(between)}:{random.choice(between)}{_value(random)}")
        inside = f"{gaps[1]},{random.choice(between)}".join(members)
        text = f"{gaps[0]}{{{random.choice(between)}{inside}{gaps[1]}}}"
        for _ in range(random.choice((0, 0, 0, 0, 0, 1, 2))):
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(("", *_EDITS)) + text[at + random.randrange(2) :]
        if _is_kept(text) and not _overflows(text):
            made.append(text)
    return made


def _overflows(text: str) -> bool:
    """Whether a number is too large for a double: MySQL refuses it."""
    return any(kind == "number" and abs(float(value or 0)) == float("inf") for _, value, kind in expected(text) or ())


def _read_on_postgresql(sql: Sql, some: Sequence[str]) -> Iterable[tuple[int, Any]]:
    sql("""
CREATE OR REPLACE FUNCTION pg_temp.members(p_text text) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT coalesce(json_agg(json_build_array(o.name, o.value, o.kind)), '[]')
        FROM mq_internal.read_object(p_text, 'it') AS o
    );
EXCEPTION WHEN SQLSTATE '50002' THEN
    RETURN NULL;
END $$""")
    query = "SELECT n, pg_temp.members(u.t) AS members FROM unnest(%s::text[]) WITH ORDINALITY AS u (t, n)"
    for row in sql(query, list(some)):
        yield row["n"] - 1, row["members"]


def _read_on_mysql(sql: Sql, some: Sequence[str]) -> Iterable[tuple[int, Any]]:
    sql("DROP PROCEDURE IF EXISTS read_all_objects")
    sql("""
CREATE PROCEDURE read_all_objects(IN p_texts longtext CHARACTER SET utf8mb4)
BEGIN
    DECLARE v_n int DEFAULT 0;
    DECLARE v_text, v_members, v_one longtext CHARACTER SET utf8mb4;
    DECLARE v_all longtext CHARACTER SET utf8mb4 DEFAULT '';
    WHILE v_n < JSON_LENGTH(p_texts) DO
        BEGIN
            DECLARE EXIT HANDLER FOR 50002 SET v_all = CONCAT(v_all, ',null');
            SET v_text = JSON_UNQUOTE(JSON_EXTRACT(p_texts, CONCAT('$[', v_n, ']')));
            CALL imq_read_object(v_text, 'it', 0, v_members);
            SET v_all = CONCAT(v_all, ',', v_members);
        END;
        SET v_n = v_n + 1;
    END WHILE;
    SELECT CONCAT('[', SUBSTRING(v_all, 2), ']') AS members;
END""")
    for first in range(0, len(some), 100):
        [row] = sql("CALL read_all_objects(%s)", json.dumps(some[first : first + 100]))
        for n, members in enumerate(json.loads(row["members"]), first):
            yield n, members if members is None else [member[1:] for member in members]
    sql("DROP PROCEDURE read_all_objects")


def _read_on_firebird(sql: Sql, some: Sequence[str]) -> Iterable[tuple[int, Any]]:
    sql("RECREATE TABLE all_objects (n integer, text blob SUB_TYPE TEXT CHARACTER SET UTF8)")
    for n, text in enumerate(some):
        sql("INSERT INTO all_objects (n, text) VALUES (%s, %s)", n, text)
    rows = sql("""
EXECUTE BLOCK RETURNS (
    n integer, name varchar(1000) CHARACTER SET UTF8, text blob SUB_TYPE TEXT CHARACTER SET UTF8, kind varchar(7)
)
AS
DECLARE v_text blob SUB_TYPE TEXT CHARACTER SET UTF8;
BEGIN
    FOR SELECT n, text FROM all_objects ORDER BY n INTO n, v_text DO
    BEGIN
        kind = 'begin';
        SUSPEND;
        FOR SELECT name, text, kind FROM imq_read_object(:v_text, 'it') INTO name, text, kind DO
            SUSPEND;
        WHEN EXCEPTION mq_50002 DO
        BEGIN
            kind = 'refused';
            SUSPEND;
        END
    END
END""")
    found: dict[int, Any] = {}
    for row in rows:
        if row["kind"] == "begin":
            found[row["n"]] = []
        elif row["kind"] == "refused":
            found[row["n"]] = None
        else:
            found[row["n"]].append((row["name"], row["text"], row["kind"]))
    sql("DROP TABLE all_objects")
    return found.items()


def _read_on_sqlserver(sql: Sql, some: Sequence[str]) -> Iterable[tuple[int, Any]]:
    for first in range(0, len(some), 500):
        rows = sql(
            """
DECLARE @texts TABLE (n int NOT NULL PRIMARY KEY, text nvarchar(max));
DECLARE @members TABLE (n int NOT NULL, name nvarchar(max), value nvarchar(max), kind nvarchar(10));
DECLARE @n int = -1, @text nvarchar(max);
INSERT INTO @texts (n, text) SELECT [key], value FROM OPENJSON(%s);
WHILE @n IS NOT NULL
BEGIN
    SET @n = (SELECT MIN(n) FROM @texts WHERE n > @n);
    SELECT @text = text FROM @texts WHERE n = @n;
    BEGIN TRY
        EXEC mq_internal.require_object @text, N'it';
        INSERT INTO @members (n, name, value, kind)
        SELECT @n, name, value, kind FROM mq_internal.read_object(@text) WHERE @n IS NOT NULL;
    END TRY
    BEGIN CATCH
        IF ERROR_NUMBER() <> 50002
            THROW;
        INSERT INTO @members (n, kind) VALUES (@n, N'refused');
    END CATCH;
END;
SELECT t.n, m.name, m.value, m.kind FROM @texts AS t LEFT JOIN @members AS m ON m.n = t.n ORDER BY t.n""",
            json.dumps(some[first : first + 500]),
        )
        found: dict[int, Any] = {}
        for row in rows:
            members = found.setdefault(row["n"], [])
            if row["kind"] == "refused":
                found[row["n"]] = None
            elif row["kind"]:
                members.append((row["name"], row["value"], row["kind"]))
        yield from ((first + n, members) for n, members in found.items())


READ = {
    "postgresql": _read_on_postgresql,
    "mysql": _read_on_mysql,
    "firebird": _read_on_firebird,
    "sqlserver": _read_on_sqlserver,
}


def read(name: str, sql: Sql, some: Sequence[str]) -> list[Members]:
    """What the engine makes of each text."""
    found = dict(READ[name](sql, some))
    return [
        None if found[n] is None else sorted((name, value, kind) for name, value, kind in found[n])
        for n in range(len(some))
    ]
