"""Hours of mixed work on one engine: python benchmarks/soak.py --server postgresql-15

Senders, consumers, snapshots that are open for a while, retries, dead letters, delayed and ordered messages,
dedup_keys, a ring, a watched table, schedules and housekeeping. Writes its samples to a CSV file and a picture, and
ends with status 1 when something grows or slows down. benchmarks/README.md has the figures and the rules.
"""

import argparse
import contextlib
import csv
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import growth
import lines
import pygal
from lines import HERE, servers
from rowqueue.databases import Conflict, Session, open_database
from rowqueue.install import apply as install
from rowqueue.messages import Failure

KEEP = 60  # seconds that archived messages and dead letters are kept
SAMPLES = 240  # per run, at least a second apart
GROUPS = 200
RUNNERS_TYPES = ("plain", "delayed", "dedup", "archived")
TABLE = "soak_order"
# Sizes of the queue's tables and indexes in bytes; InnoDB's files contain both and do not shrink.
SIZES = {
    "postgresql": "SELECT coalesce(sum(pg_table_size(c.oid)), 0), coalesce(sum(pg_indexes_size(c.oid)), 0)"
    " FROM pg_class AS c WHERE c.relnamespace = 'mq'::regnamespace AND c.relkind = 'r'",
    "mysql": "SELECT SUM(data_length), SUM(index_length) FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name LIKE 'mq\\_%'",
    "firebird": "SELECT mon$pages * mon$page_size, 0 FROM mon$database",
}
# Tables that are empty when every message is done; other tables do not grow with the messages.
EMPTY = {
    "postgresql": ("message", "ready", "delayed", "batch", "dead", "grouped", "group_lock", "result"),
    "mysql": ("message", "dedup", "ready", "delayed", "batch", "dead", "grouped", "group_lock", "result"),
    "firebird": ("message", "dedup", "ready", "delayed", "batch", "claimed", "dead", "grouped", "group_lock", "result"),
}
COLUMNS = "(id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL)"
GRANT = {"mysql": f"GRANT SELECT, TRIGGER ON {TABLE} TO 'mq_owner'@'localhost'"}


