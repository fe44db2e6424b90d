"""How the runner prints: tables on a terminal, tab-separated text in a pipe, JSON lines where asked for."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from .messages import plain

CELL = 300  # characters of a long text that a table shows at most
_COLOURS = {"ok": "green", "warn": "yellow", "bad": "bold red", "missing": "red", "pending": "yellow", "drifted": "red"}


def rows(found: Iterable[dict[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Print rows: all their fields with --json, else the named columns."""
    if as_json:
        for row in found:
            print(json.dumps(row, ensure_ascii=False, default=plain))
    elif sys.stdout.isatty():
        _table(found, columns)
    else:
        print("\t".join(columns))
        for row in found:
            print("\t".join(_text(row[column]) for column in columns))


def _table(found: Iterable[dict[str, Any]], columns: Sequence[str]) -> None:
    from rich.console import Console  # it takes long to load, and pipes have no need of it
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, expand="body" in columns)
    for column in columns:
        # A body gets the room that is left and is cut; errors and advice are wrapped; the rest stays whole.
        wraps = column in {"error", "detail"}
        table.add_column(
            column, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis", ratio=1 if column == "body" else None
        )
    for row in found:
        texts = [_shortened(_text(row[column])) for column in columns]
        table.add_row(*(Text(text, style=_COLOURS.get(text, "")) for text in texts))
    Console().print(table)


def _shortened(text: str) -> str:
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _text(value: Any) -> str:
    """A value on one line: characters that would break the line or steer the terminal are escaped as in JSON."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.{0 if value.is_integer() else 1}f}" if value >= 10 else f"{value:.3g}"
    text = plain(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
