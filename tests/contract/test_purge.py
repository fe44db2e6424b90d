"""purge: delete the messages of one type and state."""

import time
from contextlib import closing, suppress
from datetime import datetime

import pytest
from rowqueue.databases import Database, open_database
from support.queues import LONG_AGO, Queue, ids, in_an_hour


def one_in_each_state(q: Queue) -> dict[str, int]:
    """Ids of a ready, a delayed, an active, a dead and an archived message."""
    q.archived()
    found = {}
    for name in ("dead", "archived", "active"):
        found[name] = q.send()
        key = q.claim_key()
        if name == "dead":
            q.one("dead_letter", found[name], key, "broken")
        if name == "archived":
            q.on("complete_batch", key)
    return found | {"ready": q.send(), "delayed": q.send(run_at=in_an_hour())}


@pytest.mark.parametrize(("state", "gone"), [("N", {"ready", "delayed"}), ("E", {"dead"}), ("C", {"archived"})])
def test_purge_deletes_one_state_and_nothing_else(q: Queue, state: str, gone: set[str]) -> None:
    found = one_in_each_state(q)
    assert q.count("purge", state) == len(gone)
    assert set(q.states()) == {id for name, id in found.items() if name not in gone}
    assert q.count("purge", state) == 0


@pytest.mark.parametrize("state", ["A", "n", "", "NE", "D"])
def test_purge_refuses_any_other_state(q: Queue, state: str) -> None:
    one_in_each_state(q)
    with q.refused("invalid_argument", "state: must be N, E or C"):
        q.call("purge", state)


def test_purge_leaves_other_types_alone(q: Queue) -> None:
    other = q.named(q.name + "x")
    found = one_in_each_state(other)
    for state in "NEC":
        assert q.count("purge", state) == 0
    assert set(other.states()) == set(found.values())


@pytest.mark.level(3)
def test_purge_deletes_as_many_as_its_size(q: Queue) -> None:
    q.send_many(10_000)
    q.send()
    q.send(run_at=in_an_hour())
    assert [q.count("purge", "N", size=size) for size in (None, 1, 10_000, 10_000)] == [1_000, 1, 9_001, 0]


@pytest.mark.parametrize("size", [0, -1, 10_001])
def test_purge_refuses_a_size_outside_its_limit(q: Queue, size: int) -> None:
    q.send()
    with q.refused("invalid_argument", "size: "):
        q.call("purge", "N", size=size)


def test_purge_refuses_a_time_for_new_messages(q: Queue) -> None:
    q.send()
    with q.refused("invalid_argument", "before: must be NULL with state N"):
        q.call("purge", "N", in_an_hour())


def test_purge_deletes_the_dead_letters_that_died_earlier(q: Queue) -> None:
    for n in range(3):
        id = q.send(f"{n}")
        q.one("dead_letter", id, q.claim_key(), "no")
        time.sleep(0.01)
    third, second, first = q.call("peek", "E")
    assert q.count("purge", "E", second["changed_at"]) == 1
    assert q.states() == {second["id"]: "E", third["id"]: "E"}
    assert [q.count("purge", "E", in_an_hour(), 1), q.count("purge", "E", LONG_AGO)] == [1, 0]
    assert q.states() == {third["id"]: "E"} and first["id"] not in q.states()


# ---- the archive ---------------------------------------------------------------------------------


def complete(q: Queue, count: int) -> datetime:
    """Send and complete so many; returns when."""
    q.send_many(count)
    key = q.claim_key(count)
    q.on("complete_batch", key)
    done: datetime = max(row["changed_at"] for row in q.rows() if row["state"] == "C")
    return done


def test_purge_deletes_archived_messages_by_chunks_of_size(q: Queue) -> None:
    first = complete(q.archived(), 25)
    second = complete(q, 3)
    assert second > first
    assert [q.count("purge", "C", second, 10) for _ in range(4)] == [10, 10, 5, 0]
    assert len(q.rows()) == 3


def test_purge_deletes_the_archived_messages_that_were_completed_first(q: Queue) -> None:
    complete(q.archived(), 2)
    second = complete(q, 2)
    third = complete(q, 1)
    assert q.count("purge", "C", third, 2) == 2
    assert sorted(row["changed_at"] for row in q.rows()) == [second, second, third]


def test_purge_keeps_what_was_completed_at_that_time_or_later(q: Queue) -> None:
    done = complete(q.archived(), 3)
    with q.unchanged():
        assert q.count("purge", "C", done) == q.count("purge", "C", LONG_AGO) == 0


