"""The meaning of the errors of SQL Server, Azure SQL, FreeTDS and pymssql."""

import re

import pymssql
from pymssql import _mssql

from ..base import Conflict, DatabaseError, Disconnected, ReadOnly, not_allowed, not_installed, raised
from ..guard import is_of_contract, telling, translating

# Numbers of the server's errors: https://learn.microsoft.com/sql/relational-databases/errors-events/
# database-engine-events-and-errors; those from 20000 to 20999 are FreeTDS's own.
DEADLOCK = 1205
CONFLICTS = {
    601,  # rows moved during a dirty read: the documentation of table hints says to treat it as a deadlock
    605,  # the same, with severity 12; corruption has 21, which closes the connection
    701,  # no memory
    802,
    1204,  # no memory for more locks
    DEADLOCK,
    1222,  # lock time-out
    2801,  # the procedure was changed while it was being called
    3958,  # the version store is full
    3960,  # update conflict under SNAPSHOT
    3961,
    3966,  # the version store was full: the transaction's row versions were removed
    3998,  # the end of a call after a deadlock: it hides 1205, whose severity is lower
    8628,  # timeout while waiting to compile
    8645,  # no memory for the query
    8651,
    51205,  # mq_internal.wait_for_lock: a procedure cannot raise 1205
}
# Two transactions put a message back at the same time and one rolls back: for a moment the key is taken.
_DUPLICATES = {2601, 2627}
_DISCONNECTS = {
    64,
    121,
    233,
    596,  # the session was killed
    615,  # the database was closed
    921,  # the database is not recovered yet
    922,
    924,  # the database is in single-user mode
    927,  # it is being restored
    942,  # offline
    952,  # the database is in transition
    976,  # the replica is not readable
    978,
    979,
    982,
    983,
    988,
    4221,  # a secondary waits for row versions
    6005,  # shutdown in progress
    10053,
    10054,
    10060,
    10928,  # Azure: resource limits and failovers
    10929,
    10936,
    17142,  # paused
    17187,  # not ready yet
    17188,
    17189,
    17197,
    17809,  # too many connections
    18401,  # script upgrade mode
    18451,  # only administrators may log in
    20002,  # connection failed
    20003,  # timed out
    20004,  # read failed
    20005,
    20006,  # write failed
    20008,
    20009,  # unable to connect
    20017,  # unexpected end
    20047,  # the connection is dead
    40143,
    40197,
    40501,
    40540,
    40549,  # 40549 to 40553: the session took too long or too much
    40550,
    40551,
    40552,
    40553,
    40613,
    49918,
    49919,
    49920,
}
_READ_ONLY = 3906  # a secondary, or a server that is no longer the primary
_NOT_ALLOWED = {229, 230, 262, 297, 300, 916, 15151, 15247, 18452, 18456, 18470, 18486, 18487, 18488}
# A recovering database or a server in a failover reports these for logins and databases that exist.
_NOT_YET = {4060, 18456}
_MISSING = {208, 2812, 4121}  # a table, a procedure, a function
_OTHER_ARGUMENTS = {201, 8144, 8145, 8146}
UNMAPPED = 33557097  # Babelfish's number for PostgreSQL errors that SQL Server does not have


def _told(error: BaseException) -> tuple[int, str]:
    """The number, 0 when there is none, and the text; the driver has it as bytes, sometimes in a pair."""
    arguments = error.args
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        arguments = arguments[0]
    code = arguments[0] if len(arguments) > 1 and isinstance(arguments[0], int) else 0
    text = arguments[-1] if arguments else ""
    return code, text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def number(error: BaseException) -> int:
    """The server's number, 0 when there is none."""
    return _told(error)[0]


def line(error: BaseException) -> str:
    """The error text of the server or driver on one line, without the additions of the driver's library."""
    said, *added = re.split(r"DB-Lib error message \d+, severity \d+:\n", _told(error)[1])
    if not said.strip() and added:
        cause = re.search(r"(?:Net-Lib|Operating System) error during (.+) \(-?\d+\)", added[0])
        said = cause[1] if cause else added[0]
    return " ".join(said.split()) or type(error).__name__


def tidy(error: BaseException) -> None:
    """Set the arguments of a driver's error to its number and its text, as in other drivers."""
    code, text = number(error), line(error)
    error.args = (code, text) if code else (text,)


def of_contract(error: BaseException) -> bool:
    """Whether it is a numbered error of the contract."""
    return is_of_contract(number(error))


def translate(error: BaseException, closed: bool = False) -> Exception:
    """The exception of this package for a driver's error. `closed`: the error closed the connection."""
    code, message = number(error), line(error)
    if of_contract(error):
        return raised(code, message)
    if code == _READ_ONLY:
        return ReadOnly(f"{message}: name the listener of the availability group, or the primary, in the URL")
    # An error without a number is the driver's own, nearly always for a closed connection.
    lost = isinstance(error, pymssql.InterfaceError | _mssql.MSSQLDriverException) and not code
    if closed or lost or code in _DISCONNECTS:
        return Disconnected(message)
    # In Babelfish, the name of the database precedes that of the schema.
    named = re.search(r"(\b|_)mq(_internal)?\b", message) is not None
    if code in CONFLICTS or (named and code in _DUPLICATES):
        return Conflict(message)
    absent = code == UNMAPPED and "does not exist" in message
    if code in _OTHER_ARGUMENTS or (named and (code in _MISSING or absent)):
        return not_installed(message)
    if code in _NOT_ALLOWED or (code == UNMAPPED and "permission denied" in message):
        denied = r"(?:EXECUTE|SELECT) permission was denied on the object '(\w+)'"
        return not_allowed(message, denied, "ALTER ROLE {} ADD MEMBER …")
    return DatabaseError(message)


def unreachable(error: BaseException, where: str, been_connected: bool) -> Exception:
    """The exception for a failed attempt to connect. `been_connected`: an earlier attempt succeeded."""
    translated = translate(error)
    if isinstance(translated, Disconnected) or (been_connected and number(error) in _NOT_YET):
        return Disconnected(f"cannot connect to {where}: {translated}")
    return translated


translated, told = translating(pymssql.Error, translate), telling(pymssql.Error, translate)
