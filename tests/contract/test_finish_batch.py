"""finish_batch: complete a batch except for its failures, and claim the next one."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from support.outcomes import dead_letter, done, failure, hostile_errors, joined, released
from support.queues import NO_KEY, Queue, ids


def test_finish_batch_completes_all_when_none_failed(q: Queue) -> None:
    sent = q.send_many(3)
    assert q.on("finish_batch", q.claim_key(2)) == []
    assert q.states() == {sent[2]: "N"}


@pytest.mark.parametrize("outcomes", [None, "", "\n\n"])
def test_finish_batch_takes_an_empty_list(q: Queue, outcomes: str | None) -> None:
    q.send_many(2)
    assert q.on("finish_batch", q.claim_key(2), outcomes) == []
    assert q.rows() == []


def test_finish_batch_claims_the_next_batch_for_the_same_consumer_and_lease(q: Queue) -> None:
    sent = q.send_many(5)
    key = q.claim_key(2, consumer="worker-7", lease_seconds=90)
    rows = q.on("finish_batch", key, None, 2)
    assert ids(rows) == sent[2:4]
    [new] = {row["batch_key"] for row in rows}
    assert new != key
    row = q.row(sent[2])
    assert (row["state"], row["consumer"], row["batch_key"]) == ("A", "worker-7", new)
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
    later, now, never, by_policy, told, untold = sent = q.send_many(6)
    outcomes = joined(
        failure(later, "busy", 3_600),
        failure(now, "again", 0),
        dead_letter(never, "broken, for good"),
        failure(by_policy, "no delay told"),
        done(told),
    )
    assert q.on("finish_batch", q.claim_key(6), outcomes) == []
    assert q.states() == {later: "N", now: "N", never: "E", by_policy: "N"} and untold not in q.states()
    assert q.attempts() == dict.fromkeys(sent[:4], 1)
    assert {row["id"]: row["error"] for row in q.rows()} == {
        later: "busy",
        now: "again",
        never: "broken, for good",
        by_policy: "no delay told",
    }
    assert ids(q.claim(10)) == [now]


def test_finish_batch_gives_messages_back_without_counting_the_attempt(q: Queue) -> None:
    back, done_, failed, last = sent = q.send_many(4)
    rows = q.on("finish_batch", q.claim_key(3), joined(released(back), failure(failed, "busy", 3600)), 1)
    assert [(row["id"], row["attempt"]) for row in rows] == [(back, 1)], "at its old place"
    assert q.states() == {back: "A", failed: "N", last: "N"} and done_ in sent


def test_finish_batch_takes_the_queues_backoff_for_an_empty_delay(q: Queue) -> None:
    q.call("set_queue", backoff_seconds=1_000)
    id = q.send()
    q.on("finish_batch", q.claim_key(), failure(id, "busy"))
    assert 495 < (q.row(id)["run_at"] - datetime.now(UTC)).total_seconds() <= 1_000


def test_finish_batch_makes_a_dead_letter_at_the_last_attempt(q: Queue) -> None:
    ids_ = q.send(max_attempts=1), q.send(max_attempts=2)
    q.on("finish_batch", q.claim_key(2), joined(*(failure(id, "busy", 0) for id in ids_)))
    assert q.states() == {ids_[0]: "E", ids_[1]: "N"}


@pytest.mark.parametrize("is_ascii", [True, False])
def test_finish_batch_stores_every_error_unchanged_and_no_text_touches_a_neighbour(q: Queue, is_ascii: bool) -> None:
    neighbour = q.send()
    errors = [*hostile_errors(neighbour), " blanks ", ""]
    sent = q.send_many(len(errors))
    said = [{"id": id, "error": error, "dead": True} for id, error in zip(sent, errors, strict=True)]
    outcomes = "\n".join(json.dumps(one, ensure_ascii=is_ascii) for one in said)
    q.on("finish_batch", q.claim_key(len(sent) + 1), outcomes)
    assert [row["error"] or "" for row in q.rows()] == errors
    assert q.states() == dict.fromkeys(sent, "E")


@pytest.mark.parametrize(
    "spelled",
    [
        ' {{ "error" : "no" , "dead" : true , "id" : {} }} ',
        '{{"id":{},"error":"\\u006eo","dead":1}}\r',
        '{{"\\u0069d":{},"\\u0065rror":"no","retry_after_seconds":null,"dead":1}}\n\n',
        '\t{{"dead":1,"id":{},\r"error":"no"}}\t',
    ],
)
def test_finish_batch_takes_any_json_of_an_outcome(q: Queue, spelled: str) -> None:
    id = q.send()
    q.on("finish_batch", q.claim_key(), f"\n{spelled.format(id)}")
    assert [(row["state"], row["error"]) for row in q.rows()] == [("E", "no")]


@pytest.mark.parametrize(
    "done", ['{{"id":{}}}', '{{"id":{},"error":null}}', '{{"id":{},"error":null,"dead":0,"released":false}}']
)
def test_finish_batch_completes_a_message_whose_outcome_has_no_error(q: Queue, done: str) -> None:
    id = q.send()
    q.on("finish_batch", q.claim_key(), done.format(id))
    assert q.rows() == []


def test_finish_batch_cuts_an_error_at_4000_characters(q: Queue) -> None:
    id = q.send()
    q.on("finish_batch", q.claim_key(), dead_letter(id, "é😀" * 2_500))
    assert q.row(id)["error"] == "é😀" * 2_000


def test_finish_batch_skips_ids_that_the_batch_does_not_hold(q: Queue) -> None:
    mine, done, foreign = q.send_many(3)
    key = q.claim_key(2)
    q.claim()
    others = [dead_letter(foreign, "not mine"), dead_letter(foreign + 1_000_000, "nobody's")]
    q.on("finish_batch", key, joined(*others, dead_letter(mine, "mine")))
    assert q.states() == {mine: "E", foreign: "A"}
    assert done not in q.states()


KNOWN = "the names are id, error, retry_after_seconds, dead and released, not "
FLAT = "must be a JSON object with unique names, no nested values and no "
BAD_LINES = {
    "the old form": ("1,-1,busy", FLAT),
    "a list": ("[1]", FLAT),
    "a blank": (" ", FLAT),
    "no end": ('{"id":1,"error":"busy"', FLAT),
    "two objects": ('{"id":1}{"id":2}', FLAT),
    "text after the object": ('{"id":1} {}', FLAT),
    "a name twice": ('{"id":1,"error":"a","error":"b"}', FLAT),
    "a name twice, once escaped": ('{"id":1,"error":"a","\\u0065rror":"b"}', FLAT),
    "a nested value": ('{"id":1,"error":"a","dead":[]}', ""),
    "the character NUL": ('{"id":1,"error":"a\\u0000"}', FLAT),
    "half a surrogate pair": ('{"id":1,"error":"\\ud83d"}', FLAT),
    "an unknown name": ('{"id":1,"error":"a","retry":1}', f"{KNOWN}retry"),
    "a name with a blank": ('{"id":1,"error ":"a"}', f"{KNOWN}error"),
    "another case": ('{"ID":1,"error":"a"}', f"{KNOWN}ID"),
    "no id": ('{"error":"busy"}', "id must be "),
    "nothing": ("{}", "id must be "),
    "no number as id": ('{"id":"1","error":"busy"}', "id must be "),
    "a negative id": ('{"id":-1,"error":"busy"}', "id must be "),
    "an id with a fraction": ('{"id":1.0,"error":"busy"}', "id must be "),
    "an id that is too long": ('{"id":1111111111111111111,"error":"busy"}', "id must be "),
    "an error that is no text": ('{"id":1,"error":404}', "error must be "),
    "a negative delay": ('{"id":1,"error":"busy","retry_after_seconds":-1}', "retry_after_seconds must be "),
    "a delay above": ('{"id":1,"error":"busy","retry_after_seconds":315360001}', "retry_after_seconds must be "),
    "a delay far above": ('{"id":1,"error":"a","retry_after_seconds":1e30}', "retry_after_seconds must be "),
    "half a second": ('{"id":1,"error":"busy","retry_after_seconds":0.5}', "retry_after_seconds must be "),
    "a delay as a text": ('{"id":1,"error":"busy","retry_after_seconds":"1"}', "retry_after_seconds must be "),
    "a flag above": ('{"id":1,"error":"busy","dead":2}', "dead must be "),
    "a flag as a text": ('{"id":1,"error":"busy","dead":"1"}', "dead must be "),
    "a delay without an error": ('{"id":1,"retry_after_seconds":1}', "retry_after_seconds and dead need an error"),
    "dead without an error": ('{"id":1,"dead":1}', "retry_after_seconds and dead need an error"),
    "a release above": ('{"id":1,"released":2}', "released must be "),
    "a release as a text": ('{"id":1,"released":"1"}', "released must be "),
    "a release with an error": ('{"id":1,"error":"a","released":1}', "released excludes error"),
    "a release with a delay": (
        '{"id":1,"retry_after_seconds":1,"released":1}',
        "retry_after_seconds and dead need an ",
    ),
    "dead with a delay": ('{"id":1,"error":"a","dead":1,"retry_after_seconds":1}', "dead excludes retry_after_seconds"),
}


@pytest.mark.parametrize(("bad", "detail"), BAD_LINES.values(), ids=BAD_LINES)
def test_finish_batch_changes_nothing_for_one_bad_line_and_names_it(q: Queue, bad: str, detail: str) -> None:
    id, _ = q.send_many(2)
    key = q.claim_key()
    for outcomes, line in ((f"\n{dead_letter(id, 'good')}\n{bad}", 3), (f"{bad}\n{dead_letter(id, 'good')}", 1)):
        with q.refused("invalid_argument", f"outcomes: line {line}: {detail}"):
            q.on("finish_batch", key, outcomes, 1)
    assert q.one("complete_batch", key) == 1


@pytest.mark.parametrize("order", [(0, 0), (0, 1, 0), (1, 0, 1), (2, 0, 1, 2)])
def test_finish_batch_refuses_an_id_that_is_given_twice(q: Queue, order: tuple[int, ...]) -> None:
    """Whether the batch holds it or not, and whether it failed or not."""
    mine, foreign, done_ = q.send_many(3)
    key = q.claim_key()
    lines = [dead_letter(mine, "no"), failure(foreign, "no"), done(done_)]
    with q.refused("invalid_argument", "outcomes: an id is given twice"):
        q.on("finish_batch", key, "\n".join(lines[n] for n in order), 1)
    assert q.one("complete_batch", key) == 1


LOST = "batch_key: this batch was finished, released or rescued"


@pytest.mark.parametrize("ordered", [0, 1])
def test_finish_batch_with_a_lost_key_says_so_changes_nothing_and_claims_nothing(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    sent = [q.send(group_key=str(n)) for n in range(3)]
    key = q.expired_key(2)
    q.call("rescue_expired")
    for lost in (key, NO_KEY):
        for outcomes in (None, dead_letter(sent[0], "late")):
            with q.refused("lease_lost", LOST):
                q.on("finish_batch", lost, outcomes, 10)


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
    assert q.on("finish_batch", key, joined(dead_letter(first, "late"), dead_letter(second, "no"))) == []
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
    bad, good = q.archived().send_many(2)
    q.on("finish_batch", q.claim_key(2), dead_letter(bad, "broken"))
    assert q.states() == {bad: "E", good: "C"}


def test_finish_batch_takes_its_own_failures_into_the_next_batch_when_they_are_due(q: Queue) -> None:
    id = q.send()
    rows = q.on("finish_batch", q.claim_key(), failure(id, "again", 0), 10)
    assert [(row["id"], row["attempt"]) for row in rows] == [(id, 2)]


@pytest.mark.level(3)
def test_finish_batch_fails_10000_messages_at_once(q: Queue) -> None:
    sent = q.send_many(10_000)
    q.on("finish_batch", q.claim_key(10_000), joined(*(dead_letter(id, "broken") for id in sent)))
    assert set(q.states().values()) == {"E"}
    assert q.count("purge", "E", size=10_000) == 10_000


def test_finish_batch_of_an_ordered_queue_claims_the_next_of_the_groups_it_finished(q: Queue) -> None:
    q.ordered()
    a1, b1, c1, a2, b2, c2 = (q.send(group_key=group) for group in "abcabc")
    key = q.claim_key(10)
    assert ids(q.on("finish_batch", key, joined(failure(b1, "busy", 3600), dead_letter(c1, "broken")), 10)) == [a2, c2]
    assert q.states() == {b1: "N", c1: "E", a2: "A", b2: "N", c2: "A"}
    assert a1 not in q.states()
