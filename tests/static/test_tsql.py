"""T-SQL that no SQL Server has run here: Microsoft's parser and sqlfluff accept it. Neither looks
names up: only a server can check them."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import release
from microsoft_parser import Parser
from rowqueue.databases import releases
from rowqueue.databases.sqlserver import connection, database, removal, rights, script, suitable
from rowqueue.install import apply as install
from rowqueue.install import contract
from rules import code
from servers import Unavailable
from sqlfluff.core import FluffConfig, Linter
from support.contract import procedures_of

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path for folder in ("migrations", "procedures") for path in sorted((ROOT / folder / "sqlserver").rglob("*.sql"))
]
STEMS = Counter(path.stem for path in FILES)
# By kind and name; files of one name in several areas by their area too.
TEXTS = {
    "/".join((*parts[: 1 if STEMS[path.stem] == 1 else 3], path.stem)).replace("/sqlserver", ""): path.read_text(
        "utf-8"
    )
    for path in FILES
    if (parts := path.relative_to(ROOT).parts)
}


def whole_script(since: str | None = None) -> str:
    """What `runner sql` prints, without the lines that are for sqlcmd itself."""
    return re.sub(r"(?m)^:.*", "", "".join(f"{part}\n" for part in install.script("sqlserver", since=since)))


def executed(text: str) -> list[str]:
    """The statements that a file executes as a text."""
    return [inner.replace("''", "'") for inner in re.findall(r"\bEXEC (?:\(|sp_executesql\s+)N'((?:[^']|'')*)'", text)]


# The pieces that are put into the places of a template, as they would be for one table.
PIECES = {
    "table": "[dbo].[orders]",
    "status": "[status]",
    "identity": "CONCAT(CAST(N'' AS nvarchar(max)), N'{\"k1\":', CAST(t.[id] AS nvarchar(41)), N'}')",
    "fields": "k1 nvarchar(max) '$.k1'",
    "match": "t.[id] = TRY_CONVERT(int, r.k1)",
    "is_ready": "t.[status] = CAST(@ready AS nvarchar(10))",
    "is_active": "t.[status] = CAST(@active AS nvarchar(10))",
    "from": "t.[status] = CAST(@from AS nvarchar(10))",
    "to": "CAST(@to AS nvarchar(10))",
    "ready": "CAST(@ready AS nvarchar(10))",
    "active": "CAST(@active AS nvarchar(10))",
    "key": "CAST(t.[id] AS nvarchar(41))",
    "row": "CAST(t.[id] AS nvarchar(41))",
    "hint": ", INDEX([orders_claim])",
    "lock": " WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)",
    "dirty": " WITH (READUNCOMMITTED)",
    "sort": "t.[made], t.[id]",
    "order": "[made]",
    "order_text": "CONVERT(nvarchar(41), t.[made], 126)",
    "place": "TRY_CONVERT(datetime2(7), @place, 126)",
    "settled": "TRY_CONVERT(datetime2(7), @settled, 126)",
    "high": "TRY_CONVERT(datetime2(7), @high, 126)",
    "sync": "[sync]",
    "column": "[status]",
    "value": "CAST(@given COLLATE Latin1_General_CI_AS AS varchar(9))",
    "wide": "CAST(@given COLLATE Latin1_General_CI_AS AS varchar(max))",
    "before": "CAST(@before COLLATE Latin1_General_CI_AS AS varchar(9))",
    "check": "([status]='N' OR [status]='A')",
    "schema": "[dbo]",
    "object_id": "1",
    "picked": "b.[id] AS k1",
    "locked": "b.[id] = s.[id]",
    "numbered": "u.[id] = f.k1",
    "trigger": "[dbo].[mq_watch_1]",
    "owner": "WITH EXECUTE AS 'mq_reporter'",
    "id": "1",
    "new_key": "CAST(i.[id] AS nvarchar(41))",
    "old_key": "CAST(d.[id] AS nvarchar(41))",
    "new_order": "i.[id]",
    "old_order": "d.[id]",
    "same": "d.[id] = i.[id]",
    "touched": "UPDATE([id])",
    "rows": "FROM #mq_entry AS e\nCROSS APPLY OPENJSON(e.ident) WITH (k1 nvarchar(max) '$.k1') AS r\n"
    "INNER JOIN [dbo].[orders] AS t ON t.[id] = TRY_CONVERT(int, r.k1)\nWHERE e.id BETWEEN @low AND @high",
}


def filled(template: str) -> str:
    """A template, of one text or of several, with all that it may hold."""
    texts = [found.replace("''", "'") for found in re.findall(r"N'((?:[^']|'')*)'", template)]
    if "THEN N'DELETE" in template:  # the other way to begin
        texts = texts[1:]
    return re.sub(r"\{(\w+)\}", lambda place: PIECES[place[1]], "".join(texts))


def composed(text: str) -> list[str]:
    """The statements that a file makes of templates and executes then."""
    return [
        filled(template)
        for variable, template in re.findall(r"SET @(\w+) = mq_internal\.fill\((.*?), @pieces\);\n", text, re.S)
        if variable not in {"rows", "detail"}  # a piece of others; a message
    ]


BATCHES = [batch for text in TEXTS.values() for batch in [*re.split(r"(?m)^GO\n", code(text)), *executed(text)]]

# A kind of statement or of clause, where it is found, and what is written in its place.
PLANTED = {
    # Statements by their first words, see the test that none is left out.
    "CREATE TABLE": (r"(CREATE TABLE mq\.\w+) \(", r"\1"),
    "CREATE TYPE": (r"(CREATE TYPE mq\.\w+ AS) TABLE", r"\1"),
    "CREATE INDEX": (r"(CREATE INDEX \w+) ON", r"\1"),
    "CREATE UNIQUE INDEX": (r"(CREATE UNIQUE INDEX) \w+", r"\1"),
    "CREATE CLUSTERED INDEX": (r"CREATE CLUSTERED INDEX", "CREATE CLUSTER INDEX"),
    "CREATE ROLE": (r"CREATE ROLE \w+;", "CREATE ROLE;"),
    "CREATE USER": (r"CREATE USER \w+ WITHOUT", "CREATE USER WITHOUT"),
    "CREATE OR ALTER PROCEDURE": (r"CREATE OR ALTER PROCEDURE", "CREATE OR REPLACE PROCEDURE"),
    "CREATE OR ALTER FUNCTION": (r"RETURNS (\w+)", r"RETURN \1"),
    "CREATE OR ALTER VIEW": (r"(CREATE OR ALTER VIEW mq\.\w+)\s+AS\b", r"\1"),
    "GRANT": (r"(GRANT EXECUTE ON OBJECT::mq\.\w+) TO", r"\1"),
    "BEGIN": (r"(WHILE .*)\n +BEGIN\n", r"\1\n"),
    "BEGIN TRY": (r"END TRY\n", "END\n"),
    "BEGIN CATCH": (r"END CATCH", "END"),
    "BEGIN TRANSACTION": (r"BEGIN TRANSACTION;", "BEGIN TRANSACTIONS;"),
    "COMMIT TRANSACTION": (r"COMMIT TRANSACTION;", "COMMIT TRANSACTION TO;"),
    "ROLLBACK TRANSACTION": (r"ROLLBACK TRANSACTION;", "ROLLBACK TRANSACTION TO;"),
    "END": (r"END;\n", "\n"),
    "IF": (r"IF @own = 1\n", "IF @own = 1 THEN\n"),
    "ELSE": (r"ELSE\n", "ELSE ELSE\n"),
    "WHILE": (r"(WHILE @.*)\n", r"\1 DO\n"),
    "BREAK": (r"BREAK;", "BREAK IF;"),
    "CONTINUE": (r"CONTINUE;", "CONTINUE WHILE;"),
    "RETURN": (r"RETURN;", "RETURN SELECT"),
    "THROW": (r"THROW;", "THROW 50000;"),
    "DECLARE": (r"(DECLARE @\w+ \w+) =", r"\1 :="),
    "SET": (r"SET (@\w+) = ", r"SET \1 "),
    "EXEC": (r"(EXEC mq_internal\.\w+ '\w+'), ", r"\1 "),
    "SELECT": (r"\bFROM mq\.\w+ (AS \w|WITH|WHERE)", r"FROM \1"),
    "INSERT": (r"\bVALUES \(", "VALUE ("),
    "UPDATE": (r"(UPDATE \w+(?:\.\w+)?.*\n? +)SET ", r"\1"),
    "DELETE": (r"(DELETE FROM mq\.\w+) WHERE", r"\1 WHEN"),
    # The same, elsewhere
    "CREATE SCHEMA": (r"CREATE SCHEMA mq", "CREATE SCHEMA"),
    "a statement before CREATE PROCEDURE": (r"\n(CREATE OR ALTER PROCEDURE)", r"\nSET NOCOUNT ON;\n\1"),
    "a statement before CREATE VIEW": (r"\n(CREATE OR ALTER VIEW)", r"\nSET NOCOUNT ON;\n\1"),
    "a comma between columns": (r"( NOT NULL),\n", r"\1\n"),
    "a column's NOT NULL": (r" NOT NULL,", " NOT NUL,"),
    "a column's DEFAULT": (r" DEFAULT \d+,", " DEFAULT,"),
    "a column's COLLATE": (r" COLLATE \w+ NOT NULL", " COLLATE NOT NULL"),
    "IDENTITY": (r"IDENTITY \(1, 1\)", "IDENTITY (1, )"),
    "PRIMARY KEY": (r"PRIMARY KEY \(", "PRIMARY ("),
    "UNIQUE": (r"UNIQUE NONCLUSTERED", "UNIQUE UNCLUSTERED"),
    "CHECK": (r"CHECK \((\w+) IN \(", r"CHECK (\1 IN"),
    "INCLUDE": (r"INCLUDE \(", "INCLUDES ("),
    "a comma between parameters": (r"(    @\w+ nvarchar\(max\)),\n", r"\1\n"),
    "a parameter's default": (r"(    @\w+ bigint) = NULL", r"\1 DEFAULT NULL"),
    "READONLY": (r" READONLY", " READ ONLY"),
    "OUTPUT of a parameter": (r"(@\w+ \w+) OUTPUT\n", r"\1 OUTPUTS\n"),
    "AS of a procedure": (r"(PROCEDURE [^;]*)\nAS\nBEGIN\n", r"\1\nBEGIN\n"),
    "a function's RETURNS TABLE": (r"RETURNS TABLE\nAS\nRETURN", "RETURNS TABLE\nAS\nRETURNS"),
    "DECLARE of a table": (r"(DECLARE @\w+ TABLE) \(", r"\1 "),
    "SET of an option": (r"SET NOCOUNT, XACT_ABORT, (\w+) ON;", r"SET NOCOUNT, XACT_ABORT, \1;"),
    "SET TRANSACTION": (r"TRANSACTION ISOLATION LEVEL", "TRANSACTION LEVEL"),
    "EXEC with a status": (r"EXEC (@\w+) = ", r"EXEC \1 = = "),
    "EXEC with OUTPUT": (r"(@\w+) OUTPUT;", r"OUTPUT \1;"),
    "THROW with a number": (r"THROW (@?\w+), ", r"THROW \1 "),
    "IF EXISTS": (r"IF EXISTS \(", "IF EXISTS "),
    "IF NOT EXISTS": (r"IF NOT EXISTS \(", "IF NOT EXIST ("),
    "ELSE IF": (r"ELSE IF ", "ELSEIF "),
    "INSERT ... SELECT": (r"(INSERT INTO @\w+ \([^)]*)\)(\s+SELECT)", r"\1\2"),
    "INSERT without its table": (r"INSERT INTO mq\.\w+ \(", "INSERT INTO ("),
    "UPDATE ... FROM": (r"(UPDATE \w+\s+SET [^;]*?\s)FROM ", r"\1OF "),
    "DELETE ... FROM": (r"(DELETE \w\s[^;]*?\sFROM) ", r"\1 = "),
    "DELETE TOP": (r"DELETE TOP \((@?\w+)\)", r"DELETE TOP (\1"),
    "DELETE ... OUTPUT INTO": (r"(OUTPUT deleted\.[^;]*?\s)INTO (@?[\w.]+) \(", r"\1INTO INTO \2 ("),
    "OUTPUT inserted": (r"OUTPUT inserted\.", "OUTPUT inserted..,"),
    "TOP": (r"SELECT TOP \(\S+\)", "SELECT TOP ()"),
    "JOIN ... ON": (r"(INNER JOIN mq\.\w+ AS \w(?: WITH \([^)]*\))?) ON [\w.]+ =", r"\1 ON ="),
    "LEFT JOIN": (r"LEFT JOIN", "LEFTS JOIN"),
    "a table's hints": (r"WITH \(UPDLOCK, ", "WITH (UPDLOCKED, "),
    "a query's hints": (r"OPTION \(FORCE ORDER", "OPTION (FORCE, ORDER"),
    "a hint for joins": (r"LOOP JOIN\)", "LOOP, JOIN)"),
    "a derived table": (r"FROM \(\s+SELECT", "FROM ( = SELECT"),
    "CROSS APPLY": (r"CROSS APPLY \(", "CROSS APPLY"),
    "OUTER APPLY": (r"OUTER APPLY \(", "OUTER APPLIES ("),
    "OPENJSON": (r"FROM OPENJSON\(", "FROM OPENJSON(,"),
    "UNION ALL": (r"UNION ALL\n", "UNION ALL ALL\n"),
    "ORDER BY": (r"ORDER BY (\w)", r"ORDER \1"),
    "GROUP BY": (r"GROUP BY (\w)", r"GROUP \1"),
    "OVER": (r"OVER \(ORDER BY", "OVER (ORDER"),
    "PARTITION BY": (r"PARTITION BY", "PARTITION"),
    "CASE": (r"(CASE WHEN [^;]*? ELSE [@\w]+) END", r"\1"),
    "CAST": (r"\bCAST\(([@\w.]+) AS \w+", r"CAST(\1 AS"),
    "TRY_CAST": (r"TRY_CAST\(([@\w.]+) AS \w+", r"TRY_CAST(\1 AS"),
    "COLLATE": (r"\) COLLATE \w+", ") COLLATE"),
    "IN": (r" IN \(@\w+, ", " IN (, "),
    "LIKE": (r" LIKE ", " LIKE = "),
    "BETWEEN": (r"(BETWEEN @?[\w.]+) AND", r"\1 TO"),
    "IS NULL": (r" IS NULL", " IS NUL"),
    "a call": (r"COALESCE\(", "COALESCE(("),
    "an assignment": (r"SELECT (@\w+) = ", r"SELECT \1 := "),
    "what came with SQL Server 2022": (r"(@\w+) IS NULL", r"\1 IS NOT DISTINCT FROM NULL"),
    "what other databases have": (r"ORDER BY [^;()]+;", "LIMIT 1;"),
    "a text's end": (r"N'[^']*',", "N',"),
    "a name's end": (r"mq\.(\w+) ", r"mq.[\1 "),
    "a comment's end": (r"\n(CREATE OR ALTER)", r"\n/* \1"),
}
# Each takes all that stands after it along.
ENDLESS = {"a text's end", "a name's end", "a comment's end"}

# What the parser lets pass as a word that it need not know, and sqlfluff does not.
ONLY_SQLFLUFF = {
    "SET TRANSACTION": (r"LEVEL READ COMMITTED", "LEVEL READ COMMITED"),
    "a query's hints": (r"FORCE ORDER", "FORCED ORDER"),
    "a hint for joins": (r"LOOP JOIN", "LOOPS JOIN"),
    "WAITFOR": (r"WAITFOR DELAY", "WAITFOR DELAYED"),
    "a cast": (r"\bCAST\(([@\w.]+) AS ", r"CAST(\1, "),
}

# Valid T-SQL that sqlfluff cannot parse: a replacement, and the reason.
SQLFLUFF_CANNOT = {
    "procedures/object_fingerprint": (r"= definition\b", "= [definition]", "it takes a column's name for a keyword"),
}


def planted(pattern: str, replacement: str) -> str:
    """A batch with an error; none when no file has what is to be spoiled. The shortest one: over an error deep in a
    long procedure the parser may ponder for minutes."""
    spoiled = (re.sub(pattern, replacement, batch, count=1) for batch in BATCHES)
    return min((new for new, old in zip(spoiled, BATCHES, strict=True) if new != old), key=len, default="")


@pytest.fixture(scope="session")
def parser(pytestconfig: pytest.Config) -> Iterator[Parser]:
    try:
        parser = Parser()
    except Unavailable as error:
        if pytestconfig.getoption("--require-databases"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield parser
    parser.close()


def test_microsofts_parser_takes_every_file(parser: Parser) -> None:
    errors = dict(zip(TEXTS, parser.errors(list(TEXTS.values())), strict=True))
    assert {name: found for name, found in errors.items() if found} == {}


def test_microsofts_parser_takes_the_whole_installation_as_one_script(parser: Parser) -> None:
    assert parser.errors([whole_script()]) == [[]]


def test_microsofts_parser_takes_the_upgrade_as_one_script(
    parser: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a release that lacks the last migration, and has a procedure that is gone."""
    content = re.sub(r"(?m)^rowqueue_0007_.*\n", "", release.content()).replace("= [", '= ["old_helper", ')
    (tmp_path / "release.toml").write_text(content)
    monkeypatch.setattr(releases, "earlier", lambda: {"0.0.1": tmp_path / "release.toml"})
    text = whole_script("0.0.1")
    assert re.findall(r"(?m)^-- migration (\w+)$", text) == ["rowqueue_0007_consumers"]
    assert "AND name IN (N'old_helper');" in text
    assert parser.errors([text]) == [[]]
    assert parser.errors([text.replace("EXEC (@drop);", "EXEC @drop);")]) != [[]]
    assert parser.errors([text.replace("SELECT TOP (1) @found = name", "SELECT TOP () @found = name")]) != [[]]


