"""finish_batch: complete a batch except for the listed failures, and claim the next one."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from queues import NO_KEY, Queue, ids


def test_finish_batch_completes_all_when_none_failed(q: Queue) -> None:
    sent = q.send_many(3)
    assert q.on("finish_batch", q.claim_key(2)) == []
    assert q.states() == {sent[2]: "N"}


@pytest.mark.parametrize("failures", [None, "", "\n\n"])
def test_finish_batch_takes_an_empty_list(q: Queue, failures: str | None) -> None:
    q.send_many(2)
    assert q.on("finish_batch", q.claim_key(2), failures) == []
    assert q.rows() == []


def test_finish_batch_claims_the_next_batch_for_the_same_reader_and_lease(q: Queue) -> None:
    sent = q.send_many(5)
    key = q.claim_key(2, reader="worker-7", lease_seconds=90)
    rows = q.on("finish_batch", key, None, 2)
    assert ids(rows) == sent[2:4]
    [new] = {row["batch_key"] for row in rows}
    assert new != key
    row = q.row(sent[2])
    assert (row["state"], row["reader"], row["batch_key"]) == ("A", "worker-7", new)
    assert row["lease_until"] == row["changed_at"] + timedelta(seconds=90)


@pytest.mark.parametrize("size", [None, 0])
def test_finish_batch_claims_nothing_when_not_asked_to(q: Queue, size: int | None) -> None:
    sent = q.send_many(2)
    assert q.on("finish_batch", q.claim_key(), None, size) == []
    assert q.states() == {sent[1]: "N"}


def test_finish_batch_claims_in_order(q: Queue) -> None:
    q.send()
    key = q.claim_key()
    sent = [q.send(priority=priority) for priority in (5, -5, 0)]
    assert ids(q.on("finish_batch", key, None, 10)) == [sent[1], sent[2], sent[0]]


def test_finish_batch_finishes_but_claims_nothing_from_a_paused_queue(q: Queue) -> None:
    sent = q.send_many(2)
    key = q.claim_key()
    q.call("pause")
    assert q.on("finish_batch", key, None, 10) == []
    assert q.states() == {sent[1]: "N"}


def test_finish_batch_fails_the_listed_messages_and_completes_the_others(q: Queue) -> None:
    later, now, dead, by_policy, done = sent = q.send_many(5)
    failures = f"{later},3600,busy\n{now},0,again\n{dead},-1,broken, for good\n{by_policy},,no delay told\n"
    rows = q.on("finish_batch", q.claim_key(5), failures)
    assert rows == [] and done not in q.states()
    assert q.states() == {later: "N", now: "N", dead: "E", by_policy: "N"}
    assert q.attempts() == dict.fromkeys(sent[:4], 1)
    assert {row["id"]: row["error"] for row in q.rows()} == {
        later: "busy",
        now: "again",
        dead: "broken, for good",
        by_policy: "no delay told",
    }
    assert ids(q.claim(10)) == [now]


def test_finish_batch_takes_the_queues_backoff_for_an_empty_delay(q: Queue) -> None:
    q.call("set_queue", backoff_seconds=1_000)
    id = q.send()
    q.on("finish_batch", q.claim_key(), f"{id},,busy")
    assert 495 < (q.row(id)["run_at"] - datetime.now(UTC)).total_seconds() <= 1_000


def test_finish_batch_makes_a_dead_letter_at_the_last_attempt(q: Queue) -> None:
    ids_ = q.send(max_attempts=1), q.send(max_attempts=2)
    q.on("finish_batch", q.claim_key(2), "".join(f"{id},0,busy\n" for id in ids_))
    assert q.states() == {ids_[0]: "E", ids_[1]: "N"}


def test_finish_batch_reads_an_error_that_begins_with_a_quote_as_a_json_string(q: Queue) -> None:
    errors = ["two\nlines", '"quoted"', "", "é😀"]
    sent = q.send_many(len(errors))
    failures = "\n".join(f"{id},-1,{json.dumps(error)}" for id, error in zip(sent, errors, strict=True))
    q.on("finish_batch", q.claim_key(len(errors)), failures)
    assert [row["error"] for row in q.rows()] == errors


def test_finish_batch_decodes_a_json_string_with_blanks_after_it(q: Queue) -> None:
    """As in a file whose lines end with CR LF."""
    blanks = ["\r", " ", "\t", " \t\r ", "\r\r"]
    sent = q.send_many(len(blanks))
    failures = "".join(f'{id},-1,"two\\nlines"{blank}\n' for id, blank in zip(sent, blanks, strict=True))
    q.on("finish_batch", q.claim_key(len(blanks)), failures)
    assert [row["error"] for row in q.rows()] == ["two\nlines"] * len(blanks)


def test_finish_batch_stores_any_other_error_unchanged(q: Queue) -> None:
    errors = ["a,b,,c", " padded ", "it's", "\\n", "{}", "", "tab\t", "end\r", "é😀"]
    sent = q.send_many(len(errors))
    failures = "\n".join(f"{id},-1,{error}" for id, error in zip(sent, errors, strict=True))
    q.on("finish_batch", q.claim_key(len(errors)), failures)
    assert [row["error"] or "" for row in q.rows()] == errors


def test_finish_batch_cuts_an_error_at_4000_characters(q: Queue) -> None:
    id = q.send()
    q.on("finish_batch", q.claim_key(), f"{id},-1,{'é' * 5_000}")
    assert q.row(id)["error"] == "é" * 4_000


def test_finish_batch_skips_ids_that_the_batch_does_not_hold(q: Queue) -> None:
    mine, done, foreign = q.send_many(3)
    key = q.claim_key(2)
    q.claim()
    q.on("finish_batch", key, f"{foreign},-1,not mine\n{foreign + 1_000_000},-1,nobody's\n{mine},-1,mine")
    assert q.states() == {mine: "E", foreign: "A"}
    assert done not in q.states()


def test_finish_batch_takes_an_id_twice_as_once(q: Queue) -> None:
    id, done = q.send_many(2)
    q.on("finish_batch", q.claim_key(2), f"{id},-1,first\n{id},30,second")
    assert q.states() == {id: "E"} and done not in q.states()
    assert q.attempts() == {id: 1}


# A line that begins with two numbers and commas is never part of the error above it.
BAD_LINES = {
    "a delay below": "1,-2,busy",
    "a delay above": "1,315360001,busy",
    "a delay far above": "1,99999999999999999999,busy",
    "a delay of signs": "1,--,busy",
    "an id too long": "1" * 30 + ",0,busy",
    "a string without end": '1,0,"busy',
    "text after the string": '1,0,"busy" now',
}
# Neither is the first line, or the line after a JSON string, whose line feeds are escaped.
OTHER_LINES = {
    "no id": ",0,busy",
    "an id that is no number": "one,0,busy",
    "a negative id": "-1,0,busy",
    "no delay": "1",
    "no error": "1,0",
    "a delay that is no number": "1,soon,busy",
    "a blank before": " 1,0,busy",
    "a blank": " ",
    "a carriage return": "\r",
    "digits of another script": "\u0661,0,busy",
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
def test_finish_batch_changes_nothing_for_one_bad_line_and_names_it(q: Queue, bad: str) -> None:
    id, _ = q.send_many(2)
    key = q.claim_key()
    with q.refused("invalid_argument", "failures: ", "line 2"):
        q.on("finish_batch", key, f"{id},-1,good\n{bad}", 1)
    assert q.one("complete_batch", key) == 1


@pytest.mark.parametrize("bad", (BAD_LINES | OTHER_LINES).values(), ids=BAD_LINES | OTHER_LINES)
def test_finish_batch_refuses_a_first_line_that_is_no_failure(q: Queue, bad: str) -> None:
    id, _ = q.send_many(2)
    key = q.claim_key()
    with q.refused("invalid_argument", "failures: ", "line 2"):
        q.on("finish_batch", key, f"\n{bad}\n{id},-1,good", 1)
    assert q.one("complete_batch", key) == 1


@pytest.mark.parametrize("bad", OTHER_LINES.values(), ids=OTHER_LINES)
def test_finish_batch_refuses_to_continue_a_json_string(q: Queue, bad: str) -> None:
    id, _ = q.send_many(2)
    key = q.claim_key()
    with q.refused("invalid_argument", "failures: ", "line 3"):
        q.on("finish_batch", key, f'{id},-1,"good"\n\n{bad}', 1)
    assert q.one("complete_batch", key) == 1


@pytest.mark.parametrize("line", OTHER_LINES.values(), ids=OTHER_LINES)
def test_finish_batch_takes_a_line_that_is_no_failure_as_part_of_the_error_above(q: Queue, line: str) -> None:
    first, second, done = q.send_many(3)
    assert q.on("finish_batch", q.claim_key(3), f"{first},-1,busy\n{line}\n{second},-1,{line}") == []
    assert {row["id"]: row["error"] for row in q.rows()} == {first: f"busy\n{line}", second: line}
    assert done not in q.states()


def test_finish_batch_keeps_the_empty_lines_inside_an_error(q: Queue) -> None:
    errors = ["a\n\n\nb\nc", "", "\nx", " \n ", "last\n\n}"]
    sent = q.send_many(len(errors))
    failures = "\n\n".join(f"{id},-1,{error}" for id, error in zip(sent, errors, strict=True))
    q.on("finish_batch", q.claim_key(len(errors)), f"\n{failures}\n\n")
    assert [row["error"] or "" for row in q.rows()] == errors


def test_finish_batch_keeps_a_stack_trace(q: Queue) -> None:
    """As a handler in another language may write it, unaware of the list's format."""
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    1/0\nZeroDivisionError: 1,0'
    id, other = q.send_many(2)
    q.on("finish_batch", q.claim_key(2), f"{id},-1,{trace}\n{other},,{trace}\n")
    assert [row["error"] for row in q.rows()] == [trace] * 2


