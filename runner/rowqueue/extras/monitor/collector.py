"""A prometheus_client collector for the queues of several databases; it works with any registry.

Figures are read on request and kept for a few seconds: two Prometheus servers cost a database no more than one. Each
database has its own thread and connection: one that is unreachable or slow does not delay the others.
docs/operate/metrics.md lists the names; `figures` defines them and computes them from rows.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ...consume.link import Link, Outage
from ...databases import (
    Conflict,
    Database,
    Disconnected,
    NotAllowed,
    SchemaMissing,
    Session,
    how_to_add,
)
from ...escaping import escaped
from ...install import contract
from .figures import KINDS, METRICS, PARTS, Limit, Sample, Totals, area_of
from .parts import Parts, said

log = logging.getLogger("rowqueue")

CACHE_SECONDS = 5.0
TIMEOUT_SECONDS = 5.0  # less than Prometheus's default limit of 10 s
MAX_NAMES = 500
# queue_health compares every procedure with its installed text: up to 0.2 s, while all other calls take 0.02 s.
# The incidents need several calls.
KEEP_SECONDS = {"queue_health": 60.0, "incidents": 60.0}
AREAS_SECONDS = 60.0  # an area that is added is reported after at most this long
ASK_AGAIN_SECONDS = 600.0  # between calls of a procedure without EXECUTE: each one is an error in the server's log


@dataclass
class Answer:
    """The answer of one database: its samples, none when it is down, and the monotonic time of the answer."""

    samples: list[Sample]
    is_up: bool
    seconds: float = 0.0
    at: float = field(default_factory=time.monotonic)


class QueueCollector(Collector):
    """Collects the figures of queues in several databases.

    `databases`: pairs of a name, for the label `database`, and the database. `cache_seconds`: how long an answer is
    reused. `timeout_seconds`: a database that takes longer is reported as down. `max_names`: report at most this many
    queues, feeds and polling tables per database; those reported first stay. Any thread may call the methods.
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
        """All metrics without samples: a registry checks for duplicate names without asking a database."""
        return iter(_families().values())

    def collect(self) -> Iterator[Metric]:
        """The current figures, or cached ones. Never raises, and takes little longer than `timeout_seconds`."""
        families = _families()
        for target, answer in self._answers():
            up = Sample("rowqueue_up", (), float(answer.is_up))
            took = Sample("rowqueue_collect_duration_seconds", (), answer.seconds)
            # Prometheus refuses all of an answer with control characters in a label, or with a sample twice.
            samples = {(one.name, *map(escaped, one.labels)): one.value for one in (up, took, *answer.samples)}
            for (name, *labels), value in samples.items():
                families[name].add_metric((target.name, *labels), value)
        return (family for family in families.values() if family.samples)

    def is_ready(self) -> bool:
        """Whether at least one database answers."""
        return any(answer.is_up for _, answer in self._answers())

    def close(self) -> None:
        """Close the connections as soon as running calls have ended."""
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
    """One database, the thread that asks it, and its last answer."""

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
        """The last answer if it is fresh, or a pending answer, or a new request."""
        with self._lock:
            future = self._future
            if future is not None and (not future.done() or self._is_fresh(future.result())):
                return future
            self._future = future = Future()
            if self._thread is None:
                # A daemon: at its end, the process does not wait for a server that does not answer.
                self._thread = threading.Thread(target=self._work, name=f"collect {self.name}", daemon=True)
                self._thread.start()
            self._inbox.put(future)
            return future

    def _is_fresh(self, answer: Answer) -> bool:
        return time.monotonic() - answer.at < self._cache_seconds

    def answer(self, future: Future[Answer], deadline: float) -> Answer:
        """The answer, or an answer that says down when none comes by `deadline`. Late answers are not used."""
        asked_at = time.monotonic()
        try:
            answer = future.result(max(0.0, deadline - asked_at))
        except NotYet:
            if not self._is_late:
                log.warning("%s: no answer in time; reported as down until it answers", self.name)
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
    """The connection to one database and its calls; only the thread of its target uses it."""

    def __init__(self, name: str, database: Database, max_names: int) -> None:
        self._name = name
        self._outage = Outage(name=f"database {name}")
        self._link = Link(database, "runner exporter", self._outage)
        self._limits = {kind: Limit(name, kind, max_names) for kind in KINDS}
        self._totals = Totals()
        self._refused: dict[str, float] = {}  # procedures that are missing or not granted: when to call them again
        self._kept: dict[str, tuple[float, list[Sample]]] = {}  # answers of slow procedures, and until when to use them
        self._said = ""
        self._areas = frozenset[str]()
        self._areas_until = 0.0
        self._absent: set[str] = set()

    def read(self) -> Answer:
        """Call all procedures. Never raises."""
        began = time.monotonic()
        try:
            try:
                samples = self._link.once(self._samples)
            except Disconnected:  # the connection was lost since the last call; the server may answer a new one
                samples = self._link.once(self._samples)
            return Answer(samples, True, time.monotonic() - began)
        except Exception as error:  # also a driver's: the next request may succeed
            self._kept.clear()
            self._areas_until = 0.0
            if not isinstance(error, Disconnected):  # the link logs that one
                self._say(said(error))
            return Answer([], False, time.monotonic() - began)

    def close(self) -> None:
        self._link.close()

    def _samples(self, session: Session) -> list[Sample]:
        """The samples of all parts that can be read. Raises the first error if none can."""
        parts = Parts()
        now = time.monotonic()
        areas = self._installed(session, now)
        there = [name for name in PARTS if area_of(name) in areas]
        asked = [name for name in there if self._refused.get(name, now) <= now]
        read = {name: parts.get(name, partial(self._part, session, name, now), None) for name in asked}
        if len(parts.errors) == len(asked):
            self._refused.clear()  # after an installation or a grant, all may succeed the next time
            raise next(iter(parts.errors.values()))
        self._note(parts.errors)
        samples = [Sample("rowqueue_part_up", (name,), float(read.get(name) is not None)) for name in there]
        samples += [sample for found in read.values() for sample in found or ()]
        limits = [(kind, self._limits[kind]) for kind, part in KINDS.items() if part in there]
        return samples + [Sample("rowqueue_left_out", (kind,), limit.left_out) for kind, limit in limits]

    def _installed(self, session: Session, now: float) -> frozenset[str]:
        """The areas that are installed; all if this user may not read that."""
        if now < self._areas_until:
            return self._areas
        try:
            self._areas = frozenset(session.areas())
        except Disconnected:
            raise
        except Exception:  # the parts then say what is wrong
            self._areas = frozenset(contract.load().areas)
        self._areas_until = now + AREAS_SECONDS
        absent = {area_of(name) for name in PARTS} - self._areas
        if absent and absent != self._absent:
            log.info("%s: %s", self._name, how_to_add(absent))
        self._absent = absent
        return self._areas

    def _part(self, session: Session, procedure: str, now: float) -> list[Sample]:
        until, samples = self._kept.get(procedure, (now, []))
        if until <= now:
            samples = list(PARTS[procedure](session, self._limits, self._totals))
            if procedure in KEEP_SECONDS:
                self._kept[procedure] = now + KEEP_SECONDS[procedure], samples
        return samples

    def _note(self, errors: dict[str, Exception]) -> None:
        """Log once what cannot be read; call less often what is missing or not granted. Conflicts pass."""
        refused = [name for name, error in errors.items() if isinstance(error, (NotAllowed, SchemaMissing))]
        self._refused |= dict.fromkeys(refused, time.monotonic() + ASK_AGAIN_SECONDS)
        lasting = {name: error for name, error in errors.items() if not isinstance(error, Conflict)}
        if lasting:
            self._say(f"metrics of {', '.join(lasting)} are left out: {said(next(iter(lasting.values())))}")

    def _say(self, text: str) -> None:
        if text != self._said:
            log.warning("%s: %s", self._name, escaped(text))
        self._said = text
