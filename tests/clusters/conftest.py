"""Fixtures for tests on clusters. Each cluster starts once, for the tests of one file."""

import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from crew import Crew
from rowqueue.databases import open_database
from rowqueue.install import apply as install
from servers import Server, Unavailable, clusters

_SIGNAL = re.compile(r"(mysqld|mariadbd) got signal \d+")  # the server's own words


def _writes_anywhere(cluster: object) -> bool:
    return isinstance(cluster, clusters.Galera) or (isinstance(cluster, clusters.GroupReplication) and cluster.multi)


def start(make: Callable[[], Any], config: pytest.Config) -> Iterator[Any]:
    """A cluster for a fixture; the test is skipped when its programs are missing."""
    try:
        yield from clusters.started(make)
    except Unavailable as error:
        if config.getoption("--require-databases"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of each node's log to the report of a failure: only there a node that is gone says why.

    Where several nodes write, servers have faults of their own, see docs/operate/clusters.md: a test in which one
    crashed is skipped.
    """
    report = yield
    # At the end of a file's last test the nodes and their logs are gone.
    if report.failed and report.when != "teardown" and isinstance(item, pytest.Function):
        for cluster in item.funcargs.values():
            for number, node in enumerate(getattr(cluster, "nodes", ())):
                log = getattr(node, "log", "")
                report.sections.append((f"end of the log of node {number}", log[-3000:]))
                if _writes_anywhere(cluster) and node.has_crashed and (found := _SIGNAL.search(log)):
                    report.outcome = "skipped"
                    report.longrepr = (str(item.path), item.location[1], f"node {number} crashed: {found[0]}")
    return report


@pytest.fixture(autouse=True)
def _every_node(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start a node again that has crashed in a test, for the tests that follow; see docs/operate/clusters.md."""
    yield
    for cluster in request.node.funcargs.values():
        if _writes_anywhere(cluster):
            for number, node in enumerate(cluster.nodes):
                if node.has_crashed:
                    node.stop()  # it knows now that its process is gone
                    cluster.rejoin(number)


def installed(cluster: Any) -> list[str]:
    """The URLs, one per node, of a new database with the queue and the tables that handlers write to."""
    urls: list[str] = cluster.create_database()
    install.apply(open_database(urls[0]))
    prepare(cluster.nodes[0], urls[0])
    for node, url in zip(cluster.nodes, urls, strict=True):
        if node.is_running:
            clusters.until(lambda node=node, url=url: node.query(url, "SHOW TABLES LIKE 'effect'"), "all tables")  # type: ignore[misc]
    return urls


def prepare(server: Server, url: str) -> None:
    """Create the tables that handlers and SQL consumers write to."""
    server.query(url, "CREATE TABLE done (id bigint PRIMARY KEY, body varchar(200) NOT NULL)")
    server.query(url, "CREATE TABLE effect (body varchar(200) PRIMARY KEY)")


@pytest.fixture
def crew_on(tmp_path: Path) -> Iterator[Callable[[list[str]], Crew]]:
    """Makes a crew for these URLs."""
    crews: list[Crew] = []

    def make(urls: list[str]) -> Crew:
        crews.append(Crew(urls, tmp_path))
        return crews[-1]

    yield make
    for crew in crews:
        crew.close()
