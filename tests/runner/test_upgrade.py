"""An installation of an earlier release, with messages in every state, survives the upgrade to this tree."""

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import frozen
import pytest
import release
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from support.capabilities import BY_DATABASE
from support.queues import call, read
from support.states import content, fill, go_on

pytestmark = pytest.mark.engines

RELEASES = Path(__file__).resolve().parents[2] / "releases"
RELEASED = [path.name for path in frozen.released(RELEASES)]
# Also without an earlier release: this tree with two more objects is one, and this tree with a new migration is next.
THIS_TREE = "0.0.1"
WAYS = ("apply", "script")
UPGRADES = [
    (version, way)
    for version in (THIS_TREE, *RELEASED)
    for way in WAYS
    if way == "apply" or frozen.number(version) < frozen.number(contract.release())
]

Script = Callable[..., str]

# Objects of the release that are gone in the next one. One uses the other.
GONE = {
    "postgresql": {
        "old_helper": "CREATE OR REPLACE FUNCTION mq_internal.old_helper() RETURNS integer\n"
        "LANGUAGE sql AS $$ SELECT 1 $$;\n",
        "old_list": "CREATE OR REPLACE VIEW mq.old_list AS\nSELECT mq_internal.old_helper() AS n FROM mq.queue;\n",
    },
    "mysql": {
        "old_helper": "CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_old_helper()\n"
        "SQL SECURITY DEFINER MODIFIES SQL DATA\nBEGIN\n    DO 1;\nEND\n",
        "old_list": "CREATE OR REPLACE DEFINER = 'mq_owner'@'localhost' SQL SECURITY INVOKER VIEW mq_old_list AS\n"
        "SELECT type FROM mq_queue;\n",
    },
    "firebird": {
        "old_helper": "CREATE OR ALTER PROCEDURE imq_old_helper\nRETURNS (n integer)\nAS\nBEGIN\n    n = 1;\n"
        "    SUSPEND;\nEND\n",
        "old_list": "CREATE OR ALTER PROCEDURE imq_old_list\nRETURNS (n integer)\nAS\nBEGIN\n"
        "    SELECT n FROM imq_old_helper INTO n;\n    SUSPEND;\nEND\n",
    },
    "sqlserver": {
        "old_helper": "CREATE OR ALTER FUNCTION mq_internal.old_helper() RETURNS int\nAS\nBEGIN\n    RETURN 1;\nEND;\n",
        "old_list": "CREATE OR ALTER VIEW mq.old_list\nAS\nSELECT type FROM mq.queue;\n",
    },
}

# A migration on top of this tree: a column more for the table of messages, and a table. On MySQL each statement can be
# run again, because DDL commits.
_ADD_COLUMN = "ALTER TABLE {message} ADD note integer"
_ADD_ONCE = f"""\
SET @mq_statement = IF(EXISTS (
    SELECT * FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'mq_message' AND column_name = 'note'
), 'DO 0', '{_ADD_COLUMN}');
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
"""
_NEXT = """\
UPDATE {message} SET note = 7;
CREATE TABLE {more} (n integer NOT NULL, CONSTRAINT mq_more_pk PRIMARY KEY (n));
"""


@pytest.fixture
def releases(files: Path) -> Path:
    """The folder of all releases, of which the runner reads what `runner sql --from` needs."""
    (files / "releases").mkdir()
    for version in RELEASED:
        (files / "releases" / version).mkdir()
        shutil.copy(RELEASES / version / "release.toml", files / "releases" / version)
    return files / "releases"


def scripted(database: Database, **options: Any) -> str:
    return "".join(f"{part}\n" for part in install.script(database.name, **options))


def released(
    version: str, database: Database, files: Path, monkeypatch: pytest.MonkeyPatch, areas: list[str] | None = None
) -> str:
    """The script by which a release installs. For this tree: it is released now, and changed for the next release."""
    if version != THIS_TREE:
        kept = RELEASES / version / f"rowqueue-{database.name}.sql.gz"
        return gzip.decompress(kept.read_bytes()).decode()
    procedures = files / "procedures" / database.name
    for name, text in GONE[database.name].items():
        (procedures / "common" / "internal" / f"{name}.sql").write_text(f"-- {name}: of an earlier release.\n\n{text}")
    with monkeypatch.context() as patched:
        patched.setattr(contract, "release", lambda: version)
        text = scripted(database, areas=areas)
    (files / "releases" / version).mkdir()
    (files / "releases" / version / "release.toml").write_text(release.content())
    for name in GONE[database.name]:
        (procedures / "common" / "internal" / f"{name}.sql").unlink()
    contract._in_order.cache_clear()
    add_to_next_release(files, database)
    return text


