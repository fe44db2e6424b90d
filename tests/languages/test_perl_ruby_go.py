"""The clients of examples/perl, examples/ruby and examples/go, on real servers: `pytest tests/languages`.

They need the languages and the drivers of Debian's packages; a language that is not there is skipped.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rowqueue.databases import Database, Session
from servers import Server

pytestmark = [
    pytest.mark.product("postgresql", "mariadb", "mysql"),
    pytest.mark.timeout(180),
    pytest.mark.skipif(not any("languages" in argument for argument in sys.argv), reason="only when named"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
# Every character but NUL, which no argument of a program can hold, and surrogates, which are no characters.
SCRIPTS = [
    "".join(chr(code) for code in range(start, start + 512) if code > 0 and not 0xD800 <= code < 0xE000)
    for start in (*range(0, 0x3400, 512), 0x4E00, 0xAC00, 0xFE00, 0x10000, 0x10300, 0x12000, 0x1D400, 0x1F600, 0x10FE00)
]
ODD = [
    "",
    " ",
    "\\",
    "\\n",
    '"',
    '"quoted"',
    "'",
    "a,b",
    "1,2,three",
    "%s ? $1 :x",
    "\r\n",
    "\x7f",
    "fail ",
    "true",
    "0",
]
FAILURE = "no \"luck\",\nat line 2, 'again'"


def built_perl(_: Path) -> list[str]:
    needs("perl", "-MDBD::Pg", "-MDBD::MariaDB", "-e1")
    return ["perl", str(EXAMPLES / "perl" / "rowqueue.pl")]


def built_ruby(_: Path) -> list[str]:
    needs("ruby", "-rpg", "-rmysql2", "-e1")
    return ["ruby", "-w", str(EXAMPLES / "ruby" / "rowqueue.rb")]


def built_go(folder: Path) -> list[str]:
    packages = Path("/usr/share/gocode/src/github.com")
    if not shutil.which("go") or not all((packages / name).is_dir() for name in ("lib/pq", "go-sql-driver/mysql")):
        pytest.skip("go or Debian's packages of its drivers are not installed")
    # Debian's packages are for builds without modules.
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(folder / "cache")}
    program = folder / "rowqueue"
    command = ["go", "build", "-o", str(program), "."]
    subprocess.run(command, cwd=EXAMPLES / "go", env=environment, check=True, timeout=170)
    return [str(program)]


LANGUAGES: dict[str, Callable[[Path], list[str]]] = {"perl": built_perl, "ruby": built_ruby, "go": built_go}


def needs(*command: str) -> None:
    if not shutil.which(command[0]) or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{command[0]} or its drivers are not installed")


@pytest.fixture(scope="module", params=list(LANGUAGES))
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How a client is started."""
    return LANGUAGES[request.param](tmp_path_factory.mktemp(request.param))


