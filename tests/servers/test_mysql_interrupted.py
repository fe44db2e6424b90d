"""MySQL and MariaDB: DDL commits, so an installation that ends anywhere is gone on with by the next one."""

import re
from contextlib import suppress
from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Database, DatabaseError, open_database
from rowqueue.databases.mysql import _Connection

from . import Server

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_engine]


class Killed(BaseException):
    """As a signal would end the process."""


def apply_until(database: Database, statements: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Apply, killed behind so many statements that change something; how many there were."""
    done = 0
    query = _Connection.query

    def counted(connection: _Connection, sql: Any, unbuffered: bool = False) -> Any:
        nonlocal done
        text = sql.decode("utf-8", "replace") if isinstance(sql, bytes) else sql
        result = query(connection, sql, unbuffered)
        if re.match(r"\s*(CREATE|DROP|GRANT|REVOKE|INSERT|REPLACE|ALTER|UPDATE)\b", text):
            done += 1
            if done == statements:
                connection._force_close()
                raise Killed
        return result

    with monkeypatch.context() as patched, suppress(Killed, DatabaseError):
        patched.setattr(_Connection, "query", counted)
        install.apply(database)
    return done


def test_an_installation_that_is_killed_behind_any_statement_is_gone_on_with(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = open_database(server.create_database())
    count = apply_until(whole, -1, monkeypatch)
    catalog = server.catalog(whole.url)
    # Behind some of the first ones, which make tables, and behind a few of the others.
    for n in (1, 2, 5, 9, 17, 30, 60, count // 2, count - 1):
        database = open_database(server.create_database())
        assert apply_until(database, n, monkeypatch) == n
        install.apply(database, break_lock=True)
        assert server.catalog(database.url) == catalog, n
        assert install.apply(database) == install.Applied(), n
        server.drop_database(database.url)
    server.drop_database(whole.url)
