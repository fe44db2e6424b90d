"""The cluster that a MySQL or MariaDB server belongs to, for `runner doctor`."""

from typing import Any

import pymysql  # type: ignore[import-untyped]

from ..base import Cluster

_PAGE = "see docs/operate/clusters.md"
# Seconds that a Galera node may wait for a lock that is not released; see docs/operate/clusters.md.
_LONGEST_LOCK_WAIT = 10

_MEMBERS = """
SELECT COUNT(*), MAX(IF(m.member_id = @@server_uuid, m.member_state, NULL)),
    MAX(IF(m.member_id = @@server_uuid, m.member_role, NULL))
FROM performance_schema.replication_group_members AS m WHERE m.member_state <> 'OFFLINE'
"""


def cluster(cursor: Any) -> Cluster | None:
    """The cluster of this server; None if it is in none."""
    variables = _named(cursor, "SHOW GLOBAL VARIABLES", "wsrep_on", "wsrep_cluster_name", "wsrep_provider")
    if variables.get("wsrep_on") == "ON" and variables["wsrep_provider"] != "none":
        return _galera(cursor, variables["wsrep_cluster_name"])
    variables = _named(
        cursor,
        "SHOW GLOBAL VARIABLES",
        "group_replication_group_name",
        "group_replication_single_primary_mode",
    )
    if variables.get("group_replication_group_name"):
        return _group(cursor, variables)
    return None


def _named(cursor: Any, show: str, *names: str) -> dict[str, str]:
    cursor.execute(f"{show} WHERE variable_name IN ({', '.join(['%s'] * len(names))})", names)
    return {name.lower(): value for name, value in cursor.fetchall()}


def _galera(cursor: Any, name: str) -> Cluster:
    status = _named(
        cursor, "SHOW GLOBAL STATUS", "wsrep_cluster_size", "wsrep_cluster_status", "wsrep_local_state_comment"
    )
    settings = _named(cursor, "SHOW GLOBAL VARIABLES", "innodb_lock_wait_timeout", "binlog_format")
    state = status["wsrep_local_state_comment"]
    problems = []
    if (status["wsrep_cluster_status"], state) != ("Primary", "Synced"):
        problems.append(
            f"this node is {state} in a component that is {status['wsrep_cluster_status']}: no call is possible"
        )
    if int(settings["innodb_lock_wait_timeout"]) > _LONGEST_LOCK_WAIT:
        problems.append(
            f"innodb_lock_wait_timeout is {settings['innodb_lock_wait_timeout']}: the whole cluster may hang"
            f" for as many seconds; set it to 2, {_PAGE}"
        )
    if settings["binlog_format"] != "ROW":
        problems.append(f"binlog_format is {settings['binlog_format']}: set it to ROW, {_PAGE}")
    return Cluster(
        int(status["wsrep_cluster_size"]),
        f"Galera {name}, this node is {state}. Every node accepts writes: send the messages of a group through one"
        f" node, and repeat calls that fail with error 1213, {_PAGE}",
        problems,
    )


def _group(cursor: Any, variables: dict[str, str]) -> Cluster | None:
    name = f"Group Replication {variables['group_replication_group_name']}"
    try:
        cursor.execute(_MEMBERS)
    except pymysql.Error:
        return Cluster(
            None,
            f"{name}; to see its members, this user needs:"
            " GRANT SELECT ON performance_schema.replication_group_members",
            [],
        )
    size, state, role = cursor.fetchone()
    if not size:
        return None  # configured but not started
    if variables["group_replication_single_primary_mode"] == "ON":
        detail = (
            f"{name} with one primary, this member is {state} and {role}. Consumers connect to the primary, {_PAGE}"
        )
    else:
        detail = (
            f"{name} with several primaries, this member is {state}. Send the messages of a group through one member,"
            f" and repeat calls that fail with error 1180, 1213 or 3101, {_PAGE}"
        )
    return Cluster(size, detail, [] if state == "ONLINE" else [f"this member is {state}: calls fail or read old rows"])
