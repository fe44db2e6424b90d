"""PostgreSQL, through psycopg 3."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base import Database
from .database import PostgreSQL
from .session import PostgreSQLSession

__all__ = ["DATABASE", "PostgreSQL", "PostgreSQLSession", "embedded"]

DATABASE = PostgreSQL


@contextmanager
def embedded(data_dir: Path | None = None) -> Iterator[Database]:
    """See `open_embedded`."""
    from .embedded_server import running

    with running(data_dir) as url:
        yield PostgreSQL(url)
