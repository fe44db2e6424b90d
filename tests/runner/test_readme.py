"""The pages docs/start and docs/howto, run with the clients of each database."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import pytest
import servers
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers.firebird import LocalFirebird, dsn
from servers.mysql import LocalMySQL
from servers.postgresql import LocalPostgreSQL, programs
from servers.shell import Shell
from servers.sqlserver import ExternalSQLServer
from support.processes import COMMAND
from tabs import for_engine

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONSUMER = (DOCS / "start" / "first-consumer.md").read_text("utf-8")
INSTALL = (DOCS / "start" / "install.md").read_text("utf-8")


def block(language: str, start: str, page: str = CONSUMER) -> str:
    """The block of a page that begins with `start`."""
    found = re.search(rf"^```{language}\n({re.escape(start)}.*?)^```$", page, re.M | re.S)
    assert found, start
    return found[1]


def first_message(engine: str) -> list[str]:
    """The SQL of docs/start/first-message.md for an engine, in its order."""
    page = for_engine((DOCS / "start" / "first-message.md").read_text("utf-8"), engine)
    return re.findall(r"^```sql\n(.*?)^```$", page, re.M | re.S)


def bundle(engine: str) -> str:
    """What `make dist` runs to write dist/rowqueue-ENGINE.sql."""
    return f"mkdir -p dist && runner sql --database {engine} > dist/rowqueue-{engine}.sql\n"


@pytest.mark.level(1)
def test_the_quick_start_delivers_retries_discards_and_redrives(empty_database: Database, tmp_path: Path) -> None:
    (tmp_path / "mail.py").write_text(block("python", "# mail.py"))
    environment = os.environ | {
        "RUNNER_DATABASE": empty_database.url,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-e", "-c", block("sh", "runner apply")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for line in ("2 sent", "delivered to ada@example.org", "delivered to busy@example.org", "1 redriven"):
        assert line in done.stdout.splitlines(), done.stdout
    assert "no such mailbox" in done.stdout.partition("1 redriven")[0]
    session = empty_database.connect("test")
    try:
        left = session.call("peek", "email", "N")
    finally:
        session.close()
    assert [row["body"] for row in left] == ['{"to":"nobody@gone.example"}']


# ---- how to do a task, on every database


def how_to(task: str) -> str:
    return (DOCS / "howto" / f"{task}.md").read_text("utf-8")


def files(page: str) -> dict[str, str]:
    """The modules that a page shows, by the names in their first lines."""
    return {name: text for text, name in re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```$", page, re.M | re.S)}


HANDLERS = {
    "index.py": "def update(record):\n    print(record.position, record.row)\n",
    "orders.py": "def work(row):\n    print(row.row_text)\n",
}


@pytest.mark.level(3, one=True)
@pytest.mark.parametrize(
    "task",
    ["send-options", "one-at-a-time", "schedules", "limits", "topics", "feeds", "polling-tables", "search-index"],
)
def test_a_task_does_what_its_page_says(
    task: str, installed_database: Database, server: servers.Server, tmp_path: Path
) -> None:
    """All its SQL first, with all rights, then its commands."""
    for name, text in (HANDLERS | files(how_to(task))).items():
        (tmp_path / name).write_text(text)
    for text in re.findall(r"^```sql\n(.*?)^```$", how_to(task), re.M | re.S):
        for statement in filter(str.strip, text.split(";\n")):
            server.query(installed_database.url, statement)
    [commands] = re.findall(r"^```sh\n(.*?)^```$", how_to(task), re.M | re.S)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=tmp_path,
        env=os.environ | {"RUNNER_DATABASE": installed_database.url, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    bodies = re.findall('"body": "(.*?)"', done.stdout)
    if task == "feeds":
        assert "Queues and feeds" in done.stdout
    elif task == "search-index":
        with sqlite3.connect(tmp_path / "search.db") as index:
            assert index.execute("SELECT title FROM article").fetchall() == [("Queues and feeds",)]
    elif task == "schedules":
        assert "T09:00:00Z" in done.stdout and "clean-exports" in done.stdout and "1 dropped" in done.stdout
    elif task == "send-options":
        assert bodies == ["urgent", "usual", "once"]
    elif task == "one-at-a-time":
        assert sorted(bodies) == ["customer 7: open", "customer 7: pay", "customer 8: open"]
        assert bodies.index("customer 7: open") < bodies.index("customer 7: pay")
    elif task == "limits":
        assert "addresses" in done.stdout and "webhook" in done.stdout
    elif task == "topics":
        assert "2 sent" in done.stdout and "orders.*.paid" in done.stdout and "statistics" in done.stdout
    else:
        assert "lamp" in done.stdout and "chair" in done.stdout
        left = server.query(installed_database.url, "SELECT status FROM orders")
        assert [next(iter(row.values())) for row in left] == ["D", "D"]


# ---- psql


@pytest.mark.product("postgresql")
def test_the_script_for_psql_installs_into_a_new_database(private_server: LocalPostgreSQL, tmp_path: Path) -> None:
    login = urlsplit(private_server.url)
    environment = os.environ | {
        "PATH": os.pathsep.join([str(programs(18)), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PGHOST": login.hostname or "",
        "PGPORT": str(login.port),
        "PGUSER": unquote(login.username or ""),
        "PGPASSWORD": unquote(login.password or ""),
    }
    commands = block("sh", "createdb", INSTALL) + bundle("postgresql") + block("sh", "psql -f", INSTALL)
    done = subprocess.run(
        ["sh", "-e", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    url = urlunsplit(login._replace(path="/shop"))
    assert private_server.query(url, "SELECT mq.send('email', 'x') AS id") == [{"id": 1}]


# ---- the mysql client


@pytest.fixture
def shop(private_server: LocalMySQL, tmp_path: Path) -> Shell:
    """A shell on a server with the database `shop`, with the queue, installed as docs/start/install.md says."""
    shell = Shell(private_server, tmp_path)
    shell(block("sh", "mysql -e", INSTALL) + bundle("mysql") + block("sh", "mysql --comments", INSTALL))
    return shell


@pytest.mark.product("mariadb", "mysql")
def test_the_sql_for_the_mysql_client_does_what_it_says(shop: Shell, private_server: LocalMySQL) -> None:
    shown = shop("mysql --comments shop", "\n".join(first_message("mysql")))
    assert re.search(r"\tE\t.*nobody@gone\.example.*\tno such mailbox$", shown, re.M), "the dead letter is shown"
    url = private_server.database_url("shop")
    assert private_server.query(url, "SELECT COUNT(*) AS n FROM delivered") == [{"n": 1}]
    left = private_server.query(url, "SELECT state, body, error FROM mq_message_state ORDER BY id")
    assert left == [
        {"state": "N", "body": '{"to":"alan@example.org"}', "error": "mailbox busy"},
        {"state": "N", "body": '{"to":"edsger@example.org"}', "error": None},
    ]


@pytest.mark.product("mariadb", "mysql")
def test_the_consumer_for_pymysql_finishes_and_reports_failures(shop: Shell, private_server: LocalMySQL) -> None:
    handled = []

    def handle(message: dict[str, Any]) -> None:
        handled.append(message["body"])
        if message["body"] == "250":
            raise ValueError("two\nlines")

    names: dict[str, Any] = {}
    exec(block("python", "import json\n\nimport pymysql"), names)
    url = private_server.database_url("shop")
    with private_server.client(url) as connection:
        names["call"](connection, "send_batch", "email", "\n".join(map(str, range(300))), None)
        names["consume"](connection, handle)
    assert handled == [str(n) for n in range(300)]
    left = private_server.query(url, "SELECT state, body, attempts, error FROM mq_message_state")
    assert left == [{"state": "N", "body": "250", "attempts": 1, "error": "ValueError('two\\nlines')"}]


# ---- isql


@pytest.fixture
def firebird_shop(private_server: LocalFirebird) -> str:
    """The URL of a database that is not there yet."""
    path = Path(unquote(urlsplit(private_server.url).path[1:])).with_name("shop.fdb")
    return private_server.database_url(str(path))


@pytest.mark.product("firebird")
def test_the_sql_for_isql_does_what_it_says(firebird_shop: str, private_server: LocalFirebird, tmp_path: Path) -> None:
    shell = Shell(private_server, tmp_path)
    create = block("sh", "echo ", INSTALL).replace("localhost:/var/lib/firebird/data/shop.fdb", dsn(firebird_shop))
    script = block("sh", "isql -quiet", INSTALL).replace("localhost:shop", dsn(firebird_shop))
    shell(create + bundle("firebird") + script)
    shown = shell(f"isql -quiet -bail -charset UTF8 {dsn(firebird_shop)} 2>&1", "\n".join(first_message("firebird")))
    found = [
        tuple(line.split(maxsplit=1)) for line in shown.splitlines() if line.startswith(("BODY", "STATE", "ERROR"))
    ]
    assert ("BODY", '{"to":"ada@example.org"}') in found
    dead = found.index(("STATE", "E"))
    assert found[dead + 1 : dead + 3] == [("ERROR", "no such mailbox"), ("BODY", '{"to":"nobody@gone.example"}')]
    assert private_server.query(firebird_shop, "SELECT body FROM delivered") == [
        {"body": '{"to":"nobody@gone.example"}'}
    ]
    left = private_server.query(
        firebird_shop, "SELECT TRIM(state) AS state, body, error FROM mq_message_state ORDER BY id"
    )
    assert left == [
        {"state": "N", "body": '{"to":"alan@example.org"}', "error": "mailbox busy"},
        {"state": "N", "body": '{"to":"edsger@example.org"}', "error": None},
    ]
    login = firebird_shop.replace(firebird_shop[len("firebird://") : firebird_shop.rindex("@")], "mailer:change%20me")
    assert private_server.query(f"{login}?role=mq_producer", "SELECT id FROM mq_send('email', 'x')") == [{"id": 6}]


@pytest.mark.product("firebird")
def test_the_consumer_for_firebird_driver_finishes_and_reports_failures(
    private_server: LocalFirebird,
) -> None:
    handled = []

    def handle(message: dict[str, Any]) -> None:
        handled.append(message["body"])
        if message["body"] == "250":
            raise ValueError("two\nlines")

    url = private_server.create_database()
    install.apply(open_database(url))
    names: dict[str, Any] = {}
    exec(block("python", "import json\n\nfrom firebird.driver import"), names)
    with private_server.client(url) as client:
        names["call"](client.connection, "send_batch", "email", "\n".join(map(str, range(300))))
        names["consume"](client.connection, handle)
    assert handled == [str(n) for n in range(300)]
    left = private_server.query(url, "SELECT TRIM(state) AS state, body, attempts, error FROM mq_message_state")
    assert left == [{"state": "N", "body": "250", "attempts": 1, "error": "ValueError('two\\nlines')"}]


# ---- sqlcmd


def plain(server: ExternalSQLServer, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows; Babelfish leaves the backslashes of JSON strings in the items of lists."""
    if server.query(server.url, "SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS nvarchar(128)) AS v")[0]["v"]:
        wrong = re.compile(r'\\(?=["\\])')
        return [{k: wrong.sub("", v) if isinstance(v, str) else v for k, v in row.items()} for row in rows]
    return rows


