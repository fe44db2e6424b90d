"""MySQL and MariaDB: the rights that an installation needs, and wrong owners and grants of an installed queue."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pymysql  # type: ignore[import-untyped]

from ...install import contract
from .. import files
from ..base import ROLES, NotAllowed
from .errors import NOT_ALLOWED, number

OWNER = "'mq_owner'@'localhost'"
_EVERYBODY = ("", "PUBLIC")  # the anonymous account, and MariaDB's name for all accounts

_IN_DATABASE = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "EXECUTE"),
    *("CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "GRANT OPTION"),
)
# Each of these sets of rights lets a user create procedures for another account, which may already exist: on MariaDB,
# on MySQL, and on MySQL before 8.2.
_DEFINERS = ({"SET USER"}, {"SET_ANY_DEFINER", "ALLOW_NONEXISTENT_DEFINER"}, {"SET_USER_ID"})


def check(cursor: Any) -> None:
    """Raise NotAllowed with the missing rights. Otherwise a refused statement would leave half an installation."""
    cursor.execute("SELECT CURRENT_USER(), DATABASE(), CURRENT_ROLE(), VERSION()")
    user, database, role, version = cursor.fetchone()
    cursor.execute("SHOW GRANTS")
    lines = [line for (line,) in cursor.fetchall()]
    if role not in (None, "NONE") and "MariaDB" not in version:  # MariaDB shows them without USING
        cursor.execute(f"SHOW GRANTS FOR CURRENT_USER() USING {role}")
        lines += [line for (line,) in cursor.fetchall()]
    everywhere, here = _rights(lines, database)
    if missing := [right for right in _IN_DATABASE if right not in here | everywhere]:
        raise NotAllowed(f"user {user} needs the right {', '.join(missing)} on database {database} to install")
    if "CREATE USER" not in everywhere:
        raise NotAllowed(f"user {user} needs the right CREATE USER on *.* to install")
    if not any(names <= everywhere for names in _DEFINERS):
        names = (
            "SET USER"
            if "MariaDB" in version
            else "SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER (before 8.2: SET_USER_ID)"
        )
        raise NotAllowed(f"user {user} needs the right {names} on *.* to install")


def _rights(lines: Iterable[str], database: str) -> tuple[set[str], set[str]]:
    """The rights in the lines of SHOW GRANTS: on the whole server, and on one database."""
    everywhere, here = set[str](), set[str]()
    for line in lines:
        parts = re.match(r"GRANT (.+?) ON (?:(\*)|`((?:[^`]|``)+)`)\.\* TO (.*)", line)
        if not parts:
            continue
        names, server, pattern, rest = parts.groups()
        rights = set(re.split(", ?", names)) | ({"GRANT OPTION"} if "GRANT OPTION" in rest else set())
        if "ALL PRIVILEGES" in rights:
            rights |= {*_IN_DATABASE, "CREATE USER", "SET USER"} - {"GRANT OPTION"}
        if server:
            everywhere |= rights
        elif _is_like(database, pattern.replace("``", "`")):
            here |= rights
    return everywhere, here


def _is_like(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern of a grant: % and _ are wildcards unless a backslash precedes them."""
    parts = re.findall(r"\\([%_])|([%_])|(.)", pattern, re.S)
    wild = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(wild.get(w) or re.escape(e or c) for e, w, c in parts), name, re.S | re.I))


def _granted(cursor: Any) -> tuple[set[tuple[str, str, str]], set[str]]:
    """The grants that the files give as (right, object, account), and the queue's objects in this database."""
    known = contract.load()
    cursor.execute("SELECT name FROM mq_installed WHERE kind = 'area'")
    text = files.grants("mysql", {name for (name,) in cursor.fetchall()} & known.areas.keys())
    cursor.execute("SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()")
    routines = {name for (name,) in cursor.fetchall()} & {*map(known.prefixed, known.files("mysql"))}
    given = {("EXECUTE", name, "mq_owner") for name in routines}
    for roles, calls, reads in re.findall(r"(?s)grant_to\('([\w ]+)',\s+'(.*?)',\s+'(.*?)'\);", text):
        for role in roles.split():
            given |= {("EXECUTE", known.prefixed(name), role) for name in calls.split()}
            given |= {("SELECT", f"mq_{name}", role) for name in reads.split()}
    for rights, name in re.findall(rf"(?m)^GRANT ([A-Z, ]+) ON (mq_\w+) TO {OWNER};$", text):
        given |= {(right, name, "mq_owner") for right in rights.split(", ")}
    cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")
    there = routines | {name for (name,) in cursor.fetchall()}
    given = {(right, name, account) for right, name, account in given if name in there}
    return given, {name for _, name, _ in given}