class Meter:
    """Counts and times of all threads, since the last sample."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._times: dict[str, list[float]] = defaultdict(list)

    def add(self, what: str, count: int = 1, seconds: float | None = None) -> None:
        """Count messages. `seconds`: the duration of the call."""
        with self._lock:
            self._counts[what] += count
            if seconds is not None:
                self._times[what].append(seconds * 1000)

    def take(self) -> tuple[Counter[str], dict[str, list[float]]]:
        """Counts and times since the last call."""
        with self._lock:
            found = self._counts, self._times
            self._counts, self._times = Counter(), defaultdict(list)
        return found


@dataclass
class Soak:
    """One run: the state that all threads share."""

    url: str
    kind: type[lines.Client]
    rate: float
    meter: Meter
    stop: threading.Event  # of the senders
    end: threading.Event  # of all
    errors: list[str]

    def thread(self, work: Callable[["Soak", Session], None]) -> threading.Thread:
        """A thread with its own session; its error ends the run."""

        def run() -> None:
            session = open_database(self.url).connect(f"soak-{work.__name__}")
            try:
                work(self, session)
            except Exception as error:
                self.fail(f"{work.__name__}: {error!r}")
            finally:
                session.close()

        thread = threading.Thread(target=run, name=work.__name__)
        thread.start()
        return thread

    def fail(self, error: str) -> None:
        """End the run early with an error."""
        self.errors.append(error)
        self.stop.set()
        self.end.set()

    def call(self, session: Session, procedure: str, *arguments: Any) -> list[dict[str, Any]]:
        """A call that is repeated after a conflict, as in the runner."""
        while True:
            try:
                started = time.perf_counter()
                rows = session.call(procedure, *arguments)
                self.meter.add(procedure, max(len(rows), 1), time.perf_counter() - started)
                return rows
            except Conflict:
                self.meter.add("conflict")

    def paced(self, per_second: float) -> Iterator[int]:
        """1, 2, 3 … at that rate until the run ends; lost time is not made up."""
        number, at = 0, time.monotonic()
        while not self.stop.is_set():
            number += 1
            yield number
            at = max(at + 1 / per_second, time.monotonic() - 1)
            self.stop.wait(max(at - time.monotonic(), 0))


# ---- the work: a thread for each ------------------------------------------------------------------------------------


def send_batches(soak: Soak, session: Session) -> None:
    """40 % of the messages, ten per call."""
    for n in soak.paced(soak.rate * 0.4 / 10):
        bodies = "\n".join(f"{n * 10 + i} {'x' * 100}" for i in range(10))
        soak.call(session, "send_batch", "plain", bodies)
        soak.meter.add("sent", 10)


def send_singles(soak: Soak, session: Session) -> None:
    """The others, one per call: delayed, urgent, ordered, with a dedup_key, archived, for the ring."""
    for n in soak.paced(soak.rate * 0.6):
        body, choice = f"{n} {'x' * 100}", n % 6
        if choice == 0:
            soak.call(session, "send_message", "delayed", body, None, random.randint(-3, 3), *[None] * 5, n % 20)
        elif choice == 1:
            soak.call(session, "send_message", "ordered", body, None, None, f"customer-{random.randrange(GROUPS)}")
        elif choice == 2:
            [sent] = soak.call(session, "send_message", "dedup", body, *[None] * 3, f"key-{random.randrange(1000)}")
            soak.meter.add("sent", sent["created"] - 1)
        elif choice == 3:
            soak.call(session, "send", "archived", body)
        elif choice == 4:
            soak.call(session, "send", "ring", body)
        else:
            soak.call(session, "send", "plain", body)
        soak.meter.add("sent")


def change_table(soak: Soak, session: Session) -> None:
    """Insert, update and delete rows of a watched table: three messages per row."""
    for n in soak.paced(max(soak.rate / 100, 1)):
        for statement in (
            f"INSERT INTO {TABLE} (id, name) VALUES ({n}, 'first')",
            f"UPDATE {TABLE} SET name = 'second' WHERE id = {n}",
            f"DELETE FROM {TABLE} WHERE id = {n}",
        ):
            with session.transaction() as connection:
                connection.cursor().execute(statement)
        soak.meter.add("sent", 3)


def _consume(soak: Soak, session: Session, type: str, procedure: str) -> None:
    """Claim, fail one in fifty, finish and claim the next."""
    while not soak.end.is_set():
        rows = soak.call(session, procedure, type, 20, "soak", 60)
        while rows:
            failed = [Failure(row["id"], 1, "try again").line() for row in rows if random.random() < 0.02]
            soak.meter.add("done", len(rows) - len(failed))
            rows = soak.call(session, "finish_batch", rows[0]["batch_key"], "\n".join(failed) or None, 20)
        soak.end.wait(0.1)


def consume_ordered(soak: Soak, session: Session) -> None:
    _consume(soak, session, "ordered", "claim_batch")


def consume_ring(soak: Soak, session: Session) -> None:
    _consume(soak, session, "ring", "claim_wraparound")


def take(soak: Soak, session: Session) -> None:
    """Take the messages of the watched table."""
    while not soak.end.is_set():
        if rows := soak.call(session, "take_batch", "changed", 20):
            soak.meter.add("done", len(rows))
        else:
            soak.end.wait(0.1)


def probe(soak: Soak, session: Session) -> None:
    """A queue of its own, where other consumers do not affect the time of a call."""
    for _ in soak.paced(5):
        soak.call(session, "send_batch", "probe", "\n".join("x" * 100 for _ in range(10)))
        started = time.perf_counter()
        rows = session.call("claim_batch", "probe", 10, "probe")
        soak.meter.add("claim", 0, time.perf_counter() - started)
        started = time.perf_counter()
        session.call("finish_batch", rows[0]["batch_key"], None, 0)
        soak.meter.add("finish", 0, time.perf_counter() - started)
    # A claim in the queue before this one in the index may briefly lock one of our messages, which our claim then
    # skips: InnoDB reads one row more than needed. From then on, one message is always left for the next claim.
    while rows := session.call("claim_batch", "probe", 10, "probe"):
        session.call("complete_batch", rows[0]["batch_key"])


def hold_snapshots(soak: Soak, session: Session) -> None:
    """Another session's transaction, open for a quarter of the time."""
    while not soak.end.wait(KEEP * 3 / 4):
        client = soak.kind.connect(soak.url)
        client.hold_snapshot()
        soak.end.wait(KEEP / 4)
        client.close()


