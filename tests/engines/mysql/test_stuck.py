"""MySQL and MariaDB: groups of an ordered queue that lost their tickets are reported and continue."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from servers import Server

pytestmark = pytest.mark.product("mysql", "mariadb")


def check(session: Session) -> dict[str, Any]:
    return next(row for row in session.call("queue_health") if row["name"] == "stuck_groups")


@pytest.mark.level(3)
@pytest.mark.parametrize("of_all", [False, True], ids=["one queue", "all queues"])
def test_stuck_groups_are_reported_and_rescue_expired_repairs_them(
    installed_database: Database, server: Server, queue: str, of_all: bool
) -> None:
    # In a database of its own: on MariaDB, leftovers of other tests make the call take half a minute.
    with closing(installed_database.connect("test")) as session:
        url = installed_database.url
        _lose_and_mend(session, lambda text, *values: server.query(url, text, *values), queue, of_all)


def test_stuck_groups_of_all_queues_are_repaired_in_one_call(
    installed_database: Database, server: Server, queue: str
) -> None:
    types = [f"{queue}.a", f"{queue}.A", f"{queue}.\u00e1", f'{queue}."']
    with closing(installed_database.connect("test")) as session:
        for type in types:
            session.call("set_queue", type, '{"ordered": 1}')
            for group in ("g", "G", None):
                session.call("send_message", type, "b", None, None, group)
        server.query(installed_database.url, "DELETE FROM mq_ready")
        assert check(session)["measured"] == 3 * len(types)
        session.call("rescue_expired", None)
        assert check(session)["measured"] == 0
        assert [len(session.call("claim_batch", type, 10)) for type in types] == [3] * len(types)


def _lose_and_mend(session: Session, sql: Callable[..., Any], queue: str, of_all: bool) -> None:
    session.call("set_queue", queue, '{"ordered": 1}')
    for group in ("a", "b", None):
        for _ in range(3):
            session.call("send_message", queue, "b", None, None, group)
    assert check(session)["measured"] == 0
    [held] = session.call("claim_batch", queue, 1, None, 600)
    session.call("send", "other." + queue, "x")
    assert check(session)["measured"] == 0
    sql("DELETE FROM mq_ready WHERE type = %s", queue)
    row = check(session)
    assert (row["verdict"], row["measured"]) == ("bad", 2)
    assert f"CALL mq_rescue_expired('{queue}')" in row["detail"]
    assert session.call("claim_batch", queue, 10) == []
    session.call("rescue_expired", None if of_all else queue)
    assert check(session)["measured"] == 0
    assert len(session.call("claim_batch", queue, 10)) == 2
    session.call("complete_batch", held["batch_key"])
    assert check(session)["measured"] == 0
    assert len(session.call("claim_batch", queue, 10)) == 1
