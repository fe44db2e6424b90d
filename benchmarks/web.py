"""The response times of `runner web` with 1,000,000 messages: python benchmarks/web.py

PostgreSQL with 100 queues: one with half of the messages, 20,000 dead letters of 30 errors and 10,000 active ones; in
another, archived ones. Each page is requested over HTTP, one request at a time. Prints one Markdown table, and ends
with 1 when the median of a page is over 200 ms.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

from rowqueue.databases import Session, open_database
from rowqueue.install import apply as install
from rowqueue.messages import Failure

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

import servers  # noqa: E402  (no package that is installed)

LIMIT = 200  # milliseconds
QUEUES = 100
ALL_QUEUES = "search, dedup_key in all queues"  # one call per queue: no limit
TOKEN = "token-of-the-benchmark"


def fill(session: Session, messages: int) -> dict[str, str]:
    """Send the messages; returns the pages to request, by their names in the table."""
    bodies = [f'{{"to": "user{n}@example.com", "subject": "Your invoice", "number": {n}}}' for n in range(10_000)]
    for _ in range(messages // 2 // 10_000):
        session.call("send_batch", "big", "\n".join(bodies))
    each = messages // 2 // (QUEUES - 1)
    for number in range(QUEUES - 1):
        for first in range(0, each, 10_000):
            session.call("send_batch", f"queue {number:02}", "\n".join(bodies[: min(10_000, each - first)]))
    for batch in range(3):
        rows = session.call("claim_batch", "big", 10_000, f"consumer {batch}", 3_600)
        if batch < 2:
            errors = [
                Failure(row["id"], -1, f"{'ABCDEFGHIJ'[n % 10] * (1 + n % 3)}Error of {n}").line()
                for n, row in enumerate(rows)
            ]
            session.call("finish_batch", rows[0]["batch_key"], "\n".join(errors))
    session.call("set_queue", "queue 00", '{"on_complete": "archive"}')
    rows = session.call("claim_batch", "queue 00", 2_000, "consumer")
    session.call("finish_batch", rows[0]["batch_key"])
    for number in range(QUEUES - 1):
        report = '{"completed": 100, "failed": 2, "dead": 1, "busy_ms": 5000, "waited_ms": 500, "sent": 100}'
        session.call("report_consumer", f"consumer {number}", f"queue {number:02}", report)
    id = session.call("peek", "big", "E", 1)[0]["id"]
    lists = ("consumers", "schedules", "bindings", "feeds", "subscriptions", "tables", "limits", "health")
    return {
        "overview, 100 queues": "/",
        **{f"queue, {name}": f"/queue?type=big&state={state}" for state, name in zip("NAE", _STATES, strict=True)},
        "queue, archived": "/queue?type=queue+00&state=C",
        "queue, 500 dead": "/queue?type=big&state=E&size=500",
        "message": f"/message?id={id}",
        "search, number": f"/search?q={id}",
        "search, group_key in a queue": "/search?q=none&by=group_key&type=big",
        ALL_QUEUES: "/search?q=none&by=dedup_key",
        **{name: f"/{name}" for name in lists},
        "/metrics": "/metrics",
    }


_STATES = ("new", "active", "dead")


def ask(port: int, address: str) -> float:
    """The milliseconds of one request."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    began = time.perf_counter()
    connection.request("GET", address, headers={"Authorization": f"Bearer {TOKEN}"})
    response = connection.getresponse()
    text = response.read()
    milliseconds = (time.perf_counter() - began) * 1_000
    connection.close()
    if response.status != 200 or b"Away." in text:
        raise SystemExit(f"{address}: {response.status} {text[:2_000]!r}")
    return milliseconds


def measure(url: str, pages: dict[str, str], times: int) -> bool:
    """Print the table; returns whether every median is within the limit."""
    command = [sys.executable, "-m", "rowqueue.cli", "web", "--port", "0", "--database", url]
    environment = os.environ | {"RUNNER_WEB_TOKEN": TOKEN}
    slow = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout
            found = re.search(r":(\d+)/", server.stdout.readline())
            assert found
            print("| page | first, ms | median, ms | longest, ms |\n| --- | ---: | ---: | ---: |")
            for name, address in pages.items():
                first, *rest = (ask(int(found[1]), address) for _ in range(times + 1))
                median = statistics.median(rest)
                print(f"| {name} | {first:,.0f} | {median:,.0f} | {max(rest):,.0f} |", flush=True)
                slow += [name] if median > LIMIT and name != ALL_QUEUES else []
        finally:
            server.terminate()
    if slow:
        print(f"over {LIMIT} ms: {', '.join(slow)}", file=sys.stderr)
    return not slow


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="postgresql-15", choices=servers.names())
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=30)
    options = parser.parse_args()
    server = servers.make(options.server)
    server.start()
    try:
        database = open_database(server.create_database())
        install.apply(database)
        session = database.connect("bench")
        pages = fill(session, options.messages)
        session.close()
        is_fast = measure(database.url, pages, options.times)
    finally:
        server.close()
    sys.exit(0 if is_fast else 1)


if __name__ == "__main__":
    main()
