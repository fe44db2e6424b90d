"""`runner top`: what its screens show and what its keys do, with real databases; once in a real terminal."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rowqueue.databases import Database, Session, open_database
from rowqueue.databases.url import shown
from rowqueue.extras.monitor import Watched
from rowqueue.extras.top.app import PROGRAM
from rowqueue.extras.top.frame import Top
from rowqueue.extras.top.queues import QueuesScreen
from rowqueue.install import apply as install
from servers import Server
from support.processes import COMMAND, FOLDER, environment
from textual.pilot import Pilot

pytestmark = pytest.mark.level(1)

Steps = Callable[["Driver"], Awaitable[None]]
Run = Callable[..., None]
PATIENCE = 30


class Driver:
    """Presses keys and reads the screen."""

    def __init__(self, pilot: Pilot[int]) -> None:
        self.pilot = pilot

    def text(self) -> str:
        """The characters on the screen, a line for each of its lines."""
        strips = self.pilot.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips)

    def line(self, words: str) -> str:
        """The first line that has these words; '' without one."""
        return next((line for line in self.text().splitlines() if words in line), "")

    async def until(self, seen: Callable[[], Any], what: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < deadline, f"never seen: {what}\n{self.text()}"
            await self.pilot.pause(0.05)

    async def sees(self, *words: str) -> None:
        """Wait until all of these words are on the screen."""
        await self.until(lambda: all(word in self.text() for word in words), " ".join(words))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def find(self, queue: str) -> None:
        """Show this queue only, with the cursor on it."""
        await self.press("slash", *queue, "enter")
        await self.sees(f"filter: {queue}")


@pytest.fixture
def drive(database: Database) -> Run:
    """Runs the screen: drive(steps, size=(80, 24), url=...)."""

    def run(steps: Steps, size: tuple[int, int] = (80, 24), on: Database | None = None) -> None:
        async def show() -> None:
            target = on or database
            watched = Watched("top", target, PROGRAM)
            try:
                top = Top(watched, QueuesScreen, shown(target.url), 0.5)
                async with top.run_test(size=size) as pilot:
                    await steps(Driver(pilot))
            finally:
                watched.close()

        asyncio.run(show())

    return run


@pytest.fixture
def name() -> str:
    """A queue's name that can be typed, and that is no part of another."""
    return f"top{uuid.uuid4().hex[:10]}"


def dead(session: Session, name: str, error: str, body: str = "b") -> int:
    id: int = session.call("send", name, body)[0]["id"]
    [row] = session.call("claim_batch", name, 1)
    session.call("dead_letter", row["id"], row["batch_key"], error)
    return id


def states(session: Session, name: str) -> tuple[int, int, int, int]:
    [row] = session.call("queue_stats", name)
    return row["ready"], row["active"], row["dead"], row["paused"]


def test_output_while_the_program_ends_is_dropped(database: Database) -> None:
    watched = Watched("top", database, PROGRAM)
    top = Top(watched, QueuesScreen, shown(database.url), 0.5)
    top.progress("there is no screen any more")
    watched.close()


@pytest.mark.level(1)
@pytest.mark.parametrize("is_wide", [False, True])
def test_the_first_screen_shows_queues_and_consumers(drive: Run, session: Session, name: str, is_wide: bool) -> None:
    dead(session, name, "broken")
    session.call("send_batch", name, "a\nb\nc")
    session.call("claim_batch", name, 1)
    session.call("pause", name)
    since = (session.now() - timedelta(seconds=7_500)).strftime("%Y-%m-%dT%H:%M:%SZ")
    handling = f'{{"id": 7102, "since": "{since}"}}\n{{"id": 7103, "since": "{since}"}}'
    report = {"completed": 7, "failed": 2, "dead": 1, "handling": handling}
    session.call("report_consumer", f"{name}-worker", name, json.dumps(report))

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.sees("paused", "READY", "DEAD", "OLDEST")
        words = driver.line("paused").split()
        # ready, delayed, active, expired, dead
        assert words[2:7] == ["2", "0", "1", "0", "1"]
        await driver.sees("working", "LOAD")
        assert {"working", "2", "1"} <= set(driver.line("working").split())
        assert ("7102 2h05m +1" in driver.line("working")) is is_wide

    drive(steps, (120 if is_wide else 100, 24))


