"""`runner web`: the HTTP server."""

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response

from ...databases import Database
from ..monitor.collector import QueueCollector
from .app import build
from .connections import Impatient
from .guard import Rules, host_names
from .site import Options, Site

__all__ = ["Options", "listening", "rules", "serve"]

log = logging.getLogger("rowqueue")

_ENDING_SECONDS = 5


def listening(host: str, port: int) -> socket.socket:
    """The socket of the server; port 0 is any free port. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


def rules(host: str, port: int, token: str | None, allowed: Sequence[str], root: str, believes_proxy: bool) -> Rules:
    """The access rules. Allowed hosts: the address it listens on, this machine's own names, and `allowed`."""
    hosts = host_names(["localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host, *allowed])
    return Rules(token, hosts - {"0.0.0.0", "::", ""}, port, root, believes_proxy)


def serve(databases: Sequence[tuple[str, Database]], listener: socket.socket, rules: Rules, options: Options) -> None:
    """Serve until SIGTERM or SIGINT; from the main thread only."""
    site = Site(databases, rules, options)
    app = build(site, _metrics(databases))
    config = uvicorn.Config(
        app,
        http=Impatient,
        log_config=None,
        access_log=False,  # an address may contain the token
        server_header=False,
        proxy_headers=False,  # the guard reads these headers
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=_ENDING_SECONDS,
        limit_concurrency=500,
    )
    _Server(config, site.ending).run(sockets=[listener])
    for watched in site.databases.values():
        watched.close()


def _metrics(databases: Sequence[tuple[str, Database]]) -> Callable[[Request], Response]:
    """The function that answers /metrics: the collector of `runner exporter`, which connects on the first request."""
    registry: CollectorRegistry | None = None
    lock = threading.Lock()

    def answer(request: Request) -> Response:
        nonlocal registry
        with lock:
            if registry is None:
                registry = CollectorRegistry()
                registry.register(QueueCollector(databases))
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), media_type=content_type)

    return answer


class _Server(uvicorn.Server):
    """Uvicorn, except that a signal also ends streams, and the process exits with 0."""

    def __init__(self, config: uvicorn.Config, ending: threading.Event) -> None:
        super().__init__(config)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        log.info("%s: ending", signal.Signals(sig).name)
        self._ending.set()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.handle_exit)
        yield
