"""Handlers that the benchmarks give to `runner consume`."""

import atexit
import os
import random
import time
from pathlib import Path

from rowqueue import Discard, Message, Retry


class _Seen:
    """When handlers were called, and what they were given after the first call."""

    calls = messages = 0
    first = last = processor = 0.0

    def note(self, messages: int) -> None:
        self.last = time.monotonic()
        if self.calls == 0:
            self.first, self.processor = self.last, time.process_time()
        else:
            self.messages += messages
        self.calls += 1


_seen = _Seen()


def empty(messages: list[Message]) -> None:
    """Do nothing, but note when each batch came."""
    _seen.note(len(messages))


def each(message: Message) -> None:
    """Do nothing, but note when each message came."""
    _seen.note(1)


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
    """What came after the first call: messages, when the first and the last were, seconds of processor time, and the
    peak memory in kB.
    """
    if _seen.calls > 1:
        # Not ru_maxrss, which a new process takes over from the one that started it.
        status = Path("/proc/self/status").read_text().splitlines()
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
        Path(os.environ["BENCHMARK_FILE"]).write_text(
            f"{_seen.messages} {_seen.first} {_seen.last} {time.process_time() - _seen.processor} {peak}\n"
        )
