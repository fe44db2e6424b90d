"""A search index of articles in an SQLite file, kept in step with a table by a feed.

    runner feed consume articles --consumer search --handler index:update
    python index.py WORD...

A row of the feed is an article in its current version: its old entry is replaced, or removed if it is deleted.
Handling a row twice changes nothing, as at-least-once delivery requires.
"""

import os
import sqlite3
import sys
from typing import Any

from rowqueue import Record


def opened() -> sqlite3.Connection:
    """The index, created if it does not exist."""
    index = sqlite3.connect(os.environ.get("SEARCH_INDEX", "search.db"))
    index.execute("CREATE VIRTUAL TABLE IF NOT EXISTS article USING fts5 (title, body)")
    return index


def update(records: list[Record]) -> None:
    """Update the index with a batch of rows, in one transaction."""
    index = opened()
    with index:
        for record in records:
            row: dict[str, Any] = {name.lower(): value for name, value in record.row.items()}
            index.execute("DELETE FROM article WHERE rowid = ?", [row["id"]])
            if not row["deleted"]:
                values = [row["id"], row["title"], row["body"]]
                index.execute("INSERT INTO article (rowid, title, body) VALUES (?, ?, ?)", values)
    index.close()


def found(words: str) -> list[tuple[int, str]]:
    """The articles with all of these words, the best first."""
    index = opened()
    rows = index.execute("SELECT rowid, title FROM article WHERE article MATCH ? ORDER BY rank", [words]).fetchall()
    index.close()
    return rows


if __name__ == "__main__":
    for id, title in found(" ".join(f'"{word}"' for word in sys.argv[1:])):
        print(f"{id}\t{title}")