@pytest.mark.product("sqlserver")
def test_the_sql_for_sqlcmd_does_what_it_says(installed_database: Database, server: ExternalSQLServer) -> None:
    server.query(server.url, "IF SUSER_ID(N'mailer') IS NOT NULL DROP LOGIN mailer")
    shown: list[dict[str, Any]] = []
    with server.client(installed_database.url) as client, client.connection.cursor() as cursor:
        for batch in first_message("sqlserver"):
            cursor.execute(batch)
            while True:
                if cursor.description:
                    names = [column[0] for column in cursor.description]
                    shown.extend(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
                if not cursor.nextset():
                    break
    assert server.query(installed_database.url, "SELECT USER_ID(N'mailer') AS id")[0]["id"]
    server.query(installed_database.url, "ALTER ROLE mq_producer DROP MEMBER mailer")
    server.query(installed_database.url, "DROP USER mailer")
    server.query(server.url, "DROP LOGIN mailer")
    [dead] = [row for row in plain(server, shown) if row.get("state") == "E" and "body" in row]
    assert (dead["body"], dead["error"]) == ('{"to":"nobody@gone.example"}', "no such mailbox")
    assert server.query(installed_database.url, "SELECT COUNT(*) AS n FROM delivered") == [{"n": 1}]
    left = server.query(installed_database.url, "SELECT state, body, error FROM mq.message_state ORDER BY id")
    assert plain(server, left) == [
        {"state": "N", "body": '{"to":"alan@example.org"}', "error": "mailbox busy"},
        {"state": "N", "body": '{"to":"edsger@example.org"}', "error": None},
    ]


@pytest.mark.product("sqlserver")
def test_the_consumer_for_pymssql_finishes_and_reports_failures(
    installed_database: Database, server: ExternalSQLServer
) -> None:
    handled = []

    def handle(message: dict[str, Any]) -> None:
        handled.append(message["body"])
        if message["body"] == "250":
            raise ValueError("two\nlines")

    names: dict[str, Any] = {}
    exec(block("python", "import pymssql"), names)
    with server.client(installed_database.url) as client:
        names["call"](client.connection, "send_batch", "email", "\n".join(map(str, range(300))))
        names["consume"](client.connection, handle)
    assert handled == [str(n) for n in range(300)]
    left = server.query(installed_database.url, "SELECT state, body, attempts, error FROM mq.message_state")
    assert plain(server, left) == [{"state": "N", "body": "250", "attempts": 1, "error": "ValueError('two\\nlines')"}]


def test_the_configuration_file_of_its_page_is_read(tmp_path: Path) -> None:
    """An option that it names is known: otherwise the runner would refuse the file."""
    page = (DOCS / "reference" / "configuration.md").read_text("utf-8")
    (tmp_path / "rowqueue.toml").write_text(block("toml", "database", page))
    command = [*COMMAND, "queue", "set", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.search(r"--lease-seconds.{0,200}\b300\b", " ".join(done.stdout.split())), done.stdout
