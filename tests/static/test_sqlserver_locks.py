"""What Microsoft's documentation says about locks, indexes and results, as rules for the T-SQL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowqueue.databases.indexes import indexes as indexes_of
from rowqueue.install import contract
from rules import ROOT, offending
from rules import code as without_comments

MIGRATIONS = sorted((ROOT / "migrations" / "sqlserver").glob("*.sql"))
PROCEDURES = sorted((ROOT / "procedures" / "sqlserver").rglob("*.sql"))
WIDTHS = {"bigint": 8, "int": 4, "smallint": 2, "tinyint": 1, "bit": 1, "datetime2": 8, "uniqueidentifier": 16}
# Calls that send: locks of theirs at the caller's level are what the caller asked for; see decision 9.
KEEP_THE_LEVEL = {"send", "send_batch", "send_message", "publish"}


def code(path: Path) -> str:
    return without_comments(path.read_text("utf-8"))


@dataclass
class Index:
    table: str
    clustered: bool
    bytes: int


def indexes() -> dict[str, Index]:
    """The indexes and keys that all migrations together leave, by name."""
    found: dict[str, Index] = {}
    widths: dict[tuple[str, str], int] = {}
    statements = [statement for path in MIGRATIONS for statement in code(path).split(";")]

    def add(table: str, name: str, clustered: bool, columns: str) -> None:
        assert name not in found
        names = [column.split()[0] for column in columns.split(",")]
        found[name] = Index(table, clustered, sum(widths[table, column] for column in names))

    for statement in statements:
        columns = r"(?:CREATE TABLE mq\.(?=\w+ \()|ALTER TABLE mq\.(?=\w+ ADD\n))(\w+)(.*)"
        if made := re.search(columns, statement, re.S):
            for column, kind, size in re.findall(r"(?m)^    ([a-z]\w*) (\w+)(?: ?\((\d+)\))?", made[2]):
                each = 2 if kind.startswith("n") else 1
                widths[made[1], column] = WIDTHS.get(kind, each * int(size or 8000))
        if made := re.search(r"CREATE TABLE mq\.(\w+) \((.*)\)", statement, re.S):
            table = made[1]
            for column, name in re.findall(r"(?m)^    (\w+) .*CONSTRAINT (\w+) PRIMARY KEY,?$", made[2]):
                add(table, name, True, column)
            for name, kind, columns in re.findall(
                r"CONSTRAINT (\w+) ((?:PRIMARY KEY|UNIQUE)(?: NONCLUSTERED)?) \((.*?)\)", made[2]
            ):
                add(table, name, kind == "PRIMARY KEY", columns)
        if made := re.search(r"CREATE (?:UNIQUE )?(CLUSTERED )?INDEX (\w+) ON mq\.(\w+) \((.*?)\)", statement):
            add(made[3], made[2], bool(made[1]), made[4])
        if made := re.search(r"DROP (?:CONSTRAINT|INDEX) (\w+)", statement):
            found.pop(made[1], None)
        added = r"ALTER TABLE mq\.(\w+) ADD CONSTRAINT (\w+) PRIMARY KEY( NONCLUSTERED)? \((.*?)\)"
        if made := re.search(added, statement):
            add(made[1], made[2], not made[3], made[4])
    return found


INDEXES = indexes()
HEAPS = {index.table for index in INDEXES.values()} - {index.table for index in INDEXES.values() if index.clustered}


def test_no_key_can_exceed_what_the_server_takes() -> None:
    """900 bytes in a clustered index, 1,700 in another: a longer row is an error, and CREATE only warns."""
    assert len(INDEXES) > 40
    limits = {name: (index.bytes, 900 if index.clustered else 1700) for name, index in INDEXES.items()}
    assert {name: found for name, found in limits.items() if found[0] > found[1]} == {}


def test_queue_health_looks_for_every_index_of_the_migrations() -> None:
    recorded = [found for path in MIGRATIONS for found in indexes_of(path.read_text("utf-8"), "")]
    assert sorted(recorded) == sorted(f"{index.table}.{name}" for name, index in INDEXES.items())


def test_a_hint_names_an_index_of_its_table() -> None:
    def wrong(path: Path) -> Iterator[str]:
        for table, name in re.findall(r"\bmq\.(\w+)(?: AS \w+)? WITH \([^()]*\bINDEX \((\w+)\)", code(path)):
            if INDEXES[name].table != table:
                yield f"{table}: {name}"

    assert offending(PROCEDURES, wrong) == []
    every = "".join(map(code, PROCEDURES))
    read = re.findall(r"\bmq\.\w+(?: AS \w+)? WITH \([^()]*\bINDEX \(", every)
    assert len(read) == len(re.findall(r"\bINDEX \(", every)) > 60


def test_a_row_of_a_heap_or_of_mq_polled_row_is_found_through_a_named_index() -> None:
    """In a small table the server prefers a scan, which waits for the rows of others. Who reads all rows is listed."""
    whole = {
        "list_bindings": {"binding"},
        "unbind_topic": {"binding"},  # an operator's call; either name may be left out
        "list_subscriptions": {"subscription"},
        "list_feeds": {"feed_consumer"},
        "list_consumers": {"consumer", "report"},
        "throughput": {"report"},
        "forget_reports": {"consumer"},  # READPAST
    }
    tables = "|".join([*sorted(HEAPS), "polled_row"])

    def unnamed(path: Path) -> Iterator[str]:
        # A row of mq.polled_row is also found by its id, the clustered key.
        uses = rf"(?:FROM|JOIN|UPDATE|DELETE) mq\.({tables})\b(?: AS (\w+))?([^;]*)"
        for table, alias, rest in re.findall(uses, code(path)):
            if "INDEX (" in rest.split("WHERE")[0].split(" ON ")[0] or table in whole.get(path.stem, ()):
                continue
            if not (table == "polled_row" and alias and re.search(rf" ON {alias}\.id = ", rest)):
                yield table

    assert {"bucket", "binding", "consumer", "feed_consumer", "group_freed", "report", "ring", "subscription"} == HEAPS
    assert offending(PROCEDURES, unnamed) == []


def test_every_name_of_schema_mq_exists() -> None:
    """No parser looks names up, and the server looks most of them up only when the statement runs."""
    made = {name for path in MIGRATIONS for name in re.findall(r"CREATE (?:TABLE|TYPE) mq\.(\w+)", code(path))}
    known = made | set(contract.load().files("sqlserver"))

    def unknown(path: Path) -> set[str]:
        return set(re.findall(r"\bmq\.(?!N?')(\w+)", code(path))) - known

    assert offending(PROCEDURES, unknown) == []


def bare(path: Path) -> str:
    """The code without the contents of its texts."""
    return re.sub(r"N?'(?:[^']|'')*'", "''", code(path))


def items(listed: str) -> list[str]:
    """What a list holds, which commas separate."""
    while listed != (flat := re.sub(r"\([^()]*\)", "", listed)):
        listed = flat
    return [item.strip() for item in listed.split(",") if item.strip()]


def parameters(path: Path) -> list[str]:
    head = re.search(r"CREATE OR ALTER (?:PROCEDURE|FUNCTION) \S+\s(.*?)\n(?:AS|RETURNS)\b", bare(path), re.S)
    listed = head[1].strip() if head else ""
    return items(listed[1:-1] if listed.startswith("(") else listed)


def test_every_variable_is_declared_once() -> None:
    """No parser looks for it, and the server refuses to create the procedure."""

    def wrong(path: Path) -> Iterator[str]:
        text = bare(path)
        listed = ",".join(re.findall(r"(?s)\b(?:DECLARE|RETURNS) (?=@)(.*?)(?:;|\nAS\n)", text))
        names = [item.split()[0].lower() for item in [*parameters(path), *items(listed)]]
        named = re.sub(r"(?s)\bEXEC (?:@\w+ = )?(?:sys\.)?sp_.*?;", lambda call: re.sub(r"@\w+ =", "", call[0]), text)
        yield from sorted({name for name in names if names.count(name) > 1})
        yield from sorted({name.lower() for name in re.findall(r"(?<!@)@\w+", named)} - set(names))

    assert offending(PROCEDURES, wrong) == []


def test_every_call_passes_what_the_procedure_takes() -> None:
    taken = {path.stem: parameters(path) for path in PROCEDURES}

    def wrong(path: Path) -> Iterator[str]:
        for name, listed in re.findall(r"\bEXEC mq(?:_internal)?\.(\w+)\b(.*?);", bare(path), re.S):
            given, known = items(listed), taken[name]
            needed = [one for one in known if "=" not in one]
            results = all(
                "OUTPUT" in one for value, one in zip(given, known, strict=False) if value.endswith(" OUTPUT")
            )
            if not len(needed) <= len(given) <= len(known) or not results:
                yield f"{name}{listed}"

    assert offending(PROCEDURES, wrong) == []


def test_locked_reads_lock_rows_and_no_pages() -> None:
    """READPAST skips locked rows but waits for locked pages; with row versions it needs READCOMMITTEDLOCK."""
    hints = "|".join(
        (
            "(?:UPDLOCK, )?ROWLOCK(?:, READCOMMITTEDLOCK)?",
            "(?:UPDLOCK, )?READPAST, ROWLOCK, READCOMMITTEDLOCK",
            "UPDLOCK, HOLDLOCK, ROWLOCK",
            "REPEATABLEREAD, ROWLOCK",
        )
    )
    good = rf"WITH \((?:{hints})(?:, NOWAIT)?(?:, FORCESEEK, INDEX \(\w+\)|\{{hint\}})?\)"
    locks = r"WITH \([^()]*(?:LOCK|READPAST|REPEATABLE)[^()]*(?:\([^()]*\))?[^()]*\)"

    def bad(path: Path) -> list[str]:
        return [found for found in re.findall(locks, code(path)) if not re.fullmatch(good, found)]

    assert offending(PROCEDURES, bad) == []


def test_the_result_of_every_application_lock_is_checked() -> None:
    """As the victim of a deadlock, the call returns without the lock and without an error."""

    def unchecked(path: Path) -> list[str]:
        calls = re.findall(r"EXEC [^;]*\bsp_getapplock\b[^;]*;\s+[^\n]*", code(path))
        return [call for call in calls if not re.match(r"EXEC @got = [^;]*;\s+(?:IF @got <|WHILE @got >=) 0\b", call)]

    assert offending(PROCEDURES, unchecked) == []


def test_no_aggregate_reads_nulls() -> None:
    """Warning 8153 would come before the rows, as a result of its own in ODBC."""

    def without_else(path: Path) -> list[str]:
        found = re.findall(r"\b(?:MIN|MAX|SUM|COUNT|COUNT_BIG|AVG)\(CASE\b.*?\bEND\)", code(path))
        return [call for call in found if " ELSE " not in call]

    assert offending(PROCEDURES, without_else) == []


def test_calls_that_read_do_not_keep_the_level_of_the_caller() -> None:
    """At SERIALIZABLE the ranges that a call has read stay locked until the caller's transaction ends."""

    def kept(path: Path) -> Iterator[str]:
        text = code(path)
        public = contract.load().every.get(path.stem)
        reads = re.search(r"\b(?:FROM|JOIN) mq\.(?!require|raise)\w+", text)
        sets = "SET TRANSACTION ISOLATION LEVEL READ " in text
        if public and "PROCEDURE" in text and reads and not sets and path.stem not in KEEP_THE_LEVEL:
            yield "keeps the caller's level"

    assert offending(PROCEDURES, kept) == []
