"""set_result and get_result: the result that a handler stores with its message, and the state of the message."""

from collections.abc import Callable, Iterator

import pytest
import servers
from rowqueue.databases import Row
from support.outcomes import dead_letter
from support.queues import LONG_AGO, NO_KEY, Queue, ids, in_an_hour, in_time

LOST = "batch_key: does not hold message {}"


@pytest.fixture
def q(q: Queue) -> Queue:
    """A queue that archives."""
    return q.archived()


@pytest.fixture
def kept(q: Queue, server: servers.Server) -> Iterator[Callable[[], int]]:
    """How many results of messages that are not archived the queue keeps; at the end none without its message."""
    results, messages = server.table("result"), server.table("message")

    def count() -> int:
        found = q.sql(
            f"SELECT count(*) AS n FROM {results} r JOIN {messages} m ON m.id = r.id WHERE m.type = %s", q.name
        )
        return int(found[0]["n"])

    yield count
    [row] = q.sql(
        f"SELECT count(*) AS n FROM {results} r WHERE NOT EXISTS (SELECT 1 FROM {messages} m WHERE m.id = r.id)"
    )
    assert row["n"] == 0, "a result has outlived its message"


def sent_and_claimed(q: Queue) -> tuple[int, object]:
    id = q.send()
    return id, q.claim_key()


def result(q: Queue, id: int) -> tuple[object, ...]:
    """(state, result, error) of a message that there is."""
    [row] = q.on("get_result", id)
    return tuple(row.values())


def test_a_result_stays_with_the_archived_message(q: Queue, kept: Callable[[], int]) -> None:
    id, key = sent_and_claimed(q)
    assert q.on("set_result", id, key, '{"pages":3}') == [{"affected": 1}]
    assert (result(q, id), kept()) == (("A", '{"pages":3}', None), 1)
    assert q.one("complete", id, key) == 1
    assert (result(q, id), kept()) == (("C", '{"pages":3}', None), 0)


