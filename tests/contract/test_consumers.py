"""report_consumer, list_consumers and throughput: the consumers, and counts of messages per minute."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import Conflict, QueueError, Row
from servers import Server
from support.queues import LONG_AGO, Queue, call

TOTALS = ("completed", "failed", "dead", "busy_ms", "waited_ms")
FIGURES = ("sent", "completed", "failed", "dead", "waited_ms", "busy_ms")


def report(q: Queue, consumer: str = "worker", **figures: Any) -> datetime:
    """A report of this queue; returns its time."""
    [row] = q.on("report_consumer", consumer, q.name, **figures)
    at: datetime = row["reported_at"]
    return at


def consumers(q: Queue) -> list[Row]:
    return q.call("list_consumers", 10_000)


def totals(q: Queue) -> list[tuple[int, ...]]:
    return [tuple(row[name] for name in TOTALS) for row in consumers(q)]


def figures(q: Queue, since: datetime = LONG_AGO) -> dict[str, int]:
    """Summed over all minutes: a test may run across two."""
    rows = q.call("throughput", since)
    return {name: sum(row[name] for row in rows) for name in FIGURES}


def die(q: Queue, consumer: str, count: int = 1) -> None:
    q.send_many(count)
    for row in q.claim(count, consumer=consumer):
        q.on("dead_letter", row["id"], row["batch_key"], "broken")


def test_a_queue_without_reports_has_no_consumers_and_no_throughput(q: Queue) -> None:
    q.send()
    q.claim()
    assert consumers(q) == []
    assert q.call("throughput") == []


def test_a_report_shows_the_consumer_and_its_totals(q: Queue) -> None:
    before = q.session.now()
    at = report(q, completed=5, failed=2, dead=1, busy_ms=300, waited_ms=40)
    assert timedelta(milliseconds=-2) <= at - before < timedelta(seconds=60)
    [row] = consumers(q)
    assert (row["consumer"], row["type"], row["status"]) == ("worker", q.name, "working")
    assert row["started_at"] == row["reported_at"] == at
    assert totals(q) == [(5, 2, 1, 300, 40)]


def test_reports_add_up(q: Queue) -> None:
    first = report(q, completed=5, failed=2, dead=1, busy_ms=300, waited_ms=40)
    last = report(q, completed=1, failed=1, dead=1, busy_ms=1, waited_ms=1)
    assert totals(q) == [(6, 3, 2, 301, 41)]
    [row] = consumers(q)
    assert row["started_at"] == first
    assert row["reported_at"] == last
    assert figures(q) == {"sent": 0, "completed": 6, "failed": 3, "dead": 2, "waited_ms": 41, "busy_ms": 301}


def test_a_report_says_what_the_consumer_handles_now(q: Queue) -> None:
    handling = '{"id": 17, "since": "2026-11-27T08:30:00Z"}\n{"id": 18, "since": "2026-11-27T08:31:00Z", "é😀": 1}'
    report(q, handling=handling, completed=1)
    report(q, "another")
    assert [(row["consumer"], row["handling"]) for row in consumers(q)] == [("another", None), ("worker", handling)]
    longest = "é" * 3_999 + "\n"
    report(q, handling=longest)
    assert [row["handling"] for row in consumers(q)] == [None, longest]
    with pytest.raises(QueueError, match=r"^invalid_argument: handling: must be at most 4,000 characters"):
        report(q, handling="é" * 4_001, completed=5)
    with pytest.raises(QueueError, match=r"^invalid_argument: handling: must be a text"):
        report(q, handling=17)
    assert [row["handling"] for row in consumers(q)] == [None, longest], "and nothing was counted"
    assert totals(q)[1][0] == 1
    report(q)
    assert [row["handling"] for row in consumers(q)] == [None, None]


def test_the_largest_figures_add_up(q: Queue) -> None:
    most = {"completed": 10**9, "failed": 10**9, "dead": 10**9, "busy_ms": 10**10, "waited_ms": 10**13, "sent": 10**9}
    for _ in range(3):
        report(q, **most)
    assert totals(q) == [tuple(3 * most[name] for name in TOTALS)]
    assert figures(q) == {name: 3 * value for name, value in most.items()}


def test_reports_that_add_up_to_more_than_a_bigint_hide_nobody(
    q: Queue, sql: Callable[..., list[Row]], server: Server
) -> None:
    other = q.named(f"{q.name}.b")
    report(other, "honest", completed=1)
    for consumer in ("one", "two"):
        report(q, consumer, **dict.fromkeys(TOTALS, 1))
    columns = ", ".join(f"{name} = 9000000000000000000" for name in TOTALS)
    sql(f"UPDATE {server.table('report')} SET {columns} WHERE type = %s", q.name)
    age(q, sql, server, timedelta(minutes=1))  # the last whole minute, whose rate list_consumers returns
    found = {row["type"]: row for row in q.on("throughput") if row["type"].startswith(q.name)}
    assert found[other.name]["completed"] == 1
    assert {found[q.name][name] for name in TOTALS} == {10**18}
    assert [row["rate_per_minute"] for row in consumers(q)] == [1.8e19, 1.8e19]


def test_consumers_are_listed_by_need_and_up_to_size(q: Queue, sql: Callable[..., list[Row]], server: Server) -> None:
    report(q, "a stopped", completed=1, next_seconds=0)
    report(q, "z silent", completed=1)
    age(q, sql, server, timedelta(minutes=10))
    report(q, "b working", completed=1)
    assert [row["status"] for row in consumers(q)] == ["silent", "working", "stopped"]
    assert [row["consumer"] for row in q.call("list_consumers", 2)] == ["z silent", "b working"]
    for size in (0, 10_001):
        with pytest.raises(QueueError, match="size: must be 1 to 10,000"):
            q.call("list_consumers", size)


def test_a_report_without_figures_says_that_the_consumer_works(q: Queue) -> None:
    report(q)
    assert [row["status"] for row in consumers(q)] == ["working"]
    assert q.call("throughput") == []


def test_a_consumer_of_two_types_has_a_row_for_each(q: Queue) -> None:
    second = q.named(f"{q.name}.b")
    report(q, completed=1)
    report(second, completed=2)
    found = [row for row in q.on("list_consumers", None, 10_000) if row["type"].startswith(q.name)]
    assert [(row["type"], row["completed"]) for row in found] == [(q.name, 1), (second.name, 2)]
    everything = [row for row in q.on("throughput") if row["type"].startswith(q.name)]
    assert {row["type"]: row["completed"] for row in everything} == {q.name: 1, second.name: 2}


def test_consumers_are_ordered_by_name_and_differ_by_case_and_accent(q: Queue) -> None:
    names = ["B", "a", "b", "é", "e"]
    for name in names:
        report(q, name, completed=1)
    found = [row["consumer"] for row in consumers(q)]
    assert sorted(found) == sorted(names)
    assert figures(q)["completed"] == len(names)


def test_a_consumer_that_says_so_has_stopped_and_its_next_report_begins_again(q: Queue) -> None:
    report(q, completed=5)
    report(q, completed=1, next_seconds=0)
    assert [row["status"] for row in consumers(q)] == ["stopped"]
    assert totals(q) == [(6, 0, 0, 0, 0)]
    at = report(q, completed=2)
    [row] = consumers(q)
    assert (row["status"], row["started_at"], row["completed"]) == ("working", at, 2)
    assert figures(q)["completed"] == 8


def test_a_consumer_is_silent_after_twice_the_seconds_it_announced(q: Queue) -> None:
    report(q, completed=5, next_seconds=1)
    time.sleep(1.2)
    assert [row["status"] for row in consumers(q)] == ["working"]
    time.sleep(1)
    assert [row["status"] for row in consumers(q)] == ["silent"]
    assert totals(q) == [(5, 0, 0, 0, 0)]
    at = report(q, completed=1)
    [row] = consumers(q)
    assert (row["status"], row["started_at"], row["completed"]) == ("working", at, 1)


def test_dead_letters_that_the_caller_does_not_count_are_counted_once(q: Queue) -> None:
    report(q)
    die(q, "worker", 3)
    die(q, "another", 2)
    time.sleep(2.1)
    report(q)
    assert totals(q) == [(0, 0, 3, 0, 0)]
    report(q)
    assert totals(q) == [(0, 0, 3, 0, 0)]
    assert figures(q)["dead"] == 3


def test_the_last_report_counts_the_dead_letters_up_to_now(q: Queue) -> None:
    report(q)
    die(q, "worker")
    report(q, next_seconds=0)
    assert totals(q) == [(0, 0, 1, 0, 0)]


def test_every_dead_letter_is_counted_once_whenever_the_next_report_comes(q: Queue) -> None:
    """Before the first report, while the consumer is silent, and after its stop."""
    die(q, "worker", 2)
    report(q, next_seconds=0)
    assert (totals(q), figures(q)["dead"]) == ([(0, 0, 2, 0, 0)], 2)
    report(q, next_seconds=1)
    die(q, "worker", 3)
    time.sleep(2.1)
    assert [row["status"] for row in consumers(q)] == ["silent"]
    report(q, next_seconds=0)
    assert figures(q)["dead"] == 5
    die(q, "worker", 4)
    die(q, "another")
    report(q, next_seconds=0)
    report(q, next_seconds=0)
    assert figures(q)["dead"] == 9


def test_a_report_that_counts_no_dead_letter_leaves_them_to_the_next(q: Queue) -> None:
    """A runner reports the messages sent in earlier minutes with calls that pass zero."""
    report(q)
    die(q, "worker", 3)
    earlier = q.session.now() - timedelta(minutes=2)
    report(q, failed=0, dead=0, sent=1, sent_at=earlier, next_seconds=0)
    report(q, failed=3, sent=2, next_seconds=0)
    assert (figures(q)["failed"], figures(q)["dead"]) == (3, 3)


def test_a_queue_has_at_most_10_000_consumers(q: Queue, sql: Callable[..., list[Row]], server: Server) -> None:
    report(q, "first")
    name, quote = server.table("consumer"), q.can.quote
    columns = ("started_at", "reported_at", "due_at", "counted_at", *TOTALS)
    copied = ", ".join(quote(q.can.fold(column)) for column in columns)
    text = "consumer || '{}'" if server.name.startswith("firebird") else "CONCAT(consumer, '{}')"
    try:
        for letter in "abcdefghijklmn":
            assert report(q, "first", completed=1)
            longer = text.format(letter)
            chosen = f"SELECT {copied}, type, {longer} FROM {name} WHERE type = %s"
            sql(f"INSERT INTO {name} ({copied}, type, consumer) {chosen}", q.name)
        assert len(consumers(q)) == 10_000
        report(q, "firstab", completed=1)
        with q.refused("invalid_argument", "consumer: ", "10000"):
            report(q, "one too many")
        assert report(q.named(f"{q.name}.b"), "one too many")
    finally:  # other tests list the consumers of all queues
        sql(f"DELETE FROM {name} WHERE type = %s", q.name)


def test_a_report_does_not_wait_for_a_transaction_that_reports_under_its_name(q: Queue, other: Queue) -> None:
    for known in (False, True):
        with pytest.raises(ZeroDivisionError), other.session.transaction():
            report(other, completed=5)
            began = time.monotonic()
            with pytest.raises(Conflict):
                report(q, completed=1)
            assert time.monotonic() - began < 8
            raise ZeroDivisionError
        assert len(consumers(q)) == known
        report(q, completed=1)
    assert figures(q)["completed"] == 2


def test_a_sent_message_counts_in_the_minute_of_sending(q: Queue) -> None:
    now = q.session.now()
    for minutes, sent in [(0, 1), (1, 2), (90, 4)]:
        report(q, sent=sent, sent_at=now - timedelta(minutes=minutes))
    rows = [row for row in q.call("throughput", LONG_AGO) if row["sent"]]
    assert [row["sent"] for row in rows] == [4, 2, 1]
    assert [(row["minute_at"].second, row["minute_at"].microsecond) for row in rows] == [(0, 0)] * 3
    assert timedelta(0) <= now - rows[-1]["minute_at"] < timedelta(minutes=2)
    assert rows[-1]["minute_at"] - rows[0]["minute_at"] == timedelta(minutes=90)
    # The default is the last hour.
    assert [row["sent"] for row in q.call("throughput") if row["sent"]] == [2, 1]


def test_sent_without_a_time_is_sent_now_and_the_future_is_now(q: Queue) -> None:
    report(q, sent=1)
    report(q, sent=2, sent_at=datetime.now(UTC) + timedelta(days=3))
    assert figures(q, q.session.now() - timedelta(minutes=2))["sent"] == 3


def test_messages_sent_more_than_a_day_ago_are_not_counted(q: Queue) -> None:
    report(q, sent=5, completed=5, sent_at=q.session.now() - timedelta(hours=25))
    assert figures(q) == dict.fromkeys(FIGURES, 0) | {"completed": 5}


def test_throughput_begins_with_the_minute_that_since_lies_in(q: Queue) -> None:
    now = q.session.now()
    at = now.replace(second=0, microsecond=0) - timedelta(minutes=10)
    report(q, sent=1, sent_at=at + timedelta(seconds=5))
    assert figures(q, at + timedelta(seconds=30))["sent"] == 1
    assert figures(q, at + timedelta(seconds=60))["sent"] == 0


def test_the_rate_is_that_of_the_last_whole_minute(q: Queue, sql: Callable[..., list[Row]], server: Server) -> None:
    if q.session.now().second > 55:
        time.sleep(5)  # the minute must not end during the test
    report(q, completed=90, failed=30, busy_ms=150_000)
    assert [(row["rate_per_minute"], row["busy"]) for row in consumers(q)] == [(0.0, 0.0)]
    age(q, sql, server, timedelta(minutes=1))
    assert [(row["rate_per_minute"], row["busy"]) for row in consumers(q)] == [(120.0, 2.5)]


def age(q: Queue, sql: Callable[..., list[Row]], server: Server, by: timedelta) -> None:
    """Move all reports of the queue into the past."""
    for table, columns in (("report", ["minute"]), ("consumer", ["started_at", "reported_at", "due_at", "counted_at"])):
        name = server.table(table)
        # By its key: not every driver sends all digits of a time.
        key = ["type", "consumer", *(["minute"] if table == "report" else [])]
        # MINUTE is a keyword in Firebird.
        quoted = {column: q.can.quote(q.can.fold(column)) for column in [*key, *columns]}
        where = " AND ".join(f"{quoted[column]} = %s" for column in key)
        for row in sql(f"SELECT * FROM {name} WHERE type = %s", q.name):
            for column in columns:
                if row[column] is not None:
                    values = (row[column] - by, *(row[column] for column in key))
                    sql(f"UPDATE {name} SET {quoted[column]} = %s WHERE {where}", *values)


@pytest.mark.parametrize(
    ("hours", "stopped", "kept"), [(0.9, True, True), (1.1, True, False), (23, False, True), (25, False, False)]
)
def test_consumers_are_forgotten_after_an_hour_or_a_day(
    q: Queue, sql: Callable[..., list[Row]], server: Server, hours: float, stopped: bool, kept: bool
) -> None:
    report(q, "old", completed=1, **({"next_seconds": 0} if stopped else {}))
    age(q, sql, server, timedelta(hours=hours))
    report(q, "new", completed=1)
    assert {row["consumer"] for row in consumers(q)} == ({"new", "old"} if kept else {"new"})


@pytest.mark.parametrize(("hours", "kept"), [(23.9, True), (24.1, False)])
def test_minutes_are_forgotten_after_a_day(
    q: Queue, sql: Callable[..., list[Row]], server: Server, hours: float, kept: bool
) -> None:
    report(q, "old", completed=1)
    age(q, sql, server, timedelta(hours=hours))
    report(q, "new", completed=2)
    assert figures(q)["completed"] == (3 if kept else 2)


def test_a_report_joins_the_callers_transaction(q: Queue, other: Queue) -> None:
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        report(q, completed=1)
        assert consumers(other) == []
        raise ZeroDivisionError
    assert consumers(q) == []
    assert q.call("throughput") == []


def test_consumers_do_not_wait_for_each_others_reports(q: Queue, other: Queue) -> None:
    report(q, "mine", completed=1)
    with q.session.transaction():
        report(q, "mine", completed=1)
        began = time.monotonic()
        report(other, "another's", completed=1)
        report(other, "another's", completed=1)
        assert time.monotonic() - began < 5
    assert figures(q)["completed"] == 4


def test_a_refused_report_changes_nothing(q: Queue) -> None:
    report(q, completed=1)
    with q.refused("invalid_argument", "next_seconds: ", "0 to 3,600"):
        report(q, completed=1, sent=1, next_seconds=3_601)
    assert totals(q) == [(1, 0, 0, 0, 0)]
    assert figures(q)["completed"] == 1


def test_reports_touch_no_message(q: Queue) -> None:
    q.send_many(3)
    q.claim(1)
    with q.unchanged():
        report(q, completed=1, failed=1, dead=1)
        call(q.session, "list_consumers")
        call(q.session, "throughput")
