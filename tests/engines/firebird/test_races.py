"""Firebird's transactions: partly read cursors, NO WAIT, snapshots, restarted statements."""

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from rowqueue.install import contract
from servers import Server
from servers.firebird import driver
from servers.firebird_raw import MANNERS, NO_RECORD_VERSION, NO_WAIT, Raw, codes, raw_on
from support.capabilities import BY_DATABASE
from support.outcomes import failure
from support.polling import SHAPES, Polled
from support.queues import NO_KEY

pytestmark = pytest.mark.product("firebird")

Rows = list[dict[str, Any]]
Sql = Callable[..., Rows]
Open = Callable[..., Raw]

ISOLATED = {name for name, entry in contract.load().procedures.items() if "wrong_isolation" in entry.errors}
# Other databases need it for these; watch_table only on 3.0, for a table that is there.
ISOLATED -= {"unadopt_table", "redrive_row", "redrive_rows", "watch_table"}
OF_TABLES = {"publish_feed": "f", "claim_rows": "t", "finish_rows": NO_KEY, "release_rows": NO_KEY}
# send_message and publish only when they change a live message, set_queue for some settings, create_feed: see
# test_sending.py and contract/test_levels.py.
CLAIMING = sorted(
    ISOLATED
    - OF_TABLES.keys()
    - {"send_message", "send_with", "publish_with", "set_queue", "set_option", "set_group", "create_feed"}
)
TABLES = ("message", "ready", "delayed", "batch", "dead", "archive", "mark", "ring", "dedup", "grouped", "group_lock")
UNIQUE = 335544665
CONFLICTS = {335544336, 335544345, 335544451}
WORKERS = 8
NUMBERS = 600  # that each of them asks for
ROWS = 10_000  # of a polling table
FEW_ROWS = 300
MANY_MESSAGES = 1_500  # that all finish at the same time, one claim after the other
FEW_MESSAGES = 60
A_WRITE = 20  # rows a transaction
A_CLAIM = 5
SOON = 0.15  # seconds that a call may wait for another
WHOLE = 2_500  # messages: the client fetches up to a thousand rows ahead of its caller
AT_ONCE = 5.0  # a call that skips locks returns by then, even on a busy machine; no wait is shorter
FOR_GOOD = 60.0  # a call that eight callers have tried for this long is impossible


@pytest.fixture
def raw(server: Server, database: Database) -> Iterator[Open]:
    """Makes connections of the driver's: raw("SNAPSHOT WAIT")."""
    made: list[Raw] = []

    def make(manner: str = NO_WAIT) -> Raw:
        made.append(Raw(server.client(database.url).connection, manner))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def beside() -> Iterator[Callable[..., "Future[Any]"]]:
    """Runs a call in a thread: beside(raw.call, "send", queue, "x").result()."""
    with ThreadPoolExecutor(WORKERS) as pool:
        yield pool.submit


def send_many(session: Session, queue: str, count: int) -> None:
    for first in range(0, count, 10_000):
        session.call("send_batch", queue, "\n".join(str(n) for n in range(first, min(first + 10_000, count))))


def states(sql: Sql, queue: str) -> dict[str, list[int]]:
    """The ids of a queue by state."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in sql("SELECT id, state FROM mq_message_state WHERE type = %s ORDER BY id", queue):
        found[row["state"]].append(row["id"])
    return dict(found)


def count(sql: Sql, table: str, queue: str) -> int:
    found: int = sql(f"SELECT COUNT(*) AS n FROM mq_{table} WHERE type = %s", queue)[0]["n"]
    return found


def content(sql: Sql, queue: str) -> list[list[str]]:
    return [sorted(map(str, sql(f"SELECT * FROM mq_{table} WHERE type = %s", queue))) for table in TABLES]


# ---- cursors ---------------------------------------------------------------------------------------


@pytest.mark.level(3)
@pytest.mark.parametrize("procedure", ["claim_batch", "claim_any", "take_batch", "finish_batch"])
def test_a_caller_that_fetches_a_few_rows_and_commits_has_the_whole_batch(
    raw: Open, session: Session, queue: str, sql: Sql, procedure: str
) -> None:
    send_many(session, queue, WHOLE + 1)
    caller = raw()
    if procedure == "finish_batch":
        key = caller.done("claim_batch", queue, 1)[0]["batch_key"]
        cursor = caller.selected(procedure, key, None, WHOLE)
    else:
        cursor = caller.selected(procedure, queue, WHOLE)
    fetched = [cursor.fetchone()[0] for _ in range(3)]
    caller.commit()
    assert len(set(fetched)) == 3
    [left] = states(sql, queue).get("N", []) or [None]
    if procedure == "take_batch":
        assert states(sql, queue) == {"N": [left]}
        assert count(sql, "message", queue) == 1
    else:
        held = states(sql, queue)["A"]
        assert len(held) == WHOLE and held[:3] == fetched
        assert count(sql, "batch", queue) == 1
        assert (left is None) == (procedure == "finish_batch")
    claimed = session.call("claim_batch", queue, 1_000)
    assert [row["id"] for row in claimed] == ([] if left is None else [left])
    assert not set(fetched) & set(states(sql, queue).get("N", []))


@pytest.mark.parametrize("procedure", ["claim_batch", "claim_any", "take_batch", "finish_batch"])
def test_a_caller_that_fetches_a_few_rows_and_rolls_back_has_nothing(
    raw: Open, session: Session, queue: str, sql: Sql, procedure: str
) -> None:
    send_many(session, queue, 400)
    caller = raw()
    given: tuple[Any, ...] = (queue, 300)
    if procedure == "finish_batch":
        given = (caller.done("claim_batch", queue, 1)[0]["batch_key"], None, 300)
    before = content(sql, queue)
    cursor = caller.selected(procedure, *given)
    for _ in range(3):
        cursor.fetchone()
    caller.rollback()
    assert content(sql, queue) == before


@pytest.mark.level(3)
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_two_takes_are_fetched_side_by_side_in_one_transaction(
    raw: Open, session: Session, queue: str, sql: Sql, ending: str
) -> None:
    other = f"{queue}.other"
    send_many(session, queue, 2 * WHOLE)
    send_many(session, other, 2 * WHOLE)
    caller = raw()
    cursors = [caller.selected("take_batch", type, WHOLE) for type in (queue, queue, other)]
    found: list[list[int]] = [[], [], []]
    for _ in range(WHOLE):
        for cursor, bodies in zip(cursors, found, strict=True):
            row = cursor.fetchone()
            bodies.append(int(row[2]))
    assert [cursor.fetchone() for cursor in cursors] == [None] * 3
    # The cursor that was read first has run first, to its first row.
    assert found == [list(range(WHOLE)), list(range(WHOLE, 2 * WHOLE)), list(range(WHOLE))]
    getattr(caller, ending)()
    left = {"commit": (0, WHOLE), "rollback": (2 * WHOLE, 2 * WHOLE)}[ending]
    assert tuple(count(sql, "message", type) for type in (queue, other)) == left
    assert tuple(count(sql, "ready", type) for type in (queue, other)) == left


def test_messages_of_a_rolled_back_take_return_with_the_same_attempt(
    raw: Open, session: Session, queue: str, sql: Sql
) -> None:
    send_many(session, queue, 50)
    late = session.call("send_message", queue, "50", datetime.now(UTC) + timedelta(seconds=0.2), 3)[0]["id"]
    time.sleep(0.3)
    caller = raw()
    before = content(sql, queue)
    for _ in range(3):
        rows = caller.call("take_batch", queue, 100)
        assert [int(row["body"]) for row in rows] == list(range(51))
        assert {row["attempt"] for row in rows} == {1} and rows[-1]["id"] == late
        assert caller.call("take_batch", queue, 100) == []
        caller.rollback()
        assert content(sql, queue) == before
    assert len(caller.done("take_batch", queue, 100)) == 51
    assert count(sql, "message", queue) == 0


@pytest.mark.parametrize(("retry", "table"), [(0, "delayed"), (-1, "dead")])
@pytest.mark.parametrize("procedure", ["finish_batch", "fail"])
def test_a_failure_waits_while_another_transaction_is_in_the_way_of_its_key(
    raw: Open,
    session: Session,
    queue: str,
    sql: Sql,
    beside: Callable[..., "Future[Any]"],
    procedure: str,
    retry: int,
    table: str,
) -> None:
    """As when the garbage collector has deleted the message's last row there, and not yet the entry in the index."""
    send_many(session, queue, 1)
    [row] = session.call("claim_batch", queue, 1)
    other = raw()
    columns = "run_at, priority" if table == "delayed" else "died_at, n"
    other.run(
        f"INSERT INTO mq_{table} (id, type, attempts, {columns}) VALUES ({row['id']}, '{queue}', 0, mq_utc_now(), 0)"
    )
    id, key = row["id"], row["batch_key"]
    given: tuple[Any, ...] = (id, key, "again", retry)
    if procedure == "finish_batch":
        given = (key, failure(id, "again", retry), 0)
    elif retry == -1:
        procedure, given = "dead_letter", (id, key, "again")
    failed = beside(raw().done, procedure, *given)
    time.sleep(SOON)
    assert not failed.done()
    other.rollback()
    failed.result(AT_ONCE)
    assert states(sql, queue) == {"N" if table == "delayed" else "E": [id]}


