"""Database URLs: `scheme://user:password@host:port/database?option=value`.

A text that is not such a URL may have a password anywhere. No message quotes it, and `shown` prints nothing of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

_SCHEME = re.compile(r"[a-z]+://")
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(:\d{0,5})?")

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


def check(text: str) -> None:
    """Raise ValueError unless each part of a URL is where it seems to be. No message quotes the text.

    An unescaped character in a password moves the rest of it into another part, which would be printed: the host, the
    name of the database.
    """
    if not _SCHEME.match(text):
        raise ValueError("it must begin with a scheme and ://")
    if not text.isprintable() or " " in text:
        raise ValueError("write blanks and control characters as %XX")
    authority, rest = re.fullmatch(r"([^/?#]*)(.*)", text.partition("://")[2]).groups()  # type: ignore[union-attr]
    login, _, hosts = authority.rpartition("@")
    if any(sign in login for sign in "@[]") or "@" in rest:
        raise _misplaced("an @ or a bracket is not where it belongs")
    if hosts.count("[") != hosts.count("]"):
        raise _misplaced("the address is not valid IPv6")
    if not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        raise _misplaced("the port is not a number from 0 to 65535")


def _misplaced(reason: str) -> ValueError:
    return ValueError(f"{reason}; in names and passwords, write special characters as %XX")


def shown(text: str) -> str:
    """A URL without its password and options; "" for a text that cannot be parsed."""
    try:
        check(text)
    except ValueError:
        return ""
    scheme, _, rest = text.partition("://")
    authority, path = re.match(r"([^/?#]*)([^?#]*)", rest).groups()  # type: ignore[union-attr]
    login, at, hosts = authority.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}{at}{hosts}{path}"


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


def join(
    scheme: str, host: str, port: object, database: object, user: str, password: str, options: Mapping[str, object]
) -> str:
    """A URL of its parts, which may contain any characters; an empty part is left out."""
    login = quote(user, safe="") + (":" + quote(password, safe="") if password else "")
    where = f"[{host}]" if ":" in host else host or "localhost"
    where += f":{port}" if port else ""
    query = "?" + urlencode(options, quote_via=quote) if options else ""
    return f"{scheme}://{login}{'@' if login else ''}{where}/{quote(str(database), safe='')}{query}"


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
        raise _misplaced(reason) from None


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
