"""Random sequences of all message procedures against a small model: each message is in exactly one state, always."""

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from rowqueue.databases import Row
from support.outcomes import dead_letter, done, failure, released
from support.queues import LONG_AGO, NO_KEY, Queue, call, ids, in_an_hour, refused

MAX_ATTEMPTS = 3
RETRIES = st.sampled_from([None, -1, 0, 3_600])
# Shrinking a failure takes minutes: for those who look for its cause.
SHRINK = bool(os.environ.get("SHRINK"))
INDEX = st.integers(0, 1_000)
# Ways to serve a queue: (ring, fair).
WAYS = {"plain": (0, 0), "ring": (1, 0), "fair": (0, 1)}


TIMES = {"now": lambda: None, "past": lambda: LONG_AGO, "future": in_an_hour}


@dataclass
class Message:
    """What the model knows of one message. `run_at` orders new ones; what is not due by now is not due in this run."""

    id: int
    state: str
    attempts: int
    priority: int
    sent_run_at: datetime
    run_at: datetime
    due: bool
    max_attempts: int
    group: str | None
    dedup: str | None
    body: str = "b"
    key: Any = None
    consumer: str | None = None  # None: the session's own name
    failed: bool = False
    result: str | None = None
    steps: dict[str, str | None] = field(default_factory=dict)
    error: str = ""  # of a dead letter, as list_errors names it
    cancelled: bool = False  # while it is active


