"""Connection settings of MySQL and MariaDB: URLs, the environment, option files and TLS."""

import os
import re
import ssl
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..base import DatabaseError
from ..url import place, reading, split

Settings = dict[str, str]

_TLS_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_TLS_FILES = ("ssl_ca", "ssl_cert", "ssl_key")
_SECONDS = ("connect_timeout", "read_timeout", "write_timeout")
_OPTIONS = ("unix_socket", "ssl_mode", *_TLS_FILES, *_SECONDS, "default_file", "default_group")
_VARIABLES = {
    "password": "MYSQL_PWD",
    "host": "MYSQL_HOST",
    "port": "MYSQL_TCP_PORT",
    "unix_socket": "MYSQL_UNIX_PORT",
}
# Names in an option file, where `_` and `-` are the same.
_FILE_KEYS = {"socket": "unix_socket"} | {
    key: key for key in ("user", "password", "host", "port", "database", "connect_timeout", "ssl_mode", *_TLS_FILES)
}
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " ", "\\": "\\"}


def parse(url: str) -> Settings:
    """The settings in a URL. Raises ValueError, which never contains the password."""
    with reading():
        return _checked(_split(url))


def _split(url: str) -> Settings:
    url, others = _first_host(url)
    parts = split(url, _OPTIONS)
    for other in others:
        place(other)
    named = {
        "user": parts.user,
        "password": parts.password,
        "host": parts.host,
        "port": None if parts.port is None else str(parts.port),
        "database": parts.path[1:] or None,
        "others": ",".join(others) or None,
    }
    return {key: value for key, value in named.items() if value is not None} | parts.options


def _first_host(url: str) -> tuple[str, list[str]]:
    """A URL with only its first host, and its other hosts: `mysql://user@one:3306,two:3307/database`."""
    scheme, separator, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login, at, hosts = authority.rpartition("@")
    first, *others = hosts.split(",")
    if others and not all((first, *others)):
        raise ValueError("a host of the list is missing")
    return f"{scheme}{separator}{login}{at}{first}{rest[len(authority) :]}", others


def places(settings: Settings) -> list[tuple[str, int]]:
    """The hosts and ports to try, in order."""
    default = int(settings.get("port", 3306)) if "others" not in settings else 3306
    places = [(settings.get("host", "localhost"), int(settings.get("port", default)))]
    for other in filter(None, settings.get("others", "").split(",")):
        host, port = place(other)
        places.append((unquote(host or "localhost"), port or default))
    return places


def _checked(settings: Settings) -> Settings:
    """The settings, with checked values. Raises a ValueError that names the wrong one."""
    mode = settings.get("ssl_mode")
    if mode is not None and mode.upper() not in _TLS_MODES:
        raise ValueError(f"ssl_mode is {mode!r}; it must be one of {', '.join(_TLS_MODES)}")
    for key in _SECONDS:
        if key in settings and not _is_seconds(settings[key]):
            raise ValueError(f"{key} is {settings[key]!r}; it must be 1 to 31,536,000 seconds")
    if "port" in settings and not (settings["port"].isdecimal() and 0 < int(settings["port"]) < 65_536):
        raise ValueError(f"port is {settings['port']!r}; it must be 1 to 65535")
    return settings


def _is_seconds(text: str) -> bool:
    try:
        return 1 <= float(text) <= 31_536_000
    except ValueError:
        return False


def _read_file(path: Path, group: str) -> Settings:
    """The settings in one group of an option file. Raises OSError or ValueError."""
    found, here = Settings(), False
    for line in path.read_text("utf-8").splitlines():
        text = line.strip()
        if text.startswith("["):
            here = text.partition("]")[0][1:].strip() == group
        elif here and text and text[0] not in "#;!":
            key, _, value = text.partition("=")
            name = _FILE_KEYS.get(key.strip().lower().replace("-", "_"))
            if name is not None:
                found[name] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    """A value, parsed as the servers' own client does: quotes keep # and blanks, a backslash begins an escape."""
    if value[:1] in ("'", '"') and value.find(value[0], 1) > 0:
        value = value[1 : value.rindex(value[0])]
    else:
        value = value.partition("#")[0].rstrip()
    return re.sub(r"\\([btnrs\\])", lambda match: _ESCAPES[match[1]], value)


def resolve(named: Settings) -> Settings:
    """All settings of a connection: from the URL (`named`), then the environment, then the user's option file.

    This is the order of the servers' own client. Raises DatabaseError for a file or a value that cannot be used.
    """
    path = Path(named["default_file"]) if "default_file" in named else Path.home() / ".my.cnf"
    filed = Settings()
    if "default_file" in named or path.is_file():
        try:
            filed = _checked(_read_file(path, named.get("default_group", "client")))
        except (OSError, ValueError) as error:
            raise DatabaseError(f"option file {path}: {_reason(error)}") from error
    around = {key: os.environ[name] for key, name in _VARIABLES.items() if os.environ.get(name)}
    try:
        settings = _checked(filed | around | named)
    except ValueError as error:
        raise DatabaseError(f"environment: {error}") from error
    # A socket is for this machine. A host, or a port in the URL, means TCP.
    remote = settings.get("host", "localhost") != "localhost" or "port" in named
    if remote and "unix_socket" not in named:
        settings.pop("unix_socket", None)
    return settings


def _reason(error: Exception) -> str:
    """The reason why a file could not be read, without its name and its contents."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    return str((error.strerror if isinstance(error, OSError) else None) or error)


@cache
def unverified() -> ssl.SSLContext:
    """TLS without a certificate check. Does not load the system's authorities, which would take 25 ms."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def tls(settings: Settings) -> dict[str, Any]:
    """The driver's arguments for TLS. Raises DatabaseError when a certificate cannot be read."""
    files = {key: settings[key] for key in _TLS_FILES if settings.get(key)}
    # As in the servers' own client: naming a certificate authority turns the check of the certificate on.
    mode = settings.get("ssl_mode", "VERIFY_CA" if "ssl_ca" in files else "PREFERRED").upper()
    if mode == "DISABLED" or (mode == "PREFERRED" and "unix_socket" in settings):
        return {"ssl_disabled": True}
    if mode == "PREFERRED" and not files:
        return {}
    try:
        context = ssl.create_default_context(cafile=files.get("ssl_ca"))
        # The certificates that MySQL generates do not pass strict checks.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = mode == "VERIFY_IDENTITY"
        context.verify_mode = ssl.CERT_REQUIRED if mode.startswith("VERIFY") else ssl.CERT_NONE
        if "ssl_cert" in files:
            context.load_cert_chain(files["ssl_cert"], files.get("ssl_key"))
    except OSError as error:
        raise DatabaseError(f"{', '.join(files)}: cannot be read: {_reason(error)}") from error
    return {"ssl": context}
