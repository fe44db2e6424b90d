"""How the screen starts and ends."""

import logging
import os
import sys

from ..databases import Database
from ..errors import Expected
from .data import Watch
from .desk import Desk
from .frame import Top
from .queues import QueuesScreen
from .text import place


class NoTerminal(Expected):
    """The screen needs a terminal for what is typed and what is shown."""


def run(database: Database, interval: float) -> int:
    """Show the screen until the user ends it; returns the exit code. `interval`: seconds between two refreshes.

    Raises NoTerminal, and what the first look at the database raises.
    """
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if os.environ.get("TERM", "dumb") == "dumb" or not all(stream and stream.isatty() for stream in streams):
        raise NoTerminal("top needs a terminal; `runner stats` prints the same once, also into a pipe")
    # What is written beside the screen would stand in it.
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    logging.captureWarnings(True)
    desk = Desk(database)
    try:
        watcher = Watch()
        overview = desk.submit(watcher.look).result()
        app = Top(desk, watcher, overview, QueuesScreen, place(database.url), interval)
        return app.run() or 0
    finally:
        desk.close()
