"""The npm package in examples/node/rowqueue: packed, installed in an empty project, compiled against and run."""

import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from languages import EXAMPLES
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers import Server, product
from suite import create_orders
from support.waiting import until

PACKAGE = EXAMPLES / "node" / "rowqueue"
PROGRAMS = Path(__file__).parent / "node"
SENTENCE = "invalid_argument: type: must be"
pytestmark = [pytest.mark.level(1), pytest.mark.product("postgresql", "mysql", "mariadb")]


def npm(*command: str, folder: Path) -> str:
    done = subprocess.run(["npm", *command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> tuple[Path, list[str]]:
    """What `npm pack` makes: the file, and the names of the files in it."""
    if not shutil.which("npm"):
        if pytestconfig.getoption("--require-databases"):
            pytest.fail("npm is not installed", pytrace=False)
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("packed")
    [result] = json.loads(npm("pack", "--json", str(PACKAGE), folder=folder))
    return folder / result["filename"], sorted(file["path"] for file in result["files"])


@pytest.fixture(scope="session")
def project(packed: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has installed the package, with the programs of the tests compiled in it."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    shutil.copy(EXAMPLES / "node" / "shop.ts", folder / "shop.mts")
    npm("install", "--no-audit", "--no-fund", "--prefer-offline", str(packed[0]), folder=folder)
    assert (folder / "node_modules" / "rowqueue").is_dir() and not (folder / "node_modules" / "rowqueue").is_symlink()
    options = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--noUnusedLocals"]
    names = sorted(path.name for path in (*folder.glob("*.mts"), *folder.glob("*.cts")))
    done = subprocess.run(["npx", "tsc", *options, *names], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return folder


class Program:
    """program.mts in the background, and its events."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path) -> None:
        self.process, self._path = process, path

    def events(self, name: str) -> list[Any]:
        lines = self._path.with_suffix(".jsonl").read_text("utf-8").split("\n")[:-1]
        return [value for event, value in map(json.loads, lines) if event == name]

    def bodies(self, name: str = "end") -> list[str]:
        return [value["body"] for value in self.events(name)]

    @property
    def log(self) -> str:
        return self._path.with_suffix(".log").read_text("utf-8")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


Run = Callable[..., Program]


@pytest.fixture
def run(project: Path, tmp_path: Path) -> Iterator[Run]:
    """Starts program.mts: run(url, "consume", type, concurrency=4)."""
    started = []

    def start(url: str, command: str, type: str, **options: Any) -> Program:
        path = tmp_path / f"{len(started)}"
        with path.with_suffix(".jsonl").open("wb") as out, path.with_suffix(".log").open("wb") as log:
            arguments = ["node", "program.mjs", command, type, json.dumps(options)]
            variables = os.environ | {"DATABASE_URL": url, "TZ": "Asia/Kolkata"}
            process = subprocess.Popen(arguments, cwd=project, env=variables, stdout=out, stderr=log)
        started.append(process)
        return Program(process, path)

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def type() -> str:
    return f"test.{uuid.uuid4().hex[:16]}"


def states(server: Server, database: Database, type: str) -> dict[str, tuple[str, int, str | None]]:
    view = server.table("message_state")
    rows = server.query(database.url, f"SELECT * FROM {view} WHERE type = %s ORDER BY id", type)
    return {row["body"]: (row["state"], row["attempts"], row["error"]) for row in rows}


def orders(server: Server, database: Database) -> list[str]:
    return [row["body"] for row in server.query(database.url, "SELECT body FROM orders ORDER BY body")]


@contextmanager
def calling(database: Database) -> Iterator[Any]:
    with closing(database.connect("test")) as session:
        yield session.call


def test_the_package_has_its_files_and_the_version_of_the_release(packed: tuple[Path, list[str]]) -> None:
    lib = sorted(f"lib/{path.name}" for path in (PACKAGE / "lib").iterdir())
    assert packed[1] == sorted(["LICENSE", "README.md", "package.json", *lib])
    manifest = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    release = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert manifest["version"] == release["version"]
    assert (PACKAGE / "LICENSE").read_bytes() == (EXAMPLES.parent / "LICENSE").read_bytes()


def test_es_modules_and_commonjs_share_one_package(project: Path) -> None:
    done = subprocess.run(["node", "one.cjs"], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Consumer DeadLetter QueueError Retry call complete send sendBatch\n"


def test_a_missing_driver_is_named(packed: tuple[Path, list[str]], tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"private": true}')
    npm("install", "--no-audit", "--no-fund", "--offline", "--omit=peer", str(packed[0]), folder=tmp_path)
    program = "new (require('rowqueue').Consumer)('postgresql://localhost/x', 'email', () => {}).run()"
    done = subprocess.run(["node", "-e", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "Cannot find module 'pg'" in done.stderr


def test_messages_are_sent_in_the_transaction_of_the_application(
    run: Run, server: Server, installed_database: Database, type: str
) -> None:
    create_orders(server, installed_database)
    program = run(installed_database.url, "produce", type)
    assert program.process.wait(60) == 0, program.log
    assert orders(server, installed_database) == ["committed"]
    first, second, later, count, none = program.events("sent")
    assert first == {"id": first["id"], "created": True, "changed": False, "state": "N"}
    assert second == {"id": first["id"], "created": False, "changed": True, "state": "N"}
    assert later["id"] > first["id"] and (count, none) == (4, 0)
    odd = ["", "two\nlines", '"quoted"', "é😀"]
    assert set(states(server, installed_database, type)) == {"replaced", "later", *odd}
    empty, unknown, negative, lost, kind = program.events("error")
    assert empty[:3] == ["QueueError", 50002, "invalid_argument"] and empty[3].startswith(SENTENCE), empty
    assert unknown[1:3] == [50002, "invalid_argument"] and "delay is not known" in unknown[3], unknown
    assert negative[1:3] == [50002, "invalid_argument"]
    assert lost[1:3] == [50008, "lease_lost"]
    assert kind[0] == "TypeError" and "not a connection" in kind[3]
    with calling(installed_database) as call:
        [row] = call("claim_batch", type, 1)
        assert (row["body"], row["group_key"], row["dedup_key"]) == ("replaced", "g", "d")
        call("release_batch", row["batch_key"])
    # A consumer gets what was sent: times in UTC, though the process is in another zone.
    consumer = run(installed_database.url, "consume", type, drain=True)
    assert consumer.process.wait(60) == 0, consumer.log
    assert [*consumer.bodies(), "later"] == ["replaced", *odd, "later"]
    assert abs(time.time() - datetime.fromisoformat(consumer.events("end")[1]["createdAt"]).timestamp()) < 600
    assert list(states(server, installed_database, type)) == ["later"]


def test_a_handler_gets_the_options_of_the_sender(run: Run, installed_database: Database, type: str) -> None:
    options = {"priority": -3, "group_key": "g", "dedup_key": "d", "max_attempts": 7, "source": "the test"}
    headers = json.dumps({"trace": "7", "text": 'é "x"\n'})
    run_at = "2026-01-02T03:04:05.678Z"
    with calling(installed_database) as call:
        call("send_with", type, "x", json.dumps(options | {"headers": headers, "run_at": run_at}))
    consumer = run(installed_database.url, "consume", type, drain=True)
    assert consumer.process.wait(60) == 0, consumer.log
    [message] = consumer.events("end")
    assert message.pop("createdAt")
    assert message == {
        "body": "x", "headers": json.loads(headers), "groupKey": "g", "dedupKey": "d", "priority": -3,
        "source": "the test", "maxAttempts": 7, "runAt": run_at,
    }  # fmt: skip


def test_so_many_messages_run_at_a_time_and_a_slow_one_stops_no_other(
    run: Run, server: Server, installed_database: Database, type: str, tmp_path: Path
) -> None:
    slow = f"wait {tmp_path / 'go'}"
    with calling(installed_database) as call:
        call("send_batch", type, "\n".join([slow, *[f"sleep {n % 7} {n}" for n in range(200)]]))
    consumer = run(installed_database.url, "consume", type, concurrency=5)
    until(lambda: set(states(server, installed_database, type)) == {slow}, "all others are finished")
    assert len(consumer.bodies()) == 200
    (tmp_path / "go").touch()
    assert max(value["running"] for value in consumer.events("begin")) == 5
    until(lambda: states(server, installed_database, type) == {}, "the slow one too")
    assert consumer.stop() == 0


def test_each_message_has_an_outcome_when_its_handler_throws(
    run: Run, server: Server, installed_database: Database, type: str
) -> None:
    bodies = ["dead", "null", "odd", "empty", "retry 0", "retry 3600", "good"]
    with calling(installed_database) as call:
        call("set_queue", type, '{"max_attempts": 3, "backoff_seconds": 600}')
        call("send_batch", type, "\n".join(bodies))
    consumer = run(installed_database.url, "consume", type, concurrency=10)
    until(lambda: sorted(consumer.bodies()) == ["good", "retry 0", "retry 3600"][:2], "the good ones")
    until(lambda: len(states(server, installed_database, type)) == 5, "they are finished")
    assert consumer.stop() == 0
    found = states(server, installed_database, type)
    assert found == {
        "dead": ("E", 1, "no such address"),
        "null": ("N", 1, "null"),
        "odd": ("N", 1, "an error without a text"),
        "empty": ("N", 1, "Error"),
        "retry 3600": ("N", 1, "busy"),
    }
    assert consumer.log.count(" failed (attempt 1): ") == 6


def test_a_stopped_consumer_ends_what_it_has_and_takes_nothing_else(
    run: Run, server: Server, installed_database: Database, type: str
) -> None:
    with calling(installed_database) as call:
        call("send_batch", type, "\n".join([*[f"sleep {1500 + n}" for n in range(3)], *[f"{n}" for n in range(50)]]))
    consumer = run(installed_database.url, "consume", type, concurrency=3)
    until(lambda: len(consumer.bodies("begin")) == 3, "the first three")
    assert consumer.stop() == 0
    assert sorted(consumer.bodies()) == ["sleep 1500", "sleep 1501", "sleep 1502"]
    assert consumer.events("ended") == [False]
    left = states(server, installed_database, type)
    assert left == {f"{n}": ("N", 0, None) for n in range(50)}
    assert consumer.log == ""


def test_an_idle_consumer_is_woken_and_stops_at_once(
    run: Run, server: Server, installed_database: Database, type: str, tmp_path: Path
) -> None:
    consumer = run(installed_database.url, "consume", type, concurrency=2)
    until(lambda: consumer.events("ready"), "it is ready")
    time.sleep(0.5)
    begin = time.monotonic()
    with calling(installed_database) as call:
        call("send", type, f"wait {tmp_path / 'go'}")  # one slot is busy meanwhile
        for n in range(10):
            call("send", type, f"{n}")
            until(lambda n=n: len(consumer.bodies()) == n + 1, "it is handled", 10)
            time.sleep(0.1)
        assert time.monotonic() - begin < 8, "it waits for the poll, of two seconds"
    (tmp_path / "go").touch()
    until(lambda: states(server, installed_database, type) == {}, "all done")
    begin = time.monotonic()
    assert consumer.stop(signal.SIGINT) == 0
    assert time.monotonic() - begin < 1, "an idle consumer ends at once"


def test_a_busy_event_loop_loses_the_lease_and_the_consumer_continues(
    run: Run, server: Server, installed_database: Database, type: str
) -> None:
    with calling(installed_database) as call:
        call("send_batch", type, "block 3000\nafter")
        consumer = run(installed_database.url, "consume", type, leaseSeconds=1)
        until(lambda: consumer.bodies("begin"), "it is handled")
        time.sleep(1.2)
        until(lambda: call("claim_batch", type, 2, None, 1), "the lease has run out", 10)
        until(lambda: states(server, installed_database, type) == {}, "all done again")
    assert consumer.stop() == 0
    assert "50008 lease_lost" in consumer.log
    assert consumer.bodies().count("block 3000") >= 2 and consumer.bodies().count("after") == 1


def test_an_effect_in_the_transaction_that_completes_the_message_happens_once(
    run: Run, server: Server, installed_database: Database, type: str
) -> None:
    create_orders(server, installed_database)
    with calling(installed_database) as call:
        call("send_batch", type, "\n".join([*[f"effect {n}" for n in range(20)], "plain"]))
        consumer = run(installed_database.url, "consume", type, concurrency=4, leaseSeconds=2)
        until(lambda: states(server, installed_database, type) == {}, "all done")
        assert orders(server, installed_database) == sorted(f"effect {n}" for n in range(20))
        # The lease is taken away: the handler learns it, and its transaction is rolled back.
        call("send", type, "effect lost")
        until(lambda: "effect lost" in consumer.bodies("begin"), "it is handled")
        view = server.table("message_state")
        [row] = server.query(installed_database.url, f"SELECT * FROM {view} WHERE type = %s", type)
        call("pause", type)
        call("release_batch", row["batch_key"])
        until(lambda: consumer.events("aborted"), "the handler learns it")
        until(lambda: "50008 lease_lost" in consumer.log, "the consumer learns it")
    assert consumer.stop() == 0
    assert "effect lost" not in orders(server, installed_database)
    assert states(server, installed_database, type) == {"effect lost": ("N", 0, None)}


def test_a_restart_of_the_database_costs_no_message_and_no_process(run: Run, private_server: Server, type: str) -> None:
    database = open_database(private_server.create_database())
    install.apply(database)
    bodies = [f"sleep {n % 5} {n}" for n in range(400)]
    with calling(database) as call:
        call("send_batch", type, "\n".join([*bodies, "sleep 2500"]))
        call("send_with", type, "sleep 4000 during the restart", '{"priority": -1}')
    consumer = run(database.url, "consume", type, concurrency=5, leaseSeconds=20)
    until(lambda: len(consumer.bodies()) > 50, "the first ones")
    private_server.stop("immediate")
    until(lambda: "the database is unreachable" in consumer.log, "it notices")
    time.sleep(1.5)
    private_server.start()
    until(lambda: "the database is reachable again" in consumer.log, "it is connected again")
    until(lambda: states(private_server, database, type) == {}, "all done", 90)
    handled = Counter(consumer.bodies())
    assert set(handled) == {*bodies, "sleep 2500", "sleep 4000 during the restart"}
    assert handled["sleep 4000 during the restart"] == 1, "its outcome was reported under the same lease"
    assert sum(handled.values()) <= len(handled) + 10
    private_server.stop("fast")
    until(lambda: consumer.log.count("the database is unreachable") == 2, "it notices again")
    begin = time.monotonic()
    assert consumer.stop() == 1, "a consumer that is stopped without its database says so"
    assert time.monotonic() - begin < 8
    private_server.start()


def test_a_consumer_waits_for_its_database_but_not_with_a_wrong_password(
    run: Run, private_server: Server, type: str
) -> None:
    database = open_database(private_server.create_database())
    install.apply(database)
    private_server.stop("fast")
    consumer = run(database.url, "consume", type)
    until(lambda: "the database is unreachable" in consumer.log, "it waits")
    drained = run(database.url, "consume", type, drain=True)
    assert drained.process.wait(20) == 1, "one that is to end does not wait"
    private_server.start()
    until(lambda: consumer.events("ready"), "it is ready")
    assert consumer.stop() == 0
    stranger = database.url.replace("://", "://x" if "@" in database.url else "://nobody:wrong@", 1)
    unknown = run(stranger, "consume", type)
    assert unknown.process.wait(30) == 1, unknown.log
    assert "unreachable" not in unknown.log


def test_frameworks_send_in_their_transactions(
    project: Path, server: Server, installed_database: Database, type: str
) -> None:
    create_orders(server, installed_database)
    variables = os.environ | {"DATABASE_URL": installed_database.url}
    command = ["node", "frameworks.mjs", type]
    done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    last = "pool" if product(server.name) == "postgresql" else "callbacks"
    names = ["knex", "sequelize", "typeorm", "queryrunner", last]
    refused = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line[:3] for line in refused] == [[name, 50002, "invalid_argument"] for name in names]
    assert all(line[3].startswith(SENTENCE) for line in refused), refused
    assert orders(server, installed_database) == sorted(names)
    odd = [f"back\\slash ? $1 :x 'quote' {name}" for name in names]
    assert sorted(states(server, installed_database, type)) == sorted([*names, *odd])


@pytest.mark.product("postgresql")
def test_the_shop_mails_each_order_once(
    project: Path, server: Server, installed_database: Database, tmp_path: Path
) -> None:
    url = installed_database.url
    server.query(url, "CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, mailed integer DEFAULT 0)")
    log = tmp_path / "log"
    with log.open("wb") as file:
        variables = os.environ | {"DATABASE_URL": url, "PORT": "0"}
        process = subprocess.Popen(["node", "shop.mjs"], cwd=project, env=variables, stdout=file, stderr=file)
    try:
        until(lambda: "port: " in log.read_text(), "it listens", 20)
        port = log.read_text().partition("port: ")[2].split()[0]

        def request(path: str, method: str = "GET") -> int:
            try:
                asked = urllib.request.Request(f"http://localhost:{port}{path}", method=method)
                return int(urllib.request.urlopen(asked, timeout=10).status)
            except urllib.error.HTTPError as error:
                return error.code

        until(lambda: request("/ready") == 200, "it is ready", 20)
        for n in range(5):
            assert request(f"/orders?customer={n}@example.org", "POST") == 201
        assert request("/orders", "POST") == 500, "an order without a customer is refused"

        def mailed() -> list[int]:
            return [row["mailed"] for row in server.query(url, "SELECT mailed FROM orders ORDER BY id")]

        until(lambda: mailed() == [1] * 5, "all are mailed", 20)
        until(lambda: states(server, installed_database, "email") == {}, "all are completed", 20)
        assert mailed() == [1] * 5
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, log.read_text()
        assert "lost" not in log.read_text(), "the consumer knows that the handler has completed the message"
    finally:
        process.kill()
        process.wait()


def test_the_page_shows_the_programs() -> None:
    programs = "".join((EXAMPLES / "node" / name).read_text("utf-8") for name in ("shop.ts", "queue.js")).splitlines()
    page = (EXAMPLES.parent / "docs" / "languages" / "node.md").read_text("utf-8")
    blocks = page.split("```ts\n")[1:]
    assert len(blocks) > 1
    for block in blocks:
        lines = [line for line in block.partition("```")[0].splitlines() if line.strip()]
        assert [line for line in lines if line not in programs] == []
