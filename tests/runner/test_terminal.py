"""The runner on a terminal: tables that fit, colours, progress, Ctrl-C, and the Tab key of a shell."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rowqueue.databases import Database, Session
from servers import Server
from support.outcomes import dead_letter
from support.processes import COMMAND, FOLDER, environment
from support.waiting import until
from terminal import Terminal

pytestmark = pytest.mark.level(1)

Sql = Callable[..., list[dict[str, Any]]]
WIDTHS = (80, 200)
ERROR = ("ConnectionError: [Errno 111] connection refused by 192.0.2.1; " * 20).strip()
BODIES = (
    "漢字" * 300,
    "\x1b[31mred\x07\r\n\tend\u202e",
    "e\u0301" * 100,
    "🎉" * 90,
    "ok",
    "",
    "[bold]no markup[/bold]",
)


def run(database: Database, *arguments: object, columns: int = 80, **env: str) -> Terminal:
    """A command on a terminal, after it ended with 0."""
    terminal = Terminal([*COMMAND, *arguments], environment(database.url, **env), columns)
    assert terminal.end() == 0, terminal.written
    return terminal


def dead_letters(session: Session, queue: str, count: int, error: str = "broken", body: str = "x") -> None:
    while count:
        size = min(count, 10_000)
        session.call("send_batch", queue, "\n".join([body] * size))
        rows = session.call("claim_batch", queue, size)
        session.call("finish_batch", rows[0]["batch_key"], "\n".join(dead_letter(row["id"], error) for row in rows))
        count -= size


# ---- tables --------------------------------------------------------------------------------------


@pytest.fixture
def odd(session: Session, queue: str) -> Iterator[str]:
    """A queue with a long name and messages in every state, with values that are difficult for tables."""
    type = f"{queue}.漢字.{'x' * 150}"
    session.call("set_queue", type, '{"on_complete": "archive"}')
    for _ in range(4):
        for body in BODIES:
            headers = json.dumps({"h": "h" * 300})
            session.call("send_message", type, body, None, None, None, None, None, headers, "s" * 200)
    for _ in BODIES:
        row = session.call("get_message", type)[0]
        session.call("dead_letter", row["id"], row["batch_key"], ERROR)
    for _ in BODIES:
        row = session.call("get_message", type)[0]
        session.call("complete", row["id"], row["batch_key"])
    session.call("claim_batch", type, len(BODIES), "r" * 200, 600)
    session.call(
        "report_consumer",
        "r" * 200,
        type,
        json.dumps(
            {
                "completed": 123456789,
                "failed": 1,
                "dead": 2,
                "busy_ms": 3600000,
                "waited_ms": 123456789,
                "sent": 0,
                "next_seconds": 60,
            }
        ),
    )
    session.call("set_schedule", type, type, "*/15 0-12 1-20 * MON-FRI", "b" * 300)
    session.call("bind_topic", f"{type[:180]}.*.#", type)
    yield type
    session.call("drop_schedule", type)
    session.call("unbind_topic", None, type)


@pytest.mark.level(3)
@pytest.mark.parametrize("columns", WIDTHS)
def test_every_table_fits_the_terminal_a_line_a_row(
    database: Database, session: Session, odd: str, columns: int
) -> None:
    peeks = [["queue", "peek", odd, "--state", state, "--size", len(BODIES)] for state in "AE"]
    for command, count in (
        *[(peek, len(BODIES)) for peek in peeks],
        (["stats", odd], 1),
        (["dead", "list", odd], len(BODIES)),
        (["dead", "errors", odd], 1),
        (["queue", "find", odd, "--id", "1"], None),
        (["queue", "list", odd], None),
        (["consumers", odd], 1),
        (["throughput", odd], None),
        (["schedule", "list", odd], 1),
        (["schedule", "next", "@daily"], 5),
        (["topic", "list"], None),
        (["queue", "set", odd], None),
        (["doctor"], None),
    ):
        terminal = Terminal([*COMMAND, *command], environment(database.url), columns)
        terminal.end()
        lines = terminal.lines
        assert len(lines) > 0 and max(map(cell_len, lines)) <= columns, command
        assert all(line.isprintable() for line in lines), command
        assert "…" not in lines[0], "the name of a column is whole"
        if command in peeks:
            ids = {row["id"] for row in session.call("peek", odd, command[4], len(BODIES))}
            assert {int(line.split()[0]) for line in lines[1:] if line.split()[0].isdigit()} == ids
            assert len(re.findall(r" [\d-]{5,10} \d\d:\d\d:\d\d ", "\n".join(lines))) >= len(BODIES), "times are whole"
        if count is not None:
            hint = sum(line.startswith("Not shown in ") for line in lines)
            headers = 1 + any(re.fullmatch(r"[a-z_ ]+_ *", line) for line in lines)
            assert len(lines) == headers + count + hint, (command, lines)


def test_texts_of_senders_control_no_terminal(database: Database, session: Session, queue: str) -> None:
    hostile = "\x1b]52;c;aGk=\x07\x9b31m\u202eabc\x7f\rx\n\u2066y"
    session.call("send", queue, hostile)
    rows = run(database, "queue", "peek", queue, "--json").written
    assert not set(rows) & {"\x1b", "\x07", "\x9b", "\u202e", "\x7f", "\u2066"}
    assert json.loads(rows)["body"] == hostile
    session.call("set_queue", f"{queue}.b", '{"on_complete": "archive"}')
    terminal = Terminal([*COMMAND, "send", "--type", f"{queue}.b", "--wait", "30", "x"], environment(database.url))
    rows_of = until(lambda: session.call("claim_batch", f"{queue}.b", 1, "test", 60))
    session.call("set_result", rows_of[0]["id"], rows_of[0]["batch_key"], hostile)
    session.call("complete_batch", rows_of[0]["batch_key"])
    assert terminal.end() == 0
    assert "abc" in terminal.written and not set(terminal.written) & {"\x1b", "\x07", "\x9b", "\u202e", "\x7f"}


def test_a_narrow_table_names_what_it_leaves_out_and_a_wide_one_has_all(
    database: Database, session: Session, queue: str
) -> None:
    dead_letters(session, queue, 3, ERROR, "a long body " * 20)
    narrow = run(database, "dead", "list", queue)
    assert {"id", "type", "error", "body"} <= set(narrow.lines[0].split())
    assert queue[:10] in narrow.lines[1] and narrow.lines[1].count("…") >= 2, "the error and the body are cut"
    wide = run(database, "queue", "peek", queue, "--state", "E", columns=250)
    names = ["id", "state", "attempts", "priority", "created_at", "error", "body"]
    assert [name for name in wide.lines[0].split() if name in names] == names
    assert not wide.lines[-1].startswith("Not shown")
    narrow = run(database, "queue", "peek", queue, "--state", "E")
    hint = narrow.lines[-1]
    assert hint.startswith("Not shown in 80 columns: ") and hint.endswith(" --json has all.")
    hidden = set(hint.partition(": ")[2].partition(".")[0].split(", "))
    assert hidden <= set(names)
    assert hidden & set(narrow.lines[0].split()) == set()
    rows = [json.loads(line) for line in run(database, "dead", "list", queue, "--json").lines]
    assert len(rows) == 3 and all(row.keys() >= hidden and row["error"] == ERROR.strip() for row in rows)


@pytest.mark.level(3, one=True)
def test_states_dead_counts_and_paused_queues_have_colours(database: Database, session: Session, queue: str) -> None:
    session.call("send", queue, "ok")
    assert not run(database, "queue", "peek", queue, columns=200).has_colour, "a body is no verdict"
    assert not run(database, "stats", queue).has_colour, "nothing is wrong"
    session.call("pause", queue)
    assert run(database, "stats", queue).has_colour
    session.call("resume", queue)
    dead_letters(session, queue, 1)
    assert run(database, "stats", queue).has_colour
    assert run(database, "queue", "peek", queue, "--state", "E", columns=200).has_colour
    verdicts = Terminal([*COMMAND, "doctor"], environment(database.url))
    verdicts.end()
    assert verdicts.has_colour


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_switched_off(database: Database, session: Session, queue: str, setting: dict[str, str]) -> None:
    dead_letters(session, queue, 1)
    terminal = run(database, "stats", queue, **setting)
    assert re.search(r"\b1\b", terminal.lines[-1])
    assert not terminal.has_colour
    if "TERM" in setting:
        assert "\x1b" not in terminal.written


# ---- progress and Ctrl-C -------------------------------------------------------------------------

LINES = 300_000


def interrupted(database: Database, *arguments: object, **env: str) -> tuple[Terminal, int]:
    """A command after Ctrl-C in its middle, and the count that it reports."""
    terminal = Terminal([*COMMAND, *arguments], environment(database.url, **env))
    terminal.until(lambda written: re.search(r"[1-9][\d,]* [a-z]+, [\d,]+/s", written))
    terminal.type("\x03")
    assert terminal.end() == 130, terminal.written
    told = re.match(r"runner: stopped: (\d+) ", terminal.lines[-1])
    assert told, terminal.lines
    return terminal, int(told[1])


def held(sql: Sql, server: Server, queue: str, state: str) -> int:
    view = server.table("message_state")
    [row] = sql(f"SELECT COUNT(*) AS n FROM {view} WHERE type = %s AND state = %s", queue, state)
    return int(row["n"])


def test_ctrl_c_says_how_many_of_a_list_were_sent_and_where_to_continue(
    database: Database, queue: str, sql: Sql, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "list"
    file.write_text("".join(f"{n}\n" for n in range(1, LINES + 1)))
    terminal, count = interrupted(database, "send", "--type", queue, "--file", file)
    assert "%" in terminal.written, "the size of the file is known"
    assert 0 < count < LINES
    assert terminal.lines[-1] == f"runner: stopped: {count} sent; continue from line {count + 1}"
    assert held(sql, server, queue, "N") == count


def test_ctrl_c_in_a_purge_says_how_many_are_gone(
    database: Database, session: Session, queue: str, sql: Sql, server: Server
) -> None:
    for _ in range(10):
        session.call("send_batch", queue, "\n".join("x" * 10_000))
    _, count = interrupted(database, "queue", "purge", queue, "--state", "N")
    assert 0 < count < 100_000
    assert held(sql, server, queue, "N") == 100_000 - count


@pytest.mark.level(4)
def test_ctrl_c_in_a_redrive_says_how_many_are_redriven(
    database: Database, session: Session, queue: str, sql: Sql, server: Server
) -> None:
    dead_letters(session, queue, 50_000)
    _, count = interrupted(database, "dead", "redrive", queue)
    assert 0 < count < 50_000
    assert (held(sql, server, queue, "N"), held(sql, server, queue, "E")) == (count, 50_000 - count)


def test_ctrl_c_while_a_list_is_read_ends_at_once(database: Database, queue: str, sql: Sql, server: Server) -> None:
    """The pipe gets no more lines; a full call has been sent."""
    command = [*COMMAND, "send", "--type", queue, "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(database.url)
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write("x\n" * 10_001)
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while held(sql, server, queue, "N") < 10_000:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)  # it waits for more lines
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == "runner: stopped: 10000 sent; continue from line 10001\n"


def test_progress_is_shown_on_a_terminal_only(database: Database, queue: str, tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("x\n" * 3)
    command = [*COMMAND, "send", "--type", queue, "--file", file]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(database.url))
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 sent\n", "")
    assert "sending" in run(database, *command[len(COMMAND) :]).written
    assert run(database, *command[len(COMMAND) :], TERM="dumb").written == "3 sent\r\n"


def test_a_no_to_uninstall_changes_nothing_and_is_one_line(database: Database, session: Session, queue: str) -> None:
    session.call("send", queue, "stays")
    for answer in ("n\n", "\x04"):
        terminal = Terminal([*COMMAND, "uninstall"], environment(database.url))
        terminal.until(lambda written: "[y/N]" in written)
        terminal.type(answer)
        assert terminal.end() == 1
        assert terminal.lines[-1].endswith("runner: aborted") and "Traceback" not in terminal.written
    assert len(session.call("peek", queue)) == 1


# ---- help and starts -----------------------------------------------------------------------------


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_help_names_every_command_in_whole_sentences(columns: int) -> None:
    terminal = Terminal([*COMMAND, "--help"], environment(None), columns)
    assert terminal.end() == 0
    assert max(map(len, terminal.lines)) <= columns
    assert "..." not in terminal.written.replace("[ARGS]...", "")
    text = " ".join(terminal.written.split())
    assert re.search(r"Dead letters: [a-z, ]*redrive\.", text)
    assert re.search(r"queue Queues: [a-z, -]*purge\.", text)
    for word in ("--help", "--database URL", "RUNNER_DATABASE", "rowqueue.toml"):
        assert word in text


@pytest.mark.parametrize("arguments", [["--help"], ["stats", "--database", "postgresql://nobody@127.0.0.1:1/none"]])
def test_a_start_loads_only_what_it_needs(arguments: Sequence[str]) -> None:
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(None))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert {"rowqueue", "typer"} <= loaded
    heavy = {"pydantic", "rich", "textual", "starlette", "uvicorn", "prometheus_client", "yoyo", "tenacity"}
    assert loaded & heavy == set()


# ---- completion ----------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, database: Database) -> dict[str, str]:
    """Settings of a shell that finds this runner as `runner`, and the database."""
    command = tmp_path / "bin" / "runner"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    prompt = {"PS1": "> ", "PROMPT": "> ", "HISTFILE": "", "INPUTRC": "/dev/null"}
    return environment(database.url, PATH=path, HOME=str(tmp_path), **prompt)


def tab(program: str, setup: str, env: dict[str, str], line: str, wanted: str, cwd: Path = FOLDER) -> None:
    """Type a line and Tab at an interactive shell until it shows what is wanted."""
    terminal = Terminal([*program.split(), "-i"], env, columns=500, cwd=cwd)
    terminal.type(f"{setup}; echo re''ady\n")
    terminal.until(lambda _: "ready" in terminal.lines)
    before = len(terminal.lines)
    terminal.type(f"{line}\t")
    bells = terminal.written.count("\a")

    def shows(written: str) -> bool:
        nonlocal bells
        if written.count("\a") > bells:  # on a busy machine the database has not answered in time
            bells = written.count("\a")
            terminal.type("\t")
        return any(wanted in line for line in terminal.lines[before - 1 :])

    try:
        terminal.until(shows, 20)
    finally:
        terminal.process.kill()
        terminal.end()


BASH = ("bash --norc --noprofile", "source <(runner completion bash)")
ZSH = ("zsh -f", "autoload -Uz compinit; compinit -u -D; source <(runner completion zsh)")


@pytest.mark.level(3)
@pytest.mark.parametrize(("program", "setup"), [BASH, ZSH], ids=["bash", "zsh"])
def test_tab_completes_commands_options_and_queues(
    program: str, setup: str, shell: dict[str, str], session: Session, queue: str
) -> None:
    if shutil.which(program.split()[0]) is None:
        pytest.skip(f"{program.split()[0]} is not installed")
    session.call("send", queue, "x")
    tab(program, setup, shell, "runner queue pu", "runner queue purge ")
    tab(program, setup, shell, "runner queue purge x --sta", "runner queue purge x --state ")
    tab(program, setup, shell, f"runner stats {queue[:-6]}", f"runner stats {queue} ")
    tab(program, setup, shell, f"runner send --type {queue[:-6]}", f"runner send --type {queue} ")


def test_fish_completes_commands_options_and_queues(shell: dict[str, str], session: Session, queue: str) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    session.call("send", queue, "x")

    def complete(line: str) -> list[str]:
        program = f"runner completion fish | source; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True, env=shell)
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    assert complete("runner queue pu") == ["purge"]
    assert complete("runner queue purge x --sta") == ["--state"]
    assert complete(f"runner stats {queue[:-6]}") == [queue]


def completed(line: str, env: dict[str, str], cwd: Path = FOLDER) -> list[str]:
    """What the runner answers to bash's question."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_RUNNER_COMPLETE": "complete_bash"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=env | asked, cwd=cwd, timeout=30)
    assert (done.returncode, done.stderr) == (0, ""), "nothing else may reach the line that is typed"
    return done.stdout.split()


