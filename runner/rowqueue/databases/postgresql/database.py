"""PostgreSQL: connecting, installing the queue, and questions about the whole database."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from .. import migrations
from ..base import ROLES, Database, DatabaseError, Disconnected, NotAllowed, ReadOnly, Session, SqlFile
from ..guard import in_file, lock_held
from . import rights, script, yoyo_tables
from .errors import READ_ONLY_HINT, line, translated
from .session import PostgreSQLSession

_log = logging.getLogger(__name__)

# TCP keep-alive: a dead peer is detected within about a minute. The URL overrides these settings.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_INSTALL_SECONDS = 60
_ENCODING = {"client_encoding": "utf8"}  # another one cannot represent every text
_ABOUT_SESSION = "SELECT current_setting('default_transaction_isolation'), pg_backend_pid()"

# libpq distinguishes a refused login from an unreachable server only by the error text.
_REFUSALS = (
    "authentication failed",
    "does not exist",
    "no such",
    "no password supplied",
    "not permitted to log in",
    "permission denied",
    "pg_hba.conf",
    "certificate",
    "does not support SSL",
    "invalid connection option",
    "invalid port",
)


class PostgreSQL(Database):
    """A PostgreSQL database, 15 or later, named by a libpq URL."""

    name: ClassVar[str] = "postgresql"
    prefix: ClassVar[str] = "mq."
    unnamed_key: ClassVar[str] = "{}_pkey"
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres")
    undoes_ddl: ClassVar[bool] = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        try:
            self._parameters = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        except (psycopg.Error, UnicodeError) as error:
            # libpq quotes a malformed part of the URL, which may be the password.
            reason = line(error).partition(' token: "')[0]
            raise ValueError(f"database URL: {reason}") from None

    def _open(self, application_name: str) -> psycopg.Connection[Any]:
        parameters = {**_DEFAULTS, "application_name": application_name, **self._parameters, **_ENCODING}
        try:
            connection = psycopg.connect(make_conninfo(**parameters), autocommit=True, prepare_threshold=None)
        except (psycopg.Error, UnicodeError) as error:
            message = line(error)
            refused = any(text in message for text in _REFUSALS)
            raise (DatabaseError if refused else Disconnected)(message) from error
        if connection.info.parameter_status("TimeZone") not in {"UTC", "Etc/UTC"}:
            # A parameter that poolers track per client. It makes the times in results UTC.
            with translated():
                connection.execute("SET TIME ZONE 'UTC'")
        if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
            # Also tracked by poolers; the driver reads times only in this style.
            with translated():
                connection.execute("SET datestyle = 'ISO'")
        return connection

    @contextmanager
    def _opened(self, application_name: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection for the runner's own statements."""
        with translated(), self._open(application_name) as connection:
            yield connection

    def connect(self, application_name: str) -> Session:
        connection = self._open(application_name)
        with translated():
            # Settings for a user's own sessions may be unsuitable for claims.
            found = connection.execute(_ABOUT_SESSION).fetchone()
            assert found is not None
            isolation, process = found
            if isolation != "read committed":
                connection.execute("SET default_transaction_isolation = 'read committed'")
        if process == connection.info.backend_pid:
            # The process number is real, so there is no pooler, and statements can be prepared. Only those that ask
            # for it are prepared, not a handler's.
            connection.prepare_threshold = sys.maxsize
        return PostgreSQLSession(connection)

    def yoyo_url(self) -> str:
        parameters = {**_DEFAULTS, "application_name": "rowqueue yoyo", **self._parameters, **_ENCODING}
        with self._opened("rowqueue apply") as connection:
            schema = yoyo_tables.schema_of(connection)
            # Only if needed: through a pooler, the next statement may use another server connection.
            if connection.execute("SELECT current_schema()").fetchone() != (schema,):
                parameters["schema"] = '"' + schema.replace('"', '""') + '"'
        return f"postgresql+psycopg:///?{urlencode(parameters)}"

    @contextmanager
    def installing(self) -> Iterator[None]:
        # A transaction's lock: unlike a session's, it also works through a pooler in transaction mode.
        with ExitStack() as stack:
            stack.enter_context(translated())
            connection = stack.enter_context(self._open("rowqueue apply"))
            if reason := rights.unsuitable(connection):
                raise DatabaseError(reason)
            # Before the transaction, because that must not lock yoyo's tables.
            _check_rights(connection)
            stack.enter_context(connection.transaction(force_rollback=True))
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.execute(f"SET LOCAL lock_timeout = '{_INSTALL_SECONDS}s'")
            try:
                connection.execute(f"CREATE SCHEMA {script.INSTALL_LOCK}")
            except psycopg.errors.LockNotAvailable:
                raise lock_held(_INSTALL_SECONDS) from None
            yield

    def _recorded(self) -> list[tuple[str, str, str, Any]] | None:
        with self._opened("rowqueue apply") as connection:
            found = connection.execute(
                "SELECT to_regclass('mq.installed') IS NOT NULL,"
                " to_regprocedure('mq_internal.installed_files()') IS NOT NULL"
                " AND EXISTS (SELECT FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
                " WHERE n.nspname = 'mq_internal' AND p.proname = 'object_fingerprint')"
            ).fetchone()
            assert found is not None
            table, procedures = found
            if not table:
                return None
            source = (
                "mq_internal.installed_files()"
                if procedures
                else "(SELECT *, kind = 'procedure' AS changed FROM mq.installed) AS i"
            )
            return connection.execute(f"SELECT name, kind, sha256, changed FROM {source}").fetchall()

    def run_files(self, files: Sequence[SqlFile]) -> list[str]:
        notices: list[str] = []
        with self._opened("rowqueue apply") as connection:
            connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
            with connection.transaction():
                for file in files:
                    with in_file(file.name), translated():
                        if file.text:
                            connection.execute((file.text + script.comment(file)).encode(), prepare=False)
                # After all files have run, because a file may change an object of an earlier one.
                records = [(file.kind, file.name, file.sha256) for file in files]
                connection.cursor().executemany(script.RECORD, records)
        return notices

    def script(self, files: Sequence[SqlFile]) -> Iterator[str]:
        return script.parts(files)

    def adopted_tables(self) -> list[tuple[str, str]]:
        with self._opened("rowqueue uninstall") as connection:
            if connection.execute("SELECT to_regclass('mq.polled')").fetchone() == (None,):
                return []
            return connection.execute(_ADOPTED).fetchall()

    def dependents(self) -> list[str]:
        with self._opened("rowqueue uninstall") as connection:
            return [name for (name,) in connection.execute(_DEPENDENTS)]

    def rights_problems(self) -> list[str]:
        with self._opened("rowqueue apply") as connection:
            return rights.problems(connection)

    def warnings_about_installation(self) -> list[str]:
        with self._opened("rowqueue apply") as connection:
            return rights.warnings(connection)

    def uninstall(self) -> None:
        with self.installing(), self._opened("rowqueue uninstall") as connection, connection.transaction():
            names = migrations.known(self.name, self.installed())
            connection.execute("DROP SCHEMA IF EXISTS mq, mq_internal CASCADE")
            yoyo_tables.forget(connection, names)
            for role in ROLES:
                _drop_role(connection, role)


