"""Installs the SQL: versioned migrations through yoyo, then changed procedure files, then the grants."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..databases import Database, DatabaseError, Installed, NotAllowed, QueueError, SqlFile, open_database, releases
from ..databases.base import AREA, GONE, GRANTS, MIGRATION, PROCEDURE, RELEASE
from ..databases.migrations import InstallError as InstallError
from ..databases.migrations import area_of, migrate, released
from . import contract

_SQL = (PROCEDURE, GRANTS, GONE)  # kinds of files that apply runs; yoyo runs migrations
_SHOWN = 3  # names of objects with the same problem
_ROLES = "producer|consumer|operator|viewer|owner|reporter"
_OBJECT = re.compile(rf"(?<![\w.])(?!mq_(?:{_ROLES})\b)(?:mq_internal\.|mq\.|i?mq_)\w+(?:\([^)]*\))?", re.IGNORECASE)


@dataclass(frozen=True)
class FileStatus:
    """One file compared with the database.

    `state`: `ok`; `missing`: never installed; `pending`: this release has a changed file; `drifted`: the object in the
    database was changed or dropped by hand; `edited`: a migration was changed after it was applied; `gone`: a procedure
    file of an earlier release; `newer`: the database has a later release, or a migration that this one does not know.
    """

    kind: str
    name: str
    state: str


@dataclass
class Applied:
    """What `apply` did: migrations and procedure files that it ran, those it dropped, rights it repaired, warnings."""

    migrations: list[str] = field(default_factory=list)
    procedures: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def files(database: str, areas: Iterable[str] | None = None) -> list[SqlFile]:
    """The SQL files of some areas, or of all, in the order of installation, these areas themselves, and the release.

    Raises LookupError for an unknown engine or area.
    """
    root = contract.sql_root()
    migrations = sorted((root / "migrations" / database).glob("*.sql"))
    if not migrations:
        names = ", ".join(sorted(path.name for path in (root / "migrations").iterdir() if any(path.glob("*.sql"))))
        raise LookupError(f"database: no SQL for {database!r}; known: {names}")
    known = contract.load()
    chosen = known.with_needs(areas)
    return [
        *(_file(MIGRATION, path) for path in migrations if area_of(path.stem) in (None, *chosen)),
        *(SqlFile(AREA, area, _hashed(""), "") for area in chosen),
        *(_procedure(path) for path in known.files(database, chosen).values()),
        *(replace(_file(GRANTS, path), name=f"{path.parent.name}/{GRANTS}") for path in known.grants(database, chosen)),
        SqlFile(RELEASE, contract.release(), _hashed(""), ""),
    ]


def _file(kind: str, path: Path) -> SqlFile:
    text = path.read_text("utf-8")
    return SqlFile(kind, path.stem, _hashed(text), text)


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _procedure(path: Path) -> SqlFile:
    """A procedure file. For a public object, the first line of the file becomes the object's comment."""
    file = _file(PROCEDURE, path)
    if path.parent.name == "internal":
        return file
    meaning = file.text.partition("\n")[0].partition(": ")[2]
    return replace(file, comment=meaning[:1].upper() + meaning[1:])


def known(database: Database, areas: Iterable[str] | None = None) -> list[SqlFile]:
    """All SQL files in the order of installation, with the texts for this database's server version.

    `areas`: None for those that are installed, or all if none is.
    """
    return database.fitted(files(database.name, database.areas() if areas is None else areas))


def script(database: str, areas: Iterable[str] | None = None, since: str | None = None) -> Iterator[str]:
    """The installation of some areas, or of all, as a script for the engine's own client, in parts.

    `since`: an earlier release, which the script upgrades; without areas, it is for all that the release had. Raises
    LookupError for an unknown engine, area or release.
    """
    opened, chosen = open_database(f"{database}://"), files(database, areas)
    if since is None:
        return opened.script([*opened.with_indexes(chosen)])
    earlier = releases.read(since, database)
    if areas is None:
        chosen = files(database, earlier.procedures.keys() & contract.load().areas.keys())
    return opened.script([*opened.with_indexes(opened.with_gone(earlier.new(chosen), earlier.gone(chosen)))], earlier)


