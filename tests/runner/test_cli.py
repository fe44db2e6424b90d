"""The commands of `runner` except `consume`: their output, exit codes, and effects in the database."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from rowqueue.cli import app, main
from rowqueue.databases import Database, Session
from servers import Server
from support.capabilities import BY_DATABASE
from support.outcomes import dead_letter
from support.processes import COMMAND, FOLDER, Log, Running, environment
from typer.testing import CliRunner

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Sql = Callable[..., list[dict[str, Any]]]

ROOT = Path(__file__).resolve().parents[2]


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups left out."""
    if not hasattr(command, "commands"):
        yield words
        return
    for name, child in command.commands.items():
        yield from commands(child, (*words, name))


COMMANDS = sorted(commands(typer.main.get_command(app)))


@pytest.fixture
def messages(sql: Sql, server: Server, queue: str) -> Callable[[], list[dict[str, Any]]]:
    """The messages of the test's queue, in order of sending."""
    view = server.table("message_state")
    return lambda: sql(f"SELECT * FROM {view} WHERE type = %s ORDER BY id", queue)


Messages = Callable[[], list[dict[str, Any]]]


def kill_messages(session: Session, queue: str, *bodies: str, error: str = "broken") -> None:
    """Make dead letters."""
    for start in range(0, len(bodies), 10_000):
        session.call("send_batch", queue, "\n".join(bodies[start : start + 10_000]))
        rows = session.call("claim_batch", queue, 10_000)
        session.call("finish_batch", rows[0]["batch_key"], "\n".join(dead_letter(row["id"], error) for row in rows))


