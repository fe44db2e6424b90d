"""Connections as an application has them: every driver, and SQLAlchemy and Django on top of some."""

from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from servers.firebird import driver, dsn


def mysql_arguments(url: str) -> dict[str, Any]:
    """What a driver for MySQL is called with."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    arguments: dict[str, Any] = {
        "host": parts.hostname,
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path[1:]),
        "charset": "utf8mb4",
    }
    if "unix_socket" in options:
        arguments["unix_socket"] = options["unix_socket"]
    return arguments


READ_COMMITTED = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


class Application:
    """An application's connection, with its ways to end a transaction and to run its own statements."""

    def __init__(
        self,
        connection: Any,
        raw: Any,
        commit: Callable[[], Any] | None = None,
        rollback: Callable[[], Any] | None = None,
        close: Callable[[], Any] | None = None,
    ) -> None:
        self.connection, self.raw = connection, raw
        self.commit = commit or raw.commit
        self.rollback = rollback or raw.rollback
        self.close = close or raw.close

    def execute(self, statement: str) -> list[Any]:
        """A statement of the application's, in its transaction."""
        connection = self.connection
        if hasattr(connection, "exec_driver_sql"):
            result = connection.exec_driver_sql(statement)
            return [tuple(row) for row in result] if result.returns_rows else []
        if hasattr(connection, "get_bind"):
            result = connection.connection().exec_driver_sql(statement)
            return [tuple(row) for row in result] if result.returns_rows else []
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []


def psycopg(url: str, **options: Any) -> Application:
    import psycopg

    connection = psycopg.connect(url, **options)
    return Application(connection, connection)


def psycopg_rows(url: str) -> Application:
    from psycopg import RawCursor
    from psycopg.rows import dict_row

    return psycopg(url, row_factory=dict_row, cursor_factory=RawCursor, prepare_threshold=0)


def psycopg2(url: str) -> Application:
    import psycopg2
    from psycopg2.extras import RealDictCursor

    connection = psycopg2.connect(url, cursor_factory=RealDictCursor)
    return Application(connection, connection)


def pymysql(url: str, **options: Any) -> Application:
    import pymysql

    connection = pymysql.connect(**mysql_arguments(url), init_command=READ_COMMITTED, **options)
    return Application(connection, connection)


def pymysql_rows(url: str) -> Application:
    from pymysql.cursors import SSDictCursor

    return pymysql(url, cursorclass=SSDictCursor)


def mysql_connector(url: str) -> Application:
    import mysql.connector

    connection = mysql.connector.connect(**mysql_arguments(url), init_command=READ_COMMITTED)
    return Application(connection, connection)


def mysqlclient(url: str) -> Application:
    # Not the alias that install_as_MySQLdb() left under this name: its modules would be loaded a second time.
    if PathFinder.find_spec("MySQLdb") is None:
        pytest.skip("mysqlclient is not installed")
    driver, cursors = import_module("MySQLdb"), import_module("MySQLdb.cursors")
    arguments = mysql_arguments(url) | {"init_command": READ_COMMITTED}
    connection = driver.connect(**arguments, cursorclass=cursors.SSDictCursor)
    return Application(connection, connection)


def firebird(url: str) -> Application:
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    connection = driver().connect(dsn(url), user=user, password=password, charset="UTF8")
    connection.default_tpb = connection.main_transaction.default_tpb = driver().tpb(
        driver().Isolation.READ_COMMITTED_RECORD_VERSION, lock_timeout=0
    )
    return Application(connection, connection)


def pymssql(url: str, **options: Any) -> Application:
    import pymssql

    parts = urlsplit(url)
    connection = pymssql.connect(
        server=parts.hostname or "localhost",
        port=str(parts.port or 1433),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=unquote(parts.path[1:]),
        charset="UTF-8",
        tds_version="7.4",
        **options,
    )

    def rollback() -> None:
        """An error in a procedure has already ended the transaction, without the driver knowing."""
        with connection.cursor() as cursor:
            cursor.execute("IF @@TRANCOUNT = 0 BEGIN TRANSACTION")
        connection.rollback()

    return Application(connection, connection, rollback=rollback)


def pymssql_rows(url: str) -> Application:
    return pymssql(url, as_dict=True)


def engine_of(url: str) -> Any:
    """An engine of SQLAlchemy."""
    import sqlalchemy

    if url.startswith("postgresql"):
        creator = lambda: psycopg(url).raw  # noqa: E731
        return sqlalchemy.create_engine("postgresql+psycopg://", creator=creator)
    creator = lambda: pymysql(url).raw  # noqa: E731
    return sqlalchemy.create_engine("mysql+pymysql://", creator=creator)


def sqlalchemy_core(url: str) -> Application:
    engine = engine_of(url)
    connection = engine.connect()

    def close() -> None:
        connection.close()
        engine.dispose()

    return Application(connection, None, connection.commit, connection.rollback, close)


def sqlalchemy_session(url: str) -> Application:
    from sqlalchemy.orm import Session

    engine = engine_of(url)
    session = Session(engine)

    def close() -> None:
        session.close()
        engine.dispose()

    return Application(session, None, session.commit, session.rollback, close)


def django_connection(url: str) -> Any:
    """Django's connection `default`, to that database."""
    import django
    import pymysql
    from django.conf import settings
    from django.db import connections
    from django.db.utils import ConnectionHandler

    if not settings.configured:
        settings.configure(USE_TZ=True, TIME_ZONE="Asia/Tokyo")
        django.setup()
    if url.startswith("postgresql"):
        import psycopg.conninfo

        found = psycopg.conninfo.conninfo_to_dict(url)
        names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        configured = {names[key]: value for key, value in found.items() if key in names}
        configured["ENGINE"] = "django.db.backends.postgresql"
    else:
        if find_spec("MySQLdb") is None:  # it has to be compiled
            pymysql.install_as_MySQLdb()
        arguments = mysql_arguments(url)
        configured = {
            "ENGINE": "django.db.backends.mysql",
            "NAME": arguments["database"],
            "USER": arguments["user"],
            "PASSWORD": arguments["password"],
            "HOST": arguments.get("unix_socket") or arguments["host"],
            "PORT": arguments["port"],
        }
    made = ConnectionHandler({"default": configured})["default"]
    connections["default"] = made
    return made


def django(url: str) -> Application:
    """Inside a transaction, as in a view under ATOMIC_REQUESTS."""
    connection = django_connection(url)
    connection.set_autocommit(False)
    return Application(connection, None, connection.commit, connection.rollback, connection.close)


def _ways(product: str | tuple[str, ...], *makers: Callable[[str], Application]) -> list[Any]:
    products = (product,) if isinstance(product, str) else product
    return [pytest.param(make, id=make.__name__, marks=pytest.mark.product(*products)) for make in makers]


MYSQL = ("mysql", "mariadb")
DRIVERS = [
    *_ways("postgresql", psycopg, psycopg_rows, psycopg2),
    *_ways(MYSQL, pymysql, pymysql_rows, mysqlclient, mysql_connector),
    *_ways("firebird", firebird),
    *_ways("sqlserver", pymssql, pymssql_rows),
]
FRAMEWORKS = [
    pytest.param(make, id=make.__name__, marks=pytest.mark.product("postgresql", *MYSQL))
    for make in (sqlalchemy_core, sqlalchemy_session, django)
]
WAYS = [*DRIVERS, *FRAMEWORKS]
