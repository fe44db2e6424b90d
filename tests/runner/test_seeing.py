"""The functions behind `runner top` and `runner web`, without a screen."""

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from rowqueue.databases import Database, QueueError, Session, open_database
from rowqueue.extras import monitor as seeing
from rowqueue.extras.monitor import Looking, Watched, changes, looking, reading

pytestmark = pytest.mark.level(1)


@pytest.fixture
def watched(database: Database) -> Iterator[Watched]:
    watched = Watched("here", database, "test")
    yield watched
    watched.close()


def test_after_a_change_nothing_old_is_shown(watched: Watched, session: Session, queue: str) -> None:
    session.call("send", queue, "x")

    def seen() -> seeing.Queue:
        overview = watched.ask(lambda looking: seeing.recent_overview(looking, queue), 60)
        return next(one for one in overview.queues if one.type == queue)

    assert not seen().paused
    assert (
        seeing.perform(watched, changes.pause(queue))
        == f"{queue} is paused: claims return nothing until it is resumed."
    )
    assert seen().paused


def test_a_queue_has_its_consumers_however_many_others_there_are(
    session: Session, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        for consumer in ("one", "two"):
            session.call(
                "report_consumer",
                consumer,
                f"{queue}.{name}",
                '{"completed": 1, "failed": 0, "dead": 0, "busy_ms": 0, "waited_ms": 0, "sent": 0, "next_seconds": 60}',
            )
    session.call("send_batch", f"{queue}.b", "x\ny")

    def seen(part: str) -> list[tuple[str, str]]:
        found = seeing.overview(Looking(session), False, part).consumers
        return [(row["type"].removeprefix(f"{queue}."), row["consumer"]) for row in found]

    assert seen(f"{queue}.b") == [("b", "one"), ("b", "two")]
    for module in (reading, looking):
        monkeypatch.setattr(module, "MOST_CONSUMERS", 1)
    assert seen(f"{queue}.b") == [("b", "one"), ("b", "two")]
    assert seen(f"{queue}.c") == [("c", "one"), ("c", "two")], "without messages"
    assert [one.consumers for one in seeing.overview(Looking(session), False, f"{queue}.b").queues] == [2]
    monkeypatch.setattr(looking, "MOST_ROWS", 1)
    assert seen(f"{queue}.b") == [("b", "one")]
    detail = seeing.queue(Looking(session), f"{queue}.b")
    assert (len(detail.consumers), detail.queue.consumers) == (1, 2)


def test_a_name_with_braces_is_shown_unchanged(watched: Watched, queue: str) -> None:
    assert seeing.perform(watched, changes.resume(f"{queue} {{0}} {{x}}")) == f"{queue} {{0}} {{x}} is resumed."


@pytest.mark.level(3, one=True)
def test_a_change_that_is_bounded_is_repeated_until_nothing_is_left(
    watched: Watched, session: Session, queue: str
) -> None:
    for _ in range(3):
        session.call("send_batch", queue, "\n".join("x" * 5_000))
    assert seeing.perform(watched, changes.purge(queue, "N"), 120) == "15,000 deleted."


def test_a_change_that_reaches_its_time_limit_says_that_there_may_be_more(
    watched: Watched, session: Session, queue: str
) -> None:
    for _ in range(3):
        session.call("send_batch", queue, "\n".join("x" * 5_000))
    said = seeing.perform(watched, changes.purge(queue, "N"), 0)
    assert said == "10,000 deleted. There may be more: the time limit was reached. Repeat it."
    assert session.call("queue_stats", queue)[0]["ready"] == 5_000


def test_an_error_of_the_contract_is_raised_and_is_no_outage(watched: Watched) -> None:
    with pytest.raises(QueueError, match="type: must be 1 to 200 characters"):
        watched.ask(lambda looking: seeing.queue(looking, "x" * 201), 60)


def test_a_search_of_too_many_queues_says_to_name_one(
    session: Session, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.call("send_message", queue, "x", None, None, None, queue)
    assert [row["type"] for row in seeing.search(Looking(session), dedup_key=queue)] == [queue]
    monkeypatch.setattr(looking, "SEARCH_SECONDS", -1)
    with pytest.raises(looking.TooSlow, match="name one"):
        seeing.search(Looking(session), dedup_key=queue)


def test_minutes_have_no_gaps_and_end_with_now(session: Session, queue: str) -> None:
    session.call(
        "report_consumer",
        "consumer",
        queue,
        json.dumps(
            {
                "completed": 7,
                "failed": 2,
                "dead": 1,
                "busy_ms": 50,
                "waited_ms": 500,
                "sent": 7,
                "sent_at": str(session.now()),
                "next_seconds": 60,
            }
        ),
    )
    detail = seeing.queue(Looking(session), queue)
    minutes = [minute.minute for minute in detail.queue.minutes]
    assert len(minutes) == seeing.MINUTES
    assert {(later - minute).seconds for minute, later in pairwise(minutes)} == {60}
    assert sum(minute.completed for minute in detail.queue.minutes) == 7
    assert sum(minute.failed for minute in detail.queue.minutes) == 2


def test_a_database_that_cannot_be_reached_is_away_and_says_why() -> None:
    watched = Watched("gone", open_database("postgresql://user:hush@127.0.0.1:1/x"), "test")
    for _ in range(2):
        with pytest.raises(seeing.Away, match="Connection refused") as caught:
            watched.ask(seeing.overview, 60)
        assert "hush" not in str(caught.value)
    watched.close()
