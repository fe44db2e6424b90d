"""find_messages: by id, dedup_key or group_key, in any state."""

from typing import Any

import pytest
from support.queues import Queue, ids, in_an_hour


def find(q: Queue, **by: Any) -> list[int]:
    return ids(q.call("find_messages", **by))


def in_all_states(q: Queue, **options: Any) -> dict[str, int]:
    """A message in each state, archived included."""
    q.archived()
    made = {}
    for state in ("C", "E", "A"):
        made[state] = q.send(state, **options)
        [row] = q.claim()
        if state == "C":
            q.on("complete", row["id"], row["batch_key"])
        if state == "E":
            q.on("dead_letter", row["id"], row["batch_key"], "broken")
    made["delayed"] = q.send("delayed", run_at=in_an_hour(), **options)
    made["N"] = q.send("N", **options)
    return made


def test_a_message_is_found_by_its_number_in_every_state_as_peek_shows_it(q: Queue) -> None:
    made = in_all_states(q, headers="{}", source="me")
    for name, id in made.items():
        state = "N" if name == "delayed" else name
        [row] = q.call("find_messages", id=id)
        assert (row["id"], row["state"], row["body"]) == (id, state, name)
        assert [row] == [seen for seen in q.call("peek", state) if seen["id"] == id]
        assert q.on("find_messages", None, id=id) == [row]


def test_a_finished_message_or_one_of_another_queue_is_not_found(q: Queue) -> None:
    id = q.send()
    q.on("complete_batch", q.claim_key())
    assert find(q, id=id) == []
    other = q.named(f"{q.name}.b").send()
    assert find(q, id=other) == []
    assert find(q, id=-1) == []


def test_messages_are_found_by_their_dedup_key(q: Queue) -> None:
    id = q.send(dedup_key="k")
    q.send(dedup_key="K")
    if q.can.blank_endings:
        q.send(dedup_key="k ")
    q.named(f"{q.name}.b").send(dedup_key="k")
    assert find(q, dedup_key="k") == [id]
    assert find(q, dedup_key="none") == []
    q.one("dead_letter", id, q.claim_key(), "broken")
    assert find(q, dedup_key="k") == [id]


@pytest.mark.parametrize("ordered", [0, 1])
def test_messages_of_a_group_are_found_in_every_state(q: Queue, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    made = {}
    for state in "EA":
        made[state] = q.send(group_key="g")
        [row] = q.claim()
        if state == "E":
            q.on("dead_letter", row["id"], row["batch_key"], "broken")
    for n in range(3):
        made[str(n)] = q.send(group_key="g")
        q.send(group_key="h")
        q.send()
    made["delayed"] = q.send(group_key="g", run_at=in_an_hour())
    assert find(q, group_key="g") == sorted(made.values())
    states = {row["id"]: row["state"] for row in q.call("find_messages", group_key="g")}
    assert states == {id: state if state in "EA" else "N" for state, id in made.items()}
    assert find(q, group_key="G") == []


def test_all_that_is_named_must_be_so(q: Queue) -> None:
    id = q.send(dedup_key="k", group_key="g")
    assert find(q, id=id, dedup_key="k", group_key="g") == [id]
    assert find(q, id=id, dedup_key="x") == []
    assert find(q, dedup_key="k", group_key="x") == []


def test_find_messages_limits_the_rows_and_the_length_of_bodies(q: Queue) -> None:
    sent = [q.send("é😀" * 5, group_key="g") for _ in range(22)]
    assert find(q, group_key="g") == sent[:20]
    assert find(q, group_key="g", size=3) == sent[:3]
    assert [row["body"] for row in q.call("find_messages", id=sent[0], body_length=3)] == ["é😀é"]
    assert [row["body"] for row in q.call("find_messages", id=sent[0], body_length=0)] == [""]
    assert [row["body"] for row in q.call("find_messages", id=sent[0])] == ["é😀" * 5]


def test_a_search_needs_something_to_search_for(q: Queue) -> None:
    with q.refused("invalid_argument", "filter: "):
        q.call("find_messages")
    with q.refused("invalid_argument", "type: "):
        q.on("find_messages", None, dedup_key="k")
    with q.refused("invalid_argument", "type: "):
        q.on("find_messages", None, group_key="g")
