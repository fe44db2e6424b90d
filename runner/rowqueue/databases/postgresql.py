"""PostgreSQL through psycopg 3. Everything the runner knows of this server stands here and in postgresql_embedded."""

import hashlib
import logging
import re
import selectors
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from .. import contract
from . import (
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    Forbidden,
    Installed,
    QueueError,
    ReadOnly,
    Row,
    SchemaMissing,
    Session,
)

_log = logging.getLogger(__name__)

# A dead peer is noticed within about a minute; what the URL says goes first.
_DEFAULTS = {
    "connect_timeout": "10",
    "client_encoding": "utf8",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
# The key of the installation lock: an arbitrary number, the same in every release.
_INSTALL_LOCK = 7_230_415_118
_INSTALL_WAIT = "60s"
_ROLES = ("mq_producer", "mq_consumer", "mq_operator")
_YOYO_TABLES = ("_yoyo_migration", "_yoyo_log", "_yoyo_version", "yoyo_lock")

_CONFLICTS = {"40001", "40P01", "55P03"}
_DISCONNECTS = {"53300", "57P01", "57P02", "57P03", "57P04", "57P05"}
_WRONG_ISOLATION = "50001"
_READ_ONLY = "25006"  # a standby, or default_transaction_read_only
_READ_ONLY_HINT = (
    "the server takes no changes: it is a standby, or default_transaction_read_only is on for it, the database or"
    " the role; target_session_attrs=read-write in the URL finds the one of several hosts that takes them"
)
_BAD_VALUES = {"22003", "22007", "22008", "22021", "22P02", "22P05"}
_RANGES = {"smallint": 15, "integer": 31, "bigint": 63}
# libpq tells a refused connection apart from a missing server by its text only.
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


@cache
def _query(procedure: str, count: int) -> str:
    """The text of a call. Every argument is cast: psycopg sends integers by their size and strings as unknown."""
    types = contract.load().types["postgresql"]
    arguments = contract.load().procedures[procedure].arguments[:count]
    return f"SELECT * FROM mq.{procedure}({', '.join(f'%s::{types[a.type]}' for a in arguments)})"


@cache
def _own_steps(role: str) -> list[str]:
    """The procedures outside the contract that a role may call, because what it calls runs with its rights."""
    text = (contract.sql_root() / "procedures" / PostgreSQL.name / "grants.sql").read_text("utf-8")
    lists = dict(re.findall(r"c_(\w+) CONSTANT text\[\] := ARRAY\[(.*?)\];", text, re.DOTALL))
    names = {"mq_consumer": ("helpers", "consumer"), "mq_operator": ("helpers", "operator")}.get(role, ())
    return [step for name in names for step in re.findall(r"'(\w+)'", lists[name])]


def _line(error: BaseException) -> str:
    """What the server or the driver says, on one line."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((primary or str(error)).split()) or type(error).__name__


def _translate(error: Exception, closed: bool = False) -> Exception:
    """Our exception for one of the driver's; `closed`: the connection did not survive it."""
    state = (error.sqlstate or "") if isinstance(error, psycopg.Error) else ""
    message = _line(error)
    if state.isdigit() and 50001 <= int(state) <= 50999:
        return QueueError(int(state), message)
    lost = isinstance(error, psycopg.OperationalError) and not state
    if closed or lost or state in _DISCONNECTS or state.startswith("08"):
        return Disconnected(message)
    if state in _CONFLICTS:
        return Conflict(message)
    if state == _READ_ONLY:
        return ReadOnly(f"{_READ_ONLY_HINT} ({message})")
    if state == "3F000" or (state in {"42883", "42P01"} and "mq." in message):
        return SchemaMissing(f"the queue is not installed here, or not in this version: run `runner apply` ({message})")
    if state == "42501":
        return Forbidden(message)
    return DatabaseError(message)


def _bad_argument(error: Exception, procedure: str, arguments: Sequence[Any]) -> QueueError | None:
    """The contract's error for a value that never reached the procedure because the type cannot hold it."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    # A DataError without a state is the driver's own: the value did not reach the server.
    local = isinstance(error, UnicodeError | OverflowError) or (isinstance(error, psycopg.DataError) and not state)
    if not local and state not in _BAD_VALUES:
        return None
    types = contract.load().types["postgresql"]
    reason = _line(error)
    for argument, value in zip(contract.load().procedures[procedure].arguments, arguments, strict=False):
        bits = _RANGES.get(types[argument.type])
        if isinstance(value, str) and "\0" in value:
            reason = f"{argument.name}: must not hold the character NUL"
        elif isinstance(value, str) and not value.isascii() and _unencodable(value):
            reason = f"{argument.name}: must be valid Unicode text"
        elif bits and isinstance(value, int) and not -(1 << bits) <= value < 1 << bits:
            reason = f"{argument.name}: must be {-(1 << bits):,} to {(1 << bits) - 1:,}"
        else:
            continue
        break
    return QueueError(50002, f"invalid_argument: {reason}")


def _unencodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error) from error


class PostgreSQLSession(Session):
    """One connection, in autocommit outside `transaction()`, without prepared statements: poolers may stand between."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._cursor = connection.cursor(row_factory=dict_row)
        self._listening: set[str] = set()
        self._woken = False
        self._begin = ""  # what a call begins with, where it cannot do without
        connection.add_notify_handler(self._wake)

    def _wake(self, _: psycopg.Notify) -> None:
        self._woken = True

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        try:
            return self._run(_query(procedure, len(arguments)), arguments)
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            # Once a session: the database's or the role's own default isolation level is another one.
            if self._begin == "" and getattr(error, "sqlstate", None) == _WRONG_ISOLATION and self._is_alone():
                self._begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
                return self.call(procedure, *arguments)
            bad = _bad_argument(error, procedure, arguments)
            raise bad or _translate(error, self._connection.closed) from error

    def now(self) -> datetime:
        with _translated():
            row = self._cursor.execute("SELECT clock_timestamp() AS now").fetchone()
        assert row is not None
        now: datetime = row["now"]
        return now

    def _run(self, query: str, arguments: Sequence[Any]) -> list[Row]:
        if not (self._begin and self._is_alone()):
            return self._cursor.execute(query, arguments).fetchall()
        self._connection.execute(self._begin)
        try:
            rows = self._cursor.execute(query, arguments).fetchall()
        except BaseException:
            if not self._connection.closed:
                self._connection.rollback()
            raise
        self._connection.commit()
        return rows

    def _is_alone(self) -> bool:
        """Whether a call is a transaction of its own."""
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        block = self._connection.transaction()
        with _translated():
            block.__enter__()
        try:
            yield self._connection
            # A COMMIT would be answered with a silent ROLLBACK, and the caller would take its work for done.
            if self._connection.info.transaction_status == TransactionStatus.INERROR:
                raise DatabaseError("a statement failed inside the transaction and its error was swallowed")
        except BaseException as error:
            block.__exit__(type(error), error, error.__traceback__)
            raise
        with _translated():
            block.__exit__(None, None, None)

    def listen(self, types: Sequence[str]) -> bool:
        for name in set(types) - self._listening:
            # The name of a channel is an identifier of at most 63 bytes: hence the hash.
            channel = "mq_" + hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
            try:
                self._connection.execute(f"LISTEN {channel}")
            except psycopg.Error as error:
                translated = _translate(error, self._connection.closed)
                if isinstance(translated, Disconnected):
                    raise translated from error
            self._listening.add(name)
        return True

    def wait(self, seconds: float, interrupt: int) -> bool:
        deadline = time.monotonic() + seconds
        with _translated(), selectors.DefaultSelector() as selector:
            own = selector.register(self._connection.fileno(), selectors.EVENT_READ)
            selector.register(interrupt, selectors.EVENT_READ)
            while not self._drained():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if any(key == own for key, _ in ready):
                    self._connection.pgconn.consume_input()
                elif ready or time.monotonic() >= deadline:
                    return False
        self._woken = False
        return True

    def _drained(self) -> bool:
        """Whether a notification came, now or during an earlier call; all that are there are taken."""
        while self._connection.pgconn.notifies():
            self._woken = True
        return self._woken

    def close(self) -> None:
        try:
            self._connection.close()
        except psycopg.Error as error:
            _log.debug("closing: %s", _line(error))


class PostgreSQL(Database):
    """A PostgreSQL database, 15 or later, named by a libpq URL."""

    name: ClassVar[str] = "postgresql"
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres")
    undoes_ddl: ClassVar[bool] = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        try:
            self._parameters = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        except (psycopg.Error, UnicodeError) as error:
            # libpq quotes a malformed token whole, and it may be the password.
            reason = _line(error).partition(' token: "')[0]
            raise ValueError(f"database URL: {reason}") from None

    def _open(self, application_name: str) -> psycopg.Connection[Any]:
        parameters = {**_DEFAULTS, "application_name": application_name, **self._parameters}
        try:
            connection = psycopg.connect(make_conninfo(**parameters), autocommit=True, prepare_threshold=None)
        except (psycopg.Error, UnicodeError) as error:
            message = _line(error)
            refused = any(text in message for text in _REFUSALS)
            raise (DatabaseError if refused else Disconnected)(message) from error
        if connection.info.parameter_status("TimeZone") not in {"UTC", "Etc/UTC"}:
            # A parameter that poolers carry along with the client. Times of results are then UTC.
            with _translated():
                connection.execute("SET TIME ZONE 'UTC'")
        if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
            # Likewise; the driver reads times in no other style.
            with _translated():
                connection.execute("SET datestyle = 'ISO'")
        return connection

    def connect(self, application_name: str) -> Session:
        connection = self._open(application_name)
        with _translated():
            # What is wanted of a user's own sessions need not be good for claims.
            found = connection.execute("SELECT current_setting('default_transaction_isolation')").fetchone()
            if found != ("read committed",):
                connection.execute("SET default_transaction_isolation = 'read committed'")
        return PostgreSQLSession(connection)

    def yoyo_url(self) -> str:
        parameters = {**_DEFAULTS, "application_name": "rowqueue yoyo", **self._parameters}
        with _translated(), self._open("rowqueue apply") as connection:
            schema = self._yoyo_schema(connection)
            # Only where it is needed: through a pooler the next statement may be another connection's.
            if connection.execute("SELECT current_schema()").fetchone() != (schema,):
                parameters["schema"] = '"' + schema.replace('"', '""') + '"'
        return f"postgresql+psycopg:///?{urlencode(parameters)}"

    @staticmethod
    def _yoyo_schemas(connection: psycopg.Connection[Any]) -> list[str]:
        """The schemas in which yoyo's tables know of our migrations, whatever the search path says now."""
        ours = [path.stem for path in (contract.sql_root() / "migrations" / PostgreSQL.name).glob("*.sql")]
        schemas = connection.execute(
            "SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE c.relname = '_yoyo_migration' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT')"
            " ORDER BY n.nspname <> 'public', n.nspname"
        ).fetchall()
        found = []
        for (schema,) in schemas:
            table = sql.Identifier(schema, "_yoyo_migration")
            query = sql.SQL("SELECT 1 FROM {} WHERE migration_id = ANY (%s) LIMIT 1").format(table)
            if connection.execute(query, [ours]).fetchone():
                found.append(schema)
        return found

    @classmethod
    def _yoyo_schema(cls, connection: psycopg.Connection[Any]) -> str:
        """Where yoyo's tables are, or are to be: in public unless there is no such schema."""
        if found := cls._yoyo_schemas(connection):
            return found[0]
        row = connection.execute(
            "SELECT CASE WHEN to_regnamespace('public') IS NULL THEN current_schema() ELSE 'public' END"
        ).fetchone()
        return str(row[0]) if row and row[0] else "public"

    @contextmanager
    def installing(self) -> Iterator[None]:
        # A lock of a transaction, not of a session: it holds through a pooler in transaction mode as well.
        with ExitStack() as stack:
            stack.enter_context(_translated())
            connection = stack.enter_context(self._open("rowqueue apply"))
            # Before the transaction, which must hold no lock on yoyo's tables.
            self._check_rights(connection)
            stack.enter_context(connection.transaction())
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.execute(f"SET LOCAL lock_timeout = '{_INSTALL_WAIT}'")
            try:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
            except psycopg.errors.LockNotAvailable:
                raise Conflict(f"another installation runs in this database; gave up after {_INSTALL_WAIT}") from None
            yield

    @classmethod
    def _check_rights(cls, connection: psycopg.Connection[Any]) -> None:
        """yoyo would report a missing right, or a server that takes no changes, as a missing table."""
        if connection.execute("SHOW transaction_read_only").fetchone() == ("on",):
            raise ReadOnly(_READ_ONLY_HINT)
        row = connection.execute(
            "SELECT current_user, current_database(), %(schema)s::text,"
            " has_database_privilege(current_database(), 'CREATE'), has_schema_privilege(%(schema)s, 'CREATE')",
            {"schema": cls._yoyo_schema(connection)},
        ).fetchone()
        assert row is not None
        user, database, schema, in_database, in_schema = row
        if not in_database:
            raise Forbidden(f"role {user} needs the right CREATE on database {database} to install")
        if not in_schema:
            raise Forbidden(f"role {user} needs the right CREATE on schema {schema or 'public'} to install")

    def installed(self) -> dict[str, Installed] | None:
        with _translated(), self._open("rowqueue apply") as connection:
            found = connection.execute(
                "SELECT to_regclass('mq.installed') IS NOT NULL, to_regprocedure('mq.installed_files()') IS NOT NULL"
                " AND to_regprocedure('mq.object_fingerprint(text)') IS NOT NULL"
            ).fetchone()
            assert found is not None
            table, procedures = found
            if not table:
                return None
            # Without the procedures nothing can be compared, and all of them are to be installed again.
            source = (
                "mq.installed_files()"
                if procedures
                else "(SELECT *, kind = 'procedure' AS changed FROM mq.installed) AS i"
            )
            rows = connection.execute(f"SELECT name, kind, sha256, changed FROM {source}")
            return {name: Installed(name, kind, sha256, bool(changed)) for name, kind, sha256, changed in rows}

    def run_files(self, files: Sequence[tuple[str, str, str, str]]) -> list[str]:
        notices: list[str] = []
        with _translated(), self._open("rowqueue apply") as connection:
            connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
            with connection.transaction():
                for _, name, _, text in files:
                    self._run_file(connection, name, text)
                # Afterwards, because a file may change what an earlier one made.
                connection.cursor().executemany(_RECORD, [(kind, name, sha256) for kind, name, sha256, _ in files])
        return notices

    @staticmethod
    def _run_file(connection: psycopg.Connection[Any], name: str, text: str) -> None:
        try:
            if text:
                connection.execute(text.encode(), prepare=False)
        except psycopg.Error as error:
            translated = _translate(error, connection.closed)
            raise type(translated)(f"{name}.sql: {_line(error)}") from error

    def script(self, files: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
        yield _SCRIPT_HEAD
        for kind, name, _, text in files:
            yield f"-- {kind} {name}\n{text.rstrip()}\n"
            if kind == "migration":
                yield _YOYO_ROW.format(name=name, hash=hashlib.sha256(name.encode()).hexdigest())
        records = ",\n".join(f"    ('{kind}', '{name}', '{sha256}')" for kind, name, sha256, _ in files)
        yield f"{_RECORD_HEAD}FROM (VALUES\n{records}\n) AS f (kind, name, sha256);\n"
        yield "COMMIT;\n"

    def adopted_tables(self) -> list[str]:
        with _translated(), self._open("rowqueue uninstall") as connection:
            if connection.execute("SELECT to_regclass('mq.polled')").fetchone() == (None,):
                return []
            return [name for (name,) in connection.execute("SELECT name FROM mq.polled ORDER BY 1")]

    def dependents(self) -> list[str]:
        with _translated(), self._open("rowqueue uninstall") as connection:
            return [name for (name,) in connection.execute(_DEPENDENTS)]

    def rights_problems(self) -> list[str]:
        with _translated(), self._open("rowqueue apply") as connection:
            every = [*contract.load().procedures]
            problems = [line for (line,) in connection.execute(_WRONG_RIGHTS)]
            others = connection.execute(_OTHERS_GRANTS, {"public": every, "roles": [*_ROLES]})
            problems += [line for (line,) in others]
            known = {role for (role,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'mq\\_%'")}
            query = "SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"
            may_create = connection.execute(query).fetchone() == (True,)
            for role in _ROLES:
                if role not in known:
                    # Who may not create it is told so by apply, and has nothing to mend.
                    problems += [f"role {role} does not exist"] if may_create else []
                    continue
                calls = [name for name, call in contract.load().procedures.items() if role in call.roles]
                rows = connection.execute(_WRONG_GRANTS, {"role": role, "calls": calls + _own_steps(role)})
                problems += [line for (line,) in rows]
            readable = connection.execute("SELECT has_table_privilege(to_regclass('mq.polled'), 'SELECT')").fetchone()
            if readable == (True,):
                problems += [line for (line,) in connection.execute(_RESTORED)]
        return problems

    def warnings_about_installation(self) -> list[str]:
        with _translated(), self._open("rowqueue apply") as connection:
            owner = connection.execute(
                "SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner"
                " WHERE n.nspname = 'mq' AND r.rolsuper"
            ).fetchone()
        if owner is None:
            return []
        return [f"{owner[0]}, a superuser, owns the queue: let a role install it that only owns the database"]

    def uninstall(self) -> None:
        with self.installing(), _translated(), self._open("rowqueue uninstall") as connection, connection.transaction():
            migrations = {name for name, entry in (self.installed() or {}).items() if entry.kind == "migration"}
            migrations |= {path.stem for path in (contract.sql_root() / "migrations" / self.name).glob("*.sql")}
            connection.execute("DROP SCHEMA IF EXISTS mq CASCADE")
            self._forget_migrations(connection, migrations)
            for role in _ROLES:
                self._drop_role(connection, role)

    @classmethod
    def _forget_migrations(cls, connection: psycopg.Connection[Any], migrations: set[str]) -> None:
        """Delete our rows of yoyo's tables, and the tables when no other project's migrations are left in them."""
        for schema in cls._yoyo_schemas(connection):
            for table in ("_yoyo_migration", "_yoyo_log"):
                statement = sql.SQL("DELETE FROM {} WHERE migration_id = ANY (%s)").format(
                    sql.Identifier(schema, table)
                )
                connection.execute(statement, [list(migrations)])
            left = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(schema, "_yoyo_migration"))
            if connection.execute(left).fetchone() is None:
                tables = sql.SQL(", ").join(sql.Identifier(schema, table) for table in _YOYO_TABLES)
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(tables))

    @staticmethod
    def _drop_role(connection: psycopg.Connection[Any], role: str) -> None:
        """Roles belong to all databases of a server: one that is still used elsewhere stays."""
        try:
            with connection.transaction():
                connection.execute(f"DROP ROLE IF EXISTS {role}")
        except (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InsufficientPrivilege) as error:
            _log.warning("role %s stays: %s", role, _line(error))


DATABASE = PostgreSQL


@contextmanager
def embedded(data_dir: Path | None = None) -> Iterator[Database]:
    """See `open_embedded`."""
    from . import postgresql_embedded

    with postgresql_embedded.running(data_dir) as url:
        yield PostgreSQL(url)


# What would go with the schema, without the triggers of watched tables, which are the queue's own.
_DEPENDENTS = """\
WITH own AS (
    SELECT 'pg_class'::regclass AS classid, oid FROM pg_class WHERE relnamespace = to_regnamespace('mq')
    UNION ALL SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = to_regnamespace('mq')
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

# What PUBLIC may do, and what does not belong to the schema's owner.
_WRONG_RIGHTS = """\
SELECT format('PUBLIC may execute %s', p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'mq' AND has_function_privilege('public', p.oid, 'EXECUTE')
UNION ALL
SELECT format('PUBLIC may read or change %s', c.oid::regclass)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'mq' AND c.relkind IN ('r', 'p', 'v')
    AND (has_table_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
UNION ALL
SELECT 'PUBLIC may use schema mq' FROM pg_namespace AS n
WHERE n.nspname = 'mq' AND has_schema_privilege('public', n.oid, 'USAGE, CREATE')
UNION ALL
SELECT format('%s is owned by %s, the schema by %s', p.oid::regprocedure, p.proowner::regrole, n.nspowner::regrole)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'mq' AND p.proowner <> n.nspowner
UNION ALL
SELECT format('%s is owned by %s, the schema by %s', c.oid::regclass, c.relowner::regrole, n.nspowner::regrole)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'mq' AND c.relkind IN ('r', 'p', 'v') AND c.relowner <> n.nspowner
"""

_WRONG_GRANTS = """\
SELECT format('%%s lacks EXECUTE on %%s', %(role)s::text, p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'mq' AND p.proname = ANY (%(calls)s) AND NOT has_function_privilege(%(role)s, p.oid, 'EXECUTE')
UNION ALL
SELECT format('%%s may execute %%s', %(role)s::text, p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'mq' AND p.proname <> ALL (%(calls)s)
    AND has_function_privilege(%(role)s, p.oid, 'EXECUTE') AND p.proowner <> %(role)s::regrole
UNION ALL
SELECT format('%%s lacks USAGE on schema mq', %(role)s::text) FROM pg_namespace AS n
WHERE n.nspname = 'mq' AND NOT has_schema_privilege(%(role)s, n.oid, 'USAGE')
"""

# A user may grant the procedures of the contract to roles of his own, but none of the queue's own steps.
_OTHERS_GRANTS = """\
SELECT DISTINCT format('%%s may execute %%s', g.grantee::regrole, p.oid::regprocedure)
FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
CROSS JOIN LATERAL aclexplode(p.proacl) AS g
WHERE n.nspname = 'mq' AND p.proname <> ALL (%(public)s) AND g.grantee NOT IN (0, p.proowner)
    AND g.grantee <> ALL (ARRAY(SELECT r.oid FROM pg_roles AS r WHERE r.rolname = ANY (%(roles)s)))
"""

_RESTORED = """\
SELECT format('adopted table %s goes by its name alone, since a restore', name)
FROM mq.polled WHERE queue_id <> 'mq.polled'::regclass
"""

_RECORD_HEAD = """\
INSERT INTO mq.installed (kind, name, sha256, fingerprint, applied_at)
SELECT f.kind, f.name, f.sha256, CASE WHEN f.kind = 'procedure' THEN mq.object_fingerprint(f.name) END, now()
"""

_RECORD = f"""\
{_RECORD_HEAD}FROM (VALUES (%s, %s, %s)) AS f (kind, name, sha256)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, sha256 = excluded.sha256, fingerprint = excluded.fingerprint, applied_at = excluded.applied_at
"""

# yoyo's own tables as yoyo 9 makes them, so that `yoyo apply` and `runner apply` go on from here.
_SCRIPT_HEAD = """\
-- rowqueue for PostgreSQL: the whole installation, for psql. All or nothing.
\\set ON_ERROR_STOP on
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SET LOCAL client_min_messages = warning;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'mq') THEN
        RAISE EXCEPTION 'schema mq is there already: this script makes a new installation; runner apply changes one';
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS public.yoyo_lock (
    locked integer DEFAULT 1, ctime timestamp, pid integer NOT NULL, PRIMARY KEY (locked)
);
CREATE TABLE IF NOT EXISTS public._yoyo_log (
    id varchar(36), migration_hash varchar(64), migration_id varchar(255), operation varchar(10), username varchar(255),
    hostname varchar(255), comment varchar(255), created_at_utc timestamp, PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS public._yoyo_version (version integer NOT NULL PRIMARY KEY, installed_at_utc timestamp);
INSERT INTO public._yoyo_version VALUES (2, now() AT TIME ZONE 'UTC') ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS public._yoyo_migration (
    migration_hash varchar(64), migration_id varchar(255), applied_at_utc timestamp, PRIMARY KEY (migration_hash)
);
RESET client_min_messages;
"""

_YOYO_ROW = """\
INSERT INTO public._yoyo_migration VALUES ('{hash}', '{name}', now() AT TIME ZONE 'UTC');
"""
