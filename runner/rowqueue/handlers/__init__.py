"""Finding and running handlers.

A handler is a function that takes one `Message`. It takes a list of messages if its first parameter is annotated
`list[Message]` or `Sequence[Message]`, or if the function has a true attribute `batch`. It may be `async`. A message is
done when the handler returns. `Retry`, `DeadLetter` or any other exception fails the message, or all of the list.
A handler of a list may instead return `{message.id: exception}` for the messages that failed. Under `--keep-results`,
the return value of a handler of one message is stored as the result.

`synchronous` and `asynchronous` run functions, which `loading` finds. rowqueue.extras.processes runs commands.
"""

from .base import GoOn, Handled, Handler, HandlerError
from .loading import load, of

__all__ = ["GoOn", "Handled", "Handler", "HandlerError", "load", "of"]
