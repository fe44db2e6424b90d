"""MySQL and MariaDB: installation and calls do the same under all settings of the server or session."""

from collections.abc import Callable
from typing import Any

import pymysql
import pytest
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers import Server

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]


def bodies(server: Server, database: Database) -> list[str]:
    return [row["body"] for row in server.query(database.url, "SELECT body FROM mq_message ORDER BY id")]


@pytest.mark.level(3)
def test_a_server_without_autocommit_keeps_what_apply_the_script_and_a_session_do(private_server: Server) -> None:
    server = private_server
    server.query(server.url, "SET GLOBAL autocommit = 0")
    applied, scripted = (open_database(server.create_database()) for _ in range(2))
    install.apply(applied)
    server.run_script(scripted.url, "\n".join(install.script("mysql")))
    for database in (applied, scripted):
        assert {file.state for file in install.status(database)} == {"ok"}
        assert install.apply(database) == install.Applied()
        session = database.connect("test")
        session.call("send", "z", "hello")
        session.close()
        assert bodies(server, database) == ["hello"]


POLICY = '{"max_attempts": 5, "backoff_seconds": 0, "backoff_max_seconds": 0, "on_complete": "archive", "ordered": 1}'
SETTINGS = {
    "big-selects": "sql_big_selects = 0, SESSION max_join_size = 1",
    "safe-updates": "sql_safe_updates = 1",
    "ansi": "sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,IGNORE_SPACE'",
    "lenient": "sql_mode = ''",
    "traditional": "sql_mode = 'TRADITIONAL,ONLY_FULL_GROUP_BY,HIGH_NOT_PRECEDENCE'",
    "zone": "time_zone = '-11:00'",
    "latin1": "character_set_client = latin1, SESSION character_set_connection = latin1",
    "collation": "collation_connection = utf8mb4_general_ci",
    "short-lists": "group_concat_max_len = 4",
    "repeatable": "TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "serializable": "TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "uncommitted": "TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "clock": "timestamp = 86400",
    "timestamps": "explicit_defaults_for_timestamp = 0",
    "chain": "completion_type = 'CHAIN'",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_a_session_change_nothing(server: Server, database: Database, queue: str, name: str) -> None:
    ordered = f"{queue}.o"
    with server.client(database.url) as connection:

        def call(text: str, *arguments: Any) -> list[dict[str, Any]]:
            cursor = connection.execute(f"CALL mq_{text}", arguments)
            rows = list(cursor.fetchall())
            while cursor.nextset():
                pass
            return rows

        connection.autocommit(True)
        if name == "timestamps" and connection.is_mariadb:
            pytest.skip("MariaDB knows no such setting of a session")
        connection.execute(f"SET SESSION {SETTINGS[name]}")
        [policy] = call("set_queue(%s, %s)", ordered, POLICY)
        assert (policy["ordered"], policy["on_complete"]) == (1, "archive")
        for type in (queue, ordered):
            call("send_message(%s, 'a\"b', NULL, 0, 'g', 'd', NULL, NULL, NULL, NULL, NULL)", type)
            assert call("send_batch(%s, %s, NULL)", type, "x\ny\nz")
            if name != "big-selects":  # of the calls that only read the session's limit is the limit
                assert call("queue_stats(%s)", type)[0]["ready"] == 4
            rows = call("claim_batch(%s, 10, NULL, NULL)", type)
            assert sorted(row["body"] for row in rows) == sorted(['a"b', "x", "y", "z"][: len(rows)])
            call("fail(%s, %s, 'no', 0)", rows[0]["id"], rows[0]["batch_key"])
            call("complete_batch(%s)", rows[0]["batch_key"])
            while rows := call("claim_batch(%s, 10, NULL, NULL)", type):
                call("complete_batch(%s)", rows[0]["batch_key"])
            call("rescue_expired(%s)", type)
        if name == "big-selects":
            assert [row["body"] for row in call("find_messages(%s, %s, 1, 9)", queue, '{"group_key": "none"}')] == []
            for text in ("set_queue('q', %s)", "send_with('q', 'x', %s)", "find_messages('q', %s, 1, 9)"):
                with pytest.raises(pymysql.MySQLError, match="invalid_argument"):
                    call(text, '{"none": 1}')
            assert connection.execute("SELECT @@SESSION.sql_big_selects AS big").fetchall() == [{"big": 0}]
    left = server.query(database.url, "SELECT type, body FROM mq_message WHERE type IN (%s, %s)", queue, ordered)
    # A session with a fixed timestamp does not see that failed messages have become due; other sessions do.
    assert left == ([{"type": queue, "body": 'a"b'}] if name == "clock" else [])
    session = database.connect("another")
    for type in (queue, ordered):
        while rows := session.call("claim_batch", type, 10):
            session.call("complete_batch", rows[0]["batch_key"])
    session.close()
    assert server.query(database.url, "SELECT 1 FROM mq_message WHERE type IN (%s, %s)", queue, ordered) == []
