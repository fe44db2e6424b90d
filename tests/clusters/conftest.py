"""Fixtures for tests on clusters. Each cluster starts once, for the tests of one file."""

import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from crew import Crew
from servers import clusters

_SIGNAL = re.compile(r"(mysqld|mariadbd) got signal \d+")  # the server's own words


def _writes_anywhere(cluster: object) -> bool:
    return isinstance(cluster, clusters.Galera) or (isinstance(cluster, clusters.GroupReplication) and cluster.multi)


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
