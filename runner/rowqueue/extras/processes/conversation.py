"""One worker process: reads messages from standard input and writes answers to standard output, one JSON per line."""

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ...messages import TEN_YEARS, DeadLetter, Item, Message, Retry
from ..rows import Record
from .groups import CANNOT_START, TERM_SECONDS, Tail, end_group, environment, how_ended, kill_group

PROTOCOL = "1"
LONGEST_LINE = 1 << 20
SHOWN = 200  # characters of an invalid line that the error shows
TAIL = 2_048
_CHUNK = 65_536
_LINE_ENDS = {"\x85", "\u2028", "\u2029"}
_LOOK = 0.2  # seconds between two checks whether a silent process has ended: its children may keep its pipes open
_LAST_WORDS = 0.5  # seconds to read the standard error of a process that has ended


class Broken(Exception):
    """The process ended or broke the protocol. The text is the error of the message that caused it.

    `started` is false when the command could not be started.
    """

    def __init__(self, reason: str, started: bool = True) -> None:
        super().__init__(reason)
        self.started = started


class _Rubbish(Exception):
    """A line that is not an answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a worker asks about a message that it handles. `step`, `value`: those of save_step."""

    id: int
    name: str
    step: str = ""
    value: Any = None

    @classmethod
    def of(cls, id: int, value: dict[str, Any]) -> "Question | None":
        """The question in a line; None when it is an answer. Raises _Rubbish."""
        for name in ("get_steps", "get_cancelled"):
            if name in value:
                return cls(id, name)
        if "save_step" not in value:
            return None
        if not isinstance(value["save_step"], str):
            raise _Rubbish("has a save_step that is not the name of a step")
        return cls(id, "save_step", value["save_step"], value.get("value"))


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one message. `error`: None when it is done. `snooze`: seconds for which it is put back."""

    id: int
    error: Exception | None
    result: Any
    snooze: float | None = None

    @classmethod
    def of(cls, line: bytes) -> "Answer | Question":
        """Parse a line. Raises _Rubbish."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise _Rubbish("is not JSON") from None
        id = value.get("id") if isinstance(value, dict) else None
        if type(id) is not int:
            raise _Rubbish("is not an object with a number as its id")
        if (question := Question.of(id, value)) is not None:
            return question
        if "snooze_seconds" in value:
            seconds = value["snooze_seconds"]
            if type(seconds) not in (int, float) or not 0 <= seconds <= TEN_YEARS or len(value) > 2:
                raise _Rubbish("has a snooze_seconds that is not a number from 0 to ten years, or more than that")
            return cls(id, None, None, seconds)
        error, after, dead = value.get("error"), value.get("retry_after_seconds"), value.get("dead")
        if not isinstance(error, str | None) or dead not in (None, 0, 1):
            raise _Rubbish("has an error that is not a text, or a dead that is not 0 or 1")
        if dead:
            return cls(id, DeadLetter(error or "dead"), None)
        if after is not None and (error is None or type(after) not in (int, float) or not after >= 0):
            raise _Rubbish("has a retry_after_seconds without an error, or one that is not a number from 0")
        failure = None if error is None else Retry(error or "failed", after)
        return cls(id, failure, value.get("result"))


