"""Shared by the benchmarks of all databases: the lines of the table, and measuring them.

Each database's module has a Client, which calls procedures and runs the statements of the baseline.
"""

import argparse
import contextlib
import functools
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, ClassVar, Self

from rowqueue.databases import open_database
from rowqueue.install import apply as install

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import servers  # noqa: E402  (it is no package that is installed)

TYPE = "bench"
BATCH = 100
IDLE_QUEUES = 300
KEY = 10  # the index of the batch key in the columns of a claim
Rows = Sequence[Sequence[Any]]
Case = tuple[int, int, int, int]  # length of body, consumers, batch, messages


class Client(ABC):
    """One connection with the runner's driver, in autocommit; queue and baseline are driven in the same way."""

    server: ClassVar[str]  # the default server to start
    products: ClassVar[tuple[str, ...]]
    targets: ClassVar[Mapping[str, str]]
    take_cases: ClassVar[Sequence[Case]]
    finish_cases: ClassVar[Sequence[Case]]
    send_size: ClassVar[int]
    prefix: ClassVar[str] = "mq_"  # of the queue's own tables
    joined: ClassVar[str] = "'{}' || {}"  # the expression that joins a word and a value
    mark_columns: ClassVar[str]  # of a low-water mark, without its type
    # Whether the baseline of finish_batch is a plain take without a lease, not a claim on the wide table.
    finish_beside_take: ClassVar[bool] = False
    send_one_cases: ClassVar[Sequence[tuple[int, int]]] = ()  # senders, messages

    @classmethod
    @abstractmethod
    def connect(cls, url: str) -> Self:
        """Open a connection."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    @abstractmethod
    def describe(self) -> str:
        """The server's version and what makes it durable. Raises AssertionError when it is not."""

    @abstractmethod
    def calls(self) -> int:
        """How many calls the server has got, in this database or in all; only for a difference."""

    @abstractmethod
    def create_baseline(self) -> None:
        """Create the tables of the baseline in a database with the queue."""

    @abstractmethod
    def empty(self) -> None:
        """Make the tables of queue and baseline like new."""

    @abstractmethod
    def call(self, procedure: str, *arguments: Any) -> Rows:
        """Call a procedure; trailing arguments may be left out."""

    @abstractmethod
    def run(self, text: str) -> Rows:
        """Run one statement and commit; returns its rows, if any."""

    @abstractmethod
    def process(self) -> int:
        """The process of the server that serves this connection, perhaps among others."""

    @abstractmethod
    def baseline_take(self, batch: int) -> Rows:
        """Receive and finish on the wide table."""

    @abstractmethod
    def baseline_finish(self, claimed: Rows, batch: int) -> Rows:
        """Delete what was claimed and claim the next, in one transaction; the rows have the columns of a claim."""

    @abstractmethod
    def baseline_ring(self, after_id: int, batch: int) -> Rows:
        """Claim from the wide table the messages after an id, wrapping around: ORDER BY id <= after_id, id."""

    @abstractmethod
    def baseline_fill(self, bodies: Sequence[str]) -> None:
        """Send to the wide table."""

    @abstractmethod
    def baseline_send(self, bodies: Sequence[str]) -> Callable[[], None]:
        """A plain INSERT of these messages, prepared to run repeatedly."""

    def set_lanes(self) -> None:  # noqa: B027 (only PostgreSQL has lanes there)
        """Where tickets name their groups: after a change of the messages' groups."""

    def baseline_send_one(self, body: str) -> None:
        """A plain INSERT of one message; only for send_one_cases."""
        raise NotImplementedError

    @classmethod
    def target(cls, line: str, batch: int) -> str:
        """The target of take or finish with batches of this size."""
        return cls.targets[line] if batch == BATCH else ""

    @abstractmethod
    def delay(self, count: int) -> None:
        """Put `count` urgent messages into the queue that are due tomorrow."""

    @abstractmethod
    def settle(self) -> None:
        """Let the server finish its background work."""

    @abstractmethod
    def keep_statistics(self) -> None:
        """Keep the planner's statistics as they are now."""

    @abstractmethod
    def hold_snapshot(self) -> None:
        """Open a transaction with a snapshot, and leave it open."""


