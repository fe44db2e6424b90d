"""Firebird: groups of an ordered queue that no claim would reach are reported and repaired."""

from collections.abc import Callable

import pytest
from rowqueue.databases import Row, Session
from support.queues import call

pytestmark = [pytest.mark.product("firebird")]
Sql = Callable[..., list[Row]]


def health(session: Session) -> Row:
    [row] = [row for row in call(session, "queue_health") if row["name"] == "stuck_groups"]
    return row


@pytest.mark.parametrize("fault", ["no ticket", "a lock that nobody holds"])
def test_a_stuck_group_is_named_and_repaired(session: Session, sql: Sql, queue: str, fault: str) -> None:
    call(session, "set_queue", queue, ordered=1)
    for group in ("stuck", "busy", "free", "late"):
        for body in ("a", "b"):
            call(session, "send_message", queue, body, group_key=group)
    held = {row["group_key"]: row for row in call(session, "claim_batch", queue, 10)}
    call(session, "fail", held["late"]["id"], held["late"]["batch_key"], "no", 3600)
    for group in ("free", "stuck"):
        call(session, "complete", held[group]["id"], held[group]["batch_key"])
    assert health(session)["verdict"] == "ok"
    [stuck] = sql("SELECT id FROM mq_grouped WHERE type = %s AND group_key = 'stuck'", queue)
    if fault == "no ticket":
        sql("DELETE FROM mq_ready WHERE type = %s AND id = %s", queue, stuck["id"])
    else:
        sql("INSERT INTO mq_group_lock (type, group_key, id) VALUES (%s, 'stuck', %s)", queue, stuck["id"] - 1)
    found = health(session)
    assert (found["verdict"], found["measured"]) == ("bad", 1)
    assert "mq_rescue_expired('" in found["detail"]
    call(session, "rescue_expired", queue)
    assert health(session)["verdict"] == "ok"
    assert sorted(row["group_key"] for row in call(session, "claim_batch", queue, 10)) == ["free", "stuck"]
    call(session, "complete_batch", held["busy"]["batch_key"])
    assert [row["group_key"] for row in call(session, "claim_batch", queue, 10)] == ["busy"]
