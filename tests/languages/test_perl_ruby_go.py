"""examples/perl, examples/ruby and examples/go with the drivers of Debian's packages."""

import os
import shutil
import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server
from suite import Client, check_refusals, check_work, until

EXAMPLES = Path(__file__).parents[2] / "examples"
GO_PACKAGES = Path("/usr/share/gocode")

pytestmark = [pytest.mark.language, pytest.mark.product("postgresql", "mariadb", "mysql")]


def _needs(*command: str) -> None:
    if not shutil.which(command[0]) or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip(f"{command[0]} or its drivers are not installed")


def _perl(folder: Path) -> list[str]:
    _needs("perl", "-MDBD::Pg", "-MDBD::MariaDB", "-e1")
    return ["perl", str(EXAMPLES / "perl" / "rowqueue.pl")]


def _ruby(folder: Path) -> list[str]:
    _needs("ruby", "-rpg", "-rmysql2", "-e1")
    return ["ruby", "-w", str(EXAMPLES / "ruby" / "rowqueue.rb")]


def _go(folder: Path) -> list[str]:
    drivers = [GO_PACKAGES / "src/github.com" / name for name in ("lib/pq", "go-sql-driver/mysql")]
    if not shutil.which("go") or not all(driver.is_dir() for driver in drivers):
        pytest.skip("go or its drivers are not installed")
    # Debian's packages are for builds without modules.
    environment = os.environ | {"GO111MODULE": "off", "GOPATH": str(GO_PACKAGES), "GOCACHE": str(folder / "cache")}
    command = ["go", "build", "-o", str(folder / "rowqueue"), "."]
    subprocess.run(command, cwd=EXAMPLES / "go", env=environment, check=True)
    return [str(folder / "rowqueue")]


LANGUAGES: dict[str, Callable[[Path], list[str]]] = {"perl": _perl, "ruby": _ruby, "go": _go}


@pytest.fixture(scope="session", params=list(LANGUAGES))
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How the client is started."""
    return LANGUAGES[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture
def client(command: list[str], server: Server, installed_database: Database, tmp_path: Path) -> Client:
    return Client(command, server, installed_database, tmp_path)


def test_each_message_is_done_once(client: Client) -> None:
    check_work(client)


def test_refused_sends_leave_nothing(client: Client) -> None:
    check_refusals(client)


def test_odd_bodies_arrive_as_they_were_sent(client: Client) -> None:
    """Among them characters that strict decoders refuse, and what a careless client takes for a false value or SQL."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    odd = [
        "",
        "\\",
        "\\n",
        '"',
        '"a"',
        "'",
        "a,b",
        "1,2,three",
        "%s ? $1 :x",
        "\r\n",
        "\n",
        "\x7f",
        "0",
        "null",
        "fail\n",
    ]
    bodies = [*odd, "\ufffe\uffff\ufdd0", "\U0010ffff", "\ue000", "\u2028", "e\u0301", "\ufeff", "\u202e"]
    done = client.send(type, *bodies)
    assert done.returncode == 0, done.stderr
    with client.consumer(type, "one") as consumer:
        until(lambda: len(client.handled("one")) >= len(bodies), f"the bodies: {client.log('one')}")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(10) == 0, client.log("one")
    assert Counter(body for _, body in client.handled("one")) == Counter(bodies)
    assert client.messages(type) == []


def test_a_consumer_that_has_lost_its_lease_says_so_and_goes_on(client: Client) -> None:
    type = f"test.{uuid.uuid4().hex[:16]}"
    assert client.send(type, "slow").returncode == 0
    with client.consumer(type, "one") as consumer:
        until(lambda: client.messages(type)[0]["state"] == "A", f"it is claimed: {client.log('one')}")
        with closing(client.database.connect("test")) as session:
            session.call("release_batch", client.messages(type)[0]["batch_key"])
        until(lambda: not client.messages(type), f"it is claimed and done again: {client.log('one')}")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(10) == 0, client.log("one")
    assert [body for _, body in client.handled("one")] == ["slow", "slow"]
    assert "50008 lease_lost" in client.log("one")
