"""`Looking`: calls that only read, each a part of an answer that may fail by itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ...databases import Disconnected, NotAllowed, Row, Session
from ...install import contract
from .parts import Parts, said

T = TypeVar("T")

NOT_ALLOWED_SECONDS = 60.0  # between calls of a forbidden procedure: each one is an error in the server's log
AREAS_SECONDS = 60.0  # an area that is added is seen after at most this long
HEALTH_SECONDS = 10.0  # queue_health reads much: its answer is reused for this long
OVERVIEW_SECONDS = 1.0
MOST_CONSUMERS = 10_000  # the most that list_consumers returns: silent ones first
ERRORS = 100
ERRORS_SECONDS = 5.0  # and list_errors reads all dead letters of a queue


@dataclass(frozen=True)
class _Kept:
    """A cached answer: until when it is used, what it left out, what is absent, and what failed."""

    until: float
    value: Any
    left_out: list[str]
    absent: list[str]
    errors: dict[str, Exception]


class Looking:
    """Calls that only read, over one session.

    `left_out`: what the user may not see, such as "errors". `absent`: the areas of calls that were not made, because
    they are not installed. `failed`: what could not be read, and why.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.left_out: list[str] = []
        self.absent: list[str] = []
        self._areas: tuple[str, ...] = ()
        self._areas_until = 0.0
        self._parts = Parts()
        self._kept: dict[Any, _Kept] = {}
        self._forbidden_until: dict[str, float] = {}

    @property
    def failed(self) -> dict[str, str]:
        return {name: said(error) for name, error in self._parts.errors.items()}

    def begin(self) -> None:
        """Begin a new answer."""
        self.left_out.clear()
        self.absent.clear()
        self._parts = Parts()

    def rows(self, what: str, procedure: str, *arguments: Any) -> list[Row]:
        """The rows of a call; none if it fails, and `what` is then in left_out or failed. Raises as Parts.get.

        A procedure of an area that is not installed is not called, and the area is then in absent.
        """

        def call() -> list[Row]:
            if not self.has(area):
                return []
            now = time.monotonic()
            if now >= self._forbidden_until.get(procedure, now):
                try:
                    return self.session.call(procedure, *arguments)
                except NotAllowed:
                    self._forbidden_until[procedure] = now + NOT_ALLOWED_SECONDS
            if what not in self.left_out:
                self.left_out.append(what)
            return []

        area = contract.load().every[procedure].area
        return self._parts.get(what, call, [])

    def has(self, area: str) -> bool:
        """Whether an area is installed; if not, it is then in absent. True if that cannot be read."""
        if area in contract.CORE or area in self._installed():
            return True
        if area not in self.absent:
            self.absent.append(area)
        return False

    def _installed(self) -> tuple[str, ...]:
        if time.monotonic() >= self._areas_until:
            seconds = AREAS_SECONDS
            try:
                self._areas = self.session.areas()
            except Disconnected:
                raise
            except Exception as error:  # the calls then say what is wrong
                self._areas = tuple(contract.load().areas)
                seconds = NOT_ALLOWED_SECONDS if isinstance(error, NotAllowed) else OVERVIEW_SECONDS
            self._areas_until = time.monotonic() + seconds
        return self._areas

    def raise_if_nothing(self, *parts: str) -> None:
        """Raise the error of the first of these parts if all of them failed."""
        if all(part in self._parts.errors for part in parts):
            raise self._parts.errors[parts[0]]

    def kept(self, key: Any, seconds: float, work: Callable[[], T]) -> T:
        """The result of `work`, cached for `seconds`, or for four times its duration if that is longer.

        What it left out and what failed is kept with it.
        """
        now = time.monotonic()
        if key not in self._kept or now >= self._kept[key].until:
            self._kept = {name: entry for name, entry in self._kept.items() if now < entry.until}
            left_out, absent, errors = list(self.left_out), list(self.absent), self._parts.errors
            self.begin()
            value = work()
            took = time.monotonic() - now
            until = now + took + max(seconds, 4 * took)
            self._kept[key] = _Kept(until, value, list(self.left_out), list(self.absent), self._parts.errors)
            self.left_out[:], self.absent[:], self._parts.errors = left_out, absent, errors
        kept = self._kept[key]
        self.left_out += [name for name in kept.left_out if name not in self.left_out]
        self.absent += [area for area in kept.absent if area not in self.absent]
        self._parts.errors = self._parts.errors | kept.errors
        return cast(T, kept.value)

    def forget(self) -> None:
        """Clear the cached answers, after a change."""
        self._kept = {}

    def health(self) -> list[Row]:
        """The rows of queue_health, at most some seconds old."""
        return self.kept("health", HEALTH_SECONDS, lambda: self.rows("health", "queue_health"))

    def stats(self) -> list[Row]:
        """The rows of queue_stats of all queues, at most some seconds old."""
        return self.kept("stats", OVERVIEW_SECONDS, lambda: self.rows("queues", "queue_stats"))

    def consumers(self) -> list[Row]:
        """The rows of list_consumers of all queues, at most MOST_CONSUMERS, at most some seconds old."""
        return self.kept(
            "consumers", OVERVIEW_SECONDS, lambda: self.rows("consumers", "list_consumers", None, MOST_CONSUMERS)
        )

    def errors(self, type: str, dead: int) -> list[Row]:
        """The rows of list_errors, at most some seconds old while the queue has as many dead letters."""
        key = ("errors", type, dead)
        return self.kept(key, ERRORS_SECONDS, lambda: self.rows("errors", "list_errors", type, ERRORS))
