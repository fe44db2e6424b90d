"""The functions of `rowqueue` for async connections: `await rowqueue.aio.send(connection, …)`.

Names, arguments, results and errors are those of `rowqueue`. `connection` is a connection of an async driver, or an
AsyncConnection or AsyncSession of SQLAlchemy. docs/languages/python.md lists the drivers.
"""

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import requests, tracing
from .calling import note, with_connection
from .databases import applications
from .requests import Request

__all__ = [
    "claim",
    "claim_any",
    "complete",
    "count_attempt",
    "dead_letter",
    "extend_lease",
    "fail",
    "finish",
    "get_result",
    "publish",
    "send",
    "send_batch",
    "take",
]

P = ParamSpec("P")
T = TypeVar("T")


def _calling(request: Callable[P, Request[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    @wraps(request)
    async def function(connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with tracing.sending(request.__name__, args, kwargs) as span:
            asked = request(*args, **kwargs)
            result = asked.read(await applications.call_async(connection, asked.procedure, asked.arguments))
            if span is not None:
                note(span, result)
        return result

    function.__module__ = __name__
    with_connection(function, request, inspect.signature(request).return_annotation.__args__[0])
    return function


send = _calling(requests.send)
send_batch = _calling(requests.send_batch)
publish = _calling(requests.publish)
claim = _calling(requests.claim)
claim_any = _calling(requests.claim_any)
finish = _calling(requests.finish)
complete = _calling(requests.complete)
fail = _calling(requests.fail)
dead_letter = _calling(requests.dead_letter)
count_attempt = _calling(requests.count_attempt)
extend_lease = _calling(requests.extend_lease)
take = _calling(requests.take)
get_result = _calling(requests.get_result)
