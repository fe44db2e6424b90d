"""How the screen starts and ends."""

import logging
import os
import sys
from contextlib import closing

from ..databases import Database
from ..errors import Expected
from ..seeing import Looking, Watched
from .frame import Top
from .queues import QueuesScreen
from .text import place

PROGRAM = "runner top"


class NoTerminal(Expected):
    """The screen needs a terminal for what is typed and what is shown."""


def run(database: Database, interval: float) -> int:
    """Show the screen until the user ends it; returns the exit code. `interval`: seconds between two refreshes.

    Raises NoTerminal, and what a database raises that cannot be asked at all.
    """
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if os.environ.get("TERM", "dumb") == "dumb" or not all(stream and stream.isatty() for stream in streams):
        raise NoTerminal("top needs a terminal; `runner stats` prints the same once, also into a pipe")
    # What is written beside the screen would stand in it.
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    logging.captureWarnings(True)
    with closing(database.connect(PROGRAM)) as session:
        Looking(session).rows("queues", "queue_stats")  # what cannot work at all is told in one line
    watched = Watched("top", database, PROGRAM)
    try:
        top = Top(watched, QueuesScreen, place(database.url), interval)
        code = top.run()
        return (top.return_code or 0) if code is None else code
    finally:
        watched.close()
