"""The frame of all screens: the program with its connection, its first line, and a warning when something is wrong."""

import asyncio
import signal
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ...escaping import escaped
from ..monitor import Away, Watched
from ..monitor.parts import said
from .asking import HELP, Reading
from .growth import Growth
from .text import period

# After this many seconds without an answer, a warning is shown.
_LATE = 3.0


class Top(App[int]):
    """`runner top` on one database. `first`: makes the first screen. `label`: the name of the database."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "runner top"
    CSS = """
    Screen { layout: vertical; }
    .line { height: 1; width: 100%; }
    .frame { background: $panel; }
    .sign { height: auto; max-height: 3; display: none; background: $error; color: $text; }
    .sign.late { background: $warning; }
    .sign.shown { display: block; }
    Rows { scrollbar-size-vertical: 1; overflow-x: hidden; width: 100%; }
    #queues, #messages { height: 1fr; min-height: 3; }
    #filter { height: 1; border: none; padding: 0; display: none; }
    #life { height: 1fr; }
    Question, Reading { align: center middle; }
    .box { width: 90%; max-width: 100; height: auto; max-height: 90%; 
            border: round $primary; background: $surface; padding: 0 1; }
    .box VerticalScroll { height: auto; max-height: 100%; margin: 1 0; }
    .buttons { height: 1; }
    .buttons Button { margin-right: 2; min-width: 9; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False),
    ]

    def __init__(self, watched: Watched, first: Callable[[], Screen[Any]], label: str, interval: float) -> None:
        super().__init__()
        self.watched, self.label, self.interval = watched, label, interval
        self.growth = Growth()
        self.now: datetime | None = None  # of the server's clock, at the last refresh
        self._first = first
        self._asked_at: float | None = None
        self._failed_at: float | None = None
        self._trouble: str | None = None
        self._progress = ""

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, 128 + number)
        self.push_screen(self._first())
        self.set_interval(0.5, self.show_frame)

    def action_help(self) -> None:
        """Show what the keys do and what the columns mean."""
        self.push_screen(Reading("runner top", HELP))

    def asked(self) -> None:
        """Note that a refresh has begun."""
        self._asked_at = time.monotonic()

    def answered(self, now: datetime) -> None:
        """Note that a refresh has ended. `now`: the time of the server's clock."""
        self.now = now
        self._asked_at = self._failed_at = self._trouble = None
        self.show_frame()

    def failed(self, error: Exception) -> None:
        """Note that a refresh has failed."""
        self._asked_at = None
        if isinstance(error, Away):
            self._failed_at = self._failed_at or time.monotonic()
        self._trouble = escaped(said(error))
        self.show_frame()

    def progress(self, text: str) -> None:
        """Show the progress of a change of many calls; '' when it has ended."""
        self._progress = text
        self.show_frame()

    def show_frame(self) -> None:
        """Update the first line of the screen, and the warning below it when something is wrong."""
        if not self.screen_stack:  # the timer may fire once more while the program ends
            return
        for line in self.screen.query(".frame").results():
            line.update(self._frame(line.size.width))  # type: ignore[attr-defined]
        text, is_late = self._sign()
        for sign in self.screen.query(".sign").results():
            sign.set_class(bool(text), "shown")
            sign.set_class(is_late, "late")
            sign.update(Text(text))  # type: ignore[attr-defined]

    def _frame(self, width: int) -> Text:
        left = f"runner top  {escaped(self.label)}"
        clock = f"{self.now.astimezone():%H:%M:%S}  " if self.now else ""
        right = self._progress or f"{clock}every {self.interval:g} s"
        room = max(0, width - len(right) - 2)
        line = Text(left, style="bold", no_wrap=True)
        line.truncate(room, overflow="ellipsis", pad=True)
        return line + Text(f"  {right}")

    def _sign(self) -> tuple[str, bool]:
        """The text of the warning, "" for none, and whether it is only about a late answer."""
        now = time.monotonic()
        if self._failed_at is not None:
            return f"The database is unreachable for {period(now - self._failed_at)}; retrying. {self._trouble}", False
        if self._trouble:
            return self._trouble, False
        if self._asked_at is not None and now - self._asked_at > _LATE:
            return f"No answer for {period(now - self._asked_at)}.", True
        return "", False
