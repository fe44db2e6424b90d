"""Firebird: code that a table's owner defines runs with the caller's rights, never with those of the queue."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from rowqueue.databases import Database, DatabaseError, QueueError, Row, Session, open_database
from servers import Server
from servers.firebird import Client, driver
from support.outcomes import dead_letter
from support.queues import call

pytestmark = pytest.mark.product("firebird")

Sql = Callable[..., list[Row]]
ADOPTED = (
    '{"key_columns": "id", "status_column": "status", "ready_value": "X", "active_value": "A", "done_value": "D",'
    ' "error_value": "E"}'
)
SECRET = "hunter2"
# Statements that read secret data: a table that the queue uses, and the body of a message.
READS = {
    "a polling table": "(SELECT MAX(pw) FROM payroll)",
    "a message": "(SELECT MAX(CAST(body AS varchar(50))) FROM mq_message)",
    "an entry": "(SELECT MAX(error) FROM mq_polled_row)",
}
# Statements before the table, its columns, and statements after it; {loot} is the reading code, {t} the table.
TRICKS = {
    "computed column": ((), "loot COMPUTED BY ({loot})", ()),
    "computed by a function": (
        ("CREATE FUNCTION f_{t} RETURNS varchar(50) AS BEGIN RETURN {loot}; END",),
        "loot COMPUTED BY (f_{t}())",
        (),
    ),
    "altered later": (
        (),
        "loot varchar(50)",
        ("ALTER TABLE {t} DROP loot", "ALTER TABLE {t} ADD loot COMPUTED BY ({loot})"),
    ),
    "trigger": (
        (),
        "loot varchar(50)",
        ("CREATE TRIGGER g_{t} FOR {t} BEFORE UPDATE AS BEGIN NEW.loot = {loot}; END",),
    ),
    "trigger with a statement": (
        (),
        "loot varchar(50)",
        (
            "CREATE TRIGGER g_{t} FOR {t} BEFORE UPDATE AS DECLARE v varchar(50); BEGIN"
            " EXECUTE STATEMENT 'SELECT {loot} FROM rdb$database' WITH CALLER PRIVILEGES INTO v; NEW.loot = v; END",
        ),
    ),
    "check": ((), "loot varchar(50), CONSTRAINT c_{t} CHECK (status <> 'A' OR {loot} IS NULL)", ()),
    "check of a domain": (
        ("CREATE DOMAIN d_{t} AS varchar(50) CHECK (VALUE IS NULL OR VALUE <> {loot})",),
        "loot d_{t}",
        (),
    ),
    "index": (
        (),
        "loot varchar(50)",
        ("CREATE INDEX x_{t} ON {t} COMPUTED BY (id + COALESCE(CHAR_LENGTH({loot}), 0))",),
    ),
}


@pytest.fixture
def secrets(session: Session, sql: Sql, queue: str) -> Iterator[None]:
    """A table of the DBA's that is adopted and has a feed, with a claim entry, and a message in another queue."""
    if not sql("SELECT 1 AS one FROM rdb$relations WHERE rdb$relation_name = 'PAYROLL'"):
        sql("CREATE TABLE payroll (id integer NOT NULL PRIMARY KEY, pw varchar(50), status char(1), sync bigint)")
        sql("CREATE INDEX payroll_status ON payroll (status, id)")
        sql("CREATE INDEX payroll_sync ON payroll (sync)")
    sql(f"INSERT INTO payroll (id, pw, status) VALUES (1, '{SECRET}', 'N')")
    call(session, "send", queue, SECRET)
    call(
        session,
        "adopt_table",
        queue,
        "payroll",
        key_columns="id",
        status_column="status",
        ready_value="N",
        active_value="A",
        done_value="D",
        error_value="E",
    )
    call(session, "create_feed", queue, "payroll", "id", "sync")
    call(session, "publish_feed", queue)
    [row] = call(session, "claim_rows", queue)
    call(session, "finish_rows", row["batch_key"], dead_letter(row["id"], SECRET))
    yield
    call(session, "unadopt_table", queue)
    call(session, "drop_feed", queue)
    sql("DELETE FROM payroll")  # objects of other tests depend on the table


