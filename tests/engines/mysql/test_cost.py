"""What a call reads on MySQL and MariaDB: no scan or sort of a backlog, and no messages that were done long ago.

A call is measured by the rows that its statements fetch and sort (the session's Handler_read_… and Sort_rows), those
of the statements inside the procedures included. A scan or a sort of the backlog shows in both. Rows that are deleted
and not purged are not counted as fetched; they show in the pages that the server reads.
"""

import statistics
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from rowqueue.databases import open_database
from rowqueue.install import apply as install
from servers import Server
from servers.mysql import Client
from support.outcomes import dead_letter, failure, joined

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.level(3)]

BACKLOG = 200_000
READY_BEHIND_DELAYED = 1_000
SIZE = 20
# Per call of SIZE messages, measured: at most 700 rows, those of lists and of temporary tables included.
ROWS = 2_000
# queue_stats reads up to 10,000 of each state twice: to check for more, and some in a list of them. Above that it
# samples 400 ids per state of each type.
STATS_ROWS = 60_000
SORTED = 400

TABLES = (
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB'"
)

DONE_UNDER_SNAPSHOT = 40_000
BATCH = 100
SAMPLE = 50


@dataclass
class Cost:
    """What one call read."""

    call: str
    rows: int
    sorted: int


def run(connection: Client, text: str, *parameters: object) -> list[dict[str, object]]:
    cursor = connection.execute(text, parameters)
    rows = list(cursor.fetchall()) if cursor.description else []
    cursor.close()
    return rows


def counters(connection: Client, scope: str, pattern: str) -> int:
    rows = run(connection, f"SHOW {scope} STATUS LIKE '{pattern}'")
    return sum(int(str(row["Value"])) for row in rows)


def measured(connection: Client, call: str, *arguments: object) -> Cost:
    rows, ordered = counters(connection, "SESSION", "Handler_read%"), counters(connection, "SESSION", "Sort_rows")
    own = counters(connection, "SESSION", "Handler_read%") - rows  # what SHOW STATUS itself read
    run(connection, f"CALL mq_{call}", *arguments)
    ordered = counters(connection, "SESSION", "Sort_rows") - ordered
    return Cost(call, counters(connection, "SESSION", "Handler_read%") - rows - 3 * own, ordered)


