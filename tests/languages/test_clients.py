"""The requirements for every client, in each language and on each product that it supports."""

import os
import signal
import time
import uuid
from collections import Counter
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from suite import FAIL, FAILURE, LEASE_SECONDS, SIZE, Client, bodies
from support.outcomes import hostile_errors
from support.waiting import until


def test_each_message_is_done_once(client: Client) -> None:
    """200 messages with failures, retries and dead letters; two consumers, and a third that is killed in mid-batch."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    with closing(client.database.connect("test")) as session:
        session.call("set_queue", type, '{"max_attempts": 3, "backoff_seconds": 0, "on_complete": "archive"}')
    good = bodies(144)
    # A slow one in the first batch, whose consumer is killed, and one in the second: both others have work to do.
    sent = [*good[:4], "slow", *good[4:12], "slow", *good[12:], *[FAIL, "dead"] * 12, *["retry"] * 30]
    done = client.send(type, *sent)
    assert done.returncode == 0, done.stderr
    assert len(sent) == 200 and client.orders() == 200
    of = {row["id"]: row["body"] for row in client.messages(type)}
    assert list(of.values()) == sent

    def lease() -> tuple[Any, Any]:
        """Of the batch with the first slow one: the key, and until when it is held."""
        row = next(row for row in client.messages(type) if of[row["id"]] == "slow")
        return row["batch_key"], row["lease_until"]

    def extended() -> bool:
        held, until_when = lease()
        assert held == key, "the batch is lost or finished"
        return bool(until_when >= end + timedelta(seconds=LEASE_SECONDS / 2))

    with client.consumer(type, "killed") as killed:
        until(lambda: len(client.handled("killed")) >= 4 and client.is_slow(type), "the first messages")
        key, end = lease()
        assert key is not None
        of_killed = set(client.held(type))
        assert len(of_killed) == client.size
        with client.consumer(type, "first") as first, client.consumer(type, "second") as second:
            # More than once, but soon: the slow one is done after four seconds.
            until(extended, "the lease is extended", 3)
            killed.send_signal(signal.SIGKILL)
            until(lambda: all(row["state"] in "CE" for row in client.messages(type)), "all messages done", 90)
            _woken_quickly(client, type)
            for process, name, how in ((first, "first", signal.SIGTERM), (second, "second", signal.SIGINT)):
                process.send_signal(how)
                assert process.wait(10) == 0, client.log(name)

    finished = [line for line in client.handled("killed") if line[0] not in of_killed]
    survivors = Counter(client.handled("first") + client.handled("second") + finished)
    survivors = Counter({line: n for line, n in survivors.items() if line[1] != "wake up"})
    expected = Counter({(id, body): 1 for id, body in of.items() if body not in (FAIL, "dead")})
    wrong = {id: survivors[id, body] for id, body in survivors | expected if survivors[id, body] != expected[id, body]}
    assert wrong == {}
    assert of_killed - {id for id, _ in client.handled("killed")}, "it was killed in the midst of its work"
    # On a busy machine one has done nearly all of the others before the other has started.
    assert client.handled("first") and client.handled("second")
    rows = {row["id"]: row for row in client.messages(type) if row["id"] in of}
    assert {id: row["state"] for id, row in rows.items()} == {
        id: "E" if body in (FAIL, "dead") else "C" for id, body in of.items()
    }
    for id, row in rows.items():
        if of[id] == FAIL:
            assert (row["attempts"], row["error"]) == (3, FAILURE)
        elif of[id] == "dead":
            assert (row["attempts"], row["error"]) == (1, "no such address")
        else:
            assert row["attempts"] == 1 + (id in of_killed or of[id] == "retry"), of[id]


def _woken_quickly(client: Client, type: str) -> None:
    """Idle consumers have each of ten new messages soon: two that only poll every two seconds need eight seconds."""

    def handled() -> int:
        return sum(body == "wake up" for name in ("first", "second") for _, body in client.handled(name))

    time.sleep(0.5)
    start = time.monotonic()
    with closing(client.database.connect("test")) as session:
        for n in range(1, 11):
            session.call("send", type, "wake up")
            until(lambda n=n: handled() == n and client.unfinished(type) == 0, "a wake-up", 10)
            time.sleep(0.1)  # after its batch a consumer claims once more, and would take the next message then
    assert time.monotonic() - start < 6


def test_refused_sends_leave_nothing(client: Client) -> None:
    """A send that fails leaves nothing, and the contract's error numbers are read as they are documented."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    done = client.send(type, "one", "two", "too long for the table" * 20)
    assert done.returncode == 1 and done.stderr.strip(), done
    assert (client.orders(), client.messages(type)) == (0, [])
    done = client.send("x" * 201, "one")
    assert done.returncode == 1 and "50002 invalid_argument: type: must be" in done.stderr, done
    assert client.orders() == 0
    done = client.send(type, "one")
    assert (done.returncode, done.stderr, client.orders(), len(client.messages(type))) == (0, "", 1, 1)


