"""The messages that a consumer handles now, read from the text that it reports; see rowqueue.consume.reports."""

import json
from contextlib import suppress
from datetime import UTC, datetime

from ..consume.reports import stamp


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
    shown = ", ".join(f"{id} since {stamp(since)}" for id, since in found[:most])
    return shown + (f" and {len(found) - most} more" if len(found) > most else "")
