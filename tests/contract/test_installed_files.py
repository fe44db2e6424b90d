"""installed_files: the file of each object, and whether the object is still as installed."""

import pytest
from queues import Queue, call
from rowqueue import install
from rowqueue.databases import Database

pytestmark = pytest.mark.one_version


def test_installed_files_returns_the_hash_of_every_released_file(q: Queue, database: Database) -> None:
    found = {row["name"]: row for row in call(q.session, "installed_files")}
    released = {file.name: (file.kind, file.sha256) for file in install.known(database)}
    assert {name: (row["kind"], row["sha256"]) for name, row in found.items()} == released


def test_installed_files_finds_nothing_changed_in_a_fresh_installation(q: Queue) -> None:
    assert [row["name"] for row in call(q.session, "installed_files") if row["changed"]] == []
