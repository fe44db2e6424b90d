"""Shared by the tests of the runner: its command, its environment, and processes in the background."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "rowqueue.cli"]
FOLDER = Path(__file__).parents[1] / "runner"  # jobs.py is here, as a user's handlers are in the user's folder


def environment(url: str | None, **more: str) -> dict[str, str]:
    """Our own environment, without the user's settings, and with the database."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RUNNER_", "JOBS_"))}
    for name in ("COLUMNS", "LINES"):  # Textual sets them, and they would override the terminal
        kept.pop(name, None)
    return kept | ({"RUNNER_DATABASE": url} if url else {}) | more


class Log:
    """The log of the handlers in jobs.py, one JSON value per line."""

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
        return self._stderr.read_text(errors="replace")

    def wait(self, seconds: float = 90) -> int:
        return self.process.wait(seconds)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
