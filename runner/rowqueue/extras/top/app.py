"""Starting and ending the screen."""

import logging
import os
import sys
from contextlib import closing

from ...databases import Database
from ...databases.url import shown
from ...errors import Error
from ..monitor import Watched
from .frame import Top
from .queues import QueuesScreen

PROGRAM = "runner top"


class NoTerminal(Error):
    """Standard input or output is not a terminal."""


def run(database: Database, interval: float) -> int:
    """Show the screen until the user ends it; returns the exit code. `interval`: seconds between two refreshes.

    Raises NoTerminal, and the database's error if the first call fails.
    """
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if os.environ.get("TERM", "dumb") == "dumb" or not all(stream and stream.isatty() for stream in streams):
        raise NoTerminal("top needs a terminal; `runner stats` prints the queues once, also into a pipe")
    # Log lines would be written into the screen.
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    logging.captureWarnings(True)
    with closing(database.connect(PROGRAM)) as session:
        session.call("queue_stats")  # an error here is printed as one line, without the screen
    watched = Watched("top", database, PROGRAM)
    try:
        top = Top(watched, QueuesScreen, shown(database.url), interval)
        code = top.run()
        return (top.return_code or 0) if code is None else code
    finally:
        watched.close()
