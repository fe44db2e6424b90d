"""Empty handlers for `runner consume`, which count their messages."""

import tally
from rowqueue import Message

tally.ready()


def batch(messages: list[Message]) -> None:
    tally.add(len(messages))


def one(message: Message) -> None:
    tally.add(1)


def watched(message: Message) -> None:
    tally.handled([message.body])
