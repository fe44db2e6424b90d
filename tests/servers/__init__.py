"""Real servers for the tests: started as an unprivileged user, on a free port, in a folder of their own."""

import os
from collections.abc import Callable
from functools import cache

from .base import Server, Unavailable
from .firebird import ExternalFirebird, LocalFirebird
from .mysql import ExternalMySQL, LocalMySQL
from .postgresql import ExternalPostgreSQL, LocalPostgreSQL
from .sqlserver import ExternalSQLServer

# The newest version of each product is last.
_LOCAL: dict[str, Callable[[], Server]] = {
    "postgresql-15": lambda: LocalPostgreSQL(15),
    "postgresql-18": lambda: LocalPostgreSQL(18),
    "mariadb-10.11": lambda: LocalMySQL("mariadb-10.11"),
    "mariadb-11.8": lambda: LocalMySQL("mariadb-11.8"),
    "mysql-9": lambda: LocalMySQL("mysql-9"),
    "firebird-3.0": lambda: LocalFirebird("firebird-3.0"),
    "firebird-4.0": lambda: LocalFirebird("firebird-4.0"),
    "firebird-5.0": lambda: LocalFirebird("firebird-5.0"),
}
# A server that the user names takes the place of those of its product that we would start.
_EXTERNAL: dict[str, Callable[[str, str], Server]] = {
    "postgresql": ExternalPostgreSQL,
    "mariadb": ExternalMySQL,
    "mysql": ExternalMySQL,
    "firebird": ExternalFirebird,
    "sqlserver": ExternalSQLServer,
}


def product(name: str) -> str:
    """The product of a server: `postgresql` for `postgresql-15`."""
    return name.partition("-")[0]


def dsn(product: str) -> str | None:
    """URL of a server the user supplies; its account may create databases and roles."""
    return os.environ.get(f"TEST_DSN_{product.upper()}") or None


@cache
def names() -> tuple[str, ...]:
    """The servers that the suite runs on."""
    local = [name for name in _LOCAL if not dsn(product(name))]
    external = [f"{product}-dsn" for product in _EXTERNAL if dsn(product)]
    return (*local, *external)


def engine(name: str) -> str:
    """The engine whose SQL a server runs: MariaDB runs that of MySQL."""
    return "mysql" if product(name) == "mariadb" else product(name)


@cache
def newest(kind: Callable[[str], str]) -> tuple[str, ...]:
    """The newest server of each product or engine that the suite runs on."""
    return tuple({kind(name): name for name in names()}.values())


def make(name: str) -> Server:
    """The server with this name, not started. Raises Unavailable when its programs are missing."""
    if name in _LOCAL:
        return _LOCAL[name]()
    url = dsn(product(name))
    assert url
    return _EXTERNAL[product(name)](name, url)


def external(url: str) -> Server:
    """The server of a URL. Raises ValueError for an unknown product."""
    scheme = url.partition("://")[0]
    if scheme not in _EXTERNAL:
        raise ValueError(f"--database: must begin with one of {', '.join(f'{known}://' for known in _EXTERNAL)}")
    return _EXTERNAL[scheme](f"{scheme}-dsn", url)


__all__ = ["Server", "Unavailable", "engine", "external", "make", "names", "newest", "product"]
