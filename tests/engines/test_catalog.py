"""What the database's own catalog shows of the queue: its indexes, which queue_health looks for, and its comments."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from support.contract import internals

Sql = Callable[..., list[dict[str, Any]]]

# All indexes of the queue's tables, as the records name them.
INDEXES = {
    "postgresql": (
        "SELECT t.relname || '.' || c.relname AS name FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indexrelid"
        " JOIN pg_class AS t ON t.oid = x.indrelid WHERE NOT c.relispartition"
        " AND c.relnamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace)"
    ),
    "mysql": (
        "SELECT DISTINCT CONCAT(table_name, '.', index_name) AS name FROM information_schema.statistics"
        " WHERE table_schema = DATABASE() AND table_name LIKE 'mq\\_%'"
    ),
    "sqlserver": (
        "SELECT CONCAT(t.name, N'.', i.name) AS name FROM sys.tables AS t"
        " INNER JOIN sys.indexes AS i ON i.object_id = t.object_id"
        " WHERE t.schema_id = SCHEMA_ID(N'mq') AND i.type > 0"
    ),
    "firebird": (
        "SELECT TRIM(rdb$relation_name) || '.' || TRIM(rdb$index_name) AS name FROM rdb$indices"
        " WHERE rdb$relation_name STARTING WITH 'MQ_'"
    ),
}
CONSTRAINTS = {
    "postgresql": "SELECT conname AS name FROM pg_constraint WHERE contype IN ('p', 'u')",
    "mysql": "SELECT 'PRIMARY' AS name",
    "sqlserver": "SELECT name FROM sys.key_constraints",
    "firebird": "SELECT TRIM(rdb$index_name) AS name FROM rdb$relation_constraints WHERE rdb$index_name IS NOT NULL",
}


def test_every_index_is_recorded(database: Database, sql: Sql) -> None:
    found = [row["name"] for row in sql(INDEXES[database.name].replace("%", "%%"))]
    recorded = [row["name"] for row in sql(f"SELECT name FROM {database.prefix}installed WHERE kind = 'index'")]
    assert sorted(recorded) == sorted(found)


@pytest.fixture
def connection(server: Server, installed_database: Database) -> Iterator[Any]:
    connection = server.client(installed_database.url)
    yield connection
    with suppress(Exception):
        connection.close()


@pytest.mark.level(3)
def test_queue_health_names_each_index_that_is_missing(
    connection: Any, server: Server, installed_database: Database
) -> None:
    engine = installed_database.name

    def run(text: str) -> list[dict[str, Any]]:
        cursor = connection.execute(text)
        return list(cursor.fetchall()) if cursor.description else []

    names = [row["name"] for row in run(INDEXES[engine])]
    keys = {row["name"] for row in run(CONSTRAINTS[engine])}
    assert len(names) > 30
    kept = [name for name in names if not dropped(server, run, engine, name, name.partition(".")[2] in keys)]
    assert len(kept) < 10
    assert [name for name in kept if not is_refused(engine, name)] == []
    assert missing(run, engine) == (0, "none")


def missing(run: Callable[[str], list[dict[str, Any]]], engine: str) -> tuple[int, str]:
    """What queue_health says about indexes."""
    statement = {
        "postgresql": "SELECT * FROM mq.queue_health()",
        "mysql": "CALL mq_queue_health()",
        "sqlserver": "EXEC mq.queue_health",
        "firebird": "SELECT * FROM mq_queue_health",
    }[engine]
    [row] = [row for row in run(statement) if row["name"] == "missing_indexes"]
    return int(row["measured"]), row["detail"]


def dropped(server: Server, run: Callable[[str], list[dict[str, Any]]], engine: str, name: str, is_key: bool) -> bool:
    """Drop an index, see that it is named, and bring it back. False: the server refuses to drop it."""
    table, _, index = name.partition(".")
    if engine in ("postgresql", "sqlserver"):
        begin = "BEGIN" if engine == "postgresql" else "BEGIN TRANSACTION"
        schema = "mq_internal" if table == "secret" else "mq"
        cascade = " CASCADE" if engine == "postgresql" else ""
        where = f"{schema}.{index}" if engine == "postgresql" else f"{index} ON {schema}.{table}"
        drop = f"ALTER TABLE {schema}.{table} DROP CONSTRAINT {index}{cascade}" if is_key else f"DROP INDEX {where}"
        undo = ["ROLLBACK"]
    elif engine == "mysql":
        begin, drop, undo = "DO 0", *mysql(run, table, index)
    else:
        begin, drop, undo = "SELECT 1 FROM rdb$database", *firebird(run, table, index, is_key)
    run(begin)
    try:
        run(drop)
    except Exception:
        if engine in ("postgresql", "sqlserver"):
            run("ROLLBACK")
        return False
    value, detail = missing(run, engine)
    for statement in undo:
        run(statement)
    assert (value, name in detail) == (1, True), (name, detail)
    return True


def mysql(run: Callable[[str], list[dict[str, Any]]], table: str, index: str) -> tuple[str, list[str]]:
    columns = run(
        "SELECT column_name AS name, collation AS direction, non_unique AS many FROM information_schema.statistics"
        f" WHERE table_schema = DATABASE() AND table_name = '{table}' AND index_name = '{index}' ORDER BY seq_in_index"
    )
    listed = ", ".join(f"`{row['name']}`{' DESC' if row['direction'] == 'D' else ''}" for row in columns)
    kind = "PRIMARY KEY" if index == "PRIMARY" else f"{'' if columns[0]['many'] else 'UNIQUE '}KEY {index}"
    drop = "PRIMARY KEY" if index == "PRIMARY" else f"KEY {index}"
    return f"ALTER TABLE {table} DROP {drop}", [f"ALTER TABLE {table} ADD {kind} ({listed})"]


def firebird(run: Callable[[str], list[dict[str, Any]]], table: str, index: str, is_key: bool) -> tuple[str, list[str]]:
    if not is_key:
        return f"ALTER INDEX {index} INACTIVE", [f"ALTER INDEX {index} ACTIVE"]
    columns = run(f"SELECT TRIM(rdb$field_name) AS name FROM rdb$index_segments WHERE rdb$index_name = '{index}'")
    listed = ", ".join(f'"{row["name"]}"' for row in columns)
    [row] = run(
        f"SELECT TRIM(rdb$constraint_type) AS kind FROM rdb$relation_constraints WHERE rdb$index_name = '{index}'"
    )
    add = f"ALTER TABLE {table} ADD CONSTRAINT {index} {row['kind']} ({listed})"
    return f"ALTER TABLE {table} DROP CONSTRAINT {index}", [add]


def is_refused(engine: str, name: str) -> bool:
    """MySQL needs the keys of columns that it numbers. On Firebird a plan in a procedure names the index."""
    if engine == "mysql":
        return name.endswith(".PRIMARY") or name == "mq_dead.dead_n"
    return engine == "firebird" and name.endswith("_PK")


# ---- comments


COMMENTS = {
    "postgresql": (
        "SELECT p.proname AS name, obj_description(p.oid, 'pg_proc') AS text FROM pg_proc AS p"
        " WHERE p.pronamespace = 'mq'::regnamespace UNION ALL"
        " SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class AS c"
        " WHERE c.relnamespace = 'mq'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition"
        " AND c.relname NOT LIKE 'my%%'"
    ),
    "mysql": (
        "SELECT SUBSTRING(routine_name, 4) AS name, routine_comment AS text FROM information_schema.routines"
        " WHERE routine_schema = DATABASE() AND routine_name LIKE 'mq\\_%%' UNION ALL"
        " SELECT SUBSTRING(table_name, 4), table_comment FROM information_schema.tables"
        " WHERE table_schema = DATABASE() AND table_name LIKE 'mq\\_%%'"
    ),
    "sqlserver": (
        "SELECT o.name, CAST(p.value AS nvarchar(1000)) AS text FROM sys.objects AS o"
        " LEFT JOIN sys.extended_properties AS p"
        " ON p.major_id = o.object_id AND p.minor_id = 0 AND p.name = N'MS_Description'"
        " WHERE o.schema_id = SCHEMA_ID(N'mq') AND o.type IN ('P', 'FN', 'IF', 'TF', 'V', 'U')"
    ),
    "firebird": (
        "SELECT SUBSTRING(LOWER(TRIM(name)) FROM 4) AS name, CAST(text AS varchar(1000)) AS text FROM ("
        " SELECT rdb$procedure_name AS name, rdb$description AS text FROM rdb$procedures"
        " WHERE rdb$procedure_name STARTING WITH 'MQ_' UNION ALL"
        " SELECT rdb$function_name, rdb$description FROM rdb$functions WHERE rdb$function_name STARTING WITH 'MQ_'"
        " UNION ALL SELECT rdb$relation_name, rdb$description FROM rdb$relations"
        " WHERE rdb$relation_name STARTING WITH 'MQ_') AS o"
    ),
}


def test_every_public_object_has_a_comment_and_the_catalog_shows_no_internal_one(database: Database, sql: Sql) -> None:
    found = {row["name"]: row["text"] for row in sql(COMMENTS[database.name])}
    known = contract.load()
    assert known.public(database.name).keys() <= found.keys()
    assert found.keys() & internals(database.name).keys() == set()
    assert [name for name, text in found.items() if not text] == []
    assert found["send"] == "Send one message that is ready now."


# Firebird 3.0 and 4.0 have no such list. On MySQL and MariaDB nobody names a column of a CALL's result in SQL.
RESERVED = {
    "postgresql": "SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')",
    "firebird": "SELECT LOWER(TRIM(rdb$keyword_name)) AS word FROM rdb$keywords WHERE rdb$keyword_reserved",
}
# The words of this list that could be names of results; T-SQL has no catalog of them.
TSQL = re.findall(
    r"\w+",
    "all as between by case check column current end exec file from group in index is key kill like load of on open "
    "option or order over percent plan print proc public read rule save schema select set table then to top tran "
    "trigger user values view when where while with",
)


def test_no_column_of_a_result_is_a_reserved_word(database: Database, sql: Sql, server: Server) -> None:
    columns = {column.name for procedure in contract.load().every.values() for column in procedure.columns}
    if database.name == "sqlserver":
        assert columns.isdisjoint(TSQL)
    elif database.name in RESERVED and server.name not in ("firebird-3.0", "firebird-4.0"):
        words = {row["word"] for row in sql(RESERVED[database.name])}
        assert len(words) > 50
        assert columns.isdisjoint(words)


def test_a_comment_is_no_change_of_an_object_and_follows_its_file(installed_database: Database) -> None:
    assert install.apply(installed_database) == install.Applied()
    installed = open_database(installed_database.url).installed() or {}
    assert [name for name, file in installed.items() if file.changed] == []
