"""MySQL and MariaDB: removing the queue from a database."""

import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import ER  # type: ignore[import-untyped]

from ...install import contract
from ..base import ROLES
from ..migrations import YOYO_TABLES, tables
from .errors import line, number
from .rights import OWNER
from .script import LOCK_ROW

_log = logging.getLogger(__name__)

# PROCESS and the performance schema are for queue_health and transaction_level, SELECT on some columns for require_use.
_OF_NO_DATABASE = re.compile(
    r"GRANT (USAGE|PROCESS) ON \*\.\* |GRANT SELECT \([^)]*\) ON `mysql`\.|GRANT SELECT ON `performance_schema`\."
)


def existing(cursor: Any, kind: str, names: Iterable[str]) -> list[str]:
    """Those of the named `tables`, `views` or `routines` that exist, ordered by name."""
    column = "routine" if kind == "routines" else "table"
    cursor.execute(
        f"SELECT {column}_name FROM information_schema.{kind}"
        f" WHERE {column}_schema = DATABASE() AND {column}_name IN %s ORDER BY 1",
        [[*names]],
    )
    return [name for (name,) in cursor.fetchall()]


def drop_objects(cursor: Any, recorded: Iterable[str]) -> None:
    """Drop the views, procedures and tables of this release and those that are recorded."""
    objects = [f"{prefix}{name}" for name in {*contract.load().files("mysql"), *recorded} for prefix in ("mq_", "imq_")]
    # Without the queue, the triggers of watched tables would make every write fail.
    cursor.execute(_TRIGGERS)
    for schema, trigger in cursor.fetchall():
        cursor.execute("DROP TRIGGER {}.{}".format(*(f"`{name.replace('`', '``')}`" for name in (schema, trigger))))
    for procedure in existing(cursor, "routines", objects):
        cursor.execute(f"DROP PROCEDURE {procedure}")
    for kind, names in (("view", objects), ("table", tables("mysql"))):
        # The records last: an interrupted removal can be continued.
        for name in sorted(existing(cursor, f"{kind}s", names), key=lambda name: name == "mq_installed"):
            for account in (OWNER, *ROLES):  # rights stay after DROP TABLE
                with suppress(pymysql.ProgrammingError, pymysql.OperationalError):  # it has none
                    cursor.execute(f"REVOKE ALL PRIVILEGES ON {name} FROM {account}")
            cursor.execute(f"DROP {kind.upper()} {name}")


def forget_migrations(cursor: Any, migrations: Iterable[str]) -> None:
    """Delete our rows from yoyo's tables; drop the tables if no other project uses them."""
    found = existing(cursor, "tables", YOYO_TABLES)
    left = 0
    for table in {"_yoyo_migration", "_yoyo_log"}.intersection(found):
        cursor.execute(f"DELETE FROM {table} WHERE migration_id IN %s", [[*migrations, LOCK_ROW]])
        left += cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")
    if not left:
        for table in found:
            cursor.execute(f"DROP TABLE {table}")


def drop_accounts(cursor: Any) -> None:
    """Drop the roles and the procedures' owner, which are server-wide. One with rights in another database stays."""
    for kind, account in [("ROLE", role) for role in ROLES] + [("USER", OWNER)]:
        try:
            cursor.execute(f"SHOW GRANTS FOR {account}")
            if all(_OF_NO_DATABASE.match(line) for (line,) in cursor.fetchall()):
                cursor.execute(f"DROP {kind} {account}")
            else:
                _log.warning("%s %s stays: it has rights in another database", kind.lower(), account)
        except pymysql.Error as error:
            if number(error) != ER.NONEXISTING_GRANT:  # it is not there
                _log.warning("%s %s stays: %s", kind.lower(), account, line(error))


_TRIGGERS = """\
SELECT trigger_schema, trigger_name FROM information_schema.triggers
WHERE definer = 'mq_owner@localhost'
    AND (LOCATE(CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.imq_send_changes('), action_statement) > 0
        OR trigger_schema = DATABASE() AND LOCATE('CALL imq_send_changes(', action_statement) > 0)"""
