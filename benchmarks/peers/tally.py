"""What every Python program of this folder tells the one that measures: lines on stdout, times on the monotonic clock.

`ready` and then a wait for a line on stdin; `done COUNT FIRST LAST` while messages are handled; in a process with
PEERS_WATCH, `seen NUMBER TIME` for each message, and `sent NUMBER TIME` by who sends. The other languages do the same.
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
    """A JSON text of 100 bytes that holds its number."""
    return json.dumps({"n": f"{number:010}" + "abcdefghij" * 8 + "x"})


def bodies(count: int) -> list[str]:
    return [body(number) for number in range(count)]


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")  # in one piece: two threads may write
    sys.stdout.flush()


def ready() -> None:
    """Wait until everybody may begin."""
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=_report, daemon=True).start()


def begin() -> None:
    """Count the time from now on, not from the first message: for a program that is connected before `ready`."""
    global _first
    _first = time.monotonic()


def add(count: int) -> None:
    """So many messages were handled just now."""
    global _count, _first, _last
    with _lock:
        _last = time.monotonic()
        _first = _first or _last
        _count += count


def handled(some: list[str]) -> None:
    """These bodies were handled just now."""
    if WATCHING:
        now = time.monotonic()
        for text in some:
            say("seen", int(json.loads(text)["n"][:10]), now)
    add(len(some))


def finish() -> None:
    """Report what came to the end."""
    say("done", _count, _first, _last)


def _report() -> None:
    told = 0
    while True:
        time.sleep(_REPORT_SECONDS)
        if _count != told:
            told = _count
            finish()


def pauses(count: int) -> list[float]:
    """How long to wait before each message of a sender that is watched."""
    return [random.uniform(0.15, 0.35) for _ in range(count)]


def pace(send: Callable[[str], object], count: int) -> None:
    """Send a message now and then, each in a transaction, and note when its commit came back."""
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
