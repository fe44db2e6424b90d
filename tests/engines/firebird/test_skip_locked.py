"""Firebird 5.0: UPDATE ... SKIP LOCKED loses rows, so the queue uses a cursor or DELETE.

Beside others that do the same, some UPDATEs end with 'no current record for fetch operation', and once in 30,000 to
60,000 rows one stays taken by a batch that was rolled back (5.0.4). This takes rows in each way under the same load.
The cursor and DELETE must be clean; what UPDATE does depends on luck: it is expected to fail, and allowed not to.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from servers import Server
from servers.firebird import driver
from servers.firebird_raw import Raw, codes, raw_on

pytestmark = pytest.mark.product("firebird")

ROWS = 20_000
WORKERS = 8
SIZE = 20
SECONDS = 30
CONFLICTS = {335544336, 335544345, 335544451}

# As in the queue: rows are deleted. A cursor that changes the columns it searches by gets update conflicts.
CURSOR = """
    EXECUTE BLOCK (batch INTEGER = ?) RETURNS (id INTEGER) AS
    DECLARE n INTEGER = 0;
    BEGIN
        FOR SELECT t.id FROM t WHERE t.id >= 0 PLAN (t ORDER t_id) ORDER BY t.id
            WITH LOCK SKIP LOCKED INTO id AS CURSOR c
        DO
        BEGIN
            DELETE FROM t WHERE CURRENT OF c;
            INSERT INTO taken (id, batch) VALUES (:id, :batch);
            SUSPEND;
            n = n + 1;
            IF (n = 20) THEN
                LEAVE;
        END
    END
"""
# As in take_ready: one row at a time, by its key.
DELETE = """
    EXECUTE BLOCK (batch INTEGER = ?) RETURNS (id INTEGER) AS
    DECLARE n INTEGER = 0;
    DECLARE mine INTEGER;
    DECLARE place CHAR(8) CHARACTER SET OCTETS;
    BEGIN
        FOR SELECT t.id, t.RDB$DB_KEY FROM t WHERE t.id >= 0 PLAN (t ORDER t_id) ORDER BY t.id INTO id, place DO
        BEGIN
            mine = 0;
            DELETE FROM t WHERE t.RDB$DB_KEY = :place AND t.id = :id SKIP LOCKED RETURNING 1 INTO mine;
            IF (mine = 1) THEN
            BEGIN
                INSERT INTO taken (id, batch) VALUES (:id, :batch);
                SUSPEND;
                n = n + 1;
            END
            IF (n = 20) THEN
                LEAVE;
        END
    END
"""
UPDATE = """
    UPDATE t SET batch = ? WHERE batch IS NULL AND id >= 0 PLAN (t ORDER t_id) ORDER BY id ROWS 20 SKIP LOCKED
    RETURNING id
"""


@pytest.fixture
def table(server: Server) -> Iterator[str]:
    """A database with a table of free rows."""
    if int(server.version.partition(".")[0]) < 5:  # type: ignore[attr-defined]
        pytest.skip("SKIP LOCKED is new in 5.0")
    url = server.create_database()
    with server.client(url) as client:
        client.execute("CREATE TABLE t (id INTEGER NOT NULL, batch INTEGER)")
        client.execute("CREATE INDEX t_id ON t (id)")
        client.execute("CREATE TABLE taken (id INTEGER NOT NULL, batch INTEGER)")
        client.execute(
            "EXECUTE BLOCK AS DECLARE n INTEGER = 0; BEGIN"
            f" WHILE (n < {ROWS}) DO BEGIN INSERT INTO t (id) VALUES (:n); n = n + 1; END END"
        )
    yield url
    server.drop_database(url)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(CURSOR, id="cursor"),
        pytest.param(DELETE, id="delete"),
        pytest.param(UPDATE, id="update", marks=pytest.mark.xfail(strict=False, reason="a fault of Firebird 5.0.4")),
    ],
)
@pytest.mark.level(3)
def test_rows_that_are_taken_past_locked_ones_belong_to_batches_that_were_committed(
    server: Server, table: str, statement: str
) -> None:
    errors: Counter[str] = Counter()
    committed: dict[int, list[int]] = {}
    gate, until = threading.Barrier(WORKERS), time.monotonic() + SECONDS

    def work(raw: Raw, number: int) -> None:
        for turn in range(1, 100_000):
            batch = number * 100_000 + turn
            try:
                ids = [row["id"] for row in raw.run(statement, batch)]
            except driver().DatabaseError as error:
                # A conflict, about once in 20,000 rows with rollbacks, is reported and rolled back: the caller retries.
                if not CONFLICTS & set(codes(error)):
                    errors[str(error)] += 1
                raw.rollback()
                ids = [] if time.monotonic() > until else [-1]
            if not ids or time.monotonic() > until:
                raw.rollback()
                return
            if ids == [-1]:
                continue
            if turn % 5 == 0:
                raw.rollback()
                continue
            raw.commit()
            committed[batch] = ids

    def live(number: int) -> None:
        with raw_on(server, table) as raw:
            gate.wait(60)
            work(raw, number)

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(live, number) for number in range(WORKERS)]:
            done.result()
    found: dict[int, list[int]] = {}
    for row in server.query(table, "SELECT id, batch FROM taken UNION ALL SELECT id, batch FROM t WHERE batch > 0"):
        found.setdefault(row["batch"], []).append(row["id"])
    assert errors == {}
    assert {batch: sorted(ids) for batch, ids in found.items()} == {
        batch: sorted(ids) for batch, ids in committed.items()
    }
    assert sum(map(len, committed.values())) > ROWS * 0.9 or time.monotonic() > until
