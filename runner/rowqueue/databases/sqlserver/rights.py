"""SQL Server: wrong owners and grants of an installed queue."""

from typing import Any

from ...install import contract
from ..base import ROLES, NotAllowed

REPORTER = "mq_reporter"  # the user that runs triggers on watched tables of another owner than the queue's

_TYPES = (
    *(("items", "mq_producer"), ("items", "mq_consumer"), ("items", "mq_operator")),
    *(("places", "mq_producer"), ("places", "mq_consumer"), ("places", "mq_operator")),
    *(("pieces", "mq_consumer"), ("pieces", "mq_operator"), ("pieces", "mq_viewer")),
    *(("failures", "mq_consumer"), ("failures", "mq_operator"), ("events", "public")),
)

_OWNED = """\
SELECT CONCAT(SCHEMA_NAME(o.schema_id), N'.', o.name,
    N' has another owner than schema mq, which breaks the ownership chain to the tables')
FROM sys.objects AS o
WHERE o.schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))
    AND o.principal_id IS NOT NULL AND o.parent_object_id = 0"""

# Rights that a DBA granted to other users and roles are not checked.
_ON_SCHEMA = """\
SELECT g.name, p.permission_name, SCHEMA_NAME(p.major_id)
FROM sys.database_permissions AS p
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 3 AND p.major_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal')) AND p.state IN ('G', 'W')
    AND g.name IN (N'public', N'guest', N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer', N'mq_reporter')"""

_ON_OBJECTS = """\
SELECT g.name, p.permission_name, CONCAT(SCHEMA_NAME(o.schema_id), N'.', o.name)
FROM sys.database_permissions AS p
INNER JOIN sys.objects AS o ON o.object_id = p.major_id
    AND o.schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 1 AND p.state IN ('G', 'W')
    AND g.name IN (N'public', N'guest', N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer', N'mq_reporter')"""

_THERE = """\
SELECT CONCAT(SCHEMA_NAME(o.schema_id), N'.', o.name)
FROM sys.objects AS o
WHERE o.schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))
UNION ALL
SELECT CONCAT(N'type mq.', y.name) FROM sys.types AS y WHERE y.schema_id = SCHEMA_ID(N'mq')"""

_ON_TYPES = """\
SELECT g.name, p.permission_name, y.name
FROM sys.database_permissions AS p
INNER JOIN sys.types AS y ON y.user_type_id = p.major_id AND y.schema_id = SCHEMA_ID(N'mq')
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 6 AND p.state IN ('G', 'W')"""

_SEES = "SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DEFINITION'), USER_NAME(), DB_NAME()"
_NO_REPORTER = f"SELECT 1 WHERE USER_ID(N'{REPORTER}') IS NULL"

