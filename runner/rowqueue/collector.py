"""What Prometheus is told of queues: a collector of prometheus_client for any registry, over several databases.

Figures are read when somebody asks for them, and kept for a few seconds, so that two Prometheus servers cost a database
no more than one. Each database has a thread and a connection of its own: one that is away or slow keeps nobody else's
figures back. docs/metrics.md lists the names; `figures` has them and how they come from rows.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from .databases import Conflict, Database, DatabaseError, Disconnected, QueueError, Session
from .figures import KINDS, METRICS, PARTS, Limit, Sample, Totals
from .link import Link, Outage

log = logging.getLogger("rowqueue")

CACHE_SECONDS = 5.0
TIMEOUT_SECONDS = 5.0  # Prometheus's own limit is 10 s where it is not told another
MAX_NAMES = 500
# queue_health compares every procedure with what was installed: up to 0.2 s where all else takes 0.02.
KEEP_SECONDS = {"queue_health": 60.0}
ASK_AGAIN_SECONDS = 600.0  # a procedure that this user may not call is asked for so seldom: each time is an error there


@dataclass
class Answer:
    """What one database has said: samples, none when it is away, and the monotonic time of that."""

    samples: list[Sample]
    is_up: bool
    seconds: float = 0.0
    at: float = field(default_factory=time.monotonic)


class QueueCollector(Collector):
    """Collects the figures of queues in several databases.

    `databases`: a name for the label `database`, and the database. `cache_seconds`: so long an answer is given again.
    `timeout_seconds`: a database that takes longer is reported as down. `max_names`: of so many queues, feeds and
    polling tables of each database is told; those that were there first stay. May be asked from any thread.
    """

    def __init__(
        self,
        databases: Iterable[tuple[str, Database]],
        cache_seconds: float = CACHE_SECONDS,
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_names: int = MAX_NAMES,
    ) -> None:
        self._targets = [_Target(name, database, cache_seconds, max_names) for name, database in databases]
        self._timeout = timeout_seconds

    def describe(self) -> Iterator[Metric]:
        """All metrics without samples: a registry then finds double names without asking a database."""
        return iter(_families().values())

    def collect(self) -> Iterator[Metric]:
        """What is known now, or was a moment ago. Never raises, and never lasts much longer than the time limit."""
        families = _families()
        for target, answer in self._answers():
            up = Sample("rowqueue_up", (), float(answer.is_up))
            took = Sample("rowqueue_collect_duration_seconds", (), answer.seconds)
            for sample in (up, took, *answer.samples):
                families[sample.name].add_metric((target.name, *sample.labels), sample.value)
        return (family for family in families.values() if family.samples)

    def is_ready(self) -> bool:
        """Whether some database answers."""
        return any(answer.is_up for _, answer in self._answers())

    def close(self) -> None:
        """Close the connections, as soon as what runs on them is over."""
        for target in self._targets:
            target.close()

    def _answers(self) -> "list[tuple[_Target, Answer]]":
        deadline = time.monotonic() + self._timeout
        asked = [(target, target.ask()) for target in self._targets]  # all at once, then wait
        return [(target, target.answer(future, deadline)) for target, future in asked]


def _families() -> dict[str, Any]:
    kinds = {True: CounterMetricFamily, False: GaugeMetricFamily}
    return {
        metric.name: kinds[metric.name.endswith("_total")](
            metric.name, metric.help, labels=("database", *metric.labels)
        )
        for metric in METRICS
    }


class _Target:
    """One database, with the thread that asks it and the answer it gave last."""

    def __init__(self, name: str, database: Database, cache_seconds: float, max_names: int) -> None:
        self.name = name
        self._reading = _Reading(name, database, max_names)
        self._cache_seconds = cache_seconds
        self._lock = threading.Lock()
        self._future: Future[Answer] | None = None
        self._inbox: SimpleQueue[Future[Answer] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_late = False

    def ask(self) -> Future[Answer]:
        """The answer that is still fresh, the one that is under way, or a new one."""
        with self._lock:
            future = self._future
            if future is not None and (not future.done() or self._is_fresh(future.result())):
                return future
            self._future = future = Future()
            if self._thread is None:
                # A daemon: the process need not wait at its end for a server that does not answer.
                self._thread = threading.Thread(target=self._work, name=f"collect {self.name}", daemon=True)
                self._thread.start()
            self._inbox.put(future)
            return future

    def _is_fresh(self, answer: Answer) -> bool:
        return time.monotonic() - answer.at < self._cache_seconds

    def answer(self, future: Future[Answer], deadline: float) -> Answer:
        """The answer, or that there is none in time. What comes late is old by the time somebody asks again."""
        asked_at = time.monotonic()
        try:
            answer = future.result(max(0.0, deadline - asked_at))
        except NotYet:
            if not self._is_late:
                log.warning("%s: no answer in time; reported as down until there is one", self.name)
            self._is_late = True
            return Answer([], False, time.monotonic() - asked_at)
        self._is_late = False
        return answer

    def _work(self) -> None:
        while (future := self._inbox.get()) is not None:
            future.set_result(self._reading.read())
        self._reading.close()

    def close(self) -> None:
        self._inbox.put(None)


class _Reading:
    """The connection to one database and the calls on it; only the thread of its target uses it."""

    def __init__(self, name: str, database: Database, max_names: int) -> None:
        self._name = name
        self._outage = Outage(name=f"database {name}")
        self._link = Link(database, "runner exporter", self._outage)
        self._limits = {kind: Limit(name, kind, max_names) for kind in KINDS}
        self._totals = Totals()
        self._refused: dict[str, float] = {}  # procedures that may not be called or are not there: when to ask again
        self._kept: dict[str, tuple[float, list[Sample]]] = {}  # what is dear to ask for, and until when it is good
        self._said = ""

    def read(self) -> Answer:
        """Ask for everything. Never raises."""
        began = time.monotonic()
        try:
            try:
                samples = self._link.once(self._samples)
            except Disconnected:  # the connection was lost since the last time; the server may be there
                samples = self._link.once(self._samples)
            return Answer(samples, True, time.monotonic() - began)
        except Exception as error:  # a driver's, too: the next look may find it mended
            self._kept.clear()
            if not isinstance(error, Disconnected):  # that one is told by the link
                self._say(f"{type(error).__name__}: {error}" if not isinstance(error, DatabaseError) else str(error))
            return Answer([], False, time.monotonic() - began)

    def close(self) -> None:
        self._link.close()

    def _samples(self, session: Session) -> list[Sample]:
        """What all procedures say that this user may call. Raises DatabaseError or QueueError when none may be."""
        samples: list[Sample] = []
        errors: dict[str, Exception] = {}
        now = time.monotonic()
        asked = [procedure for procedure in PARTS if self._refused.get(procedure, now) <= now]
        for procedure in asked:
            try:
                samples += self._part(session, procedure, now)
            except Disconnected:
                raise
            except (DatabaseError, QueueError) as error:
                errors[procedure] = error
        if len(errors) == len(asked):
            self._refused.clear()  # with an installation or a grant to come, all of them may be there the next time
            raise next(iter(errors.values()))
        self._note(errors)
        samples += [Sample("rowqueue_left_out", (kind,), limit.left_out) for kind, limit in self._limits.items()]
        return samples

    def _part(self, session: Session, procedure: str, now: float) -> list[Sample]:
        until, samples = self._kept.get(procedure, (now, []))
        if until <= now:
            samples = list(PARTS[procedure](session, self._limits, self._totals))
            if procedure in KEEP_SECONDS:
                self._kept[procedure] = now + KEEP_SECONDS[procedure], samples
        return samples

    def _note(self, errors: dict[str, Exception]) -> None:
        """Say once what is left out, and remember it for a while; a conflict passes by itself."""
        lasting = {name: error for name, error in errors.items() if not isinstance(error, Conflict)}
        self._refused |= dict.fromkeys(lasting, time.monotonic() + ASK_AGAIN_SECONDS)
        if lasting:
            self._say(f"metrics of {', '.join(lasting)} are left out: {next(iter(lasting.values()))}")

    def _say(self, text: str) -> None:
        if text != self._said:
            log.warning("%s: %s", self._name, text)
        self._said = text
