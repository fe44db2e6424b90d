"""runner apply: what it installs, what it leaves alone and what it refuses."""

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from rowqueue.consume.consumer import check_installed
from rowqueue.databases import Database, DatabaseError, SchemaMissing, open_database
from rowqueue.databases import migrations as yoyo_migrations
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server, engine

pytestmark = pytest.mark.engines

Catalog = Callable[[], list[str]]


def quoted(database: Database, name: str) -> str:
    """A name of yoyo's tables; yoyo quotes all names, and Firebird would convert it to upper case without quotes."""
    return f'"{name}"' if database.name == "firebird" else name


@pytest.fixture
def catalog(request: pytest.FixtureRequest, server: Server) -> Catalog:
    """What the database of the test holds now."""
    name = "installed_database" if "installed_database" in request.fixturenames else "empty_database"
    database: Database = request.getfixturevalue(name)
    return lambda: server.catalog(database.url)


@pytest.fixture
def migrations(files: Path, server_name: str) -> Path:
    return files / "migrations" / engine(server_name)


@pytest.fixture
def procedures(files: Path, server_name: str) -> Path:
    return files / "procedures" / engine(server_name) / "operations"


def states(database: Database) -> dict[str, str]:
    return {file.name: file.state for file in install.status(database) if file.state != "ok"}


