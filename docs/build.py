"""Write docs/procedures.md from procedures/contract.toml and the example calls in the procedures' SQL files.

`make docs` runs it; tests/static/test_docs.py fails when the page is not what it would write.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rowqueue import contract
from rowqueue.contract import Argument, Column, Procedure

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "procedures.md"
HEAD = DOCS / "procedures.head.md"
DATABASE_NAMES = {
    "postgresql": "PostgreSQL",
    "mysql": "MySQL and MariaDB",
    "firebird": "Firebird",
    "sqlserver": "SQL Server",
}


def page() -> str:
    """The whole page."""
    known = contract.load()
    head = HEAD.read_text("utf-8")
    for word, table in (("errors", _errors()), ("limits", _limits()), ("types", _types())):
        head = head.replace(f"<!-- {word} -->\n", "\n".join(table) + "\n")
    parts = [head.rstrip(), "## All procedures"]
    areas = {area: [p for p in known.every.values() if p.area == area] for area in contract.AREAS}
    for area, procedures in areas.items():
        rows = ([f"[`{p.name}`](#{p.name})", p.summary, _codes(p.roles)] for p in procedures)
        if procedures:
            parts += [f"{area.capitalize()}:", "\n".join(_table(("procedure", "does", "roles"), rows))]
    for area, procedures in areas.items():
        if procedures:
            parts.append(f"## {area.capitalize()}")
        for procedure in procedures:
            parts.extend(_section(procedure))
    return "\n\n".join(parts) + "\n"


def _errors() -> list[str]:
    errors = contract.load().errors.values()
    return _table(("number", "name", "meaning"), ([str(e.number), f"`{e.name}`", e.meaning] for e in errors))


def _limits() -> list[str]:
    return _table(("limit", "values"), ([f"{name}", text] for name, text in contract.load().limits.items()))


def _types() -> list[str]:
    types = contract.load().types
    names = next(iter(types.values()))
    return _table(
        ("type", *(DATABASE_NAMES[database] for database in types)),
        ([name, *(f"`{types[database][name]}`" for database in types)] for name in names),
    )


def _section(procedure: Procedure) -> Iterator[str]:
    yield f"### {procedure.name}"
    yield f"`{_signature(procedure)}`"
    if procedure.databases:
        yield f"Only on {', '.join(DATABASE_NAMES[database] for database in procedure.databases)}."
    yield procedure.summary
    if procedure.detail:
        yield procedure.detail
    if procedure.arguments:
        rows = ([f"`{a.name}`", a.type, _limit(a), a.meaning] for a in procedure.arguments)
        yield "\n".join(_table(("argument", "type", "limit", "meaning"), rows))
    if procedure.columns:
        yield f"Returns {_rows(procedure.rows)}:" if len(procedure.columns) > 1 else f"Returns {_rows(procedure.rows)}."
        yield "\n".join(_table(("column", "type", "meaning"), map(_column, procedure.columns)))
    else:
        yield "Returns no result set."
    numbers = [f"{contract.load().errors[name].number} `{name}`" for name in procedure.errors]
    yield f"Errors: {', '.join(numbers) or 'none'}. Roles: {_codes(procedure.roles)}."
    for database in procedure.databases or contract.load().types:
        yield f"{DATABASE_NAMES[database]}:\n\n```sql\n{example(database, procedure.name)}\n```"


def _signature(procedure: Procedure) -> str:
    arguments = ", ".join(f"{a.name} = NULL" if a.optional else a.name for a in procedure.arguments)
    return f"{procedure.name}({arguments})"


def _limit(argument: Argument) -> str:
    limit = contract.load().limits[argument.limit] if argument.limit else ""
    return "; ".join(filter(None, (limit, "" if argument.optional else "required")))


def _rows(rows: str) -> str:
    return "1 row" if rows == "1" else f"{rows} rows"


def _column(column: Column) -> list[str]:
    return [f"`{column.name}`", column.type, column.meaning]


def example(database: str, name: str) -> str:
    """The call in the header of a procedure's file. Raises ValueError when it has none."""
    path = contract.load().file(database, name)
    text = path.read_text("utf-8")
    found = re.search(r"^-- Example: +(.+)$", text, re.M)
    if found is None:
        raise ValueError(f"{path} has no Example line")
    return found[1]


def _codes(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(head: Sequence[str], rows: Iterator[list[str]]) -> list[str]:
    cells = [list(head), ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
