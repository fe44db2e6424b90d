"""What handlers of polling tables and of feeds receive: rows. The package names both classes."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(slots=True)
class RowMessage:
    """One row of a polling table as a handler receives it. `table`: the name under which the table is adopted.

    `id`: of the row's claim. `key`, `row`: its key and all its columns, parsed from the JSON in `key_text`, `row_text`.
    """

    id: int
    table: str
    attempt: int
    key_text: str
    row_text: str
    batch_key: Any
    lease_until: datetime | None

    @property
    def type(self) -> str:
        return self.table

    @property
    def headers(self) -> None:
        return None

    @property
    def key(self) -> dict[str, Any]:
        key: dict[str, Any] = json.loads(self.key_text)
        return key

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(self.row_text)
        return row

    def as_json(self) -> str:
        """One line of JSON: id, table, attempt, and key and row as objects. Numbers keep all their digits."""
        return _row_line({"id": self.id, "table": self.table, "attempt": self.attempt}, self.key_text, self.row_text)


@dataclass(slots=True)
class Record:
    """One row of a feed as a handler receives it.

    `position`: its number in the feed; `id` is the same number. `type`: the feed, as `feed`. `key`, `row`: its key and
    its columns, parsed from the JSON in `key_text` and `row_text`. `attempt`: counted by this process only.
    """

    feed: str
    position: int
    key: dict[str, Any]
    row: dict[str, Any]
    key_text: str
    row_text: str
    attempt: int = 1

    @property
    def id(self) -> int:
        return self.position

    @property
    def type(self) -> str:
        return self.feed

    @property
    def headers(self) -> None:
        return None

    def as_json(self) -> str:
        """The record as one line of JSON. Numbers keep all their digits."""
        head = {"feed": self.feed, "position": self.position, "attempt": self.attempt}
        return _row_line(head, self.key_text, self.row_text)


def _row_line(head: dict[str, Any], key: str, row: str) -> str:
    """One line of JSON: the fields of `head`, then the key and the row as the database wrote them."""
    line = f'{json.dumps(head, ensure_ascii=False)[:-1]}, "key": {key}, "row": {row}}}'
    # Strings have them escaped; a JSON column may have them between its values.
    return line.replace("\n", " ").replace("\r", " ")
