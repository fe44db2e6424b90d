"""The meaning of the errors of MySQL, MariaDB and PyMySQL."""

import re
import ssl
from typing import Any

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import CR, ER  # type: ignore[import-untyped]

from ..base import (
    Conflict,
    DatabaseError,
    Disconnected,
    QueueError,
    ReadOnly,
    TimedOut,
    not_allowed,
    not_installed,
    raised,
)
from ..guard import is_of_contract, telling, translating
from ..values import invalid

# Numbers of the servers' errors: https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html and
# https://mariadb.com/kb/en/mariadb-error-codes/
INTERRUPTED = 1317  # KILL QUERY
_CONFLICTS = {
    1020,  # MariaDB: the record has changed since the snapshot
    1205,  # lock wait timeout
    1213,  # deadlock
    INTERRUPTED,
    1412,  # table definition has changed
    1615,  # statement needs to be re-prepared
    1637,  # too many concurrent transactions
    3101,  # rolled back by the replication group
    3572,  # NOWAIT
}
_TIMED_OUT = {1969, 3024}  # max_statement_time on MariaDB, max_execution_time on MySQL
_DISCONNECTS = {
    1040,  # too many connections
    1047,  # a Galera node that is not ready
    1053,  # server shutdown in progress
    1077,
    1078,
    1079,
    1152,
    1158,
    1159,
    1160,
    1161,
    1184,
    1180,  # a COMMIT that failed for another reason than a conflict
    1203,  # max_user_connections
    1226,
    1927,  # MariaDB: connection was killed
    2002,
    2003,
    2006,
    2013,
    2014,
    2055,
    3032,  # the server is in offline mode, such as a member that its replication group has expelled
    3100,  # a member that has left its replication group
    3797,  # a member that could not wait for what its group has committed
    3798,
    3799,
    4031,  # closed for inactivity
    6400,  # 3032 with its reason
}
_READ_ONLY = {1792, 1836}  # a secondary, or a server that is no longer the primary
NOT_ALLOWED = {1044, 1045, 1142, 1143, 1227, 1370, 1410, 1698}
_NO_DEFINER = 1449
_MISSING = {1146, 1305, 1318}  # a table, a routine, a routine with these arguments
_BAD_VALUES = {1264, 1265, 1292, 1366, 1406, 3988}


def number(error: BaseException) -> int:
    """The server's or the driver's number; 0 when there is none. The driver reads 50001 as a negative number."""
    found = getattr(error, "errno", None) or (error.args[0] if error.args else 0)
    return found & 0xFFFF if isinstance(found, int) else 0


def line(error: BaseException) -> str:
    """The error text of the server or driver on one line."""
    text = " ".join(str(getattr(error, "msg", None) or (error.args[-1] if error.args else error)).split())
    if _is_of_interface(error) and not text:
        return "the connection is closed"
    return text or type(error).__name__


def _is_of_interface(error: BaseException) -> bool:
    """Whether it is the driver's error for a closed connection. mysql.connector has a number for that."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return "InterfaceError" in names or ("OperationalError" in names and getattr(error, "errno", 0) == -1)


def is_open(connection: Any) -> bool:
    """Whether a connection is still open after an error, as far as its driver knows without asking the server."""
    for name, value_when_open in (("open", True), ("connected", True), ("closed", False)):
        if hasattr(connection, name):
            return bool(getattr(connection, name)) == value_when_open
    return True


def of_contract(error: BaseException) -> bool:
    """Whether it is a numbered error of the contract."""
    return is_of_contract(number(error))


def translate(error: BaseException, closed: bool = False) -> Exception:
    """The exception of this package for a driver's error. `closed`: the error closed the connection."""
    code, message = number(error), line(error)
    if of_contract(error):
        return raised(code, message)
    if closed or _is_of_interface(error):
        return Disconnected(message)
    if code in _TIMED_OUT:
        return TimedOut(message)
    # A savepoint no longer exists after the server has rolled back the transaction. The text of a failed COMMIT has the
    # only hint at its reason.
    in_commit = code == ER.ERROR_DURING_COMMIT and "deadlock" in message.lower()
    if code in _CONFLICTS or in_commit or message.startswith("SAVEPOINT "):
        return Conflict(message)
    # Error 1290 names the option that forbids the statement.
    if code in _READ_ONLY or (code == ER.OPTION_PREVENTS_STATEMENT and "read-only" in message):
        return ReadOnly(f"{message}: name the primary, or all servers, mysql://user@one,two/database, in the URL")
    if code in _DISCONNECTS:
        return Disconnected(message)
    if code in _MISSING and "mq_" in message:
        return not_installed(message)
    # A restored database: the account that owns the procedures has no rights here yet, or does not exist.
    if code == _NO_DEFINER or (code in NOT_ALLOWED and re.search(r"'mq_owner'.* for \S+ \S*mq_", message)):
        return not_installed(message)
    if code in NOT_ALLOWED:
        return not_allowed(
            message,
            r"denied to user .* for (?:routine '.*\bi?mq_(\w+)'|table \S*\bmq_(\w+))",
            "GRANT {} TO …, as its default role",
        )
    return DatabaseError(HINTS.get(code, "{}").format(message))


HINTS = {
    1046: "no database is named: mysql://user@host/database",
    1419: "{} (or let the server's administrator SET GLOBAL log_bin_trust_function_creators = 1)",
}


translated, told = translating(pymysql.Error, translate), telling(pymysql.Error, translate)


def unreachable(error: BaseException, where: str) -> Exception:
    """The exception of this package for a failed attempt to connect."""
    cause = getattr(error, "original_exception", error)
    message = line(error)
    if isinstance(cause, OSError):
        message = f"cannot connect to {where}: {line(cause)}"
    handshake_cut = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError)
    if isinstance(cause, PermissionError) or (isinstance(cause, ssl.SSLError) and not handshake_cut):
        return DatabaseError(message)
    if isinstance(cause, OSError):
        return Disconnected(message)
    if isinstance(error, RuntimeError):  # PyMySQL needs a package for this account's authentication plugin
        return DatabaseError(f"{message}: pip install 'PyMySQL[rsa,ed25519]'")
    if not isinstance(error, pymysql.Error):
        return DatabaseError(f"{where} does not answer as a MySQL or MariaDB server ({message})")
    if number(error) == CR.CR_AUTH_PLUGIN_CANNOT_LOAD:
        return DatabaseError(f"{message}: the driver does not support it; use another authentication plugin")
    return translate(error)


def bad_argument(error: Exception) -> QueueError | None:
    """invalid_argument for a value that its type cannot hold, so it never reached the procedure."""
    named = re.search(r"[`'.]p_(\w+)[`'] at row", line(error))
    return invalid(named[1], line(error)) if number(error) in _BAD_VALUES and named else None
