"""The runner as its users start it: a process of its own, found by its exit code, its output and what it did."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rowqueue.databases import Database, Row
from rowqueue.install import contract
from servers import Server
from support.messages import States
from support.processes import COMMAND, FOLDER, Log, Running, environment


@pytest.fixture
def joblog(tmp_path: Path) -> Log:
    return Log(tmp_path / "jobs")


@pytest.fixture
def runner(database: Database, joblog: Log) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command and waits for its end: runner("stats", stdin="", env={}, cwd=..., url=...)."""

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

    def run(*arguments: object, env: dict[str, str] | None = None, url: str | None = "", cwd: Path = FOLDER) -> Running:
        variables = environment(database.url if url == "" else url, JOBS_LOG=str(joblog.path), **(env or {}))
        path = tmp_path / f"stderr-{len(started)}"
        with path.open("w") as stderr:
            command = [*COMMAND, *map(str, arguments)]
            process = subprocess.Popen(command, stdout=stderr, stderr=stderr, text=True, env=variables, cwd=cwd)
        started.append(Running(process, path))
        return started[-1]

    yield run
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


@pytest.fixture
def states(sql: Callable[..., list[Row]], server: Server, queue: str) -> States:
    """The messages of the test's queue, by body."""
    view = server.table("message_state")
    return lambda: {row["body"]: row for row in sql(f"SELECT * FROM {view} WHERE type = %s", queue)}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all SQL files, which the installer uses as the release."""
    for folder in ("migrations", "procedures"):
        shutil.copytree(contract.sql_root() / folder, tmp_path / folder)
    monkeypatch.setattr(contract, "sql_root", lambda: tmp_path)
    return tmp_path
