"""list_errors, and redrive_all by its errors: dead letters grouped by error."""

import pytest
from support.outcomes import dead_letter
from support.queues import Queue


def die(q: Queue, *errors: str | None, **options: str) -> list[int]:
    """A dead letter for each error, in this order."""
    sent = []
    for error in errors:
        id = q.send(**options)
        [row] = q.claim()
        q.on("dead_letter", row["id"], row["batch_key"], error)
        sent.append(id)
    return sent


def errors(q: Queue) -> dict[str, int]:
    return {row["error"]: row["messages"] for row in q.call("list_errors")}


def test_a_queue_without_dead_letters_has_no_errors(q: Queue) -> None:
    q.send()
    assert q.call("list_errors") == []


def test_errors_are_counted_and_the_most_frequent_comes_first(q: Queue) -> None:
    first, _, last, _ = die(q, "refused", "timeout", "refused", "broken")
    rows = q.call("list_errors")
    assert [(row["error"], row["messages"]) for row in rows] == [("refused", 2), ("broken", 1), ("timeout", 1)]
    assert rows[0]["last_id"] == last
    dead = {row["id"]: row["changed_at"] for row in q.call("peek", "E")}
    assert (rows[0]["first_at"], rows[0]["last_at"]) == (dead[first], dead[last])


@pytest.mark.parametrize(
    ("error", "group"),
    [
        ("timeout after 30 s", "timeout after # s"),
        ("order 4711: 3 of 12", "order #: # of #"),
        ("#17 ##", "# #"),
        ("first line\nsecond 2", "first line"),
        ("first line\r\nsecond 2", "first line"),
        ("\nno first line", ""),
        ("1" * 300 + "x", "#x"),
        ("x" * 300, "x" * 200),
        ("y" * 499 + "12345", "y" * 200),
        ("é" * 150 + "😀1😀", "é" * 150 + "😀#😀"),
        ("<b>%d</b> 'q' \"d\" \\ _", "<b>%d</b> 'q' \"d\" \\ _"),
        ("ends in blanks  ", "ends in blanks"),
        ("x" * 199 + " y", "x" * 199),
        (" 7 ", " #"),
        ("  ", ""),
        (None, ""),
        ("", ""),
    ],
)
def test_an_error_is_its_first_line_with_a_sign_for_each_number(q: Queue, error: str | None, group: str) -> None:
    [id] = die(q, error)
    assert errors(q) == {group: 1}
    assert q.count("redrive_all", error=group) == 1
    assert q.states() == {id: "N"}


def test_errors_that_differ_in_case_accent_or_blanks_differ(q: Queue) -> None:
    names = ["refused", "Refused", "réfused", " refused", "re fused"]
    die(q, *names)
    assert errors(q) == dict.fromkeys(names, 1)
    assert q.count("redrive_all", error="Refused") == 1
    assert errors(q) == dict.fromkeys(["refused", "réfused", " refused", "re fused"], 1)


def test_trailing_blanks_make_no_other_error(q: Queue) -> None:
    first, second, third = die(q, "refused", "refused  ", "other")
    assert errors(q) == {"refused": 2, "other": 1}
    assert q.count("redrive_all", "refused ", 1) == 1
    assert q.count("redrive_all", error="refused   ") == 1
    assert q.states() == {first: "N", second: "N", third: "E"}


def test_errors_with_the_same_simple_hash_differ(q: Queue) -> None:
    """Firebird's HASH is the same for these two."""
    die(q, "aQ", "bA", "bA")
    assert errors(q) == {"bA": 2, "aQ": 1}
    assert q.count("redrive_all", error="aQ") == 1
    assert errors(q) == {"bA": 2}


def test_at_most_so_many_errors_are_listed(q: Queue) -> None:
    die(q, "a", "b", "b", "c", "c")
    assert [row["error"] for row in q.call("list_errors", 2)] == ["b", "c"]


@pytest.mark.parametrize("ordered", [0, 1])
def test_redrive_of_an_error_retries_those_letters_only(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    sent = [die(q, error, group_key=f"g{n % 2}")[0] for n, error in enumerate(["at 1", "no", "at 2", "at 345"])]
    assert q.count("redrive_all", error="at #") == 3
    assert q.states() == {sent[0]: "N", sent[1]: "E", sent[2]: "N", sent[3]: "N"}
    assert q.attempts()[sent[0]] == 0
    assert q.count("redrive_all", error="at #") == 0
    assert q.count("redrive_all", error="at 1") == 0
    assert len(q.claim(10)) == (2 if ordered else 3)


def test_two_errors_can_be_redriven_at_once(q: Queue, other: Queue) -> None:
    first, second, third = die(q, "no", "yes", "no")
    with q.session.transaction():
        assert q.count("redrive_all", error="no") == 2
        assert other.count("redrive_all", error="yes") == 1
    assert q.states() == {first: "N", second: "N", third: "N"}


def test_dead_letters_of_another_queue_are_not_touched(q: Queue) -> None:
    another = q.named(f"{q.name}.b")
    die(q, "no")
    die(another, "no")
    assert errors(q) == {"no": 1}
    assert q.count("redrive_all", error="no") == 1
    assert errors(another) == {"no": 1}


@pytest.mark.level(3, one=True)
def test_all_dead_letters_of_an_error_are_counted_and_redriven(q: Queue) -> None:
    """Also the oldest ones, when more than 10,000 of other errors are newer."""
    [old] = die(q, "old")
    q.send_many(10_000)
    rows = q.claim(10_000)
    key = rows[0]["batch_key"]
    q.on("finish_batch", key, "\n".join(dead_letter(row["id"], f"new {row['id']}") for row in rows), 0)
    [last] = die(q, "new 1")
    found = {row["error"]: row for row in q.call("list_errors")}
    assert {error: row["messages"] for error, row in found.items()} == {"new #": 10_001, "old": 1}
    assert (found["old"]["last_id"], found["new #"]["last_id"]) == (old, last)
    assert [q.count("redrive_all", "old", 10_000) for _ in range(2)] == [1, 0]
    assert [q.count("redrive_all", "new #", 10_000) for _ in range(3)] == [10_000, 1, 0]
    assert [q.count("purge", "N", size=10_000) for _ in range(2)] == [10_000, 2]