def add_to_next_release(files: Path, database: Database) -> None:
    """A migration, and a procedure with another text."""
    once = "IF NOT EXISTS " if database.name == "mysql" else ""
    text = (_ADD_ONCE if once else f"{_ADD_COLUMN};\n") + _NEXT.replace("CREATE TABLE ", f"CREATE TABLE {once}")
    names = {name: f"{database.prefix}{name}" for name in ("message", "more")}
    (files / "migrations" / database.name / "rowqueue_9999_next.sql").write_text(text.format(**names))
    cancel = files / "procedures" / database.name / "operations" / "cancel.sql"
    cancel.write_text(cancel.read_text().replace("\nBEGIN\n", "\nBEGIN\n    -- changed\n", 1))


def state(database: Database, server: Server) -> Counter[str]:
    """All that an installation is: the objects, their comments and rights, and what is recorded of them."""
    quote = '"' if database.name == "firebird" else ""
    seen = "CASE WHEN name IN ('message_state', 'message_overview') THEN '' ELSE fingerprint END"
    records = [
        f"SELECT kind, name, sha256, {seen} AS seen FROM {server.table('installed')}",
        f"SELECT {quote}migration_hash{quote}, {quote}migration_id{quote} FROM {quote}_yoyo_migration{quote}",
        f"SELECT {quote}version{quote} FROM {quote}_yoyo_version{quote}",
    ]
    rows = [json.dumps(row, default=str) for query in records for row in server.query(database.url, query)]
    return Counter([*server.catalog(database.url), *rows])


@pytest.fixture
def fresh(server: Server) -> Iterator[Callable[..., Counter[str]]]:
    """The state of a new installation of the tree that is then in place."""
    made = []

    def installed(areas: list[str] | None = None, with_feed: bool = False) -> Counter[str]:
        made.append(server.create_database())
        database = open_database(made[-1])
        install.apply(database, areas=areas)
        if with_feed:
            make_feed_table(database, server)
        return state(database, server)

    yield installed
    for url in made:
        server.drop_database(url)


def make_feed_table(database: Database, server: Server) -> None:
    can = BY_DATABASE[database.name]
    server.query(database.url, f"CREATE TABLE orders (id integer NOT NULL PRIMARY KEY, v {can.text}, sync bigint)")
    server.query(database.url, "CREATE INDEX orders_sync ON orders (sync)")
    for statement in can.opens("orders"):
        server.query(database.url, statement)


def fill_feed(session: Session, database: Database, server: Server) -> None:
    """A feed with three numbered rows, of which a consumer has read one."""
    make_feed_table(database, server)
    call(session, "create_feed", "orders", "orders", "id", "sync")
    for id in range(1, 4):
        server.query(database.url, f"INSERT INTO orders (id, v) VALUES ({id}, 'v{id}')")
    assert call(session, "publish_feed", "orders") == [{"affected": 3}]
    [first, *_] = call(session, "fetch_feed", "orders", "index")
    call(session, "advance_feed", "orders", "index", first["feed_position"])


def go_on_with_feed(session: Session, database: Database, server: Server) -> None:
    server.query(database.url, "INSERT INTO orders (id, v) VALUES (4, 'v4')")
    assert call(session, "publish_feed", "orders") == [{"affected": 1}]
    assert [read(row["row_data"])["id"] for row in call(session, "fetch_feed", "orders", "index")] == [2, 3, 4]


def assert_equals(upgraded: Counter[str], new: Counter[str], version: str) -> None:
    assert not new - upgraded, "a new installation has this, and the upgraded one has not"
    more = list((upgraded - new).elements())
    assert [line for line in more if f'"kind": "release", "name": "{version}"' not in line] == [], (
        "only the upgraded one has this"
    )
    assert len(more) == (version != contract.release()), "the record of the earlier release is kept"


