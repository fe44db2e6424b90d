"""find_queues: the names of queues, page by page."""

import time

import pytest
from rowqueue.databases import QueueError
from support.queues import Queue, in_an_hour


def found(q: Queue, prefix: str | None = None, after: str | None = None, size: int | None = 1000) -> list[str]:
    return [row["type"] for row in q.on("find_queues", prefix, after, size)]


def test_a_queue_is_found_while_it_has_settings_or_a_message_that_is_new_or_active(q: Queue) -> None:
    def is_found() -> bool:
        assert found(q, q.name) == ([q.name] if q.name in found(q) else [])
        return q.name in found(q)

    assert not is_found()
    q.send("a")
    assert is_found()
    [message] = q.call("claim_batch", 1)
    assert is_found(), "active"
    q.on("complete", message["id"], message["batch_key"])
    assert not is_found()
    q.call("send_message", "b", run_at=in_an_hour())
    assert is_found(), "delayed"
    [row] = q.call("peek")
    q.on("cancel", row["id"])
    assert not is_found()
    q.call("set_queue", ordered=1)
    assert is_found(), "settings"


def test_a_queue_with_only_a_dead_letter_is_not_found_and_a_blocked_group_is(q: Queue) -> None:
    q.send("a")
    [message] = q.call("claim_batch", 1)
    q.on("dead_letter", message["id"], message["batch_key"], "no such mailbox")
    assert found(q, q.name) == []
    q.call("set_queue", ordered=1)
    q.call("send_message", "b", group_key="g")
    q.call("send_message", "c", group_key="g")
    q.call("claim_batch", 10)
    assert found(q, q.name) == [q.name]


def test_a_queue_with_a_schedule_is_found(q: Queue) -> None:
    q.on("set_schedule", q.name, q.name, "0 3 1 1 *", "yearly")
    try:
        assert found(q, q.name) == [q.name]
    finally:
        q.on("drop_schedule", q.name)
    assert found(q, q.name) == []


def test_names_are_returned_once_in_order_and_page_by_page(q: Queue) -> None:
    ends = ["", ".A", ".Z", ".a", ".a b", ".a%", ".a*", ".a_", ".aa", ".ä", ".日", ".😀"]
    names = [q.name + end for end in ends]
    for name in names * 3:
        q.named(name).send("x")
    q.named(names[2]).call("set_queue", ordered=0)
    assert found(q, q.name) == sorted(names)
    assert found(q, q.name + ".a") == sorted(name for name in names if name.startswith(q.name + ".a"))
    assert found(q, q.name + ".a%") == [q.name + ".a%"]
    pages = [found(q, q.name, None, 5)]
    while len(pages[-1]) == 5:
        pages.append(found(q, q.name, pages[-1][-1], 5))
    assert [name for page in pages for name in page] == sorted(names)
    assert len(pages) == 3
    assert found(q, q.name, size=None) == sorted(names)[:20]


def test_a_prefix_ends_where_other_names_begin(q: Queue) -> None:
    for end in ("a", "b", "b c", "c"):
        q.named(q.name + end).send("x")
    assert found(q, q.name + "b") == [q.name + "b", q.name + "b c"]
    assert found(q, q.name + "b", q.name + "b") == [q.name + "b c"]
    assert found(q, q.name + "b", q.name + "c") == []
    assert found(q, q.name + "b", q.name) == [q.name + "b", q.name + "b c"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("", None, 1), "prefix"), ((None, "", 1), "after"), (("x" * 201, None, 1), "prefix"), ((None, None, 0), "size")],
)
def test_find_queues_refuses_what_is_outside_the_limits(
    q: Queue, arguments: tuple[str | None, str | None, int], name: str
) -> None:
    with pytest.raises(QueueError, match=f"{name}: ") as error:
        q.on("find_queues", *arguments)
    assert error.value.number == 50002


def test_names_of_300_queues_are_found_quickly_however_many_messages_they_have(q: Queue) -> None:
    for n in range(300):
        q.named(f"{q.name}.{n:03}").call("send_batch", "x\n" * 20)
    q.named(f"{q.name}.007").call("send_batch", "x\n" * 10_000)
    began = time.monotonic()
    assert len(found(q, q.name)) == 300
    assert time.monotonic() - began < 1
