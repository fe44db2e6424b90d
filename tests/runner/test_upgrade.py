"""An installation of an earlier release, with messages in every state, survives the upgrade to this tree."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import frozen
import pytest
from rowqueue.databases import Database
from rowqueue.install import apply as install
from servers import Server
from support.states import content, fill, go_on

RELEASES = Path(__file__).resolve().parents[2] / "releases"
# Also without an earlier release: this tree, and then a migration on top of it.
THIS_TREE = "this tree"


def scripted(version: str, database: Database) -> str:
    """The script by which a release installs."""
    if version == THIS_TREE:
        return "".join(f"{part}\n" for part in install.script(database.name))
    return gzip.decompress((RELEASES / version / f"rowqueue-{database.name}.sql.gz").read_bytes()).decode()


def add_to_next_release(files: Path, database: Database, server: Server) -> None:
    """A column more for the table of messages, and a procedure with another text."""
    message = server.table("message")
    migration = files / "migrations" / database.name / "rowqueue_9999_next.sql"
    migration.write_text(f"ALTER TABLE {message} ADD note integer;\nUPDATE {message} SET note = 7;\n")
    with (files / "procedures" / database.name / "operations" / "cancel.sql").open("a") as file:
        file.write("-- changed\n")


@pytest.fixture
def fresh(server: Server) -> Iterator[Callable[[Database], list[str]]]:
    """The catalog of a new installation of the tree that is then in place."""
    made = []

    def catalog(database: Database) -> list[str]:
        made.append(server.create_database())
        install.apply(type(database)(made[-1]))
        return server.catalog(made[-1])

    yield catalog
    for url in made:
        server.drop_database(url)


@pytest.mark.level(3)
@pytest.mark.parametrize("version", [THIS_TREE, *(path.name for path in frozen.released(RELEASES))])
def test_an_upgrade_loses_nothing_and_has_all_that_a_new_installation_has(
    version: str,
    empty_database: Database,
    server: Server,
    files: Path,
    fresh: Callable[[Database], list[str]],
    run_script: Callable[..., str],
) -> None:
    run_script(empty_database.url, scripted(version, empty_database))
    session = empty_database.connect("before")
    key, in_group = fill(session)
    before = content(session)
    session.close()
    if version == THIS_TREE:
        add_to_next_release(files, empty_database, server)

    applied = install.apply(empty_database)

    assert version != THIS_TREE or (applied.migrations == ["rowqueue_9999_next"] and "cancel" in applied.procedures)
    assert install.pending(empty_database) == []
    missing = Counter(fresh(empty_database)) - Counter(server.catalog(empty_database.url))
    assert not missing, "a new installation has this, and the upgraded one has not"
    session = empty_database.connect("after")
    try:
        after = content(session)
        for name, rows in before.items():
            kept = [{column: row[column] for column in rows[0]} for row in after[name]] if rows else after[name]
            assert kept == rows, name
        go_on(session, key, in_group)
    finally:
        session.close()