# ---- locks -----------------------------------------------------------------------------------------


@pytest.mark.level(3)
@pytest.mark.parametrize("procedure", ["claim_batch", "take_batch"])
@pytest.mark.parametrize("holder", ["claim_batch", "take_batch", "count_attempt", "cancel", "purge"])
def test_a_claim_passes_at_once_over_rows_that_an_open_transaction_holds(
    raw: Open, session: Session, queue: str, sql: Sql, procedure: str, holder: str
) -> None:
    send_many(session, queue, 300)
    ids = states(sql, queue)["N"]
    slow, fast = raw(), raw()
    held = ids[:200]
    if holder in {"claim_batch", "take_batch"}:
        slow.call(holder, queue, 200)
    elif holder == "purge":
        slow.call(holder, queue, "N")
        held = ids
    else:
        held = ids[:20]
        for id in held:
            slow.call(holder, id)
    began = time.monotonic()
    rows = fast.done(procedure, queue, 10_000)
    assert time.monotonic() - began < AT_ONCE
    assert [row["id"] for row in rows] == ids[len(held) :]
    slow.rollback()
    assert states(sql, queue)["N"] == held
    # Claims begin after them for one second, or up to five after a slow full scan.
    again: list[int] = []
    while len(again) < len(held) and time.monotonic() < began + 20:
        again += [row["id"] for row in fast.done(procedure, queue, 10_000)]
        time.sleep(0.05)
    assert sorted(again) == held


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_release_consumer_waits_for_a_call_that_is_finishing_a_batch(
    raw: Open, session: Session, queue: str, sql: Sql, beside: Callable[..., "Future[Any]"], ending: str
) -> None:
    send_many(session, queue, 3)
    key = session.call("claim_batch", queue, 2, queue)[0]["batch_key"]
    session.call("claim_batch", queue, 1, queue)
    holder = raw()
    holder.call("complete_batch", key)
    released = beside(raw().done, "release_consumer", queue)
    time.sleep(SOON)
    assert not released.done()
    getattr(holder, ending)()
    assert released.result(AT_ONCE) == [{"affected": 1 if ending == "commit" else 3}]
    assert len(states(sql, queue)["N"]) == (1 if ending == "commit" else 3)


def test_release_consumer_passes_over_batches_that_others_hold_for_long(
    raw: Open, session: Session, queue: str, sql: Sql
) -> None:
    send_many(session, queue, 4)
    keys = [session.call("claim_batch", queue, 1, queue)[0]["batch_key"] for _ in range(4)]
    holder = raw()
    for key in keys[:3]:
        holder.call("complete_batch", key)
    began = time.monotonic()
    assert raw().done("release_consumer", queue) == [{"affected": 1}]
    assert time.monotonic() - began < AT_ONCE
    holder.commit()
    assert len(states(sql, queue)["N"]) == 1


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_of_two_updates_of_a_message_the_second_changes_nothing_while_the_first_is_open(
    raw: Open, session: Session, queue: str, sql: Sql, ending: str
) -> None:
    [row] = session.call("send", queue, "old")
    first, second = raw(), raw()
    assert first.call("update_message", row["id"], '{"body": "first"}') == [{"affected": 1, "state": "N"}]
    began = time.monotonic()
    assert second.done("update_message", row["id"], '{"body": "second"}') == [{"affected": 0, "state": "N"}]
    assert time.monotonic() - began < AT_ONCE
    getattr(first, ending)()
    assert second.done("update_message", row["id"], '{"priority": 3}') == [{"affected": 1, "state": "N"}]
    [found] = session.call("claim_batch", queue, 1)
    assert (found["body"], found["priority"]) == ("first" if ending == "commit" else "old", 3)