class PlainQueue(RuleBasedStateMachine):
    """A queue that is not ordered."""

    ordered = 0
    limits: ClassVar[dict[str, int]] = {}
    ways: ClassVar[list[str]] = ["plain", "ring", "fair"]

    def __init__(self, queue: Queue, name: str) -> None:
        super().__init__()
        self.q = queue.named(name)
        self.q.call("set_queue", max_attempts=MAX_ATTEMPTS, backoff_seconds=0, ordered=self.ordered, **self.limits)
        self.topic = "m" + name.rpartition("test.")[2]
        call(self.q.session, "bind_topic", f"{self.topic}.#", self.q.name)
        self.messages: dict[int, Message] = {}
        self.way, self.takes = "plain", False
        # Where each consumer of a ring stopped, and the group at which each priority of a fair queue did. After a
        # change of the way it may be the old place or the beginning.
        self.places: dict[str | None, int] = {}
        self.turns: dict[int, str] = {}
        self.next_turns: dict[int, str] = {}
        self.changed_way = False
        self.lost: list[Any] = [NO_KEY]
        self.paused = False
        self.archive = False

    # ---- the model -------------------------------------------------------------------------------

    def within(self, *states: str) -> list[Message]:
        return [m for m in self.messages.values() if m.state in states]

    def held(self) -> dict[Any, list[Message]]:
        batches: dict[Any, list[Message]] = {}
        for message in self.within("A"):
            batches.setdefault(message.key, []).append(message)
        return batches

    def pick(self, choices: Any, index: int) -> Any:
        return list(choices)[index % len(choices)]

    def claimable(self) -> list[Message]:
        """In the order of take_batch, which is that of claims too, except in a ring."""
        due = (m for m in self.within("N") if m.due)
        if self.way == "ring" and self.q.can.takes_by_id:
            return sorted(due, key=lambda m: m.id)
        return sorted(due, key=lambda m: (m.priority, m.run_at, m.id))

    def check_claimed(self, claimed: list[int], size: int) -> None:
        """The claimed messages are the legal next ones."""
        if self.way == "fair":
            self.check_turns(claimed, size)
        else:
            assert claimed == [m.id for m in self.claimable()[:size]]

    def check_ring(self, claimed: list[int], size: int, consumer: str | None, after: int | None) -> None:
        """By id, beginning after the consumer's position or the given id, and then from the lowest id on."""
        known = self.places.get(consumer, None if self.changed_way else 0) if after is None else after
        starts = [known] if known is not None else [0, *(m.id for m in self.claimable())]
        assert claimed in [
            [m.id for m in sorted(self.claimable(), key=lambda m: (m.id <= start, m.id))[:size]] for start in starts
        ]
        if claimed:
            self.places[consumer] = claimed[-1]

    def check_turns(self, claimed: list[int], size: int) -> None:
        """One priority after the other; in each, the groups take turns, beginning after the last one served."""
        self.next_turns = {}
        by_priority: dict[int, dict[str, list[int]]] = {}
        for message in sorted(self.claimable(), key=lambda m: m.id):
            by_priority.setdefault(message.priority, {}).setdefault(message.group or "", []).append(message.id)
        for priority in sorted(by_priority):
            groups = by_priority[priority]
            if not size:
                break
            part, claimed = claimed[:size], claimed[size:]
            whole = sum(map(len, groups.values()))
            if whole < size:
                claimed, part = [*part[whole:], *claimed], part[:whole]
            size -= len(part)
            last = self.turns.get(priority)
            starts = [last or ""] if last is not None or not self.changed_way else [*groups, ""]
            allowed = [in_turn(groups, start, last is not None or self.changed_way)[: len(part)] for start in starts]
            assert part and part in allowed
            self.next_turns[priority] = next(group for group, found in groups.items() if part[-1] in found)
        assert claimed == []

    def note_sent(self, ids: list[int], **known: Any) -> None:
        """Add new ids; the database has the times when they are due."""
        rows = {row["id"]: row for row in self.q.rows()}
        for id in ids:
            run_at = rows[id]["run_at"]
            options = {"priority": 0, "due": True, "max_attempts": MAX_ATTEMPTS, "group": None, "dedup": None}
            self.messages[id] = Message(id, "N", 0, sent_run_at=run_at, run_at=run_at, **(options | known))

    def note_claimed(self, rows: list[Row], size: int, consumer: str | None = None, after: int | None = None) -> None:
        if self.paused:
            assert rows == []
            return
        if self.way == "ring":
            self.check_ring(ids(rows), size, consumer, after)
        else:
            self.check_claimed(ids(rows), size)
        assert len({row["batch_key"] for row in rows}) == (1 if rows else 0)
        self.note_spent(len(rows))
        self.turns |= self.next_turns
        for row in rows:
            message = self.messages[row["id"]]
            message.state, message.key, message.consumer = "A", row["batch_key"], consumer
            message.attempts += 1
            message.failed = False
            assert row["attempt"] == message.attempts

    def note_spent(self, count: int) -> None:
        """So many messages were claimed, and that was not rolled back."""

    def note_done(self, message: Message) -> None:
        if self.archive:
            message.state, message.dedup, message.steps = "C", None, {}
        else:
            del self.messages[message.id]

    def note_failed(self, message: Message, retry: int | None, error: str = "x") -> str | None:
        if message.cancelled:
            del self.messages[message.id]
            return None
        dies = retry == -1 or message.attempts >= message.max_attempts
        message.state, message.error = "E" if dies else "N", error
        if not dies:
            message.due, message.failed = retry in (None, 0), True
            message.run_at = self.q.row(message.id)["run_at"]
        return message.state

    def note_back(self, message: Message, attempts: int) -> None:
        """New again at the old place; or gone, if it was cancelled."""
        if message.cancelled:
            del self.messages[message.id]
            return
        message.state, message.attempts, message.due, message.failed = "N", attempts, True, False
        message.run_at = message.sent_run_at

    @invariant()
    def the_database_holds_what_the_model_holds(self) -> None:
        rows = self.q.rows()
        assert len(rows) == len({row["id"] for row in rows})
        found = {row["id"]: (row["state"], row["attempts"], row["batch_key"], row["body"]) for row in rows}
        assert found == {
            m.id: (m.state, m.attempts, m.key if m.state == "A" else None, m.body) for m in self.messages.values()
        }
        for row in rows:
            # Where there are groups, the place in the group counts, not the time of the last attempt.
            if row["state"] == "N" and not self.ordered and not self.limits:
                assert row["run_at"] == self.messages[row["id"]].run_at

    @invariant()
    def the_numbers_count_each_message_once(self) -> None:
        """They come from the tables of the states, so a message in two of them would count twice."""
        stats = self.q.stats()
        assert {name: stats[name] for name in ("ready", "delayed", "active", "expired", "dead", "paused")} == {
            "ready": len(self.claimable()),
            "delayed": len([m for m in self.within("N") if not m.due]),
            "active": len(self.within("A")),
            "expired": 0,
            "dead": len(self.within("E")),
            "paused": int(self.paused),
        }

    # ---- the start: without it, most sequences would seldom have a message at work ----------------

    @initialize(
        way=st.sampled_from([*WAYS]),
        sent=st.integers(3, 5),
        failed=st.lists(st.sampled_from([None, 0, 3_600]), max_size=2),
    )
    def messages_at_work(self, way: str, sent: int, failed: list[int | None]) -> None:
        self.change_way(way)
        self.changed_way = False
        for n in range(sent):
            self.send_message(None, "now", None, None, "ghi"[n % 3], None)
        for retry in failed:
            self.get_message()
            self.fail(0, retry)
        self.claim_batch(sent)

    # ---- sending ---------------------------------------------------------------------------------

    @rule(
        priority=st.sampled_from([None, None, -1, 0, 1]),
        when=st.sampled_from(["now", "now", "past", "earlier", "future"]),
        dedup=st.sampled_from([None, None, None, "a", "b"]),
        max_attempts=st.sampled_from([None, None, 1, 2]),
        group=st.sampled_from([None, "g", "h", "i"]),
        how=st.sampled_from([None, "keep", "replace", "replace", "postpone", "postpone"]),
    )
    def send_message(
        self,
        priority: int | None,
        when: str,
        dedup: str | None,
        max_attempts: int | None,
        group: str | None,
        how: str | None,
    ) -> None:
        run_at = {
            "now": None,
            "past": LONG_AGO + timedelta(days=1),
            "earlier": LONG_AGO,
            "future": in_an_hour(),
        }[when]
        how = how if dedup else None
        live = [m for m in self.within("N", "A", "E") if dedup and m.dedup == dedup]
        before = self.q.row(live[0].id)["run_at"] if live and live[0].state == "N" else None
        body = f"b{len(self.messages)}" if how == "replace" and live else "b"
        [row] = self.q.call("send_message", body, run_at, priority, group, dedup, max_attempts, on_conflict=how)
        if live:
            changed = before is not None and (
                how == "replace" or (how == "postpone" and (run_at or datetime.now(UTC)) > before)
            )
            assert row == {"id": live[0].id, "created": 0, "changed": int(changed), "state": live[0].state}
            if changed:
                self.note_changed(live[0], how == "replace", body, priority or 0, when != "future")
            return
        assert (row["created"], row["changed"], row["state"]) == (1, 0, "N") and row["id"] not in self.messages
        self.note_sent(
            [row["id"]],
            priority=priority or 0,
            due=when != "future",
            max_attempts=max_attempts or MAX_ATTEMPTS,
            group=group,
            dedup=dedup,
        )

    def note_changed(self, message: Message, replaced: bool, body: str, priority: int, due: bool) -> None:
        if replaced:
            message.body, message.priority, message.attempts, message.steps = body, priority, 0, {}
        message.run_at = message.sent_run_at = self.q.row(message.id)["run_at"]
        # Its group waits for it no longer.
        message.due, message.failed = due, False

    @rule(dedup=st.sampled_from([None, "a"]), group=st.sampled_from([None, "g"]), topic=st.sampled_from(["", ".x"]))
    def publish(self, dedup: str | None, group: str | None, topic: str) -> None:
        live = [m for m in self.within("N", "A", "E") if dedup and m.dedup == dedup]
        [row] = call(self.q.session, "publish_with", self.topic + topic, "b", dedup_key=dedup, group_key=group)
        assert row["affected"] == int(not live)
        if not live:
            new = [row["id"] for row in self.q.rows() if row["id"] not in self.messages]
            assert len(new) == 1
            self.note_sent(new, group=group, dedup=dedup)

    @rule(
        count=st.integers(1, 5),
        priority=st.sampled_from([None, None, -1, 1]),
        when=st.sampled_from([None, None, "now", "past", "future"]),
        group=st.sampled_from([None, "g", "h"]),
        max_attempts=st.sampled_from([None, 2]),
    )
    def send_batch(
        self, count: int, priority: int | None, when: str | None, group: str | None, max_attempts: int | None
    ) -> None:
        options: dict[str, Any] = {"priority": priority, "group_key": group, "max_attempts": max_attempts}
        options = {name: value for name, value in options.items() if value is not None}
        if when:
            options["run_at"] = TIMES[when]()
        assert self.q.count("send_batch", "\n".join(["b"] * count), **options) == count
        new = [row["id"] for row in self.q.rows() if row["id"] not in self.messages]
        assert len(new) == count
        self.note_sent(
            new,
            priority=priority or 0,
            due=when != "future",
            max_attempts=max_attempts or MAX_ATTEMPTS,
            group=group,
        )

    @rule()
    def send(self) -> None:
        self.note_sent([self.q.call("send", "b")[0]["id"]])

    # ---- claiming --------------------------------------------------------------------------------

    @rule(size=st.integers(1, 6), consumer=st.sampled_from([None, None, "a", "b"]))
    def claim_batch(self, size: int, consumer: str | None = None) -> None:
        name = self.q.name + consumer if consumer else None
        self.note_claimed(self.q.claim(size, consumer=name), size, name)

    @rule(size=st.integers(1, 6), consumer=st.sampled_from("ab"))
    def claim_any(self, size: int, consumer: str) -> None:
        """The first queue of the list is empty."""
        types = f"{self.q.name}.empty\n{self.q.name}"
        [waiting] = self.q.on("wait_for_any", types)
        if self.paused:
            assert waiting["ready"] == 0
        name = self.q.name + consumer
        rows = self.q.on("claim_any", types, size, name)
        if rows:
            assert (waiting["ready"], waiting["type"], waiting["reason"]) == (1, self.q.name, "ready")
        self.note_claimed(rows, size, name)

    @rule()
    def get_message(self) -> None:
        self.note_claimed(self.q.call("get_message"), 1)

    @rule(size=st.integers(1, 6), consumer=st.sampled_from("ab"), index=st.none() | INDEX)
    def claim_wraparound(self, size: int, consumer: str, index: int | None) -> None:
        if self.way != "ring":
            with refused("wrong_kind", self.q.name, "set_option", "ring"):
                self.q.call("claim_wraparound", size, consumer)
            return
        after = None if index is None or not self.messages else self.pick(self.messages, index)
        name = self.q.name + consumer
        self.note_claimed(self.q.call("claim_wraparound", size, name, None, after), size, name, after)

    @rule(size=st.integers(1, 4), commit=st.booleans())
    def take_batch(self, size: int, commit: bool) -> None:
        try:
            with self.q.session.transaction():
                rows = self.q.call("take_batch", size)
                if not commit:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        if self.paused:
            assert rows == []
            return
        self.takes = True
        self.check_claimed(ids(rows), size)
        self.takes = False
        if commit:
            self.note_spent(len(rows))
            self.turns |= self.next_turns
        for row in rows:
            message = self.messages[row["id"]]
            assert row["attempt"] == message.attempts + 1
            if commit:
                message.attempts += 1
                self.note_done(message)

    # ---- finishing -------------------------------------------------------------------------------

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX)
    def complete(self, index: int) -> None:
        message = self.pick(self.within("A"), index)
        assert self.q.one("complete", message.id, message.key) == 1
        self.note_done(message)

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX)
    def complete_batch(self, index: int) -> None:
        key, batch = self.pick(self.held().items(), index)
        assert self.q.one("complete_batch", key) == len(batch)
        for message in batch:
            self.note_done(message)
        self.lost.append(key)

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, retry=RETRIES, error=st.sampled_from(["x", "at 1", "at 22"]))
    def fail(self, index: int, retry: int | None, error: str = "x") -> None:
        message = self.pick(self.within("A"), index)
        end = (
            ("dead_letter", message.id, message.key, error)
            if retry == -1
            else ("fail", message.id, message.key, error, retry)
        )
        state = self.q.one(*end)
        assert state == self.note_failed(message, retry, error.rstrip("12") + "#" if error != "x" else error)

    def countable(self) -> list[Message]:
        """Messages of which a failed take can be counted."""
        return self.claimable()

    def in_doubt(self, message: Message) -> bool:
        """Whether a failed take of this message would be counted depends on who looked at the queue last."""
        return False

    @precondition(lambda self: self.within("N", "E", "A"))
    @rule(index=INDEX, retry=RETRIES)
    def count_attempt(self, index: int, retry: int | None) -> None:
        message = self.pick(self.within("N", "E", "A"), index)
        if self.in_doubt(message):
            return
        countable = message in self.countable()
        state = self.q.one("count_attempt", message.id, "x", *((None, 1) if retry == -1 else (retry,)))
        if not countable:
            assert state is None
            return
        message.attempts += 1
        assert state == self.note_failed(message, retry)

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, failures=st.lists(st.tuples(INDEX, RETRIES), max_size=4), next_size=st.integers(0, 4))
    def finish_batch(self, index: int, failures: list[tuple[int, int | None]], next_size: int) -> None:
        key, batch = self.pick(self.held().items(), index)
        failed = {self.pick(self.messages, index): retry for index, retry in failures}
        text = "\n".join(failure(id, "x", retry) for id, retry in failed.items())
        rows = self.q.on("finish_batch", key, text, next_size)
        for message in batch:
            if message.id not in failed:
                self.note_done(message)
                continue
            if message.cancelled:
                del self.messages[message.id]
                continue
            retry = failed[message.id]
            dies = retry == -1 or message.attempts >= message.max_attempts
            message.state, message.error = "E" if dies else "N", "x"
            if not dies:
                message.due, message.failed = retry in (None, 0), True
                # The next claim may have it already, and its time is no longer visible: it is the latest.
                message.run_at = self.seen_run_at(message)
        # Which of its own failures a call takes first is a matter of its clock.
        again = [m for m in batch if m.id in failed and m.id in self.messages and m.state == "N" and m.due]
        taken = [m for id in ids(rows) for m in again if m.id == id]
        first = min((m.run_at for m in again if m not in taken), default=in_an_hour())
        for n, message in enumerate(reversed(taken), 1):
            message.run_at = first - timedelta(microseconds=n)
        self.lost.append(key)
        if next_size:
            self.note_claimed(rows, next_size, batch[0].consumer)
        else:
            assert rows == []

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, outcomes=st.lists(st.tuples(INDEX, st.sampled_from("dfr")), max_size=4))
    def finish_messages(self, index: int, outcomes: list[tuple[int, str]]) -> None:
        key, batch = self.pick(self.held().items(), index)
        said = {self.pick(self.messages, index): how for index, how in outcomes}
        lines = {"d": done, "f": lambda id: failure(id, "x", 3_600), "r": released}
        named = [message for message in batch if message.id in said]
        text = "\n".join(lines[how](id) for id, how in said.items())
        assert self.q.one("finish_messages", key, text) == len(named)
        for message in named:
            if said[message.id] == "d":
                self.note_done(message)
            elif said[message.id] == "f":
                self.note_failed(message, 3_600)
            else:
                self.note_back(message, message.attempts - 1)
        if len(named) == len(batch):
            self.lost.append(key)

    def seen_run_at(self, message: Message) -> datetime:
        row = self.q.row(message.id)
        return row["run_at"] if row["state"] == "N" else in_an_hour()

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX)
    def release_batch(self, index: int) -> None:
        key, batch = self.pick(self.held().items(), index)
        assert self.q.one("release_batch", key) == len(batch)
        for message in batch:
            self.note_back(message, message.attempts - 1)
        self.lost.append(key)

    @rule(consumer=st.sampled_from("ab"))
    def release_consumer(self, consumer: str) -> None:
        held = [m for m in self.within("A") if m.consumer == self.q.name + consumer]
        assert self.q.on("release_consumer", self.q.name + consumer) == [{"affected": len(held)}]
        for message in held:
            self.note_back(message, message.attempts - 1)
            self.lost.append(message.key)

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, seconds=st.sampled_from([None, 60, 3_600]))
    def extend_lease(self, index: int, seconds: int | None) -> None:
        key, batch = self.pick(self.held().items(), index)
        assert self.q.one("extend_lease", key, seconds) == len(batch)
        cancelled = [{"id": m.id} for m in sorted(batch, key=lambda m: m.id) if m.cancelled]
        assert self.q.on("list_cancelled", key) == cancelled

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX)
    def lease_runs_out(self, index: int) -> None:
        key, batch = self.pick(self.held().items(), index)
        self.q.expire(key)
        assert self.q.count("rescue_expired") == len(batch)
        for message in batch:
            if message.attempts >= message.max_attempts and not message.cancelled:
                message.state, message.error = "E", "lease expired: the consumer died or was too slow"
            else:
                self.note_back(message, message.attempts)
        self.lost.append(key)

    @rule(index=INDEX, message=INDEX)
    def a_lost_key_changes_nothing(self, index: int, message: int) -> None:
        key = self.pick(self.lost, index)
        id = self.pick(self.messages, message) if self.messages else 1
        for procedure in ("release_batch", "extend_lease"):
            assert self.q.one(procedure, key) == 0
        assert self.q.on("list_cancelled", key) == []
        of_one = [("complete",), ("fail", "x", 0), ("dead_letter", "x"), ("set_result", "x")]
        of_one += [("save_step", "x"), ("get_steps",), ("snooze", 0), ("set_progress", 1)]
        for procedure, *values in (
            ("complete_batch", key),
            ("finish_batch", key, dead_letter(id, "x"), 5),
            ("finish_messages", key, done(id)),
            *((name, id, key, *more) for name, *more in of_one),
        ):
            with refused("lease_lost", "batch_key"):
                self.q.on(procedure, *values)
        assert self.q.count("rescue_expired") == 0

    # ---- results ---------------------------------------------------------------------------------

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, text=st.sampled_from(["", "r", "s"]))
    def set_result(self, index: int, text: str) -> None:
        message = self.pick(self.within("A"), index)
        if not self.archive:
            with refused("invalid_argument", "id: the queue keeps no results"):
                self.q.on("set_result", message.id, message.key, text)
            return
        assert self.q.one("set_result", message.id, message.key, text) == 1
        message.result = text

    @invariant()
    def every_message_has_its_result(self) -> None:
        for message in list(self.messages.values())[-3:]:
            [row] = self.q.on("get_result", message.id)
            assert (row["state"], row["result"]) == (message.state, message.result)
            assert self.q.one("get_state", message.id) == message.state

    # ---- steps -----------------------------------------------------------------------------------

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, step=st.sampled_from("abc"), value=st.sampled_from([None, "", "v", "w"]))
    def save_step(self, index: int, step: str, value: str | None) -> None:
        message = self.pick(self.within("A"), index)
        if message.cancelled:
            for call in (("save_step", step, value), ("get_steps",), ("set_progress", 1, 2, "x")):
                with refused("cancelled", str(message.id)):
                    self.q.on(call[0], message.id, message.key, *call[1:])
            return
        assert self.q.one("save_step", message.id, message.key, step, value) == 1
        message.steps[step] = value
        found = self.q.on("get_steps", message.id, message.key)
        assert [(row["step"], row["step_value"]) for row in found] == [*message.steps.items()]

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX, seconds=st.sampled_from([0, 3_600]))
    def snooze(self, index: int, seconds: int) -> None:
        message = self.pick(self.within("A"), index)
        key, batch = message.key, self.held()[message.key]
        assert self.q.one("snooze", message.id, key, seconds) == 1
        if len(batch) == 1:
            self.lost.append(key)
        if message.cancelled:
            del self.messages[message.id]
            return
        message.attempts -= 1
        message.state, message.due, message.failed = "N", seconds == 0, True
        message.run_at = self.q.row(message.id)["run_at"]

    @invariant()
    def every_message_has_its_steps(self) -> None:
        for message in list(self.messages.values())[-3:]:
            found = self.q.on("list_steps", message.id)
            assert [(row["step"], row["step_value"]) for row in reversed(found)] == [*message.steps.items()]

    # ---- operating -------------------------------------------------------------------------------

    @precondition(lambda self: self.messages)
    @rule(index=INDEX)
    def cancel(self, index: int) -> None:
        message = self.pick(self.messages.values(), index)
        free = message.state in "NEA"
        if index % 2 and message.dedup and message.state != "C":
            [row] = self.q.call("cancel_key", message.dedup)
            assert row["id"] == message.id
        else:
            [row] = self.q.on("cancel", message.id)
        assert (row["affected"], row["state"]) == (int(free), message.state)
        if message.state == "A":
            message.cancelled = True
            assert self.q.row(message.id)["error"] == "cancelled"
        elif free:
            del self.messages[message.id]

    @precondition(lambda self: self.messages)
    @rule(
        index=INDEX,
        when=st.sampled_from([None, None, "now", "past", "future"]),
        priority=st.sampled_from([None, None, -1, 1]),
        max_attempts=st.sampled_from([None, 2, 4]),
    )
    def update_message(self, index: int, when: str | None, priority: int | None, max_attempts: int | None) -> None:
        message = self.pick([*self.within("N"), *self.messages.values()], index)
        options: dict[str, Any] = {"priority": priority, "max_attempts": max_attempts}
        options = {name: value for name, value in options.items() if value is not None}
        if when:
            options["run_at"] = TIMES[when]()
        if index % 2 or not options:
            options["body"] = f"u{index}"
        free = message.state == "N"
        [row] = self.q.on("update_message", message.id, **options)
        assert row == {"affected": int(free), "state": message.state}
        if not free:
            return
        message.body = options.get("body", message.body)
        message.priority = options.get("priority", message.priority)
        message.max_attempts = options.get("max_attempts", message.max_attempts)
        if when:
            self.note_changed(message, False, "", 0, when != "future")

    @rule(index=st.none() | INDEX)
    def redrive(self, index: int | None) -> None:
        dead = self.within("E")
        if index is not None and self.messages:
            id = self.pick(self.messages, index)
            dead = [m for m in dead if m.id == id]
            assert self.q.one("redrive", id) == len(dead)
        else:
            assert self.q.count("redrive_all") == len(dead)
        for message in dead:
            self.note_back(message, 0)

    @precondition(lambda self: self.within("E"))
    @rule(index=INDEX, size=st.sampled_from([None, 1, 2]))
    def redrive_an_error(self, index: int, size: int | None) -> None:
        """Those that died first; in ties, those that were sent first."""
        error = self.pick(self.within("E"), index).error
        dead = [m for m in self.within("E") if m.error == error]
        died = {row["id"]: row["changed_at"] for row in self.q.rows()}
        dead = sorted(dead, key=lambda m: (died[m.id], m.id))[:size]
        assert self.q.count("redrive_all", error, size) == len(dead)
        for message in dead:
            self.note_back(message, 0)

    @invariant()
    def dead_letters_are_listed_by_error(self) -> None:
        found = self.q.call("list_errors")
        assert {row["error"]: row["messages"] for row in found} == Counter(m.error for m in self.within("E"))
        assert [row["messages"] for row in found] == sorted((row["messages"] for row in found), reverse=True)
        for row in found:
            died = sorted((self.q.row(m.id)["changed_at"], m.id) for m in self.within("E") if m.error == row["error"])
            assert (row["first_at"], (row["last_at"], row["last_id"])) == (died[0][0], died[-1])

    @precondition(lambda self: self.messages)
    @rule(index=INDEX)
    def find_messages(self, index: int) -> None:
        message = self.pick(self.messages.values(), index)
        [found] = self.q.call("find_messages", id=message.id)
        assert (found["id"], found["state"], found["attempts"]) == (message.id, message.state, message.attempts)
        live = self.within("N", "A", "E")
        if message.group is not None:
            group = [m.id for m in live if m.group == message.group]
            assert ids(self.q.call("find_messages", group_key=message.group, size=1_000)) == sorted(group)
        if message.dedup is not None:
            dedup = [m.id for m in live if m.dedup == message.dedup]
            assert ids(self.q.call("find_messages", dedup_key=message.dedup)) == dedup

    @rule(next_seconds=st.sampled_from([0, 60]))
    def report_consumer(self, next_seconds: int) -> None:
        self.q.on("report_consumer", "me", self.q.name, completed=1, failed=1, next_seconds=next_seconds)

    @rule(state=st.sampled_from("NEEC"))
    def purge(self, state: str) -> None:
        gone = self.within(state)
        assert self.q.count("purge", state, size=10_000) == len(gone)
        for message in gone:
            del self.messages[message.id]

    @rule()
    def pause(self) -> None:
        assert self.q.count("pause") == int(not self.paused)
        self.paused = True

    @precondition(lambda self: self.paused)
    @rule()
    def resume(self) -> None:
        assert self.q.count("resume") == 1
        self.paused = False

    @rule(archive=st.booleans())
    def set_queue(self, archive: bool) -> None:
        self.q.call("set_queue", on_complete="archive" if archive else "delete")
        if self.archive and not archive:
            for message in self.within("N", "A", "E"):
                message.result = None
        self.archive = archive

    @rule(way=st.sampled_from([*WAYS]))
    def change_way(self, way: str) -> None:
        if way not in self.ways:
            with refused("invalid_argument", "ring: "):
                self.q.call("set_queue", ring=1)
            return
        ring, fair = WAYS[way]
        [policy] = self.q.call("set_queue", ring=ring, fair=fair)
        assert (policy["ring"], policy["fair"]) == (ring, fair)
        self.changed_way = self.changed_way or way != self.way
        if way != self.way:
            self.places, self.turns, self.next_turns = {}, {}, {}
        self.way = way

    def teardown(self) -> None:
        """Everything can be finished: nothing is stuck."""
        self.q.call("resume")
        self.q.call("set_queue", rate=0)
        for key in {row["batch_key"] for row in self.q.rows()} - {None}:
            self.q.one("release_batch", key)
        for message in [m for m in self.within("N") if not m.due]:
            self.q.on("cancel", message.id)
        self.q.call("redrive_all")
        for _ in range(len(self.messages) + 1):
            if rows := self.q.claim(100):
                self.q.on("complete_batch", rows[0]["batch_key"])
        self.q.call("purge", "C")
        call(self.q.session, "unbind_topic", None, self.q.name)
        assert self.q.rows() == []
        assert self.q.claim(100) == []


