"""Schedules: what a cron expression means, and one message at each of its times."""

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import servers
from cronsim import CronSim, CronSimError
from rowqueue.databases import QueueError, Session
from support.queues import CONTRACT, Queue, call, refused

# The same zone under the names that databases know.
ZONES = {
    "Europe/Paris": "Romance Standard Time",
    "America/New_York": "Eastern Standard Time",
    "Australia/Sydney": "AUS Eastern Standard Time",
    "Asia/Kolkata": "India Standard Time",
}
MONDAY = datetime(2026, 11, 23, 10, 30, 15, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


def next_at(session: Session, cron: str, after: datetime | None = None, zone: str | None = None) -> datetime | None:
    [row] = call(session, "next_occurrence", cron, after, zone)
    found: datetime | None = row["next_at"]
    return found


@pytest.fixture
def session(lasting_session: Session) -> Session:
    return lasting_session


@pytest.fixture
def named(session: Session) -> Callable[[str], str]:
    """The database's own name of a time zone; a database that knows none skips the test."""

    def find(zone: str) -> str:
        for name in (zone, ZONES[zone]):
            try:
                next_at(session, "@daily", MONDAY, name)
                return name
            except QueueError as error:
                assert error.number == CONTRACT.errors["invalid_argument"].number
        pytest.skip(f"this database does not know {zone}")

    return find


# ---- the expression ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", "2026-11-23T10:31:00"),
        ("*/20 * * * *", "2026-11-23T10:40:00"),
        ("30 10 * * *", "2026-11-24T10:30:00"),
        ("5-59/17,31 10 * * *", "2026-11-23T10:31:00"),
        ("40/5 10 * * *", "2026-11-23T10:40:00"),
        ("0 0 * JAN,feb *", "2027-01-01T00:00:00"),
        ("0 0 * * SUN", "2026-11-29T00:00:00"),
        ("0 0 * * 7", "2026-11-29T00:00:00"),
        ("0 0 * * FRI-SUN", "2026-11-27T00:00:00"),
        ("0 0 * * 6-7", "2026-11-28T00:00:00"),
        # Either day is enough, but with * in one of them both must match.
        ("0 0 1 * TUE", "2026-11-24T00:00:00"),
        ("0 0 */2 * TUE", "2026-12-01T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 0 31 * *", "2026-12-31T00:00:00"),
        ("59 23 31 12 *", "2026-12-31T23:59:00"),
        ("\t0  0\t* * *  ", "2026-11-24T00:00:00"),
        ("@hourly", "2026-11-23T11:00:00"),
        ("@daily", "2026-11-24T00:00:00"),
        ("@midnight", "2026-11-24T00:00:00"),
        ("@Weekly", "2026-11-29T00:00:00"),
        ("@monthly", "2026-12-01T00:00:00"),
        ("@yearly", "2027-01-01T00:00:00"),
        ("@annually", "2027-01-01T00:00:00"),
        ("@every 1", "2026-11-23T10:30:16"),
        ("@every 15", "2026-11-23T10:30:30"),
        ("@every 86400", "2026-11-24T00:00:00"),
        ("@every 315360000", "2029-12-17T00:00:00"),
        ("0 0 30 2 *", None),
        ("0 0 31 4,6,9,11 *", None),
    ],
)
def test_the_next_occurrence_is_what_the_expression_says(session: Session, cron: str, expected: str | None) -> None:
    assert next_at(session, cron, MONDAY) == (expected and at(expected))


def test_the_next_occurrence_is_later_than_the_moment_and_never_equal_to_it(session: Session) -> None:
    assert next_at(session, "30 10 * * *", at("2026-11-23T10:29:59.999999")) == at("2026-11-23T10:30:00")
    assert next_at(session, "30 10 * * *", at("2026-11-23T10:30:00")) == at("2026-11-24T10:30:00")
    assert next_at(session, "@every 60", at("2026-11-23T10:30:00")) == at("2026-11-23T10:31:00")


def test_the_next_occurrence_is_counted_from_now_by_default(session: Session) -> None:
    found = next_at(session, "@every 60")
    assert found is not None and timedelta(-5) < found - datetime.now(UTC) <= timedelta(seconds=65)
    assert found.second == 0


