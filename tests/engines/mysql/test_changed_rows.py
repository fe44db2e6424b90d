"""MySQL and MariaDB: other programs change rows of polling tables at random; no row is stuck at the end."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from rowqueue.databases import Conflict, Database, QueueError, Session
from rowqueue.databases.base import LeaseLost
from servers import Server
from support.outcomes import failure
from support.polling import SHAPES, Polled

pytestmark = pytest.mark.product("mysql", "mariadb")

Sql = Callable[..., list[dict[str, Any]]]
CHANGES = (
    "UPDATE {t} SET status = 'N' WHERE id = {id}",
    "UPDATE {t} SET status = 'D' WHERE id = {id}",
    "UPDATE {t} SET id = id + 10000 WHERE id = {id}",
    "UPDATE {t} SET v = CONCAT(v, '!') WHERE id = {id}",
    "DELETE FROM {t} WHERE id = {id}",
)


@pytest.mark.parametrize("seed", range(2))
def test_no_row_stays_active_after_any_change_by_others(
    server: Server, database: Database, session: Session, sql: Sql, queue: str, seed: int
) -> None:
    from support.capabilities import BY_DATABASE

    table = Polled(queue, session, sql, BY_DATABASE["mysql"], SHAPES["a"]).create(max_attempts=50)
    table.insert(*(str(n) for n in range(60)))
    over = threading.Event()
    finished, failures = [0, 0], []

    def consume(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    def work(number: int) -> None:
        dice = random.Random(f"{seed} {number}")
        with closing(database.connect("consumer")) as own, server.client(database.url) as connection:
            connection.autocommit(True)
            mine = table.by(own)
            while not over.is_set():
                try:
                    lease = dice.choice([0, 1, 60])
                    rows = mine.claim(5, lease_seconds=lease or 1)
                    if rows and not lease:  # it ends at once
                        ended = "UPDATE mq_polled_batch SET lease_until = '2001-01-01' WHERE batch_key = %s"
                        connection.execute(ended, [rows[0]["batch_key"]])
                    if rows and dice.random() < 0.8:
                        failed = "\n".join(failure(row["id"], "no", 0) for row in rows if dice.random() < 0.3)
                        finished[number] += mine.finish(rows[0]["batch_key"], failed)[0]
                    elif rows:
                        mine.count("release_rows", rows[0]["batch_key"])
                except Conflict:
                    pass
                except QueueError as error:
                    if not isinstance(error, LeaseLost):
                        raise

    threads = [threading.Thread(target=consume, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    dice = random.Random(seed)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        sql(dice.choice(CHANGES).format(t=table.name, id=dice.randint(1, 60) + dice.choice([0, 0, 10_000])))
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join(60)
    assert failures == [] and all(finished)
    # Leases of a minute are over.
    sql("UPDATE mq_polled_batch SET lease_until = '2001-01-01' WHERE name = %s", table.name)
    sql("UPDATE mq_polled_row SET run_at = '2001-01-01' WHERE name = %s AND state = 'N'", table.name)
    for _ in range(200):
        if not (rows := table.claim(20)):
            break
        table.finish(rows[0]["batch_key"])
    left = sql(f"SELECT status, COUNT(*) AS n FROM {table.name} GROUP BY status")
    assert {row["status"] for row in left} <= {"D", "E"}
    assert {state for state, _ in table.states()} <= {"E"}


def test_a_row_whose_key_is_changed_while_it_is_claimed_is_claimed_again(
    session: Session, sql: Sql, queue: str
) -> None:
    from support.capabilities import BY_DATABASE

    table = Polled(queue, session, sql, BY_DATABASE["mysql"], SHAPES["a"]).create().insert("1", "2")
    rows = table.claim(2)
    sql(f"UPDATE {table.name} SET id = id + 100 WHERE v = '1'")
    assert table.finish(rows[0]["batch_key"]) == (1, 0, 0, 1)
    [again] = table.claim(5)
    assert table.v(again) == "1"
    assert table.finish(again["batch_key"]) == (1, 0, 0, 0)
    assert table.left() == {"1": "D", "2": "D"}


@pytest.mark.parametrize("shape", ["c", "f"])
def test_an_added_column_keeps_rows_the_same(session: Session, sql: Sql, queue: str, shape: str) -> None:
    from support.capabilities import BY_DATABASE

    table = Polled(queue, session, sql, BY_DATABASE["mysql"], SHAPES[shape]).create().insert("1", "2")
    [row] = table.claim(1)
    sql(f"ALTER TABLE {table.name} ADD COLUMN later int NOT NULL DEFAULT 7")
    assert table.finish(row["batch_key"], failure(row["id"], "again", 0)) == (0, 1, 0, 0)
    rows = table.claim(5)
    assert table.finish(rows[0]["batch_key"]) == (2, 0, 0, 0)
    sql(f"ALTER TABLE {table.name} CHANGE COLUMN v w varchar(50)")
    from support.queues import refused

    with refused("unsuitable_table", "unadopt_table"):
        table.claim(1)
