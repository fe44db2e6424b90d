"""Isolation levels, autocommit, interrupted calls and sessions with settings of their own, on MySQL and MariaDB.

Most calls use the driver directly, as a user's program does, without the runner's session.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pymysql
import pytest
from pymysql.constants import SERVER_STATUS
from rowqueue.databases import Conflict, Database, Session
from rowqueue.install import contract
from servers import Server
from servers.mysql import Client
from support.outcomes import dead_letter
from support.queues import NO_KEY

pytestmark = pytest.mark.product("mysql", "mariadb")

Query = Callable[..., list[dict[str, Any]]]
LEVELS = ["REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"]
WRONG_ISOLATION = 50001
# Claiming and finishing procedures: those whose contract has the error.
ISOLATED = {name for name, entry in contract.load().procedures.items() if "wrong_isolation" in entry.errors}
# They need it only to change a message of an ordered queue, or what an ordered queue is; create_feed: test_levels.py.
ISOLATED -= {"send_message", "send_with", "publish_with", "set_queue", "set_option", "create_feed"}
# They look for the polling table first; watch_table needs it on another database only.
ISOLATED -= {"unadopt_table", "redrive_row", "redrive_rows", "watch_table"}
OF_TABLES = {"publish_feed": "f", "claim_rows": "t", "finish_rows": NO_KEY, "release_rows": NO_KEY}
CLAIMING = sorted(ISOLATED - OF_TABLES.keys())
TABLES = ("message", "ready", "delayed", "batch", "dead", "archive", "mark", "ring", "queue_group")


@pytest.fixture
def client(server: Server, database: Database) -> Iterator[Client]:
    """The driver's own connection, in autocommit."""
    connection = server.client(database.url)
    yield connection
    if connection.open:
        connection.close()


def call(client: Client, procedure: str, *values: Any) -> list[dict[str, Any]]:
    """Call without the runner: all arguments are given, and every result is read."""
    arguments = contract.load().procedures[procedure].arguments
    padded = [*values, *[None] * (len(arguments) - len(values))]
    cursor = client.execute(f"CALL mq_{procedure}({', '.join(['%s'] * len(padded))})", padded)
    rows = list(cursor.fetchall())
    while cursor.nextset():
        pass
    return rows


def level(client: Client) -> str:
    variable = "tx_isolation" if client.is_mariadb else "transaction_isolation"
    found: str = client.execute(f"SHOW SESSION VARIABLES LIKE '{variable}'").fetchone()["Value"]
    return found.replace("-", " ")


def content(sql: Query, queue: str) -> list[list[str]]:
    """All rows of the queue, and of the one that drop_queue drops."""
    both = (queue, f"{queue}.old")
    return [sorted(map(str, sql(f"SELECT * FROM mq_{table} WHERE type IN (%s, %s)", *both))) for table in TABLES]


@pytest.fixture
def arguments(session: Session, queue: str, sql: Query) -> dict[str, tuple[Any, ...]]:
    """Valid arguments for each claiming or finishing procedure, in a queue where each has work to do."""
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    sql("DELETE FROM mq_archive")  # a call deletes a thousand, and those of other tests may be older
    session.call("send", queue, "done")
    session.call("take_batch", queue, 1)
    *_, ready = [session.call("send", queue, "b")[0]["id"] for _ in range(3)]
    [row] = session.call("claim_batch", queue, 1, queue)
    [lost] = session.call("claim_batch", queue, 1)
    sql("UPDATE mq_batch SET lease_until = claimed_at WHERE batch_key = %s", lost["batch_key"])
    [dead] = session.call("send", queue, "b")
    session.call("count_attempt", dead["id"], "no", None, 1)
    id, key = row["id"], row["batch_key"]
    session.call("send_message", queue, "b", None, None, None, "d")
    session.call("set_queue", queue, '{"ring": 1}')
    session.call("set_group", f"{queue}.old", "g", 2)
    by_type = dict.fromkeys(
        ("get_message", "claim_batch", "claim_any", "claim_wraparound", "take_batch", "rescue_expired"), (queue,)
    )
    by_key = dict.fromkeys(("complete_batch", "finish_batch", "release_batch"), (key,))
    others = {
        "redrive": (dead["id"],),
        "redrive_all": (queue,),
        "purge": (queue, "N"),
        "cancel": (dead["id"],),
        "cancel_key": (queue, "d"),
        "drop_queue": (f"{queue}.old",),
        "release_consumer": (queue,),
        "update_message": (ready, '{"priority": 1}'),
    }
    others["set_group"] = (queue, "g", 2)
    return {
        **by_type,
        **by_key,
        **others,
        "finish_messages": (key, f'{{"id":{id}}}'),
        "complete": (id, key),
        "fail": (id, key),
        "dead_letter": (id, key),
        "snooze": (id, key, 60),
        "count_attempt": (ready,),
    }