@pytest.mark.parametrize(
    "cron",
    [
        *(
            "* * * *",
            "* * * * * *",
            "@reboot",
            "@every",
            "@every 0",
            "@every -1",
            "@every 315360001",
            "@every 1.5",
            "@every 5m",
        ),
        *("60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8"),
        *(
            "5-1 * * * *",
            "*/0 * * * *",
            "1- * * * *",
            "-1 * * * *",
            "1,,2 * * * *",
            "*-5 * * * *",
            "** * * * *",
            "1//2 * * * *",
        ),
        *(
            "JAN * * * *",
            "* * * SUN *",
            "* * * * JAN",
            "* * * * UNM",
            "* * * * MONTUE",
            "? * * * *",
            "* * L * *",
            "* * * * 5#2",
        ),
        *(
            "٣ * * * *",
            "1 * * * *; DROP TABLE x",
            "%s * * * *",
            "' * * * *",
            "\\ * * * *",
            "1\n2 * * * *",
            "999999999999 * * * *",
            "\N{GRINNING FACE}" * 200,
        ),
    ],
)
def test_an_expression_that_cannot_be_read_is_refused(session: Session, cron: str) -> None:
    with refused("invalid_argument", "cron:"):
        next_at(session, cron, MONDAY)


@pytest.mark.parametrize("year", [1969, 3000])
def test_a_moment_that_is_too_far_away_is_refused(session: Session, year: int) -> None:
    with refused("invalid_argument", "after: must be in the years 1970 to 2999"):
        next_at(session, "@daily", datetime(year, 6, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", ["", "Europe/Nowhere", "UTC+3", "EST5EDT4", "+02:00", "SYSTEM", "'", "x" * 201])
def test_a_time_zone_that_is_not_known_is_refused(session: Session, zone: str) -> None:
    with refused("invalid_argument", "time_zone:"):
        next_at(session, "@daily", MONDAY, zone)


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        # 2027-03-28: 02:00 becomes 03:00, which is 01:00 UTC.
        ("30 2 * * *", "2027-03-27T12:00:00", ["2027-03-28T01:00:00", "2027-03-29T00:30:00"]),
        ("0,30 2 * * *", "2027-03-28T00:00:00", ["2027-03-28T01:00:00", "2027-03-29T00:00:00"]),
        ("*/20 2-3 * * *", "2027-03-28T00:30:00", ["2027-03-28T01:00:00", "2027-03-28T01:20:00"]),
        ("30 * * * *", "2027-03-28T00:00:00", ["2027-03-28T00:30:00", "2027-03-28T01:30:00"]),
        # 2027-10-31: 03:00 becomes 02:00, which is 01:00 UTC.
        ("30 2 * * *", "2027-10-30T12:00:00", ["2027-10-31T00:30:00", "2027-11-01T01:30:00"]),
        ("*/30 2 * * *", "2027-10-31T00:00:00", ["2027-10-31T00:30:00", "2027-11-01T01:00:00"]),
        ("30 * * * *", "2027-10-31T00:00:00", ["2027-10-31T00:30:00", "2027-10-31T01:30:00", "2027-10-31T02:30:00"]),
        ("30 3 * * *", "2027-10-31T00:00:00", ["2027-10-31T02:30:00"]),
    ],
)
def test_the_two_days_when_clocks_are_changed(
    session: Session, named: Callable[[str], str], cron: str, after: str, expected: list[str]
) -> None:
    zone = named("Europe/Paris")
    found, moment = [], at(after)
    for _ in expected:
        reached = next_at(session, cron, moment, zone)
        assert reached is not None
        found.append(moment := reached)
    assert found == [at(text) for text in expected]


