"""A clock of its own for a server that the tests start: libfaketime moves it while the server runs.

    server = make("mysql-9")
    clock = Clock(server)      # before start()
    server.start()
    clock.set(-30)             # the server's time is now half a minute behind this machine's

Only the time of day jumps. The monotonic clock continues, as when an administrator or
an NTP daemon sets a clock.
"""

import shutil
import time
from pathlib import Path

from . import base, fetch

# Whole seconds for which the library caches the time that it has read, and one more.
_CACHED_SECONDS = 1


def library() -> Path:
    """The library that fakes the time, unpacked or installed. Raises Unavailable when it is neither."""
    found = fetch.faketime()
    if found is None:
        raise base.Unavailable("libfaketime is not there: make servers")
    return found


class Clock:
    """How far the clock of `server` is ahead of this machine's; negative if it is slow. `url`: a database on it."""

    def __init__(self, server: base.Server, url: str = "") -> None:
        self.server = server
        self.url = url
        self._folder = base.folder("clock")
        self._folder.chmod(0o755)
        self._file = self._folder / "offset"
        # Where the server's user cannot reach the original.
        copy = shutil.copy(library(), self._folder)
        self._write(0)
        server.environment = {
            "LD_PRELOAD": str(copy),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": str(_CACHED_SECONDS),  # MySQL asks too often for a file to be read each time
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.offset = 0.0

    def _write(self, seconds: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.6f}\n")
        new.chmod(0o644)
        new.replace(self._file)

    def set(self, seconds: float) -> None:
        """Set how far it is ahead, and return when the whole server has seen it."""
        self._write(seconds)
        self.offset = seconds
        time.sleep(2 * _CACHED_SECONDS + 0.2)

    def close(self) -> None:
        """Remove it, after the server has ended, and what killed processes have left in memory."""
        base.remove(self._folder)
        for left in Path("/dev/shm").glob("*faketime_s*_*"):
            if not Path(f"/proc/{left.name.rpartition('_')[2]}").exists():
                left.unlink(missing_ok=True)
