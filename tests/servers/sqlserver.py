"""SQL Server, or a compatible server, that the user names; none is started here."""

import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import product
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from rowqueue.databases.sqlserver.babelfish import replacing
from rowqueue.databases.sqlserver.script import batches
from rowqueue.install import contract

from . import base

try:
    import pymssql
except ImportError:  # then no server is named
    pymssql = None

_READY_SECONDS = 60
PASSWORD = "P@ss:w/rd %+1"  # what a URL must quote, and what a server's policy asks for

# Names that the server makes, with a number; DF_… is the stand-in's.
_NUMBERED = re.compile(r"(__|TT_\w+?_)[0-9A-F]{8,16}\b|(?<= DF_)\w+\b")
_OF = "SCHEMA_NAME(o.schema_id) AS s, o.name AS o"
_OWN = "o.is_ms_shipped = 0 AND o.type NOT IN ('IT', 'S', 'SQ')"
_CATALOG = {
    "schema": "SELECT name FROM sys.schemas WHERE schema_id BETWEEN 5 AND 16383",
    "object": f"SELECT {_OF}, o.type_desc, OBJECT_NAME(o.parent_object_id) AS parent"
    f" FROM sys.objects AS o WHERE {_OWN}",
    "type": "SELECT SCHEMA_NAME(schema_id) AS s, name, is_table_type FROM sys.types WHERE is_user_defined = 1",
    "column": f"SELECT {_OF}, c.name, c.column_id, TYPE_NAME(c.user_type_id) AS type, c.max_length, c.precision,"
    " c.scale, c.collation_name, c.is_nullable, c.is_identity, d.definition FROM sys.columns AS c"
    " INNER JOIN sys.objects AS o ON o.object_id = c.object_id"
    f" LEFT JOIN sys.default_constraints AS d ON d.object_id = c.default_object_id WHERE {_OWN}",
    "index": f"SELECT {_OF}, i.name, i.type_desc, i.is_unique, i.is_primary_key, i.filter_definition, x.key_ordinal,"
    " x.is_descending_key, x.is_included_column, COL_NAME(x.object_id, x.column_id) AS part FROM sys.indexes AS i"
    " INNER JOIN sys.objects AS o ON o.object_id = i.object_id INNER JOIN sys.index_columns AS x"
    f" ON x.object_id = i.object_id AND x.index_id = i.index_id WHERE {_OWN}",
    "check": "SELECT name, definition FROM sys.check_constraints",
    "module": f"SELECT {_OF}, m.definition, m.uses_ansi_nulls, m.uses_quoted_identifier FROM sys.sql_modules AS m"
    f" INNER JOIN sys.objects AS o ON o.object_id = m.object_id WHERE {_OWN}",
    "role": "SELECT name FROM sys.database_principals WHERE type = 'R' AND is_fixed_role = 0",
    "right": "SELECT class_desc, OBJECT_SCHEMA_NAME(major_id) AS s, OBJECT_NAME(major_id) AS o, permission_name,"
    " state_desc, USER_NAME(grantee_principal_id) AS who FROM sys.database_permissions WHERE major_id >= 0",
}