@dataclass(frozen=True)
class Line:
    """One line of the result; `ratio` is the median over the repetitions."""

    name: str
    ours: str
    baseline: str
    ratio: float | None
    target: str

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return f"| {self.name} | {self.ours} | {self.baseline} | {ratio} | {self.target} |"


# ---- the compared work: each drains its table and returns its number of messages ----------------------------


def baseline_take(client: Client, batch: int) -> int:
    count = 0
    while rows := client.baseline_take(batch):
        count += len(rows)
    return count


def take(client: Client, batch: int) -> int:
    count = 0
    while rows := client.call("take_batch", TYPE, batch):
        count += len(rows)
    return count


def baseline_finish(client: Client, batch: int) -> int:
    count = 0
    rows: Rows = []
    while rows := client.baseline_finish(rows, batch):
        count += len(rows)
    return count


def finish(client: Client, batch: int) -> int:
    count = 0
    rows = client.call("claim_batch", TYPE, batch, "bench")
    while rows:
        count += len(rows)
        rows = client.call("finish_batch", rows[0][KEY], None, batch)
    return count


def baseline_send_one(client: Client, messages: int) -> int:
    for body in bodies(100, messages):
        client.baseline_send_one(body)
    return messages


def send_one(client: Client, messages: int) -> int:
    for body in bodies(100, messages):
        client.call("send", TYPE, body)
    return messages


Work = Callable[[Client, int], int]


# ---- measuring -----------------------------------------------------------------------------------


class Bench:
    """One server and the sizes of this run."""

    def __init__(self, server: servers.Server, kind: type[Client], quick: bool, repeat: int) -> None:
        self._server = server
        self.kind = kind
        self.quick = quick
        self.repeat = repeat

    def size(self, messages: int) -> int:
        """The number of messages, or a tenth of it in a quick run."""
        return messages // 10 if self.quick else messages

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """A database with the queue and the wide table."""
        url = self._server.create_database()
        try:
            install.apply(open_database(url))
            with self.connect(url) as client:
                client.create_baseline()
            yield url
        finally:
            self._server.drop_database(url)

    @contextlib.contextmanager
    def connect(self, url: str) -> Iterator[Client]:
        """A connection, closed after the block."""
        with contextlib.closing(self.kind.connect(url)) as client:
            yield client

    def fill(self, url: str, messages: int, length: int = 100, wide: bool = False) -> None:
        """Fill the queue or the wide table with exactly `messages`, and let the server settle."""
        with self.connect(url) as client:
            client.empty()
            for some in chunks(bodies(length, min(messages, 5000)), messages):
                if wide:
                    client.baseline_fill(some)
                else:
                    client.call("send_batch", TYPE, "\n".join(some))
            client.settle()