# After a restore, the dbo of the database is a login of the old server and may differ from the owner that this server
# records. In Azure SQL Database (5) and SQL database in Fabric (12), logins are not visible inside a database.
_WARNED = """\
SELECT CONCAT(N'the owner of database ', d.name, N' has no login on this server or differs from the owner that the',
    N' server records, as after a restore: calls on polling tables and feeds may fail with 15517: ALTER AUTHORIZATION',
    N' ON DATABASE::', QUOTENAME(d.name), N' TO ', QUOTENAME(SUSER_SNAME(0x01)))
FROM sys.databases AS d
INNER JOIN sys.database_principals AS u ON u.principal_id = 1
WHERE d.name = DB_NAME() AND CAST(SERVERPROPERTY('EngineEdition') AS int) NOT IN (5, 12)
    AND (SUSER_SNAME(d.owner_sid) IS NULL OR SUSER_SNAME(u.sid) IS NULL OR d.owner_sid <> u.sid)
UNION ALL
SELECT CONCAT(N'user ', QUOTENAME(u.name), N' has no login on this server, as after a restore: ', CASE
        WHEN SUSER_ID(u.name) IS NULL THEN CONCAT(N'CREATE LOGIN ', QUOTENAME(u.name),
            N' WITH PASSWORD = N''...'', SID = ', CONVERT(nvarchar(200), u.sid, 1))
        ELSE CONCAT(N'ALTER USER ', QUOTENAME(u.name), N' WITH LOGIN = ', QUOTENAME(u.name))
    END)
FROM sys.database_principals AS u
WHERE u.type = 'S' AND u.authentication_type = 1 AND u.principal_id > 4 AND SUSER_SNAME(u.sid) IS NULL
    AND CAST(SERVERPROPERTY('EngineEdition') AS int) NOT IN (5, 12)
    AND EXISTS (
        SELECT *
        FROM sys.database_role_members AS x
        INNER JOIN sys.database_principals AS r ON r.principal_id = x.role_principal_id
        WHERE x.member_principal_id = u.principal_id
            AND r.name IN (N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer')
    )
UNION ALL
SELECT CONCAT(N'schema ', name, N' belongs to ', USER_NAME(principal_id), N', but only dbo sees every security policy',
    N' on a polling table: ALTER AUTHORIZATION ON SCHEMA::', name, N' TO dbo, which drops the grants;',
    N' then runner apply')
FROM sys.schemas
WHERE name IN (N'mq', N'mq_internal') AND principal_id <> 1
UNION ALL
SELECT CONCAT(N'database ', DB_NAME(), N' is TRUSTWORTHY: on the whole server, code that runs as dbo has the rights',
    N' of the login that owns the database: ALTER DATABASE ', QUOTENAME(DB_NAME()), N' SET TRUSTWORTHY OFF')
FROM sys.databases
WHERE name = DB_NAME() AND is_trustworthy_on = 1"""


def problems(connection: Any) -> list[str]:
    """One line for each problem that running the procedure files and the grants again repairs.

    Raises NotAllowed for a user who can see only their own rights.
    """
    [(sees, user, database)] = _rows(connection, _SEES)
    if not sees:
        raise NotAllowed(
            f"user {user} needs the right VIEW DEFINITION on database {database} to see who holds which right"
        )
    found = [line for (line,) in _rows(connection, _OWNED)]
    there = {name for (name,) in _rows(connection, _THERE)} | {"schema mq", "schema mq_internal"}
    procedures = contract.load().procedures.items()
    wanted = {(role, "EXECUTE", f"mq.{name}") for name, procedure in procedures for role in procedure.roles}
    wanted |= {(role, "SELECT", f"mq.{name}") for role, names in contract.load().reads.items() for name in names}
    wanted |= {(role, "VIEW DEFINITION", f"schema {name}") for role in ROLES for name in ("mq", "mq_internal")}
    wanted |= {(role, "EXECUTE", f"type mq.{name}") for name, role in _TYPES}
    wanted |= {(role, "EXECUTE", "mq_internal.installed_files") for role in ROLES if role != "mq_producer"}
    wanted |= {(REPORTER, "EXECUTE", "mq_internal.send_changes"), (REPORTER, "SELECT", "mq.subscription")}
    wanted = {row for row in wanted if row[2] in there}
    if any(who == REPORTER for who, _, _ in wanted) and _rows(connection, _NO_REPORTER):
        found.append(f"the user {REPORTER} does not exist; triggers of watched tables may run as this user")
        wanted = {row for row in wanted if row[0] != REPORTER}
    held = {(who, right, f"schema {name}") for who, right, name in _rows(connection, _ON_SCHEMA)}
    held |= {*_rows(connection, _ON_OBJECTS)}
    held |= {(who, right, f"type mq.{name}") for who, right, name in _rows(connection, _ON_TYPES)}
    # Other users' rights on the types are harmless: they neither show nor change data.
    too_many = sorted(row for row in held - wanted if not row[2].startswith("type"))
    found += [f"{who} has {right} on {what}" for who, right, what in too_many]
    return found + [f"{who} lacks {right} on {what}" for who, right, what in sorted(wanted - held)]


def warnings(connection: Any) -> list[str]:
    """Problems that only an administrator can repair, each with the statement to run."""
    return [line for (line,) in _rows(connection, _WARNED)]


def _rows(connection: Any, query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
