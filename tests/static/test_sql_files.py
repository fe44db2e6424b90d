"""The SQL as files: the same set in every folder, in one style. No server is needed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rowqueue.install import contract
from rules import ROOT, offending
from rules import code as without_comments
from support.contract import internals

RUNNER = ROOT / "runner" / "rowqueue"
DATABASES = sorted(path.name for path in (ROOT / "procedures").iterdir() if path.is_dir())
PROCEDURES = sorted((ROOT / "procedures").rglob("*.sql"))
SQL = sorted([*PROCEDURES, *(ROOT / "migrations").glob("*/*.sql")])
PREFIX = r"(?:mq_internal\.|mq\.|i?mq_)"
HEADER = ("Arguments", "Returns", "Errors", "Transaction", "Example")


def engine(path: Path) -> str:
    return path.relative_to(ROOT).parts[1]


def code(path: Path) -> str:
    """A file's text without comments."""
    return without_comments(path.read_text("utf-8"))


def area(path: Path) -> str:
    return path.relative_to(ROOT).parts[2]


KNOWN = contract.load()


@pytest.mark.parametrize("database", DATABASES)
def test_a_database_folder_holds_the_procedures_and_views_of_the_contract_and_internal_files(database: str) -> None:
    """Those for users at the top of their area, all others under internal/."""
    found = {path for path in PROCEDURES if engine(path) == database and path.stem != contract.GRANTS}
    assert {area(path) for path in found} == set(KNOWN.areas)
    public = KNOWN.public(database)
    assert {(area(path), path.stem) for path in found if path.parent.name != "internal"} == {
        (home, name) for name, home in public.items()
    }
    twice = [
        path for path in found if path.stem in KNOWN.areas or (path.parent.name == "internal" and path.stem in public)
    ]
    assert twice == [], "a record's name has one meaning"


@pytest.mark.parametrize("database", DATABASES)
def test_an_area_replaces_only_internal_files_of_the_core(database: str) -> None:
    places: dict[str, list[Path]] = {}
    for path in PROCEDURES:
        if engine(path) == database and path.stem != contract.GRANTS:
            places.setdefault(path.name, []).append(path)
    for name, paths in places.items():
        cores = [path for path in paths if area(path) in contract.CORE]
        assert len(paths) == 1 or (len(paths) == 2 and len(cores) == 1), name


@pytest.mark.parametrize("database", DATABASES)
def test_an_area_uses_only_the_core_and_what_it_needs(database: str) -> None:
    """Its tables and internal files too; so the core can be installed without any area."""
    homes = KNOWN.public(database) | internals(database)
    for path in SQL:
        if path.parts[-3] == "migrations" and engine(path) == database:
            created = re.findall(
                rf"CREATE (?:GLOBAL TEMPORARY |UNLOGGED )?TABLE (?:IF NOT EXISTS )?{PREFIX}(\w+)", code(path)
            )
            homes |= dict.fromkeys(created, KNOWN.area_of_migration(path.stem) or "queue")

    def outside(path: Path) -> Iterator[str]:
        may = KNOWN.with_needs([area(path)])
        prefix = r"mq(?:_internal)?\." if database in ("postgresql", "sqlserver") else "i?mq_"
        for word in sorted(set(re.findall(rf"(?<!INDEX )\b{prefix}(\w+)", code(path))) & homes.keys()):
            if homes[word] not in may and (path.stem, word) != (contract.GRANTS, "consumer"):  # a role
                yield f"{word} of {homes[word]}"

    assert (
        offending([path for path in PROCEDURES if engine(path) == database and area(path) in KNOWN.areas], outside)
        == []
    )


def test_migrations_are_numbered_and_a_number_has_the_same_name_on_every_database() -> None:
    """An engine lacks the numbers of changes that it does not need."""
    every = [path for path in SQL if path.parts[-3] == "migrations"]
    assert offending(every, lambda path: [] if re.fullmatch(r"rowqueue_\d{4}_[a-z_]+", path.stem) else ["name"]) == []
    assert {engine(path) for path in every} == set(DATABASES)
    numbers = {path.stem.split("_")[1] for path in every}
    assert len({path.stem for path in every}) == len(numbers)