def one_line(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """An error as users see it: the exit code, nothing on stdout, and one line with these words."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in ("runner: ", *words):
        assert word in done.stderr


# ---- help ----------------------------------------------------------------------------------------


def test_commands_are_those_of_the_design() -> None:
    assert {" ".join(words) for words in COMMANDS} == {
        *("apply", "sql", "doctor", "uninstall", "completion", "demo", "bench", "send", "consume", "stats"),
        *("consumers", "throughput", "exporter", "top", "web"),
        *("queue list", "queue find", "dead errors", "table list"),
        *("queue set", "queue set-group", "queue peek", "queue pause", "queue resume", "queue cancel", "queue purge"),
        *("queue drop", "dead list", "dead redrive"),
        *("feed publish", "feed consume", "feed list", "feed create", "feed drop", "feed rewind"),
        *("table adopt", "table consume", "table unadopt", "table redrive", "table peek"),
        *("schedule set", "schedule list", "schedule next", "schedule run", "schedule drop"),
        *("topic bind", "topic unbind", "topic list", "topic publish"),
        *("subscription watch", "subscription unwatch"),
        *("subscription list", "subscription add", "subscription remove"),
    }


def test_the_command_has_two_names() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == dict.fromkeys(("runner", "rowqueue"), "rowqueue.cli:main")
    for path, name in {"/bin/runner": "runner", "/bin/rowqueue": "rowqueue", "-c": "runner"}.items():
        for words, said in (("['stats', '--help']", f"Usage: {name} stats"), ("['completion', 'bash']", f" {name}\n")):
            code = f"import sys; sys.argv = [{path!r}, *{words}]; from rowqueue.cli import main; main()"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert said in done.stdout, done


def test_every_command_and_option_has_help() -> None:
    for words in COMMANDS:
        command: Any = typer.main.get_command(app)
        for word in words:
            command = command.commands[word]
        done = CliRunner().invoke(app, [*words, "--help"])
        assert done.exit_code == 0, words
        assert command.help.split("\n")[0][:40] in " ".join(done.stdout.split()), words
        for parameter in command.params:
            name = parameter.opts[0] if parameter.opts[0].startswith("--") else parameter.metavar
            assert parameter.help, f"{words}: {name} has no help"
            assert name in done.stdout, words


def test_the_command_line_page_lists_every_command() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    section = page.partition("## Commands")[2].partition("\n## ")[0]
    cells = "".join(re.findall(r"^\| (`.*?`) \|", section, re.M))
    names = [name.partition(" -")[0] for name in re.findall("`(.+?)`", cells)]
    listed = {" ".join(re.findall("[a-z]+(?:-[a-z]+)*", name)) for name in names}
    assert listed == {" ".join(words) for words in COMMANDS}


def test_no_command_at_all_shows_the_help() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment(None))
    assert done.returncode == 0
    assert "Usage: runner" in done.stdout


# ---- installing ----------------------------------------------------------------------------------


def test_apply_then_doctor_then_uninstall(runner: Runner, empty_database: Database, server: Server) -> None:
    url = empty_database.url
    before = server.catalog(url)
    assert runner("doctor", url=url).returncode == 3
    one_line(runner("stats", url=url), 3, "runner apply")
    one_line(runner("consume", "--type", "t", "--exec", "true", url=url), 3, "runner apply")
    assert server.catalog(url) == before, "something was installed unasked"
    assert runner("apply", url=url).returncode == 0
    again = json.loads(runner("apply", "--json", url=url).stdout)
    assert again == {"migrations": [], "procedures": [], "repaired": [], "dropped": []}
    doctor = runner("doctor", url=url)
    assert doctor.returncode == 0 and "cluster" not in doctor.stdout, doctor.stdout
    one_line(runner("uninstall", url=url), 2, "--yes")
    assert runner("stats", url=url).returncode == 0
    assert runner("uninstall", "--yes", url=url).returncode == 0
    assert server.catalog(url) == before


@pytest.mark.level(3, one=True)
def test_doctor_names_what_is_missing_or_changed(runner: Runner, empty_database: Database, server: Server) -> None:
    url = empty_database.url
    assert runner("apply", url=url).returncode == 0
    server.drop_procedure(url, "pause")
    done = runner("doctor", "--json", url=url)
    assert done.returncode == 3
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["verdict"] == "bad"
    assert rows[-1] == {"kind": "procedure", "name": "pause", "state": "drifted"}
    assert "pause\tdrifted" in runner("doctor", url=url).stdout
    one_line(runner("consume", "--type", "t", "--exec", "true", url=url), 3, "drifted", "runner apply")
    assert runner("apply", url=url).returncode == 0
    assert runner("doctor", url=url).returncode == 0


def test_doctor_shows_an_operator_the_failed_checks(
    runner: Runner, server: Server, database: Database, queue: str
) -> None:
    with server.login(database.url, f"operator_{queue[5:15]}", "mq_operator") as url:
        done = runner("doctor", "--json", url=url)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0] | {"verdict": "ok", "detail": "all files are installed as released"} == rows[0]
    assert {row["verdict"] for row in rows} <= {"ok", "warn", "bad"}
    rows = [row for row in rows if "incident" not in row]
    assert len(rows) > 1
    assert done.returncode == int("bad" in {row["verdict"] for row in rows})


@pytest.mark.level(2)
def test_sql_prints_the_script_of_a_database(runner: Runner, database: Database) -> None:
    done = runner("sql", "--database", database.name)
    assert done.returncode == 0
    assert "claim_batch" in done.stdout
    one_line(runner("sql", "--database", "dbase"), 2, "--database", "dbase", database.name)


# ---- sending -------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["hello", "", "é😀 \"q\" 'a'\nb", "x" * 100_000, "--looks-like-an-option"])
def test_send_keeps_the_body_and_prints_the_id(runner: Runner, queue: str, messages: Messages, body: str) -> None:
    done = runner("send", "--type", queue, "--", body)
    assert done.returncode == 0, done.stderr
    (message,) = messages()
    assert (message["body"], message["state"]) == (body, "N")
    assert done.stdout == f"{message['id']}\n"


@pytest.mark.level(2)
def test_send_passes_every_option_on(runner: Runner, queue: str, messages: Messages) -> None:
    options = [
        "--priority",
        "-3",
        "--group-key",
        "g",
        "--dedup-key",
        "d",
        "--max-attempts",
        "2",
        "--source",
        "me",
        "--headers",
        "{}",
    ]
    done = runner("send", "--type", queue, "body", *options, "--run-at", "2030-01-02T03:04:05", "--json")
    assert done.returncode == 0, done.stderr
    (message,) = messages()
    assert json.loads(done.stdout) == {"id": message["id"], "created": 1, "changed": 0, "state": "N"}
    wanted = {"priority": -3, "group_key": "g", "dedup_key": "d", "source": "me", "headers": "{}", "body": "body"}
    assert {name: message[name] for name in wanted} == wanted
    assert message["run_at"] == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    again = runner("send", "--type", queue, "other", "--dedup-key", "d")
    assert again.returncode == 0
    assert again.stdout == f"{message['id']}\n"
    assert "not sent" in again.stderr
    assert [row["body"] for row in messages()] == ["body"]


def test_send_with_a_delay(runner: Runner, queue: str, messages: Messages) -> None:
    assert runner("send", "--type", queue, "body", "--delay", 100).returncode == 0
    (message,) = messages()
    assert abs(message["run_at"] - datetime.now(UTC) - timedelta(seconds=100)) < timedelta(seconds=30)


def test_send_changes_a_live_message(runner: Runner, queue: str, messages: Messages) -> None:
    first = runner("send", "--type", queue, "first", "--dedup-key", "d", "--delay", 3_600).stdout
    again = runner("send", "--type", queue, "second", "--dedup-key", "d", "--on-conflict", "replace")
    assert (again.returncode, again.stdout) == (0, first)
    assert "changed: live message" in again.stderr
    (message,) = messages()
    assert message["body"] == "second"
    assert message["run_at"] < datetime.now(UTC) + timedelta(minutes=30)


def test_send_waits_for_a_result(runner: Runner, start: Start, session: Session, queue: str) -> None:
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    start("consume", "--type", queue, "--handler", "jobs:answer", "--keep-results")
    done = runner("send", "--type", queue, "text the result", "--wait", 60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the result\n", "")
    done = runner("send", "--type", queue, "none", "--wait", 60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = runner("send", "--type", queue, "json", "--wait", 60, "--json")
    answer = json.loads(done.stdout)
    assert (answer["created"], answer["result"]) == (1, '{"é": [1, null]}')
    one_line(
        runner("send", "--type", queue, "die no such customer", "--wait", 60), 1, "is a dead letter: no such customer"
    )


def test_send_waits_no_longer_than_asked(runner: Runner, queue: str, messages: Messages) -> None:
    one_line(runner("send", "--type", queue, "body", "--wait", 0.3), 1, "is not completed after 0.3 s; it is new")
    assert [message["body"] for message in messages()] == ["body"]
    one_line(runner("send", "--type", queue, "later", "--delay", 3_600, "--wait", 0), 1, "not completed after 0 s")
    assert len(messages()) == 2


def test_send_says_that_a_queue_that_deletes_its_messages_keeps_no_result(
    runner: Runner, start: Start, queue: str
) -> None:
    start("consume", "--type", queue, "--handler", "jobs:record")
    one_line(runner("send", "--type", queue, "body", "--wait", 60), 1, "no longer exists and has no result")


# ---- topics --------------------------------------------------------------------------------------


@pytest.mark.level(4)
def test_topics_are_bound_listed_published_to_and_unbound(runner: Runner, queue: str, messages: Messages) -> None:
    topic = queue.rpartition(".")[2]
    assert runner("topic", "bind", f"{topic}.*.paid", "--type", queue).stdout == "bound\n"
    assert runner("topic", "bind", f"{topic}.*.paid", "--type", queue).stdout == "already bound\n"
    listed = [json.loads(line) for line in runner("topic", "list", "--json").stdout.splitlines()]
    assert {"pattern": f"{topic}.*.paid", "type": queue} in listed
    assert queue in runner("topic", "list", f"{topic}.eu.paid").stdout
    assert queue not in runner("topic", "list", f"{topic}.eu").stdout
    options = ["--headers", '{"a":1}', "--priority", 3, "--group-key", "g", "--dedup-key", "d"]
    done = runner("topic", "publish", f"{topic}.eu.paid", "body", *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 sent\n", "")
    assert runner("topic", "publish", f"{topic}.eu", "body").stdout == "0 sent\n"
    (message,) = messages()
    assert (message["body"], message["headers"]) == ("body", f'{{"topic":"{topic}.eu.paid","a":1}}')
    assert (message["priority"], message["group_key"], message["dedup_key"]) == (3, "g", "d")
    one_line(runner("topic", "publish", "a..b", "body"), 1, "topic: ")
    one_line(runner("topic", "unbind", "--type", f"{queue}x"), 1, "no such binding")
    assert runner("topic", "unbind", "--type", queue).stdout == "1 removed\n"


def test_a_watched_table_is_subscribed_to_a_topic(
    runner: Runner, queue: str, messages: Messages, sql: Sql, server: Server, database: Database
) -> None:
    table, topic = f"w_{queue.rpartition('.')[2]}", queue.rpartition(".")[2]
    sql(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY)")
    for statement in BY_DATABASE[database.name].before_watching(table):
        sql(statement)
    for words in (
        ("subscription", "watch", table),
        ("subscription", "add", table, "--action", "I", "--topic", topic),
        ("topic", "bind", topic, "--type", queue),
    ):
        done = runner(*words)
        assert done.returncode == 0, done.stderr
    sql(f"INSERT INTO {table} (id) VALUES (1)")
    assert [message["headers"] for message in messages()] == [f'{{"topic":"{topic}"}}']
    listed = json.loads(runner("subscription", "list", table, "--json").stdout)
    assert (listed["type"], listed["topic"]) == (None, topic)
    assert runner("subscription", "remove", table, "--topic", topic).stdout == "1 removed\n"
    assert runner("topic", "unbind", topic).returncode == 0
    assert runner("subscription", "unwatch", table).returncode == 0


def test_send_reads_a_list_in_chunks(runner: Runner, queue: str, messages: Messages, tmp_path: Path) -> None:
    bodies = [f"m{n}" for n in range(25_001)]
    file = tmp_path / "list"
    file.write_text("\n".join(bodies))
    done = runner("send", "--type", queue, "--file", file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"affected": 25_001}
    assert [row["body"] for row in messages()] == bodies


@pytest.mark.parametrize("how", [["-"], ["--file", "-"]])
def test_send_reads_the_list_format_from_stdin(runner: Runner, queue: str, messages: Messages, how: list[str]) -> None:
    done = runner("send", "--type", queue, *how, stdin='plain, {"a": 1}\n\n"two\\nlines"\n""\n{"b": "é"}\n')
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4 sent\n"
    assert [row["body"] for row in messages()] == ['plain, {"a": 1}', "two\nlines", "", '{"b": "é"}']


def test_send_reads_a_list_as_windows_writes_it(runner: Runner, queue: str, messages: Messages, tmp_path: Path) -> None:
    """Lines end with CR LF, and a BOM comes first; a CR elsewhere belongs to a body."""
    file = tmp_path / "list"
    file.write_bytes(b'\xef\xbb\xbffirst\r\n\r\n"two\\nlines"\r\na\rb\r\r\n\xef\xbb\xbf"end\\r"\r\n"end\\r"\r\nlast')
    assert runner("send", "--type", queue, "--file", file).returncode == 0
    wanted = ["first", "two\nlines", "a\rb\r", '\ufeff"end\\r"', "end\r", "last"]
    assert [row["body"] for row in messages()] == wanted
    file.write_bytes(b"\xef\xbb\xbf\r\n" + b"\r\n" * 20_001 + b"only\r\n")
    assert runner("send", "--type", queue, "--file", file).returncode == 0
    assert [row["body"] for row in messages()] == [*wanted, "only"]


def test_send_sends_a_list_of_more_bytes_than_one_call_carries(
    runner: Runner, queue: str, messages: Messages, tmp_path: Path
) -> None:
    file = tmp_path / "list"
    file.write_text("".join(f"{letter * 3_000_000}\n" for letter in "abcd"))
    assert runner("send", "--type", queue, "--file", file).returncode == 0
    assert [(row["body"][0], len(row["body"])) for row in messages()] == [(letter, 3_000_000) for letter in "abcd"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\xff\xfe", "line 10003 is not UTF-8; lines 10001 to 10004 were not sent, all lines before were"),
        (
            b'"no end',
            "lines 10001 to 10004 were not sent, all lines before were; counting from line 10001: invalid_arg",
        ),
        (
            b"nul \0 nul",
            "lines 10001 to 10004 were not sent, all lines before were; counting from line 10001: invalid_arg",
        ),
    ],
)
def test_send_says_after_which_line_a_list_failed(
    runner: Runner, queue: str, messages: Messages, tmp_path: Path, line: bytes, said: str
) -> None:
    file = tmp_path / "list"
    file.write_bytes(b"\n".join([b"good"] * 10_002 + [line, b"after"]))
    one_line(runner("send", "--type", queue, "--file", file), 1, said)
    assert len(messages()) == 10_000


# ---- watching ------------------------------------------------------------------------------------


def test_stats_counts_each_state(runner: Runner, session: Session, queue: str) -> None:
    session.call("send_batch", queue, "a\nb\nc")
    session.call("claim_batch", queue, 1)
    session.call("send_message", queue, "later", datetime.now(UTC) + timedelta(hours=1))
    row = json.loads(runner("stats", queue, "--json").stdout)
    assert row.pop("oldest_ready_seconds") >= 0
    assert row == {
        "type": queue, "ready": 2, "delayed": 1, "active": 1, "expired": 0, "dead": 0, "estimated": 0, "paused": 0,
        "drain_seconds": None,
    }  # fmt: skip
    header, line = runner("stats", queue).stdout.splitlines()
    assert header.split("\t")[:4] == ["type", "ready", "delayed", "active"]
    assert line.split("\t")[:4] == [queue, "2", "1", "1"]


def reported(session: Session, sql: Sql, server: Server, engine: str, queue: str, completed: int) -> None:
    """A consumer completed so many messages in the last whole minute."""
    session.call("report_consumer", "me", queue, json.dumps({"completed": completed, "failed": 0}))
    is_postgresql = engine == "postgresql"
    now = session.now() if is_postgresql else session.now().replace(tzinfo=None)
    column = '"MINUTE"' if engine == "firebird" else "minute"
    last = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    sql(f"UPDATE {server.table('report')} SET {column} = %s WHERE type = %s", last, queue)


def test_stats_says_that_a_number_is_an_estimate_and_how_long_it_takes(
    runner: Runner, session: Session, queue: str, sql: Sql, server: Server, database: Database
) -> None:
    for _ in range(2):
        session.call("send_batch", queue, "\n".join("x" * 10_000))
    row = json.loads(runner("stats", queue, "--json").stdout)
    assert (row["estimated"], row["drain_seconds"]) == (1, None)
    assert row["ready"] == pytest.approx(20_000, rel=0.02)
    reported(session, sql, server, database.name, queue, 400)
    row = json.loads(runner("stats", queue, "--json").stdout)
    minutes = 1 + (row["drain_seconds"] > row["ready"] * 90 / 400)  # the report may be of the minute before
    assert row["drain_seconds"] == pytest.approx(row["ready"] * 60 * minutes / 400)
    header, line = (text.split("\t") for text in runner("stats", queue).stdout.splitlines())
    shown = dict(zip(header, line, strict=True))
    assert shown["ready"] == "≈ 20 k"
    assert shown["drain_seconds"] == f"{row['drain_seconds']:.0f}"
    session.call("pause", queue)
    assert json.loads(runner("stats", queue, "--json").stdout)["drain_seconds"] is None


def test_peek_shows_messages_in_any_state(runner: Runner, session: Session, queue: str) -> None:
    body = "tab\there, é and\nmore " + "x" * 200
    session.call("send", queue, body)
    row = json.loads(runner("queue", "peek", queue, "--json").stdout)
    assert (row["body"], row["state"], row["attempts"]) == (body, "N", 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", row["created_at"])
    shown = runner("queue", "peek", queue).stdout.splitlines()[1].split("\t")[-1]
    assert shown == body.replace("\t", "\\t").replace("\n", "\\n")
    session.call("claim_batch", queue, 1, "consumer-7")
    assert runner("queue", "peek", queue).stdout.splitlines()[1:] == []
    assert json.loads(runner("queue", "peek", queue, "--state", "A", "--json").stdout)["consumer"] == "consumer-7"


def test_characters_that_break_a_line_or_control_a_terminal_are_escaped(
    runner: Runner, session: Session, queue: str
) -> None:
    session.call("send", queue, "a\u2028b\x85c\x9bd\x7f\x1b[31m\ud7ff")
    shown = runner("queue", "peek", queue).stdout.splitlines()
    assert len(shown) == 2
    assert shown[1].split("\t")[-1] == "a\\u2028b\\u0085c\\u009bd\\u007f\\u001b[31m\\ud7ff"


def test_dead_list_shows_errors_of_one_queue_or_of_all(runner: Runner, session: Session, queue: str) -> None:
    other = f"{queue}.other"
    kill_messages(session, queue, "a", "b", error="why a")
    kill_messages(session, other, "c")
    rows = [json.loads(line) for line in runner("dead", "list", queue, "--json").stdout.splitlines()]
    assert [(row["body"], row["error"]) for row in rows] == [("b", "why a"), ("a", "why a")]
    listed = [line.split("\t") for line in runner("dead", "list").stdout.splitlines()]
    assert {(line[1], line[5]) for line in listed} >= {(queue, "a"), (queue, "b"), (other, "c")}


def test_table_on_a_terminal_shortens_bodies(session: Session, queue: str, database: Database) -> None:
    session.call("send", queue, "start " + "x" * 1_000 + "\x1b[31m")
    controller, terminal = pty.openpty()
    env = environment(database.url, COLUMNS="250", TERM="xterm")
    with subprocess.Popen([*COMMAND, "queue", "peek", queue], stdout=terminal, stderr=terminal, env=env) as process:
        assert process.wait(30) == 0
    os.close(terminal)
    shown = os.read(controller, 65_536).decode()
    os.close(controller)
    assert "start xxx" in shown
    assert "x" * 250 not in shown
    assert len(shown.splitlines()) == 2, "a message takes one line"
    assert "…" in shown
    assert "\x1b[31m" not in shown, "a body reached the terminal as it is"


def test_output_into_a_closed_pipe_is_quiet(session: Session, queue: str, database: Database) -> None:
    session.call("send_batch", queue, "\n".join(["x" * 1_000] * 2_000))
    command = f"{' '.join(COMMAND)} queue peek {queue} --size 2000 --json | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(database.url))
    assert json.loads(done.stdout)["type"] == queue
    assert done.stderr == ""


# ---- operating -----------------------------------------------------------------------------------


@pytest.mark.level(3)
def test_dead_redrive_repeats_until_none_is_left(
    runner: Runner, session: Session, queue: str, messages: Messages
) -> None:
    kill_messages(session, queue, *(f"m{n}" for n in range(10_001)))
    assert runner("dead", "redrive", queue).stdout == "10001 redriven\n"
    assert {(row["state"], row["attempts"]) for row in messages()} == {("N", 0)}


def test_dead_redrive_of_one_message(runner: Runner, session: Session, queue: str, messages: Messages) -> None:
    kill_messages(session, queue, "a", "b")
    id = messages()[1]["id"]
    assert runner("dead", "redrive", "--id", id, "--json").stdout == '{"affected": 1}\n'
    assert [row["state"] for row in messages()] == ["E", "N"]
    one_line(runner("dead", "redrive", "--id", id), 1, str(id), "not a dead letter")


def test_purge_deletes_one_state_of_any_size(runner: Runner, session: Session, queue: str, messages: Messages) -> None:
    kill_messages(session, queue, "dead")
    for size in (10_000, 5):
        session.call("send_batch", queue, "\n".join("x" * size))
    assert runner("queue", "purge", queue, "--state", "N").stdout == "10005 purged\n"
    assert [row["state"] for row in messages()] == ["E"]
    assert runner("queue", "purge", queue, "--state", "E").stdout == "1 purged\n"
    assert messages() == []


def test_cancel_removes_a_message_that_nobody_holds(
    runner: Runner, session: Session, queue: str, messages: Messages
) -> None:
    session.call("send_batch", queue, "a\nb")
    active = session.call("claim_batch", queue, 1)[0]["id"]
    new = next(row["id"] for row in messages() if row["id"] != active)
    assert runner("queue", "cancel", new).stdout == "1 cancelled\n"
    one_line(runner("queue", "cancel", new), 1, "does not exist")
    assert runner("queue", "cancel", active).stdout == "1 cancelled; it is deleted when its attempt ends\n"
    assert [(row["id"], row["error"]) for row in messages()] == [(active, "cancelled")]


def test_a_misspelt_queue_is_mentioned_and_never_created(runner: Runner, session: Session, queue: str) -> None:
    session.call("send", queue, "a")
    wrong = f"{queue[:-2]}{queue[-1]}{queue[-2]}x"
    one_line(runner("queue", "pause", wrong), 1, f"unknown queue {wrong}", f"did you mean {queue}?", "--new")
    for arguments in (
        *(("stats", wrong), ("queue", "peek", wrong), ("queue", "list", wrong), ("queue", "resume", wrong)),
        *(("queue", "purge", wrong, "--state", "E"), ("dead", "list", wrong), ("dead", "errors", wrong)),
        *(("dead", "redrive", wrong), ("consumers", wrong), ("throughput", wrong)),
    ):
        said = runner(*arguments)
        assert (said.returncode, said.stderr.count(f"unknown queue {wrong}")) == (0, 1), arguments
        assert f"did you mean {queue}?" in said.stderr
    assert wrong not in {row["type"] for row in session.call("list_queues")}
    assert runner("queue", "pause", wrong, "--new").stdout == "paused\n"
    assert runner("queue", "resume", wrong).stderr == ""
    assert f"unknown queue {queue}.b" in runner("queue", "set", f"{queue}.b", "--lease-seconds", 5).stderr


def test_pause_and_resume(runner: Runner, session: Session, queue: str) -> None:
    session.call("send", queue, "a")
    assert runner("queue", "pause", queue).stdout == "paused\n"
    assert runner("queue", "pause", queue).stdout == "already paused\n"
    assert session.call("claim_batch", queue) == []
    assert json.loads(runner("stats", queue, "--json").stdout)["paused"] == 1
    assert runner("queue", "resume", queue).stdout == "resumed\n"
    assert runner("queue", "resume", queue).stdout == "already running\n"
    assert len(session.call("claim_batch", queue)) == 1


def test_bench_measures_and_leaves_nothing(runner: Runner, sql: Sql, server: Server) -> None:
    done = runner("bench", "--messages", 500, "--batch", 50, "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["messages"] for row in rows] == [500, 500, 500, 200, 200]
    assert all(row["messages_per_second"] > 0 and row["call_milliseconds"] > 0 for row in rows)
    assert sql(f"SELECT 1 FROM {server.table('message_state')} WHERE type LIKE 'bench-%%'") == []


# ---- configuration and bad input -----------------------------------------------------------------


def test_flag_beats_environment_beats_file(runner: Runner, queue: str, database: Database, tmp_path: Path) -> None:
    nowhere = f"{database.name}://127.0.0.1:1/nowhere"
    settings = tmp_path / "pyproject.toml"
    settings.write_text(f'[tool.rowqueue]\ndatabase = "{database.url}"\n')
    assert runner("stats", queue, cwd=tmp_path, url=None).returncode == 0
    assert runner("stats", queue, cwd=tmp_path, url=nowhere).returncode == 1
    settings.write_text(f'[tool.rowqueue]\ndatabase = "{nowhere}"\n')
    assert runner("stats", queue, cwd=tmp_path, url=None).returncode == 1
    assert runner("stats", queue, cwd=tmp_path, url=database.url).returncode == 0
    assert runner("stats", queue, "--database", database.url, cwd=tmp_path, url=nowhere).returncode == 0
    (tmp_path / "rowqueue.toml").write_text(f'database = "{database.url}"\n')
    assert runner("stats", queue, cwd=tmp_path, url=None).returncode == 0


def test_file_sets_defaults_of_a_command(
    runner: Runner, session: Session, queue: str, tmp_path: Path, joblog: Log
) -> None:
    session.call("send_batch", queue, "a\nb\nc")
    (tmp_path / "rowqueue.toml").write_text(
        f'[consume]\ntype = ["{queue}"]\nhandler = "jobs:record"\nmax-messages = 2\nbatch = 1\n[dead.list]\nsize = 5\n'
    )
    done = runner("consume", cwd=tmp_path, env={"PYTHONPATH": str(FOLDER)})
    assert done.returncode == 0, done.stderr
    assert joblog.read() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[consume]\nbacth = 2\n", ["consume", "bacth"]),
        ("databse = 2\n", ["databse"]),
        ("consume = 2\n", ["consume"]),
        ("no toml", ["rowqueue.toml"]),
        ("[consume]\nbatch = 0\n", ["batch", "1"]),
        ("database = 5\n", ["database"]),
    ],
)
def test_bad_configuration_is_refused(runner: Runner, queue: str, tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "rowqueue.toml").write_text(text)
    one_line(runner("consume", "--type", queue, "--exec", "true", cwd=tmp_path, url=None), 2, *words)


LONG = "x" * 201


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nothing", ["nothing"]),
        ("dead", ["command"]),
        ("stats --database nowhere", ["--database", "must begin with a scheme"]),
        ("stats --database nowhere://host", ["--database", "unknown scheme", "known: "]),
        ("stats --database foo://host/x", ["--database", "'foo'"]),
        ("stats --nix", ["--nix"]),
        ("send body", ["--type"]),
        ("send --type Q", ["BODY"]),
        ("send --type Q body --file /dev/null", ["BODY", "--file"]),
        ("send --type Q --file /does/not/exist", ["--file", "/does/not/exist"]),
        ("send --type Q --file /", ["--file"]),
        ("send --type Q --file /dev/null --priority 1", ["--file", "takes no options"]),
        ("send --type Q body --run-at tomorrow", ["--run-at", "tomorrow"]),
        ("send --type Q body --run-at 2030-01-01 --delay 3", ["--run-at", "--delay"]),
        ("send --type Q body --delay -1", ["--delay", "0"]),
        ("send --type Q body --delay 1.5", ["--delay"]),
        ("send --type Q body --on-conflict replace", ["--on-conflict", "--dedup-key"]),
        ("send --type Q body --on-conflict X --dedup-key d", ["--on-conflict", "keep"]),
        ("send --type Q --file /dev/null --wait 1", ["--file", "takes no options"]),
        ("send --type Q body --wait -1", ["--wait", "0"]),
        ("topic bind a.b", ["--type"]),
        ("topic unbind", ["PATTERN", "--type"]),
        ("subscription add T --action I", ["--type", "--topic"]),
        ("subscription add T --action I --type Q --topic a", ["--type", "--topic"]),
        ("subscription remove T --type Q --topic a", ["--type", "--topic"]),
        ("consume --type Q --exec true --keep-results", ["--keep-results", "--exec"]),
        ("consume --type Q --handler jobs:answer --transaction --keep-results", ["--keep-results", "--transaction"]),
        ("consume --type Q --handler jobs:record_batch --keep-results", ["--keep-results", "list"]),
        ("send --type Q body --priority 40000", ["--priority", "32767"]),
        ("send --type Q body --priority x", ["--priority"]),
        ("send --type Q body --max-attempts 0", ["--max-attempts", "1"]),
        ("queue peek Q --state X", ["--state"]),
        ("queue peek Q --size 0", ["--size", "1"]),
        ("queue peek Q --size 10001", ["--size", "10000"]),
        ("queue purge Q", ["--state"]),
        ("queue purge Q --state A", ["--state"]),
        ("queue cancel x", ["ID"]),
        ("dead redrive --id x", ["--id"]),
        ("dead redrive", ["TYPE", "--id"]),
        ("dead redrive Q --id 1", ["TYPE", "--id"]),
        ("queue pause", ["TYPE", "--all"]),
        ("queue resume Q --all", ["TYPE", "--all"]),
        ("subscription remove T", ["--type", "--action"]),
        ("uninstall", ["--yes"]),
        ("bench --messages 0", ["--messages"]),
        ("sql", ["--database"]),
        ("consume --handler jobs:record", ["--type"]),
        ("consume --type Q --table T --exec true", ["--table"]),
        ("table consume T", ["--handler", "--exec"]),
        ("table consume --exec true", ["NAME"]),
        ("table consume T --exec true --type Q", ["--type"]),
        ("table consume T --exec true --transaction", ["--transaction"]),
        ("feed consume F --exec true", ["--consumer"]),
        ("feed consume --consumer C --exec true", ["FEED"]),
        ("feed consume F --consumer C", ["--handler", "--exec"]),
        ("feed consume F --consumer C --exec true --type Q", ["--type"]),
        ("feed consume F --consumer C --exec true --transaction", ["--transaction"]),
        ("feed consume F --consumer C --exec true --concurrency 2", ["--concurrency"]),
        ("consume --type Q", ["--handler", "--exec"]),
        ("consume --type Q --handler jobs:record --exec true", ["--handler", "--exec"]),
        ("consume --type Q --worker w --exec true", ["--handler", "--exec", "--worker"]),
        ("consume --type Q --worker w --handler jobs:record", ["--handler", "--exec", "--worker"]),
        ("consume --type Q --worker '", ["--worker", "words"]),
        ("consume --type Q --worker ''", ["--worker", "empty"]),
        ("consume --type Q --exec true --timeout 0", ["--timeout"]),
        ("consume --type Q --handler jobs:record --timeout 1", ["--timeout", "function"]),
        ("table consume T --worker w --exec true", ["--worker"]),
        ("feed consume F --consumer C --worker w --exec true", ["--worker"]),
        ("consume --type Q --handler jobs", ["--handler", "module:function"]),
        ("consume --type Q --handler nix:nix", ["--handler", "No module named 'nix'"]),
        ("consume --type Q --handler jobs:nix", ["--handler", "'nix'"]),
        ("consume --type Q --handler jobs:not_callable", ["--handler", "not a function"]),
        ("consume --type Q --handler jobs:takes_nothing", ["--handler", "takes no argument"]),
        ("consume --type Q --handler jobs:record_async --transaction", ["--transaction", "async"]),
        ("consume --type Q --handler jobs:record --ring", ["--ring"]),
        ("consume --type Q --handler jobs:record --batch 0", ["--batch", "1"]),
        ("consume --type Q --handler jobs:record --batch 10001", ["--batch", "10000"]),
        ("consume --type Q --handler jobs:record --lease 0", ["--lease", "1"]),
        ("consume --type Q --handler jobs:record --concurrency 0", ["--concurrency", "1"]),
        ("consume --type Q --handler jobs:record --health-port 70000", ["--health-port", "65535"]),
        ("consume --type Q --handler jobs:record --log-level loud", ["--log-level"]),
    ],
)
def test_bad_usage_is_a_one_line_error_before_any_database_is_opened(
    arguments: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has already imported the runner's modules: there are many cases."""
    command = ["runner", *arguments.split()]
    monkeypatch.setattr(os, "environ", environment("nowhere://"))
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.chdir(FOLDER)
    with pytest.raises(SystemExit) as ended:
        main()
    one_line(subprocess.CompletedProcess(command, int(str(ended.value.code)), *capfd.readouterr()), 2, *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("send --type Q body --run-at 2999-01-01", ["run_at", "ten years"]),
        (f"send --type {LONG} body", ["type", "1 to 200 characters"]),
        (f"send --type Q body --dedup-key {LONG}", ["dedup_key", "1 to 200 characters"]),
        (f"queue pause {LONG}", ["type", "1 to 200 characters"]),
        ("queue cancel 99999999999999999999", ["id"]),
        (f"consume --type {LONG} --handler jobs:record --drain --log-level error", ["type", "1 to 200"]),
        (f"consume --type Q --exec true --consumer {LONG} --drain --log-level error", ["consumer", "1 to 200"]),
    ],
)
def test_bad_input_is_a_one_line_error_and_changes_nothing(
    runner: Runner, queue: str, sql: Sql, server: Server, arguments: str, words: list[str]
) -> None:
    one_line(runner(*(queue if word == "Q" else word for word in arguments.split())), 1, *words)
    assert not {queue, LONG} & {row["type"] for row in sql(f"SELECT DISTINCT type FROM {server.table('message')}")}


