"""The meaning of the errors of Firebird and firebird-driver."""

import re

from firebird.driver import Error

from ..base import Conflict, DatabaseError, Disconnected, ReadOnly, TimedOut, not_allowed, not_installed, raised
from ..guard import telling, translating

# Numbers of the server's errors: https://firebirdsql.org/file/documentation/html/en/refdocs/fblangref50/
# firebird-50-language-reference.html#fblangref50-appx02-sqlcodes
_EXCEPTION = 335544517
_CONFLICTS = {
    335544336,  # deadlock
    335544345,  # lock conflict on no wait transaction
    335544348,  # no current record: 3.0, for a row that has gone since the statement found it
    335544451,  # update conflicts with concurrent update
    335544510,  # lock time-out
    335544453,  # object is in use
}
_CANCELLED = 335544794  # by a time limit of the server, or by an administrator
_DISCONNECTS = {
    335544324,  # invalid database handle: an earlier call has lost it
    335544421,  # connection rejected by remote interface
    335544528,  # database shutdown
    335544557,
    335544648,  # connection lost to pipe server
    335544721,  # network errors
    335544722,
    335544726,
    335544727,
    335544741,  # connection lost to database
    335544744,  # too many attachments
    335544856,  # connection shutdown
    335545130,  # killed by database administrator
}
_READ_ONLY = {335544361, 335544765}  # of a transaction, of a database: a replica
_NOT_ALLOWED = {
    335544352,  # no permission
    335544472,  # no such user, or not this password
    335545094,  # no permission to create or change objects: on 3.0
    335545264,  # and later
}
_MISSING = {335544512, 335544580, 335544581, 335544586}  # other parameters; no such table, procedure, function
_NO_COLUMN = 335544578
_IO_ERROR = 335544344
_UNIQUE = 335544665
NO_CHARSET = 335544509
# In errors for keys of the queue's tables. Another transaction has inserted the key and may roll back, or the key's old
# index entry outlives its row for a moment. After a crash of the server the sequence of ids may be behind, and the next
# try has other ids. docs/decisions/0008_firebird.md explains both.
_AWAITED = '"MQ_'
_NO_METADATA_UPDATE = 335544351


def is_taken(error: BaseException) -> bool:
    """Whether a row or a name already exists, or another transaction is creating it."""
    codes = set(getattr(error, "gds_codes", None) or ())
    # Servers report a name that is taken as an index error, as a lock error, or with a text that 3.0 does not have.
    return bool(codes & {_UNIQUE, _NO_METADATA_UPDATE}) and not codes & _NOT_ALLOWED


def line(error: BaseException) -> str:
    """The error text of the server or driver on one line."""
    return " ".join(part.lstrip("-") for part in str(error).split("\n") if part).strip() or type(error).__name__


def _of_contract(text: str) -> Exception | None:
    """The numbered error that a procedure raised; None for other texts."""
    found = re.search(
        r"^-?MQ_(50\d{3})\n-?(.*?)(?:\n-?At (?:procedure|function|block|trigger|sub) .*)?\Z", text, re.M | re.S
    )
    return raised(int(found[1]), " ".join(found[2].split("\n"))) if found else None


def translate(error: BaseException) -> Exception:
    """The exception of this package for a driver's error."""
    codes = set(getattr(error, "gds_codes", None) or ())
    state = getattr(error, "sqlstate", None) or ""
    message = line(error)
    if _EXCEPTION in codes and (numbered := _of_contract(str(error))):
        return numbered
    if isinstance(error, AttributeError) or codes & _DISCONNECTS or (state.startswith("08") and _IO_ERROR not in codes):
        # The driver drops a connection that it has closed.
        return Disconnected("the connection is closed" if isinstance(error, AttributeError) else message)
    if codes & _READ_ONLY:
        return ReadOnly(f"{message}: name the primary in the URL; if there is no primary: gfix -mode read_write")
    if _CANCELLED in codes:
        return TimedOut(message)
    if codes & _CONFLICTS or state == "40001" or (_UNIQUE in codes and _AWAITED in message):
        return Conflict(message)
    if codes & _NOT_ALLOWED or state == "28000":
        grant = "GRANT {} TO USER …, and connect with this role"
        return not_allowed(
            message, r"EXECUTE access to PROCEDURE I?MQ_(\w+)|SELECT access to (?:TABLE|VIEW) MQ_(\w+)", grant
        )
    if (codes & _MISSING and "MQ_" in message) or _NO_COLUMN in codes:
        return not_installed(message)
    return DatabaseError(message)


translated, told = translating(Error, translate), telling(Error, translate)
