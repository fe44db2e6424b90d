"""`runner table consume` and the other commands of `runner table`: a handler for rows of a user's table."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from support.capabilities import BY_DATABASE
from support.polling import SHAPES, Polled
from support.processes import Log, Running
from support.waiting import until

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]
Sql = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def table(queue: str, session: Session, sql: Sql, database: Database) -> Polled:
    return Polled(queue, session, sql, BY_DATABASE[database.name], SHAPES["a"])


def test_consume_handles_the_rows_of_a_table_and_notes_each_result(runner: Runner, table: Polled, joblog: Log) -> None:
    table.create().insert(*map(str, range(25)), "discard", "retry 500")
    done = runner("table", "consume", table.name, "--handler", "jobs:obey_claimed_row", "--batch", 10, "--drain")
    assert done.returncode == 0, done.stderr
    left = table.left()
    assert (left.pop("discard"), left.pop("retry 500")) == ("E", "N")
    assert set(left.values()) == {"D"}
    noted = joblog.read()
    assert [row[table.can.fold("v")] for _, row, _ in noted][:25] == list(map(str, range(25)))
    assert noted[0][0] == {table.can.fold("id"): 1} and noted[0][2] == 1

    peeked = runner("table", "peek", table.name, "--json")
    states = {row["state"]: row["error"] for row in map(json.loads, peeked.stdout.splitlines())}
    assert states == {"E": "never", "N": "not now"}
    [dead] = [row for row in map(json.loads, peeked.stdout.splitlines()) if row["state"] == "E"]
    assert runner("table", "redrive", table.name, "--id", dead["id"] + 1).stdout.strip() == "0 redriven"
    assert runner("table", "redrive", table.name, "--id", dead["id"]).stdout.strip() == "1 redriven"
    assert runner("table", "redrive", table.name).stdout.strip() == "0 redriven"
    assert runner("table", "unadopt", table.name).returncode == 0
    assert runner("table", "unadopt", table.name).returncode == 1


def test_a_slow_row_holds_nothing_back_and_a_kill_repeats_only_it(
    start: Callable[..., Running], runner: Runner, table: Polled, joblog: Log
) -> None:
    """The fast rows before it make the claims long."""
    table.create().insert(*(f"before {n}" for n in range(120)), "sleep 600", *(f"after {n}" for n in range(20)))
    consume = ("table", "consume", table.name, "--handler", "jobs:obey_claimed_row")
    running = start(*consume)
    v = table.can.fold("v")
    until(lambda: joblog.read() and joblog.read()[-1][1][v] == "sleep 600")
    until(lambda: [state for state, _ in table.states()].count("A") == 1)
    assert [status for value, status in table.left().items() if value.startswith("before")] == ["D"] * 120
    done = runner(*consume, "--drain")
    assert done.returncode == 0, done.stderr
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()
    assert table.left().pop("sleep 600") != "D" and list(table.left().values()).count("D") == 140
    seen = joblog.read()
    assert len(seen) == 141 and {attempt for _, _, attempt in seen} == {1}


def test_a_command_gets_the_row_as_json(runner: Runner, table: Polled, tmp_path: Path) -> None:
    options = {f"--{name.replace('_', '-')}": value for name, value in table.shape.arguments.items() if value}
    table.create().insert("it's", "é")
    table.count("unadopt_table", table.name)
    words = [word for pair in options.items() for word in pair]
    assert runner("table", "adopt", table.name, table.name, *words).stdout.strip() == "adopted"
    assert runner("table", "adopt", table.name, table.name, *words).stdout.strip() == "already adopted"
    command = f"cat >> {tmp_path}/seen"
    done = runner("table", "consume", table.name, "--exec", command, "--once")
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text("utf-8").splitlines()]
    assert [(one["table"], one["row"][table.can.fold("v")], one["attempt"]) for one in seen] == [
        (table.name, "it's", 1),
        (table.name, "é", 1),
    ]
    assert table.left() == {"it's": "D", "é": "D"}


def test_a_worker_gets_the_row_as_json_and_its_answers_decide(runner: Runner, table: Polled, tmp_path: Path) -> None:
    """When it ends in mid-batch, the current row fails and the rest of the batch is given back."""
    table.create().insert("done", "die", "rest")
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin.buffer:\n"
        f"    open({str(tmp_path / 'seen')!r}, 'ab').write(line)\n"
        "    m = json.loads(line)\n"
        f"    if 'die' in m['row'].values() and m['attempt'] == 1:\n"
        "        os._exit(3)\n"
        "    print(json.dumps({'id': m['id']}), flush=True)\n"
    )
    worker = f"{sys.executable} {script}"
    done = runner("table", "consume", table.name, "--worker", worker, "--drain", "--idle-timeout", 0)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text("utf-8").splitlines()]
    assert [(one["row"][table.can.fold("v")], one["attempt"]) for one in seen][:2] == [("done", 1), ("die", 1)]
    assert {one["table"] for one in seen} == {table.name}
    assert table.left() | {"die": ""} == {"done": "D", "die": "", "rest": "D"}
    assert "exit status 3" in done.stderr


def test_sigterm_finishes_the_row_that_runs_and_the_lease_is_extended_meanwhile(
    start: Callable[..., Running], table: Polled, joblog: Log
) -> None:
    table.create().insert("1", "2", "3", "4")
    options = ["--once", "--batch", 2, "--concurrency", 1, "--lease", 1]
    running = start("table", "consume", table.name, "--handler", "jobs:slow_row", *options)
    until(lambda: joblog.read())
    assert table.states() == [("A", 1)] * 2
    assert running.stop(signal.SIGTERM) == 0, running.stderr
    assert table.left() == {"1": "D", "2": "N", "3": "N", "4": "N"}
    assert table.states() == [("N", 0)] and len(joblog.read()) == 1


@pytest.mark.product("postgresql")
@pytest.mark.level(2)
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_database_of_another_default_isolation_level_is_no_hindrance(
    runner: Runner, table: Polled, database: Database, sql: Sql, session: Session, queue: str, joblog: Log, level: str
) -> None:
    table.create().insert("1", "2")
    session.call("set_queue", queue, '{"ordered": 1}')
    session.call("send_message", queue, "ordered", None, None, "group")
    name = database.url.rpartition("/")[2]
    sql(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    try:
        done = runner("table", "consume", table.name, "--handler", "jobs:obey_claimed_row", "--drain")
        assert done.returncode == 0, done.stderr
        done = runner("consume", "--type", queue, "--handler", "jobs:record", "--drain")
        assert done.returncode == 0, done.stderr
    finally:
        sql(f"ALTER DATABASE {name} RESET default_transaction_isolation")
    assert table.left() == {"1": "D", "2": "D"}
    assert joblog.read()[-1] == "ordered"


def test_the_legacy_orders_are_confirmed_and_the_one_without_an_address_is_reported(
    runner: Runner, sql: Sql, session: Session, database: Database, tmp_path: Path
) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / "legacy_orders"
    text = re.sub(r"--.*", "", (folder / "table.sql").read_text("utf-8"))
    for statement in filter(None, map(str.strip, text.split(";"))):
        sql(statement)
    for grant in BY_DATABASE[database.name].grants:
        sql(grant.format("legacy_orders"))
    readme = (folder / "README.md").read_text("utf-8")
    adopt = re.search(r"^runner (table adopt.*?)$(?!\n    )", readme.replace("\\\n", ""), re.M)
    assert adopt and runner(*adopt[1].split()).returncode == 0
    env = {"ORDERS_OUTBOX": str(tmp_path / "outbox")}
    done = runner("table", "consume", "orders", "--handler", "orders:confirm", "--drain", env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "outbox").read_text("utf-8").splitlines() == [
        "order 1: tea to ada@example.org",
        "order 3: sugar to grace.example.org",
    ]
    rows = sql("SELECT status FROM legacy_orders ORDER BY order_no")
    assert [next(iter(row.values())) for row in rows] == ["D", "E", "D", "D"]
    [dead] = session.call("peek_rows", "orders")
    assert (dead["state"], dead["error"]) == ("E", "no address")