def keep_house(soak: Soak, session: Session) -> None:
    """An operator's work: monitor, redrive or purge dead letters, purge the archive."""
    while not soak.end.wait(5):
        for type in RUNNERS_TYPES:
            soak.call(session, "list_errors", type)
            soak.call(session, "peek", type, "E", 10)
            redriven = soak.call(session, "redrive_all", type) if random.random() < 0.5 else []
            purged = soak.call(session, "purge", type, "E", None, 10_000) if not redriven else []
            soak.meter.add("redriven", sum(row["affected"] for row in redriven))
            soak.meter.add("purged", sum(row["affected"] for row in purged))
        soak.call(session, "purge", "archived", "C", datetime.now(UTC) - timedelta(seconds=KEEP), 10_000)
        soak.call(session, "queue_health")
        soak.call(session, "rescue_expired")


WORK = (
    *(send_batches, send_singles, change_table, consume_ordered, consume_ring, take, probe),
    *(hold_snapshots, keep_house),
)


# ---- the runner ------------------------------------------------------------------------------------------------------


def start_runners(url: str) -> list[subprocess.Popen[bytes]]:
    """Two consumers of the queues that no thread consumes; both send reports."""
    command = [sys.executable, "-m", "rowqueue.cli", "consume", "--handler", "handlers:mixed", "--batch", "20"]
    types = [word for type in RUNNERS_TYPES for word in ("--type", type)]
    environment = os.environ | {"RUNNER_DATABASE": url}
    return [
        subprocess.Popen(
            [*command, *types, "--log-level", "error", "--consumer", f"runner-{n}"], cwd=HERE, env=environment
        )
        for n in range(2)
    ]


