"""MySQL and MariaDB only: errors, option files, TLS, lost transactions, rights and the script."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import pymysql
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from rowqueue.databases import (
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    NotAllowed,
    QueueError,
    Session,
    open_database,
)
from rowqueue.databases.mysql import MySQLSession
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server, product
from servers.mysql import LocalMySQL
from support.waiting import until

Query = Callable[..., list[dict[str, Any]]]
Connect = Callable[..., MySQLSession]


pytestmark = pytest.mark.product("mysql", "mariadb")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and none of the variables that the servers' clients read."""
    for name in ("MYSQL_PWD", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def bare(url: str) -> str:
    """A URL with its database and nothing else."""
    return f"mysql://{urlsplit(url).path}"


def option_file(path: Path, group: str, **options: Any) -> Path:
    lines = [f"{key.replace('_', '-')} = {value}" for key, value in options.items()]
    path.write_text("\n".join(["# a comment", "[other]", "user = nobody", f"[{group}]", *lines, ""]))
    return path


def login(url: str) -> dict[str, Any]:
    """User, password, host and port of a URL, as an option file writes them."""
    parts = urlsplit(url)
    password = unquote(parts.password or "")
    return {"user": parts.username, "password": f'"{password}"', "host": parts.hostname, "port": parts.port}


def who(database: Database) -> dict[str, Any]:
    session = database.connect("test")
    try:
        with session.transaction() as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("SELECT CURRENT_USER() AS user, DATABASE() AS name, @@socket AS socket, @@port AS port")
            row: dict[str, Any] = cursor.fetchone()
            return row
    finally:
        session.close()


# ---- URLs and connecting


def test_a_server_or_socket_that_is_not_there_is_disconnected(tmp_path: Path, home: Path) -> None:
    with pytest.raises(Disconnected, match=r"127\.0\.0\.1:1: Connection refused"):
        open_database("mysql://127.0.0.1:1/db").connect("test")
    with pytest.raises(Disconnected, match=rf"{tmp_path}/socket: No such file"):
        open_database(f"mysql:///db?unix_socket={tmp_path}/socket").connect("test")
    with pytest.raises(Disconnected, match="no-such-host"):
        open_database("mysql://no-such-host.invalid/db").connect("test")


def test_a_url_without_a_database_says_what_is_missing(home: Path) -> None:
    with pytest.raises(DatabaseError, match="no database is named") as caught:
        open_database("mysql://127.0.0.1:1").connect("test")
    assert not isinstance(caught.value, Disconnected)


def test_a_database_or_account_that_does_not_exist_is_an_error_that_waiting_does_not_cure(database: Database) -> None:
    user = urlsplit(database.url).username
    for url in (f"{database.url}_missing", database.url.replace(f"//{user}:", "//nobody_here:")):
        with pytest.raises(DatabaseError, match=r"Unknown database|Access denied") as caught:
            open_database(url).connect("test")
        assert not isinstance(caught.value, Disconnected)


def test_an_answer_in_another_language_is_named(home: Path) -> None:
    import socketserver

    class Web(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"\x0e\x00\x00\x00HTTP/1.0 400\r\n\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Web) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        with pytest.raises(DatabaseError, match=r"does not answer as a MySQL or MariaDB server|Lost connection"):
            open_database(f"mysql://u@127.0.0.1:{listening.server_address[1]}/db").connect("test")
        listening.shutdown()


def test_a_connection_attempt_to_a_server_without_a_handshake_ends(home: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        with pytest.raises(Disconnected):
            open_database(f"mysql://u@127.0.0.1:{silent.getsockname()[1]}/db?connect_timeout=1").connect("test")
        assert 0.9 < time.monotonic() - started < 10


def test_the_option_file_of_the_user_is_read(database: Database, home: Path) -> None:
    option_file(home / ".my.cnf", "client", **login(database.url))
    assert who(open_database(bare(database.url)))["name"] == urlsplit(database.url).path[1:]


def test_a_group_of_a_named_option_file_is_read(database: Database, home: Path) -> None:
    option_file(home / ".my.cnf", "client", user="nobody_here")
    path = option_file(home / "queue.cnf", "queue", **login(database.url))
    named = f"{bare(database.url)}?default_file={quote(str(path))}&default_group=queue"
    assert who(open_database(named))["user"].startswith(f"{urlsplit(database.url).username}@")


def test_the_environment_goes_before_the_option_file_and_the_url_before_both(
    database: Database, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = login(database.url)
    option_file(home / ".my.cnf", "client", user=known["user"], password="wrong", host="127.0.0.1", port=1)
    monkeypatch.setenv("MYSQL_TCP_PORT", str(known["port"]))
    monkeypatch.setenv("MYSQL_HOST", known["host"])
    monkeypatch.setenv("MYSQL_PWD", unquote(urlsplit(database.url).password or ""))
    assert who(open_database(bare(database.url)))["port"] == known["port"]
    monkeypatch.setenv("MYSQL_PWD", "wrong as well")
    monkeypatch.setenv("MYSQL_TCP_PORT", "1")
    assert who(open_database(database.url))["port"] == known["port"]
    with pytest.raises(DatabaseError):
        open_database(bare(database.url)).connect("test")


def test_a_bad_option_file_or_variable_is_one_line_that_names_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatabaseError, match=r"option file .*missing\.cnf: No such file"):
        open_database(f"mysql://127.0.0.1:1/db?default_file={home}/missing.cnf").connect("test")
    option_file(home / ".my.cnf", "client", port="many")
    with pytest.raises(DatabaseError, match=r"option file .*\.my\.cnf: port is 'many'"):
        open_database("mysql://127.0.0.1/db").connect("test")
    (home / ".my.cnf").unlink()
    monkeypatch.setenv("MYSQL_TCP_PORT", "few")
    with pytest.raises(DatabaseError, match="port is 'few'"):
        open_database("mysql://127.0.0.1/db").connect("test")


def test_a_socket_is_taken_from_the_url_and_for_localhost_from_elsewhere(
    server: Server, database: Database, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(server, LocalMySQL):
        pytest.skip("the named server's socket is not known")
    known = login(database.url)
    credentials = urlsplit(database.url).netloc.rpartition("@")[0]
    path = urlsplit(database.url).path
    socket = quote(str(server.socket))
    # A server does not report how a session connected; a port without a listener shows it.
    assert who(open_database(f"mysql://{credentials}@/{path[1:]}?unix_socket={socket}"))["socket"] == str(server.socket)
    option_file(home / ".my.cnf", "client", socket=server.socket, port=1)
    assert who(open_database(f"mysql://{credentials}@localhost{path}"))["name"] == path[1:]
    with pytest.raises(Disconnected, match=r"127\.0\.0\.1:1"):
        open_database(f"mysql://{credentials}@127.0.0.1{path}").connect("test")
    with pytest.raises(Disconnected, match=r"localhost:1"):
        open_database(f"mysql://{credentials}@localhost:1{path}").connect("test")
    (home / ".my.cnf").unlink()
    monkeypatch.setenv("MYSQL_UNIX_PORT", str(server.socket))
    assert who(open_database(f"mysql://{credentials}@{path}"))["port"] == known["port"]


def cipher(database: Database) -> str:
    session = database.connect("test")
    with session.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        value = cursor.fetchone()[1]
    session.close()
    return str(value)


def test_tls_is_used_where_the_server_has_it_and_refused_or_required_on_request(
    server: Server, database: Database
) -> None:
    has_tls = bool(cipher(database))
    assert cipher(open_database(f"{database.url}?ssl_mode=disabled")) == ""
    required = open_database(f"{database.url}?ssl_mode=REQUIRED")
    if has_tls:
        assert cipher(required)
    else:
        with pytest.raises(DatabaseError, match="SSL is required"):
            required.connect("test")


def signed(folder: Path, name: str, issuer: tuple[x509.Name, Any] | None) -> tuple[x509.Name, Any]:
    """Write NAME.pem and NAME-key.pem: an authority, or a certificate for 127.0.0.1 that the issuer has signed."""
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(
            issuer[0] if issuer else subject, subject, key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(issuer[1] if issuer else key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / f"{name}-key.pem").write_bytes(private)
    return subject, key


@pytest.mark.level(3)
@pytest.mark.product("mysql")  # it uses certificates in its data folder
def test_a_certificate_is_checked_on_request(private_server: LocalMySQL, tmp_path: Path) -> None:
    """With our own authority: clients do not know the one that a server generates."""
    authority = signed(tmp_path, "ca", None)
    signed(tmp_path, "wrong", None)
    signed(tmp_path, "server", authority)
    private_server.stop()
    data = private_server.socket.parent / "data"
    for source, target in (("ca", "ca.pem"), ("server", "server-cert.pem"), ("server-key", "server-key.pem")):
        (data / target).write_bytes((tmp_path / f"{source}.pem").read_bytes())
    private_server.start()
    ca, wrong = tmp_path / "ca.pem", tmp_path / "wrong.pem"
    url = private_server.create_database()
    for mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
        assert cipher(open_database(f"{url}?ssl_mode={mode}&ssl_ca={quote(str(ca))}"))
    assert cipher(open_database(f"{url}?ssl_ca={quote(str(ca))}"))
    for options in (f"ssl_ca={quote(str(wrong))}", "ssl_mode=VERIFY_CA"):
        with pytest.raises(DatabaseError, match="certificate verify failed") as caught:
            open_database(f"{url}?{options}").connect("test")
        assert not isinstance(caught.value, Disconnected)
    other = url.replace("127.0.0.1", "localhost")
    with pytest.raises(DatabaseError, match="Hostname mismatch"):
        open_database(f"{other}?ssl_mode=VERIFY_IDENTITY&ssl_ca={quote(str(ca))}").connect("test")
    with pytest.raises(DatabaseError, match="ssl_ca: cannot be read"):
        open_database(f"{url}?ssl_ca={tmp_path}/none.pem").connect("test")


@pytest.mark.parametrize("mode", ["PREFERRED", "DISABLED"])
def test_a_password_may_hold_any_character(server: Server, empty_database: Database, mode: str) -> None:
    """Without TLS, MySQL's caching_sha2_password wants it encrypted with the server's key."""
    name, password = f"test_{uuid.uuid4().hex[:8]}", "ß€😀 %'\"#@:/?"
    with server.client(empty_database.url) as connection:
        connection.execute(f"CREATE USER {name}@'%%' IDENTIFIED BY %s", [password])
        connection.execute(f"GRANT SELECT ON `{urlsplit(empty_database.url).path[1:]}`.* TO {name}@'%'")
        try:
            host = urlsplit(empty_database.url).netloc.rpartition("@")[2]
            path = urlsplit(empty_database.url).path
            url = f"mysql://{name}:{quote(password, safe='')}@{host}{path}?ssl_mode={mode}"
            assert who(open_database(url))["user"] == f"{name}@%"
        finally:
            connection.execute(f"DROP USER {name}@'%'")


def test_the_session_does_not_depend_on_the_servers_settings(database: Database) -> None:
    session = database.connect("test")
    assert isinstance(session, MySQLSession)
    with session.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@character_set_client, @@wait_timeout, @@autocommit, @@sql_mode LIKE '%STRICT_ALL%'")
        assert cursor.fetchone() == ("utf8mb4", 31536000, 1, 1)
        cursor.execute("SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')")
        assert {value for _, value in cursor.fetchall()} == {"READ-COMMITTED"}
    session.close()


# ---- errors


@pytest.mark.parametrize(
    ("procedure", "arguments", "named"),
    [
        ("send", ("q\0", "x"), "type"),
        ("send", ("q", "x\0y"), "body"),
        ("send", ("q", "x\ud800y"), "body"),
        ("claim_batch", ("q", 1 << 40), "size"),
        ("claim_batch", ("q", -(1 << 80)), "size"),
        ("complete", (1 << 63, str(uuid.uuid4())), "id"),
        ("send_message", ("q", "x", None, 1 << 33), "priority"),
        ("send_message", ("q", "x", None, float("inf")), "priority"),
        ("set_queue", ("q", '{"ordered": 1048576}'), "ordered"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_an_invalid_argument(
    session: Session, sql: Query, procedure: str, arguments: tuple[Any, ...], named: str
) -> None:
    with pytest.raises(QueueError, match=rf"^invalid_argument: {named}: must ") as caught:
        session.call(procedure, *arguments)
    assert caught.value.number == 50002
    assert sql("SELECT 1 FROM mq_message WHERE type LIKE 'q%%' UNION ALL SELECT 1 FROM mq_queue WHERE type = 'q'") == []


@pytest.mark.parametrize(
    ("number", "message", "kind"),
    [
        (1180, "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT", Conflict),
        (1180, "Got error 1 - 'Operation not permitted' during COMMIT", Disconnected),
        (3101, "Plugin instructed the server to rollback the current transaction.", Conflict),
        (3032, "The server is currently in offline mode", Disconnected),
        (3100, "Error on observer while running replication hook 'before_commit'.", Disconnected),
        (3797, "Error while waiting for group transactions commit", Disconnected),
    ],
)
def test_errors_of_a_cluster_are_a_conflict_or_a_lost_member(
    session: MySQLSession, number: int, message: str, kind: type[DatabaseError]
) -> None:
    text = message.replace("'", "''")
    with pytest.raises(kind, match=re.escape(message)), session.transaction() as connection:
        connection.cursor().execute(f"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = '{text}'")


def test_a_value_that_the_server_cannot_convert_is_an_invalid_argument(session: Session) -> None:
    with pytest.raises(QueueError, match=r"^invalid_argument: size: .*'many'") as caught:
        session.call("claim_batch", "q", "many")
    assert caught.value.number == 50002


def test_a_call_longer_than_the_server_takes_names_the_argument_and_the_setting(session: Session, sql: Query) -> None:
    most = sql("SELECT @@max_allowed_packet AS bytes")[0]["bytes"]
    with pytest.raises(QueueError, match=r"^invalid_argument: body: .*max_allowed_packet") as caught:
        session.call("send", "q", "x" * most)
    assert caught.value.number == 50002
    assert session.call("version")


# ---- transactions


@pytest.fixture
def ledger(database: Database, sql: Query) -> Iterator[str]:
    """A table of the user's, with rows 1 and 2."""
    name = f"ledger_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {name} (id integer PRIMARY KEY, amount integer NOT NULL) ENGINE = InnoDB")
    sql(f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    yield name
    sql(f"DROP TABLE {name}")


def deadlock(one: MySQLSession, two: MySQLSession, work: Callable[[Any, int, int], None]) -> list[BaseException]:
    """Two transactions do `work` in opposite order; returns their errors."""
    caught: list[BaseException] = []

    def run(session: MySQLSession, first: int, second: int) -> None:
        try:
            with session.transaction() as connection:
                work(connection, first, second)
        except Exception as error:
            caught.append(error)

    pair = [threading.Thread(target=run, args=arguments) for arguments in ((one, 1, 2), (two, 2, 1))]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join(60)
    return caught


def test_a_deadlock_between_calls_is_a_conflict(connect: Connect, sql: Query, queue: str) -> None:
    one, two = connect(), connect()
    barrier = threading.Barrier(2)
    sessions = {id(one._connection): one, id(two._connection): two}

    def send_both(connection: Any, first: int, second: int) -> None:
        call = sessions[id(connection)].call
        call("send_message", queue, "x", None, None, None, f"key {first}")
        barrier.wait(10)
        call("send_message", queue, "x", None, None, None, f"key {second}")

    [error] = deadlock(one, two, send_both)
    assert isinstance(error, Conflict) and "eadlock" in str(error)
    assert sql("SELECT dedup_key AS k FROM mq_message WHERE type = %s ORDER BY 1", queue) == [
        {"k": "key 1"},
        {"k": "key 2"},
    ]


def test_statements_after_a_swallowed_deadlock_are_refused(
    connect: Connect, sql: Query, ledger: str, queue: str
) -> None:
    """The server rolls the whole transaction back, and every statement after it would commit by itself."""
    barrier = threading.Barrier(2)
    refused: list[pymysql.Error] = []

    def work(connection: Any, first: int, second: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {ledger} SET amount = amount + 1 WHERE id = %s", [first])
            barrier.wait(10)
            try:
                cursor.execute(f"UPDATE {ledger} SET amount = amount + 1 WHERE id = %s", [second])
            except pymysql.OperationalError:
                try:
                    cursor.execute(f"INSERT INTO {ledger} VALUES (3, 0)")
                except pymysql.Error as error:
                    refused.append(error)

    caught = deadlock(connect(), connect(), work)
    assert [type(error) for error in caught] == [Conflict]
    assert "rolled back" in str(refused[0])
    assert sql(f"SELECT * FROM {ledger} ORDER BY id") == [{"id": 1, "amount": 1}, {"id": 2, "amount": 1}]


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK", "CREATE TABLE {ledger}_2 (id integer)"])
def test_a_statement_that_ends_the_transaction_does_not_pass_for_success(
    session: MySQLSession, queue: str, ledger: str, sql: Query, statement: str
) -> None:
    session.call("send", queue, "x")
    with pytest.raises(DatabaseError, match="ended it"), session.transaction() as connection:
        session.call("take_batch", queue, 1)
        with connection.cursor() as cursor:
            cursor.execute(statement.format(ledger=ledger))
    sql(f"DROP TABLE IF EXISTS {ledger}_2")
    session.call("queue_stats", queue)


def test_an_error_of_one_statement_leaves_the_transaction_open(
    session: MySQLSession, queue: str, ledger: str, sql: Query
) -> None:
    """As always on these servers, a duplicate key rolls back only its own statement."""
    session.call("send", queue, "x")
    with session.transaction() as connection, connection.cursor() as cursor:
        session.call("take_batch", queue, 1)
        with pytest.raises(pymysql.IntegrityError):
            cursor.execute(f"INSERT INTO {ledger} VALUES (1, 0)")
        cursor.execute(f"INSERT INTO {ledger} VALUES (3, 0)")
    assert sql(f"SELECT count(*) AS n FROM {ledger}") == [{"n": 3}]
    assert sql("SELECT count(*) AS n FROM mq_message WHERE type = %s", queue) == [{"n": 0}]


# ---- lost connections


def kill(sql: Query, session: MySQLSession, what: str = "CONNECTION") -> None:
    sql(f"KILL {what} {session._connection.thread_id()}")


def test_a_connection_lost_in_a_handlers_own_statement_is_disconnected(connect: Connect, sql: Query) -> None:
    """Not an error of the handler's, which would cost the message an attempt."""
    session = connect()
    with pytest.raises(Disconnected), session.transaction() as connection, connection.cursor() as cursor:
        kill(sql, session)
        cursor.execute("SELECT SLEEP(5)")


def test_a_connection_lost_during_a_call_is_disconnected_and_a_killed_call_a_conflict(
    connect: Connect, sql: Query, queue: str
) -> None:
    """The call waits for another transaction meanwhile."""
    other = connect()
    with other.transaction():
        other.call("send_message", queue, "x", None, None, None, "key")
        for what, expected in (("QUERY", Conflict), ("CONNECTION", Disconnected)):
            session = connect()
            timer = threading.Timer(0.5, kill, (sql, session, what))
            timer.start()
            with pytest.raises(expected):
                session.call("send_message", queue, "y", None, None, None, "key")
            timer.join()
    assert sql("SELECT body FROM mq_message WHERE type = %s", queue) == [{"body": "x"}]


@pytest.mark.level(3)
def test_a_server_that_has_become_read_only_is_left(private_server: Server) -> None:
    """After a failover: the next connection may lead to the new primary."""
    url = private_server.create_database()
    install.apply(open_database(url))
    with private_server.login(url, "shop", "mq_producer") as shop:
        session = open_database(shop).connect("test")
        session.call("send", "q", "x")
        private_server.query(url, "SET GLOBAL read_only = 1")
        with pytest.raises(Disconnected, match="read-only"):
            session.call("send", "q", "x")
        private_server.query(url, "SET GLOBAL read_only = 0")
        session.close()


# ---- installing

RIGHTS_HERE = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE,"
    " ALTER ROUTINE"
)


def definer_rights(name: str) -> str:
    return "SET USER" if product(name) == "mariadb" else "SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER"


@pytest.fixture
def installer(empty_database: Database, server: Server, server_name: str) -> Iterator[tuple[str, Query]]:
    """An account without rights: its URL, and a way to change that."""
    name = f"test_{uuid.uuid4().hex[:8]}"
    with server.login(empty_database.url, name) as url, server.client(empty_database.url) as connection:
        yield url, lambda text: connection.execute(text.format(user=f"{name}@'%'"))


@pytest.mark.level(3)
def test_apply_names_each_right_that_is_missing_and_needs_no_more(
    installer: tuple[str, Query], empty_database: Database, server: Server, server_name: str
) -> None:
    url, change = installer
    name = urlsplit(url).path[1:]
    change(f"GRANT CREATE ON `{name}`.* TO {{user}}")
    with pytest.raises(NotAllowed, match=rf"needs the right SELECT, .*CREATE ROUTINE.* on database {name} to install"):
        install.apply(open_database(url))
    # A name in a grant is a pattern.
    change(f"GRANT {RIGHTS_HERE} ON `{name.replace('_', chr(92) + '_')}`.* TO {{user}} WITH GRANT OPTION")
    with pytest.raises(NotAllowed, match=r"needs the right CREATE USER on \*\.\* to install"):
        install.apply(open_database(url))
    change("GRANT CREATE USER ON *.* TO {user}")
    with pytest.raises(NotAllowed, match=rf"needs the right {definer_rights(server_name)} .*on \*\.\* to install"):
        install.apply(open_database(url))
    assert empty_database.installed() is None
    change(f"GRANT {definer_rights(server_name)} ON *.* TO {{user}}")
    install.apply(open_database(url))
    assert install.pending(open_database(url)) == []
    with server.login(empty_database.url, f"test_{uuid.uuid4().hex[:8]}", "mq_producer") as shop:
        session = open_database(shop).connect("test")
        assert session.call("send", "q", "x")[0]["id"] > 0
        session.close()


@pytest.mark.level(3)
def test_rights_that_come_from_an_active_role_count(
    installer: tuple[str, Query], server: Server, server_name: str
) -> None:
    url, change = installer
    role = f"test_{uuid.uuid4().hex[:8]}"
    change(f"CREATE ROLE {role}")
    try:
        change(f"GRANT {RIGHTS_HERE} ON `{urlsplit(url).path[1:]}`.* TO {role} WITH GRANT OPTION")
        change(f"GRANT CREATE USER, {definer_rights(server_name)} ON *.* TO {role}")
        change(f"GRANT {role} TO {{user}}")
        change(f"SET DEFAULT ROLE {role} {'FOR' if product(server_name) == 'mariadb' else 'TO'} {{user}}")
        install.apply(open_database(url))
        assert install.pending(open_database(url)) == []
    finally:
        change(f"DROP ROLE {role}")


@pytest.mark.level(3)
def test_an_interrupted_apply_is_finished_by_the_next(
    empty_database: Database, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DDL cannot be rolled back: finished files stay, but count as not installed until all are done."""
    known = install.files("mysql")
    broken = [replace(file, text="CREATE nonsense") if file.name == "peek" else file for file in known]
    monkeypatch.setattr(install, "files", lambda *_: broken)
    with pytest.raises(DatabaseError, match=r"^peek\.sql: "):
        install.apply(empty_database)
    monkeypatch.undo()
    assert {file.name for file in install.pending(empty_database)} >= {"send", "peek", "queue/grants"}
    install.apply(empty_database)
    assert install.pending(empty_database) == []
    other = server.create_database()
    install.apply(open_database(other))
    assert server.catalog(empty_database.url) == server.catalog(other)
    server.drop_database(other)


@pytest.mark.level(3)
def test_yoyos_own_backend_applies_the_migrations_too(empty_database: Database) -> None:
    folder = contract.sql_root() / "migrations" / "mysql"
    url = urlunsplit(urlsplit(empty_database.url)._replace(scheme="mysql"))
    command = [sys.executable, "-m", "yoyo", "apply", "--batch", "--database", url, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert install.apply(empty_database).migrations == []
    assert install.pending(empty_database) == []


@pytest.mark.level(3)
def test_roles_and_the_owner_stay_while_another_database_needs_them(
    database: Database, empty_database: Database, server: Server, caplog: pytest.LogCaptureFixture, queue: str
) -> None:
    install.apply(empty_database)
    empty_database.uninstall()
    assert "role mq_producer stays" in caplog.text and "'mq_owner'@'localhost' stays" in caplog.text
    with server.login(database.url, f"test_{uuid.uuid4().hex[:8]}", "mq_producer") as url:
        session = open_database(url).connect("test")
        assert session.call("send", queue, "x")[0]["id"] > 0
        session.close()


@pytest.mark.level(3)
def test_the_last_uninstall_of_a_server_takes_the_roles_and_the_owner_along(private_server: Server) -> None:
    url = private_server.create_database()
    accounts = "SELECT user AS name FROM mysql.user WHERE user LIKE 'mq%%'"
    install.apply(open_database(url))
    assert {row["name"] for row in private_server.query(url, accounts)} == {
        "mq_consumer",
        "mq_operator",
        "mq_owner",
        "mq_producer",
        "mq_viewer",
    }
    open_database(url).uninstall()
    assert not private_server.query(url, accounts)


@pytest.mark.level(3)
def test_uninstall_leaves_the_users_own_tables(empty_database: Database, server: Server) -> None:
    server.query(empty_database.url, "CREATE TABLE mq_of_the_user (id integer)")
    install.apply(empty_database)
    empty_database.uninstall()
    tables = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()"
    assert [row["name"] for row in server.query(empty_database.url, tables)] == ["mq_of_the_user"]


@pytest.mark.level(3)
@pytest.mark.parametrize("mode", [[], ["--transaction"]])
def test_a_consumer_outlives_an_upgrade(empty_database: Database, server: Server, mode: list[str]) -> None:
    """The procedures are dropped and created again one by one, and lose their grants."""
    install.apply(empty_database)
    session = empty_database.connect("test")
    with server.login(empty_database.url, f"test_{uuid.uuid4().hex[:8]}", "mq_consumer") as url:
        command = [sys.executable, "-m", "rowqueue.cli", "consume", "--database", url, "--type", "q", "--exec", "true"]
        consumer = subprocess.Popen([*command, "--batch", "1", *mode], stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(3):
                session.call("send_batch", "q", "\n".join(str(n) for n in range(20)))
                until(lambda: session.call("queue_stats", "q")[0]["ready"] < 20)
                server.query(empty_database.url, "UPDATE mq_installed SET fingerprint = NULL")
                assert len(install.apply(empty_database).procedures) > 40
            until(lambda: drained(session, "q"))
            assert consumer.poll() is None
        finally:
            consumer.send_signal(signal.SIGTERM)
            error = consumer.communicate(timeout=60)[1]
        assert consumer.returncode == 0, error
    session.close()


@pytest.mark.level(4)
def test_a_consumer_ends_with_exit_code_3_when_the_upgrade_does_not_come(
    empty_database: Database, server: Server
) -> None:
    install.apply(empty_database)
    program = (
        "import sys; from rowqueue import cli; from rowqueue.databases import link; link.UPGRADE_SECONDS = 8.0;"
        " sys.argv[1:] = ['consume', '--type', 'q', '--exec', 'true', '--database', sys.argv[1]]; cli.main()"
    )
    consumer = subprocess.Popen([sys.executable, "-c", program, empty_database.url], stderr=subprocess.PIPE, text=True)
    session = empty_database.connect("test")
    session.call("send", "q", "x")
    until(lambda: drained(session, "q"))
    session.close()
    started = time.monotonic()
    server.drop_procedure(empty_database.url, "claim_batch")
    error = consumer.communicate(timeout=60)[1]
    assert consumer.returncode == 3, error
    assert time.monotonic() - started > 7
    assert error.count("an upgrade may be replacing it; trying for 8 s") == 1
    assert "runner apply" in error.splitlines()[-1] and "Traceback" not in error


def drained(session: Session, queue: str) -> bool:
    rows = session.call("queue_stats", queue)
    return all(row["ready"] == row["active"] == row["delayed"] == 0 for row in rows)


# ---- the plain script


@pytest.mark.level(3)
def test_the_script_may_lose_its_comments(empty_database: Database, run_script: Callable[..., str]) -> None:
    """The client strips comments by default; the bodies in the catalog then differ."""
    assert run_script(empty_database.url, "\n".join(install.script("mysql")), "--skip-comments") == ""
    assert install.apply(empty_database) == install.Applied()


# ---- waiting for a message


def test_a_sender_wakes_a_listener(connect: Connect, queue: str, interrupt: tuple[int, int]) -> None:
    listener, sender = connect(), connect()
    assert listener.listen([queue]) is True
    assert listener.wait(1, interrupt[0]) is None
    timer = threading.Timer(0.3, lambda: sender.call("send", queue, "x"))
    timer.start()
    assert any(listener.wait(30, interrupt[0]) is not None for _ in range(30))
    timer.join()
    assert [row["body"] for row in listener.call("claim_batch", queue)] == ["x"]


def test_a_wait_that_is_interrupted_leaves_the_connection_usable(
    connect: Connect, queue: str, interrupt: tuple[int, int]
) -> None:
    listener = connect()
    listener.listen([queue])
    os.write(interrupt[1], b"x")
    assert listener.wait(30, interrupt[0]) is None
    assert listener.wait(30, interrupt[0]) is None  # the same wait, interrupted again
    listener.call("send", queue, "x")
    assert listener.call("wait_for_message", queue, 0)[0]["ready"] == 1
    with listener.transaction():
        assert [row["body"] for row in listener.call("take_batch", queue, 1)] == ["x"]
    assert listener.call("claim_batch", queue) == []


def test_a_ready_message_that_cannot_be_claimed_wakes_nobody(
    connect: Connect, queue: str, interrupt: tuple[int, int]
) -> None:
    """Otherwise a consumer would poll without a pause while another session holds the message."""
    listener, taker = connect(), connect()
    listener.listen([queue])
    taker.call("send", queue, "x")
    with taker.transaction():
        taker.call("take_batch", queue, 1)
        assert listener.call("claim_batch", queue) == []
        assert listener.call("wait_for_message", queue, 0)[0]["ready"] == 1
        assert listener.wait(30, interrupt[0]) is None
    assert listener.call("wait_for_message", queue, 0)[0]["ready"] == 0


def test_the_server_waits_for_up_to_1000_queues(connect: Connect, queue: str, interrupt: tuple[int, int]) -> None:
    listener, sender = connect(), connect()
    names = [f"{queue}.{n}" for n in range(1001)]
    assert listener.listen(names) is False
    assert listener.wait(0.01, interrupt[0]) is None
    assert listener.listen(names[1:]) is True
    assert listener.wait(30, interrupt[0]) is None, "nothing came in the time of a call"
    timer = threading.Timer(0.3, lambda: sender.call("send", names[700], "x"))
    timer.start()
    assert next(filter(None, (listener.wait(30, interrupt[0]) for _ in range(30)))) == [names[700]]
    timer.join()


@pytest.mark.parametrize("how", ["KILL QUERY", "KILL"])
def test_a_wait_that_is_killed_ends(
    connect: Connect, server: Server, queue: str, interrupt: tuple[int, int], how: str
) -> None:
    listener = connect()
    listener.listen([queue])
    number = listener._connection.thread_id()
    timer = threading.Timer(0.3, lambda: server.query(server.url, f"{how} {number}"))
    timer.start()
    if how == "KILL":
        with pytest.raises(Disconnected):
            assert any(listener.wait(30, interrupt[0]) is not None for _ in range(30))
    else:
        assert listener.wait(30, interrupt[0]) is None
        timer.join()
        assert listener.call("claim_batch", queue) == []
    timer.join()
