"""What the tests of the runner share: its command, its surroundings, and processes in the background."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "rowqueue.cli"]
FOLDER = Path(__file__).parent  # jobs.py is found here, as a user's handlers are in his


def environment(url: str | None, **more: str) -> dict[str, str]:
    """Our own, without what a user may have set, and with the database."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RUNNER_", "JOBS_"))}
    for name in ("COLUMNS", "LINES"):  # Textual sets them; they would be believed more than the terminal
        kept.pop(name, None)
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

    def wait(self, seconds: float = 90) -> int:
        return self.process.wait(seconds)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()


def until(condition: Callable[[], Any], seconds: float = 90) -> Any:
    """Wait until something is true and return it; fail when it does not become so."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return result


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
