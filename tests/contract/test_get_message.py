"""get_message: the first ready message, under the queue's own lease."""

from datetime import timedelta

from queues import Queue


def test_get_message_claims_the_first_message(q: Queue) -> None:
    sent = [q.send(), q.send()]
    [row] = q.call("get_message")
    assert (row["id"], row["attempt"]) == (sent[0], 1)
    assert q.states() == {sent[0]: "A", sent[1]: "N"}
    assert q.one("complete", row["id"], row["batch_key"]) == 1


def test_get_message_returns_no_row_from_an_empty_queue(q: Queue) -> None:
    assert q.call("get_message") == []


def test_get_message_returns_no_row_from_a_paused_queue(q: Queue) -> None:
    q.send()
    q.call("pause")
    with q.unchanged():
        assert q.call("get_message") == []


def test_get_message_takes_the_lease_of_the_queue(q: Queue) -> None:
    q.call("set_queue", lease_seconds=600)
    id = q.send()
    [row] = q.call("get_message")
    assert row["lease_until"] == q.row(id)["lease_until"]
    assert row["lease_until"] - q.row(id)["changed_at"] == timedelta(seconds=600)


def test_get_message_twice_gives_two_messages_under_two_keys(q: Queue) -> None:
    sent = [q.send(), q.send()]
    first, second = q.call("get_message")[0], q.call("get_message")[0]
    assert [first["id"], second["id"]] == sent
    assert first["batch_key"] != second["batch_key"]
