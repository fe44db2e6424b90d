"""What is wrong with the queues now: one list for `runner doctor`, `runner top`, `runner web` and the exporter.

It is computed from what the procedures return, and from at most some calls per queue for the worst of them: also with
20,000 queues it is a few calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...databases import Row
from .counts import count_of
from .reading import MOST_CONSUMERS, Looking

KINDS = ("no_consumer", "silent_consumers", "late_schedule", "dead_letters", "paused_with_work", "growing_backlog")

# The kinds that are found only if an area is installed.
NEEDS = {
    "no_consumer": "consumers",
    "silent_consumers": "consumers",
    "growing_backlog": "consumers",
    "late_schedule": "schedules",
}

INCIDENT_SECONDS = 5.0
WAITING_SECONDS = 60.0  # ready messages that nobody claims for this long need a consumer
BACKLOG_SECONDS = 300.0
LATE_SECONDS = 60.0  # consumers send what is due; an idle one looks every few seconds
_WORST = 10  # for so many queues, errors and rates are read too
_ERRORS = 3  # of each of them
_NAMES = 5  # in one line


@dataclass(frozen=True)
class Incident:
    """`kind`: one of KINDS. `verdict`: warn or bad. `name`: the queue or the schedule. `since`: None if unknown.

    `error`: of dead letters, as list_errors shows it.
    """

    kind: str
    verdict: str
    name: str
    since: datetime | None
    text: str
    error: str = ""


def recent_incidents(looking: Looking) -> list[Incident]:
    """As `incidents`, but several viewers share an answer."""
    return looking.kept("incidents", INCIDENT_SECONDS, lambda: incidents(looking))


def incidents(looking: Looking) -> list[Incident]:
    """The incidents, the worst kinds first.

    What cannot be read is in looking.left_out, in looking.absent or in looking.failed.
    """
    now = looking.session.now()
    stats = looking.stats()
    consumers = looking.consumers()
    found = [
        *_without_consumer(looking, stats, consumers, now),
        *_silent(consumers),
        *_late(looking.rows("schedules", "list_schedules", None, 0), now),
        *_dead(looking, stats),
        *_paused(stats),
        *_growing(looking, stats, now),
    ]
    return sorted(found, key=lambda incident: KINDS.index(incident.kind))


def _without_consumer(looking: Looking, stats: list[Row], consumers: list[Row], now: datetime) -> Iterator[Incident]:
    """Queues whose messages wait while no consumer reports and no claim holds one: consumers need not report."""
    if "consumers" in {*looking.left_out, *looking.absent, *looking.failed}:
        return
    working = {row["type"] for row in consumers if row["status"] == "working"}
    is_whole = len(consumers) < MOST_CONSUMERS
    for row in stats:
        waits = row["oldest_ready_seconds"] or 0
        is_held = row["active"] or row["type"] in working or not is_whole
        if row["ready"] and not row["paused"] and waits > WAITING_SECONDS and not is_held:
            text = f"{count_of(row, 'ready')} ready, no consumer"
            yield Incident("no_consumer", "bad", row["type"], now - timedelta(seconds=waits), text)


def _silent(consumers: list[Row]) -> Iterator[Incident]:
    silent: dict[str, list[Row]] = {}
    for row in consumers:
        if row["status"] == "silent":
            silent.setdefault(row["type"], []).append(row)
    for type, rows in sorted(silent.items()):
        names = ", ".join(row["consumer"] for row in rows[:_NAMES]) + (", …" if len(rows) > _NAMES else "")
        since = max(row["reported_at"] for row in rows)
        yield Incident("silent_consumers", "bad", type, since, f"no longer reported, and not stopped: {names}")


def _late(schedules: list[Row], now: datetime) -> Iterator[Incident]:
    for row in schedules:
        if row["next_at"] is not None and (now - row["next_at"]).total_seconds() > LATE_SECONDS:
            text = f"due and not sent; a consumer of {row['type']} would send it"
            yield Incident("late_schedule", "bad", row["name"], row["next_at"], text)


def _dead(looking: Looking, stats: list[Row]) -> Iterator[Incident]:
    dead = sorted((row for row in stats if row["dead"]), key=lambda row: (-row["dead"], row["type"]))
    for place, row in enumerate(dead):
        errors = looking.errors(row["type"], row["dead"])[:_ERRORS] if place < _WORST else []
        for error in errors:
            text = f"{error['messages']:,} dead letters"
            yield Incident("dead_letters", "warn", row["type"], error["first_at"], text, error["error"] or "(no error)")
        if not errors:
            yield Incident("dead_letters", "warn", row["type"], None, f"{count_of(row, 'dead')} dead letters")


def _paused(stats: list[Row]) -> Iterator[Incident]:
    for row in stats:
        if row["paused"] and row["ready"]:
            yield Incident(
                "paused_with_work", "warn", row["type"], None, f"paused, with {count_of(row, 'ready')} ready"
            )


def _growing(looking: Looking, stats: list[Row], now: datetime) -> Iterator[Incident]:
    """Queues whose messages wait longer than before, although a consumer works: the last five minutes decide."""
    waiting = [row for row in stats if (row["oldest_ready_seconds"] or 0) > BACKLOG_SECONDS and not row["paused"]]
    waiting.sort(key=lambda row: -row["oldest_ready_seconds"])
    this = now.replace(second=0, microsecond=0)
    for row in waiting[:_WORST]:
        minutes = looking.rows("throughput", "throughput", row["type"], this - timedelta(minutes=10))
        late = [minute for minute in minutes if this - timedelta(minutes=5) <= minute["minute_at"] < this]
        early = [minute for minute in minutes if minute["minute_at"] < this - timedelta(minutes=5)]
        done = sum(minute["completed"] for minute in late)
        if done and _wait(late) > _wait(early):
            text = f"{count_of(row, 'ready')} ready, {done // 5:,} completed per minute, and the wait grows"
            yield Incident(
                "growing_backlog", "warn", row["type"], now - timedelta(seconds=row["oldest_ready_seconds"]), text
            )


def _wait(minutes: list[Row]) -> float:
    """The average time from sending to the first attempt, in milliseconds."""
    attempts: int = sum(minute["completed"] + minute["failed"] for minute in minutes)
    waited: int = sum(minute["waited_ms"] for minute in minutes)
    return waited / max(attempts, 1)
