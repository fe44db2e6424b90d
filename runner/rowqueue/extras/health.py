"""The HTTP server of --health-port and `runner exporter`: /live, /ready and /metrics for Prometheus."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from ..consume.reports import Metrics as NoMetrics

log = logging.getLogger("rowqueue")

MOST_WAITING = 100  # connections that have sent no complete request; a further one closes the oldest
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1_800)


class Metrics(NoMetrics):
    """The consumer's metrics, counted once per batch. Their own registry keeps a handler's metrics apart.

    `port`: of 127.0.0.1, where they are served.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.registry = CollectorRegistry()
        self.messages = Counter(
            "rowqueue_messages",
            "Messages by outcome: completed, failed, discarded, released, snoozed, cancelled or lost.",
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
        # Not rowqueue_active_messages: that is the exporter's name for all consumers, and a sum would count them twice.
        self.active = Gauge(
            "rowqueue_consumer_active_messages", "Messages claimed and not finished.", registry=self.registry
        )
        self.reconnects = Counter("rowqueue_reconnects", "Lost connections opened again.", registry=self.registry)
        self.lost_leases = Counter("rowqueue_lost_leases", "Batches whose lease was lost.", registry=self.registry)

    def count(self, type: str, outcome: str, count: int) -> None:
        self.messages.labels(type, outcome).inc(count)

    def ran(self, type: str, size: int, seconds: float) -> None:
        self.seconds.labels(type).observe(seconds)
        self.sizes.labels(type).observe(size)

    def lost(self) -> None:
        self.lost_leases.inc()

    def reconnected(self) -> None:
        self.reconnects.inc()

    @contextmanager
    def served(self, active: Callable[[], int], is_ready: Callable[[], bool]) -> Iterator[None]:
        self.active.set_function(active)
        server = Server(self._port, self.registry, is_ready)
        log.info("health: http://127.0.0.1:%d", server.port)
        try:
            yield
        finally:
            server.close()


class Server:
    """The HTTP server, in its own thread. Raises OSError when host and port cannot be opened.

    `ready` decides the answer of /ready; /live answers as long as the process runs.
    """

    def __init__(
        self, port: int, registry: CollectorRegistry, ready: Callable[[], bool], host: str = "127.0.0.1"
    ) -> None:
        def page(path: str, accepted: str) -> tuple[int, str, bytes]:
            if path == "/live":
                return 200, "text/plain", b"live\n"
            if path == "/ready":
                return (200, "text/plain", b"ready\n") if ready() else (503, "text/plain", b"not ready\n")
            if path == "/metrics":
                encode, content_type = choose_encoder(accepted)
                return 200, content_type, encode(registry)
            return 404, "text/plain", b"/live, /ready and /metrics are here\n"

        class Pages(BaseHTTPRequestHandler):
            timeout = 30  # seconds that a client may connect without sending

            def do_GET(self) -> None:
                waiting.pop(self.connection, None)
                status, content_type, body = page(self.path.partition("?")[0], self.headers.get("Accept", ""))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Do not log probes."""

        waiting: dict[Any, None] = {}  # the connections without a complete request, the oldest first

        class Listener(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            request_queue_size = 128

            def process_request(self, request: Any, client_address: Any) -> None:
                waiting[request] = None
                if len(waiting) > MOST_WAITING:
                    oldest = next(iter(waiting))
                    del waiting[oldest]
                    with suppress(OSError):
                        oldest.shutdown(socket.SHUT_RDWR)  # its thread then ends
                super().process_request(request, client_address)

            def shutdown_request(self, request: Any) -> None:
                waiting.pop(request, None)
                super().shutdown_request(request)

        self._server = Listener((host, port), Pages)
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
