"""What a call reads on Firebird: no table scan, no more for a longer backlog, and no messages that were done long ago.

A call is measured by the records that its attachment reads, counted per table in MON$TABLE_STATS, those of the
procedures inside included. Deleted records are not counted there; they show in the pages that are fetched.
"""

import statistics
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rowqueue.databases import open_database
from rowqueue.install import apply as install
from servers import Server
from servers.firebird_raw import Raw, raw_on
from support.outcomes import dead_letter, failure, joined

pytestmark = [pytest.mark.product("firebird"), pytest.mark.level(3)]

BACKLOG = 100_000
READY_BEHIND_DELAYED = 1_000
SIZE = 20
# Records that a call of SIZE messages reads by index in all tables of the queue together; measured: at most 400.
READS = 1_500
# queue_stats counts up to 10,000 of each state.
STATS_READS = 45_000
# Records read without an index: allowed for the few marks, policies and batches, never for other tables.
UNINDEXED = 300
BIG = {"MQ_MESSAGE", "MQ_READY", "MQ_DELAYED", "MQ_DEDUP", "MQ_CLAIMED", "MQ_STRIPE", "MQ_GROUPED"}

IDLE = 300  # queues
IDLE_READS = 12  # records per queue; measured: at most 6

DONE_UNDER_SNAPSHOT = 20_000  # a claim without a mark reads 40,000 pages
DRAINED = 500
BATCH = 100
SAMPLE = 20

COUNTS = """
    SELECT TRIM(t.mon$table_name) AS name, r.mon$record_seq_reads AS unindexed, r.mon$record_idx_reads AS found
    FROM mon$attachments AS a
    JOIN mon$table_stats AS t ON t.mon$stat_id = a.mon$stat_id
    JOIN mon$record_stats AS r ON r.mon$stat_id = t.mon$record_stat_id
    WHERE a.mon$attachment_id = CURRENT_CONNECTION AND t.mon$table_name STARTING WITH 'MQ_'
"""
PAGES = """
    SELECT i.mon$page_fetches AS pages FROM mon$attachments AS a JOIN mon$io_stats AS i ON i.mon$stat_id = a.mon$stat_id
    WHERE a.mon$attachment_id = CURRENT_CONNECTION
"""


@dataclass
class Cost:
    """What one call read."""

    call: str
    unindexed: dict[str, int]
    found: dict[str, int]


def counts(raw: Raw) -> dict[str, tuple[int, int]]:
    """Records read by this attachment, by table."""
    rows = raw.run(COUNTS)
    raw.commit()
    return {row["name"]: (row["unindexed"], row["found"]) for row in rows}


def measured(raw: Raw, call: str, *values: Any) -> tuple[Cost, list[dict[str, Any]]]:
    before = counts(raw)
    rows = raw.done(call, *values)
    after = counts(raw)
    spent = {
        name: [now - then for now, then in zip(numbers, before.get(name, (0, 0)), strict=True)]
        for name, numbers in after.items()
    }
    unindexed = {name: unindexed for name, (unindexed, _) in spent.items() if unindexed}
    return Cost(f"{call}{values}", unindexed, {name: found for name, (_, found) in spent.items() if found}), rows


def assert_cheap(cost: Cost) -> None:
    assert not cost.unindexed.keys() & BIG, cost
    assert sum(cost.unindexed.values()) <= UNINDEXED, cost
    assert sum(cost.found.values()) <= (STATS_READS if cost.call.startswith("queue_stats") else READS), cost


