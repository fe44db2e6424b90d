"""send_batch: many messages in one call, from a list with one body a line."""

import json

import pytest
from queues import Queue, ids

BIG = 16_777_216


def bodies(q: Queue) -> list[str]:
    return [row["body"] for row in q.claim(10_000)]


def test_send_batch_sends_one_message_a_line_in_order(q: Queue) -> None:
    assert q.count("send_batch", "one\ntwo\nthree") == 3
    assert bodies(q) == ["one", "two", "three"]


def test_send_batch_messages_are_as_if_sent_one_by_one(q: Queue) -> None:
    q.count("send_batch", "a\nb")
    assert set(q.states().values()) == {"N"}
    [first, second] = q.rows()
    assert first["id"] < second["id"]
    assert (first["attempts"], first["priority"], first["headers"]) == (0, 0, None)
    assert first["source"].startswith("test/")


@pytest.mark.parametrize("text", ["one\ntwo\n", "\none\n\n\ntwo", "one\n\ntwo\n\n"])
def test_send_batch_skips_empty_lines(q: Queue, text: str) -> None:
    assert q.count("send_batch", text) == 2
    assert bodies(q) == ["one", "two"]


def test_send_batch_reads_a_line_that_begins_with_a_quote_as_a_json_string(q: Queue) -> None:
    wanted = ["two\nlines", "", '"quoted"', "tab\tback\\slash", "é😀", "\u2028", " padded "]
    text = "\n".join(json.dumps(body) for body in wanted)
    assert q.count("send_batch", text) == len(wanted)
    assert bodies(q) == wanted


def test_send_batch_reads_all_escapes_of_json(q: Queue) -> None:
    q.count("send_batch", r'"\u00e9 \ud83d\ude00 \/ \b\f\n\r\t \\ \""')
    assert bodies(q) == ['é 😀 / \b\f\n\r\t \\ "']


BLANKS = ["\r", " ", "\t", " \t\r ", "\r\r"]  # that JSON allows behind a value


def test_send_batch_decodes_a_json_string_with_blanks_after_it(q: Queue) -> None:
    """As in a file whose lines end with CR LF."""
    wanted = "two\nlines é \\"
    assert q.count("send_batch", "\n".join(json.dumps(wanted) + blanks for blanks in BLANKS)) == len(BLANKS)
    assert bodies(q) == [wanted] * len(BLANKS)


def test_send_batch_sends_any_other_line_unchanged(q: Queue) -> None:
    wanted = ['{"a": "b\\n"}', "\\n", " leading", "trailing ", "'", "a,b;c", '["x"]', "null", "a\r", "\t", "x\u2028y"]
    assert q.count("send_batch", "\n".join(wanted)) == len(wanted)
    assert bodies(q) == wanted


def test_send_batch_keeps_a_carriage_return_as_part_of_the_body(q: Queue) -> None:
    """Only the line feed ends a line."""
    assert q.count("send_batch", "one\r\ntwo\r\n") == 2
    assert bodies(q) == ["one\r", "two\r"]


def test_send_batch_sends_10000_lines_in_one_call(q: Queue) -> None:
    sent = [f"body {n}" for n in range(10_000)]
    assert q.count("send_batch", "\n".join(sent)) == 10_000
    rows = q.claim(10_000)
    assert [row["body"] for row in rows] == sent
    assert q.one("complete_batch", rows[0]["batch_key"]) == 10_000


@pytest.mark.parametrize("text", ["x\n" * 10_001, '""\n' * 10_001])
def test_send_batch_refuses_10001_lines(q: Queue, text: str) -> None:
    with q.refused("invalid_argument", "bodies: ", "1 to 10,000"):
        q.call("send_batch", text)


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n"])
def test_send_batch_refuses_a_list_without_a_body(q: Queue, text: str) -> None:
    with q.refused("invalid_argument", "bodies: ", "1 to 10,000"):
        q.call("send_batch", text)


BAD_LINES = {
    "no end": '"',
    "rest after the end": '"a" b',
    "unknown escape": r'"\x"',
    "half a pair": r'"\ud83d"',
    "bare tab": '"a\tb"',
    "short escape": r'"\u12"',
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
def test_send_batch_refuses_all_for_one_bad_line_and_names_it(q: Queue, bad: str) -> None:
    with q.refused("invalid_argument", "bodies: ", "line 3"):
        q.call("send_batch", f'good\n"good"\n{bad}\ngood')


def test_send_batch_treats_an_escaped_nul_as_it_treats_a_nul(q: Queue) -> None:
    text = 'good\n"a\\u0000b"'
    if q.can.nul:
        assert q.count("send_batch", text) == 2
        assert bodies(q) == ["good", "a\0b"]
    else:
        with q.refused("invalid_argument", "bodies: ", "line 2"):
            q.call("send_batch", text)


def test_send_batch_names_the_line_of_a_body_that_is_too_big(q: Queue) -> None:
    with q.refused("invalid_argument", "bodies: ", "line 2", "16 MiB"):
        q.call("send_batch", "small\n" + "x" * (BIG + 1) + "\nsmall")


@pytest.mark.one_engine
@pytest.mark.heavy("firebird")
def test_send_batch_measures_the_body_and_not_its_json(q: Queue) -> None:
    """6 bytes a character on the wire, 2 in the body."""
    assert q.count("send_batch", '"' + "\\u00e9" * 3_000_000 + '"') == 1
    assert bodies(q) == ["é" * 3_000_000]


def test_send_batch_to_an_ordered_queue_keeps_the_order(q: Queue) -> None:
    sent = q.ordered().send_many(5)
    claimed = []
    while rows := q.claim(5):
        claimed += ids(rows)
        assert len(rows) == 1
        q.on("complete_batch", rows[0]["batch_key"])
    assert claimed == sent
