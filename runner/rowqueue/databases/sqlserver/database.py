"""SQL Server and Azure SQL: installing the queue, and questions about the whole database."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

import pymssql

from ..base import GONE, Database, Release, SchemaMissing, Session, SqlFile
from ..guard import in_file, lock_held
from ..migrations import known
from . import removal, rights, script, suitable
from .address import parse
from .babelfish import is_babelfish, replacing
from .connection import BEGIN, Connection, Cursor, connect
from .errors import translate, translated
from .session import SQLServerSession


class SQLServer(Database):
    """A database of SQL Server 2016 SP1 or later or of Azure SQL, named by a URL.

    Options: `connect_timeout` in seconds, and `encryption`: default, off, request or require, as in FreeTDS.
    """

    name: ClassVar[str] = "sqlserver"
    prefix: ClassVar[str] = "mq."
    schemes: ClassVar[tuple[str, ...]] = ("sqlserver", "mssql")
    undoes_ddl: ClassVar[bool] = True
    # During an upgrade, a call may use new procedures together with old ones.
    swaps_at_once: ClassVar[bool] = False
    yoyo_scheme: ClassVar[str] = "sqlserver"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._address = parse(url)
        self._been_connected = False

    def open(self, application_name: str) -> Connection:
        """A driver connection in autocommit mode. Raises as `connect` does."""
        connection = connect(self._address, application_name, self._been_connected)
        self._been_connected = True
        return connection

    @contextmanager
    def _opened(self, application_name: str) -> Iterator[Connection]:
        """A connection for the runner's own statements."""
        with translated(), closing(self.open(application_name)) as connection:
            yield connection

    def connect(self, application_name: str) -> Session:
        return SQLServerSession(self.open(application_name))

    @contextmanager
    def installing(self) -> Iterator[None]:
        # A session lock: released when the session ends in any way.
        with self._opened("rowqueue apply") as connection:
            suitable.check(connection)
            if connection.command(script.TAKE_LOCK) < 0:
                raise lock_held(script.INSTALL_SECONDS)
            yield

    def rights_problems(self) -> list[str]:
        with self._opened("rowqueue apply") as connection:
            # Babelfish does not show rights.
            return [] if is_babelfish(connection) else rights.problems(connection)

    def warnings_about_installation(self) -> list[str]:
        with self._opened("rowqueue apply") as connection:
            return [] if is_babelfish(connection) else rights.warnings(connection)

    def adopted_tables(self) -> list[tuple[str, str]]:
        with self._opened("rowqueue uninstall") as connection, connection.cursor() as cursor:
            if connection.command("SELECT OBJECT_ID(N'mq.polled') AS id") is None:
                return []
            cursor.execute(_ADOPTED)
            return [(name, owner) for name, owner in cursor.fetchall()]

    def dependents(self) -> list[str]:
        with self._opened("rowqueue uninstall") as connection, connection.cursor() as cursor:
            if is_babelfish(connection):  # it has no such catalog
                return []
            cursor.execute(_DEPENDENTS)
            return [f"{kind} {schema}.{name}" for kind, schema, name in cursor.fetchall()]

    def _recorded(self) -> list[tuple[str, str, str, Any]] | None:
        with self._opened("rowqueue apply") as connection, connection.cursor() as cursor:
            return _installed_files(connection, cursor)

    def run_files(self, files: Sequence[SqlFile]) -> list[str]:
        # Short transactions, to block callers only briefly. Each also records its files, but without a fingerprint.
        # A file then counts as changed until all are done, and after an interruption a second `apply` does the rest.
        with self._opened("rowqueue apply") as connection:
            replaces = is_babelfish(connection)
            for unit in script.units(files):
                _run_unit(connection, unit, replaces)
            connection.command(script.FINGERPRINTS)
        return []

    def script(self, files: Sequence[SqlFile], since: Release | None = None) -> Iterator[str]:
        return script.parts(files, since)

    def dropping(self, names: Sequence[str]) -> str:
        return script.dropping(names)

    def uninstall(self) -> None:
        with self.installing(), self._opened("rowqueue uninstall") as connection, connection.cursor() as cursor:
            names = known(self.name, self.installed())
            connection.command(BEGIN)
            removal.drop_schema(cursor)
            removal.forget_migrations(cursor, names)
            removal.drop_roles(cursor)
            connection.end()


def _run_unit(connection: Connection, unit: Sequence[SqlFile], replaces: bool) -> None:
    name = unit[0].name
    try:
        connection.command(BEGIN)
        for file in unit:
            name = file.name
            _run_file(connection, file, replaces)
        connection.end()
    except pymssql.Error as error:
        translated = translate(error, connection.is_closed)
        connection.undo()
        with in_file(name):
            raise translated from error


def _run_file(connection: Connection, file: SqlFile, replaces: bool) -> None:
    for batch in script.batches(file.text):
        for part in replacing(batch) if replaces else [batch]:
            connection.command(part)
    if comment := script.comment(file):
        connection.command(comment)
    if file.kind == GONE:
        return
    with connection.cursor() as cursor:
        cursor.execute(script.RECORD, (file.name, file.name, file.kind, file.sha256))


def _installed_files(connection: Connection, cursor: Cursor) -> list[tuple[str, str, str, Any]] | None:
    """The records: name, kind, sha256, changed; None when there are none."""
    try:
        cursor.execute("EXEC mq_internal.installed_files")
        return [row[:4] for row in cursor.fetchall()]
    except pymssql.Error as error:
        if not isinstance(translate(error, connection.is_closed), SchemaMissing):
            raise
    if connection.command("SELECT OBJECT_ID(N'mq.installed', N'U')") is None:
        return None
    # Without the procedures, objects cannot be compared: all procedure files count as changed.
    cursor.execute("SELECT name, kind, sha256, CASE kind WHEN 'procedure' THEN 1 ELSE 0 END FROM mq.installed")
    return list(cursor.fetchall())


_ADOPTED = """\
SELECT p.name, CASE WHEN t.owner_id = DATABASE_PRINCIPAL_ID() THEN N'' ELSE USER_NAME(t.owner_id) END
FROM mq.polled AS p
INNER JOIN (
    SELECT s.name AS schema_name, o.name, COALESCE(o.principal_id, s.principal_id) AS owner_id
    FROM sys.tables AS o
    INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id
) AS t ON t.schema_name = p.table_schema COLLATE DATABASE_DEFAULT AND t.name = p.table_name COLLATE DATABASE_DEFAULT
WHERE t.owner_id = DATABASE_PRINCIPAL_ID()
    OR EXISTS (SELECT 1 FROM mq.polled_row AS e WHERE e.name = p.name AND e.active = 1)
ORDER BY p.name"""

# Except the triggers of watched tables, which are the queue's own.
_DEPENDENTS = """\
SELECT LOWER(REPLACE(o.type_desc, '_', ' ')), OBJECT_SCHEMA_NAME(o.object_id), o.name
FROM sys.objects AS o
WHERE o.schema_id NOT IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))
    AND o.name <> CONCAT(N'mq_watch_', o.parent_object_id)
    AND (EXISTS (SELECT 1 FROM sys.sql_expression_dependencies AS d
            WHERE d.referencing_id = o.object_id AND d.referenced_schema_name IN (N'mq', N'mq_internal')
                AND d.referenced_database_name IS NULL)
        OR EXISTS (SELECT 1 FROM sys.foreign_keys AS f
            WHERE f.object_id = o.object_id AND OBJECT_SCHEMA_NAME(f.referenced_object_id) = N'mq'))
ORDER BY 1, 2, 3"""