@pytest.fixture(scope="module")
def backlogs(server: Server) -> Iterator[str]:
    """Two queues: `ready` with 100,000 ready messages, `delayed` with as many for tomorrow before 1,000 ready ones.

    The statistics of their indexes are those of empty tables, until a test changes that.
    """
    url = server.create_database()
    install.apply(open_database(url))
    with server.client(url) as client:
        client.execute(f"""
            EXECUTE BLOCK AS
            DECLARE n integer = 0;
            DECLARE v_id bigint;
            DECLARE v_now timestamp;
            BEGIN
                v_now = DATEADD(-1 MINUTE TO mq_utc_now());
                WHILE (n < {BACKLOG}) DO
                BEGIN
                    n = n + 1;
                    v_id = NEXT VALUE FOR mq_message_id;
                    INSERT INTO mq_message (id, run_at, created_at, priority, type, body)
                    VALUES (:v_id, :v_now, :v_now, 0, 'ready', 'x');
                    INSERT INTO mq_ready (type, priority, run_at, id, attempts) VALUES ('ready', 0, :v_now, :v_id, 0);
                    v_id = NEXT VALUE FOR mq_message_id;
                    IF (n <= {READY_BEHIND_DELAYED}) THEN
                    BEGIN
                        INSERT INTO mq_message (id, run_at, created_at, priority, type, body)
                        VALUES (:v_id, :v_now, :v_now, 0, 'delayed', 'x');
                        INSERT INTO mq_ready (type, priority, run_at, id, attempts)
                        VALUES ('delayed', 0, :v_now, :v_id, 0);
                        v_id = NEXT VALUE FOR mq_message_id;
                    END
                    -- Nothing looks at their messages before they are due, so they need none.
                    INSERT INTO mq_delayed (id, type, run_at, priority, attempts)
                    VALUES (:v_id, 'delayed', DATEADD(1 DAY TO :v_now), -5, 0);
                END
            END
        """)
    yield url
    server.drop_database(url)


def renew_statistics(server: Server, url: str) -> None:
    """The statistics of a restored backup, or after SET STATISTICS."""
    with server.client(url) as client:
        names = client.execute(
            "SELECT TRIM(rdb$index_name) AS name FROM rdb$indices WHERE rdb$index_name LIKE 'MQ!_%' ESCAPE '!'"
        )
        for row in names.rows:
            client.execute(f"SET STATISTICS INDEX {row['name']}")


def all_calls(raw: Raw, type: str) -> Iterator[Cost]:
    """Every call that finds messages, once."""

    def cost(call: str, *values: Any) -> Cost:
        nonlocal rows
        spent, rows = measured(raw, call, *values)
        return spent

    rows: list[dict[str, Any]] = []
    tomorrow = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=1)
    yield cost("send", type, "x")
    yield cost("send_message", type, "x", tomorrow, 3, "g", uuid.uuid4().hex)
    yield cost("send_batch", type, "x\n" * (SIZE - 1) + "x")
    yield cost("send_batch", type, "x\n" * (SIZE - 1) + "x", '{"priority": 2, "group_key": "g", "headers": "{}"}')
    yield cost("claim_batch", type, SIZE)
    assert len(rows) == SIZE
    key, ids = rows[0]["batch_key"], [row["id"] for row in rows]
    yield cost("extend_lease", key, 60)
    yield cost("complete", ids[0], key)
    yield cost("dead_letter", ids[1], key, "no")
    yield cost("peek", type, "A", SIZE)
    yield cost("finish_batch", key, joined(failure(ids[2], "no", 0), dead_letter(ids[3], "no")), SIZE)
    assert len(rows) == SIZE
    yield cost("release_batch", rows[0]["batch_key"])
    yield cost("claim_batch", type, SIZE)
    assert len(rows) == SIZE
    yield cost("complete_batch", rows[0]["batch_key"])
    yield cost("take_batch", type, SIZE)
    assert len(rows) == SIZE
    yield cost("get_message", type)
    yield cost("claim_batch", type, SIZE, "expired", 1)
    raw.run("UPDATE mq_batch SET lease_until = claimed_at WHERE consumer = 'expired'")
    raw.commit()
    yield cost("rescue_expired", type)
    assert rows == [{"affected": SIZE}]
    yield cost("rescue_expired", None)
    yield cost("peek", type, "N", SIZE)
    yield cost("peek", type, "E", SIZE)
    [middle, after] = raw.run("SELECT id FROM mq_ready WHERE type = ? ORDER BY type, id ROWS 500 TO 501", type)
    raw.commit()
    yield cost("count_attempt", middle["id"], "no", 0)
    assert rows == [{"state": "N"}]
    yield cost("cancel", middle["id"] - 2)
    yield cost("update_message", after["id"], '{"body": "new", "priority": 1, "delay_seconds": 60}')
    assert rows == [{"affected": 1, "state": "N"}]
    yield cost("claim_any", f"nothing\n{type}", SIZE, "any")
    assert len(rows) == SIZE
    yield cost("release_consumer", "any")
    assert rows == [{"affected": SIZE}]
    yield cost("wait_for_any", f"nothing\n{type}", 0)
    yield cost("redrive_all", type)
    yield cost("wait_for_message", type, 0)
    for ring in (type, f"{type}.ring"):
        raw.done("set_queue", ring, '{"ring": 1}')
    for call, types in (
        ("claim_wraparound", f"{type}.ring"),
        ("claim_batch", f"{type}.ring"),
        ("claim_any", f"{type}.ring"),
    ):
        yield cost(call, types, SIZE, "consumer")
    for after_id in (middle["id"], middle["id"] + 10_000_000, None):
        yield cost("claim_wraparound", type, SIZE, "consumer", 600, after_id)
        assert len(rows) == SIZE
        yield cost("release_batch", rows[0]["batch_key"])
    yield cost("claim_batch", type, SIZE, "consumer")
    yield cost("finish_batch", rows[0]["batch_key"], joined(*(failure(row["id"], "no", 0) for row in rows)), SIZE)
    assert len(rows) == SIZE
    yield cost("release_batch", rows[0]["batch_key"])
    yield cost("get_message", type)
    yield cost("release_batch", rows[0]["batch_key"])
    raw.done("set_queue", type, '{"ring": 0}')
    yield cost("queue_stats", type)
    yield cost("queue_stats", None)
    yield cost("claim_batch", "nothing", SIZE)
    yield cost("rescue_expired", "nothing")


