"""`runner exporter`: an HTTP server with the metrics of queues for Prometheus."""

import logging
import re
import signal
import threading
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from prometheus_client import CollectorRegistry

from ...databases import Database, open_database
from ...databases.url import shown
from ...shutdown import LOOK
from ..health import Server
from .collector import QueueCollector

log = logging.getLogger("rowqueue")

LONGEST_NAME = 100


def named(texts: Iterable[str]) -> list[tuple[str, Database]]:
    """The databases of `--database`: NAME=URL, or a URL, which is named after its database.

    Raises ValueError for a URL that is not valid and for a name used twice. No message contains a password.
    """
    found: dict[str, Database] = {}
    for text in texts:
        match = re.match(r"([^=/?#:@]*)=(?=[a-z]+://)", text)
        url = text[match.end() :] if match else text
        database = open_database(url)
        name = match[1] if match else _database_name(url)
        if not (1 <= len(name) <= LONGEST_NAME and name.isprintable()):
            raise ValueError(f"a database's name must have 1 to {LONGEST_NAME} characters: write NAME=URL")
        if name in found:
            raise ValueError(f"two databases have the name {name!r}: write NAME=URL")
        found[name] = database
    return [*found.items()]


def _database_name(url: str) -> str:
    """The name of the database in a URL, without host, user and password; else the scheme."""
    scheme, _, rest = shown(url).partition("://")
    return unquote(rest.partition("/")[2]).strip("/") or scheme


def serve(
    databases: Sequence[tuple[str, Database]],
    host: str,
    port: int,
    cache_seconds: float,
    timeout_seconds: float,
    max_names: int,
) -> None:
    """Serve until SIGTERM or SIGINT; from the main thread only. Raises OSError when the port cannot be opened."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    collector = QueueCollector(databases, cache_seconds, timeout_seconds, max_names)
    registry = CollectorRegistry()
    registry.register(collector)
    server = Server(port, registry, collector.is_ready, host)
    shown = f"[{host}]" if ":" in host else host
    log.info("metrics of %s: http://%s:%d/metrics", ", ".join(name for name, _ in databases), shown, server.port)
    try:
        while not stop.wait(LOOK):
            pass
    finally:
        server.close()
        collector.close()