def test_microsofts_parser_takes_the_checks_for_a_real_server(parser: Parser) -> None:
    files = sorted((ROOT / "examples" / "sqlserver").glob("*.sql"))
    assert len(files) == 2
    assert parser.errors([path.read_text("utf-8") for path in files]) == [[], []]


def test_microsofts_parser_takes_what_is_executed_as_a_text(parser: Parser) -> None:
    calls = sum(len(re.findall(r"\bEXEC(?:UTE)? *\(|\bsp_executesql\b", code(text))) for text in TEXTS.values())
    texts = [inner for text in TEXTS.values() for inner in executed(text)]
    variable = sum(len(re.findall(r"\bEXEC (?:\(|sp_executesql\s+)@", code(text))) for text in TEXTS.values())
    assert len(texts) + variable == calls
    assert not any(parser.errors(texts))


COMPOSED = {name: composed(code(text)) for name, text in TEXTS.items() if composed(code(text))}


def test_microsofts_parser_takes_what_the_runner_asks_the_catalog(parser: Parser) -> None:
    modules = (connection, database, removal, rights, script, suitable)
    texts = [
        text.replace("%s", "N'x'")
        for module in modules
        for text in vars(module).values()
        if isinstance(text, str) and re.match(r"(SELECT|DECLARE|DELETE|UPDATE|SET) [^.]", text)
    ]
    assert rights._WARNED in texts and len(texts) >= 10
    assert dict(zip(texts, parser.errors(texts), strict=True)) == {text: [] for text in texts}


