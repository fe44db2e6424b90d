"""The interface of a database engine, and the errors that all engines raise.

Drivers, SQL dialects and the behaviour of a server are known only here: each engine has a package of its own.
"""

import hashlib
import re
import selectors
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote

from ..errors import Error
from ..install import contract
from .indexes import indexes

Row = dict[str, Any]
Values = Sequence[Any]
Rows = Callable[[], Sequence[Values]]

ROLES = ("mq_producer", "mq_consumer", "mq_operator", "mq_viewer")


LEASE_LOST = 50008
CANCELLED = 50011


class QueueError(Error):
    """A numbered error of a procedure: `number` and `name`, such as 50002 and invalid_argument."""

    def __new__(cls, number: int, message: str) -> "QueueError":
        return super().__new__({LEASE_LOST: LeaseLost, CANCELLED: Cancelled}.get(number, cls), number, message)

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.name = message.partition(":")[0]


class LeaseLost(QueueError):
    """Error 50008, lease_lost: another consumer handles the message. Roll back, and continue with the next claim."""


class Cancelled(QueueError):
    """Error 50011, cancelled: the message was cancelled while its handler runs. Roll back, and let it pass."""


class DatabaseError(Error):
    """The database refused a statement. Repeating it will not help."""


class Conflict(DatabaseError):
    """A deadlock or a serialization failure: repeat the whole transaction."""


class TimedOut(Conflict):
    """The server ended a statement at its time limit. The runner repeats it and logs a warning."""


class Disconnected(DatabaseError):
    """The connection is lost or the server cannot be reached: connect again and repeat the transaction."""


class ReadOnly(Disconnected):
    """The server takes no changes, such as a standby: treat it as Disconnected. The message says what to set."""


class NotAllowed(DatabaseError):
    """Error 50010, not_allowed: the user of this connection lacks a right that the statement needs."""

    number, name = 50010, "not_allowed"

    def __init__(self, detail: str) -> None:
        super().__init__(f"{self.name}: {detail}")
        self.detail = detail


def not_allowed(message: str, denied: str, grant: str, procedure: str = "") -> NotAllowed:
    """The error for a missing right, with the roles that have it and a statement that gives one of them.

    `denied`: a pattern of the server's message; its first group that matches is the name of a procedure, a table or a
    view of the queue. `grant`: the statement, with {} for the role. `procedure`: what was called, if the message does
    not say it.
    """
    known = contract.load()
    found = re.search(denied, message, re.I)
    name = (next(filter(None, found.groups())).lower() if found else "") or procedure
    if called := known.every.get(name):
        verb, roles = "call", called.roles
    else:
        verb, roles = "read", tuple(role for role, names in known.reads.items() if name in names)
    if not roles:
        return NotAllowed(message)
    return NotAllowed(f"{message.rstrip('.')}; {' or '.join(roles)} may {verb} {name}: {grant.format(roles[0])}")


class SchemaMissing(DatabaseError):
    """The queue is not installed in this database, or in another release: run `runner apply`."""

    exit_code = 3


class AreaMissing(SchemaMissing):
    """Error 50009, area_missing: a procedure or a setting of an area that is not installed in this database."""

    number, name = 50009, "area_missing"

    def __init__(self, detail: str) -> None:
        super().__init__(f"{self.name}: {detail}")


def raised(number: int, message: str) -> Error:
    """The exception for a numbered error that a procedure raised."""
    if number == AreaMissing.number:
        return AreaMissing(message.removeprefix(f"{AreaMissing.name}: "))
    return QueueError(number, message)


def not_installed(message: str) -> SchemaMissing:
    """The error for a procedure or table that does not exist; `message`: the server's."""
    if areas := areas_of(message):
        return AreaMissing(f"{how_to_add(areas)} ({message})")
    return SchemaMissing(f"the queue is not installed here, or not in this version: run `runner apply` ({message})")


def areas_of(message: str) -> set[str]:
    """The areas of the procedures that a server's message names, if the core is not among them."""
    known = contract.load().every
    names = re.findall(r"\bmq[._](\w+)", message.lower())
    areas = {known[name].area for name in names if name in known}
    return set() if areas & contract.CORE else areas


def how_to_add(areas: Iterable[str]) -> str:
    """A sentence about areas that are not installed in a database."""
    names = sorted(areas)
    which = f"area {names[0]} is" if len(names) == 1 else f"areas {', '.join(names[:-1])} and {names[-1]} are"
    add = "adds it" if len(names) == 1 else "adds them"
    return f"the {which} not installed here: `runner apply --areas {','.join(names)}` {add}"