def test_every_database_has_the_types_of_the_contract() -> None:
    kinds = {"text", "integer", "bigint", "flag", "time", "key"}
    for tables, more in ((KNOWN.arguments, "name"), (KNOWN.results, "number")):
        assert {database: set(types) for database, types in tables.items()} == dict.fromkeys(DATABASES, kinds | {more})


def test_a_procedure_file_opens_with_its_header() -> None:
    def faults(path: Path) -> Iterator[str]:
        header = re.match(r"(?:--.*\n)+", path.read_text("utf-8"))
        lines = header[0].splitlines() if header else [""]
        stem = path.stem
        if not re.match(rf"-- {stem}: \S", lines[0]):
            yield f"the first line is not '-- {stem}: what it does'"
        words = [match[1] for line in lines if (match := re.match(r"-- (\w+): ", line))]
        if path.parent.name == "internal" or stem == contract.GRANTS:
            if words[1:] != [word for word in ("Arguments", "Returns", "Transaction") if word in words[1:]]:
                yield f"the header of an internal file has {words}"
        elif words != [stem, *HEADER]:
            yield f"the header has {words}"

    assert offending(PROCEDURES, faults) == []


def test_a_procedure_file_lists_the_errors_of_the_contract() -> None:
    """wrong_isolation is for the databases that have it, and not every database notices that a table is gone."""
    known = contract.load()

    def faults(path: Path) -> Iterator[str]:
        procedure = known.every.get(path.stem)
        if procedure is None:
            return
        line = re.search(r"^-- Errors: +(.*(?:\n--  +.*)*)", path.read_text("utf-8"), re.M)
        text = line[1] if line else ""
        for name in sorted(set(procedure.errors) - {"wrong_isolation", "not_found"}):
            if f"{known.errors[name].number} {name}" not in text:
                yield f"Errors lacks {known.errors[name].number} {name}"
        for name in sorted(set(re.findall(r"500\d\d (\w+)", text)) - set(procedure.errors)):
            yield f"Errors has {name}, which the contract lacks"
        if not procedure.errors and text != "none":
            yield "Errors is not 'none'"

    assert offending(PROCEDURES, faults) == []


def test_sql_is_written_in_the_house_style() -> None:
    def faults(path: Path) -> Iterator[str]:
        text = path.read_bytes()
        if not text.endswith(b"\n") or text.endswith(b"\n\n"):
            yield "does not end with one line end"
        if b"\t" in text or b"\r" in text:
            yield "a tab or a carriage return"
        for number, line in enumerate(text.decode("utf-8").splitlines(), 1):
            if line != line.rstrip():
                yield f"line {number}: blanks at the end"
            code = line.partition("--")[0]
            if re.search(r"\bsp_(?!((get|release)applock|executesql|addextendedproperty)\b)", code):
                yield f"line {number}: sp_"
            if re.search(r"\b(select|insert into|delete from|create|begin|end|where)\b", code) and "'" not in code:
                yield f"line {number}: keywords are written in capitals"

    assert offending(SQL, faults) == []


# Lines that the procedures of a database may have, and those of its core, which is to be read in an evening. Before one
# is raised, look for what can go. The area steps has 170 to 260 lines, and 100 in the core: steps end with the message
# and keep it from being rescued; one that was cancelled while it was active is deleted wherever an attempt ends.
BUDGETS = {
    "postgresql": (9_772, 5_000),
    "mysql": (11_948, 6_320),
    "sqlserver": (11_767, 6_353),  # a take of a fair queue counts its rounds together
    "firebird": (11_962, 6_468),  # without JSON functions: the core composes steps of the archive
}


@pytest.mark.parametrize("database", DATABASES)
def test_procedures_and_their_core_keep_to_their_budgets(database: str) -> None:
    lines = {path: path.read_text("utf-8").count("\n") for path in PROCEDURES if engine(path) == database}
    core = sum(count for path, count in lines.items() if area(path) in contract.CORE)
    every, of_core = BUDGETS[database]
    assert sum(lines.values()) <= every and core <= of_core


