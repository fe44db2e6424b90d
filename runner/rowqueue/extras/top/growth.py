"""The sizes of queues at earlier refreshes: for rates when no consumer reports."""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ..monitor import Queue

_SAMPLES = 120  # kept per queue
_WINDOW = 60.0  # seconds over which a rate is averaged


@dataclass(frozen=True)
class _Sample:
    """The size of a queue at a time of this machine's clock. `held`: None when a count was an estimate."""

    at: float
    held: int | None
    ready: int


class Growth:
    """Samples of all queues."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[_Sample]] = {}

    def add(self, queues: Iterable[Queue]) -> None:
        """Record the current sizes."""
        now = time.monotonic()
        for queue in queues:
            held = None if queue.estimated else queue.ready + queue.delayed + queue.active + queue.expired
            samples = self._samples.setdefault(queue.type, deque(maxlen=_SAMPLES))
            samples.append(_Sample(now, held, queue.ready))

    def ready(self, type: str) -> list[int]:
        """How many messages were ready, the oldest sample first."""
        return [sample.ready for sample in self._samples.get(type, ())]

    def per_minute(self, type: str) -> float | None:
        """How many messages per minute a queue grows by; None while unknown."""
        samples = self._samples.get(type)
        if not samples or samples[-1].held is None:
            return None
        last, held = samples[-1].at, samples[-1].held
        for sample in samples:
            if sample.held is not None and 0 < last - sample.at <= _WINDOW:
                return (held - sample.held) * 60 / (last - sample.at)
        return None