def test_a_queue_shows_its_messages_by_state_and_a_message_its_life(drive: Run, session: Session, name: str) -> None:
    body = json.dumps({"to": "someone", "items": [17, {"n": 1.50}]})
    id = dead(session, name, "smtp 550: no such mailbox", body)
    session.call("send_message", name, "the new one", None, 3, "group-7", "key-7", None, '{"h": 1}', "shop")
    session.call("send_message", name, "later", None, 5)
    [held] = session.call("claim_batch", name, 1, "the-consumer")
    session.call("save_step", held["id"], held["batch_key"], "pack")

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.press("enter")
        await driver.sees("1 New", "5 Errors", "later")
        await driver.press("2")
        await driver.sees("the new one", "the-consumer")
        await driver.press("enter")
        await driver.sees("active", "group-7", "key-7", "shop", "the-consumer", "lease until", "steps  pack", '"h": 1')
        await driver.press("escape", "3")
        await driver.sees("smtp 550", str(id))
        await driver.press("enter")
        await driver.sees("state  dead", "smtp 550: no such mailbox", '"to": "someone",', '"n": 1.5', '  "items": [')
        await driver.press("escape", "5")
        await driver.sees("smtp #: no such mailbox")
        await driver.press("escape")
        await driver.sees("filter:")

    drive(steps)


@pytest.mark.level(3)
def test_each_change_is_asked_about_first_and_no_is_the_answer_of_enter(
    drive: Run, session: Session, name: str
) -> None:
    dead(session, name, "broken")
    session.call("send_batch", name, "a\nb")
    before = states(session, name)

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        for keys, question in (("p", "Pause the queue"), ("r", "Resume the queue"), ("d", "Redrive all dead")):
            for answer in ("enter", "n", "escape"):
                await driver.press(keys)
                await driver.sees(question)
                await driver.press(answer)
                await driver.until(lambda: "Yes" not in driver.text(), f"the end of {question}")
        await driver.press("enter")
        await driver.sees("1 New")
        for keys, question in (("x", "Cancel message"), ("X", "Purge"), ("D", "Redrive all dead")):
            await driver.press(keys)
            await driver.sees(question)
            await driver.press("enter")
            await driver.until(lambda: "Yes" not in driver.text(), f"the end of {question}")

    drive(steps)
    assert states(session, name) == before


@pytest.mark.level(3)
def test_the_keys_change_what_they_say_once_the_answer_is_yes(drive: Run, session: Session, name: str) -> None:
    for number in range(3):
        dead(session, name, f"timeout after {number} s")
    dead(session, name, "refused")
    session.call("send_batch", name, "a\nb\nc")

    async def yes(driver: Driver, key: str, done: Callable[[], bool]) -> None:
        await driver.press(key)
        await driver.sees("Yes")
        await driver.press("y")
        await driver.until(done, f"what {key} does: {states(session, name)}")

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await yes(driver, "p", lambda: states(session, name) == (3, 0, 4, 1))
        await driver.sees("paused")
        await yes(driver, "r", lambda: states(session, name) == (3, 0, 4, 0))
        await driver.press("enter", "5")
        await driver.sees("timeout after # s", "refused")
        await yes(driver, "d", lambda: states(session, name) == (6, 0, 1, 0))
        await driver.press("3")
        await driver.sees("refused")
        await yes(driver, "d", lambda: states(session, name) == (7, 0, 0, 0))
        await driver.press("1")
        await driver.until(lambda: "timeout" not in driver.text() and "refused" not in driver.text())
        await driver.sees(" a ")
        await yes(driver, "x", lambda: states(session, name) == (6, 0, 0, 0))
        await yes(driver, "X", lambda: states(session, name) == (0, 0, 0, 0))

    drive(steps)


def test_hostile_names_and_bodies_are_inert_text(drive: Run, session: Session, name: str) -> None:
    hostile = f"{name}[bold red]\x1b[31m\n\u202e[/]"
    for body in ("[link=x]\x1b]0;title\x07", '{"a": "\x1b[2J[/]"}', "\u202egnp.exe\r\n\tx"):
        session.call("send_message", hostile, body, None, None, None, None, None, '{"a": "[red]\u202e"}', "[/nothing]")

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.sees(f"{name}[bold red]\\u001b[31m\\n\\u202e[/]")
        await driver.press("enter")
        await driver.sees("[link=x]\\u001b]0;title\\u0007")
        await driver.press("enter")
        await driver.sees("[red]\\u202e", "[/nothing]", "[link=x]\\u001b]0;title\\u0007")
        assert "\x1b" not in driver.text() and "\u202e" not in driver.text()

    drive(steps, (160, 30))


