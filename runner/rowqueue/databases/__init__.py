"""The database engines: a package for each, behind the interface in `base`."""

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
    TimedOut,
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
    "TimedOut",
    "Values",
    "open_database",
    "open_embedded",
]