@pytest.mark.level(3)
@pytest.mark.parametrize(("version", "way"), UPGRADES)
def test_an_upgrade_loses_nothing_and_equals_a_new_installation(
    version: str,
    way: str,
    empty_database: Database,
    server: Server,
    files: Path,
    releases: Path,
    fresh: Callable[..., Counter[str]],
    run_script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run_script(empty_database.url, released(version, empty_database, files, monkeypatch)) == ""
    with closing(empty_database.connect("before")) as session:
        key, in_group = fill(session)
        fill_feed(session, empty_database, server)
        before = content(session)

    if way == "apply":
        applied = install.apply(empty_database)
        if version == THIS_TREE:
            assert applied.migrations == ["rowqueue_9999_next"] and "cancel" in applied.procedures
            assert applied.dropped == ["old_helper", "old_list"]
    else:
        assert run_script(empty_database.url, scripted(empty_database, since=version)) == ""

    assert install.apply(empty_database) == install.Applied()
    assert install.pending(empty_database) == []
    assert_equals(state(empty_database, server), fresh(with_feed=True), version)
    with closing(empty_database.connect("after")) as session:
        assert call(session, "version")[0]["version"] == contract.release()
        after = content(session)
        for name, rows in before.items():
            kept = [{column: row[column] for column in rows[0]} for row in after[name]] if rows else after[name]
            assert kept == rows, name
        go_on(session, key, in_group)
        go_on_with_feed(session, empty_database, server)
    # The whole script repairs an installation that was upgraded.
    run_script(empty_database.url, scripted(empty_database))
    assert install.apply(empty_database) == install.Applied()


@pytest.mark.level(3)
def test_an_upgrade_of_a_part_by_the_script_equals_a_new_part(
    empty_database: Database,
    server: Server,
    files: Path,
    releases: Path,
    fresh: Callable[..., Counter[str]],
    run_script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends early, and is run again."""
    part = ["queue", "schedules"]
    run_script(empty_database.url, released(THIS_TREE, empty_database, files, monkeypatch, part))
    text = scripted(empty_database, since=THIS_TREE, areas=part)
    end = {"firebird": "^\nSET TERM ; ^", "sqlserver": "\nGO"}.get(empty_database.name, ";")
    begun = text.index("-- grants common/grants\n")
    start = "SET TERM ^ ;\n" if empty_database.name == "firebird" else ""
    with pytest.raises(AssertionError, match="nonsense"):
        run_script(empty_database.url, f"{text[:begun]}{start}nonsense{end}\n{text[begun:]}")
    assert install.pending(empty_database)

    assert run_script(empty_database.url, text) == ""

    assert install.apply(empty_database) == install.Applied()
    assert_equals(state(empty_database, server), fresh(part), THIS_TREE)


@pytest.mark.parametrize(
    ("there", "areas", "told"),
    [
        (None, None, "the queue is not installed"),
        (["queue", "topics"], ["topics", "schedules"], "the database lacks areas of this script: schedules"),
        (["queue", "schedules"], ["queue"], r"areas? (that|of the database).* schedules"),
        ("later", None, rf"this script upgrades {THIS_TREE}.*the database has {contract.release()}"),
    ],
    ids=["none installed", "lacks an area", "has one more area", "another release"],
)
def test_the_script_refuses_other_databases_and_changes_nothing(
    there: list[str] | str | None,
    areas: list[str] | None,
    told: str,
    empty_database: Database,
    server: Server,
    files: Path,
    releases: Path,
    run_script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = released(THIS_TREE, empty_database, files, monkeypatch, there if isinstance(there, list) else None)
    if isinstance(there, list):
        run_script(empty_database.url, whole)
    elif there:
        install.apply(empty_database)
    before = state(empty_database, server) if there else Counter(server.catalog(empty_database.url))

    with pytest.raises(AssertionError, match=told):
        run_script(empty_database.url, scripted(empty_database, since=THIS_TREE, areas=areas))

    assert (state(empty_database, server) if there else Counter(server.catalog(empty_database.url))) == before
