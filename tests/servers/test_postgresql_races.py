"""Races that only PostgreSQL's way of doing things has, with their steps in a fixed order."""

import threading
import time
from collections.abc import Callable
from typing import Any

from rowqueue.databases import Database, Session

from servers import Server


def test_a_slow_claim_does_not_claim_a_message_that_was_finished_meanwhile(
    server: Server, database: Database, connect: Callable[..., Session], queue: str
) -> None:
    """Its cursor still sees the message: without a second look the claim would hold a message that is no more, and its
    group would be locked for good."""
    slow, quick = connect("slow"), connect("quick")
    quick.call("set_queue", queue, None, None, None, None, None, 1)
    first = quick.call("send_message", queue, "first", None, 0, "a")[0]["id"]
    quick.call("send_message", queue, "head of its group, less urgent", None, 2, "b")
    quick.call("send_message", queue, "second of its group, more urgent", None, 1, "b")
    claimed: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: claimed.extend(slow.call("claim_batch", queue, 10, "slow", 60)))
    with server.client(database.url) as other, server.client(database.url) as looking:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'slow' AND wait_event_type = 'Lock'"
        with other.transaction(force_rollback=True):
            # The slow claim stops here, after it has opened its cursor and taken the first message.
            other.execute("INSERT INTO mq.group_lock (id, type, group_key) VALUES (-1, %s, 'a')", [queue])
            thread.start()
            deadline = time.monotonic() + 10
            while not looking.execute(waiting).fetchone():
                assert time.monotonic() < deadline, "the claim does not wait"
                time.sleep(0.01)
            for _ in range(2):
                row = quick.call("claim_batch", queue, 1)[0]
                assert row["group_key"] == "b"
                assert quick.call("complete", row["id"], row["batch_key"])[0]["count"] == 1
        thread.join(30)
        assert [row["id"] for row in claimed] == [first]
        held = looking.execute("SELECT ids FROM mq.batch WHERE type = %s", [queue]).fetchall()
        assert [row["ids"] for row in held] == [[first]]
        locks = looking.execute("SELECT group_key FROM mq.group_lock WHERE type = %s", [queue]).fetchall()
        assert [row["group_key"] for row in locks] == ["a"]
