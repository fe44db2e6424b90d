"""What the screens show, asked of the database on the desk's thread."""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..databases import Forbidden, Row, Session

# Minutes of throughput, and samples of what queues hold, that are kept.
MINUTES = 60
SAMPLES = 120
# The net change is an average over so many seconds.
_WINDOW = 60.0
# All minutes are read again that often: a message counts in the minute of its sending, which may be long ago.
_AGAIN = 60.0


@dataclass
class Overview:
    """All queues, with their consumers, at one moment of the server's clock. `lacking`: what this user may not see."""

    now: datetime
    queues: list[Row]
    consumers: list[Row]
    throughput: dict[str, list[Row | None]]
    change: dict[str, float]
    ready: dict[str, list[float]]
    lacking: set[str]


@dataclass
class Rights:
    """Procedures that this user may not call. They are not called at each refresh, as servers log each refusal."""

    lacking: set[str] = field(default_factory=set)

    def call(self, session: Session, procedure: str, *arguments: object) -> list[Row]:
        """The rows of a procedure, none where it may not be called."""
        if procedure in self.lacking:
            return []
        try:
            return session.call(procedure, *arguments)
        except Forbidden:
            self.lacking.add(procedure)
            return []


class Watch:
    """Looks at all queues again and again, and remembers what it needs for rates."""

    def __init__(self) -> None:
        self.rights = Rights()
        self._minutes: dict[tuple[str, datetime], Row] = {}
        self._all_read = float("-inf")
        self._samples: dict[str, deque[tuple[float, int | None, int]]] = {}

    def look(self, session: Session) -> Overview:
        """One refresh: three cheap calls."""
        now = session.now()
        queues = self.rights.call(session, "queue_stats", None)
        consumers = self.rights.call(session, "list_consumers", None)
        self._read_minutes(session, now)
        self._sample(queues)
        types = {row["type"] for row in queues}
        return Overview(
            now,
            queues,
            consumers,
            _series(self._minutes.values(), now),
            {type: change for type in types if (change := self._change(type)) is not None},
            {type: [ready for _, _, ready in self._samples[type]] for type in types},
            set(self.rights.lacking),
        )

    def health(self, session: Session) -> list[Row]:
        """What hurts, which may take seconds; also the moment to try again what was not allowed."""
        self.rights.lacking.clear()
        found = self.rights.call(session, "queue_health")
        order = {"bad": 0, "warn": 1}
        return sorted((row for row in found if row["verdict"] in order), key=lambda row: order[row["verdict"]])

    def _read_minutes(self, session: Session, now: datetime) -> None:
        again = time.monotonic() - self._all_read > _AGAIN
        back = timedelta(minutes=MINUTES if again else 2)
        for row in self.rights.call(session, "throughput", None, now - back):
            self._minutes[row["type"], row["minute"]] = row
        if again:
            self._all_read = time.monotonic()
            oldest = now - timedelta(minutes=MINUTES + 1)
            self._minutes = {key: row for key, row in self._minutes.items() if key[1] > oldest}

    def _sample(self, queues: Sequence[Row]) -> None:
        for row in queues:
            held = None if row["capped"] else row["ready"] + row["delayed"] + row["active"] + row["expired"]
            samples = self._samples.setdefault(row["type"], deque(maxlen=SAMPLES))
            samples.append((time.monotonic(), held, row["ready"]))

    def _change(self, type: str) -> float | None:
        """By how many messages per minute a queue grows; None while that is not known."""
        samples = self._samples[type]
        last, held, _ = samples[-1]
        if held is None:
            return None
        for then, before, _ in samples:
            if before is not None and last - then <= _WINDOW and last > then:
                return (held - before) * 60 / (last - then)
        return None


def _series(rows: Iterable[Row], now: datetime) -> dict[str, list[Row | None]]:
    """The whole minutes of each type, the last one last; None for a minute without any."""
    found: dict[str, list[Row | None]] = {}
    for row in rows:
        back = int((now - row["minute"]).total_seconds() // 60)
        if 1 <= back <= MINUTES:
            found.setdefault(row["type"], [None] * MINUTES)[MINUTES - back] = row
    return found
