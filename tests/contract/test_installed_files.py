"""The record of installed files: the text of each, and whether its object is still as installed."""

import uuid

import pytest
from rowqueue.databases import Database, NotAllowed, open_database
from rowqueue.install import apply as install
from servers import Server


def test_every_released_file_is_recorded_with_its_hash_and_none_as_changed(database: Database) -> None:
    found = database.installed() or {}
    released = {file.name: (file.kind, file.sha256) for file in install.known(database)}
    assert {name: (file.kind, file.sha256) for name, file in found.items()} == released
    assert [name for name, file in found.items() if file.changed] == []


@pytest.mark.parametrize("role", ["mq_consumer", "mq_operator", "mq_viewer"])
def test_the_roles_that_run_consumers_and_doctor_may_read_it(server: Server, database: Database, role: str) -> None:
    with server.login(database.url, f"login_{uuid.uuid4().hex[:12]}", role) as url:
        assert install.status(open_database(url)) == install.status(database)


def test_a_producer_may_not_read_it(server: Server, database: Database) -> None:
    with server.login(database.url, f"login_{uuid.uuid4().hex[:12]}", "mq_producer") as url:
        with pytest.raises(NotAllowed):
            open_database(url).installed()
        assert install.pending(open_database(url)) == []
