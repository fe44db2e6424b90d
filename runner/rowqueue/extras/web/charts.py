"""Charts as inline SVG: pygal draws them, and the page's style sheet colours them.

pygal's own styles and scripts are left out, because the pages' Content-Security-Policy forbids them.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

import pygal
from markupsafe import Markup

from ..monitor import Minute

_PLAIN = {"js": (), "css": (), "show_legend": False, "no_prefix": True, "disable_xml_declaration": True}
_LEFT_OUT = {"defs", "desc", "title", "script", "style"}


def sparkline(minutes: Sequence[Minute]) -> Markup:
    """Completed messages of each whole minute."""
    return _sparkline(tuple(minute.completed for minute in minutes[:-1]))


@lru_cache(4096)
def _sparkline(values: tuple[int, ...]) -> Markup:
    chart = pygal.Line(
        width=120,
        height=24,
        margin=2,
        spacing=0,
        show_dots=False,
        show_x_labels=False,
        show_y_labels=False,
        fill=True,
        range=(0, max(*values, 1)),
        **_PLAIN,
    )
    chart.add("", values)
    label = f"completed per minute in the last hour: now {values[-1]:,}, maximum {max(values):,}"
    return _svg(chart, "spark", label)


@lru_cache(512)
def minute_chart(minutes: tuple[Minute, ...]) -> Markup:
    """Completed and failed messages of each minute as stacked bars."""
    chart = pygal.StackedBar(
        width=960,
        height=200,
        margin=8,
        margin_left=48,  # room for the larger labels of a narrow screen
        margin_bottom=16,
        spacing=4,
        x_labels=[minute.minute.strftime("%H:%M") for minute in minutes],
        x_labels_major=[minute.minute.strftime("%H:%M") for minute in minutes[:: len(minutes) // 6]],
        show_minor_x_labels=False,
        truncate_label=-1,
        print_values=False,
        y_labels_major_count=3,
        show_minor_y_labels=False,
        value_formatter=lambda value: f"{value:,.0f}",
        range=(0, max(4, *(minute.completed + minute.failed for minute in minutes))),
        **_PLAIN,
    )
    chart.add("completed", [minute.completed for minute in minutes])
    chart.add("failed", [minute.failed for minute in minutes])
    completed, failed = (sum(getattr(minute, name) for minute in minutes) for name in ("completed", "failed"))
    return _svg(chart, "bars", f"in the last hour {completed:,} completed and {failed:,} failed attempts, per minute")


def _svg(chart: Any, name: str, label: str) -> Markup:
    root = chart.render_tree()
    _strip(root)
    root.attrib.clear()
    root.attrib |= {
        "class": f"chart {name}",
        "viewBox": f"0 0 {chart.config.width} {chart.config.height}",
        "role": "img",
        "aria-label": label,
        "preserveAspectRatio": "none" if name == "spark" else "xMidYMid meet",
    }
    # It contains only our own text: times, numbers and the words above.
    return Markup(
        ElementTree.tostring(root, "unicode", short_empty_elements=True).replace("ns0:", "").replace(":ns0", "")
    )


def _strip(node: Any) -> None:
    for child in list(node):
        tag = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        hidden = {"tooltip", "tooltip-overlay", "text-overlay", "legends", "titles"} & set(
            child.get("class", "").split()
        )
        if not tag or tag in _LEFT_OUT or hidden:
            node.remove(child)
            continue
        for attribute in ("style", "id"):
            child.attrib.pop(attribute, None)
        _strip(child)
