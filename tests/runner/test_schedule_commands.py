"""`runner schedule`: set, list, drop, run, next; and a consumer that receives due messages."""

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from support.processes import Log, Running
from support.waiting import until

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.level(3, one=True)
def test_a_schedule_is_set_changed_listed_run_and_dropped(runner: Runner, queue: str) -> None:
    name = f"of {queue}"
    done = runner("schedule", "set", name, "0 3 * * *", "--type", queue, "--body", "one", "--no-overlap", "--json")
    row = json.loads(done.stdout)
    assert row["created"] == 1 and row["next_at"].endswith("03:00:00Z"), done.stderr
    done = runner("schedule", "set", name, "0 4 * * *", "--type", queue, "--body", "two")
    assert done.stdout.startswith("changed, next at ") and "04:00:00Z" in done.stdout
    [row] = map(json.loads, runner("schedule", "list", queue, "--json").stdout.splitlines())
    assert (row["name"], row["cron"], row["body"], row["overlap"]) == (name, "0 4 * * *", "two", 1)
    assert name in runner("schedule", "list").stdout
    id = int(runner("schedule", "run", name).stdout)
    [row] = map(json.loads, runner("schedule", "list", queue, "--json").stdout.splitlines())
    assert row["last_id"] == id
    assert runner("schedule", "drop", name).stdout == "1 dropped\n"
    for command in ("drop", "run"):
        done = runner("schedule", command, name)
        assert done.returncode == 1 and "there is no schedule" in done.stderr


def test_the_next_times_of_an_expression_are_shown(runner: Runner) -> None:
    done = runner("schedule", "next", "0 0 29 2 *", "--count", 3)
    years = [line[:10] for line in done.stdout.splitlines()[1:]]
    assert len(years) == 3 and all(year.endswith("-02-29") for year in years), done.stderr
    assert runner("schedule", "next", "0 0 30 2 *", "--json").stdout == ""
    done = runner("schedule", "next", "0 0 * *")
    assert done.returncode == 1 and "cron: must be five fields" in done.stderr


def test_an_idle_consumer_handles_what_is_due_in_time(
    runner: Runner, queue: str, start: Callable[..., Running], joblog: Log
) -> None:
    consumer = start("consume", "--type", queue, "--handler", "jobs:record")
    name = f"of {queue}"
    row = json.loads(runner("schedule", "set", name, "@every 3", "--type", queue, "--body", "tick", "--json").stdout)
    until(joblog.read)
    assert datetime.now(UTC) < datetime.fromisoformat(row["next_at"]) + timedelta(seconds=30)
    runner("schedule", "drop", name)
    consumer.stop()
