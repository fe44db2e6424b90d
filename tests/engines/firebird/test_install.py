"""Firebird, where DDL commits: interrupted installations continue; unsuitable databases are refused first."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import pytest
import servers
from firebird.driver.core import Cursor
from rowqueue.databases import Database, DatabaseError, migrations, open_database
from rowqueue.databases.firebird import yoyo
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from servers.firebird import PASSWORD, USER, LocalFirebird, driver, dsn
from support.queues import call

pytestmark = pytest.mark.product("firebird")


class Killed(BaseException):
    """Ends an installation between two statements."""


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, count: int, ran: list[str]) -> Iterator[None]:
    """End an installation after a number of statements of a migration that are not in `ran`."""
    before = len(ran)
    execute = yoyo._Cursor.execute

    def counted(self: Any, operation: Any, parameters: Any = None) -> Any:
        query = yoyo.is_there(operation) if isinstance(operation, str) else None
        is_new = query is not None and operation not in ran and not Cursor.execute(self, query).fetchall()
        result = execute(self, operation, parameters)
        if is_new:
            ran.append(operation)
            if len(ran) >= before + count:
                raise Killed
        return result

    with monkeypatch.context() as patch:
        patch.setattr(yoyo._Cursor, "execute", counted)
        yield


@pytest.mark.level(3)
def test_apply_continues_after_a_kill_after_any_statement(
    empty_database: Database, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each statement in turn: every apply continues where the one before was killed."""
    ran: list[str] = []
    kills = 0
    while kills < 200:
        with killed_after(monkeypatch, 1, ran):
            try:
                migrations.migrate(empty_database, False, [*contract.load().areas])
                break
            except Killed:
                kills += 1
    assert 50 < kills < 200
    install.apply(empty_database)
    fresh = server.create_database()
    install.apply(open_database(fresh))
    assert server.catalog(empty_database.url) == server.catalog(fresh)
    counts = "SELECT (SELECT COUNT(*) FROM mq_queue) AS q, (SELECT COUNT(*) FROM mq_stripe) AS s FROM rdb$database"
    assert server.query(empty_database.url, counts) == server.query(fresh, counts)
    server.drop_database(fresh)


