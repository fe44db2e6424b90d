"""The messages of a queue, for tests that have a session: send them, count them, list their outcomes."""

from collections.abc import Callable

from rowqueue.databases import Row, Session
from rowqueue.messages import line_of

# The messages of the test's queue, by body: the fixture `states`.
States = Callable[[], dict[str, Row]]


def send(session: Session, queue: str, *bodies: str) -> None:
    session.call("send_batch", queue, "\n".join(map(line_of, bodies)))


def counts(session: Session, queue: str) -> tuple[int, int]:
    """How many are ready, and how many are claimed."""
    [row] = session.call("queue_stats", queue)
    return row["ready"], row["active"]


def outcomes(states: States) -> dict[str, tuple[str, int, str | None]]:
    """State, attempts and error of the messages that are left, by body."""
    return {body: (row["state"], row["attempts"], row["error"]) for body, row in states().items()}
