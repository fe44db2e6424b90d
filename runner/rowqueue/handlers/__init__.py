"""How a handler is found and run.

A handler is a function that takes one `Message`, or a list of them when its first parameter is annotated
`list[Message]` or `Sequence[Message]` or the function has a true attribute `batch`. It may be `async`. Returning means
done; `Retry`, `Discard` or any other exception is a failure of the message, or of all messages of a batch handler,
which may instead return `{message.id: exception}` for the messages that failed. Under `--keep-results` what a handler
of one message returns is kept with the message.

    synchronous, asynchronous   functions, which `loading` finds
    command, guard              a shell command for each message, and what ends it with the runner
    worker, conversation        processes that live, and the lines that go to one and come back
    processes                   how processes end, and what they write to standard error
"""

from ..messages import Discard, Message, Retry
from .base import Handled, Handler, HandlerError
from .loading import load, of

__all__ = ["Discard", "Handled", "Handler", "HandlerError", "Message", "Retry", "load", "of"]
