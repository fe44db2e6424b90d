"""Firebird: installing the queue, and questions about the whole database."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from firebird.driver import Error

from ..base import GONE, Conflict, Database, DatabaseError, Release, Session, SqlFile
from ..guard import in_file, lock_held
from ..migrations import known
from . import removal, rights, script, yoyo_tables
from .address import parse
from .connection import NO_WAIT, PATIENCE, PATIENT, Connection, connect, cursor_of, forget_transaction, rows
from .errors import translate, translated
from .session import FirebirdSession
from .statements import statements


class Firebird(Database):
    """A database of Firebird 3.0 or later, on a server or in a file that the embedded engine opens."""

    name: ClassVar[str] = "firebird"
    prefix: ClassVar[str] = "mq_"
    schemes: ClassVar[tuple[str, ...]] = ("firebird",)
    # During an upgrade, a call may use new procedures together with old ones.
    swaps_at_once: ClassVar[bool] = False
    cascades: ClassVar[bool] = False
    yoyo_scheme: ClassVar[str] = "firebird"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._address = parse(url)

    def open(self, application_name: str, manner: bytes = NO_WAIT) -> Connection:
        """A driver connection. Raises as `connect` does."""
        return connect(self._address, application_name, manner)

    @contextmanager
    def _opened(self, application_name: str, manner: bytes = NO_WAIT) -> Iterator[Connection]:
        """A connection for the runner's own statements."""
        with translated(), closing(self.open(application_name, manner)) as connection:
            yield connection

    def connect(self, application_name: str) -> Session:
        return FirebirdSession(self, self.open(application_name))

    @contextmanager
    def installing(self) -> Iterator[None]:
        # A row that stays locked until this connection ends. It is in one of yoyo's tables, which are created first.
        with self._opened("rowqueue apply", PATIENT) as connection:
            _refuse_unsuitable(connection)
            yoyo_tables.make(connection)
            connection.begin()
            with cursor_of(connection.main_transaction) as cursor:
                try:
                    cursor.execute('SELECT "version" FROM "_yoyo_version" WITH LOCK').fetchall()
                except Error as error:
                    if isinstance(translate(error), Conflict):
                        raise lock_held(PATIENCE) from error
                    raise
            connection.at_rest()
            yield

    @cached_property
    def version(self) -> int:
        """The server's major version."""
        with self._opened("rowqueue apply") as connection:
            [[version]] = rows(connection, f"SELECT {script.VERSION} FROM rdb$database")
        return int(version)

    def rights_problems(self) -> list[str]:
        with self._opened("rowqueue apply") as connection:
            return rights.problems(connection)

    def indexes(self, migration: str) -> list[str]:
        return [name.upper() for name in super().indexes(migration)]

    def fitted(self, files: Sequence[SqlFile]) -> list[SqlFile]:
        return [file if not script.variants(file) else self._fitted(file) for file in files]

    def _fitted(self, file: SqlFile) -> SqlFile:
        fitting = [text for version, text in script.variants(file) if version <= self.version]
        return replace(file, sha256=script.sha256(fitting[-1]), text=fitting[-1]) if fitting else file

    def _recorded(self) -> list[tuple[str, str, str, Any]] | None:
        with self._opened("rowqueue apply") as connection:
            if not removal.existing(connection, "TABLE", ["MQ_INSTALLED"]):
                return None
            needed = ["IMQ_INSTALLED_FILES", "IMQ_OBJECT_FINGERPRINT"]
            found = removal.existing(connection, "PROCEDURE", needed) + removal.existing(connection, "FUNCTION", needed)
            query = (
                "SELECT name, kind, sha256, changed FROM imq_installed_files"
                if set(found) == set(needed)
                else "SELECT name, kind, sha256, IIF(kind = 'procedure', 1, 0) FROM mq_installed"
            )
            return [(name, kind, sha256, changed) for name, kind, sha256, changed in rows(connection, query)]

    def run_files(self, files: Sequence[SqlFile]) -> list[str]:
        # DDL must be committed before the next statement can see it. The records are written last: after an
        # interruption, the next `apply` runs all files again.
        with self._opened("rowqueue apply", PATIENT) as connection:
            for file in files:
                with in_file(file.name), translated():
                    _run(connection, file.text)
                    _run(connection, script.comment(file))
            with cursor_of(connection.main_transaction) as cursor:
                for file in (file for file in files if file.kind != GONE):
                    record = script.RECORD.format("?", "?", "?", "?", "?")
                    cursor.execute(record, [file.name, file.kind, file.sha256, file.kind, file.name])
                connection.commit()
        return []

    def script(self, files: Sequence[SqlFile], since: Release | None = None) -> Iterator[str]:
        return script.parts(files, since)

    def dropping(self, names: Sequence[str]) -> str:
        return script.dropping(names)

    def adopted_tables(self) -> list[tuple[str, str]]:
        with self._opened("rowqueue uninstall") as connection:
            if not removal.existing(connection, "TABLE", ["MQ_POLLED"]):
                return []
            return rows(connection, removal.ADOPTED)

    def dependents(self) -> list[str]:
        with self._opened("rowqueue uninstall") as connection:
            watching = {name for (name,) in rows(connection, removal.WATCHING)}
            return [f"{kind} {name}" for kind, name in rows(connection, removal.DEPENDENTS) if name not in watching]

    def uninstall(self) -> None:
        with self.installing(), self._opened("rowqueue uninstall", PATIENT) as connection:
            recorded = self.installed()
            removal.drop(connection, recorded or ())
            yoyo_tables.forget(connection, known(self.name, recorded))
        # One of these has the lock's row.
        with self._opened("rowqueue uninstall", PATIENT) as connection:
            yoyo_tables.drop(connection)


def _refuse_unsuitable(connection: Connection) -> None:
    """Raise DatabaseError for a database that cannot hold the queue, before anything is created."""
    [[reason]] = rows(connection, f"SELECT {script.unsuitable()} FROM mon$database")
    if reason is not None:
        raise DatabaseError(reason)


def _run(connection: Connection, text: str) -> None:
    for statement in statements(text):
        connection.at_work()
        try:
            if statement != "COMMIT":
                connection.execute_immediate(statement)
            connection.commit()
        except Error:
            forget_transaction(connection.main_transaction)
            raise
