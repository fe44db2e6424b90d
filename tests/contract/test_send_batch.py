"""send_batch: many messages in one call, from a list with one body a line."""

import json
import time

import pytest
from support.queues import LONG_AGO, Queue, ids, in_time

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


@pytest.mark.level(3)
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


@pytest.mark.level(3)
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


# ---- options -------------------------------------------------------------------------------------


def test_send_batch_gives_its_options_to_every_message(q: Queue) -> None:
    options = {"priority": -3, "group_key": "g", "headers": '{"a":"b"}', "source": "shop"}
    assert q.count("send_batch", "one\n" + json.dumps("two\nlines"), max_attempts=2, **options) == 2
    rows = q.claim(10)
    assert [row["body"] for row in rows] == ["one", "two\nlines"]
    for row in rows:
        assert {name: row[name] for name in options} == options
        assert (row["max_attempts"], row["dedup_key"], row["attempt"]) == (2, None, 1)
        assert row["run_at"] == row["created_at"]


@pytest.mark.parametrize("options", [None, "{}", '{"priority":null,"run_at":null,"delay_seconds":null,"source":null}'])
def test_send_batch_without_options_uses_the_defaults(q: Queue, options: str | None) -> None:
    assert q.count("send_batch", "a\nb", options) == 2
    for row in q.claim(10):
        assert (row["priority"], row["group_key"], row["headers"], row["max_attempts"]) == (0, None, None, 25)
        assert row["source"].startswith("test/") and row["run_at"] == row["created_at"]


@pytest.mark.parametrize("kind", ["plain", "ordered", "fair", "ring", "limited"])
def test_send_batch_sends_delayed_messages(q: Queue, kind: str) -> None:
    of_kind(q, kind)
    due = in_time(hours=1)
    assert q.count("send_batch", "a\nb", run_at=due, group_key="g") == 2
    assert q.count("send_batch", "c", delay_seconds=3_600, group_key="g") == 1
    assert q.stats()["delayed"] == 3 and q.claim(10) == []
    assert [row["run_at"] for row in q.rows()[:2]] == [due, due]
    q.call("send_batch", "soon\nsoon too", run_at=in_time(seconds=1), group_key="h")
    assert claimed_within_seconds(q, 2) == ["soon", "soon too"]


def of_kind(q: Queue, kind: str) -> Queue:
    settings = {"plain": {}, "limited": {"group_max_active": 1}}.get(kind, {kind: 1})
    q.call("set_queue", **settings)
    return q


def claimed_within_seconds(q: Queue, count: int) -> list[str]:
    found: list[str] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        rows = q.claim(10)
        found += [row["body"] for row in rows]
        if rows:
            q.on("complete_batch", rows[0]["batch_key"])
        time.sleep(0.05)
    return found


def test_send_batch_sends_to_the_past(q: Queue) -> None:
    """Below the mark of claims that went before."""
    q.send_many(3)
    q.on("complete_batch", q.claim_key(2))
    assert q.count("send_batch", "early", run_at=LONG_AGO) == 1
    [row] = q.claim()
    assert (row["body"], row["run_at"]) == ("early", LONG_AGO)


def test_send_batch_with_a_group_keeps_its_order(q: Queue) -> None:
    q.ordered().call("send_batch", "a1\na2", group_key="a")
    q.call("send_batch", "b1\nb2", group_key="b")
    q.send("a3", group_key="a")
    found = []
    while rows := q.claim(10):
        found.append([row["body"] for row in rows])
        q.on("complete_batch", rows[0]["batch_key"])
    assert found == [["a1", "b1"], ["a2", "b2"], ["a3"]]


def test_send_batch_with_a_group_obeys_limits_per_group(q: Queue) -> None:
    q.call("set_queue", group_max_active=2)
    q.call("send_batch", "1\n2\n3", group_key="a")
    q.call("send_batch", "4", group_key="b")
    assert [row["body"] for row in q.claim(10)] == ["1", "2", "4"]


def test_send_batch_with_groups_of_a_fair_queue_takes_turns(q: Queue) -> None:
    q.fair().call("send_batch", "a1\na2\na3", group_key="a")
    q.call("send_batch", "b1", group_key="b")
    q.call("send_batch", "now", priority=-1, group_key="a")
    assert [row["body"] for row in q.claim(3)] == ["now", "a1", "b1"]


def test_send_batch_with_priorities_is_claimed_in_their_order(q: Queue) -> None:
    for priority in (5, -5, 0):
        q.call("send_batch", f"{priority}\n{priority}", priority=priority)
    assert bodies(q) == ["-5", "-5", "0", "0", "5", "5"]


def test_send_batch_to_a_ring_with_options_keeps_the_order_of_ids(q: Queue) -> None:
    q.ring().call("send_batch", "a\nb", priority=9, group_key="g")
    q.call("send_batch", "c", priority=-9)
    assert [row["body"] for row in q.call("claim_wraparound", 10)] == ["a", "b", "c"]


def test_send_batch_with_options_in_a_paused_queue_and_with_an_archive(q: Queue) -> None:
    q.archived().call("pause")
    assert q.count("send_batch", "a", priority=2, headers="{}", source="me") == 1
    assert q.claim() == []
    q.call("resume")
    q.on("complete_batch", q.claim_key())
    [row] = q.call("peek", "C")
    assert (row["priority"], row["headers"], row["source"]) == (2, "{}", "me")


def test_send_batch_with_options_rolled_back_leaves_nothing(q: Queue) -> None:
    q.ordered()
    with q.unchanged(), pytest.raises(ZeroDivisionError), q.session.transaction():
        q.call("send_batch", "a\nb", group_key="g")
        q.call("send_batch", "a\nb", group_key="g", delay_seconds=60)
        raise ZeroDivisionError


@pytest.mark.parametrize("options", [{"dedup_key": "d"}, {"on_conflict": "keep"}, {"dedup_key": None}])
def test_send_batch_has_no_dedup_key(q: Queue, options: dict[str, str | None]) -> None:
    [name] = options
    with q.refused("invalid_argument", f"options: {name} is not known; known are ", "headers", "run_at"):
        q.call("send_batch", "a", json.dumps(options))


def test_send_batch_takes_either_a_time_or_a_delay(q: Queue) -> None:
    with q.refused("invalid_argument", "delay_seconds"):
        q.call("send_batch", "a", run_at=in_time(hours=1), delay_seconds=1)


@pytest.mark.level(3)
def test_send_batch_with_a_delay_counts_its_lines_too(q: Queue) -> None:
    for text in ("", "\n", "x\n" * 10_001):
        with q.refused("invalid_argument", "bodies: ", "1 to 10,000"):
            q.call("send_batch", text, delay_seconds=60, group_key="g")
    q.is_big = True
    assert q.count("send_batch", "x\n" * 10_000, group_key="g", priority=1) == 10_000