@pytest.mark.level(3)
def test_queues_are_filtered_and_sorted(drive: Run, session: Session, name: str) -> None:
    for suffix, count in (("a", 1), ("b", 3), ("c", 2)):
        session.call("send_batch", f"{name}{suffix}", "x\n" * count)

    def order(driver: Driver) -> list[str]:
        lines = [line for line in driver.text().splitlines() if line.startswith(name)]
        return [line.split()[0][-1] for line in lines]

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.until(lambda: order(driver) == ["a", "b", "c"], "by name")
        await driver.press("s")
        await driver.until(lambda: order(driver) == ["b", "c", "a"], "by ready messages")
        await driver.press("S")
        await driver.until(lambda: order(driver) == ["a", "c", "b"], "the other way round")
        await driver.press("slash", *f"{name}c", "enter")
        await driver.until(lambda: order(driver) == ["c"], "the last one only")
        await driver.press("escape")
        await driver.until(lambda: "filter:" not in driver.text(), "no filter")

    drive(steps)


@pytest.mark.level(3)
@pytest.mark.parametrize("size", [(80, 24), (60, 16), (140, 45), (40, 10)])
def test_the_screens_fit_and_follow_the_size_of_the_terminal(
    drive: Run, session: Session, name: str, size: tuple[int, int]
) -> None:
    session.call("send_batch", name, "x\ny")
    session.call("report_consumer", f"{name}-{'w' * 100}", name, '{"completed": 7}')

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        for shape in ((80, 24), size, (80, 24)):
            await driver.pilot.resize_terminal(*shape)
            await driver.until(
                lambda shape=shape: {cell_len(line) for line in driver.text().splitlines()} == {shape[0]}, f"{shape}"
            )
            assert len(driver.text().splitlines()) == shape[1]
            await driver.sees("READY", "↵ Open")

    drive(steps)


def test_new_messages_are_seen_without_a_key(drive: Run, session: Session, name: str) -> None:
    session.call("set_queue", name)

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.until(lambda: any(line.split()[:2] == [name, "0"] for line in driver.text().splitlines()))
        session.call("send_batch", name, "a\nb\nc\nd\ne\nf\ng")
        await driver.until(lambda: any(line.split()[:2] == [name, "7"] for line in driver.text().splitlines()))

    drive(steps)


@pytest.mark.product("postgresql")
def test_there_is_one_connection(drive: Run, session: Session, name: str, sql: Callable[..., Any]) -> None:
    session.call("send", name, "b")
    seen: set[int] = set()

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.press("enter")
        await driver.sees("1 New")
        for _ in range(10):
            rows = sql("SELECT pid FROM pg_stat_activity WHERE application_name = %s", PROGRAM)
            seen.update(row["pid"] for row in rows)
            await driver.pilot.pause(0.1)

    drive(steps)
    assert len(seen) == 1


@pytest.mark.level(3)
def test_a_lost_database_is_shown_and_comes_back(drive: Run, private_server: Server, name: str) -> None:
    database = open_database(private_server.create_database())
    install.apply(database)
    with closing(database.connect("test")) as session:
        session.call("send_batch", name, "a\nb\nc")

    async def steps(driver: Driver) -> None:
        await driver.sees(name)
        private_server.stop()
        await driver.sees("The database is unreachable")
        await driver.press("question_mark")  # the screen is not frozen
        await driver.sees("Enter opens the queue")
        await driver.press("escape")
        private_server.start()
        await driver.until(lambda: "is unreachable" not in driver.text(), "the database is reachable again")
        await driver.sees(name)

    drive(steps, on=database)


def test_a_user_with_few_rights_sees_what_the_role_may_see(
    drive: Run, session: Session, name: str, server: Server, database: Database
) -> None:
    session.call("send_batch", name, "a\nb")
    with server.login(database.url, f"top_{uuid.uuid4().hex[:12]}", "mq_producer") as url:

        async def steps(driver: Driver) -> None:
            await driver.find(name)
            await driver.sees("not allowed to see")
            await driver.press("p")
            await driver.sees("Pause the queue")
            await driver.press("y")
            await driver.until(lambda: "Pause the queue" not in driver.text())
            await driver.press("enter")
            await driver.sees("1 New")

        drive(steps, (160, 24), open_database(url))
    assert states(session, name) == (2, 0, 0, 0)


