"""Ordered queues crossed with takes, priorities, times, retries, expired leases and cancels: no group gets stuck."""

import contextlib
from datetime import timedelta
from itertools import product

import pytest
from support.outcomes import failure
from support.queues import LONG_AGO, Queue, in_time

STEPS = ("take", "claim", "roll back", "expire", "fail", "cancel")
SENT = list(product([0, -1, 1], ["now", "past", "late"]))


class Groups:
    """Groups of three messages; after the first one, each group has another pair of priority and time."""

    def __init__(self, q: Queue) -> None:
        self.q = q
        self.done: dict[str, list[int]] = {}
        self.sent: dict[str, list[int]] = {}
        times = {"now": None, "past": LONG_AGO, "late": in_time(milliseconds=30)}
        for priority, when in SENT:
            group = f"{priority} {when}"
            self.sent[group] = [
                q.send(group_key=group),
                q.send(group_key=group, priority=priority, run_at=times[when]),
                q.send(group_key=group, priority=-priority, run_at=LONG_AGO + timedelta(days=1)),
            ]
            self.done[group] = []

    def note(self, rows: list[dict[str, object]]) -> None:
        for row in rows:
            self.done[str(row["group_key"])].append(int(str(row["id"])))

    def step(self, name: str) -> None:
        q = self.q
        if name == "take":
            self.note(q.call("take_batch", 100))
        elif name == "roll back":
            with pytest.raises(ZeroDivisionError), q.session.transaction():
                q.call("take_batch", 100)
                raise ZeroDivisionError
        elif name == "cancel":
            for sent in self.sent.values():
                if q.one("cancel", sent[0]) == 1:
                    sent.pop(0)
        else:
            self._claim(name)

    def _claim(self, name: str) -> None:
        rows = self.q.claim_expired(100) if name == "expire" else self.q.claim(100)
        if not rows or name == "expire":
            self.q.call("rescue_expired")
            return
        failures = "\n".join(failure(row["id"], "no", 0) for row in rows) if name == "fail" else None
        self.q.on("finish_batch", rows[0]["batch_key"], failures, 0)
        if name == "claim":
            self.note(rows)

    def left(self) -> int:
        return sum(map(len, self.sent.values())) - sum(map(len, self.done.values()))


@pytest.mark.level(1)
@pytest.mark.parametrize("steps", list(product(STEPS, repeat=2)), ids=", ".join)
@pytest.mark.parametrize("last", ["take", "claim"])
def test_every_message_of_every_group_is_handled_in_order(q: Queue, steps: tuple[str, str], last: str) -> None:
    groups = Groups(q.ordered())
    q.call("set_queue", max_attempts=100)
    for step in steps:
        groups.step(step)
    for _ in range(300):
        if not groups.left():
            break
        groups.step(last)
    assert not groups.left(), q.rows("id, group_key, state, run_at, priority")
    late = {group for group in groups.sent if group.endswith("late")}
    for group in groups.sent.keys() - late:
        assert groups.done[group] == groups.sent[group]
    for group in late:  # what is not due yet lets what stands after it in its group pass
        assert sorted(groups.done[group]) == groups.sent[group]
    assert q.rows() == []


def test_a_take_whose_old_ticket_is_the_next_messages_own_leaves_that_one_claimable(q: Queue) -> None:
    """It was lost for good once: the ticket that the take had used was the only one that the second message had."""
    q.ordered()
    first, second = q.send(group_key="g"), q.send(group_key="g", priority=-1)
    assert [row["id"] for row in q.call("take_batch")] == [first]
    assert [row["id"] for row in q.call("take_batch")] == [second]


@pytest.mark.product("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_group_continues_while_its_next_message_is_being_cancelled(q: Queue, other: Queue, ending: str) -> None:
    """A cancel in an open transaction: its group's head is finished meanwhile, and no call waits."""
    q.ordered()
    _, second, _ = (q.send(body, group_key="g") for body in "123")
    [head] = q.claim()
    with contextlib.suppress(KeyError), other.session.transaction():
        assert other.one("cancel", second) == 1
        assert q.claim(10) == []
        assert q.one("complete", head["id"], head["batch_key"]) == 1
        if ending == "rollback":
            raise KeyError
    drained = [row["body"] for _ in "123" for row in q.call("take_batch")]
    assert drained == {"commit": ["3"], "rollback": ["2", "3"]}[ending]
