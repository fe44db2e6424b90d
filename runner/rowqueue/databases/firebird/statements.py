"""Splitting files for isql into statements, and finding which statements of a migration have already run."""

import re
from collections.abc import Iterator

_MODULE = re.compile(r"^CREATE OR ALTER (?:PROCEDURE|FUNCTION) ", re.M)


def is_module(text: str) -> bool:
    """Whether a file is one procedure or function, whose text contains semicolons and has none at its end."""
    return bool(_MODULE.search(text)) and "SET TERM" not in text


def statements(text: str) -> Iterator[str]:
    """The statements of a file for isql. A statement ends at the end of a line; SET TERM lines change the delimiter."""
    terminator, lines, inside = "^" if is_module(text) else ";", list[str](), ""
    for whole in text.splitlines():
        if not lines and (term := re.fullmatch(r"SET TERM (\S+) (\S+)", whole.rstrip())):
            terminator = term[1]
            continue
        code, inside = _code(whole, inside)
        if lines or code:
            lines.append(whole)
        if lines and not inside and code.endswith(terminator):
            lines[-1] = whole[: len(code) - len(terminator)]
            yield "\n".join(lines).rstrip()
            lines = []
    if lines:
        yield "\n".join(lines)


def _code(text: str, inside: str) -> tuple[str, str]:
    """A line with blanks in place of comments and quoted texts, and the quote or comment that is open at its end."""
    code = ""
    while text:
        if inside:
            end = {"/*": "*/"}.get(inside, inside)
            skipped, found, text = text.partition(end)
            code += " " * len(skipped + found)
            inside = "" if found else inside
        else:
            start = re.search(r"--|/\*|['\"]", text)
            kept = text[: start.start()] if start else text
            code, text = code + kept, text[len(kept) :]
            if start and start[0] == "--":
                break
            if start:
                code, text, inside = code + " " * len(start[0]), text[len(start[0]) :], start[0]
    return code.rstrip(), inside


# Statements of a migration that cannot run twice, with the object that each creates.
_MAKES = re.compile(
    r"(?:\s|--.*\n)*(?:CREATE (?:GLOBAL TEMPORARY |UNIQUE |ASC\w* |DESC\w* )*(?P<kind>\w+) (?P<name>mq_\w+)"
    r"|ALTER TABLE (?P<table>mq_\w+)\s+ADD (?P<column>\w+)"
    r"|INSERT INTO (?P<filled>mq_(?!installed\b)\w+))",  # rows of mq_installed are not a migration's
    re.I,
)


def is_there(statement: str) -> str | None:
    """A query that returns a row if a statement of a migration has already run; None if the statement can run again.

    DDL commits, so the next installation continues after an interruption. Objects of other owners do not count.
    """
    found = _MAKES.match(statement)
    if found is None:
        return None
    if found["filled"]:
        return f"SELECT FIRST 1 1 FROM {found['filled']}"
    if found["column"]:
        return (
            "SELECT 1 FROM rdb$relation_fields"
            f" WHERE rdb$relation_name = '{found['table'].upper()}' AND rdb$field_name = '{found['column'].upper()}'"
        )
    kind = found["kind"].upper()
    if kind == "INDEX":
        return f"SELECT 1 FROM rdb$indices WHERE rdb$index_name = '{found['name'].upper()}'"
    column = CATALOG[kind]
    return (
        f"SELECT 1 FROM rdb${column}s WHERE rdb${column}_name = '{found['name'].upper()}'"
        " AND rdb$owner_name = CURRENT_USER"
    )


CATALOG = {
    "PROCEDURE": "procedure",
    "FUNCTION": "function",
    "TRIGGER": "trigger",
    "VIEW": "relation",
    "TABLE": "relation",
    "SEQUENCE": "generator",
    "EXCEPTION": "exception",
    "DOMAIN": "field",
    "ROLE": "role",
}
