"""Clusters on one machine: MariaDB Galera, MySQL Group Replication, a primary and a standby of each engine.

Each is made of servers of tests/servers. All nodes begin with a copy of one data directory: nothing has to be
transferred at the first start, and a node that was killed fetches what it has missed from the others.
"""

import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pymysql

from . import base, fetch
from .mysql import LocalMySQL
from .postgresql import LocalPostgreSQL, programs

_PATIENCE = 90  # seconds
# Three servers on one machine. What is flushed at each commit lies in memory in the tests.
_SMALL: dict[str, object] = {"innodb-buffer-pool-size": "64M"}


def until(condition: Callable[[], Any], what: str, seconds: float = _PATIENCE) -> Any:
    """Wait until something is true and return it."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)
    return result


def _own(folder: Path) -> None:
    """Give a folder to the servers' user."""
    if who := base.identity():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, who["user"], who["group"], follow_symlinks=False)


class Node(LocalMySQL):
    """One server of a cluster of MySQL or MariaDB."""

    def begin_with(self, template: "Node") -> None:
        """Take over the data of a node that is stopped, its accounts included."""
        shutil.rmtree(self._folder / "data")
        shutil.copytree(template._folder / "data", self._folder / "data")
        (self._folder / "data" / "auto.cnf").unlink(missing_ok=True)  # the server's own number
        self.forget_accounts()
        _own(self._folder)

    def forget_accounts(self) -> None:
        """Make no account at the next start: the others have made it."""
        (self._folder / "init.sql").write_text("")

    @property
    def port(self) -> int:
        return self._port

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def has_crashed(self) -> bool:
        """Whether the server has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def status(self, name: str) -> str:
        """One of the server's status variables; '' while it does not answer."""
        with suppress(pymysql.Error):
            rows = self.query(self.url, f"SHOW GLOBAL STATUS LIKE '{name}'")
            return str(rows[0]["Value"]) if rows else ""
        return ""

    def text(self, query: str) -> str:
        """The one value of a query; '' while the server does not answer."""
        with suppress(pymysql.Error):
            rows = self.query(self.url, query)
            return str(next(iter(rows[0].values()))) if rows else ""
        return ""


class MySQLCluster:
    """Nodes of one kind; `nodes[0]` is the one that the cluster began with."""

    nodes: list[Node]

    def create_database(self) -> list[str]:
        """An empty database; its URL on each node."""
        name = base.new_name()
        first = next(node for node in self.nodes if node.is_running)
        first.query(first.url, f"CREATE DATABASE {name}")
        urls = [node.database_url(name) for node in self.nodes]
        for node in self.nodes:
            if node.is_running:
                until(
                    lambda node=node: node.text(f"SHOW DATABASES LIKE '{name}'"),  # type: ignore[misc]
                    f"{name} on all nodes",
                )
        return urls

    def several(self, urls: Sequence[str]) -> str:
        """One URL that names all nodes."""
        parts = [urlsplit(url) for url in urls]
        login = parts[0].netloc.rpartition("@")[0]
        hosts = ",".join(part.netloc.rpartition("@")[2] for part in parts)
        return urlunsplit(parts[0]._replace(netloc=f"{login}@{hosts}"))

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def kill(self, number: int) -> None:
        """SIGKILL one node."""
        self.nodes[number].kill()


def _template(name: str, more: dict[str, object], statements: Sequence[str] = ()) -> Node:
    """A stopped node that has run once alone and therefore has the accounts."""
    node = Node(name, _SMALL | more)
    node.start()
    for statement in statements:
        node.query(node.url, statement)
    node.stop()
    return node


