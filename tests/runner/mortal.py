"""A handler for a test: orders.handle of examples/order_steps. Order 17 is killed once, at line 17 of that file."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import orders
import rowqueue

KILLED = Path(os.environ["SHOP_FOLDER"])


def handle(message: rowqueue.Message) -> None:
    number = json.loads(message.body)["number"]
    mark = KILLED / f"killed at {number}"

    def trace(frame: Any, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != orders.__file__:
            return None
        if event == "line" and frame.f_lineno == number and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    try:
        orders.handle(message)
    finally:
        sys.settrace(None)
