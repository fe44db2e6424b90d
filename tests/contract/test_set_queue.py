"""set_queue: the policy of a type."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Session
from support.outcomes import failure
from support.queues import Queue, in_an_hour

DEFAULTS = {
    "lease_seconds": 60,
    "max_attempts": 25,
    "backoff_seconds": 5,
    "backoff_max_seconds": 3_600,
    "on_complete": "delete",
    "ordered": 0,
    "notify": 1,
    "max_active": 0,
    "rate": 0,
    "rate_seconds": 1,
    "group_max_active": 0,
    "group_rate": 0,
    "group_rate_seconds": 1,
    "paused": 0,
    "ring": 0,
    "fair": 0,
    "dead_stops_group": 0,
}
CHANGED: dict[str, Any] = {
    "lease_seconds": 7,
    "max_attempts": 3,
    "backoff_seconds": 9,
    "backoff_max_seconds": 99,
    "on_complete": "archive",
    "ordered": 1,
    "notify": 0,
    "max_active": 1_000_000,
    "rate": 17,
    "rate_seconds": 86_400,
    "group_max_active": 1,
    "group_rate": 1_000_000,
    "group_rate_seconds": 90,
    "fair": 1,
    "dead_stops_group": 1,
}
# One that cannot be combined with the others.
ALONE = {"ring": 1}


def test_set_queue_shows_the_defaults_of_a_new_queue(q: Queue) -> None:
    assert q.call("set_queue") == [{"type": q.name, **DEFAULTS, "known": 0}]


@pytest.mark.parametrize("setting", [*CHANGED, *ALONE])
def test_set_queue_changes_one_setting_and_leaves_the_others(q: Queue, setting: str) -> None:
    value = (CHANGED | ALONE)[setting]
    changed = {setting: value} | ({"ordered": 1} if setting == "dead_stops_group" else {})
    wanted = {"type": q.name, **DEFAULTS, **changed}
    assert q.call("set_queue", **changed) == [wanted | {"known": 0}]
    assert q.call("set_queue") == [wanted | {"known": 1}]


def test_set_queue_changes_all_settings_at_once_and_back(q: Queue) -> None:
    assert q.call("set_queue", **CHANGED) == [{"type": q.name, **DEFAULTS, **CHANGED, "known": 0}]
    back = {name: DEFAULTS[name] for name in CHANGED}
    assert q.call("set_queue", **back) == [{"type": q.name, **DEFAULTS, "known": 1}]


def test_set_queue_does_not_change_a_pause(q: Queue) -> None:
    q.call("pause")
    assert q.call("set_queue", lease_seconds=7)[0]["paused"] == 1


def test_set_queue_concerns_one_type(q: Queue) -> None:
    q.call("set_queue", **CHANGED)
    assert q.named(q.name + "x").call("set_queue")[0]["lease_seconds"] == 60


def test_set_queue_applies_to_messages_sent_before(q: Queue) -> None:
    id = q.send()
    q.call("set_queue", max_attempts=1)
    assert q.one("fail", id, q.claim_key(), "broken", 0) == "E"


@pytest.mark.parametrize("value", ["", "Delete", "keep", "delete "])
def test_set_queue_knows_only_delete_and_archive(q: Queue, value: str) -> None:
    with q.refused("invalid_argument", "on_complete: must be delete or archive"):
        q.call("set_queue", on_complete=value)
    assert q.call("set_queue")[0]["on_complete"] == "delete"


def test_set_queue_refused_for_one_setting_changes_none(q: Queue) -> None:
    with q.refused("invalid_argument", "max_attempts"):
        q.call("set_queue", lease_seconds=7, max_attempts=0)
    assert q.call("set_queue") == [{"type": q.name, **DEFAULTS, "known": 0}]


def test_set_queue_rolled_back_changes_nothing(q: Queue) -> None:
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        q.call("set_queue", **CHANGED)
        raise ZeroDivisionError
    assert q.call("set_queue") == [{"type": q.name, **DEFAULTS, "known": 0}]


@pytest.mark.parametrize("state", ["ready", "delayed", "active"])
@pytest.mark.parametrize("ordered", [0, 1])
def test_set_queue_refuses_to_change_ordered_while_messages_are_new_or_active(
    q: Queue, state: str, ordered: int
) -> None:
    q.call("set_queue", ordered=1 - ordered)
    q.send(run_at=in_an_hour() if state == "delayed" else None)
    if state == "active":
        q.claim()
    with q.refused("queue_not_empty", q.name):
        q.call("set_queue", lease_seconds=7, ordered=ordered)
    assert q.call("set_queue")[0]["lease_seconds"] == 60
    assert q.call("set_queue", ordered=1 - ordered, lease_seconds=7)[0]["lease_seconds"] == 7


def test_set_queue_changes_ordered_while_messages_are_dead_or_archived(q: Queue) -> None:
    q.archived()
    for retry in (-1, None):
        id = q.send()
        q.on("finish_batch", q.claim_key(), failure(id, "x", retry) if retry else None)
    assert set(q.states().values()) == {"E", "C"}
    assert q.call("set_queue", ordered=1)[0]["ordered"] == 1
    assert q.count("redrive_all") == 1
    assert len(q.claim(10)) == 1


@pytest.mark.product("postgresql", "firebird")
def test_a_queue_that_does_not_notify_wakes_nobody(q: Queue, connect: Callable[..., Session]) -> None:
    waiting = connect("waiting")
    assert waiting.listen([q.name])
    waiting.call("wait_for_message", q.name)
    q.call("set_queue", notify=0, max_active=5)
    first = q.send()
    q.call("send_batch", "a\nb")
    q.on("fail", first, q.claim_key(), "no", 0)
    q.on("release_batch", q.claim_key())
    q.on("complete_batch", q.claim_key())
    q.call("pause")
    q.call("resume")
    id = q.send(priority=-1)
    q.on("dead_letter", id, q.claim_key(), "no")
    q.call("redrive_all")
    q.call("take_batch", 1)
    interrupt, never = os.pipe()
    try:
        assert not waiting.wait(0.2, interrupt)
        waiting.call("wait_for_message", q.name)
        q.call("set_queue", notify=1)
        q.send()
        assert waiting.wait(30, interrupt)
    finally:
        os.close(interrupt)
        os.close(never)
