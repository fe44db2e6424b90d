"""The URL of a database of Django's settings."""

from typing import Any
from urllib.parse import quote, urlencode

# Of the parameters that Django gives to psycopg, those that libpq knows too.
_LIBPQ = ("host", "port", "dbname", "user", "password", "service", "passfile", "options", "connect_timeout")


def url(connection: Any) -> str:
    """The URL that reaches the same database as a connection of Django."""
    parameters = connection.get_connection_params()
    known = {name: value for name, value in parameters.items() if name in _LIBPQ or name.startswith("ssl")}
    return "postgresql://?" + urlencode(known, quote_via=quote)