def test_purge_never_waits_for_a_session_that_completes(q: Queue, other: Queue) -> None:
    complete(q.archived(), 3)
    other.send()
    with other.session.transaction():
        other.on("complete_batch", other.claim_key())
        assert q.count("purge", "C", in_an_hour(), 10) == 3
    assert len(q.rows()) == 1 and q.count("purge", "C", in_an_hour()) == 1


@pytest.mark.level(3)
@pytest.mark.parametrize("others", [0, 1])
def test_purge_empties_a_partition_that_is_wholly_of_the_queue_and_older(
    installed_database: Database, q: Queue, others: int
) -> None:
    # In a database of its own: other tests archive too.
    with closing(open_database(installed_database.url).connect("test")) as session:
        here = q.by(session).named("a")
        if others:
            complete_there(here.named("b").archived(), 1)
        complete_there(here.archived(), 25)
        at_once = q.can.empties_parts and not others
        with suppress(ZeroDivisionError), session.transaction():
            assert here.count("purge", "C", in_an_hour(), 10) == (25 if at_once else 10)
            raise ZeroDivisionError
        assert len(here.call("peek", "C", 100)) == 25
        assert here.count("purge", "C", in_an_hour(), 10) == (25 if at_once else 10)
        assert len(here.named("b").call("peek", "C")) == others


def complete_there(q: Queue, count: int) -> None:
    q.call("send_batch", "\n".join(map(str, range(count))))
    q.on("complete_batch", q.claim_key(count))


# ---- known ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("procedure", ["purge", "pause", "resume", "set_queue", "set_group"])
def test_a_call_says_whether_anything_had_this_name(q: Queue, procedure: str) -> None:
    arguments = {"purge": ("E",), "set_group": ("g", 2)}.get(procedure, ())
    typo = q.named(q.name + ".typo")
    assert typo.call(procedure, *arguments)[0]["known"] == 0
    q.send()
    q.on("complete_batch", q.claim_key())
    assert q.rows() == [] and q.call(procedure, *arguments)[0]["known"] == 1
    delayed = q.named(q.name + ".delayed")
    delayed.send(run_at=in_an_hour())
    assert delayed.call(procedure, *arguments)[0]["known"] == 1
    typo.call("set_queue")
    assert typo.call(procedure, *arguments)[0]["known"] == 1


def test_purge_skips_messages_that_are_being_claimed(q: Queue, other: Queue) -> None:
    sent = q.send_many(3)
    with q.session.transaction():
        assert ids(q.claim(1)) == sent[:1]
        assert other.count("purge", "N") == 2
    assert q.states() == {sent[0]: "A"}


def test_purge_frees_dedup_keys(q: Queue) -> None:
    q.send(dedup_key="d")
    q.call("purge", "N")
    assert q.call("send_message", "b", dedup_key="d")[0]["created"] == 1


def test_purge_rolled_back_leaves_all_claimable(q: Queue) -> None:
    sent = q.send_many(3)
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert q.count("purge", "N") == 3
        raise ZeroDivisionError
    assert ids(q.claim(10)) == sent


def test_purge_of_new_messages_in_an_ordered_queue_empties_every_group(q: Queue) -> None:
    q.ordered()
    for group in "aab":
        q.send(group_key=group)
    q.send(group_key="b", run_at=in_an_hour())
    assert q.count("purge", "N") == 4
    assert q.claim(10) == [] and q.rows() == []
    fresh = q.send(group_key="a")
    assert ids(q.claim(10)) == [fresh]


def test_purge_of_new_messages_in_an_ordered_queue_leaves_the_active_head_holding_its_group(q: Queue) -> None:
    q.ordered()
    head, _second = q.send(group_key="a"), q.send(group_key="a")
    key = q.claim_key(10)
    assert q.count("purge", "N") == 1
    third = q.send(group_key="a")
    assert q.claim(10) == []
    assert q.one("complete", head, key) == 1
    assert ids(q.claim(10)) == [third]


def test_a_group_continues_after_a_purge_of_its_waiting_head(q: Queue) -> None:
    q.ordered()
    head = q.send(group_key="a")
    q.one("fail", head, q.claim_key(), "busy", 3_600)
    assert q.count("purge", "N") == 1
    fresh = q.send(group_key="a")
    assert ids(q.claim(10)) == [fresh]


def test_purge_of_dead_messages_in_an_ordered_queue_leaves_their_groups_alone(q: Queue) -> None:
    q.ordered()
    head, second = q.send(group_key="a"), q.send(group_key="a")
    q.one("dead_letter", head, q.claim_key(), "broken")
    assert q.count("purge", "E") == 1
    assert ids(q.claim(10)) == [second]