class Session(ABC):
    """One connection. Threads must not share it."""

    @abstractmethod
    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        """Call a procedure with positional arguments and return its rows as dicts.

        Trailing arguments may be left out. Outside `transaction()`, each call is a transaction of its own.
        Raises QueueError, Conflict, Disconnected, SchemaMissing or DatabaseError.
        """

    def areas(self) -> tuple[str, ...]:
        """The areas that are installed, in the contract's order. Raises as `call`."""
        installed = contract.CORE.union(self.call("version")[0]["areas"].split(","))
        return tuple(name for name in contract.load().areas if name in installed)

    def require(self, area: str) -> None:
        """Raise AreaMissing when an area is not installed. A user who may not read that is not refused."""
        with suppress(NotAllowed):
            if area not in self.areas():
                raise AreaMissing(how_to_add([area]))

    def fetch(self, procedure: str, *arguments: Any) -> Rows:
        """As `call`, for many rows: returns a function that converts them to tuples of the contract's columns.

        Conversion may take a while. Another thread may do it while this session makes its next call.
        """
        rows = self.call(procedure, *arguments)
        names = [column.name for column in contract.load().procedures[procedure].columns]
        return lambda: [[row[name] for name in names] for row in rows]

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction for calls and the handler's own statements; yields the driver's connection."""

    @abstractmethod
    def now(self) -> datetime:
        """The time of the server's clock. Compare the times in results with no other clock."""

    def execute(self, statement: str) -> None:
        """Execute, in a transaction of its own, a statement that a procedure returned for its caller to execute."""
        with self.transaction() as connection:
            connection.cursor().execute(statement)

    def listen(self, types: Sequence[str]) -> bool:
        """Ask to be woken when a message of these queues is sent. False: not possible here, so the caller polls."""
        return False

    def wait(self, seconds: float, interrupt: int) -> Collection[str] | None:
        """Sleep until a wake-up comes, the file descriptor `interrupt` is readable, or `seconds` have passed.

        Returns the queues that a wake-up named, if it named any; None: there was no wake-up.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(interrupt, selectors.EVENT_READ)
            selector.select(max(0.0, seconds))
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the connection; never raises."""


# The kinds of records. The release, an area, and an index that a migration creates are recorded like a file with an
# empty text. GONE is a text that drops what this release no longer has, with its records.
RELEASE, MIGRATION, AREA, INDEX, PROCEDURE, GRANTS = "release", "migration", "area", "index", "procedure", "grants"
GONE = "gone"


@dataclass(frozen=True)
class SqlFile:
    """One SQL file of the queue, an area, or the release. `name`: without its suffix; of grants, AREA/grants.

    `comment`: the first line of a public object's file, for the database's catalog.
    """

    kind: str
    name: str
    sha256: str
    text: str
    comment: str = ""


@dataclass(frozen=True)
class Release:
    """An earlier release on one engine: its migrations, and the procedure files of each of its areas."""

    version: str
    migrations: tuple[str, ...]
    procedures: dict[str, tuple[str, ...]]

    def areas(self, files: Iterable[SqlFile]) -> list[str]:
        """The areas of a script that the release had too: a database that is upgraded must have all of them."""
        return [file.name for file in files if file.kind == AREA and file.name in self.procedures]

    def new(self, files: Iterable[SqlFile]) -> list[SqlFile]:
        """These files without the migrations that the release had."""
        return [file for file in files if file.name not in self.migrations]

    def gone(self, files: Sequence[SqlFile]) -> list[str]:
        """The procedure files that the release had in the areas of a script, and that are not among these files."""
        had = {name for area in self.areas(files) for name in self.procedures[area]}
        return sorted(had - {file.name for file in files})


@dataclass(frozen=True)
class Installed:
    """The record of one installed file. `changed`: its object is missing or was changed by hand."""

    name: str
    kind: str
    sha256: str
    changed: bool


