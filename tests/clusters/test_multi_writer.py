"""Galera and a multi-primary replication group: all nodes send, claim and finish at the same time."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crew import Crew, Done, call_named, in_order, installed, left, start
from rowqueue.cli import app
from rowqueue.databases import Session, open_database
from servers import clusters
from support.waiting import until
from typer.testing import CliRunner

PAGE = (Path(__file__).parents[2] / "docs" / "operate" / "clusters.md").read_text("utf-8")


def galera() -> clusters.Galera:
    """With the settings that docs/operate/clusters.md asks for."""
    settings = re.search(r"^```ini\n\[mariadb\]\n(.*?)^```$", PAGE, re.M | re.S)
    assert settings
    return clusters.Galera(more=dict(re.findall(r"^(\w+) = (\w+)$", settings[1], re.M)))


KINDS = {"galera": galera, "group": lambda: clusters.GroupReplication(multi=True)}
Make = Callable[[list[str]], Crew]


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Any]:
    yield from start(KINDS[request.param], pytestconfig)


@pytest.fixture(scope="module")
def urls(cluster: Any) -> list[str]:
    return installed(cluster)


def test_urls_of_the_page_name_several_servers() -> None:
    urls = re.findall(r"--database '(.*?)'", PAGE)
    assert [open_database(url).name for url in urls] == ["postgresql", "mysql"]
    assert all(url.count("db") > 1 for url in urls)


def test_doctor_shows_the_cluster_and_its_requirements(cluster: Any, urls: list[str]) -> None:
    def said() -> list[tuple[str, int | None, str]]:
        output = CliRunner().invoke(app, ["doctor", "--json", "--database", urls[1]]).stdout
        rows = [row for row in map(json.loads, output.splitlines()) if row.get("name") == "cluster"]
        return [(row["verdict"], row["measured"], row["detail"]) for row in rows]

    [(verdict, size, detail)] = said()
    assert (verdict, size) == ("ok", len(cluster.nodes)) and "docs/operate/clusters.md" in detail
    assert re.search("Galera .* Synced|Group Replication .* several primaries, this member is ONLINE", detail), detail
    if isinstance(cluster, clusters.Galera):
        cluster.nodes[1].query(urls[1], "SET GLOBAL innodb_lock_wait_timeout = 50")
        assert [row[0] for row in said()] == ["ok", "warn"] and "innodb_lock_wait_timeout is 50" in said()[1][2]
        cluster.nodes[1].query(urls[1], "SET GLOBAL innodb_lock_wait_timeout = 2")
    else:
        with cluster.nodes[1].login(urls[1], "weak", "mq_operator") as url:
            found = open_database(url).cluster()
        assert found is not None and found.size is None and "GRANT SELECT" in found.detail


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


def test_transactions_on_all_nodes_have_their_effect_once(cluster: Any, urls: list[str], crew_on: Make) -> None:
    crew, type = crew_on(urls), "effects"
    call_named(urls[0], "set_queue", type, max_attempts=1)  # a conflict does not count an attempt
    expected = [f"{node}-{n}" for node in range(len(urls)) for n in range(200)]
    for node, url in enumerate(urls):
        for size in (1, 10):
            crew.runner(url, "--type", type, "--handler", "chores:effect", "--transaction", "--batch", size)
        crew.start(crew.send, url, type, expected[node * 200 : node * 200 + 200])
    first = cluster.nodes[0]
    count = "SELECT COUNT(*) AS n FROM effect"
    until(lambda: crew.all_run() or first.query(urls[0], count)[0]["n"] >= len(expected), "all effects are there")
    crew.join()
    crew.dismiss()
    for node, url in zip(cluster.nodes, urls, strict=True):
        until(lambda url=url: left(url, type) == 0, "the queue is empty")
        assert sorted(row["body"] for row in node.query(url, "SELECT body FROM effect")) == sorted(expected)


def test_ordered_transactions_on_all_nodes(cluster: Any, urls: list[str], crew_on: Make) -> None:
    crew, first, type = crew_on(urls), cluster.nodes[0], "ordered.effects"
    call_named(urls[0], "set_queue", type, ordered=1, max_attempts=1)
    groups = [f"t{node}{group}" for node in range(len(urls)) for group in range(3)]
    for number, group in enumerate(groups):
        crew.start(crew.send, urls[number % len(urls)], type, [f"{group} {n}" for n in range(30)], group)
    for url in urls:
        crew.runner(url, "--type", type, "--handler", "chores:effect_in_order", "--transaction", "--batch", 2)
    count = "SELECT COUNT(*) AS n FROM effect WHERE body LIKE 't%'"
    until(lambda: crew.all_run() or first.query(urls[0], count)[0]["n"] >= 30 * len(groups), "all effects are there")
    crew.join()
    crew.dismiss()
    assert crew.handled() == [], "handled before the one that comes before it"
    until(lambda: all(left(url, type) == 0 for url in urls), "the queue is empty on every node")


SHAPES = {
    "status": {"key_columns": "id", "status_column": "status", "active_value": "A", "done_value": "D"},
    "status without active": {"key_columns": "id", "status_column": "status", "done_value": "D"},
    "delete": {"key_columns": "id", "on_complete": "delete"},
}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_polling_table_on_all_nodes(cluster: Any, urls: list[str], crew_on: Make, shape: str) -> None:
    crew, done, name = crew_on(urls), Done(), "polled_" + shape.replace(" ", "_")
    first = cluster.nodes[0]
    columns = "id bigint PRIMARY KEY AUTO_INCREMENT, v varchar(50) NOT NULL, status char(1) NOT NULL DEFAULT 'N'"
    first.query(urls[0], f"CREATE TABLE {name} ({columns}, KEY (status, id))")
    first.query(urls[0], f"GRANT SELECT, UPDATE, DELETE ON {name} TO 'mq_owner'@'localhost'")
    settings = SHAPES[shape]
    ready = {"ready_value": "N", "error_value": "E"} if "status_column" in settings else {}
    call_named(urls[0], "adopt_table", name, name, **ready, **settings)
    _await_everywhere(cluster, urls, f"SELECT name FROM mq_polled WHERE name = '{name}'")
    expected = [f"{node}-{n}" for node in range(len(urls)) for n in range(300)]
    for node, url in enumerate(urls):
        mine = expected[node * 300 : node * 300 + 300]
        crew.start(_insert, crew, url, name, mine)
        crew.runner(url, name, "--handler", "chores:row", "--batch", 10, group=["table"])
        crew.runner(url, name, "--handler", "chores:row", "--batch", 1, group=["table"])
        crew.start(_claim_rows, crew, url, name, done)
    until(lambda: crew.all_run() or len(crew.handled(done)) >= len(expected), "all rows are handled")
    crew.stop()
    crew.dismiss()
    assert Counter(crew.handled(done)) == Counter(expected)
    until(lambda: not first.query(urls[0], "SELECT id FROM mq_polled_row WHERE name = %s", name), "no entry is left")
    found = Counter(row["status"] for row in first.query(urls[0], f"SELECT status FROM {name}"))
    assert found == ({"D": len(expected)} if "done_value" in settings else {})


def _await_everywhere(cluster: Any, urls: list[str], query: str) -> None:
    """The other nodes apply a change a moment later."""
    for node, url in zip(cluster.nodes, urls, strict=True):
        until(lambda node=node, url=url: node.query(url, query), query)


def _insert(crew: Crew, url: str, table: str, values: list[str]) -> None:
    """Inserts of an application, which repeats them after a conflict."""
    with crew.session(url) as session:
        for value in values:

            def insert(inner: Session, value: str = value) -> None:
                with inner.transaction() as connection:
                    connection.cursor().execute(f"INSERT INTO {table} (v) VALUES (%s)", [value])

            session.do(insert)


def _claim_rows(crew: Crew, url: str, name: str, done: Done) -> None:
    """An SQL consumer of a polling table."""
    with crew.session(url) as session:
        while not crew.stopped():
            rows = session.call("claim_rows", name, 5, None, 30)
            if not rows:
                time.sleep(0.02)
                continue
            done.saw([json.loads(row["row_data"])["v"] for row in rows])
            session.call("finish_rows", rows[0]["batch_key"])


def test_feed_published_on_all_nodes_misses_nothing(cluster: Any, urls: list[str], crew_on: Make) -> None:
    crew, first = crew_on(urls), cluster.nodes[0]
    columns = "id bigint PRIMARY KEY AUTO_INCREMENT, v varchar(50) NOT NULL, sync bigint, UNIQUE KEY (sync)"
    first.query(urls[0], f"CREATE TABLE stock ({columns})")
    first.query(urls[0], "GRANT SELECT, UPDATE ON stock TO 'mq_owner'@'localhost'")
    call_named(urls[0], "create_feed", "stock", "stock", "id", "sync")
    _await_everywhere(cluster, urls, "SELECT name FROM mq_feed WHERE name = 'stock'")
    expected = [f"{node}-{n}" for node in range(len(urls)) for n in range(200)]
    for node, url in enumerate(urls):
        crew.start(_insert, crew, url, "stock", expected[node * 200 : node * 200 + 200])
        crew.start(_publish, crew, url)
        crew.start(_follow, crew, url, f"consumer-{node}", seen := [])
        READ[node] = seen
    until(lambda: crew.all_run() or all(len(seen) >= len(expected) for seen in READ.values()), "all consumers have all")
    crew.stop()
    for seen in READ.values():
        assert [position for position, _ in seen] == list(range(1, len(expected) + 1))
        assert sorted(value for _, value in seen) == sorted(expected)


READ: dict[int, list[tuple[int, str]]] = {}


def _publish(crew: Crew, url: str) -> None:
    with crew.session(url) as session:
        while not crew.stopped():
            session.call("publish_feed", "stock", 20)
            time.sleep(0.02)


def _follow(crew: Crew, url: str, consumer: str, seen: list[tuple[int, str]]) -> None:
    """A consumer on one node, with its own position."""
    with crew.session(url) as session:
        while not crew.stopped():
            rows = session.call("fetch_feed", "stock", consumer, 50)
            seen += [(row["feed_position"], json.loads(row["row_data"])["v"]) for row in rows]
            if rows:
                session.call("advance_feed", "stock", consumer, rows[-1]["feed_position"])
            time.sleep(0.01)


def test_a_node_is_killed_while_all_work(cluster: Any, urls: list[str], crew_on: Make) -> None:
    """Nothing is lost, no effect or completion happens twice, groups keep their order, and no runner ends."""
    crew, done, first = crew_on(urls), Done(), cluster.nodes[0]
    last = len(urls) - 1
    mine = [cluster.several([*urls[node:], *urls[:node]]) for node in range(len(urls))]  # each tries its own node first
    for type, ordered in (("k.mixed", 0), ("k.ordered", 1), ("k.effects", 0)):
        call_named(urls[0], "set_queue", type, lease_seconds=10, ordered=ordered, max_attempts=100)
    effects = [f"killed-{n}" for n in range(800)]
    groups = [[f"k{group} {n}" for n in range(50)] for group in range(12)]
    mixed = [[f"{node}-{n}" for n in range(800)] for node in range(len(urls))]
    crew.send_lists(urls[0], "k.effects", effects)
    for number, bodies in enumerate(groups):
        crew.start(crew.send, urls[0], "k.ordered", bodies, f"g{number}")
    crew.join()
    for node, url in enumerate(mine):
        crew.runner(url, "--type", "k.effects", "--handler", "chores:effect", "--transaction", "--batch", 5)
        crew.runner(url, "--type", "k.ordered", "--handler", "chores:slow", "--batch", 3)
        crew.runner(url, "--type", "k.mixed", "--handler", "chores:several", "--batch", 10)
        crew.start(crew.send, url, "k.mixed", mixed[node], None, 0.001)
        crew.start(crew.consume, url, "k.mixed", 5, done)
    count = "SELECT COUNT(*) AS n FROM effect WHERE body LIKE 'killed-%'"
    until(lambda: crew.all_run() or first.query(urls[0], count)[0]["n"] > 100, "work is going on")
    cluster.kill(last)
    killed_at = time.monotonic()
    expected = {body for bodies in (*mixed, *groups) for body in bodies}

    def left_over() -> str:
        counts = "SELECT type, state, COUNT(*) AS n, MAX(lease_until), UTC_TIMESTAMP() FROM mq_message_state"
        found = first.query(urls[0], f"{counts} GROUP BY type, state")
        missing = sorted(expected - set(crew.handled(done)))
        return f"all are handled, but for {missing[:20]}; {found}; {dict(crew.conflicts)}"

    until(lambda: crew.all_run() or expected <= set(crew.handled(done)), left_over)
    until(lambda: first.query(urls[0], count)[0]["n"] == len(effects), "all effects are there")
    queues = ("k.mixed", "k.ordered", "k.effects")
    until(
        lambda: all(left(url, type) == 0 for url in urls[:last] for type in queues),
        lambda: f"the queues are empty: {[(type, left(url, type)) for url in urls[:last] for type in queues]}",
    )
    crew.stop()
    logs = crew.dismiss()
    handled = crew.handled(done)
    for number in range(len(groups)):
        assert in_order([body for body in handled if body.startswith(f"k{number} ")])
    assert set(handled) == expected
    stall = max(b - a for a, b in pairwise(sorted(crew.times())) if b > killed_at - 1)
    print(f"stall {stall:.1f} s, {len(handled) - len(expected)} of {len(expected)} handled twice")
    print("lost connections:", sum("the database is unreachable" in log for log in logs))
    cluster.rejoin(last)
    until(lambda: left(urls[last], "k.mixed") == 0, "the node that came back has the same")
    there = [
        node.query(url, "SELECT COUNT(*) AS n FROM done")[0]["n"] for node, url in zip(cluster.nodes, urls, strict=True)
    ]
    assert len(set(there)) == 1
