"""The contract as data: procedures/contract.toml, read once."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

GRANTS = "grants"
CORE = frozenset(("common", "queue", "operations"))
# A name of one of the queue's objects in SQL.
_NAME = re.compile(r"\b(?:mq_internal\.|mq\.|i?mq_)(\w+)")


def sql_root() -> Path:
    """The folder with migrations/ and procedures/: in an installed wheel, or in the checkout."""
    packaged = Path(__file__).parents[1] / "sql"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3]


def release() -> str:
    """The version of this release, such as 0.1.0."""
    from importlib.metadata import version  # slow to import, and a handler does not need it

    return version("rowqueue")


@dataclass(frozen=True)
class Argument:
    """One argument of a procedure, or one option. `limit`: a name in the contract's limits.

    `jsonb`: one engine has a second function of the same name that takes jsonb in its place.
    """

    name: str
    type: str
    meaning: str
    limit: str | None = None
    optional: bool = False
    jsonb: bool = False

    @property
    def kind(self) -> str:
        """Its type in the contract's table of arguments: that of a text with the limit of a name is `name`."""
        return "name" if (self.type, self.limit) == ("text", "name") else self.type


@dataclass(frozen=True)
class Column:
    """One result column of a procedure."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Procedure:
    """One procedure: its arguments, result columns and errors.

    `options`: what the argument with the limit `object` may hold. `databases`: those that have it; empty when all have
    it. `open`: later releases may add result columns at the end.
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
    open: bool = False
    options: tuple[Argument, ...] = ()

    @property
    def object(self) -> str:
        """The name of the argument that holds the options."""
        return next(argument.name for argument in self.arguments if argument.limit == "object")


@dataclass(frozen=True)
class Area:
    """A part of the queue. `needs`: the areas that it uses. `migrations`: its own ones."""

    name: str
    meaning: str
    needs: tuple[str, ...] = ()
    migrations: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """A view, or a function, that users may query. `databases`: as for a Procedure."""

    name: str
    area: str
    meaning: str
    databases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Error:
    """A numbered error, the same on every database. `retry`: whether the same call may succeed later.

    `runner`: no procedure raises it: the runner gives this number and name to errors of the server.
    """

    number: int
    name: str
    retry: str
    meaning: str
    runner: bool = False


@dataclass(frozen=True)
class Contract:
    """The whole contract.

    `procedures`: those that every database has. `extras`: those that only some have. `arguments` and `results`: what
    each type is on each database. `reads`: the tables and views that a role may read.
    """

    areas: dict[str, Area]
    procedures: dict[str, Procedure]
    extras: dict[str, Procedure]
    views: dict[str, View]
    errors: dict[str, Error]
    limits: dict[str, str]
    arguments: dict[str, dict[str, str]]
    results: dict[str, dict[str, str]]
    reads: dict[str, tuple[str, ...]]

    def with_needs(self, areas: Iterable[str] | None) -> tuple[str, ...]:
        """The core, these areas and what they need, in the contract's order; None: all areas.

        Raises LookupError for an unknown name.
        """
        found, left = set(CORE), [*(self.areas if areas is None else areas)]
        while left:
            name = left.pop()
            if name not in self.areas:
                raise LookupError(f"areas: unknown area {name!r}; known: {', '.join(self.areas)}")
            found.add(name)
            left += set(self.areas[name].needs) - found
        return tuple(name for name in self.areas if name in found)

    def area_of_migration(self, name: str) -> str | None:
        """The area that a migration belongs to; None for the core."""
        return next((area.name for area in self.areas.values() if name in area.migrations), None)

    def files(self, database: str, areas: Iterable[str] | None = None) -> dict[str, Path]:
        """The procedure files of some areas, or of all, by name: each after those that it names.

        An area may have an internal object of the core in its own version, which then replaces that of the core.
        """
        return _in_order(sql_root() / "procedures" / database, self.with_needs(areas))

    def grants(self, database: str, areas: Iterable[str] | None = None) -> list[Path]:
        """The files with the grants of some areas, or of all."""
        folder = sql_root() / "procedures" / database
        chosen = ["", *self.with_needs(areas)]
        return [path for area in chosen if (path := folder / area / f"{GRANTS}.sql").exists()]

    @property
    def every(self) -> dict[str, Procedure]:
        """All procedures, including those that only some databases have."""
        return self.procedures | self.extras

    def public(self, database: str) -> dict[str, str]:
        """The public objects of a database, with the area of each."""
        known = self.every | self.views
        return {name: one.area for name, one in known.items() if not one.databases or database in one.databases}

    def is_internal(self, name: str) -> bool:
        """Whether a procedure or function is internal: its name has a schema or prefix of its own."""
        return name not in self.every and name not in self.views

    def prefixed(self, name: str) -> str:
        """The name of an object on an engine where the queue's names have a prefix."""
        return f"imq_{name}" if self.is_internal(name) else f"mq_{name}"


@cache
def _in_order(folder: Path, areas: tuple[str, ...]) -> dict[str, Path]:
    found = {
        path.stem: path for area in areas for path in sorted((folder / area).rglob("*.sql")) if path.stem != GRANTS
    }
    names = {name: _names(path) & found.keys() for name, path in found.items()}
    ordered: dict[str, Path] = {}
    entered: set[str] = set()

    def enter(name: str) -> None:
        if name in entered:
            return
        entered.add(name)
        for other in sorted(names[name]):
            enter(other)
        ordered[name] = found[name]

    for name in found:
        enter(name)
    return ordered


def _names(path: Path) -> set[str]:
    """The objects that a file names."""
    return set(_NAME.findall(re.sub(r"--.*", "", path.read_text("utf-8"))))


@cache
def load() -> Contract:
    """The contract of this release: procedures/contract.toml."""
    return read(sql_root() / "procedures" / "contract.toml")


def read(path: Path) -> Contract:
    data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    rows = data["rows"]

    def with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}

    def procedure(entry: dict[str, Any]) -> Procedure:
        named = entry["columns"]  # columns, and names of rows that have several
        columns = [rows[n] if isinstance(n, str) else [n] for n in ([named] if isinstance(named, str) else named)]
        made = {
            "detail": entry.get("detail", "").strip(),
            "arguments": tuple(Argument(**a) for a in entry["arguments"]),
            "columns": tuple(Column(**column) for some in columns for column in some),
            "options": tuple(Argument(**o, optional=True) for o in entry.get("options", ())),
        }
        return Procedure(**with_tuples(entry) | made)

    procedures = {e["name"]: procedure(e) for e in data["procedure"]}
    return Contract(
        areas={e["name"]: Area(**with_tuples(e)) for e in data.get("areas", ())},
        procedures={name: entry for name, entry in procedures.items() if not entry.databases},
        extras={name: entry for name, entry in procedures.items() if entry.databases},
        views={e["name"]: View(**with_tuples(e)) for e in data.get("views", ())},
        errors={e["name"]: Error(**e) for e in data["errors"]},
        limits=data["limits"],
        arguments=data["arguments"],
        results=data["results"],
        reads=with_tuples(data.get("reads", {})),
    )
