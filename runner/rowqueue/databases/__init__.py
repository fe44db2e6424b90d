"""The databases that hold a queue. `base` says what the runner needs of one."""

from .base import (
    LEASE_LOST,
    Cluster,
    Conflict,
    Database,
    DatabaseError,
    Disconnected,
    Forbidden,
    Installed,
    QueueError,
    ReadOnly,
    Row,
    Rows,
    SchemaMissing,
    Session,
    SqlFile,
    Values,
)
from .registry import open_database, open_embedded

__all__ = [
    "LEASE_LOST",
    "Cluster",
    "Conflict",
    "Database",
    "DatabaseError",
    "Disconnected",
    "Forbidden",
    "Installed",
    "QueueError",
    "ReadOnly",
    "Row",
    "Rows",
    "SchemaMissing",
    "Session",
    "SqlFile",
    "Values",
    "open_database",
    "open_embedded",
]
