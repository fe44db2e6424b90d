"""Hostile input: every text comes back byte for byte or is refused with the documented error."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Session
from support.outcomes import dead_letter
from support.queues import Queue, call, ids, refused

BIG = 16_777_216
# Texts that have a meaning to a database, a driver or a shell; here they must have none.
TEXTS = {
    "single quote": "it's",
    "doubled quotes": "''\"\"",
    "backslashes": "\\' \\n \\\\ \\x00 \\u0041",
    "statement": "x'); DROP TABLE message; --",
    "comment": "/* ' */ -- #",
    "dollar quotes": "$$ $a$ $1 ${x}",
    "placeholders": "%s %(a)s %% ? :a @a {0} {a}",
    "like": "%_[a-z]*",
    "null word": "NULL",
    "json": '{"a": [1, "b\\n"], "a": 1.0e5}',
    "xml": "<a b='c'>&amp;&#0;</a>",
    "backslashes before line ends": "C:\\out\\\nx\\\r\ny\\\\\nz",
    "line ends": "a\nb\r\nc\rd\u2028e\u2029f\x85g",
    "leading and trailing blanks": " \t a \n ",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f",
    "two-byte characters": "é ß ø đ",
    "four-byte characters": "😀 𝄞 𠜎",
    "joined emoji": "👩‍👩‍👧‍👦 🏳️‍🌈",
    "combining characters": "e\u0301 a\u0308 \u200b\u200d\ufeff",
    "right to left": "\u202e abc שלום",
    "not characters": "\ufffe\uffff\ufdd0",
    "same but for case and accents": "ÀàAa ẞßss I\u0131i",
}
hostile = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@pytest.fixture
def session(lasting_session: Session) -> Session:
    return lasting_session


def skip_blank_endings(q: Queue, name: str) -> None:
    """If a name cannot end with a blank, check that it is refused; nothing else is tested then."""
    if name.endswith(" ") and not q.can.blank_endings:
        for procedure, values in (
            ("send_message", {"body": "b", "group_key": name}),
            ("claim_batch", {"consumer": name}),
        ):
            with q.refused("invalid_argument", list(values)[-1], "blank"):
                q.call(procedure, **values)
        with q.refused("invalid_argument", "type", "blank"):
            call(q.session, "send", name, "b")
        pytest.skip("a name cannot end with a blank here")


@hostile
def test_every_way_to_claim_returns_a_body_byte_for_byte(q: Queue, text: str) -> None:
    q.call("send", text)
    q.call("send_message", text)
    q.call("send_batch", json.dumps(text))
    q.call("send_batch", json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f"))
    assert [row["body"] for row in q.call("peek")] == [text] * 4
    [first] = q.claim()
    rows = q.on("finish_batch", first["batch_key"], None, 1)
    taken = q.call("take_batch", 10)
    assert [row["body"] for row in (first, *rows, *taken)] == [text] * 4


@hostile
def test_every_name_and_key_is_stored_unchanged(q: Queue, connect: Callable[..., Session], text: str) -> None:
    skip_blank_endings(q, text)
    hostile_queue = q.named(f"{q.name} {text}")
    headers = json.dumps({text: text}, ensure_ascii=False)
    [sent] = hostile_queue.call("send_message", "b", None, None, text, text, None, headers, text)
    [again] = hostile_queue.call("send_message", "c", dedup_key=text)
    assert again == {"id": sent["id"], "created": 0, "changed": 0, "state": "N"}
    [row] = hostile_queue.call("claim_batch", 10, text)
    assert (row["group_key"], row["dedup_key"], row["headers"], row["source"]) == (text, text, headers, text)
    assert row["type"] == hostile_queue.name
    [active] = hostile_queue.call("peek", "A")
    assert active["consumer"] == text
    assert hostile_queue.one("dead_letter", row["id"], row["batch_key"], text) == "E"
    [dead] = hostile_queue.call("peek", "E")
    assert dead["error"] == text


@hostile
def test_every_procedure_takes_a_hostile_type(q: Queue, text: str) -> None:
    skip_blank_endings(q, text)
    each = q.named(f"{q.name} {text}")
    assert each.call("set_queue", on_complete="archive", ring=1)[0]["type"] == each.name
    assert [each.count("pause"), each.count("resume")] == [1, 1]
    id = each.call("send", "b")[0]["id"]
    assert each.call("wait_for_message")[0]["ready"] == 1
    assert ids(each.call("claim_wraparound", 1, text)) == [id]
    assert each.count("rescue_expired") == 0
    assert each.call("queue_stats")[0]["active"] == 1
    assert each.name in {row["type"] for row in call(q.session, "queue_stats")}
    assert call(q.session, "bind_topic", topic := "x" + q.name.rpartition(".")[2], each.name) == [{"created": 1}]
    assert call(q.session, "publish", topic, text) == [{"affected": 1}]
    assert call(q.session, "unbind_topic", None, each.name) == [{"affected": 1}]
    assert q.one("cancel", each.rows()[-1]["id"]) == 1
    assert each.count("redrive_all") == each.count("purge", "N") == each.count("purge", "C") == 0
    assert each.states() == {id: "A"}


@hostile
def test_an_ordered_queue_distinguishes_hostile_groups(q: Queue, text: str) -> None:
    q.ordered()
    groups = [text, text + " ", text + "'", text.swapcase() + "x", None]
    if not q.can.blank_endings:
        groups = [group for group in groups if not (group or "").endswith(" ")]
    sent = [q.send(group_key=group) for group in groups * 2]
    assert sorted(ids(q.claim(10))) == sent[: len(groups)]


@hostile
def test_a_replaced_body_and_a_result_come_back_byte_for_byte(q: Queue, text: str) -> None:
    q.archived().send("first", dedup_key="d")
    headers = json.dumps({text: text}, ensure_ascii=False)
    [row] = q.call("send_message", text, dedup_key="d", headers=headers, on_conflict="replace")
    assert row["changed"] == 1
    [row] = q.claim()
    assert (row["body"], row["headers"]) == (text, headers)
    q.on("set_result", row["id"], row["batch_key"], text)
    assert q.on("get_result", row["id"]) == [{"state": "A", "result": text, "error": None}]
    q.on("complete_batch", row["batch_key"])
    assert q.on("get_result", row["id"]) == [{"state": "C", "result": text, "error": None}]


@hostile
def test_a_list_of_failures_keeps_a_hostile_error(q: Queue, text: str) -> None:
    id = q.send()
    q.on("finish_batch", q.claim_key(), dead_letter(id, text))
    assert q.row(id)["error"] == text


def big(filler: str) -> str:
    """A body of exactly the largest size."""
    return filler * (BIG // len(filler.encode()))


@pytest.mark.level(3)
@pytest.mark.parametrize("filler", ["x", "é", "😀", "'", "\\", "\n"])
def test_a_body_of_16_mib_comes_back_byte_for_byte(q: Queue, filler: str) -> None:
    body = big(filler)
    assert len(body.encode()) == BIG
    q.archived().call("send", body)
    [row] = q.claim()
    assert row["body"] == body
    q.on("set_result", row["id"], row["batch_key"], body)
    q.on("complete_batch", row["batch_key"])
    assert q.on("get_result", row["id"])[0]["result"] == body
    q.call("purge", "C")


@pytest.mark.level(1)
def test_send_message_and_send_batch_take_16_mib_too(q: Queue) -> None:
    body = big("x")
    q.send(body)
    q.call("send_batch", body)
    q.call("send_batch", json.dumps(body))
    for _ in range(3):
        [row] = q.claim()
        assert row["body"] == body
        q.on("complete_batch", row["batch_key"])


@pytest.mark.level(1)
@pytest.mark.parametrize("body", [big("x") + "x", big("é") + "x", big("😀")[:-1] + "éxxx"], ids=["1", "2", "4"])
def test_a_body_of_16_mib_and_a_byte_is_refused_by_every_way(q: Queue, body: str) -> None:
    assert len(body.encode()) == BIG + 1
    for procedure, argument in (("send", "body"), ("send_message", "body"), ("send_batch", "bodies")):
        with q.refused("invalid_argument", f"{argument}: ", "16 MiB"):
            q.call(procedure, body)


NUL = [
    ("send", {"body": "a\0b"}, "body"),
    ("send_message", {"body": "b", "headers": '{"a":"\0"}'}, "headers"),
    ("send_message", {"body": "b", "group_key": "a\0"}, "group_key"),
    ("send_message", {"body": "b", "dedup_key": "\0a"}, "dedup_key"),
    ("send_message", {"body": "b", "source": "a\0"}, "source"),
    ("send_message", {"body": "b", "on_conflict": "keep\0"}, "on_conflict"),
    ("send_batch", {"bodies": "a\n\0\nb"}, "bodies"),
    ("claim_batch", {"consumer": "\0"}, "consumer"),
    ("purge", {"state": "N\0"}, "state"),
]


@pytest.mark.parametrize(("procedure", "values", "argument"), NUL, ids=[f"{p}-{a}" for p, _, a in NUL])
def test_the_character_nul_is_refused(q: Queue, procedure: str, values: dict[str, str], argument: str) -> None:
    if q.can.nul:
        pytest.skip("this database holds the character NUL")
    q.send()
    with q.refused("invalid_argument", f"{argument}: ", "NUL"):
        q.call(procedure, **values)


def test_the_character_nul_in_a_type_is_refused(q: Queue) -> None:
    if q.can.nul:
        pytest.skip("this database holds the character NUL")
    for procedure in ("send_batch", "claim_batch", "queue_stats", "pause"):
        with refused("invalid_argument", "type: ", "NUL"):
            call(q.session, procedure, q.name + "\0", *(["b"] if procedure == "send_batch" else []))


def test_half_a_surrogate_pair_is_refused(q: Queue) -> None:
    with q.refused("invalid_argument", "body: "):
        q.call("send", "a\ud83d")
    with q.refused("invalid_argument", "bodies: "):
        q.call("send_batch", "a\n\ude00")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**200, "x"])
def test_a_number_that_no_driver_can_send_is_refused(q: Queue, number: Any) -> None:
    with q.refused("invalid_argument"):
        q.call("claim_batch", number)


def test_a_refused_call_leaves_the_session_usable(q: Queue) -> None:
    for bad in ("\0", "\ud83d", "x" * (BIG + 1)):
        with q.refused("invalid_argument"):
            q.call("send", bad)
    id = q.send()
    assert q.states() == {id: "N"}


@pytest.mark.parametrize("name", ["x" * 200, "é" * 200, "😀" * 200, "\n" * 200, "'" * 200])
def test_names_of_200_characters_are_taken_whole(q: Queue, name: str) -> None:
    """All kinds of names at once, each with the greatest length, and unique to this test."""
    name = name[:-16] + q.name[-16:]
    [sent] = q.call("send_message", "b", group_key=name, dedup_key=name, source=name)
    assert q.call("send_message", "b", dedup_key=name[:-1] + "y")[0]["created"] == 1
    [row] = q.claim(1, consumer=name)
    assert (row["id"], row["group_key"], row["dedup_key"], row["source"]) == (sent["id"], name, name, name)
    assert q.row(sent["id"])["consumer"] == name
    each = q.named(name).ring()
    [of_name] = each.call("send", "b")
    assert each.call("wait_for_message")[0]["ready"] == 1
    assert ids(each.call("claim_wraparound", 10, name)) == [of_name["id"]]
    each.on("complete_batch", each.rows()[0]["batch_key"])


def test_an_application_name_can_be_anything(q: Queue, connect: Callable[..., Session]) -> None:
    """It becomes the source and the consumer."""
    for name in ("x" * 300, "it's -- ; é 😀", ""):
        each = q.by(connect(name))
        id = each.call("send", "b")[0]["id"]
        assert each.claim()[0]["source"]
        assert 1 <= len(each.row(id)["consumer"]) <= 200
