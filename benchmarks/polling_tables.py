"""Claiming rows of a polling table, compared with naive polling: python benchmarks/polling_tables.py

One process handles a table with a key and a one-letter status: with claim_rows and finish_rows, 100 per batch,
and with SELECT … WHERE status = 'N' ORDER BY id LIMIT n, an UPDATE and a commit per row. Both alternate, each time
on a fresh table; the ratio is the median of all turns. Prints one Markdown table.
"""

import argparse
import statistics
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import servers  # noqa: E402  (no package that is installed)
from support.capabilities import BY_DATABASE, Capabilities  # noqa: E402
from support.polling import SHAPES, Polled  # noqa: E402

BATCH = 100


def filled(database: Database, session: Session, server: servers.Server, rows: int) -> Polled:
    """A polling table of shape a with `rows` ready rows."""
    can: Capabilities = BY_DATABASE[database.name]
    table = Polled(
        f"p{uuid.uuid4().hex[:12]}", session, lambda text, *p: server.query(database.url, text, *p), can, SHAPES["a"]
    )
    table.create()
    with session.transaction() as connection:
        cursor = connection.cursor()
        for first in range(0, rows, 500):
            values = [f"SELECT {n}, 'row {n}', 'N'" for n in range(first, min(first + 500, rows))]
            source = " FROM RDB$DATABASE" if database.name == "firebird" else ""
            for part in range(0, len(values), 100):
                chosen = f"{source} UNION ALL ".join(values[part : part + 100]) + source
                cursor.execute(f"INSERT INTO {table.name} (id, v, status) {chosen}")
    return table


def by_batches(table: Polled) -> int:
    """Handle all rows through the queue; returns how many."""
    count = 0
    while rows := table.claim(BATCH):
        count += table.finish(rows[0]["batch_key"])[0]
    return count


def naive(table: Polled) -> int:
    """Handle all rows by naive polling, which with a second worker would handle each row twice."""
    count = 0
    limit = f"FETCH FIRST {BATCH} ROWS ONLY" if table.can.fold("x") == "X" else f"LIMIT {BATCH}"
    while True:
        with table.session.transaction() as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT id, v, status FROM {table.name} WHERE status = 'N' ORDER BY id {limit}")
            rows = cursor.fetchall()
        if not rows:
            return count
        for row in rows:
            id = next(iter(row.values())) if isinstance(row, dict) else row[0]
            with table.session.transaction() as connection:
                connection.cursor().execute(f"UPDATE {table.name} SET status = 'D' WHERE id = {int(id)}")
            count += 1


def rate(work: Any, table: Polled, rows: int) -> float:
    """Rows per second."""
    started = time.monotonic()
    assert work(table) == rows
    return rows / (time.monotonic() - started)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="postgresql-15", choices=servers.names())
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    server = servers.make(options.server)
    server.start()
    try:
        database = open_database(server.create_database())
        install.apply(database)
        session = database.connect("bench")
        turns = [
            [rate(work, filled(database, session, server, options.rows), options.rows) for work in (by_batches, naive)]
            for _ in range(options.turns)
        ]
        session.close()
    finally:
        server.close()
    ours, theirs = (statistics.median(turn[n] for turn in turns) for n in (0, 1))
    ratio = statistics.median(turn[0] / turn[1] for turn in turns)
    print("| server | claim_rows + finish_rows, rows/s | row by row, rows/s | ratio |\n| --- | ---: | ---: | ---: |")
    print(f"| {options.server} | {ours:,.0f} | {theirs:,.0f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
