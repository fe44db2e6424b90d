"""The contract as data: procedures/contract.toml, read once."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

GRANTS = "grants"
AREAS = (
    "common",
    "queue",
    "operations",
    "feeds",
    "subscriptions",
    "results",
    "topics",
    "schedules",
    "consumers",
    "tables",
)
CORE = frozenset(("common", "queue", "operations"))


def sql_root() -> Path:
    """The folder with migrations/ and procedures/: in an installed wheel, or in the checkout."""
    packaged = Path(__file__).parent / "sql"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Argument:
    """One argument of a procedure. `limit`: a name in the contract's limits."""

    name: str
    type: str
    meaning: str
    limit: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Column:
    """One result column of a procedure."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Procedure:
    """One procedure: its arguments, result columns and errors.

    `databases`: those that have it; empty when all have it.
    """

    name: str
    area: str
    summary: str
    detail: str
    arguments: tuple[Argument, ...]
    columns: tuple[Column, ...]
    rows: str
    errors: tuple[str, ...]
    roles: tuple[str, ...]
    databases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Internal:
    """A helper or view that procedures need. `databases`: as for a Procedure. `public`: users may query it."""

    name: str
    area: str
    kind: str
    purpose: str
    databases: tuple[str, ...] = ()
    public: bool = False


@dataclass(frozen=True)
class Error:
    """A numbered error, the same on every database."""

    number: int
    name: str
    meaning: str


@dataclass(frozen=True)
class Contract:
    """The whole contract in the order of installation.

    `procedures`: those that every database has. `extras`: those that only some have. `reads`: the tables and views that
    a role may read.
    """

    procedures: dict[str, Procedure]
    extras: dict[str, Procedure]
    internals: dict[str, Internal]
    errors: dict[str, Error]
    limits: dict[str, str]
    types: dict[str, dict[str, str]]
    reads: dict[str, tuple[str, ...]]

    def objects(self, database: str) -> tuple[str, ...]:
        """Names of a database's procedure files, without grants.sql, in the order of installation."""
        own = [name for name, entry in self.internals.items() if not entry.databases or database in entry.databases]
        return (*own, *self.procedures_of(database))

    @property
    def every(self) -> dict[str, Procedure]:
        """All procedures, including those that only some databases have."""
        return self.procedures | self.extras

    def procedures_of(self, database: str) -> dict[str, Procedure]:
        """The procedures that users of a database may call."""
        extras = {name: entry for name, entry in self.extras.items() if database in entry.databases}
        return self.procedures | extras

    def file(self, database: str, name: str) -> Path:
        """The SQL file of an object; `grants` is in the folder above the areas."""
        folder = sql_root() / "procedures" / database
        if name == GRANTS:
            return folder / f"{name}.sql"
        entry = self.every.get(name) or self.internals[name]
        inside = isinstance(entry, Internal) and not entry.public
        return folder / entry.area / ("internal" if inside else "") / f"{name}.sql"


@cache
def load() -> Contract:
    """The contract of this release: procedures/contract.toml."""
    return read(sql_root() / "procedures" / "contract.toml")


def read(path: Path) -> Contract:
    """Read a contract."""
    data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    rows = data["rows"]

    def procedure(entry: dict[str, Any]) -> Procedure:
        columns = entry["columns"]
        return Procedure(
            name=entry["name"],
            area=entry["area"],
            summary=entry["summary"],
            detail=entry.get("detail", "").strip(),
            arguments=tuple(Argument(**a) for a in entry["arguments"]),
            columns=tuple(Column(**c) for c in (rows[columns] if isinstance(columns, str) else columns)),
            rows=entry["rows"],
            errors=tuple(entry["errors"]),
            roles=tuple(entry["roles"]),
            databases=tuple(entry.get("databases", ())),
        )

    procedures = {e["name"]: procedure(e) for e in data["procedure"]}
    return Contract(
        procedures={name: entry for name, entry in procedures.items() if not entry.databases},
        extras={name: entry for name, entry in procedures.items() if entry.databases},
        internals={e["name"]: Internal(**{**e, "databases": tuple(e.get("databases", ()))}) for e in data["internal"]},
        errors={e["name"]: Error(**e) for e in data["errors"]},
        limits=data["limits"],
        types=data["types"],
        reads={role: tuple(names) for role, names in data.get("reads", {}).items()},
    )
