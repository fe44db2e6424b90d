"""Parts of the queue: the core alone, areas that are added later, and what is said of those that are not there."""

import json
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import rowqueue
from rowqueue.databases import Database, SchemaMissing, open_database
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server, engine
from support.contract import procedures_of
from support.queues import call, ids
from support.states import content, fill

pytestmark = pytest.mark.engines

CORE = ("common", "queue", "operations")
KNOWN = contract.load()


@pytest.fixture
def core(server: Server) -> Iterator[Database]:
    """A database with the core only."""
    url = server.create_database()
    database = open_database(url)
    install.apply(database, areas=["queue"])
    yield database
    server.drop_database(url)


def procedures(database: Database, areas: tuple[str, ...]) -> set[str]:
    return {name for name, entry in procedures_of(database.name).items() if entry.area in areas}


def test_the_core_alone_works_and_has_nothing_of_an_area(core: Database, server: Server) -> None:
    assert core.areas() == CORE
    installed = core.installed() or {}
    assert installed.keys() & procedures_of(core.name).keys() == procedures(core, CORE)
    tables = {path.stem for path in (contract.sql_root() / "migrations" / core.name).glob("*.sql")}
    assert {name for name in installed if name in tables} == {n for n in tables if KNOWN.area_of_migration(n) is None}
    session = core.connect("test")
    try:
        key, in_group = fill(session, core_only=True)
        assert call(session, "complete_batch", in_group) == [{"affected": 1}]
        assert [row["body"] for row in call(session, "finish_batch", key, "", 3)] == ["new"]
        rows = call(session, "queue_health")
        assert [row for row in rows if row["verdict"] == "bad"] == []
        with pytest.raises(SchemaMissing, match=r"area schedules is not installed.*apply --areas schedules"):
            call(session, "list_schedules")
        with pytest.raises(rowqueue.AreaMissing, match=r"area ring is not installed.*apply --areas ring"):
            call(session, "claim_wraparound", "plain")
    finally:
        session.close()
    assert core.rights_problems() == []
    assert install.apply(core) == install.Applied()
    assert set(install.pending(core)) == set()


@pytest.mark.level(3)
def test_areas_that_are_added_later_change_no_message_and_make_the_database_a_whole_one(
    core: Database, server: Server
) -> None:
    session = core.connect("before")
    key, in_group = fill(session, core_only=True)
    before = content(session)
    session.close()
    applied = install.apply(core, areas=list(KNOWN.areas))
    assert applied.repaired == [] and core.areas() == tuple(KNOWN.areas)
    whole = server.create_database()
    try:
        install.apply(open_database(whole))
        assert Counter(server.catalog(core.url)) == Counter(server.catalog(whole))
    finally:
        server.drop_database(whole)
    session = core.connect("after")
    try:
        after = content(session)
        assert {name: after[name] for name in before} == before
        call(session, "set_queue", "ring", ring=1)
        visits = [call(session, "claim_wraparound", "ring", 2, "r") for _ in "12"]
        assert [[row["body"] for row in rows] for rows in visits] == [["1", "2"], ["3"]]
        call(session, "set_queue", "fair", fair=1)
        assert [row["body"] for row in call(session, "take_batch", "fair", 2)] == ["a", "b"]
        call(session, "set_schedule", "s", "due", "* * * * *", "scheduled")
        server.query(core.url, f"UPDATE {server.table('schedule')} SET next_at = moved_at")
        [message] = call(session, "claim_batch", "due", 5)
        assert message["body"] == "scheduled"
        call(session, "bind_topic", "a.*", "topical")
        call(session, "publish", "a.b", "told")
        assert [row["body"] for row in call(session, "claim_batch", "topical", 5)] == ["told"]
        assert call(session, "advance_sequence", "n", 3) == [{"first_number": 1, "last_number": 3}]
        assert call(session, "complete_batch", in_group) == [{"affected": 1}]
        assert call(session, "complete_batch", key) == [{"affected": 2}]
    finally:
        session.close()
    assert install.apply(core) == install.Applied()


@pytest.mark.level(3)
def test_the_script_of_a_part_is_what_apply_installs_and_another_script_adds_to_it(
    core: Database, empty_database: Database, server: Server, run_script: Callable[..., str]
) -> None:
    def script(*areas: str) -> str:
        return "".join(f"{part}\n" for part in install.script(core.name, areas))

    run_script(empty_database.url, script("queue"))
    assert install.apply(empty_database) == install.Applied()
    assert server.catalog(empty_database.url) == server.catalog(core.url)
    run_script(empty_database.url, script("schedules", "tables"))
    install.apply(core, areas=["schedules", "tables"])
    assert server.catalog(empty_database.url) == server.catalog(core.url)
    assert install.apply(empty_database) == install.Applied()
    with pytest.raises(AssertionError):  # it lacks areas that the database has
        run_script(empty_database.url, script("queue"))
    assert server.catalog(empty_database.url) == server.catalog(core.url)
    assert install.apply(empty_database) == install.Applied()


@pytest.mark.level(1)
@pytest.mark.parametrize("role", [None, "mq_operator"])
def test_a_call_of_an_area_that_is_not_installed_names_the_command(
    core: Database, server: Server, role: str | None
) -> None:
    """MySQL and MariaDB say to an account without rights on the database that it may not call the procedure."""
    with server.login(core.url, f"login_{uuid.uuid4().hex[:12]}", "mq_operator") as url:
        session = open_database(url if role else core.url).connect("test")
        with closing(session), pytest.raises(rowqueue.AreaMissing) as caught:
            session.call("list_schedules")
    assert (caught.value.number, caught.value.name) == (50009, "area_missing")
    assert str(caught.value).startswith(
        "area_missing: the area schedules is not installed here: `runner apply --areas schedules` adds it ("
    )


