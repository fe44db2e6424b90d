"""Finds the engine for a URL or for a driver's connection, and imports the driver only then."""

import re
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path

from .base import Database
from .url import check, reading

# URL schemes and the packages of this folder.
_PACKAGES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "firebird": "firebird",
    "sqlserver": "sqlserver",
    "mssql": "sqlserver",
}

# A URL in another text, to its end: where a password ends is not known.
_QUOTED = re.compile(rf"\b((?:{'|'.join(_PACKAGES)}):).*", re.S)

# The top-level packages of drivers, and the packages of this folder that know them.
DRIVERS = {
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pymysql": "mysql",
    "MySQLdb": "mysql",
    "mysql": "mysql",
    "pymssql": "sqlserver",
    "firebird": "firebird",
}
# Django's names of databases, and the packages whose module `django` makes a URL of its settings.
DJANGO = {"postgresql": "postgresql", "mysql": "mysql", "microsoft": "sqlserver"}
ASYNC_DRIVERS = {"psycopg": "postgresql", "aiomysql": "mysql", "asyncmy": "mysql"}


def without_logins(text: str) -> str:
    """An error that quotes what the user typed, such as an unexpected argument, without what follows a scheme in it."""
    return _QUOTED.sub(r"\1…", text)


def open_database(url: str) -> Database:
    """The database that a URL names. Raises ValueError, which never contains the password, for a malformed URL, an
    unknown scheme or a driver that is not installed.
    """
    with reading():
        check(url)
    scheme = url.partition("://")[0]
    name = _PACKAGES.get(scheme)
    if name is not None:
        try:
            made = import_module(f"{__package__}.{name}").DATABASE
        except ModuleNotFoundError as error:
            lack = f"database URL: {scheme} needs {error.name}: pip install '.[{name}]' in the checkout of rowqueue"
            raise ValueError(lack) from None
        database = made(url)
        assert isinstance(database, Database)
        return database
    known = ", ".join(sorted(_PACKAGES))
    raise ValueError(f"database URL: unknown scheme {scheme!r}; known: {known}")


def open_embedded(data_dir: Path | None = None) -> AbstractContextManager[Database]:
    """The embedded database, for users without a server. `data_dir`: its files; None for the user's data directory.

    It starts on entry, is shared with other processes, and stops when the last of them ends. Raises DatabaseError when
    it cannot be started or is not installed.
    """
    embedded = import_module(f"{__package__}.postgresql").embedded
    context: AbstractContextManager[Database] = embedded(data_dir)
    return context
