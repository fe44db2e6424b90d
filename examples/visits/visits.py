"""Visits web addresses in turn, forever, and prints their status: a health check with any number of workers.

Usage:  visits.py [--type visit] [--name worker-1] [--size 10] [--batches N]

A message's body is an address. It stays in the queue: it is claimed round-robin, visited and released, which costs
no attempt. It is claimed again after all others had their turn. An address that answers 410 (gone) is completed.
Each worker has a name; started again with its name, it continues where it stopped. RUNNER_DATABASE names the database.
"""

import argparse
import os
import sys
import time
from urllib.error import HTTPError
from urllib.request import urlopen

from rowqueue.databases import LeaseLost, Session, open_database

TIMEOUT = 5  # seconds for an answer
PAUSE = 1  # seconds, when other workers have all addresses


def visit(address: str) -> int | str:
    """The status of the answer, or the reason why there was none."""
    try:
        with urlopen(address, timeout=TIMEOUT) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
    except (OSError, ValueError) as error:
        return str(error)


def work(session: Session, type: str, name: str, size: int) -> bool:
    """One batch; False when there was nothing to visit."""
    lease = size * TIMEOUT + 60
    rows = session.call("claim_batch", type, size, name, lease)
    for row in rows:
        begun = time.monotonic()
        status = visit(row["body"])
        print(row["body"], status, f"{1000 * (time.monotonic() - begun):.0f} ms", flush=True)
        try:
            if status == 410:
                session.call("complete", row["id"], row["batch_key"])
        except LeaseLost:
            return True  # other workers have the batch
    if rows:
        session.call("release_batch", rows[0]["batch_key"])
    return bool(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="visit")
    parser.add_argument("--name", default="worker-1")
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--batches", type=int, help="end after this many; default: run forever")
    options = parser.parse_args()
    if not (url := os.environ.get("RUNNER_DATABASE")):
        parser.error("RUNNER_DATABASE: must be set to the URL of the database")
    session = open_database(url).connect(options.name)
    left = options.batches
    while left is None or left > 0:
        if not work(session, options.type, options.name, options.size):
            time.sleep(PAUSE)
        left = None if left is None else left - 1
    session.close()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
