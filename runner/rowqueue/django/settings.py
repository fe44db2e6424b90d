"""The setting ROWQUEUE, and the runner's URL for a database of the setting DATABASES."""

from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

_KNOWN = {"DATABASE", "URL"}
# Of the parameters that Django gives to psycopg, those that libpq knows too.
_LIBPQ = ("host", "port", "dbname", "user", "password", "service", "passfile", "options", "connect_timeout")
_MYSQL = {"unix_socket": "unix_socket", "ssl_mode": "ssl_mode", "connect_timeout": "connect_timeout"}
_TLS = {"ca": "ssl_ca", "cert": "ssl_cert", "key": "ssl_key"}


def _setting(name: str) -> Any:
    chosen = getattr(settings, "ROWQUEUE", {})
    if unknown := chosen.keys() - _KNOWN:
        raise ImproperlyConfigured(f"ROWQUEUE: unknown name {min(unknown)!r}; known: {', '.join(sorted(_KNOWN))}")
    return chosen.get(name)


def alias() -> str:
    """The alias of the database that has the queue."""
    chosen = _setting("DATABASE") or DEFAULT_DB_ALIAS
    if chosen not in connections:
        raise ImproperlyConfigured(f"ROWQUEUE: DATABASE is {chosen!r}, which is not in DATABASES")
    return str(chosen)


def connection() -> Any:
    """Django's connection to the database that has the queue."""
    return connections[alias()]


def url() -> str:
    """The runner's URL for the database that has the queue. In a test it is that of the test database."""
    if chosen := _setting("URL"):
        return str(chosen)
    found = connection()
    makers = {"postgresql": _postgresql, "mysql": _mysql, "microsoft": _sqlserver}
    if found.vendor not in makers:
        raise ImproperlyConfigured(
            f"rowqueue needs PostgreSQL, MySQL, MariaDB, SQL Server or Firebird; the database {found.alias!r} is"
            f" {found.vendor}: name another one with ROWQUEUE = {{'DATABASE': …}}, or give its URL: {{'URL': …}}"
        )
    return makers[found.vendor](found)


def _postgresql(found: Any) -> str:
    parameters = found.get_connection_params()
    known = {name: value for name, value in parameters.items() if name in _LIBPQ or name.startswith("ssl")}
    return "postgresql://?" + urlencode(known, quote_via=quote)


def _mysql(found: Any) -> str:
    chosen = found.settings_dict
    options = {_MYSQL[name]: value for name, value in chosen["OPTIONS"].items() if name in _MYSQL}
    options |= {_TLS[name]: value for name, value in (chosen["OPTIONS"].get("ssl") or {}).items() if name in _TLS}
    host = chosen["HOST"] or "localhost"
    if host.startswith("/"):
        options["unix_socket"], host = host, "localhost"
    return _url("mysql", chosen, host, options)


def _sqlserver(found: Any) -> str:
    chosen = found.settings_dict
    return _url("sqlserver", chosen, chosen["HOST"] or "localhost", {})


def _url(scheme: str, chosen: dict[str, Any], host: str, options: dict[str, Any]) -> str:
    login = quote(chosen["USER"], safe="")
    if chosen["PASSWORD"]:
        login += ":" + quote(chosen["PASSWORD"], safe="")
    place = f"[{host}]" if ":" in host else host
    place += f":{chosen['PORT']}" if chosen["PORT"] else ""
    query = "?" + urlencode(options, quote_via=quote) if options else ""
    return f"{scheme}://{login}{'@' if login else ''}{place}/{quote(str(chosen['NAME']), safe='')}{query}"
