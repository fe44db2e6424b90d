"""Whether a database knows a queue: a misspelt name would otherwise create a queue, or do nothing."""

import difflib
import sys
from contextlib import suppress

from ..databases import AreaMissing, NotAllowed, Session
from .common import Failed

# Each returns nothing for an unknown queue. list_queues would return the defaults.
_LISTS = ("list_consumers", "throughput")
_COUNTS = ("ready", "delayed", "active", "expired", "dead")


def doubt(session: Session, type: str) -> str | None:
    """What to say about a queue that nothing in the database has the name of; None for a known one."""
    with suppress(NotAllowed):
        if any(row[count] for row in session.call("queue_stats", type) for count in _COUNTS):
            return None
    for procedure in _LISTS:
        with suppress(AreaMissing, NotAllowed):
            if session.call(procedure, type):
                return None
    names = set[str]()
    for procedure in ("queue_stats", "list_queues", "list_bindings"):
        with suppress(AreaMissing, NotAllowed):
            names.update(row["type"] for row in session.call(procedure))
    if type in names:
        return None
    [near] = difflib.get_close_matches(type, names, 1) or [""]
    return f"unknown queue {type}: nothing has this name yet" + (f"; did you mean {near}?" if near else "")


def mention_unknown(session: Session, type: str | None) -> None:
    """Say on stderr that a queue is unknown."""
    if type is not None and (said := doubt(session, type)):
        print(f"runner: {said}", file=sys.stderr)


def require_known(session: Session, type: str) -> None:
    """Raise Failed for an unknown queue."""
    if said := doubt(session, type):
        raise Failed(f"{said}; --new makes it")
