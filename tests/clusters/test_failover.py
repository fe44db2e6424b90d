"""Failover: another server becomes the primary; runners follow, and nothing is lost."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from crew import Crew, call_named, in_order, left, prepare, start
from rowqueue.databases import Disconnected, ReadOnly, open_database
from rowqueue.install import apply as install
from servers import clusters
from servers.mysql import LocalMySQL
from support.waiting import until

Make = Callable[[list[str]], Crew]


class Streaming:
    """PostgreSQL with a synchronous standby: the primary is killed, and the standby promoted."""

    def __init__(self) -> None:
        self._pair = clusters.Streaming(15)

    def start(self) -> None:
        name = self._pair.primary.create_database().rpartition("/")[2]
        self.url = self._pair.url(name)
        self.old, self.new = self._pair.primary, self._pair.standby
        self.old_url, self.new_url = self.old.database_url(name), self.new.database_url(name)

    def catch_up(self) -> None:
        self._pair.catch_up()

    def fail_over(self) -> None:
        self.old.kill()
        self.new.promote()

    def close(self) -> None:
        self._pair.close()


class OfMySQL:
    """Common to the pairs of MySQL and MariaDB."""

    def __init__(self, cluster: clusters.MySQLCluster) -> None:
        self._cluster = cluster

    def start(self) -> None:
        self._cluster.start()  # type: ignore[attr-defined]
        urls = self._cluster.create_database()
        self.url = self._cluster.several(urls)
        self.old, self.new = self._cluster.nodes[:2]
        self.old_url, self.new_url = urls[:2]

    def catch_up(self) -> None:
        until(lambda: self.new.query(self.new_url, "SHOW TABLES LIKE 'effect'"), "the secondary has caught up")

    def close(self) -> None:
        self._cluster.close()


class Group(OfMySQL):
    """A single-primary replication group whose primary is killed; the others elect a new one."""

    def __init__(self) -> None:
        super().__init__(clusters.GroupReplication(multi=False))

    def fail_over(self) -> None:
        self.old.kill()
        number = until(self._cluster.primary, "a new primary")  # type: ignore[attr-defined]
        self.new = self._cluster.nodes[number]
        self.new_url = self.new.database_url(self.new_url.rpartition("/")[2])


class Switchover(OfMySQL):
    """A planned switchover of a primary and its secondary; asynchronous replication loses nothing then."""

    def __init__(self, name: str) -> None:
        super().__init__(clusters.Replica(name))
        self._is_mariadb = name.startswith("mariadb")

    def start(self) -> None:
        """The runners use a plain account: with all rights, it could write on MariaDB despite read_only."""
        super().start()
        self.old.query(self.old.url, "CREATE USER app@'%' IDENTIFIED BY 'app'")
        self.old.query(self.old.url, f"GRANT ALL ON {self.old_url.rpartition('/')[2]}.* TO app@'%'")
        scheme, _, rest = self.url.partition("://")
        self.url = f"{scheme}://app:app@{rest.rpartition('@')[2]}"

    def fail_over(self) -> None:
        self.old.query(self.old.url, f"SET GLOBAL {'read_only' if self._is_mariadb else 'super_read_only'} = 1")
        if self._is_mariadb:
            at = self._position(self.old, "SELECT @@gtid_binlog_pos")
            until(lambda: self._position(self.new, "SELECT @@gtid_slave_pos") == at, "the secondary has all")
        else:
            at = self._position(self.old, "SELECT @@gtid_executed")
            waited = self.new.text(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{at}', 60)")
            assert waited == "0"
        self._cluster.promote()  # type: ignore[attr-defined]

    def _position(self, node: LocalMySQL, query: str) -> str:
        return str(next(iter(node.query(node.url, query)[0].values())))


PAIRS: dict[str, Callable[[], Any]] = {
    "postgresql": Streaming,
    "group": Group,
    "mysql": lambda: Switchover("mysql-9"),
    "mariadb": lambda: Switchover("mariadb-10.11"),
}


@pytest.fixture(scope="module", params=list(PAIRS))
def pair(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Any]:
    for made in start(PAIRS[request.param], pytestconfig):
        install.apply(open_database(made.old_url))
        prepare(made.old, made.old_url)
        made.catch_up()
        yield made


def test_a_server_that_takes_no_changes_raises_read_only(pair: Any) -> None:
    session = open_database(pair.new_url).connect("test")
    with pytest.raises(ReadOnly, match="in the URL"):
        session.call("send", "nowhere", "a")
    assert session.call("queue_stats", "nowhere")[0]["ready"] == 0
    session.close()


def test_a_runner_on_a_server_that_takes_no_changes_says_so_and_waits(pair: Any, crew_on: Make) -> None:
    call_named(pair.old_url, "send", "waits", "a")
    until(lambda: left(pair.new_url, "waits"), "the message is on the other server")
    crew = crew_on([pair.new_url])
    crew.runner(pair.new_url, "--type", "waits", "--handler", "chores:single", "--idle-timeout", 3)
    [log] = crew.finish(1)
    assert log.count("the database takes no changes") == 1 and "gave up" in log, log
    assert crew.handled() == []
    call_named(pair.old_url, "purge", "waits", "N")


def test_of_several_servers_the_one_that_takes_changes_is_found(pair: Any) -> None:
    head, _, tail = pair.url.partition("@")
    hosts, _, path = tail.partition("/")
    for order in (hosts.split(","), hosts.split(",")[::-1], ["127.0.0.1:1", *hosts.split(",")]):
        session = open_database(f"{head}@{','.join(order)}/{path}").connect("test")
        assert session.call("send", "found", "a")
        session.close()
    others = [host for host in hosts.split(",") if f"@{host}/" not in f"@{pair.old_url.rpartition('@')[2]}"]
    with pytest.raises(Disconnected):
        open_database(f"{head}@{','.join([*others, '127.0.0.1:1'])}/{path}").connect("test")
    call_named(pair.old_url, "purge", "found", "N")


def test_runners_follow_to_the_new_server_and_nothing_is_lost(pair: Any, crew_on: Make) -> None:
    crew = crew_on([pair.url])
    for type, ordered in (("effects", 0), ("ordered", 1), ("lists", 0)):
        call_named(pair.url, "set_queue", type, lease_seconds=10, ordered=ordered, max_attempts=100)
    effects = [f"e{n}" for n in range(1200)]
    groups = [[f"g{group} {n}" for n in range(40)] for group in range(8)]
    crew.send_lists(pair.url, "effects", effects)
    for number, bodies in enumerate(groups):
        crew.start(crew.send, pair.url, "ordered", bodies, f"g{number}")
    crew.join()
    for _ in range(2):
        crew.runner(pair.url, "--type", "effects", "--handler", "chores:effect", "--transaction", "--batch", 5)
        crew.runner(pair.url, "--type", "ordered", "--handler", "chores:slow", "--batch", 2)
        crew.runner(pair.url, "--type", "lists", "--handler", "chores:several", "--batch", 10)
    sent = [f"l{n}" for n in range(1000)]
    crew.start(crew.send, pair.url, "lists", sent, None, 0.002)
    count = "SELECT COUNT(*) AS n FROM effect"
    until(lambda: crew.all_run() or pair.old.query(pair.old_url, count)[0]["n"] > 50, "work is going on")
    failed_at = time.monotonic()
    pair.fail_over()
    promoted_at = time.monotonic()
    expected = {body for bodies in (sent, *groups) for body in bodies}
    until(lambda: crew.all_run() or expected <= set(crew.handled()), "all are handled")
    until(lambda: pair.new.query(pair.new_url, count)[0]["n"] == len(effects), "all effects are there")
    until(
        lambda: all(left(pair.new_url, type) == 0 for type in ("effects", "ordered", "lists")), "all queues are empty"
    )
    crew.join()
    crew.dismiss()
    assert set(crew.handled()) == expected
    for number in range(len(groups)):
        assert in_order([body for body in crew.handled() if body.startswith(f"g{number} ")])
    stall = max(b - a for a, b in pairwise(sorted(crew.times())) if b > failed_at)
    twice = len(crew.handled()) - len(expected)
    print(f"stall {stall:.1f} s, of which {promoted_at - failed_at:.1f} s for the change; {twice} handled twice")