@pytest.fixture(scope="module")
def backlogs(server: Server) -> Iterator[str]:
    """Two queues: `ready` with 200,000 ready messages, `delayed` with as many for tomorrow before 1,000 ready ones."""
    url = server.create_database()
    install.apply(open_database(url))
    with server.client(url) as connection:
        for _ in range(BACKLOG // 10_000):
            connection.execute("CALL mq_send_batch('ready', %s, NULL)", ["x\n" * 9_999 + "x"]).close()
        connection.execute(
            "CALL mq_send_batch('delayed', %s, NULL)", ["x\n" * (READY_BEHIND_DELAYED - 1) + "x"]
        ).close()
        # Their messages are not read before they are due, so they need none.
        connection.execute(
            "INSERT INTO mq_delayed (id, run_at, priority, attempts, type)"
            " SELECT 10000000 + id, UTC_TIMESTAMP(6) + INTERVAL 1 DAY, -5, 0, 'delayed'"
            " FROM mq_ready WHERE type = 'ready'"
        )
    yield url
    server.drop_database(url)


def held(connection: Client, type: str) -> str:
    """Key of the newest batch."""
    query = "SELECT batch_key FROM mq_batch WHERE type = %s ORDER BY claimed_at DESC LIMIT 1"
    return str(run(connection, query, type)[0]["batch_key"])


def claimed(connection: Client, key: str) -> list[int]:
    query = "SELECT j.id FROM mq_batch CROSS JOIN JSON_TABLE(items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j"
    return [int(str(row["id"])) for row in run(connection, f"{query} WHERE batch_key = %s", key)]


def all_calls(connection: Client, type: str) -> Iterator[Cost]:
    """Every call that finds messages, once, except claim_wraparound, which has its own test."""

    def cost(call: str, *arguments: object) -> Cost:
        return measured(connection, call, *arguments)

    tomorrow = "UTC_TIMESTAMP() + INTERVAL 1 DAY"
    yield cost("send(%s, 'x')", type)
    yield cost(f"send_message(%s, 'x', {tomorrow}, 3, 'g', %s, NULL, NULL, NULL, NULL, NULL)", type, uuid.uuid4().hex)
    yield cost("send_batch(%s, %s, NULL)", type, "x\n" * (SIZE - 1) + "x")
    yield cost("claim_batch(%s, %s, NULL, NULL)", type, SIZE)
    key = held(connection, type)
    ids = claimed(connection, key)
    yield cost("extend_lease(%s, 60)", key)
    yield cost("complete(%s, %s)", ids[0], key)
    yield cost("dead_letter(%s, %s, 'no')", ids[1], key)
    yield cost("peek(%s, 'A', %s, NULL)", type, SIZE)
    yield cost("finish_batch(%s, %s, %s)", key, joined(failure(ids[2], "no", 0), dead_letter(ids[3], "no")), SIZE)
    yield cost("release_batch(%s)", held(connection, type))
    yield cost("claim_batch(%s, %s, NULL, NULL)", type, SIZE)
    yield cost("complete_batch(%s)", held(connection, type))
    yield cost("take_batch(%s, %s)", type, SIZE)
    yield cost("get_message(%s)", type)
    yield cost("claim_batch(%s, %s, 'expired', 1)", type, SIZE)
    run(connection, "UPDATE mq_batch SET lease_until = claimed_at WHERE consumer = 'expired'")
    yield cost("rescue_expired(%s)", type)
    yield cost("rescue_expired(NULL)")
    yield cost("peek(%s, 'N', %s, NULL)", type, SIZE)
    yield cost("peek(%s, 'E', %s, NULL)", type, SIZE)
    ready = run(connection, "SELECT id FROM mq_ready WHERE type = %s LIMIT 2 OFFSET 500", type)
    yield cost("count_attempt(%s, 'no', 0, NULL)", ready[0]["id"])
    yield cost("cancel(%s)", ready[1]["id"])
    yield cost("redrive_all(%s, NULL, NULL)", type)
    yield cost("wait_for_message(%s, 0)", type)
    yield cost("queue_stats(%s)", type)
    yield cost("queue_stats(NULL)")
    for options in ('{"body": "y"}', '{"priority": 5}', '{"delay_seconds": 60}', '{"run_at": null}'):
        yield cost("update_message(%s, %s)", ready[0]["id"], options)
    yield cost("claim_any(%s, %s, 'gone', NULL)", f"empty\n{type}\nempty too", SIZE)
    yield cost("release_consumer('gone')")
    yield cost("wait_for_any(%s, 0)", f"empty\n{type}")


def assert_cheap(cost: Cost) -> None:
    assert cost.rows <= (STATS_ROWS if cost.call.startswith("queue_stats") else ROWS), cost
    assert cost.sorted <= SORTED, cost


def set_statistics(connection: Client, statistics: str) -> None:
    """Let the optimizer believe what ANALYZE finds, or that every table is empty, as it may when a backlog is new."""
    tables = [str(row["name"]) for row in run(connection, TABLES)]
    if statistics == "analyzed":
        run(connection, f"ANALYZE TABLE {', '.join(tables)}")
    elif statistics == "of-empty-tables":
        run(connection, "UPDATE mysql.innodb_table_stats SET n_rows = 0 WHERE database_name = DATABASE()")
        run(connection, "UPDATE mysql.innodb_index_stats SET stat_value = 1 WHERE database_name = DATABASE()")
        run(connection, f"FLUSH TABLES {', '.join(tables)}")


@pytest.mark.parametrize("type", ["ready", "delayed"])
@pytest.mark.parametrize("statistics", ["as-they-are", "analyzed", "of-empty-tables"])
def test_no_call_reads_more_than_it_needs_on_a_backlog(
    server: Server, backlogs: str, statistics: str, type: str
) -> None:
    with server.client(backlogs) as connection:
        for _ in range(3):
            set_statistics(connection, statistics)
            connection.begin()
            for cost in all_calls(connection, type):
                assert_cheap(cost)
            connection.rollback()


@pytest.mark.parametrize("statistics", ["as-they-are", pytest.param("of-empty-tables", marks=pytest.mark.level(4))])
def test_a_claim_of_a_ring_reads_what_it_takes(server: Server, backlogs: str, statistics: str) -> None:
    with server.client(backlogs) as connection:
        set_statistics(connection, statistics)
        connection.begin()
        connection.execute("UPDATE mq_ready SET priority = -32768, run_at = '1000-01-01' WHERE type = 'ready'")
        connection.execute("REPLACE INTO mq_queue (type, ring) VALUES ('ready', 1)")
        [middle] = run(connection, "SELECT id FROM mq_ready WHERE type = 'ready' LIMIT 1 OFFSET 100000")
        connection.execute(
            "INSERT INTO mq_ring (n, after_id, type, consumer) VALUES (1, %s, 'ready', 'r')", [middle["id"]]
        )
        for after in ("NULL", "NULL", "100000000"):
            assert_cheap(measured(connection, f"claim_wraparound('ready', %s, 'r', NULL, {after})", SIZE))
        assert_cheap(measured(connection, "claim_batch('ready', %s, 'r', NULL)", SIZE))
        assert_cheap(measured(connection, "finish_batch(%s, NULL, %s)", held(connection, "ready"), SIZE))
        connection.rollback()


@pytest.mark.parametrize(
    "call",
    [
        "wait_for_message(%s, 0)",
        "wait_for_any(%s, 0)",
        "claim_batch(%s, 20, NULL, NULL)",
        "claim_any(%s, 20, NULL, NULL)",
        "take_batch(%s, 20)",
    ],
)
def test_a_queue_with_nothing_due_is_polled_past_its_delayed_messages(server: Server, backlogs: str, call: str) -> None:
    with server.client(backlogs) as connection:
        connection.begin()
        connection.execute("DELETE FROM mq_ready WHERE type = 'delayed'")
        for _ in range(3):
            assert_cheap(measured(connection, call, "delayed"))
        connection.rollback()


def test_a_poll_skips_thousands_of_valid_leases(server: Server, backlogs: str) -> None:
    with server.client(backlogs) as connection:
        connection.begin()
        connection.execute(
            "INSERT INTO mq_batch (batch_key, claimed_at, lease_until, lease_seconds, type, consumer, items)"
            " SELECT UUID(), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, 3600, 'leased', 'x', '[[1,1]]'"
            " FROM mq_message LIMIT 5000"
        )
        for call in ("wait_for_message(%s, 0)", "claim_batch(%s, 20, NULL, NULL)", "rescue_expired(%s)"):
            assert_cheap(measured(connection, call, "leased"))
        connection.rollback()


def test_an_open_snapshot_does_not_make_claims_dearer(private_server: Server) -> None:
    """On a server of its own: pages are counted for all sessions together."""
    url = private_server.create_database()
    install.apply(open_database(url))
    with private_server.client(url) as connection, private_server.client(url) as other:
        for _ in range(DONE_UNDER_SNAPSHOT // 10_000 + 1):
            run(connection, "CALL mq_send_batch('q', %s, NULL)", "x\n" * 9_999 + "x")
        other.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        [row, *_] = run(connection, "CALL mq_claim_batch('q', %s, NULL, 3600)", BATCH)
        key = row["batch_key"]

        def pages() -> int:
            return counters(connection, "GLOBAL", "Innodb_buffer_pool_read_requests")

        def finish() -> int:
            nonlocal key
            before = pages()
            key = run(connection, "CALL mq_finish_batch(%s, NULL, %s)", key, BATCH)[0]["batch_key"]
            return pages() - before

        def take() -> int:
            before = pages()
            run(connection, "CALL mq_take_batch('q', 1)")
            return pages() - before

        taken = [take() for _ in range(10)]
        finished = [finish() for _ in range(DONE_UNDER_SNAPSHOT // BATCH)]
        left = run(connection, "SELECT COUNT(*) AS n FROM mq_ready WHERE type = 'q'")
        assert left == [{"n": 10_000 - BATCH - 10}], "so many were processed, and one batch is held"
        # Statistics count only live rows: with few of them, a full scan looks cheap.
        run(connection, "CALL mq_take_batch('q', 9000)")
        set_statistics(connection, "analyzed")
        taken_late = [take() for _ in range(10)]
        other.rollback()
    for name, first, last in (("finish", finished[:SAMPLE], finished[-SAMPLE:]), ("take", taken, taken_late)):
        before, after = statistics.median(first), statistics.median(last)
        assert after <= 2 * before, f"{name}: {before} pages a call at first, {after} after {DONE_UNDER_SNAPSHOT}"


BLOCKED = 30_000


def block_groups(connection: Client) -> None:
    """An ordered queue with groups that have an active message and one that waits."""
    connection.execute("CALL mq_set_option('blocked', 'ordered', '1')").close()
    connection.execute(
        "INSERT INTO mq_message (run_at, created_at, priority, type, body, group_key)"
        " SELECT UTC_TIMESTAMP(6) - INTERVAL 1 HOUR + INTERVAL b.n * 10000 + a.n MICROSECOND, UTC_TIMESTAMP(6), 0,"
        " 'blocked', 'waits', CONCAT('blocked-', b.n * 10000 + a.n)"
        f" FROM mq_stripe AS b JOIN mq_stripe AS a WHERE a.n < 10000 AND b.n < {BLOCKED // 10_000}"
    ).close()
    of_type = "FROM mq_message WHERE type = 'blocked'"
    for text in (
        f"INSERT INTO mq_grouped (type, group_key, id, attempts) SELECT type, group_key, id, 0 {of_type}",
        f"INSERT INTO mq_ready (type, priority, run_at, id, attempts) SELECT type, priority, run_at, id, 0 {of_type}",
        f"INSERT INTO mq_group_lock (type, group_key, place, id) SELECT type, group_key, -1, -id {of_type}",
    ):
        connection.execute(text).close()


@pytest.mark.parametrize("call", ["claim_batch('blocked', 10, NULL, NULL)", "take_batch('blocked', 10)"])
def test_a_claim_passes_any_number_of_blocked_groups_once(server: Server, call: str) -> None:
    url = server.create_database()
    install.apply(open_database(url))
    with server.client(url) as connection:
        block_groups(connection)
        for number in range(3):
            body = f"free {number}"
            send = f"CALL mq_send_message('blocked', '{body}', NULL, 0, '{body}'" + ", NULL" * 6 + ")"
            connection.execute(send).close()
            assert [row["body"] for row in run(connection, f"CALL mq_{call}")] == [body]
        # The claims after the one that passed them begin behind them.
        connection.execute("UPDATE mq_mark SET scanned_at = UTC_TIMESTAMP(6) WHERE type = 'blocked'").close()
        cost = measured(connection, call)
        assert cost.rows < ROWS, cost
        # A group that is unblocked continues at once, although its ticket was passed.
        connection.execute("DELETE FROM mq_group_lock WHERE type = 'blocked' AND group_key = 'blocked-7'").close()
        run(connection, "CALL imq_issue_tickets('blocked', '[\"blocked-7\"]')")
        connection.execute("UPDATE mq_mark SET scanned_at = UTC_TIMESTAMP(6) WHERE type = 'blocked'").close()
        assert [row["group_key"] for row in run(connection, f"CALL mq_{call}")] == ["blocked-7"]
    server.drop_database(url)
