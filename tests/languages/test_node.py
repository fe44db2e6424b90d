"""examples/node/queue.js with npm's drivers pg and mysql2."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server
from suite import Client, check_refusals, check_work

EXAMPLE = Path(__file__).parents[2] / "examples" / "node"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowqueue-tests" / "node"

pytestmark = [pytest.mark.language, pytest.mark.product("postgresql", "mariadb", "mysql")]


@pytest.fixture(scope="session")
def folder() -> Path:
    """The example, with its drivers, in a folder that the next run finds again."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "queue.js"):
        shutil.copy(EXAMPLE / name, CACHE)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline"]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install the drivers: {done.stderr.strip().splitlines()[-1:]}")
    return CACHE


@pytest.fixture
def client(folder: Path, server: Server, installed_database: Database, tmp_path: Path) -> Client:
    return Client(["node", str(folder / "queue.js")], server, installed_database, tmp_path)


def test_node_does_each_message_once(client: Client) -> None:
    check_work(client)


def test_node_refused_sends_leave_nothing(client: Client) -> None:
    check_refusals(client)
