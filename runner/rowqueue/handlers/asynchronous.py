"""Handlers that are coroutine functions."""

import asyncio
import concurrent.futures
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

from .. import tracing
from ..messages import Item
from ..shutdown import LOOK
from .base import GoOn, Handled, Handler, refresh_connections
from .synchronous import note_batch

log = logging.getLogger("rowqueue")


class Loop:
    """One event loop in a thread of its own, shared by all async handlers of the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._is_over = False
        self._thread = threading.Thread(target=self._serve, name="asyncio", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # A handler may stop the loop, and SystemExit in a task or callback of its own ends it: others wait for it.
        while not self._is_over:
            try:
                self._loop.run_forever()
            except BaseException as error:
                log.warning("a task of the handler raised %s: %s", type(error).__name__, error)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> bool:
        """Run a coroutine and wait for its end; called from other threads. False: it was cancelled before it began."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        while not future.done():  # in a feed's consumer, the main thread waits here
            concurrent.futures.wait([future], LOOK)
        if future.cancelled():
            return False
        future.result()
        return True

    def close(self) -> None:
        """End the thread; call it when no coroutine runs. A second call does nothing."""
        if self._loop.is_closed():
            return
        self._is_over = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _to_the_end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for tasks, even if a handler cancels every task of the loop and so this one."""
    while not all(task.done() for task in tasks):
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks)


async def _refresh_connections() -> None:
    """As `refresh_connections`, in the thread in which Django's models work for async code."""
    if "django.db" in sys.modules:
        from asgiref.sync import sync_to_async

        await sync_to_async(refresh_connections)()


class AsyncOneByOne(Handler):
    """Awaits the function for the messages of all batches, at most `concurrency` at the same time."""

    is_async = True
    limits_itself = True

    def __init__(self, function: Callable[[Item], Coroutine[Any, Any, Any]], concurrency: int) -> None:
        self._function = function
        self._loop = Loop()
        self._free = asyncio.Semaphore(concurrency)

    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        if not self._loop.run(self._all(messages, handled, go_on)):
            handled.unstarted.extend(messages)

    def close(self, seconds: float = 0.0) -> None:
        self._loop.close()

    async def _all(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        around = tracing.for_each()
        noted: set[int] = set()

        def note(message: Item, task: "asyncio.Task[bool]") -> None:
            if message.id in noted:
                return
            noted.add(message.id)
            if task.cancelled():  # before it began, or by itself just before its end
                handled.add_all([message], asyncio.CancelledError())
            elif task.result():
                handled.add(message, None)

        tasks = [asyncio.create_task(self._one(message, handled, go_on, around)) for message in messages]
        running = {message.id: task for message, task in zip(messages, tasks, strict=True)}
        loop = asyncio.get_running_loop()
        handled.cancel = lambda message: loop.call_soon_threadsafe(running[message.id].cancel)
        for message, task in zip(messages, tasks, strict=True):
            task.add_done_callback(partial(note, message))
        await _to_the_end(tasks)
        for message, task in zip(messages, tasks, strict=True):
            note(message, task)

    async def _one(
        self,
        message: Item,
        handled: Handled,
        go_on: GoOn,
        around: Callable[[Item], AbstractContextManager[object]],
    ) -> bool:
        """Handle a message; whether it was handled without an error."""
        try:
            async with self._free:
                if not go_on(message):
                    handled.unstarted.append(message)
                    return False
                await _refresh_connections()
                with around(message):
                    handled.returned(message, await self._function(message))
                await _refresh_connections()
        except BaseException as error:  # SystemExit would end the loop
            handled.add(message, error)
            return False
        return True


class AsyncWholeBatch(Handler):
    """Awaits the function once with the list of messages."""

    is_async = True
    takes_list = True

    def __init__(self, function: Callable[[list[Item]], Coroutine[Any, Any, Any]]) -> None:
        self._function = function
        self._loop = Loop()

    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        if not go_on(messages[0]) or not self._loop.run(self._all(messages, handled)):
            handled.unstarted.extend(messages)

    def close(self, seconds: float = 0.0) -> None:
        self._loop.close()

    async def _all(self, messages: Sequence[Item], handled: Handled) -> None:
        task = asyncio.create_task(self._whole(messages, handled))
        await _to_the_end([task])
        if task.cancelled():
            handled.add_all(messages, asyncio.CancelledError())

    async def _whole(self, messages: Sequence[Item], handled: Handled) -> None:
        try:
            await _refresh_connections()
            with tracing.consuming(*messages, is_batch=True, failures=handled.failures):
                note_batch(messages, handled, await self._function(list(messages)))
            await _refresh_connections()
        except BaseException as error:
            handled.add_all(messages, error)
