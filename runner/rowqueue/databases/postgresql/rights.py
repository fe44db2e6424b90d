"""PostgreSQL: wrong owners and grants of an installed queue."""

import re
from functools import cache
from typing import Any

import psycopg

from ...install import contract
from .. import files
from ..base import ROLES


def problems(connection: psycopg.Connection[Any]) -> list[str]:
    """One line for each problem that running the procedure files and the grants again repairs."""
    found = [line for (line,) in connection.execute(_WRONG_RIGHTS, {"roles": [*ROLES]})]
    known = {role for (role,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'mq\\_%'")}
    query = "SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"
    may_create = connection.execute(query).fetchone() == (True,)
    there = connection.execute("SELECT to_regprocedure('mq.version()') IS NOT NULL").fetchone() == (True,)
    row = connection.execute("SELECT areas FROM mq.version()").fetchone() if there else None
    granted = _granted(row[0] if row else None)
    for role in ROLES:
        if role in known:
            rows = connection.execute(_WRONG_GRANTS, {"role": role, "granted": [*granted[role]]})
            found += [line for (line,) in rows]
        elif may_create:  # other users cannot repair this; `apply` reports it
            found.append(f"role {role} does not exist")
    readable = connection.execute("SELECT has_table_privilege(to_regclass('mq.polled'), 'SELECT')").fetchone()
    if readable == (True,):
        found += [line for (line,) in connection.execute(_RESTORED)]
    return found


@cache
def _granted(areas: str | None) -> dict[str, set[str]]:
    """What the grants of these areas name for each role: functions, tables and views. None: of all areas."""
    found: dict[str, set[str]] = {role: set() for role in ROLES}
    known = contract.load().areas.keys() & areas.split(",") if areas else None
    for roles, names in re.findall(r"grant_to\('([\w ]+)',\s+(.*?)\);", files.grants("postgresql", known), re.DOTALL):
        for role in roles.split():
            found[role] |= {*re.findall(r"\w+", names)}
    return found


def unsuitable(connection: psycopg.Connection[Any]) -> str | None:
    """Why this database cannot have the queue, if so."""
    info = connection.info
    if (encoding := info.parameter_status("server_encoding")) not in ("UTF8", None):
        return (
            f"database {info.dbname} has the encoding {encoding}, but the queue needs UTF8:"
            " create another database with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )
    for schema, table in (("mq", "installed"), ("mq_internal", "secret")):
        found = connection.execute(
            "SELECT n.nspowner::regrole::text FROM pg_namespace AS n WHERE n.nspname = %(schema)s"
            " AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = %(table)s)",
            {"schema": schema, "table": table},
        ).fetchone()
        if found is not None:
            return (
                f"another project has a schema {schema} in database {info.dbname}, owned by {found[0]}:"
                " install the queue in another database, or rename that schema"
            )
    return None


def warnings(connection: psycopg.Connection[Any]) -> list[str]:
    """Problems that only an administrator can repair."""
    found = [reason] if (reason := unsuitable(connection)) else []
    owner = connection.execute(
        "SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner"
        " WHERE n.nspname = 'mq' AND r.rolsuper"
    ).fetchone()
    if owner is not None:
        found.append(f"{owner[0]}, a superuser, owns the queue: install it as a role that only owns the database")
    found += [
        f"{role}, a member of pg_read_all_data, may read mq_internal.secret and so prove any right on a polling table"
        for (role,) in connection.execute(_SECRET_READERS)
    ]
    return found


# Rights of PUBLIC, objects that do not belong to the schema's owner, and rights of others in mq_internal. Users may
# grant the public functions, tables and views to their own roles.
_WRONG_RIGHTS = """\
WITH object AS (
    SELECT n.oid, n.nspname, 'schema ' || n.nspname AS name, n.nspowner AS owner,
        coalesce(n.nspacl, acldefault('n', n.nspowner)) AS acl
    FROM pg_namespace AS n
    WHERE n.nspname IN ('mq', 'mq_internal')
    UNION ALL
    SELECT n.oid, n.nspname, p.oid::regprocedure::text, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
    FROM pg_proc AS p
    JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname IN ('mq', 'mq_internal')
    UNION ALL
    SELECT n.oid, n.nspname, c.oid::regclass::text, c.relowner, coalesce(c.relacl, acldefault('r', c.relowner))
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname IN ('mq', 'mq_internal')
    WHERE c.relkind IN ('r', 'p', 'v')
)
SELECT format('%%s is owned by %%s, the schema by %%s', o.name, o.owner::regrole, n.nspowner::regrole)
FROM object AS o
JOIN pg_namespace AS n ON n.nspname = 'mq'
WHERE o.owner <> n.nspowner
UNION ALL
SELECT DISTINCT format('%%s may %%s %%s', CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
    CASE g.privilege_type WHEN 'USAGE' THEN 'use' WHEN 'SELECT' THEN 'read' ELSE lower(g.privilege_type) END, o.name)
FROM object AS o
CROSS JOIN LATERAL aclexplode(o.acl) AS g
WHERE g.grantee <> o.owner AND (g.grantee = 0 OR o.nspname = 'mq_internal')
    AND g.grantee <> ALL (ARRAY(SELECT r.oid FROM pg_roles AS r WHERE r.rolname = ANY (%(roles)s)))
UNION ALL
SELECT format('PUBLIC has %%s on columns of %%s', g.privilege_type, c.oid::regclass)
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname IN ('mq', 'mq_internal')
JOIN pg_attribute AS a ON a.attrelid = c.oid
CROSS JOIN LATERAL aclexplode(a.attacl) AS g
WHERE g.grantee = 0
"""


# The rights of one of the queue's roles that differ from the grants. It may have more rights on tables and views of mq.
_WRONG_GRANTS = """\
SELECT format('%%s lacks EXECUTE on %%s', %(role)s::text, p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND p.proname = ANY (%(granted)s)
    AND NOT (has_function_privilege(%(role)s, p.oid, 'EXECUTE') AND has_schema_privilege(%(role)s, n.oid, 'USAGE'))
UNION ALL
SELECT format('%%s may execute %%s', %(role)s::text, p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND p.proname <> ALL (%(granted)s)
    AND has_function_privilege(%(role)s, p.oid, 'EXECUTE') AND p.proowner <> %(role)s::regrole
UNION ALL
SELECT format('%%s may not read %%s', %(role)s::text, c.oid::regclass)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'mq' AND c.relname = ANY (%(granted)s) AND c.relkind IN ('r', 'p', 'v')
    AND NOT has_table_privilege(%(role)s, c.oid, 'SELECT')
UNION ALL
SELECT format('%%s has %%s on %%s', %(role)s::text, g.privilege_type, c.oid::regclass)
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL aclexplode(c.relacl) AS g
WHERE n.nspname = 'mq_internal' AND g.grantee = %(role)s::regrole AND g.grantee <> c.relowner
"""


# Roles that are not superusers and get at the secret without a grant on it.
_SECRET_READERS = """\
SELECT r.rolname
FROM pg_roles AS r
JOIN pg_class AS c ON c.relname = 'secret'
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = 'mq_internal'
WHERE NOT r.rolsuper AND r.rolname NOT LIKE 'pg\\_%' AND NOT pg_has_role(r.oid, c.relowner, 'USAGE')
    AND has_schema_privilege(r.oid, n.oid, 'USAGE') AND has_table_privilege(r.oid, c.oid, 'SELECT')
    AND pg_has_role(r.oid, 'pg_read_all_data', 'USAGE')
ORDER BY 1
"""


_RESTORED = """\
SELECT format('polling table %s is identified only by its name since a restore', name)
FROM mq.polled WHERE queue_id <> 'mq.polled'::regclass
"""