def test_finish_batch_cuts_an_error_of_many_lines_at_4000_characters(q: Queue) -> None:
    id, other = q.send_many(2)
    lines = "\n".join(["é" * 9] * 5_000)
    q.on("finish_batch", q.claim_key(2), f"{id},-1,{lines}\n{other},-1,x")
    assert [row["error"] for row in q.rows()] == [lines[:4_000], "x"]


def test_finish_batch_continues_the_line_of_an_id_that_it_passes_over(q: Queue) -> None:
    id = q.send()
    q.on("finish_batch", q.claim_key(), f"{id},-1,first\n{id},-1,second\nmore\n{id + 1_000_000},-1,nobody's\nmore")
    assert q.row(id)["error"] == "first"


LOST = "batch_key: this batch was finished, released or rescued"


@pytest.mark.parametrize("ordered", [0, 1])
def test_finish_batch_with_a_lost_key_says_so_changes_nothing_and_claims_nothing(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    sent = [q.send(group_key=str(n)) for n in range(3)]
    key = q.expired_key(2)
    q.call("rescue_expired")
    for lost in (key, NO_KEY):
        for failures in (None, f"{sent[0]},-1,late"):
            with q.refused("lease_lost", LOST):
                q.on("finish_batch", lost, failures, 10)


@pytest.mark.parametrize("way", ["finish_batch", "complete_batch", "release_batch", "complete", "fail", "dead_letter"])
def test_finish_batch_of_a_batch_that_holds_nothing_any_more_is_refused(q: Queue, way: str) -> None:
    """In every state that its last message may have."""
    id, _ = q.send_many(2)
    key = q.claim_key()
    q.on(way, *([id] if way in {"complete", "fail", "dead_letter"} else []), key)
    with q.refused("lease_lost", LOST):
        q.on("finish_batch", key, None, 1)


def test_finish_batch_of_a_batch_that_holds_some_still_finishes_those(q: Queue) -> None:
    first, second = q.send_many(2)
    key = q.claim_key(2)
    q.on("complete", first, key)
    assert q.on("finish_batch", key, f"{first},-1,late\n{second},-1,no") == []
    assert q.states() == {second: "E"}


def test_finish_batch_twice_does_it_once(q: Queue) -> None:
    q.send_many(3)
    key = q.claim_key()
    assert len(q.on("finish_batch", key, None, 1)) == 1
    with q.refused("lease_lost", LOST):
        q.on("finish_batch", key, None, 1)


def test_finish_batch_checks_its_arguments_first(q: Queue) -> None:
    with q.refused("invalid_argument", "next_size"):
        q.on("finish_batch", NO_KEY, None, -1)


def test_finish_batch_archives_when_the_policy_says_so(q: Queue) -> None:
    failed, done = q.archived().send_many(2)
    q.on("finish_batch", q.claim_key(2), f"{failed},-1,broken")
    assert q.states() == {failed: "E", done: "C"}


def test_finish_batch_takes_its_own_failures_into_the_next_batch_when_they_are_due(q: Queue) -> None:
    id = q.send()
    rows = q.on("finish_batch", q.claim_key(), f"{id},0,again", 10)
    assert [(row["id"], row["attempt"]) for row in rows] == [(id, 2)]


@pytest.mark.heavy("firebird")
def test_finish_batch_fails_10000_messages_at_once(q: Queue) -> None:
    sent = q.send_many(10_000)
    q.on("finish_batch", q.claim_key(10_000), "\n".join(f"{id},-1,broken" for id in sent))
    assert set(q.states().values()) == {"E"}
    assert q.count("purge", "E", size=10_000) == 10_000


def test_finish_batch_of_an_ordered_queue_claims_the_next_of_the_groups_it_finished(q: Queue) -> None:
    q.ordered()
    a1, b1, c1, a2, b2, c2 = (q.send(group_key=group) for group in "abcabc")
    key = q.claim_key(10)
    assert ids(q.on("finish_batch", key, f"{b1},3600,busy\n{c1},-1,broken", 10)) == [a2, c2]
    assert q.states() == {b1: "N", c1: "E", a2: "A", b2: "N", c2: "A"}
    assert a1 not in q.states()
