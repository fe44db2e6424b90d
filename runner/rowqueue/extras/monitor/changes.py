"""The changes that a person can make. A change is data: a screen asks its question before making it."""

import time
from dataclasses import dataclass
from typing import Any

from ...databases import Row
from .counts import count
from .looking import STATES
from .reading import Looking
from .watched import Watched

CHANGE_SECONDS = 20.0  # the longest time to repeat a change
PURGE_SIZE = 10_000  # the most that a call deletes


@dataclass(frozen=True)
class Change:
    """A call that changes something. `question`: what to ask first; "" to ask nothing.

    `outcome`: the sentence about the result, with {count} for the number that the call returns. `repeats`: the call is
    bounded, and repeated until it finds nothing.
    """

    procedure: str
    arguments: tuple[Any, ...]
    question: str
    outcome: str
    repeats: bool = False


def pause(type: str) -> Change:
    return Change("pause", (type,), "", f"{type} is paused: claims return nothing until it is resumed.")


def resume(type: str) -> Change:
    return Change("resume", (type,), "", f"{type} is resumed.")


def redrive(id: int) -> Change:
    return Change("redrive", (id,), f"Redrive message {id}?", "{count} redriven.")


def redrive_all(type: str, error: str | None = None) -> Change:
    """Redrive all dead letters of a queue, or those with an error as list_errors shows it."""
    which = f"all dead letters of {type}" if error is None else f"the dead letters of {type} with the error “{error}”"
    return Change("redrive_all", (type, error, 10_000), f"Redrive {which}?", "{count} redriven.", True)


def cancel(id: int) -> Change:
    question = f"Cancel message {id}? It is deleted; while it is active, when its attempt ends."
    return Change("cancel", (id,), question, "{count} cancelled.")


def purge(type: str, state: str) -> Change:
    """Delete all messages of a queue in a state: N new, E dead, C archived."""
    question = f"Delete all {STATES.get(state, state)} messages of {type}? This cannot be undone."
    return Change("purge", (type, state, None, PURGE_SIZE), question, "{count} deleted.", True)


def run_schedule(name: str) -> Change:
    return Change("run_schedule", (name,), f"Send the message of the schedule {name} now?", "Message {count} is sent.")


def rewind_feed(feed: str, consumer: str, position: int) -> Change:
    question = f"Move {consumer} of the feed {feed} back to {position:,}? It receives the rows after it again."
    return Change("rewind_feed", (feed, consumer, position), question, "The position is {count} now.")


def redrive_row(name: str, id: int) -> Change:
    """Retry one dead row of a polling table."""
    return Change("redrive_row", (name, id), _retrying(f"row {id}", name), "{count} retried.")


def redrive_rows(name: str) -> Change:
    """Retry all dead rows of a polling table."""
    return Change("redrive_rows", (name,), _retrying("all dead rows", name), "{count} retried.", True)


def _retrying(which: str, name: str) -> str:
    rights = "The triggers of its table run with the rights of the account that this page uses."
    return f"Retry {which} of {name}? {rights}"


def call(looking: Looking, change: Change) -> list[Row]:
    """Make one call of a change, and clear the cached answers."""
    looking.forget()
    return looking.session.call(change.procedure, *change.arguments)


def counted(looking: Looking, change: Change) -> str:
    """How many messages or rows a repeated change will change, as a sentence; "" if they are not counted."""
    name, *more = change.arguments
    if change.procedure == "redrive_rows":
        numbers = [row["dead"] for row in looking.rows("tables", "list_polling_tables") if row["name"] == name]
    elif change.procedure == "redrive_all" and more[0] is not None:
        numbers = [row["messages"] for row in looking.errors(name, -1) if row["error"] == more[0]]
    elif "C" in more:
        return ""
    else:
        states = ("ready", "delayed") if "N" in more else ("dead",)
        rows = looking.rows("queues", "queue_stats", name)
        numbers = [sum(row[state] for state in states) for row in rows]
        if any(row["estimated"] for row in rows):
            return f"There are {count(numbers[0], True)} now."
    return f"There are {numbers[0]:,} now." if numbers else ""


def perform(watched: Watched, change: Change, seconds: float = CHANGE_SECONDS) -> str:
    """Make a change; returns a sentence about its result. Raises NotAllowed, QueueError or Away.

    A bounded call is repeated for at most `seconds`; other users' requests are served between the calls.
    """
    deadline = time.monotonic() + seconds
    total = 0
    while True:
        [row] = watched.ask(lambda looking: call(looking, change), max(seconds, CHANGE_SECONDS), again=False)
        count = next(iter(row.values()))
        total += count if change.repeats else 0
        if not change.repeats:
            return change.outcome.replace("{count}", str(count))
        if not count or time.monotonic() > deadline:
            rest = " There may be more: the time limit was reached. Repeat it." if count else ""
            return change.outcome.replace("{count}", f"{total:,}") + rest