@pytest.mark.level(1)
@pytest.mark.parametrize("setting", ["ring", "fair"])
def test_a_setting_of_an_area_that_is_not_installed_is_refused_and_changes_nothing(
    core: Database, server: Server, setting: str
) -> None:
    message = f"{setting}: the area {setting} is not installed here: `runner apply --areas {setting}` adds it"
    with closing(core.connect("test")) as session:
        call(session, "set_queue", "known", max_attempts=3)
        for type in ("known", "new"):
            for refused in (
                ("set_queue", type, json.dumps({setting: 1, "max_attempts": 5})),
                ("set_queue", type, json.dumps({setting: True})),
                ("set_option", type, setting, "1"),
            ):
                with pytest.raises(rowqueue.AreaMissing) as caught:
                    session.call(*refused)
                assert (caught.value.number, str(caught.value)) == (50009, f"area_missing: {message}")
        [known] = call(session, "list_queues")
        assert (known["type"], known["max_attempts"], known[setting]) == ("known", 3, 0)
        for value in ("0", None):
            [row] = session.call("set_option", "known", setting, value)
            assert row[setting] == 0


@pytest.mark.level(3)
@pytest.mark.parametrize("setting", ["ring", "fair"])
def test_claims_of_a_queue_whose_area_was_not_restored_are_refused_until_it_is_added(
    core: Database, server: Server, setting: str
) -> None:
    """As after a restore of the tables' rows into an installation without the area."""
    on = "true" if engine(server.name) == "postgresql" else "1"
    with closing(core.connect("test")) as session:
        call(session, "set_queue", "q", max_attempts=3)
        server.query(core.url, f"UPDATE {server.table('queue')} SET {setting} = {on} WHERE type = 'q'")
        for group in "aab":
            call(session, "send_message", "q", group, group_key=group)
        before = ids(call(session, "peek", "q"))
        for claim in ("claim_batch", "take_batch", "get_message"):
            if (setting, claim) != ("ring", "take_batch"):  # a take has no position and claims in the usual order
                with pytest.raises(rowqueue.AreaMissing, match=f"{setting}: the area {setting} is not installed"):
                    call(session, claim, "q")
        [kept] = call(session, "set_queue", "q", max_attempts=5)
        assert (kept["max_attempts"], kept[setting]) == (5, 1)
        assert ids(call(session, "peek", "q")) == before
    install.apply(core, areas=[setting])
    with closing(core.connect("test")) as session:
        claimed = [row["body"] for row in call(session, "claim_batch", "q", 3)]
        assert claimed == (["a", "a", "b"] if setting == "ring" else ["a", "b", "a"])


@pytest.mark.level(1)
def test_a_later_apply_keeps_the_areas_and_extends_them(empty_database: Database) -> None:
    install.apply(empty_database, areas=["queue", "results"])
    assert empty_database.areas() == (*CORE, "results")
    assert install.apply(empty_database) == install.Applied()
    applied = install.apply(empty_database, areas=["subscriptions"])
    assert empty_database.areas() == (*CORE, "common_tables", "subscriptions", "results", "topics")
    assert "area 'common_tables' is installed too: subscriptions needs it" in applied.notices
    assert "area 'topics' is installed too: subscriptions needs it" in applied.notices
    assert "installed before, and kept: results; areas cannot be removed" in applied.notices
    assert install.apply(empty_database) == install.Applied()


@pytest.mark.level(1)
def test_an_unknown_area_is_refused_with_the_names_that_are_known(empty_database: Database) -> None:
    with pytest.raises(LookupError, match=r"unknown area 'schedule'; known: common, queue, .*schedules"):
        install.apply(empty_database, areas=["queue", "schedule"])
    assert empty_database.areas() is None


@pytest.mark.level(1)
def test_an_installation_that_was_interrupted_continues_with_the_same_areas(
    empty_database: Database, files: Path
) -> None:
    broken = files / "procedures" / empty_database.name / "operations" / "cancel.sql"
    text = broken.read_text()
    broken.write_text(f"{text}CREATE nonsense;\n")
    with pytest.raises(Exception, match="cancel"):
        install.apply(empty_database, areas=["queue", "feeds"])
    assert empty_database.areas() == (*CORE, "common_tables", "feeds")
    broken.write_text(text)
    install.apply(empty_database)
    assert empty_database.areas() == (*CORE, "common_tables", "feeds")
    assert install.pending(empty_database) == []


@pytest.mark.level(1)
def test_a_core_is_uninstalled_without_a_trace(empty_database: Database, server: Server) -> None:
    before = server.catalog(empty_database.url)
    install.apply(empty_database, areas=["queue"])
    install.uninstall(empty_database)
    assert server.catalog(empty_database.url) == before


@pytest.mark.level(1)
def test_the_command_line_installs_areas_and_refuses_unknown_ones(
    empty_database: Database, runner: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = runner("apply", "--areas", "queue, schedule", url=empty_database.url)
    assert done.returncode == 2 and "known: common, queue, operations" in " ".join(done.stderr.split()), done.stderr
    done = runner("apply", "--areas", "topics,schedules", url=empty_database.url)
    assert done.returncode == 0, done.stderr
    assert empty_database.areas() == (*CORE, "topics", "schedules")