@pytest.mark.level(3)
@pytest.mark.parametrize("wrong", LEVELS)
def test_no_procedure_claims_or_finishes_inside_a_transaction_of_another_level(
    client: Client, arguments: dict[str, tuple[Any, ...]], queue: str, sql: Query, wrong: str
) -> None:
    before = content(sql, queue)
    client.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {wrong}")
    assert sorted(arguments) == CLAIMING
    for procedure in CLAIMING:
        for begin in ("START TRANSACTION", "SET autocommit = 0"):
            client.execute(begin)
            client.execute("SELECT * FROM mq_queue").fetchall()
            with pytest.raises(pymysql.Error, match=f"wrong_isolation: .*{wrong}.*READ COMMITTED") as refused:
                call(client, procedure, *arguments[procedure])
            assert refused.value.args[0] & 0xFFFF == WRONG_ISOLATION
            client.execute("COMMIT")
            client.execute("SET autocommit = 1")
        assert content(sql, queue) == before, procedure
    assert level(client) == wrong


@pytest.mark.parametrize("procedure", OF_TABLES)
def test_calls_on_users_tables_check_the_level_first(client: Client, procedure: str) -> None:
    for wrong in LEVELS:
        client.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {wrong}")
        client.execute("START TRANSACTION")
        with pytest.raises(pymysql.Error, match=f"wrong_isolation: .*{wrong}.*READ COMMITTED"):
            call(client, procedure, OF_TABLES[procedure])
        client.execute("COMMIT")


@pytest.mark.level(3)
@pytest.mark.parametrize("own", LEVELS)
@pytest.mark.parametrize("procedure", CLAIMING)
def test_outside_a_transaction_every_isolation_level_works_and_stays_unchanged(
    client: Client, arguments: dict[str, tuple[Any, ...]], queue: str, sql: Query, own: str, procedure: str
) -> None:
    """The procedure sets READ COMMITTED for a transaction of its own."""
    before = content(sql, queue)
    client.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {own}")
    call(client, procedure, *arguments[procedure])
    assert level(client) == own
    after = content(sql, queue)
    assert after != before
    client.close()
    assert content(sql, queue) == after


def test_sending_and_looking_join_a_transaction_of_any_level(client: Client, queue: str, sql: Query) -> None:
    for each in LEVELS:
        client.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {each}")
        client.execute("START TRANSACTION")
        call(client, "send", queue, each)
        call(client, "send_batch", queue, each)
        call(client, "queue_stats", queue)
        client.execute("COMMIT")
    assert len(sql("SELECT * FROM mq_ready WHERE type = %s", queue)) == 2 * len(LEVELS)


def test_without_autocommit_a_call_waits_for_the_callers_commit(client: Client, queue: str, sql: Query) -> None:
    client.execute("SET autocommit = 0")
    call(client, "send", queue, "rolled back")
    client.execute("ROLLBACK")
    call(client, "send", queue, "committed")
    assert sql("SELECT * FROM mq_ready WHERE type = %s", queue) == []
    client.execute("COMMIT")
    [row] = call(client, "take_batch", queue, 10)
    assert row["body"] == "committed"
    assert len(sql("SELECT * FROM mq_ready WHERE type = %s", queue)) == 1
    client.execute("COMMIT")
    assert sql("SELECT * FROM mq_ready WHERE type = %s", queue) == []


def test_a_call_leaves_the_callers_own_savepoints_alone(client: Client, queue: str, sql: Query) -> None:
    client.execute("START TRANSACTION")
    call(client, "send", queue, "1")
    client.execute("SAVEPOINT mine")
    call(client, "send", queue, "2")
    with pytest.raises(pymysql.Error, match="invalid_argument"):
        call(client, "claim_batch", queue, 0)
    client.execute("ROLLBACK TO SAVEPOINT mine")
    call(client, "send", queue, "3")
    client.execute("COMMIT")
    assert [row["body"] for row in sql("SELECT body FROM mq_message WHERE type = %s ORDER BY id", queue)] == ["1", "3"]


