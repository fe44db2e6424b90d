"""Handlers for the tests. Each writes what it received to the file JOBS_LOG, one JSON value per line."""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from opentelemetry import propagate
from rowqueue import DeadLetter, Message, Record, Retry, RowMessage
from rowqueue.consume import loop

if "JOBS_POLL" in os.environ:  # for tests of work that must not wait for the next poll
    loop.SHORTEST_POLL = loop.LONGEST_POLL = float(os.environ["JOBS_POLL"])


def note(value: Any) -> None:
    """Append a line in one write, because several processes write to the file."""
    file = os.open(os.environ["JOBS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, (json.dumps(value) + "\n").encode())
    finally:
        os.close(file)


def record(message: Message) -> None:
    note(message.body)


def record_type(message: Message) -> None:
    note(message.type)


def answer(message: Message) -> Any:
    """Return what the body asks for."""
    word, _, rest = message.body.partition(" ")
    if word == "die":
        raise DeadLetter(rest)
    return {"text": rest, "json": {"é": [1, None]}, "nul": "\0", "bad": object()}.get(word)


async def answer_async(message: Message) -> Any:
    await asyncio.sleep(0.01)
    return answer(message)


def record_batch(messages: list[Message]) -> None:
    note([message.body for message in messages])


def ignore_batch(messages: list[Message]) -> None:
    """Do nothing, fast."""


def record_sequence(messages: Sequence[Message]) -> None:
    note([message.body for message in messages])


def by_attribute(messages):  # type: ignore[no-untyped-def]
    note([message.body for message in messages])


by_attribute.batch = True  # type: ignore[attr-defined]


async def record_async(message: Message) -> None:
    """Note when it began and ended, too."""
    beginning = time.monotonic()
    await asyncio.sleep(0.2)
    note([message.body, beginning, time.monotonic()])


async def record_async_alone(messages: list[Message]) -> None:
    for message in messages:
        await record_async(message)


async def record_async_batch(messages: list[Message]) -> None:
    await asyncio.sleep(0.01)
    note([message.body for message in messages])


def obey(message: Message) -> None:
    """Do what the body says."""
    note(message.body)
    word, _, rest = message.body.partition(" ")
    if word == "retry":
        raise Retry("not now", after=float(rest))
    if word == "backoff":
        raise Retry("not now")
    if word == "discard":
        raise DeadLetter("never")
    if word == "raise":
        raise ValueError(json.loads(rest))
    if word == "exit":
        sys.exit(7)
    if word == "sleep":
        time.sleep(float(rest))
        note("woke")


async def obey_async(message: Message) -> None:
    obey(message)


async def obey_patiently(message: Message) -> None:
    """Sleeps as the body says, and lets others run meanwhile."""
    word, _, rest = message.body.partition(" ")
    if word != "sleep":
        return obey(message)
    note(message.body)
    await asyncio.sleep(float(rest))
    note("woke")


def fail_some(messages: list[Message]) -> dict[int, Exception]:
    """Fail those whose body is bad."""
    return {message.id: DeadLetter("bad") for message in messages if message.body == "bad"}


def fail_all(messages: list[Message]) -> None:
    raise ValueError("all of them")


def return_nonsense(messages: list[Message]) -> Any:
    return {0: DeadLetter("nobody")}


def effect(message: Message) -> None:
    """Work in the queue's transaction. The body fail fails after its work; swallow breaks the transaction."""
    cursor = message.connection.cursor()
    cursor.execute(f"INSERT INTO effect (body) VALUES ('{message.body}')")
    if message.body == "fail":
        raise ValueError("after the work")
    if message.body == "swallow":
        with suppress(Exception):
            cursor.execute(os.environ["JOBS_SPOIL"])


_met: set[str] = set()
_both = threading.Barrier(2)


def cross(message: Message) -> None:
    """Change two rows, in the order of the body; two in opposite order deadlock the first time."""
    cursor = message.connection.cursor()
    first, second = message.body.split()
    cursor.execute(f"UPDATE effect SET amount = amount + 1 WHERE body = '{first}'")
    if message.body not in _met:
        _met.add(message.body)
        _both.wait(60)
    try:
        cursor.execute(f"UPDATE effect SET amount = amount + 1 WHERE body = '{second}'")
    except Exception as error:
        note(["met", message.body])
        raise RuntimeError("the application's own error") from error


def traced(message: Message) -> None:
    """Note the trace that a call out of this handler would carry on."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    note(carrier.get("traceparent"))


def record_late(message: Message) -> None:
    """Note when it was handled, on the clock that all processes of this machine share."""
    note([message.body, time.monotonic()])


def record_row(record: Record) -> None:
    note([record.position, record.key, {name.lower(): value for name, value in record.row.items()}, record.attempt])


def obey_row(record: Record) -> None:
    """Fail as the row says: busy once, never for good."""
    v = next(value for name, value in record.row.items() if name.lower() == "v")
    note([v, record.attempt])
    if v == "busy" and record.attempt == 1:
        raise Retry("not now", after=0)
    if v == "never":
        raise DeadLetter("not this one")


def record_rows(records: list[Record]) -> dict[int, Exception] | None:
    """A batch of which the second one fails at first."""
    note([record.position for record in records])
    return {records[1].id: Retry(after=0)} if len(records) > 1 and records[1].attempt == 1 else None


not_callable = 1


def takes_nothing() -> None:
    """No handler: it cannot take a message."""


def obey_claimed_row(message: RowMessage) -> None:
    """The same, as the column v of a row says."""
    row = message.row
    note([message.key, row, message.attempt])
    said = str(row.get("v", row.get("V")))
    if said == "discard":
        raise DeadLetter("never")
    if said.startswith("retry"):
        raise Retry("not now", after=500)
    if said.startswith("sleep"):
        time.sleep(float(said.split()[1]))


def slow_row(message: RowMessage) -> None:
    """Longer than a lease of a second."""
    note(message.id)
    time.sleep(1.6)
