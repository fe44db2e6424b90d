"""purge: delete the messages of one type and state."""

import pytest
from queues import Queue, ids, in_an_hour

pytestmark = pytest.mark.one_version


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


def test_purge_deletes_10000_a_call(q: Queue) -> None:
    q.send_many(10_000)
    q.send()
    q.send(run_at=in_an_hour())
    assert [q.count("purge", "N") for _ in range(3)] == [10_000, 2, 0]


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