def test_a_long_backlog_and_long_bodies_are_read_in_part(drive: Run, session: Session, name: str) -> None:
    session.call("send", name, "x" * 5_000_000)
    for _ in range(3):
        session.call("send_batch", name, "y\n" * 10_000)

    async def steps(driver: Driver) -> None:
        await driver.find(name)
        await driver.sees("≈30k")
        await driver.press("enter")
        await driver.sees("xxxxxxxx")
        await driver.press("enter")
        await driver.sees("first 65,536 characters")

    drive(steps)


# ---- as a process --------------------------------------------------------------------------------


def test_without_a_terminal_there_is_one_line(database: Database) -> None:
    done = subprocess.run(
        [*COMMAND, "top"], capture_output=True, text=True, env=environment(database.url), stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "runner: top needs a terminal; `runner stats` prints the queues once, also into a pipe\n"


class Terminal:
    """A real terminal: a window of tmux."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    def until(self, *words: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while not all(word in (shown := self.tmux("capture-pane", "-p")) for word in words):
            assert time.monotonic() < deadline, f"never seen: {words}\n{shown}"
            time.sleep(0.1)
        return shown


@pytest.fixture
def terminal(tmp_path: Path, database: Database, pytestconfig: pytest.Config) -> Iterator[Terminal]:
    """A window of 80 columns and 24 lines with a shell."""
    if shutil.which("tmux") is None:
        if pytestconfig.getoption("--require-databases"):
            pytest.fail("tmux is not installed")
        pytest.skip("tmux is not installed")
    made = Terminal(tmp_path / "tmux")
    variables = environment(database.url, TERM="screen-256color", PS1="ready> ")
    shell = ["env", "-i", *(f"{key}={value}" for key, value in variables.items()), "bash", "--norc", "--noprofile"]
    made.tmux("new-session", "-d", "-x", "80", "-y", "24", *shell)
    try:
        yield made
    finally:
        subprocess.run(["tmux", "-S", str(tmp_path / "tmux"), "kill-server"], check=False)


@pytest.mark.parametrize("end", ["q", "SIGTERM"])
def test_in_a_real_terminal_it_follows_keys_and_size_and_leaves_the_terminal_as_it_was(
    terminal: Terminal, session: Session, name: str, end: str
) -> None:
    dead(session, name, "no such mailbox")
    session.call("send_batch", name, "a\nb")
    terminal.until("ready>")
    command = " ".join([sys.executable, "-m", "rowqueue.cli", "top", "--interval", "0.5"])
    terminal.tmux("send-keys", f"cd {FOLDER}; clear; {command}; echo ended with $?", "Enter")
    terminal.until("runner top", "READY", "Quit")
    # All at once, as from a paste: no letter may be treated as a key that changes the queue.
    terminal.tmux("send-keys", "-l", f"/{name}")
    terminal.tmux("send-keys", "Enter")
    shown = terminal.until(f"filter: {name}", name)
    assert len(shown.splitlines()) == 24 and max(map(len, shown.splitlines())) <= 80
    terminal.tmux("resize-window", "-x", "120", "-y", "30")
    terminal.until("SENT/M")
    terminal.tmux("resize-window", "-x", "80", "-y", "24")
    terminal.tmux("send-keys", "Enter")
    terminal.until("1 New", "3 Dead")
    terminal.tmux("send-keys", "3")
    terminal.until("no such mailbox")
    terminal.tmux("send-keys", "d")
    terminal.until("Redrive message", "Yes")
    terminal.tmux("send-keys", "y")
    deadline = time.monotonic() + PATIENCE
    while states(session, name) != (3, 0, 0, 0):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if end == "q":
        terminal.tmux("send-keys", "q")
    else:
        subprocess.run(["pkill", "-TERM", "-f", f"^{command}"], check=True)
    shown = terminal.until("ended with", "ready>")
    assert f"ended with {0 if end == 'q' else 143}" in shown
    assert "READY" not in shown, "the screen before it is back"
    terminal.tmux("send-keys", "stty -a | grep -qw -e '-echo' && echo raw$((1)) || echo cooked$((1))", "Enter")
    assert "cooked1" in terminal.until("1\nready>")