def expression(chance: random.Random) -> str:
    """A random one that cronsim reads as Vixie's cron does: it takes 5-5/2 for 5-59/2."""

    def field(low: int, high: int, names: str = "") -> str:
        def value(number: int) -> str:
            named = names.split() and chance.random() < 0.3
            return names.split()[number % 7 if high == 7 else number - 1] if named else str(number)

        def item() -> str:
            kind = chance.choice("**svvra")
            first, last = sorted(chance.sample(range(low, high + 1), 2))
            if high == 7 and last == 7:  # the name of 7 is that of 0
                last = 6 if first < 6 else 7
            if kind in "*s":
                return "*" if kind == "*" else f"*/{chance.randint(1, high)}"
            if kind == "v":
                return value(first)
            if kind == "r" and last < 7:
                return f"{value(first)}-{value(last)}"
            return (
                f"{first}-{last}/{chance.randint(1, 9)}" if chance.random() < 0.7 else f"{first}/{chance.randint(1, 9)}"
            )

        return ",".join(item() for _ in range(chance.choice([1, 1, 1, 2, 3])))

    days, months = "SUN MON TUE WED THU FRI SAT", "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
    minute = field(0, 59) if chance.random() < 0.6 else str(chance.randint(0, 59))
    hour = field(0, 23) if chance.random() < 0.5 else str(chance.randint(0, 4))
    rest = [field(1, 31), field(1, 12, months), field(0, 7, days)]
    return " ".join([minute, hour, *(text if chance.random() < 0.5 else "*" for text in rest)])


def moments(chance: random.Random, zone: ZoneInfo) -> Iterator[datetime]:
    """Random ones, most of them near a change of the zone's clocks."""
    changes = []
    day = datetime(2005, 1, 1, tzinfo=UTC)
    while day.year < 2037:
        later = day + timedelta(hours=6)
        if later.astimezone(zone).utcoffset() != day.astimezone(zone).utcoffset():
            changes.append(later)
        day = later
    while True:
        moment = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(38 * 365 * 86_400))
        if changes and chance.random() < 0.7:
            moment = chance.choice(changes) - timedelta(seconds=chance.randrange(36_000))
        yield moment


def by_cronsim(cron: str, after: datetime, zone: ZoneInfo) -> datetime | None:
    """Another implementation of the same cron."""
    try:
        for found in CronSim(cron, after.astimezone(zone)):
            if found.astimezone(UTC) > after:
                return found.astimezone(UTC)
    except CronSimError:
        pass
    return None


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.level(4))])
def test_random_expressions_mean_what_another_implementation_takes_them_for(
    session: Session, named: Callable[[str], str], count: int
) -> None:
    chance = random.Random(15)
    zones = {"UTC": ZoneInfo("UTC")}
    for zone in ZONES:
        try:
            zones[named(zone)] = ZoneInfo(zone)
        except pytest.skip.Exception:
            break
    sources = {zone: moments(chance, zones[zone]) for zone in zones}
    for _ in range(count):
        cron, zone = expression(chance), chance.choice(list(zones))
        minute, hour = cron.split()[:2]
        if minute.startswith("*") and not hour.startswith("*"):
            zone = "UTC"  # cron lets a * of the minute stand for real time as well
        after = next(sources[zone])
        assert next_at(session, cron, after, zone) == by_cronsim(cron, after, zones[zone]), (cron, after, zone)


# ---- the messages ------------------------------------------------------------------------------------


class Schedule:
    """A schedule of one test's queue."""

    def __init__(self, q: Queue, server: servers.Server) -> None:
        self.q = q
        self.name = f"of {q.name}"
        self.table = server.table("schedule")
        self.marks = server.table("mark")

    def set(self, cron: str = "0 3 * * *", body: str = "body", **options: Any) -> dict[str, Any]:
        [row] = call(self.q.session, "set_schedule", self.name, self.q.name, cron, body, **options)
        return row

    def row(self) -> dict[str, Any]:
        [row] = self.q.call("list_schedules")
        return row

    def pass_time(self) -> datetime:
        """Let its next time be just past, and the next claim a full scan; returns that time."""
        self.change(next_at=timedelta(seconds=-1))
        self.q.sql(f"DELETE FROM {self.marks} WHERE type = %s", self.q.name)
        due: datetime = self.row()["next_at"]
        return due

    def change(self, **times: timedelta) -> None:
        """Set columns to a time that is so far from now, as only a DBA can."""
        values = [f"{name} = {self.q.can.instant.format(datetime.now(UTC) + span)}" for name, span in times.items()]
        self.q.sql(f"UPDATE {self.table} SET {', '.join(values)} WHERE name = %s", self.name)

    def run(self) -> int:
        [row] = call(self.q.session, "run_schedule", self.name)
        id: int = row["id"]
        return id

    def drop(self) -> int:
        [row] = call(self.q.session, "drop_schedule", self.name)
        count: int = row["affected"]
        return count


