"""Dialogs: the question before a change, and texts to read, such as the help."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static


class Question(ModalScreen[bool]):
    """Asks whether to make a change and says what it will do. The default answer is no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(self._title, style="bold"))
            with VerticalScroll(can_focus=False):
                yield Static(Text(self._text))
            with Horizontal(classes="buttons"):
                yield Button("No", id="no", compact=True)
                yield Button("Yes", id="yes", compact=True)

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Reading(ModalScreen[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,question_mark", "app.pop_screen", "Back")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(self._title, style="bold"))
            with VerticalScroll():
                yield Static(Text(self._text))
            yield Static(Text("Esc: back", style="dim"))


HELP = """\
Enter opens the queue, the message or the details of the line; Esc goes back; Tab moves to the next table.
Arrows, PgUp, PgDn, Home and End move. q ends.

On all screens
  p  pause the queue      r  resume it      d  redrive the selection
Queues
  /  show only queues whose name contains a text, and their consumers (Esc: all)
  s  sort by the next column      S  reverse the order
A queue
  1 to 5  new, active, dead, archived messages; errors of dead letters
  d  redrive this message, or all with this error      D  redrive all dead letters
  x  cancel this message      X  delete all messages of this tab (purge)
  m  show more messages
A message
  d  redrive      x  cancel

Each change is confirmed first. The default answer is No.

READY, DELAYED, ACTIVE, DEAD  messages; above 10,000 the database estimates them, shown as ≈32k.
EXPIRED  messages whose lease has ended and that are not rescued yet.
OLDEST  how long the first ready message has been due.
DRAIN  until all ready ones are handled, at the rate of the last five minutes; ? if none was handled.
DONE/M, SENT/M, FAIL/M  messages in the last whole minute, as consumers report it.
±/M  how many messages per minute the queue grows or shrinks by.
The last table lists what is wrong: incidents, failed health checks, what cannot be read, and
areas that are not installed.
The bars are completed messages per minute. If no consumer reports, dim bars with the label ready are the ready
messages at each refresh.
"""
