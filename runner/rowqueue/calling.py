"""The functions that an application calls: each makes one procedure call, in the transaction of its connection.

`connection` is a driver's connection, a Connection or Session of SQLAlchemy, or Django's `connection`.
docs/languages/python.md lists the drivers. The functions never commit, never roll back, and change no setting of the
connection. They raise QueueError, Conflict, Disconnected and the other exceptions of `rowqueue`, and TypeError for an
unknown connection.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import requests, tracing
from .databases import Row, applications
from .requests import Request, Sent

P = ParamSpec("P")
T = TypeVar("T")


def with_connection(function: Callable[..., Any], request: Callable[..., Any]) -> None:
    """Give `function` the signature of `request`, with the connection as its first parameter."""
    signature = inspect.signature(request)
    connection = inspect.Parameter("connection", inspect.Parameter.POSITIONAL_ONLY, annotation=Any)
    parameters = [connection, *signature.parameters.values()]
    [returns] = signature.return_annotation.__args__
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=returns
    )


def read(asked: Request[T], rows: list[Row], span: Any) -> T:
    """The result of a call. Its span gets the id of the sent message, or how many were sent."""
    result = asked.read(rows)
    if span is not None and isinstance(result, Sent):
        span.id = result.id
    elif span is not None and isinstance(result, int):
        span.count = result
    return result


def _calling(request: Callable[P, Request[T]]) -> Callable[Concatenate[Any, P], T]:
    @wraps(request)
    def function(connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with tracing.sending(request.__name__, args, kwargs) as span:
            asked = request(*args, **kwargs)
            return read(asked, applications.call(connection, asked.procedure, asked.arguments), span)

    function.__module__ = "rowqueue"
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