# ---- interrupted calls ---------------------------------------------------------------------------------


class Stuck:
    """A call that waits in the middle of its work, for a dedup_key of an open transaction."""

    def __init__(self, holder: Client, sql: Query, queue: str) -> None:
        self._holder, self._sql, self._queue = holder, sql, queue
        self.call = ("send_message", queue, "stuck", None, None, None, "taken")
        holder.execute("START TRANSACTION")
        holder.execute("INSERT INTO mq_dedup (type, dedup_key, id) VALUES (%s, 'taken', 0)", [queue])

    def when_it_waits(self, id: int, act: Callable[[], Any]) -> threading.Thread:
        """Do something as soon as the connection of that id waits."""
        query = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = %s AND trx_state = 'LOCK WAIT'"

        def watch() -> None:
            deadline = time.monotonic() + 60
            while not self._sql(query, id) and time.monotonic() < deadline:
                time.sleep(0.2)  # the server refreshes this only after 0.1 s without a query
            act()

        thread = threading.Thread(target=watch)
        thread.start()
        return thread

    def let_go(self) -> None:
        self._holder.execute("ROLLBACK")

    def gone(self, id: int) -> bool:
        return not self._sql("SELECT 1 FROM information_schema.processlist WHERE id = %s", id)

    def left(self) -> tuple[int, ...]:
        """How many rows the queue has in the tables that the call writes."""
        tables = ("message", "ready", "dedup")
        counts = (self._sql(f"SELECT COUNT(*) AS n FROM mq_{table} WHERE type = %s", self._queue) for table in tables)
        return tuple(rows[0]["n"] for rows in counts)


@pytest.fixture
def stuck(server: Server, database: Database, sql: Query, queue: str) -> Iterator[Stuck]:
    with server.client(database.url) as holder:
        yield Stuck(holder, sql, queue)


def thread_id(session: Session) -> int:
    with session.transaction() as connection:
        id: int = connection.thread_id()
    return id


def test_a_call_that_is_killed_leaves_nothing_and_the_next_one_commits(
    session: Session, stuck: Stuck, sql: Query, queue: str
) -> None:
    """MySQL leaves the procedure's own transaction open then: later calls would join it, and nothing be committed."""
    id = thread_id(session)
    watching = stuck.when_it_waits(id, lambda: sql(f"KILL QUERY {id}"))
    with pytest.raises(Conflict):
        session.call(*stuck.call)
    watching.join()
    stuck.let_go()
    session.call("send", queue, "next")
    assert stuck.left() == (1, 1, 0)


def test_a_transaction_in_which_a_call_was_killed_cannot_commit(
    session: Session, stuck: Stuck, sql: Query, queue: str
) -> None:
    id = thread_id(session)
    watching = stuck.when_it_waits(id, lambda: sql(f"KILL QUERY {id}"))
    with pytest.raises(Conflict), session.transaction():
        session.call("send", queue, "before")
        with suppress(Conflict):
            session.call(*stuck.call)
    watching.join()
    stuck.let_go()
    assert stuck.left() == (0, 0, 0)
    with session.transaction():
        session.call("send", queue, "next")
    assert stuck.left() == (1, 1, 0)


@pytest.mark.parametrize("begin", ["SET autocommit = 1", "START TRANSACTION"])
def test_a_client_that_disappears_during_a_call_leaves_all_of_it_or_nothing(
    client: Client, stuck: Stuck, begin: str
) -> None:
    client.execute(begin)
    id = client.thread_id()

    def hang_up() -> None:
        client._sock.shutdown(socket.SHUT_RDWR)
        stuck.let_go()

    watching = stuck.when_it_waits(id, hang_up)
    with pytest.raises(pymysql.Error):
        call(client, *stuck.call)
    watching.join()
    deadline = time.monotonic() + 60
    while not stuck.gone(id):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert stuck.left() in ([(0, 0, 0)] if begin == "START TRANSACTION" else [(0, 0, 0), (1, 1, 1)])


# ---- sessions with settings of their own ---------------------------------------------------------------


