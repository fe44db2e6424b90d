"""rowqueue on MySQL and MariaDB, compared with baselines measured in the same run: python benchmarks/mysql.py

Prints one Markdown table; benchmarks/README.md explains each line. Starts its own server, durable and with a
binary log, or uses the one that you name. Compared work alternates (A B A B), each on fresh data. Each figure is a
median.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import lines
from lines import TYPE, Rows
from pymysql.err import OperationalError
from rowqueue.databases.mysql import MySQL
from rowqueue.install import contract

# The baseline: one wide table with a state column, as usually built, and INSERTs of messages by hand.
NAME = "varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
WIDE = (
    f"""
    CREATE TABLE wide (
        id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, type {NAME} NOT NULL,
        state char(1) CHARACTER SET ascii NOT NULL DEFAULT 'N', priority smallint NOT NULL DEFAULT 0,
        run_at datetime(6) NOT NULL, attempts int NOT NULL DEFAULT 0,
        body longtext CHARACTER SET utf8mb4 NOT NULL, headers mediumtext CHARACTER SET utf8mb4, group_key {NAME},
        dedup_key {NAME}, created_at datetime(6) NOT NULL, source {NAME}, batch_key char(36) CHARACTER SET ascii,
        consumer {NAME}, lease_until datetime(6), max_attempts smallint, extra text CHARACTER SET utf8mb4,
        KEY wide_ready (type, state, priority, run_at, id), KEY wide_batch (batch_key)
    ) ENGINE = InnoDB""",
    "CREATE TABLE baseline_message LIKE mq_message",
    "CREATE TABLE baseline_ready LIKE mq_ready",
)
TABLES = (
    "wide",
    "baseline_message",
    "baseline_ready",
    "mq_message",
    "mq_ready",
    "mq_delayed",
    "mq_batch",
    "mq_mark",
    "mq_ring",
)
FIRST = """
    SELECT id FROM wide WHERE type = %s AND state = 'N' ORDER BY priority, run_at, id LIMIT %s FOR UPDATE SKIP LOCKED
"""
COLUMNS = (
    "id, type, body, headers, priority, group_key, dedup_key, attempts, created_at, source, batch_key, lease_until,"
    " max_attempts, run_at, extra"
)
TAKE = FIRST.replace("id FROM", f"{COLUMNS} FROM")
CLAIM = f"""
    UPDATE wide JOIN ({FIRST}) AS c USING (id)
    SET state = 'A', batch_key = %s, consumer = 'bench', attempts = attempts + 1,
        lease_until = UTC_TIMESTAMP(6) + INTERVAL 60 SECOND
"""
RING = CLAIM.replace("ORDER BY priority, run_at, id", "ORDER BY id <= %s, id")
SEND = "INSERT INTO {} (run_at, created_at, priority, type, body, source) VALUES ".format
VALUES = "(UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0, %s, %s, 'bench')"
SEND_READY = """
    INSERT INTO baseline_ready (type, priority, run_at, id, attempts)
    SELECT type, priority, run_at, id, 0 FROM baseline_message
    WHERE id BETWEEN LAST_INSERT_ID() AND LAST_INSERT_ID() + %s - 1
