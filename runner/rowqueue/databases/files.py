"""The SQL files of the queue: finding them and splitting them into statements."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..install import contract
from .base import SqlFile


def procedures(database: str) -> Path:
    """The folder of an engine's procedures."""
    return contract.sql_root() / "procedures" / database


def grants(database: str, areas: Iterable[str] | None = None) -> str:
    """The text of the files that grant the roles their rights."""
    return "\n".join(path.read_text("utf-8") for path in contract.load().grants(database, areas))


_CREATES = re.compile(r"^CREATE (?:OR REPLACE |OR ALTER )?(?:.* )?(FUNCTION|PROCEDURE|VIEW) ([\w.]+)", re.M)


def created(file: SqlFile) -> tuple[str, str] | None:
    """The kind and the name of the object that a file creates."""
    found = _CREATES.search(file.text)
    return (found[1], found[2]) if found else None


def commented(file: SqlFile) -> tuple[str, str, str] | None:
    """The kind and the name of the object that a file creates, and its comment; None when it has no comment."""
    found = created(file)
    return (*found, file.comment) if found and file.comment else None


def quoted(text: str) -> str:
    """A text as a literal of SQL. No engine takes backslashes for escapes in the texts of our files."""
    return "'" + text.replace("'", "''") + "'"


def statements(text: str) -> Iterator[str]:
    """The statements of a file, without their delimiters. A statement ends at the end of a line.

    A line such as `DELIMITER //` sets another delimiter than the semicolon.
    """
    delimiter = ";"
    lines: list[str] = []
    for line in text.splitlines():
        comment = line.lstrip().startswith("--")
        if line.startswith("DELIMITER "):
            delimiter = line.split()[1]
        elif lines or (line and not comment):
            lines.append(line)
        if lines and not comment and line.endswith(delimiter):
            yield "\n".join(lines).removesuffix(delimiter)
            lines = []
    if lines:
        yield "\n".join(lines)