def problems(cursor: Any) -> list[str]:
    """See Database.rights_problems. Raises the driver's error if this account may not read the grants."""
    wanted, names = _granted(cursor)
    found = []
    cursor.execute("SELECT user FROM mysql.user WHERE user IN %s", [["mq_owner", *ROLES]])
    accounts = {user for (user,) in cursor.fetchall()}
    if "mq_owner" not in accounts:
        found.append(f"{OWNER}, the owner of the procedures, does not exist")
    found += [f"role {role} does not exist" for role in ROLES if role not in accounts]
    cursor.execute(
        "SELECT routine_name, definer FROM information_schema.routines WHERE routine_schema = DATABASE()"
        " UNION ALL SELECT table_name, definer FROM information_schema.views WHERE table_schema = DATABASE()"
    )
    for name, definer in cursor.fetchall():
        if name in names and definer != "mq_owner@localhost":
            found.append(f"{name} belongs to {definer}, not to mq_owner@localhost")
    have = set()
    strangers = []
    cursor.execute(
        "SELECT user, routine_name, proc_priv FROM mysql.procs_priv WHERE db = DATABASE()"
        " UNION ALL SELECT user, table_name, table_priv FROM mysql.tables_priv WHERE db = DATABASE()"
    )
    for user, name, rights in cursor.fetchall():
        for right in filter(None, rights.upper().split(",")):
            have.add((right, name, user))
            known = user in (*ROLES, "mq_owner")
            if name in names and (right, name, user) not in wanted and (known or user in _EVERYBODY):
                who = user if known else "everybody"
                strangers.append(f"{who} has {right} on {name}")
    cursor.execute(
        "SELECT user FROM mysql.db WHERE DATABASE() LIKE db AND user IN %s AND execute_priv = 'Y'", [_EVERYBODY]
    )
    if cursor.fetchall():
        strangers.append("every user may execute all procedures of this database")
    found += [f"{user} lacks {right} on {name}" for right, name, user in sorted(wanted - have) if user in accounts]
    found += sorted(strangers)
    cursor.execute(_WATCHED)
    return found + [
        f"the triggers of {table} would fail: GRANT SELECT, TRIGGER ON {table} TO {OWNER}"
        for (table,) in cursor.fetchall()
    ]


def revoke_from_everybody(cursor: Any) -> None:
    """Revoke from PUBLIC and from the queue's own accounts all rights that grants.sql does not give."""
    wanted, names = _granted(cursor)
    try:
        for table, column, held, kind in (
            ("procs_priv", "routine_name", "proc_priv", "PROCEDURE "),
            ("tables_priv", "table_name", "table_priv", ""),
        ):
            cursor.execute(
                f"SELECT user, host, {column}, {held} FROM mysql.{table} WHERE db = DATABASE() AND user IN %s",
                [[*_EVERYBODY, *ROLES, "mq_owner"]],
            )
            for user, host, name, rights in cursor.fetchall():
                for right in filter(None, rights.upper().split(",")):
                    if name in names and (right, name, user) not in wanted:
                        account = user if user in ("PUBLIC", *ROLES) else f"'{user}'@'{host}'"
                        right = right.replace("GRANT", "GRANT OPTION")
                        cursor.execute(f"REVOKE {right} ON {kind}{name} FROM {account}")
    except pymysql.Error as error:
        if number(error) not in NOT_ALLOWED:
            raise


def warnings(cursor: Any) -> list[str]:
    """See Database.warnings_about_installation."""
    found = []
    with suppress(pymysql.Error):  # this user may not read the grants
        cursor.execute(f"SHOW GRANTS FOR {OWNER}")
        for (line,) in cursor.fetchall():
            if " ON *.* " in line and not re.match(r"GRANT (USAGE|PROCESS) ON ", line):
                found.append(f"{OWNER} should have no right on the whole server but has: {line}")
            elif re.search(r" ON [^ ]+\.\* ", line) and " ON *.* " not in line:
                found.append(f"{OWNER} should have rights only on single tables but has: {line}")
        cursor.execute(
            "SELECT 1 FROM information_schema.routines"
            " WHERE routine_schema = DATABASE() AND routine_name = 'imq_require_use' AND NOT EXISTS ("
            "SELECT * FROM mysql.columns_priv WHERE user = 'mq_owner' AND db = 'mysql' AND table_name = 'db')"
        )
        if cursor.fetchall():
            found.append(
                f"{OWNER} may not read the server's grants: a polling table or feed serves only the user who created it"
            )
    return found


# Watched tables on which the triggers' owner has no right, for example after a restore under another name.
_WATCHED = """\
SELECT DISTINCT CONCAT('`', REPLACE(t.event_object_schema, '`', '``'), '`.`',
    REPLACE(t.event_object_table, '`', '``'), '`')
FROM information_schema.triggers AS t
WHERE t.trigger_schema = DATABASE() AND t.definer = 'mq_owner@localhost'
    AND t.action_statement LIKE '%imq\\_send\\_changes(%'
    AND NOT EXISTS (
        SELECT * FROM information_schema.table_privileges AS p
        WHERE p.grantee = '''mq_owner''@''localhost''' AND p.table_schema = t.event_object_schema
            AND p.table_name = t.event_object_table AND p.privilege_type = 'TRIGGER'
    )
    AND NOT EXISTS (
        SELECT * FROM information_schema.schema_privileges AS p
        WHERE p.grantee = '''mq_owner''@''localhost''' AND t.event_object_schema LIKE p.table_schema
            AND p.privilege_type = 'TRIGGER'
    )"""
