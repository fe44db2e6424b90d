"""READ COMMITTED that was set for one transaction only, as Go, Rails, Sequel and knex set it, on MySQL and MariaDB."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest
from rowqueue.databases import Conflict, Database, open_database
from rowqueue.databases.mysql import script
from rowqueue.install import apply as install
from servers import Server, mysql
from servers.mysql import Client

pytestmark = pytest.mark.product("mysql", "mariadb")

OWNER = "'mq_owner'@'localhost'"
OTHERS = ["REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"]


def rows(client: Client, statement: str) -> list[dict[str, Any]]:
    cursor = client.execute(statement)
    found = list(cursor.fetchall()) if cursor.description else []
    while cursor.nextset():
        pass
    return found


def claim(client: Client, queue: str) -> list[dict[str, Any]]:
    return rows(client, f"CALL mq_claim_batch('{queue}', 1, NULL, NULL)")


@pytest.fixture(scope="module")
def _shown(server_name: str) -> Iterator[tuple[mysql.LocalMySQL, str]]:
    """A server with default settings: MySQL has a performance schema, and MariaDB no binary log."""
    if server_name.endswith("-dsn"):
        pytest.skip("the named server is not ours to start")
    server = mysql.LocalMySQL(
        server_name, {"skip-log-bin": "ON"} if "mariadb" in server_name else {"performance-schema": "ON"}
    )
    server.start()
    url = server.create_database()
    install.apply(open_database(url))
    yield server, url
    server.close()


@pytest.fixture
def shown(_shown: tuple[mysql.LocalMySQL, str]) -> Iterator[Callable[[], Client]]:
    """Makes connections to it at MySQL's default level."""
    server, url = _shown
    made: list[Client] = []

    def connect() -> Client:
        made.append(server.client(url))
        made[-1].execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return made[-1]

    yield connect
    for client in made:
        client.close()
    server.query(url, "DELETE FROM mq_batch")
    for kind in ("ready", "message", "delayed", "mark"):
        server.query(url, f"DELETE FROM mq_{kind}")


@contextmanager
def refused(level: str, whose: str) -> Iterator[None]:
    told = f"wrong_isolation: this {whose} is {level}: SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
    with pytest.raises(pymysql.Error, match=told) as error:
        yield
    assert error.value.args[0] & 0xFFFF == 50001


@pytest.mark.level(3)
def test_the_level_of_one_transaction_counts(shown: Callable[[], Client]) -> None:
    client = shown()
    for begin in ("START TRANSACTION", "START TRANSACTION READ WRITE", "BEGIN", "SET autocommit = 0"):
        for level in OTHERS:
            client.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            client.execute(begin)
            client.execute("SELECT COUNT(*) FROM mq_queue").fetchall()
            with refused(level, "transaction"):
                claim(client, "q")
            client.execute("ROLLBACK")
            client.execute("SET autocommit = 1")
            # The next transaction must not inherit the level that was seen in the last one.
            client.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            client.execute(begin)
            rows(client, f"CALL mq_send('q', '{level}')")
            assert [row["body"] for row in claim(client, "q")] == [level]
            rows(client, "SELECT 1")
            client.execute("COMMIT")
            client.execute("SET autocommit = 1")
            client.execute("START TRANSACTION")
            with refused("REPEATABLE READ", "transaction"):
                claim(client, "q")
            client.execute("COMMIT")
    assert rows(client, "SELECT COUNT(*) AS n FROM mq_batch") == [{"n": 12}]


def test_go_rails_and_sequel_claim_and_finish_in_such_a_transaction(shown: Callable[[], Client]) -> None:
    """The statements that their drivers send; several calls in one transaction, and savepoints of the caller's own."""
    client = shown()
    rows(client, "CALL mq_send_batch('q', 'a\nb\nc', NULL)")
    rows(client, "CREATE TABLE done (id bigint PRIMARY KEY)")
    client.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.execute("START TRANSACTION")
    client.execute("SAVEPOINT active_record_1")
    [row] = claim(client, "q")
    client.execute("INSERT INTO done VALUES (1)")
    client.execute("RELEASE SAVEPOINT active_record_1")
    client.execute("SAVEPOINT active_record_2")
    rows(client, f"CALL mq_complete({row['id']}, '{row['batch_key']}')")
    [second] = rows(client, "CALL mq_take_batch('q', 1)")
    client.execute("ROLLBACK TO SAVEPOINT active_record_2")
    rows(client, f"CALL mq_finish_batch('{row['batch_key']}', NULL, 0)")
    client.execute("COMMIT")
    assert rows(client, "SELECT id FROM done") == [{"id": 1}]
    left = rows(client, "SELECT id, state FROM mq_message_state ORDER BY id")
    assert left == [{"id": second["id"], "state": "N"}, {"id": second["id"] + 1, "state": "N"}]


