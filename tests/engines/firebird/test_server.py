"""The Firebird servers that the other tests use: durability, logins, and use without a server."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from servers import firebird
from servers.base import Unavailable

# Adds a row, commits it on request, and then prints all rows.
SHARING = """
import sys
from servers.firebird import USER, Client, driver
with Client(driver().connect(sys.argv[1], user=USER)) as client:
    transaction = client.connection.main_transaction
    transaction.execute_immediate(f"INSERT INTO t VALUES ({sys.argv[2]})")
    print("added", flush=True)
    sys.stdin.readline()
    transaction.commit()
    print("committed", flush=True)
    sys.stdin.readline()
    print([row["n"] for row in client.execute("SELECT n FROM t ORDER BY n").rows])
"""


def unavailable(config: pytest.Config, reason: object) -> None:
    if config.getoption("--require-databases"):
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))


@pytest.fixture(params=["firebird-3.0", "firebird-5.0"])
def server(request: pytest.FixtureRequest) -> Iterator[firebird.LocalFirebird]:
    try:
        server = firebird.LocalFirebird(request.param)
    except Unavailable as error:
        unavailable(request.config, error)
        raise
    server.start()
    yield server
    server.close()


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_committed_messages_outlive_the_server(server: firebird.LocalFirebird, how: str) -> None:
    url = server.create_database()
    server.query(url, "CREATE TABLE t (n INTEGER)")
    with server.client(url) as client:
        client.execute("INSERT INTO t VALUES (%s)", [1])
        client.connection.main_transaction.execute_immediate("INSERT INTO t VALUES (2)")
        getattr(server, how)()
        with pytest.raises(Exception, match="connection"):
            client.execute("SELECT n FROM t")
    server.start()
    assert server.query(url, "SELECT n FROM t") == [{"n": 1}]


def test_all_sessions_share_one_process_and_its_cache(server: firebird.LocalFirebird) -> None:
    url = server.create_database()
    with server.client(url), server.client(url) as client:
        rows = client.execute("SELECT mon$server_pid AS pid, trim(mon$user) AS name FROM mon$attachments").rows
    assert len({row["pid"] for row in rows}) == 1
    assert sorted(row["name"] for row in rows) == ["Cache Writer", "Garbage Collector", firebird.USER, firebird.USER]


def test_writes_are_forced(server: firebird.LocalFirebird) -> None:
    url = server.create_database()
    assert server.query(url, "SELECT mon$forced_writes AS forced FROM mon$database") == [{"forced": 1}]


def test_login_needs_the_password_and_gives_no_rights(server: firebird.LocalFirebird) -> None:
    url = server.create_database()
    with server.login(url, "somebody") as login:
        assert server.query(login, "SELECT trim(CURRENT_USER) AS name FROM rdb$database") == [{"name": "SOMEBODY"}]
        with pytest.raises(Exception, match="user name and password"):
            server.query(login.replace(":somebody@", ":other@"), "SELECT 1 FROM rdb$database")
        with pytest.raises(Exception, match=r"(?i)no (permission|privilege)"):
            server.query(login, "CREATE TABLE t (n INTEGER)")


def hears(collector: Any, client: firebird.Client) -> bool:
    """Post an event and check whether it arrives: the driver loses some while its collector starts."""
    client.execute("EXECUTE BLOCK AS BEGIN POST_EVENT 'news'; END")
    return bool(collector.wait(0.2)["news"])


def test_events_come_from_two_servers_at_a_time(server: firebird.LocalFirebird) -> None:
    other = firebird.LocalFirebird(server.name)
    other.start()
    try:
        with ExitStack() as stack:
            clients = [stack.enter_context(each.client(each.url)) for each in (server, other)]
            collectors = [stack.enter_context(client.connection.event_collector(["news"])) for client in clients]
            for client, collector in zip(clients, collectors, strict=True):
                assert any(hears(collector, client) for _ in range(50))
    finally:
        other.close()


def test_processes_share_a_database_without_a_server(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    try:
        home, environment = firebird.programs(firebird.NEWEST), firebird.embedded(tmp_path)
        firebird.driver()
    except Unavailable as error:
        unavailable(pytestconfig, error)
        raise
    file = tmp_path / "shared.fdb"
    shutil.copyfile(home.data / "empty.fdb", file)
    home.isql("CREATE TABLE t (n INTEGER);\n", environment, file)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SHARING, file, str(n)],
            env=os.environ | environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for n in (1, 2)
    ]
    for said in ("added", "committed", "[1, 2]"):
        assert [process.stdout and process.stdout.readline() for process in processes] == [f"{said}\n"] * 2
        for process in processes:
            print(file=process.stdin)
    assert [process.wait(60) for process in processes] == [0, 0]


@pytest.mark.level(3)
def test_the_runner_works_on_a_file_that_several_processes_share(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    try:
        home, environment = firebird.programs(firebird.NEWEST), firebird.embedded(tmp_path)
    except Unavailable as error:
        unavailable(pytestconfig, error)
        raise
    file = tmp_path / "shop.fdb"
    shutil.copyfile(home.data / "empty.fdb", file)
    url = f"firebird:///{file}"

    def start(*words: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).with_name("runner")), *words, "--database", url]
        return subprocess.Popen(
            command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ended(process: subprocess.Popen[str]) -> str:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return said

    ended(start("apply"))
    consume = ("consume", "--type", "t", "--exec", f"cat >> {tmp_path}/handled; echo >> {tmp_path}/handled")
    consumers = [start(*consume, "--max-messages", "2") for _ in range(2)]
    for body in ("a", "b", "c", "d"):
        ended(start("send", "--type", "t", body))
    for consumer in consumers:
        assert "2 completed" in ended(consumer)
    handled = (tmp_path / "handled").read_text().split("\n")
    assert sorted(json.loads(line)["body"] for line in handled if line) == ["a", "b", "c", "d"]
