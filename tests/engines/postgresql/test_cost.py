"""What a call reads: no scan or sort of a backlog of any size, and no messages that were done long ago.

A call is measured by the rows its statements fetch (pg_stat_xact_user_tables) and by the pages they touch, those of the
statements inside the functions included. A scan or a sort of 1,000,000 messages shows in both.
"""

import statistics
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers import Server
from support.outcomes import dead_letter, failure, joined

pytestmark = pytest.mark.product("postgresql")

BACKLOG = 1_000_000
READY_BEHIND_DELAYED = 1_000
SIZE = 20
# Per call of SIZE messages, measured: at most 150 rows and 900 pages.
ROWS = 400
PAGES = 2_000
# queue_stats counts up to 10,000 of each state.
STATS_ROWS = 12_000
STATS_PAGES = 15_000

DEAD = 20_000
GROUPED = 20_000
BLOCKED = 2_000
# Per call of SIZE messages of as many groups.
GROUP_ROWS = 1_000
GROUP_PAGES = 3_000
ONE_PAGES = 200

DONE_UNDER_SNAPSHOT = 100_000
SAMPLE = 250

Connection = Any


@dataclass
class Cost:
    """What one call read."""

    call: str
    rows: int
    scanned: int
    pages: int


def fetched(connection: Connection) -> tuple[int, int]:
    row = connection.execute(
        "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) AS rows, sum(seq_tup_read) AS scanned"
        " FROM pg_stat_xact_user_tables WHERE schemaname = 'mq'"
    ).fetchone()
    return int(row["rows"]), int(row["scanned"])


