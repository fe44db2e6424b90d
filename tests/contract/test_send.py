"""send: one message, ready now."""

from collections.abc import Callable

from rowqueue.databases import Session
from support.queues import Queue, call


def test_send_makes_a_new_message_that_a_claim_returns(q: Queue) -> None:
    [sent] = q.call("send", "hello")
    row = q.row(sent["id"])
    assert (row["state"], row["body"], row["attempts"], row["priority"]) == ("N", "hello", 0, 0)
    assert row["headers"] is row["group_key"] is row["dedup_key"] is row["error"] is None
    [claimed] = q.claim()
    assert (claimed["id"], claimed["body"], claimed["attempt"]) == (sent["id"], "hello", 1)


def test_send_gives_ids_in_the_order_of_sending(q: Queue) -> None:
    sent = [q.call("send", str(n))[0]["id"] for n in range(5)]
    assert sent == sorted(set(sent))
    assert [row["id"] for row in q.claim(5)] == sent


def test_send_records_the_application_as_source(q: Queue, connect: Callable[..., Session]) -> None:
    q.by(connect("shop")).call("send", "b")
    assert q.rows()[0]["source"].startswith("shop/")


def test_send_takes_an_empty_body(q: Queue) -> None:
    q.call("send", "")
    assert q.claim()[0]["body"] == ""


def test_send_works_while_the_queue_is_paused(q: Queue) -> None:
    q.call("pause")
    q.call("send", "b")
    assert q.stats()["ready"] == 1


def test_send_to_an_ordered_queue_joins_the_group_of_messages_without_a_key(q: Queue) -> None:
    q.ordered()
    first, second = q.call("send", "1")[0]["id"], q.call("send", "2")[0]["id"]
    assert [row["id"] for row in q.claim(5)] == [first]
    assert q.states() == {first: "A", second: "N"}


def test_send_keeps_types_apart_that_differ_by_case_or_blanks(q: Queue) -> None:
    types = [q.name, q.name.upper(), " " + q.name, *([q.name + " "] if q.can.blank_endings else [])]
    for type in types:
        call(q.session, "send", type, f"for {type}")
    for type in types:
        [row] = call(q.session, "claim_batch", type, 10)
        assert (row["type"], row["body"]) == (type, f"for {type}")
