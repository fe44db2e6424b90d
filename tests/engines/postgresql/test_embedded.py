"""The embedded server: shared, durable, and stopped when unused, after any process was killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import rowqueue
from rowqueue.databases import DatabaseError, open_embedded
from rowqueue.databases.postgresql import embedded_server
from rowqueue.install import apply as install
from servers import base
from support.waiting import until

# Holds the server until its input ends.
HOLDER = """
import sys
from contextlib import suppress
from pathlib import Path
from rowqueue.databases import open_embedded
with open_embedded(Path(sys.argv[1])) as database:
    print(database.url, flush=True)
    sys.stdin.read()
"""

Holder = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory; pytest's own temporary folders are closed to other users."""
    path = base.folder("embedded")
    path.chmod(0o755)
    yield path / "home"
    until(lambda: not serving(path / "home"), "the server stops")
    base.remove(path)


@pytest.fixture
def hold(home: Path) -> Iterator[Holder]:
    """Starts processes that use the server."""
    running: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDER, str(home)]
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line.startswith("postgresql://"), "the holder did not start"
    return line


def pid(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().split("\n", 1)[0])


def supervisor(home: Path) -> int:
    status = Path(f"/proc/{pid(home)}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def serving(home: Path) -> bool:
    try:
        os.kill(pid(home), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


def answers(text: str) -> bool:
    try:
        psycopg.connect(text, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def test_it_keeps_the_data_and_stops_with_its_last_user(home: Path) -> None:
    with open_embedded(home) as database:
        install.apply(database)
        session = database.connect("test")
        session.call("send", "q", "kept")
        session.close()
    until(lambda: not serving(home), "the server stops")
    assert not (home / "data" / "postmaster.pid").exists(), "it was stopped in order"
    with open_embedded(home) as database:
        session = database.connect("test")
        assert [row["body"] for row in session.call("claim_batch", "q")] == ["kept"]
        session.close()


def test_it_is_durable_and_reached_by_a_private_socket_only(home: Path) -> None:
    with open_embedded(home) as database, psycopg.connect(database.url) as connection:
        wanted = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": ""}
        shown = connection.execute("SELECT name, setting FROM pg_settings WHERE name = ANY (%s)", [list(wanted)])
        assert dict(shown.fetchall()) == wanted
        socket = Path(str(connection.info.host))
        assert socket.stat().st_mode & 0o777 == 0o700
        assert (home / "data").stat().st_mode & 0o777 == 0o700


def test_other_users_see_no_secret_of_the_caller_and_cannot_take_its_locks(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under root, the server runs as another user."""
    monkeypatch.setenv("MAIL_PASSWORD", "hidden")
    with open_embedded(home):
        assert b"hidden" not in Path(f"/proc/{pid(home)}/environ").read_bytes()
        assert {(home / name).stat().st_mode & 0o777 for name in ("starting", "holders", "supervisor")} == {0o600}


def test_processes_that_start_at_once_share_one_server(home: Path, hold: Holder) -> None:
    holders = [hold() for _ in range(4)]
    assert len({url(holder) for holder in holders}) == 1
    first = pid(home)
    for holder in holders[:3]:
        holder.communicate()
    time.sleep(0.6)
    assert pid(home) == first and serving(home)
    holders[3].communicate()
    until(lambda: not serving(home), "the server stops")


def test_a_killed_user_does_not_keep_it_running(home: Path, hold: Holder) -> None:
    holder = hold()
    url(holder)
    holder.kill()
    until(lambda: not serving(home), "the server stops")


def test_a_start_after_the_last_stop_waits_for_it(home: Path) -> None:
    for _ in range(6):
        with open_embedded(home) as database:
            assert answers(database.url)


def test_a_killed_server_restarts_with_all_committed_data(home: Path, hold: Holder) -> None:
    text = url(hold())
    with psycopg.connect(text, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    time.sleep(1.1)
    killed = pid(home)
    os.kill(killed, signal.SIGKILL)
    until(lambda: answers(text) and pid(home) != killed, "the server comes back")
    with psycopg.connect(text) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (7,)


def kill_supervisor(home: Path) -> None:
    os.kill(supervisor(home), signal.SIGKILL)
    until(lambda: not embedded_server.Home(home).supervised(), "the supervisor is gone")


def test_a_killed_supervisor_is_replaced_by_the_next_user(home: Path, hold: Holder) -> None:
    url(hold())
    kill_supervisor(home)
    with open_embedded(home) as database:
        assert answers(database.url)
        assert supervisor(home) > 1


def test_without_a_supervisor_the_last_user_stops_the_server(home: Path, hold: Holder) -> None:
    holders = [hold(), hold()]
    text = {url(holder) for holder in holders}.pop()
    kill_supervisor(home)
    holders[0].communicate()
    assert answers(text)
    holders[1].communicate()
    assert not answers(text)


def test_everything_killed_at_once_is_recovered_by_the_next_start(home: Path, hold: Holder) -> None:
    holder = hold()
    with psycopg.connect(url(holder), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    for victim in (supervisor(home), pid(home), holder.pid):
        os.kill(victim, signal.SIGKILL)
    with open_embedded(home) as database, psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (7,)


def test_a_pid_file_that_names_another_process_of_the_user_does_not_stop_it(home: Path) -> None:
    with open_embedded(home):
        left = (home / "data" / "postmaster.pid").read_text()
    until(lambda: not serving(home), "the server stops")
    other = subprocess.Popen(["sleep", "60"], cwd="/", **base.identity())
    try:
        (home / "data" / "postmaster.pid").write_text(left.replace(left.split("\n", 1)[0], str(other.pid), 1))
        with open_embedded(home) as database:
            assert answers(database.url)
        assert other.poll() is None, "the other process was left alone"
        until(lambda: not (home / "data" / "postmaster.pid").exists(), "the server stops")
    finally:
        other.kill()
        other.wait()


def test_an_initdb_that_was_killed_is_run_again(home: Path) -> None:
    (home / "data.new" / "base").mkdir(parents=True)
    with open_embedded(home) as database:
        assert answers(database.url)


def test_a_folder_with_a_long_name_gets_a_short_socket_path(home: Path) -> None:
    deep = home / ("long" * 20) / ("name" * 20)
    with open_embedded(deep) as database:
        assert answers(database.url)
        short = embedded_server.Home(deep).sockets
        assert not short.is_relative_to(deep)
    until(lambda: not serving(deep), "the server stops")
    shutil.rmtree(short)


def test_a_folder_that_cannot_be_written_is_one_clear_line(home: Path) -> None:
    home.mkdir()
    blocked = home / "file"
    blocked.write_text("")
    with (
        pytest.raises(DatabaseError, match=r"^embedded database: Not a directory: .*file") as caught,
        open_embedded(blocked / "below"),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_data_that_the_server_refuses_is_one_clear_line(home: Path) -> None:
    with open_embedded(home):
        pass
    until(lambda: not serving(home), "the server stops")
    (home / "data" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(DatabaseError, match=r"does not start: .*FATAL: .*incompatible") as caught, open_embedded(home):
        pass
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_a_folder_that_the_servers_user_cannot_enter_is_refused(home: Path) -> None:
    home.mkdir(mode=0o700)
    with pytest.raises(DatabaseError, match=r"nobody, who cannot enter"), open_embedded(home):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_programs_that_the_servers_user_cannot_reach_are_copied(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reachable = embedded_server._open_to_all
    monkeypatch.setattr(embedded_server, "_open_to_all", lambda path: path.is_relative_to(home) and reachable(path))
    prepared = embedded_server.Home(home)
    prepared.prepare()
    program = prepared.program("postgres")
    assert program.is_relative_to(home)
    shown = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True, cwd="/", **base.identity()
    )
    assert shown.stdout.startswith("postgres (PostgreSQL) 18")


def readable_python() -> tuple[str, dict[str, str]]:
    """A Python that a normal user can run, and the environment in which it finds our packages."""
    packages = [str(Path(rowqueue.__file__).parents[1]), str(Path(psycopg.__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(packages)}
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            probe = [python, "-c", "import rowqueue, psycopg"]
            if subprocess.run(probe, capture_output=True, cwd="/", env=environment, **base.identity()).returncode == 0:
                return python, environment
    pytest.skip("a normal user cannot read any Python here")


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as a normal user already")
def test_it_works_as_a_normal_user(home: Path) -> None:
    python, environment = readable_python()
    who = base.identity()
    home.mkdir()
    os.chown(home, who["user"], who["group"])
    done = subprocess.run(
        [python, "-c", HOLDER, str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd="/",
        timeout=60,
        env=environment,
        **who,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("postgresql://")
    assert (home / "data").stat().st_uid == who["user"]
