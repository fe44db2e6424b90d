"""One queue: its policy, its rates, and its messages by state."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static, Tab, Tabs

from ...databases import Row
from ...escaping import escaped
from ..monitor import MINUTES, Queue, QueueDetail, changes, queue
from ..monitor.counts import ESTIMATED, count, number
from .live import Cells, Live, Rows
from .message import MessageScreen
from .text import ago, cell, has_reports, period, spark

# Messages that are shown: at first, and at most.
_FIRST, _MOST = 50, 1_000
# Characters of each body that a list reads.
_BODY = 200
_ERRORS = 100


@dataclass(frozen=True)
class Page:
    """One tab: its label, the state of its messages, '' for errors, and its columns: label, width, text."""

    label: str
    state: str
    columns: tuple[tuple[str, int, Callable[[Row, datetime], str]], ...]
    purged: str = ""


def _ago(name: str) -> Callable[[Row, datetime], str]:
    return lambda row, now: ago(row[name], now)


def _of(name: str) -> Callable[[Row, datetime], str]:
    return lambda row, _: "" if row[name] is None else str(row[name])


_ID = ("ID", 11, _of("id"))
_TRIES = ("TRIES", 6, _of("attempts"))
PAGES = {
    "N": Page(
        "1 New",
        "N",
        (_ID, _TRIES, ("DUE", 13, _ago("run_at")), ("GROUP", 10, _of("group_key")), ("BODY", 0, _of("body"))),
        "new messages: ready and delayed",
    ),
    "A": Page(
        "2 Active",
        "A",
        (
            _ID,
            _TRIES,
            ("CLAIMED", 12, _ago("changed_at")),
            ("LEASE", 12, _ago("lease_until")),
            ("CONSUMER", 16, _of("consumer")),
            ("BODY", 0, _of("body")),
        ),
    ),
    "E": Page(
        "3 Dead",
        "E",
        (_ID, _TRIES, ("DIED", 12, _ago("changed_at")), ("ERROR", 26, _of("error")), ("BODY", 0, _of("body"))),
        "dead letters",
    ),
    "C": Page(
        "4 Archive",
        "C",
        (
            _ID,
            _TRIES,
            ("COMPLETED", 12, _ago("changed_at")),
            ("CONSUMER", 16, _of("consumer")),
            ("BODY", 0, _of("body")),
        ),
        "archived messages",
    ),
    "errors": Page(
        "5 Errors",
        "",
        (
            ("COUNT", 8, lambda row, _: f"{row['messages']:,}"),
            ("LAST", 12, _ago("last_at")),
            ("ERROR", 0, _of("error")),
        ),
    ),
}


class QueueScreen(Live):
    """One queue. `type` is its name."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
        Binding("p", "pause", "Pause"),
        Binding("r", "resume", "Resume"),
        Binding("d", "redrive", "Redrive"),
        Binding("D", "redrive_all", show=False),
        Binding("x", "cancel", "Cancel"),
        Binding("X", "purge", "Purge"),
        Binding("m", "more", "More"),
        *(Binding(str(place), f"page('{name}')", show=False) for place, name in enumerate(PAGES, 1)),
    ]

    def __init__(self, type: str) -> None:
        super().__init__()
        self._type = type
        self._page = "N"
        self._limit = _FIRST
        self._rows: list[Row] = []
        self._seen: QueueDetail | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="line frame")
        yield Static(classes="sign")
        yield Static(id="policy", classes="line")
        yield Static(id="numbers", classes="line")
        yield Static(id="rates")
        yield Tabs(*(Tab(page.label, id=f"page-{name}") for name, page in PAGES.items()))
        yield Rows("messages")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#messages").focus()

    async def look(self) -> datetime:
        page, limit = self._page, self._limit
        state = PAGES[page].state or "E"
        seen = await self.ask(lambda looking: queue(looking, self._type, state, limit, _BODY, page == "errors"))
        self.top.growth.add([seen.queue])
        if page == self._page:  # else another tab was opened meanwhile, which refreshes itself
            self._seen = seen
            self._rows = seen.errors if page == "errors" else seen.messages
            self.show()
        return seen.now

    # ---- what is shown

    def show(self) -> None:
        if not self.is_mounted or self._seen is None:
            return
        self.query_one("#policy", Static).update(self._policy(self._seen))
        self.query_one("#numbers", Static).update(self._numbers(self._seen.queue))
        self.query_one("#rates", Static).update(self._rates(self._seen.queue))
        self._show_rows(self._seen)
        self.top.show_frame()

    def _policy(self, seen: QueueDetail) -> Text:
        line = Text(escaped(self._type), style="bold", no_wrap=True, overflow="ellipsis")
        if seen.queue.paused:
            line.append("  paused", "yellow")
        if policy := seen.queue.policy:
            parts = [
                "ordered" if policy["ordered"] else "",
                "a dead letter stops its group" if policy["dead_stops_group"] else "",
                "ring" if policy["ring"] else "",
                "fair" if policy["fair"] else "",
                f"lease {period(policy['lease_seconds'])}",
                f"{policy['max_attempts']} attempts",
                f"backoff {period(policy['backoff_seconds'])}",
                "archives" if policy["on_complete"] == "archive" else "",
                f"at most {policy['max_active']} active" if policy["max_active"] else "",
                f"{policy['rate']} per {period(policy['rate_seconds'])}" if policy["rate"] else "",
                "limits per group" if policy["group_max_active"] or policy["group_rate"] else "",
            ]
            line.append("  " + " · ".join(filter(None, parts)), "not bold dim")
        if seen.left_out:
            line.append(f"  not allowed to see: {', '.join(seen.left_out)}", "yellow")
        for name, reason in seen.failed.items():
            line.append(f"  {name} cannot be read: {escaped(reason)}", "bold red")
        return line

    def _numbers(self, queue: Queue) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        styles = {"ready": "", "delayed": "", "active": "", "expired": "yellow", "dead": "bold red"}
        for name, style in styles.items():
            value: int = getattr(queue, name)
            line.append(f"{name} ", "dim")
            line.append(f"{count(value, queue.estimated and name in ESTIMATED)}   ", style if value else "dim")
        if queue.oldest_ready_seconds is not None:
            line.append("oldest ", "dim").append(period(queue.oldest_ready_seconds))
        if queue.ready:
            line.append("   drained in ", "dim").append(period(queue.drain_seconds) or "?")
        return line

    def _rates(self, queue: Queue) -> Text:
        """A line of bars for each number that consumers report; without reports, the ready messages."""
        width = min(MINUTES, self.size.width - 20)
        minutes = queue.minutes[:-1]
        if not has_reports(queue):
            ready = self.top.growth.ready(self._type)
            line = Text("ready, at each refresh  ", "dim", no_wrap=True)
            return line.append(spark(ready, min(len(ready), self.size.width - 24)))
        lines = Text(no_wrap=True)
        for name, label, style in (("sent", "sent", ""), ("completed", "done", "green"), ("failed", "failed", "red")):
            values = [getattr(minute, name) for minute in minutes]
            lines.append(f"{label:>6}/min {number(values[-1]):>6}  ", "dim")
            lines.append(f"{spark(values, width)}\n", style)
        last = minutes[-1]
        if attempts := last.completed + last.failed:
            lines.append(f"{last.busy_ms / attempts:,.1f} ms per attempt in handlers in the last minute", "dim")
        lines.rstrip()
        return lines

    def _show_rows(self, seen: QueueDetail) -> None:
        table, page = self.query_one("#messages", Rows), PAGES[self._page]
        width = max(40, table.size.width or self.size.width) - 1
        rest = max(8, width - sum(column[1] for column in page.columns))
        widths = [column[1] or rest for column in page.columns]
        heads = [Text(column[0]) for column in page.columns]
        columns = list(zip(heads, widths, strict=True))
        table.show(columns, {_key(row): self._cells(row, seen.now, page, widths) for row in self._rows})

    def _cells(self, row: Row, now: datetime, page: Page, widths: list[int]) -> Cells:
        cells = []
        for (label, _, text), width in zip(page.columns, widths, strict=True):
            shown = cell(text(row, now)[:_BODY], "red" if label == "ERROR" else "")
            shown.truncate(width - 1, overflow="ellipsis")
            cells.append(shown)
        return cells

    # ---- keys

    def action_page(self, name: str) -> None:
        self.query_one(Tabs).active = f"page-{name}"
        self.query_one("#messages").focus()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        page = (event.tab.id or "").removeprefix("page-")
        if page == self._page:
            return
        self._page, self._limit = page, _FIRST
        self._rows = []
        self.show()
        self.look_again()

    def look_again(self) -> None:
        """Refresh now, even while an earlier refresh is running."""
        self._looking = None
        self.refresh_soon()

    def _row(self) -> Row | None:
        key = self.query_one("#messages", Rows).key
        return next((row for row in self._rows if _key(row) == key), None)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if row := self._row():
            self.app.push_screen(MessageScreen(row["id"] if "id" in row else row["last_id"]))

    def action_pause(self) -> None:
        self.pause(self._type)

    def action_resume(self) -> None:
        self.resume(self._type)

    def action_redrive_all(self) -> None:
        self.redrive_all(self._type)

    def action_redrive(self) -> None:
        row = self._row()
        if row and self._page == "errors":
            self._redrive_group(row)
        elif row and row["state"] == "E":
            self.redrive_one(self._type, row["id"])
        else:
            self.tell("Choose a dead letter (3) or an error (5), or press D for all dead letters.", "warning")

    def _redrive_group(self, group: Row) -> None:
        type, error = self._type, group["error"]
        self.change(
            f"Redrive {group['messages']:,} dead letters?",
            f"The dead letters of {escaped(type)} with this error are retried with their attempts reset to 0:"
            f"\n\n{escaped(error)}",
            changes.redrive_all(type, error),
        )

    def action_cancel(self) -> None:
        row = self._row()
        if row and self._page in ("N", "A", "E"):
            self.cancel(self._type, row["id"])
        else:
            self.tell("Choose a new or an active message (1, 2) or a dead letter (3).", "warning")

    def action_purge(self) -> None:
        type, page = self._type, PAGES[self._page]
        if not page.purged:
            self.tell("Open the tab of the messages to delete: new (1), dead (3) or archived (4).", "warning")
            return
        self.change(
            f"Purge {type}?",
            f"All {page.purged} are deleted for good. Messages in other states stay.",
            changes.purge(type, page.state),
        )

    def action_more(self) -> None:
        self._limit = min(_MOST, self._limit * 2)
        self.look_again()


def _key(row: dict[str, Any]) -> str:
    return str(row["id"]) if "id" in row else row["error"]
