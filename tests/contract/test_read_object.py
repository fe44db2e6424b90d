"""read_object, the internal parser of flat JSON objects, against Python's json."""

from collections.abc import Callable
from typing import Any

import pytest
from objects import expected, read, texts
from rowqueue.databases import Database

Sql = Callable[..., list[dict[str, Any]]]

GOOD = [
    "{}",
    " {\t\r\n} ",
    '{"id":17,"error":"refused"}',
    '{"id":18,"error":"busy","retry_after_seconds":30}',
    '{"A":1,"a":2,"a ":3," a":4,"":5}',
    '{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00é😀", "\\u0062":"\\u005c\\u0022", "c":"\x7f\u2028\ufeff"}',
    '{"a":0,"b":-0,"c":1.50,"d":1e5,"e":-1.5E-10,"f":123456789012345678901234567890}',
    '{"t":true,"f":false,"n":null,"s":"null","e":""}',
    '{"a":"' + "é" * 5_000 + '"}',
    '{"a":"' + '\\"x' * 5_000 + '"}',
    '{"a":"' + "x" * 300_000 + '","b":"' + "\\ud83d\\ude00" * 4_000 + '"}',
]
BAD = [
    *("", " ", "x", "null", "1", '"{}"', "[]", "[{}]", "{", "}", "{}{}", "{}x", "{},", '{"a":1}}', '{"a":1}{"b":2}'),
    *('{"a"}', '{"a":}', '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}', '{"a" 1}', "{a:1}", "{'a':1}", "{1:2}", '{"a"::1}'),
    *('{"a":tru}', '{"a":True}', '{"a":01}', '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":1e}', '{"a":-}', '{"a":NaN}'),
    *('{"a":"x}', '{"a":"\\x"}', '{"a":"\\U0041"}', '{"a":"\\u12g4"}'),
    *('{"a":"line\nfeed"}', '{"a":"\t"}', '{"a":"\x01"}'),
    *('{"a":"\\ud800"}', '{"a":"\\udc00\\ud800"}', '{"a":"\\ud800\\u0041"}', '{"a":"\\u0000"}', '{"\\u0000":1}'),
    *('{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '{"":1,"":1}', '{"é":1,"\\u00e9":2}'),
    *('{"a":{}}', '{"a":[]}', '{"a":[1]}', '{"a":{"b":1}}', '{"a":1,"b":{":x":1,":1,":2}}', '{"a":{":":1}}'),
    *("é", '{"a":é}', '\u00a0{"a":1}', '{"a":1}\x0b', '{"a"\f:1}', '\ufeff{"a":1}'),
]


def _check(database: Database, sql: Sql, some: list[str]) -> None:
    found = read(database.name, sql, some)
    for text, members in zip(some, found, strict=True):
        model = expected(text)
        assert members == (None if model is None else sorted(model)), text


def test_the_members_of_an_object_are_read_as_python_reads_them(database: Database, sql: Sql) -> None:
    assert None not in map(expected, GOOD)
    _check(database, sql, GOOD)


def test_other_texts_than_flat_objects_with_unique_names_are_refused(database: Database, sql: Sql) -> None:
    assert all(expected(text) is None for text in BAD)
    _check(database, sql, BAD)


def test_objects_of_every_kind_are_read_as_python_reads_them(database: Database, sql: Sql) -> None:
    _check(database, sql, texts(1, 500))


@pytest.mark.level(3)
def test_ten_thousand_objects_are_read_as_python_reads_them(database: Database, sql: Sql) -> None:
    _check(database, sql, texts(2, 10_000))