@pytest.mark.parametrize("ordered", [0, 1])
def test_get_result_returns_the_state_of_a_message_in_any_state(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    first, delayed, second, third = (
        q.send(group_key="g"),
        q.send(group_key="h", run_at=in_an_hour()),
        *(q.send(group_key="g") for _ in range(2)),
    )
    assert [result(q, id) for id in (first, delayed, second)] == [("N", None, None)] * 3
    key = q.claim_key()
    assert [result(q, id)[0] for id in (first, second, third)] == ["A", "N", "N"]
    q.one("fail", first, key, "busy", 3_600)
    assert [result(q, id) for id in (first, second)] == [("N", None, "busy"), ("N", None, None)]
    q.one("cancel", delayed)
    assert q.on("get_result", delayed) == []
    q.one("cancel", first)
    key = q.claim_key()
    q.one("dead_letter", second, key, "broken")
    assert result(q, second) == ("E", None, "broken")
    q.on("complete_batch", q.claim_key())
    assert result(q, third) == ("C", None, None)
    assert {row["id"]: row["state"] for row in q.rows()} == {second: "E", third: "C"}


@pytest.mark.parametrize("id", [0, -1, (1 << 63) - 1])
def test_get_result_of_no_message_is_no_row(q: Queue, id: int) -> None:
    q.send()
    assert q.on("get_result", id) == []


def test_a_message_that_is_deleted_when_it_is_done_leaves_no_row(q: Queue) -> None:
    q.call("set_queue", on_complete="delete")
    id, key = sent_and_claimed(q)
    assert result(q, id) == ("A", None, None)
    q.on("complete_batch", key)
    assert q.on("get_result", id) == []


def test_the_last_result_counts(q: Queue, kept: Callable[[], int]) -> None:
    id, key = sent_and_claimed(q)
    for text in ("first", "", "last"):
        assert q.one("set_result", id, key, text) == 1
        assert (result(q, id), kept()) == (("A", text, None), 1)
    q.on("finish_batch", key)
    assert result(q, id) == ("C", "last", None)


def test_each_message_of_a_batch_has_its_own(q: Queue, kept: Callable[[], int]) -> None:
    sent = q.send_many(5)
    key = q.claim_key(5)
    for id in sent[:3]:
        q.on("set_result", id, key, f"of {id}")
    q.on("finish_batch", key, dead_letter(sent[0], "no"))
    assert [result(q, id) for id in sent] == [
        ("E", f"of {sent[0]}", "no"),
        *(("C", f"of {id}", None) for id in sent[1:3]),
        *(("C", None, None) for _ in sent[3:]),
    ]
    assert kept() == 1


def test_a_failed_attempt_leaves_the_result_and_so_do_death_and_redrive(q: Queue, kept: Callable[[], int]) -> None:
    id, key = sent_and_claimed(q)
    q.on("set_result", id, key, "half")
    q.one("fail", id, key, "busy", 0)
    assert result(q, id) == ("N", "half", "busy")
    key = q.claim_key()
    assert result(q, id) == ("A", "half", None)
    q.one("dead_letter", id, key, "broken")
    assert result(q, id) == ("E", "half", "broken")
    q.call("redrive_all")
    assert result(q, id) == ("N", "half", None)
    q.on("release_batch", q.claim_key())
    q.expired_key()
    q.call("rescue_expired")
    assert result(q, id)[:2] == ("N", "half")
    q.on("complete_batch", q.claim_key())
    assert (result(q, id), kept()) == (("C", "half", None), 0)


def test_a_lost_lease_keeps_no_result(q: Queue, other: Queue, kept: Callable[[], int]) -> None:
    id = q.send()
    key = q.expired_key()
    q.call("rescue_expired")
    with q.refused("lease_lost", LOST.format(id)):
        q.on("set_result", id, key, "late")
    new = other.claim_key()
    for late in (key, NO_KEY):
        with q.refused("lease_lost", LOST.format(id)):
            q.on("set_result", id, late, "late")
    other.on("set_result", id, new, "right")
    other.on("complete_batch", new)
    for late in (key, new):
        with q.refused("lease_lost", LOST.format(id)):
            q.on("set_result", id, late, "late")
    assert (result(q, id), kept()) == (("C", "right", None), 0)


def test_a_key_is_good_for_the_messages_that_it_holds(q: Queue, kept: Callable[[], int]) -> None:
    mine, foreign, new = q.send_many(3)
    key = q.claim_key()
    foreign_key = q.claim_key()
    for id in (foreign, new, 0, -1, new + 1_000_000):
        with q.refused("lease_lost", LOST.format(id)):
            q.on("set_result", id, key, "x")
    q.on("complete", mine, key)
    with q.refused("lease_lost", LOST.format(mine)):
        q.on("set_result", mine, key, "x")
    assert (q.one("set_result", foreign, foreign_key, "x"), kept()) == (1, 1)


def test_a_queue_that_deletes_keeps_no_result(q: Queue, kept: Callable[[], int]) -> None:
    q.call("set_queue", on_complete="delete")
    id, key = sent_and_claimed(q)
    with q.refused("invalid_argument", "id: the queue keeps no results; call set_queue with on_complete archive"):
        q.on("set_result", id, key, "x")
    with q.refused("lease_lost"):
        q.on("set_result", id, NO_KEY, "x")
    assert (result(q, id), kept()) == (("A", None, None), 0)


def test_a_queue_that_archives_no_longer_forgets_its_results(q: Queue, kept: Callable[[], int]) -> None:
    done, left = q.send_many(2)
    for id in (done, left):
        key = q.claim_key()
        q.on("set_result", id, key, "x")
        if id == done:
            q.on("complete_batch", key)
    q.call("set_queue", on_complete="delete")
    assert (result(q, done), result(q, left), kept()) == (("C", "x", None), ("A", None, None), 0)


def set_aside(q: Queue, state: str) -> int:
    """A message with a result: ready, delayed, dead or completed."""
    id, key = sent_and_claimed(q)
    q.on("set_result", id, key, "x")
    {
        "ready": lambda: q.on("fail", id, key, "no", 0),
        "delayed": lambda: q.on("fail", id, key, "no", 3_600),
        "dead": lambda: q.on("dead_letter", id, key, "no"),
        "completed": lambda: q.on("complete", id, key),
    }[state]()
    return id


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize(("state", "letter"), [("ready", "N"), ("delayed", "N"), ("dead", "E"), ("completed", "C")])
@pytest.mark.parametrize("way", ["cancel", "purge", "purge before"])
def test_a_result_is_deleted_with_its_message(
    q: Queue, kept: Callable[[], int], ordered: int, state: str, letter: str, way: str
) -> None:
    q.call("set_queue", ordered=ordered)
    id = set_aside(q, state)
    other = q.send()
    if way == "purge":
        assert q.count("purge", letter) == (2 if letter == "N" else 1)
    elif way == "cancel" and letter != "C":
        assert q.one("cancel", id) == 1
    elif way == "purge before" and letter in "EC":
        assert q.count("purge", letter, in_time(hours=1)) == 1
    else:
        assert result(q, id)[1] == "x"
        return
    assert (q.on("get_result", id), kept()) == ([], 0)
    assert q.count("purge", "C", LONG_AGO) == 0
    assert (other in q.states()) == ((way, letter) != ("purge", "N"))


def test_a_message_that_is_taken_keeps_the_result_of_an_earlier_attempt(q: Queue, kept: Callable[[], int]) -> None:
    id = set_aside(q, "ready")
    assert ids(q.call("take_batch", 10)) == [id]
    assert (result(q, id), kept()) == (("C", "x", None), 0)


def test_a_result_is_part_of_the_callers_transaction(q: Queue, other: Queue, kept: Callable[[], int]) -> None:
    id, key = sent_and_claimed(q)
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.on("set_result", id, key, "x")
        assert result(other, id) == ("A", None, None)
        raise ZeroDivisionError
    assert (result(q, id), kept()) == (("A", None, None), 0)
    with q.session.transaction():
        q.on("set_result", id, key, "x")
        q.on("complete_batch", key)
    assert result(other, id) == ("C", "x", None)


def test_a_claim_returns_the_same_as_before(q: Queue) -> None:
    """A result is no part of a message."""
    set_aside(q, "ready")
    [row] = q.claim()
    assert "result" not in row
    seen: list[Row] = q.call("peek", "A")
    assert "result" not in seen[0]
