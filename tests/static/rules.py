"""A static rule is one test: it reads all its files and lists the places that break it."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def code(text: str) -> str:
    """A file of SQL without its comments. Two hyphens in a text begin none."""
    return re.sub(r"('(?:[^']|'')*')|\s*--.*", lambda found: found[1] or "", text)


def offending(paths: Iterable[Path], rule: Callable[[Path], Iterable[str]]) -> list[str]:
    """FILE: FAULT for each fault that the rule finds in one of the files, of which there must be some."""
    files = list(paths)
    assert files, "the rule has no files to read"
    return [f"{path.relative_to(ROOT)}: {fault}" for path in files for fault in rule(path)]