@pytest.fixture
def schedule(q: Queue, server: servers.Server) -> Iterator[Schedule]:
    schedule = Schedule(q, server)
    yield schedule
    schedule.drop()


def test_a_schedule_is_listed_as_it_was_set(q: Queue, schedule: Schedule) -> None:
    found = schedule.set("0 3 * * MON-FRI", "b\n€", headers="{}", priority=-5, group_key="g", overlap=0)
    assert found["created"] == 1 and found["next_at"] == next_at(q.session, "0 3 * * MON-FRI")
    expected = {"name": schedule.name, "type": q.name, "cron": "0 3 * * MON-FRI", "time_zone": "UTC", "body": "b\n€"}
    expected |= {"headers": "{}", "priority": -5, "group_key": "g", "overlap": 0, "next_at": found["next_at"]}
    assert schedule.row() == expected | {"last_at": None, "last_id": None}
    cut = {length: q.call("list_schedules", length)[0] for length in (0, 2)}
    assert {length: (row["body"], row["headers"]) for length, row in cut.items()} == {0: ("", ""), 2: ("b\n", "{}")}
    assert schedule.name in [row["name"] for row in call(q.session, "list_schedules")]
    assert schedule.drop() == 1 and schedule.drop() == 0
    assert q.call("list_schedules") == []


def test_each_time_sends_one_message_that_has_what_the_schedule_says(q: Queue, schedule: Schedule) -> None:
    schedule.set(body="b\n€", headers="{}", priority=7, group_key="g")
    due = schedule.pass_time()
    [message] = q.claim(10)
    wanted = {"body": "b\n€", "headers": "{}", "priority": 7, "group_key": "g", "source": "schedule", "attempt": 1}
    assert {name: message[name] for name in wanted} == wanted
    assert q.row(message["id"])["run_at"] == due
    row = schedule.row()
    assert (row["last_at"], row["last_id"]) == (due, message["id"])
    assert row["next_at"] > due


@pytest.mark.parametrize("ordered", [0, 1])
def test_without_consumers_at_most_one_message_waits(q: Queue, schedule: Schedule, ordered: int) -> None:
    q.call("set_queue", ordered=ordered)
    q.send("first", priority=-1)
    schedule.set()
    for _ in range(3):
        schedule.pass_time()
        [message] = q.claim(1)  # of which the first sends the schedule's
        q.on("release_batch", message["batch_key"])
    assert list(q.states().values()) == ["N", "N"]


def test_times_that_nobody_has_claimed_are_made_up_for_by_one_message(q: Queue, schedule: Schedule) -> None:
    schedule.set()
    schedule.pass_time()
    schedule.change(next_at=timedelta(days=-3))
    due = schedule.row()["next_at"]
    assert [message["body"] for message in q.claim(10)] == ["body"]
    row = schedule.row()
    assert row["last_at"] == due and row["next_at"] == next_at(q.session, "0 3 * * *")


@pytest.mark.parametrize(("overlap", "expected"), [(1, 1), (0, 0)])
def test_a_message_that_is_being_handled_keeps_the_next_one_away_only_without_overlap(
    q: Queue, schedule: Schedule, overlap: int, expected: int
) -> None:
    schedule.set(overlap=overlap)
    schedule.pass_time()
    [first] = q.claim(10)
    schedule.pass_time()
    assert len(q.claim(10)) == expected
    q.on("complete_batch", first["batch_key"])
    schedule.pass_time()
    assert len(q.claim(10)) == 1


@pytest.mark.parametrize("overlap", [0, 1])
def test_a_dead_letter_keeps_nothing_away_and_a_failure_that_waits_does(
    q: Queue, schedule: Schedule, overlap: int
) -> None:
    schedule.set(overlap=overlap)
    schedule.pass_time()
    [first] = q.claim(10)
    q.on("fail", first["id"], first["batch_key"], "no", 3600)
    schedule.pass_time()
    assert q.claim(10) == []
    q.on("cancel", first["id"])
    schedule.pass_time()
    [second] = q.claim(10)
    q.on("dead_letter", second["id"], second["batch_key"], "no")
    schedule.pass_time()
    assert len(q.claim(10)) == 1


