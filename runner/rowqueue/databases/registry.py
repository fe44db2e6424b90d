"""Finds the package that serves a URL, or a connection of a driver, and loads the driver only then."""

from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path

from .base import Database

# The scheme of a URL, and the package of this folder.
_PACKAGES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "firebird": "firebird",
    "sqlserver": "sqlserver",
    "mssql": "sqlserver",
}

# The first package of a driver's module, and the package of this folder that knows it.
DRIVERS = {
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pymysql": "mysql",
    "MySQLdb": "mysql",
    "mysql": "mysql",
    "pymssql": "sqlserver",
    "firebird": "firebird",
}
ASYNC_DRIVERS = {"psycopg": "postgresql", "aiomysql": "mysql", "asyncmy": "mysql"}


def open_database(url: str) -> Database:
    """The database a URL names. Raises ValueError for a scheme that nobody serves, or whose driver is not installed."""
    scheme = url.partition("://")[0]
    name = _PACKAGES.get(scheme)
    if name is not None:
        try:
            made = import_module(f"{__package__}.{name}").DATABASE
        except ModuleNotFoundError as error:
            lack = f"database URL: {scheme} needs {error.name}: pip install 'rowqueue[{name}]'"
            raise ValueError(lack) from None
        database = made(url)
        assert isinstance(database, Database)
        return database
    known = ", ".join(sorted(_PACKAGES))
    raise ValueError(f"database URL: unknown scheme {scheme!r}; known: {known}")


def open_embedded(data_dir: Path | None = None) -> AbstractContextManager[Database]:
    """A database of our own for users without a server, kept in `data_dir` (None: the user's data directory).

    Started on entry, shared with other processes that ask for it, stopped when the last of them ends.
    Raises DatabaseError when it cannot be started or is not installed.
    """
    embedded = import_module(f"{__package__}.postgresql").embedded
    context: AbstractContextManager[Database] = embedded(data_dir)
    return context
