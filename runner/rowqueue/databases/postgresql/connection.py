"""Connecting to PostgreSQL through psycopg 3."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from ..base import DatabaseError, Disconnected
from .errors import line, translated

# TCP keep-alive: a dead peer is detected within about a minute. The URL overrides these settings.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_ENCODING = {"client_encoding": "utf8"}  # another one cannot represent every text
# libpq distinguishes a refused login from an unreachable server only by the error text.
_REFUSALS = (
    "authentication failed",
    "does not exist",
    "no such",
    "no password supplied",
    "not permitted to log in",
    "permission denied",
    "pg_hba.conf",
    "certificate",
    "does not support SSL",
    "invalid connection option",
    "invalid port",
)


def settings(named: Mapping[str, str], application_name: str) -> dict[str, str]:
    """The parameters of a connection for libpq: those of the URL, and defaults."""
    return {**_DEFAULTS, "application_name": application_name, **named, **_ENCODING}


def connect(named: Mapping[str, str], application_name: str) -> psycopg.Connection[Any]:
    """A driver connection in autocommit mode, with times in UTC. Raises as `Database.connect`."""
    try:
        connection = psycopg.connect(
            make_conninfo(**settings(named, application_name)), autocommit=True, prepare_threshold=None
        )
    except (psycopg.Error, UnicodeError) as error:
        message = line(error)
        refused = any(text in message for text in _REFUSALS)
        raise (DatabaseError if refused else Disconnected)(message) from error
    if connection.info.parameter_status("TimeZone") not in {"UTC", "Etc/UTC"}:
        # A parameter that poolers track per client. It makes the times in results UTC.
        with translated():
            connection.execute("SET TIME ZONE 'UTC'")
    if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
        # Also tracked by poolers; the driver reads times only in this style.
        with translated():
            connection.execute("SET datestyle = 'ISO'")
    return connection
