"""Workloads that others publish, at a fixed offered rate, on rowqueue and its peers: python benchmarks/workloads.py

`overlapping`: 800 messages per second for 15 minutes, while three overlapping queries of 120 s hold snapshots.
`held`: 2,000 per second: 10 minutes, 30 minutes with a held snapshot, 10 minutes. --scale divides all times.
The sender is an open loop: it never waits for the queue, and latency counts from the moment when a message was due.
Writes workloads.json and a picture per workload; benchmarks/README.md says how to read them.
"""

import contextlib
import datetime
import json
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any
from xml.sax.saxutils import escape

import psycopg
import typer

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import contenders  # noqa: E402
import run as peers  # noqa: E402
import tally  # noqa: E402
from contenders import Contender  # noqa: E402
from run import console, servers  # noqa: E402

SAMPLES = 300  # per run, at least a second apart
OVERLAPPING, QUERY_SECONDS = 3, 120
MARK = "/* analytics */"
AFTER_SECONDS = 5  # in which the last messages are handled, at the end of a run
SIZES = """
    SELECT coalesce(sum(n_dead_tup), 0) AS dead, coalesce(sum(pg_table_size(relid)), 0) AS tables,
        coalesce(sum(pg_indexes_size(relid)), 0) AS indexes
    FROM pg_stat_user_tables
"""


@dataclass(frozen=True)
class Phase:
    """A part of a workload; `snapshots`: which other sessions hold snapshots."""

    name: str
    seconds: float
    snapshots: str = ""


@dataclass(frozen=True)
class Workload:
    title: str
    source: str
    rate: int
    phases: tuple[Phase, ...]


WORKLOADS = {
    "overlapping": Workload(
        "800 messages per second, three overlapping queries of 120 s",
        "planetscale.com/blog/keeping-a-postgres-queue-healthy",
        800,
        (Phase("overlapping queries", 900, "queries"),),
    ),
    "held": Workload(
        "2,000 messages per second, a held snapshot in the middle",
        "github.com/NikolayS/pgque, benchmark/R10.md",
        2000,
        (Phase("clean", 600), Phase("held snapshot", 1800, "transaction"), Phase("after", 600)),
    ),
}
# Each with the number of its consumers' processes: PgQue's subscription has one.
CONTENDERS = {
    "rowqueue": (contenders.RUNNER, 2),
    "graphile-worker": (contenders.GRAPHILE, 2),
    "pgmq": (replace(contenders.PGMQ_POLL, work=("100",)), 2),
    "pg-boss": (contenders.PG_BOSS, 2),
    "PgQue": (contenders.PGQUE_LISTEN, 1),
}
COLOURS = {
    "rowqueue": "#e8590c",
    "graphile-worker": "#3b8fd4",
    "pgmq": "#12a375",
    "pg-boss": "#b565c9",
    "PgQue": "#b8890b",
}


@dataclass
class Sample:
    """`seconds` since the start. Latencies in ms, of what was handled since the last sample; None if nothing was."""

    seconds: float
    offered: int
    sent: int
    done: int
    median: float | None
    p99: float | None
    dead: int
    tables: int
    indexes: int

    @property
    def waiting(self) -> int:
        """Messages that are due and not handled, in the queue or not even sent."""
        return max(self.offered - self.done, 0)

    @property
    def size(self) -> int:
        return self.tables + self.indexes


@dataclass
class Result:
    workload: str
    contender: str
    server: str
    date: str
    commit: str
    scale: float
    phases: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


def quantile(steps: Mapping[int, int], share: float) -> float | None:
    """A quantile of latencies in ms, from the counts of the steps of tally.py."""
    wanted, seen = share * sum(steps.values()), 0
    for step in sorted(steps):
        seen += steps[step]
        if seen >= wanted:
            return round(float(10 ** (step / tally.STEPS) / 1000), 3)
    return None


