"""What a handler gets and may raise, and how one is found and run.

A handler is a function that takes one `Message`, or a list of them when its first parameter is annotated
`list[Message]` or `Sequence[Message]` or the function has a true attribute `batch`. It may be `async`. Returning means
done; `Retry`, `Discard` or any other exception is a failure of the message, or of all messages of a batch handler,
which may instead return `{message.id: exception}` for the messages that failed.
"""

import asyncio
import inspect
import json
import logging
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from . import tracing

log = logging.getLogger("rowqueue")

ERROR_LENGTH = 4_000
TEN_YEARS = 315_360_000
EX_DATAERR = 65


@dataclass(slots=True)
class Message:
    """One message as a handler gets it; times are UTC. `connection` is the driver's own under --transaction."""

    id: int
    type: str
    body: str
    headers: str | None
    priority: int
    group_key: str | None
    dedup_key: str | None
    attempt: int
    created_at: datetime
    source: str | None
    batch_key: Any
    lease_until: datetime | None
    connection: Any = None

    def as_json(self) -> str:
        """The message as one line of JSON; times are ISO 8601 in UTC."""
        values = {name: getattr(self, name) for name in _JSON_FIELDS}
        return json.dumps(values, ensure_ascii=False, default=plain)


class Retry(Exception):
    """Raised by a handler: try this message again, after `after` seconds (None: the queue's backoff).

    Raises ValueError for a negative `after`; more than ten years are ten years.
    """

    def __init__(self, reason: str = "", after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None and not after >= 0:
            raise ValueError(f"Retry: after is {after!r}; it must be 0 or more seconds")
        self.after = after


class Discard(Exception):
    """Raised by a handler: this message can never succeed; make it a dead letter now, with `reason` as its error."""


class HandlerError(Exception):
    """A handler that cannot be loaded or cannot be used in this way."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt: `retry_after` in seconds, None for the queue's backoff, -1 for dead now."""

    id: int
    retry_after: int | None
    error: str

    def line(self) -> str:
        """The failure as a line of finish_batch's list."""
        error = self.error
        if "\n" in error or error.startswith('"'):
            error = json.dumps(error, ensure_ascii=False)
        return f"{self.id},{'' if self.retry_after is None else self.retry_after},{error}"


def failure(message: Message, error: BaseException) -> Failure:
    """What an exception of a handler means for its message."""
    retry_after: int | None = None
    text = str(error)
    if isinstance(error, Discard):
        retry_after = -1
    elif isinstance(error, Retry):
        if error.after is not None:
            retry_after = math.ceil(min(error.after, TEN_YEARS))
    else:
        text = f"{type(error).__name__}: {text}"
    return Failure(message.id, retry_after, clean(text or type(error).__name__))


def clean(text: str) -> str:
    """An error as every database can keep it: no NUL, no lone surrogates, at most 4,000 characters."""
    return text[:ERROR_LENGTH].replace("\0", "").encode("utf-8", "replace").decode("utf-8")


@dataclass(slots=True)
class Handled:
    """What became of a batch: failures, messages never started, and an exception that must end the process."""

    failures: list[Failure] = field(default_factory=list)
    unstarted: list[Message] = field(default_factory=list)
    crash: BaseException | None = None

    def add(self, message: Message, error: BaseException | None) -> None:
        """Note the end of one attempt; an exception such as SystemExit leaves the message as not started."""
        if isinstance(error, Exception):
            self.failures.append(failure(message, error))
        elif error is not None:
            self.crash = error
            self.unstarted.append(message)


class Handler(ABC):
    """Runs batches, called by as many threads as there may be batches at the same time.

    One that `limits_itself` runs no more messages at once than allowed, however many threads call it.
    """

    is_async = False
    limits_itself = False

    @abstractmethod
    def run(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        """Handle the messages and note the outcome in `handled`; start none when `go_on` says no. Never raises."""

    def abort(self) -> None:  # noqa: B027  (most handlers hold nothing that outlives the process)
        """End what would outlive this process."""


class OneByOne(Handler):
    """Calls the function for each message, in order."""

    def __init__(self, function: Callable[[Message], Any]) -> None:
        self._function = function

    def run(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        for message in messages:
            if handled.crash or not go_on():
                handled.unstarted.append(message)
                continue
            try:
                with tracing.consuming(message):
                    self._function(message)
            except BaseException as error:
                handled.add(message, error)


class WholeBatch(Handler):
    """Calls the function once with the list of messages."""

    def __init__(self, function: Callable[[list[Message]], Any]) -> None:
        self._function = function

    def run(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        if not go_on():
            handled.unstarted.extend(messages)
            return
        try:
            with tracing.consuming(*messages):
                _note_batch(messages, handled, self._function(list(messages)))
        except BaseException as error:
            for message in messages:
                handled.add(message, error)


def _note_batch(messages: Sequence[Message], handled: Handled, failed: Any) -> None:
    """Read what a batch handler returned: nothing, or the exceptions of the messages that failed, by id."""
    if not failed:
        return
    if not isinstance(failed, Mapping):
        raise TypeError(f"a batch handler returns None or {{message id: exception}}, not {type(failed).__name__}")
    by_id = {message.id: message for message in messages}
    if strange := failed.keys() - by_id.keys():
        raise ValueError(f"a batch handler returned message id {strange.pop()!r}, which is not in its batch")
    for id, error in failed.items():
        handled.add(by_id[id], error if isinstance(error, Exception) else Retry(str(error)))


class Loop:
    """One event loop in a thread of its own, for all async handlers of the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="asyncio", daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine to its end, from another thread."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


class AsyncOneByOne(Handler):
    """Awaits the function for the messages of all batches, at most `concurrency` at the same time."""

    is_async = True
    limits_itself = True

    def __init__(self, function: Callable[[Message], Coroutine[Any, Any, Any]], concurrency: int) -> None:
        self._function = function
        self._loop = Loop()
        self._free = asyncio.Semaphore(concurrency)

    def run(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        self._loop.run(self._all(messages, handled, go_on))

    async def _all(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        await asyncio.gather(*(self._one(message, handled, go_on) for message in messages))

    async def _one(self, message: Message, handled: Handled, go_on: Callable[[], bool]) -> None:
        async with self._free:
            if handled.crash or not go_on():
                handled.unstarted.append(message)
                return
            try:
                with tracing.consuming(message):
                    await self._function(message)
            except BaseException as error:  # kept from the loop, which SystemExit would end
                handled.add(message, error)


class AsyncWholeBatch(Handler):
    """Awaits the function once with the list of messages."""

    is_async = True

    def __init__(self, function: Callable[[list[Message]], Coroutine[Any, Any, Any]]) -> None:
        self._function = function
        self._loop = Loop()

    def run(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        if not go_on():
            handled.unstarted.extend(messages)
            return
        self._loop.run(self._all(messages, handled))

    async def _all(self, messages: Sequence[Message], handled: Handled) -> None:
        try:
            with tracing.consuming(*messages):
                _note_batch(messages, handled, await self._function(list(messages)))
        except BaseException as error:
            for message in messages:
                handled.add(message, error)


_JSON_FIELDS = [f.name for f in fields(Message) if f.name not in ("batch_key", "lease_until", "connection")]


class Command(Handler):
    """Runs `sh -c command` for each message, with the message as one line of JSON on its standard input.

    The environment holds RUNNER_MESSAGE_ID, RUNNER_MESSAGE_TYPE and RUNNER_MESSAGE_ATTEMPT. Exit status 0 means done,
    65 (EX_DATAERR) makes a dead letter, anything else is tried again; the last line of its standard error is the error.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, messages: Sequence[Message], handled: Handled, go_on: Callable[[], bool]) -> None:
        for message in messages:
            if not go_on():
                handled.unstarted.append(message)
                continue
            try:
                with tracing.consuming(message):
                    self._one(message)
            except Exception as error:
                handled.add(message, error)

    def _one(self, message: Message) -> None:
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


def _environment(message: Message) -> dict[str, str]:
    return {
        "RUNNER_MESSAGE_ID": str(message.id),
        "RUNNER_MESSAGE_TYPE": message.type,
        "RUNNER_MESSAGE_ATTEMPT": str(message.attempt),
    }


def plain(value: Any) -> str:
    """A value that JSON has no word for: times as ISO 8601 in UTC with Z, anything else as its text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def load(path: str, concurrency: int) -> Handler:
    """Import the handler `module:name` (the name may have dots). Raises HandlerError with the reason on one line."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise HandlerError(f"{path!r} is not of the form module:function")
    try:
        target: Any = import_module(module_name)
    except Exception as error:
        raise HandlerError(f"cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    for name in attribute.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            raise HandlerError(f"{module_name!r} has no {attribute!r}") from None
    if not callable(target) or inspect.isclass(target):
        raise HandlerError(f"{path!r} is not a function")
    if _takes_list(target):
        return AsyncWholeBatch(target) if _is_async(target) else WholeBatch(target)
    return AsyncOneByOne(target, concurrency) if _is_async(target) else OneByOne(target)


def _is_async(target: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def _takes_list(target: Callable[..., Any]) -> bool:
    """Does a handler take a list of messages: by its attribute `batch`, else by its first parameter's annotation."""
    if hasattr(target, "batch"):
        return bool(target.batch)
    try:
        parameters = list(inspect.signature(target, eval_str=True).parameters.values())
    except (NameError, TypeError, ValueError):  # an annotation that only a type checker can read
        parameters = list(inspect.signature(target).parameters.values())
    if not parameters:
        raise HandlerError(f"{getattr(target, '__qualname__', target)!r} takes no argument; a handler takes a message")
    annotation = parameters[0].annotation
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].startswith(("list[", "List[", "Sequence["))
    return (typing.get_origin(annotation) or annotation) in (list, Sequence)
