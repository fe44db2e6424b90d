"""PostgreSQL: wrong owners and grants of an installed queue."""

import re
from functools import cache
from typing import Any

import psycopg

from ... import contract
from .. import files
from ..base import ROLES


def problems(connection: psycopg.Connection[Any]) -> list[str]:
    """One line for each problem that running the procedure files and the grants again repairs."""
    every = [*contract.load().procedures]
    found = [line for (line,) in connection.execute(_WRONG_RIGHTS)]
    others = connection.execute(_OTHERS_GRANTS, {"public": every, "roles": [*ROLES]})
    found += [line for (line,) in others]
    known = {role for (role,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'mq\\_%'")}
    query = "SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"
    may_create = connection.execute(query).fetchone() == (True,)
    for role in ROLES:
        if role not in known:
            # A user who may not create roles cannot repair this; `apply` reports it.
            found += [f"role {role} does not exist"] if may_create else []
            continue
        calls = [name for name, call in contract.load().procedures.items() if role in call.roles]
        rows = connection.execute(_WRONG_GRANTS, {"role": role, "calls": calls + _own_steps(role)})
        found += [line for (line,) in rows]
        reads = [*contract.load().reads.get(role, ())]
        found += [line for (line,) in connection.execute(_WRONG_READS, {"role": role, "reads": reads})]
    readable = connection.execute("SELECT has_table_privilege(to_regclass('mq.polled'), 'SELECT')").fetchone()
    if readable == (True,):
        found += [line for (line,) in connection.execute(_RESTORED)]
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


@cache
def _own_steps(role: str) -> list[str]:
    """The internal procedures that a role may call: procedures that it calls run with its own rights."""
    text = files.grants("postgresql")
    lists = dict(re.findall(r"c_(\w+) CONSTANT text\[\] := ARRAY\[(.*?)\];", text, re.DOTALL))
    names = {
        "mq_consumer": ("helpers", "consumer"),
        "mq_operator": ("helpers", "operator"),
        "mq_viewer": ("viewer",),
    }.get(role, ())
    return [step for name in names for step in re.findall(r"'(\w+)'", lists[name])]


# Rights of PUBLIC, and objects that do not belong to the schema's owner.
_WRONG_RIGHTS = """\
SELECT format('PUBLIC may execute %s', p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND has_function_privilege('public', p.oid, 'EXECUTE')
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
SELECT format('%s may use %s', CASE o.grantee WHEN 0 THEN 'PUBLIC' ELSE o.grantee::regrole::text END, o.name)
FROM (
    SELECT g.grantee, n.nspowner AS owner, 'schema ' || n.nspname AS name
    FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS g
    WHERE n.nspname = 'mq_internal' AND NOT EXISTS (
        SELECT FROM pg_roles AS r
        WHERE r.oid = g.grantee AND r.rolname IN ('mq_producer', 'mq_consumer', 'mq_operator', 'mq_viewer')
    )
    UNION
    SELECT g.grantee, c.relowner, c.oid::regclass::text
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL aclexplode(c.relacl) AS g WHERE n.nspname = 'mq_internal'
) AS o
WHERE o.grantee <> o.owner
UNION ALL
SELECT format('schema mq_internal is owned by %s, schema mq by %s', i.nspowner::regrole, n.nspowner::regrole)
FROM pg_namespace AS i JOIN pg_namespace AS n ON n.nspname = 'mq'
WHERE i.nspname = 'mq_internal' AND i.nspowner <> n.nspowner
UNION ALL
SELECT format('%s is owned by %s, the schema by %s', p.oid::regprocedure, p.proowner::regrole, n.nspowner::regrole)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND p.proowner <> n.nspowner
UNION ALL
SELECT format('%s is owned by %s, the schema by %s', c.oid::regclass, c.relowner::regrole, n.nspowner::regrole)
FROM pg_class AS c
JOIN pg_namespace AS i ON i.oid = c.relnamespace AND i.nspname IN ('mq', 'mq_internal')
JOIN pg_namespace AS n ON n.nspname = 'mq'
WHERE c.relkind IN ('r', 'p', 'v') AND c.relowner <> n.nspowner
"""


_WRONG_GRANTS = """\
SELECT format('%%s lacks EXECUTE on %%s', %(role)s::text, p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND p.proname = ANY (%(calls)s)
    AND NOT has_function_privilege(%(role)s, p.oid, 'EXECUTE')
UNION ALL
SELECT format('%%s may execute %%s', %(role)s::text, p.oid::regprocedure)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('mq', 'mq_internal') AND p.proname <> ALL (%(calls)s)
    AND has_function_privilege(%(role)s, p.oid, 'EXECUTE') AND p.proowner <> %(role)s::regrole
UNION ALL
SELECT format('%%s lacks USAGE on schema mq', %(role)s::text) FROM pg_namespace AS n
WHERE n.nspname = 'mq' AND NOT has_schema_privilege(%(role)s, n.oid, 'USAGE')
"""


_WRONG_READS = """\
SELECT format('%%s may not read mq.%%s', %(role)s::text, r.name)
FROM unnest(%(reads)s::text[]) AS r (name)
WHERE NOT coalesce(has_table_privilege(%(role)s, to_regclass('mq.' || r.name), 'SELECT'), true)
"""


# Users may grant the procedures of the contract to their own roles, but not the internal ones.
_OTHERS_GRANTS = """\
SELECT DISTINCT format('%%s may execute %%s', g.grantee::regrole, p.oid::regprocedure)
FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
CROSS JOIN LATERAL aclexplode(p.proacl) AS g
WHERE n.nspname IN ('mq', 'mq_internal') AND p.proname <> ALL (%(public)s) AND g.grantee NOT IN (0, p.proowner)
    AND g.grantee <> ALL (ARRAY(SELECT r.oid FROM pg_roles AS r WHERE r.rolname = ANY (%(roles)s)))
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
