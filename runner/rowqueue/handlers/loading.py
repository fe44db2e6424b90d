"""Finds a handler by its name and decides how to call it."""

import inspect
import typing
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from .base import Handler, HandlerError
from .synchronous import OneByOne, WholeBatch


def load(path: str, concurrency: int) -> Handler:
    """Import the handler `module:name`; the name may have dots. Raises HandlerError with the reason on one line."""
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
    return of(target, concurrency, repr(path))


def of(target: Callable[..., Any], concurrency: int, name: str = "") -> Handler:
    """The handler that calls `target`. Raises HandlerError if that is not a function. `name`: for the error."""
    if not callable(target) or inspect.isclass(target):
        raise HandlerError(f"{name or repr(target)} is not a function")
    takes_list = _takes_list(target)
    if not (inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)):
        return WholeBatch(target) if takes_list else OneByOne(target)
    from .asynchronous import AsyncOneByOne, AsyncWholeBatch  # asyncio is slow to import

    return AsyncWholeBatch(target) if takes_list else AsyncOneByOne(target, concurrency)


def _takes_list(target: Callable[..., Any]) -> bool:
    """Whether a handler takes a list: by its attribute `batch`, else by the annotation of its first parameter."""
    if hasattr(target, "batch"):
        return bool(target.batch)
    try:
        parameters = list(inspect.signature(target, eval_str=True).parameters.values())
    except (NameError, TypeError, ValueError):  # an annotation that only a type checker can resolve
        parameters = list(inspect.signature(target).parameters.values())
    if not parameters:
        raise HandlerError(f"{getattr(target, '__qualname__', target)!r} takes no argument; a handler takes a message")
    annotation = parameters[0].annotation
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].startswith(("list[", "List[", "Sequence["))
    return (typing.get_origin(annotation) or annotation) in (list, Sequence)
