"""Waiting for what happens in another process or thread."""

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], what: str | Callable[[], str] = "", seconds: float = 150) -> Any:
    """Wait until a condition is true and return its value; fail with `what`."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what() if callable(what) else what}"
        time.sleep(0.02)
    return result