def pages(connection: Connection, call: str, *arguments: Any) -> int:
    """Run a call and count the pages it touches."""
    explain = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT * FROM mq.{call}"
    plan = connection.execute(explain, arguments).fetchone()["QUERY PLAN"][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def measured(connection: Connection, call: str, *arguments: Any) -> Cost:
    rows, scanned = fetched(connection)
    touched = pages(connection, call, *arguments)
    rows_after, scanned_after = fetched(connection)
    return Cost(call, rows_after - rows, scanned_after - scanned, touched)


@pytest.fixture(scope="module")
def backlogs(server: Server) -> Iterator[str]:
    """Two queues: `ready` with 1,000,000 ready messages, `delayed` with 1,000,000 urgent ones for tomorrow before a
    few that are ready. Only the tests run ANALYZE."""
    url = server.create_database()
    install.apply(open_database(url))
    with server.client(url) as connection:
        for table in ("message", "ready", "delayed"):
            connection.execute(f"ALTER TABLE mq.{table} SET (autovacuum_enabled = off)")
        connection.execute(
            "INSERT INTO mq.message (run_at, created_at, priority, type, body)"
            " SELECT now(), now(), 0, CASE WHEN n <= %s THEN 'ready' ELSE 'delayed' END, 'x'"
            " FROM generate_series(1, %s) AS n",
            [BACKLOG, BACKLOG + READY_BEHIND_DELAYED],
        )
        connection.execute(
            "INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id)"
            " SELECT run_at, id, priority, 0, type, true FROM mq.message"
        )
        make_rings(connection, "ready", "delayed")
        # Their messages are not read before they are due, so they need none.
        connection.execute(
            "INSERT INTO mq.delayed (id, run_at, priority, attempts, type)"
            " SELECT 10000000 + n, now() + interval '1 day', -5, 0, 'delayed' FROM generate_series(1, %s) AS n",
            [BACKLOG],
        )
    yield url
    server.drop_database(url)


def make_rings(connection: Connection, *types: str) -> None:
    """Declare rings, as if no transaction of before were open any more: until then claims read more."""
    for type in types:
        connection.execute("SELECT mq.set_option(%s, 'ring', '1')", [type])
        connection.execute("UPDATE mq.queue SET mixed = false WHERE type = %s", [type])


def held(connection: Connection, type: str) -> tuple[Any, list[int]]:
    """Key and messages of the newest batch."""
    row = connection.execute(
        "SELECT batch_key, ids FROM mq.batch WHERE type = %s ORDER BY claimed_at DESC LIMIT 1", [type]
    ).fetchone()
    return row["batch_key"], row["ids"]


def all_calls(connection: Connection, type: str, ring: bool) -> Iterator[Cost]:
    """Every call that finds messages, once; the queue is a ring, or for this transaction a plain one."""
    connection.execute("UPDATE mq.queue SET ring = %s WHERE type = %s", [ring, type])

    def cost(call: str, *arguments: Any) -> Cost:
        return measured(connection, call, *arguments)

    yield cost("send(%s, 'x')", type)
    yield cost("send_message(%s, 'x', now() + interval '1 hour', 3, 'group', %s)", type, uuid.uuid4().hex)
    yield cost("send_batch(%s, %s)", type, "x\n" * (SIZE - 1) + "x")
    yield cost("claim_batch(%s, %s)", type, SIZE)
    key, ids = held(connection, type)
    yield cost("extend_lease(%s, 60)", key)
    yield cost("complete(%s, %s)", ids[0], key)
    yield cost("dead_letter(%s, %s, 'no')", ids[1], key)
    yield cost("peek(%s, 'A', %s)", type, SIZE)
    yield cost("finish_batch(%s, %s, %s)", key, joined(failure(ids[2], "no", 0), dead_letter(ids[3], "no")), SIZE)
    yield cost("release_batch(%s)", held(connection, type)[0])
    yield cost(f"{'claim_wraparound' if ring else 'claim_batch'}(%s, %s)", type, SIZE)
    yield cost("complete_batch(%s)", held(connection, type)[0])
    if ring:
        yield cost("claim_wraparound(%s, %s, NULL, NULL, %s)", type, SIZE, BACKLOG * 2)
    yield cost("take_batch(%s, %s)", type, SIZE)
    yield cost("get_message(%s)", type)
    yield cost("claim_batch(%s, %s, 'expired', 1)", type, SIZE)
    connection.execute("UPDATE mq.batch SET lease_until = claimed_at WHERE consumer = 'expired'")
    yield cost("rescue_expired(%s)", type)
    yield cost("rescue_expired()")
    yield cost("peek(%s, 'N', %s)", type, SIZE)
    yield cost("peek(%s, 'E', %s)", type, SIZE)
    ready = connection.execute("SELECT id FROM mq.ready WHERE type = %s OFFSET 500 LIMIT 2", [type]).fetchall()
    yield cost("count_attempt(%s, 'no', 0)", ready[0]["id"])
    yield cost("cancel(%s)", ready[1]["id"])
    for options in ('{"body": "y"}', '{"priority": 5}', '{"delay_seconds": 60}', '{"run_at": null}'):
        yield cost("update_message(%s, %s)", ready[0]["id"], options)
    yield cost("claim_any(%s, %s, 'gone')", f"empty\n{type}\nempty too", SIZE)
    yield cost("release_consumer('gone')")
    yield cost("wait_for_any(%s, 0)", f"empty\n{type}")
    yield cost("redrive_all(%s)", type)
    yield cost("wait_for_message(%s, 0)", type)
    yield cost("queue_stats(%s)", type)


def assert_cheap(cost: Cost) -> None:
    stats = cost.call.startswith("queue_stats")
    assert cost.scanned <= 10, cost
    assert cost.rows <= (STATS_ROWS if stats else ROWS), cost
    assert cost.pages <= (STATS_PAGES if stats else PAGES), cost


@pytest.mark.parametrize("type", ["ready", "delayed"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.level(3)
def test_no_call_reads_more_than_it_needs_on_a_backlog_of_a_million(
    server: Server, backlogs: str, analyzed: bool, type: str
) -> None:
    with server.client(backlogs) as connection:
        if analyzed:
            connection.execute("ANALYZE mq.message, mq.ready, mq.delayed, mq.batch, mq.dead, mq.mark")
        # Twelve rounds: from the sixth on a session may use generic plans.
        for _ in range(12):
            for ring in (True, False):
                with connection.transaction(force_rollback=True):
                    for cost in all_calls(connection, type, ring):
                        assert_cheap(cost)


@pytest.mark.level(3)
@pytest.mark.parametrize("statistics", ["ANALYZE", "VACUUM ANALYZE"])
def test_statistics_of_an_empty_queue_make_no_call_dearer_when_it_fills(
    server: Server, installed_database: Database, queue: str, statistics: str
) -> None:
    """Autovacuum runs when all messages are done: with an empty table, all plans have the same cost."""
    with server.client(installed_database.url) as connection:
        for table in ("message", "ready", "delayed", "batch"):
            connection.execute(f"ALTER TABLE mq.{table} SET (autovacuum_enabled = off)")
        make_rings(connection, queue)
        fill(connection, queue)
        while connection.execute("SELECT count(*) AS n FROM mq.take_batch(%s, 10000)", [queue]).fetchone()["n"]:
            pass
        for _ in range(2):
            connection.execute(statistics)
            connection.execute("SELECT mq.send('other', 'x')")
        fill(connection, queue)
        for _ in range(12):
            for ring in (True, False):
                with connection.transaction(force_rollback=True):
                    for cost in all_calls(connection, queue, ring):
                        assert_cheap(cost)


def fill(connection: Connection, type: str) -> None:
    for _ in range(3):
        connection.execute("SELECT mq.send_batch(%s, rtrim(repeat(E'x\n', 10000), E'\n'))", [type])


@pytest.mark.level(3)
@pytest.mark.parametrize(
    "call", ["wait_for_message(%s, 0)", "claim_batch(%s, 20)", "claim_wraparound(%s, 20)", "take_batch(%s, 20)"]
)
def test_a_queue_with_nothing_due_is_polled_past_a_million_delayed_messages(
    server: Server, backlogs: str, call: str
) -> None:
    with server.client(backlogs) as connection, connection.transaction(force_rollback=True):
        connection.execute("DELETE FROM mq.ready WHERE type = 'delayed'")
        for ring in (True, False):
            connection.execute("UPDATE mq.queue SET ring = %s WHERE type = 'delayed'", [ring])
            for _ in range(0 if call.startswith("claim_wraparound") and not ring else 12):
                assert_cheap(measured(connection, call, "delayed"))


def fill_groups(connection: Connection, type: str) -> None:
    """An ordered queue: one group of GROUPED messages, whose head is first, and as many groups of one."""
    connection.execute("SELECT mq.set_queue(%s, %s)", [type, '{"ordered": 1, "max_attempts": 2}'])
    connection.execute(
        "INSERT INTO mq.message (run_at, created_at, priority, type, body, group_key)"
        " SELECT now() - CASE WHEN n = 1 THEN 3 WHEN n > %(size)s THEN 2 ELSE 1 END * interval '1 minute', now(), 0,"
        " %(type)s, 'x', CASE WHEN n > %(size)s THEN 'customer-' || n ELSE 'long' END"
        " FROM generate_series(1, 2 * %(size)s) AS n",
        {"type": type, "size": GROUPED},
    )
    connection.execute(
        "INSERT INTO mq.grouped (id, attempts, type, group_key)"
        " SELECT id, 0, type, group_key FROM mq.message WHERE type = %s",
        [type],
    )
    connection.execute(
        "INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id)"
        " SELECT run_at, id, priority, 0, type, true FROM mq.message WHERE type = %s",
        [type],
    )


def calls_of_groups(connection: Connection, type: str) -> Iterator[Cost]:
    """Every call that finds messages of an ordered queue, and the long group in all of them."""
    low, high = connection.execute(
        "SELECT min(id) AS low, max(id) AS high FROM mq.message WHERE type = %s AND group_key = 'long'", [type]
    ).fetchone().values()  # fmt: skip

    def cost(call: str, *arguments: Any) -> Cost:
        return measured(connection, call, *arguments)

    yield cost("cancel(%s)", high)
    yield cost("send_message(%s, 'x', NULL, NULL, 'long')", type)
    yield cost("claim_batch(%s, %s)", type, SIZE)
    key, ids = held(connection, type)
    assert ids[0] == low
    yield cost("cancel(%s)", high - 1)
    yield cost("finish_batch(%s, NULL, %s)", key, SIZE)
    yield cost("release_batch(%s)", held(connection, type)[0])
    yield cost("claim_batch(%s, %s)", type, SIZE)
    key, ids = held(connection, type)
    yield cost("fail(%s, %s, 'no', 0)", ids[0], key)
    yield cost("complete_batch(%s)", key)
    yield cost("claim_batch(%s, %s)", type, SIZE)
    key, ids = held(connection, type)
    yield cost("finish_batch(%s, %s, 0)", key, "\n".join(dead_letter(ident, "no") for ident in ids))
    yield cost("redrive_all(%s)", type)
    # Without rescue_expired: it searches for stuck groups among the first 10,000.
    yield cost("take_batch(%s, %s)", type, SIZE)
    yield cost("peek(%s, 'N', %s)", type, SIZE)


@pytest.mark.parametrize("statistics", ["none", "of the empty tables", "of the full tables"])
def test_no_call_reads_a_whole_group_or_all_groups_of_an_ordered_queue(
    server: Server, installed_database: Database, queue: str, statistics: str
) -> None:
    with server.client(installed_database.url) as connection:
        for table in ("message", "ready", "delayed", "batch", "dead", "grouped", "group_lock"):
            connection.execute(f"ALTER TABLE mq.{table} SET (autovacuum_enabled = off)")
        if statistics == "of the empty tables":
            connection.execute("VACUUM ANALYZE")
        fill_groups(connection, queue)
        if statistics == "of the full tables":
            connection.execute("ANALYZE")
        for n in range(8):
            with connection.transaction(force_rollback=True):
                for cost in calls_of_groups(connection, queue):
                    # At first a session reads the catalog too.
                    most = ONE_PAGES if n and cost.call.startswith(("cancel", "send")) else GROUP_PAGES
                    assert cost.rows <= GROUP_ROWS and cost.pages <= most and cost.scanned <= 10, cost


def fill_blocked(connection: Connection, type: str, size: int = BLOCKED) -> None:
    """An ordered queue: `size` groups with an active message and a ready one, and then messages of other groups."""
    connection.execute("SELECT mq.set_option(%s, 'ordered', '1')", [type])
    connection.execute(
        "INSERT INTO mq.message (run_at, created_at, priority, type, body, group_key)"
        " SELECT now() - (4 * %(size)s - n) * interval '1 second', now(), 0, %(type)s, 'x',"
        " CASE WHEN n <= 2 * %(size)s THEN 'blocked-' || n %% %(size)s ELSE 'customer-' || n END"
        " FROM generate_series(1, 3 * %(size)s) AS n",
        {"type": type, "size": size},
    )
    connection.execute(
        "INSERT INTO mq.grouped (id, attempts, type, group_key) SELECT id, 0, type, group_key FROM mq.message"
        " WHERE type = %s",
        [type],
    )
    connection.execute(
        "INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)"
        " SELECT run_at, id, priority, 0, type, true, mq_internal.lane(true, priority, group_key) FROM mq.message"
        " WHERE type = %s",
        [type],
    )
    for _ in range(size // 250):
        connection.execute("SELECT mq.claim_batch(%s, 250, 'x', 3600)", [type])
    # The mark of these claims: with it, the takes of this second begin at the start.
    connection.execute("DELETE FROM mq.mark WHERE type = %s", [type])


def test_takes_read_the_tickets_of_blocked_groups_once_a_second(
    server: Server, installed_database: Database, queue: str
) -> None:
    def take() -> list[int]:
        return [row["id"] for row in connection.execute("SELECT id FROM mq.take_batch(%s, %s)", [queue, SIZE])]

    with server.client(installed_database.url) as connection:
        fill_blocked(connection, queue)
        low = connection.execute("SELECT min(id) AS id FROM mq.message WHERE type = %s", [queue]).fetchone()["id"]
        expected = low + 2 * BLOCKED
        least = None
        for _ in range(20):
            with connection.transaction():
                before, _ = fetched(connection)
                assert take() == list(range(expected, expected + SIZE))
                after, _ = fetched(connection)
            expected += SIZE
            least = min(after - before, least or after)
        assert least <= GROUP_ROWS
        # A group that is not blocked any more is next, though its ticket is before the mark.
        connection.execute("SELECT mq.complete(b.ids[1], b.batch_key) FROM mq.batch AS b WHERE b.ids[1] = %s", [low])
        assert take() == [low + BLOCKED, *range(expected, expected + SIZE - 1)]


@pytest.mark.level(3)
@pytest.mark.parametrize("call", ["claim_batch", "take_batch"])
def test_a_claim_past_very_many_blocked_groups_finds_a_message(
    server: Server, installed_database: Database, queue: str, call: str
) -> None:
    many = 100_000
    with server.client(installed_database.url) as connection:

        def ids(size: int) -> list[int]:
            return [row["id"] for row in connection.execute(f"SELECT id FROM mq.{call}(%s, %s)", [queue, size])]

        fill_blocked(connection, queue, many)
        low = connection.execute("SELECT min(id) AS id FROM mq.message WHERE type = %s", [queue]).fetchone()["id"]
        assert ids(1) == [low + 2 * many]
        assert ids(2) == [low + 2 * many + 1, low + 2 * many + 2]
        # Groups that are not blocked any more come first, whether their tickets were dropped or passed over.
        for n in (0, many - 1):
            connection.execute(
                "SELECT mq.complete(%(id)s, b.batch_key) FROM mq.batch AS b WHERE %(id)s = ANY (b.ids)",
                {"id": low + n},
            )
        assert ids(3) == [low + many, low + 2 * many - 1, low + 2 * many + 3]
        assert connection.execute("SELECT * FROM mq_internal.stuck_groups(%s, 1)", [queue]).fetchall() == []


def fill_states(connection: Connection, type: str) -> list[int]:
    """An ordered queue with DEAD dead letters and as many messages that wait for a retry; an id of each."""
    connection.execute("SELECT mq.set_option(%s, 'ordered', '1')", [type])
    low = connection.execute(
        "WITH sent AS (INSERT INTO mq.message (run_at, created_at, priority, type, body, group_key)"
        " SELECT now(), now(), 0, %s, 'x', 'customer-' || n FROM generate_series(1, 2 * %s) AS n RETURNING id)"
        " SELECT min(id) AS id FROM sent",
        [type, DEAD],
    ).fetchone()["id"]
    for statement in (
        "INSERT INTO mq.dead (id, died_at, attempts, type) SELECT id, now(), 10, type FROM mq.message"
        " WHERE type = %(type)s AND id < %(middle)s",
        "INSERT INTO mq.delayed (id, run_at, priority, attempts, type)"
        " SELECT id, now() + interval '1 hour', 0, 1, type FROM mq.message WHERE type = %(type)s AND id >= %(middle)s",
        "INSERT INTO mq.group_lock (id, type, group_key)"
        " SELECT id, type, group_key FROM mq.message WHERE type = %(type)s AND id >= %(middle)s",
    ):
        connection.execute(statement, {"type": type, "middle": low + DEAD})
    return [low + 17, low + DEAD + 17]


@pytest.mark.parametrize("statistics", ["ANALYZE", "VACUUM ANALYZE"])
def test_a_message_is_found_by_its_number_with_statistics_of_tables_that_were_emptied(
    server: Server, installed_database: Database, queue: str, statistics: str
) -> None:
    """An index that ends with the id then costs as much as the primary key and would be scanned completely."""
    with server.client(installed_database.url) as connection:
        tables = ("message", "ready", "delayed", "dead", "grouped", "group_lock")
        for table in tables:
            connection.execute(f"ALTER TABLE mq.{table} SET (autovacuum_enabled = off)")
        fill_states(connection, queue)
        for table in tables:
            connection.execute(f"DELETE FROM mq.{table}")
        connection.execute(statistics)
        dead, delayed = fill_states(connection, queue)
        for _ in range(8):
            with connection.transaction(force_rollback=True):
                connection.execute("SELECT mq.send_message(%s, 'x', NULL, NULL, 'new')", [queue])
                connection.execute("SELECT mq.claim_batch(%s, 1)", [queue])
                key, _ = held(connection, queue)
                for call, *arguments in (
                    ("find_messages(NULL, %s)", f'{{"id": {dead}}}'),
                    ("find_messages(NULL, %s)", f'{{"id": {delayed}}}'),
                    ("get_result(%s)", dead),
                    ("release_batch(%s)", key),
                    ("claim_batch(%s, 1, 'x', 60)", queue),
                    ("take_batch(%s, 1)", queue),
                    ("redrive(%s)", dead),
                    ("cancel(%s)", dead + 1),
                    ("cancel(%s)", delayed),
                ):
                    assert_cheap(measured(connection, call, *arguments))
                connection.execute("SELECT mq.claim_batch(%s, 1)", [queue])
                assert_cheap(measured(connection, "finish_batch(%s, NULL, 0)", held(connection, queue)[0]))


def test_no_call_for_one_type_reads_the_policies_of_others(
    server: Server, installed_database: Database, queue: str
) -> None:
    with server.client(installed_database.url) as connection:
        connection.execute("SELECT mq.set_queue(%s)", [queue])
        connection.execute(
            "INSERT INTO mq.queue SELECT r.* FROM mq.queue AS q CROSS JOIN generate_series(1, 20000) AS n"
            " CROSS JOIN LATERAL jsonb_populate_record(q, jsonb_build_object('type', q.type || '.' || n)) AS r"
            " WHERE q.type = %s",
            [queue],
        )
        connection.execute("ANALYZE mq.queue")
        for _ in range(8):
            with connection.transaction(force_rollback=True):
                connection.execute("SELECT mq.send_batch(%s, E'x\nx')", [queue])
                for call in ("queue_stats(%s)", "list_queues(%s)", "claim_batch(%s, 1)", "peek(%s)", "purge(%s, 'N')"):
                    cost = measured(connection, call, queue)
                    assert cost.rows <= ROWS and cost.pages <= PAGES and cost.scanned <= 10, cost


@pytest.mark.level(3)
def test_a_poll_skips_thousands_of_valid_leases(server: Server, backlogs: str) -> None:
    with server.client(backlogs) as connection, connection.transaction(force_rollback=True):
        make_rings(connection, "leased")
        connection.execute(
            "INSERT INTO mq.batch (claimed_at, lease_until, lease_seconds, type, consumer, ids, attempts)"
            " SELECT now(), now() + interval '1 hour', 3600, 'leased', 'x', '{1}', '{1}' FROM generate_series(1, 5000)"
        )
        for call in ("wait_for_message(%s, 0)", "claim_batch(%s, 20)", "claim_wraparound(%s)", "rescue_expired(%s)"):
            assert_cheap(measured(connection, call, "leased"))


def process(connection: Connection, type: str, calls: int) -> None:
    """Finish and claim a number of times on the server, each in its own transaction."""
    connection.execute(
        "DO $$ DECLARE v_key uuid; BEGIN"
        f" FOR i IN 1..{calls} LOOP"
        f" SELECT batch_key INTO v_key FROM mq.batch WHERE type = '{type}' ORDER BY claimed_at DESC LIMIT 1;"
        f" PERFORM mq.finish_batch(v_key, NULL, {SIZE}); COMMIT;"
        " END LOOP; END $$"
    )


@pytest.mark.level(3)
def test_an_open_snapshot_does_not_make_claims_dearer(server: Server, database: Database, queue: str) -> None:
    with server.client(database.url) as connection, server.client(database.url) as other:
        connection.execute("SET synchronous_commit = off")
        for _ in range(DONE_UNDER_SNAPSHOT // 10_000 + 1):
            connection.execute("SELECT mq.send_batch(%s, rtrim(repeat(E'x\\n', 10000), E'\\n'))", [queue])
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")

        def sample() -> float:
            return statistics.median(
                pages(connection, "finish_batch(%s, NULL, %s)", held(connection, queue)[0], SIZE) for _ in range(SAMPLE)
            )

        connection.execute("SELECT mq.claim_batch(%s, %s)", [queue, SIZE])
        first = sample()
        process(connection, queue, DONE_UNDER_SNAPSHOT // SIZE - 2 * SAMPLE)
        last = sample()
        left = connection.execute("SELECT count(*) AS n FROM mq.ready WHERE type = %s", [queue]).fetchone()["n"]
        assert left == 10_000 - SIZE, "so many were processed, and one batch is held"
        other.execute("ROLLBACK")
    assert last <= 2 * first, f"{first} pages a claim at first, {last} after {DONE_UNDER_SNAPSHOT}"


def test_an_open_snapshot_does_not_make_claims_from_many_queues_dearer(
    server: Server, database: Database, queue: str
) -> None:
    """A queue that was busy is claimed from its mark; an empty one with many finished messages is searched seldom."""
    types = f"{queue}.empty\n{queue}\n{queue}.emptied"
    with server.client(database.url) as connection, server.client(database.url) as other:
        connection.execute("SET synchronous_commit = off")
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        # A search of 50,000 rows may end within the 5 ms that a claim takes for a cheap one.
        for name, tens in ((queue, 5), (f"{queue}.emptied", 12)):
            for _ in range(tens):
                connection.execute("SELECT mq.send_batch(%s, rtrim(repeat(E'x\n', 10000), E'\n'))", [name])
        connection.execute(
            "DO $$ DECLARE v_key uuid; BEGIN FOR i IN 1..45 LOOP"
            f" SELECT batch_key INTO v_key FROM mq.claim_any('{types}', 1000, 'r', 600); COMMIT;"
            " PERFORM mq.complete_batch(v_key); COMMIT; END LOOP; END $$"
        )
        connection.execute(
            "DO $$ DECLARE v_key uuid; BEGIN FOR i IN 1..120 LOOP"
            f" SELECT batch_key INTO v_key FROM mq.claim_batch('{queue}.emptied', 1000, 'r', 600); COMMIT;"
            " PERFORM mq.complete_batch(v_key); COMMIT; END LOOP; END $$"
        )
        spent = sorted(pages(connection, "claim_any(%s, %s, 'r', 600)", types, SIZE) for _ in range(60))
        connection.execute("SELECT mq.pause(%s)", [queue])
        idle = sorted(pages(connection, "claim_any(%s)", types) for _ in range(60))
        other.execute("ROLLBACK")
    # A search past the finished messages touches hundreds of pages. On a busy machine many of the claims are a
    # second apart, and each of these searches: if every claim did, these would too.
    assert spent[3] <= 400 and idle[3] <= 150, (spent, idle)


@pytest.mark.parametrize("way", ["claim_wraparound", "claim_batch"])
def test_an_open_snapshot_does_not_make_claims_of_a_ring_dearer(
    server: Server, database: Database, queue: str, way: str
) -> None:
    """A claim that finds too few wraps around to the lowest id, past all finished messages."""

    def short_claims(connection: Connection, type: str) -> float:
        touched = []
        for _ in range(40):
            connection.execute("SELECT mq.send_batch(%s, E'x\\nx')", [type])
            touched.append(pages(connection, f"{way}(%s, %s, 'r', 600)", type, SIZE))
            key, ids = held(connection, type)
            assert len(ids) == 2
            connection.execute("SELECT mq.complete_batch(%s)", [key])
        return statistics.median(touched)

    with server.client(database.url) as connection, server.client(database.url) as other:
        connection.execute("SET synchronous_commit = off")
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        make_rings(connection, queue, f"{queue}.new")
        first = short_claims(connection, f"{queue}.new")
        for _ in range(3):
            connection.execute("SELECT mq.send_batch(%s, rtrim(repeat(E'x\\n', 10000), E'\\n'))", [queue])
        connection.execute("SELECT mq.claim_wraparound(%s, 1, 'keeper', 600)", [queue])
        key, [kept] = held(connection, queue)
        connection.execute(
            "DO $$ DECLARE v_key uuid; BEGIN FOR i IN 1..150 LOOP"
            f" SELECT batch_key INTO v_key FROM mq.{way}('{queue}', 200, 'r', 600);"
            " PERFORM mq.complete_batch(v_key); COMMIT; END LOOP; END $$"
        )
        last = short_claims(connection, queue)
        # A message that is put back below the mark is still claimed at once.
        for n in range(10):
            connection.execute("SELECT mq.send(%s, 'x')", [queue])
            connection.execute(f"SELECT mq.{way}(%s, %s, 'r', 600)", [queue, SIZE])
            connection.execute("SELECT mq.complete_batch(%s)", [held(connection, queue)[0]])
            if n % 2:
                connection.execute("SELECT mq.fail(%s, %s, 'again', 0)", [kept, key])
            else:
                connection.execute("SELECT mq.release_batch(%s)", [key])
            connection.execute(f"SELECT mq.{way}(%s, %s, 'r', 600)", [queue, SIZE])
            key, ids = held(connection, queue)
            assert ids == [kept]
        other.execute("ROLLBACK")
    assert last <= 2 * first, f"{first} pages a claim at first, {last} after 30,000"


def test_an_open_snapshot_keeps_dead_positions_and_no_claim_of_a_ring_reads_them(
    server: Server, database: Database, queue: str
) -> None:
    def claims(connection: Connection) -> float:
        return statistics.median(pages(connection, "claim_wraparound(%s, 1, 'r')", queue) for _ in range(20))

    with server.client(database.url) as connection, server.client(database.url) as other:
        connection.execute("SET synchronous_commit = off")
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        make_rings(connection, queue)
        connection.execute("SELECT mq.send_batch(%s, rtrim(repeat(E'x\\n', 5000), E'\\n'))", [queue])
        first = claims(connection)
        connection.execute(
            "DO $$ BEGIN FOR i IN 1..4000 LOOP"
            f" PERFORM mq.claim_wraparound('{queue}', 1, 'r'); COMMIT; END LOOP; END $$"
        )
        last = claims(connection)
        other.execute("ROLLBACK")
    assert last <= first + 15, f"{first} pages a claim at first, {last} after 4,000"
