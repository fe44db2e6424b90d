"""Handlers that are plain functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import tracing
from ..messages import Item, Retry, text_of
from .base import GoOn, Handled, Handler, check_ran, refresh_connections


class OneByOne(Handler):
    """Calls the function for each message, in order."""

    def __init__(self, function: Callable[[Item], Any]) -> None:
        self._function = function

    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        around, end = tracing.for_each(), handled.ended.append
        for message in messages:
            if handled.crash or not go_on(message):
                handled.unstarted.append(message)
                continue
            refresh_connections()
            try:
                with around(message):
                    handled.returned(message, self._function(message))
            except BaseException as error:
                handled.add(message, error)
            else:
                end(message)
            refresh_connections()


class WholeBatch(Handler):
    """Calls the function once with the list of messages."""

    takes_list = True

    def __init__(self, function: Callable[[list[Item]], Any]) -> None:
        self._function = function

    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        if not go_on(messages[0]):
            handled.unstarted.extend(messages)
            return
        refresh_connections()
        try:
            with tracing.consuming(*messages, is_batch=True, failures=handled.failures):
                note_batch(messages, handled, self._function(list(messages)))
        except BaseException as error:
            handled.add_all(messages, error)
        refresh_connections()


def note_batch(messages: Sequence[Item], handled: Handled, failed: Any) -> None:
    """Note what a batch handler returned: None, or the exceptions of failed messages by id."""
    check_ran(failed)
    if not failed:
        return
    if not isinstance(failed, Mapping):
        raise TypeError(f"a batch handler returns None or {{message id: exception}}, not {type(failed).__name__}")
    by_id = {message.id: message for message in messages}
    if strange := failed.keys() - by_id.keys():
        raise ValueError(f"a batch handler returned message id {strange.pop()!r}, which is not in its batch")
    for id, error in dict(failed).items():
        handled.add(by_id[id], error if isinstance(error, BaseException) else Retry(text_of(error)))
