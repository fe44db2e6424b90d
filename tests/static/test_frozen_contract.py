"""The contract of the last release: what its callers use must not change before a new major version."""

import hashlib
import shutil
import tomllib
from pathlib import Path

import frozen
import pytest
from rowqueue.install import contract

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ROOT / "releases"


def test_the_contract_keeps_what_the_last_release_promised() -> None:
    """Nothing is promised before the first release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert frozen.refused(RELEASES, version, contract.load()) == []


def test_a_released_folder_has_its_scripts_and_its_contract() -> None:
    for folder in RELEASES.glob("*/"):
        if folder.name != "__pycache__":
            names = {f"rowqueue-{path.name}.sql.gz" for path in (ROOT / "migrations").iterdir()}
            assert {path.name for path in folder.iterdir()} == {*names, "contract.toml", "release.toml"}


def test_a_released_migration_is_never_edited() -> None:
    for folder in frozen.released(RELEASES):
        for engine, kept in tomllib.loads((folder / "release.toml").read_text("utf-8")).items():
            texts = {name: ROOT / "migrations" / engine / f"{name}.sql" for name in kept["migrations"]}
            assert {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in texts.items()} == kept["migrations"]


# ---- the comparison itself, on a small contract

TYPE = '    { name = "type", type = "text", limit = "name", meaning = "the queue" },\n'
BODY = '    { name = "body", type = "text", limit = "body", jsonb = true, meaning = "the text" },\n'
PRIORITY = '    { name = "priority", type = "bigint", optional = true, meaning = "smaller first; NULL: 0" },\n'
ID = '    { name = "id", type = "bigint", meaning = "its number" },\n'
CREATED = '    { name = "created", type = "bigint", meaning = "1 or 0" },\n'
TYPES = "\n".join(
    f'[{what}.{engine}]\ntext = "text"\nbigint = "bigint"'
    for what in ("arguments", "results")
    for engine in frozen.COLUMN | frozen.ARGUMENT
)
CONTRACT = f"""
{TYPES}

[limits]
name = "1 to 200 characters"
body = "up to 64 KiB (65,536 bytes)"
odd = "a letter"

[rows]

[[errors]]
number = 50002
name = "invalid_argument"
retry = "no"
meaning = ""

[[errors]]
number = 50005
name = "not_found"
retry = "no"
meaning = ""

[[internal]]
name = "helper"
area = "queue"
kind = "function"
purpose = ""

[[procedure]]
name = "send"
area = "queue"
summary = "Sends."
rows = "1"
errors = ["invalid_argument", "not_found"]
roles = ["mq_producer", "mq_operator"]
arguments = [
{TYPE}{BODY}{PRIORITY}]
columns = [
{ID}{CREATED}]

[[procedure]]
name = "only_mysql"
area = "queue"
summary = "Is on one engine."
databases = ["mysql"]
rows = "0..n"
errors = []
roles = ["mq_operator"]
arguments = [{{ name = "type", type = "text", limit = "odd", meaning = "the queue" }}]
columns = [{{ name = "id", type = "bigint", meaning = "a number" }}]

