"""MySQL and MariaDB: whatever the server or the session has set, the installation and the calls do the same."""

from collections.abc import Callable
from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Database, open_database

from . import Server
from .test_mysql_engine import client

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_version]

Sql = Callable[..., list[dict[str, Any]]]


def bodies(server: Server, database: Database) -> list[str]:
    return [row["body"] for row in server.query(database.url, "SELECT body FROM mq_message ORDER BY id")]


def test_a_server_without_autocommit_keeps_what_apply_the_script_and_a_session_do(private_server: Server) -> None:
    server = private_server
    server.query(server.url, "SET GLOBAL autocommit = 0")
    applied, scripted = (open_database(server.create_database()) for _ in range(2))
    install.apply(applied)
    done = client(server, scripted.url, input="\n".join(install.script("mysql")))
    assert (done.returncode, done.stderr) == (0, "")
    for database in (applied, scripted):
        assert {file.state for file in install.status(database)} == {"ok"}
        assert install.apply(database) == install.Applied()
        session = database.connect("test")
        session.call("send", "z", "hello")
        session.close()
        assert bodies(server, database) == ["hello"]
