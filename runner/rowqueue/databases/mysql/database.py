"""MySQL and MariaDB: installing the queue, and questions about the whole database."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import ER  # type: ignore[import-untyped]

from ...install import contract
from ..base import AREA, GONE, GRANTS, Cluster, Database, DatabaseError, Release, Session, SqlFile
from ..files import statements
from ..guard import in_file, lock_held
from ..migrations import known, names
from . import address, clusters, removal, rights, script
from .connection import Connection, connect
from .errors import NOT_ALLOWED, line, number, translated
from .removal import existing
from .session import MySQLSession

_PACKET_HEAD = 1024  # bytes of max_allowed_packet that are reserved for everything but the text of a call


class MySQL(Database):
    """A database of MySQL 8.0 or later or MariaDB 10.6 or later, named by a URL.

    Settings come from the URL, then the environment, then the user's option file, as in the servers' own client.
    """

    name: ClassVar[str] = "mysql"
    prefix: ClassVar[str] = "mq_"
    unnamed_key: ClassVar[str] = "PRIMARY"
    schemes: ClassVar[tuple[str, ...]] = ("mysql", "mariadb")
    swaps_at_once: ClassVar[bool] = False
    yoyo_scheme: ClassVar[str] = "mysql+rowqueue"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._named = address.parse(url)

    def open(self, application_name: str) -> Connection:
        """A driver connection in autocommit mode. Raises as `connect` does."""
        return connect(self._named, application_name)

    def open_own(self, application_name: str) -> Connection:
        """A connection for our own statements, with the settings that they need."""
        connection = self.open(application_name)
        with translated():
            connection.cursor().execute("SET SESSION sql_safe_updates = 0")
        return connection

    @contextmanager
    def _reading(self, application_name: str) -> Iterator[Any]:
        """A cursor for our own statements."""
        with translated(), closing(self.open_own(application_name)) as connection, connection.cursor() as cursor:
            yield cursor

    def connect(self, application_name: str) -> Session:
        connection = self.open(application_name)
        with translated(), connection.cursor() as cursor:
            cursor.execute("SELECT @@max_allowed_packet")
            return MySQLSession(connection, cursor.fetchone()[0] - _PACKET_HEAD)

    @contextmanager
    def installing(self) -> Iterator[None]:
        with self._reading("rowqueue apply") as cursor:
            cursor.execute("SELECT DATABASE()")
            if (name := cursor.fetchone()[0]).lower() in script.SYSTEM:
                raise DatabaseError(f"{name} is a database of the server's own: name another one in the URL")
            taken = [
                f"{kind} {found}"
                for kind in ("table", "routine")
                for found in existing(cursor, f"{kind}s", names("mysql"))
            ]
            if taken and "table mq_installed" not in taken:
                raise DatabaseError(
                    f"another project has a {taken[0]} in database {name}: install the queue in another database"
                )
            rights.check(cursor)
            lock = script.INSTALL_LOCK if script.make_yoyo_tables(cursor) else f"'{script.LOCK_ROW}'"
            cursor.execute(f"SELECT GET_LOCK({lock}, %s)", [script.INSTALL_SECONDS])
            if cursor.fetchone() != (1,):
                # Name the connection: an administrator can end it.
                cursor.execute(f"SELECT IS_USED_LOCK({lock})")
                (connection,) = cursor.fetchone()
                raise lock_held(script.INSTALL_SECONDS, f"connection {connection}")
            yield

    def rights_problems(self) -> list[str]:
        with self._reading("rowqueue doctor") as cursor:
            try:
                return rights.problems(cursor)
            except pymysql.Error as error:
                if number(error) not in NOT_ALLOWED:
                    raise
                return []  # only a user who may install may read them

    def warnings_about_installation(self) -> list[str]:
        with self._reading("rowqueue doctor") as cursor:
            return rights.warnings(cursor)

    def cluster(self) -> Cluster | None:
        with self._reading("rowqueue doctor") as cursor:
            return clusters.cluster(cursor)

    def _recorded(self) -> list[tuple[str, str, str, Any]] | None:
        with self._reading("rowqueue apply") as cursor:
            return _installed_files(cursor)

    def run_files(self, files: Sequence[SqlFile]) -> list[str]:
        # DDL commits. A file is recorded after it has run, but without a fingerprint. It then counts as changed until
        # all files are done, and after an interruption a second `apply` does the rest.
        with self._reading("rowqueue apply") as cursor:
            # An area gets its hash last: until then, require_area refuses its settings.
            for file in sorted(files, key=lambda file: file.kind == AREA):
                with in_file(file.name), translated():
                    for statement in statements(script.text(file)):
                        cursor.execute(statement)
                if file.kind != GONE:
                    cursor.execute(script.RECORD, [file.name, file.kind, file.sha256])
            if any(file.kind == GRANTS for file in files):
                rights.revoke_from_everybody(cursor)
            for statement in script.FINGERPRINTS:
                cursor.execute(statement)
        return []

    def script(self, files: Sequence[SqlFile], since: Release | None = None) -> Iterator[str]:
        return script.parts(files, since)

    def dropping(self, names: Sequence[str]) -> str:
        return script.dropping(names)

    def adopted_tables(self) -> list[tuple[str, str]]:
        with self._reading("rowqueue uninstall") as cursor:
            if not existing(cursor, "tables", ["mq_polled"]):
                return []
            cursor.execute(_ADOPTED)
            return list(cursor.fetchall())

    def dependents(self) -> list[str]:
        with self._reading("rowqueue uninstall") as cursor:
            cursor.execute(_DEPENDENTS)
            own = {*map(contract.load().prefixed, contract.load().files("mysql"))}
            return [
                f"{kind} {schema}.{name}"
                for kind, schema, name, mine in cursor.fetchall()
                if name not in own or not mine
            ]

    def uninstall(self) -> None:
        with self.installing(), self._reading("rowqueue uninstall") as cursor:
            recorded = self.installed()
            removal.drop_objects(cursor, recorded or ())
            removal.forget_migrations(cursor, known(self.name, recorded))
            removal.drop_accounts(cursor)


def _installed_files(cursor: Any) -> list[tuple[str, str, str, int]] | None:
    """The records: name, kind, sha256, changed; None when there are none."""
    try:
        return [row[:4] for row in _called(cursor, "imq_installed_files")]
    except pymysql.Error as error:
        # The procedures may be missing, or their owner, or its rights. If nothing is installed, MySQL reports a missing
        # right to an account with few rights.
        is_missing = number(error) == ER.SP_DOES_NOT_EXIST or "mq_owner" in line(error)
        if number(error) == ER.PROCACCESS_DENIED_ERROR and not is_missing:
            is_missing = not _may_call_version(cursor) and not existing(cursor, "tables", ["mq_installed"])
        if not is_missing:
            raise
    if not existing(cursor, "tables", ["mq_installed"]):
        return None
    # Without the procedures, objects cannot be compared: all procedure files count as changed.
    cursor.execute("SELECT name, kind, sha256, kind = 'procedure' FROM mq_installed")
    return list(cursor.fetchall())


def _may_call_version(cursor: Any) -> bool:
    """Whether this account has one of the roles: then the queue is installed."""
    try:
        return bool(_called(cursor, "mq_version"))
    except pymysql.Error:
        return False


def _called(cursor: Any, procedure: str) -> list[tuple[Any, ...]]:
    cursor.execute(f"CALL {procedure}()")
    rows = list(cursor.fetchall())
    while cursor.nextset():
        pass
    return rows


# Tables have no owner here: the account that adopted one counts.
_ADOPTED = """\
SELECT p.name, IF(BINARY p.adopted_by = BINARY u.name, '', p.adopted_by)
FROM mq_polled AS p
CROSS JOIN (SELECT LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1) AS name) AS u
WHERE BINARY p.adopted_by = BINARY u.name
    OR EXISTS (SELECT 1 FROM mq_polled_row AS e WHERE e.name = p.name AND e.active = 1)
ORDER BY p.name"""

# Neither catalog lists the objects that a view uses, but its text does: the names in it are qualified and quoted.
_DEPENDENTS = """\
SELECT 'view', table_schema, table_name, table_schema = DATABASE() FROM information_schema.views
WHERE LOCATE(CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.`mq_'), view_definition) > 0
UNION ALL
SELECT 'foreign key', constraint_schema, constraint_name, 0 FROM information_schema.referential_constraints
WHERE unique_constraint_schema = DATABASE() AND referenced_table_name LIKE 'mq\\_%'
    AND NOT (constraint_schema = DATABASE() AND table_name LIKE 'mq\\_%')
ORDER BY 1, 2, 3"""
