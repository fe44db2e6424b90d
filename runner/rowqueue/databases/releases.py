"""The releases before this one: what their databases have, for scripts that upgrade them."""

import re
import tomllib
from pathlib import Path

from ..install import contract
from .base import Release


def numbers(version: str) -> list[int]:
    """A version, to be compared with others."""
    return [int(digits) for digits in re.findall(r"\d+", version)]


def is_later(version: str) -> bool:
    """Whether a release is later than this one."""
    return numbers(version) > numbers(contract.release())


def earlier() -> dict[str, Path]:
    """The releases before this one, from the first to the last: what each had."""
    found = {path.parent.name: path for path in (contract.sql_root() / "releases").glob("*/release.toml")}
    now = numbers(contract.release())
    return {version: found[version] for version in sorted(found, key=numbers) if numbers(version) < now}


def find(version: str) -> Path:
    """What a release had. Raises LookupError if it is none of `earlier`."""
    known = earlier()
    if version not in known:
        raise LookupError(f"{version!r} is no release before {contract.release()}; known: {', '.join(known) or 'none'}")
    return known[version]


def read(version: str, database: str) -> Release:
    """What a release had on an engine. Raises LookupError if it is none of `earlier`."""
    kept = tomllib.loads(find(version).read_text("utf-8"))[database]
    procedures = {area: tuple(names) for area, names in kept["procedures"].items()}
    return Release(version, tuple(kept["migrations"]), procedures)