# ---- a run -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def snapshots(server: servers.Server, url: str, kind: str, scale: float) -> Iterator[None]:
    """Other sessions that hold snapshots inside the block."""
    if kind == "transaction":
        with server.client(url) as holder:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM pg_class")
            yield
            holder.execute("ROLLBACK")
        return
    ended = threading.Event()

    def query(number: int) -> None:
        """One query after the other. The sessions begin at different times, and their queries overlap."""
        seconds = QUERY_SECONDS / scale
        ended.wait(seconds * number / OVERLAPPING)
        with server.client(url) as session, contextlib.suppress(psycopg.errors.QueryCanceled):
            while not ended.is_set():
                session.execute(f"SELECT pg_sleep({seconds}) {MARK}")

    threads = [threading.Thread(target=query, args=[n]) for n in range(OVERLAPPING if kind else 0)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if threads:
            cancel = (
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"
            )
            server.query(url, cancel, f"%{MARK}")
        for thread in threads:
            thread.join()


class Observer:
    """Takes the samples of a run."""

    def __init__(
        self, server: servers.Server, url: str, rate: int, sender: peers.Heard, consumers: peers.Heard
    ) -> None:
        self._server, self._url, self._rate = server, url, rate
        self._sender, self._consumers = sender, consumers
        self._began = time.monotonic()
        self._last: Counter[int] = Counter()

    def steps(self) -> Counter[int]:
        """The latencies of all messages so far."""
        return Counter(dict([*self._consumers.late.items()]))

    def sample(self, until: float) -> Sample:
        """`until`: the seconds of the whole run, after which nothing more is offered."""
        seconds = time.monotonic() - self._began
        steps = self.steps()
        late, self._last = steps - self._last, steps
        done, sent = self._consumers.count, self._sender.count
        [sizes] = self._server.query(self._url, SIZES)
        return Sample(
            round(seconds, 2),
            int(min(seconds, until) * self._rate),
            max(sent, done),  # the sender's reports may be later than the consumers'
            done,
            quantile(late, 0.5),
            quantile(late, 0.99),
            *(int(sizes[name]) for name in ("dead", "tables", "indexes")),
        )


def measure(
    bench: peers.Bench, server: servers.Server, workload: Workload, one: Contender, processes: int, scale: float
) -> tuple[list[dict[str, Any]], list[Sample]]:
    """Run a workload with one contender; returns its phases and its samples."""
    environment = {"PEERS_LATE": "1"}
    total = sum(phase.seconds for phase in workload.phases) / scale
    phases: list[dict[str, Any]] = []
    samples: list[Sample] = []
    with bench.database(one) as url:
        bench.settle(url)
        offer = [*contenders.program(one), url, "offer", str(workload.rate), f"{total:g}"]
        with peers.Programs([bench.work(one, url)] * processes, environment) as consumers:
            time.sleep(2)
            with peers.Programs([offer], {}) as sender:
                observer = Observer(server, url, workload.rate, sender.heard, consumers.heard)
                pause = max(total / SAMPLES, 1)
                before = observer.steps()
                began = time.monotonic()
                end = 0.0
                for number, phase in enumerate(workload.phases):
                    end += phase.seconds / scale
                    last = number == len(workload.phases) - 1
                    with snapshots(server, url, phase.snapshots, scale):
                        while (left := began + end - time.monotonic()) > 0:
                            time.sleep(min(pause, left))
                            samples.append(observer.sample(total))
                            if not consumers.alive():
                                raise consumers.failure("the consumers ended")
                            if not sender.alive() and sender.heard.count < workload.rate * (total - 1):
                                raise sender.failure("the sender ended")
                    if last:
                        time.sleep(AFTER_SECONDS)
                        samples.append(observer.sample(total))
                    steps = observer.steps()
                    phases.append(summary(phase.name, end, steps - before, samples))
                    before = steps
                if not samples[-1].done:
                    raise consumers.failure("no message was handled")
    return phases, samples


def summary(name: str, end: float, steps: Mapping[int, int], samples: Sequence[Sample]) -> dict[str, Any]:
    """The figures of a phase; what grows, at its end."""
    last = samples[-1]
    return {
        "name": name,
        "end": round(end, 2),
        "handled": sum(steps.values()),
        "median": quantile(steps, 0.5),
        "p99": quantile(steps, 0.99),
        "longest": quantile(steps, 1),
        "backlog": last.sent - last.done,
        "unsent": max(last.offered - last.sent, 0),
        "dead": last.dead,
        "size": last.size,
    }


# ---- the picture -----------------------------------------------------------------------------------------------------

PANELS: tuple[tuple[str, Callable[[Sample], float | None], float], ...] = (
    ("messages that are due and not handled", lambda sample: sample.waiting, 1),
    ("latency from due to handled, median, ms", lambda sample: sample.median, 0.1),
    ("latency from due to handled, 99 of 100, ms", lambda sample: sample.p99, 0.1),
    ("dead tuples", lambda sample: sample.dead, 1),
    ("tables and indexes, MB", lambda sample: sample.size / 2**20, 0.1),
)
STYLE = (
    "svg{color:#1f2328;background:#ffffff;font-family:sans-serif;font-size:12px}"
    "@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}"
    "text{fill:currentColor}.grid{stroke:currentColor;stroke-opacity:.18}.held{fill:currentColor;fill-opacity:.08}"
    "path{fill:none;stroke-width:1.6;stroke-linejoin:round}"
)
WIDTH, PANEL, LEFT, RIGHT, TOP, INNER = 900, 170, 70, 20, 70, 120


def draw(name: str, results: Sequence[Result]) -> str:
    """An SVG with a panel per figure and a line per contender; all scales are logarithmic."""
    workload = WORKLOADS[name]
    longest = max(sample.seconds for result in results for sample in result.samples)
    height = TOP + PANEL * len(PANELS) + 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    parts = [head, f"<style>{STYLE}</style>", _text(LEFT, 22, f"{workload.title} ({_machine(results)})", "start")]
    for place, result in enumerate(results):
        x = LEFT + place * 150
        parts.append(_path([(x, 41), (x + 22, 41)], result.contender))
        parts.append(_text(x + 28, 45, result.contender, "start"))
    for number, (label, value, least) in enumerate(PANELS):
        top = TOP + number * PANEL
        parts += _panel(top, label, value, least, results, longest)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _machine(results: Sequence[Result]) -> str:
    scales = {result.scale for result in results}
    times = ", ".join("full length" if scale == 1 else f"times divided by {scale:g}" for scale in sorted(scales))
    return f"{results[-1].server}, {times}"


def _panel(
    top: float,
    label: str,
    value: Callable[[Sample], float | None],
    least: float,
    results: Sequence[Result],
    longest: float,
) -> Iterator[str]:
    found = [v for result in results for sample in result.samples if (v := value(sample)) is not None]
    low = math.floor(math.log10(least))
    high = max(math.ceil(math.log10(max([*found, least]))), low + 1)

    def y(figure: float) -> float:
        return top + INNER - (math.log10(max(figure, least)) - low) / (high - low) * INNER

    def x(seconds: float) -> float:
        return LEFT + seconds / longest * (WIDTH - LEFT - RIGHT)

    begin = 0.0
    for phase, known in zip(results[-1].phases, WORKLOADS[results[-1].workload].phases, strict=True):
        if known.snapshots:
            width = x(phase["end"]) - x(begin)
            yield f'<rect class="held" x="{x(begin):.1f}" y="{top}" width="{width:.1f}" height="{INNER}"/>'
        begin = phase["end"]
    yield _text(LEFT, top - 6, label, "start")
    for power in range(low, high + 1, max((high - low) // 4, 1)):
        at = y(10.0**power)
        yield f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
        yield _text(LEFT - 6, at + 4, f"{10.0**power:,.10g}", "end")
    unit, length = ("s", 1) if longest < 240 else ("min", 60)
    for number in range(0, int(longest / length) + 1, max(round(longest / length / 8), 1)):
        yield _text(x(number * length), top + INNER + 16, f"{number} {unit}", "middle")
    for result in results:
        points: list[tuple[float, float]] = []
        for sample in result.samples:
            figure = value(sample)
            if figure is not None:
                points.append((x(sample.seconds), y(figure)))
            if points and (figure is None or sample is result.samples[-1]):
                yield _path(points, result.contender)
                points = []


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _path(points: Sequence[tuple[float, float]], contender: str) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path stroke="{COLOURS[contender]}" d="M{steps}"/>'


# ---- results ---------------------------------------------------------------------------------------------------------


def load(file: Path) -> list[Result]:
    stored = json.loads(file.read_text()) if file.exists() else []
    return [Result(**entry | {"samples": [Sample(*values) for values in entry["samples"]]}) for entry in stored]


def store(results: Sequence[Result], out: Path) -> None:
    """Write all results and a picture per workload."""
    entries = (asdict(result) | {"samples": [[*asdict(s).values()] for s in result.samples]} for result in results)
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    (out / "workloads.json").write_text(f"[\n{lines}\n]\n")
    for name in dict.fromkeys(result.workload for result in results):
        some = [result for result in results if result.workload == name]
        (out / f"workloads-{name}.svg").write_text(draw(name, some))


def table(results: Sequence[Result]) -> Iterator[str]:
    """A Markdown table of the phases."""
    columns = ("handled", "median, ms", "99 of 100, ms", "longest, ms", "in the queue", "not sent", "dead tuples", "MB")
    yield f"| workload, phase | queue | {' | '.join(columns)} |"
    yield f"| --- | --- |{' ---: |' * len(columns)}"
    for name in WORKLOADS:
        mine = [result for result in results if result.workload == name]
        for number, phase in enumerate(WORKLOADS[name].phases):
            for result in mine:
                found = result.phases[number]
                times = ["" if found[key] is None else f"{found[key]:,.1f}" for key in ("median", "p99", "longest")]
                counts = [f"{found[key]:,}" for key in ("backlog", "unsent", "dead")]
                cells = [f"{found['handled']:,}", *times, *counts, f"{found['size'] / 2**20:,.0f}"]
                yield f"| {name}, {phase.name} | {result.contender} | {' | '.join(cells)} |"


def main(
    server: Annotated[str, typer.Option(help="One of the tests' PostgreSQL servers.")] = "postgresql-15",
    workload: Annotated[list[str] | None, typer.Option(help=f"Only this one: {', '.join(WORKLOADS)}.")] = None,
    contender: Annotated[list[str] | None, typer.Option(help=f"Only this one: {', '.join(CONTENDERS)}.")] = None,
    scale: Annotated[float, typer.Option(help="All times are divided by it; 6 takes about an hour.", min=1)] = 6,
    out: Annotated[Path, typer.Option(help="The folder of the results, which are replaced one by one.")] = HERE,
    install: Annotated[bool, typer.Option("--install", help="Install the peers from PyPI and npm.")] = False,
    only_draw: Annotated[bool, typer.Option("--draw", help="Only draw and print the stored results.")] = False,
) -> None:
    """Measure the workloads that others publish, on rowqueue and its peers."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server is stopped, and its data removed
    if install:
        contenders.install()
    results = load(out / "workloads.json")
    if not only_draw:
        out.mkdir(parents=True, exist_ok=True)
        for wrong in {*(workload or [])} - WORKLOADS.keys() | {*(contender or [])} - CONTENDERS.keys():
            raise typer.BadParameter(f"unknown: {wrong}")
        _measure(server, workload or [*WORKLOADS], contender or [*CONTENDERS], scale, results, out)
    store(results, out)
    print("\n".join(table(results)))


def _measure(
    name: str, workloads: Sequence[str], some: Sequence[str], scale: float, results: list[Result], out: Path
) -> None:
    """Run all, and store each result when it is there."""
    os.environ["PEERS_SCALE"] = str(scale)  # for PgQue's rotation
    server = servers.make(name)
    server.start()
    try:
        bench = peers.Bench(server, quick=False)
        version = bench.version()
        server.query(server.url, f"ALTER SYSTEM SET autovacuum_naptime = '{max(60 / scale, 1):.0f} s'")
        server.query(server.url, "SELECT pg_reload_conf()")
        for key in workloads:
            for label in some:
                one, processes = CONTENDERS[label]
                if why := contenders.missing(one):
                    console.print(f"skipped: {why}", style="yellow")
                    continue
                today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
                result = Result(key, label, version, today, peers.commit(), scale)
                try:
                    result.phases, result.samples = measure(bench, server, WORKLOADS[key], one, processes, scale)
                except RuntimeError as error:
                    console.print(f"failed: {label}: {error}", style="red")
                    continue
                results[:] = [r for r in results if (r.workload, r.contender) != (key, label)] + [result]
                order = [*CONTENDERS]
                results.sort(key=lambda r: (r.workload, order.index(r.contender)))
                store(results, out)
                console.print(f"{key}, {label}: {result.samples[-1].done:,} messages handled")
    finally:
        server.close()


if __name__ == "__main__":
    typer.run(main)
