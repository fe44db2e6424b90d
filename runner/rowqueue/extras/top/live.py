"""Shared by all screens: they refresh regularly, keep the cursor on its row, and ask before each change."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar, cast

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.screen import Screen
from textual.widgets import DataTable
from textual.worker import Worker

from ...databases import NotAllowed, QueueError
from ...escaping import escaped
from ..monitor import Away, Change, Looking, changes
from .asking import Question
from .frame import Top

Cells = Sequence[Text]
T = TypeVar("T")

# Seconds within which each call of a change must be answered.
PATIENCE = 10.0


class Rows(DataTable[Text]):
    """A table whose cursor stays on its row when rows are added or removed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open", key_display="↵")]

    def __init__(self, id: str) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._shown: dict[str, Cells] = {}
        self._head: list[tuple[str, int]] = []

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        keys = list(self._shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def show(self, columns: Sequence[tuple[Text, int]], rows: dict[str, Cells]) -> None:
        """Show rows, by key, in columns with these labels and widths."""
        head = [(label.plain, width) for label, width in columns]
        if head != self._head or list(rows) != list(self._shown):
            self._fill(columns if head != self._head else (), rows)
            self._head = head
            return
        for place, (new, old) in enumerate(zip(rows.values(), self._shown.values(), strict=True)):
            for column, (one, other) in enumerate(zip(new, old, strict=True)):
                if one != other or one.style != other.style:
                    self.update_cell_at(Coordinate(place, column), one)
        self._shown = rows

    def _fill(self, columns: Sequence[tuple[Text, int]], rows: dict[str, Cells]) -> None:
        at, place, top = self.key, self.cursor_row, self.scroll_y
        with self.app.batch_update():
            self.clear(columns=bool(columns))
            for label, width in columns:
                self.add_column(label, width=width)
            self._shown = rows
            for key, cells in rows.items():
                self.add_row(*cells, key=key)
            keys = list(rows)
            self.move_cursor(row=keys.index(at) if at in rows else min(place, len(keys) - 1), scroll=False)
            self.scroll_to(y=top, animate=False)


class Live(Screen[None]):
    """A screen that reads the database regularly while it is in front."""

    _looking: Worker[None] | None = None

    @property
    def top(self) -> Top:
        return cast(Top, self.app)

    async def look(self) -> datetime:
        """Read the database and show the answer; returns the time of the server's clock."""
        raise NotImplementedError

    async def ask(self, work: Callable[[Looking], T]) -> T:
        """The result of `work`, which runs after the program's earlier work."""
        return await asyncio.wrap_future(self.top.watched.submit(work))

    def show(self) -> None:
        """Show the last answer again, after a resize."""

    def on_mount(self) -> None:
        self.set_interval(self.top.interval, self.refresh_soon)

    def on_screen_resume(self) -> None:
        self.refresh_soon()

    def on_resize(self) -> None:
        self.call_after_refresh(self.show)

    def refresh_soon(self) -> None:
        """Refresh now, unless a refresh is running or another screen is in front."""
        if self.app.screen is self and (self._looking is None or self._looking.is_finished):
            self._looking = self.run_worker(self._look())

    async def _look(self) -> None:
        self.top.asked()
        try:
            now = await self.look()
        except Exception as error:  # a bad answer must not end the program
            self.top.failed(error)
        else:
            self.top.answered(now)

    # ---- changes

    def change(self, title: str, text: str, change: Change) -> None:
        """Ask, then make a change and show its result. `text`: what the change does."""
        self.app.run_worker(self._change(title, text, change))

    async def _change(self, title: str, text: str, change: Change) -> None:
        if not await self.app.push_screen_wait(Question(escaped(title), text)):
            return
        total = 0
        try:
            while count := await self._perform(change):
                total += count
                if not change.repeats:
                    break
                self.top.progress(_outcome(change, total))
        except (Away, QueueError, NotAllowed) as error:
            before = f" Before that: {_outcome(change, total)}" if total else ""
            self.tell(f"{error}{before}", "error")
        else:
            self.tell(_outcome(change, total))
        self.top.progress("")
        if isinstance(self.app.screen, Live):
            self.app.screen.refresh_soon()

    async def _perform(self, change: Change) -> int:
        """Make one call of a change. If the database does not answer in time, the call is not made later."""
        job = self.top.watched.submit(lambda looking: changes.call(looking, change), again=False)
        try:
            [row] = await asyncio.wait_for(asyncio.wrap_future(job), PATIENCE)
        except TimeoutError:
            begun = job.running()
            raise Away(
                "The database does not answer: check whether it was done." if begun else "Not done: no answer."
            ) from None
        except Away as error:
            raise Away(f"The connection was lost: check whether it was done ({error}).") from None
        return cast(int, row["affected"])

    def tell(self, text: str, severity: Any = "information") -> None:
        """Show a notification for some seconds."""
        self.app.notify(escaped(text), severity=severity, markup=False, timeout=8 if severity == "error" else 4)

    def pause(self, type: str) -> None:
        text = "Claims return nothing until it is resumed. Claimed messages can be finished, and messages can be sent."
        self.change(f"Pause the queue {type}?", text, changes.pause(type))

    def resume(self, type: str) -> None:
        self.change(f"Resume the queue {type}?", "Consumers claim its messages again.", changes.resume(type))

    def redrive_all(self, type: str) -> None:
        text = "Their attempts are reset to 0, and consumers retry them, those that died first come first."
        self.change(f"Redrive all dead letters of {type}?", text, changes.redrive_all(type))

    def redrive_one(self, type: str, id: int) -> None:
        text = f"The dead letter becomes a new message of {escaped(type)} with 0 attempts; consumers retry it."
        self.change(f"Redrive message {id}?", text, changes.redrive(id))

    def cancel(self, type: str, id: int) -> None:
        text = f"It is deleted from {escaped(type)} for good; while a consumer holds it, when its attempt ends."
        self.change(f"Cancel message {id}?", text, changes.cancel(id))


def _outcome(change: Change, total: int) -> str:
    return change.outcome.replace("{count}", f"{total:,}")
