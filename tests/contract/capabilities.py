"""Where the databases differ, and why. No test of the contract decides by a database's name: it asks here."""

import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class Capabilities:
    """What one database does its own way.

    view:            how its SQL names the view message_state: a schema where there are schemas, else a prefix.
    key:             the Python type of a batch key: drivers that know no UUID give text.
    nul:             text can hold the character NUL; where it cannot, it is an invalid_argument.
    sees_sessions:   queue_health sees the open transactions of other sessions.
    """

    view: str
    key: type
    nul: bool
    sees_sessions: bool


BY_DATABASE = {
    "postgresql": Capabilities(view="mq.message_state", key=uuid.UUID, nul=False, sees_sessions=True),
}