def bodies(length: int, count: int) -> list[str]:
    rng = random.Random(length)
    return [f"{n:010}" + "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=length - 10)) for n in range(count)]


def chunks(some: list[str], messages: int) -> Iterator[list[str]]:
    """The same bodies repeated, up to `messages` in all."""
    for _ in range(messages // len(some) if some else 0):
        yield some


def _consume(kind: type[Client], url: str, work: Work, batch: int, barrier: Barrier, result: Any) -> None:
    with contextlib.closing(kind.connect(url)) as client:
        barrier.wait()
        started = time.monotonic()
        try:
            count = work(client, batch)
        except Exception as error:
            result.put(error)
            raise
        result.put((count, started, time.monotonic()))


def rate(bench: Bench, url: str, work: Work, batch: int, consumers: int, messages: int) -> float:
    """Messages per second when `consumers` processes drain the queue at the same time."""
    fork = multiprocessing.get_context("fork")
    barrier, result = fork.Barrier(consumers), fork.Queue()
    arguments = (bench.kind, url, work, batch, barrier, result)
    processes = [fork.Process(target=_consume, args=arguments) for _ in range(consumers)]
    for process in processes:
        process.start()
    done: list[tuple[int, float, float]] = []
    for _ in processes:
        if isinstance(found := result.get(timeout=900), Exception):
            raise found
        done.append(found)
    for process in processes:
        process.join()
    count = sum(count for count, _, _ in done)
    assert count == messages, f"{count} of {messages} messages were handled"
    return messages / (max(end for _, _, end in done) - min(start for _, start, _ in done))


def pair(bench: Bench, url: str, ours: Work, baseline: Work, case: Case) -> tuple[float, float]:
    """The rates of a procedure and of its baseline, each on fresh data, one after the other."""
    length, consumers, batch, messages = case
    rates = []
    for work, wide in ((baseline, True), (ours, False)):
        bench.fill(url, bench.size(messages), length, wide)
        rates.append(rate(bench, url, work, batch, consumers, bench.size(messages)))
    return rates[1], rates[0]


def against_baseline(
    bench: Bench, name: str, ours: Work, baseline: Work, target: Callable[[int], str], cases: Sequence[Case]
) -> Iterator[Line]:
    """Lines that compare a procedure with its baseline, and several consumers with one."""
    found: dict[tuple[int, int, int], float] = {}
    for case in cases:
        length, consumers, batch, _ = case
        with bench.database() as url:
            rates = [pair(bench, url, ours, baseline, case) for _ in range(bench.repeat)]
        found[length, batch, consumers] = statistics.median(r[0] for r in rates)
        yield Line(
            f"`{name}`, {consumers} consumer{'s' * (consumers > 1)}, batch {batch}, {length:,} bytes",
            f"{found[length, batch, consumers]:,.0f}/s",
            f"{statistics.median(r[1] for r in rates):,.0f}/s",
            statistics.median(r[0] / r[1] for r in rates),
            target(batch),
        )
    for (length, batch, consumers), many in found.items():
        if consumers > 1 and (one := found.get((length, batch, 1))):
            yield Line(
                f"`{name}`, {consumers} consumers compared with 1, batch {batch}, {length:,} bytes",
                f"{many:,.0f}/s",
                f"{one:,.0f}/s",
                many / one,
                "≥ 1",
            )


def take_lines(bench: Bench) -> Iterator[Line]:
    target = functools.partial(bench.kind.target, "take")
    yield from against_baseline(bench, "take_batch", take, baseline_take, target, bench.kind.take_cases)


def finish_lines(bench: Bench) -> Iterator[Line]:
    target = functools.partial(bench.kind.target, "finish")
    baseline = baseline_take if bench.kind.finish_beside_take else baseline_finish
    yield from against_baseline(bench, "finish_batch", finish, baseline, target, bench.kind.finish_cases)


def send_lines(bench: Bench) -> Iterator[Line]:
    """send_batch compared with one INSERT of the same number of rows."""
    messages = bench.size(100_000)
    some = bodies(100, min(bench.kind.send_size, messages))
    text = "\n".join(some)
    rates: list[list[float]] = []
    with bench.database() as url, bench.connect(url) as client:
        for _ in range(bench.repeat):
            client.empty()
            client.settle()
            seconds = []
            for send in (client.baseline_send(some), lambda client=client: client.call("send_batch", TYPE, text)):
                started = time.monotonic()
                for _ in chunks(some, messages):
                    send()
                seconds.append(time.monotonic() - started)
            rates.append([messages / s for s in seconds])
    yield Line(
        f"`send_batch`, {len(some):,} per call, 100 bytes",
        f"{statistics.median(r[1] for r in rates):,.0f}/s",
        f"{statistics.median(r[0] for r in rates):,.0f}/s",
        statistics.median(r[1] / r[0] for r in rates),
        bench.kind.targets["send"],
    )


def send_one_lines(bench: Bench) -> Iterator[Line]:
    """`send`, one message at a time, compared with one INSERT per message."""
    for senders, messages in bench.kind.send_one_cases:
        count = bench.size(messages)
        rates: list[list[float]] = []
        with bench.database() as url:
            for _ in range(bench.repeat):
                both = []
                for work in (baseline_send_one, send_one):
                    bench.fill(url, 0)
                    both.append(rate(bench, url, work, count // senders, senders, count))
                rates.append(both)
        yield Line(
            f"`send`, {senders} connection{'s' * (senders > 1)}, 100 bytes",
            f"{statistics.median(r[1] for r in rates):,.0f}/s",
            f"{statistics.median(r[0] for r in rates):,.0f}/s",
            statistics.median(r[1] / r[0] for r in rates),
            bench.kind.targets["send"],
        )


def send_typed(client: Client, bodies: list[str]) -> None:
    """`send_message` with five typed arguments."""
    for body in bodies:
        client.call("send_message", TYPE, body, None, 5, "customer-7", body[:10], None, None, "shop", 60)


def send_options(client: Client, bodies: list[str]) -> None:
    """`send_with` with the same five as an object."""
    options = {"dedup_key": "", "group_key": "customer-7", "priority": 5, "delay_seconds": 60, "source": "shop"}
    for body in bodies:
        client.call("send_with", TYPE, body, json.dumps(options | {"dedup_key": body[:10]}))


def processor_seconds(process: int) -> float:
    """The processor time of all threads of a process."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def send_with_lines(bench: Bench) -> Iterator[Line]:
    """`send_with` compared with `send_message`, in turns of 100 calls, one message per transaction."""
    turns = max(1, bench.size(2_000) // 100) * bench.repeat
    some = bodies(100, 200 * turns)
    rates: list[list[float]] = []
    used: list[list[float]] = []
    with bench.database() as url, bench.connect(url) as client:
        process = client.process()
        for n in range(turns):
            parts = {send_typed: some[200 * n : 200 * n + 100], send_options: some[200 * n + 100 : 200 * n + 200]}
            times = {}
            for send in [*parts][:: -1 if n % 2 else 1]:
                started, began = time.monotonic(), processor_seconds(process)
                send(client, parts[send])
                times[send] = 100 / (time.monotonic() - started), (processor_seconds(process) - began) * 1e4
            rates.append([times[send][0] for send in parts])
            used.append([times[send][1] for send in parts])
    yield Line(
        "`send_with` with five options; compared with `send_message`",
        f"{statistics.median(r[1] for r in rates):,.0f}/s",
        f"{statistics.median(r[0] for r in rates):,.0f}/s",
        statistics.median(r[1] / r[0] for r in rates),
        bench.kind.targets.get("send_with", ""),
    )
    yield Line(
        "the same, processor time of the server",
        f"{statistics.median(u[1] for u in used):,.0f} µs",
        f"{statistics.median(u[0] for u in used):,.0f} µs",
        statistics.median(u[0] / u[1] for u in used),
        bench.kind.targets.get("send_with", ""),
    )


# ---- large backlogs ------------------------------------------------------------------------------


def claim_times(client: Client, calls: int) -> list[float]:
    """Milliseconds of claims of 10; completing the messages is not timed."""
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        rows = client.call("claim_batch", TYPE, 10)
        times.append((time.perf_counter() - started) * 1000)
        assert len(rows) == 10
        client.call("complete_batch", rows[0][KEY])
    return times


def latency_lines(bench: Bench) -> Iterator[Line]:
    """The median time of a claim with a large backlog, compared with 1,000 ready messages."""
    many = bench.size(1_000_000)
    calls = 50
    with bench.database() as small, bench.database() as big, bench.database() as delayed:
        bench.fill(small, 1000)
        bench.fill(big, many)
        bench.fill(delayed, 1000)
        with bench.connect(delayed) as client:
            client.delay(many)
            client.settle()
        times: dict[str, list[list[float]]] = {small: [], big: [], delayed: []}
        for _ in range(2 * bench.repeat):
            for url in times:
                with bench.connect(url) as client:
                    claim_times(client, 5)
                    times[url].append(claim_times(client, calls))
                    client.call("send_batch", TYPE, "\n".join(bodies(100, 10 * (calls + 5))))
    medians = {url: [statistics.median(t) for t in found] for url, found in times.items()}
    for url, what in ((big, f"{many:,} ready"), (delayed, f"{many:,} delayed more urgent ones and 1,000 ready")):
        yield Line(
            f"a claim of 10 with {what}",
            f"{statistics.median(medians[url]):.2f} ms",
            f"{statistics.median(medians[small]):.2f} ms",
            statistics.median(a / b for a, b in zip(medians[url], medians[small], strict=True)),
            "≤ 1.5",
        )


# ---- the ring ------------------------------------------------------------------------------------


def declare_ring(client: Client, ring: bool) -> None:
    """Make the queue a ring, or an ordinary queue."""
    client.call("set_queue", TYPE, json.dumps({"ring": int(ring), "fair": 0}))


def ring_lines(bench: Bench) -> Iterator[Line]:
    """The median time of a round-robin claim, compared with the plain query, which sorts all ready messages."""
    messages = bench.size(100_000)
    times: dict[bool, list[list[float]]] = {False: [], True: []}
    with bench.database() as url:
        for wide in [False, True] * bench.repeat:
            with bench.connect(url) as client:
                declare_ring(client, True)
            bench.fill(url, messages, wide=wide)
            with bench.connect(url) as client:
                found = list(ring_times(client, wide, 5 if wide else 40))
                times[wide].append(found[-20:])
    ours, baseline = ([statistics.median(t) for t in times[wide]] for wide in (False, True))
    yield Line(
        f"`claim_wraparound` of 10 with {messages:,} ready",
        f"{statistics.median(ours):.2f} ms",
        f"{statistics.median(baseline):.2f} ms",
        statistics.median(a / b for a, b in zip(ours, baseline, strict=True)),
        "≤ 0.1",
    )


def ring_times(client: Client, wide: bool, calls: int) -> Iterator[float]:
    """Milliseconds of round-robin claims of 10."""
    after = 0
    for _ in range(calls):
        started = time.perf_counter()
        rows = client.baseline_ring(after, 10) if wide else client.call("claim_wraparound", TYPE, 10, "bench")
        yield (time.perf_counter() - started) * 1000
        assert len(rows) == 10
        after = max(row[0] for row in rows)
        if not wide:
            client.call("complete_batch", rows[0][KEY])


# ---- an open snapshot ----------------------------------------------------------------------------

FEW = 20  # messages per call: an open snapshot adds a cost per call


def snapshot_take(client: Client) -> Iterator[float]:
    while True:
        started = time.perf_counter()
        if not client.call("take_batch", TYPE, FEW):
            return
        yield time.perf_counter() - started


def snapshot_claim(client: Client, procedure: str = "claim_batch") -> Iterator[float]:
    while True:
        started = time.perf_counter()
        rows = client.call(procedure, TYPE, FEW)
        seconds = time.perf_counter() - started
        if not rows:
            return
        client.call("complete_batch", rows[0][KEY])
        yield seconds


def snapshot_ring(client: Client) -> Iterator[float]:
    return snapshot_claim(client, "claim_wraparound")


def snapshot_finish(client: Client) -> Iterator[float]:
    rows = client.call("claim_batch", TYPE, FEW)
    while rows:
        started = time.perf_counter()
        rows = client.call("finish_batch", rows[0][KEY], None, FEW)
        yield time.perf_counter() - started


def snapshot_lines(bench: Bench) -> Iterator[Line]:
    """The time of the last claims compared with the first ones, while another session has a snapshot open."""
    messages = bench.size(300_000)
    calls = bench.size(10_000) // FEW
    procedures = {
        "claim_batch": snapshot_claim,
        "finish_batch": snapshot_finish,
        "take_batch": snapshot_take,
        "claim_wraparound": snapshot_ring,
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in procedures}
    with bench.database() as url:
        for name, work in [*procedures.items()] * bench.repeat:
            with bench.connect(url) as client:
                declare_ring(client, name == "claim_wraparound")
            bench.fill(url, messages)
            with bench.connect(url) as holder, bench.connect(url) as client:
                holder.hold_snapshot()
                times = list(work(client))
            assert len(times) == messages // FEW
            found[name].append((statistics.mean(times[:calls]) * 1000, statistics.mean(times[-calls:]) * 1000))
    for name, pairs in found.items():
        yield Line(
            f"`{name}` of {FEW}, with an open snapshot: last {calls * FEW:,} of {messages:,} compared with the first",
            f"{statistics.median(last for _, last in pairs):.2f} ms",
            f"{statistics.median(first for first, _ in pairs):.2f} ms",
            statistics.median(last / first for first, last in pairs),
            "≤ 1.5",
        )


# ---- the runner ----------------------------------------------------------------------------------


def runner(url: str, *options: str, file: Path) -> subprocess.Popen[bytes]:
    """Start `runner consume` on the queue, with a handler of handlers.py that reports to `file`."""
    command = [sys.executable, "-m", "rowqueue.cli", "consume", "--type", TYPE, "--log-level", "warning", *options]
    environment = os.environ | {"RUNNER_DATABASE": url, "BENCHMARK_FILE": str(file)}
    return subprocess.Popen(command, cwd=HERE, env=environment)


@dataclass(frozen=True)
class Drained:
    """The cost of draining the queue, from the first batch on: messages per second, processor time, peak memory."""

    rate: float
    processor_us: float  # per message
    peak_mb: float


def drain(url: str, *options: str, processes: int = 1) -> Drained:
    """Drain the queue with runners."""
    options = options if {"--handler", "--worker"} & set(options) else ("--handler", "handlers:empty", *options)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(n) for n in range(processes)]
        running = [runner(url, *options, "--batch", str(BATCH), "--drain", file=file) for file in files]
        for process in running:
            status = process.wait()
            assert status == 0, f"runner consume ended with {status}"
        # A process that got at most one batch has no report.
        found = [list(map(float, file.read_text().split())) for file in files if file.exists()]
    counts, firsts, lasts, processor, peaks = zip(*found, strict=True)
    count = sum(counts)
    return Drained(count / (max(lasts) - min(firsts)), sum(processor) / count * 1e6, max(peaks) / 1024)


def runner_lines(bench: Bench) -> Iterator[Line]:
    """`runner consume` compared with the same procedure in SQL; its memory with a small and a large backlog."""
    messages = bench.size(100_000)
    rates: list[tuple[float, float]] = []
    with bench.database() as url:
        for _ in range(bench.repeat):
            bench.fill(url, messages)
            sql = rate(bench, url, finish, BATCH, 1, messages)
            bench.fill(url, messages)
            rates.append((drain(url).rate, sql))
    yield Line(
        "`runner consume`, empty batch handler, batch 100",
        f"{statistics.median(ours for ours, _ in rates):,.0f}/s",
        f"{statistics.median(sql for _, sql in rates):,.0f}/s",
        statistics.median(ours / sql for ours, sql in rates),
        "≥ 0.6",
    )
    memory = []
    with bench.database() as url:
        for backlog in (1000, bench.size(1_000_000)):
            bench.fill(url, backlog)
            memory.append((backlog, drain(url).peak_mb))
    (few, low), (many, high) = memory
    yield Line(
        f"memory of `runner consume`, {many:,} ready compared with {few:,}",
        f"{high:.0f} MB",
        f"{low:.0f} MB",
        high / low,
        "< 100 MB",
    )


# The baseline and the target of each way to consume. RAW: receive and finish in one statement on the wide table.
RAW = "the wide table, 1 consumer"
EACH = ("--handler", "handlers:each")
WAYS: dict[str, tuple[int, tuple[str, ...], str, str]] = {
    "lists": (1, (), RAW, "≥ 1"),
    "one by one": (1, EACH, "lists", "≥ 0.8"),
    "one by one, OpenTelemetry's API imported": (1, ("--handler", "beside_telemetry:each"), "one by one", "≥ 0.97"),
    "lists, --concurrency 2": (1, ("--concurrency", "2"), "lists", ""),
    "lists, --transaction": (1, ("--transaction",), "lists", "≥ 1"),
    "lists, 4 processes": (4, (), "lists", "≥ 1"),
}


def consume_lines(bench: Bench) -> Iterator[Line]:
    """`runner consume` with empty handlers in several ways, compared with the wide table and with each other."""
    messages = bench.size(200_000)
    rates: dict[str, list[float]] = {name: [] for name in (RAW, *WAYS)}
    with bench.database() as url:
        for _ in range(bench.repeat):
            bench.fill(url, messages, wide=True)
            rates[RAW].append(rate(bench, url, baseline_take, BATCH, 1, messages))
            for name, (processes, options, _, _) in WAYS.items():
                bench.fill(url, messages)
                rates[name].append(drain(url, *options, processes=processes).rate)
    for name, (_, _, baseline, target) in WAYS.items():
        yield Line(
            f"`runner consume`, batch 100, {name}; compared with {baseline}",
            f"{statistics.median(rates[name]):,.0f}/s",
            f"{statistics.median(rates[baseline]):,.0f}/s",
            statistics.median(ours / beside for ours, beside in zip(rates[name], rates[baseline], strict=True)),
            target,
        )


def report_lines(bench: Bench) -> Iterator[Line]:
    """Processor time of `runner consume` with reports, compared with none."""
    messages = bench.size(500_000)
    times: dict[str, list[float]] = {"10": [], "0": []}
    with bench.database() as url:
        for every in list(times) * bench.repeat:
            bench.fill(url, messages)
            times[every].append(drain(url, "--report", every).processor_us)
    yield Line(
        f"processor time of `runner consume`, {messages:,} messages, with --report 10; compared with --report 0",
        f"{statistics.median(times['10']):.2f} µs",
        f"{statistics.median(times['0']):.2f} µs",
        statistics.median(on / off for on, off in zip(times["10"], times["0"], strict=True)),
        "≤ 1.02",
    )


def worker_lines(bench: Bench) -> Iterator[Line]:
    """`runner consume` with an empty worker process, compared with its empty batch handler."""
    messages = bench.size(100_000)
    workers = {"Python": f"{sys.executable} empty_worker.py", "Node": "node empty_worker.js"}
    with bench.database() as url:
        for language, worker in workers.items():
            if shutil.which(worker.split()[0]) is None:
                continue
            rates: list[tuple[float, float]] = []
            for _ in range(bench.repeat):
                bench.fill(url, messages)
                handler = drain(url).rate
                bench.fill(url, messages)
                rates.append((drain(url, "--worker", worker).rate, handler))
            yield Line(
                f"`runner consume --worker`, empty, {language}, batch 100; compared with its handler in Python",
                f"{statistics.median(ours for ours, _ in rates):,.0f}/s",
                f"{statistics.median(handler for _, handler in rates):,.0f}/s",
                statistics.median(ours / handler for ours, handler in rates),
                "≥ 0.25",
            )


def slot_lines(bench: Bench) -> Iterator[Line]:
    """Messages of a second: how long several slots take, and how two consumers share them."""
    for count, processes, concurrency, seconds, target in ((8, 1, 4, 2, "≤ 1.15"), (6, 2, 1, 3, "≤ 1.15")):
        found = []
        with bench.database() as url:
            for _ in range(bench.repeat):
                with tempfile.TemporaryDirectory() as folder, bench.connect(url) as client:
                    file = Path(folder) / "done"
                    options = ("--handler", "handlers:second", "--concurrency", str(concurrency))
                    running = [runner(url, *options, file=file) for _ in range(processes)]
                    try:
                        time.sleep(3)
                        for n in range(count):
                            client.call("send", TYPE, str(n))
                        time.sleep(seconds + 2)
                    finally:
                        for process in running:
                            process.send_signal(signal.SIGTERM)
                            process.wait(60)
                    done = [tuple(map(float, line.split())) for line in file.read_text().splitlines()]
                shares = Counter(pid for pid, *_ in done)
                assert set(shares.values()) == {count // processes}, f"{count} messages were shared as {shares}"
                found.append(max(ended for *_, ended in done) - min(began for _, began, _ in done))
        yield Line(
            f"{count} messages of a second, {processes} x `runner consume --concurrency {concurrency}`",
            f"{statistics.median(found):.2f} s",
            f"{seconds:.2f} s",
            statistics.median(found) / seconds,
            target,
        )


def idle_lines(bench: Bench) -> Iterator[Line]:
    """What an idle consumer of one queue and of 300 costs, and how long it takes to start a handler."""
    target = bench.kind.targets["idle"]
    for many, what in ((1, ""), (IDLE_QUEUES, f" of {IDLE_QUEUES} queues by a pattern")):
        with bench.database() as url, tempfile.TemporaryDirectory() as folder:
            calls, times = idle(bench, url, Path(folder) / "stamps", many)
        median, late = statistics.median(times), times[int(len(times) * 0.95)]
        yield Line(f"from `send` to the start of an idle runner's handler{what}", f"{median:.1f} ms", "", None, target)
        yield Line(f"the same, 95th percentile{what}", f"{late:.1f} ms", "", None, "")
        yield Line(f"calls per second of an idle runner{what}", f"{calls:.1f} calls", "", None, "≤ 10")


def idle(bench: Bench, url: str, file: Path, many: int) -> tuple[float, list[float]]:
    """The calls per second of a runner when nothing happens; and the sorted times from `send` to its handler, in ms."""
    sends, quiet = (20, 10) if bench.quick else (60, 20)
    types = [TYPE, *(f"{TYPE}.{n}" for n in range(1, many))]
    file.touch()
    sent: dict[str, float] = {}
    with bench.connect(url) as client:
        for type in types:
            client.call("set_queue", type, "{}")
    with bench.connect(url) as client:
        # The pattern comes after the queue that all runners here name.
        process = runner(url, *(("--type", f"{TYPE}.*") if many > 1 else ()), "--handler", "handlers:stamp", file=file)
        try:
            time.sleep(5)
            before, began = client.calls(), time.monotonic()
            time.sleep(quiet)
            calls = (client.calls() - before) / (time.monotonic() - began)
            for n in range(sends):
                sent[str(n)] = time.monotonic()
                client.call("send", random.choice(types), str(n))
                time.sleep(random.uniform(0.2, 1.0))
            time.sleep(3)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    started = dict(line.split() for line in file.read_text().splitlines())
    assert started.keys() == sent.keys(), "not every message was handled"
    return calls, sorted((float(started[body]) - at) * 1000 for body, at in sent.items())


Lines = Callable[[Bench], Iterator[Line]]
LINES: dict[str, Lines] = {
    "take": take_lines,
    "finish": finish_lines,
    "send": send_lines,
    "send_one": send_one_lines,
    "send_with": send_with_lines,
    "latency": latency_lines,
    "ring": ring_lines,
    "snapshot": snapshot_lines,
    "runner": runner_lines,
    "consume": consume_lines,
    "reports": report_lines,
    "worker": worker_lines,
    "slots": slot_lines,
    "idle": idle_lines,
}


def main(kind: type[Client], description: str, **more: Lines) -> None:
    """Parse the command line, start the server, print the table line by line. `more`: lines of this database only."""
    all_lines = LINES | more
    known = [name for name in servers.names() if servers.product(name) in kind.products]
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=kind.server, choices=known, help="the server to start")
    parser.add_argument(
        "--database", metavar="URL", help="your own server; the account must be allowed to create databases"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, one repetition")
    parser.add_argument("--repeat", type=int, help="repetitions; 3, or 1 with --quick")
    parser.add_argument("--only", choices=all_lines, action="append", help="only these lines")
    options = parser.parse_args()
    try:
        server = servers.external(options.database) if options.database else servers.make(options.server)
    except (servers.Unavailable, ValueError) as error:
        parser.error(str(error))
    server.start()
    try:
        bench = Bench(server, kind, options.quick, options.repeat or (1 if options.quick else 3))
        with bench.connect(server.url) as client:
            print(f"{client.describe()}, {os.cpu_count()} processors\n")
        print("| line | rowqueue | baseline | ratio | target |\n| --- | --- | --- | --- | --- |")
        for name in options.only or all_lines:
            for line in all_lines[name](bench):
                print(line, flush=True)
    finally:
        server.close()