@pytest.mark.parametrize("way", ["get_message", "take_batch", "claim_wraparound", "claim_batch"])
def test_every_way_to_claim_finds_due_messages(q: Queue, schedule: Schedule, way: str) -> None:
    q.call("set_queue", ring=int(way == "claim_wraparound"))
    schedule.set()
    schedule.pass_time()
    assert [message["body"] for message in q.call(way)] == ["body"]


@pytest.mark.parametrize("what", ["schedule", "expired claim"])
def test_wait_for_message_reports_what_is_due_only_when_a_claim_finds_it(
    q: Queue, schedule: Schedule, what: str
) -> None:
    """A claim finds it in the next full scan. Before that, a consumer would ask and claim in a busy loop."""
    schedule.set()
    q.send()
    q.on("complete_batch", q.claim_key())
    if what == "schedule":
        schedule.change(next_at=timedelta(seconds=-1))
    else:
        q.send()
        q.claim_expired()
    for seconds in (0, 4):  # of a full scan just now, and of a slow one: the next is later
        at = q.can.instant.format(datetime.now(UTC) + timedelta(seconds=seconds))
        q.sql(f"UPDATE {schedule.marks} SET scanned_at = {at} WHERE type = %s", q.name)
        for _ in range(3):
            ready, found = q.call("wait_for_message")[0]["ready"], q.claim()
            assert ready <= len(found)
            if found:
                break
        if found:
            return
    [waiting] = q.call("wait_for_message")
    assert (waiting["ready"], waiting["next_run_at"] > datetime.now(UTC)) == (0, True)
    q.sql(f"UPDATE {schedule.marks} SET scanned_at = '2000-01-01' WHERE type = %s", q.name)
    assert q.call("wait_for_message")[0]["ready"] == 1
    assert len(q.claim()) == 1


def test_finishing_a_batch_claims_what_is_due(q: Queue, schedule: Schedule) -> None:
    q.send("first")
    key = q.claim_key()
    schedule.set()
    schedule.pass_time()
    [message] = q.on("finish_batch", key, None, 10)
    assert message["body"] == "body"


def test_a_paused_queue_sends_nothing(q: Queue, schedule: Schedule) -> None:
    schedule.set()
    q.call("pause")
    schedule.pass_time()
    assert q.claim(10) == [] and q.states() == {}
    q.call("resume")
    assert len(q.claim(10)) == 1


def test_wait_for_message_counts_schedules(q: Queue, schedule: Schedule) -> None:
    found = schedule.set()
    [row] = q.call("wait_for_message", 0)
    assert row == {"ready": 0, "next_run_at": found["next_at"], "reason": "delayed"}
    schedule.pass_time()
    assert q.call("wait_for_message", 0)[0]["ready"] == 1
    q.claim(10)
    assert q.call("wait_for_message", 0)[0]["ready"] == 0


def test_calls_for_many_queues_find_due_messages_too(q: Queue, schedule: Schedule) -> None:
    types = f"{q.name}.empty\n{q.name}"
    found = schedule.set()
    waiting = {"type": q.name, "ready": 0, "next_run_at": found["next_at"], "reason": "delayed"}
    assert q.on("wait_for_any", types) == [waiting]
    assert q.on("claim_any", types) == []
    schedule.pass_time()
    assert q.on("wait_for_any", types)[0]["ready"] == 1
    assert [row["body"] for row in q.on("claim_any", types)] == ["body"]


def test_the_same_times_keep_what_is_due_and_others_begin_now(q: Queue, schedule: Schedule) -> None:
    schedule.set()
    due = schedule.pass_time()
    again = schedule.set(body="changed")
    assert again == {"created": 0, "next_at": due}
    assert [message["body"] for message in q.claim(10)] == ["changed"]
    later = schedule.set("@every 3600")
    assert later["created"] == 0 and later["next_at"] == next_at(q.session, "@every 3600")
    assert schedule.row()["next_at"] == later["next_at"]


def test_a_schedule_can_change_its_queue(q: Queue, schedule: Schedule) -> None:
    schedule.set()
    schedule.pass_time()
    q.claim(10)
    q.name += " new"
    schedule.set()
    schedule.pass_time()
    assert len(q.claim(10)) == 1


