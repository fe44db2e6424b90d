"""MySQL and MariaDB: a dump on a server that knows none of the queue's accounts, and in a database of another name."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from urllib.parse import unquote, urlsplit

import pymysql
import pytest
from rowqueue.databases import Database, DatabaseError, SchemaMissing, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from servers.mysql import programs
from support import states
from support.queues import call

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.level(3)]

PART = contract.load().with_needs(["fair", "schedules", "topics"])
ACCOUNTS = ("USER 'mq_owner'@'localhost'", "ROLE mq_producer", "ROLE mq_consumer", "ROLE mq_operator", "ROLE mq_viewer")


def fill(server: Server, database: Database) -> None:
    """Messages in all states, a feed, a watched table and a polling table with claims."""
    url = database.url
    server.query(url, "CREATE TABLE work (id int PRIMARY KEY, status char(1), KEY (status, id))")
    server.query(url, "INSERT INTO work VALUES (1, 'N'), (2, 'N'), (3, 'N')")
    server.query(url, "CREATE TABLE fed (id int PRIMARY KEY, sync bigint, KEY (sync))")
    server.query(url, "INSERT INTO fed (id) VALUES (1), (2)")
    server.query(url, "CREATE TABLE seen (id int PRIMARY KEY)")
    server.query(url, "GRANT SELECT, TRIGGER ON seen TO 'mq_owner'@'localhost'")
    with closing(database.connect("test")) as session:
        for body in "abcd":
            session.call("send", "q", body)
        [dead, active] = session.call("claim_batch", "q", 2, "r", 3600)
        session.call("dead_letter", dead["id"], dead["batch_key"], "broken")
        assert active["body"] == "b"
        session.call("send_message", "q", "late", None, None, None, "key")
        session.call(
            "adopt_table",
            "work",
            "work",
            json.dumps(
                {
                    "key_columns": "id",
                    "status_column": "status",
                    "ready_value": "N",
                    "active_value": "A",
                    "done_value": "D",
                    "error_value": "E",
                }
            ),
        )
        session.call("claim_rows", "work", 1, "r", 1)
        session.call("create_feed", "fed", "fed", "id", "sync")
        session.call("publish_feed", "fed", 1)
        for row in session.call("watch_table", "seen"):
            session.execute(row["statement"])
        session.call("subscribe", "seen", "I", "seen")


def works(server: Server, database: Database) -> None:
    """Everything of `fill` works, and users without a role may call nothing."""
    with closing(database.connect("test")) as session:
        states = sorted(row["state"] for row in server.query(database.url, "SELECT state FROM mq_message_state"))
        assert states == ["A", "E", "N", "N", "N"]
        assert session.call("redrive_all", "q") == [{"affected": 1}]
        assert len(session.call("claim_batch", "q", 10)) == 4
        time.sleep(1.1)  # the lease of `fill`
        rows = session.call("claim_rows", "work", 10)
        assert [row["attempt"] for row in rows] == [2, 1, 1]
        [finished] = session.call("finish_rows", rows[0]["batch_key"], None)
        assert finished["done"] == 3
        assert session.call("publish_feed", "fed", 10) == [{"affected": 1}]
        assert [row["feed_position"] for row in session.call("fetch_feed", "fed", "c", 10)] == [1, 2]
        server.query(database.url, "INSERT INTO seen VALUES (7)")
        [told] = session.call("claim_batch", "seen", 10)
        assert told["body"] == '{"table":"seen","action":"I","key":{"id":7}}'
    assert database.rights_problems() == []
    assert install.apply(database) == install.Applied()
    with server.login(database.url, "stranger") as url, pytest.raises(pymysql.OperationalError):
        server.query(url, "SELECT 1")


def dumped(server: Server, database: Database) -> str:
    parts, home = urlsplit(server.url), programs(server.name)
    options = ["--single-transaction", "--routines", "--triggers", "--hex-blob"]
    try:
        program = home.program("mysqldump")
    except FileNotFoundError:
        pytest.skip("mysqldump is not there: delete the folder of MariaDB in .servers, then make servers")
    if not home.is_mariadb:
        options.append("--set-gtid-purged=OFF")
    with tempfile.NamedTemporaryFile("w", suffix=".cnf") as settings:
        settings.write(
            f"[client]\nprotocol=tcp\nhost={parts.hostname}\nport={parts.port}\nuser={parts.username}\n"
            f'password="{unquote(parts.password or "")}"\n'
        )
        settings.flush()
        done = subprocess.run(
            [
                *program,
                f"--defaults-file={settings.name}",
                *options,
                database.url.rpartition("/")[2],
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def doctor_says_apply(database: Database) -> None:
    """Each check is reported, although the procedures' owner may do nothing."""
    command = [sys.executable, "-m", "rowqueue.cli", "doctor", "--database", database.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == 3, done
    assert "run `runner apply`" in done.stdout and "rights" in done.stdout
    assert "denied" not in done.stderr


def test_a_dump_that_replaces_its_database_changes_nothing(server: Server, empty_database: Database) -> None:
    install.apply(empty_database)
    fill(server, empty_database)
    before, dump = server.catalog(empty_database.url), dumped(server, empty_database)
    name = empty_database.url.rpartition("/")[2]
    server.query(server.url, f"DROP DATABASE {name}")
    server.query(server.url, f"CREATE DATABASE {name}")
    server.run_script(empty_database.url, dump)
    assert server.catalog(empty_database.url) == before
    works(server, empty_database)
    with closing(empty_database.connect("test")) as session:
        assert [row for row in session.call("queue_health") if row["verdict"] == "bad"] == []


@pytest.mark.product("mysql")  # mariadb-dump writes the name of the database into the triggers of watched tables
@pytest.mark.parametrize("by", ["runner", "script"])
def test_a_dump_goes_into_a_database_of_another_name(server: Server, empty_database: Database, by: str) -> None:
    install.apply(empty_database)
    fill(server, empty_database)
    other = open_database(server.create_database())
    server.run_script(other.url, dumped(server, empty_database))
    with closing(other.connect("test")) as session, pytest.raises(SchemaMissing, match="runner apply"):
        session.call("send", "q", "x")
    assert other.rights_problems()
    doctor_says_apply(other)
    if by == "runner":
        assert install.apply(other).procedures
    else:
        server.run_script(other.url, "\n".join(install.script("mysql")))
        # Only its accounts' rights are missing in the other database.
        server.query(other.url, "GRANT SELECT, TRIGGER ON seen TO 'mq_owner'@'localhost'")
        assert install.apply(other) == install.Applied()
    works(server, other)
    server.drop_database(other.url)


def test_a_dump_goes_onto_a_server_without_the_accounts(
    server: Server, empty_database: Database, private_server: Server
) -> None:
    install.apply(empty_database)
    fill(server, empty_database)
    for account in ACCOUNTS:
        kind, _, name = account.partition(" ")
        private_server.query(private_server.url, f"DROP {kind} IF EXISTS {name}")
    name = empty_database.url.rpartition("/")[2]
    private_server.query(private_server.url, f"CREATE DATABASE {name}")
    restored = open_database(f"{private_server.url.rpartition('/')[0]}/{name}")
    private_server.run_script(restored.url, dumped(server, empty_database))
    assert any("does not exist" in problem for problem in restored.rights_problems())
    doctor_says_apply(restored)
    install.apply(restored)
    works(private_server, restored)


def test_apply_creates_missing_accounts_and_grants_their_rights(private_server: Server) -> None:
    """As after a restore onto another server; also works without a dump program."""
    database = open_database(private_server.create_database())
    install.apply(database)
    fill(private_server, database)
    for account in ACCOUNTS:
        private_server.query(private_server.url, f"DROP {account}")
    with closing(database.connect("test")) as session, pytest.raises(SchemaMissing, match="runner apply"):
        session.call("send", "q", "x")
    assert any("mq_owner" in problem and "does not exist" in problem for problem in database.rights_problems())
    install.apply(database)
    works(private_server, database)


def test_apply_repairs_grants_and_definers_when_no_file_is_pending(private_server: Server) -> None:
    server = private_server
    database = open_database(server.create_database())
    install.apply(database)
    before = server.catalog(database.url)
    schema = database.url.rpartition("/")[2]
    is_mariadb = "MariaDB" in server.query(server.url, "SELECT VERSION() AS v")[0]["v"]
    server.query(database.url, "REVOKE EXECUTE ON PROCEDURE mq_claim_rows FROM mq_consumer")
    server.query(database.url, "GRANT SELECT ON mq_message TO mq_producer")
    server.query(database.url, "REVOKE INSERT ON mq_ready FROM 'mq_owner'@'localhost'")
    wanted = ["mq_consumer lacks EXECUTE on mq_claim_rows", "mq_producer has SELECT on mq_message"]
    wanted += ["mq_owner lacks INSERT on mq_ready"]
    if is_mariadb:
        server.query(database.url, "GRANT EXECUTE ON PROCEDURE mq_send TO PUBLIC")
        wanted += ["everybody has EXECUTE on mq_send"]
    assert sorted(database.rights_problems()) == sorted(wanted)
    assert sorted(install.apply(database).repaired) == sorted(wanted)
    assert database.rights_problems() == [] and server.catalog(database.url) == before
    # A definer that is another account.
    [row] = server.query(database.url, "SHOW CREATE PROCEDURE mq_purge")
    text = row["Create Procedure"].replace("`mq_owner`@`localhost`", "CURRENT_USER")
    server.query(database.url, "DROP PROCEDURE mq_purge")
    server.query(database.url, text)
    assert any(problem.startswith("mq_purge belongs to") for problem in database.rights_problems())
    install.apply(database)
    assert database.rights_problems() == [] and server.catalog(database.url) == before
    assert schema


def test_the_servers_own_databases_are_refused_before_anything_is_made(server: Server) -> None:
    for name in ("mysql", "sys", "information_schema"):
        database = open_database(f"{server.url.rpartition('/')[0]}/{name}")
        with pytest.raises(DatabaseError, match=f"{name} is a database of the server's own"):
            install.apply(database)
        with pytest.raises(AssertionError, match="this database is the server's own: name another one"):
            server.run_script(database.url, "\n".join(install.script("mysql")))
    made = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('mysql', 'sys')"
    assert list(server.query(server.url, f"{made} AND table_name REGEXP '^mq_|yoyo'")) == []


@pytest.mark.parametrize("where", ["in its place", "under another name", "on another server"])
def test_a_part_is_restored_with_messages_in_every_state_and_extended(
    server: Server, empty_database: Database, private_server: Server, where: str
) -> None:
    """The other server has none of the accounts. A dump has no grants, which concerns databases of another name too."""
    install.apply(empty_database, areas=PART)
    with closing(empty_database.connect("before")) as session:
        key, in_group = states.fill(session)
        before = states.content(session)
    dump, name = dumped(server, empty_database), empty_database.url.rpartition("/")[2]
    target, url = server, empty_database.url
    if where == "in its place":
        server.query(server.url, f"DROP DATABASE {name}")
        server.query(server.url, f"CREATE DATABASE {name}")
    elif where == "under another name":
        url = server.create_database()
    else:
        target, url = private_server, f"{private_server.url.rpartition('/')[0]}/{name}"
        target.query(target.url, f"CREATE DATABASE {name}")
        for account in ACCOUNTS:
            kind, _, account_name = account.partition(" ")
            target.query(target.url, f"DROP {kind} IF EXISTS {account_name}")
    restored = open_database(url)
    target.run_script(url, dump)
    assert restored.areas() == PART
    assert (where == "in its place") == (restored.rights_problems() == [])
    applied = install.apply(restored)
    assert (where == "in its place") == (applied == install.Applied())
    assert restored.areas() == PART and restored.rights_problems() == []
    with closing(restored.connect("after")) as session:
        assert states.content(session) == before
    install.apply(restored, areas=[*contract.load().areas])
    whole = target.create_database()
    install.apply(open_database(whole))
    assert Counter(target.catalog(url)) == Counter(target.catalog(whole))
    with closing(restored.connect("whole")) as session:
        after = states.content(session)
        assert {name: after[name] for name in before} == before
        states.go_on(session, key, in_group)
        session.call("bind_topic", "a.*", "topical")
        call(session, "publish", "a.b", "x")
        assert [row["body"] for row in session.call("claim_batch", "topical", 5)] == ["x"]
        assert [row for row in session.call("queue_health") if row["verdict"] == "bad"] == []
    target.drop_database(whole)
    if where == "under another name":
        server.drop_database(url)
