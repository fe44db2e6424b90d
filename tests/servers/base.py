"""What the tests ask of any database server, and what all local servers share."""

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
        """Make a database like that one, to which nobody is connected; returns its URL."""
        raise NotImplementedError

    @abstractmethod
    def drop_database(self, url: str) -> None:
        """Remove a database, whoever is connected."""

    @abstractmethod
    def client(self, url: str) -> Any:
        """The driver's own connection, in autocommit, its rows as dicts, with all rights."""

    @abstractmethod
    def catalog(self, url: str) -> list[str]:
        """Every object of a database and its rights, as text that two equal databases have in common."""

    @abstractmethod
    def drop_procedure(self, url: str, name: str) -> None:
        """Remove one object of the queue, as a careless DBA would."""

    @abstractmethod
    def login(self, url: str, role: str, *granted: str) -> AbstractContextManager[str]:
        """A user of that name with those roles and no other right; yields the URL under which he connects."""

    @abstractmethod
    def plant_faults(self, url: str, stems: Sequence[str]) -> None:
        """Let a change of these tables of the queue fail in a session that has asked for it, see `fault`."""

    @abstractmethod
    def fault(self, where: str) -> str:
        """The statement that makes a session's next changes of one kind fail: `ready delete`; '': none fails."""

    def forbid_changes(self, url: str) -> AbstractContextManager[None]:
        """Meanwhile the server, or that database of it, which nobody uses, takes no changes, as a standby does."""
        raise NotImplementedError

    def undoes(self, where: str) -> bool:
        """Whether a procedure can undo its work after such a failure; where not, its caller has to roll back."""
        return True

    def watching(self) -> AbstractContextManager[Any]:
        """Meanwhile the queue's owner sees the sessions of other users."""
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
    """Whom servers run as, for subprocess: they refuse to be root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


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
