"""The URL of a database of Django's settings."""

from typing import Any

from ..url import join

_OPTIONS = ("unix_socket", "ssl_mode", "connect_timeout")
_TLS = {"ca": "ssl_ca", "cert": "ssl_cert", "key": "ssl_key"}


def url(connection: Any) -> str:
    """The URL that reaches the same database as a connection of Django."""
    chosen = connection.settings_dict
    given = chosen["OPTIONS"]
    options = {name: given[name] for name in _OPTIONS if name in given}
    options |= {_TLS[name]: value for name, value in (given.get("ssl") or {}).items() if name in _TLS}
    host = chosen["HOST"]
    if host.startswith("/"):
        options["unix_socket"], host = host, ""
    return join("mysql", host, chosen["PORT"], chosen["NAME"], chosen["USER"], chosen["PASSWORD"], options)
