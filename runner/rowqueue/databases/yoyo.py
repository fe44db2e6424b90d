"""Shared by our yoyo-migrations backends: they use our connections, and a lock that ends with its holder."""

from typing import Any
from urllib.parse import urlencode


def url(dburi: Any, scheme: str) -> str:
    """The URL of our database from a yoyo URL: its argument `url`, or the whole URL."""
    # yoyo's own conversion to a URL loses the slash of an absolute path.
    query = f"?{urlencode(dburi.args)}" if dburi.args else ""
    return str(dburi.args.get("url") or f"{scheme}://{dburi.netloc}/{dburi.database}{query}")


class NoSavepoints:
    """For engines where DDL removes savepoints: the error about the savepoint would hide the real one."""

    def savepoint(self, id: str) -> None:
        pass

    def savepoint_release(self, id: str) -> None:
        pass

    def savepoint_rollback(self, id: str) -> None:
        pass


class OwnLock:
    """yoyo's lock as an uncommitted row of its own connection: it is released when this process ends in any way."""

    _lock: Any = None

    def _delete_lock_row(self, pid: int) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