[[procedure]]
name = "only_postgresql"
area = "queue"
summary = "Is on another engine."
databases = ["postgresql"]
rows = "0..n"
open = true
errors = []
roles = ["mq_operator"]
arguments = [{{ name = "queue", type = "text", meaning = "the queue" }}]
columns = [{{ name = "count", type = "bigint", meaning = "a number" }}]
"""
MORE = '    { name = "more", type = "bigint", optional = true, meaning = "" },\n'
COLUMN = '    { name = "more", type = "bigint", meaning = "" },\n'
NEW_NAME, MAJOR = "under a name of its own", "new major version"

BREAKS = {
    "an argument removed": ((PRIORITY, ""), "send: argument priority was removed", NEW_NAME),
    "an argument renamed": (('"body", type', '"text", type'), "send: argument body was renamed to text", NEW_NAME),
    "arguments reordered": ((TYPE + BODY, BODY + TYPE), "send: the arguments were reordered: type, body", NEW_NAME),
    "an argument in the middle": ((BODY, MORE + BODY), "send: argument more was added before others", NEW_NAME),
    "a last argument": (
        (PRIORITY, PRIORITY + MORE),
        "send: argument more was added, which breaks callers (mysql",
        NEW_NAME,
    ),
    "a required argument": (
        (
            'meaning = "the queue" }]\ncolumns = [{ name = "count"',
            'meaning = "" }, { name = "m", type = "text", meaning = "" }]\ncolumns = [{ name = "count"',
        ),
        "only_postgresql: argument m was added and is required",
        NEW_NAME,
    ),
    "an argument's type": (
        (PRIORITY, PRIORITY.replace("bigint", "text")),
        "argument priority was bigint and is text",
        NEW_NAME,
    ),
    "no jsonb": (("jsonb = true, ", ""), "send: argument body took jsonb on PostgreSQL", NEW_NAME),
    "an argument required": ((PRIORITY, PRIORITY.replace("optional = true, ", "")), "priority was optional", NEW_NAME),
    "a default": (("NULL: 0", "NULL: 1"), "send: argument priority: the default was '0' and is '1'", NEW_NAME),
    "a narrower limit": (
        ("1 to 200 char", "1 to 100 char"),
        "type: the limit was 1 to 200 characters and is 1 to 100",
        NEW_NAME,
    ),
    "a limit that has no numbers": (
        ("a letter", "a digit"),
        "only_mysql: argument type: the limit was a letter",
        MAJOR,
    ),
    "a limit where none was": (
        ('name = "queue", type = "text", ', 'name = "queue", type = "text", limit = "name", '),
        "queue: the limit was none and is 1 to 200 characters",
        NEW_NAME,
    ),
    "a column removed": ((CREATED, ""), "send: result column created was removed", NEW_NAME),
    "a column renamed": (('"created"', '"made"'), "send: result column created was renamed to made", NEW_NAME),
    "columns reordered": (
        (ID + CREATED, CREATED + ID),
        "send: the result columns were reordered: id, created",
        NEW_NAME,
    ),
    "a last column": (
        (CREATED, CREATED + COLUMN),
        "send: result column more was added, which breaks callers (fire",
        NEW_NAME,
    ),
    "a first column of an open result": (
        ('[{ name = "count"', '[{ name = "more", type = "bigint", meaning = "" }, { name = "count"'),
        "only_postgresql: result column more was added before others",
        NEW_NAME,
    ),
    "a result that is no longer open": (("open = true\n", ""), "only_postgresql: its result was open", NEW_NAME),
    "a column's type": ((CREATED, CREATED.replace("bigint", "text")), "created was bigint and is text", NEW_NAME),
    "other rows": (('rows = "1"', 'rows = "0..1"'), "send: it returned 1 rows and returns 0..1", NEW_NAME),
    "an error no longer raised": ((', "not_found"]', "]"), "send: error not_found was removed", NEW_NAME),
    "a role without the right": ((', "mq_operator"]', "]"), "send: role mq_operator was removed", NEW_NAME),
    "an error removed": (
        ('[[errors]]\nnumber = 50005\nname = "not_found"\nretry = "no"\nmeaning = ""\n', ""),
        "error 50005 not_found was removed",
        MAJOR,
    ),
    "an error's number": (("number = 50005", "number = 50006"), "error not_found was 50005 and is 50006", MAJOR),
    "a type of an engine": (
        ('text = "text"', 'text = "clob"'),
        "type text of arguments on postgresql was text and is clob",
        MAJOR,
    ),
    "a type of an engine's results": (
        ('[results.mysql]\ntext = "text"', '[results.mysql]\ntext = "clob"'),
        "type text of results on mysql was text and is clob",
        MAJOR,
    ),
    "a procedure removed": (('name = "send"', 'name = "deliver"'), "send: the procedure was removed", MAJOR),
    "an engine less": (
        ('summary = "Sends."', 'summary = ""\ndatabases = ["mysql", "postgresql", "sqlserver"]'),
        "it is no longer on firebird",
        NEW_NAME,
    ),
}
NEW = CONTRACT[CONTRACT.index('[[procedure]]\nname = "send"') : CONTRACT.index('[[procedure]]\nname = "only_mysql"')]
KEEPS = {
    "a new procedure": (NEW, NEW + NEW.replace('"send"', '"deliver"')),
    "other words": ('meaning = "the text"', 'meaning = "what is sent"'),
    "an argument that becomes optional": ('"body", type', '"body", optional = true, type'),
    "a wider limit": ("1 to 200 char", "1 to 300 char"),
    "a wider limit in bytes": ("up to 64 KiB (65,536 bytes)", "up to 128 KiB (131,072 bytes)"),
    "another error": (
        "number = 50005",
        'number = 50009\nname = "too_late"\nretry = "no"\nmeaning = ""\n\n[[errors]]\nnumber = 50005',
    ),
    "another role": ('roles = ["mq_producer"', 'roles = ["mq_consumer", "mq_producer"'),
    "an internal that is gone": ('name = "helper"', 'name = "other"'),
    "a last column where CALL returns it": (
        '[{ name = "id", type = "bigint", meaning = "a number" }]',
        '[{ name = "id", type = "bigint", meaning = "" }, { name = "more", type = "bigint", meaning = "" }]',
    ),
    "a last column of an open result": (
        '[{ name = "count", type = "bigint", meaning = "a number" }]',
        '[{ name = "count", type = "bigint", meaning = "" }, { name = "more", type = "bigint", meaning = "" }]',
    ),
    "a last argument where it can be left out": (
        '[{ name = "queue", type = "text", meaning = "the queue" }]',
        '[{ name = "queue", type = "text", meaning = "" }, { name = "m", type = "key", optional = true, meaning="" }]',
    ),
}


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """The folder of the releases 0.9.0 and 0.10.0; the contract of the last one is CONTRACT."""
    for version, text in (("0.9.0", CONTRACT.replace("50005", "50004")), ("0.10.0", CONTRACT)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "contract.toml").write_text(text)
    return tmp_path


def changed(releases: Path, change: tuple[str, str]) -> contract.Contract:
    text = CONTRACT.replace(*change, 1)
    assert text != CONTRACT, change
    path = releases / "contract.toml"
    path.write_text(text)
    return contract.read(path)


@pytest.mark.parametrize("name", BREAKS)
def test_a_change_that_breaks_callers_is_named_with_the_remedy(releases: Path, name: str) -> None:
    change, sentence, remedy = BREAKS[name]
    [found] = frozen.refused(releases, "0.11.0", changed(releases, change))
    assert sentence in found and remedy in found and found.endswith("(released in 0.10.0)"), found


@pytest.mark.parametrize("name", KEEPS)
def test_a_change_that_breaks_nobody_is_allowed(releases: Path, name: str) -> None:
    assert frozen.refused(releases, "0.10.1", changed(releases, KEEPS[name])) == []


def test_a_new_major_version_may_break_the_contract(releases: Path) -> None:
    now = changed(releases, BREAKS["a procedure removed"][0])
    assert frozen.refused(releases, "0.99.0", now)
    assert frozen.refused(releases, "1.0.0", now) == []


def test_before_the_first_release_nothing_is_promised(releases: Path) -> None:
    for version in ("0.9.0", "0.10.0"):
        shutil.rmtree(releases / version)
    assert frozen.refused(releases, "0.1.0", changed(releases, BREAKS["a default"][0])) == []
