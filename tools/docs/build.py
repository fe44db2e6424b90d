"""Write the generated parts of the pages from procedures/contract.toml and the procedures' SQL files.

generated.py says how a page asks for them. `make docs` runs this; tests/static/test_docs.py fails when a page differs
from its output.
"""

import json
import os.path
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import generated
from rowqueue.install import contract
from rowqueue.install.contract import Argument, Column, Procedure
from tabs import BEGIN, END, ENGINES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def pages() -> dict[Path, str]:
    """The text of each page that has generated parts. Raises LookupError for a procedure without a page."""
    if lacking := contract.load().every.keys() - _places().keys():
        raise LookupError(f"no page has {', '.join(sorted(lacking))}: name it in a `generated: procedures` comment")
    return {
        path: generated.fill(text, partial(_part, path)) for path, text in _texts().items() if generated.names(text)
    }


@cache
def _texts() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}


@cache
def _places() -> dict[str, Path]:
    """The page of each procedure, in the order of the contract."""
    found = {
        name: path
        for path, text in _texts().items()
        for part in generated.names(text)
        if part.startswith("procedures ")
        for name in _listed(part)
    }
    return {name: found[name] for name in contract.load().every if name in found}


def _listed(part: str) -> list[str]:
    return part.removeprefix("procedures ").split(", ")


def _part(page: Path, name: str) -> str:
    known = contract.load()
    if name.startswith("procedures "):
        return _join(_procedures(page, [known.every[listed] for listed in _listed(name)]))
    written = {
        "index": _index,
        "the message row": lambda: _columns(_message(), _outputs()["claim_batch"]["rows"][:1]),
        "errors": _errors,
        "limits": lambda: _table(("limit", "values"), ([name, text] for name, text in known.limits.items())),
        "types of arguments": lambda: _types(known.arguments),
        "types of results": lambda: _types(known.results),
    }
    return written[name]()


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(texts)


def _title(page: Path) -> str:
    return _texts()[page].partition("\n")[0].lstrip("# ")


def _index() -> str:
    """All procedures, page by page."""
    written = []
    for page in dict.fromkeys(_places().values()):
        procedures = [contract.load().every[name] for name, place in _places().items() if place == page]
        rows = ([f"[`{p.name}`]({page.name}#{p.name})", p.summary, p.area, _codes(p.roles)] for p in procedures)
        written += [f"### {_title(page)}", _table(("procedure", "does", "area", "roles"), rows)]
    return _join(written)


def _procedures(page: Path, procedures: Sequence[Procedure]) -> Iterator[str]:
    rows = ([f"[`{p.name}`](#{p.name})", p.summary, _codes(p.roles)] for p in procedures)
    yield _table(("procedure", "does", "roles"), rows)
    for procedure in procedures:
        yield from _section(page, procedure)


def _errors() -> str:
    errors = ([str(e.number), f"`{e.name}`", e.retry, e.meaning] for e in contract.load().errors.values())
    return _table(("number", "name", "retry helps", "meaning"), errors)


def _types(tables: dict[str, dict[str, str]]) -> str:
    """What each type is on each engine."""
    names = next(iter(tables.values()))
    return _table(
        ("type", *ENGINES.values()), ([name, *(tables[engine][name] for engine in ENGINES)] for name in names)
    )


def _message() -> tuple[Column, ...]:
    """The columns of a claimed message."""
    return contract.load().procedures["claim_batch"].columns


def _section(page: Path, procedure: Procedure) -> Iterator[str]:
    yield f"### {procedure.name}"
    yield f"`{_signature(procedure)}`"
    if procedure.databases:
        yield f"Only on {', '.join(ENGINES[database] for database in procedure.databases)}."
    yield procedure.summary
    if procedure.detail:
        yield _linked(page, procedure.detail)
    if procedure.arguments:
        rows = ([f"`{a.name}`", _type(a), _limit(a), a.meaning] for a in procedure.arguments)
        yield _table(("argument", "type", "limit", "meaning"), rows)
    if procedure.options:
        yield f"Names in `{procedure.object}`:"
        rows = (
            [f"`{o.name}`", o.type, contract.load().limits.get(o.limit or "", ""), o.meaning] for o in procedure.options
        )
        yield _table(("name", "type", "limit", "meaning"), rows)
    yield from _result(page, procedure)
    numbers = [f"{contract.load().errors[name].number} `{name}`" for name in procedure.errors]
    yield f"Errors: {', '.join(numbers) or 'none'}. Roles: {_codes(procedure.roles)}."
    yield _examples(procedure)


def _linked(page: Path, text: str) -> str:
    """A text of the contract, with links to headings. The contract does not name pages: some page has the heading."""
    return re.sub(r"\]\(#([\w-]+)\)", lambda link: f"]({_heading(page, link[1])})", text)


def _heading(page: Path, anchor: str) -> str:
    """The link from a page to the heading with this anchor that was written by hand."""
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"): path
        for path, text in _texts().items()
        if path.parent.name == "reference"
        for heading in re.findall(r"^#+ (.+)$", generated.by_hand(text), re.M)
    }
    place = headings[anchor]
    return f"#{anchor}" if place == page else f"{os.path.relpath(place, page.parent)}#{anchor}"


def _result(page: Path, procedure: Procedure) -> Iterator[str]:
    """The columns, with the values of the first row of a call on a real database; see outputs.py."""
    if not procedure.columns:
        yield "Returns no result set."
    elif procedure.columns == _message():
        yield f"Returns {_rows(procedure.rows)}: [the message row]({_heading(page, 'the-message-row')})."
    else:
        more = ". Later releases may add columns at the end" if procedure.open else ""
        shown = _outputs().get(procedure.name, {"call": "", "rows": []})
        example = f". The example is from `{shown['call']}`" if shown["rows"] else ""
        yield f"Returns {_rows(procedure.rows)}{more}{example}:"
        yield _columns(procedure.columns, shown["rows"][:1])


def _examples(procedure: Procedure) -> str:
    lines = [BEGIN]
    for engine, name in ENGINES.items():
        if engine in (procedure.databases or ENGINES):
            lines.append(f"**{name}**\n\n```sql\n{example(engine, procedure.name)}\n```\n")
    return "\n".join([*lines, END])


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


def _columns(columns: Sequence[Column], rows: Sequence[dict[str, str | None]]) -> str:
    """A table of result columns, with an example if there is a row."""
    shown = ([f"`{c.name}`", c.type, c.meaning, *(_cell(row[c.name]) for row in rows)] for c in columns)
    return _table(("column", "type", "meaning", *(["example"] if rows else [])), shown)


def example(database: str, name: str) -> str:
    """The call in the header of a procedure's file. Raises ValueError when it has none."""
    path = contract.load().files(database)[name]
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
    for path, text in pages().items():
        path.write_text(text, "utf-8")