@pytest.mark.parametrize("known", ["of-empty-tables", "as-they-are"])
@pytest.mark.parametrize("type", ["ready", "delayed"])
def test_no_call_scans_a_backlog(server: Server, backlogs: str, type: str, known: str) -> None:
    if known == "as-they-are":
        renew_statistics(server, backlogs)
    with raw_on(server, backlogs) as raw:
        for _ in range(2):
            for cost in all_calls(raw, type):
                assert_cheap(cost)


def test_a_queue_with_nothing_due_is_polled_past_its_delayed_messages(server: Server, backlogs: str) -> None:
    with raw_on(server, backlogs) as raw:
        raw.run(
            "INSERT INTO mq_delayed (id, type, run_at, priority, attempts)"
            " SELECT id + 10000000, 'later', DATEADD(1 DAY TO mq_utc_now()), 0, 0 FROM mq_message ROWS 20000"
        )
        raw.commit()
        for _ in range(2):
            for call, values in (("wait_for_message", (0,)), ("claim_batch", (SIZE,)), ("take_batch", (SIZE,))):
                cost, _ = measured(raw, call, "later", *values)
                assert_cheap(cost)


def test_a_poll_skips_thousands_of_valid_leases(server: Server, backlogs: str) -> None:
    with raw_on(server, backlogs) as raw:
        raw.run(
            "INSERT INTO mq_batch (batch_key, claimed_at, lease_until, lease_seconds, type, consumer)"
            " SELECT UUID_TO_CHAR(GEN_UUID()), mq_utc_now(), DATEADD(1 HOUR TO mq_utc_now()), 3600, 'leased', 'x'"
            " FROM mq_message ROWS 5000"
        )
        raw.commit()
        for call, values in (
            ("wait_for_message", ("leased", 0)),
            ("claim_batch", ("leased", SIZE)),
            ("rescue_expired", ("leased",)),
            ("rescue_expired", (None,)),
        ):
            cost, _ = measured(raw, call, *values)
            assert_cheap(cost)


