"""What the packages of the databases share beside URLs, values and migrations: errors, and the runner's transaction."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from .base import Conflict, DatabaseError, QueueError

# A dead peer is noticed within about a minute.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
_CONTRACT = range(50001, 51000)


def is_of_contract(number: int) -> bool:
    """Whether a server's error is one of the contract's."""
    return number in _CONTRACT


def translating(
    errors: type[Exception], translate: Callable[[Exception], Exception]
) -> Callable[[], AbstractContextManager[None]]:
    """A context manager out of which a driver's errors come as ours."""

    @contextmanager
    def translated() -> Iterator[None]:
        try:
            yield
        except errors as error:
            raise translate(error) from error

    return translated


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


def refusal(what: str) -> str:
    """Why a handler's own begin(), commit() or rollback() is refused."""
    return f"{what}() inside the runner's transaction: it is the runner that ends it"


ENDED = "a statement inside the transaction has ended it"
SWALLOWED = "a statement failed inside the transaction and its error was swallowed"