@pytest.mark.level(3)
def test_a_cancel_that_is_rolled_back_cancels_nothing(
    server: Server, database: Database, session: Session, queue: str, beside: Callable[..., "Future[Any]"]
) -> None:
    """From 4.0 on, a call that waits for such a cancel can lock the message's row with rolled-back values.

    Whether the message is still there is asked when all have ended: during a rollback a call can miss its row.
    """
    id = session.call("send", queue, "b")[0]["id"]
    stop = time.monotonic() + 10

    def repeat(call: Callable[[Raw], None]) -> int:
        done = 0
        with raw_on(server, database.url) as raw:
            while time.monotonic() < stop:
                try:
                    call(raw)
                    done += 1
                except driver().DatabaseError as error:
                    if not CONFLICTS & set(codes(error)):
                        raise
                raw.rollback()
        return done

    def cancel(raw: Raw) -> None:
        if raw.call("get_state", id) == [{"state": "A"}]:
            raw.call("cancel", id)

    def attempt(raw: Raw) -> None:
        for row in raw.done("claim_batch", queue, 1):
            while True:
                try:
                    raw.done("snooze", id, row["batch_key"], 0)
                    return
                except driver().DatabaseError as error:
                    if not CONFLICTS & set(codes(error)):
                        raise
                    raw.rollback()

    cancels = [beside(repeat, cancel) for _ in range(3)]
    assert beside(repeat, attempt).result() > 20
    assert all(cancel.result() > 20 for cancel in cancels)
    assert session.call("get_state", id) == [{"state": "N"}]


@pytest.fixture
def arguments(session: Session, queue: str, sql: Callable[..., list[dict[str, Any]]]) -> dict[str, tuple[Any, ...]]:
    """Valid arguments for procedures that need READ COMMITTED NO WAIT, in a queue where each call has work to do."""
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    session.call("send", queue, "done")
    session.call("take_batch", queue, 1)
    *_, ready = [session.call("send", queue, "b")[0]["id"] for _ in range(3)]
    [row] = session.call("claim_batch", queue, 1)
    session.call("claim_batch", queue, 1, "lost")
    sql("UPDATE mq_batch SET lease_until = claimed_at WHERE consumer = 'lost'")
    [dead] = session.call("send", queue, "b")
    session.call("count_attempt", dead["id"], "no", None, 1)
    id, key = row["id"], row["batch_key"]
    by_type = dict.fromkeys(
        ("get_message", "claim_batch", "claim_wraparound", "take_batch", "rescue_expired"), (queue,)
    )
    by_key = dict.fromkeys(("complete_batch", "finish_batch", "release_batch"), (key,))
    others = {
        "redrive": (dead["id"],),
        "redrive_all": (queue,),
        "purge": (queue, "N"),
        "cancel": (dead["id"],),
        "cancel_key": (queue, "d"),
        "drop_queue": (queue,),
        "claim_any": (queue,),
        "update_message": (ready, '{"priority":1}'),
        "release_consumer": ("lost",),
    }
    return {
        **by_type,
        **by_key,
        **others,
        "finish_messages": (key, f'{{"id":{id}}}'),
        "complete": (id, key),
        "fail": (id, key),
        "dead_letter": (id, key),
        "snooze": (id, key, 60),
        "count_attempt": (ready,),
    }


def test_a_busy_queue_makes_no_claim_of_another_skip_its_backlog(raw: Open, session: Session, queue: str) -> None:
    old, hot = f"{queue}.old", f"{queue}.hot"
    send_many(session, old, 3_000)
    time.sleep(2.5)
    send_many(session, hot, 10)
    send_many(session, old, 200)
    a, b = raw(), raw()
    a.call("claim_batch", hot, 5)
    b.done("claim_batch", hot, 5)
    a.rollback()
    for _ in range(3):
        b.done("claim_batch", old, 3)
    [first] = a.call("claim_batch", old, 1)
    found = [row["id"] for _ in range(4) for row in b.done("claim_batch", old, 5)]
    assert found == list(range(first["id"] + 1, first["id"] + 21))
    a.rollback()


@pytest.mark.level(3)
def test_no_claim_overtakes_a_message_by_much_more_than_a_second(
    server: Server, database: Database, session: Session, queue: str, beside: Callable[..., "Future[Any]"]
) -> None:
    """Eight consumers of two queues, which conflict all the time and sometimes roll back."""
    types = [f"{queue}.{n}" for n in range(2)]
    for name in types:
        send_many(session, name, 500)
    stop = time.monotonic() + 8
    claimed: dict[str, list[tuple[float, int]]] = {name: [] for name in types}
    lock = threading.Lock()

    def produce() -> None:
        while time.monotonic() < stop:
            for name in types:
                send_many(session, name, 20)
            time.sleep(0.05)

    def consume(number: int) -> None:
        name = types[number % 2]
        with raw_on(server, database.url) as raw:
            turn = 0
            while time.monotonic() < stop:
                turn += 1
                try:
                    began = time.monotonic()
                    rows = raw.call("take_batch", name, 5)
                    if turn % 5 == 0:
                        raw.rollback()
                        continue
                    raw.commit()
                except driver().DatabaseError as error:
                    if not CONFLICTS & set(codes(error)):
                        raise
                    raw.rollback()
                    continue
                with lock:
                    claimed[name] += [(began, row["id"]) for row in rows]

    for work in [beside(produce), *(beside(consume, n) for n in range(6))]:
        work.result()
    for found in claimed.values():
        found.sort()
        # How much later a message was claimed than the first one after it.
        late, ahead = 0.0, sorted((id, at) for at, id in found)
        earliest = stop
        for _, at in reversed(ahead):
            late = max(late, at - earliest)
            earliest = min(earliest, at)
        assert len(found) > 100 and late < 2.5, late


@pytest.mark.parametrize("manner", [manner for manner in MANNERS if manner != NO_WAIT])
def test_nothing_claims_or_finishes_in_a_transaction_that_waits_or_sees_a_snapshot(
    raw: Open, queue: str, sql: Sql, arguments: dict[str, tuple[Any, ...]], manner: str
) -> None:
    assert set(arguments) == set(CLAIMING)
    caller = raw(manner)
    before = content(sql, queue)
    assert all(before[: TABLES.index("archive") + 1 : 3])
    for procedure in CLAIMING:
        for text in ("SELECT * FROM mq_{}({})", "EXECUTE PROCEDURE mq_{}({})"):
            values = arguments[procedure]
            with pytest.raises(driver().DatabaseError, match=r"MQ_50001\n-?wrong_isolation: this transaction"):
                caller.run(text.format(procedure, ", ".join("?" * len(values))), *values)
        # The transaction continues and may be committed: a refused call has changed nothing.
        caller.commit()
        assert content(sql, queue) == before, procedure


