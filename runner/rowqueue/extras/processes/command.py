"""Handlers in any language: a shell command per message; see docs/languages/workers.md."""

import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from ... import tracing
from ...handlers.base import GoOn, Handled, Handler, HandlerError
from ...messages import DeadLetter, Item, Retry
from .groups import CANNOT_START, TERM_SECONDS, Tail, environment, how_ended, kill_group
from .guard import Guard

EX_DATAERR = 65
_TAIL = 65_536
_LOOK = 0.05  # seconds between two checks whether a silent command has ended: its children may keep the pipe open


class Command(Handler):
    """Runs `sh -c command` for each message, with the message as one line of JSON on its standard input.

    The environment has RUNNER_MESSAGE_ID, RUNNER_MESSAGE_TYPE and RUNNER_MESSAGE_ATTEMPT. Exit status 0 means done, 65
    (EX_DATAERR) dead-letters the message, 75 (EX_TEMPFAIL) and all others retry it. The last line of standard error is
    the error. 126 and 127 end the consumer: the shell uses them when it cannot start a command.
    """

    def __init__(self, command: str, timeout: float | None) -> None:
        self._command, self._timeout = command, timeout
        self._own = threading.local()  # a guard per thread
        self._guards: set[Guard] = set()

    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        for message in messages:
            if handled.crash or not go_on(message):
                handled.unstarted.append(message)
                continue
            try:
                with tracing.consuming(message):
                    self._one(message)
            except HandlerError as error:
                handled.crash = error
                handled.unstarted.append(message)
            except Exception as error:
                handled.add(message, error)
            else:
                handled.add(message, None)

    def _one(self, message: Item) -> None:
        guard = self._guard()
        # Standard input is a file, not a pipe: the child may write before it reads, or never read.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(f"{message.as_json()}\n".encode("utf-8", "backslashreplace"))
            stdin.seek(0)
            process = subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                stdin=stdin,
                stderr=subprocess.PIPE,
                env=_environment(message),
                process_group=guard.group,  # Ctrl-C on the terminal reaches only the runner; the child may finish
            )
        assert process.stderr is not None
        with process.stderr as stderr:
            tail = Tail(stderr.fileno(), _TAIL)
            is_late = not self._await(process, tail, message)
            if is_late:
                self._end(process, guard)
            tail.read()
        if is_late:
            raise Retry("cancelled" if _is_cancelled(message) else f"timed out after {self._timeout:g} s")
        _judge(process.returncode, tail.last_line())

    def _guard(self) -> Guard:
        """This thread's guard; a new one if it was killed."""
        guard: Guard | None = getattr(self._own, "guard", None)
        if guard is None or not guard.is_there():
            if guard is not None:
                self._guards.discard(guard)
                guard.kill()
            guard = self._own.guard = Guard()
            self._guards.add(guard)
        return guard

    def _await(self, process: "subprocess.Popen[bytes]", tail: Tail, message: Item) -> bool:
        """Wait until a child has ended, and copy its standard error; False after the timeout, or when cancelled."""
        deadline = float("inf") if self._timeout is None else time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            assert process.stderr is not None
            selector.register(process.stderr, selectors.EVENT_READ)
            while process.poll() is None and (left := deadline - time.monotonic()) > 0 and not _is_cancelled(message):
                if selector.get_map():
                    if selector.select(min(left, _LOOK)) and not tail.read():
                        selector.unregister(process.stderr)
                else:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(min(left, _LOOK))
        return process.poll() is not None

    def _end(self, process: "subprocess.Popen[bytes]", guard: Guard) -> None:
        """Send SIGTERM to the group, which the guard ignores; later SIGKILL to the rest of it."""
        kill_group(guard.group, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERM_SECONDS)
        guard.kill()
        process.wait()

    def close(self, seconds: float = 0.0) -> None:
        for guard in list(self._guards):
            guard.dismiss()

    def abort(self) -> None:
        self.aborted = True
        for guard in list(self._guards):
            guard.kill()


def _judge(status: int, last: str) -> None:
    """Raise the exception that an exit status and the last line of standard error mean."""
    if status == EX_DATAERR:
        raise DeadLetter(last or how_ended(status))
    if status in CANNOT_START:
        raise HandlerError(f"the command cannot be run: {how_ended(status)}{last and ': '}{last}")
    if status != 0:
        raise Retry(f"{how_ended(status)}: {last}" if last else how_ended(status))


def _is_cancelled(message: Item) -> bool:
    return getattr(message, "cancelled", False)


def _environment(message: Item) -> dict[str, str]:
    return environment(
        RUNNER_MESSAGE_ID=str(message.id),
        RUNNER_MESSAGE_TYPE=message.type,
        RUNNER_MESSAGE_ATTEMPT=str(message.attempt),
    )
