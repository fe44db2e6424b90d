"""The repairs of docs/operate, on every engine: what their blocks say, done as it stands there, repairs."""

import json
import re
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server
from shops import DOCS, POISONED, Shop, blocks, make
from support.outcomes import dead_letter
from tabs import for_engine


@pytest.fixture
def shop(database: Database, server: Server, tmp_path: Path) -> Iterator[Shop]:
    """In the hands of an operator, except for what the page leaves to the owner of the tables."""
    shop = make(server, database.url, tmp_path)
    shop.only_emails()
    with server.login(database.url, f"on_duty_{uuid.uuid4().hex[:12]}", "mq_operator") as url:
        shop.hand_to(url)
        yield shop


def test_a_stuck_consumer_loses_its_messages(shop: Shop) -> None:
    for consumer in ("worker-1", "worker-2", "worker-1"):
        shop.call("claim_batch", "email", 4, consumer)
    shop.follow("A stuck consumer", 0)
    assert {row["attempts"] for row in shop.call("peek", "email", "N", 100)} == {0}
    assert {row["consumer"] for row in shop.call("peek", "email", "A", 100)} == {"worker-2"}
    shop.call("claim_batch", "email", 5, "worker-1")
    shop.follow("A stuck consumer", 1)
    time.sleep(1.1)  # until the lease ends
    shop.call("rescue_expired", "email")
    assert shop.states() == {"N": 16, "A": 4}
    assert sum(row["attempts"] == 1 for row in shop.call("peek", "email", "N", 100)) == 5


@pytest.mark.parametrize("held", [True, False])
def test_a_poisoned_message_is_dead_at_once(shop: Shop, held: bool) -> None:
    if held:
        shop.call("claim_batch", "email", 20, "worker-1")
    assert re.search(r"^E\s*$", shop.follow(POISONED, 0 if held else 1), re.M)
    assert shop.states() == {"E": 1, "A" if held else "N": 19}
    [dead] = shop.call("peek", "email", "E", 10)
    assert (dead["id"], dead["error"]) == (shop.first + 16, "kills the worker, see ticket 4711")


def test_dead_letters_are_redriven_one_some_and_all_and_purged(shop: Shop) -> None:
    def die() -> None:
        rows = shop.call("claim_batch", "email", 20)
        errors = ["connection timed out after 30 s" if row["id"] >= shop.first + 10 else "refused" for row in rows]
        failures = "\n".join(dead_letter(row["id"], error) for row, error in zip(rows, errors, strict=True))
        shop.call("finish_batch", rows[0]["batch_key"], failures)
        assert shop.states() == {"E": 20}

    die()
    seen = []
    for number in range(3):
        shop.follow("Dead letters", number)
        seen.append(shop.states()["N"])
    assert seen == [1, 10, 20]
    die()
    shop(f"UPDATE {shop.table('message')} SET body = 'to ada@exmaple.org' WHERE id = {shop.first + 16}")
    shop.follow("Dead letters", 3)
    [repaired] = shop.call("peek", "email", "N", 10)
    assert (repaired["id"], repaired["body"]) == (shop.first + 16, "to ada@example.org")
    shop.follow("Dead letters", 4)
    assert shop.states() == {"N": 1}


@pytest.mark.parametrize("ordered", [0, 1])
def test_messages_without_a_state_become_new_and_ids_without_a_message_are_removed(shop: Shop, ordered: int) -> None:
    ready, message = shop.table("ready"), shop.table("message")
    shop.call("purge", "email", "N")
    shop.call("set_queue", "email", json.dumps({"ordered": ordered}))
    with shop.session() as session:
        ids = [session.call("send_message", "email", "x", None, None, f"g{n}")[0]["id"] for n in range(20)]
    shop(f"DELETE FROM {ready} WHERE id >= {ids[10]}")
    shop(f"DELETE FROM {shop.table('grouped')} WHERE id >= {ids[10]}")
    shop(f"DELETE FROM {message} WHERE id < {ids[2]}")
    assert shop.states() == {"N": 8, None: 10}
    shop.follow("A message in no state")
    assert shop.states() == {"N": 18}
    assert shop(f"SELECT COUNT(*) AS n FROM {ready} WHERE id < {ids[2]}") == [{"n": 0}]
    assert len(shop.call("claim_batch", "email", 100)) == 18