SETTINGS = {
    "ansi": "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,ONLY_FULL_GROUP_BY,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE'",
    "no mode": "sql_mode = ''",
    "--safe-updates": "sql_safe_updates = 1, sql_select_limit = 1000, max_join_size = 1000000",
    "chained": "completion_type = 'CHAIN'",
    "small lists": "group_concat_max_len = 1024",
    "another time zone": "time_zone = '-08:00'",
    "steps of ten": "auto_increment_increment = 10, auto_increment_offset = 3",
    "fixed time": "timestamp = 1000000000",
    "user variables": "unique_checks = 1, @id = 5, @v_own = 0, @p_type = 'x', @mq_application = 'a b'",
    "no foreign keys": "foreign_key_checks = 0, unique_checks = 0",
}


@pytest.mark.level(3)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_callers_settings_make_no_difference(client: Client, queue: str, sql: Query, settings: str) -> None:
    client.execute(f"SET SESSION {settings}")
    bodies = ["it's \\ \" 😀", *(f"b{n}" for n in range(2_500))]
    if "NO_BACKSLASH" in settings:
        client.server_status |= SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES
    call(client, "set_queue", queue, '{"on_complete": "archive"}')
    assert call(client, "send_batch", queue, "\n".join(bodies)) == [{"affected": len(bodies)}]
    rows = call(client, "claim_batch", queue, 2_100, "r", 60)
    assert [row["body"] for row in rows] == bodies[:2_100]
    key = rows[0]["batch_key"]
    failures = "\n".join(dead_letter(row["id"], "it's \\n") for row in rows[:1_200])
    assert len(call(client, "finish_batch", key, failures, 10_000)) == len(bodies) - 2_100
    assert call(client, "redrive_all", queue, None, 10_000) == [{"affected": 1_200}]
    assert len(call(client, "take_batch", queue, 600)) == 600
    assert call(client, "purge", queue, "N")[0]["affected"] == 600
    with pytest.raises(pymysql.Error, match="invalid_argument"):
        call(client, "send_batch", queue, "x\n" * 10_001)
    if "sql_safe_updates" in settings:
        assert client.execute("SELECT @@sql_safe_updates AS safe").fetchone()["safe"] == 1
    client.close()  # uncommitted changes are rolled back
    assert len(sql("SELECT * FROM mq_archive WHERE type = %s", queue)) == 1_500
    assert sql("SELECT * FROM mq_ready WHERE type = %s", queue) == []


@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "cp1252"])
def test_text_of_another_character_set_is_converted(
    server: Server, database: Database, queue: str, sql: Query, charset: str
) -> None:
    name, text = f"{queue} é", "caf\u00e9 \u2014 na\u00efve"
    coding = "utf-8" if charset == "utf8mb3" else "cp1252"
    with server.client(database.url) as client:
        client.execute(f"SET NAMES {'latin1' if charset == 'cp1252' else charset}")
        client.query(f"CALL mq_send('{name}', '{text}')".encode(coding))
        client.next_result()
    [row] = sql("SELECT type, body FROM mq_message WHERE type = %s", name)
    assert (row["type"], row["body"]) == (name, text)
    with server.client(database.url) as client:
        assert [row["body"] for row in call(client, "claim_batch", name)] == [text]


@pytest.mark.parametrize("other", ["A", "a ", "\u00e1", "a\x01", "a\u0301", "\uff41"])
def test_names_that_collations_take_for_equal_are_two_queues(session: Session, queue: str, other: str) -> None:
    first, second = f"{queue}.a", f"{queue}.{other}"
    for name in (first, second):
        session.call("set_queue", name, '{"ordered": 1}')
        for key in ("a", second[-2:]):
            assert session.call("send_message", name, name, None, None, key, key)[0]["created"] == 1
    for name in (first, second):
        rows = session.call("claim_batch", name, 10)
        assert [row["body"] for row in rows] == [name, name]
        assert session.call("complete_batch", rows[0]["batch_key"])[0]["affected"] == 2


@pytest.mark.parametrize(
    "name", ["SELECT", "`mq_message`", "'; DROP TABLE mq_ready; --", "%", "_", "NULL", "1=1", "\\"]
)
def test_a_type_named_like_sql_is_a_name(session: Session, queue: str, name: str) -> None:
    name = f"{name}{queue}{name}"
    session.call("send", name, name)
    session.call("set_queue", name, '{"ring": 1}')
    [row] = session.call("claim_wraparound", name, 10, name)
    assert (row["type"], row["body"]) == (name, name)
    assert session.call("complete", row["id"], row["batch_key"]) == [{"affected": 1}]
    assert session.call("claim_batch", name, 10) == []