def test_many_sessions_at_once_are_all_let_in_or_refused_as_their_transactions_are(
    shown: Callable[[], Client],
) -> None:
    """Half of them are READ COMMITTED for one transaction, in turn; sessions must not be confused."""
    rows(shown(), "CALL mq_send_batch('q', 'a', NULL)")
    wrong: list[str] = []

    def work(client: Client, number: int) -> None:
        for turn in range(6):
            right = (turn + number) % 2 == 0
            if right:
                client.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            client.execute("START TRANSACTION")
            try:
                claim(client, f"q{number}")
                if not right:
                    wrong.append(f"{number}: let in")
            except pymysql.Error as error:
                if right or error.args[0] & 0xFFFF != 50001:
                    wrong.append(f"{number}: {error}")
            client.execute("ROLLBACK")

    threads = [threading.Thread(target=work, args=(shown(), number)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []


def test_a_login_that_holds_the_lock_of_the_check_hardly_delays_it(shown: Callable[[], Client]) -> None:
    client, stranger = shown(), shown()
    if not client.is_mariadb:
        pytest.skip("MySQL takes no such lock")

    def seconds() -> float:
        client.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        client.execute("START TRANSACTION")
        begun = time.monotonic()
        assert claim(client, "q") == []
        client.execute("COMMIT")
        return time.monotonic() - begun

    alone = seconds()
    [held] = rows(stranger, "SELECT GET_LOCK('mq_innodb_trx', 0) AS held")
    assert held == {"held": 1}
    assert min(seconds(), seconds()) < alone + 1  # it waited two seconds
    rows(stranger, "DO RELEASE_LOCK('mq_innodb_trx')")


def test_an_installation_names_the_connection_that_holds_its_lock(
    server: Server, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "INSTALL_SECONDS", 0)
    with closing(server.client(empty_database.url)) as holder:
        script.make_yoyo_tables(holder.cursor())
        rows(holder, f"DO GET_LOCK({script.INSTALL_LOCK}, 0)")
        with pytest.raises(Conflict, match=f"connection {holder.thread_id()} holds its lock"):
            install.apply(empty_database)


@pytest.mark.level(3)
def test_a_login_cannot_take_the_lock_of_an_installation(
    server: Server, installed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is in a row that the login cannot read, and cannot be computed."""
    monkeypatch.setattr(script, "INSTALL_SECONDS", 0)
    names = ("CONCAT('rowqueue.', LEFT(SHA2(DATABASE(), 256), 40))", f"'{script.LOCK_ROW}'")
    with server.login(installed_database.url, "eve", "mq_operator") as url, closing(server.client(url)) as stranger:
        with pytest.raises(pymysql.Error, match="denied"):
            rows(stranger, f"SELECT GET_LOCK({script.INSTALL_LOCK}, 0)")
        for name in names:
            assert rows(stranger, f"SELECT GET_LOCK({name}, 0) AS held") == [{"held": 1}]
        with installed_database.installing():
            assert rows(stranger, "SELECT 1 AS n") == [{"n": 1}]


def test_without_the_right_to_see_it_the_level_of_the_session_counts(shown: Callable[[], Client]) -> None:
    """As after an installation by a user who may not grant that right."""
    client = shown()
    if client.is_mariadb:
        client.execute(f"REVOKE PROCESS ON *.* FROM {OWNER}")
    else:
        client.execute(f"REVOKE SELECT ON performance_schema.events_transactions_current FROM {OWNER}")
    for level in ("REPEATABLE READ", "READ COMMITTED"):
        client.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        client.execute("START TRANSACTION")
        client.execute("SELECT COUNT(*) FROM mq_queue").fetchall()
        with refused("REPEATABLE READ", "session"):
            claim(client, "q")
        client.execute("COMMIT")
    # Outside of a transaction the call sets its own.
    assert claim(client, "q") == []
    if client.is_mariadb:
        client.execute(f"GRANT PROCESS ON *.* TO {OWNER}")
    else:
        client.execute(f"GRANT SELECT ON performance_schema.events_transactions_current TO {OWNER}")
    client.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.execute("START TRANSACTION")
    assert claim(client, "q") == []
    client.execute("COMMIT")


def test_figures_that_the_performance_schema_does_not_record_are_ignored(shown: Callable[[], Client]) -> None:
    """It keeps the last recorded transaction, which may still be open."""
    client = shown()
    if client.is_mariadb:
        pytest.skip("its performance schema is not asked")
    client.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.execute("START TRANSACTION")
    client.execute("SELECT COUNT(*) FROM mq_queue").fetchall()
    client.execute("UPDATE performance_schema.threads SET instrumented = 'NO' WHERE processlist_id = CONNECTION_ID()")
    client.execute("COMMIT")
    client.execute("START TRANSACTION")
    client.execute("SELECT COUNT(*) FROM mq_queue").fetchall()
    with refused("REPEATABLE READ", "session"):
        claim(client, "q")
    client.execute("ROLLBACK")


def test_only_sessions_with_another_isolation_level_are_checked(shown: Callable[[], Client]) -> None:
    client = shown()
    client.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    [made] = rows(client, "SHOW CREATE PROCEDURE imq_transaction_level")
    rows(client, "DROP PROCEDURE imq_transaction_level")
    try:
        client.execute("START TRANSACTION")
        assert claim(client, "q") == []
        client.execute("COMMIT")
    finally:
        rows(client, made["Create Procedure"])
        rows(client, f"GRANT EXECUTE ON PROCEDURE imq_transaction_level TO {OWNER}")
