"""SQL Server's driver without a server: texts, errors, versions and rights."""

import re
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Conflict, DatabaseError, Disconnected, NotAllowed, ReadOnly, SchemaMissing
from rowqueue.databases.sqlserver import calls, errors, suitable, yoyo
from rowqueue.databases.sqlserver import rights as sqlserver_rights
from rowqueue.install import apply as install
from rowqueue.install import contract

pymssql = pytest.importorskip("pymssql")
_mssql = pytest.importorskip("pymssql._mssql")

SQL = Path(__file__).resolve().parents[2] / "procedures" / "sqlserver"
FILES = {path.stem: path.read_text("utf-8") for path in sorted(SQL.rglob("*.sql"))}


# ---- texts -----------------------------------------------------------------------------------------------------------


def sent(procedure: str, *values: Any) -> str:
    """What goes to the server for a call."""
    statement, parameters = calls.unbroken(procedure, values)
    text = _mssql.substitute_params(statement, parameters, "UTF-8")
    return text.decode() if isinstance(text, bytes) else str(text)


def read(literal: str) -> str:
    """A text as T-SQL reads it: a backslash and the line end after it are removed."""
    return re.sub(r"\\\r?\n", "", literal)


@pytest.mark.parametrize("text", ["C:\\out\\\n18,,boom", "a\\\r\nb", "\\\\\n", "\\\n\\\n", "\\\n\r\n"])
def test_a_backslash_before_a_line_end_is_kept(text: str) -> None:
    statement = sent("finish_batch", "k", text, 0)
    assert read(statement) == statement
    [mark] = re.findall(r", N'(\w{32})', N''\)", statement)
    assert text in statement.replace(mark, "")


def test_other_texts_are_sent_unchanged() -> None:
    assert sent("send", "a", "b\\n\n") == "EXEC mq.send N'a', N'b\\n\n'"
    assert sent("finish_batch", "k", None, 7) == "EXEC mq.finish_batch N'k', NULL, 7"


def test_values_beside_a_marked_text_keep_their_places() -> None:
    statement = sent("send_message", "t", "x\\\ny", None, 3)
    assert re.fullmatch(r"DECLARE @p1 .*; EXEC mq\.send_message N't', @p1, NULL, 3", statement, re.S)


# ---- errors ----------------------------------------------------------------------------------------------------------


def translated(number: int, text: bytes = b"what it says") -> Exception:
    return errors.translate(pymssql.OperationalError(number, text))


@pytest.mark.parametrize(
    "number",
    [
        *(615, 927, 942, 952, 979, 982, 988, 4221, 17187, 17188, 17189, 17197, 18451),
        *(40540, 40549, 40550, 40551, 40552, 40553),
    ],
)
def test_an_outage_is_one(number: int) -> None:
    assert isinstance(translated(number), Disconnected)


@pytest.mark.parametrize("number", [601, 605, 701, 802, 3958, 3966, 8628, 8651, 1205, 1222, 3960, 51205])
def test_a_retryable_error_is_a_conflict(number: int) -> None:
    assert isinstance(translated(number), Conflict)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (208, b"Invalid object name 'mq.queue'."),
        (2812, b"Could not find stored procedure 'mq.send'."),
        (2812, b"Could not find stored procedure 'mq_internal.installed_files'."),
    ],
)
def test_a_missing_object_of_the_queue_is_a_missing_schema(number: int, text: bytes) -> None:
    assert isinstance(translated(number, text), SchemaMissing)
    assert not isinstance(translated(number, text.replace(b"'mq", b"'shop")), SchemaMissing)


def test_a_database_that_takes_no_changes_is_read_only() -> None:
    assert isinstance(translated(3906), ReadOnly)


@pytest.mark.parametrize("number", [4060, 18456])
def test_a_login_that_worked_before_may_fail_while_a_database_recovers(number: int) -> None:
    error = pymssql.OperationalError(number, b"Login failed")
    assert not isinstance(errors.unreachable(error, "host", False), Disconnected)
    assert isinstance(errors.unreachable(error, "host", True), Disconnected)


