"""Work that a deadlock rolled back is repeated, in each language."""

import uuid
from concurrent.futures import ThreadPoolExecutor

from servers import engine
from suite import Client
from support.waiting import until

# PostgreSQL rolls back the session that detects the deadlock first: the client, after a second.
PATIENCE = {"postgresql": "SET deadlock_timeout = '1min'", "mysql": "SET innodb_lock_wait_timeout = 60"}
INSERT = "INSERT INTO orders (body) VALUES (%s)"
WAITING = {
    "postgresql": "SELECT COUNT(*) AS n FROM pg_locks WHERE NOT granted",
    # InnoDB shows what it showed before to who asks again within 0.1 seconds.
    "mysql": "SELECT SLEEP(0.15),"
    " (SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT') AS n",
}


def test_a_send_that_a_deadlock_rolls_back_is_done_again(client: Client) -> None:
    """Two transactions insert the same two orders, each one of them first; the client is made the victim."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    server, url = client.server, client.database.url
    if engine(server.name) not in WAITING:
        _check_conflict(client, type)
        return
    server.query(url, "CREATE UNIQUE INDEX one_of_each ON orders (body)")
    with server.client(url) as other, ThreadPoolExecutor(1) as threads:
        other.execute(PATIENCE[engine(server.name)])
        other.execute("BEGIN")
        for n in range(50):  # InnoDB rolls back the transaction with fewer changed rows
            other.execute(INSERT, (f"other {n}",))
        other.execute(INSERT, ("second",))
        sending = threads.submit(client.send, type, "first", "second")
        try:
            waiting = WAITING[engine(server.name)]
            until(lambda: other.execute(waiting).fetchone()["n"] > 0, "the client waits for the second order")
            other.execute(INSERT, ("first",))
        finally:
            other.execute("ROLLBACK")
        done = sending.result()
    assert done.returncode == 0, done.stderr
    assert client.orders() == 2
    assert [row["body"] for row in client.messages(type)] == ["first", "second"]


def _check_conflict(client: Client, type: str) -> None:
    """Firebird finds a conflict without a wait: each order counts in a row that another transaction has locked."""
    server, url = client.server, client.database.url
    for statement in (
        "CREATE TABLE counter (n integer)",
        "CREATE SEQUENCE tries",  # which no rollback takes back
        "CREATE TRIGGER count_orders FOR orders BEFORE INSERT AS DECLARE x bigint; BEGIN"
        " x = NEXT VALUE FOR tries; UPDATE counter SET n = n + 1; END",
        "INSERT INTO counter VALUES (0)",
    ):
        server.query(url, statement)
    with server.client(url) as other, ThreadPoolExecutor(1) as threads:
        with other.connection.cursor() as cursor:
            cursor.execute("UPDATE counter SET n = -10")
            sending = threads.submit(client.send, type, "first", "second")
            try:
                tries = "SELECT GEN_ID(tries, 0) AS n FROM rdb$database"
                until(lambda: sending.done() or server.query(url, tries)[0]["n"] > 2, "the client has tried again")
            finally:
                other.connection.rollback()
        done = sending.result()
    assert done.returncode == 0, done.stderr
    assert server.query(url, "SELECT n FROM counter")[0]["n"] == client.orders() == 2
    assert [row["body"] for row in client.messages(type)] == ["first", "second"]
