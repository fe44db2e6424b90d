"""Ends commands when the runner ends, even when SIGKILL ended it.

A guard is a small shell that leads a process group. It reads from a pipe whose other end only the runner holds. At end
of file the runner has ended, and the guard kills its group, including itself. A command is in the group before its
program begins, so no command can outlive the runner. Linux's PR_SET_PDEATHSIG does not fit: it fires when the starting
thread ends, and other systems do not have it.
"""

import os
import signal
import subprocess

from .groups import environment, kill_group

_SCRIPT = "trap '' HUP INT TERM; read -r _; kill -KILL 0"


class Guard:
    """One process group, in which one thread runs its commands one after the other."""

    def __init__(self) -> None:
        self._writer: int | None
        reader, self._writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT], stdin=reader, env=environment(), process_group=0
            )
        finally:
            os.close(reader)
        self.group = self._process.pid

    def is_there(self) -> bool:
        """Whether the guard still runs, and its group can be used."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End all processes of the group."""
        kill_group(self.group, signal.SIGKILL)
        self._leave()

    def dismiss(self) -> None:
        """End the guard only. Processes that a command left running on purpose stay."""
        self._process.kill()
        self._leave()

    def _leave(self) -> None:
        self._process.wait()
        if self._writer is not None:  # None in a second call: the number may belong to another file by then
            os.close(self._writer)
            self._writer = None
