"""What a handler gets and may raise."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """One message as a handler gets it; times are UTC. `connection` is the driver's own under --transaction."""

    id: int
    type: str
    body: str
    headers: str | None
    priority: int
    group_key: str | None
    dedup_key: str | None
    attempt: int
    created_at: datetime
    source: str | None
    batch_key: Any
    lease_until: datetime | None
    connection: Any = None


class Retry(Exception):
    """Raised by a handler: try this message again, after `after` seconds (None: the queue's backoff)."""

    def __init__(self, reason: str = "", after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Discard(Exception):
    """Raised by a handler: this message can never succeed; make it a dead letter now, with `reason` as its error."""
