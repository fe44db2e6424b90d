"""All programs that use a cluster at once: senders and SQL consumers in threads, `runner consume` in processes."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Conflict, Disconnected, LeaseLost, Session, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server, Unavailable, clusters

FOLDER = Path(__file__).parent
PATIENCE = 150  # seconds; the machine may be busy


class Crew:
    """Programs on one database; `urls` has one URL per node. `close` ends those that still run."""

    def __init__(self, urls: Sequence[str], folder: Path) -> None:
        self.urls = list(urls)
        self._folder = folder
        self._threads: list[threading.Thread] = []
        self._runners: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self.conflicts = Counter[str]()

    # ---- threads ------------------------------------------------------------------------------------

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Call work(*arguments) in a thread; an exception fails the test."""

        def guarded() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self._errors.append(error)
                self._stop.set()

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def session(self, url: str) -> "Persistent":
        return Persistent(self, url)

    def join(self) -> None:
        """Wait for all threads."""
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a thread hangs"
        self._threads.clear()
        self.check()

    def check(self) -> None:
        """Raise the exception of a thread."""
        if self._errors:
            raise self._errors[0]

    def stopped(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask SQL consumers to end, and wait for them."""
        self._stop.set()
        self.join()
        self._stop.clear()

    # ---- what threads do ----------------------------------------------------------------------------

    def send(self, url: str, type: str, bodies: Sequence[str], group: str | None = None, pause: float = 0) -> None:
        """Send messages one by one, each exactly once, even when the connection is lost."""
        with self.session(url) as session:
            for body in bodies:
                session.call("send_message", type, body, None, None, group, f"{type} {body}")
                time.sleep(pause)

    def send_lists(self, url: str, type: str, bodies: Sequence[str], size: int = 50) -> None:
        """Send lists. A list may be sent twice when the connection is lost."""
        with self.session(url) as session:
            for n in range(0, len(bodies), size):
                session.call("send_batch", type, "\n".join(bodies[n : n + size]))

    def consume(self, url: str, type: str, size: int, done: "Done") -> None:
        """Claim, and complete in one transaction with a row in the table `done`, until `stop`."""
        with self.session(url) as session:
            while not self.stopped():
                rows = session.call("claim_batch", type, size, None, 30)
                if not rows:
                    time.sleep(0.02)
                    continue
                done.saw([row["body"] for row in rows])

                def finish(inner: Session, rows: list[dict[str, Any]] = rows) -> None:
                    # Lost: the commit whose answer was lost has finished the batch, or another consumer has it.
                    with suppress(LeaseLost), inner.transaction() as connection:
                        inner.call("complete_batch", rows[0]["batch_key"])
                        values = ", ".join(f"({row['id']}, '{row['body']}')" for row in rows)
                        connection.cursor().execute(f"INSERT INTO done (id, body) VALUES {values}")

                session.do(finish)

    # ---- processes ----------------------------------------------------------------------------------

    def runner(self, url: str, *options: object, group: Sequence[str] = ()) -> None:
        """Start `runner consume`, or that of a group of commands, in the background."""
        path = self._folder / f"runner-{len(self._runners)}"
        command = [sys.executable, "-m", "rowqueue.cli", *group, "consume", *map(str, options)]
        environment = os.environ | {"RUNNER_DATABASE": url, "CHORES": str(self._folder / "chores")}
        with path.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=FOLDER)
        self._runners.append((process, path))

    def dismiss(self) -> list[str]:
        """Stop all runners, which must exit with 0; returns their logs."""
        for process, _ in self._runners:
            process.terminate()
        return self.finish()

    def finish(self, expected: int = 0) -> list[str]:
        """Wait until all runners have ended with this exit status; returns their logs."""
        logs = []
        for process, path in self._runners:
            status = process.wait(PATIENCE)
            logs.append(path.read_text())
            assert status == expected, f"runner ended with {status}: {logs[-1][-3000:]}"
            assert "Traceback" not in logs[-1], logs[-1][-3000:]
        self._runners.clear()
        return logs

    def all_run(self) -> None:
        """Assert that no runner has ended and no thread has failed."""
        self.check()
        for process, path in self._runners:
            assert process.poll() is None, path.read_text()[-3000:]

    def handled(self, done: "Done | None" = None) -> list[str]:
        """The bodies that handlers and SQL consumers received, in order of time."""
        seen = [*self._chores(), *(done.seen if done else [])]
        return [body for body, _ in sorted(seen, key=lambda line: line[1])]

    def times(self) -> list[float]:
        """The times when handlers received messages."""
        return [at for _, at in self._chores()]

    def _chores(self) -> list[tuple[str, float]]:
        """The notes of handlers, without an incomplete last line."""
        path = self._folder / "chores"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def close(self) -> None:
        self._stop.set()
        for process, _ in self._runners:
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(10)


def call_named(url: str, procedure: str, *first: Any, **named: Any) -> list[dict[str, Any]]:
    """Call a procedure once, some arguments by their names; names that it does not have are its options."""
    names = [argument.name for argument in contract.load().procedures[procedure].arguments]
    options = {name: value for name, value in named.items() if name not in names}
    if options:
        assert "options" in names, f"{procedure} has no options: {options}"
        named["options"] = json.dumps(options)
    session = open_database(url).connect("test")
    try:
        return session.call(procedure, *first, *(named.get(name) for name in names[len(first) :]))
    finally:
        session.close()


def left(url: str, type: str) -> int:
    """How many messages a queue has, in all states."""
    rows = call_named(url, "queue_stats", type)
    return sum(row[state] for row in rows for state in ("ready", "delayed", "active", "dead"))


class Persistent:
    """A session that repeats calls after a conflict and connects again after a lost connection."""

    def __init__(self, crew: Crew, url: str) -> None:
        self._crew = crew
        self._database = open_database(url)
        self._session: Session | None = None

    def do(self, work: Callable[[Session], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self._session is None:
                    self._session = self._database.connect("crew")
                return work(self._session)
            except (Conflict, Disconnected) as error:
                self._crew.conflicts[f"{type(error).__name__}: {str(error)[:60]}"] += 1
                if isinstance(error, Disconnected):
                    self._close()
                    time.sleep(0.1)
                if time.monotonic() > deadline:
                    raise

    def call(self, procedure: str, *arguments: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.do(lambda session: session.call(procedure, *arguments))
        return rows

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def __enter__(self) -> "Persistent":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


class Done:
    """The messages that SQL consumers received, in order; completed ones are in the table `done`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def saw(self, bodies: Sequence[str]) -> None:
        self.seen.extend((body, time.monotonic()) for body in bodies)

    @property
    def bodies(self) -> list[str]:
        return [body for body, _ in self.seen]


def in_order(bodies: Sequence[str]) -> bool:
    """In bodies `group number`, the numbers of a group never decrease; a repeated message may repeat its number."""
    last = defaultdict[str, int](int)
    for body in bodies:
        group, _, number = body.partition(" ")
        if int(number) < last[group]:
            return False
        last[group] = int(number)
    return True


def start(make: Callable[[], Any], config: pytest.Config) -> Iterator[Any]:
    """A cluster for a fixture; the test is skipped when its programs are missing."""
    try:
        yield from clusters.started(make)
    except Unavailable as error:
        if config.getoption("--require-databases"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def installed(cluster: Any) -> list[str]:
    """The URLs, one per node, of a new database with the queue and the tables that handlers write to."""
    urls: list[str] = cluster.create_database()
    install.apply(open_database(urls[0]))
    prepare(cluster.nodes[0], urls[0])
    for node, url in zip(cluster.nodes, urls, strict=True):
        if node.is_running:
            clusters.until(lambda node=node, url=url: node.query(url, "SHOW TABLES LIKE 'effect'"), "all tables")  # type: ignore[misc]
    return urls


def prepare(server: Server, url: str) -> None:
    """Create the tables that handlers and SQL consumers write to."""
    server.query(url, "CREATE TABLE done (id bigint PRIMARY KEY, body varchar(200) NOT NULL)")
    server.query(url, "CREATE TABLE effect (body varchar(200) PRIMARY KEY)")