def _check_rights(connection: psycopg.Connection[Any]) -> None:
    """Check the rights and that the server takes changes; yoyo would report either as a missing table."""
    if connection.execute("SHOW transaction_read_only").fetchone() == ("on",):
        raise ReadOnly(READ_ONLY_HINT)
    row = connection.execute(
        "SELECT current_user, current_database(), %(schema)s::text,"
        " has_database_privilege(current_database(), 'CREATE'), has_schema_privilege(%(schema)s, 'CREATE')",
        {"schema": yoyo_tables.schema_of(connection)},
    ).fetchone()
    assert row is not None
    user, database, schema, in_database, in_schema = row
    if not in_database:
        raise NotAllowed(f"role {user} needs the right CREATE on database {database} to install")
    if not in_schema:
        raise NotAllowed(f"role {user} needs the right CREATE on schema {schema or 'public'} to install")


def _drop_role(connection: psycopg.Connection[Any], role: str) -> None:
    """Drop a role. Roles are server-wide: one that is used in another database stays."""
    try:
        with connection.transaction():
            connection.execute(f"DROP ROLE IF EXISTS {role}")
    except (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InsufficientPrivilege) as error:
        _log.warning("role %s stays: %s", role, line(error))


_ADOPTED = """\
SELECT p.name, CASE r.rolname WHEN current_user THEN '' ELSE r.rolname END
FROM mq.polled AS p
INNER JOIN pg_class AS c
    ON c.oid = CASE p.queue_id
        WHEN 'mq.polled'::regclass::oid THEN p.table_id ELSE mq_internal.relation_of(p.table_schema, p.table_name)
    END
INNER JOIN pg_roles AS r ON r.oid = c.relowner
WHERE r.rolname = current_user OR EXISTS (SELECT FROM mq.polled_row AS e WHERE e.name = p.name AND e.active)
ORDER BY p.name
"""

# Objects that would be dropped with the schema, except the triggers of watched tables, which are the queue's own.
_DEPENDENTS = """\
WITH own AS (
    SELECT 'pg_class'::regclass AS classid, oid FROM pg_class
    WHERE relnamespace IN (to_regnamespace('mq'), to_regnamespace('mq_internal'))
    UNION ALL SELECT 'pg_proc'::regclass, oid FROM pg_proc
    WHERE pronamespace IN (to_regnamespace('mq'), to_regnamespace('mq_internal'))
    UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = to_regnamespace('mq')
), used AS (
    SELECT d.classid, d.objid, d.objsubid, coalesce(r.ev_class, a.adrelid, c.conrelid) AS relation
    FROM pg_depend AS d
    INNER JOIN own AS o ON o.classid = d.refclassid AND o.oid = d.refobjid
    LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_attrdef AS a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
    LEFT JOIN pg_constraint AS c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid
    WHERE d.deptype = 'n' AND d.classid <> 'pg_trigger'::regclass
)
SELECT DISTINCT CASE
    WHEN u.classid = 'pg_rewrite'::regclass THEN pg_describe_object('pg_class'::regclass, u.relation, 0)
    ELSE pg_describe_object(u.classid, u.objid, u.objsubid)
END
FROM used AS u
WHERE NOT EXISTS (
    SELECT 1 FROM own AS o
    WHERE (o.classid = u.classid AND o.oid = u.objid) OR (o.classid = 'pg_class'::regclass AND o.oid = u.relation)
)
"""
