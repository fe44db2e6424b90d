"""What claiming and finishing rows of a polling table read: an index, as far as the batch goes, and never the backlog.

Half of each table is done, but the statistics say that all is ready: a plan that trusts them would scan the order
and skip the half that is done.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from rowqueue.databases import Session, open_database
from rowqueue.install import apply as install
from servers import Server
from support.capabilities import BY_DATABASE
from support.polling import SHAPES, Polled

pytestmark = pytest.mark.product("postgresql", "mysql")

ROWS = 20_000
SIZE = 20
MOST = 3_000  # rows of all tables, those of lists and of the catalog on MySQL included; a scan shows
SHAPE_NAMES = [name for name in SHAPES if name != "f"]  # f is documented to read the whole table

FILL = {
    "postgresql": "INSERT INTO {} SELECT {} FROM generate_series(1, %s) AS n",
    "mysql": (
        "INSERT INTO {} SELECT {} FROM (SELECT 200 * a.n + b.n AS n FROM (SELECT n FROM mq_stripe WHERE n < 100) AS a"
        " JOIN (SELECT n FROM mq_stripe WHERE n < 200) AS b WHERE %s > 0) AS n"
    ),
}
MADE = {
    "postgresql": "timestamp '2026-01-01' + n * interval '1 second'",
    "mysql": "CAST('2026-01-01' AS datetime(6)) + INTERVAL n SECOND",
}


@pytest.fixture(scope="module")
def url(server: Server) -> Iterator[str]:
    url = server.create_database()
    install.apply(open_database(url))
    yield url
    server.drop_database(url)


@pytest.fixture
def looking(server: Server, url: str) -> Iterator[Any]:
    with server.client(url) as connection:
        yield connection


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    session = open_database(url).connect("cost")
    yield session
    session.close()


def reads(session: Session, mysql: bool, connection: Any) -> tuple[int, int]:
    """Rows fetched so far by this session, and those of them by full scans of our or the user's tables."""
    cursor = connection.cursor()
    if mysql:
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(row["Value"]) if isinstance(row, dict) else int(row[1]) for row in cursor.fetchall()), 0
    cursor.execute(
        "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) AS rows, sum(seq_tup_read) AS scanned"
        " FROM pg_stat_xact_user_tables"
    )
    [row] = cursor.fetchall()
    rows, scanned = row.values() if isinstance(row, dict) else row
    return int(rows), int(scanned)


def looks_at_the_catalog(session: Session, mysql: bool, connection: Any, name: str) -> int:
    """What finding the table and its columns reads, which on a new MySQL can be all of its catalog."""
    if not mysql:
        return 0
    before, _ = reads(session, mysql, connection)
    cursor = connection.cursor()
    for step in ("CALL imq_polled_settings(%s, @settings)", "CALL imq_polled_shape(@settings, @shape)"):
        cursor.execute(step, [name] if "%s" in step else None)
        while cursor.nextset():
            pass
    return reads(session, mysql, connection)[0] - before


@pytest.mark.parametrize("name", SHAPE_NAMES)
def test_a_claim_and_its_finish_read_no_more_than_their_rows(
    server: Server, url: str, looking: Any, session: Session, name: str
) -> None:
    database = open_database(url)
    shape = SHAPES[name]
    table = Polled(
        f"cost_{SHAPE_NAMES.index(name)}",
        session,
        lambda text, *p: server.query(url, text, *p),
        BY_DATABASE[database.name],
        shape,
    )
    table.create()
    columns = ["n"] if shape.has_key else []
    columns += [MADE[database.name]] if shape.letter in "cd" else []
    columns += ["CONCAT('row ', n)", *(["'N'"] if shape.has_status else [])]
    looking.execute(FILL[database.name].format(table.name, ", ".join(columns)), [ROWS])
    mysql = database.name == "mysql"
    looking.execute(f"ANALYZE {'TABLE ' if mysql else ''}{table.name}")
    if shape.has_status:
        limit = f"n <= {ROWS // 2}".replace("n", "CAST(SUBSTRING(v, 5) AS signed)" if mysql else "substr(v, 5)::int")
        looking.execute(f"UPDATE {table.name} SET status = 'D' WHERE {limit}")
    for _ in range(2):
        with session.transaction() as connection:
            catalog = looks_at_the_catalog(session, mysql, connection, table.name)
            before = reads(session, mysql, connection)
            rows = table.claim(SIZE)
            claimed = reads(session, mysql, connection)
            assert len(rows) == SIZE
            assert table.finish(rows[0]["batch_key"]) == (SIZE, 0, 0, 0)
            finished = reads(session, mysql, connection)
        assert claimed[0] - before[0] - catalog < MOST, "claim_rows"
        assert finished[0] - claimed[0] - catalog < MOST, "finish_rows"
        assert finished[1] - before[1] <= ROWS // 100, "nothing is scanned but what is tiny"