# ---- installing ------------------------------------------------------------------------------------------------------


class Cursor:
    """A cursor with prepared answers, in order."""

    def __init__(self, answers: list[list[tuple[Any, ...]]]) -> None:
        self.answers = answers

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str) -> None:
        self.rows = self.answers.pop(0)

    def fetchone(self) -> tuple[Any, ...]:
        return self.rows[0]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows


class Connection:
    def __init__(self, database: str, *answers: list[tuple[Any, ...]]) -> None:
        self.database = database
        self.answers = list(answers)

    def command(self, text: str) -> Any:
        return self.database if "DB_NAME" in text else None

    def cursor(self) -> Cursor:
        return Cursor(self.answers)


def check(version: str, edition: int, level: int | None = 130, database: str = "shop") -> None:
    rights = [(1,) * (len(suitable._IN_DATABASE) + 1)]
    server = [(version, edition, level, "dbo", database)]
    suitable.check(Connection(database, server, rights))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "edition", "level"),
    [("13.0.4001.0", 3, 130), ("16.0.1000.6", 2, 160), ("12.0.2000.8", 5, 150), ("12.0.2000.8", 12, None)],
)
def test_a_server_that_is_new_enough_will_do(version: str, edition: int, level: int | None) -> None:
    check(version, edition, level)


@pytest.mark.parametrize(("version", "edition"), [("13.0.1601.5", 3), ("12.0.6024.0", 2), ("11.0.2100.60", 4)])
def test_a_server_without_create_or_alter_is_refused(version: str, edition: int) -> None:
    with pytest.raises(DatabaseError, match=r"2016 SP1 \(build 13\.0\.4001\)"):
        check(version, edition)


@pytest.mark.parametrize("database", ["master", "MSDB", "model", "tempdb"])
def test_a_database_of_the_servers_own_is_refused(database: str) -> None:
    with pytest.raises(DatabaseError, match="server's own database"):
        check("16.0.1000.6", 3, 160, database)


def test_each_file_of_the_script_is_one_transaction() -> None:
    """The server rolls back the current file of a script that stops early; run again, the script continues."""
    parts = "".join(install.script("sqlserver")).split("BEGIN TRANSACTION;\nGO\n")[1:]
    files = install.files("sqlserver")
    indexes = "".join(parts).count(", N'index', ")
    assert len(parts) == len(files) - len(contract.load().grants("sqlserver")) + 1 + indexes  # the grants are one
    for part in parts:
        done, commit, _ = part.partition("COMMIT TRANSACTION;\nGO\n")
        assert commit and "INSERT INTO mq.installed" in done


def test_the_migration_records_are_in_one_schema_for_every_installer() -> None:
    text = "".join(install.script("sqlserver"))
    assert not re.search(r"(?:TABLE|INTO|FROM) _?yoyo", text)
    assert "SCHEMA_NAME()" not in yoyo.Backend.list_tables_sql


# ---- rights ----------------------------------------------------------------------------------------------------------


def rights(sees: int = 1, objects: tuple[tuple[str, str, str], ...] = (), lacks: tuple[str, ...] = ()) -> list[str]:
    """What is found wrong where all is as installed but for some rights more, and some procedures' rights less."""
    procedures = contract.load().procedures.items()
    on_objects = [(role, "EXECUTE", f"mq.{name}") for name, p in procedures for role in p.roles if name not in lacks]
    on_objects += [(role, "SELECT", f"mq.{name}") for role, names in contract.load().reads.items() for name in names]
    readers = ("mq_consumer", "mq_operator", "mq_viewer")
    on_objects += [(role, "EXECUTE", "mq_internal.installed_files") for role in readers]
    on_objects += [("mq_reporter", "EXECUTE", "mq_internal.send_changes"), ("mq_reporter", "SELECT", "mq.subscription")]
    on_objects += objects
    on_types = [(role, "EXECUTE", name) for name, role in sqlserver_rights._TYPES]
    there = {what for _, _, what in on_objects} | {f"mq.{name}" for name in lacks}
    there |= {f"type mq.{name}" for _, _, name in on_types}
    answers: list[list[tuple[Any, ...]]] = [
        [(sees, "dbo", "shop")],
        [],
        [(name,) for name in there],
        [],
        [(role, "VIEW DEFINITION", name) for role in sqlserver_rights.ROLES for name in ("mq", "mq_internal")],
        list(on_objects),
        list(on_types),
    ]
    return sqlserver_rights.problems(Connection("shop", *answers))