def test_every_function_is_in_sql_server_2016() -> None:
    """The parser takes any name for a function."""
    later = re.compile(r"\b(?:STRING_AGG|CONCAT_WS|TRANSLATE|TRIM|GREATEST|LEAST|DATETRUNC|GENERATE_SERIES)\s*\(", re.I)
    assert [name for name, text in TEXTS.items() if later.search(code(text))] == []


def test_composed_statements_come_from_a_template() -> None:
    executing = {name for name, text in TEXTS.items() if re.search(r"\bEXEC (?:\(|sp_executesql\s+)@", code(text))}
    assert executing == COMPOSED.keys() | {
        "procedures/common/grants"
    }  # which makes its REVOKEs of what the catalog shows


def test_microsofts_parser_takes_what_is_composed_and_executed(parser: Parser) -> None:
    for name, texts in COMPOSED.items():
        assert len(texts) >= len(re.findall(r"\bEXEC (?:\(|sp_executesql\s+)@", code(TEXTS[name]))), name
    composed = [text for texts in COMPOSED.values() for text in texts]
    assert [text for text, errors in zip(composed, parser.errors(composed), strict=True) if errors] == []
    # With a bracket too many.
    spoiled = parser.errors([f"{text})" for text in composed])
    assert [text for text, errors in zip(composed, spoiled, strict=True) if not errors] == []