def in_turn(groups: dict[str, list[int]], last: str, after: bool) -> list[int]:
    """The messages of groups that take turns, each in its own order; `after`: beginning after the group `last`."""
    left = {group: list(found) for group, found in groups.items()}
    order = sorted(left, key=lambda group: ((group <= last) if after else False, group))
    found: list[int] = []
    while any(left.values()):
        found += [left[group].pop(0) for group in order if left[group]]
    return found


class OrderedQueue(PlainQueue):
    """One message at a time per group, in order of sending."""

    ordered = 1
    stops = False
    ways: ClassVar[list[str]] = ["plain", "fair"]

    def heads(self) -> dict[str | None, Message]:
        """The next message of each group that has no active message and none waiting for a retry."""
        busy = {m.group for m in self.within("A")} | {m.group for m in self.within("N") if m.failed and not m.due}
        if self.stops:
            busy |= {m.group for m in self.within("E")} - {None}
        heads: dict[str | None, Message] = {}
        for message in sorted(self.claimable(), key=lambda m: m.id):
            if message.group not in busy:
                heads.setdefault(message.group, message)
        return heads

    def check_claimed(self, claimed: list[int], size: int) -> None:
        heads = {m.id for m in self.heads().values()}
        assert set(claimed) <= heads
        assert len(claimed) == len(set(claimed)) == min(size, len(heads))

    def countable(self) -> list[Message]:
        free = self.heads()
        return [m for m in self.claimable() if m.group in free]

    def in_doubt(self, message: Message) -> bool:
        """Another of its group has failed and is due: it holds the group until a claim comes by."""
        return any(m.failed and m.due and m.group == message.group and m is not message for m in self.within("N"))

    @rule()
    def claim_wraparound(self) -> None:
        with refused("wrong_kind", self.q.name):
            self.q.call("claim_wraparound")

    @invariant()
    def at_most_one_message_of_a_group_is_active(self) -> None:
        groups = [row["group_key"] for row in self.q.rows() if row["state"] == "A"]
        assert len(groups) == len(set(groups))


