"""runner uninstall: what it releases first, and what it refuses to drop."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rowqueue.databases import Database
from servers import Server
from support.capabilities import BY_DATABASE
from support.polling import SHAPES, Polled

pytestmark = pytest.mark.engines

Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def table(installed_database: Database, server: Server) -> Iterator[Polled]:
    """A polling table in a database of this test's own."""
    session = installed_database.connect("test")
    name = f"test.{uuid.uuid4().hex[:16]}"

    def sql(text: str, *parameters: Any) -> list[dict[str, Any]]:
        return server.query(installed_database.url, text, *parameters)

    yield Polled(name, session, sql, BY_DATABASE[installed_database.name], SHAPES["a"])
    session.close()


def test_uninstall_first_releases_claimed_rows_of_polling_tables(
    runner: Runner, table: Polled, installed_database: Database
) -> None:
    table.create().insert("1", "2", "3")
    assert len(table.session.call("claim_rows", table.name, 2, "consumer", 60)) == 2
    assert sorted(table.left().values()) == ["A", "A", "N"]
    table.session.close()
    done = runner("uninstall", "--yes", url=installed_database.url)
    assert done.returncode == 0, done.stderr
    assert table.name in done.stdout
    assert installed_database.installed() is None
    assert table.left() == {"1": "N", "2": "N", "3": "N"}


def test_uninstall_refuses_when_a_table_cannot_be_released_unless_forced(
    runner: Runner, table: Polled, server: Server, installed_database: Database
) -> None:
    table.create()
    table.session.close()
    server.drop_procedure(installed_database.url, "unadopt_table")
    before = server.catalog(installed_database.url)
    done = runner("uninstall", "--yes", url=installed_database.url)
    assert done.returncode == 1 and table.name in done.stderr and "--force" in done.stderr, done.stderr
    assert server.catalog(installed_database.url) == before
    assert runner("uninstall", "--yes", "--force", url=installed_database.url).returncode == 0
    assert installed_database.installed() is None


@pytest.mark.level(3)
def test_uninstall_names_views_on_the_queue_and_needs_a_flag_to_drop_them(
    runner: Runner, table: Polled, server: Server, installed_database: Database
) -> None:
    table.session.close()
    url = installed_database.url
    server.query(url, f"CREATE VIEW waiting AS SELECT id FROM {server.table('message_state')}")
    before = server.catalog(url)
    done = runner("uninstall", "--yes", url=url)
    assert done.returncode == 1 and "waiting" in done.stderr.lower(), done.stderr
    assert ("--cascade" in done.stderr) == installed_database.cascades
    assert server.catalog(url) == before
    if not installed_database.cascades:
        server.query(url, "DROP VIEW waiting")
    taken = runner("uninstall", "--yes", "--cascade", url=url)
    assert taken.returncode == 0, taken.stderr
    assert installed_database.installed() is None
