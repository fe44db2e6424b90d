"""Messages in every state, for tests of what an installation survives: upgrades, areas that are added, dumps."""

from typing import Any

from queues import call, in_an_hour
from rowqueue.databases import Session
from rowqueue.install import contract

TYPES = ("plain", "archived", "ordered", "ring", "fair", "paused")


def fill(session: Session, core_only: bool = False) -> tuple[Any, Any]:
    """Messages in every state, settings, a schedule and a topic; returns the keys of two claims.

    `core_only`: without rings, fair queues and what else belongs to an area.
    """

    def claimed(type: str, *then: Any) -> Any:
        [row] = call(session, "claim_batch", type, 1, "me", 600)
        if then:
            call(session, then[0], row["id"], row["batch_key"], "broken", *then[1:])
        return row["batch_key"]

    call(session, "set_queue", "archived", on_complete="archive", max_attempts=3)
    call(session, "set_queue", "ordered", ordered=1)
    call(session, "send", "archived", "done")
    call(session, "complete_batch", claimed("archived"))
    for end in (("dead_letter",), ("fail", 3_600)):
        call(session, "send", "plain", f"failed {end[0]}")
        claimed("plain", *end)
    call(session, "send_batch", "plain", "a\nb")
    [first, _] = call(session, "claim_batch", "plain", 2, "me", 600)
    for n in range(3):
        call(session, "send_message", "ordered", f"{n}", group_key="g")
    in_group = claimed("ordered")
    call(session, "send_message", "plain", "new", priority=5, dedup_key="d", headers='{"a":1}', source="shop")
    call(session, "send_message", "plain", "later", run_at=in_an_hour())
    call(session, "send", "paused", "x")
    call(session, "pause", "paused")
    if not core_only:
        call(session, "set_queue", "ring", ring=1)
        call(session, "set_queue", "fair", fair=1)
    call(session, "send_batch", "ring", "1\n2\n3")
    for group in "aab":
        call(session, "send_message", "fair", group, group_key=group)
    if core_only:
        return first["batch_key"], in_group
    [visited] = call(session, "claim_wraparound", "ring", 1, "r", 600)
    call(session, "release_batch", visited["batch_key"])
    call(session, "bind_topic", "orders.*", "plain")
    call(session, "set_schedule", "yearly", "plain", "@yearly", "b")
    return first["batch_key"], in_group


def content(session: Session) -> dict[str, list[dict[str, Any]]]:
    """All that callers see of the queues. A later release may have more columns."""
    there = session.areas()
    seen = {
        name: call(session, name)
        for name in ("list_queues", "list_schedules", "list_bindings")
        if contract.load().procedures[name].area in there
    }
    for type in TYPES:
        for state in "NAEC":
            seen[f"{type} {state}"] = sorted(call(session, "peek", type, state), key=lambda row: int(row["id"]))
    return seen


def go_on(session: Session, key: Any, in_group: Any) -> None:
    """Claims made before are finished, and every message can be claimed once, in order."""
    assert call(session, "complete_batch", key) == [{"affected": 2}]
    [again] = call(session, "send_message", "plain", "other", dedup_key="d")
    assert again["created"] == 0
    assert call(session, "redrive_all", "plain") == [{"affected": 1}]
    assert call(session, "take_batch", "paused", 10) == []
    call(session, "resume", "paused")
    assert call(session, "take_batch", "ordered", 10) == [], "the group's first message is still claimed"
    call(session, "complete_batch", in_group)
    taken = {type: [row["body"] for row in call(session, "take_batch", type, 10)] for type in ("plain", "paused")}
    assert sorted(taken["plain"]) == ["failed dead_letter", "new"] and taken["paused"] == ["x"]
    assert [row["body"] for _ in "12" for row in call(session, "take_batch", "ordered", 1)] == ["1", "2"]
    visits = [call(session, "claim_wraparound", "ring", 1, "r", 600)[0]["body"] for _ in "123"]
    assert visits == ["2", "3", "1"], "the consumer goes on where it stopped"
    assert {row["body"] for row in call(session, "peek", "plain", "N")} == {"failed fail", "later"}
    assert [row["body"] for row in call(session, "take_batch", "fair", 2)] == ["a", "b"]
