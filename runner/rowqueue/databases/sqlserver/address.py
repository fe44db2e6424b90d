"""SQL Server and Azure SQL URLs."""

from dataclasses import dataclass

from .. import url

_OPTIONS = ("connect_timeout", "encryption")
_ENCRYPTION = ("default", "off", "request", "require")
_PORT = 1433
LOGIN_BYTES = 128  # the longest name that FreeTDS accepts


@dataclass(frozen=True)
class Address:
    """The settings in a URL."""

    host: str
    port: int
    database: str
    user: str | None
    password: str | None
    connect_seconds: int
    encryption: str | None

    @property
    def server(self) -> str:
        """Host and port in the form for the driver's library."""
        return url.server(self.host, self.port, ":")


def parse(text: str) -> Address:
    """The settings in a URL. Raises ValueError, which never contains the password."""
    with url.reading():
        parts = url.split(text, _OPTIONS)
        encryption = parts.options.get("encryption")
        if encryption is not None and encryption not in _ENCRYPTION:
            raise ValueError(f"encryption is {encryption!r}; it must be one of {', '.join(_ENCRYPTION)}")
        seconds = url.connect_seconds(parts.options)
        database = parts.path[1:]
        url.refuse_nul(parts.user, parts.password, database)
        for name, value in (("user", parts.user), ("password", parts.password), ("database", database)):
            if len((value or "").encode()) > LOGIN_BYTES:
                raise ValueError(f"the {name} is longer than {LOGIN_BYTES} bytes")
        host = parts.host or "localhost"
        return Address(host, parts.port or _PORT, database, parts.user, parts.password, seconds, encryption)