def test_microsofts_parser_finds_a_planted_error(parser: Parser) -> None:
    spoiled = {kind: planted(*PLANTED[kind]) for kind in PLANTED}
    assert [kind for kind, text in spoiled.items() if not text] == [], "no file has it"
    at_once = [kind for kind in PLANTED if kind not in ENDLESS]
    *found, control = parser.errors([*(spoiled[kind] for kind in at_once), "SELECT 1;"])
    assert control == []
    assert [kind for kind, errors in zip(at_once, found, strict=True) if not errors] == []
    assert [kind for kind in ENDLESS if not parser.errors([spoiled[kind]])[0]] == []


def test_an_error_is_planted_in_every_kind_of_statement() -> None:
    before = r"(?:\A|(?:;|\bAS|\bBEGIN|\bTRY|\bCATCH|\bELSE)\n)"
    kind = (
        r"(?:CREATE (?:OR ALTER )?(?:[A-Z]+ )*[A-Z]+|BEGIN (?:TRY|CATCH|TRANSACTION)|(?:COMMIT|ROLLBACK) [A-Z]+|[A-Z]+)"
    )
    used = {found for batch in BATCHES for found in re.findall(rf"{before}\s*({kind})\b(?![('])", batch)}
    assert used <= PLANTED.keys() | ONLY_SQLFLUFF.keys()
    assert {"CREATE TABLE", "DELETE", "EXEC", "GRANT", "IF", "THROW"} <= used


