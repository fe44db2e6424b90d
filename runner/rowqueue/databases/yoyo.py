"""What our backends of yoyo-migrations share: connections of ours, and a lock that goes with its holder."""

from typing import Any
from urllib.parse import urlencode


def url(dburi: Any, scheme: str) -> str:
    """The URL of a database of ours that yoyo was given: as the argument `url`, or as a whole."""
    # yoyo's own way back to a URL loses the slash of an absolute path.
    query = f"?{urlencode(dburi.args)}" if dburi.args else ""
    return str(dburi.args.get("url") or f"{scheme}://{dburi.netloc}/{dburi.database}{query}")


class NoSavepoints:
    """Where a savepoint does not outlive DDL, and the error that it is gone would hide the one that matters."""

    def savepoint(self, id: str) -> None:
        pass

    def savepoint_release(self, id: str) -> None:
        pass

    def savepoint_rollback(self, id: str) -> None:
        pass


class OwnLock:
    """yoyo's lock as a row that is not committed, of a connection of its own: it goes with us, however we end."""

    _lock: Any = None

    def _delete_lock_row(self, pid: int) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
