"""The statements of files for isql, and which of a migration's were run before."""

import re
from collections.abc import Iterator


def statements(text: str) -> Iterator[str]:
    """The statements of a file for isql, which end where a line does; SET TERM lines change with what."""
    terminator, lines, inside = ";", list[str](), ""
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
    """A line with blanks for its comments and quoted texts, and what is still open at its end: a quote or a comment."""
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


# What cannot be run twice in a migration, each with the object that it makes.
_MAKES = re.compile(
    r"(?:\s|--.*\n)*(?:CREATE (?:GLOBAL TEMPORARY |UNIQUE |ASC\w* |DESC\w* )*(?P<kind>\w+) (?P<name>mq_\w+)"
    r"|ALTER TABLE (?P<table>mq_\w+)\s+ADD (?P<column>\w+)"
    r"|INSERT INTO (?P<filled>mq_\w+))",
    re.I,
)


def is_there(statement: str) -> str | None:
    """A query that has a row when a statement of a migration was run before; None for one that can be run again.

    DDL commits: after an interruption the next installation goes on behind what is there. What somebody else has made
    is not ours.
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
