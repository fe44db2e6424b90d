"""docs/howto/test-a-handler.md, exactly-once.md, steps.md and cancel.md: their blocks run and do what the pages say."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import rowqueue
from rowqueue.databases import Database
from servers import Server
from shops import DOCS

TESTING = (DOCS / "howto" / "test-a-handler.md").read_text("utf-8")
EFFECTS = (DOCS / "howto" / "exactly-once.md").read_text("utf-8")
CANCEL = (DOCS / "howto" / "cancel.md").read_text("utf-8")
STEPS = (DOCS / "howto" / "steps.md").read_text("utf-8")


def code(page: str, language: str, having: str = "") -> str:
    [found] = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S) if having in text]
    return str(found)


def shell(commands: str, folder: Path, url: str = "") -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"RUNNER_DATABASE": url, "PATH": path}
    arguments = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 120}
    done: Any = subprocess.run(["sh", "-e", "-c", commands], **arguments)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr + done.stdout
    return str(done.stdout)


def placed(engine: str, text: str) -> str:
    """A page's code with the placeholder of the driver."""
    return text.replace("%s", "?") if engine == "firebird" else text


def test_the_tests_of_a_handler_pass_without_a_database(tmp_path: Path) -> None:
    for file in ("mail.py", "test_mail.py"):
        (tmp_path / file).write_text(code(TESTING, "python", f"# {file}\n"))
    printed = shell(code(TESTING, "sh", "pytest"), tmp_path).splitlines()
    [shown] = [block.splitlines() for block in re.findall(r"^```\n(\.\.\..*?)^```$", TESTING, re.M | re.S)]
    assert printed[0] == shown[0] and printed[1].startswith(shown[1].partition(" in ")[0])


def test_the_tests_of_a_handler_with_steps_pass(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(code(TESTING, "python", "# test_orders.py\n"))
    assert "1 passed" in shell("python -m pytest -q", tmp_path)


@pytest.mark.level(1)
def test_an_order_is_charged_once_and_shipped(installed_database: Database, tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(code(STEPS, "python", "# orders.py\n"))
    page = code(STEPS, "sh").replace("--idle-timeout 20", "--idle-timeout 20 --max-messages 3")
    shell("runner queue set order --backoff-seconds 0", tmp_path, installed_database.url)
    printed = shell(page, tmp_path, installed_database.url)
    [shown] = re.findall(r"^```\n(charged.*?)^```$", STEPS, re.M | re.S)
    assert printed.endswith(shown)


@pytest.mark.level(1)
def test_a_report_ends_when_it_is_cancelled(installed_database: Database, tmp_path: Path) -> None:
    text = code(CANCEL, "python", "# reports.py\n").replace('print("page", page)', "time.sleep(0.5)")
    (tmp_path / "reports.py").write_text(f"import time\n{text}")
    commands = """
        runner send --type report x
        runner consume --type report --handler reports:handle --drain --lease 2 2>&1 &
        until runner queue peek report --state A --json | grep -q id; do sleep 0.1; done
        runner queue cancel $(runner queue peek report --state A --json | sed 's/.*"id": *\\([0-9]*\\).*/\\1/')
        wait
    """
    printed = shell(commands, tmp_path, installed_database.url)
    assert "1 cancelled" in printed.splitlines()[-1]


@pytest.mark.product("postgresql")
def test_a_parcel_is_packed_once(installed_database: Database, server: Server) -> None:
    import psycopg

    names: dict[str, Any] = {}
    exec(code(STEPS, "python", "def pack"), names)
    url = installed_database.url
    server.query(url, "CREATE TABLE parcel (order_number integer)")
    with psycopg.connect(url) as connection:
        rowqueue.send(connection, "order", "17")
        [message] = rowqueue.claim_batch(connection, "order")
    for _ in range(2):
        names["pack"](message, 17, url)
    assert server.query(url, "SELECT order_number FROM parcel") == [{"order_number": 17}]


@pytest.mark.level(1)
def test_a_queue_of_its_own_shows_the_dead_letter(installed_database: Database, tmp_path: Path) -> None:
    (tmp_path / "mail.py").write_text(code(TESTING, "python", "# mail.py\n"))
    assert "no address: nobody" in shell(code(TESTING, "sh", "--drain"), tmp_path, installed_database.url)
    shell("runner queue purge test.mail --state E", tmp_path, installed_database.url)


@pytest.mark.level(1)
def test_two_orders_take_two_pieces(installed_database: Database, server: Server, tmp_path: Path) -> None:
    from support import applications

    url = installed_database.url
    for statement in code(EFFECTS, "sql").split(";\n"):
        if statement.strip():
            server.query(url, statement)
    (tmp_path / "stock.py").write_text(placed(installed_database.name, code(EFFECTS, "python", "# stock.py\n")))
    shell(code(EFFECTS, "sh"), tmp_path, url)
    pieces = "SELECT pieces FROM stock"
    assert list(server.query(url, pieces)[0].values()) == [3]
    # The same in one's own transaction; a key that holds nothing leaves everything as it was.
    names: dict[str, Any] = {}
    exec(placed(installed_database.name, code(EFFECTS, "python", "rowqueue.complete")), names)
    driver = {"mysql": "pymysql", "postgresql": "psycopg", "sqlserver": "pymssql", "firebird": "firebird"}
    connection = getattr(applications, driver[installed_database.name])(url).raw
    try:
        rowqueue.send(connection, "order", "17")
        [message] = rowqueue.claim_batch(connection, "order", consumer="test")
        connection.commit()
        lost = rowqueue.testing.message("17", id=message.id, batch_key=uuid4())
        assert names["reserve"](connection, lost) is False
        assert list(server.query(url, pieces)[0].values()) == [3]
        assert names["reserve"](connection, message) is True
        assert list(server.query(url, pieces)[0].values()) == [2]
    finally:
        connection.close()


@pytest.mark.product("postgresql")
def test_an_amount_is_booked_once(installed_database: Database, server: Server) -> None:
    import psycopg

    names: dict[str, Any] = {}
    exec(code(EFFECTS, "python", "def book"), names)
    url = installed_database.url
    server.query(url, "CREATE TABLE handled (message_id bigint PRIMARY KEY)")
    server.query(url, "CREATE TABLE booking (amount integer)")
    with psycopg.connect(url) as other:
        message = rowqueue.testing.message("250")
        assert [names["book"](other, message) for _ in range(2)] == [True, False]
    assert server.query(url, "SELECT amount FROM booking") == [{"amount": 250}]
