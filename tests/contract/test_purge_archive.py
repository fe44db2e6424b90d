"""purge_archive: delete archived messages of all queues that were completed before a time."""

from datetime import UTC, datetime, timedelta

import pytest
from queues import LONG_AGO, Queue, call

pytestmark = pytest.mark.one_version


@pytest.fixture(autouse=True)
def empty_archive(q: Queue) -> None:
    """Counts are over all types: begin with none."""
    while purged(q, in_the_future()):
        pass


def in_the_future() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def purged(q: Queue, before: datetime, size: int | None = None) -> int:
    count: int = call(q.session, "purge_archive", before, size)[0]["count"]
    return count


def complete(q: Queue, count: int) -> datetime:
    """Send and complete so many; returns when."""
    q.send_many(count)
    key = q.claim_key(count)
    q.on("complete_batch", key)
    done: datetime = max(row["changed_at"] for row in q.rows() if row["state"] == "C")
    return done


def test_purge_archive_empties_a_part_that_is_wholly_older_at_once(q: Queue) -> None:
    complete(q.archived(), 25)
    assert purged(q, in_the_future(), 10) == (25 if q.can.empties_parts else 10)
    if q.can.empties_parts:
        assert q.rows() == [] and purged(q, in_the_future()) == 0


def test_purge_archive_deletes_by_chunks_of_size(q: Queue) -> None:
    first = complete(q.archived(), 25)
    second = complete(q, 3)
    assert second > first
    assert [purged(q, second, 10) for _ in range(4)] == [10, 10, 5, 0]
    assert len(q.rows()) == 3


def test_purge_archive_deletes_the_oldest_first(q: Queue) -> None:
    complete(q.archived(), 2)
    second = complete(q, 2)
    third = complete(q, 1)
    assert purged(q, third, 2) == 2
    assert sorted(row["changed_at"] for row in q.rows()) == [second, second, third]


def test_purge_archive_takes_1000_when_no_size_is_given(q: Queue) -> None:
    complete(q.archived(), 1_005)
    second = complete(q, 1)
    assert [purged(q, second) for _ in range(3)] == [1_000, 5, 0]


def test_purge_archive_keeps_what_was_completed_at_that_time_or_later(q: Queue) -> None:
    done = complete(q.archived(), 3)
    with q.unchanged():
        assert purged(q, done) == 0
        assert purged(q, LONG_AGO) == 0


def test_purge_archive_leaves_live_messages_alone(q: Queue) -> None:
    q.archived().send()
    complete(q, 1)
    q.send_many(2)
    q.claim()
    live = {id: state for id, state in q.states().items() if state != "C"}
    assert purged(q, in_the_future()) == 1
    assert q.states() == live


@pytest.mark.parametrize("size", [None, 1])
def test_purge_archive_rolled_back_deletes_nothing(q: Queue, size: int | None) -> None:
    complete(q.archived(), 5)
    with q.unchanged(), pytest.raises(ZeroDivisionError), q.session.transaction():
        assert purged(q, in_the_future(), size) == (1 if size == 1 and not q.can.empties_parts else 5)
        raise ZeroDivisionError


def test_purge_archive_never_waits_for_a_session_that_completes(q: Queue, other: Queue) -> None:
    complete(q.archived(), 3)
    before = in_the_future()
    other.send()
    with other.session.transaction():
        other.on("complete_batch", other.claim_key())
        assert purged(q, before, 10) == 3
    assert len(q.rows()) == 1
    assert purged(q, before) == 1