@pytest.mark.parametrize("procedure", OF_TABLES)
def test_calls_on_users_tables_check_the_transaction_first(raw: Open, procedure: str) -> None:
    for manner in MANNERS:
        caller = raw(manner)
        if manner != NO_WAIT:
            with pytest.raises(driver().DatabaseError, match=r"MQ_50001\n-?wrong_isolation: this transaction"):
                caller.run(f"SELECT * FROM mq_{procedure}(?)", OF_TABLES[procedure])
            caller.commit()


@pytest.mark.level(3)
@pytest.mark.parametrize("procedure", [*CLAIMING, "queue_stats", "peek", "wait_for_message"])
def test_a_transaction_without_record_versions_is_refused_where_the_server_has_it(
    server: Server, database: Database, queue: str, procedure: str
) -> None:
    """From 4.0 on statements have snapshots of their own, unless the server is set to work as before."""
    known: dict[str, Any] = dict.fromkeys(("cancel", "redrive", "count_attempt"), 1)
    known |= dict.fromkeys(("complete", "fail", "dead_letter"), (1, NO_KEY))
    known |= {
        "snooze": (1, NO_KEY, 60),
        "finish_messages": (NO_KEY, '{"id":1}'),
        "purge": (queue, "N"),
        "cancel_key": (queue, "d"),
        "update_message": (1, '{"priority":1}'),
    }
    arguments = known.get(procedure)
    if arguments is None:
        takes_key = contract.load().procedures[procedure].arguments[0].name == "batch_key"
        arguments = NO_KEY if takes_key else queue
    values = arguments if isinstance(arguments, tuple) else (arguments,)
    with raw_on(server, database.url, NO_RECORD_VERSION) as raw:
        if not server.version.startswith("3."):  # type: ignore[attr-defined]
            raw.call("queue_stats", queue)
            return
        with pytest.raises(driver().DatabaseError, match=r"MQ_50001\n-?wrong_isolation.*NO RECORD_VERSION"):
            raw.call(procedure, *values)


@pytest.mark.level(3)
def test_messages_of_very_many_types_in_one_transaction_cost_no_more_each(raw: Open, queue: str) -> None:
    one = raw()

    def send(first: int, count: int) -> float:
        """How many seconds it takes."""
        began = time.monotonic()
        one.run(
            f"EXECUTE BLOCK AS DECLARE i integer = {first}; DECLARE n bigint; BEGIN WHILE (i < {first + count}) DO"
            f" BEGIN i = i + 1; SELECT id FROM mq_send('{queue}.' || :i, 'x') INTO n; END END"
        )
        return time.monotonic() - began

    # The fastest of six: a busy machine slows some of them, growth with the number of types slows all.
    before = min(send(500 * n, 500) for n in range(6))
    send(3_000, 14_000)
    after = min(send(17_000 + 500 * n, 500) for n in range(6))
    assert after < 3 * before, (before, after)
    one.rollback()


@pytest.mark.parametrize("manner", [manner for manner in MANNERS if "TABLE" not in manner])
def test_senders_and_onlookers_may_use_any_transaction(raw: Open, queue: str, sql: Sql, manner: str) -> None:
    caller = raw(manner)
    caller.call("send", queue, "1")
    caller.call("send_batch", queue, "2\n3")
    caller.call("send_message", queue, "4", None, 0, None, "k")
    caller.call("set_queue", queue, '{"lease_seconds": 7}')
    assert caller.call("queue_stats", queue)[0]["ready"] == 4
    assert len(caller.call("peek", queue, "N", 10)) == 4
    caller.commit()
    assert count(sql, "ready", queue) == 4


def test_a_finish_waits_for_a_heartbeat_and_a_heartbeat_for_a_finish(
    raw: Open, session: Session, queue: str, sql: Sql, beside: Callable[..., "Future[Any]"]
) -> None:
    send_many(session, queue, 40)
    first, second = raw(), raw()
    for finish in ("complete_batch", "finish_batch", "release_batch"):
        key = first.done("claim_batch", queue, 10)[0]["batch_key"]
        assert first.call("extend_lease", key, 60) == [{"affected": 10}]
        ending = beside(second.done, finish, key)
        time.sleep(SOON)
        first.commit()
        assert ending.result() == ([] if finish == "finish_batch" else [{"affected": 10}])
        assert count(sql, "batch", queue) == 0
    # In the other order: the batch is finished when the heartbeat has waited.
    key = first.done("claim_batch", queue, 10)[0]["batch_key"]
    assert first.call("complete_batch", key) == [{"affected": 10}]
    beat = beside(second.done, "extend_lease", key, 60)
    time.sleep(SOON)
    first.commit()
    assert beat.result() == [{"affected": 0}]
    assert states(sql, queue).keys() == {"N"} and count(sql, "message", queue) == 10


def test_calls_for_a_message_that_is_claimed_alone_wait_for_each_other(
    raw: Open, session: Session, queue: str, sql: Sql, beside: Callable[..., "Future[Any]"]
) -> None:
    """It stands in the row of its batch, which others have locked."""
    send_many(session, queue, 2)
    first, second = raw(), raw()
    for end, more, said in (("complete", (), {"affected": 1}), ("dead_letter", ("no",), {"state": "E"})):
        [row] = first.done("get_message", queue)
        id, key = row["id"], row["batch_key"]
        for name, values, finish, then, arguments, answer in (
            (end, (id, key, *more), first.rollback, "extend_lease", (key, 60), {"affected": 1}),
            ("extend_lease", (key, 60), first.commit, end, (id, key, *more), said),
        ):
            first.call(name, *values)
            waiting = beside(second.done, then, *arguments)
            time.sleep(SOON)
            finish()
            assert waiting.result() == [answer]
    assert count(sql, "batch", queue) == 0 and count(sql, "dead", queue) == count(sql, "message", queue) == 1


def test_two_members_of_one_batch_are_finished_at_the_same_time(
    raw: Open, session: Session, queue: str, sql: Sql, beside: Callable[..., "Future[Any]"]
) -> None:
    """Each call ends its transaction before another can lock the row of the batch: none fails."""
    send_many(session, queue, 100)
    rows = session.call("claim_batch", queue, 100)
    session.call("extend_lease", rows[0]["batch_key"], 3_600)
    callers = [raw() for _ in range(2)]

    def finish(n: int) -> int:
        own = [row["id"] for row in rows[n::2]]
        return sum(callers[n].done("complete", id, rows[0]["batch_key"])[0]["affected"] for id in own)

    assert [done.result() for done in [beside(finish, n) for n in range(2)]] == [50] * 2
    assert content(sql, queue)[:4] == [[], [], [], []]


