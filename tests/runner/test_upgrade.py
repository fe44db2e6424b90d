"""An installation of an earlier release, with messages in every state, survives the upgrade to this tree."""

import gzip
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import frozen
import pytest
from queues import call, in_an_hour
from rowqueue import contract, install
from rowqueue.databases import Database, Session
from rowqueue.databases.sqlserver.script import batches
from servers import Server, engine
from servers.firebird import LocalFirebird, dsn
from servers.mysql import LocalMySQL
from servers.postgresql import programs
from servers.shell import Shell

RELEASES = Path(__file__).resolve().parents[2] / "releases"
# Also without an earlier release: this tree, and then a migration on top of it.
THIS_TREE = "this tree"
TYPES = ("plain", "archived", "ordered", "ring", "paused")


def scripted(version: str, database: Database) -> str:
    """The script by which a release installs."""
    if version == THIS_TREE:
        return "".join(f"{part}\n" for part in install.script(database.name))
    return gzip.decompress((RELEASES / version / f"rowqueue-{database.name}.sql.gz").read_bytes()).decode()


def run_script(server: Server, url: str, text: str, folder: Path) -> None:
    """As docs/start/install.md says, by the database's own client. SQL Server has none here: batch by batch."""
    script = folder / "release.sql"
    script.write_text(text, "utf-8")
    if isinstance(server, LocalMySQL):
        Shell(server, folder)(f"mysql --comments {url.rpartition('/')[2]} < release.sql")
    elif isinstance(server, LocalFirebird):
        Shell(server, folder)(f"isql -quiet -bail -charset UTF8 -input release.sql {dsn(url)}")
    elif engine(server.name) == "postgresql":
        command = [str(programs(18) / "psql"), "-X", "-q", "-d", url, "-f", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
    elif engine(server.name) == "sqlserver":
        for batch in batches(re.sub(r"(?m)^:.*", "", text)):
            server.query(url, batch)
    else:
        pytest.skip("the client of the named server is not known")


def add_to_next_release(files: Path, database: Database, server: Server) -> None:
    """A column more for the table of messages, and a procedure with another text."""
    message = server.table("message")
    migration = files / "migrations" / database.name / "rowqueue_9999_next.sql"
    migration.write_text(f"ALTER TABLE {message} ADD note integer;\nUPDATE {message} SET note = 7;\n")
    with (files / "procedures" / database.name / "operations" / "cancel.sql").open("a") as file:
        file.write("-- changed\n")


def fill(session: Session, core_only: bool = False) -> tuple[Any, Any]:
    """Messages in every state, settings, a schedule and a topic; returns the keys of two claims."""

    def claimed(type: str, *then: Any) -> Any:
        [row] = call(session, "claim_batch", type, 1, "me", 600)
        if then:
            call(session, "fail", row["id"], row["batch_key"], "broken", *then)
        return row["batch_key"]

    call(session, "set_queue", "archived", on_complete="archive", max_attempts=3)
    call(session, "set_queue", "ordered", ordered=1)
    call(session, "send", "archived", "done")
    call(session, "complete_batch", claimed("archived"))
    for retry_after_seconds in (-1, 3_600):
        call(session, "send", "plain", f"failed {retry_after_seconds}")
        claimed("plain", retry_after_seconds)
    call(session, "send_batch", "plain", "a\nb")
    [first, _] = call(session, "claim_batch", "plain", 2, "me", 600)
    for n in range(3):
        call(session, "send_message", "ordered", f"{n}", group_key="g")
    in_group = claimed("ordered")
    call(session, "send_message", "plain", "new", priority=5, dedup_key="d", headers='{"a":1}', source="shop")
    call(session, "send_message", "plain", "later", run_at=in_an_hour())
    call(session, "set_queue", "ring", ring=1)
    call(session, "send_batch", "ring", "1\n2\n3")
    [visited] = call(session, "claim_wraparound", "ring", 1, "r", 600)
    call(session, "release_batch", visited["batch_key"])
    call(session, "send", "paused", "x")
    call(session, "pause", "paused")
    if core_only:
        return first["batch_key"], in_group
    call(session, "bind_topic", "orders.*", "plain")
    call(session, "set_schedule", "yearly", "plain", "@yearly", "b")
    return first["batch_key"], in_group


def content(session: Session) -> dict[str, list[dict[str, Any]]]:
    """All that callers see of the queues. A later release may have more columns."""
    there = session.areas()
    seen = {
        name: call(session, name)
        for name in ("list_queues", "list_schedules", "list_bindings")
        if contract.load().procedures[name].area in there
    }
    for type in TYPES:
        for state in "NAEC":
            seen[f"{type} {state}"] = sorted(call(session, "peek", type, state), key=lambda row: int(row["id"]))
    return seen


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


@pytest.mark.heavy
@pytest.mark.parametrize("version", [THIS_TREE, *(path.name for path in frozen.released(RELEASES))])
def test_an_upgrade_loses_nothing_and_has_all_that_a_new_installation_has(
    version: str, empty_database: Database, server: Server, files: Path, fresh: Callable[[Database], list[str]]
) -> None:
    run_script(server, empty_database.url, scripted(version, empty_database), files)
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


def go_on(session: Session, key: Any, in_group: Any) -> None:
    """Claims made before the upgrade are finished, and every message can be claimed once, in order."""
    assert call(session, "complete_batch", key) == [{"count": 2}]
    [again] = call(session, "send_message", "plain", "other", dedup_key="d")
    assert again["created"] == 0
    assert call(session, "redrive", "plain") == [{"count": 1}]
    assert call(session, "take_batch", "paused", 10) == []
    call(session, "resume", "paused")
    assert call(session, "take_batch", "ordered", 10) == [], "the group's first message is still claimed"
    call(session, "complete_batch", in_group)
    taken = {type: [row["body"] for row in call(session, "take_batch", type, 10)] for type in ("plain", "paused")}
    assert sorted(taken["plain"]) == ["failed -1", "new"] and taken["paused"] == ["x"]
    assert [row["body"] for _ in "12" for row in call(session, "take_batch", "ordered", 1)] == ["1", "2"]
    visits = [call(session, "claim_wraparound", "ring", 1, "r", 600)[0]["body"] for _ in "123"]
    assert visits == ["2", "3", "1"], "the reader goes on where it stopped"
    assert {row["body"] for row in call(session, "peek", "plain", "N")} == {"failed 3600", "later"}