def test_bytes_that_are_not_text_are_refused(database: Database, queue: str, messages: Messages) -> None:
    command = [*map(os.fsencode, COMMAND), b"send", b"--type", queue.encode(), b"\xff\xfe"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(database.url))
    one_line(done, 1, "body", "Unicode")
    assert messages() == []


def test_an_unreachable_server_is_reported_in_one_line(runner: Runner, private_server: Server, queue: str) -> None:
    url = private_server.create_database()
    private_server.stop()
    one_line(runner("stats", url=url), 1)
    one_line(runner("consume", "--type", queue, "--exec", "true", "--connect-timeout", "0", url=url), 1)


def test_a_port_in_use_is_reported(runner: Runner, queue: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = runner("consume", "--type", queue, "--exec", "true", "--health-port", port, "--drain")
    one_line(done, 1, "use")


def test_a_policy_is_set_in_parts_and_shown_whole(runner: Runner, queue: str) -> None:
    done = runner("queue", "set", queue, "--max-active", 3, "--rate", 100, "--rate-seconds", 10, "--no-notify")
    assert done.returncode == 0, done.stderr
    done = runner("queue", "set", queue, "--group-max-active", 2, "--on-complete", "archive", "--json")
    row = json.loads(done.stdout)
    limits = ("max_active", "rate", "rate_seconds", "group_max_active", "group_rate", "group_rate_seconds")
    assert [row[name] for name in limits] == [3, 100, 10, 2, 0, 1], done.stderr
    assert (row["type"], row["on_complete"], row["notify"], row["ordered"]) == (queue, "archive", 0, 0)
    assert "max_active\t3" in runner("queue", "set", queue).stdout.splitlines()
    assert runner("queue", "set", queue, "--rate", -1).returncode == 2
    done = runner("queue", "set", queue, "--ordered")
    assert done.returncode == 1 and "group_max_active" in done.stderr
    assert json.loads(runner("queue", "set", queue, "--json").stdout) == row


def test_a_queue_is_declared_a_ring_or_fair(runner: Runner, session: Session, queue: str) -> None:
    assert "ring\t1" in runner("queue", "set", queue, "--ring").stdout.splitlines()
    done = runner("queue", "set", queue, "--fair")
    assert done.returncode == 1 and "ring" in done.stderr and "fair" in done.stderr
    row = json.loads(runner("queue", "set", queue, "--no-ring", "--fair", "--json").stdout)
    assert (row["ring"], row["fair"]) == (0, 1)
    assert row.pop("known") == 1 and session.call("list_queues", queue) == [row]


def test_a_dead_letter_may_stop_its_group(runner: Runner, queue: str) -> None:
    done = runner("queue", "set", queue, "--dead-stops-group")
    assert done.returncode == 1 and "dead_stops_group" in done.stderr
    row = json.loads(runner("queue", "set", queue, "--ordered", "--dead-stops-group", "--json").stdout)
    assert (row["ordered"], row["dead_stops_group"]) == (1, 1)
    assert "dead_stops_group\t0" in runner("queue", "set", queue, "--no-dead-stops-group").stdout.splitlines()


def test_one_group_gets_its_own_share_and_limits(
    runner: Runner, session: Session, queue: str, sql: Sql, server: Server
) -> None:
    def stored() -> list[tuple[object, ...]]:
        rows = sql(f"SELECT * FROM {server.table('queue_group')} WHERE type = %s", queue)
        return [
            tuple(row[name] for name in ("group_key", "weight", "max_active", "rate", "rate_seconds")) for row in rows
        ]

    session.call("set_queue", queue)
    done = runner("queue", "set-group", queue, "customer 7", "--weight", 3, "--max-active", 2)
    assert (done.returncode, done.stdout) == (0, "set\n"), done.stderr
    assert stored() == [("customer 7", 3, 2, None, None)]
    done = runner("queue", "set-group", queue, "customer 7", "--rate", 5, "--rate-seconds", 9, "--json")
    assert json.loads(done.stdout) == {"type": queue, "group_key": "customer 7", "set": 1, "known": 1}
    assert stored() == [("customer 7", None, None, 5, 9)]
    assert runner("queue", "set-group", queue, "customer 7").stdout == "as the queue\n"
    assert stored() == []
    assert runner("queue", "set-group", queue, "g", "--weight", 0).returncode == 2
    done = runner("queue", "set-group", queue, "", "--weight", 1)
    assert done.returncode == 1 and "group_key" in done.stderr
