"""The SQL as files: the same set in every folder, in one style. No server is needed."""

import re
from pathlib import Path

import pytest
from rowqueue import contract

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "runner" / "rowqueue"
DATABASES = sorted(path.name for path in (ROOT / "procedures").iterdir() if path.is_dir())
PROCEDURES = sorted((ROOT / "procedures").rglob("*.sql"))
SQL = sorted([*PROCEDURES, *(ROOT / "migrations").glob("*/*.sql")])
HEADER = ("Arguments", "Returns", "Errors", "Transaction", "Example")


def names(paths: list[Path]) -> list[str]:
    return [f"{engine(path)}/{path.stem}" for path in paths]


def engine(path: Path) -> str:
    return path.relative_to(ROOT).parts[1]


def area(path: Path) -> str:
    return path.relative_to(ROOT).parts[2]


@pytest.mark.parametrize("database", DATABASES)
def test_a_database_folder_holds_exactly_the_files_of_the_contract(database: str) -> None:
    """Each file in its area: procedures for users at the top, internal ones under internal/."""
    found = {path for path in PROCEDURES if engine(path) == database}
    # NAME.4.sql: the text for version 4 of the server and later
    variants = {path for path in found if len(path.suffixes) == 2}
    known = contract.load()
    assert found - variants == {known.file(database, name) for name in (*known.objects(database), contract.GRANTS)}
    assert {path.with_name(f"{path.name.partition('.')[0]}.sql") for path in variants} <= found
    assert {area(path) for path in found} - {"grants.sql"} == set(contract.AREAS)


@pytest.mark.parametrize("path", PROCEDURES, ids=names(PROCEDURES))
def test_what_is_internal_to_an_area_is_not_used_by_another(path: Path) -> None:
    """Some are done on messages of the queue or send some; and its claims send those of schedules."""
    if path.stem == contract.GRANTS:
        return
    code = re.sub(r"--.*", "", path.read_text("utf-8"))
    used = {word for word in re.findall(r"(?<!INDEX )\bmq[._](\w+)", code) if word in contract.load().internals}
    more = {
        **{name: {"queue"} for name in ("operations", "results", "topics", "schedules")},
        "queue": {"schedules"},
        "subscriptions": {"queue", "topics"},
    }
    may = {"common", area(path)} | more.get(area(path), set())
    outside = {name for name in used if contract.load().internals[name].area not in may}
    assert outside == set()


@pytest.mark.parametrize("database", DATABASES)
def test_every_database_with_procedures_has_numbered_migrations_and_types(database: str) -> None:
    migrations = sorted(path.stem for path in (ROOT / "migrations" / database).glob("*"))
    assert migrations
    assert [name[:14] for name in migrations] == [f"rowqueue_{number:04}_" for number in range(1, len(migrations) + 1)]
    assert set(contract.load().types[database]) == {"text", "integer", "bigint", "number", "flag", "time", "key"}


@pytest.mark.parametrize("path", PROCEDURES, ids=names(PROCEDURES))
def test_a_procedure_file_opens_with_its_header(path: Path) -> None:
    header = re.match(r"(?:--.*\n)+", path.read_text("utf-8"))
    assert header, "no comment at the top"
    lines = header[0].splitlines()
    stem = path.stem.partition(".")[0]
    assert re.match(rf"-- {stem}: \S", lines[0])
    words = [match[1] for line in lines if (match := re.match(r"-- (\w+): ", line))]
    assert words == [stem, *HEADER]


@pytest.mark.parametrize("path", PROCEDURES, ids=names(PROCEDURES))
def test_a_procedure_file_lists_the_errors_of_the_contract(path: Path) -> None:
    """wrong_isolation is for the databases that have it."""
    procedure = contract.load().every.get(path.stem.partition(".")[0])
    if procedure is None:
        return
    line = re.search(r"^-- Errors: +(.*(?:\n--  +.*)*)", path.read_text("utf-8"), re.M)
    assert line
    for name in set(procedure.errors) - {"wrong_isolation"}:
        assert f"{contract.load().errors[name].number} {name}" in line[1]
    if not procedure.errors:
        assert line[1] == "none"


