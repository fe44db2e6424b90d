"""What ends commands when the runner is gone, killed by SIGKILL too.

A guard is a tiny shell at the head of a process group. It reads from a pipe whose other end only the runner holds, so
that end of file means: the runner is gone; then it kills its group, itself included. Commands are started in that
group, which is theirs before their program begins: there is no moment at which a runner's end could leave one behind.
Linux's PR_SET_PDEATHSIG would be tied to the thread that starts a command, and no other system has it.
"""

import os
import signal
import subprocess

from .processes import kill_group

_SCRIPT = "trap '' HUP INT TERM; read -r _; kill -KILL 0"


class Guard:
    """One process group, in which a thread runs its commands one after the other."""

    def __init__(self) -> None:
        self._writer: int | None
        reader, self._writer = os.pipe()
        try:
            self._process = subprocess.Popen(["/bin/sh", "-c", _SCRIPT], stdin=reader, process_group=0)
        finally:
            os.close(reader)
        self.group = self._process.pid

    def is_there(self) -> bool:
        """Whether the group may be used."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the group with all that is in it."""
        kill_group(self.group, signal.SIGKILL)
        self._leave()

    def dismiss(self) -> None:
        """End the guard only: what a command has left behind on purpose stays."""
        self._process.kill()
        self._leave()

    def _leave(self) -> None:
        self._process.wait()
        if self._writer is not None:  # else this is a second call, and the number may be another file's by now
            os.close(self._writer)
            self._writer = None
