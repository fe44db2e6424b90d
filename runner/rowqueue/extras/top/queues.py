"""The first screen: queues, consumers, and failed health checks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from ...databases import how_to_add
from ...escaping import escaped
from ..handling import read
from ..monitor import MINUTES, Incident, Minute, Overview, Queue, overview, recent_incidents
from ..monitor.counts import ESTIMATED, count, number, short_count
from .asking import Reading
from .live import Cells, Live, Rows
from .queue import QueueScreen
from .text import ago, cell, has_reports, period, spark

# At most this many lines of a table are shown; find other queues by name.
_SHOWN = 300
# Screens of at least this width show more columns.
_WIDE = 100
_STATUS = {"working": "green", "silent": "bold red", "stopped": "dim"}
_VERDICT = {"warn": "yellow", "bad": "bold red"}


@dataclass(frozen=True)
class Column:
    """A column of the queues: its label, its width, and how a cell is made from a queue."""

    label: str
    width: int
    text: Callable[["QueueLine"], tuple[str, str]]
    order: Callable[["QueueLine"], Any]
    wide: bool = False


@dataclass(frozen=True)
class QueueLine:
    """One queue at one moment. `last`: the last whole minute; None if no consumer reports."""

    queue: Queue
    last: Minute | None
    change: float | None

    def of_minute(self, name: str) -> int | None:
        """A number of the last whole minute."""
        return None if self.last is None else getattr(self.last, name)


def _held(name: str, style: str = "") -> Callable[[QueueLine], tuple[str, str]]:
    def text(line: QueueLine) -> tuple[str, str]:
        value = getattr(line.queue, name)
        return short_count(value, line.queue.estimated and name in ESTIMATED), style if value else "dim"

    return text


def _drain(line: QueueLine) -> tuple[str, str]:
    return (period(line.queue.drain_seconds) or "?" if line.queue.ready else ""), ""


def _change(line: QueueLine) -> tuple[str, str]:
    return ("" if line.change is None else f"{'+' if line.change > 0.5 else ''}{number(line.change)}"), ""


def _minute(name: str, style: str = "") -> Callable[[QueueLine], tuple[str, str]]:
    return lambda line: (number(line.of_minute(name)), style if line.of_minute(name) else "dim")


COLUMNS = (
    Column("READY", 6, _held("ready"), lambda line: -line.queue.ready),
    Column("DELAYED", 8, _held("delayed"), lambda line: -line.queue.delayed),
    Column("ACTIVE", 7, _held("active"), lambda line: -line.queue.active),
    Column("EXPIRED", 8, _held("expired", "yellow"), lambda line: -line.queue.expired, wide=True),
    Column("DEAD", 6, _held("dead", "bold red"), lambda line: -line.queue.dead),
    Column(
        "OLDEST",
        7,
        lambda line: (period(line.queue.oldest_ready_seconds), ""),
        lambda line: -(line.queue.oldest_ready_seconds or 0),
    ),
    Column("DRAIN", 7, _drain, lambda line: -(line.queue.drain_seconds or float("inf")) if line.queue.ready else 0),
    Column("SENT/M", 7, _minute("sent"), lambda line: -(line.of_minute("sent") or 0), wide=True),
    Column("FAIL/M", 7, _minute("failed", "red"), lambda line: -(line.of_minute("failed") or 0), wide=True),
    Column("DONE/M", 7, _minute("completed"), lambda line: -(line.of_minute("completed") or 0)),
    Column("±/M", 6, _change, lambda line: -(line.change or 0)),
)


class QueuesScreen(Live):
    """All queues of the database."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause"),
        Binding("r", "resume", "Resume"),
        Binding("d", "redrive", "Redrive"),
        # Priority: the key is handled before the next one, so text typed after it never triggers a change.
        Binding("slash", "filter", "Filter", key_display="/", priority=True),
        Binding("s", "sort(1)", "Sort"),
        Binding("S", "sort(0)", show=False),
        Binding("escape", "clear", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._filter = ""
        self._sorted_by = -1  # the index of a shown column; -1: the name
        self._is_turned = False
        self._found: Overview | None = None
        self._incidents: list[Incident] = []
        self._absent: list[str] = []
        self._hurts: dict[str, Hurt] = {}

    def compose(self) -> ComposeResult:
        yield Static(classes="line frame")
        yield Static(classes="sign")
        yield Static(id="summary", classes="line")
        yield Rows("queues")
        yield Rows("consumers")
        yield Rows("hurts")
        yield Input(id="filter", placeholder="part of a queue's name")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#queues").focus()
        self.call_after_refresh(self.show)

    async def look(self) -> datetime:
        part = self._filter
        found = await self.ask(lambda looking: overview(looking, False, part, _SHOWN))
        self._found = replace(found, health=self._found.health if self._found else [])
        self.top.growth.add(found.queues)
        self.show()
        # Read after the rest is shown, because it may be slow; then cached for a while.
        health, self._incidents, self._absent = await self.ask(
            lambda looking: (looking.health(), recent_incidents(looking), list(looking.absent))
        )
        self._found = replace(self._found, health=health)
        self._show_hurts(self._found)
        return self._found.now

    # ---- what is shown

    def show(self) -> None:
        if not self.is_mounted or (found := self._found) is None:
            return
        self.query_one("#summary", Static).update(self._summary(found))
        self._show_queues(found)
        self._show_consumers(found)
        self._show_hurts(found)

    def _summary(self, found: Overview) -> Text:
        silent = sum(row["status"] == "silent" for row in found.consumers)
        working = len({row["consumer"] for row in found.consumers if row["status"] == "working"})
        parts = [
            f"{len(found.queues)} of {found.total:,} queues"
            if len(found.queues) < found.total
            else f"{found.total} queues",
            f"filter: {escaped(self._filter)}" if self._filter else "",
            f"{_sum(found, 'ready')} ready",
            f"{_sum(found, 'active')} active",
            f"{_sum(found, 'expired')} expired" if found.sums["expired"] else "",
            f"{_sum(found, 'dead')} dead",
            f"{working} consumers running" if "consumers" not in found.absent else "",
            f"{silent} silent" if silent else "",
            f"not allowed to see: {', '.join(found.left_out)}" if found.left_out else "",
            f"cannot be read: {', '.join(found.failed)}" if found.failed else "",
        ]
        return Text("  ".join(filter(None, parts)), no_wrap=True, overflow="ellipsis")

    def _show_queues(self, found: Overview) -> None:
        table = self.query_one("#queues", Rows)
        width = max(40, table.size.width or self.size.width)
        columns = [column for column in COLUMNS if width >= _WIDE or not column.wide]
        room = width - 1 - sum(column.width for column in columns)  # a scroll bar may take one
        bars = max(0, min(MINUTES, room // 3))
        labels = ["QUEUE", *(column.label for column in columns), "DONE, 1 HOUR" if bars > 12 else ""]
        labels[self._sorted_by + 1] += "↑" if self._is_turned else "↓"
        if len(labels[self._sorted_by + 1]) > 7:  # no room for both
            labels[self._sorted_by + 1] = "DELAY↑" if self._is_turned else "DELAY↓"
        widths = [room - bars, *(column.width for column in columns), bars]
        heads = [Text(label, justify="left" if not i else "right") for i, label in enumerate(labels)]
        lines = self._lines(found, columns)
        rows = {line.queue.type: self._cells(line, columns, widths[0], bars) for line in lines[:_SHOWN]}
        table.show(list(zip(heads, widths, strict=True)), rows)

    def _lines(self, found: Overview, columns: list[Column]) -> list[QueueLine]:
        """The queues that match the filter, in order."""
        lines = [
            QueueLine(queue, queue.minutes[-2] if has_reports(queue) else None, self.top.growth.per_minute(queue.type))
            for queue in found.queues
            if self._lets_through(queue.type)
        ]
        if self._sorted_by >= 0:
            lines.sort(key=columns[self._sorted_by].order)
        return lines[::-1] if self._is_turned else lines

    def _lets_through(self, type: str) -> bool:
        """Whether the filter shows this queue and its consumers."""
        return self._filter.casefold() in type.casefold()

    def _cells(self, line: QueueLine, columns: list[Column], width: int, bars: int) -> Cells:
        name = cell(line.queue.type)
        if line.queue.paused:
            name.truncate(width - 8, overflow="ellipsis")
            name.append(" paused", "yellow")
        else:
            name.truncate(width - 1, overflow="ellipsis")
        shown = [cell(*column.text(line), right=True) for column in columns]
        if line.last:
            minutes = [minute.completed for minute in line.queue.minutes[:-1]]
            shown.append(cell(spark(minutes, bars - 1), "green", right=True))
        else:
            ready = spark(self.top.growth.ready(line.queue.type), bars - 7)
            shown.append(cell(f"ready {ready}" if ready else "", "dim", right=True))
        return [name, *shown]

    def _show_consumers(self, found: Overview) -> None:
        table = self.query_one("#consumers", Rows)
        table.display = any(self._lets_through(row["type"]) for row in found.consumers)
        handles = 18 if (table.size.width or self.size.width) >= 110 else 0  # left out on a narrow screen
        width = max(40, (table.size.width or self.size.width) - handles) - 1 - 47
        labels = ["CONSUMER", "QUEUE", "STATUS", "RATE/M", "LOAD", "FAILED", "DEAD", "REPORT", "HANDLES"]
        widths = [width - width // 2, width // 2, 8, 7, 6, 7, 6, 13, handles]
        columns = 9 if handles else 8
        heads = [Text(label, justify="left" if i < 3 else "right") for i, label in enumerate(labels)]
        order = {"silent": 0, "working": 1, "stopped": 2}
        consumers = [row for row in found.consumers if self._lets_through(row["type"])]
        rows = sorted(consumers, key=lambda row: (order.get(row["status"], 3), row["type"], row["consumer"]))
        # Set here, because the layout gives it no height next to a second table of automatic height.
        table.styles.height = min(len(rows) + 1, max(3, self.size.height * 3 // 10))
        table.show(
            list(zip(heads, widths, strict=True))[:columns],
            {
                f"{row['consumer']}\0{row['type']}": [
                    _cut(row["consumer"], widths[0] - 1),
                    _cut(row["type"], widths[1] - 1),
                    cell(row["status"], _STATUS.get(row["status"], "")),
                    cell(number(row["rate_per_minute"]), right=True),
                    cell(f"{row['busy']:.1f}", right=True),
                    cell(number(row["failed"]), right=True),
                    cell(number(row["dead"]), right=True),
                    cell(ago(row["reported_at"], found.now), right=True),
                    cell(_handles(row, found.now), right=True),
                ][:columns]
                for row in rows[:_SHOWN]
            },
        )

    def _show_hurts(self, found: Overview) -> None:
        table = self.query_one("#hurts", Rows)
        self._hurts = _hurts(found, self._incidents, self._absent)
        table.display = bool(self._hurts)
        table.styles.height = min(len(self._hurts) + 1, 6)
        width = max(40, table.size.width or self.size.width) - 1
        columns = [(Text(""), 5), (Text("WHAT IS WRONG"), 26), (Text(""), max(10, width - 31))]
        rows = list(self._hurts.items())[:_SHOWN]
        table.show(
            columns,
            {
                key: [cell(hurt.verdict, _VERDICT.get(hurt.verdict, "")), _cut(hurt.name, 25), cell(hurt.text)]
                for key, hurt in rows
            },
        )

    # ---- keys

    def _selected(self) -> str | None:
        return self.query_one("#queues", Rows).key

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        key = event.row_key.value or ""
        if event.data_table.id == "hurts":
            if hurt := self._hurts.get(key):
                text = "\n".join(map(escaped, hurt.long.split("\n")))
                self.app.push_screen(Reading(escaped(hurt.name), text))
        else:
            # The key of a consumer has its queue after a NUL, which no name contains.
            self.app.push_screen(QueueScreen(key.rpartition("\0")[2]))

    def action_pause(self) -> None:
        if type := self._selected():
            self.pause(type)

    def action_resume(self) -> None:
        if type := self._selected():
            self.resume(type)

    def action_redrive(self) -> None:
        if type := self._selected():
            self.redrive_all(type)

    def action_sort(self, step: int) -> None:
        """Sort by the next column; with a step of 0, reverse the order."""
        shown = sum(1 for column in COLUMNS if self.size.width >= _WIDE or not column.wide)
        self._is_turned = not self._is_turned if not step else False
        self._sorted_by = (self._sorted_by + 1 + step) % (shown + 1) - 1
        self.show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While the filter is typed, a slash is text."""
        return action != "filter" or not self.query_one("#filter").has_focus

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        box.value = self._filter
        self.set_focus(box)

    def action_clear(self) -> None:
        """Clear the filter."""
        self._filter = ""
        self._close_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter = event.value
        self.show()  # of those that are known; the next refresh finds the others

    def on_input_submitted(self) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter").display = False
        self.set_focus(self.query_one("#queues"))
        self.show()


@dataclass(frozen=True)
class Hurt:
    """A line about something that is wrong: an incident, a failed health check, or a part that cannot be read.

    The last line, without a verdict, is about areas that are not installed.
    """

    verdict: str
    name: str
    text: str
    long: str


def _hurts(found: Overview, incidents: list[Incident], absent: list[str]) -> dict[str, Hurt]:
    """The lines by their keys."""
    lines: dict[str, Hurt] = {}
    for name, reason in found.failed.items():
        lines[f"failed\0{name}"] = Hurt("bad", name, f"cannot be read: {reason}", reason)
    for row in found.hurts:
        detail = row["detail"] or f"{row['measured']} {row['unit']}"
        lines[f"health\0{row['name']}"] = Hurt(
            row["verdict"], row["name"], detail, f"{row['verdict']}: {row['measured']} {row['unit']}\n\n{detail}"
        )
    for one in incidents:
        text = f"{one.text}: {one.error}" if one.error else one.text
        since = f", for {period((found.now - one.since).total_seconds())}" if one.since else ""
        lines[f"{one.kind}\0{one.name}\0{one.error}"] = Hurt(
            one.verdict, one.name, f"{text}{since}", f"{one.kind.replace('_', ' ')}\n\n{text}{since}"
        )
    if absent:
        lines["absent"] = Hurt("", "not installed", how_to_add(absent), how_to_add(absent))
    return lines


def _handles(row: dict[str, Any], now: datetime) -> str:
    """The message that a consumer has handled longest, since when, and how many more there are."""
    found = read(row["handling"])
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return f"{found[0][0]} {period((now - found[0][1]).total_seconds())}{more}" if found else ""


def _cut(text: str, width: int) -> Text:
    shown = cell(text)
    shown.truncate(width, overflow="ellipsis")
    return shown


def _sum(found: Overview, state: str) -> str:
    """A sum over all queues; an estimate if one of the counts is."""
    return count(found.sums[state], found.estimated and state in ESTIMATED)
