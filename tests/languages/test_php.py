"""examples/php/queue.php with PDO, as Debian has it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server
from suite import Client, check_refusals, check_work

EXAMPLE = Path(__file__).parents[2] / "examples" / "php" / "queue.php"
DRIVERS = {"postgresql": "pdo_pgsql"}

pytestmark = [pytest.mark.language, pytest.mark.product("postgresql", "mariadb", "mysql")]


@pytest.fixture
def client(server: Server, installed_database: Database, tmp_path: Path) -> Client:
    if not shutil.which("php"):
        pytest.skip("php is not installed")
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout.split()
    driver = DRIVERS.get(server.name.partition("-")[0], "pdo_mysql")
    if missing := {driver, "pcntl"} - set(modules):
        pytest.skip(f"php lacks {', '.join(sorted(missing))}")
    return Client(["php", str(EXAMPLE)], server, installed_database, tmp_path)


def test_php_does_each_message_once(client: Client) -> None:
    check_work(client)


def test_php_refused_sends_leave_nothing(client: Client) -> None:
    check_refusals(client)
