"""Firebird: wrong rights of an installed queue: of owners, PUBLIC, the queue's roles and its procedures."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...install import contract
from .. import files
from ..base import ROLES
from .connection import Connection, rows

_VERBS = {"X": "execute", "G": "use", "S": "read"}
_ROLES = tuple(role.upper() for role in ROLES)
# All objects with names like ours, their kinds as in rdb$user_privileges, and their owners.
_OBJECTS = " UNION ALL ".join(
    f"SELECT TRIM(rdb${column}_name), {number}, TRIM(rdb$owner_name) FROM rdb${column}s"
    f" WHERE (rdb${column}_name STARTING WITH 'MQ_' OR rdb${column}_name STARTING WITH 'IMQ_'){condition}"
    for column, number, condition in (
        ("relation", "IIF(rdb$view_blr IS NULL, 0, 1)", ""),
        ("procedure", "5", " AND rdb$package_name IS NULL"),
        ("exception", "7", ""),
        ("generator", "14", ""),
        ("function", "15", " AND rdb$package_name IS NULL"),
    )
)
_EVERYBODY = """\
SELECT DISTINCT TRIM(rdb$relation_name), rdb$object_type, TRIM(rdb$privilege) FROM rdb$user_privileges
WHERE rdb$user = 'PUBLIC' AND rdb$user_type = 8
    AND (rdb$relation_name STARTING WITH 'MQ_' OR rdb$relation_name STARTING WITH 'IMQ_')"""
# The objects that our procedures use, and those on which they have rights. Joined here: the server would use a nested
# loop.
_NEEDED = """\
SELECT DISTINCT TRIM(rdb$dependent_name), rdb$dependent_type, TRIM(rdb$depended_on_name), rdb$depended_on_type
FROM rdb$dependencies
WHERE rdb$dependent_type IN (5, 15)
    AND (rdb$dependent_name STARTING WITH 'MQ_' OR rdb$dependent_name STARTING WITH 'IMQ_')
    AND (rdb$depended_on_name STARTING WITH 'MQ_' OR rdb$depended_on_name STARTING WITH 'IMQ_')
    AND rdb$depended_on_type IN (0, 5, 7, 14, 15)"""
_OF_PROCEDURES = """\
SELECT DISTINCT TRIM(rdb$user), rdb$user_type, TRIM(rdb$relation_name), rdb$object_type
FROM rdb$user_privileges
WHERE rdb$user_type IN (5, 15) AND (rdb$user STARTING WITH 'MQ_' OR rdb$user STARTING WITH 'IMQ_')
    AND (rdb$relation_name STARTING WITH 'MQ_' OR rdb$relation_name STARTING WITH 'IMQ_')
    AND rdb$privilege IN ('S', 'X', 'G')"""
_OF_ROLES = f"""\
SELECT TRIM(r.rdb$role_name), TRIM(p.rdb$relation_name), p.rdb$object_type, TRIM(p.rdb$privilege)
FROM rdb$roles AS r
LEFT JOIN rdb$user_privileges AS p ON p.rdb$user = r.rdb$role_name AND p.rdb$user_type = 13
    AND (p.rdb$relation_name STARTING WITH 'MQ_' OR p.rdb$relation_name STARTING WITH 'IMQ_')
    AND p.rdb$object_type <> 13
WHERE r.rdb$role_name IN {_ROLES}"""


def problems(connection: Connection) -> list[str]:
    """One line for each wrong owner or grant; [] when nothing is installed."""

    objects = {(name, kind): owner for name, kind, owner in rows(connection, _OBJECTS)}
    owner = objects.get(("MQ_MESSAGE", 0))
    if owner is None or ("MQ_INSTALLED", 0) not in objects:
        return []
    installed = {
        contract.load().prefixed(name).upper() for (name,) in rows(connection, "SELECT name FROM mq_installed")
    }
    ours = {thing for thing, other in objects.items() if other == owner}
    missing = {*rows(connection, _NEEDED)} - {*rows(connection, _OF_PROCEDURES)}
    lacking = Counter(name for name, kind, *thing in missing if (name, kind) in ours and tuple(thing) in ours)
    return [
        *(
            f"{name} belongs to {other}, not to {owner}: drop it, then run apply again"
            for (name, _), other in sorted(objects.items())
            if other != owner and name in installed
        ),
        *(
            f"PUBLIC may {_VERBS.get(right, 'change')} {name}"
            for name, kind, right in sorted(rows(connection, _EVERYBODY))
            if (name, kind) in ours or (name, 1) in ours
        ),
        *(f"{name} lacks a right on {n} objects of the queue" for name, n in sorted(lacking.items())),
        *_problems_of_roles(rows(connection, _OF_ROLES), objects, owner),
    ]


def _problems_of_roles(held: list[tuple[Any, ...]], objects: Mapping[tuple[str, int], str], owner: str) -> list[str]:
    """The rights that the roles lack, and those that they have beyond the grants of all areas."""
    kinds = {name: kind for (name, kind), other in objects.items() if other == owner}
    known = contract.load()
    wanted = set()
    calls_of_roles = r"(?s)grant_to\('([\w ]+)',\s+'(.*?)'(?:,\s+'(.*?)')?\);"
    for roles, calls, reads in re.findall(calls_of_roles, files.grants("firebird")):
        names = [(known.prefixed(name).upper(), "X") for name in calls.split()]
        names += [(f"MQ_{name.upper()}", "S") for name in reads.split()]
        for name, right in names:
            if name in kinds:  # its area is installed
                kind = 0 if kinds[name] == 1 else kinds[name]
                wanted |= {(role.upper(), name, kind, right) for role in roles.split()}
    there = {role for role, *_ in held}
    found = {row for row in held if row[1] is not None}
    return [
        *(f"the role {role} does not exist" for role in _ROLES if role not in there),
        *(f"{role} may not {_VERBS[right]} {name}" for role, name, _, right in sorted(wanted - found) if role in there),
        *(f"{role} has a right on {name} that no grants.sql gives" for role, name, *_ in sorted(found - wanted)),
    ]
