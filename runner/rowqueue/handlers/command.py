"""Handlers in any language: a shell command for each message."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from .. import tracing
from ..messages import Discard, Item, Retry
from .base import Handled, Handler

EX_DATAERR = 65


class Command(Handler):
    """Runs `sh -c command` for each message, with the message as one line of JSON on its standard input.

    The environment holds RUNNER_MESSAGE_ID, RUNNER_MESSAGE_TYPE and RUNNER_MESSAGE_ATTEMPT. Exit status 0 means done,
    65 (EX_DATAERR) makes a dead letter, anything else is tried again; the last line of its standard error is the error.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        for message in messages:
            if not go_on():
                handled.unstarted.append(message)
                continue
            try:
                with tracing.consuming(message):
                    self._one(message)
            except Exception as error:
                handled.add(message, error)

    def _one(self, message: Item) -> None:
        # A file, not a pipe, feeds the child: it may write before it has read, or never read.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(f"{message.as_json()}\n".encode())
            stdin.seek(0)
            process = subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                stdin=stdin,
                stderr=subprocess.PIPE,
                env=os.environ | _environment(message),
                start_new_session=True,  # Ctrl-C at the terminal is for the runner; the child may finish
            )
        self._running.add(process)
        try:
            assert process.stderr is not None
            with process.stderr as stderr:
                last = _pass_on(iter(lambda: stderr.readline(65_536), b""))
            status = process.wait()
        finally:
            self._running.discard(process)
        if status == EX_DATAERR:
            raise Discard(last or f"exit status {status}")
        if status != 0:
            how = f"exit status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"
            raise Retry(f"{how}: {last}" if last else how)

    def abort(self) -> None:
        for process in list(self._running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _pass_on(lines: Iterable[bytes]) -> str:
    """Copy a child's standard error to ours and return its last line that is not blank."""
    last = b""
    for line in lines:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        last = line.strip() or last
    return last.decode("utf-8", "replace")


def _environment(message: Item) -> dict[str, str]:
    return {
        "RUNNER_MESSAGE_ID": str(message.id),
        "RUNNER_MESSAGE_TYPE": message.type,
        "RUNNER_MESSAGE_ATTEMPT": str(message.attempt),
    }
