"""Headers are a JSON object with unique names, the same check in send_message, publish and set_schedule."""

import json

import pytest
from support.queues import Queue

GOOD = [
    "{}",
    "{ \t\r\n}",
    '{"a":1}',
    '{"a":{"a":{"a":[]}},"b":[{"c":1},{"c":2}],"A":true,"a ":false}',
    '{"a":"{,}[]:\\\\\\"","b":"\\"a\\":1,\\"a\\":2"}',
    '{"":"", "é😀" : null, "n":[0, -1.5e+10, 2E3, 0.1]}',
    '{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tenant":"\\u00e9\\/\\n"}',
    json.dumps({f"n{number}": "x" * 100 for number in range(500)}),
    '{"a":"' + "x" * 20_000 + '"}',
    '{"a":' + "[" * 25 + "]" * 25 + "}",
]
BAD = [
    *("", " ", "x", "null", "1", '"{}"', "[]", "[{}]", "{", "}", "{}{}", "{} ", " {}", "\t{}", "{}x"),
    *('{"a"}', '{"a":}', '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}', '{"a" 1}', "{a:1}", "{'a':1}", "{1:2}"),
    *('{"a":tru}', '{"a":True}', '{"a":01}', '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":1e}', '{"a":-}', '{"a":NaN}'),
    *('{"a":"x}', '{"a":"\\x"}', '{"a":"\\u12g4"}', '{"a":"line\nfeed"}', '{"a":[1,]}', '{"a":[1}', '{"a":{]}'),
    *('{"a":1]', '{"a":1}}', '{"a":{}}}', '{"a":[1 2]}', '{"a":[,1]}', '{"a"::1}', '{"a":1}{"b":2}'),
    *('{"a":1,"a":2}', '{"a":1,"b":{"a":1},"a":{}}', '{"é":"\\\\","é":"\\""}'),
]


@pytest.mark.parametrize("procedure", ["send_message", "publish_with", "set_schedule"])
def test_headers_are_kept_as_they_were_sent(q: Queue, procedure: str) -> None:
    for headers in GOOD:
        if procedure == "send_message":
            q.call("send_message", "b", headers=headers)
        elif procedure == "publish_with":
            q.on("publish_with", q.name, "b", headers=headers)
        else:
            q.on("set_schedule", q.name, q.name, "0 3 * * *", "b", headers=headers)
            [row] = q.on("list_schedules", q.name)
            assert row["headers"] == headers
    if procedure == "send_message":
        assert [row["headers"] for row in q.rows()] == GOOD
    if procedure == "set_schedule":
        q.on("drop_schedule", q.name)


@pytest.mark.parametrize("procedure", ["send_message", "publish_with", "set_schedule"])
def test_headers_that_are_no_object_with_unique_names_are_refused(q: Queue, procedure: str) -> None:
    with q.unchanged():
        for headers in BAD:
            with q.refused("invalid_argument", "headers: must be a JSON object with unique names"):
                if procedure == "send_message":
                    q.call("send_message", "b", headers=headers)
                elif procedure == "publish_with":
                    q.on("publish_with", q.name, "b", headers=headers)
                else:
                    q.on("set_schedule", q.name, q.name, "0 3 * * *", "b", headers=headers)
