"""Real servers for the tests: started as an unprivileged user, on a free port, in a folder of their own."""

from collections.abc import Callable

from .base import Server, Unavailable
from .postgresql import ExternalPostgreSQL, LocalPostgreSQL

_KINDS: dict[str, Callable[[], Server]] = {
    "postgresql-15": lambda: LocalPostgreSQL(15),
    "postgresql-18": lambda: LocalPostgreSQL(18),
}


def names() -> list[str]:
    """The servers that the suite runs on: `TEST_DSN_POSTGRESQL` takes the place of those we would start."""
    return ["postgresql-dsn"] if ExternalPostgreSQL.wanted() else list(_KINDS)


def make(name: str) -> Server:
    """A server of that name, not started. Raises Unavailable when its programs are not there."""
    return ExternalPostgreSQL() if name == "postgresql-dsn" else _KINDS[name]()


__all__ = ["Server", "Unavailable", "make", "names"]
