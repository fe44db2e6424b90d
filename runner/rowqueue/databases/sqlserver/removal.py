"""SQL Server: removing the queue from a database."""

from collections.abc import Iterable

from ..base import ROLES
from ..migrations import YOYO_TABLES
from .connection import Cursor
from .rights import REPORTER

# In the order in which they can be dropped: types after the objects that use them as parameters.
_KINDS = {
    "V": "VIEW",
    "P": "PROCEDURE",
    "FN": "FUNCTION",
    "IF": "FUNCTION",
    "TF": "FUNCTION",
    "U": "TABLE",
    "SO": "SEQUENCE",
    "SN": "SYNONYM",
}


def drop_schema(cursor: Cursor) -> None:
    """Drop the queue's schemas with all objects, and the triggers of watched tables, which would fail without them."""
    cursor.execute(
        "SELECT QUOTENAME(OBJECT_SCHEMA_NAME(object_id)), QUOTENAME(name) FROM sys.triggers"
        " WHERE name = CONCAT(N'mq_watch_', parent_id)"
    )
    for schema, trigger in cursor.fetchall():
        cursor.execute(f"DROP TRIGGER {schema}.{trigger}")
    cursor.execute(
        "SELECT RTRIM(type), CONCAT(SCHEMA_NAME(schema_id), N'.', QUOTENAME(name)) FROM sys.objects"
        " WHERE schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal')) AND parent_object_id = 0 ORDER BY name"
    )
    found = cursor.fetchall()
    for known, kind in _KINDS.items():
        for name in [name for code, name in found if code == known]:
            cursor.execute(f"DROP {kind} IF EXISTS {name}")
    cursor.execute("SELECT QUOTENAME(name) FROM sys.types WHERE is_user_defined = 1 AND schema_id = SCHEMA_ID(N'mq')")
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP TYPE mq.{name}")
    cursor.execute("DROP SCHEMA IF EXISTS mq")
    cursor.execute("DROP SCHEMA IF EXISTS mq_internal")


def forget_migrations(cursor: Cursor, migrations: Iterable[str]) -> None:
    """Delete our rows from yoyo's tables; drop the tables if no other project uses them."""
    cursor.execute(
        "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = N'dbo' AND TABLE_NAME IN %s",
        (YOYO_TABLES,),
    )
    found = {name for (name,) in cursor.fetchall()}
    for table in {"_yoyo_migration", "_yoyo_log"} & found:
        cursor.execute(f"DELETE FROM dbo.{table} WHERE migration_id IN %s", (tuple(migrations),))
    for table in {"_yoyo_migration", "_yoyo_log"} & found:
        cursor.execute(f"SELECT TOP (1) 1 FROM dbo.{table}")
        if cursor.fetchone():
            return
    for table in sorted(found):
        cursor.execute(f"DROP TABLE dbo.{table}")


def drop_roles(cursor: Cursor) -> None:
    """Remove the members of the queue's roles, then drop the roles. They belong to this database only."""
    cursor.execute(
        "SELECT r.name, QUOTENAME(m.name) FROM sys.database_role_members AS x"
        " INNER JOIN sys.database_principals AS r ON r.principal_id = x.role_principal_id"
        " INNER JOIN sys.database_principals AS m ON m.principal_id = x.member_principal_id WHERE r.name IN %s",
        (ROLES,),
    )
    for role, member in cursor.fetchall():
        cursor.execute(f"ALTER ROLE {role} DROP MEMBER {member}")
    cursor.execute("SELECT name FROM sys.database_principals WHERE type = 'R' AND name IN %s", (ROLES,))
    for (role,) in cursor.fetchall():
        cursor.execute(f"DROP ROLE {role}")
    cursor.execute(f"DROP USER IF EXISTS {REPORTER}")
