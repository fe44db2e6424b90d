"""Work of many calls: a progress bar on a terminal. Ctrl-C stops it between two calls, so the count is exact."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import environ
from typing import TYPE_CHECKING, Any

from ..databases import Row
from ..errors import Error

if TYPE_CHECKING:
    from rich.progress import Progress


class Stopped(Error):
    """Ctrl-C stopped the work. The message says how many were done; they stay done."""

    exit_code = 128 + signal.SIGINT


class Work:
    """The work done so far. Created by `work`."""

    def __init__(self, done: str, show: Callable[[int, int], None]) -> None:
        self.count = 0
        self._done, self._show = done, show
        self._is_calling = self._is_asked = False
        self._hint = ""

    def call(self, call: Callable[[], list[Row]], size: int = 0, hint: str = "") -> int:
        """Make a bounded call that returns a count, and add the count. `size`: how far the bar moves.

        After Ctrl-C, the call still finishes and counts; then Stopped is raised, and `hint` says where to continue. A
        second Ctrl-C does not wait for the call.
        """
        before = self.count
        self._is_calling = True
        try:
            self.count += int(call()[0]["affected"])
            self._hint = hint
        except KeyboardInterrupt:
            raise Stopped(f"stopped: {before} {self._done}, and perhaps those of the interrupted call") from None
        finally:
            self._is_calling = False
        self._show(self.count, size)
        if self._is_asked:
            self.stop()
        return self.count - before

    def stop(self) -> None:
        """Raise Stopped with the count."""
        raise Stopped(f"stopped: {self.count} {self._done}{self._hint}")

    def on_signal(self, _number: int, _frame: object) -> None:
        if self._is_calling and not self._is_asked:
            self._is_asked = True
            return
        raise KeyboardInterrupt


@contextmanager
def work(doing: str, done: str, total: int | None = None) -> Iterator[Work]:
    """Do work of many calls: `with work("purging", "purged") as found: found.call(...)`.

    `total` is the sum of the sizes of all calls. Raises Stopped after Ctrl-C.
    """
    with _bar(doing, done, total) as show:
        found = Work(done, show)
        before = signal.signal(signal.SIGINT, found.on_signal)
        try:
            yield found
        except KeyboardInterrupt:  # between two calls, for example while a file is read
            found.stop()
        finally:
            signal.signal(signal.SIGINT, before)


def until_none(call: Callable[[], list[Row]], doing: str, done: str) -> int:
    """Repeat a bounded call until it counts nothing; returns the sum of its counts. Raises Stopped after Ctrl-C."""
    with work(doing, done) as found:
        while found.call(call):
            pass
    return found.count


@contextmanager
def _bar(doing: str, done: str, total: int | None) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, if that is a terminal with a cursor; yields the function that moves it.

    It needs the extra `terminal`.
    """
    has_cursor = sys.stderr.isatty() and environ.get("TERM", "dumb") not in ("dumb", "unknown")
    if not has_cursor or find_spec("rich") is None:
        yield lambda count, size: None
        return
    progress = _progress(total)
    task = progress.add_task(doing, total=total, count=0, done=done)

    def show(count: int, size: int) -> None:
        progress.update(task, advance=size, count=count)

    with progress:
        yield show


def _progress(total: int | None) -> "Progress":
    from rich.console import Console  # slow to import
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
        """The count, and the count per second since the start."""

        def render(self, task: Any) -> Text:
            count, seconds = task.fields["count"], task.elapsed or 0
            rate = f", {count / seconds:,.0f}/s" if count and seconds else ""
            return Text(f"{count:,} {task.fields['done']}{rate}")

    left = [TaskProgressColumn()] if total else []
    right = TimeRemainingColumn(elapsed_when_finished=True) if total else TimeElapsedColumn()
    columns = [TextColumn("{task.description}"), BarColumn(bar_width=20), *left, Count(), right]
    return Progress(*columns, console=Console(stderr=True), transient=True)