@pytest.mark.level(3, one=True)
def test_names_that_a_shell_would_evaluate_are_not_offered(database: Database, session: Session, queue: str) -> None:
    for end in ("$(id)", "`id`", "a b", "'", ";", ".ok"):
        session.call("send", f"{queue}{end}", "x")
    # It offers nothing when a busy machine answers late.
    assert until(lambda: completed(f"runner stats {queue}", environment(database.url))) == [f"{queue}.ok"]


def test_completion_finds_the_database_as_other_commands_do(
    database: Database, session: Session, queue: str, tmp_path: Path
) -> None:
    session.call("send", queue, "x")
    named = f"runner stats --database {database.url} {queue}"
    assert until(lambda: completed(named, environment("nowhere://"))) == [queue]
    (tmp_path / "rowqueue.toml").write_text(f"database = {json.dumps(database.url)}")
    assert until(lambda: completed(f"runner stats {queue}", environment(None), tmp_path)) == [queue]


def test_completion_is_silent_and_quick_when_the_database_is_not_there(queue: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for url in (f"postgresql://x@127.0.0.1:{port}/x", f"mysql://x@127.0.0.1:{port}/x", "nowhere://", None):
            started = time.monotonic()
            assert completed("runner stats ", environment(url)) == []
            assert time.monotonic() - started < 5
    assert completed("runner queue purg", environment("nowhere://")) == ["purge"]
