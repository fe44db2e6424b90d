"""How rowqueue scales with the number of sessions: python benchmarks/scaling.py --server postgresql-15

Messages per second with 1, 2, 4, ... 64 sessions that all send, or all consume, for some seconds; beside each, the same
work on the baseline of the other benchmarks. While they run, another session asks the server about 100 times per second
what each of them waits for. Prints one Markdown table; benchmarks/README.md explains it. With few processors, the names
of the locks and pages are more useful than the rates.
"""

import argparse
import contextlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any

import lines
import mysql
import on_firebird
import postgresql
from lines import KEY, TYPE, Bench, Client, servers
from servers.mysql import LocalMySQL

KINDS: tuple[type[Client], ...] = (postgresql.Client, mysql.Client, on_firebird.Client)
SESSIONS = (1, 2, 4, 8, 16, 32, 64)
LENGTH = 100  # bytes of a body
SHOWN = 4  # waits of a line
LOOK_SECONDS = 0.01
RUNNING = "running"
SLOWER = 0.3  # the share of that number on other engines, where filling the queue also takes longer

# A row per session that is in a statement: what it waits for, or NULL. Firebird does not say it. Of nested waits the
# innermost counts; a session that waits for no latch, file or lock of the server has the state of its statement.
INSTRUMENTED = {
    "performance-schema": "ON",
    "performance-schema-instrument": "wait/%=ON",
    "performance-schema-consumer-events-waits-current": "ON",
}
EVENTS = """
    SELECT COALESCE((
            SELECT SUBSTRING_INDEX(w.event_name, '/', -3) FROM performance_schema.events_waits_current AS w
            WHERE w.thread_id = t.thread_id AND w.end_event_id IS NULL
                AND w.event_name NOT LIKE 'wait/io/table/%' AND w.event_name NOT LIKE 'wait/io/socket/%'
            ORDER BY w.event_id DESC LIMIT 1
        ), NULLIF(t.processlist_state, ''))
    FROM performance_schema.threads AS t
    WHERE t.processlist_db = DATABASE() AND t.processlist_command NOT IN ('Sleep', 'Daemon')
        AND t.processlist_id <> CONNECTION_ID()
"""
WAITS = {
    "postgresql": """
        SELECT wait_event_type || ': ' || wait_event FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
    """,
    "mysql": EVENTS,
    "mariadb": EVENTS,
}

# Each call handles some messages and returns how many; 0 when nothing is left.
Step = Callable[[], int]


@dataclass(frozen=True)
class Work:
    """What each session repeats. `guess`: messages per second of all sessions at most, to fill the queue with.

    On PostgreSQL; the other engines get SLOWER of it.
    """

    name: str
    ours: Callable[[Client], Step]
    baseline: Callable[[Client], Step]
    guess: int = 0


def send_one(client: Client) -> Step:
    [body] = lines.bodies(LENGTH, 1)

    def step() -> int:
        client.call("send", TYPE, body)
        return 1

    return step


def send_many(client: Client) -> Step:
    text = "\n".join(lines.bodies(LENGTH, 100))

    def step() -> int:
        client.call("send_batch", TYPE, text)
        return 100

    return step


def insert(count: int) -> Callable[[Client], Step]:
    def prepare(client: Client) -> Step:
        send = client.baseline_send(lines.bodies(LENGTH, count))

        def step() -> int:
            send()
            return count

        return step

    return prepare


def finish(batch: int) -> Callable[[Client], Step]:
    def prepare(client: Client) -> Step:
        key: Any = None

        def step() -> int:
            nonlocal key
            if key is None:
                rows = client.call("claim_batch", TYPE, batch, "bench")
            else:
                rows = client.call("finish_batch", key, None, batch)
            key = rows[0][KEY] if rows else None
            return len(rows)

        return step

    return prepare


def plain_finish(batch: int) -> Callable[[Client], Step]:
    def prepare(client: Client) -> Step:
        rows: lines.Rows = []

        def step() -> int:
            nonlocal rows
            rows = client.baseline_finish(rows, batch)
            return len(rows)

        return step

    return prepare


