"""Connections that send nothing are closed: they would take all places, and also probes would get no answer."""

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # for the head of a request, also when it arrives byte by byte
MOST_WAITING = 100  # connections without a complete request; a further one closes the oldest


class Impatient(H11Protocol):
    """Uvicorn's HTTP/1.1, with a limit to the number of connections that wait for a request, and to their time."""

    _waiting: ClassVar[dict["Impatient", asyncio.TimerHandle]] = {}  # the oldest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._end_wait()
        if self.transport.is_closing():
            return
        self._waiting[self] = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
        if len(self._waiting) > MOST_WAITING:
            oldest = next(iter(self._waiting))
            oldest._end_wait()
            oldest.transport.abort()

    def _end_wait(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()
