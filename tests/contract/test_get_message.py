"""get_message: the first ready message, under the queue's own lease."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.outcomes import dead_letter
from support.queues import NO_KEY, Queue, refused

# The ways to end a claim, their results, and the message's state afterwards.
ENDS: dict[str, tuple[Callable[[Queue, int, Any], Any], Any, str]] = {
    "complete": (lambda q, id, key: q.one("complete", id, key), 1, "C"),
    "complete_batch": (lambda q, id, key: q.one("complete_batch", key), 1, "C"),
    "finish_batch": (lambda q, id, key: q.on("finish_batch", key), [], "C"),
    "a failure for finish_batch": (lambda q, id, key: q.on("finish_batch", key, dead_letter(id, "no")), [], "E"),
    "dead_letter": (lambda q, id, key: q.one("dead_letter", id, key, "no"), "E", "E"),
    "release_batch": (lambda q, id, key: q.one("release_batch", key), 1, "N"),
    "rescue_expired": (lambda q, id, key: (q.expire(key), q.count("rescue_expired")), (None, 1), "N"),
}


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


def test_a_message_of_get_message_is_seen_as_any_other_that_is_claimed(q: Queue) -> None:
    id = q.send()
    q.send(group_key="g")
    [row] = q.call("get_message")
    seen = q.row(id)
    assert [seen[name] for name in ("state", "attempts", "batch_key")] == ["A", 1, row["batch_key"]]
    [peeked] = q.call("peek", "A", 10)
    names = ("id", "attempts", "batch_key", "lease_until", "consumer")
    assert [peeked[name] for name in names] == [seen[name] for name in names]
    assert q.stats()["active"] == 1
    assert q.on("cancel", id) == [{"affected": 1, "state": "A"}]
    assert q.on("list_cancelled", row["batch_key"]) == [{"id": id}]
    for other, key in ((id, NO_KEY), (id + 1, row["batch_key"])):
        with q.refused("lease_lost", "batch_key"):
            q.one("complete", other, key)
    q.expire(row["batch_key"])
    assert (q.stats()["active"], q.stats()["expired"]) == (0, 1)


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("end", ENDS)
def test_a_claim_of_get_message_can_be_finished_in_every_way_but_only_once(q: Queue, end: str, ordered: int) -> None:
    q.call("set_queue", on_complete="archive", ordered=ordered)
    sent = [q.send(group_key="g", dedup_key="k"), q.send(group_key="g")]
    if ordered:
        assert q.call("get_message")[0]["id"] == sent[0]
        # Its group is busy, not stuck.
        assert q.call("get_message") == [] and q.count("rescue_expired") == 0 and q.call("get_message") == []
        key = q.row(sent[0])["batch_key"]
    else:
        key = q.call("get_message")[0]["batch_key"]
    call, said, state = ENDS[end]
    assert call(q, sent[0], key) == said
    assert q.states() == {sent[0]: state, sent[1]: "N"}
    with q.unchanged():
        for name, (again, _, _) in ENDS.items():
            if name in {"release_batch", "rescue_expired"}:
                assert again(q, sent[0], key) in (0, (None, 0))
            else:
                with refused("lease_lost", "batch_key"):
                    again(q, sent[0], key)
    [row] = q.call("get_message")
    assert row["id"] == sent[state != "N"]
    assert row["attempt"] == (2 if end == "rescue_expired" else 1)
