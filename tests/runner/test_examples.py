"""The programs of examples/, run as they stand."""

import dis
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from email import message_from_string
from email.header import decode_header, make_header
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rowqueue.databases import Database, Session
from servers import base
from servers.firebird import LocalFirebird, dsn
from servers.shell import Shell
from servers.sqlserver import ExternalSQLServer
from support.capabilities import BY_DATABASE
from support.processes import COMMAND, environment
from support.waiting import until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MAIL = EXAMPLES / "outgoing_mail"


def run(*command: object, cwd: Path = MAIL, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


# ---- outgoing mail ----------------------------------------------------------------------------------


@pytest.mark.level(4)  # twenty seconds for what changes with make_mails.py only
def test_the_mails_are_the_same_bytes_each_time_and_as_varied_as_promised() -> None:
    first, second = (
        run(sys.executable, "make_mails.py", env=os.environ | {"PYTHONHASHSEED": seed}).stdout for seed in "12"
    )
    assert first == second
    lines = [json.loads(line) for line in first.splitlines()]
    mails = {text: message_from_string(text) for text in {line["message"] for line in lines}}
    assert len(mails) >= 1000
    assert max(Counter(line["message"] for line in lines).values()) == 5
    assert all(not re.search(r"(?<!\r)\n|\r(?!\n)|[^\r\n]{999}", text) and text.isascii() for text in mails)
    assert all(mail[name] for mail in mails.values() for name in ("From", "To", "Date", "Message-ID", "Subject"))
    subjects = " ".join(str(make_header(decode_header(mail["Subject"]))) for mail in mails.values())
    assert {"ß", "注", "ж", "🎉", "ط"} <= set(subjects)
    sizes = [
        len(part.get_payload(decode=True) or b"")
        for mail in mails.values()
        for part in mail.walk()
        if part.get_content_disposition() == "attachment"
    ]
    assert len(sizes) > 50 and max(sizes) == 200 * 1024


def test_the_mail_programs_refuse_bad_arguments_on_one_line() -> None:
    for command in (["make_mails.py", "--mails", "0"], ["smtp_server.py", "--port", "65536"]):
        done = run(sys.executable, *command)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"error: {command[1]}: must be" in done.stderr.splitlines()[-1]


class Mailing:
    """An SMTP server and `runner consume` with the mail handler, on a queue of the test's own."""

    def __init__(self, database: Database, queue: str, folder: Path) -> None:
        self.port = base.free_port()
        self.maildir = folder / "mail"
        self.environment = environment(
            database.url, SMTP_SERVER=f"127.0.0.1:{self.port}", MAIL_RETRY_SECONDS="1", PYTHONUNBUFFERED="1"
        )
        self._queue = queue
        self._running: list[subprocess.Popen[str]] = []

    def start(self, *command: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=MAIL,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        return process

    def serve(self) -> subprocess.Popen[str]:
        server = self.start("smtp_server.py", "--port", self.port, "--maildir", self.maildir)
        assert server.stdout is not None
        assert f"127.0.0.1:{self.port}" in server.stdout.readline()
        return server

    def consume(self) -> None:
        self.start("-m", "rowqueue.cli", "consume", "--type", self._queue, "--handler", "mail:send")

    @property
    def mails(self) -> list[str]:
        return [path.read_text() for path in self.maildir.glob("new/*")]

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def mailing(database: Database, queue: str, tmp_path: Path) -> Iterator[Mailing]:
    with closing(Mailing(database, queue, tmp_path)) as mailing:
        yield mailing


def mail(number: int) -> str:
    text = f"Message-ID: <{number}@x.example>\r\nSubject: {number}\r\n\r\n.\r\n..\r\n"
    return json.dumps({"sender": "a@x.example", "recipient": "b@y.example", "message": text})


def idle(session: Session, queue: str) -> bool:
    stats = session.call("queue_stats", queue)[0]
    return not any(stats[name] for name in ("ready", "delayed", "active", "expired"))


def test_mails_wait_for_a_server_that_is_away_and_for_one_that_restarts(
    mailing: Mailing, session: Session, queue: str
) -> None:
    session.call("send", queue, mail(1))
    mailing.consume()
    waiting = until(lambda: [row for row in session.call("peek", queue) if row["attempts"] == 1])
    assert "Connection refused" in waiting[0]["error"]
    server = mailing.serve()
    until(lambda: idle(session, queue))
    assert [text.partition("Subject: ")[2] for text in mailing.mails] == ["1\n\n.\n..\n"]
    server.send_signal(signal.SIGTERM)
    assert server.communicate(timeout=90)[0] == "1 delivered\n"
    mailing.serve()
    session.call("send", queue, mail(2))  # the handler's connection is dead
    until(lambda: len(mailing.mails) == 2)
    until(lambda: idle(session, queue))
    assert session.call("peek", queue, "E") == []


def test_a_mail_that_is_sent_twice_is_delivered_once_and_what_is_no_mail_is_dead(
    mailing: Mailing, session: Session, queue: str
) -> None:
    bad = ["not JSON", "[]", "{}", json.dumps({"sender": "a", "recipient": "b", "message": "é"})]
    session.call("send_batch", queue, "\n".join([mail(1), *bad, mail(1)]))
    server = mailing.serve()
    mailing.consume()
    until(lambda: idle(session, queue))
    assert len(mailing.mails) == 1
    dead = {row["body"]: row for row in session.call("peek", queue, "E")}
    assert set(dead) == set(bad)
    assert all(row["error"].startswith("not a mail: ") and row["attempts"] == 1 for row in dead.values())
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=90)[0] == "1 again, 1 delivered\n"


# ---- a bell for new languages -----------------------------------------------------------------------


@pytest.mark.level(3)
def test_a_new_language_rings_the_bell_and_sends_a_mail(
    mailing: Mailing, database: Database, session: Session, queue: str, sql: Callable[..., list[dict[str, Any]]]
) -> None:
    can, bell, letters = BY_DATABASE[database.name], f"{queue}.bell", f"{queue}.mail"
    folder, env = EXAMPLES / "language_bell", mailing.environment
    [create] = re.findall(r"^CREATE TABLE languages .*;$", (folder / "README.md").read_text(), re.M)
    sql(create.removesuffix(";"))
    for statement in can.before_watching("languages"):
        sql(statement)
    runner = (sys.executable, "-m", "rowqueue.cli")
    commands = (
        ["subscription", "watch", "languages"],
        *(["subscription", "add", "languages", "--action", "I"] for _ in range(2)),
    )
    for command, type in zip(commands, ((), ("--type", bell), ("--type", letters)), strict=True):
        done = run(*runner, *command, *type, cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
    mailing.serve()
    with pytest.raises(ZeroDivisionError), session.transaction() as connection:
        connection.cursor().execute("INSERT INTO languages (code, name) VALUES ('tlh', 'Klingon')")
        raise ZeroDivisionError
    sql("INSERT INTO languages (code, name) VALUES ('eo', 'Esperanto')")
    sql("UPDATE languages SET name = 'Lingvo' WHERE code = 'eo'")
    rung = run(*runner, "consume", "--type", bell, "--handler", "bell:ring", "--drain", cwd=folder, env=env)
    assert (rung.returncode, rung.stdout) == (0, "\anew language: eo\n"), rung.stderr
    sent = run(*runner, "consume", "--type", letters, "--handler", "bell:mail", "--drain", cwd=folder, env=env)
    assert sent.returncode == 0, sent.stderr
    [text] = mailing.mails
    assert "Subject: New language: eo\n" in text
    listed = run(*runner, "subscription", "list", "languages", "--json", cwd=folder, env=env).stdout.splitlines()
    assert [json.loads(line)["type"] for line in listed] == [bell, letters]
    for command in (["subscription", "remove", "languages", "--type", bell], ["subscription", "unwatch", "languages"]):
        done = run(*runner, *command, cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
    assert run(*runner, "subscription", "unwatch", "languages", cwd=folder, env=env).returncode == 1
    sql("DROP TABLE languages")


# ---- housekeeping -----------------------------------------------------------------------------------


@pytest.mark.level(1)
def test_housekeeping_deletes_old_files_when_its_schedule_runs(database: Database, queue: str, tmp_path: Path) -> None:
    folder, env = EXAMPLES / "housekeeping", environment(database.url)
    for name, days in (("old", 40), ("new", 20)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - days * 86_400,) * 2)
    [line] = re.findall(r"^runner (schedule set .*)$", (folder / "README.md").read_text(), re.M)
    words = [word for word in shlex.split(line) if word not in ("--time-zone", "Europe/Paris")]
    body = json.dumps({"folder": str(tmp_path), "days": 30})
    new = {"clean exports": queue, "housekeeping": queue, words[-1]: body}
    runner = (sys.executable, "-m", "rowqueue.cli")
    done = run(*runner, *(new.get(word, word) for word in words), cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    assert run(*runner, "schedule", "run", queue, cwd=folder, env=env).returncode == 0
    consume = ("consume", "--type", queue, "--handler", "housekeeping:clean", "--drain")
    done = run(*runner, *consume, cwd=folder, env=env)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}: 1 deleted\n"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert run(*runner, "schedule", "drop", queue, cwd=folder, env=env).returncode == 0


# ---- topics and results -----------------------------------------------------------------------------


def blocks(page: Path) -> list[str]:
    """The code blocks of a page."""
    return re.findall(r"^```\w*\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)


def commands(page: Path) -> tuple[list[list[str]], str]:
    """The commands of a page's first code block that call `runner`, and what the second says that they print."""
    first, printed = blocks(page)
    runner = [sys.executable, "-m", "rowqueue.cli"]
    lines = [line for line in first.splitlines() if line.startswith("runner ")]
    return [[*runner, *shlex.split(line.removesuffix(" &"))[1:]] for line in lines], printed


@pytest.mark.level(1)
def test_one_event_goes_to_several_queues_as_the_page_says(installed_database: Database) -> None:
    folder = EXAMPLES / "order_events"
    calls, printed = commands(folder / "README.md")
    said = ""
    for call in calls:
        done = run(*call, cwd=folder, env=environment(installed_database.url))
        assert done.returncode == 0, done.stderr
        said += done.stdout if "consume" in call else ""
    assert said == printed


@pytest.mark.level(1)
def test_a_sender_gets_the_result_as_the_page_says(installed_database: Database) -> None:
    folder, env = EXAMPLES / "word_count", environment(installed_database.url)
    (_, consume, send), printed = commands(folder / "README.md")
    with closing(installed_database.connect("test")) as session:
        session.call("set_queue", "count", '{"on_complete": "archive"}')
    consumer = subprocess.Popen(consume, cwd=folder, env=env, stderr=subprocess.DEVNULL)
    try:
        send[-1] = "60"
        done = run(*send, cwd=folder, env=env)
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
        done = run(*(" " if word == "to be or not to be" else word for word in send), cwd=folder, env=env)
        assert (done.returncode, done.stdout) == (1, "")
        assert "is a dead letter: no words" in done.stderr
    finally:
        consumer.terminate()
        consumer.wait(60)


# ---- a service with limits --------------------------------------------------------------------------


class Busy(BaseHTTPRequestHandler):
    """A service that accepts three requests at a time and a number per second, and refuses the others."""

    lock = threading.Lock()
    active = most = 0
    began: ClassVar[list[float]] = []

    def do_GET(self) -> None:
        with self.lock:
            Busy.active += 1
            Busy.most = max(Busy.most, Busy.active)
            self.began.append(time.monotonic())
        time.sleep(0.02)
        with self.lock:
            Busy.active -= 1
        body = b"" if self.path.endswith("nowhere") else b"known"
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.level(3)
def test_a_service_gets_no_more_requests_at_a_time_than_it_takes(installed_database: Database) -> None:
    folder, asked = EXAMPLES / "address_checks", 60
    lines = map(shlex.split, blocks(folder / "README.md")[0].splitlines())
    words = {line[1]: line[1:] for line in lines}
    runner = [sys.executable, "-m", "rowqueue.cli"]
    service = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    env = environment(installed_database.url) | {"ADDRESS_SERVICE": f"http://127.0.0.1:{service.server_port}/"}
    consumers = []
    try:
        done = run(*runner, *words["queue"], cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
        assert {"max_active\t3", "rate\t20", "on_complete\tarchive"} <= set(done.stdout.splitlines())
        addresses = [*(f"{n} Main Street" for n in range(asked - 1)), "nowhere"]
        with closing(installed_database.connect("test")) as session:
            session.call("send_batch", "addresses", "\n".join(json.dumps({"address": each}) for each in addresses))
            command = [*runner, *words["consume"]]
            consumers = [subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.DEVNULL) for _ in range(2)]
            # On a busy machine a request may fail, and its message is retried.
            until(lambda: len(Busy.began) >= asked, seconds=60)
            until(lambda: len(session.call("peek", "addresses", "C", asked)) == asked - 1, seconds=60)
            until(lambda: session.call("queue_stats", "addresses")[0]["dead"] == 1, seconds=60)
            found = session.call("peek", "addresses", "C", 1)
            assert session.call("get_result", found[0]["id"])[0]["result"] == "known"
    finally:
        for consumer in consumers:
            consumer.terminate()
            consumer.wait(60)
        service.shutdown()
    assert Busy.most == 3
    # 20 at once, the others when their token has come.
    assert Busy.began[-1] - Busy.began[0] > (asked - 20) / 20 - 0.5


# ---- callers in other languages ---------------------------------------------------------------------


# ---- visits -----------------------------------------------------------------------------------------


def test_visits_go_round_for_ever_and_on_where_a_worker_stopped(
    database: Database, session: Session, queue: str, site: str
) -> None:
    paths = ["200", "404", "410", "204", "500"]
    session.call("set_queue", queue, '{"ring": 1}')
    session.call("send_batch", queue, "\n".join([*(f"{site}/{path}" for path in paths), "no address"]))

    def visited(*options: object) -> list[str]:
        command = [sys.executable, "visits.py", "--type", queue, *options]
        done = run(*command, cwd=EXAMPLES / "visits", env=environment(database.url))
        assert done.returncode == 0, done.stderr
        return [line.removeprefix(site).split(" ")[0] for line in done.stdout.splitlines()]

    assert visited("--size", 4, "--batches", 1) == ["/200", "/404", "/410", "/204"]
    assert visited("--size", 4, "--batches", 2) == ["/500", "no", "/200", "/404", "/204", "/500", "no", "/200"]
    assert visited("--size", 2, "--batches", 1, "--name", "another") == ["/200", "/404"]
    left = session.call("peek", queue)
    assert {row["body"] for row in left} == {f"{site}/{path}" for path in paths if path != "410"} | {"no address"}
    assert {row["attempts"] for row in left} == {0}


@pytest.fixture
def program() -> Callable[[str], str]:
    """Finds a program, or skips the test."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed")
        return found

    return find


@pytest.mark.product("postgresql")
def test_psql_by_hand_leaves_an_empty_queue(
    program: Callable[[str], str], database: Database, session: Session, queue: str
) -> None:
    program("psql")
    done = run("./by_hand.sh", database.url, queue, cwd=EXAMPLES / "psql")
    assert (done.returncode, done.stderr) == (0, "")
    one, two, three, dead = (rf"^ +\d+ \| {body} " for body in ("one", "two", "three", r"two +\| +1 \| no such"))
    for row in (one, two, three, dead):
        assert re.search(row, done.stdout, re.M), row
    assert re.search(rf"^ {re.escape(queue)} \| +1 \| +0 \| +1$", done.stdout, re.M)
    assert [session.call("peek", queue, state) for state in "NAE"] == [[], [], []]


@pytest.mark.product("postgresql")
def test_psql_by_hand_shows_its_usage_and_stops_at_an_error(program: Callable[[str], str], database: Database) -> None:
    program("psql")
    assert run("./by_hand.sh", cwd=EXAMPLES / "psql").returncode == 2
    failed = run("./by_hand.sh", database.url, "x" * 201, cwd=EXAMPLES / "psql")
    assert failed.returncode == 3
    assert "invalid_argument: type" in failed.stderr


@pytest.mark.product("firebird")
def test_isql_by_hand_leaves_an_empty_queue_and_stops_at_an_error(
    server: LocalFirebird, database: Database, session: Session, queue: str, tmp_path: Path
) -> None:
    shell, address = Shell(server, tmp_path), dsn(database.url)
    script = EXAMPLES / "isql" / "by_hand.sh"
    quoted = f"{queue}'s"
    shown = shell(f'{script} {address} "{quoted}"')
    rows = re.findall(r"^(BODY|STATE|ERROR|READY|DEAD) +(.*?) *$", shown, re.M)
    bodies = [value for name, value in rows if name == "BODY"]
    assert bodies == ["one", "two", "two", "two", "three"]
    assert rows[2:] == [
        ("STATE", "E"),
        ("READY", "1"),
        ("DEAD", "1"),
        ("BODY", "two"),
        ("ERROR", "no such customer"),
        ("BODY", "two"),
        ("BODY", "three"),
    ]
    assert [session.call("peek", quoted, state) for state in "NAE"] == [[], [], []]
    failed = shell(f"{script} {address} {'x' * 201} 2>&1 || echo failed; {script} 2>&1 || echo usage")
    assert "invalid_argument: type" in failed
    assert failed.endswith("failed\nusage: by_hand.sh DATABASE [TYPE]\nusage\n")


@pytest.mark.product("sqlserver")
def test_sqlcmd_by_hand_leaves_an_empty_queue(server: ExternalSQLServer, database: Database, session: Session) -> None:
    """Its batches, sent by the driver, because sqlcmd is not available."""
    if server.query(server.url, "SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS nvarchar(128)) AS v")[0]["v"]:
        pytest.skip("Babelfish leaves JSON strings as they are written, so that `three` is no body here")
    shown: list[dict[str, Any]] = []
    with server.client(database.url) as client, client.connection.cursor() as cursor:
        for batch in re.split(r"^GO$", (EXAMPLES / "sqlcmd" / "by_hand.sql").read_text(), flags=re.M):
            if not batch.strip():
                continue
            cursor.execute(batch)
            while True:
                if cursor.description:
                    names = [column[0] for column in cursor.description]
                    shown.extend(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
                if not cursor.nextset():
                    break
    assert [row["body"] for row in shown if "body" in row] == ["one", "two", "two", "two", "three"]
    assert [row["error"] for row in shown if row.get("state") == "E" and "body" in row] == ["no such customer"]
    assert [(row["ready"], row["dead"]) for row in shown if "ready" in row] == [(1, 1)]
    assert [session.call("peek", "by.hand", state) for state in "NAE"] == [[], [], []]


class Hook(BaseHTTPRequestHandler):
    """Answers with the status in the path, and records the requests."""

    got: list[tuple[str, Any, str | None]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.got.append((self.path, body, self.headers["Idempotency-Key"]))
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def site(hook: str) -> str:
    """The same, for those who only look."""
    return hook


@pytest.fixture
def hook() -> Iterator[str]:
    """The address of a web server."""
    Hook.got = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Node example with its packages."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("node")
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(EXAMPLES / "node", folder, dirs_exist_ok=True, ignore=ignored)
    done = run("npm", "install", "--omit=dev", "--no-audit", "--no-fund", cwd=folder)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install the drivers: {done.stderr.strip().splitlines()[-1:]}")
    return folder


@pytest.mark.level(3)
@pytest.mark.product("postgresql", "mariadb", "mysql")
def test_webhooks_are_delivered_retried_and_refused_from_node(
    program: Callable[[str], str], node: Path, hook: str, installed_database: Database
) -> None:
    bodies = [json.dumps({"url": f"{hook}/{status}", "payload": {"n": status}}) for status in (200, 204, 404, 503)]
    url = installed_database.url
    with closing(installed_database.connect("test")) as session:
        session.call("send_batch", "webhook", "\n".join([*bodies, "no webhook", *[bodies[0]] * 30]))
        done = run(program("node"), "webhooks.js", "--drain", cwd=node, env=environment(url))
        assert done.returncode == 0, done.stderr
        dead = {row["body"]: row["error"] for row in session.call("peek", "webhook", "E")}
        left = session.call("peek", "webhook")
        assert session.call("queue_stats", "webhook")[0]["active"] == 0
    assert dead[bodies[2]] == "HTTP 404"
    assert dead["no webhook"].startswith("not a webhook: ")
    assert len(dead) == 2
    assert [(row["body"], row["attempts"], row["error"]) for row in left] == [(bodies[3], 1, "HTTP 503")]
    assert Counter(path for path, _, _ in Hook.got) == {"/200": 31, "/204": 1, "/404": 1, "/503": 1}
    assert len({key for _, _, key in Hook.got}) == 34
    assert all(body == {"n": int(path[1:])} for path, body, _ in Hook.got)


@pytest.mark.parametrize("scheme", ["postgresql", "mysql", "mariadb"])
def test_webhooks_report_a_missing_or_unreachable_database_on_one_line(
    program: Callable[[str], str], node: Path, scheme: str
) -> None:
    done = run(program("node"), "webhooks.js", cwd=node, env=environment(None))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    url = f"{scheme}://nobody@127.0.0.1:{base.free_port()}/x"
    done = run(program("node"), "webhooks.js", "--drain", cwd=node, env=environment(url))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "ECONNREFUSED" in done.stderr


# ---- an order in steps --------------------------------------------------------------------------------


def lines_of(path: Path) -> set[int]:
    """The lines at which a program's functions can be killed."""
    todo = [compile(path.read_text("utf-8"), str(path), "exec")]
    found: set[int] = set()
    for code in todo:
        todo += [part for part in code.co_consts if hasattr(part, "co_code")]
        if code.co_name != "<module>":
            found |= {line for _, line in dis.findlinestarts(code) if line and line != code.co_firstlineno}
    return found


@pytest.mark.level(3, one=True)
@pytest.mark.product("postgresql")
def test_an_order_killed_at_any_line_is_charged_packed_and_shipped(
    database: Database, session: Session, queue: str, sql: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    sql("CREATE TABLE IF NOT EXISTS parcel (id bigint GENERATED ALWAYS AS IDENTITY, order_number integer, charge text)")
    sql("DELETE FROM parcel")
    lines = lines_of(EXAMPLES / "order_steps" / "orders.py")
    assert len(lines) > 12
    for line in lines:
        session.call("send", queue, json.dumps({"number": line, "amount": 4_900}))
    handlers = os.pathsep.join([str(EXAMPLES / "order_steps"), str(Path(__file__).parent)])
    env = environment(database.url, SHOP_FOLDER=str(tmp_path), COOLING_OFF_SECONDS="1", PYTHONPATH=handlers)
    options = ["--handler", "mortal:handle", "--consumer", "mortal", "--idle-timeout", "2"]
    killed = 0
    while (done := run(*COMMAND, "consume", "--type", queue, *options, cwd=tmp_path, env=env)).returncode == -9:
        killed += 1
        assert killed <= len(lines)
        session.call("release_consumer", "mortal")
    assert done.returncode == 0, done.stderr
    assert killed == len(lines) == len([*tmp_path.glob("killed at *")])
    assert (
        session.call("peek", queue, "N") == session.call("peek", queue, "A") == session.call("peek", queue, "E") == []
    )
    parcels = sql("SELECT order_number, charge FROM parcel ORDER BY order_number")
    assert [(row["order_number"], row["charge"]) for row in parcels] == [(line, f"ch_{line}") for line in sorted(lines)]
    for system, each in (("bank", "order-{}-charge 4900"), ("carrier", "order-{}-parcel")):
        requests = (tmp_path / f"{system}.txt").read_text().splitlines()
        assert {*requests} == {each.format(line) for line in lines}
        assert len(requests) < len(lines) + 4, "only a crash between the request and its step repeats it"
