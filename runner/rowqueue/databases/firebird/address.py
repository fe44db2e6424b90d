"""Firebird URLs: a database on a server, or a file for the embedded engine."""

from dataclasses import dataclass

from .. import url

_OPTIONS = ("charset", "connect_timeout", "role")


@dataclass(frozen=True)
class Address:
    """The settings in a URL. `host`: None for the embedded engine. `database`: a path or an alias."""

    host: str | None
    port: int | None
    database: str
    user: str | None
    password: str | None
    role: str | None
    connect_seconds: int

    @property
    def dsn(self) -> str:
        """The database in the form for the client library."""
        return self.database if self.host is None else f"{url.server(self.host, self.port, '/')}:{self.database}"


def parse(text: str) -> Address:
    """The settings in a URL. Raises ValueError, which never contains the password."""
    with url.reading():
        parts = url.split(text, _OPTIONS)
        charset = parts.options.get("charset", "UTF8")
        if charset.upper() not in {"UTF8", "UTF-8"}:
            raise ValueError(f"charset is {charset!r}; it must be UTF8")
        seconds = url.connect_seconds(parts.options)
        host = parts.host or None
        # Without a host, the URL's path is the full path of a local file.
        database = parts.path[1:] if host else parts.path
        url.refuse_nul(database, parts.user, parts.password)
        role = parts.options.get("role") or None
        return Address(host, parts.port, database, parts.user, parts.password, role, seconds)
