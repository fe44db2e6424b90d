"""What a consumer was asked for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What `runner consume` or `runner table consume` was asked for; seconds everywhere, None for no limit.

    `lease` None leaves the length of a lease to the queue's policy. `connect_timeout`: how long the database may be
    away.
    """

    types: tuple[str, ...]
    reader: str
    batch: int = 10
    concurrency: int = 1
    lease: int | None = None
    once: bool = False
    drain: bool = False
    max_messages: int | None = None
    idle_timeout: float | None = None
    transaction: bool = False
    ring: bool = False
    keep_results: bool = False
    shutdown_timeout: float = 30.0
    connect_timeout: float | None = None

    @property
    def may_end(self) -> bool:
        """Whether the consumer may come to an end that nobody calls for."""
        return self.drain or self.max_messages is not None or self.idle_timeout is not None
