"""PostgreSQL: installing the queue, and questions about the whole database."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from .. import migrations
from ..base import GONE, ROLES, Database, DatabaseError, NotAllowed, ReadOnly, Release, Session, SqlFile
from ..guard import in_file, lock_held
from . import removal, rights, script, yoyo_tables
from .connection import connect, settings
from .errors import READ_ONLY_HINT, line, translated
from .session import PostgreSQLSession

_INSTALL_SECONDS = 60
_ABOUT_SESSION = "SELECT current_setting('default_transaction_isolation'), pg_backend_pid()"


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

    @contextmanager
    def _opened(self, application_name: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection for the runner's own statements."""
        with translated(), connect(self._parameters, application_name) as connection:
            yield connection

    def connect(self, application_name: str) -> Session:
        connection = connect(self._parameters, application_name)
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
        parameters = settings(self._parameters, "rowqueue yoyo")
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
            connection = stack.enter_context(connect(self._parameters, "rowqueue apply"))
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
                records = [(file.kind, file.name, file.sha256) for file in files if file.kind != GONE]
                connection.cursor().executemany(script.RECORD, records)
        return notices

    def script(self, files: Sequence[SqlFile], since: Release | None = None) -> Iterator[str]:
        return script.parts(files, since)

    def dropping(self, names: Sequence[str]) -> str:
        return script.dropping(names)

    def adopted_tables(self) -> list[tuple[str, str]]:
        with self._opened("rowqueue uninstall") as connection:
            if connection.execute("SELECT to_regclass('mq.polled')").fetchone() == (None,):
                return []
            return connection.execute(removal.ADOPTED).fetchall()

    def dependents(self) -> list[str]:
        with self._opened("rowqueue uninstall") as connection:
            return [name for (name,) in connection.execute(removal.DEPENDENTS)]

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
                removal.drop_role(connection, role)


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
