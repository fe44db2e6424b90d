"""Galera and a replication group of many primaries: every node sends, claims and finishes at the same time."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import installed, start
from crew import Crew, Done, call_named, in_order, until
from servers import clusters

KINDS = {"galera": clusters.Galera, "group": lambda: clusters.GroupReplication(multi=True)}
Make = Callable[[list[str]], Crew]


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Any]:
    yield from start(KINDS[request.param], pytestconfig)


@pytest.fixture(scope="module")
def urls(cluster: Any) -> list[str]:
    return installed(cluster)


def left(url: str, type: str) -> int:
    """How many messages a queue holds, in whatever state."""
    rows = call_named(url, "queue_stats", type)
    return sum(row[state] for row in rows for state in ("ready", "delayed", "active", "dead"))


def test_senders_consumers_and_runners_on_all_nodes(cluster: Any, urls: list[str], crew_on: Make) -> None:
    crew, done, type = crew_on(urls), Done(), "mixed"
    bodies = [[f"{node}-{n}" for n in range(700)] for node in range(len(urls))]
    for url, mine in zip(urls, bodies, strict=True):
        crew.runner(url, "--type", type, "--handler", "chores:several", "--batch", 10, "--concurrency", 2)
        crew.runner(url, "--type", type, "--handler", "chores:single", "--batch", 1)
        crew.start(crew.send_lists, url, type, mine[:500], 25)
        crew.start(crew.send, url, type, mine[500:])
        crew.start(crew.consume, url, type, 5, done)
    all_bodies = Counter(body for mine in bodies for body in mine)
    until(lambda: crew.all_run() or len(crew.handled(done)) >= all_bodies.total(), "all handled")
    crew.stop()
    crew.dismiss()
    until(lambda: all(left(url, type) == 0 for url in urls), "the queue is empty on every node")
    assert Counter(crew.handled(done)) == all_bodies
    completed = cluster.nodes[0].query(urls[0], "SELECT body FROM done")
    assert Counter(row["body"] for row in completed) == Counter(done.bodies)
    print(dict(crew.conflicts))


def test_ordered_queue_on_all_nodes(cluster: Any, urls: list[str], crew_on: Make) -> None:
    crew, done, type = crew_on(urls), Done(), "ordered"
    call_named(urls[0], "set_queue", type, ordered=1)
    count = 60
    for number, url in enumerate(urls):
        crew.runner(url, "--type", type, "--handler", "chores:single", "--batch", 5)
        crew.start(crew.consume, url, type, 3, done)
        for group in range(3):
            name = f"g{number}{group}"
            crew.start(crew.send, url, type, [f"{name} {n}" for n in range(count)], name)
    expected = count * 3 * len(urls)
    until(lambda: crew.all_run() or len(crew.handled(done)) >= expected, "all handled")
    crew.stop()
    crew.dismiss()
    until(lambda: all(left(url, type) == 0 for url in urls), "the queue is empty on every node")
    assert len(set(crew.handled(done))) == expected == len(crew.handled(done))
    assert in_order(crew.handled(done))
    print(dict(crew.conflicts))
