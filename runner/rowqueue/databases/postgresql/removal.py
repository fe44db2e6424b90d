"""PostgreSQL: removing the queue from a database, and what stands in the way."""

import logging
from typing import Any

import psycopg

from .errors import line

_log = logging.getLogger(__name__)

ADOPTED = """\
SELECT p.name, CASE r.rolname WHEN current_user THEN '' ELSE r.rolname END
FROM mq.polled AS p
INNER JOIN pg_class AS c
    ON c.oid = CASE p.queue_id
        WHEN 'mq.polled'::regclass::oid THEN p.table_id ELSE mq_internal.relation_of(p.table_schema, p.table_name)
    END
INNER JOIN pg_roles AS r ON r.oid = c.relowner
WHERE r.rolname = current_user OR EXISTS (SELECT FROM mq.polled_row AS e WHERE e.name = p.name AND e.active)
ORDER BY p.name
"""

# Objects that would be dropped with the schema, except the triggers of watched tables, which are the queue's own.
DEPENDENTS = """\
WITH own AS (
    SELECT 'pg_class'::regclass AS classid, oid FROM pg_class
    WHERE relnamespace IN (to_regnamespace('mq'), to_regnamespace('mq_internal'))
    UNION ALL SELECT 'pg_proc'::regclass, oid FROM pg_proc
    WHERE pronamespace IN (to_regnamespace('mq'), to_regnamespace('mq_internal'))
    UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = to_regnamespace('mq')
), used AS (
    SELECT d.classid, d.objid, d.objsubid, coalesce(r.ev_class, a.adrelid, c.conrelid) AS relation
    FROM pg_depend AS d
    INNER JOIN own AS o ON o.classid = d.refclassid AND o.oid = d.refobjid
    LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_attrdef AS a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
    LEFT JOIN pg_constraint AS c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid
    WHERE d.deptype = 'n' AND d.classid <> 'pg_trigger'::regclass
)
SELECT DISTINCT CASE
    WHEN u.classid = 'pg_rewrite'::regclass THEN pg_describe_object('pg_class'::regclass, u.relation, 0)
    ELSE pg_describe_object(u.classid, u.objid, u.objsubid)
END
FROM used AS u
WHERE NOT EXISTS (
    SELECT 1 FROM own AS o
    WHERE (o.classid = u.classid AND o.oid = u.objid) OR (o.classid = 'pg_class'::regclass AND o.oid = u.relation)
)
"""


def drop_role(connection: psycopg.Connection[Any], role: str) -> None:
    """Drop a role. Roles are server-wide: one that is used in another database stays."""
    try:
        with connection.transaction():
            connection.execute(f"DROP ROLE IF EXISTS {role}")
    except (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InsufficientPrivilege) as error:
        _log.warning("role %s stays: %s", role, line(error))
