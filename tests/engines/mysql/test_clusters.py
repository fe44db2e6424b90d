"""Requirements of MySQL and MariaDB clusters on procedures and driver, tested on one server; see tests/clusters."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from rowqueue.databases import Conflict, Database, Disconnected, Session, open_database

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]


def test_the_call_that_ends_a_groups_work_issues_its_own_ticket(session: Session, queue: str, sql: Sql) -> None:
    """Another node's claim may drop the old one; neither node sees the other's locks, and both commit."""
    session.call("set_queue", queue, '{"ordered": 1}')
    for body in ("a", "b"):
        session.call("send_message", queue, body, None, None, "g")
    [first] = session.call("claim_batch", queue, 1)
    # The claim has dropped the tickets of its group; this one it did not see.
    place = sql("SELECT priority, run_at, id FROM mq_message WHERE type = %s AND body = 'b'", queue)[0]
    ready = "INSERT IGNORE INTO mq_ready (type, priority, run_at, id, attempts) SELECT type, priority, run_at, id, 0"
    sql(f"{ready} FROM mq_message WHERE id = %s", place["id"])
    session.call("complete_batch", first["batch_key"])
    sql("DELETE FROM mq_ready WHERE type = %s AND run_at = %s", queue, place["run_at"].replace(tzinfo=None))
    assert [row["body"] for row in session.call("claim_batch", queue, 1)] == ["b"]


def test_a_galera_node_is_to_repeat_no_call(database: Database, server: Any) -> None:
    """A repeated CALL would send the rows of both attempts."""
    session = database.connect("test")
    with session.transaction() as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW SESSION VARIABLES LIKE 'wsrep_retry_autocommit'")
        found = cursor.fetchone()
    session.close()
    assert found == (("wsrep_retry_autocommit", "0") if server.name.startswith("mariadb") else None)


class Garbler:
    """A proxy that corrupts one answer of the server."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.spoil: bytes | None = None
        threading.Thread(target=self._serve, daemon=True).start()
        login = self._target.netloc.rpartition("@")[0]
        place = f"{login}@127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = urlunsplit(self._target._replace(netloc=place, query="ssl_mode=DISABLED"))

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection((self._target.hostname, self._target.port))
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):  # the other end is closed
            while data := source.recv(65536):
                if is_answer and self.spoil is not None:
                    data, self.spoil = self.spoil, None
                target.sendall(data)
        target.close()

    def close(self) -> None:
        self._listener.close()


# A row before any column; columns, and an end where their names belong; a length without bytes; a wrong number.
ANSWERS = [
    b"\x01\x00\x00\x01\x02\x05\x00\x00\x02\xfe\x00\x00\x02\x00\x05\x00\x00\x03\xfe\x00\x00\x02\x00",
    b"\x01\x00\x00\x01\x01\x02\x00\x00\x02\x03d",
    b"\x01\x00\x00\x01\xfc",
    b"\x01\x00\x00\x07\x01",
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_malformed_answer_is_a_lost_connection(database: Database, queue: str, answer: bytes) -> None:
    garbler = Garbler(database.url)
    session = open_database(garbler.url).connect("test")
    session.call("send", queue, "a")
    garbler.spoil = answer
    with pytest.raises(Disconnected):
        session.call("queue_stats", queue)
    with pytest.raises(Disconnected):
        session.call("queue_stats", queue)
    session.close()
    garbler.close()


def test_a_handlers_deadlock_is_a_conflict(database: Database, queue: str, sql: Sql) -> None:
    """Not a failure of its message: the server has rolled back the whole transaction."""
    table = f"t{queue.partition('.')[2]}"
    sql(f"CREATE TABLE {table} (id int PRIMARY KEY, n int NOT NULL)")
    sql(f"INSERT INTO {table} VALUES (1, 0), (2, 0)")
    mine, other = database.connect("test"), database.connect("other")
    mine.call("send", queue, "a")
    with other.transaction() as theirs:
        cursor = theirs.cursor()
        # The server rolls back the transaction with fewer changes, which must be the handler's.
        cursor.execute(f"INSERT INTO {table} SELECT id + 10, 0 FROM mq_stripe, {table} LIMIT 0")
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, 0)", [(n,) for n in range(100, 300)])
        cursor.execute(f"UPDATE {table} SET n = 1 WHERE id = 2")

        def cross() -> None:
            with theirs.cursor() as cursor:
                cursor.execute(f"UPDATE {table} SET n = 2 WHERE id = 1")

        with pytest.raises(Conflict), mine.transaction() as connection:
            assert mine.call("take_batch", queue, 1)
            connection.cursor().execute(f"UPDATE {table} SET n = 1 WHERE id = 1")
            thread = threading.Thread(target=cross)
            thread.start()
            try:
                connection.cursor().execute(f"UPDATE {table} SET n = 2 WHERE id = 2")
            finally:
                thread.join()
    assert [row["body"] for row in mine.call("take_batch", queue, 1)] == ["a"]
    for session in (mine, other):
        session.close()
    sql(f"DROP TABLE {table}")


def test_hosts_of_a_list_are_tried_in_their_order(database: Database) -> None:
    parts = urlsplit(database.url)
    login, _, host = parts.netloc.rpartition("@")
    for hosts in (f"127.0.0.1:1,{host}", f"{host},127.0.0.1:1", f"[::1]:1,{host}"):
        session = open_database(urlunsplit(parts._replace(netloc=f"{login}@{hosts}"))).connect("test")
        assert [(row["type"], row["ready"]) for row in session.call("queue_stats", "nowhere")] == [("nowhere", 0)]
        session.close()
    with pytest.raises(Disconnected, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
        open_database(f"mysql://{login}@127.0.0.1:1,127.0.0.1:2/db").connect("test")
    for wrong in ("one,,two", "one,two:x", "one,two:70000"):
        with pytest.raises(ValueError, match="database URL: "):
            open_database(f"mysql://{login}@{wrong}/db")
