"""rowqueue compared with other queues, each with its own worker: make bench-peers, or python benchmarks/peers/run.py

Starts its own server on fresh data, fsync on. Contenders alternate (A B C A B C), each in its own database.
A figure is a median. Results go to results.json, one entry per repetition of a case, so a long run can be
split: --missing continues where the last run ended, --seconds ends a run. benchmarks/PEERS.md is made from them.
"""

import contextlib
import datetime
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from contenders import ALONE, FOLDER, HERE, IN_FOUR, PARTS, ROOT, Contender, install, missing, program
from report import RESULTS, write
from rich.console import Console

sys.path.insert(0, str(ROOT / "tests"))

import servers

console = Console(highlight=False)
_PATIENCE_SECONDS = 60  # the longest time without a handled message
_SNAPSHOT_SECONDS = 40  # how long a worker is measured with an open snapshot
_SNAPSHOT_PART = 10_000  # messages at the beginning and at the end


@dataclass(frozen=True)
class Case:
    """One column of a table: numbers of messages and processes. `size`: of a batch, or of one sending call."""

    section: str
    name: str
    messages: int
    processes: int = 1
    size: int = 0


def cases() -> list[Case]:
    """All of them, in the order of the report."""
    found = []
    for consumers in (1, 4):
        for batch, messages in ((1, 3_000), (10, 30_000), (100, 100_000), (1000, 200_000)):
            name = f"{consumers} consumer{'s' * (consumers > 1)}, batch {batch:,}"
            found.append(Case("sql", name, messages * (1 if consumers == 1 else 2), consumers, batch))
    found += [Case("workers", "1 process", 100_000), Case("workers", "4 processes", 160_000, 4)]
    for connections in (1, 4):
        for size, messages in ((1, 3_000), (1000, 100_000)):
            name = (
                f"{connections} connection{'s' * (connections > 1)}, {'one at a time' if size == 1 else '1,000 a call'}"
            )
            found.append(Case("send", name, messages * (1 if connections == 1 else 2), connections, size))
    found += [Case("snapshot", "200,000", 200_000, 1, 20), Case("pick-up", "idle", 40)]
    return found


@dataclass
class Heard:
    """The output of the programs of one measurement so far."""

    done: dict[int, tuple[int, float, float]] = field(default_factory=dict)  # process: messages, first, last
    samples: list[tuple[float, int]] = field(default_factory=list)  # (time, messages done)
    seen: dict[int, float] = field(default_factory=dict)
    sent: dict[int, float] = field(default_factory=dict)
    cycles: list[float] = field(default_factory=list)
    late: Counter[int] = field(default_factory=Counter)  # steps of latency, see tally.py

    @property
    def count(self) -> int:
        return sum(count for count, _, _ in [*self.done.values()])

    def rate(self) -> float:
        """Messages per second from the first to the last of all processes."""
        worked = [done for done in self.done.values() if done[0]]
        return self.count / (max(last for _, _, last in worked) - min(first for _, first, _ in worked))

    def listen(self, process: int, word: str, values: list[str]) -> None:
        if word == "done":
            self.done[process] = int(values[0]), float(values[1]), float(values[2])
            self.samples.append((float(values[2]), self.count))
        elif word == "cycles":
            self.cycles = [float(value) for value in values]
        elif word == "late":
            self.late.update({int(step): int(count) for step, _, count in (value.partition(":") for value in values)})
        elif word in ("seen", "sent"):
            (self.seen if word == "seen" else self.sent)[int(values[0])] = float(values[1])


class Programs:
    """Processes that begin together and report on stdout; all have ended when the context is left."""

    def __init__(self, commands: list[list[str]], environment: dict[str, str]) -> None:
        self.heard = Heard()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (it lives as long as the programs)
        self._processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                cwd=HERE,
                env=os.environ | {"PEERS_FOLDER": str(FOLDER)} | environment,
                start_new_session=True,
            )
            for command in commands
        ]
        self._threads = [
            threading.Thread(target=self._read, args=(number, process), daemon=True)
            for number, process in enumerate(self._processes)
        ]

    def __enter__(self) -> "Programs":
        """Start the work when all are ready."""
        for process in self._processes:
            assert process.stdin and process.stdout
            if not any(line.strip() == "ready" for line in process.stdout):
                self.__exit__()
                raise self.failure("a program ended before it was ready")
        for thread in self._threads:
            thread.start()
        for process in self._processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # a group of its own, see start_new_session
                process.wait()

    def _read(self, number: int, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            word, *values = line.split() or [""]
            self.heard.listen(number, word, values)

    def failure(self, what: str) -> RuntimeError:
        self._errors.seek(0)
        return RuntimeError(f"{what}; on stderr: {self._errors.read()[-2000:]}")

    def alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, messages: int, seconds: float = 1e9) -> None:
        """Wait until all messages are done, all programs have ended, or the time is over.

        Raises RuntimeError when nothing is done for a minute, or when more messages are handled than exist.
        """
        began = moved = time.monotonic()
        count = 0
        while count < messages and self.alive():
            now = time.monotonic()
            if self.heard.count > count:
                count, moved = self.heard.count, now
            elif now - moved > _PATIENCE_SECONDS:
                raise self.failure(f"stopped at {count:,} of {messages:,} messages")
            elif now - began > seconds:
                return
            time.sleep(0.01)
        if self.heard.count > messages:
            raise self.failure(f"{self.heard.count:,} messages were handled of {messages:,}")