def test_run_schedule_sends_one_message_more(q: Queue, schedule: Schedule) -> None:
    found = schedule.set("@yearly", overlap=0)
    first, second = schedule.run(), schedule.run()
    assert [message["id"] for message in q.claim(10)] == [first, second]
    row = schedule.row()
    assert (row["last_id"], row["next_at"]) == (second, found["next_at"])


def test_a_rolled_back_schedule_is_due_again(q: Queue, schedule: Schedule, other: Queue) -> None:
    schedule.set()
    due = schedule.pass_time()
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert len(q.call("take_batch", 10)) == 1
        # The others do not wait for that transaction, and find nothing.
        assert other.claim(10) == []
        raise ZeroDivisionError
    assert schedule.row()["next_at"] == due and q.states() == {}
    assert len(q.claim(10)) == 1


def test_many_schedules_of_one_queue_are_sent_by_one_claim(q: Queue, schedule: Schedule) -> None:
    names = [f"{n} of {q.name}" for n in range(20)]
    for name in names:
        call(q.session, "set_schedule", name, q.name, "@every 1", name)
    time.sleep(1.1)
    assert sorted(message["body"] for message in q.claim(100)) == sorted(names)
    for name in names:
        call(q.session, "drop_schedule", name)


def test_a_time_that_a_clock_far_ahead_has_set_is_set_again(q: Queue, schedule: Schedule) -> None:
    due = schedule.set()["next_at"]
    schedule.change(next_at=timedelta(days=400), moved_at=timedelta(days=400))
    assert q.claim(10) == []
    assert schedule.row()["next_at"] == due
    schedule.pass_time()
    assert len(q.claim(10)) == 1


def test_after_a_small_step_back_of_the_clock_nothing_is_sent_twice(q: Queue, schedule: Schedule) -> None:
    schedule.set()
    schedule.change(next_at=timedelta(hours=2), moved_at=timedelta(hours=2))
    assert q.claim(10) == []
    assert schedule.row()["next_at"] > datetime.now(UTC) + timedelta(hours=1)


def test_a_zone_that_the_server_no_longer_knows_stops_the_schedule_and_not_the_queue(
    q: Queue, schedule: Schedule
) -> None:
    schedule.set("* * * * *")
    q.sql(f"UPDATE {schedule.table} SET time_zone = 'Europe/Nowhere' WHERE name = %s", schedule.name)
    schedule.change(next_at=timedelta(seconds=-5))
    q.send("other")
    assert sorted(message["body"] for message in q.claim(10)) == ["body", "other"]
    assert schedule.row()["next_at"] is None
    [health] = [row for row in call(q.session, "queue_health") if row["name"] == "stopped_schedules"]
    assert health["verdict"] == "bad" and schedule.name in health["detail"]
    schedule.set("* * * * *")
    assert schedule.row()["next_at"] is not None


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"name": ""}, "name:"),
        ({"name": None}, "name:"),
        ({"name": "x" * 201}, "name:"),
        ({"type": ""}, "type:"),
        ({"type": None}, "type:"),
        ({"cron": None}, "cron:"),
        ({"cron": "*" * 201}, "cron:"),
        ({"cron": "0 0 30 2 *"}, "cron: no date matches in the next 50 years"),
        ({"body": None}, "body:"),
        ({"headers": "x" * 65_537}, "headers:"),
        ({"priority": 32_768}, "priority:"),
        ({"group_key": ""}, "group_key:"),
        ({"overlap": 2}, "overlap:"),
        ({"time_zone": "Mars"}, "time_zone:"),
    ],
)
def test_bad_arguments_are_refused_and_change_nothing(
    q: Queue, schedule: Schedule, wrong: dict[str, Any], word: str
) -> None:
    schedule.set("@daily")
    before = schedule.row()
    good = {"name": schedule.name, "type": q.name, "cron": "@hourly", "body": "new"}
    with q.refused("invalid_argument", word):
        call(q.session, "set_schedule", **(good | wrong))
    assert schedule.row() == before


def test_a_schedule_that_does_not_exist_cannot_run(q: Queue) -> None:
    with q.refused("not_found", "name: there is no schedule none of ours"):
        call(q.session, "run_schedule", "none of ours")
