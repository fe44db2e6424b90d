"""Work of many calls: a progress bar on a terminal, and Ctrl-C between two calls, so that what was done is known."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import environ
from typing import TYPE_CHECKING, Any

from ..databases import Row
from ..errors import Expected

if TYPE_CHECKING:
    from rich.progress import Progress


class Stopped(Expected):
    """Ctrl-C came in the middle; the message says how many were done, which stays."""

    exit_code = 128 + signal.SIGINT


class Work:
    """What has been done so far. Made by `work`."""

    def __init__(self, done: str, show: Callable[[int, int], None]) -> None:
        self.count = 0
        self._done, self._show = done, show
        self._is_calling = self._is_asked = False
        self._hint = ""

    def call(self, call: Callable[[], list[Row]], size: int = 0, hint: str = "") -> int:
        """Make a bounded call that returns a count, and add it. `size`: how much further the bar goes.

        Raises Stopped when Ctrl-C came while it ran: it ends and counts, and `hint` says where to go on. A second
        Ctrl-C does not wait for it.
        """
        before = self.count
        self._is_calling = True
        try:
            self.count += int(call()[0]["count"])
            self._hint = hint
        except KeyboardInterrupt:
            raise Stopped(f"stopped: {before} {self._done}, and perhaps those of the call that ran") from None
        finally:
            self._is_calling = False
        self._show(self.count, size)
        if self._is_asked:
            self.stop()
        return self.count - before

    def stop(self) -> None:
        """Raises Stopped, which says what was done."""
        raise Stopped(f"stopped: {self.count} {self._done}{self._hint}")

    def on_signal(self, _number: int, _frame: object) -> None:
        if self._is_calling and not self._is_asked:
            self._is_asked = True
            return
        raise KeyboardInterrupt


@contextmanager
def work(doing: str, done: str, total: int | None = None) -> Iterator[Work]:
    """Do work of many calls: `with work("purging", "purged") as found: found.call(...)`.

    `total` is what the sizes of all calls add up to. Raises Stopped after Ctrl-C.
    """
    with _bar(doing, done, total) as show:
        found = Work(done, show)
        before = signal.signal(signal.SIGINT, found.on_signal)
        try:
            yield found
        except KeyboardInterrupt:  # between two calls, such as while a file is read
            found.stop()
        finally:
            signal.signal(signal.SIGINT, before)


def until_none(call: Callable[[], list[Row]], doing: str, done: str) -> int:
    """Repeat a bounded call until it finds nothing; the sum of its counts. Raises Stopped after Ctrl-C."""
    with work(doing, done) as found:
        while found.call(call):
            pass
    return found.count


@contextmanager
def _bar(doing: str, done: str, total: int | None) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error while it is a terminal that can move its cursor; yields what moves it."""
    if not sys.stderr.isatty() or environ.get("TERM", "dumb") in ("dumb", "unknown"):
        yield lambda count, size: None
        return
    progress = _progress(total)
    task = progress.add_task(doing, total=total, count=0, done=done)

    def show(count: int, size: int) -> None:
        progress.update(task, advance=size, count=count)

    with progress:
        yield show


def _progress(total: int | None) -> "Progress":
    from rich.console import Console  # it takes long to load
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Count(ProgressColumn):
        """How many, and how many a second since the start."""

        def render(self, task: Any) -> Text:
            count, seconds = task.fields["count"], task.elapsed or 0
            rate = f", {count / seconds:,.0f}/s" if count and seconds else ""
            return Text(f"{count:,} {task.fields['done']}{rate}")

    left = [TaskProgressColumn()] if total else []
    right = TimeRemainingColumn(elapsed_when_finished=True) if total else TimeElapsedColumn()
    columns = [TextColumn("{task.description}"), BarColumn(bar_width=20), *left, Count(), right]
    return Progress(*columns, console=Console(stderr=True), transient=True)
