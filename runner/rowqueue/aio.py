"""The functions of `rowqueue` for async connections: `await rowqueue.aio.send(connection, …)`.

Names, arguments, results and errors are those of `rowqueue`. `connection` is a connection of an async driver, or an
AsyncConnection or AsyncSession of SQLAlchemy. docs/languages/python.md lists the drivers.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Concatenate

from . import requests, tracing
from .calling import P, T, read, with_connection
from .databases import applications
from .requests import Request


def _calling(request: Callable[P, Request[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    @wraps(request)
    async def function(connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with tracing.sending(request.__name__, args, kwargs) as span:
            asked = request(*args, **kwargs)
            return read(asked, await applications.call_async(connection, asked.procedure, asked.arguments), span)

    function.__module__ = __name__
    with_connection(function, request)
    return function


send = _calling(requests.send)
send_batch = _calling(requests.send_batch)
publish = _calling(requests.publish)
claim_batch = _calling(requests.claim_batch)
claim_any = _calling(requests.claim_any)
finish_batch = _calling(requests.finish_batch)
finish_messages = _calling(requests.finish_messages)
complete = _calling(requests.complete)
complete_batch = _calling(requests.complete_batch)
release_batch = _calling(requests.release_batch)
fail = _calling(requests.fail)
dead_letter = _calling(requests.dead_letter)
count_attempt = _calling(requests.count_attempt)
extend_lease = _calling(requests.extend_lease)
take_batch = _calling(requests.take_batch)
cancel = _calling(requests.cancel)
get_state = _calling(requests.get_state)
get_result = _calling(requests.get_result)

__all__ = sorted(name for name, value in globals().items() if iscoroutinefunction(value))