def test_many_idle_queues_are_polled_with_few_reads_and_without_locks(server: Server) -> None:
    """Half of them are limited: a claim of these takes locks."""
    url = server.create_database()
    install.apply(open_database(url))
    types = [f"idle {n}" for n in range(IDLE)]
    with raw_on(server, url) as raw, raw_on(server, url) as other:
        for n, type in enumerate(types):
            if n % 2:
                raw.done("set_queue", type, '{"max_active": 1, "rate": 1000}')
            raw.done("send", type, "x")
            raw.done("complete_batch", raw.done("claim_batch", type)[0]["batch_key"])
        time.sleep(1.1)  # until the marks are older than a second
        for call in ("claim_any", "wait_for_any"):
            cost, _ = measured(raw, call, "\n".join(types))
            spent = sum(cost.unindexed.values()) + sum(cost.found.values())
            assert spent <= IDLE_READS * IDLE, cost
            begun = time.monotonic()
            raw.done(call, "\n".join(types))
            print(f"{call}: {IDLE} idle queues, {spent} records, {(time.monotonic() - begun) * 1000:.1f} ms")
        assert raw.call("claim_any", "\n".join(types)) == []
        other.done("send", types[1], "y")
        assert len(other.done("claim_batch", types[1])) == 1
        raw.rollback()
    server.drop_database(url)


def test_every_queue_is_found_after_the_others(server: Server) -> None:
    """The next type is found as the smallest name after the last one, without a scan of its messages."""
    url = server.create_database()
    database = open_database(url)
    install.apply(database)
    session = database.connect("test")
    long = "n" * 199
    types = ["\x01", "a", "a !", "a!", "a b", "a\u00a0", "ab", "b", long, long + "!", long + "n", long + "o"]
    types += ["n" * 198, "\u20ac", "\u20ac" * 200, "\U0001f600"]
    for type in types:
        session.call("send", type, "x")
        session.call("claim_batch", type, 1, None, 1)
        session.call("send", type, "y")
        session.call("send_message", type, "z", datetime.now(UTC) + timedelta(hours=1))
    rows = session.call("queue_stats")
    assert {row["type"] for row in rows} ^ set(types) == set()
    assert len(rows) == len(types)
    assert {(row["ready"], row["delayed"], row["active"] + row["expired"]) for row in rows} == {(1, 1, 1)}
    time.sleep(1.1)  # until the leases end
    assert session.call("rescue_expired", None) == [{"affected": len(types)}]
    session.close()
    server.drop_database(url)


@pytest.mark.parametrize("before", [1, 10, 100])
def test_the_view_reads_a_message_once_also_by_a_plan_for_tables_that_held_next_to_nothing(
    server: Server, before: int
) -> None:
    """The engine keeps the plan of a statement while its tables fill."""
    url = server.create_database()
    install.apply(open_database(url))
    with raw_on(server, url) as raw:
        for count in (before, 2_000):
            raw.done("send_batch", "q", "x\n" * count)
            then = counts(raw)
            raw.run("SELECT id, state FROM mq_message_state WHERE type = 'q' ORDER BY id")
            raw.commit()
            now = counts(raw)
        assert all(sum(now[name]) - sum(then.get(name, (0, 0))) <= 3 * (before + 2_000) for name in now), (then, now)
    server.drop_database(url)


def fetched(raw: Raw) -> int:
    [row] = raw.run(PAGES)
    raw.commit()
    return int(row["pages"])