def test_the_contract_is_complete() -> None:
    known = contract.load()
    kinds = set(known.arguments["postgresql"]), set(known.results["postgresql"])
    for name, entry in known.every.items():
        assert entry.summary.endswith(".") and entry.roles, name
        assert set(entry.errors) <= set(known.errors), name
        assert {argument.kind for argument in (*entry.arguments, *entry.options)} <= kinds[0], name
        assert {column.type for column in entry.columns} <= kinds[1], name
        assert {item.limit for item in (*entry.arguments, *entry.options)} <= {None, *known.limits}, name
        optional = [argument.optional for argument in entry.arguments]
        assert optional == sorted(optional), f"{name}: arguments that can be left out come last"


REGISTRY = RUNNER / "databases" / "registry.py"  # which finds them by the schemes of their URLs
SOURCES = sorted(path for path in RUNNER.rglob("*.py") if path.parent.name not in DATABASES and path != REGISTRY)


def faulty_lines(path: Path, *patterns: str) -> Iterator[str]:
    """The lines whose SQL matches one of the patterns; comments are left out."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if any(re.search(pattern, line.partition("--")[0]) for pattern in patterns):
            yield f"line {number}: {line.strip()}"


def test_no_code_of_one_engine_is_outside_its_package() -> None:
    foreign = re.compile(r"psycopg|postgres|pymysql|mysql|mariadb|pymssql|sqlserver|firebird|\bpg_|\bmq\.", re.I)

    def faults(path: Path) -> Iterator[str]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if foreign.search(line):
                yield f"line {number}: {line.strip()}"

    assert offending(SOURCES, faults) == []


MYSQL = [path for path in PROCEDURES if engine(path) == "mysql"]


def test_mysql_reads_without_locks_and_in_the_order_of_its_index() -> None:
    """In IF, WHILE and SET the server locks the rows that a subquery reads, and claims would end in deadlocks; with a
    column in ORDER BY that equals a parameter MariaDB 10.11 sorts the whole backlog."""
    patterns = (
        r"\b(IF|ELSEIF|WHILE|UNTIL)\b.*\(\s*SELECT\b",
        r"\bSET [pv]_\w+ = .*\(\s*(SELECT\b|$)",
        r"\bORDER BY (\w\.)?type,",
    )
    assert offending(MYSQL, lambda path: faulty_lines(path, *patterns)) == []


FIREBIRD = [path for path in PROCEDURES if engine(path) == "firebird"]


def test_firebird_skips_locked_rows_by_a_cursor_or_a_delete_only() -> None:
    """UPDATE ... SKIP LOCKED loses rows on 5.0: see tests/engines/firebird/test_skip_locked.py. A cursor that skips
    takes the lock as well, or there is none to skip for others. 3.0 and 4.0 know neither: for them it is a comment."""

    def faults(path: Path) -> Iterator[str]:
        whole = "\n".join(line.partition("--")[0] for line in path.read_text("utf-8").splitlines())
        code = re.sub(r"/\*!5 (.*?) \*/", r"\1", whole, flags=re.S)
        skips = re.findall(r"\bSKIP\s+LOCKED\b", code, re.I)
        cursors = re.findall(r"\bWITH\s+LOCK\s+SKIP\s+LOCKED\s+INTO\b[^;]*?\bAS\s+CURSOR\b", code, re.I)
        deletes = re.findall(r"\bDELETE\s+FROM\s+[^;]*?\bSKIP\s+LOCKED\s+RETURNING\b", code, re.I)
        if len(skips) != len(cursors) + len(deletes):
            yield "SKIP LOCKED outside of a locking cursor and of DELETE … RETURNING"
        if "SKIP LOCKED" in re.sub(r"/\*!5 .*? \*/", "", whole, flags=re.S):
            yield "SKIP LOCKED outside of a comment for 5.0"

    assert offending(FIREBIRD, faults) == []


def test_firebird_bounds_a_part_of_an_index_by_values_that_belong_to_it() -> None:
    """Of a part of an index's columns the engine knows no bound without its end: it reads all that is equal."""

    def faults(path: Path) -> Iterator[str]:
        code = "\n".join(line.partition("--")[0] for line in path.read_text("utf-8").splitlines())
        for match in re.finditer(r"\b(type|priority) *[<>](?![=>])", re.sub(r"\bIF \([^\n]*\n", "", code)):
            yield match[0]

    assert offending(FIREBIRD, faults) == []