def test_a_message_that_failed_once_is_completed_at_the_second_attempt(client: Client) -> None:
    """By one consumer: the failures that it reports are those of the batch at hand, none of an earlier one."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    with closing(client.database.connect("test")) as session:
        session.call("set_queue", type, '{"max_attempts": 3, "backoff_seconds": 0, "on_complete": "archive"}')
    assert client.send(type, *["retry"] * 3 * SIZE).returncode == 0
    with client.consumer(type, "one"):
        until(lambda: client.unfinished(type) == 0, "all messages done")
    rows = client.messages(type)
    assert {(row["state"], row["attempts"], row["error"]) for row in rows} == {("C", 2, None)}
    assert sorted(client.handled("one")) == [(row["id"], "retry") for row in rows]


def test_no_text_of_an_error_touches_another_message(client: Client) -> None:
    """Each is stored unchanged, but cut at 4,000 characters."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    with closing(client.database.connect("test")) as session:
        session.call("set_queue", type, '{"max_attempts": 1, "backoff_seconds": 0, "on_complete": "archive"}')
        neighbour = session.call("send", type, "neighbour")[0]["id"]
        errors = [*hostile_errors(neighbour), "é😀\U0010ffff" * 1_500]
        for error in errors:
            session.call("send", type, f"raise {error}")
    with client.consumer(type, "one") as consumer:
        until(lambda: client.unfinished(type) == 0, "all messages done")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(10) == 0
    first, *others = client.messages(type)
    assert (first["id"], first["state"], first["error"]) == (neighbour, "C", None)
    assert [(row["state"], row["error"]) for row in others] == [("E", error[:4_000]) for error in errors]


def test_odd_bodies_arrive_as_they_were_sent(client: Client) -> None:
    """Including characters that strict decoders refuse, and texts that a careless client treats as false or as SQL."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    odd = [
        "",
        "\\",
        "\\n",
        '"',
        '"a"',
        "'",
        "a,b",
        "1,2,three",
        "%s ? $1 :x",
        "\r\n",
        "\n",
        "\x7f",
        "0",
        "null",
        "fail\n",
    ]
    bodies = [*odd, "\ufffe\uffff\ufdd0", "\U0010ffff", "\ue000", "\u2028", "e\u0301", "\ufeff", "\u202e"]
    done = client.send(type, *bodies)
    assert done.returncode == 0, done.stderr
    with client.consumer(type, "one") as consumer:
        until(lambda: len(client.handled("one")) >= len(bodies), "the bodies")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(10) == 0
    assert Counter(body for _, body in client.handled("one")) == Counter(bodies)
    assert client.messages(type) == []


def test_a_consumer_that_lost_its_lease_logs_it_and_continues(client: Client) -> None:
    type = f"test.{uuid.uuid4().hex[:16]}"
    assert client.send(type, "slow").returncode == 0
    with client.consumer(type, "one") as consumer:
        until(lambda: client.messages(type)[0]["state"] == "A", "it is claimed")
        with closing(client.database.connect("test")) as session:
            session.call("release_batch", client.messages(type)[0]["batch_key"])
        until(lambda: not client.messages(type), "it is claimed and done again")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(10) == 0
    assert [body for _, body in client.handled("one")] == ["slow", "slow"]
    assert "50008 lease_lost" in client.log("one")


def test_a_signal_to_all_its_processes_lets_a_consumer_finish_its_batch(client: Client) -> None:
    """As a terminal and a process manager send it. Some clients have a process of their own that extends leases."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    assert client.send(type, "slow", "last").returncode == 0
    with client.consumer(type, "one") as consumer, closing(client.database.connect("test")) as session:
        until(lambda: client.messages(type)[0]["state"] == "A", "it is claimed")
        time.sleep(0.5)  # the handler is at work
        for process in _group(consumer.pid) - {consumer.pid}:
            os.kill(process, signal.SIGTERM)
        time.sleep(LEASE_SECONDS + 0.5)  # the handler's own sleep is not cut short yet
        assert session.call("claim_batch", type) == [], "the lease has run out"
        os.killpg(consumer.pid, signal.SIGTERM)
        assert consumer.wait(10) == 0
    assert sorted(body for _, body in client.handled("one")) == ["last", "slow"]
    assert client.messages(type) == []
    assert "lease" not in client.log("one")


def _group(leader: int) -> set[int]:
    """The processes of a group, as Linux lists them: the fifth field of a line, after a name that may hold anything."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            if int(path.read_text().rpartition(")")[2].split()[2]) == leader:
                found.add(int(path.parent.name))
    return found
