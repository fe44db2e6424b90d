"""version: the release and the areas that are installed."""

import pytest
from rowqueue.databases import open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from support.queues import Queue, call


def test_version_returns_the_release_and_its_areas(q: Queue) -> None:
    areas = ",".join(sorted(contract.load().areas))
    assert call(q.session, "version") == [{"version": contract.release(), "areas": areas}]


def test_version_returns_the_last_release_and_only_areas_that_are_installed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.create_database()
    database = open_database(url)
    for release in ("0.9.0", "0.10.0"):
        monkeypatch.setattr(contract, "release", lambda release=release: release)
        install.apply(database, areas=["topics"])
        session = database.connect("test")
        assert session.call("version") == [{"version": release, "areas": "common,operations,queue,topics"}]
        session.close()
    server.drop_database(url)