def status(database: Database, areas: Iterable[str] | None = None) -> list[FileStatus]:
    """The status of every file. Raises NotAllowed for a user who may not read it. `areas`: as for `known`.

    If the database has a later release, its other texts and internal objects are not counted as differences.
    """
    installed = database.installed() or {}
    found = [FileStatus(file.kind, file.name, _state(file, installed)) for file in known(database, areas)]
    names = {path.stem for path in released(database.name)}
    unknown = [entry for entry in installed.values() if entry.kind == MIGRATION and entry.name not in names]
    others = installed.keys() - {file.name for file in found}
    if later := [entry for entry in installed.values() if entry.kind == RELEASE and releases.is_later(entry.name)]:
        public = contract.load().public(database.name)
        found = [f for f in found if f.state == "ok" or (f.state == "missing" and f.name in public)]
        found += [FileStatus(e.kind, e.name, "drifted") for e in installed.values() if e.changed]
    else:
        found += [FileStatus(PROCEDURE, n, "gone") for n in sorted(others) if installed[n].kind == PROCEDURE]
    return found + [FileStatus(entry.kind, entry.name, "newer") for entry in later + unknown]


def later_release(found: Iterable[FileStatus]) -> str | None:
    """The release of the database if it is later than this one and has the same major version.

    It then has everything that this release calls, unless something is missing.
    """
    names = [file.name for file in found if (file.kind, file.state) == (RELEASE, "newer")]
    last = max(names, key=releases.numbers, default=None)
    return last if last and releases.numbers(last)[0] == releases.numbers(contract.release())[0] else None


def _state(file: SqlFile, installed: Mapping[str, Installed]) -> str:
    entry = installed.get(file.name)
    if entry is None:
        return "missing"
    if entry.sha256 != file.sha256:
        return "edited" if file.kind == MIGRATION else "pending"
    return "drifted" if entry.changed else "ok"


def pending(database: Database) -> list[FileStatus]:
    """The files that are not `ok`; [] also for a user who may not read the status."""
    try:
        return [file for file in status(database) if file.state != "ok"]
    except NotAllowed:
        return []


def rights_problems(database: Database) -> list[str]:
    """What is wrong with the rights of an installed queue; [] also when nothing is installed."""
    return briefly(database.rights_problems()) if database.installed() is not None else []


def briefly(problems: Iterable[str]) -> list[str]:
    """Problems that differ only in the object of the queue, as one line: a restore without grants has hundreds."""
    alike: dict[str, list[str]] = {}
    for problem in problems:
        alike.setdefault(_OBJECT.sub("...", problem, count=1), []).append(problem)
    found = []
    for same in alike.values():
        if len(same) <= _SHOWN + 1:
            found += same
            continue
        names = [match[0] for problem in same[:_SHOWN] if (match := _OBJECT.search(problem))]
        found.append(f"{same[0]}, and the same of {len(same) - 1:,} others: {', '.join(names[1:])}, ...")
    return found


def apply(database: Database, break_lock: bool = False, areas: Iterable[str] | None = None) -> Applied:
    """Install this release or upgrade to it, with owners and grants. If nothing is to do, it needs no privilege.

    `areas`: those to add, with what they need; None for those that the database has, or all in a new one. `break_lock`:
    remove the lock row that a killed `yoyo apply` left. Raises LookupError for an unknown area; InstallError when a
    migration was edited after its release, when the database is newer than this release, or when yoyo's lock is held;
    and DatabaseError when the database refuses a statement.
    """
    named = None if areas is None else [*areas]
    chosen, notices = _chosen(database, named)
    is_whole = not break_lock and all(file.state == "ok" for file in status(database, chosen))
    if is_whole and not rights_problems(database):
        return Applied(notices=notices)
    applied = Applied()
    with database.installing():
        chosen, applied.notices = _chosen(database, named)
        _refuse(status(database, chosen))
        applied.migrations = migrate(database, break_lock, chosen)
        changed = {file.name for file in status(database) if file.state != "ok"}
        applied.repaired = [] if changed else rights_problems(database)
        if changed or applied.repaired:
            changed |= {file.name for file in known(database) if file.kind == GRANTS}  # new tables need grants too
        _run(database, changed, applied)
        # Grants alone do not repair everything: a wrong owner needs the object created again.
        if changed and (wrong := rights_problems(database)):
            applied.repaired = applied.repaired or wrong
            _run(database, {file.name for file in known(database) if file.kind in _SQL}, applied)
            applied.notices += [f"still wrong: {problem}" for problem in rights_problems(database)]
        if changed:
            applied.notices += database.warnings_about_installation()
    return applied


