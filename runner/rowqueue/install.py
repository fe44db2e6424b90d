"""Installs the SQL: versioned migrations through yoyo, then the procedure files that changed, then the grants."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import contract
from .databases import Database, DatabaseError, Forbidden, Installed, QueueError, SqlFile, open_database
from .databases.migrations import InstallError as InstallError
from .databases.migrations import migrate


@dataclass(frozen=True)
class FileStatus:
    """How one file stands to the database.

    `state` is `ok`; `missing`: never installed; `pending`: the file was changed since; `drifted`: the object in the
    database was changed or removed by somebody else; `edited`: a migration was changed after it had been applied;
    `newer`: the database has a migration that this release does not know.
    """

    kind: str
    name: str
    state: str


@dataclass
class Applied:
    """What an `apply` did: names of migrations and procedure files, wrong rights that it found, and warnings."""

    migrations: list[str] = field(default_factory=list)
    procedures: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def files(database: str) -> list[SqlFile]:
    """All SQL files of a database in the order of installation. LookupError if none."""
    root = contract.sql_root()
    migrations = sorted((root / "migrations" / database).glob("*.sql"))
    if not migrations:
        names = ", ".join(sorted(path.name for path in (root / "migrations").iterdir() if any(path.glob("*.sql"))))
        raise LookupError(f"database: no SQL for {database!r}; known: {names}")
    known = contract.load()
    procedures = [known.file(database, name) for name in (*known.objects(database), contract.GRANTS)]
    return [*(_file("migration", path) for path in migrations), *(_file("procedure", path) for path in procedures)]


def _file(kind: str, path: Path) -> SqlFile:
    text = path.read_text("utf-8")
    return SqlFile(kind, path.stem, hashlib.sha256(text.encode()).hexdigest(), text)


def known(database: Database) -> list[SqlFile]:
    """All SQL files of a database in the order of installation, with the texts that its server is to have."""
    return database.fitted(files(database.name))


def script(database: str) -> Iterator[str]:
    """The whole installation as a plain script for the database's own client, in parts. LookupError if unknown."""
    return open_database(f"{database}://").script(files(database))


def status(database: Database) -> list[FileStatus]:
    """Every file and how it stands to the database. Raises Forbidden for a role that may not look."""
    installed = database.installed() or {}
    released = known(database)
    names = {file.name for file in released}
    found = [FileStatus(file.kind, file.name, _state(file, installed.get(file.name))) for file in released]
    unknown = [entry.name for entry in installed.values() if entry.kind == "migration" and entry.name not in names]
    return found + [FileStatus("migration", name, "newer") for name in unknown]


def _state(file: SqlFile, entry: Installed | None) -> str:
    if entry is None:
        return "missing"
    if entry.sha256 != file.sha256:
        return "edited" if file.kind == "migration" else "pending"
    return "drifted" if entry.changed else "ok"


def pending(database: Database) -> list[FileStatus]:
    """What `apply` would have to see to; empty also for a role that has no right to look."""
    try:
        return [file for file in status(database) if file.state != "ok"]
    except Forbidden:
        return []


def rights_problems(database: Database) -> list[str]:
    """What is wrong with the rights of an installed queue; empty also where nothing is installed."""
    return database.rights_problems() if database.installed() is not None else []


def apply(database: Database, break_lock: bool = False) -> Applied:
    """Bring the database to this release, with its owners and grants; a second call does nothing and needs no right.

    `break_lock` removes the lock row that a crashed `yoyo apply` left. Raises InstallError when a migration was edited
    after its release, when the database is newer than this release or when yoyo's lock is held; DatabaseError when the
    database refuses a statement.
    """
    if not break_lock and _is_done(database):
        return Applied()
    applied = Applied()
    with database.installing():
        _refuse(status(database))
        applied.migrations = migrate(database, break_lock)
        changed = {file.name for file in status(database) if file.state != "ok"}
        applied.mended = [] if changed else rights_problems(database)
        if changed or applied.mended:
            changed.add(contract.GRANTS)  # a migration's new tables want theirs too
        _run(database, changed, applied)
        # What grants alone do not mend, such as a wrong owner, a new object does.
        if changed and (wrong := rights_problems(database)):
            applied.mended = applied.mended or wrong
            _run(database, {file.name for file in known(database) if file.kind == "procedure"}, applied)
            applied.notices += [f"still wrong: {problem}" for problem in rights_problems(database)]
        if changed:
            applied.notices += database.warnings_about_installation()
    return applied


def _run(database: Database, names: set[str], applied: Applied) -> None:
    """Run the procedure files of these names, and record them and the migrations among them."""
    chosen = [file for file in known(database) if file.name in names]
    if chosen:
        applied.notices += database.run_files([f if f.kind == "procedure" else replace(f, text="") for f in chosen])
        run = [file.name for file in chosen if file.kind == "procedure"]
        applied.procedures += [name for name in run if name not in applied.procedures]


def uninstall(database: Database, force: bool = False, cascade: bool = False) -> list[str]:
    """Remove the queue, all its messages included; returns the names of the adopted tables that were released first.

    `force`: leave the rows that are claimed in tables that cannot be released as they are. `cascade`: let users'
    objects that are made of the queue's go with it, or break. Raises InstallError where that is not allowed.
    """
    if not (cascade and database.cascades) and (found := database.dependents()):
        remedy = "drop them first" + (", or say --cascade" if database.cascades else "")
        raise InstallError(
            f"users' objects are made of the queue's, and would go with them or break: {remedy}: {', '.join(found)}"
        )
    names = database.adopted_tables()
    released = []
    session = database.connect("runner uninstall")
    try:
        for name in names:
            try:
                session.call("release_table", name)
                released.append(name)
            except (QueueError, DatabaseError) as error:
                if not force:
                    raise InstallError(
                        f"adopted table {name!r} cannot be released, and rows that are claimed would stay so: {error};"
                        " --force leaves them"
                    ) from error
    finally:
        session.close()
    database.uninstall()
    return released


def _is_done(database: Database) -> bool:
    return all(file.state == "ok" for file in status(database)) and not rights_problems(database)


def _refuse(found: list[FileStatus]) -> None:
    if edited := [file.name for file in found if file.state == "edited"]:
        raise InstallError(f"migration {edited[0]} was edited after it had been applied; restore the released file")
    if newer := [file.name for file in found if file.state == "newer"]:
        raise InstallError(f"the database is newer than this release: it has migration {newer[0]}; upgrade rowqueue")
