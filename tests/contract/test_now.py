"""Session.now: the server's clock, as the runner asks for it."""

from datetime import timedelta

from support.queues import Queue


def test_now_is_on_the_clock_that_the_queue_uses(q: Queue) -> None:
    before = q.session.now()
    id = q.send()
    after = q.session.now()
    # An engine may keep whole milliseconds.
    assert before - timedelta(milliseconds=2) <= q.row(id)["created_at"] <= after + timedelta(milliseconds=2)
    assert before.utcoffset() == timedelta(0)
