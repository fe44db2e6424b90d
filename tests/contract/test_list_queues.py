"""list_queues: the policies of queues, read only."""

from support.queues import CONTRACT, Queue


def test_a_queue_without_a_policy_has_the_defaults_and_gets_no_row(q: Queue) -> None:
    [row] = q.call("list_queues")
    assert row == {"type": q.name} | {
        "lease_seconds": 60,
        "max_attempts": 25,
        "backoff_seconds": 5,
        "backoff_max_seconds": 3600,
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
    assert q.name not in [row["type"] for row in q.on("list_queues")]


def test_a_policy_is_listed_as_set_queue_returns_it(q: Queue) -> None:
    policy = {"lease_seconds": 5, "max_attempts": 3, "backoff_seconds": 7, "backoff_max_seconds": 70}
    limits = {"max_active": 9, "rate": 8, "rate_seconds": 6, "group_max_active": 4, "group_rate": 2}
    [row] = q.call("set_queue", on_complete="archive", notify=0, fair=1, group_rate_seconds=11, **policy, **limits)
    assert row.pop("known") == 0
    assert q.call("list_queues") == [row]
    assert row in q.on("list_queues")
    q.call("pause")
    assert q.call("list_queues") == [row | {"paused": 1}]


def test_queues_are_ordered_by_name(q: Queue) -> None:
    names = [f"{q.name}.{suffix}" for suffix in ("b", "B", "a")]
    for name in names:
        q.named(name).call("set_queue")
    found = [row["type"] for row in q.on("list_queues") if row["type"].startswith(q.name)]
    assert found == sorted(names)


def test_list_queues_has_the_columns_of_set_queue() -> None:
    *settings, known = CONTRACT.procedures["set_queue"].columns
    assert CONTRACT.procedures["list_queues"].columns == tuple(settings) and known.name == "known"
    assert CONTRACT.procedures["find_messages"].columns == CONTRACT.procedures["peek"].columns