def areas_in(records: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The areas among the kinds and names of records; all areas if there are none."""
    recorded = {name for kind, name in records if kind == AREA}
    return tuple(name for name in contract.load().areas if not recorded or name in recorded)


@dataclass(frozen=True)
class Cluster:
    """The cluster of a server. `size`: its nodes, None if unknown. `detail`: its kind. `problems`: what is wrong."""

    size: int | None
    detail: str
    problems: list[str]


class Database(ABC):
    """One database, named by a URL: opens sessions and installs the SQL."""

    name: ClassVar[str]
    # What stands before the name of each of the queue's objects.
    prefix: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]]
    # Whether an upgrade replaces all procedures at once. If not, calls may fail for a moment while it runs.
    swaps_at_once: ClassVar[bool] = True
    # Whether an uninstall can drop or break users' views on the queue's tables. If not, they must be dropped first.
    cascades: ClassVar[bool] = True
    # Whether DDL can be rolled back: a migration and its record are then committed together.
    undoes_ddl: ClassVar[bool] = False
    # The scheme of this engine's yoyo-migrations backend.
    yoyo_scheme: ClassVar[str]
    # What the server calls a primary key without a name, with {} for its table.
    unnamed_key: ClassVar[str] = ""

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def connect(self, application_name: str) -> Session:
        """Open a connection. Raises Disconnected when the server cannot be reached, DatabaseError when it refuses."""

    def yoyo_url(self) -> str:
        """The URL for yoyo-migrations: it selects our backend and carries this database's URL as an argument."""
        return f"{self.yoyo_scheme}:///?url={quote(self.url, safe='')}"

    @abstractmethod
    def installing(self) -> AbstractContextManager[None]:
        """Hold the installation lock: installers run one after the other. A crash releases it."""

    def indexes(self, migration: str) -> list[str]:
        """The indexes that the text of a migration creates, as TABLE.INDEX in the spelling of the catalog."""
        return indexes(migration, self.unnamed_key)

    def fitted(self, files: Sequence[SqlFile]) -> list[SqlFile]:
        """These files, with the text for this server's version where a file has several."""
        return list(files)

    def installed(self) -> dict[str, Installed] | None:
        """The installed files by name; None when the queue's tables do not exist."""
        rows = self._recorded()
        if rows is None:
            return None
        return {row[0]: Installed(*row[:3], bool(row[3])) for row in rows if row[1] != INDEX}

    def areas(self) -> tuple[str, ...] | None:
        """The areas that are installed, in the contract's order; None when the queue is not installed."""
        installed = self.installed()
        return None if installed is None else areas_in((entry.kind, name) for name, entry in installed.items())

    @abstractmethod
    def _recorded(self) -> list[tuple[str, str, str, Any]] | None:
        """The records: name, kind, sha256, changed; None when there are none.

        Without the procedure that compares objects, every procedure file counts as changed.
        """

    def rights_problems(self) -> list[str]:
        """Wrong owners, definers and grants of the installed objects, one line each; [] when all are right.

        Includes privileges that users outside the queue's roles should not have. `apply` repairs all of it by running
        the procedure files and the grants again.
        """
        return []

    def warnings_about_installation(self) -> list[str]:
        """What `apply` cannot repair and an administrator should know, such as a superuser that owns the queue."""
        return []

    def cluster(self) -> Cluster | None:
        """The cluster that the server belongs to, if it has consequences for the queue's users; else None."""
        return None

    @abstractmethod
    def run_files(self, files: Sequence[SqlFile]) -> list[str]:
        """Run files and record them; all or nothing where DDL can be rolled back.

        A file whose text is '' is only recorded. Returns the server's notices.
        """

    @abstractmethod
    def script(self, files: Sequence[SqlFile], since: Release | None = None) -> Iterator[str]:
        """The parts of a script for the database's own client that does what `apply` does in an empty database.

        It leaves the same records: a later `apply` has nothing to do. `since`: the release of the databases that it
        upgrades; it refuses all others.
        """

    def with_indexes(self, files: Iterable[SqlFile]) -> Iterator[SqlFile]:
        """These files, each migration with the indexes that it creates: queue_health looks for the recorded ones."""
        for file in files:
            yield file
            if file.kind == MIGRATION:
                sha256 = hashlib.sha256(b"").hexdigest()
                yield from (SqlFile(INDEX, name, sha256, "") for name in self.indexes(file.text))

    def with_gone(self, files: Sequence[SqlFile], gone: Sequence[str]) -> list[SqlFile]:
        """These files, and before the grants what drops the objects of other procedure files."""
        if not gone:
            return [*files]
        dropping = SqlFile(GONE, ", ".join(gone), "", self.dropping(gone))
        last = [file for file in files if file.kind in (GRANTS, RELEASE)]
        return [*(file for file in files if file not in last), dropping, *last]

    @abstractmethod
    def dropping(self, names: Sequence[str]) -> str:
        """The text of a file that drops the objects of these procedure files, if they exist, with their records."""

    @abstractmethod
    def adopted_tables(self) -> list[tuple[str, str]]:
        """The polling tables of this account's own tables, and those of others that have claimed rows.

        The name of each, and the other user that it belongs to, or "". [] also when the queue is not installed.
        """

    @abstractmethod
    def dependents(self) -> list[str]:
        """Users' objects that use the queue's, such as views: an uninstall would drop or break them."""

    @abstractmethod
    def uninstall(self) -> None:
        """Remove every object of the queue, with its migration records, and nothing else."""
