"""The messages that a consumer handles now, as the text that report_consumer takes and list_consumers returns."""

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

MOST = 50  # messages in a report: those that have run longest; report_consumer takes 4,000 characters


def text_of(handling: Iterable[tuple[int, datetime]]) -> str | None:
    """One JSON object per line for each message and the time since when it is handled; None for no message."""
    longest = sorted(handling, key=lambda one: one[1])[:MOST]
    return "\n".join(f'{{"id": {id}, "since": "{_stamp(since)}"}}' for id, since in longest) or None


def read(text: str | None) -> list[tuple[int, datetime]]:
    """The messages and times in such a text. Lines that are something else are left out: any consumer may report."""
    found = []
    for line in (text or "").splitlines():
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            one = json.loads(line)
            since = datetime.fromisoformat(one["since"])
            if isinstance(one["id"], int) and since.tzinfo is not None:
                found.append((one["id"], since.astimezone(UTC)))
    return found


def summary(text: str | None, most: int = 3) -> str:
    """The first few messages for a table, such as `17 since 2026-11-27T08:30:00Z, 18 since … and 4 more`."""
    found = read(text)
    shown = ", ".join(f"{id} since {_stamp(since)}" for id, since in found[:most])
    return shown + (f" and {len(found) - most} more" if len(found) > most else "")


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