class Galera(MySQLCluster):
    """Nodes of MariaDB 10.11 that all take writes; `more` goes before the settings they have by themselves."""

    def __init__(self, size: int = 3, more: Mapping[str, object] | None = None) -> None:
        made = fetch.FOLDER / "galera-4"
        if not made.is_dir():
            raise base.Unavailable("galera-4 is not there: make servers")
        self.nodes = []
        self._folder = base.folder("galera")
        self._scripts(fetch.Tree(made))
        template = _template("mariadb-10.11", {"skip-log-bin": "ON"})
        self.nodes = [template, *(Node("mariadb-10.11", _SMALL) for _ in range(size - 1))]
        ports = [base.free_port() for _ in self.nodes]
        everyone = ",".join(f"127.0.0.1:{port}" for port in ports)
        for node, port in zip(self.nodes, ports, strict=True):
            if node is not template:
                node.begin_with(template)
            else:
                node.forget_accounts()
            options = (
                f"base_port={port};gmcast.listen_addr=tcp://127.0.0.1:{port};ist.recv_addr=127.0.0.1:{base.free_port()}"
            )
            node.more |= {
                "server-id": "1",
                "log-slave-updates": "ON",
                "innodb-autoinc-lock-mode": "2",
                "wsrep-on": "ON",
                "wsrep-provider": self._provider,
                "wsrep-cluster-address": f"gcomm://{everyone}",
                "wsrep-node-address": "127.0.0.1",
                "wsrep-node-incoming-address": f"127.0.0.1:{node.port}",
                "wsrep-sst-receive-address": f"127.0.0.1:{base.free_port()}",
                "wsrep-sst-method": "rsync",
                "wsrep-slave-threads": "2",
                "wsrep-provider-options": f"{options};gcache.size=64M;pc.recovery=off",
                **(more or {}),
            }
            node.environment = {"PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin"}

    def _scripts(self, made: fetch.Tree) -> None:
        """The programs that nodes copy data with, where the server's user can start them."""
        folder = self._folder / "bin"
        folder.mkdir()
        copy = fetch.Tree(self._folder / "galera-4")
        self._provider = self._folder / "libgalera_smm.so"
        shutil.copy(made.path / "usr/lib/galera/libgalera_smm.so", self._provider)
        for path in made.libraries:
            shutil.copytree(path, copy.path / path.relative_to(made.path), symlinks=True)
        (copy.path / "usr/bin").mkdir()
        shutil.copy(made.path / "usr/bin/rsync", copy.path / "usr/bin/rsync")
        for name in ("wsrep_sst_rsync", "wsrep_sst_common"):
            shutil.copy(made.path / "usr/bin" / name, folder / name)
        mariadb = fetch.home("mariadb-10.11")
        # The script looks for the name of the program that listens, and that is the loader's.
        loader, *rest = copy.program("rsync")
        shutil.copy(loader, copy.path / "rsync")
        commands = {"rsync": [str(copy.path / "rsync"), *rest]}
        if mariadb:
            commands["my_print_defaults"] = mariadb.program("my_print_defaults")
        for name, command in commands.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            (folder / name).chmod(0o755)
        _own(self._folder)

    def start(self) -> None:
        """Start the whole cluster; `nodes[0]` has the newest data."""
        first, *others = self.nodes
        address = first.more["wsrep-cluster-address"]
        first.more["wsrep-cluster-address"] = "gcomm://"
        first.start()
        first.more["wsrep-cluster-address"] = address
        self._await(first, 1)
        for number, node in enumerate(others, 2):
            node.start()
            self._await(node, number)

    def _await(self, node: Node, size: int) -> None:
        until(
            lambda: node.status("wsrep_local_state") == "4" and node.status("wsrep_cluster_size") == str(size),
            f"a node of Galera is synced, one of {size}: {node.log[-1500:]}",
        )

    def rejoin(self, number: int) -> None:
        """Start a node that was killed: it fetches what it has missed."""
        node = self.nodes[number]
        node.start()
        self._await(node, sum(node.is_running for node in self.nodes))

    def close(self) -> None:
        super().close()
        base.remove(self._folder)


class GroupReplication(MySQLCluster):
    """Members of MySQL 9; with `multi` all of them take writes, else the primary does."""

    def __init__(self, multi: bool, size: int = 3) -> None:
        self.multi = multi
        settings: dict[str, object] = {"performance-schema": "ON"}
        template = _template("mysql-9", settings, ["RESET BINARY LOGS AND GTIDS"])
        self.nodes = [template, *(Node("mysql-9", _SMALL | settings) for _ in range(size - 1))]
        ports = [base.free_port() for _ in self.nodes]
        group = str(uuid.uuid4())
        for number, (node, port) in enumerate(zip(self.nodes, ports, strict=True)):
            if node is not template:
                node.begin_with(template)
            node.forget_accounts()
            node.more |= {
                "server-id": number + 1,
                "report-host": "127.0.0.1",
                "report-port": node.port,
                "log-replica-updates": "ON",
                "plugin-load-add": "group_replication.so",
                "group-replication-group-name": group,
                "group-replication-start-on-boot": "OFF",
                "group-replication-local-address": f"127.0.0.1:{port}",
                "group-replication-group-seeds": ",".join(f"127.0.0.1:{other}" for other in ports),
                "group-replication-single-primary-mode": "OFF" if multi else "ON",
                "group-replication-enforce-update-everywhere-checks": "ON" if multi else "OFF",
                "group-replication-recovery-get-public-key": "ON",
                # A busy machine may stop a member for longer than the default of 5 s. With several primaries nobody
                # waits for it; with one, a new primary is elected only then.
                "group-replication-member-expel-timeout": 30 if multi else 15,
            }

    def start(self) -> None:
        for number, node in enumerate(self.nodes):
            node.start()
            self._join(node, first=number == 0)

    def _join(self, node: Node, first: bool = False) -> None:
        from .mysql import PASSWORD, USER

        if first:
            node.query(node.url, "SET GLOBAL group_replication_bootstrap_group = ON")
        node.query(node.url, f"START GROUP_REPLICATION USER = '{USER}', PASSWORD = '{PASSWORD}'")
        if first:
            node.query(node.url, "SET GLOBAL group_replication_bootstrap_group = OFF")
        until(lambda: self.state(node) == "ONLINE", f"a member of the group is online: {node.log[-1500:]}")

    def state(self, node: Node) -> str:
        """The state of a member: ONLINE, RECOVERING, …"""
        return node.text(
            "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid"
        )

    def primary(self) -> int | None:
        """Which node takes writes in a group of one primary; None while there is none."""
        for number, node in enumerate(self.nodes):
            if node.is_running and self.state(node) == "ONLINE" and node.text("SELECT @@super_read_only") == "0":
                return number
        return None

    def rejoin(self, number: int) -> None:
        """Start a member that was killed: it fetches what it has missed."""
        node = self.nodes[number]
        node.start()
        self._join(node)


