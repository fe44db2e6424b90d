"""Results of the reference's calls: one scenario on a real database, with the same results on every engine.

`python tools/docs/outputs.py URL` writes tools/docs/outputs.json; URL names a database with the queue and no messages.
tools/docs/build.py uses it. tests/guides/test_outputs.py runs the scenario on every engine and compares.
"""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from rowqueue.databases import Session, open_database
from rowqueue.install import contract

FILE = Path(__file__).with_name("outputs.json")
KEY = "6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2"
TIME = "2026-11-23 18:40:12"
N = None


class _Key:
    """A placeholder for the batch key of the last claim."""

    def __repr__(self) -> str:
        return f"'{KEY}'"


K = _Key()
# SQL for every database, or (procedure, arguments). The pages show the first call of each procedure. Sends of
# several messages are last, because MySQL and MariaDB leave gaps in ids after them.
SCENARIO: list[str | tuple[str, list[Any]]] = [
    ("send", ["email", '{"to":"ada@example.org"}']),
    ("send", ["email", '{"to":"alan@example.org"}']),
    ("send", ["email", '{"to":"nobody@gone.example"}']),
    ("send_message", ["email", '{"to":"edsger@example.org"}', N, N, N, "welcome-5", N, N, "shop", 3600]),
    ("queue_stats", ["email"]),
    ("find_messages", ["email", '{"dedup_key": "welcome-5"}']),
    ("wait_for_message", ["email", 0]),
    ("get_message", ["email"]),
    ("complete", [1, K]),
    ("claim_batch", ["email", 2, "worker-1", 60]),
    ("extend_lease", [K, 60]),
    ("dead_letter", [3, K, "no such mailbox"]),
    ("send", ["email", '{"to":"grace@example.org"}']),
    ("finish_batch", [K, '{"id":2,"error":"mailbox busy","retry_after_seconds":30}', 1]),
    ("release_batch", [K]),
    ("peek", ["email", "E"]),
    ("list_errors", ["email"]),
    ("redrive_all", ["email"]),
    ("rescue_expired", ["email"]),
    ("claim_batch", ["email", 1, "worker-1", 60]),
    ("complete_batch", [K]),
    ("take_batch", ["email", 1]),
    ("update_message", [4, '{"run_at": null, "priority": -1}']),
    ("get_state", [4]),
    ("cancel", [4]),
    ("cancel_key", ["email", "welcome-5"]),
    ("purge", ["email", "N"]),
    ("drop_queue", ["abandoned"]),
    ("pause", ["email"]),
    ("resume", ["email"]),
    ("set_queue", ["invoice", '{"max_attempts": 5, "on_complete": "archive"}']),
    ("list_queues", ["invoice"]),
    ("send", ["invoice", '{"order":17}']),
    ("claim_batch", ["invoice", 1, "worker-1", 60]),
    ("set_result", [6, K, '{"pages":3}']),
    ("get_result", [6]),
    ("save_step", [6, K, "charge", '{"charge":"ch_1"}']),
    ("get_steps", [6, K]),
    ("list_steps", [6]),
    ("set_progress", [6, K, 3, 10, "page 3"]),
    ("snooze", [6, K, 3600]),
    ("set_schedule", ["nightly", "report", "30 2 * * *", '{"kind":"sales"}']),
    ("next_occurrence", ["30 2 * * MON-FRI", datetime(2026, 11, 23)]),
    ("list_schedules", ["report"]),
    ("run_schedule", ["nightly"]),
    ("drop_schedule", ["nightly"]),
    ("bind_topic", ["orders.*.paid", "invoice"]),
    ("publish", ["orders.eu.paid", '{"order":17}']),
    ("list_bindings", ["orders.eu.paid"]),
    ("unbind_topic", ["orders.*.paid", "invoice"]),
    ("send", ["email", '{"to":"kurt@example.org"}']),
    ("claim_batch", ["email", 1, "worker-1", 60]),
    ("fail", [9, K, "connection refused", 30]),
    ("send", ["email", '{"to":"emmy@example.org"}']),
    ("count_attempt", [10, "connection refused"]),
    ("send", ["email", '{"to":"nobody@gone.example"}']),
    ("count_attempt", [11, "no such mailbox", N, 1]),
    ("redrive", [11]),
    ("wait_for_any", ["sms\nemail", 0]),
    ("claim_any", ["sms\nemail", 1, "worker-1", 60]),
    ("cancel", [11]),
    ("list_cancelled", [K]),
    ("release_consumer", ["worker-1"]),
    ("pause_all", []),
    ("resume_all", []),
    ("set_group", ["invoice", "customer-7", 3]),
    ("send_with", ["reminder", '{"to":"barbara@example.org"}', '{"dedup_key": "welcome-6"}']),
    ("set_option", ["crawl", "ring", "1"]),
    ("send_batch", ["crawl", "https://a.example/\nhttps://b.example/"]),
    ("claim_wraparound", ["crawl", 1, "worker-1"]),
    (
        "report_consumer",
        [
            "worker-1",
            "email",
            '{"completed": 120, "busy_ms": 9500, "handling": "{\\"id\\":17,\\"since\\":\\"2026-11-23T18:40:02Z\\"}"}',
        ],
    ),
    ("list_consumers", ["email"]),
    ("find_queues", ["e"]),
    ("advance_sequence", ["invoice", 3]),
    "CREATE TABLE article (id integer NOT NULL PRIMARY KEY, title varchar(200), sync bigint)",
    "CREATE INDEX article_sync ON article (sync)",
    "INSERT INTO article (id, title) VALUES (1, 'Queues')",
    ("create_feed", ["articles", "article", "id", "sync"]),
    ("publish_feed", ["articles", 500]),
    ("fetch_feed", ["articles", "search", 100]),
    ("advance_feed", ["articles", "search", 1]),
    ("list_feeds", ["articles"]),
    ("rewind_feed", ["articles", "search", 0]),
    ("drop_feed", ["articles"]),
    "CREATE TABLE orders (id integer NOT NULL PRIMARY KEY, status char(1) DEFAULT 'N' NOT NULL)",
    "CREATE INDEX orders_status ON orders (status, id)",
    "INSERT INTO orders (id) VALUES (17)",
    "INSERT INTO orders (id) VALUES (18)",
    (
        "adopt_table",
        [
            "orders",
            "orders",
            '{"key_columns": "id", "status_column": "status", "ready_value": "N", "active_value": "A",'
            ' "done_value": "D", "error_value": "E"}',
        ],
    ),
    ("claim_rows", ["orders", 1, "worker-1", 60]),
    ("extend_rows", [K, 60]),
    ("finish_rows", [K, '{"id":1,"error":"address unknown","dead":1}']),
    ("peek_rows", ["orders", "E"]),
    ("list_polling_tables", ["orders"]),
    ("claim_rows", ["orders", 1, "worker-1", 60]),
    ("release_rows", [K]),
    ("redrive_rows", ["orders"]),
    ("claim_rows", ["orders", 2, "worker-1", 60]),
    ("finish_rows", [K, '{"id":1,"error":"address unknown","dead":1}']),
    ("redrive_row", ["orders", 1]),
    ("unadopt_table", ["orders"]),
]


