"""What a person may change while looking. A change is data, so that a screen can ask its question first."""

import time
from dataclasses import dataclass
from typing import Any

from ..databases import Row
from .looking import STATES, Looking
from .watched import Watched

CHANGE_SECONDS = 20.0  # of a change that is repeated until nothing is left


@dataclass(frozen=True)
class Change:
    """A call that changes something. `question`: what to ask first, "" where nothing has to be asked.

    `outcome` has a place {count} for what the call returns. `repeats`: it is bounded, and repeated until it finds
    nothing.
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


def redrive(type: str, id: int | None = None, error: str | None = None) -> Change:
    """All dead letters of a queue, one of them, or those of an error group as list_errors names it."""
    if id is not None:
        return Change("redrive", (type, id), f"Redrive message {id} of {type}?", "{count} redriven.")
    if error is not None:
        which = f"the dead letters of {type} that have the error “{error}”"
        return Change("redrive", (type, None, error), f"Redrive {which}?", "{count} redriven.", True)
    return Change("redrive", (type,), f"Redrive all dead letters of {type}?", "{count} redriven.", True)


def cancel(id: int) -> Change:
    return Change("cancel", (id,), f"Cancel message {id}? It is deleted.", "{count} cancelled.")


def purge(type: str, state: str) -> Change:
    """All messages of a queue and state: N new, E dead, C archived."""
    question = f"Delete all {STATES.get(state, state)} messages of {type}? They cannot be had back."
    return Change("purge", (type, state), question, "{count} deleted.", True)


def run_schedule(name: str) -> Change:
    return Change("run_schedule", (name,), f"Send the message of the schedule {name} now?", "Message {count} is sent.")


def rewind_feed(feed: str, consumer: str, position: int) -> Change:
    question = f"Move {consumer} of the feed {feed} back to {position:,}? It receives the rows after it again."
    return Change("rewind_feed", (feed, consumer, position), question, "The position is {count} now.")


def retry_rows(name: str, id: int | None = None) -> Change:
    """All dead rows of a polling table, or one."""
    which = "all dead rows" if id is None else f"row {id}"
    return Change("retry_rows", (name, id), f"Retry {which} of {name}?", "{count} retried.", id is None)


def call(looking: Looking, change: Change) -> list[Row]:
    """Make one call of a change, and forget what was kept of before it."""
    looking.forget()
    return looking.session.call(change.procedure, *change.arguments)


def perform(watched: Watched, change: Change, seconds: float = CHANGE_SECONDS) -> str:
    """Make a change, and say what it has done. What is bounded is repeated for at most `seconds`; others look between.

    Raises Forbidden, QueueError, Away.
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
            rest = " There may be more: the time for one call was over. Do it again." if count else ""
            return change.outcome.replace("{count}", f"{total:,}") + rest
