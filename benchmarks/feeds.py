"""The cost of a feed for the writers of its table: python benchmarks/feeds.py [--server NAME]

Prints one Markdown table; benchmarks/README.md explains each line. Compared variants alternate on one table, and
each figure is a median.
"""

import argparse
import random
import statistics
import time

import lines  # noqa: F401  (finds the servers of the tests)
import servers
from rowqueue.databases import Conflict, open_database
from rowqueue.install import apply as install
from support.capabilities import BY_DATABASE
from support.crowd import Member, crowd_of
from support.queues import Feed, Queue, make_feed

WRITERS = 4
ROWS = 2_000  # per writer
ALONE, PUBLISHED, COUNTED = "no publisher", "with a publisher, batches of 500", "each takes a number from a counter"


def write(member: Member, table: str, seconds: float, way: str) -> int:
    """Change rows one by one, each in a transaction; returns how many were committed."""
    chance = random.Random(member.number)
    first, count = (member.number - 1) % WRITERS * ROWS + 1, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        id = first + chance.randrange(ROWS)
        try:
            with member.session.transaction() as connection:
                number = "NULL"
                if way == COUNTED:
                    number = str(member.session.call("advance_sequence", table)[0]["last_number"])
                connection.cursor().execute(f"UPDATE {table} SET v = 'v{count}', sync = {number} WHERE id = {id}")
            count += 1
        except Exception as error:  # the row is being published, or the counter is locked: repeat
            if not isinstance(error, Conflict) and "lock" not in str(error):
                raise
    return count


def publish(member: Member, feed: str) -> int:
    """Publish as `runner feed publish` does: at once while batches are full, otherwise after a pause."""
    total = 0
    while not member.stopped():
        try:
            count = member.session.call("publish_feed", feed, 500)[0]["affected"]
        except Conflict:
            continue
        total += count
        if count < 500:
            time.sleep(0.05)
    return total


def measure(feed: Feed, url: str, way: str, seconds: float) -> tuple[float, float]:
    """Changes per second, and rows published per second."""
    while feed.publish(10_000):
        pass
    with crowd_of(url) as crowd:
        publishers = crowd.start(publish, feed.name) if way == PUBLISHED else []
        writers = crowd.start(write, feed.table, seconds, way, count=WRITERS)
        written = sum(crowd.results(writers))
        crowd.stop(publishers)
        return written / seconds, sum(crowd.results(publishers)) / seconds


def read_rate(feed: Feed) -> float:
    """Rows per second through fetch_feed and advance_feed, 500 per call."""
    count, begun = 0, time.monotonic()
    while rows := feed.fetch("bench", 500):
        feed.advance(rows[-1]["feed_position"], "bench")
        count += len(rows)
    return count / (time.monotonic() - begun)


def run(server: servers.Server, repetitions: int, seconds: float) -> None:
    """Measure on one server and print the table."""
    url = server.create_database()
    database = open_database(url)
    install.apply(database)
    with server.client(url) as client:

        def sql(text: str, *parameters: object) -> list[dict[str, object]]:
            cursor = client.execute(text, parameters or None)
            return list(cursor.fetchall()) if cursor.description else []

        session = database.connect("bench")
        feed = make_feed(Queue("bench", session, sql, BY_DATABASE[database.name]))
        feed.write(*range(1, WRITERS * ROWS + 1))
        begun = time.monotonic()
        rows = 0
        while count := feed.publish():
            rows += count
        alone = rows / (time.monotonic() - begun)
        rates: dict[str, list[float]] = {way: [] for way in (ALONE, PUBLISHED, COUNTED)}
        given: list[float] = []
        for _ in range(repetitions):
            for way, found in rates.items():
                rate, published = measure(feed, url, way, seconds)
                found.append(rate)
                given += [published] if way == PUBLISHED else []
        print(f"| {WRITERS} writers, changes per second | rate | relative to no publisher |\n| --- | --- | --- |")
        for way, found in rates.items():
            ratio = statistics.median(a / b for a, b in zip(found, rates[ALONE], strict=True))
            print(f"| {way} | {statistics.median(found):,.0f}/s | {ratio:.2f} |")
        print(
            f"\nPublished meanwhile {statistics.median(given):,.0f} rows/s; alone, 500 per call, {alone:,.0f} rows/s;"
        )
        while feed.publish(10_000):
            pass
        print(f"read by a consumer, 500 per call, {read_rate(feed):,.0f} rows/s.")
        session.close()
    server.drop_database(url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="postgresql-18", help=", ".join(servers.names()))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    server = servers.make(arguments.server)
    server.start()
    try:
        run(server, arguments.repetitions, arguments.seconds)
    finally:
        server.close()


if __name__ == "__main__":
    main()
