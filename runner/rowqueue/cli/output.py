"""Output of the runner: tables on a terminal, tab-separated text in a pipe, JSON lines with --json."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..escaping import escaped
from ..messages import plain

CELL = 300  # the most characters of a text that a table shows
_GAP = 2  # spaces between two columns

# The least width of a column on a narrow terminal. Columns that are not listed are shown whole.
_TEXTS = {"body": 16, "error": 16, "headers": 12, "row_key": 12, "row_data": 12, "result": 12, "detail": 24}
_NAMES = (
    "type",
    "name",
    "consumer",
    "table_name",
    "feed",
    "topic",
    "pattern",
    "cron",
    "time_zone",
    "key_columns",
    "status_column",
)
_NAME = 12
_USUAL = 40  # a longer name gets more width only after the texts
_TINY = 6
_WRAPPED = {"detail"}  # advice must not be cut
# Columns to drop on a narrow terminal, in this order.
_DISPENSABLE = (
    *("priority", "state", "last_id", "headers", "unit", "waited_ms", "busy_ms", "started_at", "first_at"),
    *("created_at", "moved_at", "last_at", "time_zone", "reported_at", "run_at", "consumer", "changed_at"),
)

_GOOD, _WARN, _BAD, _QUIET = "green", "yellow", "bold red", "dim"
_WORDS = {
    "state": {"A": "cyan", "C": _GOOD, "E": "red", "missing": "red", "pending": _WARN, "drifted": "red"},
    "verdict": {"ok": _GOOD, "warn": _WARN, "bad": _BAD},
    "status": {"working": _GOOD, "silent": _BAD, "stopped": _QUIET},
    "paused": {"paused": _WARN},
}
_COUNTS = {"dead": "red", "expired": _WARN, "failed": _WARN}  # if they are not 0


def rows(found: Iterable[dict[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Print rows: all fields with --json, otherwise the named columns."""
    if as_json:
        for row in found:
            print(
                escaped(json.dumps(row, ensure_ascii=False, default=plain))
            )  # JSON reads the escapes as the same text
    elif sys.stdout.isatty():
        _table(list(found), columns)
    else:
        print("\t".join(columns))
        for row in found:
            print("\t".join(_text(row[column]) for column in columns))


def style(column: str, text: str) -> str:
    """The Rich style for a text of a column; '' for none. Also for other code that draws tables."""
    if column in _COUNTS:
        return "" if text in ("", "0") else _COUNTS[column]
    return _WORDS.get(column, {}).get(text, "")


@dataclass
class _Column:
    """One column while the table is fitted: its cells, and the width that it needs and gets."""

    name: str
    header: str
    cells: list[str]
    least: int = 0
    natural: int = 0
    width: int = 0


def _table(found: list[dict[str, Any]], columns: Sequence[str]) -> None:
    try:
        from rich.console import Console  # slow to import, and not needed for pipes
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        _plain_table(found, columns)
        return
    console = Console()
    shown = [_Column(name, name, [_cell(row[name]) for row in found]) for name in columns]
    shown = _fitted(shown, found, console.width)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0), collapse_padding=True)
    for column in shown:
        is_number = any(column.cells) and all(re.fullmatch(r"(-?[\d,.]+\+?)?", cell) for cell in column.cells)
        wraps = column.name in _WRAPPED
        table.add_column(
            Text(column.header, overflow="fold"),
            width=column.width,
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
            justify="right" if is_number else "left",
        )
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*(Text(text, style(column.name, text)) for column, text in zip(shown, cells, strict=True)))
    console.print(table)
    left_out = {name for name in columns if any(row[name] not in (None, "") for row in found)}
    if hidden := [name for name in columns if name in left_out - {column.name for column in shown}]:
        said = f"Not shown in {console.width} columns: {', '.join(hidden)}. --json has all."
        Console(stderr=True).print(said, style=_QUIET, highlight=False, soft_wrap=True)


def _plain_table(found: list[dict[str, Any]], columns: Sequence[str]) -> None:
    """Without the extra `terminal`: no colours, and as wide as the longest cells."""
    lines = [[*columns], *([_cell(row[name]) for name in columns] for row in found)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        print((" " * _GAP).join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _fitted(columns: list[_Column], found: list[dict[str, Any]], width: int) -> list[_Column]:
    """The columns to show, with widths: full width if there is room, else narrower step by step."""
    for narrower in (lambda columns: columns, *_steps(columns, found)):
        columns = narrower(columns)
        _measure(columns)
        if sum(column.least for column in columns) <= width - _GAP * (len(columns) - 1):
            break
    else:
        for column in columns:
            column.least = min(column.least, _TINY)
    _share_out(columns, width - _GAP * (len(columns) - 1))
    return columns


def _steps(columns: list[_Column], found: list[dict[str, Any]]) -> Iterator[Callable[[list[_Column]], list[_Column]]]:
    """The steps that make a table narrower, beginning with the one that loses least."""

    def short_times(columns: list[_Column]) -> list[_Column]:
        for column in columns:
            column.cells = [_cell(row[column.name], short=True) for row in found]
        return columns

    def broken_headers(columns: list[_Column]) -> list[_Column]:
        for column in columns:
            column.header = _broken(column.name, max(map(len, column.cells), default=0))
        return columns

    def without(name: str) -> Callable[[list[_Column]], list[_Column]]:
        return lambda columns: columns[:1] + [column for column in columns[1:] if column.name != name]

    for column in columns[1:]:  # the first one identifies the row
        if found and not any(column.cells):
            yield without(column.name)
    yield short_times
    yield broken_headers
    for name in _DISPENSABLE:
        yield without(name)


def _measure(columns: list[_Column]) -> None:
    """Set each column's full width and its least width."""
    from rich.cells import cell_len

    for column in columns:
        header = max(map(cell_len, column.header.split("\n")))
        column.natural = max([header, *map(cell_len, column.cells)])
        keeps = _TEXTS.get(column.name, _NAME if column.name in _NAMES else column.natural)
        column.least = min(column.natural, max(keeps, header))


def _share_out(columns: list[_Column], room: int) -> None:
    """Give each column its least width, then the rest to names up to _USUAL, to texts, and to longer names."""
    for column in columns:
        column.width = column.least
    texts = [column for column in columns if column.name in _TEXTS]
    names = [column for column in columns if column.name not in _TEXTS]
    for group, most in ((names, _USUAL), (texts, CELL * 2), (names, CELL * 2)):
        while short := [column for column in group if column.width < min(column.natural, most)]:
            left = room - sum(column.width for column in columns)
            if left < 1:
                return
            for column in sorted(short, key=lambda column: column.width)[:left]:
                column.width += max(1, min(left // len(short), min(column.natural, most) - column.width))


def _broken(header: str, needed: int) -> str:
    """A header that is longer than `needed`, broken into two lines of similar length."""
    places = [place.end() for place in re.finditer("_", header)] if len(header) > needed else []
    halves = [f"{header[:at]}\n{header[at:]}" for at in places]
    return min(halves, key=lambda halves: max(map(len, halves.split("\n"))), default=header)


def _cell(value: Any, short: bool = False) -> str:
    """A value in a table for people: times to the second, texts cut. `short`: leave out the current year."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        this_year = short and moment.year == datetime.now(UTC).year
        return moment.strftime("%m-%d %H:%M:%S" if this_year else "%Y-%m-%d %H:%M:%S")
    text = _text(value)
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _text(value: Any) -> str:
    """A value on one line: line breaks and control characters are escaped as in JSON."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.{0 if value.is_integer() else 1}f}" if value >= 10 else f"{value:.3g}"
    return escaped(plain(value))
