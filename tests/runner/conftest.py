"""The runner as its users start it: a process of its own, found by its exit code, its output and what it did."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Database

COMMAND = [sys.executable, "-m", "rowqueue.cli"]
FOLDER = Path(__file__).parent  # jobs.py is found here, as a user's handlers are in his


def environment(url: str | None, **more: str) -> dict[str, str]:
    """Our own, without what a user may have set, and with the database."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RUNNER_", "JOBS_"))}
    return kept | ({"RUNNER_DATABASE": url} if url else {}) | more


class Log:
    """What handlers of jobs.py have noted, one JSON value a line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Any]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []


class Running:
    """A runner in the background; `stop` sends a signal and returns the exit code."""

    def __init__(self, process: subprocess.Popen[str], stderr: Path) -> None:
        self.process = process
        self._stderr = stderr

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    def wait(self, seconds: float = 30) -> int:
        return self.process.wait(seconds)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait until something is true and return it; fail when it does not become so."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return result


@pytest.fixture
def joblog(tmp_path: Path) -> Log:
    return Log(tmp_path / "jobs")


@pytest.fixture
def runner(database: Database, joblog: Log) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command to its end: runner("stats", stdin="", env={}, cwd=..., url=...)."""

    def run(
        *arguments: object, stdin: str = "", env: dict[str, str] | None = None, cwd: Path = FOLDER, url: str | None = ""
    ) -> subprocess.CompletedProcess[str]:
        variables = environment(database.url if url == "" else url, JOBS_LOG=str(joblog.path), **(env or {}))
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=variables, cwd=cwd, timeout=120, errors="replace"
        )

    return run


@pytest.fixture
def start(database: Database, joblog: Log, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts a command in the background; what is still running after the test is killed."""
    started: list[Running] = []

    def run(*arguments: object, env: dict[str, str] | None = None, url: str = "") -> Running:
        variables = environment(url or database.url, JOBS_LOG=str(joblog.path), **(env or {}))
        path = tmp_path / f"stderr-{len(started)}"
        with path.open("w") as stderr:
            command = [*COMMAND, *map(str, arguments)]
            process = subprocess.Popen(command, stdout=stderr, stderr=stderr, text=True, env=variables, cwd=FOLDER)
        started.append(Running(process, path))
        return started[-1]

    yield run
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
