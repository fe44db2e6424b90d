"""Handlers that the benchmarks give to `runner consume`."""

import atexit
import os
import time
from pathlib import Path

from rowqueue.handlers import Message

_batches: list[tuple[float, int]] = []


def empty(messages: list[Message]) -> None:
    """Do nothing, but note when each batch came."""
    _batches.append((time.monotonic(), len(messages)))


def stamp(message: Message) -> None:
    """Write down when the handler started, on the clock of the process that sent the message."""
    now = time.monotonic()
    with Path(os.environ["BENCHMARK_FILE"]).open("a") as file:
        file.write(f"{message.body} {now}\n")


@atexit.register
def _report() -> None:
    """What `empty` was given between its first and its last batch: messages and seconds."""
    if len(_batches) > 1:
        count = sum(size for _, size in _batches[1:])
        Path(os.environ["BENCHMARK_FILE"]).write_text(f"{count} {_batches[-1][0] - _batches[0][0]}\n")
