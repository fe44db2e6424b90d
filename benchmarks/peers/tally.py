"""The protocol between the Python programs of this folder and run.py: lines on stdout, times on the monotonic clock.

`ready` and then a wait for a line on stdin; `done COUNT FIRST LAST` while messages are handled; in a process with
PEERS_WATCH, `seen NUMBER TIME` for each message, and `sent NUMBER TIME` by senders. Other languages do the same.
"""

import json
import os
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable

WATCHING = "PEERS_WATCH" in os.environ
_REPORT_SECONDS = 0.02
_lock = threading.Lock()
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
    if WATCHING:
        now = time.monotonic()
        for text in some:
            say("seen", int(json.loads(text)["n"][:10]), now)
    add(len(some))


def finish() -> None:
    """Report the last messages."""
    say("done", _count, _first, _last)


def _report() -> None:
    told = 0
    while True:
        time.sleep(_REPORT_SECONDS)
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