def yoyo(database: Database, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`folder`: that of the migrations; by default ours."""
    folder = folder or contract.sql_root() / "migrations" / database.name
    command = [sys.executable, "-m", "yoyo", *arguments, "--batch", "--database", database.yoyo_url(), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_apply_installs_every_file_of_the_contract(empty_database: Database) -> None:
    applied = install.apply(empty_database)
    assert sorted(applied.migrations) == sorted(path.stem for path in migration_files(empty_database))
    assert applied.procedures == [*contract.load().files(empty_database.name), *grants(empty_database)]
    installed = empty_database.installed()
    assert installed is not None
    files = {file.name: file.sha256 for file in install.known(empty_database)}
    assert {name: entry.sha256 for name, entry in installed.items()} == files
    assert set(files) >= {*applied.migrations, *applied.procedures, *contract.load().areas}
    assert install.pending(empty_database) == []


def grants(database: Database) -> list[str]:
    """The files with grants, as they are recorded."""
    return [f"{path.parent.name}/grants" for path in contract.load().grants(database.name)]


def migration_files(database: Database) -> list[Path]:
    return sorted((contract.sql_root() / "migrations" / database.name).glob("*.sql"))


def test_a_second_apply_changes_nothing(installed_database: Database, server: Server, catalog: Catalog) -> None:
    records = f"SELECT * FROM {server.table('installed')} ORDER BY name"
    before = catalog(), server.query(installed_database.url, records)
    assert install.apply(installed_database) == install.Applied()
    assert (catalog(), server.query(installed_database.url, records)) == before


def test_before_apply_every_file_is_missing(empty_database: Database) -> None:
    assert set(states(empty_database).values()) == {"missing"}
    assert len(states(empty_database)) == len(install.files(empty_database.name))


@pytest.mark.level(1)
def test_a_changed_procedure_file_is_pending_until_it_is_applied_alone(
    installed_database: Database, procedures: Path, catalog: Catalog
) -> None:
    before = catalog()
    path = procedures / "cancel.sql"
    path.write_text(path.read_text().replace("\n-- ", "\n-- changed\n-- ", 1))  # MariaDB keeps a comment after the body
    assert states(installed_database) == {"cancel": "pending"}
    assert install.apply(installed_database).procedures == ["cancel", *grants(installed_database)]
    assert states(installed_database) == {}
    assert catalog() == before


@pytest.mark.level(1)
def test_an_object_that_was_dropped_by_hand_is_drifted_and_apply_creates_it_again(
    installed_database: Database, server: Server, catalog: Catalog
) -> None:
    before = catalog()
    server.drop_procedure(installed_database.url, "cancel")
    assert states(installed_database) == {"cancel": "drifted"}
    assert install.apply(installed_database).procedures == ["cancel", *grants(installed_database)]
    assert catalog() == before


@pytest.mark.level(1)
def test_an_edited_migration_is_refused_and_nothing_is_changed(
    installed_database: Database, migrations: Path, procedures: Path, catalog: Catalog, server: Server
) -> None:
    before = catalog()
    first = min(migrations.glob("*.sql"))
    first.write_text(first.read_text() + f"CREATE TABLE {server.table('sneaked_in')} (id integer);\n")
    (procedures / "cancel.sql").write_text("this would fail")
    with pytest.raises(install.InstallError, match=rf"{first.stem} was edited"):
        install.apply(installed_database)
    assert catalog() == before
    assert states(installed_database) == {first.stem: "edited", "cancel": "pending"}


@pytest.mark.level(1)
def test_a_new_migration_is_applied_once_to_a_database_that_has_the_others(
    installed_database: Database, migrations: Path, server: Server
) -> None:
    more = server.table("more")
    text = f"CREATE TABLE {more} (id integer);\nINSERT INTO {more} VALUES (7);\n"
    (migrations / "rowqueue_9999_more.sql").write_text(text)
    assert states(installed_database) == {"rowqueue_9999_more": "missing"}
    applied = install.apply(installed_database)
    assert (applied.migrations, applied.repaired) == (["rowqueue_9999_more"], [])
    assert applied.procedures == grants(installed_database)
    install.apply(installed_database)
    assert server.query(installed_database.url, f"SELECT id FROM {more}") == [{"id": 7}]


@pytest.mark.level(1)
def test_a_database_newer_than_the_release_is_refused(
    installed_database: Database, migrations: Path, server: Server
) -> None:
    more = migrations / "rowqueue_9999_more.sql"
    more.write_text(f"CREATE TABLE {server.table('more')} (id integer);\n")
    install.apply(installed_database)
    more.unlink()
    assert states(installed_database) == {"rowqueue_9999_more": "newer"}
    with pytest.raises(install.InstallError, match=r"newer than this release.*rowqueue_9999_more"):
        install.apply(installed_database)


@pytest.mark.level(1)
def test_a_runner_works_with_a_later_release_of_its_major_version_and_apply_changes_nothing(
    installed_database: Database,
    migrations: Path,
    procedures: Path,
    catalog: Catalog,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more, text = migrations / "rowqueue_9999_more.sql", (procedures / "cancel.sql").read_text()
    more.write_text(f"CREATE TABLE {server.table('more')} (id integer);\n")
    (procedures / "cancel.sql").write_text(text.replace("Returns:  ", "Returns:   "))
    monkeypatch.setattr(contract, "release", lambda: "0.12.0")
    install.apply(installed_database)
    check_installed(installed_database)
    # The earlier release again.
    more.unlink()
    (procedures / "cancel.sql").write_text(text)
    for release, later in (("0.2.0", "0.12.0"), ("0.11.9", "0.12.0")):
        monkeypatch.setattr(contract, "release", lambda release=release: release)
        check_installed(installed_database)
        assert states(installed_database) == {later: "newer", "rowqueue_9999_more": "newer"}
    before = catalog()
    with pytest.raises(install.InstallError, match=r"newer than this release: it has release 0\.12\.0"):
        install.apply(installed_database)
    assert catalog() == before
    server.drop_procedure(installed_database.url, "cancel")
    with pytest.raises(SchemaMissing, match="1 files: drifted"):
        check_installed(installed_database)


@pytest.mark.level(1)
def test_a_runner_refuses_a_database_of_another_major_version_or_an_earlier_release(
    installed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "release", lambda: "1.0.0")
    with pytest.raises(SchemaMissing, match="missing"):
        check_installed(installed_database)
    install.apply(installed_database)
    check_installed(installed_database)
    monkeypatch.setattr(contract, "release", lambda: "0.12.0")
    with pytest.raises(SchemaMissing, match="newer"):
        check_installed(installed_database)


def test_a_migration_that_fails_leaves_nothing_and_can_be_repaired(
    installed_database: Database, migrations: Path, catalog: Catalog, server: Server
) -> None:
    before = catalog()
    broken = migrations / "rowqueue_9999_broken.sql"
    half = server.table("half")
    broken.write_text(f"CREATE TABLE {half} (id integer);\nCREATE INDEX half_index ON {half}_nowhere (id);\n")
    with pytest.raises(DatabaseError, match=r"migration: .*(?i:half)") as caught:
        install.apply(installed_database)
    assert "\n" not in str(caught.value)
    if installed_database.name in {"postgresql", "sqlserver"}:
        assert catalog() == before
        broken.write_text(f"CREATE TABLE {half} (id integer);\n")
    else:  # DDL cannot be rolled back there: migrations are safe to rerun
        again = "RECREATE TABLE" if installed_database.name == "firebird" else "CREATE TABLE IF NOT EXISTS"
        broken.write_text(f"{again} {half} (id integer);\n")
    assert install.apply(installed_database).migrations == ["rowqueue_9999_broken"]


@pytest.mark.level(1)
def test_a_procedure_file_that_fails_leaves_all_others_as_they_were(
    installed_database: Database, procedures: Path, catalog: Catalog
) -> None:
    before = catalog()
    good, other = (procedures / "cancel.sql").read_text(), (procedures / "peek.sql").read_text()
    # A changed result column needs the old procedure dropped first; PostgreSQL refuses to replace it.
    changed = good.replace("    count bigint", "    count bigint, more bigint")
    (procedures / "cancel.sql").write_text(changed.replace("\n-- ", "\n-- changed\n-- ", 1))
    (procedures / "peek.sql").write_text("CREATE nonsense\n")
    with pytest.raises(DatabaseError, match=r"^(cancel|peek)\.sql: "):
        install.apply(installed_database)
    if not installed_database.swaps_at_once:  # then it is the next apply that finishes the work
        assert states(installed_database)["peek"] == "pending"
        (procedures / "peek.sql").write_text(other)
        install.apply(installed_database)
        assert states(installed_database) == {}
    assert catalog() == before
    if not installed_database.swaps_at_once:
        return
    assert states(installed_database) == {"cancel": "pending", "peek": "pending"}


@pytest.mark.level(3)
def test_four_installers_at_once_install_once(empty_database: Database, server: Server, catalog: Catalog) -> None:
    program = (
        "import sys; from rowqueue.install import apply as install; from rowqueue.databases import open_database; "
        "print(len(install.apply(open_database(sys.argv[1])).procedures))"
    )
    command = [sys.executable, "-c", program, empty_database.url]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    results = [process.communicate(timeout=90) for process in running]
    assert [(process.returncode, error) for process, (_, error) in zip(running, results, strict=True)] == [(0, "")] * 4
    others = [*migration_files(empty_database), *contract.load().areas, contract.release()]
    assert sorted(int(out) for out, _ in results) == [0, 0, 0, len(install.files(empty_database.name)) - len(others)]
    assert states(empty_database) == {}


@pytest.mark.level(3, one=True)
def test_plain_yoyo_apply_is_adopted_and_gives_the_same_schema(
    empty_database: Database, server: Server, catalog: Catalog
) -> None:
    done = yoyo(empty_database, "apply")
    assert done.returncode == 0, done.stderr
    assert states(empty_database).keys() >= {path.stem for path in migration_files(empty_database)}
    applied = install.apply(empty_database)
    assert applied.migrations == []
    assert states(empty_database) == {}
    other = server.create_database()
    try:
        install.apply(type(empty_database)(other))
        assert catalog() == server.catalog(other)
    finally:
        server.drop_database(other)


@pytest.mark.level(1)
def test_plain_yoyo_apply_after_apply_has_nothing_to_do(installed_database: Database, catalog: Catalog) -> None:
    before = catalog()
    done = yoyo(installed_database, "apply")
    assert done.returncode == 0, done.stderr
    assert catalog() == before


@pytest.mark.level(1)
def test_the_lock_of_a_crashed_yoyo_is_explained_and_can_be_broken(
    empty_database: Database, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert yoyo(empty_database, "list").returncode == 0
    columns = f"{quoted(empty_database, 'locked')}, {quoted(empty_database, 'pid')}"
    server.query(empty_database.url, f"INSERT INTO {quoted(empty_database, 'yoyo_lock')} ({columns}) VALUES (1, 4711)")
    monkeypatch.setattr(yoyo_migrations, "LOCK_SECONDS", 0.5)
    with pytest.raises(install.InstallError, match=r"--break-lock.*4711"):
        install.apply(empty_database)
    assert empty_database.installed() is None
    install.apply(empty_database, break_lock=True)
    assert states(empty_database) == {}


@pytest.mark.level(1)
def test_uninstall_removes_everything_and_apply_works_again(
    empty_database: Database, server: Server, catalog: Catalog
) -> None:
    before = catalog()
    install.apply(empty_database)
    installed = catalog()
    empty_database.uninstall()
    assert catalog() == before
    assert empty_database.installed() is None
    install.apply(empty_database)
    assert catalog() == installed


@pytest.mark.level(3)
def test_another_projects_migrations_may_have_the_names_of_ours_without_the_prefix(
    empty_database: Database, server: Server, tmp_path: Path
) -> None:
    """0001_queue is applied before the queue is installed, 0002_feeds after that."""

    def theirs(command: str, *names: str) -> None:
        done = yoyo(empty_database, command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert install.pending(empty_database) == [] or not names
        for name in names:
            assert server.query(empty_database.url, f"SELECT count(*) AS n FROM their_{name}") == [{"n": 0}]

    def add(name: str) -> None:
        (tmp_path / f"{name}.sql").write_text(f"CREATE TABLE their_{name} (id integer);\n")
        (tmp_path / f"{name}.rollback.sql").write_text(f"DROP TABLE their_{name};\n")

    add("0001_queue")
    theirs("apply")
    assert len(install.apply(empty_database).migrations) == len(migration_files(empty_database))
    add("0002_feeds")
    theirs("apply", "0001_queue", "0002_feeds")
    theirs("rollback")
    assert install.pending(empty_database) == []
    theirs("apply", "0001_queue", "0002_feeds")
    assert install.apply(empty_database) == install.Applied()
    empty_database.uninstall()
    assert [row["migration_id"] for row in recorded(empty_database, server)[0]] == ["0001_queue", "0002_feeds"]
    theirs("rollback")


def recorded(database: Database, server: Server) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The migrations in yoyo's table and in ours."""
    id, hash, table = (quoted(database, name) for name in ("migration_id", "migration_hash", "_yoyo_migration"))
    theirs = server.query(database.url, f"SELECT {id}, {hash} FROM {table} ORDER BY 1")
    if database.installed() is None:
        return theirs, []
    ours = f"SELECT name, sha256 FROM {server.table('installed')} WHERE kind = 'migration' ORDER BY 1"
    return theirs, server.query(database.url, ours)


@pytest.mark.level(1)
def test_uninstall_leaves_the_log_of_a_project_that_has_rolled_all_of_its_migrations_back(
    empty_database: Database, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "0001_theirs.sql").write_text("CREATE TABLE theirs (id integer);\n")
    install.apply(empty_database)
    for command in ("apply", "rollback"):
        assert yoyo(empty_database, command, folder=tmp_path).returncode == 0
    empty_database.uninstall()
    log = f"SELECT {quoted(empty_database, 'migration_id')} FROM {quoted(empty_database, '_yoyo_log')}"
    assert server.query(empty_database.url, log) == [{"migration_id": "0001_theirs"}] * 2


@pytest.mark.parametrize("made", ["TABLE {} (id integer)", "PROCEDURE {}() BEGIN END"], ids=["table", "procedure"])
def test_an_object_of_another_project_with_a_name_of_ours_is_named_and_nothing_is_changed(
    empty_database: Database, server: Server, catalog: Catalog, run_script: Callable[..., str], made: str
) -> None:
    name = server.table("peek")
    if "." in name:
        if "PROCEDURE" in made:
            pytest.skip("the schema is refused, whatever it contains")
        server.query(empty_database.url, "CREATE SCHEMA mq")
    if "TABLE" in made:
        name = server.table("message")
    elif server.name.startswith("firebird"):
        made = made.replace("() ", " AS ")
    told = rf"another project has a (((?i:table|procedure|routine) (?i:{name}))|schema mq)"
    server.query(empty_database.url, f"CREATE {made.format(name)}")
    before = catalog()
    with pytest.raises(DatabaseError, match=told):
        install.apply(empty_database)
    assert catalog() == before
    with pytest.raises(AssertionError, match=told):
        run_script(empty_database.url, script(empty_database))
    assert catalog() == before


def script(database: Database) -> str:
    return "".join(f"{part}\n" for part in install.script(database.name))


@pytest.mark.level(3)
def test_the_script_builds_the_same_schema_as_apply_and_can_be_run_again(
    empty_database: Database, server: Server, catalog: Catalog, run_script: Callable[..., str]
) -> None:
    """In silence. The catalog of MySQL has views with the name of their database."""
    seen = "CASE WHEN name IN ('message_state', 'message_overview') THEN '' ELSE fingerprint END"
    records = f"SELECT kind, name, sha256, {seen} AS seen FROM {server.table('installed')} ORDER BY name"
    for _ in range(2):
        assert run_script(empty_database.url, script(empty_database)) == ""
    other = server.create_database()
    install.apply(open_database(other))
    assert catalog() == server.catalog(other)
    assert server.query(empty_database.url, records) == server.query(other, records)
    server.drop_database(other)
    assert install.apply(empty_database) == install.Applied()


def test_the_script_ends_at_the_first_error(empty_database: Database, run_script: Callable[..., str]) -> None:
    first, *rest = install.script(empty_database.name)
    end = {"firebird": "^", "sqlserver": "\nGO"}.get(empty_database.name, ";")
    with pytest.raises(AssertionError, match="nonsense"):
        run_script(empty_database.url, "\n".join([first, f"nonsense{end}", *rest]))
    assert empty_database.installed() is None


def test_the_script_for_firebird_is_ascii() -> None:
    assert "".join(install.script("firebird")).isascii()


def test_an_unknown_database_name_is_refused(files: Path) -> None:
    with pytest.raises(LookupError, match="no SQL for 'oracle9'"):
        install.files("oracle9")


def test_a_role_that_cannot_read_the_installation_can_still_consume(database: Database, server: Server) -> None:
    role = f"test_{uuid.uuid4().hex[:8]}"
    with server.login(database.url, role) as url:
        assert install.pending(type(database)(url)) == []


@pytest.mark.parametrize("granted", ["mq_consumer", "mq_operator", "mq_viewer"])
def test_each_role_of_the_queue_can_check_the_installation(database: Database, server: Server, granted: str) -> None:
    role = f"test_{uuid.uuid4().hex[:8]}"
    with server.login(database.url, role, granted) as url:
        assert {file.state for file in install.status(type(database)(url))} == {"ok"}


@pytest.mark.parametrize(
    "form",
    [
        "PUBLIC may execute mq.f{}(text,text)",
        "mq_consumer lacks EXECUTE on mq_f{}",
        "mq_f{} belongs to root@%, not to mq_owner@localhost",
        "MQ_F{} lacks a right on 2 objects of the queue",
        "mq_operator has SELECT on type mq.f{}",
    ],
)
def test_the_same_problem_of_many_objects_is_one_line(form: str) -> None:
    few, many = ([form.format(n) for n in range(count)] for count in (4, 120))
    assert install.briefly(["role mq_viewer does not exist", *few]) == ["role mq_viewer does not exist", *few]
    [line] = install.briefly(many)
    assert line.startswith(f"{many[0]}, and the same of 119 others: ") and "f2" in line.lower() and len(line) < 150