@pytest.fixture
def mallory(server: Server, database: Database, sql: Sql, secrets: None) -> Iterator[tuple[str, str]]:
    """The URL of a login that may create all kinds of objects and has all roles."""
    name = f"login_{uuid.uuid4().hex[:12]}"
    for kind in ("TABLE", "PROCEDURE", "FUNCTION", "DOMAIN", "VIEW", "EXCEPTION"):
        sql(f"GRANT CREATE {kind} TO USER {name}")
    for role in ("mq_producer", "mq_consumer", "mq_operator"):
        for row in sql(
            "SELECT TRIM(rdb$relation_name) AS name, rdb$object_type AS kind FROM rdb$user_privileges"
            " WHERE rdb$user = %s AND rdb$privilege = 'X'",
            role.upper(),
        ):
            sql(f"GRANT EXECUTE ON {'FUNCTION' if row['kind'] == 15 else 'PROCEDURE'} {row['name']} TO USER {name}")
    with server.login(database.url, name) as url:
        yield url, name.upper()


def tried(calls: Callable[[], Any]) -> str:
    """The result of an attempt: its rows, or the error's text."""
    try:
        return str(calls())
    except (QueueError, DatabaseError) as error:
        return str(error)
    except driver().Error as error:
        return str(error)


def attack(session: Session, client: Client, table: str) -> Iterator[str]:
    """Make the queue use a table in every way; yields the visible results."""
    yield tried(
        lambda: call(
            session,
            "adopt_table",
            table,
            table,
            key_columns="id",
            status_column="status",
            ready_value="N",
            active_value="A",
            done_value="D",
            error_value="E",
        )
    )
    rows: list[Row] = []
    yield tried(lambda: rows.extend(call(session, "claim_rows", table, 5)) or rows)
    yield tried(lambda: call(session, "peek_rows", table))
    if rows:
        dead = "\n".join(dead_letter(row["id"], "x") for row in rows)
        yield tried(lambda: call(session, "finish_rows", rows[0]["batch_key"], dead))
        yield tried(lambda: call(session, "redrive_row", table, rows[0]["id"]))
        yield tried(lambda: call(session, "redrive_rows", table))
    yield tried(lambda: call(session, "create_feed", table, table, "id", "sync"))
    yield tried(lambda: call(session, "publish_feed", table))
    yield tried(lambda: call(session, "fetch_feed", table, "consumer"))
    yield tried(lambda: call(session, "list_feeds", table))
    yield tried(lambda: call(session, "watch_table", table))
    yield tried(lambda: client.execute(f"INSERT INTO {table} (id, status) VALUES (99, 'N')").fetchall())
    yield tried(lambda: client.execute(f"SELECT * FROM {table}").fetchall())