class Client:
    """A client of one language on one database; `handled` is what its handlers wrote."""

    def __init__(self, command: list[str], url: str, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.environment = {**os.environ, "DATABASE_URL": url, "LEASE_SECONDS": "2", "TZ": "Asia/Kolkata"}
        self.consumers: list[subprocess.Popen[str]] = []

    def send(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, "send", *arguments], env=self.environment, capture_output=True, text=True, timeout=120
        )

    def consume(self, queue: str) -> subprocess.Popen[str]:
        number = len(self.consumers)
        environment = {**self.environment, "HANDLED": str(self.folder / f"{number}.jsonl")}
        with (self.folder / f"{number}.txt").open("w") as errors:
            consumer = subprocess.Popen(
                [*self.command, "consume", queue], env=environment, stderr=errors, text=True, start_new_session=True
            )
        self.consumers.append(consumer)
        return consumer

    def errors(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.txt")))

    def handled(self, number: int | None = None) -> list[tuple[int, str]]:
        name = "*" if number is None else str(number)
        lines = [line for path in self.folder.glob(f"{name}.jsonl") for line in path.read_bytes().split(b"\n") if line]
        return [(id, body) for id, body in map(json.loads, lines)]


@pytest.fixture
def client(command: list[str], installed_database: Database, tmp_path: Path, server: Server) -> Iterator[Client]:
    text = "text" if installed_database.url.startswith("postgres") else "longtext CHARACTER SET utf8mb4"
    server.query(
        installed_database.url,
        f"CREATE TABLE orders (message_id bigint PRIMARY KEY, note {text}, CHECK (note <> 'refused'))",
    )
    client = Client(command, installed_database.url, tmp_path)
    yield client
    for consumer in client.consumers:
        consumer.kill()
        consumer.wait()


@pytest.fixture
def mq(installed_database: Database) -> Iterator[Session]:
    with closing(installed_database.connect("test")) as session:
        yield session


def until(what: str, condition: Callable[[], object], client: Client, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s; {client.errors()}"
        time.sleep(0.05)


def test_each_message_is_completed_once_though_a_consumer_is_killed(
    client: Client, mq: Session, server: Server, installed_database: Database, queue: str
) -> None:
    def query(text: str) -> list[dict[str, object]]:
        return server.query(installed_database.url, text)

    mq.call("set_queue", queue, None, 3, 0, 0, "archive", *[None] * 8)
    bodies = [*SCRIPTS, *ODD, *["fail"] * 5, *["dead"] * 5, "sleep 2"]
    bodies += [f"plain {number}" for number in range(200 - len(bodies))]
    sent = client.send(queue, *bodies)
    assert sent.returncode == 0, sent.stderr
    orders = {row["message_id"]: row["note"] for row in query("SELECT message_id, note FROM orders")}
    assert sorted(orders.values()) == sorted(bodies)
    (sleeper,) = [id for id, body in orders.items() if body == "sleep 2"]

    # The first is killed while it handles the message that takes two seconds.
    client.consume(queue)
    until(
        "the sleeper is active",
        lambda: any(row["id"] == sleeper for row in mq.call("peek", queue, "A", 1000)),
        client,
    )
    held = {row["id"] for row in mq.call("peek", queue, "A", 1000)}
    assert len(held) > 1
    os.killpg(client.consumers[0].pid, signal.SIGKILL)
    client.consume(queue)
    client.consume(queue)
    until("the queue is empty", lambda: not mq.call("peek", queue, "A") and not mq.call("peek", queue, "N"), client)
    for consumer in client.consumers[1:]:
        consumer.send_signal(signal.SIGTERM)
    assert [consumer.wait(10) for consumer in client.consumers[1:]] == [0, 0], client.errors()

    done = {row["id"]: row["body"] for row in mq.call("peek", queue, "C", 1000)}
    dead = {row["id"]: row for row in mq.call("peek", queue, "E", 1000)}
    assert Counter(done.values()) == Counter(body for body in bodies if body not in ("fail", "dead"))
    assert {**done, **{id: row["body"] for id, row in dead.items()}} == orders
    assert Counter((row["body"], row["error"]) for row in dead.values()) == {
        ("fail", FAILURE): 5,
        ("dead", "no such address"): 5,
    }
    assert {row["attempts"] for row in dead.values() if row["body"] == "fail"} == {3}
    handled = client.handled()
    assert dict(handled) == done
    twice = {id for id, count in Counter(id for id, _ in handled).items() if count > 1}
    assert twice <= held
    assert max(Counter(id for id, _ in handled).values()) <= 2


def test_a_lease_is_extended_while_a_handler_runs(client: Client, mq: Session, queue: str) -> None:
    assert client.send(queue, "sleep 5", "after").returncode == 0  # leases of two seconds
    client.consume(queue)
    client.consume(queue)
    until("both are done", lambda: len(client.handled()) == 2, client)
    until("the queue is empty", lambda: not mq.call("peek", queue, "A"), client)
    assert sorted(body for _, body in client.handled()) == ["after", "sleep 5"]
    assert client.errors() == ""
    for consumer in client.consumers:
        consumer.send_signal(signal.SIGINT)
    assert [consumer.wait(10) for consumer in client.consumers] == [0, 0], client.errors()


def test_a_consumer_that_waits_is_woken(client: Client, mq: Session, queue: str) -> None:
    client.consume(queue)
    mq.call("send", queue, "first")
    until("the first is done", lambda: len(client.handled()) == 1, client)
    delays = []
    for number in range(2, 5):
        time.sleep(1)
        start = time.monotonic()
        mq.call("send", queue, f"number {number}")
        until("it is done", lambda number=number: len(client.handled()) == number, client)
        delays.append(time.monotonic() - start)
    assert sorted(delays)[1] < 0.5, delays  # a poll every two seconds takes one


def test_a_lost_lease_is_told_and_the_consumer_goes_on(
    client: Client, mq: Session, server: Server, installed_database: Database, queue: str
) -> None:
    assert client.send(queue, "sleep 3").returncode == 0
    client.consume(queue)
    until("the message is active", lambda: mq.call("peek", queue, "A"), client)
    mq.call("release_batch", mq.call("peek", queue, "A")[0]["batch_key"])
    until("it is done again", lambda: len(client.handled()) == 2, client)
    until("the queue is empty", lambda: not mq.call("peek", queue, "A") and not mq.call("peek", queue, "N"), client)
    assert "50008" in client.errors() and "lease_lost" in client.errors()


def test_a_rolled_back_send_leaves_nothing(
    client: Client, mq: Session, server: Server, installed_database: Database, queue: str
) -> None:
    sent = client.send(queue, "one", "refused")
    assert sent.returncode not in (0, -signal.SIGSEGV)
    assert mq.call("peek", queue) == []
    assert server.query(installed_database.url, "SELECT * FROM orders") == []


def test_a_numbered_error_is_read(client: Client, server: Server, installed_database: Database) -> None:
    sent = client.send("x" * 201, "body")
    assert sent.returncode != 0
    assert "50002" in sent.stderr and "invalid_argument: type: " in sent.stderr, sent.stderr
    assert server.query(installed_database.url, "SELECT * FROM orders") == []
