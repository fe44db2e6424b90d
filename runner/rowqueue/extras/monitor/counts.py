"""How numbers of messages are shown, and how long a queue takes to drain: for `stats`, `top`, web and exporter."""

from collections.abc import Sequence
from itertools import dropwhile
from typing import Any

EXACT = 10_000  # queue_stats counts so far what is in ESTIMATED; a larger number is an estimate
ESTIMATED = ("ready", "delayed", "dead")  # active and expired are always exact
DRAIN_MINUTES = 5  # the last whole minutes that give the present rate
# Numbers from the first value on are shown in the second one's unit, with this letter.
_MAGNITUDES = ((1_000_000_000, 1_000_000_000, "G"), (1_000_000, 1_000_000, "M"), (10_000, 1_000, "k"))


def number(value: float | None) -> str:
    """A number in at most five characters."""
    if value is None:
        return ""
    for limit, unit, letter in _MAGNITUDES:
        if abs(value) >= limit:
            scaled = value / unit
            return f"{scaled:.{1 if abs(scaled) < 10 else 0}f}{letter}"
    return f"{value:.0f}"


def short_count(value: int, estimated: bool) -> str:
    """A number of messages in at most six characters: 12k; ≈12k if it is an estimate."""
    return f"{'≈' if estimated and value > EXACT else ''}{number(value)}"


def count(value: int, estimated: bool) -> str:
    """A number of messages with all its digits: 3,204; an estimate is rounded: ≈ 3.2 M."""
    if not estimated or value <= EXACT:
        return f"{value:,}"
    short = number(value)
    return f"≈ {short[:-1]} {short[-1]}"


def count_of(row: dict[str, Any], state: str) -> str:
    """A number of a row of queue_stats, as `count` shows it."""
    return count(row[state], bool(row["estimated"]) and state in ESTIMATED)


def drain_seconds(ready: int, handled: Sequence[int]) -> float | None:
    """In how many seconds the ready messages are handled at the present rate; None: unknown, because none was handled.

    `handled`: the messages completed or dead-lettered in each of the last whole minutes, the oldest first. The minutes
    before the first message do not count. Messages that are sent from now on are not considered.
    """
    if not ready:
        return 0.0
    busy = list(dropwhile(lambda each: not each, handled))
    total = sum(busy)
    return ready * 60 * len(busy) / total if total else None