class StoppingQueue(OrderedQueue):
    """An ordered queue whose dead letters stop their groups, while the setting says so."""

    @initialize()
    def stop_groups(self) -> None:
        self.change_stops(True)

    @rule(stops=st.sampled_from([True, True, False]))
    def change_stops(self, stops: bool) -> None:
        [policy] = self.q.call("set_option", "dead_stops_group", str(int(stops)))
        assert policy["dead_stops_group"] == stops
        self.stops = stops

    @precondition(lambda self: self.within("A"))
    @rule(index=INDEX)
    def die(self, index: int) -> None:
        self.fail(index, -1)


class LimitedQueue(PlainQueue):
    """So many at one time, of the type and of each group, and so many tokens, of which none comes while a test runs."""

    limits: ClassVar[dict[str, int]] = {"max_active": 5, "group_max_active": 2, "rate": 40, "rate_seconds": 86_400}
    ways: ClassVar[list[str]] = ["plain", "fair"]

    def __init__(self, queue: Queue, name: str) -> None:
        super().__init__(queue, name)
        self.tokens = self.limits["rate"]
        self.own: dict[str, int] = {}

    def most(self, group: str | None) -> int:
        """How many messages of the group may be active."""
        own = self.own.get(group or "", 2)
        return own or 1_000

    def note_spent(self, count: int) -> None:
        self.tokens -= count

    def check_claimed(self, claimed: list[int], size: int) -> None:
        """Of each group the first ones, as many as it has places for; of all groups together as many as can be."""
        active = self.within("A")
        at_work = Counter(m.group for m in active)
        groups: dict[str | None, list[int]] = {}
        for message in sorted(self.claimable(), key=lambda m: m.id):
            groups.setdefault(message.group, []).append(message.id)
        first = {group: found[: max(self.most(group) - at_work[group], 0)] for group, found in groups.items()}
        for found in first.values():
            of_group = sorted(id for id in claimed if id in found)
            assert of_group == found[: len(of_group)]
        possible = sum(map(len, first.values()))
        assert set(claimed) <= {id for found in first.values() for id in found}
        allowed = min(size, self.limits["max_active"] - len(active), self.tokens)
        # A take from a fair queue has one turn of each group.
        least = sum(map(bool, first.values())) if self.takes and self.way == "fair" else possible
        assert min(allowed, least) <= len(claimed) == len(set(claimed)) <= min(allowed, possible)

    @rule()
    def claim_wraparound(self) -> None:
        with refused("wrong_kind", self.q.name):
            self.q.call("claim_wraparound")

    @rule(group=st.sampled_from("ghi"), max_active=st.sampled_from([None, 0, 1, 3]), weight=st.sampled_from([None, 2]))
    def set_group(self, group: str, max_active: int | None, weight: int | None) -> None:
        assert self.q.call("set_group", group, weight, max_active)[0]["known"] in {0, 1}
        self.own.pop(group, None)
        if max_active is not None:
            self.own[group] = max_active

    @invariant()
    def no_more_are_active_than_may_be(self) -> None:
        groups = Counter(row["group_key"] for row in self.q.rows() if row["state"] == "A")
        assert groups.total() <= 5
        # A limit that is lowered does not take back what is active.
        assert all(count <= 2 for group, count in groups.items() if group is None)


@pytest.mark.parametrize(
    ("machine", "examples"), [(PlainQueue, 20), (OrderedQueue, 10), (StoppingQueue, 10), (LimitedQueue, 10)]
)
def test_random_sequences_of_calls_leave_what_the_model_expects(
    q: Queue, share: tuple[int, int], machine: type[PlainQueue], examples: int, pytestconfig: pytest.Config
) -> None:
    """The versions of a product divide the sequences. `make test` runs half of them."""
    numbers = count(1)
    number, versions = share
    fewer = 2 if pytestconfig.getoption("--level") < 3 else 1

    @seed(number)
    class Fresh(machine):  # type: ignore[valid-type, misc]
        """The machine on a queue that no other run has used."""

        def __init__(self) -> None:
            super().__init__(q, f"{q.name}.{next(numbers)}")

    limits = settings(
        max_examples=max(1, examples // versions // fewer),
        stateful_step_count=40,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if SHRINK else [])],
    )
    run_state_machine_as_test(Fresh, settings=limits)
