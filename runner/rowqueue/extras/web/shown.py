"""Template filters that format values. All except `moment` return plain text, which Jinja2 escapes."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from ...databases import how_to_add
from .. import handling
from ..monitor.counts import count

CUT = 100_000  # characters of a body on the page of its message; the whole body can be downloaded

# Control characters, such as those that change the text direction, are shown as numbers. Joiners stay: scripts need
# them.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.S)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def visible(text: Any) -> str:
    """A text with control and direction characters shown as numbers, such as ⟨U+202E⟩."""
    plain = "" if text is None else str(text).replace("\r\n", "\n")
    return _STEERING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", plain)


def error_kind(text: Any) -> str:
    """Of an error only its kind, such as ValueError: the rest may quote a body."""
    found = re.match(r"[A-Za-z_][\w.]*(?=:|$)", str(text or ""))
    return f"{found[0]}: …" if found else "…" if text else ""


def one_line(text: Any, length: int = 120) -> str:
    """The beginning of a text on one line."""
    plain = " ".join(visible(str(text or "")[: 4 * length]).split())
    return plain if len(plain) <= length else f"{plain[: length - 1]}…"


def pretty(text: str) -> tuple[str, bool]:
    """A text to read, and whether it is JSON. JSON is indented; its numbers keep all their digits."""
    if text[:1] in "{[" and text:
        try:
            json.loads(text)
            return visible(_indented(text)), True
        except (ValueError, RecursionError):
            pass
    return visible(text), False


def _indented(text: str) -> str:
    """JSON with one value per line; strings and numbers stay as they were written."""
    parts: list[str] = []
    depth, last = 0, ""
    for token in _TOKENS.findall(text):
        closes = token in "}]"
        if closes:
            depth -= 1
        if (last in ("{", "[", ",") and not (closes and last != ",")) or (closes and last not in ("{", "[")):
            parts.append("\n" + "  " * min(depth, 40))
        parts.append(": " if token == ":" else token)
        if token in "{[":
            depth += 1
        last = token
    return "".join(parts)


def duration(seconds: float | None) -> str:
    """Seconds in the largest unit that fits, such as 3 min; "" for None."""
    if seconds is None:
        return ""
    if seconds < 1:
        return "0 s" if seconds < 0.001 else f"{seconds * 1000:.0f} ms"
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size)
    return f"{seconds / size:,.0f} {unit}"


def number(value: Any) -> str:
    """A number with commas; "" for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")


def moment(value: datetime | None, now: datetime) -> Markup:
    """A time such as "3 min ago", with the full time as a tooltip and for programs."""
    if value is None:
        return Markup("")
    seconds = (now - value).total_seconds()
    said = f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    if abs(seconds) < 1:
        said = "now"
    exact = value.astimezone(UTC)
    stamp = exact.isoformat().replace("+00:00", "Z")
    # It contains no user's text, so no escaping: a long page has thousands of times.
    return Markup(f'<time datetime="{stamp}" title="{stamp[:10]} {stamp[11:19]} UTC">{said}</time>')


FILTERS = {
    "handling": handling.read,
    "visible": visible,
    "one_line": one_line,
    "duration": duration,
    "number": number,
    "count": count,
    "moment": moment,
    "how_to_add": how_to_add,
}