@pytest.mark.level(3)
def test_a_lock_that_stays_ends_the_call_with_the_engines_conflict_and_changes_nothing(
    raw: Open, session: Session, queue: str, sql: Sql
) -> None:
    send_many(session, queue, 3)
    holder, caller = raw(), raw()
    key = holder.done("claim_batch", queue, 3)[0]["batch_key"]
    holder.call("extend_lease", key, 60)
    before = content(sql, queue)
    for procedure in ("complete_batch", "finish_batch", "release_batch", "extend_lease"):
        with pytest.raises(driver().DatabaseError) as caught:
            caller.call(procedure, key)
        assert CONFLICTS & set(codes(caught.value)), procedure
        caller.rollback()
    holder.rollback()
    assert content(sql, queue) == before
    assert caller.done("complete_batch", key) == [{"affected": 3}]


ARCHIVED_BY_ME = """
    SELECT COALESCE(SUM(r.mon$record_inserts), 0) AS n
    FROM mon$attachments AS a
    JOIN mon$table_stats AS t ON t.mon$stat_id = a.mon$stat_id
    JOIN mon$record_stats AS r ON r.mon$stat_id = t.mon$record_stat_id
    WHERE a.mon$attachment_id = CURRENT_CONNECTION AND t.mon$table_name = 'MQ_ARCHIVE'
"""


@pytest.mark.parametrize(
    ("held", "tries"),
    [
        ("SELECT id FROM mq_message WHERE id = ? WITH LOCK", 0),
        (
            "INSERT INTO mq_archive (id, completed_at, created_at, priority, attempts, type, body)"
            " SELECT id, created_at, created_at, priority, 1, type, body FROM mq_message WHERE id = ?",
            2_100,  # one per millisecond
        ),
    ],
    ids=["message", "archive"],
)
def test_finishing_during_a_rollback_writes_nothing_that_would_be_refused(
    raw: Open, session: Session, queue: str, sql: Sql, held: str, tries: int
) -> None:
    """Without a pause between retries, a refused INSERT sometimes stayed: a message was both archived and ready."""
    session.call("set_queue", queue, '{"on_complete": "archive"}')
    send_many(session, queue, 1)
    holder, caller = raw(), raw()
    [row] = caller.done("claim_batch", queue, 1)
    holder.run(held, row["id"])
    before = content(sql, queue)
    with pytest.raises(driver().DatabaseError):
        caller.call("complete", row["id"], row["batch_key"])
    caller.rollback()
    assert caller.run(ARCHIVED_BY_ME)[0]["n"] <= tries
    caller.rollback()
    holder.rollback()
    assert content(sql, queue) == before
    assert caller.done("complete", row["id"], row["batch_key"]) == [{"affected": 1}]
    assert count(sql, "archive", queue) == 1


# ---- a dedup_key that another transaction has -------------------------------------------------------

SENDERS = ["SNAPSHOT WAIT", "READ COMMITTED WAIT", "READ COMMITTED NO WAIT", "SNAPSHOT NO WAIT"]


def send_key(raw: Raw, queue: str, body: str) -> tuple[int, int]:
    [row] = raw.call("send_message", queue, body, None, 0, None, "key")
    return row["id"], row["created"]


@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("manner", SENDERS)
def test_a_sender_waits_for_the_open_transaction_that_sent_its_key(
    raw: Open, queue: str, sql: Sql, beside: Callable[..., "Future[Any]"], manner: str, ending: str
) -> None:
    first, second = raw(), raw(manner)
    second.run("SELECT 1 FROM rdb$database")  # its snapshot
    id, created = send_key(first, queue, "first")
    assert created == 1
    sent = beside(send_key, second, queue, "second")
    time.sleep(SOON)
    assert not sent.done()
    getattr(first, ending)()
    found = sent.result()
    second.commit()
    stored = sql("SELECT id, body FROM mq_message WHERE type = %s", queue)
    if ending == "commit":
        assert found == (id, 0) and stored == [{"id": id, "body": "first"}]
    else:
        assert found[1] == 1 and stored == [{"id": found[0], "body": "second"}]
    assert [row["id"] for row in sql("SELECT id FROM mq_dedup WHERE type = %s", queue)] == [stored[0]["id"]]
    assert count(sql, "ready", queue) == 1


@pytest.mark.parametrize("manner", SENDERS)
def test_a_sender_finds_a_key_that_was_committed_after_its_snapshot(
    raw: Open, queue: str, sql: Sql, manner: str
) -> None:
    first, second = raw(), raw(manner)
    second.run("SELECT COUNT(*) FROM mq_dedup")
    id, _ = send_key(first, queue, "first")
    first.commit()
    assert send_key(second, queue, "second") == (id, 0)
    assert send_key(second, queue, "third") == (id, 0)
    second.commit()
    assert [row["id"] for row in sql("SELECT id FROM mq_message WHERE type = %s", queue)] == [id]
    assert count(sql, "ready", queue) == count(sql, "dedup", queue) == 1


@pytest.mark.parametrize("manner", SENDERS)
def test_a_sender_can_reuse_a_key_whose_message_was_finished_after_its_snapshot(
    raw: Open, session: Session, queue: str, sql: Sql, manner: str
) -> None:
    first, second = raw(), raw(manner)
    send_key(first, queue, "first")
    first.commit()
    second.run("SELECT COUNT(*) FROM mq_dedup")
    assert len(session.call("take_batch", queue, 1)) == 1
    id, created = send_key(second, queue, "second")
    assert created == 1
    assert send_key(second, queue, "third") == (id, 0), "his own, which nobody else sees yet"
    second.commit()
    assert [row["id"] for row in sql("SELECT id FROM mq_message WHERE type = %s", queue)] == [id]
    assert [row["id"] for row in session.call("take_batch", queue, 5)] == [id]
    assert count(sql, "dedup", queue) == 0


