"""What all screens share: they look again and again, keep their tables steady, and ask before they change anything."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable
from textual.worker import Worker

from ..databases import Disconnected, Session
from ..errors import Expected
from .asking import Question
from .frame import Top
from .text import inert

Cells = Sequence[Text]


class Rows(DataTable[Text]):
    """A table whose cursor stays on its row when the rows change."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open", key_display="↵")]

    def __init__(self, id: str) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._shown: dict[str, Cells] = {}
        self._head: list[tuple[str, int]] = []

    def head(self, columns: Sequence[tuple[Text, int]]) -> None:
        """Set the columns: label and width."""
        head = [(label.plain, width) for label, width in columns]
        if head == self._head:
            return
        self._head = head
        shown, at = self._shown, self.key
        self.clear(columns=True)
        for label, width in columns:
            self.add_column(label, width=width)
        self._fill(shown, at)

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        keys = list(self._shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def show(self, rows: dict[str, Cells]) -> None:
        """Show these rows, by their keys."""
        if list(rows) != list(self._shown):
            self._fill(rows, self.key)
            return
        for place, (new, old) in enumerate(zip(rows.values(), self._shown.values(), strict=True)):
            for column, (one, other) in enumerate(zip(new, old, strict=True)):
                if one != other or one.style != other.style:
                    self.update_cell_at((place, column), one)  # type: ignore[arg-type]
        self._shown = rows

    def _fill(self, rows: dict[str, Cells], at: str | None) -> None:
        top, place = self.scroll_y, self.cursor_row
        with self.app.batch_update():
            self.clear()
            self._shown = rows
            for key, cells in rows.items():
                self.add_row(*cells, key=key)
            keys = list(rows)
            self.move_cursor(row=keys.index(at) if at in rows else min(place, len(keys) - 1), scroll=False)
            self.scroll_to(y=top, animate=False)


class Live(Screen[None]):
    """A screen that asks the database again and again while it is in front."""

    _looking: Worker[None] | None = None

    @property
    def top(self) -> Top:
        return cast(Top, self.app)

    async def look(self) -> None:
        """Ask the database and show what it says."""
        raise NotImplementedError

    def show(self) -> None:
        """Show what is known, after a resize."""

    def on_mount(self) -> None:
        self.set_interval(self.top.interval, self.refresh_soon)

    def on_screen_resume(self) -> None:
        self.refresh_soon()

    def on_resize(self) -> None:
        self.call_after_refresh(self.show)

    def refresh_soon(self) -> None:
        """Look now, unless this screen is doing so, or another one is in front."""
        if self.app.screen is self and (self._looking is None or self._looking.is_finished):
            self._looking = self.run_worker(self._look())

    async def _look(self) -> None:
        self.top.asked()
        try:
            await self.look()
        except Expected as error:
            self.top.failed(error)
        else:
            self.top.answered()

    def change(self, title: str, text: str, work: Callable[[Session], int], done: str, again: bool = False) -> None:
        """Ask, then make a change and tell its count; `again`: repeat the call until it finds nothing more.

        `done`: the sentence about what was done, with {count}.
        """
        self.app.run_worker(self._change(title, text, work, done, again))

    async def _change(self, title: str, text: str, work: Callable[[Session], int], done: str, again: bool) -> None:
        if not await self.app.push_screen_wait(Question(inert(title), text)):
            return
        total = 0
        try:
            while count := await self.top.desk.do(work, self.top.patience):
                total += count
                if not again:
                    break
                self.top.progress(done.format(count=f"{total:,}"))
        except Disconnected as error:
            self.tell(f"The connection was lost: look whether it was done. {_so_far(done, total)}({error})", "error")
        except Expected as error:
            self.tell(f"Not done: {error} {_so_far(done, total)}", "error")
        else:
            self.tell(done.format(count=f"{total:,}"))
        self.top.progress("")
        if isinstance(self.app.screen, Live):
            self.app.screen.refresh_soon()

    def tell(self, text: str, severity: Any = "information") -> None:
        """Say something in a corner, for some seconds."""
        self.app.notify(inert(text), severity=severity, markup=False, timeout=8 if severity == "error" else 4)

    def pause(self, type: str) -> None:
        self.change(
            f"Pause the queue {type}?",
            "Claims return nothing until it is resumed. What is claimed can be finished, and sending goes on.",
            lambda session: cast("int", session.call("pause", type)[0]["count"]),
            f"{_braced(type)}: paused.",
        )

    def resume(self, type: str) -> None:
        self.change(
            f"Resume the queue {type}?",
            "Consumers claim its messages again.",
            lambda session: cast("int", session.call("resume", type)[0]["count"]),
            f"{_braced(type)}: resumed.",
        )

    def redrive_all(self, type: str) -> None:
        self.change(
            f"Redrive all dead letters of {type}?",
            "Their attempts are set back to 0, and consumers handle them again, the oldest dead first.",
            lambda session: cast("int", session.call("redrive", type)[0]["count"]),
            f"{_braced(type)}: {{count}} redriven.",
            again=True,
        )

    def redrive_one(self, type: str, id: int) -> None:
        self.change(
            f"Redrive message {id}?",
            f"The dead letter becomes a new message of {inert(type)} with 0 attempts, and a consumer handles it again.",
            lambda session: cast("int", session.call("redrive", type, id)[0]["count"]),
            f"Message {id}: {{count}} redriven.",
        )

    def cancel(self, type: str, id: int) -> None:
        self.change(
            f"Cancel message {id}?",
            f"It is removed from {inert(type)} with its body, for ever. A message that a consumer holds stays.",
            lambda session: cast("int", session.call("cancel", id)[0]["count"]),
            f"Message {id}: {{count}} cancelled.",
        )


def _braced(text: str) -> str:
    """A text to stand in a template of str.format."""
    return text.replace("{", "{{").replace("}", "}}")


def _so_far(done: str, total: int) -> str:
    return f"Before that: {done.format(count=f'{total:,}')} " if total else ""
