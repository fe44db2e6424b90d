"""For tests of a Django project: what was sent, and running it, in the transaction of the test."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from ..calling import take_batch
from ..databases import applications
from ..testing import Outcome
from ..testing import run as run_handler
from .settings import connection

__all__ = ["run_sent", "sent"]


def sent(type: str, size: int = 1_000) -> list[dict[str, Any]]:
    """The new messages of a queue in the order in which they would be claimed, delayed ones too; at most `size`.

    Each is a row of `peek`: its id, body, headers, priority, group_key, run_at and so on.
    """
    return applications.call(connection(), "peek", (type, "N", size, None))


def run_sent(type: str, handler: Callable[..., Any], size: int = 1_000) -> list[Outcome]:
    """Take the messages of a queue that are due, and run a handler with each; returns the outcomes in order.

    It runs in the transaction of the test, as a consumer with --transaction would in its own: each message is gone
    afterwards, also one that failed. What the handler sends is found by the next call.
    """
    outcomes = []
    with transaction.atomic(using=connection().alias):
        messages = take_batch(connection(), type, size)
    for message in messages:
        outcomes.append(run_handler(handler, message))
    return outcomes