def test_an_unchanged_installation_has_no_problem() -> None:
    assert rights() == []


def test_a_right_too_many_and_one_too_few_are_named() -> None:
    found = rights(
        objects=(("public", "EXECUTE", "mq.send"), ("mq_producer", "SELECT", "mq.message")), lacks=("pause",)
    )
    assert found == [
        "mq_producer has SELECT on mq.message",
        "public has EXECUTE on mq.send",
        "mq_operator lacks EXECUTE on mq.pause",
    ]


def test_a_user_who_may_not_read_the_rights_gets_an_error() -> None:
    with pytest.raises(NotAllowed, match="VIEW DEFINITION"):
        rights(sees=0)


# ---- the files -------------------------------------------------------------------------------------------------------


def test_nothing_but_the_catalog_is_read_with_the_owners_rights() -> None:
    found = {name for name, text in FILES.items() if "EXECUTE AS" in re.sub(r"(?m)^\s*--.*$", "", text)}
    assert found == {"table_facts", "watch_table"}  # the second one makes triggers that run as mq_reporter
    assert "EXEC" not in re.sub(r"(?m)^--.*$|EXECUTE AS OWNER", "", FILES["table_facts"])


def test_no_composed_statement_names_a_table_of_the_queues() -> None:
    """It has the caller's rights, which do not reach these: what it needs comes in variables and temporary tables."""
    for name, text in FILES.items():
        if name in {"make_trigger", "grants"}:
            continue
        for literal in re.findall(r"'((?:[^']|'')*)'", re.sub(r"(?m)^\s*--.*$", "", text)):
            assert not re.search(r"\b(FROM|JOIN|INTO|UPDATE) mq\.", literal), (name, literal)


def test_each_published_procedure_takes_no_setting_of_the_session() -> None:
    heads = {name: FILES[name].partition("\nBEGIN\n")[2][:400] for name in contract.load().procedures}
    sets = re.compile(r"SET [A-Z_, ]*CONCAT_NULL_YIELDS_NULL ON;")
    assert [name for name, head in heads.items() if not sets.search(head) or "SET ROWCOUNT 0;" not in head] == []


def test_the_triggers_of_watched_tables_take_none_either() -> None:
    made = FILES["make_trigger"][FILES["make_trigger"].index("AFTER INSERT, UPDATE, DELETE") :]
    assert "SET ROWCOUNT 0;" in made and "SET CONCAT_NULL_YIELDS_NULL ON;" in made


def test_names_are_quoted_by_the_server_itself() -> None:
    """REPLACE takes other characters for a bracket or a quote in some collations."""
    replaced = {name: re.findall(r"REPLACE\(([^(),]*), N'''',", text) for name, text in FILES.items()}
    binary = "COLLATE Latin1_General_100_BIN2"
    assert {name: calls for name, calls in replaced.items() if not all(call.endswith(binary) for call in calls)} == {}
    assert [name for name, text in FILES.items() if "N']]'" in text] == []


def test_the_database_goes_by_its_name() -> None:
    """Its number in sys.databases may be another one on Azure SQL."""
    by_number = re.compile(r"sys\.databases[^;]*database_id = DB_ID\(\)")
    assert [name for name, text in FILES.items() if by_number.search(text)] == []