def _chosen(database: Database, named: list[str] | None) -> tuple[tuple[str, ...], list[str]]:
    """The areas to install, and what to say about them."""
    all_areas, there = contract.load(), database.areas()
    if named is None:
        return all_areas.with_needs(there), []
    wanted = all_areas.with_needs(named)
    chosen = all_areas.with_needs([*named, *(there or ())])
    notices = [
        f"area {name!r} is installed too: {' and '.join(users)} {'needs' if len(users) == 1 else 'need'} it"
        for name in wanted
        if name not in (*named, *contract.CORE, *(there or ()))
        and (users := [area.name for area in all_areas.areas.values() if area.name in wanted and name in area.needs])
    ]
    if kept := [name for name in chosen if name not in wanted]:
        notices.append(f"installed before, and kept: {', '.join(kept)}; areas cannot be removed")
    return chosen, notices


def _run(database: Database, names: set[str], applied: Applied) -> None:
    """Run the procedure files and grants with these names, and drop what is gone; only record the others among them."""
    every = known(database)
    gone = sorted(names - {file.name for file in every})
    chosen = [file for file in every if file.name in names]
    if chosen:
        with_all = database.with_indexes(database.with_gone(chosen, gone))
        applied.notices += database.run_files([f if f.kind in _SQL else replace(f, text="") for f in with_all])
        run = [file.name for file in chosen if file.kind in _SQL]
        applied.procedures += [name for name in run if name not in applied.procedures]
        applied.dropped += gone


def uninstall(database: Database, force: bool = False, cascade: bool = False) -> tuple[list[str], list[str]]:
    """Remove the queue and all its messages.

    Returns the polling tables that were released first, and those whose claimed rows stay unchanged. Tables of other
    users are never changed: their triggers would run with the rights of this account. `force`: continue if a table is
    not released. `cascade`: also drop or break users' objects that use the queue's. Without these, such a table or
    object raises InstallError.
    """
    if not (cascade and database.cascades) and (found := database.dependents()):
        remedy = "drop them first" + (", or use --cascade" if database.cascades else "")
        raise InstallError(
            f"users' objects use the queue's and would be dropped or broken: {remedy}: {', '.join(found)}"
        )
    adopted = database.adopted_tables()
    if not force and (others := [f"{name!r} of {owner}" for name, owner in adopted if owner]):
        raise InstallError(
            f"polling tables of other users have claimed rows: {', '.join(others)}; their triggers would run with the"
            " rights of this account: let these users call unadopt_table, or use --force to leave the rows claimed"
        )
    released = []
    with closing(database.connect("runner uninstall")) as session:
        for name in (name for name, owner in adopted if not owner):
            try:
                session.call("unadopt_table", name)
                released.append(name)
            except (QueueError, DatabaseError) as error:
                if not force:
                    raise InstallError(
                        f"polling table {name!r} cannot be released, and its claimed rows would stay claimed: {error};"
                        " --force leaves them so"
                    ) from error
    database.uninstall()
    return released, [name for name, _ in adopted if name not in released]


def _refuse(found: list[FileStatus]) -> None:
    if edited := [file.name for file in found if file.state == "edited"]:
        raise InstallError(f"migration {edited[0]} was edited after it was applied; restore the released file")
    if newer := [f"{file.kind} {file.name}" for file in found if file.state == "newer"]:
        raise InstallError(f"the database is newer than this release: it has {newer[0]}; upgrade rowqueue")
