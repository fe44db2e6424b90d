"""Firebird's driver without the runner: all kinds of transactions, and partly read cursors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rowqueue.install import contract

from . import Server
from .firebird import driver

# Isolation and LOCK TIMEOUT in seconds, -1 for WAIT.
MANNERS = {
    "READ COMMITTED NO WAIT": ("READ_COMMITTED_RECORD_VERSION", 0),
    "READ COMMITTED WAIT": ("READ_COMMITTED_RECORD_VERSION", -1),
    "READ COMMITTED LOCK TIMEOUT": ("READ_COMMITTED_RECORD_VERSION", 5),
    "SNAPSHOT NO WAIT": ("SNAPSHOT", 0),
    "SNAPSHOT WAIT": ("SNAPSHOT", -1),
    "TABLE STABILITY NO WAIT": ("SERIALIZABLE", 0),
}
NO_WAIT = "READ COMMITTED NO WAIT"
# From 4.0 on the same as RECORD_VERSION, unless ReadConsistency is 0.
NO_RECORD_VERSION = "NO RECORD_VERSION NO WAIT"


def columns(procedure: str) -> str:
    """What a call returns, as a list for SELECT; bodies as short texts."""
    names = [column.name for column in contract.load().procedures[procedure].columns]
    return ", ".join(f"CAST({name} AS VARCHAR(200))" if name == "body" else name for name in names)


class Raw:
    """A connection with one transaction of a given kind; the first statement begins it, and the test ends it."""

    def __init__(self, connection: Any, manner: str = NO_WAIT) -> None:
        isolation, seconds = (MANNERS | {NO_RECORD_VERSION: ("READ_COMMITTED_NO_RECORD_VERSION", 0)})[manner]
        self.connection = connection
        self.transaction = connection.transaction_manager(driver().tpb(driver().Isolation[isolation], seconds))

    def cursor(self, text: str, *values: Any) -> Any:
        """A cursor from which nothing has been fetched yet."""
        if not self.transaction.is_active():
            self.transaction.begin()
        cursor = self.transaction.cursor()
        cursor.stream_blob_threshold = -1
        cursor.execute(text, values or None)
        return cursor

    def run(self, text: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self.cursor(text, *values)
        try:
            if not cursor.description:
                return []
            names = [column[0].lower() for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            with suppress(driver().Error):
                cursor.close()

    def selected(self, procedure: str, *values: Any) -> Any:
        """The cursor of a call."""
        arguments = f"({', '.join('?' * len(values))})" if values else ""
        return self.cursor(f"SELECT {columns(procedure)} FROM mq_{procedure}{arguments}", *values)

    def call(self, procedure: str, *values: Any) -> list[dict[str, Any]]:
        names = [column.name for column in contract.load().procedures[procedure].columns]
        cursor = self.selected(procedure, *values)
        try:
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            with suppress(driver().Error):
                cursor.close()

    def commit(self) -> None:
        self.transaction.commit()

    def rollback(self) -> None:
        if self.transaction.is_active():
            self.transaction.rollback()

    def done(self, procedure: str, *values: Any) -> list[dict[str, Any]]:
        """A call in a transaction of its own."""
        rows = self.call(procedure, *values)
        self.commit()
        return rows

    def close(self) -> None:
        with suppress(driver().Error):
            self.rollback()
        with suppress(driver().Error):
            self.connection.close()


@contextmanager
def raw_on(server: Server, url: str, manner: str = NO_WAIT) -> Iterator[Raw]:
    raw = Raw(server.client(url).connection, manner)
    try:
        yield raw
    finally:
        raw.close()


def codes(error: BaseException) -> Sequence[int]:
    """The server's numbers for what went wrong."""
    found: Sequence[int] = getattr(error, "gds_codes", ())
    return found
