"""A prometheus_client collector for the queues of several databases; it works with any registry.

Figures are read on request and kept for a few seconds: two Prometheus servers cost a database no more than one. Each
database is `Watched`, as for `runner top` and web: one that is unreachable or slow does not delay the others.
docs/operate/metrics.md lists the names; `figures` defines them and computes them from rows.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ...databases import Conflict, Database, NotAllowed, SchemaMissing, how_to_add
from ...databases.link import Outage
from ...escaping import escaped
from .figures import KINDS, METRICS, PARTS, Limit, Sample, Totals, area_of
from .parts import Parts, said
from .reading import Looking
from .watched import Away, Watched

log = logging.getLogger("rowqueue")

CACHE_SECONDS = 5.0
TIMEOUT_SECONDS = 5.0  # less than Prometheus's default limit of 10 s
MAX_NAMES = 500
# queue_health compares every procedure with its installed text: up to 0.2 s, while all other calls take 0.02 s.
# The incidents need several calls.
KEEP_SECONDS = {"queue_health": 60.0, "incidents": 60.0}
ASK_AGAIN_SECONDS = 600.0  # between calls of a procedure without EXECUTE: each one is an error in the server's log


@dataclass
class Answer:
    """The answer of one database: its samples, none when it is down, and how long it took."""

    samples: list[Sample]
    is_up: bool
    seconds: float


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
    """One database, and its last answer."""

    def __init__(self, name: str, database: Database, cache_seconds: float, max_names: int) -> None:
        self.name = name
        self.watched = Watched(name, database, "runner exporter")
        self._cache_seconds = cache_seconds
        self._lock = threading.Lock()
        self._future: Future[Answer] | None = None
        self._stale_at: float | None = None  # None until the end of `_future` was noted
        self._is_late = False
        self._outage = Outage(name=f"database {name}")
        self._limits = {kind: Limit(name, kind, max_names) for kind in KINDS}
        self._totals = Totals()
        self._refused: dict[str, float] = {}  # procedures that are missing or not granted: when to call them again
        self._said = ""
        self._absent: list[str] = []

    def ask(self) -> Future[Answer]:
        """The last answer if it is fresh, or a pending answer, or a new request."""
        with self._lock:
            if self._future is None or (self._stale_at is not None and time.monotonic() >= self._stale_at):
                self._future, self._stale_at = self.watched.submit(self._read), None
            return self._future

    def answer(self, future: Future[Answer], deadline: float) -> Answer:
        """The answer, or an answer that says down when none comes by `deadline`. Late answers are not used."""
        asked_at = time.monotonic()
        try:
            error = future.exception(max(0.0, deadline - asked_at))
        except NotYet:
            if not self._is_late:
                log.warning("%s: no answer in time; reported as down until it answers", self.name)
            self._is_late = True
            return Answer([], False, time.monotonic() - asked_at)
        self._is_late = False
        with self._lock:
            if future is self._future and self._stale_at is None:
                self._stale_at = time.monotonic() + self._cache_seconds
                self._note(error)
        return Answer([], False, time.monotonic() - asked_at) if error is not None else future.result()

    def _note(self, error: BaseException | None) -> None:
        """Log a change: whether the database is reachable, and its errors."""
        if isinstance(error, Away) and error.is_unreachable:
            self._outage.begin(self, error)
            return
        self._outage.end(self)
        if error is not None:
            self._say(said(error))

    def close(self) -> None:
        self.watched.close()

    # ---- in the thread of `watched`

    def _read(self, looking: Looking) -> Answer:
        """The samples of all parts that can be read. Raises the first error if none can."""
        began = time.monotonic()
        looking.begin()
        there = [name for name in PARTS if looking.has(area_of(name))]
        if looking.absent and looking.absent != self._absent:
            log.info("%s: %s", self.name, how_to_add(looking.absent))
        self._absent = list(looking.absent)
        asked = [name for name in there if self._refused.get(name, began) <= began]
        parts = Parts()
        read = {name: parts.get(name, partial(self._part, looking, name), None) for name in asked}
        # The incidents are those that the account may read: without any right there are none, and no error.
        if parts.errors and parts.errors.keys() >= {*asked} - {"incidents"}:
            self._refused.clear()  # after an installation or a grant, all may succeed the next time
            raise next(iter(parts.errors.values()))
        self._refuse(parts.errors)
        samples = [Sample("rowqueue_part_up", (name,), float(read.get(name) is not None)) for name in there]
        samples += [sample for found in read.values() for sample in found or ()]
        limits = [(kind, self._limits[kind]) for kind, part in KINDS.items() if part in there]
        samples += [Sample("rowqueue_left_out", (kind,), limit.left_out) for kind, limit in limits]
        return Answer(samples, True, time.monotonic() - began)

    def _part(self, looking: Looking, name: str) -> list[Sample]:
        def work() -> list[Sample]:
            return list(PARTS[name](looking, self._limits, self._totals))

        return looking.kept(name, KEEP_SECONDS[name], work) if name in KEEP_SECONDS else work()

    def _refuse(self, errors: dict[str, Exception]) -> None:
        """Log once what cannot be read; call less often what is missing or not granted. Conflicts pass."""
        refused = [name for name, error in errors.items() if isinstance(error, (NotAllowed, SchemaMissing))]
        self._refused |= dict.fromkeys(refused, time.monotonic() + ASK_AGAIN_SECONDS)
        lasting = {name: error for name, error in errors.items() if not isinstance(error, Conflict)}
        if lasting:
            self._say(f"metrics of {', '.join(lasting)} are left out: {said(next(iter(lasting.values())))}")

    def _say(self, text: str) -> None:
        if text != self._said:
            log.warning("%s: %s", self.name, escaped(text))
        self._said = text