@pytest.mark.parametrize("manner", SENDERS)
def test_a_sender_waits_for_the_open_transaction_that_finishes_the_message_with_its_key(
    raw: Open, queue: str, sql: Sql, beside: Callable[..., "Future[Any]"], manner: str
) -> None:
    first, second = raw(), raw(manner)
    send_key(first, queue, "first")
    first.commit()
    assert len(first.call("take_batch", queue, 1)) == 1
    sent = beside(send_key, second, queue, "second")
    time.sleep(SOON)
    first.commit()
    id, created = sent.result()
    second.commit()
    left = [row["id"] for row in sql("SELECT id FROM mq_message WHERE type = %s", queue)]
    # A transaction that does not wait may still find the message that is being finished.
    assert left == ([id] if created else [])
    if manner.endswith(" WAIT") and "NO WAIT" not in manner:
        assert created == 1
    assert count(sql, "dedup", queue) == len(left)


@pytest.mark.parametrize("manner", ["READ COMMITTED NO WAIT", "SNAPSHOT NO WAIT"])
def test_a_sender_that_does_not_wait_gets_an_error_that_its_key_is_being_sent(
    raw: Open, queue: str, sql: Sql, manner: str
) -> None:
    first, second = raw(), raw(manner)
    id, _ = send_key(first, queue, "first")
    began = time.monotonic()
    with pytest.raises(driver().DatabaseError) as caught:
        send_key(second, queue, "second")
    assert UNIQUE in codes(caught.value)
    assert time.monotonic() - began < AT_ONCE
    second.rollback()
    first.commit()
    assert send_key(second, queue, "third") == (id, 0)
    second.commit()
    assert count(sql, "message", queue) == 1


# ---- crowds ----------------------------------------------------------------------------------------


def crowd(server: Server, url: str, work: Callable[[Raw, int], None]) -> None:
    """Let eight connections work at once; the first error of any of them fails the test."""
    gate = threading.Barrier(WORKERS)

    def live(number: int) -> None:
        with raw_on(server, url) as raw:
            gate.wait(60)
            work(raw, number)

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(live, number) for number in range(WORKERS)]:
            done.result()


MESSAGES = 1_500


@pytest.mark.parametrize("way", ["claim and finish", "take"])
@pytest.mark.parametrize("size", [1, 20])
def test_eight_claimers_get_no_error_and_no_message_twice(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, way: str, size: int
) -> None:
    """Statements are not repeated: an update conflict that reaches a claimer fails the test."""
    total = MESSAGES if size > 1 else MESSAGES // 4
    send_many(session, queue, total)
    found: list[list[int]] = [[] for _ in range(WORKERS)]

    def work(raw: Raw, number: int) -> None:
        empty = 0
        while empty < 3:
            rows = raw.done("claim_batch" if way != "take" else "take_batch", queue, size)
            empty = 0 if rows else empty + 1
            while rows:
                assert {row["attempt"] for row in rows} == {1}
                found[number] += [int(row["body"]) for row in rows]
                rows = raw.done("finish_batch", rows[0]["batch_key"], None, size) if way != "take" else []

    crowd(server, database.url, work)
    handled = sorted(chain(*found))
    # A claim that finds nothing ends a process, so messages that others put back at that moment are left.
    left = [int(row["body"]) for row in session.call("claim_batch", queue, 10_000)]
    assert sorted(handled + left) == list(range(total))
    assert left == [], "all are handled when eight workers find nothing three times"
    assert content(sql, queue)[:4] == [[], [], [], []]