WORK = {
    "send": Work("`send`, one per transaction", send_one, insert(1)),
    "send_batch": Work("`send_batch` of 100", send_many, insert(100)),
    "finish_1": Work("`finish_batch` of 1", finish(1), plain_finish(1), 6_000),
    "finish_10": Work("`finish_batch` of 10", finish(10), plain_finish(10), 30_000),
    "finish_100": Work("`finish_batch` of 100", finish(100), plain_finish(100), 100_000),
}


def _session(
    kind: type[Client], url: str, prepare: Callable[[Client], Step], seconds: float, barrier: Barrier, results: Any
) -> None:
    with contextlib.closing(kind.connect(url)) as client:
        step = prepare(client)
        barrier.wait()
        started, count = time.monotonic(), 0
        try:
            while time.monotonic() < started + seconds and (handled := step()):
                count += handled
        except Exception as error:
            results.put(error)
            raise
        results.put((count, started, time.monotonic()))


class Looker:
    """Counts what sessions wait for until it is closed."""

    def __init__(self, client: Client, query: str) -> None:
        self.seen: Counter[str] = Counter()
        self._client, self._query = client, query
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self.seen.update(name or RUNNING for (name,) in self._client.run(self._query))

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()


def measure(
    bench: Bench, url: str, prepare: Callable[[Client], Step], count: int, seconds: float, query: str | None
) -> tuple[float, str]:
    """Messages per second of `count` sessions, and what they waited for most, if `query` asks for it."""
    fork = multiprocessing.get_context("fork")
    barrier, results = fork.Barrier(count + 1), fork.Queue()
    arguments = (bench.kind, url, prepare, seconds, barrier, results)
    processes = [fork.Process(target=_session, args=arguments) for _ in range(count)]
    for process in processes:
        process.start()
    with bench.connect(url) as client:
        barrier.wait()
        looker = Looker(client, query) if query else None
        done = [results.get(timeout=seconds + 300) for _ in processes]
        if looker:
            looker.close()
    for process in processes:
        process.join()
    for found in done:
        if isinstance(found, Exception):
            raise found
    handled = sum(count for count, _, _ in done)
    rate = handled / (max(end for _, _, end in done) - min(start for _, start, _ in done))
    seen = looker.seen if looker else Counter()
    shares = [f"{name} {share:.0%}" for name, n in seen.most_common(SHOWN) if (share := n / seen.total()) >= 0.01]
    return rate, ", ".join(shares)


def run(bench: Bench, work: Work, sessions: list[int], seconds: float, query: str | None) -> None:
    """Print the lines of one kind of work; queue and baseline take turns, each on fresh data."""
    first: dict[bool, float] = {}
    filled = work.guess * seconds * (1 if bench.kind is postgresql.Client else SLOWER)
    with bench.database() as url:
        for count in sessions:
            rates, waits = {}, {}
            for wide, prepare in ((True, work.baseline), (False, work.ours)):
                bench.fill(url, math.ceil(filled / 10_000) * 10_000, LENGTH, wide)
                rates[wide], waits[wide] = measure(bench, url, prepare, count, seconds, query)
                first.setdefault(wide, rates[wide])
            print(
                f"| {work.name} | {count} | {rates[False]:,.0f}/s | {rates[False] / first[False]:.2f} "
                f"| {rates[True]:,.0f}/s | {rates[True] / first[True]:.2f} | {rates[False] / rates[True]:.2f} "
                f"| {waits[False]} | {waits[True]} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="postgresql-15", choices=servers.names())
    parser.add_argument("--sessions", default=",".join(map(str, SESSIONS)), help="numbers of sessions, with commas")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--only", choices=WORK, action="append", help="only this work")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server is stopped, and its data removed
    kind = next(kind for kind in KINDS if servers.product(options.server) in kind.products)
    server = servers.make(options.server)
    if isinstance(server, LocalMySQL):
        server = LocalMySQL(options.server, INSTRUMENTED)
    server.start()
    try:
        bench = Bench(server, kind, False, 1)
        with bench.connect(server.url) as client:
            print(f"{client.describe()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before\n")
        print(
            "| work | sessions | rowqueue | compared with the first | baseline | compared with the first | ratio "
            "| rowqueue waits for | baseline waits for |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |"
        )
        for name in options.only or WORK:
            sessions = [int(number) for number in options.sessions.split(",")]
            run(bench, WORK[name], sessions, options.seconds, WAITS.get(servers.product(options.server)))
    finally:
        server.close()


if __name__ == "__main__":
    main()