def unparsable(text: str) -> list[str]:
    """The statements that sqlfluff cannot parse."""
    parsed = Linter(config=FluffConfig(overrides={"dialect": "tsql"})).parse_string(text)
    return [violation.desc() for violation in parsed.violations]


@pytest.mark.level(4)  # the second parser takes half a minute for what Microsoft's has taken already
def test_sqlfluff_parses_every_file() -> None:
    wrong = {}
    for name, text in TEXTS.items():
        before, after, _ = SQLFLUFF_CANNOT.get(name, ("", "", ""))
        if found := unparsable(re.sub(before, after, text) if before else text):
            wrong[name] = found
    assert wrong == {}


def test_sqlfluff_still_cannot_parse_what_is_listed() -> None:
    assert [name for name in SQLFLUFF_CANNOT if not unparsable(TEXTS[name])] == []


def test_sqlfluff_finds_a_planted_error() -> None:
    spoiled = {kind: planted(*ONLY_SQLFLUFF[kind]) for kind in ONLY_SQLFLUFF}
    assert [kind for kind, text in spoiled.items() if not text or not unparsable(text)] == []


def test_a_procedure_has_the_arguments_of_the_contract() -> None:
    """Name, order, type and default; tests/contract/test_types.py asks the catalogs of the other databases."""
    types = contract.load().arguments["sqlserver"]
    wrong = {}
    for name, procedure in procedures_of("sqlserver").items():
        text = code(contract.load().files("sqlserver")[name].read_text("utf-8"))
        declared = re.search(rf"CREATE OR ALTER PROCEDURE mq\.{name}\n(.*?)^AS$", text, re.M | re.S)
        found = (
            [line.strip().removesuffix(",") for line in declared[1].splitlines() if line.strip()] if declared else None
        )
        known = [f"@{a.name} {types[a.kind]}{' = NULL' if a.optional else ''}" for a in procedure.arguments]
        if found != known:
            wrong[name] = (found, known)
    assert wrong == {}
