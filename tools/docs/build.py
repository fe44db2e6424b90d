"""Write the reference from procedures/contract.toml and the example calls in the procedures' SQL files.

Each page begins with a hand-written text: docs/reference/PAGE.head.md for docs/reference/PAGE.md. `make docs` runs it;
tests/static/test_docs.py fails when a page differs from its output.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rowqueue.install import contract
from rowqueue.install.contract import Argument, Column, Procedure
from tabs import BEGIN, END, ENGINES

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
# Columns that several procedures return; the page of the first of them, claim_batch, defines them once.
MESSAGE_ROW = "The message row"
# Results with more columns than this are shown with one column per line.
_WIDE = 6


def pages() -> dict[Path, str]:
    """The text of each generated page."""
    areas = _areas()
    written = {REFERENCE / "procedures.md": _index(areas), REFERENCE / "errors.md": _numbers()}
    for area, procedures in areas.items():
        written[REFERENCE / f"{area}.md"] = _area(area, procedures)
    return written


def _areas() -> dict[str, list[Procedure]]:
    every = contract.load().every.values()
    found = {area: [p for p in every if p.area == area] for area in contract.load().areas}
    return {area: procedures for area, procedures in found.items() if procedures}


def _head(page: Path) -> str:
    return page.with_suffix(".head.md").read_text("utf-8").rstrip()


def _join(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"


def _title(head: str) -> str:
    return head.partition("\n")[0].lstrip("# ")


def _index(areas: dict[str, list[Procedure]]) -> str:
    parts = [_head(REFERENCE / "procedures.md"), "## All procedures"]
    for area, procedures in areas.items():
        title = _title(_head(REFERENCE / f"{area}.md"))
        parts += [f"### {title}", _list(procedures, f"{area}.md")]
    return _join(parts)


def _list(procedures: Sequence[Procedure], page: str) -> str:
    rows = ([f"[`{p.name}`]({page}#{p.name})", p.summary, _codes(p.roles)] for p in procedures)
    return _table(("procedure", "does", "roles"), rows)


def _area(area: str, procedures: Sequence[Procedure]) -> str:
    parts = [_head(REFERENCE / f"{area}.md"), "## Procedures", _list(procedures, "")]
    for procedure in procedures:
        parts.extend(_section(procedure))
    if area == contract.load().procedures["claim_batch"].area:
        parts += [f"## {MESSAGE_ROW}", "One message as a claim returns it.", _columns(_message())]
    return _join(parts)


def _numbers() -> str:
    known = contract.load()
    errors = ([str(e.number), f"`{e.name}`", e.retry, e.meaning] for e in known.errors.values())
    return _join(
        (
            _head(REFERENCE / "errors.md"),
            "## Errors",
            _table(("number", "name", "retry helps", "meaning"), errors),
            "## Limits",
            "Limits that more than one procedure has:",
            _table(("limit", "values"), ([name, text] for name, text in known.limits.items())),
            "## Types",
            "Arguments. A text with the limit `name` is a `name` here:",
            _types(known.arguments),
            "Result columns:",
            _types(known.results),
        )
    )


def _types(tables: dict[str, dict[str, str]]) -> str:
    """What each type is on each engine."""
    names = next(iter(tables.values()))
    return _table(
        ("type", *ENGINES.values()), ([name, *(tables[engine][name] for engine in ENGINES)] for name in names)
    )


def _message() -> tuple[Column, ...]:
    """The columns of a claimed message."""
    return contract.load().procedures["claim_batch"].columns


def _section(procedure: Procedure) -> Iterator[str]:
    yield f"### {procedure.name}"
    yield f"`{_signature(procedure)}`"
    if procedure.databases:
        yield f"Only on {', '.join(ENGINES[database] for database in procedure.databases)}."
    yield procedure.summary
    if procedure.detail:
        yield procedure.detail
    if procedure.arguments:
        rows = ([f"`{a.name}`", _type(a), _limit(a), a.meaning] for a in procedure.arguments)
        yield _table(("argument", "type", "limit", "meaning"), rows)
    if procedure.options:
        yield f"Names in `{procedure.object}`:"
        rows = (
            [f"`{o.name}`", o.type, contract.load().limits.get(o.limit or "", ""), o.meaning] for o in procedure.options
        )
        yield _table(("name", "type", "limit", "meaning"), rows)
    yield from _result(procedure)
    numbers = [f"{contract.load().errors[name].number} `{name}`" for name in procedure.errors]
    yield f"Errors: {', '.join(numbers) or 'none'}. Roles: {_codes(procedure.roles)}."
    yield _examples(procedure)
    yield from _output(procedure)


def _result(procedure: Procedure) -> Iterator[str]:
    if not procedure.columns:
        yield "Returns no result set."
    elif procedure.columns == _message():
        home = contract.load().procedures["claim_batch"].area
        page = "" if procedure.area == home else f"{home}.md"
        yield f"Returns {_rows(procedure.rows)}: [the message row]({page}#{MESSAGE_ROW.lower().replace(' ', '-')})."
    else:
        more = ". Later releases may add columns at the end" if procedure.open else ""
        yield f"Returns {_rows(procedure.rows)}{more}:"
        yield _columns(procedure.columns)


def _examples(procedure: Procedure) -> str:
    parts = [BEGIN]
    for engine, name in ENGINES.items():
        if engine in (procedure.databases or ENGINES):
            parts.append(f"**{name}**\n\n```sql\n{example(engine, procedure.name)}\n```\n")
    return "\n".join([*parts, END])


def _output(procedure: Procedure) -> Iterator[str]:
    """The result of a call on a real database; see outputs.py. Of wide rows only the first, a column per line."""
    result = _outputs().get(procedure.name)
    if result is None or not procedure.columns:
        return
    rows = [[_cell(value) for value in row.values()] for row in result["rows"]]
    yield f"On every database `{result['call']}` returns{':' if rows else ' no rows.'}"
    if rows and len(procedure.columns) > _WIDE:
        yield _table(
            ("column", "value"), ([f"`{c.name}`", value] for c, value in zip(procedure.columns, rows[0], strict=True))
        )
    elif rows:
        yield _table([column.name for column in procedure.columns], rows)


@cache
def _outputs() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(Path(__file__).with_name("outputs.json").read_text("utf-8"))
    return recorded


def _cell(value: str | None) -> str:
    return "NULL" if value is None else f"`{value}`"


def _signature(procedure: Procedure) -> str:
    arguments = ", ".join(f"{a.name} = NULL" if a.optional else a.name for a in procedure.arguments)
    return f"{procedure.name}({arguments})"


def _type(argument: Argument) -> str:
    return f"{argument.type}; on PostgreSQL jsonb too" if argument.jsonb else argument.type


def _limit(argument: Argument) -> str:
    limit = contract.load().limits[argument.limit] if argument.limit else ""
    return "; ".join(filter(None, (limit, "" if argument.optional else "required")))


def _rows(rows: str) -> str:
    return "1 row" if rows == "1" else rows if "row" in rows else f"{rows} rows"


def _columns(columns: Sequence[Column]) -> str:
    return _table(("column", "type", "meaning"), ([f"`{c.name}`", c.type, c.meaning] for c in columns))


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


def _table(head: Sequence[str], rows: Iterable[list[str]]) -> str:
    cells = [list(head), ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells)


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, "utf-8")
