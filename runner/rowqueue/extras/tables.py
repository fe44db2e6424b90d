"""Polling tables as a source of batches: the calls that claim and finish rows."""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..consume import Source
from ..consume.source import LONGEST_LIST, Answer, Batch
from ..databases import LeaseLost, Rows, Values
from ..databases.link import NEVER, Link
from ..handlers import Handled
from ..messages import Held, Item
from .rows import RowMessage

T = TypeVar("T", str, str | None)


class TableSource(Source):
    """One polling table; `Options.types` holds its name."""

    area = "tables"
    extend_procedure = "extend_rows"
    chains = wakes = answers = reports = False
    longest_blind_poll = 1.0  # no wake-ups, and each poll reads a user's table

    def claim(self, link: Link, stop: threading.Event, types: Sequence[str], size: int) -> Rows:
        return link.fetch(stop, "claim_rows", types[0], size, self._options.name, self._options.lease)

    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        [table] = self._options.types
        return [RowMessage(id, table, attempt, key, row, *held) for id, key, row, attempt, *held in rows]

    def ask(self, link: Link, stop: threading.Event, types: Sequence[str]) -> Answer | None:
        return None

    def finish(self, link: Link, batch: Batch, handled: Handled, size: int) -> Rows | None:
        try:
            link.call(NEVER, "finish_rows", batch.key, _short(handled.lines, handled))
        except LeaseLost:
            return None
        return lambda: []

    def finish_part(self, link: Link, batch: Batch, handled: Handled) -> Sequence[Item]:
        try:
            link.call(NEVER, "finish_rows", batch.key, _short(handled.all_lines, handled), 1)
        except LeaseLost:
            return []
        return [*handled.ended, *handled.unstarted]


def _short(lines: Callable[[int | None], T], handled: Handled) -> T:
    """The list of outcomes, its errors cut if it is too long for one call."""
    whole = lines(None)
    return whole if not whole or len(whole) <= LONGEST_LIST else lines(LONGEST_LIST // len(handled.failures))
