"""SQL Server: checks that a database can hold the queue and that a user may install it."""

import re

from ..base import DatabaseError, NotAllowed
from .babelfish import is_babelfish
from .connection import Connection

_LEAST_VERSION = (13, 0, 4001)  # 2016 SP1, the first with CREATE OR ALTER
LEAST_LEVEL = 130

_SYSTEM = ("master", "model", "msdb", "tempdb")

_IN_DATABASE = (
    *("CREATE SCHEMA", "CREATE TABLE", "CREATE TYPE", "CREATE PROCEDURE", "CREATE FUNCTION", "CREATE VIEW"),
    *("CREATE ROLE", "ALTER ANY USER"),
)
_AZURE = (5, 8, 12)  # editions whose version is not checked: SQL Database, Managed Instance, SQL database in Fabric


def check(connection: Connection) -> None:
    """Raise DatabaseError for a server that is too old or a system database, and NotAllowed with the missing rights."""
    name = connection.command("SELECT DB_NAME()")
    if str(name).lower() in _SYSTEM:
        raise DatabaseError(
            f"{name} is the server's own database: CREATE DATABASE for the queue and name that one in the URL"
        )
    if connection.command(_FOREIGN) is not None:
        raise DatabaseError(
            f"another project has a schema mq in database {name}: install the queue in another database, or rename that"
            " schema"
        )
    # Babelfish reports the version of an old SQL Server and has few of these rights.
    if is_babelfish(connection):
        return
    with connection.cursor() as cursor:
        cursor.execute(_SERVER)
        version, edition, level, user, database = cursor.fetchone()
        build = tuple(int(part) for part in re.findall(r"\d+", version or "")[:3])
        if edition not in _AZURE and build < _LEAST_VERSION:
            least = ".".join(map(str, _LEAST_VERSION))
            raise DatabaseError(f"the queue needs SQL Server 2016 SP1 (build {least}) or later: this is {version}")
        if level is not None and level < LEAST_LEVEL:
            raise DatabaseError(
                f"database {database} has compatibility level {level}, but the queue needs {LEAST_LEVEL}:"
                f" ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = {LEAST_LEVEL}"
            )
        here = [f"HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', '{right}')" for right in _IN_DATABASE]
        cursor.execute(f"SELECT {', '.join(here)}, HAS_PERMS_BY_NAME(N'dbo', 'SCHEMA', 'ALTER')")
        *found, in_schema = cursor.fetchone()
    if missing := [right for right, has in zip(_IN_DATABASE, found, strict=True) if not has]:
        raise NotAllowed(f"user {user} needs the right {', '.join(missing)} on database {database} to install")
    if not in_schema:  # yoyo's tables are in it
        raise NotAllowed(f"user {user} needs the right ALTER on schema dbo to install")


_FOREIGN = (
    "SELECT SCHEMA_ID(N'mq') AS id WHERE OBJECT_ID(N'mq.installed', N'U') IS NULL AND SCHEMA_ID(N'mq') IS NOT NULL"
)

_SERVER = """\
SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)), CAST(SERVERPROPERTY('EngineEdition') AS int),
    CAST((SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME()) AS int), USER_NAME(), DB_NAME()"""