def test_an_open_snapshot_does_not_make_claims_dearer_and_queue_health_names_it(server: Server) -> None:
    """Finished messages stay in tables and indexes as long as a transaction may still see them."""
    url = server.create_database()
    install.apply(open_database(url))
    with raw_on(server, url) as raw, raw_on(server, url, "SNAPSHOT WAIT") as other:
        # Messages of one call have the same time, and are scanned together.
        for _ in range(DONE_UNDER_SNAPSHOT // 500 + 2):
            raw.done("send_batch", "q", "x\n" * 499 + "x")
        other.run("SELECT COUNT(*) FROM mq_queue")
        key = raw.done("claim_batch", "q", BATCH, None, 3_600)[0]["batch_key"]
        costs = {"finish": [], "take": []}  # type: dict[str, list[int]]
        for _ in range(DONE_UNDER_SNAPSHOT // BATCH):
            before = fetched(raw)
            key = raw.done("finish_batch", key, None, BATCH)[0]["batch_key"]
            between = fetched(raw)
            raw.done("take_batch", "q", 1)
            costs["finish"].append(between - before)
            costs["take"].append(fetched(raw) - between)
        for name, all_costs in costs.items():
            # A full scan happens at most once per second and takes at most a tenth of the time: so the median is used.
            first, last = statistics.median(all_costs[:SAMPLE]), statistics.median(all_costs[-SAMPLE:])
            assert last <= 3 * first, f"{name}: {first} pages a call at first, {last} after {DONE_UNDER_SNAPSHOT}"
        time.sleep(0.1)
        rows = {row["name"]: row for row in raw.done("queue_health")}
        assert rows["oldest_transaction"]["detail"].startswith(f"attachment {other.connection.info.id},")
        assert rows["oldest_transaction"]["measured"] > 0
        gap = rows["oldest_snapshot_gap"]["measured"]
        assert gap >= 2 * DONE_UNDER_SNAPSHOT // BATCH
        other.rollback()
        rows = {row["name"]: row for row in raw.done("queue_health")}
        assert rows["oldest_transaction"]["measured"] == 0
        assert rows["oldest_snapshot_gap"]["measured"] < gap
    server.drop_database(url)


def test_an_open_snapshot_does_not_make_claims_of_a_ring_dearer(server: Server) -> None:
    """A claim that finds too few wraps around to the lowest id, past all finished messages."""
    url = server.create_database()
    install.apply(open_database(url))
    with raw_on(server, url) as raw, raw_on(server, url, "SNAPSHOT WAIT") as other:
        other.run("SELECT COUNT(*) FROM mq_queue")

        def short_claims(type: str) -> float:
            costs = []
            for _ in range(40):
                raw.done("send_batch", type, "x\nx")
                before = fetched(raw)
                rows = raw.done("claim_wraparound", type, SIZE, "r", 3_600)
                costs.append(fetched(raw) - before)
                assert len(rows) == 2
                raw.done("complete_batch", rows[0]["batch_key"])
            return statistics.median(costs)

        for type in ("new", "q"):
            raw.done("set_queue", type, '{"ring": 1}')
        first = short_claims("new")
        for _ in range(DONE_UNDER_SNAPSHOT // 1_000):
            raw.done("send_batch", "q", "x\n" * 999 + "x")
        [kept] = raw.done("claim_wraparound", "q", 1, "keeper", 3_600)
        for _ in range(DONE_UNDER_SNAPSHOT // DRAINED):
            raw.done("complete_batch", raw.done("claim_wraparound", "q", DRAINED, "r", 3_600)[0]["batch_key"])
        last = short_claims("q")
        # A message that is put back below the mark is still claimed at once.
        id = kept["id"]
        for n in range(10):
            raw.done("send", "q", "x")
            [row] = raw.done("claim_wraparound", "q", SIZE, "r", 3_600)
            raw.done("complete_batch", row["batch_key"])
            if n % 2:
                raw.done("fail", id, kept["batch_key"], "again", 0)
            else:
                raw.done("release_batch", kept["batch_key"])
            [kept] = raw.done("claim_wraparound", "q", SIZE, "r", 3_600)
            assert kept["id"] == id
        other.rollback()
    server.drop_database(url)
    # The mark is before the last batch that the queue was drained with, which could have come back: it is read again.
    allowed = 3 * first + 3 * DRAINED
    assert last <= allowed, f"{first} pages a claim at first, {last} after {DONE_UNDER_SNAPSHOT}"