@pytest.mark.parametrize("loot", READS)
@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_that_a_table_s_owner_defines_reads_what_its_owner_may_not(
    server: Server, sql: Sql, session: Session, mallory: tuple[str, str], trick: str, loot: str
) -> None:
    url, _ = mallory
    table = f"t{uuid.uuid4().hex[:12]}"
    before, columns, behind = (
        [text.replace("{loot}", READS[loot]).replace("{t}", table) for text in texts]
        for texts in (TRICKS[trick][0], (TRICKS[trick][1],), TRICKS[trick][2])
    )
    seen: list[str] = []
    with server.client(url) as client:
        for statement in before:
            seen.append(tried(lambda s=statement: client.execute(s).fetchall()))  # type: ignore[misc]
        seen.append(
            tried(
                lambda: client.execute(
                    f"CREATE TABLE {table} (id integer NOT NULL PRIMARY KEY, status char(1), sync bigint, {columns[0]})"
                ).fetchall()
            )
        )
        if not sql("SELECT 1 AS one FROM rdb$relations WHERE rdb$relation_name = %s", table.upper()):
            assert SECRET not in str(seen)
            return  # 3.0 checks the rights at once
        for statement in (
            f"CREATE INDEX i_{table} ON {table} (status, id)",
            f"CREATE INDEX j_{table} ON {table} (sync)",
        ):
            client.execute(statement)
        for n in range(3):
            seen.append(
                tried(lambda n=n: client.execute(f"INSERT INTO {table} (id, status) VALUES ({n}, 'N')").fetchall())  # type: ignore[misc]
            )
        if trick == "altered later":
            # Harmless so far: statements prepared and cached now must not be used after the change.
            harmless = open_database(url).connect("mallory")
            seen.extend(attack(harmless, client, table))
            harmless.close()
            for procedure in ("unadopt_table", "drop_feed"):
                call(session, procedure, table)
            client.execute(f"UPDATE {table} SET status = 'N', sync = NULL")
    with server.client(url) as client:
        for statement in behind:
            seen.append(tried(lambda s=statement: client.execute(s).fetchall()))  # type: ignore[misc]
        mine = open_database(url).connect("mallory")
        seen.extend(attack(mine, client, table))
        mine.close()
    assert SECRET not in str(seen), [text for text in seen if SECRET in text]
    # Nor by the queue's owner, when the owner uses the table: rights are those of the caller.
    for procedure in ("unadopt_table", "drop_feed"):
        with suppress(QueueError, DatabaseError):
            call(session, procedure, table)


def test_every_call_on_another_users_table_is_refused_and_reveals_nothing(
    server: Server, sql: Sql, queue: str, mallory: tuple[str, str]
) -> None:
    url, name = mallory
    session = open_database(url).connect("mallory")
    before = sql("SELECT * FROM payroll")
    calls: dict[str, tuple[Any, ...]] = {
        "claim_rows": (queue, 5),
        "peek_rows": (queue,),
        "redrive_row": (queue, sql("SELECT id FROM mq_polled_row WHERE name = %s", queue)[0]["id"]),
        "redrive_rows": (queue,),
        "adopt_table": (f"{queue}x", "payroll", ADOPTED),
        "create_feed": (f"{queue}x", "payroll", "id", "sync"),
        "fetch_feed": (queue, "consumer"),
        "publish_feed": (queue,),
        "watch_table": ("payroll",),
    }
    for procedure, arguments in calls.items():
        told = tried(lambda p=procedure, a=arguments: call(session, p, *a))  # type: ignore[misc]
        assert SECRET not in told
        assert ("GRANT SELECT" in told and f"TO USER {name}" in told) or procedure == "watch_table", (procedure, told)
    [stats] = call(session, "list_feeds", queue)
    assert stats["unpublished"] is None
    session.close()
    assert sql("SELECT * FROM payroll") == before


def test_nothing_is_granted_to_a_procedure_and_nothing_stays_granted(session: Session, sql: Sql, secrets: None) -> None:
    assert (
        sql("SELECT * FROM rdb$user_privileges WHERE rdb$relation_name = 'PAYROLL' AND rdb$user <> rdb$grantor") == []
    )


def test_no_trigger_of_a_strangers_gets_the_rights_of_one_that_watches(
    server: Server, sql: Sql, session: Session, mallory: tuple[str, str]
) -> None:
    """The attacker guesses the next name and creates it before the queue does."""
    url, _ = mallory
    [row] = sql("SELECT GEN_ID(mq_watched_id, 0) AS n FROM rdb$database")
    table, name = f"t{uuid.uuid4().hex[:12]}", f"MQ_WATCH_{row['n'] + 1}"
    with server.client(url) as client:
        client.execute(f"CREATE TABLE {table} (id integer NOT NULL PRIMARY KEY)")
        client.execute(f"CREATE TRIGGER {name} FOR {table} AFTER INSERT AS BEGIN END")
    mine = f"m{uuid.uuid4().hex[:12]}"
    sql(f"CREATE TABLE {mine} (id integer NOT NULL PRIMARY KEY)")
    call(session, "watch_table", mine)
    assert sql("SELECT * FROM rdb$user_privileges WHERE rdb$user = %s AND rdb$user_type = 2", name) == []
    for left in call(session, "unwatch_table", mine):
        sql(left["statement"])
