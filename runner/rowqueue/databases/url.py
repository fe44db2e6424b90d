"""Database URLs: `scheme://user:password@host:port/database?option=value`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

CONNECT_SECONDS = 10  # the default of connect_timeout
_LONGEST_CONNECT = 32_767


@dataclass(frozen=True)
class Parts:
    """The parts of a URL, percent-decoded. `path` is empty or begins with a slash."""

    host: str | None
    port: int | None
    path: str
    user: str | None
    password: str | None
    options: dict[str, str]


@contextmanager
def reading() -> Iterator[None]:
    """A context manager for code that reads a URL. Its errors never contain the password."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"database URL: {error}") from None


def split(url: str, known: Iterable[str]) -> Parts:
    """The parts of a URL whose options are among `known`. Raises ValueError."""
    parts, port = _split(url)
    if parts.fragment:
        raise ValueError("write the character # as %23")
    if port == 0:
        raise ValueError("port is '0'; it must be 1 to 65535")
    try:
        host, user, password = (
            None if text is None else unquote(text, errors="strict")
            for text in (parts.hostname, parts.username, parts.password)
        )
        path = unquote(parts.path, errors="strict")
        strict = bool(parts.query)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=strict, errors="strict"))
    except ValueError:
        raise ValueError("a name, the password or an option must be percent-encoded UTF-8") from None
    known = sorted(known)
    if unknown := options.keys() - {*known}:
        raise ValueError(f"unknown option {min(unknown)!r}; known: {', '.join(known)}")
    return Parts(host, port, path, user, password, options)


def place(text: str) -> tuple[str | None, int | None]:
    """A host and a port, such as `host:port` or `[::1]`. Raises ValueError."""
    parts, port = _split(f"//{text}")
    return parts.hostname, port


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError as error:
        reason = "the address is not valid IPv6" if "IPv6" in str(error) else "the port is not a number from 0 to 65535"
        raise ValueError(f"{reason}; in names and passwords, write special characters as %XX") from None


def connect_seconds(options: Mapping[str, str]) -> int:
    """The option connect_timeout, for drivers that accept whole seconds. Raises ValueError."""
    text = options.get("connect_timeout", str(CONNECT_SECONDS))
    if not (text.isdecimal() and 1 <= int(text) <= _LONGEST_CONNECT):
        raise ValueError(f"connect_timeout is {text!r}; it must be 1 to {_LONGEST_CONNECT:,} seconds")
    return int(text)


def refuse_nul(*texts: str | None) -> None:
    """Raise ValueError for the character NUL: the drivers' libraries end a text there."""
    if any("\0" in text for text in texts if text):
        raise ValueError("it must not contain the character NUL")


def server(host: str, port: int | None, separator: str) -> str:
    """Host and port in the form for the drivers' libraries, which expect IPv6 addresses in brackets."""
    named = f"[{host}]" if ":" in host else host
    return f"{named}{separator}{port}" if port else named
