"""`runner feed`: publish, consume, and the commands that create and drop feeds."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Log, Running
from support.queues import Feed, Queue, make_table
from support.waiting import until

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]


def test_once_is_one_batch_and_drain_is_every_row_in_order(feed: Feed, runner: Runner, joblog: Log) -> None:
    feed.write(3, 1, 2)
    for option, count in (("--once", 2), ("--drain", 1)):
        done = runner("feed", "publish", feed.name, "--size", 2, option)
        assert (done.returncode, done.stdout) == (0, f"{count} published\n"), done.stderr
    consume = ["feed", "consume", feed.name, "--consumer", "c", "--handler", "jobs:record_row"]
    for option, count in (("--once", 2), ("--drain", 3)):
        done = runner(*consume, "--batch", 2, option)
        assert done.returncode == 0, done.stderr
        assert len(joblog.read()) == count
    numbers = {number: id for id, number in feed.numbers().items()}
    found = [(position, next(iter(key.values())), row["id"], attempt) for position, key, row, attempt in joblog.read()]
    assert found == [(n, numbers[n], numbers[n], 1) for n in (1, 2, 3)]
    feed.change(2, "new")
    feed.publish()
    assert runner(*consume, "--drain").returncode == 0
    assert [(position, row["v"]) for position, _, row, _ in joblog.read()[3:]] == [(4, "new")]
    assert "position moves" not in done.stdout
    assert feed.call("list_feeds")[0]["feed_position"] == 4


def test_a_failed_row_is_retried_before_later_rows(feed: Feed, runner: Runner, joblog: Log) -> None:
    for id, v in enumerate(("a", "busy", "b", "never", "c"), 1):
        feed.write(id, v=v)
    feed.publish()
    done = runner("feed", "consume", feed.name, "--consumer", "c", "--handler", "jobs:obey_row", "--drain")
    assert done.returncode == 0, done.stderr
    assert joblog.read() == [["a", 1], ["busy", 1], ["busy", 2], ["b", 1], ["never", 1], ["c", 1]]
    assert "row 2 failed (attempt 1): not now" in done.stderr
    assert "row 4 is skipped: not this one" in done.stderr
    assert "4 handled" in done.stderr and "1 skipped" in done.stderr
    assert feed.call("list_feeds")[0]["feed_position"] == 5


def test_a_batch_handler_is_called_again_from_the_row_that_failed(feed: Feed, runner: Runner, joblog: Log) -> None:
    feed.write(1, 2, 3)
    feed.publish()
    done = runner("feed", "consume", feed.name, "--consumer", "c", "--handler", "jobs:record_rows", "--drain")
    assert done.returncode == 0, done.stderr
    assert joblog.read()[:2] == [[1, 2, 3], [2, 3]]
    assert feed.call("list_feeds")[0]["feed_position"] == 3


def test_a_command_reads_the_row_as_json_and_its_exit_status_decides(
    feed: Feed, runner: Runner, tmp_path: Path
) -> None:
    feed.write(1, v="it's\n\u2028")
    feed.publish()
    out = tmp_path / "rows"
    command = f"cat >> {out}; test -e {out}.once || {{ touch {out}.once; echo busy >&2; exit 1; }}"
    done = runner("feed", "consume", feed.name, "--consumer", "c", "--exec", command, "--max-messages", 1)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in out.read_text("utf-8").split("\n")[:2])
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert list(second) == ["feed", "position", "attempt", "key", "row"]
    row = {name.lower(): value for name, value in second["row"].items()}
    assert (second["position"], row) == (1, {"id": 1, "v": "it's\n\u2028", "sync": 1})


def test_a_worker_gets_one_row_after_the_other(feed: Feed, runner: Runner, tmp_path: Path) -> None:
    """A row is sent after the one before it is answered, and none after one that failed."""
    for id in (1, 2, 3, 4):
        feed.write(id)
    feed.publish()
    script, seen = tmp_path / "worker.py", tmp_path / "seen"
    script.write_text(
        "import json, select, sys, os, time\n"
        "while line := sys.stdin.buffer.raw.readline():\n"
        "    m = json.loads(line)\n"
        "    time.sleep(0.1)\n"
        "    early = bool(select.select([0], [], [], 0)[0])\n"
        f"    open({str(seen)!r}, 'a').write(json.dumps([m['id'], m['position'], m['attempt'], early]) + '\\n')\n"
        "    answer = {'id': m['id']}\n"
        "    if m['id'] == 2 and m['attempt'] == 1:\n"
        "        answer |= {'error': 'busy', 'retry_after_seconds': 0}\n"
        "    if m['id'] == 3 and m['attempt'] == 1:\n"
        "        os._exit(9)\n"
        "    print(json.dumps(answer), flush=True)\n"
    )
    worker = f"{sys.executable} {script}"
    done = runner("feed", "consume", feed.name, "--consumer", "c", "--worker", worker, "--drain")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in seen.read_text().splitlines()]
    assert rows == [[id, id, attempt, False] for id, attempt in ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1))]
    assert feed.call("list_feeds")[0]["feed_position"] == 4
    assert "busy" in done.stderr and "exit status 9" in done.stderr


def test_publish_and_consume_run_until_sigterm(feed: Feed, start: Callable[..., Running], joblog: Log) -> None:
    publisher = start("feed", "publish", feed.name)
    consumer = start("feed", "consume", feed.name, "--consumer", "c", "--handler", "jobs:record_row")
    for id in (1, 2):
        feed.write(id)
        until(lambda: len(joblog.read()) == id)  # noqa: B023
    assert publisher.stop(signal.SIGTERM) == 0, publisher.stderr
    assert consumer.stop(signal.SIGINT) == 0, consumer.stderr
    assert "2 published" in publisher.stderr
    assert "done: 2 handled" in consumer.stderr


def test_feed_create_list_rewind_and_drop(q: Queue, runner: Runner) -> None:
    table = make_table(q)
    create = ["feed", "create", f"feed.{table}", "--table", table, "--key", "id", "--sync", "sync"]
    assert runner(*create).stdout == "created\n"
    assert runner(*create).stdout == "already exists\n"
    feed = Feed(f"feed.{table}", table, q)
    feed.write(1, 2)
    feed.publish(1)
    feed.advance(1, "c")
    [shown] = map(json.loads, runner("feed", "list", feed.name, "--json").stdout.splitlines())
    assert shown | {"moved_at": None, "table_name": None} == {
        **{"feed": feed.name, "table_name": None, "last_position": 1, "unpublished": 1},
        **{"consumer": "c", "feed_position": 1, "behind": 0, "moved_at": None},
    }
    done = runner("feed", "rewind", feed.name, "--consumer", "c", "--position", 2)
    assert (done.returncode, done.stdout) == (1, "")
    assert "invalid_argument: position" in done.stderr
    assert runner("feed", "rewind", feed.name, "--consumer", "c").stdout == "at 0\n"
    assert runner("feed", "drop", feed.name).stdout == "1 dropped\n"
    assert runner("feed", "drop", feed.name).returncode == 1
    done = runner("feed", "publish", feed.name, "--once")
    assert done.returncode == 1
    assert "not_found: feed" in done.stderr
