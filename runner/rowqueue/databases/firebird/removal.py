"""Firebird: finding and dropping the queue's objects."""

import re
from collections.abc import Iterable

from ..base import ROLES
from ..files import procedures
from ..migrations import released
from .connection import Connection, rows
from .statements import CATALOG

# The triggers of watched and formerly watched tables: they have a right that no other trigger has.
WATCHING = """\
SELECT TRIM(t.rdb$trigger_name) FROM rdb$triggers AS t JOIN rdb$user_privileges AS p ON p.rdb$user = t.rdb$trigger_name
WHERE p.rdb$user_type = 2 AND p.rdb$relation_name = 'IMQ_SEND_CHANGES'"""

ADOPTED = """\
SELECT p.name, IIF(r.rdb$owner_name = CURRENT_USER, '', TRIM(r.rdb$owner_name))
FROM mq_polled AS p
JOIN rdb$relations AS r ON r.rdb$relation_name = p.table_name AND r.rdb$owner_name = p.table_owner
WHERE r.rdb$owner_name = CURRENT_USER
    OR EXISTS (SELECT 1 FROM mq_polled_row AS e WHERE e.name = p.name AND e.active = 1)
ORDER BY p.name"""

DEPENDENTS = """\
SELECT DISTINCT DECODE(d.rdb$dependent_type, 1, 'view', 2, 'trigger', 3, 'computed column of', 5, 'procedure', 15,
    'function', 'object'), TRIM(d.rdb$dependent_name)
FROM rdb$dependencies AS d
WHERE (d.rdb$depended_on_name STARTING WITH 'MQ_' OR d.rdb$depended_on_name STARTING WITH 'IMQ_')
    AND d.rdb$dependent_name NOT STARTING WITH 'MQ_' AND d.rdb$dependent_name NOT STARTING WITH 'IMQ_'
    AND d.rdb$dependent_name NOT STARTING WITH 'CHECK_' AND d.rdb$dependent_name NOT STARTING WITH 'RDB$'
ORDER BY 1, 2"""
_CREATED = re.compile(rf"\bCREATE (?:OR ALTER |GLOBAL TEMPORARY )?({'|'.join(CATALOG)}) (i?mq_\w+)")


def existing(connection: Connection, kind: str, names: Iterable[str]) -> list[str]:
    """Which of these objects of a kind are in the database."""
    column = CATALOG[kind]
    condition = {"VIEW": " AND rdb$relation_type = 1", "TABLE": " AND rdb$relation_type <> 1"}.get(kind, "")
    found = rows(connection, f"SELECT TRIM(rdb${column}_name) FROM rdb${column}s WHERE rdb$system_flag = 0{condition}")
    return [name for name in names if (name,) in {*found}]


def drop(connection: Connection, recorded: Iterable[str]) -> None:
    """Drop what the files of this release create, and the procedures that are recorded."""
    files = [*released("firebird"), *procedures("firebird").rglob("*.sql")]
    created = [found for path in files for found in _CREATED.findall(path.read_text("utf-8"))]
    created += [
        (kind, f"{prefix}{name}")
        for kind in ("PROCEDURE", "FUNCTION", "VIEW")
        for name in recorded
        for prefix in ("mq_", "imq_")
    ]
    created += [("ROLE", role) for role in ROLES]
    drops = [f"DROP TRIGGER {name}" for (name,) in rows(connection, WATCHING)]
    for kind in CATALOG:
        names = sorted({name.upper() for found, name in created if found == kind})
        drops += [f"DROP {kind} {name}" for name in existing(connection, kind, names)]
    # In one transaction, because dependencies are checked when it ends. Either all are dropped, or none if a session
    # still uses one of them.
    for statement in drops:
        connection.execute_immediate(statement)
    connection.commit()
