"""Polling tables as a source of batches: the calls that claim and finish rows."""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress

from .consumer import Source
from .consumer.leases import Batch
from .consumer.sources import LONGEST_LIST, Answer
from .databases import Conflict, Disconnected, LeaseLost, Rows, Values
from .handlers import Handled
from .link import Link
from .messages import Failure, Held, Item, RowMessage


class TableSource(Source):
    """One polling table; `Options.types` holds its name."""

    area = "tables"
    extend_procedure = "extend_rows"
    chains = False
    wakes = False
    answers = False
    keeps_whole = True  # only a whole batch can be given back
    reports = False
    longest_blind_poll = 1.0  # no wake-ups, and each poll reads a user's table

    def claim(self, link: Link, stop: threading.Event, types: Sequence[str], size: int) -> Rows:
        return link.fetch(stop, "claim_rows", types[0], size, self._options.consumer, self._options.lease)

    def items(self, rows: Iterable[Values]) -> Sequence[Held]:
        [table] = self._options.types
        return [RowMessage(id, table, attempt, key, row, *held) for id, key, row, attempt, *held in rows]

    def ask(self, link: Link, stop: threading.Event, types: Sequence[str]) -> Answer | None:
        return None

    def finish(self, link: Link, batch: Batch, handled: Handled, size: int) -> Rows | None:
        lines = handled.lines()
        if lines is not None and len(lines) > LONGEST_LIST:
            lines = handled.lines(LONGEST_LIST // len(handled.failures))
        try:
            link.call(self._never, "finish_rows", batch.key, lines)
        except LeaseLost:
            return None
        return lambda: []

    def finish_part(self, link: Link, batch: Batch, started: Sequence[Item], handled: Handled) -> Sequence[Item]:
        if started:
            again = [Failure(message.id, 0, "not started") for message in handled.unstarted]
            return started if self.finish(link, batch, Handled([*handled.failures, *again]), 0) is not None else []
        with suppress(Disconnected, Conflict):
            link.call(self._never, "release_rows", batch.key)
        return []
