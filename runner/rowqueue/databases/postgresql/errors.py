"""The meaning of the errors of PostgreSQL and psycopg."""

from collections.abc import Sequence
from typing import Any

import psycopg

from ...install import contract
from ..base import (
    Conflict,
    DatabaseError,
    Disconnected,
    QueueError,
    ReadOnly,
    TimedOut,
    not_allowed,
    not_installed,
    raised,
)
from ..guard import is_of_contract, telling, translating
from ..values import bits, invalid, problem_of_range, problem_of_text

_CONFLICTS = {"40001", "40P01", "55P03"}
_CANCELED = "57014"  # statement_timeout, or pg_cancel_backend
_DISCONNECTS = {"25P03", "25P04", "53300", "57P01", "57P02", "57P03", "57P04", "57P05"}
_READ_ONLY = "25006"  # a standby, or default_transaction_read_only
READ_ONLY_HINT = (
    "the server takes no changes: it is a standby, or default_transaction_read_only is on for it, the database or"
    " the role; with several hosts in the URL, target_session_attrs=read-write finds the one that takes them"
)
_BAD_VALUES = {"22003", "22007", "22008", "22021", "22P02", "22P05"}


def _state(error: BaseException) -> str:
    """The server's SQLSTATE, '' when there is none; psycopg 2 has another attribute for it."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or ""


def _is_a(error: BaseException, name: str) -> bool:
    """Whether an error is of this DB-API class, in any driver."""
    return any(kind.__name__ == name for kind in type(error).__mro__)


def line(error: BaseException) -> str:
    """The error text of the server or driver on one line."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return " ".join((primary or str(error)).split()) or type(error).__name__


def translate(error: Exception, closed: bool = False, procedure: str = "") -> Exception:
    """The exception of this package for a driver's error.

    `closed`: the error closed the connection. `procedure`: the one that was called. Who may not use its schema gets an
    error that does not name it.
    """
    state = _state(error)
    message = line(error)
    if state.isdigit() and is_of_contract(int(state)):
        return raised(int(state), message)
    lost = _is_a(error, "OperationalError") and not state
    if closed or lost or state in _DISCONNECTS or state.startswith("08"):
        return Disconnected(message)
    if state == _CANCELED:
        return TimedOut(message)
    # An upgrade has replaced or dropped the function while the call was being planned: the next call shows which.
    if state in _CONFLICTS or (state == "XX000" and message.startswith("cache lookup failed for function")):
        return Conflict(message)
    if state == _READ_ONLY:
        return ReadOnly(f"{READ_ONLY_HINT} ({message})")
    if state == "3F000" or (state in {"42883", "42P01"} and "mq." in message):
        return not_installed(message)
    if state == "42501":
        called = procedure if message == "permission denied for schema mq" else ""
        return not_allowed(message, r"permission denied for function (\w+)", "GRANT {} TO …", called)
    return DatabaseError(message)


def bad_argument(error: Exception, procedure: str, arguments: Sequence[Any]) -> QueueError | None:
    """invalid_argument for a value that its type cannot hold, so it never reached the procedure."""
    state = _state(error)
    # A DataError without SQLSTATE is the driver's own: the value did not reach the server.
    local = isinstance(error, ValueError | OverflowError) or (_is_a(error, "DataError") and not state)
    if not local and state not in _BAD_VALUES:
        return None
    reason = line(error)
    for argument, value in zip(contract.load().procedures[procedure].arguments, arguments, strict=False):
        problem = None
        if isinstance(value, str):
            problem = problem_of_text(value)
        elif isinstance(value, int):
            problem = problem_of_range(value, bits("postgresql", argument))
        if problem:
            return invalid(argument.name, problem)
    return QueueError(50002, f"invalid_argument: {reason}")


translated, told = translating(psycopg.Error, translate), telling(psycopg.Error, translate)
