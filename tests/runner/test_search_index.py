"""examples/search_index as it stands: an index that follows a table."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Database
from support.capabilities import BY_DATABASE
from support.processes import COMMAND, environment

pytestmark = pytest.mark.level(1)

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "search_index"


def test_the_index_follows_the_articles(
    database: Database, sql: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    can = BY_DATABASE[database.name]
    article = f"article_{uuid.uuid4().hex[:8]}"
    variables = environment(
        database.url, SEARCH_INDEX=str(tmp_path / "search.db"), PYTHONPATH=os.environ.get("PYTHONPATH", "")
    )

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=FOLDER, env=variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def index() -> None:
        run(*COMMAND, "feed", "publish", article, "--drain")
        run(*COMMAND, "feed", "consume", article, "--consumer", "search", "--handler", "index:update", "--drain")

    def search(*words: str) -> list[str]:
        return run(sys.executable, "index.py", *words).splitlines()

    sql(
        f"CREATE TABLE {article} (id integer NOT NULL PRIMARY KEY, title {can.text}, body {can.text},"
        " deleted integer DEFAULT 0 NOT NULL, sync bigint)"
    )
    sql(f"CREATE INDEX {article}_s ON {article} (sync)")
    for statement in can.opens(article):
        sql(statement)
    run(*COMMAND, "feed", "create", article, "--table", article, "--key", "id", "--sync", "sync")
    for id, title in ((1, "Queues"), (2, "Feeds")):
        sql(f"INSERT INTO {article} (id, title, body) VALUES (%s, %s, 'Nothing commits late here.')", id, title)
    index()
    assert sorted(search("commits", "late")) == ["1\tQueues", "2\tFeeds"]
    sql(f"UPDATE {article} SET title = 'Rings', body = 'Round and round.', sync = NULL WHERE id = 1")
    sql(f"UPDATE {article} SET deleted = 1, sync = NULL WHERE id = 2")
    index()
    assert search("late") == []
    assert search("round") == ["1\tRings"]
    run(*COMMAND, "feed", "drop", article)