"""

# All pairs of the stripes' rows serve as a list of numbers.
DELAYED = (
    """
    INSERT INTO mq_message (run_at, created_at, priority, type, body)
    SELECT UTC_TIMESTAMP(6) + INTERVAL 1 DAY + INTERVAL (b.n * 1000 + a.n) * 1000 MICROSECOND, UTC_TIMESTAMP(6), -10,
        %s, 'later'
    FROM mq_stripe AS b JOIN mq_stripe AS a WHERE a.n < 1000 AND b.n < %s""",
    """
    INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
    SELECT type, run_at, id, priority, 0 FROM mq_message WHERE type = %s AND priority = -10""",
)
DEADLOCK = 1213  # occurs in the baseline, must not occur in the queue


class Client(lines.Client):
    """PyMySQL, as the runner connects: READ COMMITTED, in autocommit."""

    server = "mariadb-10.11"
    products = ("mariadb", "mysql")
    targets = {"take": "≥ 0.7", "finish": "≥ 1.2", "send": "≥ 0.5", "idle": "< 10 ms"}  # noqa: RUF012
    take_cases = ((100, 1, 100, 50_000), (100, 4, 100, 50_000), (1500, 1, 100, 30_000), (1500, 4, 100, 30_000))
    finish_cases = (*take_cases, (100, 1, 1, 3_000), (100, 4, 1, 5_000), (1500, 1, 1, 3_000), (1500, 4, 1, 5_000))
    send_size = 10_000
    joined = "CONCAT('{}', {})"
    mark_columns = "n, scanned_at, promoted_to, places"

    def __init__(self, url: str) -> None:
        self._connection = MySQL(url).open("bench")
        self._cursor = self._connection.cursor()

    @classmethod
    def connect(cls, url: str) -> Self:
        return cls(url)

    def close(self) -> None:
        self._connection.close()

    def _run(self, text: str, *values: Any) -> Rows:
        self._cursor.execute(text, values or None)
        rows: Rows = self._cursor.fetchall()
        return rows

    @contextmanager
    def _transaction(self) -> Iterator[list[OperationalError]]:
        """A transaction; yields a list that is not empty afterwards if a deadlock rolled it back."""
        again: list[OperationalError] = []
        self._run("START TRANSACTION")
        try:
            yield again
            self._run("COMMIT")
        except OperationalError as error:
            if error.args[0] != DEADLOCK:
                raise
            again.append(error)

    def describe(self) -> str:
        row = self._run("SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog")[0]
        version, flush, log, sync = row
        assert flush == 1, "innodb_flush_log_at_trx_commit must be 1"
        product = "MariaDB" if "MariaDB" in version else "MySQL"
        binary_log = f"binary log on (sync_binlog={sync})" if log else "binary log off"
        return f"{product} {version.partition('-')[0]}, innodb_flush_log_at_trx_commit=1, {binary_log}"

    def calls(self) -> int:
        # Without the statements inside procedures.
        return int(self._run("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])

    def create_baseline(self) -> None:
        for statement in WIDE:
            self._run(statement)

    def empty(self) -> None:
        for table in TABLES:
            self._run(f"TRUNCATE TABLE {table}")

    def call(self, procedure: str, *arguments: Any) -> Rows:
        padded = [*arguments, *[None] * (len(contract.load().procedures[procedure].arguments) - len(arguments))]
        rows = self._run(f"CALL mq_{procedure}({', '.join(['%s'] * len(padded))})", *padded)
        while self._cursor.nextset():
            pass
        return rows

    def run(self, text: str) -> Rows:
        return self._run(text)

    def process(self) -> int:
        return int(Path(self._run("SELECT @@pid_file")[0][0]).read_text())

    def baseline_take(self, batch: int) -> Rows:
        with self._transaction() as again:
            rows = self._run(TAKE, TYPE, batch)
            if rows:
                self._run("DELETE FROM wide WHERE id IN %s", [row[0] for row in rows])
        return self.baseline_take(batch) if again else rows

    def baseline_finish(self, claimed: Rows, batch: int) -> Rows:
        key = str(uuid.uuid4())
        with self._transaction() as again:
            if claimed:
                self._run("DELETE FROM wide WHERE batch_key = %s", claimed[0][lines.KEY])
            self._run(CLAIM, TYPE, batch, key)
            rows = self._run(f"SELECT {COLUMNS} FROM wide WHERE batch_key = %s ORDER BY priority, run_at, id", key)
        return self.baseline_finish(claimed, batch) if again else rows

    def baseline_ring(self, after_id: int, batch: int) -> Rows:
        key = str(uuid.uuid4())
        with self._transaction() as again:
            self._run(RING, TYPE, after_id, batch, key)
            rows = self._run(f"SELECT {COLUMNS} FROM wide WHERE batch_key = %s ORDER BY id <= %s, id", key, after_id)
        return self.baseline_ring(after_id, batch) if again else rows

    def baseline_fill(self, bodies: Sequence[str]) -> None:
        self._run(self._insert("wide", bodies))

    def baseline_send(self, bodies: Sequence[str]) -> Callable[[], None]:
        text = self._insert("baseline_message", bodies)

        def send() -> None:
            self._run("START TRANSACTION")
            self._run(text)
            self._run(SEND_READY, len(bodies))
            self._run("COMMIT")

        return send

    def _insert(self, table: str, bodies: Sequence[str]) -> str:
        rows = (self._cursor.mogrify(VALUES, (TYPE, body)) for body in bodies)
        return SEND(table) + ", ".join(rows)

    def delay(self, count: int) -> None:
        self._run(DELAYED[0], TYPE, count // 1000)
        self._run(DELAYED[1], TYPE)

    def settle(self) -> None:
        self._run(f"ANALYZE TABLE {', '.join(TABLES)}")

    def keep_statistics(self) -> None:
        for table in TABLES:
            self._run(f"ALTER TABLE {table} STATS_AUTO_RECALC = 0")
        self.settle()

    def hold_snapshot(self) -> None:
        self._run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        self._run("SELECT COUNT(*) FROM mq_queue")


if __name__ == "__main__":
    lines.main(Client, __doc__)