def run(session: Session, execute: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    """Run the scenario; returns each procedure's call and rows, without values that differ between runs."""
    key: Any = None
    results: dict[str, dict[str, Any]] = {}
    for step in SCENARIO:
        if isinstance(step, str):
            execute(step)
            continue
        name, arguments = step
        rows = session.call(name, *(key if argument is K else argument for argument in arguments))
        if rows and rows[0].get("batch_key"):
            key = str(rows[0]["batch_key"])
        columns = {column.name: column.type for column in contract.load().procedures[name].columns}
        shown = [{column: _plain(column, type, row[column]) for column, type in columns.items()} for row in rows]
        results.setdefault(name, {"call": _call(name, arguments), "rows": shown})
    return results


def _call(name: str, arguments: list[Any]) -> str:
    return f"{name}({', '.join(map(_literal, arguments))})"


def _literal(argument: Any) -> str:
    if argument is None:
        return "NULL"
    if isinstance(argument, datetime):
        return f"'{argument}'"
    return f"'{argument}'".replace("\n", r"\n") if isinstance(argument, str) else repr(argument)


def _plain(column: str, type: str, value: Any) -> str | None:
    """The value as the reference shows it: the same on every database and in every run."""
    if value is None or (column == "source" and value != "shop"):
        return None
    if type == "key":
        return KEY
    if type == "number":
        return "0.1"
    if type == "time" and column != "next_at":
        return TIME
    if type == "time":
        return f"{value:%H:%M:%S}"
    if column in ("busy_ms", "waited_ms", "rate_per_minute"):
        return "9500"
    return str(value).strip()


if __name__ == "__main__":
    session = open_database(sys.argv[1]).connect("docs")
    FILE.write_text(json.dumps(run(session, session.execute), indent=1, ensure_ascii=False) + "\n", "utf-8")