@pytest.mark.parametrize("path", SQL, ids=names(SQL))
def test_sql_is_written_in_the_house_style(path: Path) -> None:
    text = path.read_bytes()
    assert text.endswith(b"\n") and not text.endswith(b"\n\n")
    assert b"\t" not in text and b"\r" not in text
    for number, line in enumerate(text.decode("utf-8").splitlines(), 1):
        assert line == line.rstrip(), f"line {number}: blanks at the end"
        code = line.partition("--")[0]
        assert not re.search(r"\bsp_(?!((get|release)applock|executesql)\b)", code), f"line {number}: sp_"
        assert not re.search(r"\b(select|insert into|delete from|create|begin|end|where)\b", code) or "'" in code, (
            f"line {number}: keywords are written in capitals"
        )


@pytest.mark.parametrize("name", sorted(contract.load().every))
def test_the_contract_is_complete(name: str) -> None:
    entry = contract.load().every[name]
    assert entry.summary.endswith(".") and entry.roles
    assert set(entry.errors) <= set(contract.load().errors)
    kinds = set(contract.load().types["postgresql"])
    assert {item.type for item in (*entry.arguments, *entry.columns)} <= kinds
    assert {item.limit for item in entry.arguments} <= {None, *contract.load().limits}
    optional = [argument.optional for argument in entry.arguments]
    assert optional == sorted(optional), "arguments that can be left out come last"


REGISTRY = RUNNER / "databases" / "registry.py"  # which finds them by the schemes of their URLs
SOURCES = sorted(path for path in RUNNER.rglob("*.py") if path.parent.name not in DATABASES and path != REGISTRY)


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(RUNNER)) for path in SOURCES])
def test_no_code_of_one_engine_is_outside_its_package(path: Path) -> None:
    foreign = re.compile(r"psycopg|postgres|pymysql|mysql|mariadb|pymssql|sqlserver|firebird|\bpg_|\bmq\.", re.I)
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        assert not foreign.search(line), f"line {number}: {line.strip()}"


MYSQL = [path for path in PROCEDURES if engine(path) == "mysql"]


@pytest.mark.parametrize("path", MYSQL, ids=names(MYSQL))
def test_mysql_reads_without_locks_and_in_the_order_of_its_index(path: Path) -> None:
    """In IF, WHILE and SET the server locks the rows that a subquery reads, and claims would end in deadlocks; with a
    column in ORDER BY that equals a parameter MariaDB 10.11 sorts the whole backlog."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        code = line.partition("--")[0]
        assert not re.search(r"\b(IF|ELSEIF|WHILE|UNTIL)\b.*\(\s*SELECT\b", code), f"line {number}"
        assert not re.search(r"\bSET [pv]_\w+ = .*\(\s*(SELECT\b|$)", code), f"line {number}"
        assert not re.search(r"\bORDER BY (\w\.)?type,", code), f"line {number}"


FIREBIRD = [path for path in PROCEDURES if engine(path) == "firebird"]


@pytest.mark.parametrize("path", FIREBIRD, ids=names(FIREBIRD))
def test_firebird_skips_locked_rows_by_a_cursor_or_a_delete_only(path: Path) -> None:
    """UPDATE ... SKIP LOCKED loses rows on 5.0: see tests/engines/firebird/test_skip_locked.py. A cursor that skips
    takes the lock as well, or there is none to skip for others, and 3.0 and 4.0 know neither."""
    code = "\n".join(line.partition("--")[0] for line in path.read_text("utf-8").splitlines())
    skips = re.findall(r"\bSKIP\s+LOCKED\b", code, re.I)
    cursors = re.findall(r"\bWITH\s+LOCK\s+SKIP\s+LOCKED\s+INTO\b[^;]*?\bAS\s+CURSOR\b", code, re.I)
    deletes = re.findall(r"\bDELETE\s+FROM\s+[^;]*?\bSKIP\s+LOCKED\s+RETURNING\b", code, re.I)
    assert len(skips) == len(cursors) + len(deletes)
    assert not skips or path.suffixes == [".5", ".sql"]


@pytest.mark.parametrize("path", FIREBIRD, ids=names(FIREBIRD))
def test_firebird_bounds_a_part_of_an_index_by_values_that_belong_to_it(path: Path) -> None:
    """Of a part of an index's columns the engine knows no bound without its end: it reads all that is equal."""
    code = "\n".join(line.partition("--")[0] for line in path.read_text("utf-8").splitlines())
    assert not re.search(r"\b(type|priority) *[<>](?![=>])", re.sub(r"\bIF \([^\n]*\n", "", code))
