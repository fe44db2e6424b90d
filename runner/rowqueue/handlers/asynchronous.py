"""Handlers that are coroutine functions."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .. import tracing
from ..messages import Item
from .base import Handled, Handler
from .synchronous import note_batch


class Loop:
    """One event loop in a thread of its own, shared by all async handlers of the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="asyncio", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine and wait for its end; called from other threads."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """End the thread; call it when no coroutine runs. A second call does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AsyncOneByOne(Handler):
    """Awaits the function for the messages of all batches, at most `concurrency` at the same time."""

    is_async = True
    limits_itself = True

    def __init__(self, function: Callable[[Item], Coroutine[Any, Any, Any]], concurrency: int) -> None:
        self._function = function
        self._loop = Loop()
        self._free = asyncio.Semaphore(concurrency)

    def run(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        self._loop.run(self._all(messages, handled, go_on))

    def close(self, seconds: float = 0.0) -> None:
        self._loop.close()

    async def _all(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        around = tracing.for_each()
        await asyncio.gather(*(self._one(message, handled, go_on, around) for message in messages))

    async def _one(
        self,
        message: Item,
        handled: Handled,
        go_on: Callable[[], bool],
        around: Callable[[Item], AbstractContextManager[object]],
    ) -> None:
        async with self._free:
            if handled.crash or not go_on():
                handled.unstarted.append(message)
                return
            try:
                with around(message):
                    handled.keep(message, await self._function(message))
            except BaseException as error:  # SystemExit would end the loop
                handled.add(message, error)


class AsyncWholeBatch(Handler):
    """Awaits the function once with the list of messages."""

    is_async = True
    takes_list = True

    def __init__(self, function: Callable[[list[Item]], Coroutine[Any, Any, Any]]) -> None:
        self._function = function
        self._loop = Loop()

    def run(self, messages: Sequence[Item], handled: Handled, go_on: Callable[[], bool]) -> None:
        if not go_on():
            handled.unstarted.extend(messages)
            return
        self._loop.run(self._all(messages, handled))

    def close(self, seconds: float = 0.0) -> None:
        self._loop.close()

    async def _all(self, messages: Sequence[Item], handled: Handled) -> None:
        try:
            with tracing.consuming(*messages, is_batch=True, failures=handled.failures):
                note_batch(messages, handled, await self._function(list(messages)))
        except BaseException as error:
            for message in messages:
                handled.add(message, error)
