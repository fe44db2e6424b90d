"""Handlers that the benchmarks give to `runner consume`."""

import atexit
import os
import random
import time
from pathlib import Path

from rowqueue import Discard, Message, Retry

_batches: list[tuple[float, int]] = []


def empty(messages: list[Message]) -> None:
    """Do nothing, but note when each batch came."""
    _batches.append((time.monotonic(), len(messages)))


def stamp(message: Message) -> None:
    """Write down when the handler started, on the clock of the process that sent the message."""
    now = time.monotonic()
    with Path(os.environ["BENCHMARK_FILE"]).open("a") as file:
        file.write(f"{message.body} {now}\n")


def mixed(message: Message) -> None:
    """The first attempt of one of twenty fails; one of a hundred becomes a dead letter, and is done when redriven."""
    number = int(message.body.split()[0])
    if number % 20 == 1 and message.attempt == 1:
        raise Retry("try again", after=1)
    if number % 100 == 7 and random.random() < 0.5:
        raise Discard(f"order {number} is refused")


@atexit.register
def _report() -> None:
    """What `empty` was given between its first and its last batch, messages and seconds, and the peak memory in kB."""
    if len(_batches) > 1:
        count = sum(size for _, size in _batches[1:])
        # Not ru_maxrss, which a new process takes over from the one that started it.
        status = Path("/proc/self/status").read_text().splitlines()
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
        Path(os.environ["BENCHMARK_FILE"]).write_text(f"{count} {_batches[-1][0] - _batches[0][0]} {peak}\n")
