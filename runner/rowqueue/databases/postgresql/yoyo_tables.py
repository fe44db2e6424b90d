"""PostgreSQL: the schema of yoyo-migrations' tables, and our rows in them."""

from typing import Any

import psycopg
from psycopg import sql

from .. import migrations


def _schemas(connection: psycopg.Connection[Any], names: set[str]) -> list[str]:
    """The schemas where yoyo's tables have migrations with these names, independent of the current search path."""
    schemas = connection.execute(
        "SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE c.relname = '_yoyo_migration' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT')"
        " ORDER BY n.nspname <> 'public', n.nspname"
    ).fetchall()
    found = []
    for (schema,) in schemas:
        table = sql.Identifier(schema, "_yoyo_migration")
        query = sql.SQL("SELECT 1 FROM {} WHERE migration_id = ANY (%s) LIMIT 1").format(table)
        if connection.execute(query, [[*names]]).fetchone():
            found.append(schema)
    return found


def schema_of(connection: psycopg.Connection[Any]) -> str:
    """The schema of yoyo's tables, or the one where to create them: public, if it exists."""
    names = {path.stem for path in migrations.released("postgresql")}
    if connection.execute("SELECT has_table_privilege(to_regclass('mq.installed'), 'SELECT')").fetchone() == (True,):
        names |= {name for (name,) in connection.execute("SELECT name FROM mq.installed WHERE kind = 'migration'")}
    if found := _schemas(connection, names):
        return found[0]
    row = connection.execute(
        "SELECT CASE WHEN to_regnamespace('public') IS NULL THEN current_schema() ELSE 'public' END"
    ).fetchone()
    return str(row[0]) if row and row[0] else "public"


def forget(connection: psycopg.Connection[Any], names: set[str]) -> None:
    """Delete our rows from yoyo's tables; drop the tables if no other project uses them."""
    for schema in _schemas(connection, names):
        for table in ("_yoyo_migration", "_yoyo_log"):
            statement = sql.SQL("DELETE FROM {} WHERE migration_id = ANY (%s)").format(sql.Identifier(schema, table))
            connection.execute(statement, [[*names]])
        left = sql.SQL("SELECT 1 FROM {} UNION SELECT 1 FROM {}").format(
            sql.Identifier(schema, "_yoyo_migration"), sql.Identifier(schema, "_yoyo_log")
        )
        if connection.execute(left).fetchone() is None:
            tables = sql.SQL(", ").join(sql.Identifier(schema, table) for table in migrations.YOYO_TABLES)
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(tables))