def test_a_group_that_was_damaged_by_hand_continues_and_healthy_groups_stay_unchanged(shop: Shop) -> None:
    shop.call("set_queue", "invoice", '{"ordered": 1, "dead_stops_group": 1}')
    groups = ("lost head", "lost ticket", "at work", "waiting", "stopped")
    for group in groups * 2:
        shop.call("send_message", "invoice", group, None, None, group)
    claimed = {row["body"]: row for row in shop.call("claim_batch", "invoice", 5)}
    assert set(claimed) == set(groups)
    key = claimed["at work"]["batch_key"]
    shop.call("fail", claimed["waiting"]["id"], key, "later", 600)
    shop.call("complete", claimed["lost ticket"]["id"], key)
    shop.call("dead_letter", claimed["stopped"]["id"], key, "no")
    shop(f"DELETE FROM {shop.table('ready')} WHERE type = 'invoice'")
    shop.empty_batches_but(claimed["at work"]["id"])
    shop(f"DELETE FROM {shop.table('message')} WHERE id = {claimed['lost head']['id']}")
    assert shop.call("claim_batch", "invoice", 10) == []
    said = shop.follow("A group of an ordered queue that does not continue")
    assert [group in said for group in groups] == [True, False, True, True, True]
    bodies = [row["body"] for row in shop.call("claim_batch", "invoice", 10)]
    assert sorted(bodies) == ["lost head", "lost ticket"]


def test_a_stopped_group_is_found_and_continues(shop: Shop) -> None:
    shop.call("set_queue", "invoice", '{"ordered": 1, "dead_stops_group": 1}')
    for body in ("open", "pay"):
        shop.call("send_message", "invoice", body, None, None, "customer-7")
    [row] = shop.call("claim_batch", "invoice", 2)
    shop.call("dead_letter", row["id"], row["batch_key"], "no such account")
    assert shop.call("claim_batch", "invoice", 2) == []
    said = shop.follow("A group that a dead letter has stopped", 0)
    assert "customer-7" in said and "no such account" in said
    shop.call("claim_batch", "email", 20)
    held = shop.call("peek", "email", "A", 100)
    [poisoned] = [row for row in held if row["id"] == shop.first + 16]
    shop.call("dead_letter", poisoned["id"], held[0]["batch_key"], "no")
    assert shop.states() == {"N": 1, "E": 2, "A": 19}
    shop.follow("A group that a dead letter has stopped", 1)
    assert shop.states() == {"N": 2, "E": 1, "A": 19}


def test_a_queue_is_emptied_and_keeps_working(shop: Shop) -> None:
    shop.call("claim_batch", "email", 5)
    with shop.session() as session:
        [later] = session.call("send_message", "email", "later", session.now() + timedelta(days=1))
    shop.follow("Emptying a queue", 0)
    assert shop.states() == {"A": 5}
    assert shop.call("queue_stats", "email")[0]["paused"] == 0
    shop.follow("Emptying a queue", 1)
    assert shop.states() == {}
    assert shop.call("send", "email", "new")[0]["id"] > later["id"]
    assert len(shop.call("claim_batch", "email")) == 1


def test_everything_is_paused_after_a_restore_and_can_be_resumed(shop: Shop) -> None:
    shop.call("set_queue", "invoice", '{"lease_seconds": 7}')
    shop.call("send", "invoice", "x")
    shop.follow("Backup, restore, moving", 0, kind="sql")
    assert {row["paused"] for row in shop.call("queue_stats")} == {1}
    assert shop.call("claim_batch", "email") == []
    shop.follow("Backup, restore, moving", 1, kind="sql")
    assert {row["paused"] for row in shop.call("queue_stats")} == {0}
    assert len(shop.call("claim_batch", "email")) == 1


MARKS = (DOCS / "background" / "how-a-claim-works.md").read_text("utf-8")


def test_the_marks_are_read_and_emptied_as_their_page_says(shop: Shop) -> None:
    urgent = [row["id"] for _ in range(3) for row in shop.call("send_message", "email", "urgent", None, -5)]
    claimed = [row["id"] for row in shop.call("claim_batch", "email", 5)]
    assert claimed[:3] == urgent
    page = for_engine(MARKS, shop.engine)
    [(kind, query)] = blocks(page, "Reading the table at 3 a.m.")
    said = shop.do(kind, query)
    assert re.search(rf"-5\b.*\b{urgent[0]}\b", said) and re.search(rf"\b0\b.*\b{claimed[3]}\b", said), said
    shop.do(*blocks(page, "First aid")[0])
    assert shop(f"SELECT COUNT(*) AS n FROM {shop.table('mark')}") == [{"n": 0}]
    assert len(shop.call("claim_batch", "email", 100)) == 18
