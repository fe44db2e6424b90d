"""Handlers that the benchmarks give to `runner consume`."""

import atexit
import os
import random
import time
from pathlib import Path

from rowqueue import DeadLetter, Message, Retry


class _Seen:
    """When handlers were called, and how many messages they received after the first call."""

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
    """Do nothing but note the time of each batch."""
    _seen.note(len(messages))


def each(message: Message) -> None:
    """Do nothing but note the time of each message."""
    _seen.note(1)


def stamp(message: Message) -> None:
    """Write down when the handler started, on the clock of the process that sent the message."""
    now = time.monotonic()
    with Path(os.environ["BENCHMARK_FILE"]).open("a") as file:
        file.write(f"{message.body} {now}\n")


def second(message: Message) -> None:
    """Take a second, and write down who handled it, when it began and when it ended."""
    began = time.monotonic()
    time.sleep(1)
    with Path(os.environ["BENCHMARK_FILE"]).open("a") as file:
        file.write(f"{os.getpid()} {began} {time.monotonic()}\n")


def mixed(message: Message) -> None:
    """One in twenty fails its first attempt; one in a hundred becomes a dead letter and is done after a redrive."""
    number = int(message.body.split()[0])
    if number % 20 == 1 and message.attempt == 1:
        raise Retry("try again", after=1)
    if number % 100 == 7 and random.random() < 0.5:
        raise DeadLetter(f"order {number} is refused")


@atexit.register
def _report() -> None:
    """Report the number of messages after the first call, the times of the first and the last, the processor time in
    seconds, and the peak memory in kB.
    """
    if _seen.calls > 1:
        # Not ru_maxrss, which a new process inherits from its parent.
        status = Path("/proc/self/status").read_text().splitlines()
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
        Path(os.environ["BENCHMARK_FILE"]).write_text(
            f"{_seen.messages} {_seen.first} {_seen.last} {time.process_time() - _seen.processor} {peak}\n"
        )
