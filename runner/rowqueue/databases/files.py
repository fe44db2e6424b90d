"""The SQL files of the queue: where they are, and how a file is cut into statements."""

from collections.abc import Iterator
from pathlib import Path

from .. import contract


def procedures(database: str) -> Path:
    """The folder of a database's procedures."""
    return contract.sql_root() / "procedures" / database


def grants(database: str) -> str:
    """The file that gives the roles their rights."""
    return contract.load().file(database, contract.GRANTS).read_text("utf-8")


def statements(text: str) -> Iterator[str]:
    """The statements of a file without their delimiters; each ends at the end of a line.

    A line `DELIMITER //`, which some clients know, names another delimiter than the semicolon.
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
