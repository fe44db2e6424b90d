"""Migrations: the list of them, and applying them with yoyo-migrations."""

import glob
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import Error
from ..install import contract
from .base import AREA, Database, DatabaseError, Disconnected, Installed

LOCK_SECONDS = 10
YOYO_TABLES = ("_yoyo_migration", "_yoyo_log", "_yoyo_version", "yoyo_lock")


class InstallError(Error):
    """The installation was refused; the refused step changed nothing."""


def released(database: str) -> list[Path]:
    """The migration files of this release, in order."""
    return sorted((contract.sql_root() / "migrations" / database).glob("*.sql"))


def hashes(database: str) -> dict[str, str]:
    """The migrations of all areas, with the hash of each."""
    return {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in released(database)}


def tables(database: str) -> list[str]:
    """The tables that the migrations create, in order, on an engine where the queue's names have a prefix."""
    created = r"CREATE (?:GLOBAL TEMPORARY )?TABLE (?:IF NOT EXISTS )?(mq_\w+)"
    return [name for path in released(database) for name in re.findall(created, path.read_text("utf-8"))]


def names(database: str) -> list[str]:
    """The names of the queue's tables, views, procedures and functions, on an engine where they have a prefix."""
    known = contract.load()
    return [*tables(database), *map(known.prefixed, known.files(database))]


def known(database: str, installed: Mapping[str, Installed] | None) -> set[str]:
    """The names of all our migrations that yoyo may know: those of this release and those recorded."""
    recorded = {name for name, entry in (installed or {}).items() if entry.kind == "migration"}
    return recorded | {path.stem for path in released(database)}


def hashed(name: str) -> str:
    """yoyo's key of a migration. It knows nothing else of it, so our names differ from those of other projects."""
    return hashlib.sha256(name.encode()).hexdigest()


def migrate(database: Database, break_lock: bool, areas: Sequence[str]) -> list[str]:
    """Apply the migrations of these areas that yoyo has not recorded; returns their names.

    The areas are recorded after the core's migrations: an interrupted installation continues with the same ones.
    """
    import yoyo  # type: ignore[import-untyped]

    logging.getLogger("yoyo").setLevel(logging.CRITICAL)
    folder = contract.sql_root() / "migrations" / database.name
    migrations = yoyo.read_migrations(glob.escape(str(folder)))
    core, others = (migrations.filter(lambda m, w=wanted: area_of(m.id) in w) for wanted in ({None}, {*areas}))
    with _backend(database) as backend:
        if break_lock:
            backend.break_lock()
        done = _run(database, backend, core)
        _record(database, backend, areas)
        return done + _run(database, backend, others)


def area_of(migration: str) -> str | None:
    """The area that a migration belongs to; None for the core."""
    return contract.load().area_of_migration(migration)


def _run(database: Database, backend: Any, migrations: Any) -> list[str]:
    if not (todo := backend.to_apply(migrations)):
        return []
    with backend.lock(LOCK_SECONDS):
        _apply(database, backend, todo)
    # yoyo skips a file that it cannot read.
    if left := [migration.id for migration in backend.to_apply(migrations)]:
        raise InstallError(f"migration {left[0]}: cannot be read")
    return [migration.id for migration in todo]


def _record(database: Database, backend: Any, areas: Sequence[str]) -> None:
    """Record areas before their files are installed. Without a hash they count as pending until all files are."""
    recorded = {entry.name for entry in (database.installed() or {}).values() if entry.kind == AREA}
    if new := [area for area in areas if area not in recorded]:
        with backend.lock(LOCK_SECONDS), backend.transaction():
            for area in new:
                backend.execute(
                    f"INSERT INTO {database.prefix}installed (name, kind, sha256, applied_at)"
                    f" VALUES (:name, '{AREA}', '', CURRENT_TIMESTAMP)",
                    {"name": area},
                )


def _apply(database: Database, backend: Any, migrations: Any) -> None:
    if not database.undoes_ddl:
        backend.apply_migrations(migrations)
        return
    # yoyo commits a migration before it records it: killed in between, it would apply the migration again.
    backend.ensure_internal_schema_updated()
    for migration in migrations:
        with backend.transaction():
            migration.process_steps(backend, "apply")
            backend.log_migration(migration, "apply")
            backend.mark_one(migration, log=False)


@contextmanager
def _backend(database: Database) -> Iterator[Any]:
    """yoyo's connection; errors of yoyo and of its driver become exceptions of this package."""
    import yoyo
    from yoyo import exceptions

    try:
        with yoyo.get_backend(database.yoyo_url()) as backend:
            yield backend
    except exceptions.LockTimeout as error:
        raise InstallError(
            "yoyo's lock is held: another `yoyo apply` is running or was killed; if none is running, use "
            f"`runner apply --break-lock` ({str(error).partition(' (')[0]})"
        ) from error
    except tuple(exceptions.DatabaseErrors) as error:  # includes the driver's errors by now
        if isinstance(error.__context__, Disconnected):
            raise error.__context__ from None
        text = str(error.args[-1] if error.args else error)  # some drivers have a number first
        raise DatabaseError("migration: " + " ".join(text.split())) from error
