"""Shared by the engines: translating errors, and guarding the runner's transaction."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar, TypeVar

from .base import Conflict, DatabaseError, Disconnected, QueueError

# TCP keep-alive: a dead peer is detected within about a minute.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
_CONTRACT = range(50001, 51000)
_DEEPEST = 20  # the longest chain of causes that is searched

Translating = Callable[[], AbstractContextManager[None]]


def is_of_contract(number: int) -> bool:
    """Whether the number of a server's error is one of the contract."""
    return number in _CONTRACT


def translating(errors: type[Exception], translate: Callable[[Exception], Exception]) -> Translating:
    """A context manager that turns a driver's errors into exceptions of this package."""

    @contextmanager
    def translated() -> Iterator[None]:
        try:
            yield
        except errors as error:
            raise translate(error) from error

    return translated


def telling(errors: type[Exception], translate: Callable[[Exception], Exception]) -> Translating:
    """A context manager for the block of a transaction.

    If the cause of the block's exception is a conflict or a lost connection, it raises that: the handler did not fail.
    """

    @contextmanager
    def told() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            cause: BaseException | None = None if isinstance(error, DatabaseError | QueueError) else error
            for _ in range(_DEEPEST):
                if cause is not None and not isinstance(cause, errors):
                    cause = cause.__cause__ or cause.__context__
            ours = translate(cause) if isinstance(cause, errors) else None
            if isinstance(ours, Conflict | Disconnected):
                raise ours from error
            raise

    return told


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Add the name of the SQL file to an error of one of its statements."""
    try:
        yield
    except (DatabaseError, QueueError) as error:
        text = f"{name}.sql: {error}"
        renamed = QueueError(error.number, text) if isinstance(error, QueueError) else type(error)(text)
        raise renamed from error.__cause__


def lock_held(seconds: int, holder: str = "another session") -> Conflict:
    """The error of an installation that waited too long for another one."""
    return Conflict(
        f"another installation is running in this database: {holder} holds its lock; gave up after {seconds} s"
    )


def keep_alive(connected: socket.socket) -> None:
    """Let the system detect a dead peer."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Guarded(ABC):
    """A mixin for a driver's connection: a handler can neither end the runner's transaction nor continue without it.

    A server may end a transaction before its block ends, for example after a deadlock. If a handler ignored the error,
    each of its later statements would commit by itself, and the messages would be retried. So they are refused.
    """

    _guarded = False
    _refusal: ClassVar[type[Exception]]  # the driver's error for a refused call

    @abstractmethod
    def guard(self) -> None:
        """Begin a transaction and guard it."""

    @abstractmethod
    def check(self) -> None:
        """Raise the driver's error unless the block's transaction is still open."""

    @abstractmethod
    def undo(self) -> None:
        """Roll back the transaction, if there is one. Never raises."""

    @abstractmethod
    def end(self) -> None:
        """Commit."""

    def ended(self) -> Exception | None:
        """The exception for the conflict or lost connection that ended the transaction on the server; None if none."""
        return None

    def commit(self) -> None:
        self._refuse("commit")
        super().commit()  # type: ignore[misc]

    def rollback(self) -> None:
        self._refuse("rollback")
        super().rollback()  # type: ignore[misc]

    def _refuse(self, what: str) -> None:
        if self._guarded:
            raise self._refusal(refusal(what))


G = TypeVar("G", bound=Guarded)


@contextmanager
def guarded(connection: G, translated: Translating, told: Translating) -> Iterator[G]:
    """A transaction that only this context manager ends."""
    with told(), _guarded(connection, translated):
        yield connection


@contextmanager
def _guarded(connection: G, translated: Translating) -> Iterator[G]:
    with translated():
        connection.guard()
    try:
        yield connection
        with translated():
            connection.check()
    except BaseException as error:
        ended = connection.ended() if isinstance(error, Exception) else None
        connection._guarded = False
        connection.undo()
        # A conflict in one of the handler's own statements is not the handler's failure, even if it raises another.
        if ended is not None and not isinstance(error, DatabaseError | QueueError):
            raise ended from error
        raise
    connection._guarded = False
    with translated():
        connection.end()


def refusal(what: str) -> str:
    """The error text for a handler's own begin(), commit() or rollback()."""
    return f"{what}() is not allowed inside the runner's transaction: the runner ends it"


ENDED = "a statement inside the transaction ended it"
SWALLOWED = "a statement failed inside the transaction and its error was swallowed"
