"""The contract, as tests ask for it: what one database has."""

from rowqueue.install import contract
from rowqueue.install.contract import Procedure


def procedures_of(database: str) -> dict[str, Procedure]:
    """The procedures that users of a database may call."""
    known = contract.load()
    return {name: entry for name, entry in known.every.items() if name in known.public(database)}


def internals(database: str) -> dict[str, str]:
    """The internal objects of a database, with the area of each: of the core if an area only replaces it."""
    known = contract.load()
    names = {name for name in known.files(database) if known.is_internal(name)}
    return {
        path.stem: area
        for area in reversed(known.areas)
        for path in (contract.sql_root() / "procedures" / database / area).rglob("*.sql")
        if path.stem in names
    }
