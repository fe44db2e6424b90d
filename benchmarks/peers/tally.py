"""The protocol between the Python programs of this folder and run.py: lines on stdout, times on the monotonic clock.

`ready` and then a wait for a line on stdin; `done COUNT FIRST LAST` while messages are handled; in a process with
PEERS_WATCH, `seen NUMBER TIME` for each message, and `sent NUMBER TIME` by senders. In a process with PEERS_LATE,
`late STEP:COUNT …`: how many messages were handled how long after they were due. Other languages do the same.
"""

import json
import math
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

LATE = "PEERS_LATE" in os.environ
WATCHING = LATE or "PEERS_WATCH" in os.environ
SCALE = float(os.environ.get("PEERS_SCALE") or 1)  # by which all durations of a workload are divided
SLOT_SECONDS = 0.01
STEPS = 40  # of latency, between 1 ms and 10 ms: 6 % each
_DIGITS = 10**10  # a due time in microseconds has as many digits as a body's number
_REPORT_SECONDS = 0.02
_LATE_SECONDS = 0.2
_lock = threading.Lock()
_late: Counter[int] = Counter()
_count = 0
_first = _last = 0.0


def body(number: int) -> str:
    """A JSON text of 100 bytes with its number."""
    return json.dumps({"n": f"{number:010}" + "abcdefghij" * 8 + "x"})


def bodies(count: int) -> list[str]:
    return [body(number) for number in range(count)]


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")  # in one write, because two threads may write
    sys.stdout.flush()


def ready() -> None:
    """Wait for the common start."""
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=_report, daemon=True).start()


def begin() -> None:
    """Start the clock now, not at the first message: for a program that connects before `ready`."""
    global _first
    _first = time.monotonic()


def add(count: int) -> None:
    """Count messages that were just handled."""
    global _count, _first, _last
    with _lock:
        _last = time.monotonic()
        _first = _first or _last
        _count += count


def handled(some: list[str]) -> None:
    """Count these bodies, which were just handled."""
    now = time.monotonic()
    if LATE:
        micros = int(now * 1e6)
        steps = Counter(
            round(STEPS * math.log10(max((micros - int(json.loads(text)["n"][:10])) % _DIGITS, 1))) for text in some
        )
        with _lock:
            _late.update(steps)
    elif WATCHING:
        for text in some:
            say("seen", int(json.loads(text)["n"][:10]), now)
    add(len(some))


def finish() -> None:
    """Report the last messages."""
    say("done", _count, _first, _last)


def _report() -> None:
    told = 0
    while True:
        time.sleep(_LATE_SECONDS if LATE else _REPORT_SECONDS)
        if LATE:
            with _lock:
                steps = [*_late.items()]
                _late.clear()
            if steps:
                say("late", *(f"{step}:{count}" for step, count in steps))
        if _count != told:
            told = _count
            finish()


def pauses(count: int) -> list[float]:
    """The pauses before the messages of a watched sender, in seconds."""
    return [random.uniform(0.15, 0.35) for _ in range(count)]


def pace(send: Callable[[str], object], count: int) -> None:
    """Send messages with pauses, each in a transaction, and note when its commit returned."""
    for number, pause in enumerate(pauses(count)):
        time.sleep(pause)
        send(body(number))
        say("sent", number, time.monotonic())


async def pace_async(
    send: Callable[[str], Awaitable[object]], count: int, sleep: Callable[[float], Awaitable[None]]
) -> None:
    for number, pause in enumerate(pauses(count)):
        await sleep(pause)
        await send(body(number))
        say("sent", number, time.monotonic())


def slots(rate: int, seconds: float) -> Iterator[tuple[float, list[str]]]:
    """Every 10 ms the messages of an open-loop sender: when they are due, and their bodies, which contain that time."""
    began = time.monotonic()
    for number in range(round(seconds / SLOT_SECONDS)):
        due = began + number * SLOT_SECONDS
        count = int((number + 1) * rate * SLOT_SECONDS) - int(number * rate * SLOT_SECONDS)
        yield due, [body(int(due * 1e6) % _DIGITS)] * count


def offer(send: Callable[[list[str]], object], rate: int, seconds: float) -> None:
    """Send as many messages per second, however slow the calls are: what could not be sent in time is sent at once."""
    begin()
    for due, some in slots(rate, seconds):
        time.sleep(max(due - time.monotonic(), 0))
        if some:
            send(some)
            add(len(some))
    finish()