class Bench:
    """One server of our own, and a database with its tables for each program."""

    def __init__(self, server: servers.Server, quick: bool) -> None:
        self._server = server
        self._engine = servers.engine(server.name)
        self._quick = quick
        self._templates: dict[tuple[str, str], str] = {}  # by program and name: a database to copy
        self._empty: dict[tuple[str, str], list[str]] = {}  # its empty tables, if databases cannot be copied

    def version(self) -> str:
        """The server's version. Raises AssertionError when a commit is not flushed."""
        if self._engine == "postgresql":
            [row] = self._server.query(self._server.url, "SELECT version() AS v, current_setting('fsync') AS f")
            assert row["f"] == "on"
            return str(row["v"]).partition(" (")[0].partition(" on ")[0]
        [row] = self._server.query(
            self._server.url, "SELECT version() AS v, @@innodb_flush_log_at_trx_commit AS f, @@sync_binlog AS b"
        )
        assert row["f"] == row["b"] == 1
        product = "MariaDB" if "MariaDB" in row["v"] else "MySQL"
        return f"{product} {str(row['v']).partition('-')[0]}"

    def run(self, contender: Contender, mode: str, url: str, *numbers: int) -> None:
        """Run a contender's program to its end. Raises RuntimeError when it fails."""
        done = subprocess.run(
            [*program(contender), url, mode, *map(str, numbers)],
            input="go\n",
            capture_output=True,
            text=True,
            cwd=HERE,
            env=os.environ | {"PEERS_FOLDER": str(FOLDER)},
        )
        if done.returncode:
            raise RuntimeError(f"{contender.label}, {mode}: {done.stderr[-2000:]}")

    @contextlib.contextmanager
    def database(self, contender: Contender) -> Iterator[str]:
        """A database with a contender's tables like new: a copy, or the same database, emptied."""
        key = (
            contender.program,
            "take" if contender.is_ours else contender.name.removesuffix("-pop").removesuffix("-coop"),
        )
        if key not in self._templates:
            url = self._server.create_database()
            self.run(contender, "install", url)
            self._empty[key] = [] if self._server.copies else [n for n in self._tables(url) if not self._rows(url, n)]
            self._templates[key] = url
        if self._server.copies:
            url = self._server.copy_database(self._templates[key])
            try:
                yield url
            finally:
                self._server.drop_database(url)
            return
        with self._server.client(self._templates[key]) as connection:
            connection.execute("SET foreign_key_checks = 0")
            for name in self._empty[key]:
                connection.execute(f"TRUNCATE TABLE `{name}`")
        yield self._templates[key]

    def _tables(self, url: str) -> list[str]:
        """On MySQL."""
        rows = self._server.query(url, "SHOW FULL TABLES WHERE table_type = 'BASE TABLE'")
        return [str(next(iter(row.values()))) for row in rows]

    def _rows(self, url: str, name: str) -> int:
        [row] = self._server.query(url, f"SELECT COUNT(*) AS n FROM `{name}`")
        return int(row["n"])

    def settle(self, url: str) -> None:
        """Let the server finish its background work."""
        if self._engine == "postgresql":
            self._server.query(url, "VACUUM ANALYZE")
            self._server.query(url, "CHECKPOINT")
        else:
            self._server.query(url, f"ANALYZE TABLE {', '.join(f'`{name}`' for name in self._tables(url))}")

    def messages(self, contender: Contender, case: Case) -> int:
        """The messages of a contender in a case: a round number, divisible by its processes and calls."""
        share = contender.send_share if case.section == "send" else contender.share
        if case.section not in ("sql", "workers", "send"):
            share = 1.0
        unit = 1000 if case.section in ("workers", "snapshot") else max(case.size * case.processes, 1)
        return max(unit, int(case.messages * share / (10 if self._quick else 1)) // unit * unit)

    def measure(self, contender: Contender, case: Case) -> list[float]:
        """The figures of one contender in one case: a rate, or milliseconds."""
        with self.database(contender) as url:
            if case.section == "send":
                return self._send(contender, case, url)
            if case.section == "pick-up":
                return self._pick_up(contender, case, url)
            messages = max(1000, self.messages(contender, case))
            if contender.ticks:
                self.run(contender, "ticks", url, case.size, messages)
            else:
                self.run(contender, "send", url, 1000, messages)
            self.settle(url)
            if case.section == "snapshot":
                return self._snapshot(contender, case, url)
            return self._drain(contender, case, url)

    def work(self, contender: Contender, url: str, size: int = 0, watched: bool = False) -> list[str]:
        """The command of one worker."""
        if contender.options:
            command = [sys.executable, "-m", "rowqueue.cli", "consume", "--type", "bench", "--log-level", "error"]
            return [*command, "--database", url, *contender.options]
        setting = str(size) if size else contender.work[0]
        if watched and contender.name == "pg-boss":
            setting = "1"
        if watched and contender.name == "pgqueuer":
            setting = "10"
        return [*program(contender), url, "work", setting]

    def _drain(self, contender: Contender, case: Case, url: str) -> list[float]:
        messages = max(1000, self.messages(contender, case))
        with Programs([self.work(contender, url, case.size)] * case.processes, {}) as programs:
            programs.wait(messages)
        if programs.heard.count != messages:
            raise programs.failure(f"{programs.heard.count:,} messages were handled of {messages:,}")
        return [programs.heard.rate()]

    def _send(self, contender: Contender, case: Case, url: str) -> list[float]:
        self.settle(url)
        messages = self.messages(contender, case)
        words = [url, "send", str(case.size), str(messages // case.processes)]
        with Programs([[*program(contender), *words]] * case.processes, {}) as programs:
            programs.wait(messages)
        return [programs.heard.rate()]

    def _pick_up(self, contender: Contender, case: Case, url: str) -> list[float]:
        """Median and 95th percentile of the milliseconds from a commit's answer to the start of the handler."""
        watch = {"PEERS_WATCH": "1"}
        count = case.messages // (4 if self._quick else 1)
        with Programs([self.work(contender, url, watched=True)], watch) as worker:
            time.sleep(2)
            with Programs([[*program(contender), url, "pace", str(count)]], {}) as sender:
                while len(sender.heard.sent) < count and sender.alive():
                    time.sleep(0.05)
            time.sleep(1)
        sent, seen = sender.heard.sent, worker.heard.seen
        if len(sent) < count or sent.keys() - seen.keys():
            raise worker.failure(f"{len(seen)} messages were handled of {count}, {len(sent)} sent")
        times = sorted((seen[number] - at) * 1000 for number, at in sent.items())
        return [statistics.median(times), times[int(len(times) * 0.95)]]

    def _snapshot(self, contender: Contender, case: Case, url: str) -> list[float]:
        """With an open snapshot: milliseconds for 20 messages at the beginning and the end, and the total."""
        messages = self.messages(contender, case)
        with self._held(url):
            if not contender.options and contender.program == "sql":
                with Programs([[*program(contender), url, "cycles", str(messages)]], {}) as programs:
                    while not programs.heard.cycles and programs.alive():
                        time.sleep(0.05)
                if not programs.heard.cycles:
                    raise programs.failure("no cycles")
                return [*programs.heard.cycles, messages]
            with Programs([self.work(contender, url)], {}) as programs:
                programs.wait(messages, _SNAPSHOT_SECONDS)
        samples = programs.heard.samples
        part = min(_SNAPSHOT_PART, messages // 10, samples[-1][1] // 3)
        begin = next(sample for sample in samples if sample[1] >= samples[0][1] + part)
        end = next(sample for sample in reversed(samples) if sample[1] <= samples[-1][1] - part)
        return [
            (begin[0] - samples[0][0]) / (begin[1] - samples[0][1]) * 20_000,
            (samples[-1][0] - end[0]) / (samples[-1][1] - end[1]) * 20_000,
            samples[-1][1],
        ]

    @contextlib.contextmanager
    def _held(self, url: str) -> Iterator[None]:
        """Another session has a snapshot open inside the block."""
        with self._server.client(url) as holder:
            if self._engine == "postgresql":
                holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                holder.execute("SELECT count(*) FROM pg_class")
            else:
                holder.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                holder.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            yield
            holder.execute("ROLLBACK")


def takes_part(contender: Contender, case: Case) -> bool:
    if case.processes == 1:
        return True
    return (
        contender.key in IN_FOUR if case.section == "workers" else case.section != "sql" or contender.key not in ALONE
    )


def main(
    server: Annotated[str, typer.Option(help="One of the servers of the tests: PostgreSQL, MySQL or MariaDB.")] = (
        "postgresql-15"
    ),
    section: Annotated[list[str] | None, typer.Option(help="sql, workers, snapshot, send, pick-up only.")] = None,
    contender: Annotated[list[str] | None, typer.Option(help="Only this one, and the raw one to compare.")] = None,
    case: Annotated[str, typer.Option(help="Only cases with this text in their name.")] = "",
    repeat: Annotated[int, typer.Option(help="Repetitions; 1 with --quick.", min=1)] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the messages, once, fewer cases; nothing is kept.")
    ] = False,
    go_on: Annotated[bool, typer.Option("--missing", help="Only repetitions that results.json lacks.")] = False,
    seconds: Annotated[
        float, typer.Option(help="Begin no further repetition after this time, in seconds.", min=0)
    ] = 1e9,
    install_first: Annotated[bool, typer.Option("--install", help="Install the peers from PyPI and npm.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Only write PEERS.md from results.json.")] = False,
) -> None:
    """Compare rowqueue with other queues: writes benchmarks/peers/results.json and benchmarks/PEERS.md."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server is stopped, and its data removed
    if install_first:
        try:
            install()
        except RuntimeError as error:
            console.print(f"peers: {error}", style="yellow")
    if not report:
        _measure(server, section or [], contender or [], case, 1 if quick else repeat, quick, go_on, seconds)
    if not quick:
        console.print(f"wrote {write().relative_to(ROOT)}")


def _measure(
    name: str, sections: list[str], keys: list[str], text: str, repeat: int, quick: bool, go_on: bool, seconds: float
) -> None:
    """Run the selected cases, repetition by repetition, and store each result."""
    try:
        server = servers.make(name)
        parts = PARTS[servers.engine(name)]
    except (servers.Unavailable, KeyError) as error:
        raise typer.BadParameter(f"--server: {error}") from error
    absent = {c.label: why for some in parts.values() for c in some if (why := missing(c))}
    for why in absent.values():
        console.print(f"skipped: {why}", style="yellow")
    wanted = [c for c in cases() if (not sections or c.section in sections) and text in c.name]
    if quick and not text:
        wanted = [c for c in wanted if c.section != "sql" or c.size in (1, 100)]
    end = time.monotonic() + seconds
    server.start()
    try:
        bench = Bench(server, quick)
        version = bench.version()
        for number in range(repeat):
            for case in wanted:
                some = [c for c in parts[case.section] if takes_part(c, case) and c.label not in absent]
                if keys:
                    beside_raw = case.section != "snapshot"
                    some = [c for c in some if c.key in keys or (c.is_raw and beside_raw)]
                if go_on:
                    some = [c for c in some if _repetitions(name, case, c) <= number]
                if some and any(not c.is_raw for c in some) and time.monotonic() < end:
                    _keep(bench, name, version, case, some, quick)
    finally:
        server.close()


def _keep(bench: Bench, name: str, version: str, case: Case, some: list[Contender], quick: bool) -> None:
    """Measure one repetition of a case, one contender after the other, and store the results, even if interrupted."""
    found: dict[str, Any] = {}
    try:
        for one in some:
            try:
                values = bench.measure(one, case)
            except RuntimeError as error:
                console.print(f"failed: {one.label}: {error}", style="red")
                continue
            found[one.key] = {"values": [round(value, 3) for value in values], "messages": bench.messages(one, case)}
            console.print(f"{case.section} | {case.name} | {one.label} | {', '.join(f'{v:,.2f}' for v in values)}")
    finally:
        if found and not quick:
            run = {"server": name, "version": version, "section": case.section, "case": case.name}
            run |= {"date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"), "commit": commit()}
            results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
            RESULTS.write_text(json.dumps([*results, run | {"found": found}], indent=1) + "\n")


def commit() -> str:
    """The measured commit of rowqueue; empty without git."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() if shutil.which("git") else ""


def _repetitions(name: str, case: Case, contender: Contender) -> int:
    """The number of stored repetitions."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    key = [name, case.section, case.name]
    return sum(contender.key in run["found"] for run in results if [run["server"], run["section"], run["case"]] == key)


if __name__ == "__main__":
    typer.run(main)
