"""Firebird: yoyo's own tables as yoyo 9 makes them, for `yoyo apply` and `runner apply` to continue from."""

import time
from collections.abc import Iterable

from firebird.driver import Error

from .connection import PATIENCE, Connection, cursor_of, forget_transaction, rows
from .errors import is_taken
from .removal import existing

TABLES = {
    "yoyo_lock": '"locked" INT DEFAULT 1 NOT NULL, "ctime" TIMESTAMP, "pid" INT NOT NULL, PRIMARY KEY ("locked")',
    "_yoyo_log": """\
"id" VARCHAR(36) NOT NULL, "migration_hash" VARCHAR(64), "migration_id" VARCHAR(255), "operation" VARCHAR(10),
    "username" VARCHAR(255), "hostname" VARCHAR(255), "comment" VARCHAR(255), "created_at_utc" TIMESTAMP,
    PRIMARY KEY ("id")""",
    "_yoyo_version": '"version" INT NOT NULL PRIMARY KEY, "installed_at_utc" TIMESTAMP',
    "_yoyo_migration": """\
"migration_hash" VARCHAR(64) NOT NULL, "migration_id" VARCHAR(255), "applied_at_utc" TIMESTAMP,
    PRIMARY KEY ("migration_hash")""",
}
VERSION = (
    'UPDATE OR INSERT INTO "_yoyo_version" ("version", "installed_at_utc") VALUES (2, {time}) MATCHING ("version")'
)


def make(connection: Connection) -> None:
    """Create yoyo's missing tables. Other processes may be doing the same."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = existing(connection, "TABLE", TABLES)
            for name, columns in TABLES.items():
                if name not in found:
                    connection.execute_immediate(f'CREATE TABLE "{name}" ({columns})')
            connection.commit()
            if not rows(connection, 'SELECT 1 FROM "_yoyo_version"'):
                connection.execute_immediate(VERSION.format(time="CAST('NOW' AS timestamp)"))
                connection.commit()
            return
        except Error as error:
            forget_transaction(connection.main_transaction)
            if not is_taken(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def forget(connection: Connection, migrations: Iterable[str]) -> None:
    """Delete our rows from yoyo's tables."""
    with cursor_of(connection.main_transaction) as cursor:
        for table in ("_yoyo_migration", "_yoyo_log"):
            for migration in migrations:
                cursor.execute(f'DELETE FROM "{table}" WHERE "migration_id" = ?', [migration])
    connection.commit()


def drop(connection: Connection) -> None:
    """Drop yoyo's tables if no other project uses them."""
    if not any(rows(connection, f'SELECT FIRST 1 1 FROM "{table}"') for table in ("_yoyo_migration", "_yoyo_log")):
        for table in TABLES:
            connection.execute_immediate(f'DROP TABLE "{table}"')
        connection.commit()
