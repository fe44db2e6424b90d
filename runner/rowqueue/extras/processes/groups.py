"""Child processes in their own process groups: ending them, their exit status, and their standard error."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

TERM_SECONDS = 5.0  # between SIGTERM and SIGKILL
CANNOT_START = (126, 127)  # exit status of a shell and of env: the command is not executable, or not found
_READ, _READS = 65_536, 64


def how_ended(status: int) -> str:
    """An exit status of subprocess in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal has no name
        return f"killed by signal {-status}"


def kill_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may have ended."""
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses to signal a group of zombies
        os.killpg(group, number)


def end_group(process: "subprocess.Popen[bytes]", group: int, grace: float = TERM_SECONDS) -> None:
    """End a process and its children: SIGTERM, then SIGKILL after `grace` seconds."""
    kill_group(group, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    kill_group(group, signal.SIGKILL)
    process.wait()


def environment(**more: str) -> dict[str, str]:
    """The environment of a handler's process: ours without the database's URL, which has a password, and `more`."""
    return {name: value for name, value in os.environ.items() if name != "RUNNER_DATABASE"} | more


class Tail:
    """Copies a child's standard error to ours and keeps its last part."""

    def __init__(self, fd: int, size: int) -> None:
        os.set_blocking(fd, False)
        self._fd, self._size = fd, size
        self._kept = b""

    def read(self) -> bool:
        """Read what is available without waiting, up to a few megabytes; False at end of file."""
        for _ in range(_READS):
            try:
                data = os.read(self._fd, _READ)
            except BlockingIOError:
                return True
            if not data:
                return False
            sys.stderr.buffer.write(data)
            sys.stderr.buffer.flush()
            self._kept = (self._kept + data)[-self._size :]
        return True

    def text(self) -> str:
        """The last part."""
        return self._kept.decode("utf-8", "replace").strip()

    def last_line(self) -> str:
        """The last line that is not blank."""
        return self.text().rpartition("\n")[2].strip()
