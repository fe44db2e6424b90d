"""One message: its history, its headers and its body."""

from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from ...databases import Row, how_to_add
from ...escaping import escaped_lines
from ..monitor import MessageDetail, message
from .live import Live
from .text import BODY, moment, pretty

_STATES = {"N": "new", "A": "active", "E": "dead", "C": "completed and archived"}
_CHANGED = {"A": "claimed", "E": "died", "C": "completed"}


class MessageScreen(Live):
    """One message, found by its id."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
        Binding("d", "redrive", "Redrive"),
        Binding("x", "cancel", "Cancel"),
        Binding("p", "pause", "Pause", show=False),
        Binding("r", "resume", "Resume", show=False),
    ]

    def __init__(self, id: int) -> None:
        super().__init__()
        self._number = id
        self._row: Row | None = None
        self._body: tuple[str, str | None] | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="line frame")
        yield Static(classes="sign")
        with VerticalScroll(id="life"):
            yield Static(id="facts")
            yield Static(id="content")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#life").focus()

    async def look(self) -> datetime:
        detail = await self.ask(lambda looking: message(looking, self._number, BODY))
        self._row = detail.message
        facts, content = self.query_one("#facts", Static), self.query_one("#content", Static)
        if self._row is None:
            gone = f"Message {self._number} no longer exists: it was completed and deleted, cancelled or purged."
            facts.update(Text(gone if "message" not in detail.left_out else "This user may not read messages."))
            content.update("")
            self._body = None
            return detail.now
        facts.update(_facts(self._row, detail))
        body = (self._row["body"], self._row["headers"])
        if body != self._body:  # the layout of a long body is slow
            self._body = body
            content.update(_content(*body))
        return detail.now

    def action_redrive(self) -> None:
        if self._row and self._row["state"] == "E":
            self.redrive_one(self._row["type"], self._number)
        else:
            self.tell("Only a dead letter can be redriven.", "warning")

    def action_cancel(self) -> None:
        if self._row and self._row["state"] in ("N", "A", "E"):
            self.cancel(self._row["type"], self._number)
        else:
            self.tell("A message that is completed cannot be cancelled.", "warning")

    def action_pause(self) -> None:
        if self._row:
            self.pause(self._row["type"])

    def action_resume(self) -> None:
        if self._row:
            self.resume(self._row["type"])


def _facts(row: Row, detail: MessageDetail) -> Text:
    """A line for each fact about a message, in order of time."""
    state, now = row["state"], detail.now
    due = moment(row["run_at"], now)
    changed = moment(row["changed_at"], now)
    lines = {
        "message": str(row["id"]),
        "queue": row["type"],
        "state": _STATES[state],
        "sent": moment(row["created_at"], now),
        "sent by": row["source"],
        "priority": row["priority"] or "",
        "group": row["group_key"],
        "dedup key": row["dedup_key"],
        "attempts": str(row["attempts"]),
        "due": due,
        _CHANGED.get(state, "changed"): changed,
        "consumer": row["consumer"],
        "batch key": row["batch_key"],
        "lease until": moment(row["lease_until"], now),
        "progress": detail.progress,
        "steps": "\n".join(f"{step['step']}, {moment(step['saved_at'], now)}" for step in detail.steps),
        "error": row["error"],
        "result": detail.result["result"] if detail.result else None,
    }
    if detail.absent:
        lines["left out"] = how_to_add(detail.absent)
    text = Text()
    for name, value in lines.items():
        if value not in (None, ""):
            text.append(f"{name:>11}  ", "dim")
            style = "red" if name == "error" else "bold" if name in ("message", "state") else ""
            shown = escaped_lines(str(value)).replace("\n", "\n" + " " * 13)
            text.append(f"{shown}\n", style)
    return text


def _content(body: str, headers: str | None) -> Text:
    text = Text()
    if headers:
        text.append("headers\n", "bold").append_text(pretty(headers)).append("\n\n")
    cut = len(body) >= BODY
    text.append(f"body, first {BODY:,} characters\n" if cut else "body\n", "bold")
    text.append_text(Text(escaped_lines(body)) if cut else pretty(body))
    if not body:
        text.append("empty", "dim")
    return text
