"""What the packages of the databases share beside URLs, values and migrations: errors, and the runner's transaction."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar, TypeVar

from .base import Conflict, DatabaseError, Disconnected, QueueError

# A dead peer is noticed within about a minute.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
_CONTRACT = range(50001, 51000)
_DEEPEST = 20  # of the exceptions that stand behind one

Translating = Callable[[], AbstractContextManager[None]]


def is_of_contract(number: int) -> bool:
    """Whether a server's error is one of the contract's."""
    return number in _CONTRACT


def translating(errors: type[Exception], translate: Callable[[Exception], Exception]) -> Translating:
    """A context manager out of which a driver's errors come as ours."""

    @contextmanager
    def translated() -> Iterator[None]:
        try:
            yield
        except errors as error:
            raise translate(error) from error

    return translated


def telling(errors: type[Exception], translate: Callable[[Exception], Exception]) -> Translating:
    """A context manager for the block of a transaction. It raises what stands behind the block's exception, if that is
    a conflict of one of its statements or a lost connection: it is not the failure of a handler.
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
    """Let an error of a statement tell the SQL file that it stands in."""
    try:
        yield
    except (DatabaseError, QueueError) as error:
        text = f"{name}.sql: {error}"
        renamed = QueueError(error.number, text) if isinstance(error, QueueError) else type(error)(text)
        raise renamed from error.__cause__


def lock_held(seconds: int) -> Conflict:
    """The error of an installer who has waited for another one."""
    return Conflict(f"another installation runs in this database; gave up after {seconds} s")


def keep_alive(connected: socket.socket) -> None:
    """Let the system notice when a peer is gone."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Guarded(ABC):
    """A connection that leaves the runner's transaction to the runner; the driver's own class comes after it.

    It does not go on in a transaction that has ended before its block: the server rolls back the whole of it after a
    deadlock, for one. What a handler that swallows the error does next would commit by itself, statement by statement,
    while the messages it was done for come back.
    """

    _guarded = False
    _refusal: ClassVar[type[Exception]]  # the driver's error for what nobody may do

    @abstractmethod
    def guard(self) -> None:
        """Begin a transaction and watch over it."""

    @abstractmethod
    def check(self) -> None:
        """Raise the driver's error unless the transaction of the block is there."""

    @abstractmethod
    def undo(self) -> None:
        """Roll back, if there is a transaction; never raises."""

    @abstractmethod
    def end(self) -> None:
        """Commit."""

    def ended(self) -> Exception | None:
        """Our error for the conflict, or the lost connection, by which the server has ended the transaction."""
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
    """A transaction that nobody else ends."""
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
        # What a handler makes of a conflict that one of its own statements met is not its failure.
        if ended is not None and not isinstance(error, DatabaseError | QueueError):
            raise ended from error
        raise
    connection._guarded = False
    with translated():
        connection.end()


def refusal(what: str) -> str:
    """Why a handler's own begin(), commit() or rollback() is refused."""
    return f"{what}() inside the runner's transaction: it is the runner that ends it"


ENDED = "a statement inside the transaction has ended it"
SWALLOWED = "a statement failed inside the transaction and its error was swallowed"
