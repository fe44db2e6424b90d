"""What a handler has done of a message: kept in the database; the next attempt continues after it.

`message.steps` is a `Steps`. It calls the procedures of the area `steps`, on connections of the consumer's own, or on
one of the handler's, whose transaction then holds the work and its record.
"""

import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from ..databases import Cancelled, Row, Session, applications
from ..handlers.base import check_ran
from ..messages import Message, Snoozed

T = TypeVar("T")
PAUSE = 1.0  # seconds between two writes of the progress
Kept = dict[str, str | None]  # the values of steps as they are stored


class Steps:
    """The steps of one message. Values are what JSON can hold, and come back as JSON gives them, the first time too.

    `connection`: a connection of the handler's, as for `rowqueue.send`. The step is then kept if and only if its
    transaction is committed. Without it, the step is kept at once. The methods that begin with `a` are for async
    handlers. They raise LeaseLost when other consumers may have the message, and Cancelled when it was cancelled: let
    both pass.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._kept: Kept | None = None
        self._sleeps = 0
        self._told_at = -PAUSE

    def run(self, name: str, function: Callable[[], T], connection: Any = None) -> T:
        """The value of the step `name`: kept, or what `function` returns now, which is then kept."""
        kept = self._read(connection)
        if name not in kept:
            value = function()
            check_ran(value)
            return cast(T, self.save(name, value, connection))
        return cast(T, _value(kept[name]))

    def all(self, connection: Any = None) -> dict[str, Any]:
        """The kept values of all steps, in the order in which they were first kept."""
        return {name: _value(text) for name, text in self._read(connection).items()}

    def get(self, name: str, default: Any = None, connection: Any = None) -> Any:
        """The kept value of the step `name`; `default` if there is none."""
        kept = self._read(connection)
        return _value(kept[name]) if name in kept else default

    def save(self, name: str, value: Any = None, connection: Any = None) -> Any:
        """Keep `value` for the step `name`, in place of an earlier one, such as a position; returns it."""
        text = None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)
        self._save(name, text, connection)
        if connection is None and self._kept is not None:
            self._kept[name] = text
        return _value(text)

    def sleep(self, seconds: float) -> None:
        """Continue after `seconds`. If they are not over, put the message back until then and end the handler.

        The handler then begins again, and this call returns at once. Kept steps are not run again. No attempt counts.
        """
        self._sleeps += 1
        if self._sleep(f"sleep {self._sleeps}", seconds):
            raise Snoozed(self._message.id)

    def snooze(self, seconds: float, connection: Any = None) -> None:
        """Put the message back, due in `seconds`, and end the handler. No attempt is counted. Raises Snoozed."""
        self._snooze(math.ceil(seconds), connection)
        raise Snoozed(self._message.id)

    def progress(self, done: int, total: int | None = None, note: str | None = None) -> None:
        """Show how far the handler is: `done` of `total`, and what it does now, a text of up to 500 characters.

        Kept as the step `progress`. Call it as often as you like: it writes once a second at most, and when `done` is
        `total`.
        """
        now = time.monotonic()
        if done == total or now - self._told_at >= PAUSE:
            self._told_at = now
            self._progress(done, total, note)

    async def arun(self, name: str, function: Callable[[], Awaitable[T]]) -> T:
        """As `run`, with a coroutine function."""
        kept = await _in_thread(self._read, None)
        if name not in kept:
            return cast(T, await self.asave(name, await function()))
        return cast(T, _value(kept[name]))

    async def aget(self, name: str, default: Any = None) -> Any:
        """As `get`."""
        return await _in_thread(self.get, name, default)

    async def asave(self, name: str, value: Any = None) -> Any:
        """As `save`."""
        return await _in_thread(self.save, name, value)

    async def asleep(self, seconds: float) -> None:
        """As `sleep`."""
        await _in_thread(self.sleep, seconds)

    async def asnooze(self, seconds: float) -> None:
        """As `snooze`."""
        await _in_thread(self.snooze, seconds)

    async def aprogress(self, done: int, total: int | None = None, note: str | None = None) -> None:
        """As `progress`."""
        await _in_thread(self.progress, done, total, note)

    def _read(self, connection: Any) -> Kept:
        """All steps. Read once for the consumer's own connections; a transaction of the handler's may be undone."""
        if connection is not None:
            self._kept = None
            return self._load(connection)
        if self._kept is None:
            self._kept = self._load(None)
        return self._kept

    # ---- the calls

    def _load(self, connection: Any) -> Kept:
        return {row["step"]: row["step_value"] for row in self._call(connection, "get_steps")}

    def _save(self, name: str, text: str | None, connection: Any) -> None:
        self._call(connection, "save_step", name, text)

    def _progress(self, done: int, total: int | None, note: str | None) -> None:
        self._call(None, "set_progress", done, total, note)
        self._kept = None

    def _snooze(self, seconds: int, connection: Any) -> None:
        self._call(connection, "snooze", seconds)

    def _sleep(self, name: str, seconds: float) -> bool:
        """Put the message back until the time kept as `name`, first `seconds` from now; False if that is over."""
        until = self._read(None).get(name)

        def work(session: Session) -> bool:
            with session.transaction():
                now = session.now()
                ends = datetime.fromisoformat(until) if until else now + timedelta(seconds=seconds)
                left = math.ceil((ends - now).total_seconds())
                if left > 0:
                    session.call("save_step", self._message.id, self._message.batch_key, name, ends.isoformat())
                    session.call("snooze", self._message.id, self._message.batch_key, left)
                return left > 0

        with self._noting():
            return cast(bool, self._links().run(work))

    def _call(self, connection: Any, procedure: str, *more: Any) -> list[Row]:
        arguments = self._message.id, self._message.batch_key, *more
        with self._noting():
            if connection is not None:
                return applications.call(connection, procedure, arguments)
            return cast("list[Row]", self._links().run(lambda session: session.call(procedure, *arguments)))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note in the message that a call has found it cancelled."""
        try:
            yield
        except Cancelled:
            self._message.cancelled = True
            raise

    def _links(self) -> Any:
        if self._message.links is None:
            raise RuntimeError("message.steps: there is no consumer that holds a claim; pass the connection that does")
        return self._message.links


def _value(text: str | None) -> Any:
    """The value of a step. One that was kept by SQL may be a text that is not JSON."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    import asyncio  # slow to import

    return await asyncio.to_thread(function, *arguments)