@pytest.mark.level(4)
@pytest.mark.parametrize("kind", ["ready", "archived", "delayed", "ordered"])
def test_eight_claimers_that_sometimes_roll_back_leave_nothing_behind_and_get_few_errors(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, kind: str
) -> None:
    """The engine rolls back row by row: a message may be free in one table but not yet in the next."""
    policy = "archive" if kind == "archived" else "delete"
    session.call("set_queue", queue, json.dumps({"on_complete": policy, "ordered": 1 if kind == "ordered" else 0}))
    if kind == "ordered":
        with session.transaction():
            for n in range(MESSAGES // 4):
                session.call("send_message", queue, str(n), None, 0, f"g{n % 100}")
    else:
        send_many(session, queue, MESSAGES)
    if kind == "delayed":
        # Due, but still in the table of delayed messages.
        sql(
            "INSERT INTO mq_delayed (id, type, run_at, priority, attempts)"
            " SELECT id, type, run_at, priority, attempts FROM mq_ready WHERE type = %s",
            queue,
        )
        sql("DELETE FROM mq_ready WHERE type = %s", queue)
    found: list[list[int]] = [[] for _ in range(WORKERS)]
    conflicts: list[str] = []
    deadline = time.monotonic() + 60

    def work(raw: Raw, number: int) -> None:
        turn = 0
        while session_left(raw, queue) and time.monotonic() < deadline:
            turn += 1
            try:
                rows = raw.call("take_batch", queue, 20)
            except driver().DatabaseError as error:
                if not CONFLICTS & set(codes(error)):
                    raise
                conflicts.append(str(error))
                raw.rollback()
                continue
            if (turn + number) % 3 == 0:
                raw.rollback()
                continue
            raw.commit()
            found[number] += [int(row["body"]) for row in rows]

    crowd(server, database.url, work)
    # SKIP LOCKED of 5.0 itself raises one in about 20,000 rows, see test_skip_locked.py.
    assert len(conflicts) <= 2, conflicts
    assert sorted(chain(*found)) == list(range(MESSAGES // 4 if kind == "ordered" else MESSAGES))
    assert count(sql, "message", queue) == count(sql, "delayed", queue) == count(sql, "grouped", queue) == 0
    assert count(sql, "archive", queue) == (MESSAGES if kind == "archived" else 0)


def session_left(raw: Raw, queue: str) -> bool:
    rows = raw.run("SELECT FIRST 1 id FROM mq_message WHERE type = ?", queue)
    raw.commit()
    return bool(rows)


@pytest.mark.parametrize("numbers_each", [20, pytest.param(NUMBERS, marks=pytest.mark.level(4))])
def test_eight_callers_of_a_sequence_half_of_which_roll_back_leave_no_gap(
    server: Server, database: Database, queue: str, numbers_each: int
) -> None:
    """The engine can keep a rolled-back change while others try to change the same row."""
    kept: list[list[int]] = [[] for _ in range(WORKERS)]

    def work(raw: Raw, number: int) -> None:
        for turn in range(numbers_each):
            try:
                [row] = raw.call("advance_sequence", queue)
            except driver().DatabaseError as error:
                if not CONFLICTS & set(codes(error)):
                    raise
                raw.rollback()
                continue
            if (turn + number) % 2:
                raw.rollback()
            else:
                raw.commit()
                kept[number].append(row["first_number"])

    crowd(server, database.url, work)
    numbers = sorted(chain(*kept))
    assert len(numbers) > WORKERS and numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize(
    ("shape", "total"),
    [
        ("b", FEW_ROWS),
        pytest.param("b", ROWS, marks=pytest.mark.level(4)),
        pytest.param("d", ROWS, marks=pytest.mark.level(4)),
    ],
)
def test_eight_pollers_half_of_which_roll_back_finish_each_row_of_a_table_with_kept_rows_once(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, shape: str, total: int
) -> None:
    """Only the position of claims distinguishes new rows from old: a position left by a rollback would lose rows."""
    table = Polled(queue, session, sql, BY_DATABASE["firebird"], SHAPES[shape]).create()
    column, value = {"b": ("id", ":n"), "d": ("made", "DATEADD(:n SECOND TO TIMESTAMP '2026-01-01')")}[shape]
    done: list[list[int]] = [[] for _ in range(WORKERS)]
    undone = [0] * WORKERS
    written = threading.Event()
    deadline = time.monotonic() + 240

    def write() -> None:
        with raw_on(server, database.url) as raw:
            for first in range(0, total, A_WRITE):
                raw.run(
                    f"EXECUTE BLOCK AS DECLARE n integer = {first}; BEGIN WHILE (n < {first + A_WRITE}) DO BEGIN"
                    f" INSERT INTO {table.name} ({column}, v) VALUES ({value}, :n); n = n + 1; END END"
                )
                raw.commit()
                time.sleep(0.02)
        written.set()

    def poll(raw: Raw, number: int) -> None:
        claim = f"SELECT batch_key, CAST(row_data AS VARCHAR(200)) AS r FROM mq_claim_rows('{table.name}', {A_CLAIM})"
        turn = empty = 0
        while empty < 20 and time.monotonic() < deadline:
            try:
                over = written.is_set()
                rows = raw.run(claim)
                if rows and (turn := turn + 1) % 2:
                    raw.rollback()
                    undone[number] += 1
                    continue
                raw.commit()
                empty = empty + 1 if over and not rows else 0
            except driver().DatabaseError as error:
                if not CONFLICTS & set(codes(error)):
                    raise
                raw.rollback()
                continue
            if rows:
                [counts] = raw.done("finish_rows", rows[0]["batch_key"], None)
                assert counts == {"done": len(rows), "failed": 0, "dead": 0, "gone": 0}
                done[number] += [int(json.loads(row["r"])["V"]) for row in rows]

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        crowd(server, database.url, poll)
        writer.result()
    done.append([int(table.v(row)) for row in table.claim(10_000)])
    times = Counter(chain(*done))
    assert sum(undone) > WORKERS
    assert {n: times[n] for n in range(total) if times[n] != 1} == {}


@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("total", [FEW_MESSAGES, pytest.param(MANY_MESSAGES, marks=pytest.mark.level(4))])
def test_eight_callers_of_one_batch_half_of_which_roll_back_finish_each_message_once_and_leave_no_lease(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, size: int, total: int
) -> None:
    """When callers retried on the batch's row, a rolled-back DELETE stayed: the batch was deleted, its message not."""
    send_many(session, queue, total)
    tasks: list[tuple[int, str]] = []
    finished: Counter[int] = Counter()
    lock = threading.Lock()
    claimed: set[str] = set()
    latest = [time.monotonic()]

    def work(raw: Raw, number: int) -> None:
        turn = 0
        while True:
            with lock:
                if not tasks:
                    if len(claimed) == total // size:
                        return
                    rows = session.call("get_message", queue) if size == 1 else session.call("claim_batch", queue, size)
                    assert len(rows) == size
                    claimed.add(rows[0]["batch_key"])
                    tasks.extend((row["id"], row["batch_key"]) for row in rows)
                    latest[0] = time.monotonic()
                id, key = tasks[-1]
            turn += 1
            try:
                if number % 2:
                    [answer] = raw.call("complete", id, key)
                else:
                    [answer] = raw.call("extend_lease", key, 86_400 if turn % 2 else 60)
                if turn % 2:
                    raw.rollback()
                    continue
                raw.commit()
            except driver().DatabaseError as error:
                lost = "MQ_50008" in str(error)  # another caller has finished it
                if not lost and not CONFLICTS & set(codes(error)):
                    raise
                raw.rollback()
                if not lost:
                    continue
                answer = {"affected": 0}
            with lock:
                if number % 2 and answer["affected"]:
                    finished[id] += 1
                    tasks.remove((id, key))
                    latest[0] = time.monotonic()
                elif (id, key) in tasks:
                    condition = "type = %s AND lease_until > DATEADD(1 HOUR TO mq_utc_now())"
                    days = sql(f"SELECT COUNT(*) AS n FROM mq_batch WHERE {condition}", queue)
                    assert days == [{"n": 0}], "the lease of a heartbeat that was rolled back"
                    assert time.monotonic() < latest[0] + FOR_GOOD, "nobody can finish it"

    crowd(server, database.url, work)
    assert len(finished) == total and set(finished.values()) == {1}
    assert content(sql, queue)[:4] == [[], [], [], []]


GROUPS = 60
A_GROUP = 20


@pytest.mark.parametrize("way", ["claim and finish", "take"])
@pytest.mark.level(3)
def test_eight_consumers_of_an_ordered_queue_keep_each_group_in_order_and_get_no_error(
    server: Server, database: Database, session: Session, queue: str, sql: Sql, way: str
) -> None:
    session.call("set_queue", queue, '{"backoff_seconds": 0, "ordered": 1}')
    with session.transaction():
        for n in range(A_GROUP):
            for group in range(GROUPS):
                session.call("send_message", queue, str(n), None, 0, f"g{group}")
    order: dict[str, list[int]] = defaultdict(list)
    at_work: set[str] = set()
    noting = threading.Lock()
    deadline = time.monotonic() + 90

    def note(rows: Rows) -> None:
        with noting:
            for row in rows:
                assert row["group_key"] not in at_work, "two consumers have one group"
                at_work.add(row["group_key"])
                order[row["group_key"]].append(int(row["body"]))

    def forget(rows: Rows) -> None:
        with noting:
            at_work.difference_update(row["group_key"] for row in rows)

    def work(raw: Raw, number: int) -> None:
        rows: Rows = []
        while time.monotonic() < deadline and (rows or session_left(raw, queue)):
            if way == "take":
                rows = raw.call("take_batch", queue, 5)
                note(rows)
                forget(rows)  # before the commit that shows others the group
                raw.commit()
                rows = []
                continue
            rows = rows or raw.done("claim_batch", queue, 5)
            note(rows)
            if rows:
                forget(rows)
                rows = raw.done("finish_batch", rows[0]["batch_key"], None, 5 if number % 2 else 0)

    crowd(server, database.url, work)
    assert order == {f"g{group}": list(range(A_GROUP)) for group in range(GROUPS)}
    assert count(sql, "message", queue) == count(sql, "grouped", queue) == count(sql, "group_lock", queue) == 0


# ---- EXECUTE PROCEDURE and sessions of their own ----------------------------------------------------


def one_day(raw: Raw, queue: str, how: str) -> list[list[Any]]:
    """A message's whole life, each call with SELECT or with EXECUTE PROCEDURE, which returns only the first row."""
    said: list[list[Any]] = []

    def call(procedure: str, *values: Any) -> dict[str, Any]:
        marks = ", ".join("?" * len(values))
        text = (
            f"SELECT * FROM mq_{procedure}({marks})"
            if how == "SELECT"
            else f"EXECUTE PROCEDURE mq_{procedure}({marks})"
        )
        cursor = raw.cursor(text, *values)
        names = [column[0].lower() for column in cursor.description or ()]
        row = cursor.fetchone()
        cursor.close()
        raw.commit()
        found = dict(zip(names, row, strict=True)) if row else {}
        said.append(
            [procedure, *(found.get(name) for name in ("body", "attempt", "affected", "created", "state", "ready"))]
        )
        return found

    def key() -> Any:
        [found] = raw.run("SELECT batch_key FROM mq_batch WHERE type = ? ORDER BY claimed_at DESC ROWS 1", queue)
        raw.commit()
        return found["batch_key"]

    call("set_queue", queue, '{"backoff_seconds": 0, "on_complete": "archive"}')
    call("send", queue, "0")
    call("send_batch", queue, "\n".join(map(str, range(1, 60))))
    first = call("send_message", queue, "first", None, -1, None, "k")
    call("send_message", queue, "again", None, -1, None, "k")
    call("wait_for_message", queue, 0)
    call("claim_batch", queue, 10)
    held = key()
    call("extend_lease", held, 100)
    call("complete", first["id"], held)
    call("dead_letter", first["id"] - 1, held, "not held")
    call("finish_batch", held, None, 10)
    held = key()
    call("release_batch", held)
    call("claim_batch", queue, 3)
    call("complete_batch", key())
    call("take_batch", queue, 5)
    call("get_message", queue)
    call("claim_batch", queue, 4, "r", 1)
    time.sleep(1.1)  # until the lease ends
    call("rescue_expired", queue)
    [ready] = raw.run("SELECT MAX(id) AS id FROM mq_ready WHERE type = ?", queue)
    call("count_attempt", ready["id"], "no", None, 1)
    call("queue_stats", queue)
    call("peek", queue, "E", 5)
    call("redrive_all", queue)
    call("cancel", ready["id"])
    call("claim_wraparound", queue, 3, "ring")
    call("complete_batch", key())
    call("pause", queue)
    call("resume", queue)
    call("purge", queue, "N")
    call("purge", queue, "C")
    call("claim_batch", queue, 100)
    return said


@pytest.mark.level(4)
def test_execute_procedure_does_what_select_does(raw: Open, queue: str, sql: Sql) -> None:
    """A caller who fetches one row has still run the whole call."""
    said, left = [], []
    for how in ("SELECT", "EXECUTE PROCEDURE"):
        type = f"{queue}.{how}"
        said.append(one_day(raw(), type, how))
        rows = sql("SELECT body, state, attempts FROM mq_message_state WHERE type = %s ORDER BY body", type)
        left.append((rows, [count(sql, table, type) for table in TABLES if table not in {"mark", "ring"}]))
    assert said[0] == said[1]
    assert left[0] == left[1]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "+14:00", "-12:00"])
def test_a_session_with_a_time_zone_of_its_own_stores_and_claims_utc(
    raw: Open, server: Server, session: Session, queue: str, sql: Sql, zone: str
) -> None:
    if server.version.startswith("3."):  # type: ignore[attr-defined]
        pytest.skip("3.0 knows no time zones")
    caller = raw()
    caller.run(f"SET TIME ZONE '{zone}'")
    caller.commit()
    before = datetime.now(UTC) - timedelta(seconds=1)
    id = caller.call("send", queue, "now")[0]["id"]
    caller.call("send_message", queue, "later", datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=5))
    caller.call("send_message", queue, "due", datetime.now(UTC).replace(tzinfo=None) - timedelta(minutes=5))
    caller.commit()
    after = datetime.now(UTC) + timedelta(seconds=1)
    for row in sql("SELECT created_at FROM mq_message WHERE type = %s", queue):
        assert before <= row["created_at"] <= after
    assert [row["id"] for row in sql("SELECT id FROM mq_delayed WHERE type = %s", queue)] == [id + 1]
    rows = caller.done("claim_batch", queue, 10, None, 60)
    assert [row["body"] for row in rows] == ["due", "now"]
    [batch] = sql("SELECT claimed_at, lease_until FROM mq_batch WHERE type = %s", queue)
    assert before <= batch["claimed_at"] <= after + timedelta(seconds=30)
    assert batch["lease_until"] - batch["claimed_at"] == timedelta(seconds=60)
    assert rows[0]["lease_until"].replace(tzinfo=UTC) == batch["lease_until"]
    # Other sessions do not treat the lease as expired, nor does this session treat theirs so.
    assert session.call("rescue_expired", queue) == caller.done("rescue_expired", queue) == [{"affected": 0}]
    sql("UPDATE mq_batch SET lease_until = claimed_at WHERE type = %s", queue)
    assert session.call("rescue_expired", queue) == [{"affected": 2}]


def test_a_message_that_becomes_due_in_the_millisecond_of_the_last_claim_is_claimed_at_once(
    raw: Open, queue: str
) -> None:
    caller = raw()
    caller.done("send", queue, "x")
    [row] = caller.done("claim_batch", queue, 1)
    caller.done("fail", row["id"], row["batch_key"], "busy", 0)
    # The mark of the claim, as if it had been in this millisecond.
    caller.run(
        "UPDATE mq_mark SET scanned_at = mq_utc_now(), promoted_to = (SELECT run_at FROM mq_delayed WHERE id = ?)"
        " WHERE type = ?",
        row["id"],
        queue,
    )
    caller.commit()
    assert [found["id"] for found in caller.done("claim_batch", queue, 1)] == [row["id"]]