def memory(process: int) -> float:
    """The private memory of a process and its children, in MB."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            values = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue
        if int(values["Pid"]) == process or int(values["PPid"]) == process:
            total += int(values.get("RssAnon", "0 kB").split()[0]) / 1024
    return total


# ---- sampling --------------------------------------------------------------------------------------------------------

FIGURES = {
    "sent": "messages sent per second",
    "done": "messages taken out of the queue per second",
    "claim": "claim_batch of 10, ms, median",
    "finish": "finish_batch of 10, ms, median",
    "send": "send, ms, median",
    "waiting": "messages that are due or delayed",
    "tables": "tables, MB",
    "indexes": "indexes, MB",
    "runner": "memory of the two runners, MB",
    "server": "memory of the server, MB",
}


class Observer:
    """Takes the samples, with a connection of its own."""

    def __init__(self, soak: Soak, engine: str, runners: Sequence[int], local: bool) -> None:
        self._soak, self._engine, self._runners = soak, engine, runners
        self._client = soak.kind.connect(soak.url)
        self._session = open_database(soak.url).connect("soak-observer")
        process = self._client.process() if local else None
        if process and engine == "postgresql":
            # The parent of all its processes.
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        self._server = process
        self._at = time.monotonic()
        self._held: float | None = None

    def sample(self) -> dict[str, float]:
        """The figures since the last sample."""
        counts, times = self._soak.meter.take()
        now = time.monotonic()
        seconds, self._at = now - self._at, now
        stats = self._session.call("queue_stats")
        tables, indexes = (float(size or 0) / 2**20 for size in self._client.run(SIZES[self._engine])[0])
        messages = sum(row["ready"] + row["delayed"] + row["active"] + row["dead"] for row in stats)
        # Messages that were sent and no longer exist were taken out.
        sent = counts["sent"]
        before, self._held = self._held, messages
        middle = {name: statistics.median(found) for name, found in times.items() if found}
        return {
            "sent": sent / seconds,
            "done": (sent - messages + before) / seconds if before is not None else 0,
            "claim": middle.get("claim", 0),
            "finish": middle.get("finish", 0),
            "send": middle.get("send", 0),
            "waiting": sum(row["ready"] + row["delayed"] for row in stats),
            "dead": sum(row["dead"] for row in stats),
            "tables": tables,
            "indexes": indexes,
            "runner": sum(map(memory, self._runners)),
            "server": memory(self._server) if self._server else 0,
            "conflicts": counts["conflict"],
        }

    def close(self) -> None:
        self._session.close()
        self._client.close()


# ---- judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """The median of the last quarter may be at most `most` times that of the second, plus `more`."""

    most: float
    more: float = 0.0


RULES = {
    "claim": Rule(1.5, 0.5),
    "finish": Rule(1.5, 0.5),
    "send": Rule(1.5, 0.5),
    "waiting": Rule(1.5, 200),
    "dead": Rule(1.5, 200),
    "tables": Rule(1.2, 4),
    "indexes": Rule(1.2, 4),
    "runner": Rule(1.1, 4),
    "server": Rule(1.2, 16),
}
SLOWEST = 0.9  # the least rate of the last quarter, relative to the second


def judge(samples: Sequence[Mapping[str, float]]) -> list[str]:
    """What has grown or slowed down, one sentence each."""
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]

    def middle(name: str) -> tuple[float, float]:
        before, after = (statistics.median(sample[name] for sample in some) for some in (second, last))
        return before, after

    found = []
    for name, rule in RULES.items():
        before, after = middle(name)
        if after > before * rule.most + rule.more:
            found.append(f"{name} grew from {before:,.2f} in the second quarter to {after:,.2f} in the last")
    before, after = (statistics.mean(sample["done"] for sample in some) for some in (second, last))
    if after < before * SLOWEST:
        found.append(f"done fell from {before:,.1f} per second in the second quarter to {after:,.1f} in the last")
    return found


def drained(soak: Soak, engine: str, seconds: float) -> list[str]:
    """Let the consumers finish; rows that are left then are lost messages or leftovers."""
    until = time.monotonic() + seconds
    client = soak.kind.connect(soak.url)
    session = open_database(soak.url).connect("soak-drain")
    try:
        while True:
            for type in RUNNERS_TYPES:
                session.call("purge", type, "E", None, 10_000)
            left = {t: client.run(f"SELECT COUNT(*) FROM {client.prefix}{t}")[0][0] for t in EMPTY[engine]}
            if not any(left.values()):
                return []
            if time.monotonic() > until:
                return [f"{count:,} rows are left in {table}" for table, count in left.items() if count]
            time.sleep(1)
    finally:
        session.close()
        client.close()


# ---- the run ---------------------------------------------------------------------------------------------------------


def prepare(server: servers.Server, url: str, engine: str) -> None:
    """Queues, a schedule and the watched table."""
    session = open_database(url).connect("soak")
    session.call("set_queue", "ordered", '{"backoff_seconds": 1, "backoff_max_seconds": 5, "ordered": 1}')
    session.call("set_queue", "ring", '{"ring": 1}')
    session.call("set_queue", "archived", '{"on_complete": "archive"}')
    session.call("set_schedule", "tick", "plain", "* * * * *", "0 of the schedule")
    with server.client(url) as connection:
        connection.execute(f"CREATE TABLE {TABLE} {COLUMNS}")
        if engine in GRANT:
            connection.execute(GRANT[engine])
        for row in session.call("watch_table", TABLE):
            connection.execute(row["statement"])
    session.call("subscribe", TABLE, "IUD", "changed")
    session.close()


def draw(samples: Sequence[Mapping[str, float]], title: str, path: Path) -> None:
    """Draw the charts below each other in one picture."""
    width, height = 900, 180
    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    sheet = ElementTree.Element(
        "{http://www.w3.org/2000/svg}svg", width=str(width), height=str(40 + height * len(FIGURES))
    )
    heading = ElementTree.SubElement(sheet, "{http://www.w3.org/2000/svg}text", x="20", y="26")
    heading.set("font-family", "sans-serif")
    heading.text = title
    minutes = [f"{sample['minutes']:.2f} min" for sample in samples]
    for place, (name, label) in enumerate(FIGURES.items()):
        chart = pygal.Line(
            width=width,
            height=height,
            title=label,
            show_legend=False,
            show_dots=False,
            js=(),
            range=(0, max(*(sample[name] for sample in samples), 0.001)),
            x_labels=minutes,
            x_labels_major=minutes[:: max(len(minutes) // 6, 1)],
            truncate_label=-1,
            show_minor_x_labels=False,
            y_labels_major_count=3,
            show_minor_y_labels=False,
            value_formatter=lambda value: f"{value:,.4g}",
            disable_xml_declaration=True,
        )
        chart.add(label, [sample[name] for sample in samples])
        drawn = ElementTree.fromstring(chart.render())
        drawn.set("y", str(40 + place * height))
        drawn.set("width", str(width))
        drawn.set("height", str(height))
        sheet.append(drawn)
    ElementTree.ElementTree(sheet).write(path, encoding="utf-8", xml_declaration=True)


def watch(
    observer: Observer, soak: Soak, runners: Sequence[subprocess.Popen[bytes]], seconds: float, file: Path
) -> list[dict[str, float]]:
    """Sample until the time is over; each sample is written to the file at once."""
    samples: list[dict[str, float]] = []
    started = time.monotonic()
    pause = max(seconds / SAMPLES, 1)
    with file.open("w", newline="") as out:
        writer: csv.DictWriter[str] | None = None
        observer.sample()
        while time.monotonic() < started + seconds and not soak.stop.wait(pause):
            for process in runners:
                if process.poll() is not None:
                    soak.fail(f"runner consume ended with {process.returncode}")
            sample = {"minutes": (time.monotonic() - started) / 60, **observer.sample()}
            samples.append(sample)
            if writer is None:
                writer = csv.DictWriter(out, sample)
                writer.writeheader()
            writer.writerow({name: round(value, 3) for name, value in sample.items()})
            out.flush()
    return samples


def run(server: servers.Server, kind: type[lines.Client], options: argparse.Namespace) -> list[str]:
    """Do the run; returns what was wrong."""
    engine = open_database(server.url).name
    url = server.create_database()
    install.apply(open_database(url))
    prepare(server, url, engine)
    soak = Soak(url, kind, options.rate, Meter(), threading.Event(), threading.Event(), [])
    runners = start_runners(url)
    observer = Observer(soak, engine, [runner.pid for runner in runners], not options.database)
    threads = [soak.thread(work) for work in WORK]
    try:
        name = f"soak-{server.name}"
        samples = watch(observer, soak, runners, options.hours * 3600, options.out / f"{name}.csv")
        title = f"rowqueue on {server.name}, {options.rate:,.0f} messages per second, {options.hours:g} hours"
        draw(samples, title, options.out / f"{name}.svg")
        soak.stop.set()
        if soak.errors:
            return soak.errors
        with contextlib.closing(open_database(url).connect("soak")) as session:
            session.call("drop_schedule", "tick")
        return [*judge(samples), *drained(soak, engine, options.patience)]
    finally:
        soak.stop.set()
        soak.end.set()
        for thread in threads:
            thread.join()
        for runner in runners:
            runner.send_signal(signal.SIGTERM)
        for runner in runners:
            runner.wait(60)
        observer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="postgresql-15", choices=servers.names(), help="the server to start")
    parser.add_argument(
        "--database", metavar="URL", help="your own server; the account must be allowed to create databases"
    )
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument(
        "--rate", type=float, default=100, help="messages per second; 100 leaves most of two cores idle"
    )
    parser.add_argument("--patience", type=float, default=180, help="seconds in which the last messages must be done")
    parser.add_argument(
        "--out", type=Path, default=HERE.parent / "build", help="the folder of the CSV file and the picture"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    server = servers.external(options.database) if options.database else servers.make(options.server)
    [kind] = [k for k in growth.KINDS if servers.product(server.name) in k.products]
    server.start()
    try:
        wrong = run(server, kind, options)
    finally:
        server.close()
    for sentence in wrong:
        print(sentence)
    print("something grew or slowed down" if wrong else "nothing grew or slowed down")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
