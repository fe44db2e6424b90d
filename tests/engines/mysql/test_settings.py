"""MySQL and MariaDB: installation and calls do the same under all server settings of a DBA."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from rowqueue.databases import Database, ReadOnly, Session, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server, Unavailable, base
from servers.mysql import Client, LocalMySQL
from support.capabilities import BY_DATABASE
from support.outcomes import failure
from support.polling import SHAPES, Polled
from support.queues import Queue, make_feed

pytestmark = pytest.mark.product("mysql", "mariadb")

# What can be set while the server runs, for sessions that begin afterwards.
GLOBALS = {
    "strange": {
        "sql_mode": "'ORACLE,PAD_CHAR_TO_FULL_LENGTH'",  # MySQL has no ORACLE, and gets the next one
        "transaction_isolation": "'SERIALIZABLE'",
        "completion_type": "'CHAIN'",
        "sql_safe_updates": "1",
        "group_concat_max_len": "4",
        "max_sp_recursion_depth": "0",
        "default_storage_engine": "MEMORY",
        "explicit_defaults_for_timestamp": "0",
        "sql_require_primary_key": "1",
        "optimizer_switch": "",  # all off
        "character_set_server": "utf8mb4",
        "collation_server": "utf8mb4_turkish_ci",
    },
    "ansi": {
        "sql_mode": "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,REAL_AS_FLOAT'",
        "transaction_isolation": "'READ-UNCOMMITTED'",
        "character_set_server": "latin1",
        "collation_server": "latin1_german2_ci",
        "sql_big_selects": "0",
        "div_precision_increment": "0",
        "max_sort_length": "8",
        "time_zone": "'SYSTEM'",
    },
}
STARTED = {"strange": {"innodb-autoinc-lock-mode": "0"}, "ansi": {"innodb-autoinc-lock-mode": "1"}}
TEXT = "a\"b\\'I\u0131"  # a Turkish letter
NEW_YORK = {"TZ": "America/New_York"}


class Plain:
    """The calls of a client that changes no settings."""

    def __init__(self, connection: Client) -> None:
        self.connection = connection
        connection.autocommit(True)

    def call(self, procedure: str, *values: Any) -> list[dict[str, Any]]:
        arguments = [*values, *(None for _ in contract.load().procedures[procedure].arguments[len(values) :])]
        marks = ", ".join(["%s"] * len(arguments))
        cursor = self.connection.execute(f"CALL mq_{procedure}({marks})", arguments)
        rows = list(cursor.fetchall())
        while cursor.nextset():
            pass
        return rows


@pytest.fixture
def made(server_name: str) -> Iterator[Callable[..., LocalMySQL]]:
    servers: list[LocalMySQL] = []

    def make(**more: object) -> LocalMySQL:
        try:
            servers.append(LocalMySQL(server_name, more))
        except Unavailable as error:
            pytest.skip(str(error))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def set_globals(server: Server, settings: dict[str, str]) -> None:
    with server.client(server.url) as connection:
        for name, value in settings.items():
            if name == "optimizer_switch":
                switches = next(iter(connection.execute("SELECT @@optimizer_switch AS s").fetchall()))["s"].split(",")
                # MariaDB wants one of two to be on.
                flags = [switch.partition("=")[0] for switch in switches]
                value = "'" + ",".join(f"{one}={'on' if one == 'in_to_exists' else 'off'}" for one in flags) + "'"
            if not connection.is_mariadb:
                value = value.replace("ORACLE,", "")
            known = connection.execute("SHOW GLOBAL VARIABLES LIKE %s", [name]).fetchall()
            if known:
                connection.execute(f"SET GLOBAL {name} = {value}")


def work(server: Server, database: Database, session: Any, name: str) -> None:
    """The results of every feature in that session, with queues and tables of that name."""
    with server.client(database.url) as connection:
        connection.autocommit(True)
        connection.execute("SET default_storage_engine = InnoDB, sql_mode = '', sql_safe_updates = 0")

        def sql(text: str, *parameters: Any) -> list[dict[str, Any]]:
            cursor = connection.execute(text, parameters)
            return list(cursor.fetchall()) if cursor.description else []

        session.call(
            "set_queue",
            f"ordered.{name}",
            '{"max_attempts": 5, "backoff_seconds": 0, "on_complete": "archive", "ordered": 1}',
        )
        for type in (f"plain.{name}", f"ordered.{name}"):
            session.call("send_message", type, TEXT, None, 0, "g", "d")
            session.call("send_batch", type, "x\ny\nz")
            [stats] = [row for row in session.call("queue_stats") if row["type"] == type]
            assert stats["ready"] == 4
            rows = session.call("claim_batch", type, 1)
            session.call("fail", rows[0]["id"], rows[0]["batch_key"], "no", 0)
            done: list[str] = []
            while len(done) < 4:
                rows = session.call("claim_batch", type, 10)
                done += [row["body"] for row in rows]
                assert rows and session.call("complete_batch", rows[0]["batch_key"])[0]["affected"] == len(rows)
            assert sorted(done) == [TEXT, "x", "y", "z"]
            assert session.call("peek", type) == []
        session.call("set_queue", "ring", '{"ring": 1}')
        session.call("send", "ring", "r")
        assert [row["body"] for row in session.call("claim_wraparound", "ring", 5, "r")] == ["r"]
        can = BY_DATABASE[database.name]
        for letter in ("a", "e"):
            table = Polled(f"T_i{letter}{name}", session, sql, can, SHAPES[letter]).create().insert("1", "2", "3")
            rows = table.claim(2)
            assert [json.loads(row["row_data"])["v"] for row in rows] == ["1", "2"]
            assert table.finish(rows[0]["batch_key"], failure(rows[0]["id"], "no", 0)) == (1, 1, 0, 0)
            rows = table.claim(5)
            assert table.finish(rows[0]["batch_key"]) == (2, 0, 0, 0) and table.states() == []
        feed = make_feed(Queue("fed", session, sql, can), 1, 2)
        assert feed.publish() == 2 and [row[1] for row in feed.values()] == [1, 2]
        feed.change(1, "new")
        assert feed.publish() == 1 and feed.advance(3) == 3 and feed.fetch() == []
        session.call("queue_health")


@pytest.mark.level(3)
@pytest.mark.parametrize("name", GLOBALS)
def test_a_server_may_be_set_up_in_any_way(made: Callable[..., LocalMySQL], name: str) -> None:
    server = made(**STARTED[name])
    server.environment = NEW_YORK
    server.start()
    set_globals(server, GLOBALS[name])
    database = open_database(server.create_database())
    install.apply(database)
    assert {file.state for file in install.status(database)} == {"ok"}
    with closing(database.connect("test")) as session:
        work(server, database, session, "runner")
    with server.client(database.url) as connection:
        work(server, database, Plain(connection), "plain")


@pytest.mark.level(4)
def test_table_names_may_be_stored_in_lower_case(made: Callable[..., LocalMySQL]) -> None:
    server = made(**{"lower-case-table-names": "1"})
    if server.name.startswith("mysql"):  # it can be chosen only when the data directory is made
        shutil.rmtree(server._folder / "data")
        subprocess.run(
            [*server._home.server(), "--initialize-insecure", "--lower-case-table-names=1",
             f"--datadir={server._folder / 'data'}"],
            check=True, cwd="/", capture_output=True, **base.identity(),
        )  # fmt: skip
    server.start()
    database = open_database(server.create_database())
    install.apply(database)
    with closing(database.connect("test")) as session:
        work(server, database, session, "Small")


def test_a_server_that_accepts_no_changes_says_so(private_server: Server) -> None:
    server = private_server
    installed, empty = (open_database(server.create_database()) for _ in range(2))
    install.apply(installed)
    sessions: list[Session] = [installed.connect("test")]
    name = "super_read_only" if server.name.startswith("mysql") else "read_only"
    with server.login(installed.url, "weak", "mq_producer", "mq_consumer") as url:
        sessions.append(open_database(url).connect("test"))
        server.query(server.url, f"SET GLOBAL {name} = 1")
        accounts = sessions if name == "super_read_only" else sessions[1:]  # MariaDB lets an administrator write
        for session in accounts:
            with pytest.raises(ReadOnly, match="in the URL"):
                session.call("send", "t", "x")
            with pytest.raises(ReadOnly, match="in the URL"):
                session.call("claim_batch", "t", 1)
        if len(accounts) == len(sessions):
            with pytest.raises(ReadOnly, match="in the URL"):
                install.apply(empty)
        for session in sessions:
            session.close()
        server.query(server.url, "SET GLOBAL read_only = 0")
