"""The consumer of a polling table: the loop of messages over rows of an adopted table, with the calls for those."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .consumer import Batch, Consumer
from .databases import Conflict, Disconnected, Row
from .handlers import Failure, Handled, Message
from .link import Link

_BLIND_POLL = 1.0  # nobody tells that a row has come, and each look reads a table of the user's


@dataclass(slots=True)
class RowMessage(Message):
    """A row as a handler gets it: `key` and `row` are read from the JSON in `key_text` and `body`, as in a Record.

    `type` is the adopted table's name.
    """

    key_text: str = ""

    @property
    def key(self) -> dict[str, Any]:
        key: dict[str, Any] = json.loads(self.key_text)
        return key

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(self.body)
        return row

    def as_json(self) -> str:
        """One line of JSON: id, table, attempt, key and row (objects), with all the digits that the database wrote."""
        head = json.dumps({"id": self.id, "table": self.type, "attempt": self.attempt}, ensure_ascii=False)
        line = f'{head[:-1]}, "key": {self.key_text}, "row": {self.body}}}'
        # Inside a string they are escaped; a column of JSON may have them between its values.
        return line.replace("\n", " ").replace("\r", " ")


class TableConsumer(Consumer):
    """Consumes the rows of one adopted table; `Options.types` holds its name."""

    extend_procedure = "extend_rows"
    chains = False
    longest_blind_poll = _BLIND_POLL

    def _link(self, listen_to: Sequence[str] = (), is_over: Callable[[], bool] = lambda: False) -> Link:
        return super()._link((), is_over)

    def _claim_rows(self, link: Link, type: str, size: int) -> list[Row]:
        return link.call(self._stop, "claim_rows", type, size, self._options.reader, self._options.lease)

    def _message(self, row: Row) -> Message:
        [table] = self._options.types
        return RowMessage(
            id=row["id"],
            type=table,
            body=row["row"],
            headers=None,
            priority=0,
            group_key=None,
            dedup_key=None,
            attempt=row["attempt"],
            created_at=datetime.now(UTC),
            source=None,
            batch_key=row["batch_key"],
            lease_until=row["lease_until"],
            key_text=row["key"],
        )

    def _ask(self, link: Link) -> tuple[bool, datetime | None]:
        return False, None

    def _may_start(self, batch: Batch) -> bool:
        # What is begun is ended, told to stop or not: only a whole batch can be given back.
        begun = batch.begun
        batch.begun = True
        return not (batch.lost or time.monotonic() > batch.expires or (self._stop.is_set() and not begun))

    def _finish(self, link: Link, batch: Batch, failures: str | None, size: int) -> list[Row]:
        link.call(self._never, "finish_rows", batch.key, failures)
        return []

    def _finish_part(self, link: Link, batch: Batch, handled: Handled) -> None:
        unstarted = {message.id for message in handled.unstarted}
        started = [message for message in batch.messages if message.id not in unstarted]
        if started:
            again = [Failure(id, 0, "not started") for id in unstarted]
            self._finish(link, batch, "\n".join(f.line() for f in [*handled.failures, *again]), 0)
        else:
            with suppress(Disconnected, Conflict):
                link.call(self._never, "release_rows", batch.key)
        self._note_part(batch, started, handled)
