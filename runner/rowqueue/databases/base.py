"""What the runner needs of a database: one interface, and the errors that all of them raise.

Nothing outside this package knows a driver, an SQL dialect or a server's habits; each database has a package in it.
"""

import selectors
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote

from .. import contract
from ..errors import Expected

Row = dict[str, Any]
Values = Sequence[Any]
Rows = Callable[[], Sequence[Values]]

ROLES = ("mq_producer", "mq_consumer", "mq_operator")


class QueueError(Expected):
    """A numbered error of the contract, such as 50002 invalid_argument: `number`, and `name`."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.name = message.partition(":")[0]


LEASE_LOST = 50008


class DatabaseError(Expected):
    """The database refused a statement for a reason that trying again will not cure."""


class Conflict(DatabaseError):
    """A deadlock or a serialization failure: the whole call may be tried again."""


class Disconnected(DatabaseError):
    """The connection is gone or the server cannot be reached: connect anew and try again."""


class ReadOnly(Disconnected):
    """The server takes no changes, such as a standby: wait as for one that is gone; the message says what to set."""


class Forbidden(DatabaseError):
    """The role of this connection lacks a right that the statement needs."""


class SchemaMissing(DatabaseError):
    """The queue is not installed in this database, or not in this version: `runner apply` is needed."""

    exit_code = 3


def not_installed(message: str) -> SchemaMissing:
    """The error for a procedure or table that is not there; `message`: what the server says."""
    return SchemaMissing(f"the queue is not installed here, or not in this version: run `runner apply` ({message})")


class Session(ABC):
    """One connection. Not to be shared between threads."""

    @abstractmethod
    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        """Call a procedure of the contract with positional arguments and return its rows as dicts.

        Trailing arguments may be left out. Outside `transaction()` each call is a transaction of its own.
        Raises QueueError, Conflict, Disconnected, SchemaMissing or DatabaseError.
        """

    def fetch(self, procedure: str, *arguments: Any) -> Rows:
        """As `call`, for many rows: returns what makes them, tuples of the contract's columns, when it is called.

        That may take a while, and may be done by another thread while this session makes its next call.
        """
        rows = self.call(procedure, *arguments)
        names = [column.name for column in contract.load().procedures[procedure].columns]
        return lambda: [[row[name] for name in names] for row in rows]

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction around calls and the handler's own statements; yields the driver's connection."""

    @abstractmethod
    def now(self) -> datetime:
        """What the server's clock says; times of its results are to be compared with no other."""

    def execute(self, statement: str) -> None:
        """Execute a statement that a procedure has left to its caller, in a transaction of its own."""
        with self.transaction() as connection:
            connection.cursor().execute(statement)

    def listen(self, types: Sequence[str]) -> bool:
        """Ask for wake-ups for these types. Returns False where the database has none: the caller polls."""
        return False

    def wait(self, seconds: float, interrupt: int) -> bool:
        """Sleep until a wake-up comes, `interrupt` (a file descriptor) is readable, or `seconds` are over.

        Returns True when the database woke us.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(interrupt, selectors.EVENT_READ)
            selector.select(max(0.0, seconds))
        return False

    @abstractmethod
    def close(self) -> None:
        """Close the connection; never raises."""


@dataclass(frozen=True)
class SqlFile:
    """One SQL file of the queue: a migration, or a procedure file whatever it creates. `name` has no suffix."""

    kind: str
    name: str
    sha256: str
    text: str


@dataclass(frozen=True)
class Installed:
    """What the database remembers of one installed file; `changed`: its object is missing or was changed by hand."""

    name: str
    kind: str
    sha256: str
    changed: bool


@dataclass(frozen=True)
class Cluster:
    """What a server belongs to: how many nodes (None: unknown), what kind it is, and what is wrong with it."""

    size: int | None
    detail: str
    problems: list[str]


class Database(ABC):
    """One database server and database, named by a URL; makes sessions and installs the SQL."""

    name: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]]
    # An upgrade replaces all procedures at one moment. Where it cannot, calls fail for a moment while it runs.
    swaps_at_once: ClassVar[bool] = True
    # Users' views on the queue's tables can go with these, or stay broken; else they have to be dropped before.
    cascades: ClassVar[bool] = True
    # DDL is part of a transaction: a migration and the record of it come or go together.
    undoes_ddl: ClassVar[bool] = False
    # Of this database's backend of yoyo-migrations.
    yoyo_scheme: ClassVar[str]

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def connect(self, application_name: str) -> Session:
        """Open a connection. Raises Disconnected when the server cannot be reached, DatabaseError when it refuses."""

    def yoyo_url(self) -> str:
        """The URL under which yoyo-migrations knows this database: ours, as an argument of a backend of our own."""
        return f"{self.yoyo_scheme}:///?url={quote(self.url, safe='')}"

    @abstractmethod
    def installing(self) -> AbstractContextManager[None]:
        """Hold this database's installation lock, so that installers run one after the other; a crash frees it."""

    def fitted(self, files: Sequence[SqlFile]) -> list[SqlFile]:
        """These files, with the texts for this server where its version needs others."""
        return list(files)

    def installed(self) -> dict[str, Installed] | None:
        """What is installed, by name; None when the queue's own tables are not there."""
        rows = self._recorded()
        if rows is None:
            return None
        return {name: Installed(name, kind, sha256, bool(changed)) for name, kind, sha256, changed in rows}

    @abstractmethod
    def _recorded(self) -> list[tuple[str, str, str, Any]] | None:
        """What is recorded: name, kind, sha256, changed; None when nothing is.

        Without the procedures nothing can be compared, and all of them count as changed: they are to be installed.
        """

    def rights_problems(self) -> list[str]:
        """What is wrong with owners, definers and grants of what is installed, one line each; [] when nothing is.

        Also what a stranger could call. `apply` then runs all procedure files and the grants again, which mend it.
        """
        return []

    def warnings_about_installation(self) -> list[str]:
        """What `apply` cannot mend and an administrator should know, such as a superuser who owns the queue."""
        return []

    def cluster(self) -> Cluster | None:
        """The cluster that the server belongs to, if the queue has to be used otherwise there."""
        return None

    @abstractmethod
    def run_files(self, files: Sequence[SqlFile]) -> list[str]:
        """Run files and record them, all or nothing where the database can.

        A text of '' is only recorded. Returns the server's notices.
        """

    @abstractmethod
    def script(self, files: Sequence[SqlFile]) -> Iterator[str]:
        """The parts of a plain script for the database's own client that does what `apply` does on an empty database.

        It leaves the same records behind, so that `apply` afterwards has nothing to do.
        """

    @abstractmethod
    def adopted_tables(self) -> list[str]:
        """The names under which tables are adopted; [] also when the queue is not installed."""

    @abstractmethod
    def dependents(self) -> list[str]:
        """Users' objects made of the queue's, such as views: without it they would go or break."""

    @abstractmethod
    def uninstall(self) -> None:
        """Remove every object of the queue, the migration records included, and nothing else."""