class Replica(MySQLCluster):
    """A server, `nodes[0]`, and a secondary of it that takes no writes: MySQL 9 or a version of MariaDB."""

    def __init__(self, name: str) -> None:
        self.name = name
        template = _template(name, {"skip-log-bin": "ON"})
        self.nodes = [template, Node(name, _SMALL)]
        self.nodes[1].begin_with(template)
        self.nodes[0].forget_accounts()
        for number, node in enumerate(self.nodes):
            node.more = _SMALL | {"server-id": number + 1}

    def start(self) -> None:
        from .mysql import PASSWORD, USER

        primary, secondary = self.nodes
        primary.start()
        secondary.start()
        mariadb = self.name.startswith("mariadb")
        source = "MASTER" if mariadb else "SOURCE"
        options = [
            f"{source}_HOST = '127.0.0.1', {source}_PORT = {primary.port}",
            f"{source}_USER = '{USER}', {source}_PASSWORD = '{PASSWORD}'",
            "MASTER_USE_GTID = slave_pos" if mariadb else "SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
        ]
        statements = [
            f"CHANGE {'MASTER' if mariadb else 'REPLICATION SOURCE'} TO {', '.join(options)}",
            "START SLAVE" if mariadb else "START REPLICA",
            f"SET GLOBAL {'read_only' if mariadb else 'super_read_only'} = 1",
        ]
        for statement in statements:
            secondary.query(secondary.url, statement)

    def promote(self) -> None:
        """Make the secondary take writes."""
        secondary = self.nodes[1]
        mariadb = self.name.startswith("mariadb")
        secondary.query(secondary.url, "STOP SLAVE" if mariadb else "STOP REPLICA")
        secondary.query(secondary.url, "SET GLOBAL read_only = 0" if mariadb else "SET GLOBAL super_read_only = 0")
        if not mariadb:
            secondary.query(secondary.url, "SET GLOBAL read_only = 0")


class Standby(LocalPostgreSQL):
    """A hot standby of a PostgreSQL server, by streaming replication."""

    def __init__(self, primary: LocalPostgreSQL, version: int) -> None:
        super().__init__(version)
        self._version_number = version
        shutil.rmtree(self._data)
        command = base.words(
            programs(version) / "pg_basebackup", "-d", primary.url, "-D", self._data, "-R", "-X", "stream", "-c", "fast"
        )
        subprocess.run(command, check=True, capture_output=True, cwd="/", **base.identity())

    def promote(self) -> None:
        """Promote it to take writes."""
        command = base.words(programs(self._version_number) / "pg_ctl", "promote", "-D", self._data, "-w")
        subprocess.run(command, check=True, capture_output=True, cwd="/", **base.identity())


class Streaming:
    """A PostgreSQL server and a standby; `url` names both and finds the one that takes writes."""

    def __init__(self, version: int, synchronous: bool = True) -> None:
        self.primary = LocalPostgreSQL(version)
        self.primary.start()
        self.standby = Standby(self.primary, version)
        self.standby.start()
        if synchronous:
            self.primary.query(self.primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.query(self.primary.url, "SELECT pg_reload_conf()")
            until(self._is_synchronous, "the standby is synchronous")

    def _is_synchronous(self) -> bool:
        rows = self.primary.query(self.primary.url, "SELECT sync_state FROM pg_stat_replication")
        return [row["sync_state"] for row in rows] == ["sync"]

    def url(self, name: str) -> str:
        """The database of that name on whichever of the two takes writes."""
        hosts = [urlsplit(server.url).netloc.rpartition("@")[2] for server in (self.primary, self.standby)]
        return f"postgresql://postgres@{','.join(hosts)}/{name}?target_session_attrs=read-write"

    def catch_up(self) -> None:
        """Wait until the standby has all that the primary has."""
        position = self.primary.query(self.primary.url, "SELECT pg_current_wal_lsn()::text AS at")[0]["at"]
        query = f"SELECT pg_last_wal_replay_lsn() >= '{position}' AS there"
        until(lambda: self.standby.query(self.standby.url, query)[0]["there"], "the standby has caught up")

    def close(self) -> None:
        for server in (self.standby, self.primary):
            with suppress(psycopg.Error):
                server.close()


def started(make: Callable[[], Any]) -> Iterator[Any]:
    """A cluster for a fixture: started, and removed in the end."""
    cluster = make()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
