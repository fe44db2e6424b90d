"""Connections that come back: one session a thread, made anew when it is lost, and one log line for all of them."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, sleep_using_event, stop_when_event_set, wait_random_exponential

from .databases import Conflict, Database, Disconnected, Forbidden, Row, SchemaMissing, Session
from .metrics import Metrics

log = logging.getLogger("rowqueue")
T = TypeVar("T")

UPGRADE_SECONDS = 60.0  # how long a procedure that was there may be missing while an upgrade replaces it


class Outage:
    """Which connections are lost; says so once when the first one goes and once when the last one is back."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._lock = threading.Lock()
        self._links: set[object] = set()
        self._since = 0.0
        self.has_worked = False  # some call has been answered

    def begin(self, link: object, error: Exception) -> None:
        """Note that a connection is lost."""
        with self._lock:
            if not self._links:
                self._since = time.monotonic()
                log.warning("the database is gone (%s); trying again until it is back", error)
            self._links.add(link)

    def end(self, link: object) -> None:
        """Note that a connection stands again."""
        with self._lock:
            if link not in self._links:
                return
            self._links.discard(link)
            self._metrics.reconnects.inc()
            if not self._links:
                log.warning("the database is back after %.1f s", time.monotonic() - self._since)

    def is_on(self) -> bool:
        """Is any connection lost?"""
        return bool(self._links)


class Link:
    """One thread's session, connected when first used and made anew when lost."""

    def __init__(self, database: Database, name: str, outage: Outage, listen_to: Sequence[str] = ()) -> None:
        self._database = database
        self._name = name
        self._outage = outage
        self._listen_to = listen_to
        self._session: Session | None = None
        self._missing_since = self._missing_last = float("-inf")
        self.is_woken = False  # the database tells us when there is something to do

    def run(self, work: Callable[[Session], T], give_up: threading.Event) -> T:
        """Do some calls, again after a lost connection or a conflict, until it works or `give_up` is set."""
        try:
            return self.once(work)
        except (Disconnected, Conflict):
            retrying = Retrying(
                retry=retry_if_exception_type((Disconnected, Conflict)),
                wait=wait_random_exponential(multiplier=0.1, max=5),
                sleep=sleep_using_event(give_up),
                stop=stop_when_event_set(give_up),
                reraise=True,
            )
            result: T = retrying(self.once, work)
            return result

    def call(self, give_up: threading.Event, procedure: str, *arguments: Any) -> list[Row]:
        """Call one procedure, as `run` does."""
        return self.run(lambda session: session.call(procedure, *arguments), give_up)

    def once(self, work: Callable[[Session], T]) -> T:
        """Do some calls, and drop the session when it is lost."""
        try:
            if self._session is None:
                self._session = self._database.connect(self._name)
                if self._listen_to:
                    self.is_woken = self._session.listen(self._listen_to)
                self._outage.end(self)
            result = work(self._session)
            self._outage.has_worked = True
            return result
        except Disconnected as error:
            self._outage.begin(self, error)
            self.close()
            raise
        except (SchemaMissing, Forbidden) as error:
            if not self._may_pass():
                raise
            raise Conflict(f"an upgrade may be replacing it: {error}") from error

    def _may_pass(self) -> bool:
        """A procedure is missing, or nothing is granted on it: is it for the moment of an upgrade only?"""
        if self._database.swaps_at_once or not self._outage.has_worked:
            return False
        now = time.monotonic()
        if now - self._missing_last > UPGRADE_SECONDS:
            self._missing_since = now
            log.warning("a procedure is missing: an upgrade may be replacing it; trying for %g s", UPGRADE_SECONDS)
        self._missing_last = now
        return now - self._missing_since < UPGRADE_SECONDS

    def wait(self, seconds: float, interrupt: int) -> bool:
        """Sleep until woken; a connection lost meanwhile is left to the next call."""
        try:
            return self.once(lambda session: session.wait(seconds, interrupt))
        except Disconnected:
            return False

    def close(self) -> None:
        """Close the session, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session = None
