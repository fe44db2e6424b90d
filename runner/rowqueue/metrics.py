"""What --health-port serves: /live, /ready and /metrics for Prometheus, on 127.0.0.1."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1_800)


class Metrics:
    """The consumer's figures, counted once a batch; a registry of their own keeps a handler's metrics apart."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.messages = Counter(
            "rowqueue_messages",
            "Messages by what became of them: completed, failed, discarded, released or lost.",
            ["type", "outcome"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "rowqueue_handler_seconds",
            "Time to handle one batch.",
            ["type"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.sizes = Histogram(
            "rowqueue_batch_size", "Messages in one claim.", ["type"], buckets=_SIZES, registry=self.registry
        )
        self.active = Gauge("rowqueue_active_messages", "Messages claimed and not finished.", registry=self.registry)
        self.reconnects = Counter("rowqueue_reconnects", "Connections made anew.", registry=self.registry)
        self.lost = Counter("rowqueue_lost_leases", "Batches lost to others.", registry=self.registry)


class Server:
    """The HTTP server in a thread of its own. Raises OSError when the port cannot be had.

    `ready` tells whether the consumer can claim; /live answers as long as the process runs.
    """

    def __init__(self, port: int, metrics: Metrics, ready: Callable[[], bool]) -> None:
        def page(path: str) -> tuple[int, str, bytes]:
            if path == "/live":
                return 200, "text/plain", b"live\n"
            if path == "/ready":
                return (200, "text/plain", b"ready\n") if ready() else (503, "text/plain", b"not ready\n")
            if path == "/metrics":
                return 200, CONTENT_TYPE_LATEST, generate_latest(metrics.registry)
            return 404, "text/plain", b"/live, /ready and /metrics are here\n"

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, content_type, body = page(self.path.partition("?")[0])
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Probes are no news."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Pages)
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