@pytest.mark.level(3)
def test_the_lock_of_a_killed_apply_is_gone_with_it(
    empty_database: Database, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_after(monkeypatch, 12, []), pytest.raises(Killed):
        install.apply(empty_database)
    install.apply(empty_database)
    assert install.pending(empty_database) == []
    assert server.query(empty_database.url, 'SELECT * FROM "yoyo_lock"') == []


def test_a_table_of_another_owner_is_not_mistaken_for_ours(
    empty_database: Database, server: Server, queue: str
) -> None:
    name = f"login_{queue[5:15]}"
    server.query(empty_database.url, f"GRANT CREATE TABLE TO USER {name}")
    with server.login(empty_database.url, name) as url, server.client(url) as client:
        client.execute("CREATE TABLE mq_queue (id integer)")
    with pytest.raises(DatabaseError, match="MQ_QUEUE"):
        install.apply(empty_database)


@pytest.fixture(scope="module")
def catalog_by_script(server: Server) -> list[str]:
    """The objects of a database in which the script has run once."""
    assert isinstance(server, LocalFirebird)
    url = server.create_database()
    server.run_script(url, "".join(install.script("firebird")))
    catalog = server.catalog(url)
    server.drop_database(url)
    return catalog


@pytest.mark.level(3)
@pytest.mark.parametrize("part", [0.1, *(pytest.param(part, marks=pytest.mark.level(4)) for part in (0.3, 0.6, 0.95))])
def test_an_interrupted_script_continues_when_it_is_run_again(
    server: Server, part: float, catalog_by_script: list[str]
) -> None:
    assert isinstance(server, LocalFirebird)
    url = server.create_database()
    script = "".join(install.script("firebird"))
    cut = script.index("COMMIT", int(len(script) * part * (0.25 if part < 0.9 else 1)))
    with pytest.raises(AssertionError):
        server.run_script(url, script[:cut] + "\nSELECT no_such_column FROM rdb$database;\n")
    server.run_script(url, script)
    assert server.catalog(url) == catalog_by_script
    assert install.pending(open_database(url)) == []
    server.query(url, "DROP PROCEDURE mq_cancel")
    server.query(url, "GRANT EXECUTE ON PROCEDURE mq_fail TO PUBLIC")
    server.run_script(url, script)
    assert server.catalog(url) == catalog_by_script and install.apply(open_database(url)) == install.Applied()
    server.query(url, "UPDATE mq_installed SET name = 'rowqueue_9999_next' WHERE name = 'rowqueue_0001_queue'")
    with pytest.raises(AssertionError, match="does not know migration rowqueue_9999_next"):
        server.run_script(url, script)
    server.drop_database(url)


def other_database(server: LocalFirebird, name: str, statement: str) -> str:
    """The URL of a database that a statement in isql creates."""
    folder = Path(unquote(urlsplit(server.url).path[1:])).parent
    url = urlunsplit(urlsplit(server.url)._replace(path=f"/{quote(str(folder / name))}"))
    command, environment = server.isql
    text = f"SET SQL DIALECT {1 if 'dialect' in name else 3};\n{statement.format(dsn(url))}\n"
    done = subprocess.run(
        [*command, "-quiet", "-bail"],
        env=os.environ | environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return url


@pytest.mark.parametrize(
    ("name", "statement", "told"),
    [
        ("pages.fdb", "CREATE DATABASE '{}' PAGE_SIZE 4096;", r"pages of 4096 bytes.*gbak -c -page_size 8192"),
        ("dialect.fdb", "CREATE DATABASE '{}';", r"dialect 1.*gfix -sql_dialect 3"),
    ],
)
def test_an_unsuitable_database_is_refused_before_anything_is_created(
    server: Server, name: str, statement: str, told: str
) -> None:
    assert isinstance(server, LocalFirebird)
    if name.startswith("pages") and not server.version.startswith("3."):
        pytest.skip("later versions make no smaller pages")
    url = other_database(server, name, statement)
    before = server.catalog(url)
    with pytest.raises(DatabaseError, match=told):
        install.apply(open_database(url))
    with pytest.raises(AssertionError, match=told):
        server.run_script(url, "".join(install.script("firebird")))
    assert server.catalog(url) == before
    server.drop_database(url)


def test_the_database_of_the_servers_users_is_refused(server: Server) -> None:
    assert isinstance(server, LocalFirebird)
    url = urlunsplit(urlsplit(server.url)._replace(path=f"/{quote(str(server._root / 'security.fdb'))}"))
    with pytest.raises(DatabaseError, match="security database"):
        install.apply(open_database(url))


@pytest.mark.level(3)
def test_a_read_only_database_is_refused_and_what_is_installed_says_so(server: Server) -> None:
    assert isinstance(server, LocalFirebird)
    url = server.create_database()
    database = open_database(url)
    install.apply(database)
    command, environment = server.isql
    gfix = [*command[:-1], str(Path(command[-1]).with_name("gfix"))]

    def mode(name: str) -> None:
        subprocess.run([*gfix, "-mode", name, dsn(url)], env=os.environ | environment, check=True, timeout=60)

    mode("read_only")
    session = database.connect("test")
    with pytest.raises(DatabaseError, match="read-only"):
        call(session, "send", "x", "y")
    assert call(session, "queue_stats", "x")[0]["ready"] == 0
    session.close()
    assert install.apply(database).procedures == []
    mode("read_write")
    server.drop_database(url)


@pytest.mark.level(3)
def test_wrong_rights_are_named_and_apply_puts_them_right(empty_database: Database, server: Server) -> None:
    install.apply(empty_database)
    assert empty_database.rights_problems() == []
    for statement in (
        "GRANT EXECUTE ON PROCEDURE mq_send TO PUBLIC",
        "GRANT SELECT ON mq_message TO PUBLIC",
        "GRANT SELECT ON mq_message_state TO PUBLIC",
        "GRANT SELECT ON mq_message TO ROLE mq_producer",
        "REVOKE EXECUTE ON PROCEDURE mq_send FROM ROLE mq_producer",
        "REVOKE SELECT ON mq_ready FROM PROCEDURE imq_take_ready",
        "DROP ROLE mq_operator",
    ):
        server.query(empty_database.url, statement)
    told = "; ".join(empty_database.rights_problems())
    for words in (
        "PUBLIC may execute MQ_SEND",
        "PUBLIC may read MQ_MESSAGE;",
        "PUBLIC may read MQ_MESSAGE_STATE",
        "MQ_PRODUCER may not execute MQ_SEND",
        "MQ_PRODUCER has a right on MQ_MESSAGE",
        "MQ_TAKE_READY lacks a right on 1 objects",
        "the role MQ_OPERATOR does not exist",
    ):
        assert words in told
    install.apply(empty_database)
    assert empty_database.rights_problems() == []


@pytest.mark.level(4)
def test_an_object_of_another_owner_is_named(empty_database: Database, server: Server, queue: str) -> None:
    """The user that created it first can alter it, even after the queue's owner has replaced it."""
    name = f"login_{queue[5:15]}"
    install.apply(empty_database)
    server.query(empty_database.url, "DROP PROCEDURE mq_cancel")
    server.query(empty_database.url, f"GRANT CREATE PROCEDURE TO USER {name}")
    with server.login(empty_database.url, name) as url, server.client(url) as client:
        client.execute("CREATE PROCEDURE mq_cancel AS BEGIN END")
    applied = install.apply(empty_database)
    assert "MQ_CANCEL belongs to" in " ".join(empty_database.rights_problems())
    assert "MQ_CANCEL belongs to" in " ".join(applied.notices)


@pytest.mark.level(4)
def test_an_owner_who_is_not_an_administrator_can_apply_despite_grants_by_sysdba(server: Server, queue: str) -> None:
    """The owner cannot revoke grants of another user: they are reported, for an administrator."""
    url = server.create_database()
    name = f"login_{queue[5:15]}"
    for kind in ("TABLE", "PROCEDURE", "FUNCTION", "DOMAIN", "VIEW", "EXCEPTION", "SEQUENCE", "ROLE"):
        server.query(url, f"GRANT CREATE {kind} TO USER {name}")
        server.query(url, f"GRANT ALTER ANY {kind} TO USER {name}")
    with server.login(url, name) as mine:
        install.apply(open_database(mine))
        for text in ("mq_send TO mq_producer", "mq_fail TO PUBLIC"):
            server.query(url, f"GRANT EXECUTE ON PROCEDURE {text}")
        with server.client(mine) as client:
            client.execute("GRANT EXECUTE ON PROCEDURE mq_complete TO PUBLIC")
        applied = install.apply(open_database(mine))
        assert open_database(mine).rights_problems() == ["PUBLIC may execute MQ_FAIL"]
        assert "PUBLIC may execute MQ_FAIL" in " ".join(applied.notices)
        install.apply(open_database(url))
        assert open_database(url).rights_problems() == []
        install.apply(open_database(mine))
    server.drop_database(url)


# ---- backup and restore --------------------------------------------------------------------------


def gbak(server: LocalFirebird, *arguments: str) -> None:
    command, environment = server.isql
    program = [*command[:-1], str(Path(command[-1]).with_name("gbak"))]
    login = {"ISC_USER": USER, "ISC_PASSWORD": PASSWORD}
    done = subprocess.run(
        [*program, *arguments], env=os.environ | environment | login, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.level(3)
def test_a_backup_restored_on_a_server_without_its_users_under_another_name_works(
    server: Server, private_server: Server, tmp_path: Path
) -> None:
    """Messages in all states, a feed, a subscription, a polling table; the other server lacks their owner."""
    assert isinstance(server, LocalFirebird) and isinstance(private_server, LocalFirebird)
    url = server.create_database()
    name = "installer"
    for kind in ("TABLE", "PROCEDURE", "FUNCTION", "DOMAIN", "VIEW", "EXCEPTION", "SEQUENCE", "ROLE"):
        server.query(url, f"GRANT CREATE {kind} TO USER {name}")
        server.query(url, f"GRANT ALTER ANY {kind} TO USER {name}")
    with server.login(url, name) as mine:
        database = open_database(mine)
        install.apply(database)
        session = database.connect("test")
        for statement in (
            "CREATE TABLE t (id integer NOT NULL PRIMARY KEY, status char(1), sync bigint)",
            "CREATE INDEX t_status ON t (status, id)",
            "CREATE INDEX t_sync ON t (sync)",
        ):
            session.execute(statement)
        call(session, "set_queue", "q", on_complete="archive")
        for body in ("new", "claimed", "done", "dead"):
            call(session, "send", "q", body)
        call(session, "send_message", "q", "later", priority=1)
        rows = {row["body"]: row for row in call(session, "claim_batch", "q", 4)}
        call(session, "complete", rows["done"]["id"], rows["done"]["batch_key"])
        call(session, "dead_letter", rows["dead"]["id"], rows["dead"]["batch_key"], "no")
        call(session, "create_feed", "f", "t", "id", "sync")
        call(session, "watch_table", "t")
        call(session, "subscribe", "t", "I", "told")
        call(
            session,
            "adopt_table",
            "p",
            "t",
            key_columns="id",
            status_column="status",
            ready_value="N",
            active_value="A",
            done_value="D",
            error_value="E",
        )
        for n in range(3):
            session.execute(f"INSERT INTO t (id, status) VALUES ({n}, 'N')")
        polled = call(session, "claim_rows", "p", 2)
        call(session, "publish_feed", "f")
        before = server.query(url, "SELECT id, state FROM mq_message_state ORDER BY id")
        session.close()

    backup = str(tmp_path / "queue.fbk")
    gbak(server, "-b", dsn(url), backup)
    other = urlunsplit(urlsplit(private_server.url)._replace(path=urlsplit(private_server.create_database()).path))
    gbak(private_server, "-rep", backup, dsn(other))
    restored = open_database(other)
    assert install.pending(restored) == []
    private_server.run_script(other, "".join(install.script("firebird")))
    assert install.pending(restored) == []
    install.apply(restored)
    assert restored.rights_problems() == [] and install.pending(restored) == []
    assert private_server.query(other, "SELECT id, state FROM mq_message_state ORDER BY id") == before
    session = restored.connect("test")
    assert call(session, "finish_rows", polled[0]["batch_key"])[0]["done"] == 2
    assert len(call(session, "claim_rows", "p", 9)) == 1
    session.execute("INSERT INTO t (id, status) VALUES (9, 'D')")
    assert [row["type"] for row in call(session, "claim_batch", "told", 9)][-1:] == ["told"]
    assert call(session, "publish_feed", "f") == [{"affected": 1}]
    assert len(call(session, "fetch_feed", "f", "consumer")) == 4
    assert call(session, "complete_batch", rows["new"]["batch_key"])[0]["affected"] >= 1
    session.close()
    with closing(restored.connect("test")) as session:
        assert [row for row in session.call("queue_health") if row["verdict"] == "bad"] == []
    with private_server.login(other, "stranger") as stranger, private_server.client(stranger) as client:
        for text in ("SELECT * FROM mq_message", "SELECT * FROM mq_send('q', 'x')", "SELECT * FROM mq_peek('q')"):
            with pytest.raises(driver().DatabaseError, match="no permission"):
                client.execute(text)
    server.drop_database(url)


@pytest.mark.level(4)
@pytest.mark.parametrize("by", ["runner", "script"])
def test_a_backup_of_3_0_restored_on_5_0_is_put_right(server: Server, by: str, tmp_path: Path) -> None:
    """Some procedures have another text on 5.0."""
    if server.name != "firebird-5.0":
        pytest.skip("starts the other server that it needs")
    old = servers.make("firebird-3.0")
    assert isinstance(server, LocalFirebird) and isinstance(old, LocalFirebird)
    old.start()
    try:
        url, other = old.create_database(), server.create_database()
        install.apply(open_database(url))
        with closing(open_database(url).connect("test")) as session:
            session.call("send", "q", "x")
        backup = str(tmp_path / "queue.fbk")
        gbak(old, "-b", dsn(url), backup)
    finally:
        old.close()
    gbak(server, "-rep", backup, dsn(other))
    restored = open_database(other)
    assert {file.state for file in install.pending(restored)} == {"pending"}
    if by == "runner":
        assert install.apply(restored).procedures
    else:
        server.run_script(other, "".join(install.script("firebird")))
    assert install.apply(restored) == install.Applied()
    with closing(restored.connect("test")) as session:
        assert [row for row in session.call("queue_health") if row["verdict"] == "bad"] == []
        assert [row["body"] for row in session.call("take_batch", "q", 9)] == ["x"]
    server.drop_database(other)


@pytest.mark.level(3)
def test_a_restored_core_is_a_core_and_can_be_extended(server: Server, tmp_path: Path) -> None:
    assert isinstance(server, LocalFirebird)
    url, other = server.create_database(), server.create_database()
    install.apply(open_database(url), areas=["queue"])
    session = open_database(url).connect("before")
    call(session, "send_batch", "q", "a\nb")
    [row] = call(session, "claim_batch", "q", 1)
    session.close()
    backup = str(tmp_path / "core.fbk")
    gbak(server, "-b", dsn(url), backup)
    gbak(server, "-rep", backup, dsn(other))
    restored = open_database(other)
    assert restored.areas() == ("common", "queue", "operations")
    assert install.apply(restored) == install.Applied()
    install.apply(restored, areas=["schedules"])
    session = restored.connect("after")
    assert call(session, "complete_batch", row["batch_key"]) == [{"affected": 1}]
    assert [row["body"] for row in call(session, "claim_batch", "q", 9)] == ["b"]
    session.close()
