"""Throughput of a cluster on one node and on all nodes at once: python benchmarks/clusters.py galera|group

Six processes work for a few seconds: all on the first node, then two on each node. Both setups alternate.
"""

import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from rowqueue.databases import Conflict, Session, open_database
from rowqueue.install import apply as install
from servers import clusters

SECONDS = 4.0
SESSIONS = 6
ROUNDS = 3


def send(session: Session, type: str) -> int:
    return len(session.call("send", type, "x" * 100))


def send_list(session: Session, type: str) -> int:
    return int(session.call("send_batch", type, "\n".join(["x" * 100] * 100))[0]["affected"])


def claim_and_complete(session: Session, type: str) -> int:
    rows = session.call("claim_batch", type, 20)
    return int(session.call("complete_batch", rows[0]["batch_key"])[0]["affected"]) if rows else 0


def take(session: Session, type: str) -> int:
    return len(session.call("take_batch", type, 20))


# name: the work of a session, the number of messages before it, and whether the queue is ordered
LINES: dict[str, tuple[Callable[[Session, str], int], int, int]] = {
    "send": (send, 0, 0),
    "send_batch of 100": (send_list, 0, 0),
    "claim_batch of 20, complete_batch": (claim_and_complete, 60_000, 0),
    "take_batch of 20": (take, 60_000, 0),
    "ordered, 200 groups: claim_batch of 20, complete_batch": (claim_and_complete, 6_000, 1),
}


def work(url: str, type: str, name: str, barrier: Any, results: Any) -> None:
    """The work of one process; reports its number of messages and of conflicts."""
    session = open_database(url).connect("bench")
    barrier.wait()
    until, count, conflicts = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < until:
        try:
            count += LINES[name][0](session, type)
        except Conflict:
            conflicts += 1
    results.put((count, conflicts))


def measure(urls: list[str], name: str, type: str) -> tuple[float, int]:
    _, ready, ordered = LINES[name]
    session = open_database(urls[0]).connect("bench")
    session.call("set_queue", type, json.dumps({"ordered": ordered}))
    if ordered:
        with session.transaction():
            for n in range(ready):
                session.call("send_message", type, "x" * 100, None, None, f"g{n % 200}")
    elif ready:
        for _ in range(ready // 10_000):
            session.call("send_batch", type, "\n".join(["x" * 100] * 10_000))
    time.sleep(1)
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(SESSIONS), context.SimpleQueue()
    places = [urls[n % len(urls)] for n in range(SESSIONS)]
    processes = [context.Process(target=work, args=(url, type, name, barrier, results)) for url in places]
    for process in processes:
        process.start()
    found = [results.get() for _ in processes]
    for process in processes:
        process.join()
    for state in ("N", "A"):
        while state == "N" and session.call("purge", type, state, None, 10_000)[0]["affected"]:
            pass
    session.close()
    return sum(count for count, _ in found) / SECONDS, sum(conflicts for _, conflicts in found)


def main() -> None:
    kinds = {"galera": clusters.Galera, "group": lambda: clusters.GroupReplication(multi=True)}
    cluster = kinds[sys.argv[1]]()
    try:
        cluster.start()
        urls = cluster.create_database()
        install.apply(open_database(urls[0]))
        print("| | one node | three nodes | ratio | conflicts on three |\n| --- | --- | --- | --- | --- |")
        for number, name in enumerate(LINES):
            one, three = [], []
            for turn in range(ROUNDS):
                one.append(measure(urls[:1], name, f"b{number}.{turn}.one"))
                three.append(measure(urls, name, f"b{number}.{turn}.three"))
            ratio = statistics.median(b / a for (a, _), (b, _) in zip(one, three, strict=True))
            rates = [statistics.median(rate for rate, _ in found) for found in (one, three)]
            conflicts = sum(count for _, count in three)
            print(f"| {name} | {rates[0]:,.0f}/s | {rates[1]:,.0f}/s | {ratio:.2f} | {conflicts:,} |", flush=True)
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
