"""examples/fastapi, as its page says: orders and messages are one transaction, and the consumer lives in the API."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from rowqueue.databases import Database
from servers import Server
from support.processes import Running, environment
from support.waiting import until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fastapi"
pytestmark = pytest.mark.product("postgresql")


@pytest.fixture
def api(installed_database: Database, server: Server, tmp_path: Path) -> Iterator[tuple[Running, str, Any]]:
    """The example behind uvicorn, its address, and a client of its database."""
    client = server.client(installed_database.url)
    client.execute("CREATE TABLE orders (id serial PRIMARY KEY, customer text, mailed integer DEFAULT 0)")
    path = tmp_path / "stderr"
    with path.open("w") as stderr:
        command = [sys.executable, "-m", "uvicorn", "app:app", "--port", "0"]
        variables = environment(installed_database.url)
        process = subprocess.Popen(command, stdout=stderr, stderr=stderr, text=True, env=variables, cwd=EXAMPLE)
    running = Running(process, path)
    address = until(lambda: running.stderr.partition("running on ")[2].partition(" ")[0])
    yield running, address, client
    if process.poll() is None:
        process.kill()
        process.wait()
    client.close()


def test_orders_and_messages_are_one_transaction_and_each_mail_is_sent_once(api: tuple[Running, str, Any]) -> None:
    running, address, client = api
    until(lambda: httpx.get(f"{address}/ready").status_code == 200)
    for n in range(5):
        assert httpx.post(f"{address}/orders", params={"customer": f"{n}@example.org"}).status_code == 201
    assert httpx.post(f"{address}/orders", params={"customer": "nobody"}).status_code == 422

    def mailed() -> list[int]:
        return [row["mailed"] for row in client.execute("SELECT mailed FROM orders ORDER BY id").fetchall()]

    until(lambda: mailed() == [1] * 5)
    until(lambda: client.execute("SELECT id FROM mq.message_state").fetchall() == [])
    assert mailed() == [1] * 5
    running.stop()  # uvicorn ends with the signal
    assert "Application shutdown complete" in running.stderr, "the consumer has ended in order"
    assert "lost" not in running.stderr, "the consumer knows that the handler has completed the message"


def test_the_page_shows_the_program() -> None:
    program = (EXAMPLE / "app.py").read_text("utf-8")
    page = (EXAMPLE.parents[1] / "docs" / "start" / "fastapi.md").read_text("utf-8")
    for block in page.split("```python\n")[1:]:
        lines = [line for line in block.partition("```")[0].splitlines() if line.strip()]
        missing = [line for line in lines if line not in program.splitlines()]
        assert missing == []