class Client:
    """A connection with `execute`, in autocommit, whose values are as the runner's: times in UTC, keys as texts."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, text: str, parameters: Sequence[Any] | None = None) -> "Result":
        cursor = self.connection.cursor()
        if parameters:
            cursor.execute(text, tuple(parameters))
        else:
            cursor.execute(text)
        description = cursor.description
        names = [column[0] for column in description or ()]
        rows = [dict(zip(names, map(_plain, row), strict=True)) for row in cursor.fetchall()] if names else []
        while cursor.nextset():  # an error that came after the rows shows here
            pass
        return Result(rows, description)

    def close(self) -> None:
        with suppress(pymssql.Error):  # it may be gone
            self.connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Result:
    """The result of a statement."""

    def __init__(self, rows: list[dict[str, Any]], description: Any) -> None:
        self.rows = rows
        self.description = description

    def fetchall(self) -> list[dict[str, Any]]:
        return self.rows

    def fetchone(self) -> dict[str, Any] | None:
        return self.rows.pop(0) if self.rows else None


def _plain(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return str(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _database(url: str) -> str:
    return unquote(urlsplit(url).path[1:])


class ExternalSQLServer(base.External):
    """A server that the user named, with an account of sysadmin; a URL without a database means master."""

    def __init__(self, name: str, url: str) -> None:
        if pymssql is None:
            raise base.Unavailable("pymssql is not installed: pip install pymssql")
        super().__init__(name, url if _database(url) else urlunsplit(urlsplit(url)._replace(path="/master")))

    def start(self) -> None:
        [row] = self.query(self.url, "SELECT @@VERSION AS version")
        self.stand_in = "Babelfish" if row["version"].startswith("Babelfish") else ""

    def client(self, url: str) -> Client:
        parts = urlsplit(url)
        connection = pymssql.connect(
            server=parts.hostname or "localhost",
            port=str(parts.port or 1433),
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=_database(url),
            charset="UTF-8",
            tds_version="7.4",
            login_timeout=30,
            autocommit=True,
        )
        return Client(connection)

    def run_script(self, url: str, text: str, *options: str) -> str:
        """Batch by batch in one session, as sqlcmd does, which is not here."""
        with self.client(url) as client:
            try:
                for batch in batches(re.sub(r"(?m)^:.*", "", text)):
                    made = re.search(r"^CREATE OR ALTER \w+ ([\w.]+)", batch, re.M)
                    found = f"SELECT OBJECT_ID(N'{made[1] if made else ''}') AS id"
                    if self.stand_in and client.execute(found).rows[0]["id"]:
                        continue  # it replaces no function that others use
                    for part in replacing(batch) if self.stand_in else [batch]:
                        client.execute(part)
            except Exception as error:
                raise AssertionError(str(error)) from error
        return ""

    def create_database(self, versions: bool = True) -> str:
        """With row `versions`, as on Azure SQL and as the guide advises: otherwise readers wait for writers."""
        name = base.new_name()
        self.query(self.url, f"CREATE DATABASE {name}")
        if not self.stand_in:
            self.query(self.url, f"ALTER DATABASE {name} SET READ_COMMITTED_SNAPSHOT {'ON' if versions else 'OFF'}")
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def drop_database(self, url: str) -> None:
        name = _database(url)
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            self._end_sessions("database_id = DB_ID(%s)", name)
            try:
                self.query(self.url, f"DROP DATABASE IF EXISTS {name}")
                return
            except pymssql.Error:  # they are still about to end
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def _end_sessions(self, which: str, value: str) -> None:
        sessions = f"SELECT session_id FROM sys.dm_exec_sessions WHERE {which} AND session_id <> @@SPID"
        for row in self.query(self.url, sessions, value):
            with suppress(pymssql.Error):  # gone in the meantime
                self.query(self.url, f"KILL {row['session_id']}")

    def catalog(self, url: str) -> list[str]:
        with self.client(url) as connection:
            rows = [
                [kind, *map(str, row.values())]
                for kind, query in _CATALOG.items()
                for row in connection.execute(query).fetchall()
            ]
        return sorted(_NUMBERED.sub(r"\1", " | ".join(row)).replace(_database(url), "DATABASE") for row in rows)

    def drop_procedure(self, url: str, name: str) -> None:
        self.query(url, f"DROP PROCEDURE mq{'_internal' if contract.load().is_internal(name) else ''}.{name}")

    @contextmanager
    def login(self, url: str, role: str, *granted: str) -> Iterator[str]:
        self.query(self.url, f"CREATE LOGIN {role} WITH PASSWORD = '{PASSWORD}'")
        self.query(url, f"CREATE USER {role} FOR LOGIN {role}")
        for name in granted:
            self.query(url, f"ALTER ROLE {name} ADD MEMBER {role}")
        host = urlsplit(url).netloc.rpartition("@")[2]
        try:
            yield urlunsplit(urlsplit(url)._replace(netloc=f"{role}:{quote(PASSWORD, safe='')}@{host}"))
        finally:
            self._end_sessions("login_name = %s", role)
            for name in granted:
                self.query(url, f"ALTER ROLE {name} DROP MEMBER {role}")
            self.query(url, f"DROP USER {role}")
            self.query(self.url, f"DROP LOGIN {role}")

    def plant_faults(self, url: str, stems: Sequence[str]) -> None:
        rows = {"insert": "inserted", "update": "inserted", "delete": "deleted"}
        with self.client(url) as connection:
            # What OUTPUT INTO writes to can have no trigger.
            for stem, event in product([stem for stem in stems if stem != "claimed"], rows):
                connection.execute(
                    f"CREATE TRIGGER mq.fault_{stem}_{event} ON mq.{stem} AFTER {event} AS"
                    f" IF SESSION_CONTEXT(N'fault') = N'{stem} {event}' AND EXISTS (SELECT * FROM {rows[event]})"
                    " THROW 60000, N'a fault', 1"
                )

    def fault(self, where: str) -> str:
        return f"EXEC sp_set_session_context N'fault', N'{where}'"

    def undoes(self, where: str) -> bool:
        # An error in a trigger spoils the whole transaction.
        return False
