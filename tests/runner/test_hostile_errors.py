"""Error texts of handlers that look like outcomes of other messages, on every product and in every kind of consumer."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from rowqueue.databases import Session
from servers import Server
from support.outcomes import hostile_errors
from support.processes import FOLDER

Runner = Callable[..., subprocess.CompletedProcess[str]]
Sql = Callable[..., list[dict[str, Any]]]

SAY = """
import json, sys
word, _, error = json.load(sys.stdin)["body"].partition(" ")
sys.stderr.reconfigure(encoding="utf-8")
sys.stderr.write(error)
sys.exit(65 if word == "dead" else 0)
"""
CONSUMERS = {
    "handler": ["--handler", "odd:give_up"],
    "batch handler": ["--handler", "odd:give_all_up"],
    "worker": ["--worker", shlex.join([sys.executable, str(FOLDER / "obedient_worker.py")])],
    "exec": ["--exec", shlex.join([sys.executable, "-c", SAY])],
}


@pytest.mark.level(1)
@pytest.mark.parametrize("kind", CONSUMERS)
def test_no_text_of_an_error_touches_another_message(
    runner: Runner, session: Session, sql: Sql, server: Server, queue: str, kind: str
) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    neighbour = session.call("send", queue, "neighbour")[0]["id"]
    errors = [*hostile_errors(neighbour), "é😀" * 2_500]
    for error in errors:
        session.call("send", queue, f"dead {error}")
    done = runner("consume", "--type", queue, *CONSUMERS[kind], "--batch", 100, "--drain")
    assert done.returncode == 0, done.stderr[-2_000:]
    view = server.table("message_state")
    first, *others = sql(f"SELECT * FROM {view} WHERE type = %s ORDER BY id", queue)
    assert (first["body"], first["state"], first["attempts"], first["error"]) == ("neighbour", "C", 1, None)
    if kind == "exec":  # the last line of standard error
        errors = [error.rpartition("\n")[2].strip() for error in errors]
    assert [(row["state"], row["error"]) for row in others] == [("E", error[:4_000]) for error in errors]
