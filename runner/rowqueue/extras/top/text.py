"""Values as short texts for a narrow screen. Texts of senders are shown without control characters."""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.highlighter import JSONHighlighter
from rich.text import Text

from ...escaping import escaped, escaped_lines
from ..monitor import Queue

# Characters of a body that are shown.
BODY = 65_536
_BARS = "▁▂▃▄▅▆▇█"
_PERIODS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
# JSON nested deeper than this is shown unformatted.
_DEPTH = 40


def cell(value: Any, style: str = "", right: bool = False) -> Text:
    """A cell of a table: one line, without markup."""
    text = "" if value is None else escaped(str(value))
    return Text(text, style=style, no_wrap=True, overflow="ellipsis", justify="right" if right else "left")


def period(seconds: float | None) -> str:
    """A length of time in at most six characters, such as 2h05m; '' for None."""
    if seconds is None:
        return ""
    seconds = max(0, int(seconds))
    for size, letter, part, small in _PERIODS:
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size}{letter}" + (f"{rest:02}{small}" if seconds // size < 100 else "")
    return f"{seconds}s"


def ago(time: datetime | None, now: datetime) -> str:
    """How long ago a time was, or in how long it will be."""
    if time is None:
        return ""
    seconds = (now - time).total_seconds()
    return f"{period(seconds)} ago" if seconds >= 0 else f"in {period(-seconds)}"


def moment(time: datetime | None, now: datetime) -> str:
    """A time in the zone of this machine, and how long ago that is."""
    if time is None:
        return ""
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}  ({ago(time, now)})"


def spark(values: Sequence[float | None], width: int) -> str:
    """The last values as bars of one line; blank where there is none."""
    shown = list(values)[-width:] if width > 0 else []
    highest = max((value for value in shown if value), default=0)
    if not highest:
        return ""
    bars = ("▁" if not value else _BARS[min(7, int(value / highest * 7.999))] for value in shown)
    return "".join(bars).rjust(width)


def pretty(text: str) -> Text:
    """A body or headers to read: JSON is indented and coloured, with its tokens unchanged; other text is unchanged."""
    indented = _indented(text)
    if indented is None:
        return Text(escaped_lines(text))
    shown = Text(indented)
    JSONHighlighter().highlight(shown)
    return shown


def _indented(text: str) -> str | None:
    """JSON of an object or an array with a line per value; None for other text.

    Its strings and numbers stay as sent: a parser would drop digits and duplicate keys.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    depth, before = 0, ""
    for token in _TOKEN.findall(text):
        depth -= token in "}]"
        if depth > _DEPTH:
            return None
        if (before in "{[" and before and token not in "}]") or before == "," or (token in "}]" and before not in "{["):
            parts.append("\n" + "  " * depth)
        parts.append(escaped(token) + (" " if token == ":" else ""))
        depth += token in "{["
        before = token
    return "".join(parts)


def has_reports(queue: Queue) -> bool:
    """Whether a consumer has reported for a queue in the last hour."""
    return any(minute.sent or minute.completed or minute.failed for minute in queue.minutes)