class Conversation:
    """Starts the command and exchanges batches with it, one after the other, from one thread. Raises Broken."""

    def __init__(self, command: Sequence[str], timeout: float | None) -> None:
        self._timeout = timeout
        self._buffer = b""
        self.has_answered = False
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment(ROWQUEUE_PROTOCOL=PROTOCOL),
                start_new_session=True,  # Ctrl-C on the terminal reaches only the runner
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL in the command
            raise Broken(f"the worker cannot be started: {error}", started=False) from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._tail = Tail(self._stderr.fileno(), TAIL)
        self._quiet = threading.Event()  # stop copying standard error
        self._listener = threading.Thread(target=self._listen, name="worker-stderr", daemon=True)
        self._listener.start()

    # ---- a batch -------------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Whether it still runs and wrote nothing after the last batch; otherwise it is ended."""
        if self._process.poll() is None:
            with suppress(BlockingIOError):
                self._buffer += os.read(self._stdout.fileno(), _CHUNK)
                self.kill()
                return False
            if not self._buffer:
                return True
        self.kill()
        return False

    def exchange(
        self, messages: Sequence[Item], note: Callable[[Answer], None], reply: Callable[[Question], str]
    ) -> None:
        """Write the messages, pass each answer to `note`, and write each reply, until all are answered."""
        waiting = {message.id for message in messages}
        outgoing = _Outgoing(self._stdin.fileno(), messages)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stdin, selectors.EVENT_WRITE)
            deadline = self._deadline()
            while waiting:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._end(f"timed out after {self._timeout:g} s" if not outgoing.refused else "closed its stdin")
                events = {key.fileobj for key, _ in selector.select(min(left, _LOOK))}
                if self._stdin in events and not outgoing.write():
                    selector.unregister(self._stdin)
                    if outgoing.refused:  # it may be ending, or still have answers to write
                        deadline = min(deadline, time.monotonic() + TERM_SECONDS)
                if self._stdout in events or (not events and self._process.poll() is not None):
                    is_open = self._receive()
                    questions: list[Question] = []
                    if self._take_answers(waiting, note, questions) and not outgoing.refused:
                        deadline = self._deadline()
                    if questions and outgoing.reply(map(reply, questions)):
                        selector.register(self._stdin, selectors.EVENT_WRITE)
                    if waiting and not is_open:
                        self._end_of_file()
        if self._buffer:
            self._end(f"wrote something after its last answer: {_shown(self._buffer)}")

    def _deadline(self) -> float:
        return float("inf") if self._timeout is None else time.monotonic() + self._timeout

    def _receive(self) -> bool:
        """Read the available output; False at its end."""
        try:
            data = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return self._process.poll() is None
        self._buffer += data
        return bool(data)

    def _take_answers(self, waiting: set[int], note: Callable[[Answer], None], questions: list[Question]) -> bool:
        """Pass complete answers to `note` and add the questions; returns whether there were any lines."""
        *lines, self._buffer = self._buffer.split(b"\n")
        for number, line in enumerate(lines):
            try:
                if not waiting:  # the batch has ended; the caller reports further output
                    self._buffer = b"\n".join([*lines[number:], self._buffer])
                    return True
                if len(line) > LONGEST_LINE:
                    raise _Rubbish("is longer than 1 MB")
                answer = Answer.of(line)
                if answer.id not in waiting:
                    raise _Rubbish("has the id of no unanswered message")
            except _Rubbish as rubbish:
                self._end(f"wrote a line that {rubbish}: {_shown(line)}")
            self.has_answered = True
            if isinstance(answer, Question):
                questions.append(answer)
            else:
                waiting.discard(answer.id)
                note(answer)
        if len(self._buffer) > LONGEST_LINE:
            self._end(f"wrote a line that is longer than 1 MB: {_shown(self._buffer)}")
        return bool(lines)

    # ---- the end -------------------------------------------------------------------------------------

    def _end_of_file(self) -> None:
        """Handle a process that ended, or closed its standard output, before it answered all messages."""
        try:
            status = self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            self._end("closed its stdout")
            return
        self._listener.join(_LAST_WORDS)
        last = self._tail.text()
        self.kill()
        how = f"the worker ended: {how_ended(status)}"
        text = f"{how}: {last}" if last else how
        raise Broken(text, self.has_answered or status not in CANNOT_START)

    def _end(self, reason: str) -> None:
        end_group(self._process, self._process.pid)
        self._close()
        raise Broken(reason if reason.startswith("timed out") else f"the worker {reason}")

    def kill(self) -> None:
        """End it and its children at once. Another thread may call this."""
        kill_group(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def hang_up(self) -> None:
        """Close its standard input, on which a worker process ends."""
        self._stdin.close()

    def leave(self, until: float) -> None:
        """Let it end by itself until `until`, a time of the monotonic clock; then end it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(until - time.monotonic(), 0))
            self._listener.join(_LAST_WORDS)
        if self._process.returncode is None:
            end_group(self._process, self._process.pid)
        self._close()

    def _close(self) -> None:
        self._quiet.set()
        self._stdin.close()
        self._stdout.close()

    def _listen(self) -> None:
        """Copy standard error until its end. Runs as a thread."""
        with self._stderr, selectors.DefaultSelector() as selector:
            selector.register(self._stderr, selectors.EVENT_READ)
            while not self._quiet.is_set():
                if selector.select(_LOOK) and not self._tail.read():
                    return
            self._tail.read()


class _Outgoing:
    """Messages and replies to write to a non-blocking pipe. `refused`: the reader has closed it."""

    def __init__(self, fd: int, messages: Iterable[Item]) -> None:
        self._fd = fd
        self._lines: Iterator[str] = map(worker_line, messages)
        self._is_empty = False
        self._data = memoryview(b"")
        self.refused = False

    def write(self) -> bool:
        """Write as much as the pipe accepts; False when nothing is left to write."""
        if not self._data:
            self._data = memoryview(self._next())
        self._is_empty = not self._data
        if self._is_empty:
            return False
        try:
            self._data = self._data[os.write(self._fd, self._data) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.refused = True
            return False
        return True

    def _next(self) -> bytes:
        """The next lines, but not all of them: together they may be large."""
        lines: list[bytes] = []
        size = 0
        while size < _CHUNK and (line := next(self._lines, None)) is not None:
            lines.append(line.encode("utf-8", "backslashreplace") + b"\n")
            size += len(lines[-1])
        return b"".join(lines)

    def reply(self, lines: Iterable[str]) -> bool:
        """Write these before further messages. Whether there was nothing to write until now."""
        self._lines = chain([*lines], self._lines)
        was_empty, self._is_empty = self._is_empty and not self.refused, False
        return was_empty


def _shown(line: bytes) -> str:
    """The beginning of a line, for an error text."""
    return line[: 4 * SHOWN].decode("utf-8", "replace")[:SHOWN]


def worker_line(item: Item) -> str:
    """An item as a worker process receives it: the line of `as_json`, with headers as an object and always an id."""
    if isinstance(item, Message):
        line = item.as_json(_object(item.headers))
    elif isinstance(item, Record):
        line = f'{{"id": {item.id}, {item.as_json()[1:]}'
    else:
        line = item.as_json()
    return _one_line(line)


def reply_line(**values: Any) -> str:
    """A reply as a worker process receives it."""
    return _one_line(json.dumps(values, ensure_ascii=False))


def _one_line(line: str) -> str:
    """JSON without the characters at which some languages also end a line: in its strings, an escape means the same."""
    for end in _LINE_ENDS & set(line):
        line = line.replace(end, f"\\u{ord(end):04x}")
    return line


def _object(headers: str | None) -> str | None:
    """Headers that are a JSON object, as one line with all digits; None for anything else."""
    try:
        if headers and isinstance(json.loads(headers, parse_constant=_no_number), dict):
            return headers.replace("\n", " ").replace("\r", " ")  # JSON has them only between values
    except (ValueError, RecursionError):
        pass
    return None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
