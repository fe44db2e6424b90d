"""The interface of a database server for the tests, and code shared by all local servers."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any


class Unavailable(Exception):
    """The server's programs are not on this machine; the text says how to get them."""


class Server(ABC):
    """One database server.

    `restartable`: we own it and may stop it. `copies`: it has `copy_database`. `stand_in`: what executes the product's
    SQL in its place; '' for itself. `environment`: variables for its processes, see `clock`.
    """

    name: str
    url: str
    restartable = True
    copies = False
    stand_in = ""
    environment: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def start(self) -> None:
        """Start, on the same data and port as before, and return when it takes connections."""

    @abstractmethod
    def stop(self, mode: str = "fast") -> None:
        """Stop: `fast` ends the sessions, `immediate` is a crash without a checkpoint."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL."""

    @abstractmethod
    def close(self) -> None:
        """Stop and remove everything."""

    @abstractmethod
    def create_database(self) -> str:
        """Make an empty database; returns its URL."""

    def copy_database(self, url: str) -> str:
        """Copy a database without connections; returns the URL of the copy."""
        raise NotImplementedError

    @abstractmethod
    def drop_database(self, url: str) -> None:
        """Drop a database, even with open connections."""

    @abstractmethod
    def client(self, url: str) -> Any:
        """The driver's own connection, in autocommit, its rows as dicts, with all rights."""

    @abstractmethod
    def catalog(self, url: str) -> list[str]:
        """Every object of a database with its rights, as text that is equal for equal databases."""

    @abstractmethod
    def drop_procedure(self, url: str, name: str) -> None:
        """Drop one object of the queue, as a careless DBA would."""

    def run_script(self, url: str, text: str, *options: str) -> str:
        """Run a script in the product's own client, without a word on stderr; returns what it prints.

        Its first error ends it, and is an AssertionError.
        """
        raise Unavailable("the client of the named server is not known")

    @abstractmethod
    def login(self, url: str, role: str, *granted: str) -> AbstractContextManager[str]:
        """A user with this name, these roles and no other right; yields the user's URL."""

    @abstractmethod
    def plant_faults(self, url: str, stems: Sequence[str]) -> None:
        """Prepare these tables of the queue for failing changes in a session, see `fault`."""

    @abstractmethod
    def fault(self, where: str) -> str:
        """The statement that makes a session's next changes of one kind fail: `ready delete`; '': none fails."""

    def forbid_changes(self, url: str) -> AbstractContextManager[None]:
        """Inside the block the server, or the given unused database, takes no changes, as a standby does."""
        raise NotImplementedError

    def undoes(self, where: str) -> bool:
        """Whether a procedure can roll back its own work after such a failure; if not, its caller must roll back."""
        return True

    def watching(self) -> AbstractContextManager[Any]:
        """Inside the block the queue's owner can see the sessions of other users."""
        return nullcontext()

    def table(self, stem: str) -> str:
        """The name of one of the queue's own tables."""
        return f"mq.{stem}"

    def query(self, url: str, text: str, *parameters: Any) -> list[dict[str, Any]]:
        """Run one statement with all rights and return its rows, if it has any."""
        with self.client(url) as connection:
            cursor = connection.execute(text, parameters)
            return list(cursor.fetchall()) if cursor.description else []


class External(Server):
    """A server that the user named; its account must be allowed to create databases and roles."""

    restartable = False

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url

    def start(self) -> None:
        self.query(self.url, "SELECT 1")

    def stop(self, mode: str = "fast") -> None:
        raise NotImplementedError("not our server")

    def kill(self) -> None:
        raise NotImplementedError("not our server")

    def close(self) -> None:
        pass


def identity() -> dict[str, Any]:
    """The user to run servers as, for subprocess: they refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def silent(command: Sequence[object], text: str, environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """Run a client with this input, which must succeed in silence; returns what it prints."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=text, env=os.environ | environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr or done.stdout
    return done.stdout


def reaches(path: Path) -> bool:
    """Whether the server's user can read that file."""
    return subprocess.run(["test", "-r", path], cwd="/", **identity()).returncode == 0


def folder(prefix: str) -> Path:
    """A new folder that belongs to the server's user."""
    path = Path(tempfile.mkdtemp(prefix=f"rowqueue-{prefix}-"))
    if who := identity():
        os.chown(path, who["user"], who["group"])
    return path


def remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def new_name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"


def words(*parts: object) -> Sequence[str]:
    return [str(part) for part in parts]
