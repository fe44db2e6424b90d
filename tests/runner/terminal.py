"""A terminal for the tests: a process on a pseudo-terminal, and its screen as text."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from support.processes import FOLDER

# What Rich and Readline write to move the cursor, to clear lines, for colours, for modes, and as a bell.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>]|\x07")
_COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7]|38;[0-9;]+)m")


class Terminal:
    """A command on a terminal `columns` wide. It is the controlling one: Ctrl-C sends SIGINT."""

    def __init__(self, command: Sequence[object], env: dict[str, str], columns: int = 80, cwd: Path = FOLDER) -> None:
        self._controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
        env = {key: value for key, value in os.environ.items() if key not in unset} | {"TERM": "xterm"} | env
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=env,
            cwd=cwd,
            preexec_fn=_own_terminal,
        )
        os.close(terminal)
        self.written = ""
        self._bytes = b""

    def type(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def until(self, condition: Callable[[str], object], seconds: float = 60) -> str:
        """Read until what was written fulfils a condition; fail when it does not."""
        deadline = time.monotonic() + seconds
        while not condition(self.written):
            assert self._read(deadline - time.monotonic()), f"waited in vain, read {self.written!r}"
        return self.written

    def end(self, seconds: float = 60) -> int:
        """Read until the command ends; its exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        os.close(self._controller)
        return self.process.wait(max(1, deadline - time.monotonic()))

    def _read(self, seconds: float) -> bool:
        if not select.select([self._controller], [], [], max(seconds, 0))[0]:
            self.process.kill()
            return False
        try:
            found = os.read(self._controller, 65_536)
        except OSError:  # no process has the terminal open any more
            return False
        self._bytes += found
        self.written = self._bytes.decode(errors="replace")
        return bool(found)

    @property
    def lines(self) -> list[str]:
        """The lines without control sequences."""
        return plain(self.written).splitlines()

    @property
    def has_colour(self) -> bool:
        return _COLOUR.search(self.written) is not None


def _own_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def plain(text: str) -> str:
    return _CONTROL.sub("", text)
