"""Connecting to MySQL and MariaDB: of several hosts, to the first that answers and takes changes."""

import socket
import struct
from contextlib import suppress
from datetime import datetime
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import FIELD_TYPE  # type: ignore[import-untyped]
from pymysql.converters import conversions, convert_datetime  # type: ignore[import-untyped]

from .. import values
from ..base import DatabaseError, Disconnected, ReadOnly
from ..guard import keep_alive
from ..url import CONNECT_SECONDS
from .connection import Connection
from .errors import HINTS, translated, unreachable
from .options import Settings, places, resolve, tls

SQL_MODE = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
# An idle consumer is not cut off, a COMMIT ends a transaction without beginning the next, and a call commits by itself
# whatever the server's default is: the driver believes a flag of the handshake, which does not show that default.
_SESSION = (
    "SET @mq_application = NULLIF(%s, ''), SESSION wait_timeout = 31536000, SESSION completion_type = 'NO_CHAIN',"
    " SESSION autocommit = 1, SESSION sql_big_selects = 1"
)


def connect(named: Settings, application_name: str) -> Connection:
    """A connection of the driver's, in autocommit. Raises as `Database.connect` does.

    Of several hosts it is the first that answers and takes changes.
    """
    settings = resolve(named)
    if not settings.get("database"):
        raise DatabaseError(HINTS[1046])
    servers = places(settings)
    if len(servers) == 1:
        return _open(settings, *servers[0], application_name)
    errors: list[Disconnected] = []
    for host, port in servers:
        try:
            connection = _open(settings, host, port, application_name)
            if _takes_changes(connection):
                return connection
            errors.append(ReadOnly(f"{host}:{port} takes no changes"))
        except Disconnected as error:
            errors.append(error)
    only_read = all(isinstance(error, ReadOnly) for error in errors)
    raise (ReadOnly if only_read else Disconnected)("; ".join(map(str, errors)))


def _open(settings: Settings, host: str, port: int, application_name: str) -> Connection:
    name = values.program(application_name)
    where = settings.get("unix_socket") or f"{host}:{port}"
    patience = float(settings.get("connect_timeout", CONNECT_SECONDS))
    connection = Connection(
        defer_connect=True,
        autocommit=True,
        user=settings.get("user"),
        # The driver would write text as Latin-1.
        password=settings.get("password", "").encode(),
        host=host,
        port=port,
        unix_socket=settings.get("unix_socket"),
        database=settings["database"],
        charset="utf8mb4",
        conv=conversions | {FIELD_TYPE.DATETIME: _datetime},
        sql_mode=SQL_MODE,
        init_command=_ISOLATION,
        program_name=name or None,
        connect_timeout=patience,
        read_timeout=patience,
        write_timeout=float(settings["write_timeout"]) if "write_timeout" in settings else None,
        **tls(settings),
    )
    try:
        connection.connect(None if "unix_socket" in settings else _reach(connection.host, port, patience))
        connection.cursor().execute(_SESSION, [name])
        _repeat_nothing(connection)
    except (pymysql.Error, OSError, RuntimeError, ValueError, IndexError, AssertionError, struct.error) as error:
        raise unreachable(error, where) from error
    # The driver has no time-out of its own for the handshake: up to here it was that of connecting.
    connection._read_timeout = float(settings["read_timeout"]) if "read_timeout" in settings else None
    return connection


def _datetime(text: str) -> Any:
    """As the driver reads a DATETIME, five times as fast."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # 0000-00-00
        return convert_datetime(text)


def _repeat_nothing(connection: Connection) -> None:
    """Let a Galera node report a conflict instead of repeating the CALL, which may have sent rows already."""
    if "MariaDB" in connection.get_server_info():
        with suppress(pymysql.OperationalError):  # 1193: built without Galera
            connection.cursor().execute("SET SESSION wsrep_retry_autocommit = 0")


def _takes_changes(connection: Connection) -> bool:
    """Whether the server is no secondary; a connection to one is closed. Raises Disconnected."""
    with translated(), connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.read_only OR @@GLOBAL.innodb_read_only")
        if not cursor.fetchone()[0]:
            return True
    connection.close()
    return False


def _reach(host: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection on which a dead peer is noticed within about a minute. Raises OSError."""
    reached = socket.create_connection((host, port), seconds)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(reached)
    return reached
